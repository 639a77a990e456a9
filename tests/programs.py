"""Fitted models of every form that can be deployed, and rows that are hard for them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import clone

from altnorm import Adjuster, AlternatingNormalizer, peers
from altnorm.adjuster.mixture import Mixture, no_mixture
from altnorm.decisions.decision import Decision
from altnorm.estimator.reading import read_on_host
from altnorm.families import CurveScaling, LabelwiseScaling
from altnorm.peers import Identity
from tests.oracle import draw_cases


def assemble(model: Any, mixture: str, decision: Decision, input: str) -> Adjuster:
    """Make an Adjuster of these parts, as if the evidence had asked for them."""
    adjuster = Adjuster(multilabel=model.multilabel, input=input)
    adjuster.model_, adjuster.decision_ = model, decision
    adjuster.classes_, adjuster.n_features_in_ = model.classes_, model.n_features_in_
    adjuster.mixture_ = mix(mixture, model.classes_.size, model.multilabel is not None)
    return adjuster


def mix(name: str, m: int, is_multilabel: bool) -> Mixture:
    """Return a mixture of one of the forms that an Adjuster may come to."""
    if name == "untouched":
        return no_mixture(is_multilabel)
    limit = 6.0 if is_multilabel else -6.0
    parts = {
        "alone": [1.0, 0.0, 0.0, 0.0],
        "temperature": [0.0, 1.0, 0.0, 0.0],
        "baseline": [0.0, 0.7, 0.2, 0.1],
    }
    weights = np.array(parts.get(name, [0.6, 0.25, 0.1, 0.05]))
    return Mixture(
        weights,
        np.array([0.6, limit, 0.01]),
        np.array([0.7, 0.2, 0.1]),
        following=np.array([1.7, 2 * limit, 0.002]) if name == "followed" else None,
        keeps=name == "kept",
        log_ratio=np.linspace(-1, 1, m) if name == "adapted" else None,
        is_multilabel=is_multilabel,
    )


def hard_cases(
    seed: int, count: int, *, smoothing: bool
) -> Iterator[tuple[AlternatingNormalizer, np.ndarray, np.ndarray, float]]:
    """Normalizers with everything that may go wrong, rows, their values, and how far off to be."""
    for case in draw_cases(seed, count, smoothing=smoothing):
        settings = dict(case.keywords)
        prior, weight = settings.pop("prior"), settings.pop("reference_weight")
        settings["prior"] = "uniform" if prior is None else prior
        normalizer = AlternatingNormalizer(threshold=0.0, reference="all", **settings)
        normalizer.fit(case.reference, sample_weight=weight)
        m = case.proba.shape[1]
        rows = np.concatenate([case.proba, np.full((1, m), 1 / m)])
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*prior zero")
            values = normalizer.transform(rows)
        # Rounding errors grow by alpha^depth.
        yield normalizer, rows, values, 1e-13 * max(1.0, settings["alpha"] ** settings["depth"])


def answer(adjuster: Adjuster, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return probabilities in double precision, and codes of decisions on them as rounded."""
    proba = adjuster.transform(values.astype(np.float64))
    if adjuster.decision_.on_input:
        return proba, adjuster.decision_.codes(
            read_on_host(adjuster, values.astype(np.float64)).proba
        )
    return proba, adjuster.decision_.codes(proba.astype(values.dtype))


MODELS = {
    "identity": (Identity(), "untouched"),
    "temperature": (Identity(), "temperature"),
    "baseline": (Identity(), "baseline"),
    "slope": (peers.TemperatureScaling(), "alone"),
    "bias": (peers.BiasCorrectedTemperature(1.0), "mixed"),
    "matrix": (peers.MatrixScaling(1.0), "mixed"),
    "curves": (CurveScaling(1.0, facets=True), "mixed"),
    "kept": (peers.MatrixScaling(0.01), "kept"),
    "adapted": (CurveScaling(1.0), "adapted"),
    "alternating": (AlternatingNormalizer(2.0, 1, 0.5, prior="shrunk"), "alone"),
    "cooled": (AlternatingNormalizer(0.5, 1, 0.25, reference="all", smoothing=0.1), "followed"),
    "deep": (AlternatingNormalizer(0.7, 3, 0.4), "mixed"),
    "deep, cooled": (AlternatingNormalizer(2.0, 5, 0.25, reference="all"), "followed"),
}
LABEL_MODELS = {
    "identity": (Identity(multilabel="labelwise"), "untouched"),
    "line": (LabelwiseScaling(4.0), "mixed"),
    "bent line": (LabelwiseScaling(1.0, bends=True), "mixed"),
    "thresholds": (peers.LabelThresholds(), "alone"),
    "pairs": (AlternatingNormalizer(2.0, 1, 0.5, multilabel="pairs"), "followed"),
    "labelwise": (AlternatingNormalizer(0.7, 1, 0.25, multilabel="labelwise"), "alone"),
    "deep pairs": (AlternatingNormalizer(0.7, 3, 0.25, multilabel="pairs", smoothing=0.1), "mixed"),
    "deep labelwise": (AlternatingNormalizer(2.0, 2, 0.5, multilabel="labelwise"), "followed"),
}
RULES = ("weights", "costs", "person", "target", "weights as it came")
FORMS = [(model, "argmax") for model in MODELS] + [("deep, cooled", rule) for rule in RULES]
FORMS.append(("kept", "target"))
LABEL_FORMS = [(model, "thresholds") for model in LABEL_MODELS]
PROGRAMS = [*FORMS, *LABEL_FORMS, ("line", "thresholds as it came")]


def make(model: str, rule: str, input: str) -> tuple[Adjuster, Any]:
    """Return a fitted model of any of the programs, and what it may be given."""
    if rule.startswith("thresholds"):
        return several(model, input, on_input=rule.endswith("as it came"))
    return single(model, rule, input)


def decide(rule: str, m: int) -> Decision:
    rng = np.random.default_rng(m)
    if rule == "argmax":
        return Decision("weights", np.ones(m))
    if rule == "target":
        return Decision("weights", np.ones(m), least=0.8)
    if rule.startswith("weights"):
        return Decision("weights", rng.uniform(0.2, 3, m), on_input=rule.endswith("as it came"))
    costs = rng.uniform(1, 3, (m, m)) * (1 - np.eye(m))
    if rule == "person":
        costs = np.column_stack([costs, np.full(m, 0.2)])
    return Decision("costs", costs)


def draw_logits(m: int = 5, n: int = 500, seed: int = 9) -> tuple[np.ndarray, np.ndarray]:
    """Logits that favour class 0, with labels; rows that are one-hot, and rows without a leader."""
    rng = np.random.default_rng(seed)
    y = rng.integers(m, size=n)
    z = 1.5 * rng.normal(size=(n, m)) + 2.5 * np.eye(m)[y] + 2 * (np.arange(m) == 0)
    z[::50] = -800 * (np.arange(m) != m - 1)
    z[1::50] = 0
    return z, y


def draw_labels(m: int = 6, n: int = 400, seed: int = 10) -> tuple[np.ndarray, np.ndarray]:
    """Log-odds and labels; a label that nobody has, and entries of which there is no doubt."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, m)) * 2.5 - 2 + rng.normal(size=m)
    labels = rng.random(z.shape) < expit(z + 1)
    labels[:, 3] = False
    z[0, :2] = -900, 900
    return z, labels


def single(model: str, rule: str, input: str, m: int = 5, **names: Any) -> tuple[Adjuster, Any]:
    """Return a fitted model with one class per row, and what it may be given."""
    z, y = draw_logits(m)
    inner, mixture = MODELS[model]
    fitted = clone(inner).fit(softmax(z[:300], axis=1), y[:300])
    fitted.classes_ = names.get("classes", fitted.classes_)
    values = z if input == "logits" else softmax(z, axis=1)
    return assemble(fitted, mixture, decide(rule, m), input), values


def several(model: str, input: str, *, on_input: bool = False) -> tuple[Adjuster, Any]:
    """Return a fitted model with several labels per row, and what it may be given."""
    z, labels = draw_labels()
    inner, mixture = LABEL_MODELS[model]
    weight = np.arange(1.0, 301.0)
    fitted = clone(inner).fit(expit(z[:300]), labels[:300], sample_weight=weight)
    thresholds = np.linspace(0.2, 0.7, z.shape[1])
    worth = np.tile(np.eye(2), (z.shape[1], 1, 1))
    rule = Decision("thresholds", thresholds, worth, on_input=on_input)
    values = z if input == "logits" else expit(z)
    return assemble(fitted, mixture, rule, input), values

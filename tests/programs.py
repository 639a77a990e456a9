"""Fitted models of every form that can be deployed, and rows that are hard for them."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import clone

from altnorm import Adjuster, AlternatingNormalizer
from altnorm.decisions.decision import Decision
from altnorm.families import LabelwiseScaling
from altnorm.peers import (
    BiasCorrectedTemperature,
    Identity,
    LabelThresholds,
    MatrixScaling,
    TemperatureScaling,
)
from tests.oracle import draw_cases


def assemble(model: Any, temperature: float, decision: Decision, input: str) -> Adjuster:
    """Make an Adjuster of these stages, as if the evidence had asked for them."""
    adjuster = Adjuster(multilabel=model.multilabel, input=input)
    adjuster.model_, adjuster.temperature_, adjuster.decision_ = model, temperature, decision
    adjuster.classes_, adjuster.n_features_in_ = model.classes_, model.n_features_in_
    return adjuster


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
    """Return probabilities and codes of decisions, in double precision."""
    proba = adjuster.transform(values.astype(np.float64))
    return proba, adjuster.decision_.codes(proba)


MODELS = {
    "identity": (Identity(), 1.0),
    "temperature": (Identity(), 1.7),
    "slope": (TemperatureScaling(), 1.0),
    "bias": (BiasCorrectedTemperature(1.0), 1.0),
    "matrix": (MatrixScaling(1.0), 1.0),
    "alternating": (AlternatingNormalizer(2.0, 1, 0.5, prior="shrunk"), 1.0),
    "cooled": (AlternatingNormalizer(0.5, 1, 0.25, reference="all", smoothing=0.1), 1.7),
    "deep": (AlternatingNormalizer(0.7, 3, 0.4), 1.0),
    "deep, cooled": (AlternatingNormalizer(2.0, 5, 0.25, reference="all"), 0.6),
}
LABEL_MODELS = {
    "identity": (Identity(multilabel="labelwise"), 1.0),
    "line": (LabelwiseScaling(4.0), 1.0),
    "thresholds": (LabelThresholds(), 1.0),
    "pairs": (AlternatingNormalizer(2.0, 1, 0.5, multilabel="pairs"), 1.7),
    "labelwise": (AlternatingNormalizer(0.7, 1, 0.25, multilabel="labelwise"), 1.0),
    "deep pairs": (AlternatingNormalizer(0.7, 3, 0.25, multilabel="pairs", smoothing=0.1), 1.0),
    "deep labelwise": (AlternatingNormalizer(2.0, 2, 0.5, multilabel="labelwise"), 0.6),
}
RULES = ("argmax", "weights", "costs", "person")
FORMS = [*itertools.product(MODELS, ("argmax",)), *itertools.product(("deep, cooled",), RULES[1:])]


PROGRAMS = [*FORMS, *itertools.product(LABEL_MODELS, ("thresholds",))]


def make(model: str, rule: str, input: str) -> tuple[Adjuster, Any]:
    """Return a fitted model of any of the programs, and what it may be given."""
    return several(model, input) if rule == "thresholds" else single(model, rule, input)


def decide(rule: str, m: int) -> Decision:
    rng = np.random.default_rng(m)
    if rule == "argmax":
        return Decision("weights", np.ones(m))
    if rule == "weights":
        return Decision("weights", rng.uniform(0.2, 3, m))
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
    inner, temperature = MODELS[model]
    fitted = clone(inner).fit(softmax(z[:300], axis=1), y[:300])
    fitted.classes_ = names.get("classes", fitted.classes_)
    values = z if input == "logits" else softmax(z, axis=1)
    return assemble(fitted, temperature, decide(rule, m), input), values


def several(model: str, input: str) -> tuple[Adjuster, Any]:
    """Return a fitted model with several labels per row, and what it may be given."""
    z, labels = draw_labels()
    inner, temperature = LABEL_MODELS[model]
    fitted = clone(inner).fit(expit(z[:300]), labels[:300])
    thresholds = np.linspace(0.2, 0.7, z.shape[1])
    rule = Decision("thresholds", thresholds, np.tile(np.eye(2), (z.shape[1], 1, 1)))
    values = z if input == "logits" else expit(z)
    return assemble(fitted, temperature, rule, input), values

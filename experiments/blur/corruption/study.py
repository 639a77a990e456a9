"""Gains on the rows in doubt, corruption by corruption; numbers only."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import Pipeline, make_pipeline

import altnorm
from experiments.blur.corruption.data import Corpus, corrupt, read_corpus
from experiments.blur.study import THRESHOLD, Grid, best_setting, gain_record

__all__ = [
    "BEST",
    "CLEAN",
    "METHODS",
    "MODELS",
    "NAIVE",
    "RENEWED",
    "SAME",
    "Design",
    "make_model",
    "measure",
    "measure_bias",
    "select",
    "summarise",
]

MODELS = ("logistic regression", "naive Bayes")
NAIVE = "CAN-naive"
BEST = "CAN-best"
SAME = "tuned, validation corrupted like test"
CLEAN = "tuned, validation clean"
RENEWED = "tuned on clean, reference renewed"
METHODS = (NAIVE, BEST, SAME, CLEAN, RENEWED)


class Design(NamedTuple):
    """What is measured."""

    corpora: tuple[str, ...]
    rates: dict[str, tuple[float, ...]]  # for each kind of corruption, without 0
    n_seeds: int
    grid: Grid


class Halves(NamedTuple):
    """Predictions on corrupted validation and test texts."""

    val: np.ndarray
    val_y: np.ndarray
    test: np.ndarray
    test_y: np.ndarray


def make_model(name: str) -> Pipeline:
    """A classifier of TF-IDF weighted words."""
    if name == "naive Bayes":
        return make_pipeline(TfidfVectorizer(), MultinomialNB(alpha=0.1))
    regression = LogisticRegression(C=10, max_iter=300, tol=1e-3)
    return make_pipeline(TfidfVectorizer(sublinear_tf=True), regression)


def measure(folder: Path, corpus: str, model: str, design: Design, seed: int) -> list[dict]:
    """Train one classifier on clean text and measure all corruptions.

    Parameters
    ----------
    folder : Path
        The data sets.
    corpus, model : str
        Which data set and which classifier.
    design : Design
        Corruptions, repetitions and settings to choose from.
    seed : int
        Of the corruptions and the folds.

    Returns
    -------
    list of dict
        One record a corruption, seed and method. Rate 0 has one seed.
    """
    data = read_corpus(folder, corpus)
    fitted = make_model(model).fit(data.train.texts, data.train.y)
    clean = _search(fitted.predict_proba(data.val.texts), data.val.y, design)
    records = []
    for kind, rates in design.rates.items():
        for rate in (0.0, *rates):
            for number in range(design.n_seeds if rate else 1):
                rng = np.random.default_rng([seed, number, round(1000 * rate)])
                halves = _predict(fitted, data, kind, rate, rng)
                key = {"corpus": corpus, "model": model, "kind": kind, "rate": rate}
                key |= {"seed": number, "bias": measure_bias(halves.test)}
                found = measure_methods(halves, clean, design)
                records += [key | record for record in found]
    return records


def _predict(
    fitted: Pipeline, data: Corpus, kind: str, rate: float, rng: np.random.Generator
) -> Halves:
    val, test = (
        fitted.predict_proba(corrupt(part.texts, kind, rate, rng)) for part in (data.val, data.test)
    )
    return Halves(val, data.val.y, test, data.test.y)


def measure_bias(proba: np.ndarray) -> float:
    """Total variation between the mean prediction and the uniform prior, in per cent."""
    return 50 * float(np.abs(proba.mean(axis=0) - 1 / proba.shape[1]).sum())


def _search(proba: np.ndarray, y: np.ndarray, design: Design) -> altnorm.AlternatingNormalizerCV:
    search = altnorm.AlternatingNormalizerCV(**design.grid.search)
    return search.fit(proba, y)


def measure_methods(
    halves: Halves, clean: altnorm.AlternatingNormalizerCV, design: Design
) -> list[dict[str, Any]]:
    """All methods on one corruption; `clean` was tuned on clean validation text."""
    val, val_y, test, test_y = halves
    hard = altnorm.ambiguity(test) > THRESHOLD
    reference = val[altnorm.ambiguity(val) <= THRESHOLD]
    same = _search(val, val_y, design)
    after = {method: test.copy() for method in METHODS}
    if len(reference) and hard.any():  # else there is nothing to adjust, or nothing to adjust by
        after[NAIVE][hard] = altnorm.alternating_normalization(test[hard], reference)
        after[BEST][hard] = best_setting(test[hard], test_y[hard], reference, design.grid)[0]
    after[SAME] = same.transform(test)
    after[CLEAN] = clean.transform(test)
    after[RENEWED] = renew(clean, val).transform(test)
    before = test.argmax(axis=1) == test_y
    adopted = dict.fromkeys(METHODS, clean.verdict_.adopted) | {SAME: same.verdict_.adopted}
    return [
        {"method": method, "n_reference": len(reference)}
        | gain_record(before, proba.argmax(axis=1) == test_y, hard)
        | {"adopted": True if method in (NAIVE, BEST) else adopted[method]}
        for method, proba in after.items()
    ]


def renew(search: altnorm.AlternatingNormalizerCV, proba: np.ndarray) -> Any:
    """The settings that a search adopted, with other predictions, unlabelled, as reference."""
    chosen = search.best_normalizer_
    if not isinstance(chosen, altnorm.AlternatingNormalizer):
        return chosen  # identity
    params = chosen.get_params() | {"prior": chosen.prior_}
    if not (altnorm.ambiguity(proba) <= chosen.threshold).any():
        params["reference"] = "all"
    return altnorm.AlternatingNormalizer(**params).fit(proba)


def select(records: list[dict[str, Any]], **values: Any) -> list[dict[str, Any]]:
    """Records that have the given values."""
    return [r for r in records if all(r[name] == value for name, value in values.items())]


def summarise(records: list[dict[str, Any]]) -> dict[str, float]:
    """Means over some records, and a standard error over texts.

    Seeds corrupt the same texts anew, so they are not counted as further evidence.
    """
    names = ("n_hard", "n_test", "base", "base_hard", "gain", "gain_hard", "adopted", "bias")
    mean = {name: float(np.mean([r[name] for r in records])) for name in names}
    for name in ("se", "se_hard"):
        mean[name] = float(np.sqrt(np.mean([r[name] ** 2 for r in records])))
    return mean | {"share": 100 * mean["n_hard"] / mean["n_test"]}

"""Fit every method with few and with many labels, and measure it on the test rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import norm, t
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from experiments.language.methods import NEEDS_LABELS, NO_LABELS, OURS, fit_method
from experiments.suite.files import Classifier, read_classifier, suite_paths

__all__ = [
    "BUDGETS",
    "SETS",
    "Prompt",
    "Scores",
    "language_paths",
    "measure",
    "measure_without_labels",
    "single_label_paths",
    "two_way_interval",
]

UNTOUCHED = "untouched"
BUDGETS = (50, 100, 200, 500)


class Prompt(NamedTuple):
    """What the model was asked, as the source of the predictions says."""

    model: str
    task: str


SETS = {
    "banking77_qwen3-1.7b_zero_shot": Prompt("Qwen3-1.7B", "intent of a question to a bank"),
    "llm_emotion4_qwen-1.8b_0shot": Prompt("Qwen-1.8B", "emotion of a tweet"),
    "llm_mmlu16_llama13b": Prompt("LLaMA-13B", "exam questions, 16 subjects (MMLU)"),
    "vlm_mmbench_mobilevlm-1.7b": Prompt("MobileVLM-1.7B", "questions about pictures (MMBench)"),
}


class Scores(NamedTuple):
    """What a method did to each test row, one line per draw of the labelled rows."""

    right: np.ndarray
    """(n_draws, n_rows): whether the decision is right."""
    loss: np.ndarray
    """(n_draws, n_rows): minus the logarithm of the right answer's probability."""


def language_paths(folder: Path, *, quick: bool = False) -> list[Path]:
    """The files of the study that a folder holds."""
    paths = [folder / f"{name}.npz" for name in SETS if (folder / f"{name}.npz").exists()]
    if not paths:
        raise SystemExit(f"None of the study's files is in {folder}: {', '.join(SETS)} (.npz).")
    return paths[-1:] if quick else paths


def measure(
    path: Path, n_draws: int, seed: int, budgets: Sequence[int] = BUDGETS
) -> list[dict[str, Any]]:
    """All comparisons on one set of predictions: no labels, some of them, all of them."""
    classifier = read_classifier(path)
    n = len(classifier.val_y)
    everything = np.ones((1, n), dtype=bool)
    fixed = {UNTOUCHED: score_rows([classifier.test_proba], classifier.test_y)}
    with threadpool_limits(1):
        fixed |= {name: _fit_all(classifier, name, everything) for name in NO_LABELS}
        records = [*_compare(classifier, 0, fixed, NO_LABELS)]
        for budget in (*(b for b in budgets if b < n), n):
            known = everything if budget == n else draw_labelled(n, budget, n_draws, seed)
            found = {name: _fit_all(classifier, name, known) for name in NEEDS_LABELS}
            records += _compare(classifier, budget, fixed | found, NEEDS_LABELS)
    return records


def measure_without_labels(path: Path) -> list[dict[str, Any]]:
    """What methods that see no label do to a classifier of any kind."""
    classifier = read_classifier(path)
    everything = np.ones((1, len(classifier.val_y)), dtype=bool)
    untouched = score_rows([classifier.test_proba], classifier.test_y)
    with threadpool_limits(1):
        found = {name: _fit_all(classifier, name, everything) for name in NO_LABELS}
    return [
        {
            "classifier": classifier.name,
            "language_model": classifier.name in SETS,
            "method": name,
            **_difference(scores, untouched),
        }
        for name, scores in found.items()
    ]


def single_label_paths(folder: Path, *, quick: bool = False) -> list[Path]:
    """All classifiers of the suite with one label per row."""
    paths = suite_paths(folder)
    several = ("chestxray14", "coco", "dialogre", "ptbxl")
    return [path for path in paths if not path.stem.startswith(several)][: 3 if quick else None]


def draw_labelled(n: int, budget: int, n_draws: int, seed: int) -> np.ndarray:
    """Which rows have a label, in each draw: (n_draws, n) of bool."""
    rng = np.random.default_rng([seed, budget])
    known = np.zeros((n_draws, n), dtype=bool)
    for row in known:
        row[rng.choice(n, budget, replace=False)] = True
    return known


def _fit_all(classifier: Classifier, name: str, known: np.ndarray) -> Scores:
    """Test scores of a method, fitted once for each draw."""
    fits = (fit_method(name, classifier.val_proba, classifier.val_y, row) for row in known)
    return score_rows((fit.transform(classifier.test_proba) for fit in fits), classifier.test_y)


def score_rows(adjusted: Any, y: np.ndarray) -> Scores:
    """Decisions and losses of each draw's test predictions."""
    right, loss = [], []
    for proba in adjusted:
        right.append(proba.argmax(axis=1) == y)
        own = proba[np.arange(y.size), y]
        # As in the suite: a probability of 0 costs as much as the smallest difference to 1.
        loss.append(-np.log(np.maximum(own, np.finfo(np.float64).eps)))
    return Scores(np.array(right, dtype=float), np.array(loss))


def _compare(
    classifier: Classifier, n_labels: int, scores: dict[str, Scores], methods: Sequence[str] | Any
) -> Iterator[dict[str, Any]]:
    """Each method against the untouched predictions, and ours against the others."""
    for name in methods:
        others = [other for other in scores if other not in OURS] if name in OURS else [UNTOUCHED]
        for other in others:
            yield {
                "classifier": classifier.name,
                "classes": classifier.test_proba.shape[1],
                "test": len(classifier.test_y),
                "labels": n_labels,
                "all_labels": n_labels == len(classifier.val_y),
                "draws": len(scores[name].right),
                "method": name,
                "against": other,
                **_difference(scores[name], scores[other]),
            }


def _difference(new: Scores, old: Scores) -> dict[str, float]:
    """What `new` gains over `old`: accuracy in points, log loss as it is."""
    gains, losses = 100 * (new.right - old.right), new.loss - old.loss
    gain, low, high = two_way_interval(gains)
    change, change_low, change_high = two_way_interval(losses)
    return {
        "accuracy": 100 * float(new.right.mean()),
        "gain": gain,
        "ci_low": low,
        "ci_high": high,
        "worst": float(gains.mean(axis=1).min()),
        "unchanged": 100 * float(np.mean(~gains.any(axis=1))),
        "log_loss": float(new.loss.mean()),
        "change": change,
        "change_low": change_low,
        "change_high": change_high,
    }


def two_way_interval(values: np.ndarray) -> tuple[float, float, float]:
    r"""Mean over draws and rows with its 95 % interval, both of them drawn at random.

    With :math:`v_{di} = \mu + a_d + b_i + e_{di}` the mean has the variance
    :math:`\sigma_a^2 / D + \sigma_b^2 / n + \sigma_e^2 / (D n)`. The variance of the draws' means
    and that of the rows' means, each divided by their number, hold the last term twice: a little
    too much. The draws are few, so their part is widened as Student's distribution says.

    Parameters
    ----------
    values : ndarray of shape (n_draws, n_rows)
        One value for each draw of the labels and each test row. With one draw the interval
        is about the rows only.

    Returns
    -------
    tuple of float
        Mean, lower and upper end.
    """
    n_draws, n_rows = values.shape
    half = norm.ppf(0.975) * values.mean(axis=0).std(ddof=1) / np.sqrt(n_rows)
    if n_draws > 1:
        of_draws = values.mean(axis=1).std(ddof=1) / np.sqrt(n_draws)
        half = np.hypot(half, t.ppf(0.975, n_draws - 1) * of_draws)
    mean = float(values.mean())
    return mean, mean - float(half), mean + float(half)

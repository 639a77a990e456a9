"""Numbers of the suite of real classifiers, as README and docs show them.

They come from ``experiments/suite/results/suite.csv`` and from nowhere else; `docs/outputs.py`
writes them into the pages. Without that file pages stay as they are.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

from experiments.suite.names import plain_name

__all__ = ["NUMBERS", "SUITE"]

SUITE = Path(__file__).resolve().parent.parent / "experiments" / "suite" / "results" / "suite.csv"
UNTOUCHED, OURS, PAPER = "untouched", "Adjuster", "CAN as published"
BCTS, MATRIX = "BCTS, always", "matrix, always"
COMPARED = (PAPER, BCTS, MATRIX, OURS)

SHOWN = (
    "banking77_qwen3-1.7b_zero_shot",
    "llm_emotion4_qwen-1.8b_0shot",
    "text_banking77_5shot_minilm_lr",
    "imagenet5k_lite0_blur04",
    "langid67_single-words",
    "pathmnist_resnet50",
    "snphotcc3_wavelets-nb",
    "cifar100_netcal_wrn16-4",
    "wnut17_ner_tokens_lr",
    "iemocap4_wav2vec2-fusion",
)
"""Classifiers of the short table: some that gain much, and some where nothing is found."""


class Found(NamedTuple):
    """What a method came to on a classifier's test rows; gains in points of accuracy."""

    accuracy: float
    gain: float
    ci_low: float
    ci_high: float
    log_loss: float
    calibration_error: float


@cache
def read_suite(path: Path = SUITE) -> dict[tuple[str, str], Found]:
    """The single-label classifiers, by classifier and method."""
    with path.open(encoding="utf-8", newline="") as file:
        return {
            (row["classifier"], row["method"]): Found(*(float(row[name]) for name in Found._fields))
            for row in csv.DictReader(file)
        }


def of_method(method: str) -> list[Found]:
    """All classifiers under a method."""
    return [found for (_, name), found in read_suite().items() if name == method]


def mean(method: str, field: str) -> float:
    """Mean of a number over the classifiers."""
    values = [getattr(found, field) for found in of_method(method)]
    return sum(values) / len(values)


def clearly(method: str) -> tuple[int, int]:
    """Classifiers on which a method is clearly better, and clearly worse."""
    found = of_method(method)
    return sum(one.ci_low > 0 for one in found), sum(one.ci_high < 0 for one in found)


def points(gain: float) -> str:
    """A gain in points; 0 if no decision changed."""
    text = f"{gain:+.1f}"
    return text if float(text) else "0"


def times(n: int) -> str:
    """A number of classifiers, in words."""
    return "none" if n == 0 else str(n)


def claim() -> str:
    """What the suite comes to, in a sentence."""
    ours = of_method(OURS)
    better, worse = clearly(OURS)
    gains = [one.gain for one in ours]
    return (
        f"On {len(ours)} real classifiers it raised test accuracy by "
        f"{mean(OURS, 'gain'):.1f} points on average and by up to {max(gains):.1f}: clearly better "
        f"on {better} of them, clearly worse on {times(worse)}."
    )


def probabilities() -> str:
    """What happens to probabilities, in a sentence."""
    before, after, tempered = (
        [mean(method, field) for field in ("log_loss", "calibration_error")]
        for method in (UNTOUCHED, OURS, "temperature")
    )
    return (
        f"Over the {len(of_method(OURS))} classifiers mean log loss falls from {before[0]:.2f} to "
        f"{after[0]:.2f}, and the mean gap between confidence and accuracy from {before[1]:.1f} to "
        f"{after[1]:.1f} points. A temperature alone reaches {tempered[0]:.2f} and "
        f"{tempered[1]:.1f}."
    )


def short_table() -> str:
    """Some classifiers, and the mean of all."""
    head = (
        "| (number of classes) | accuracy | the paper's method | BCTS | matrix | altnorm | "
        f"log loss with altnorm |\n|{'---|---:' + 4 * '|---:'}|---:|"
    )
    rows = [_short_row(classifier) for classifier in SHOWN]
    before, after = (mean(method, "log_loss") for method in (UNTOUCHED, OURS))
    n = len(of_method(OURS))
    gains = " | ".join(
        points(mean(method, "gain")) + ("" if len(of_method(method)) == n else " \\*")
        for method in COMPARED
    )
    rows.append(
        f"| mean of {n} classifiers | {mean(UNTOUCHED, 'accuracy'):.1f} % | {gains} | "
        f"{before:.2f} → {after:.2f} |"
    )
    counts = " | ".join("{} / {}".format(*clearly(method)) for method in COMPARED)
    rows.append(f"| clearly better / clearly worse | | {counts} | |")
    return "\n".join([head, *rows, "", _left_out(n)]).rstrip()


def _left_out(n: int) -> str:
    """Say where a method could not be tried."""
    tried = len(of_method(MATRIX))
    few = "\\* Of the {} classifiers with enough labels, and few enough classes, to fit a matrix."
    return "" if tried == n else few.format(tried)


def _short_row(classifier: str) -> str:
    suite = read_suite()
    before = suite[classifier, UNTOUCHED]
    gains = [
        suite[classifier, method].gain if (classifier, method) in suite else None
        for method in COMPARED
    ]
    best = points(max(0.0, *(gain for gain in gains if gain is not None)))
    texts = ["not tried" if gain is None else points(gain) for gain in gains]
    cells = [f"**{text}**" if text == best != "0" else text for text in texts]
    losses = f"{before.log_loss:.2f} → {suite[classifier, OURS].log_loss:.2f}"
    row = [plain_name(classifier), f"{before.accuracy:.1f} %", *cells, losses]
    return f"| {' | '.join(row)} |"


def story() -> str:
    """The suite as a list: ours, the paper's method, and what is always applied."""
    lines = []
    names = {
        OURS: "`Adjuster()`",
        PAPER: "The paper's method, tuned as published",
        BCTS: "A temperature and a bias per class, always applied (BCTS)",
        MATRIX: "A matrix, always applied (`peers.MatrixScaling`), where it can be fitted",
        "AlternatingNormalizerCV": "The paper's method, adopted on evidence "
        "(`AlternatingNormalizerCV()`)",
    }
    for method, name in names.items():
        better, worse = clearly(method)
        worst = min(one.gain for one in of_method(method))
        lines.append(
            f"- **{name}**: {mean(method, 'gain'):+.2f} points of accuracy on average, clearly "
            f"better on {better}, clearly worse on {times(worse)}; the worst gain is {worst:+.2f}."
        )
    return "\n".join(lines)


NUMBERS: dict[str, Callable[[], str]] = {
    "suite-claim": claim,
    "suite-probabilities": probabilities,
    "suite-table": short_table,
    "suite-story": story,
}
"""What may stand between markers, by name."""

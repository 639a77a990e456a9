"""Numbers of the suite of real classifiers, as README and docs show them.

They come from ``experiments/suite/results`` and from nowhere else; `docs/outputs.py` writes them
into the pages. Without these files pages stay as they are.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from statistics import fmean, median
from typing import NamedTuple

from experiments._output import markdown_table
from experiments.suite.names import SEPARATE_TEST, TRAINED_HERE, plain_name, source_of
from experiments.suite.tables import source_interval

__all__ = ["NUMBERS", "SUITE"]

RESULTS = Path(__file__).resolve().parent.parent / "experiments" / "suite" / "results"
SUITE = RESULTS / "suite.csv"
UNTOUCHED, OURS, PAPER = "untouched", "Adjuster", "CAN as published"
BCTS, MATRIX, TEMPERATURE = "BCTS, always", "matrix, always", "temperature"
BALANCED = "Adjuster, balanced accuracy"
COMPARED = (PAPER, BCTS, MATRIX, OURS)
RISES = 1.001  # a log loss this many times as large is not the same any more

METHODS = {
    OURS: "**altnorm**: `Adjuster()`",
    "AlternatingNormalizerCV": "alternating normalization, tested",
    PAPER: "alternating normalization as published, untested",
    BCTS: "bias, untested (BCTS)",
    MATRIX: "matrix, untested",
    "probmetrics: logistic (SMS)": "structured matrix scaling (probmetrics), untested",
    "scikit-learn: isotonic": "isotonic regression (scikit-learn), untested",
}
"""Methods of the summary."""

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

    adopted: bool
    accuracy: float
    balanced_accuracy: float
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
            (row["classifier"], row["method"]): Found(
                row["adopted"] == "True", *(float(row[name]) for name in Found._fields[1:])
            )
            for row in csv.DictReader(file)
        }


def of_method(method: str) -> dict[str, Found]:
    """All classifiers on which a method was tried."""
    return {name: found for (name, used), found in read_suite().items() if used == method}


def gains(method: str, field: str = "accuracy") -> dict[str, float]:
    """What a method adds to a number of the untouched predictions, by classifier."""
    before = of_method(UNTOUCHED)
    return {
        name: getattr(found, field) - getattr(before[name], field)
        for name, found in of_method(method).items()
    }


def mean(method: str, field: str) -> float:
    """Mean of a number over the classifiers."""
    return fmean(getattr(found, field) for found in of_method(method).values())


def clearly(method: str) -> tuple[int, int]:
    """Classifiers on which a method is clearly better, and clearly worse."""
    found = of_method(method).values()
    return sum(one.ci_low > 0 for one in found), sum(one.ci_high < 0 for one in found)


def rises(method: str) -> int:
    """Classifiers on which a method's log loss is higher than that of the untouched predictions."""
    before = of_method(UNTOUCHED)
    some = of_method(method).items()
    return sum(found.log_loss > RISES * before[name].log_loss for name, found in some)


def points(gain: float) -> str:
    """A gain in points; 0 if it rounds to that."""
    text = f"{gain:+.1f}"
    return text if float(text) else "0"


def within(values: dict[str, float]) -> str:
    """Ends of the mean's 95 % interval: sources of data are drawn anew, with all of theirs."""
    low, high = source_interval(values)
    return f"{points(low)} to {points(high)}"


def times(n: int) -> str:
    """A number of classifiers, in words."""
    return "none" if n == 0 else str(n)


def joined(names: Iterable[str]) -> str:
    """Names in a sentence."""
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


def briefly(classifier: str) -> str:
    """A classifier's plain name without its number of classes."""
    return plain_name(classifier).rpartition(" (")[0]


def claim() -> str:
    """What the suite comes to, in a sentence."""
    found = gains(OURS)
    better, worse = clearly(OURS)
    unchanged = sum(not one.adopted for one in of_method(OURS).values())
    return (
        f"On {len(found)} real classifiers it raised test accuracy by "
        f"{fmean(found.values()):.1f} points on average, {median(found.values()):.1f} in the "
        f"median and {max(found.values()):.1f} at most. It changed no decision on {unchanged}, was "
        f"clearly better on {better} and clearly worse on {times(worse)}."
    )


def summary() -> str:
    """One line for each method."""
    header = ["points of test accuracy", "mean (95 % interval)", "median", "worst"]
    header += ["clearly better / worse", "changed nothing on", "log loss rises on"]
    lines = [_summary_line(method, METHODS[method]) for method in METHODS if of_method(method)]
    note = _left_out(len(of_method(OURS)))
    return "\n".join([markdown_table(header, lines), "", note]).rstrip()


def _summary_line(method: str, name: str) -> list[str]:
    found = gains(method)
    few = "" if len(found) == len(of_method(OURS)) else " \\*"
    return [
        name + few,
        f"{points(fmean(found.values()))} ({within(found)})",
        points(median(found.values())),
        points(min(found.values())),
        "{} / {}".format(*clearly(method)),
        str(sum(not one.adopted for one in of_method(method).values())),
        str(rises(method)),
    ]


def _left_out(n: int) -> str:
    """Say where a method could not be tried."""
    tried = len(of_method(MATRIX))
    few = "\\* On the {} of {} classifiers with enough labels and few enough classes for a matrix."
    return "" if tried == n else few.format(tried, n)


def caveats() -> str:
    """What makes the numbers look better than they may be elsewhere, as a list."""
    found = gains(OURS)
    halved = len(found) - len(SEPARATE_TEST & found.keys())
    ours = sorted(TRAINED_HERE & found.keys(), key=plain_name)
    others = {name: gain for name, gain in found.items() if name not in TRAINED_HERE}
    sources = len({source_of(name) for name in found})
    return "\n".join(
        [
            f"- The {len(found)} classifiers come from {sources} sources of data; intervals are "
            "bootstrapped over sources.",
            f"- For {halved} of them one set was halved into validation and test rows. Your new "
            "rows may differ more from your validation rows than that.",
            f"- {len(ours)} are simple models that were trained for this collection "
            f"({'; '.join(map(briefly, ours))}). Without them the mean gain is "
            f"{points(fmean(others.values()))} ({within(others)}).",
        ]
    )


def probabilities() -> str:
    """What happens to probabilities, and to which of them it is bad."""
    before, after, tempered = (
        [mean(method, field) for field in ("log_loss", "calibration_error")]
        for method in (UNTOUCHED, OURS, TEMPERATURE)
    )
    return (
        f"Over the {len(of_method(OURS))} classifiers mean log loss falls from {before[0]:.2f} to "
        f"{after[0]:.2f}, and the mean gap between confidence and accuracy from {before[1]:.1f} to "
        f"{after[1]:.1f} points. A temperature alone reaches {tempered[0]:.2f} and "
        f"{tempered[1]:.1f}. {_largest_share()} {_worse_probabilities()}"
    )


def _largest_share() -> str:
    """How much of the fall in log loss is one file's."""
    falls = {name: -rise for name, rise in gains(OURS, "log_loss").items()}
    most = max(falls, key=lambda name: falls[name])
    known = "; only its five largest probabilities per row are known"
    truncated = known if most == "banking77_qwen3-1.7b_zero_shot" else ""
    share = 100 * falls[most] / sum(falls.values())
    return f'One file ("{briefly(most)}"{truncated}) accounts for {share:.0f} % of the fall.'


def _worse_probabilities() -> str:
    """Where log loss or the gap between confidence and accuracy grew."""
    ours, before = of_method(OURS), of_method(UNTOUCHED)
    wider = {name: rise for name, rise in gains(OURS, "calibration_error").items() if rise > 0.05}
    text = f"Log loss rises on {times(rises(OURS))} of them"
    if not wider:
        return f"{text}, and the gap on none."
    most = max(wider, key=lambda name: wider[name])
    gap = f"{before[most].calibration_error:.1f} to {ours[most].calibration_error:.1f}"
    return f'{text}; the gap widens on {len(wider)}, most on "{briefly(most)}": {gap} points.'


def short_table() -> str:
    """Some classifiers."""
    header = ["(number of classes)", "accuracy", "the paper's method", "BCTS", "matrix", "altnorm"]
    return markdown_table([*header, "log loss with altnorm"], [*map(_short_row, SHOWN)])


def _short_row(classifier: str) -> list[str]:
    suite = read_suite()
    before = suite[classifier, UNTOUCHED]
    found = [
        suite[classifier, method].gain if (classifier, method) in suite else None
        for method in COMPARED
    ]
    best = points(max(0.0, *(gain for gain in found if gain is not None)))
    texts = ["not tried" if gain is None else points(gain) for gain in found]
    cells = [f"**{text}**" if text == best != "0" else text for text in texts]
    losses = f"{before.log_loss:.2f} → {suite[classifier, OURS].log_loss:.2f}"
    return [plain_name(classifier), f"{before.accuracy:.1f} %", *cells, losses]


def balanced() -> str:
    """Another purpose: what it gains, and what it costs in accuracy."""
    found, paid = gains(BALANCED, "balanced_accuracy"), gains(BALANCED)
    plain = gains(OURS, "balanced_accuracy")
    lower = sum(gain < -0.05 for gain in paid.values())
    return (
        f'- `scoring="balanced_accuracy"` raises balanced accuracy on the {len(found)} classifiers '
        f"by {fmean(found.values()):.1f} points on average ({within(found)}; median "
        f"{points(median(found.values()))}, worst {points(min(found.values()))}), the default by "
        f"{fmean(plain.values()):.1f}. Accuracy falls on {lower} of them, by up to "
        f"{-min(paid.values()):.0f} points."
    )


def several_labels() -> str:
    """Several labels per row, before and after."""
    with (RESULTS / "labels.csv").open(encoding="utf-8", newline="") as file:
        rows = {(row["classifier"], row["method"]): row for row in csv.DictReader(file)}
    names = list(dict.fromkeys(name for name, _ in rows))
    texts = [
        f"{float(rows[name, UNTOUCHED]['f1_micro']):.1f} → "
        f"{float(rows[name, OURS]['f1_micro']):.1f} on {briefly(name)}"
        for name in names
    ]
    return f'- `multilabel="labelwise"`, micro-F1 in percent: {joined(texts)}.'


def few_labels() -> str:
    """How often it finds something with few labels."""
    with (RESULTS / "few.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["method"] == OURS]
    texts = []
    for n in sorted({int(row["labels"]) for row in rows}):
        some = [row for row in rows if int(row["labels"]) == n]
        changed = sum(row["adopted"] == "True" for row in some)
        texts.append(f"with {n:,} in {changed} of {len(some)} fits")
    worse = sum(float(row["ci_high"]) < 0 for row in rows)
    return (
        "Labels drawn at random from the validation rows of the classifiers below, three times "
        "each: "
        f"decisions changed {joined(texts)}, and were clearly worse in {times(worse)}."
    )


NUMBERS: dict[str, Callable[[], str]] = {
    "suite-balanced": balanced,
    "suite-caveats": caveats,
    "suite-claim": claim,
    "suite-few": few_labels,
    "suite-labels": several_labels,
    "suite-probabilities": probabilities,
    "suite-summary": summary,
    "suite-table": short_table,
}
"""What may stand between markers, by name."""

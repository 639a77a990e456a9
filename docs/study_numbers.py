"""Numbers of the other studies, as README and docs show them; see `docs/suite_numbers.py`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from statistics import fmean, median
from typing import Any, NamedTuple

from experiments._output import markdown_table, read_records
from experiments.benchmark.measure import ALL
from experiments.benchmark.scikit_learn.overlap import corrected_error, plain_error
from experiments.benchmark.summary import (
    Records,
    accuracy_interval,
    gains_of,
    loss_interval,
    methods_of,
)
from experiments.benchmark.tables import LOSS
from experiments.language.methods import DIVIDED
from experiments.reference_choice.calibrated import REFERENCES, SPREADS

__all__ = ["NUMBERS"]

EXPERIMENTS = Path(__file__).resolve().parent.parent / "experiments"
DEAR = "missing two classes costs 10"


def costs() -> str:
    """What decisions cost on simulated predictions, beside the least possible."""
    rows = read_records(EXPERIMENTS / "evidence" / "results" / "costs.csv")
    some = [row for row in rows if row["costs"] == DEAR]
    least = fmean(row["least"] for row in some)
    relative = {
        who: f"{fmean(row[who] for row in some) / least:.2f}"
        for who in ("argmax", "by_costs", "adjuster")
    }
    return (
        "- `costs=...`, on simulated predictions of biased classifiers, where missing two of ten "
        f"classes costs 10 and any other mistake 1: {relative['adjuster']} times the least "
        f"possible cost, against {relative['by_costs']} with the same costs on the predictions as "
        f"they came and {relative['argmax']} with the most probable class."
    )


def no_labels() -> str:
    """What dividing by the mean prediction brings without any label."""
    rows = read_records(EXPERIMENTS / "language" / "results" / "no_labels.csv")
    asked, others = (
        [row["gain"] for row in rows if (row["language_model"], row["method"]) == (kind, DIVIDED)]
        for kind in (True, False)
    )
    return (
        f"On the {len(asked)} sets of language models' answers that we have it brings "
        f"{fmean(asked):+.1f} points of accuracy on average and {median(asked):+.1f} in the "
        f"median, from {min(asked):+.1f} to {max(asked):+.1f}. On {len(others)} classifiers of "
        f"other kinds the same recipe brings {fmean(others):+.1f} on average and "
        f"{median(others):+.1f} in the median, down to {min(others):+.1f}: it makes classes "
        "equally frequent that are not."
    )


def confident_reference() -> str:
    """What sure rows as reference cost a calibrated classifier, and what all rows do."""
    rows = read_records(EXPERIMENTS / "reference_choice" / "results" / "calibrated.csv")
    found: dict[str, list[float]] = {}
    for row in rows:
        if (row["classes"], row["spread"]) == (10, max(SPREADS)):
            found.setdefault(row["reference"], []).append(row["gain"])
    means = [fmean(found[name]) for name in REFERENCES]
    lost = [f"{-mean:.1f}" for mean in means[:-1]]
    return (
        "In {doc}`a simulation of a calibrated classifier <studies/reference_choice>`, ten "
        "classes of which some are much harder than others, sure rows as reference cost "
        f"{', '.join(lost[:-1])} and {lost[-1]} points of accuracy at the three thresholds; all "
        f"rows change it by {abs(means[-1]):.2f}."
    )


def wrong_word() -> str:
    """What adapting to another class balance costs where only inputs have changed."""
    rows = read_records(EXPERIMENTS / "label_shift" / "results" / "simulated.csv")
    found: dict[str, list[float]] = {}
    for row in rows:
        if row["change"].startswith("inputs move"):
            found.setdefault(row["change"], []).append(row["none"] - row["word"])
    costs = sorted(map(fmean, found.values()))
    return (
        "A rule that guesses is wrong in one of the two cases: where only inputs had changed, "
        f"adapting cost {costs[0]:.0f} to {costs[-1]:.0f} points of accuracy in "
        "{doc}`simulations <studies/label_shift>`, the more the further the inputs had moved."
    )


def labels_decide() -> str:
    """How often labels of the rows that differ say wrongly whether to adapt."""
    rows = read_records(EXPERIMENTS / "label_shift" / "results" / "asked.csv")
    wrong = sum(not row["is_right"] for row in rows)
    return (
        "In simulated worlds where adapting is right, or harms, or hardly matters, "
        f"{wrong or 'none'} of {len(rows):,} answers were wrong; the more is at stake, the fewer "
        "labels they took ({doc}`the study <studies/label_shift>`)."
    )


def promise() -> str:
    """How often a target accuracy is missed among the rows that are decided."""
    folder = EXPERIMENTS / "evidence" / "promise" / "results"
    rows = read_records(folder / "promise.csv")
    worlds: dict[tuple[str, float, int], list[float]] = {}
    for row in rows:
        key = (row["world"], row["target"], row["n_rows"])
        worlds.setdefault(key, []).append(row["adjusted_broken"])
    broken = sum(sum(sets) for sets in worlds.values())
    return (
        f"In {{doc}}`the study <studies/promise>` the promise was broken in {broken:.0f} of "
        f"{len(rows):,} simulated data sets whose truth is known, and in no world in more than "
        f"{100 * max(map(fmean, worlds.values())):.1f} % of them."
    )


def asking() -> str:
    """How many labels it takes until the answer, and how often that is wrong."""
    rows = read_records(EXPERIMENTS / "asking" / "results" / "asking.csv")
    wrong, covered = (fmean(row[name] for row in rows) for name in ("wrong", "covered"))
    worst = max(row["wrong"] for row in rows)
    ratios = [row["random_median"] / row["median"] for row in rows]
    one_kind = [
        max(row["fixed"], row["broken"]) / max(1, row["fixed"] + row["broken"]) for row in rows
    ]
    nearly_all, most = (
        [row["median"] for row, share in zip(rows, one_kind, strict=True) if share >= least]
        for least in (0.8, 0.6)
    )
    return (
        f"On real classifiers, {len(rows)} pairs of a classifier and an adjustment, "
        f"{{doc}}`the study <studies/asking>` asked {rows[0]['runs']} times for each. It stopped "
        f"at a wrong answer in {wrong:.1f} % of the runs (at most {worst:.1f} % for one pair), and "
        f"the interval held the true gain at all looks together in {covered:.1f} %. Labelling rows "
        f"at random takes {median(ratios):.1f} times as many labels (median; {min(ratios):.1f} to "
        f"{max(ratios):.0f} times). How many it takes depends on how clear the case is: "
        f"{min(nearly_all):.0f} to {max(nearly_all):.0f} labels where at least four of five "
        "decisions that are fixed or broken are of one kind "
        f"({len(nearly_all)} pairs), {median(most):.0f} in the median where three of five are "
        f"({len(most)}), and nearly all changed rows where it is a draw."
    )


BENCHMARK = {
    "altnorm: Adjuster": "**altnorm**: `Adjuster()`",
    "altnorm: curves": "its bent lines, always applied",
    "scikit-learn: LogisticRegressionCV": "logistic regression on log p (scikit-learn)",
    "probmetrics: logistic (SMS)": "structured matrix scaling (probmetrics)",
    "ml-insights: splines": "splines (ml-insights)",
    "abstention: BCTS": "temperature and biases (abstention)",
    "scikit-learn: isotonic": "isotonic regression (scikit-learn)",
    "scikit-learn: temperature": "temperature (scikit-learn)",
    "altnorm: CAN, as published": "alternating normalization as published",
}
"""Methods of the short table of the benchmark."""


def read_benchmark() -> Records:
    """Its records with all validation labels."""
    rows = read_records(EXPERIMENTS / "benchmark" / "results" / "results.csv")
    return [row for row in rows if row["labels"] == ALL]


def benchmark() -> str:
    """Our estimator and the best known ways of others."""
    rows = read_benchmark()
    lines = []
    for method in (name for name in BENCHMARK if name in methods_of(rows)):
        gains = gains_of(rows, method)
        accuracy, loss = accuracy_interval(gains), loss_interval(gains)
        cells = ["{:+.1f} ({:+.1f} to {:+.1f})".format(*accuracy)]
        cells += [f"{(gains.accuracy <= -LOSS).sum()}", f"{gains.accuracy.min():+.1f}"]
        cells += ["{:+.0f} % ({:+.0f} to {:+.0f})".format(*loss)]
        lines.append([BENCHMARK[method], *cells, f"{gains.calibration_error.mean():.1f}"])
    header = ["", "accuracy, points (95 %)", f"lose {LOSS:.1f} or more", "worst"]
    return markdown_table([*header, "log loss (95 %)", "calibration error"], lines)


CALIBRATED = ("sigmoid", "isotonic", "temperature")
PROBABILITIES = ("as it came", "altnorm", *CALIBRATED)
CUT_OFFS = ("as it came", "threshold", "altnorm, balanced")


def scikit_learn() -> str:
    """Log loss and accuracy of scikit-learn's classifiers, beside its own calibrators."""
    lines = []
    for (data, classifier), by_tool in _classifiers().items():
        losses = [by_tool[tool].mean("log_loss") for tool in PROBABILITIES]
        cells = [f"**{x:.3f}**" if x == min(losses) else f"{x:.3f}" for x in losses]
        right = [f"{100 * by_tool[tool].mean('accuracy'):.1f} %" for tool in PROBABILITIES[:2]]
        lines.append([f"{data}, {classifier}", *cells, *right])
    header = ["", *(f"log loss, {tool}" for tool in PROBABILITIES)]
    return markdown_table([*header, "right, as it came", "right, altnorm"], lines)


def scikit_learn_claim() -> str:
    """What the table comes to."""
    classifiers = _classifiers()
    refused = sum(tools["altnorm"].n_refused for tools in classifiers.values())
    best = {
        tool: sum(_lowest(tools, PROBABILITIES) == tool for tools in classifiers.values())
        for tool in PROBABILITIES
    }
    counts = ", ".join(f"{tool} {best[tool]}" for tool in sorted(best, key=lambda t: -best[t]))
    before = {pair: tools["as it came"] for pair, tools in classifiers.items()}
    calibrated = {pair: tools[_lowest(tools, CALIBRATED)] for pair, tools in classifiers.items()}
    return (
        f"Which has the lowest log loss, on {len(classifiers)} pairs of data and classifier: "
        f"{counts}. The input was taken for wrong in {refused or 'none'} of the fits.\n\n"
        f"- After altnorm, beside before: {_compared(classifiers, before)}\n"
        "- Beside the best of the three methods of `CalibratedClassifierCV` on each pair: "
        f"{_compared(classifiers, calibrated)}"
    )


def scikit_learn_trees() -> str:
    """A tree that is sure of everything, beside the best of scikit-learn's calibrators."""
    lines = []
    for (data, classifier), tools in _classifiers().items():
        if classifier != "decision tree":
            continue
        ours, best = tools["altnorm"], _lowest(tools, CALIBRATED)
        rises = ours.rises(tools[best])
        cells = [f"{ours.mean('log_loss'):.4f}", f"{best}, {tools[best].mean('log_loss'):.4f}"]
        cells += [f"{x:.4f}" for x in (plain_error(rises), corrected_error(rises))]
        clearly = "no" if not _is_clear(rises) else "higher" if fmean(rises) > 0 else "lower"
        lines.append([data, *cells[:2], f"{fmean(rises):+.4f}", *cells[2:], clearly])
    header = ["decision tree on", "log loss, altnorm", "best of scikit-learn's three", "difference"]
    return markdown_table([*header, "standard error, plain", "corrected", "clearly"], lines)


def scikit_learn_cut_off() -> str:
    """Balanced accuracy with two classes: a tuned threshold, and ours."""
    lines = [
        [f"{data}, {classifier}"]
        + [f"{100 * tools[tool].mean('balanced_accuracy'):.1f}" for tool in CUT_OFFS]
        for (data, classifier), tools in _classifiers().items()
        if "threshold" in tools
    ]
    return markdown_table(["balanced accuracy, %", *CUT_OFFS], lines)


class Splits(NamedTuple):
    """What came of a tool on each split of the rows."""

    records: list[dict[str, Any]]

    def mean(self, score: str) -> float:
        """The mean of a score over the splits."""
        return fmean(record[score] for record in self.records)

    def rises(self, before: Splits) -> list[float]:
        """By how much log loss is higher than before, split by split."""
        pairs = zip(self.records, before.records, strict=True)
        return [after["log_loss"] - old["log_loss"] for after, old in pairs]

    @property
    def n_refused(self) -> int:
        """Splits on which the input was taken for wrong."""
        return sum(record["refused"] for record in self.records)


Classifiers = dict[tuple[str, str], dict[str, Splits]]


def _is_clear(rises: list[float], error: Callable[[list[float]], float] = corrected_error) -> bool:
    return abs(fmean(rises)) > 2 * error(rises)


def _lowest(tools: dict[str, Splits], names: tuple[str, ...]) -> str:
    """The tool with the lowest mean log loss."""
    return min(names, key=lambda name: tools[name].mean("log_loss"))


def _compared(classifiers: Classifiers, others: dict[tuple[str, str], Splits]) -> str:
    """On how many pairs log loss is clearly lower and higher after altnorm than another's."""
    rises = {pair: tools["altnorm"].rises(others[pair]) for pair, tools in classifiers.items()}
    clear = [fmean(rise) > 0 for rise in rises.values() if _is_clear(rise)]
    # What the correction acquits is named, with both errors.
    plainly = [
        f"{classifier} on {data} ({fmean(rise):+.4f}, standard error {plain_error(rise):.4f}, "
        f"corrected {corrected_error(rise):.4f})"
        for (data, classifier), rise in rises.items()
        if fmean(rise) > 0 and _is_clear(rise, plain_error)
    ]
    return (
        f"clearly lower on {clear.count(False)}, clearly higher on {clear.count(True) or 'none'}. "
        f"By plain standard errors it would be higher on {len(plainly) or 'none'}"
        f"{': ' if plainly else ''}{', '.join(plainly)}."
    )


def _classifiers() -> Classifiers:
    """By data and classifier, what came of each tool."""
    classifiers: Classifiers = {}
    for record in read_records(EXPERIMENTS / "benchmark" / "results" / "scikit_learn.csv"):
        tools = classifiers.setdefault((record["data"], record["classifier"]), {})
        tools.setdefault(record["tool"], Splits([])).records.append(record)
    return classifiers


def benchmark_claim() -> str:
    """On how many classifiers our estimator raises and lowers accuracy, in all and fresh."""
    rows = read_benchmark()
    fresh = [row for row in rows if row["part"] == "fresh"]
    text = f"On {_raised(rows)}."
    return f"{text} Of these, on the fresh {_raised(fresh)}." if fresh else text


def _raised(rows: Records) -> str:
    gains = gains_of(rows, "altnorm: Adjuster")
    higher, lower = (gains.accuracy > 0).sum(), (gains.accuracy < 0).sum()
    by = f", by at most {-gains.accuracy.min():.1f} points" if lower else ""
    return (
        f"{len(gains.sources)} classifiers of {len(set(gains.sources))} tables accuracy is higher "
        f"with `Adjuster` on {higher}, the same on {len(gains.sources) - higher - lower} and lower "
        f"on {lower or 'none'}{by}"
    )


NUMBERS: dict[str, Callable[[], str]] = {
    "asking": asking,
    "benchmark": benchmark,
    "benchmark-claim": benchmark_claim,
    "confident-reference": confident_reference,
    "costs": costs,
    "labels-decide": labels_decide,
    "no-labels": no_labels,
    "promise": promise,
    "scikit-learn": scikit_learn,
    "scikit-learn-claim": scikit_learn_claim,
    "scikit-learn-cut-off": scikit_learn_cut_off,
    "scikit-learn-trees": scikit_learn_trees,
    "wrong-word": wrong_word,
}
"""What may stand between markers, by name."""

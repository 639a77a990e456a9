"""The tables of the study, in Markdown, from its records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean, median
from typing import Any

from experiments._output import markdown_table
from experiments.language.methods import NEEDS_LABELS, NO_LABELS
from experiments.language.study import SETS, UNTOUCHED
from experiments.suite.gains import clear_counts
from experiments.suite.names import plain_name

__all__ = ["make_tables"]

Record = Mapping[str, Any]
Records = Sequence[Record]
ADJUSTER = "Adjuster"
_PEERS = (UNTOUCHED, "batch calibration", "temperature", "BCTS")


def make_tables(records: Records, unlabelled: Records) -> dict[str, str]:
    """All tables by name."""
    return {
        "no_labels": no_labels_table(unlabelled),
        "sets": sets_table(records),
        "gains": gains_table(records),
        "losses": losses_table(records),
        "budgets": budgets_table(records),
        "duels_accuracy": duels_table(records, "ci_low", "ci_high", sign=1),
        "duels_loss": duels_table(records, "change_low", "change_high", sign=-1),
    }


def sets_table(records: Records) -> str:
    """What was asked, of whom, and how many answers are right as they come."""
    lines = []
    for name in _names(records):
        of_set = [r for r in records if r["classifier"] == name and r["against"] == UNTOUCHED]
        n_labels = max(r["labels"] for r in of_set)
        accuracy, loss = (of_set[0][new] - of_set[0][by] for new, by in _BEFORE)
        sizes = f"{of_set[0]['classes']}", f"{n_labels:,} / {of_set[0]['test']:,}"
        lines.append([_short_name(name), *SETS[name], *sizes, f"{accuracy:.1f} %", f"{loss:.3f}"])
    header = "set, model, task, answers, validation / test, right, log loss"
    return markdown_table(header.split(", "), lines)


_BEFORE = (("accuracy", "gain"), ("log_loss", "change"))


def gains_table(records: Records) -> str:
    """Gain in accuracy with all labels, one line per set."""
    return _by_set(records, lambda r: _interval(r["gain"], r["ci_low"], r["ci_high"], 1))


def losses_table(records: Records) -> str:
    """Change of log loss with all labels, one line per set."""
    return _by_set(records, lambda r: _interval(r["change"], r["change_low"], r["change_high"], 3))


def _by_set(records: Records, cell: Any) -> str:
    """One line per set, one column per method, with no or with all labels."""
    found = {
        (r["classifier"], r["method"]): cell(r)
        for r in records
        if r["against"] == UNTOUCHED and (r["all_labels"] or r["labels"] == 0)
    }
    methods = (*NO_LABELS, *NEEDS_LABELS)
    lines = [[_short_name(n), *(found[n, m] for m in methods)] for n in _names(records)]
    return markdown_table(["set", *methods], lines)


def no_labels_table(records: Records) -> str:
    """Gain without any label, over language models and over the other classifiers."""
    lines = []
    for title, asked in (("language models' answers", True), ("other classifiers", False)):
        for method in NO_LABELS:
            some = [r for r in records if (r["language_model"], r["method"]) == (asked, method)]
            gains = [r["gain"] for r in some]
            if not gains:
                continue
            cells = [f"{x:+.2f}" for x in (fmean(gains), median(gains), min(gains), max(gains))]
            lines.append([title, method, str(len(some)), *cells, clear_counts(some)])
    header = ["", "method", "sets", "mean gain", "median", "worst", "best"]
    return markdown_table([*header, "clearly better / worse"], lines)


def budgets_table(records: Records) -> str:
    """Gain in accuracy with some of the labels, one line per set and number of them."""
    methods = ("batch calibration, learnt", "BCTS", ADJUSTER)
    chosen = {
        (r["classifier"], r["labels"], r["method"]): r
        for r in records
        if r["against"] == UNTOUCHED and r["labels"] and not r["all_labels"]
    }
    lines = []
    for name, n_labels in dict.fromkeys(key[:2] for key in chosen):
        cells = [chosen[name, n_labels, method] for method in methods]
        gains = (_interval(r["gain"], r["ci_low"], r["ci_high"], 1) for r in cells)
        unchanged = f"{cells[-1]['unchanged']:.0f} %"
        lines.append([_short_name(name), f"{n_labels:,}", *gains, unchanged])
    return markdown_table(["set", "labels", *methods, "no decision changed"], lines)


def duels_table(records: Records, low: str, high: str, *, sign: int) -> str:
    """Clearly better, not clear, clearly worse: `Adjuster` against the others, over the sets."""
    found = [r for r in records if r["method"] == ADJUSTER]
    lines = []
    for other in _PEERS:
        duels = [r for r in found if r["against"] == other]
        cells = []
        for budget in _budgets(found):
            now = [r for r in duels if _budget(r) == budget]
            better = sum((r[low] if sign > 0 else -r[high]) > 0 for r in now)
            worse = sum((r[high] if sign > 0 else -r[low]) < 0 for r in now)
            cells.append(f"{better}/{len(now) - better - worse}/{worse}")
        lines.append([other, *cells])
    return markdown_table(["against", *_budgets(found)], lines)


def _names(records: Records) -> list[str]:
    return list(dict.fromkeys(r["classifier"] for r in records))


def _short_name(classifier: str) -> str:
    """What the model was asked about, without the model."""
    return plain_name(classifier).partition(",")[0]


def _budget(record: Record) -> str:
    return "all" if record["all_labels"] else f"{record['labels']:,}"


def _budgets(records: Records) -> list[str]:
    return list(dict.fromkeys(map(_budget, sorted(records, key=lambda r: r["labels"]))))


def _interval(value: float, low: float, high: float, digits: int) -> str:
    if value == low == high == 0:
        return "0"
    return f"{value:+.{digits}f} [{low:+.{digits}f}, {high:+.{digits}f}]"

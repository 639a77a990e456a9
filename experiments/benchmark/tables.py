"""The tables of the page."""

from __future__ import annotations

from itertools import chain

import numpy as np

from experiments._output import markdown_table
from experiments.benchmark.measure import ALL, SIZES, UNTOUCHED
from experiments.benchmark.summary import (
    Gains,
    Records,
    accuracy_interval,
    clear_sources,
    decided_of,
    gains_of,
    loss_interval,
    methods_of,
    source_interval,
)

__all__ = ["LOSS", "make_tables"]

ADJUSTER = "altnorm: Adjuster"
WITH_TARGET = "altnorm: Adjuster, target 95 %"
PARTS = "open", "held back", "fresh"
LOSS = 0.5  # points of accuracy that a user would notice


def make_tables(records: Records, deferred: Records) -> dict[str, str]:
    """Markdown by name, from what gives probabilities and from what defers rows to a person."""
    with_all = [record for record in records if record["labels"] == ALL]
    return {
        "methods": _methods(with_all),
        "against": _against(records),
        "decided": _decided([*with_all, *(r for r in deferred if r["labels"] == ALL)]),
        "few": _few(records),
        "parts": _parts(with_all),
        "sources": _sources(with_all),
        "failures": _failures([*records, *deferred]),
    }


def _methods(records: Records) -> str:
    header = (
        *("method", "classifiers", "accuracy", "median", "worst", "clear by source"),
        *("log loss, %", "clear by source", "Brier", "calibration error"),
        *("balanced accuracy", "failed", "seconds"),
    )
    return markdown_table(header, [_row(records, method) for method in methods_of(records)])


def _row(records: Records, method: str) -> list[str]:
    gains = gains_of(records, method)
    error = f"{gains.calibration_error.mean():.2f}"
    if method == UNTOUCHED:
        return [method, f"{len(gains.sources)}", *[""] * 7, error, *[""] * 3]
    return [
        method,
        f"{len(gains.sources)}",
        _accuracy(gains),
        f"{np.median(gains.accuracy):+.2f}",
        f"{gains.accuracy.min():+.2f}",
        "{} / {}".format(*clear_sources(gains.accuracy, gains.accuracy_se, gains.sources)),
        _loss(gains),
        "{} / {}".format(*clear_sources(gains.saved, gains.log_loss_se, gains.sources)),
        f"{gains.brier.mean():+.4f}",
        error,
        "{:+.2f} [{:+.2f}, {:+.2f}]".format(
            gains.balanced_accuracy.mean(), *source_interval(gains.balanced_accuracy, gains.sources)
        ),
        f"{gains.failed.sum()}",
        f"{gains.seconds.mean():.2f}",
    ]


def _against(records: Records) -> str:
    """Our estimator less each other method on the same classifiers."""
    with_all = [record for record in records if record["labels"] == ALL]
    fresh = [record for record in with_all if record["part"] == "fresh"]
    few = [record for record in records if record["labels"] == SIZES[1]]
    parts = {"": with_all, ", fresh": fresh, f", {SIZES[1]} labels": few}
    header = ["method"]
    for name in parts:
        header += [f"accuracy{name}", f"log loss %{name}"]
    rows = []
    for method in methods_of(with_all):
        if method not in (UNTOUCHED, ADJUSTER):
            gains = [gains_of(part, ADJUSTER, over=method) for part in parts.values()]
            cells = [
                (_accuracy(one), _loss(one)) if len(one.sources) else ("", "") for one in gains
            ]
            rows.append([method, *chain.from_iterable(cells)])
    return markdown_table(header, rows)


def _accuracy(gains: Gains) -> str:
    return "{:+.2f} [{:+.2f}, {:+.2f}]".format(*accuracy_interval(gains))


def _loss(gains: Gains) -> str:
    return "{:+.1f} [{:+.1f}, {:+.1f}]".format(*loss_interval(gains))


def _decided(records: Records) -> str:
    header = ("method", "decided, % of the rows", "of these wrong", "clearly more than 5 % wrong")
    header = (*header, "the target decides more by")
    with_target = _shares(records, WITH_TARGET)
    rows = []
    for method in methods_of(records):
        its = decided_of(records, method)
        shares = _shares(records, method)
        more = np.array([with_target[key] - shares[key] for key in shares if key in with_target])
        interval = "[{:.0f}, {:.0f}]".format(*source_interval(its.share, its.sources))
        wrong = its.wrong.sum() / max(its.rows.sum(), 1)
        broken = f"{its.clearly_too_many_wrong} of {len(its.rows)}"
        cells = [method, f"{its.share.mean():.0f} {interval}", f"{wrong:.1%}", broken]
        rows.append([*cells, _more(more, its.sources) if more.any() else ""])
    return markdown_table(header, rows)


def _shares(records: Records, method: str) -> dict[tuple[str, str], float]:
    """Per cent decided, by table and kind of classifier."""
    return {(r["source"], r["kind"]): r["decided"] for r in records if r["method"] == method}


def _more(points: np.ndarray, sources: np.ndarray) -> str:
    return "{:+.0f} [{:+.0f}, {:+.0f}]".format(points.mean(), *source_interval(points, sources))


def _few(records: Records) -> str:
    """Accuracy and log loss with a part of the labels, on classifiers that have more than 300."""
    most = {(r["source"], r["kind"]) for r in records if r["labels"] == SIZES[1]}
    common = [r for r in records if (r["source"], r["kind"]) in most]
    sizes = [size for size in SIZES if size != ALL]
    names = [f"{size} labels" for size in sizes]
    header = ("method", *(f"accuracy, {n}" for n in names), *(f"log loss %, {n}" for n in names))
    parts = [[r for r in common if r["labels"] == size] for size in sizes]
    rows = []
    for method in methods_of(parts[0]):
        gains = [gains_of(part, method) for part in parts]
        if method != UNTOUCHED and all(len(part.sources) for part in gains):
            rows.append([method, *map(_accuracy, gains), *map(_loss, gains)])
    return markdown_table(header, rows)


def _parts(records: Records) -> str:
    """Mean gain, how many classifiers lose by it, and the mean of the log losses, in nats."""
    header, by_method = ["method"], {method: [method] for method in methods_of(records)}
    for part in PARTS:
        its = [record for record in records if record["part"] == part]
        header += [part, "lose", "log loss"]
        for method, cells in by_method.items():
            gains = gains_of(its, method)
            if not len(gains.sources):
                continue
            lost = f"{(gains.accuracy <= -LOSS).sum()}"
            log_loss = np.mean([r["log_loss"] for r in its if r["method"] == method])
            cells += [f"{gains.accuracy.mean():+.2f}", lost, f"{log_loss:.3f}"]
    return markdown_table(header, by_method.values())


def _sources(records: Records) -> str:
    """The tables of each part and way to cut them, with how many classes they have."""
    tables = dict[tuple[str, str], dict[str, str]]()
    for r in records:
        tables.setdefault((r["part"], r["split"]), {})[r["source"]] = str(r["classes"])
    rows = [
        (", ".join(f"{source} ({n})" for source, n in its.items()), *key)
        for key, its in sorted(tables.items(), key=lambda each: PARTS.index(each[0][0]))
    ]
    return markdown_table(("tables, and how many classes each has", "part", "thirds by"), rows)


def _failures(records: Records) -> str:
    """Failures by method and number of labels, and the most frequent reason."""
    failed = [record for record in records if record["failure"]]
    rows = []
    for method in methods_of(failed):
        its = [record for record in failed if record["method"] == method]
        reasons = [str(record["failure"]).split(":")[0] for record in its]
        counts = [str(sum(r["labels"] == size for r in its)) for size in SIZES]
        rows.append([method, *counts, max(set(reasons), key=reasons.count)])
    return markdown_table(("method", *(f"{size or 'all'} labels" for size in SIZES), "why"), rows)

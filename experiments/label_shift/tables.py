"""The tables of the page: made from cases, nothing is measured here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from experiments._output import markdown_table
from experiments.label_shift.study import METHODS, SHIFTS, Case, Simulated
from experiments.label_shift.summary import (
    SIZES,
    WANTED,
    biases_alone,
    gain,
    knowable,
    other_people,
    resampled,
    share_of_oracle,
    size,
    strong_cases,
    worst,
)
from experiments.label_shift.worlds import WORLDS

__all__ = ["make_tables"]

_REASONS = ("adapted", "no_shift", "small_shift", "not_label_shift")
_MANY = 20  # new rows per class
_PEOPLE = ("adapt", "always", "em", "em_bare", "bbse")


def make_tables(cases: Sequence[Case], simulated: Sequence[Simulated]) -> dict[str, str]:
    """Make every table, by name."""
    real, strong = resampled(cases), strong_cases(cases)
    return {
        "targets": _targets(cases, simulated),
        "losses": _losses(strong),
        "by_shift": _gains(real, "shift", SHIFTS, lambda c: c.shift),
        "lost": _lost(strong),
        "by_size": _gains(strong, "rows", list(SIZES), size),
        "by_classifier": _gains(
            strong, "classifier", sorted({c.classifier for c in strong}), lambda c: c.classifier
        ),
        "people": _people(other_people(cases)),
        "worlds": _worlds(simulated),
    }


def _targets(cases: Sequence[Case], simulated: Sequence[Simulated]) -> str:
    strong, people = strong_cases(cases), other_people(cases)
    still = [case for case in resampled(cases) if case.shift == "no shift"]
    null = [one.p_value for one in simulated if one.world == WORLDS[0].name]
    shifted = [one.covered for one in simulated if one.world.endswith("label shift")]
    left = sum(case.reason != "adapted" for case in people)
    alone = share_of_oracle(biases_alone(strong))
    rows = [
        ["share of the oracle's gain, strong shifts", "85 %", _percent(share_of_oracle(strong))],
        *([] if np.isnan(alone) else [["the same, bias family alone", "", _percent(alone)]]),
        ["change without a shift, mean", "at least -0.2", f"{gain(still, 'adapt'):+.2f}"],
        ["change without a shift, worst set", "", f"{worst(still, 'adapt'):+.2f}"],
        ["adapted without a shift", "", _part([case.reason == "adapted" for case in still])],
        ["p-value below 0.05, simulated, no change", "5 %", _part(np.less(null, 0.05))],
        ["p-value below 0.01, simulated, no change", "1 %", _part(np.less(null, 0.01))],
        ["other people left alone", "all", f"{left} of {len(people)}"],
        ["intervals cover, simulated label shift", "93 to 97 %", _percent(np.mean(shifted))],
    ]
    return markdown_table(["", "wanted", "found"], rows)


def _losses(cases: Sequence[Case]) -> str:
    """Where the oracle's gain goes, step by step."""
    steps = (
        ("the oracle: knows the balance", "oracle"),
        ("informed: knows the distribution that the balance was drawn from", "informed"),
        ("always: our estimate, without asking", "always"),
        ("adapt: our estimate, where the data say so", "adapt"),
        ("EM, without asking", "em"),
    )
    many = [case for case in cases if case.n_new >= _MANY * case.n_classes]
    few = [case for case in cases if case.n_new < _MANY * case.n_classes]
    known = knowable(cases)
    groups = [group for group in (cases, many, few, known) if group]
    rows = [
        [name, f"{gain(cases, field):+.2f}", *(_percent(share_of_oracle(g, field)) for g in groups)]
        for name, field in steps
    ]
    titles = [
        f"{len(many)} sets with {_MANY} new rows per class",
        f"{len(few)} with fewer",
        f"{len(known)} in cells where the informed reach {_percent(WANTED)}",
    ]
    shown = [title for title, group in zip(titles, (many, few, known), strict=True) if group]
    return markdown_table(["", "gain", f"share, all {len(cases)} sets", *shown], rows)


def _lost(cases: Sequence[Case]) -> str:
    """Which part of the oracle's whole gain is lost, where, and why."""
    whole = sum(case.oracle - case.none for case in cases)
    rows = []
    for name in sorted({case.classifier for case in cases}):
        own = [case for case in cases if case.classifier == name]
        parts = [
            [case.oracle - case.adapt for case in own],
            [case.oracle - case.informed for case in own],
            [case.informed - case.always for case in own],
            [(case.always - case.adapt) * (case.strength == 0) for case in own],
            [(case.always - case.adapt) * (case.strength > 0) for case in own],
        ]
        gained = sum(case.oracle - case.none for case in own) / whole
        rows.append([name, f"{100 * gained:.1f}", *(f"{100 * sum(p) / whole:.1f}" for p in parts)])
    rows.sort(key=lambda row: -float(row[2]))
    total = np.sum([[float(cell) for cell in row[1:]] for row in rows], axis=0)
    rows.append(["all", *(f"{number:.1f}" for number in total)])
    why = ["cannot be known", "estimate", "not adapted", "adapted in part"]
    return markdown_table(["classifier", "oracle's gain", "lost", *why], rows)


def _percent(value: Any) -> str:
    return f"{100 * float(value):.0f} %"


def _part(values: Any) -> str:
    return f"{int(np.sum(values))} of {len(values)}: {100 * np.mean(values):.1f} %"


def _gains(
    cases: Sequence[Case], title: str, keys: Sequence[Any], key: Callable[[Case], Any]
) -> str:
    rows = []
    for value in keys:
        chosen = [case for case in cases if key(case) == value]
        if not chosen:
            continue
        adapted = np.mean([case.reason == "adapted" for case in chosen])
        cells = [f"{gain(chosen, field):+.2f}" for field in METHODS]
        rows.append([value, str(len(chosen)), _percent(adapted), *cells])
    return markdown_table([title, "sets", "adapted", *METHODS.values()], rows)


def _people(cases: Sequence[Case]) -> str:
    rows = []
    for name in sorted({case.classifier for case in cases}):
        own = [case for case in cases if case.classifier == name]
        whole = max(own, key=lambda case: case.n_new)
        adapted = sum(case.reason == "adapted" for case in own)
        numbers = f"p = {whole.p_value:.2g}, distance {whole.distance:.2f}"
        said = f"{whole.reason} ({numbers}, {_percent(whole.unexplained)} left)"
        cells = [f"{gain(own, field):+.2f}" for field in _PEOPLE]
        rows.append([name, f"{adapted} of {len(own)}", said, *cells])
    head = ["classifier", "adapted", "all test rows", *(METHODS[field] for field in _PEOPLE)]
    return markdown_table(head, rows)


def _worlds(simulated: Sequence[Simulated]) -> str:
    rows = []
    for world in dict.fromkeys(one.world for one in simulated):
        for m in sorted({one.n_classes for one in simulated}):
            own = [one for one in simulated if (one.world, one.n_classes) == (world, m)]
            shares = [_percent(np.mean([one.reason == name for one in own])) for name in _REASONS]
            numbers = (
                f"{np.mean([one.strength for one in own]):.2f}",
                f"{np.mean([one.gain for one in own]):+.2f}",
                f"{np.mean([one.oracle for one in own]):+.2f}",
                _percent(np.mean([one.covered for one in own])),
            )
            rows.append([world, str(m), str(len(own)), *shares, *numbers])
    reasons = (reason.replace("_", " ") for reason in _REASONS)
    head = ["world", "classes", "sets", *reasons, "strength", "gain", "oracle", "coverage"]
    return markdown_table(head, rows)

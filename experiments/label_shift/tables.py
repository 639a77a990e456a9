"""The tables of the page: made from what was found, nothing is measured here."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from experiments._output import markdown_table
from experiments.label_shift.asking import Asked
from experiments.label_shift.study import SHIFTS, Found
from experiments.label_shift.worlds import WORLDS

LEVEL = 0.05
BUDGETS = (40, 100)  # labels
_SHIFTED = {world.name for world in WORLDS if world.is_label_shift}
_NOTHING = WORLDS[0].name


def make_tables(
    simulated: Sequence[Found], resampled: Sequence[Found], asked: Sequence[Asked]
) -> dict[str, str]:
    """Make every table, by name."""
    shifted = [one for one in simulated if one.change in _SHIFTED]
    moved = [one for one in simulated if one.change not in _SHIFTED]
    drawn = [one for one in resampled if one.change in SHIFTS]
    people = [one for one in resampled if one.change not in SHIFTS]
    return {
        "contradicted": _contradicted([*shifted, *moved]),
        "gains": _gains([*shifted, *drawn], lambda one: one.change),
        "together": _gains([*(one for one in shifted if one.change != _NOTHING), *drawn], _where),
        "people": _people(people),
        "asked": _answers(asked, lambda one: one.kind),
    }


def _contradicted(found: Sequence[Found]) -> str:
    """How often the test contradicts label shift, by change, classes and rows."""
    sizes = sorted({(one.n_classes, one.n_new) for one in found})
    rows = []
    for change in dict.fromkeys(one.change for one in found):
        own = [one for one in found if one.change == change]
        cells = [
            _share([one.p_value <= LEVEL for one in own if (one.n_classes, one.n_new) == size])
            for size in sizes
        ]
        rows.append([change, *cells, f"{_mean_gain(own, 'word'):+.1f}"])
    header = [f"{m} classes, {n:,} rows" for m, n in sizes]
    return markdown_table(["", *header, "adapting changes accuracy by"], rows)


def _gains(found: Sequence[Found], by: Callable[[Found], str]) -> str:
    """Gains over not adapting, in points."""
    rows = []
    for name in dict.fromkeys(map(by, found)):
        own = [one for one in found if by(one) == name]
        word, oracle = _mean_gain(own, "word"), _mean_gain(own, "oracle")
        part = f"{word / oracle:.0%}" if oracle > LEVEL else ""
        contradicted = _share([one.p_value <= LEVEL for one in own])
        rows.append([name, str(len(own)), f"{word:+.2f}", f"{oracle:+.2f}", part, contradicted])
    header = ["", "sets", "on the word", "oracle", "share", "contradicted"]
    return markdown_table(header, rows)


def _people(found: Sequence[Found]) -> str:
    """What adapting does where validation and test rows are of other people."""
    rows = [
        [one.source, f"{one.word - one.none:+.2f}", "yes" if one.p_value <= LEVEL else "no"]
        for one in found
    ]
    return markdown_table(["", "on the word", "contradicted"], rows)


def _where(one: Found) -> str:
    return "simulated" if one.change in _SHIFTED else "real classifiers"


def _answers(asked: Sequence[Asked], by: Callable[[Asked], str]) -> str:
    """Labels until the answer, and how often it is right, wrong or not there yet."""
    rows = []
    for name in dict.fromkeys(map(by, asked)):
        own = [one for one in asked if by(one) == name]
        labels = np.array([one.labels for one in own])
        known = [
            _share([one.labels <= budget and one.is_right for one in own]) for budget in BUDGETS
        ]
        rows.append(
            [
                name,
                str(len(own)),
                f"{np.mean([one.gain for one in own]):+.1f}",
                f"{np.mean([one.followed(BUDGETS[-1]) for one in own]):+.1f}",
                f"{np.median([one.changed for one in own]):.0f}",
                f"{np.median(labels):.0f}",
                f"{np.quantile(labels, 0.9):.0f}",
                *known,
                _share(list(labels > BUDGETS[-1])),
                f"{np.mean([not one.is_right for one in own]):.1%}",
            ]
        )
    right = [f"right within {budget}" for budget in BUDGETS]
    header = ["", "sets", "adapting gains", "if labels say so"]
    header += ["rows that differ", "labels", "90 % of sets"]
    return markdown_table([*header, *right, f"no answer after {BUDGETS[-1]}", "wrong, ever"], rows)


def _mean_gain(found: Sequence[Found], name: str) -> float:
    return float(np.mean([getattr(one, name) - one.none for one in found]))


def _share(flags: Sequence[bool]) -> str:
    return f"{np.mean(flags):.0%}" if flags else ""

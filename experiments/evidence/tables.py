"""The tables of the study's page: numbers only."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from experiments._output import markdown_table
from experiments.evidence.plan import FACTOR, NOTHING, SOMETHING, UNTOLD
from experiments.evidence.summary import (
    Record,
    by_case,
    count,
    covers,
    gains,
    has_interval,
    mean,
    of_cases,
    points,
    select,
    share_gained,
    share_interval,
    worst,
)

__all__ = ["make_tables"]

Records = Sequence[Record]
LATE = 500  # rows from which a reported gain should be right to 0.2 points


def make_tables(records: Mapping[str, Records]) -> dict[str, str]:
    """Every table by its name on the page."""
    worlds = records["worlds"]
    return {
        "targets": _targets(worlds),
        "something": _gain_table(of_cases(worlds, SOMETHING)),
        "nothing": _gain_table(of_cases(worlds, NOTHING + FACTOR + UNTOLD)),
        "honesty": _honesty(worlds),
        "probabilities": _probabilities(worlds),
        "costs": _costs(records["costs"]),
        "purposes": _purposes(records["purposes"]),
    }


def _targets(worlds: Records) -> str:
    """What was wanted, beside what was measured."""
    something, factor = of_cases(worlds, SOMETHING), of_cases(worlds, FACTOR)
    nothing = of_cases(worlds, NOTHING)
    adopted = [r for r in something if r["adopted"] and r["n_rows"] >= LATE]
    cases = SOMETHING + NOTHING + FACTOR
    independent = [c for c in cases if c.world.tell_groups and not c.world.speakers]
    measures: list[tuple[str, str, Records, Callable[[Records], str]]] = [
        ("adopted, bias 1, 1,000 rows", "at least 90 %", _cell(worlds, "bias 1", 1000), _adopted),
        ("adopted, bias 2, 200 rows", "at least 95 %", _cell(worlds, "bias 2", 200), _adopted),
        ("adopted, confused pairs, 200 rows", "at least 80 %",
         _cell(worlds, "confused pairs", 200), _adopted),
        ("of all that can be gained", "at least 75 %", something, _gained),
        ("the same, were the candidate always applied", "", something,
         lambda group: f"{100 * share_gained(group, always=True):.1f} %"),
        ("adopted where nothing can be gained", "at most 2 %", nothing, _adopted),
        ("the same in the worst world", "at most 2 %", nothing,
         lambda group: f"{-100 * worst(group, lambda r: -_share(r)):.1f} %"),
        ("mean change, confidence by class", "at least -0.02 points", factor,
         lambda group: points(worst(group, lambda r: float(gains(r).mean())))),
        ("interval covers the true gain, independent rows or groups", "93 to 97 %",
         of_cases(worlds, independent), _covered),
        (f"reported - true gain of the adopted, from {LATE} rows on", "within 0.2 points", adopted,
         _excess),
    ]  # fmt: skip
    rows = [[name, wanted, cell(group) if group else ""] for name, wanted, group, cell in measures]
    return markdown_table(["question", "wanted", "found"], rows)


def _cell(worlds: Records, world: str, n_rows: int) -> list[Record]:
    return select(worlds, world=world, n_rows=n_rows)


def _share(group: Records) -> float:
    return float(np.mean([r["adopted"] for r in group]))


def _adopted(group: Records) -> str:
    share = count([r["adopted"] for r in group])
    return f"{share.n} of {share.of}: {share}"


def _gained(group: Records) -> str:
    low, high = share_interval(group)
    return f"{100 * share_gained(group):.1f} % [{100 * low:.1f}, {100 * high:.1f}]"


def _covered(group: Records) -> str:
    told = [covers(r) for r in group if has_interval(r)]
    return str(count(told)) if told else "none"


def _excess(group: Records) -> str:
    return str(mean([r["reported"] - r["true"] for r in group])) if group else "none"


def _gain_table(records: Records) -> str:
    """One line for each world and size."""
    rows = []
    for group in by_case(records):
        found, room = gains(group), float(np.mean([r["room"] for r in group]))
        share = share_gained(group)
        rows.append(
            [
                group[0]["world"],
                f"{group[0]['n_rows']:,}",
                str(count([r["adopted"] for r in group])),
                f"{room:.2f}",
                str(mean(found)),
                "" if np.isnan(share) else f"{100 * share:.0f} %",
                points(float(found.min())),
            ]
        )
    header = ["world", "rows", "adopted", "to gain", "true gain", "share gained", "worst"]
    return markdown_table(header, rows)


def _honesty(worlds: Records) -> str:
    rows = []
    for group in by_case(worlds):
        adopted = [r for r in group if r["adopted"]]
        numbers = [_excess(group), _excess(adopted), _covered(group), _covered(adopted)]
        silent = sum(not has_interval(r) for r in group)
        rows.append([group[0]["world"], f"{group[0]['n_rows']:,}", *numbers, f"{silent}"])
    header = ["world", "rows", "reported - true", "the same, adopted", "interval covers"]
    return markdown_table([*header, "the same, adopted", "without an interval"], rows)


def _probabilities(worlds: Records) -> str:
    rows = []
    for group in by_case(worlds):
        names = ("loss_before", "loss_after", "loss_least")
        losses = [f"{np.mean([r[name] for r in group]):.3f}" for name in names]
        harmed = sum(r["loss_after"] > r["loss_before"] + 0.01 for r in group)
        rows.append([group[0]["world"], f"{group[0]['n_rows']:,}", *losses, f"{harmed}"])
    header = ["world", "rows", "before", "after", "the lowest there is", "worse by 0.01 or more"]
    return markdown_table(header, rows)


def _costs(records: Records) -> str:
    """Costs relative to the least possible; what is left to a person, and the others' accuracy."""
    rows = []
    for group in by_case(records, "costs"):
        least = np.mean([r["least"] for r in group])
        relative = [
            f"{np.mean([r[who] for r in group]) / least:.3f}"
            for who in ("argmax", "by_costs", "adjuster")
        ]
        left, right = (
            [
                f"{np.mean([r[f'{who}_{what}'] for r in group]):.1f} %"
                for who in ("adjuster", "least")
            ]
            for what in ("left", "right")
        )
        adopted = f"{100 * _share(group):.0f} %"
        name = [group[0]["world"], group[0]["costs"], adopted]
        rows.append([*name, *relative, " / ".join(left), " / ".join(right)])
    header = [
        "world",
        "costs",
        "adopted",
        "most probable class",
        "costs on predictions as they came",
    ]
    more = ["`Adjuster(costs=...)`", "left: `Adjuster` / best", "accuracy on the rest, the same"]
    return markdown_table([*header, *more], rows)


def _purposes(records: Records) -> str:
    rows = []
    for group in by_case(records, "scoring"):
        names = ("before", "for_accuracy", "after", "best")
        scores = [np.mean([r[name] for r in group]) for name in names]
        got = (scores[2] - scores[0]) / (scores[3] - scores[0])
        true = [r["after"] - r["before"] for r in group if r["adopted"]]
        said = [r["gain"] for r in group if r["adopted"]]
        excess = str(mean(np.subtract(said, true))) if said else "none"
        rows.append(
            [
                group[0]["scoring"],
                f"{group[0]['n_rows']:,}",
                f"{100 * _share(group):.0f} %",
                *(f"{score:.1f}" for score in scores),
                f"{100 * got:.0f} %",
                excess,
            ]
        )
    header = ["score", "rows", "adopted", "before", "`Adjuster()`", "`Adjuster(scoring=...)`"]
    return markdown_table([*header, "best rule", "share gained", "reported - true"], rows)

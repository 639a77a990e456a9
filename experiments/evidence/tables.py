"""The tables of the study's page: numbers only."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from experiments._output import markdown_table
from experiments.evidence.plan import CASES, NOTHING, PURPOSES_NOTHING, SOMETHING, TOLD, Case
from experiments.evidence.summary import (
    Record,
    Share,
    by_case,
    count,
    covers,
    fools,
    gains,
    gains_nothing,
    has_interval,
    mean,
    of_cases,
    points,
    share_gained,
    share_interval,
    upper_bound,
)

__all__ = ["make_tables"]

Records = Sequence[Record]
LATE = 500  # rows from which a reported gain should be right to 0.2 points
MOST, MOST_BOUND = 0.03, 0.05  # changed for nothing, of the data sets of a world


def make_tables(records: Mapping[str, Records]) -> dict[str, str]:
    """Every table by its name on the page."""
    worlds = records["worlds"]
    return {
        "targets": _targets(worlds, records["intervals"]),
        "something": _gain_table(worlds, SOMETHING),
        "nothing": _nothing_table(worlds, NOTHING),
        "purposes": _nothing_table(worlds, PURPOSES_NOTHING),
        "told": _told_table(worlds),
        "honesty": _honesty(records["intervals"]),
        "probabilities": _probabilities(worlds),
        "costs": _costs(records["costs"]),
    }


def _targets(worlds: Records, intervals: Records) -> str:
    """What was wanted, beside what was measured."""
    something = of_cases(worlds, SOMETHING)
    late = [r for r in something if r["adopted"] and r["n_rows"] >= LATE and _is_accuracy(r)]
    measures: list[tuple[str, str, Records, Callable[[Records], str]]] = [
        ("adopted, bias 1, 1,000 rows", "at least 90 %", _cell(worlds, "bias 1", 1000), _adopted),
        ("adopted, bias 2, 200 rows", "at least 92 %", _cell(worlds, "bias 2", 200), _adopted),
        ("adopted, confused pairs, 200 rows", "at least 80 %",
         _cell(worlds, "confused pairs", 200), _adopted),
        ("of all that can be gained in accuracy", "at least 75 %",
         [r for r in something if _is_accuracy(r)], _gained),
        ("decisions changed for nothing, all worlds", "at most 3 %", worlds, _fooled),
        ("worlds with at most 3 %", "all", worlds, _held),
        ("worlds where the one-sided 95 % bound is at most 5 %", "all", worlds, _held_bound),
        ("interval covers the true gain, independent rows", "93 to 97 %", intervals, _covered),
        (f"reported - true gain of the adopted, from {LATE} rows on", "within 0.2 points", late,
         _excess),
    ]  # fmt: skip
    rows = [[name, wanted, cell(group) if group else ""] for name, wanted, group, cell in measures]
    return markdown_table(["question", "wanted", "found"], rows)


def _is_accuracy(record: Record) -> bool:
    return bool(record["purpose"] == "accuracy")


def _cell(worlds: Records, world: str, n_rows: int) -> Records:
    return of_cases(worlds, [c for c in CASES if c.key == (world, n_rows, "accuracy")])


def _adopted(group: Records) -> str:
    return _of(count([r["adopted"] for r in group]))


def _of(share: Share) -> str:
    return f"{share.n} of {share.of}: {share}"


def _told(record: Record) -> tuple[str, ...]:
    key = record["world"], record["n_rows"], record["purpose"]
    return next(case.told for case in CASES if case.key == key)


def _fooled_share(group: Records) -> Share:
    return count([fools(r, _told(r)) for r in group])


def _fooled(group: Records) -> str:
    return _of(_fooled_share(group))


def _held(worlds: Records) -> str:
    cells = [_fooled_share(cell) for cell in by_case(worlds)]
    return f"{sum(share.value <= MOST for share in cells)} of {len(cells)}"


def _held_bound(worlds: Records) -> str:
    cells = [_fooled_share(cell) for cell in by_case(worlds)]
    return f"{sum(upper_bound(share) <= MOST_BOUND for share in cells)} of {len(cells)}"


def _gained(group: Records) -> str:
    low, high = share_interval(group)
    return f"{100 * share_gained(group):.1f} % [{100 * low:.1f}, {100 * high:.1f}]"


def _covered(group: Records) -> str:
    told = [covers(r) for r in group if has_interval(r)]
    return str(count(told)) if told else "none"


def _excess(group: Records) -> str:
    adopted = [r for r in group if r["adopted"]]
    return str(mean([r["reported"] - r["true"] for r in adopted])) if adopted else "none"


def _name(group: Records) -> list[str]:
    first = group[0]
    return [first["world"], first["purpose"], f"{first['n_rows']:,}"]


def _loss_change(group: Records) -> str:
    return f"{np.mean([r['loss_after'] - r['loss_before'] for r in group]):+.3f}"


def _gain_table(worlds: Records, cases: Sequence[Case]) -> str:
    """One line for each world where something can be gained."""
    rows = []
    for group in by_case(of_cases(worlds, cases)):
        found, room = gains(group), float(np.mean([r["room"] for r in group]))
        share = share_gained(group)
        cells = [
            str(count([r["adopted"] for r in group])),
            f"{room:.2f}",
            str(mean(found.tolist())),
        ]
        cells += ["" if np.isnan(share) else f"{100 * share:.0f} %"]
        cells += [_bounded(count([gains_nothing(r) for r in group])), _excess(group)]
        rows.append([*_name(group), *cells, _loss_change(group)])
    header = ["world", "purpose", "rows", "adopted", "to gain", "true gain", "share gained"]
    return markdown_table([*header, "for nothing", "promised - true", "log loss"], rows)


def _bounded(share: Share) -> str:
    return f"{100 * share.value:.1f} % (≤ {100 * upper_bound(share):.1f})"


def _nothing_table(worlds: Records, cases: Sequence[Case]) -> str:
    """One line for each world where nothing can be gained."""
    rows = []
    for group in by_case(of_cases(worlds, cases)):
        found = gains(group)
        cells = [_bounded(_fooled_share(group)), points(float(found.mean()))]
        cells += [points(float(found.min())), _excess(group), _loss_change(group)]
        rows.append([*_name(group), *cells])
    header = ["world", "purpose", "rows", "adopted for nothing", "mean change", "worst"]
    return markdown_table([*header, "promised - true", "log loss"], rows)


def _told_table(worlds: Records) -> str:
    """One line for each world that labels cannot show."""
    rows = []
    for group in by_case(of_cases(worlds, TOLD)):
        found, told = gains(group), set(_told(group[0]))
        named = count([bool(told & set(r["cautions"].split())) for r in group])
        cells = [f"{100 * np.mean([r['adopted'] for r in group]):.0f} %", _bounded(
            _fooled_share(group))]  # fmt: skip
        cells += [f"{100 * named.value:.0f} %", points(float(found.mean()))]
        rows.append([*_name(group), *cells, _excess(group), _loss_change(group)])
    header = ["world", "purpose", "rows", "adopted", "for nothing and not told", "caution"]
    return markdown_table([*header, "mean change", "promised - true", "log loss"], rows)


def _honesty(intervals: Records) -> str:
    rows = []
    for group in by_case(intervals):
        adopted = [r for r in group if r["adopted"]]
        every = str(mean([r["reported"] - r["true"] for r in group]))
        numbers = [every, _excess(group), _covered(group), _covered(adopted)]
        silent = sum(not has_interval(r) for r in group)
        rows.append([group[0]["world"], f"{group[0]['n_rows']:,}", *numbers, f"{silent}"])
    header = ["world", "rows", "reported - true", "the same, adopted", "interval covers"]
    return markdown_table([*header, "the same, adopted", "without an interval"], rows)


def _probabilities(worlds: Records) -> str:
    rows = []
    for group in by_case(worlds):
        if not _is_accuracy(group[0]):
            continue
        names = ("loss_before", "loss_after", "loss_least")
        losses = [f"{np.mean([r[name] for r in group]):.3f}" for name in names]
        harmed = count([r["loss_after"] > r["loss_before"] + 0.01 for r in group])
        harm = f"{100 * harmed.value:.0f} %"
        rows.append([group[0]["world"], f"{group[0]['n_rows']:,}", *losses, harm])
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
        adopted = f"{100 * np.mean([r['adopted'] for r in group]):.0f} %"
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

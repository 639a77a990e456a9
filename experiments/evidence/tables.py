"""The tables of the study's page: numbers only."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

import numpy as np

from experiments._output import markdown_table
from experiments.evidence.plan import BIASED, CONFUSED, SEVERAL, SURE
from experiments.evidence.study import ADJUSTER, ALTERNATING, Record
from experiments.evidence.summary import (
    CONFIDENCE,
    count,
    honesty,
    mean,
    points,
    select,
    share_gained,
    share_interval,
)

__all__ = ["make_tables"]

ESTIMATORS = (ALTERNATING, ADJUSTER)
BIASES = tuple(world.name for world in BIASED)
ROOM = tuple(world.name for world in SEVERAL if world.scoring is None)  # something to gain

Records = Sequence[Record]


def make_tables(records: Records) -> dict[str, str]:
    """Every table by its name on the page."""
    parts = {part: list(group) for part, group in groupby(records, lambda r: r.part)}
    something = parts["something"]
    return {
        "targets": _targets(records),
        "levels": _levels(records),
        "nothing": _worlds(parts["nothing"]),
        "designs": _designs(parts["designs"]),
        "groups": _groups(parts["groups"]),
        "something": _something(something),
        "honesty": _honesty(something),
        "dealings": _dealings(something),
        "stability": _stability(parts["stability"]),
        "calibration": _calibration([*parts["nothing"], *something]),
        "unlabelled": _unlabelled(parts["unlabelled"]),
    }


def _targets(records: Records) -> str:
    """What was wanted, beside what was measured."""
    something = select(records, part="something")
    biased = select(something, world=BIASES)
    most = max(r.n_rows for r in biased)
    measures: list[tuple[str, str, Records, Callable[[Records], str]]] = [
        (f"adopted, bias 1, {most:,} rows", "at least 60 %",
         select(something, world="bias 1", n_rows=most), _adopted),
        ("of what can be gained, biased worlds", "at least 65 %", biased, _gained_within),
        ("the same, were the best setting always applied", "", biased,
         lambda group: f"{100 * share_gained(group, always=True):.1f} %"),
        ("of what can be gained, confused pairs as well", "", something, _gained_within),
        ("adopted where nothing can be gained", "at most 2.5 %", _sound(records), _adopted),
        ("the same, unrelated labels only", "at most 2.5 %",
         [r for r in _sound(records) if "unrelated" in r.world], _adopted),
        ("true gain of the adopted ones there", "", _sound(records), _harm),
        ("true gain over all data sets of the worst world there", "at least -0.2 points",
         _sound(records), _worst_world),
        ("interval covers, biased worlds", "93 to 97 %", biased, _covered),
        ("reported - true gain, biased worlds", "within 0.2 points", biased,
         lambda group: str(honesty(group).excess)),
    ]  # fmt: skip
    rows = [[name, wanted, *_each(group, cell)] for name, wanted, group, cell in measures]
    return markdown_table(["question", "wanted", *ESTIMATORS], rows)


def _each(group: Records, cell: Callable[[Records], str]) -> list[str]:
    """A cell for each estimator; empty where it has no records."""
    chosen = [select(group, estimator=name) for name in ESTIMATORS]
    return [cell(one) if one else "" for one in chosen]


def _sound(records: Records) -> list[Record]:
    """Data sets in which nothing can be gained, and groups are told where there are some."""
    parts = select(records, part=("nothing", "designs", "groups"))
    sound = [r for r in parts if r.part != "groups" or r.groups]
    return [r for r in sound if r.world not in (*ROOM, *BIASES)]


def _adopted(group: Records) -> str:
    share = count([r.adopted for r in group])
    return f"{share.n} of {share.of}: {share}"


def _gained(group: Records) -> str:
    return f"{100 * share_gained(group):.1f} %"


def _gained_within(group: Records) -> str:
    """With an interval."""
    low, high = share_interval(group)
    return f"{_gained(group)} [{100 * low:.1f}, {100 * high:.1f}]"


def _covered(group: Records) -> str:
    return str(honesty(group).covered)


def _harm(group: Records) -> str:
    """Mean true gain of the adopted ones, and the worst."""
    gains = [r.gain for r in group if r.adopted]
    return f"{mean(gains)} (worst {points(min(gains))})" if gains else "none adopted"


def _worst_world(group: Records) -> str:
    """Mean true gain, adopted or not, in the world and size in which it is least."""
    worlds = list(_by(group, "part", "world", "n_classes", "n_rows"))
    worst = min(worlds, key=lambda one: float(np.mean([r.gain for r in one])))
    r = worst[0]
    return f"{mean([r.gain for r in worst])} ({r.world}, {r.n_classes:,} x {r.n_rows:,})"


def _levels(records: Records) -> str:
    """Adoption where nothing can be gained, by the kind of sampling."""
    nothing, designs, groups = (
        select(records, part=part) for part in ("nothing", "designs", "groups")
    )
    single = [r for r in nothing if r.world not in {w.name for w in SEVERAL}]
    unrelated = "labels unrelated to predictions"
    kinds = {
        "independent rows, unrelated labels": select(single, world=unrelated),
        "independent rows, right decisions": [r for r in single if r.world != unrelated],
        "several labels, subset accuracy": [r for r in nothing if "subset" in r.world],
        **{f"few rows per class, {name}": select(designs, world=name)
           for name in ("random", "balanced", "stratified")},
        "groups, passed": [r for r in groups if r.groups and r.world not in BIASES],
        "groups, not passed": [r for r in groups if not r.groups and r.world not in BIASES],
    }  # fmt: skip
    rows = []
    for name, group in kinds.items():
        for estimator in ESTIMATORS:
            chosen = select(group, estimator=estimator)
            if chosen:
                rows.append([name, estimator, _adopted(chosen), _harm(chosen)])
    header = ["sampling", "estimator", "adopted", "true gain of the adopted ones"]
    return markdown_table(header, rows)


def _by(records: Records, *names: str) -> Iterator[list[Record]]:
    """Groups of records that agree in some fields, in the order in which they come."""
    found: dict[tuple[object, ...], list[Record]] = {}
    for r in records:
        found.setdefault(tuple(getattr(r, name) for name in names), []).append(r)
    yield from found.values()


def _worlds(records: Records) -> str:
    rows = []
    for group in _by(records, "world", "n_rows", "estimator"):
        r, room = group[0], float(np.mean([r.room for r in group]))
        numbers = [f"{100 * room:.1f}", _adopted(group), _harm(group)]
        rows.append([r.world, f"{r.n_rows:,}", r.estimator, *numbers])
    header = ["world", "rows", "estimator", "to gain", "adopted", "true gain of the adopted ones"]
    return markdown_table(header, sorted(rows, key=lambda row: row[0] in ROOM))


def _designs(records: Records) -> str:
    rows = []
    for group in _by(records, "n_classes", "n_rows", "world"):
        r = group[0]
        cells = []
        for name in ESTIMATORS:
            chosen = select(group, estimator=name)
            share = [sum(r.adopted for r in chosen), len(chosen)]
            excess = str(honesty(chosen).excess) if chosen else ""
            cells += ["{} of {}".format(*share) if chosen else "", excess]
        harm = _harm(group)
        rows.append([f"{r.n_classes:,}", f"{r.n_rows:,}", r.world, *cells, harm])
    rows.sort(key=lambda row: [int(x.replace(",", "")) for x in row[:2]])
    both = [f"{name}: {what}" for name in ESTIMATORS for what in ("adopted", "reported - true")]
    header = ["classes", "rows", "sampling", *both, "true gain of the adopted ones"]
    return markdown_table(header, rows)


def _groups(records: Records) -> str:
    rows = []
    for group in _by(records, "world", "groups", "estimator"):
        r = group[0]
        groups = "passed" if r.groups else "not passed"
        excess = str(honesty(group).excess)
        rows.append([r.world, groups, r.estimator, _adopted(group), _harm(group), excess])
    header = ["world", "groups", "estimator", "adopted", "true gain of the adopted ones"]
    return markdown_table([*header, "reported - true"], rows)


def _something(records: Records) -> str:
    rows = []
    for group in _by(records, "world", "n_rows", "estimator"):
        r = group[0]
        rows.append([r.world, f"{r.n_rows:,}", r.estimator, *_power(group)])
    for group in _by(select(records, world=BIASES), "estimator"):
        rows.append(["all biased worlds", "", group[0].estimator, *_power(group)])
    header = ["world", "rows", "estimator", "to gain", "adopted", "true gain", "share gained"]
    return markdown_table([*header, "true gain of the adopted ones"], rows)


def _power(group: Records) -> list[str]:
    room, gain = np.mean([r.room for r in group]), mean([r.gain for r in group])
    adopted = str(count([r.adopted for r in group]))
    return [f"{100 * room:.1f}", adopted, str(gain), _gained(group), _harm(group)]


def _honesty(records: Records) -> str:
    biased = select(records, world=BIASES)
    sizes = sorted({r.n_rows for r in biased})
    groups = {"all": biased} | {f"{n:,} rows": select(biased, n_rows=n) for n in sizes}
    groups |= {name: select(biased, world=name) for name in BIASES}
    groups |= {"adopted": select(biased, adopted=True)}
    groups |= {"not adopted": select(biased, adopted=False)}
    groups |= {CONFUSED.name: select(records, world=CONFUSED.name)}
    rows = []
    for estimator in ESTIMATORS:
        for name, group in groups.items():
            chosen = select(group, estimator=estimator)
            if chosen:
                found = honesty(chosen)
                numbers = [*map(str, found[:4]), str(found.below), str(found.above)]
                rows.append([estimator, name, str(len(chosen)), *numbers])
    header = "estimator, data sets, number, reported, true, reported - true, covered, below, above"
    return markdown_table(header.split(", "), rows)


def _dealings(records: Records) -> str:
    rows = []
    for group in _by(records, "world", "n_rows", "estimator"):
        r = group[0]
        dealings = np.array([r.n_dealings for r in group])
        shares = (f"{100 * np.mean(dealings == k):.0f} %" for k in (2, 8))
        agreement = np.array([r.agreement for r in group])
        unsure = f"{100 * np.mean(agreement <= 0.8):.0f} %"
        means = f"{dealings.mean():.1f}", f"{100 * agreement.mean():.0f} %"
        rows.append([r.world, f"{r.n_rows:,}", r.estimator, means[0], *shares, means[1], unsure])
    header = "world, rows, estimator, dealings, settled after 2, all 8, agreement, 80 % or less"
    return markdown_table(header.split(", "), rows)


def _stability(records: Records) -> str:
    rows = []
    for group in _by(records, "world", "n_rows", "estimator"):
        sets = list(_by(group, "number"))
        same = sum(len({r.adopted for r in one}) == 1 for one in sets)
        spread = [max(r.p_value for r in one) - min(r.p_value for r in one) for one in sets]
        gains = [np.ptp([r.reported for r in one]) for one in sets]
        adopted = sum(r.adopted for r in group) / len(group)
        numbers = [f"{same} of {len(sets)}", f"{100 * adopted:.0f} %"]
        medians = [f"{np.median(spread):.3f}", f"{100 * np.median(gains):.2f}"]
        r = group[0]
        rows.append([r.world, f"{r.n_rows:,}", r.estimator, *numbers, *medians])
    header = ["world", "rows", "estimator", "same verdict under all", "adopted"]
    return markdown_table([*header, "range of p-values", "range of gains"], rows)


def _calibration(records: Records) -> str:
    shown = ("calibrated", SURE.name, *BIASES, CONFUSED.name)
    rows = []
    for group in _by(select(records, world=shown, estimator=ADJUSTER), "world", "n_rows"):
        r = group[0]
        shares = (sum(x) for x in zip(*((r.adopted, r.calibrated) for r in group), strict=True))
        names = ("loss_before", "loss_decided", "loss_after", "loss_least")
        losses = [float(np.mean([getattr(r, name) for r in group])) for name in names]
        worse = sum(r.loss_after > r.loss_before for r in group)
        numbers = [*(f"{n} of {len(group)}" for n in shares), *(f"{x:.3f}" for x in losses)]
        rows.append([r.world, f"{r.n_rows:,}", *numbers, f"{worse}"])
    header = "world, rows, decisions adopted, calibration adopted, as reported, decisions only"
    more = "with calibration, the lowest there is, worse than reported"
    return markdown_table(f"{header}, {more}".split(", "), rows)


def _unlabelled(records: Records) -> str:
    rows = []
    for group in _by(records, "estimator", "n_rows", "n_unlabelled"):
        r = group[0]
        numbers = [str(mean([r.best for r in group])), *_power(group)[1:3], _covered(group)]
        rows.append([r.estimator, f"{r.n_rows:,}", f"{r.n_unlabelled:,}", *numbers])
    header = ["estimator", "labels", "rows without", "true gain of the best setting", "adopted"]
    return markdown_table([*header, "true gain", f"covered ({CONFIDENCE:.0%})"], rows)

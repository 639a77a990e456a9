"""Sentences about the records, whose words follow from the intervals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from experiments.evidence.study import PLAIN, REFINED, Record
from experiments.evidence.summary import (
    CONFIDENCE,
    NOMINAL,
    Honesty,
    compare_share,
    count,
    has_room,
    honesty,
    mean,
    points,
    select,
)
from experiments.evidence.worlds import BIASED, NULL

__all__ = ["LEVEL", "biased", "in_short", "text_biased", "text_honest", "text_null"]

SHOWN = 5  # so many of the worst adjustments are listed
LEVEL = {1: "not kept", 0: "not contradicted", -1: "kept"}
_POOLED = {
    1: "more often than its level allows",
    0: "in agreement with its level",
    -1: "less often than its level allows",
}
_COVERAGE = {
    1: "more often than promised",
    0: "in agreement with the promise",
    -1: "less often than promised",
}
_EXCESS = {1: "is too high on average", 0: "shows no bias", -1: "is too low on average"}


def biased(records: Sequence[Record], variant: str) -> list[Record]:
    """Records of part 2."""
    return select(records, world=tuple(w.name for w in BIASED), variant=variant)


def _null_groups(records: Sequence[Record], *, room: bool) -> Iterator[list[Record]]:
    """Groups of one world, variant and size of part 1, with or without something to gain."""
    for world in NULL:
        for variant in (PLAIN, REFINED):
            for n in sorted({r.n_rows for r in records}):
                group = select(records, world=world.name, variant=variant, n_rows=n)
                if group and has_room(group) == room:
                    yield group


def in_short(records: Sequence[Record]) -> str:
    """The answers, one line each."""
    levels = [
        _level_line(records, variant, related=related)
        for related in (True, False)
        for variant in (PLAIN, REFINED)
    ]
    lines = [*filter(None, levels), _power_line(records), _honesty_line(records)]
    return "\n".join(f"- {line}" for line in lines)


def _level_line(records: Sequence[Record], variant: str, *, related: bool) -> str:
    """How often something was adopted in the worlds of a kind; empty if there are none."""
    kind = tuple(w.name for w in NULL if w.related == related)
    groups = _null_groups(select(records, world=kind, variant=variant), room=False)
    nothing = [r.adopted for group in groups for r in group]
    if not nothing:
        return ""
    share = count(nothing)
    name = "Calibrated predictions" if related else "Labels unrelated to predictions"
    return (
        f"**{name}, {variant}:** an adjustment was adopted in {share.n} of {share.of:,} data sets "
        f"with nothing to gain, {share}; {_POOLED[compare_share(share, NOMINAL)]} "
        f"({100 * NOMINAL:.1f} %)."
    )


def _power_line(records: Sequence[Record]) -> str:
    chosen = biased(records, PLAIN)
    adopted = [r for r in chosen if r.adopted]
    harmful = sum(r.gain < 0 for r in adopted)
    return (
        f"**Something to gain:** {_first_found(chosen)} Of the {len(adopted)} adopted adjustments "
        f"{harmful or 'none'} did harm."
    )


def _first_found(records: Sequence[Record]) -> str:
    """From which strength on at least half of the data sets see an adjustment."""
    told = []
    for n in sorted({r.n_rows for r in records}):
        found = [
            w.bias
            for w in BIASED
            if np.mean([r.adopted for r in select(records, world=w.name, n_rows=n)]) >= 0.5
        ]
        least = f"from a bias of {found[0]:g} on" if found else "at none of the strengths"
        told.append(f"with {n:,} rows {least}")
    return f"at least half of the data sets see an adjustment {', '.join(told)}."


def _honesty_line(records: Sequence[Record]) -> str:
    found = honesty(biased(records, PLAIN))
    return (
        f"**The reported gain** {_excess_words(found)}; its {100 * CONFIDENCE:.0f} % interval "
        f"holds the true gain in {found.covered} of data sets, {_coverage_words(found)}."
    )


def _excess_words(found: Honesty) -> str:
    return f"{_EXCESS[found.excess.sign]} ({found.excess} points)"


def _coverage_words(found: Honesty) -> str:
    return _COVERAGE[compare_share(found.covered, CONFIDENCE)]


def text_null(records: Sequence[Record]) -> str:
    """Where the level holds, what adoption cost, and which worlds have something to gain."""
    groups = list(_null_groups(records, room=False))
    broken = [g[0] for g in groups if compare_share(count([r.adopted for r in g]), NOMINAL) > 0]
    where = "; ".join(f"{r.world}, {r.variant}, {r.n_rows:,} rows" for r in broken)
    level = (
        f"In {len(broken)} of the {len(groups)} lines with nothing to gain the interval lies above "
        f"{100 * NOMINAL:.1f} %: the level is not kept there ({where})."
        if broken
        else f"In none of the {len(groups)} lines with nothing to gain does the interval lie above "
        f"{100 * NOMINAL:.1f} %."
    )
    losses = [r.gain for g in groups for r in g if r.adopted]
    cost = "Nothing was adopted there."
    if losses:
        cost = (
            f"The {len(losses)} adjustments adopted there change the true score by "
            f"{points(sum(losses) / len(losses))} points on average, at worst by "
            f"{points(min(losses))}."
        )
    return "\n\n".join([f"{level} {cost}", *_room_text(records)])


def _room_text(records: Sequence[Record]) -> Iterator[str]:
    rows = [r for g in _null_groups(records, room=True) for r in g]
    adopted = [r.gain for r in rows if r.adopted]
    if rows:
        found = f"Here {len(adopted) or 'none'} of {len(rows)} were adopted"
        if adopted:
            gaining = sum(gain > 0 for gain in adopted)
            found += f"; {gaining} of them gain, on average over all of them {mean(adopted)} points"
        yield (
            "Calibrated is not the same as nothing to gain: for micro-F1 it is better to say yes "
            "from a probability below 0.5 on. An adjustment adopted for that is no false alarm if "
            f"it gains. {found}."
        )


def text_biased(records: Sequence[Record]) -> str:
    """What the adopted adjustments did, for each variant."""
    told = []
    for variant in (PLAIN, REFINED):
        chosen = biased(records, variant)
        harmful = sorted((r for r in chosen if r.gain < 0), key=lambda r: r.gain)
        part = np.mean([r.gain for r in chosen]) / np.mean([r.room for r in chosen])
        told.append(
            f"{variant}: adopted in {sum(r.adopted for r in chosen)} of {len(chosen)} data sets, "
            f"{len(harmful) or 'none'} of them with a true loss. Over all data sets "
            f"{100 * part:.0f} % of what could be gained is gained."
        )
        told += [f"  {_loss(r)}" for r in harmful[:SHOWN]]
    return "\n".join(line if line.startswith(" ") else f"- {line}" for line in told)


def _loss(record: Record) -> str:
    """A harmful adjustment, and what was said of it."""
    said = " to ".join(points(x) for x in (record.ci_low, record.ci_high))
    return (
        f"- {record.world}, {record.n_rows:,} rows: reported {points(record.reported)} ({said}), "
        f"true {points(record.gain)}; {record.setting}"
    )


def text_honest(records: Sequence[Record]) -> str:
    """Bias and coverage, over all data sets and among the adopted ones."""
    told = []
    for variant in (PLAIN, REFINED):
        chosen = biased(records, variant)
        told.append(_honest_words(f"{variant}, all data sets", honesty(chosen)))
        adopted = select(chosen, adopted=True)
        if len(adopted) > 1:
            found = honesty(adopted)
            told.append(_honest_words(f"{variant}, adopted ones only", found))
            if found.excess.sign > 0:
                told[-1] += " Adoption selects the lucky ones."
    return "\n".join(f"- {line}" for line in told)


def _honest_words(name: str, found: Honesty) -> str:
    return (
        f"{name}: the reported gain {_excess_words(found)}; the interval holds the true gain "
        f"{_coverage_words(found)}. Of {found.covered.of} it promises too much in {found.below}, "
        f"too little in {found.above}."
    )

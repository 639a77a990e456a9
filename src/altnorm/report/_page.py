"""The page: template, style and script put together with the words and the data.

What its script works with, the changed rows, travels in it as JSON. Places in a bar are in
per cent of its width, so that the template draws it on any screen or paper.
"""

from __future__ import annotations

import base64
import hashlib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np
from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from altnorm._base.persistence import versions
from altnorm._base.words import Figures, percent, plural, score_name
from altnorm.adjuster.comparison import Comparison
from altnorm.decisions.purpose import purpose_of
from altnorm.evidence.promise import coverage_of
from altnorm.report import _words as words, measures
from altnorm.report.evaluation import Applied, Case

STYLES = ("style.css", "print.css")
MAX_BARS = 16  # of a chart
MAX_CLASSES = 1000  # of the table
MAX_ROWS = 1000  # changed ones that are listed
MAX_TEXT = 240  # characters of a row's text
JSON = {
    "separators": (",", ":"),
    "allow_nan": False,
    "ensure_ascii": False,
    "default": np.ndarray.tolist,
}
TOP = 5  # classes of a row whose probabilities are shown


def render(
    case: Case,
    texts: Sequence[str] | None,
    comparison: Comparison | None,
    title: str | None,
    about: Mapping[str, str],
) -> str:
    """Fill the template; everything that comes from outside is escaped."""
    script = _read("page.js")
    style = "".join(map(_read, STYLES))
    return _template().render(
        title=title or "Adjusted predictions",
        about=about,
        style=Markup(style),
        script=Markup(script),
        policy=Markup(_policy(script, style)),
        data={"classes": case.names, "rows": changed_rows(case, texts)},
        case=case,
        words=words,
        answer=words.answer(case),
        cautions=words.cautions(case, comparison),
        gates=case.tuned.gates.rows() if case.tuned is not None and case.tuned.gates else [],
        scores=_scores(case),
        peers=_peers(comparison),
        charts=_charts(case),
        classes=_classes(case),
        purpose=score_name(purpose_of(case.model).score.name, case.kind.is_multilabel),
        why=[*words.why_proba(case), *words.why_decision(case)],
        n_changed=int(np.unique(case.explanation.row).size),
        settings=_settings(case),
        versions=versions(),
        shift=str(getattr(case.model, "shift_", "")),
        alone=_alone(case),
        plural=plural,
        percent=percent,
        breakable=_breakable,
    )


def _template() -> Any:
    environment = Environment(
        loader=FunctionLoader(_read), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.policies["json.dumps_kwargs"] = JSON
    return environment.get_template("page.html")


def _read(name: str) -> str:
    return files("altnorm.report").joinpath("page", name).read_text(encoding="utf-8")


def _breakable(name: str) -> Markup:
    """A name that may break after its parts, as those of the script may."""
    return Markup("<wbr>").join(re.split(r"(?<=[_/.-])", name))


def _policy(script: str, style: str) -> str:
    """No request, and no script or style but ours, whatever a class name may contain."""
    hashes = [
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for text in (script, style)
    ]
    return (
        f"default-src 'none'; script-src 'sha256-{hashes[0]}'; style-src 'sha256-{hashes[1]}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


class Line(NamedTuple):
    """A line of a table of scores."""

    name: str
    figures: Figures
    counts: tuple[int, int] | None
    interval: list[float]  # change, low and high in per cent of the width; zero is in the middle


def _scores(case: Case) -> list[Line]:
    verdicts = () if case.evaluation is None else (case.evaluation.verdict, *case.evaluation.scores)
    return _lines([(line.name, line, None) for line in map(words.score_line, verdicts)])


def _peers(comparison: Comparison | None) -> list[Line]:
    if comparison is None:
        return []
    return _lines(
        [
            (row.method, words.typeset(comparison.figures(row)), (row.n_fixed, row.n_broken))
            for row in sorted(comparison, key=lambda row: -row.score)
        ]
    )


def _lines(entries: Sequence[tuple[str, Figures, tuple[int, int] | None]]) -> list[Line]:
    """Changes in one unit, points or those of a score, are drawn on one scale."""
    units = np.array([figures.unit or figures.name for _, figures, _ in entries])
    numbers = np.nan_to_num([figures.numbers for _, figures, _ in entries], posinf=0, neginf=0)
    lines = []
    for entry, unit, ends in zip(entries, units, numbers, strict=True):
        longest = np.abs(numbers[units == unit]).max() or 1.0
        lines.append(Line(*entry, np.round(50 + 46 * ends / longest, 2).tolist()))
    return lines


Parts = list[tuple[str, float]]  # kinds and lengths, one after the other; what has no kind is blank
Lines = Iterable[tuple[str, Parts, str]]  # names, parts and texts
Bars = list[tuple[str, list[tuple[str, float, float]], str]]  # parts: kinds, starts and widths


def _charts(case: Case) -> dict[str, Bars]:
    """Bars of what changes, by pairs and by classes, and of what makes it change."""
    lines: dict[str, Lines] = {}
    judged, factors = case.judged, measures.favoured(case.model)
    if len(case.explanation):
        if not case.kind.is_multilabel:
            lines["flows"] = _flow_lines(case.applied, case.names)
        lines["changes"] = _change_lines(case)
    if hasattr(case.chosen, "matrix_") and judged is not None and judged.truth is not None:
        lines["confusions"] = _confusion_lines(judged, judged.truth, case.names)
    if factors is not None:
        lines["factors"] = _factor_lines(factors, case.names)
    charts = {name: _chart(list(bars)) for name, bars in lines.items()}
    return {name: bars for name, bars in charts.items() if bars}


def _chart(lines: list[tuple[str, Parts, str]]) -> Bars:
    """Lines as bars, whose parts are in per cent of the width; the longest takes all of it."""
    longest = max((sum(length for _, length in parts) for _, parts, _ in lines), default=0)
    bars = []
    for name, parts, text in lines:
        ends = np.cumsum([0, *(length for _, length in parts)]) * (100 / (longest or 1))
        widths = zip(parts, ends, np.diff(ends), strict=False)
        drawn = [(kind, start, width) for (kind, _), start, width in widths if kind and width]
        bars.append((name, drawn, text))
    return bars


def _flow_lines(applied: Applied, names: list[str]) -> Lines:
    """Rows from one class to another, and what became of them."""
    old, new, truth = applied.old, applied.new, applied.truth
    flows = measures.count_pairs(old, new, old != new)
    # Equal flows stay put: the same page each time.
    for pair in sorted(flows, key=lambda pair: (-flows[pair], pair))[:MAX_BARS]:
        n, (source, target) = flows[pair], pair
        parts: Parts = [("other", n)]
        text = plural(n, "row")
        if truth is not None:
            of_these = truth[(old == source) & (new == target)]
            fixed, broken = (int((of_these == end).sum()) for end in (target, source))
            neither = n - fixed - broken
            if target == len(names) - 1:
                text += f", {broken:,} had been right"
            else:
                parts = [("fixed", fixed), ("broken", broken), ("other", neither)]
                text = f"{fixed:,} fixed, {broken:,} broken"
                text += f", {neither:,} still wrong" if neither else ""
        yield f"{names[source]} → {names[target]}", parts, text


def _change_lines(case: Case) -> Lines:
    """Rows fixed to the right and broken to the left; without labels, gained and lost."""
    m, (old, new, truth) = case.classes.size, case.applied[2:5]
    if truth is not None:
        (more, less), kinds = measures.class_changes(old, new, m, truth), ("fixed", "broken")
        verbs = kinds
    else:
        (more, less), kinds = measures.gained_and_lost(old, new, m), ("after", "other")
        verbs = ("added", "removed") if case.kind.is_multilabel else ("gained", "lost")
    order = measures.ends(more, less, MAX_BARS)
    for j in order:
        text = f"{more[j]:,} {verbs[0]}, {less[j]:,} {verbs[1]}"
        yield case.names[j], _both_sides(less[order], less[j], more[j], kinds), text


def _both_sides(all_less: np.ndarray, less: float, more: float, kinds: tuple[str, str]) -> Parts:
    """Less to the left and more to the right of where the line with most to the left ends."""
    return [("", all_less.max() - less), (kinds[1], less), (kinds[0], more)]


def _confusion_lines(judged: Applied, truth: np.ndarray, names: list[str]) -> Lines:
    """Confusions that were repaired, most repaired first, and what is left of them."""
    old, new = judged.old, judged.new
    before, after = (measures.count_pairs(truth, side, side != truth) for side in (old, new))
    fixed = measures.count_pairs(truth, old, (old != truth) & (new == truth))
    for pair in sorted(fixed, key=lambda pair: (-fixed[pair], -before[pair], pair))[:MAX_BARS]:
        n, left = fixed[pair], before[pair] - fixed[pair]
        name = "{} taken for {}".format(*(names[code] for code in pair))
        text = f"{before[pair]:,} before, {after[pair]:,} after; {n:,} fixed"
        yield name, [("fixed", n), ("other", left)], text


def _factor_lines(factors: np.ndarray, names: list[str]) -> Lines:
    """How much classes are favoured, on a logarithmic scale around 1."""
    order = np.argsort(-factors, kind="stable")
    if order.size > MAX_BARS:
        order = np.concatenate([order[: MAX_BARS // 2], order[-(MAX_BARS // 2) :]])
    more, less = np.maximum(np.log(factors), 0), np.maximum(-np.log(factors), 0)
    for j in order:
        parts = _both_sides(less[order], less[j], more[j], ("fixed", "broken"))
        yield names[j], parts, f"× {factors[j]:.3g}"


def _alone(case: Case) -> dict[str, Any] | None:
    """How much can be decided alone: two curves and a band in per cent, and what was promised."""
    promise = None if case.tuned is None else case.tuned.promise
    judged = case.judged
    if promise is None or judged is None or judged.truth is None:
        return None
    kept = None if case.evaluation is None else case.evaluation.kept
    share = promise.share if kept is None else kept.share
    before, after = (coverage_of(p, judged.truth) for p in (judged.before, judged.after))
    before, after = before.thinned(), after.thinned(after.at(share))
    low, high = (_points(after.share, bound) for bound in (after.lower(), after.upper()))
    return {
        "sentences": [str(promise), *([] if kept is None else [f"On these rows: {kept}"])],
        "curves": [_points(side.share, side.accuracy) for side in (before, after)],
        "band": [*low, *high[::-1]],
        "target": 100 - 100 * promise.target,
        "point": _points(after.share, after.accuracy)[after.at(share)] if share else None,
    }


def _points(share: np.ndarray, accuracy: np.ndarray) -> list[tuple[float, float]]:
    """Places of a curve, in per cent from the top left."""
    places = 100 * share, 100 - 100 * accuracy
    return list(zip(*(np.round(each, 2).tolist() for each in places), strict=True))


def _classes(case: Case) -> list[tuple[str, ...]]:
    """Every class in numbers: its rows, how often it is predicted, and the share recognised."""
    m, applied = case.classes.size, case.applied
    truth = applied.truth
    if truth is None:
        return []
    n, cells = measures.count_classes(truth, m), []
    for side in (applied.old, applied.new):
        recalls = measures.recalls(truth, side, m).tolist()
        cells.append([f"{k:,}" for k in measures.count_classes(side, m).tolist()])
        cells.append(["–" if math.isnan(share) else percent(share) for share in recalls])
    order = np.argsort(-n, kind="stable")[:MAX_CLASSES].tolist()
    return [(str(case.classes[j]), f"{n[j]:,}", *(column[j] for column in cells)) for j in order]


def _settings(case: Case) -> dict[str, dict[str, str]]:
    """Parameters of the model, and of what chose it, for the end of the page."""
    hidden = ("n_jobs", "verbose")
    estimators: tuple[Any, ...] = case.chosen, case.model
    with np.printoptions(precision=3, threshold=12):
        return {
            type(estimator).__name__: {
                name: str(value)
                for name, value in estimator.get_params(deep=False).items()
                if name not in hidden
            }
            for estimator in estimators
        }


def changed_rows(case: Case, texts: Sequence[str] | None) -> dict[str, Any]:
    """Return the changed rows as columns; where there are too many, a random part of them."""
    explained = case.explanation
    entries = np.arange(len(explained))
    if entries.size > MAX_ROWS:
        entries = np.sort(np.random.default_rng(0).choice(entries.size, MAX_ROWS, replace=False))
    rows = explained.row[entries]
    data = {
        "n": entries.size,
        "of": len(explained),
        "row": rows,
        "before": explained.codes[entries, 0],
        "after": explained.codes[entries, 1],
        "reason": [str(explained[int(i)]) for i in entries],
        **_top(
            explained.proba_before[entries],
            explained.proba_after[entries],
            explained.codes[entries],
        ),
    }
    if explained.label is not None:
        position = {name: j for j, name in enumerate(case.classes.tolist())}
        data["label"] = [position[name] for name in explained.label[entries].tolist()]
    if case.applied.truth is not None:
        truth = case.applied.truth[rows]
        if truth.ndim == 2:
            truth = truth[np.arange(rows.size), data["label"]].astype(int)
        data["truth"] = truth
    if texts is not None:
        shown = (str(texts[row]) for row in rows.tolist())
        data["text"] = [s if len(s) <= MAX_TEXT else s[: MAX_TEXT - 1] + "…" for s in shown]
    return data


def _top(before: np.ndarray, after: np.ndarray, codes: np.ndarray) -> dict[str, Any]:
    """The classes that matter in each row, with their probabilities before and after."""
    top = min(TOP, before.shape[1])
    weight = np.maximum(before, after)
    # The classes at stake are always shown; a person has no probability.
    at_stake = np.minimum(codes, before.shape[1] - 1)
    at_stake[:, 1] = np.where(codes[:, 1] < before.shape[1], at_stake[:, 1], at_stake[:, 0])
    np.put_along_axis(weight, at_stake, np.inf, axis=1)
    index = np.argsort(-weight, axis=1, kind="stable")[:, :top]
    sides = (np.take_along_axis(p, index, axis=1) for p in (before, after))
    old, new = (p.astype(np.float64).round(4) for p in sides)
    return {"index": index, "old": old, "new": new}

"""``altnorm info``, what a model file holds, also as a model card; ``altnorm export``, as ONNX."""

from __future__ import annotations

import inspect
import re
import timeit
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Column, Table

from altnorm._base.files import check_output
from altnorm._base.persistence import model_metadata
from altnorm._base.words import mixture_words, model_words, plural, score_name, setting_words
from altnorm.adjuster import Adjuster, load
from altnorm.cli._commands import Export, Info
from altnorm.cli._options import check_suffix
from altnorm.cli._records import print_json, verdict_record
from altnorm.cli._screen import (
    RULES,
    advised,
    escaped,
    name_cell,
    out,
    show_verdict,
    verdict_words,
)
from altnorm.cli.tune import applied_words
from altnorm.decisions.decision import Decision
from altnorm.estimator.base import chosen_model, unnamed
from altnorm.estimator.kinds import FittedModel, kind_of

_SHOWN = 10  # classes that are named
_N_TIMED = 2000  # rows

LIMITS = (
    "It is for predictions of the classifier that it was fitted to, on data like its validation "
    "data. After either has changed, fit it again.",
    "It sees predictions only. What all of them get wrong, such as a class that the classifier has "
    "never met, it cannot put right.",
    "`altnorm apply --strict` and `altnorm check NEW --model MODEL` tell when predictions no "
    "longer look like those at fit; only labels tell whether it still helps.",
)


def info(options: Info) -> None:
    """Show what a model file holds, or print its card."""
    model = options.model
    metadata, fitted = model_metadata(model), load(model)
    verdict = getattr(fitted, "verdict_", None)
    if options.card:
        print("\n".join(_card(model, metadata, fitted)))
        return
    if options.json:
        decided = None if verdict is None else verdict_record(verdict)
        print_json({**metadata, "does": _does(fitted), "verdict": decided})
        return
    grid = Table.grid("", Column(overflow="fold"), padding=(0, 2))
    for name, text in _facts(metadata, fitted):
        grid.add_row(name, text)
    out.print(grid)
    if verdict is not None:
        show_verdict(verdict)


def _facts(metadata: dict[str, Any], fitted: FittedModel) -> Iterator[tuple[str, str]]:
    """What a reader may want to know of a model, a name and a text each."""
    verdict, classes = getattr(fitted, "verdict_", None), metadata["classes"]
    yield "kind", metadata["kind"]
    yield from metadata["about"].items()
    if verdict is not None:
        yield "labelled rows", f"{verdict.n_rows:,}"
    labels = "several labels per row" if kind_of(fitted).is_multilabel else "one label per row"
    yield "takes", f"{'logits' if fitted.input == 'logits' else 'probabilities'}, {labels}"
    named = _shortened([name_cell(name) for name in classes])
    yield "classes", f"{plural(len(classes), 'class', 'classes')}: {named}"
    if verdict is not None:
        yield "goal", score_name(verdict.scoring, verdict.multilabel)
    yield "does", _does(fitted)
    if hasattr(fitted, "mixture_"):
        yield "mixes", mixture_words(fitted.mixture_.weights.tolist())
    if hasattr(fitted, "decision_"):
        yield "decides", _decides(fitted.decision_, classes)
    yield "saved by", ", ".join(map(" ".join, metadata["versions"].items()))
    yield "format", str(metadata["format_version"])
    yield "digest", metadata["digest"]


def _cost(fitted: FittedModel) -> str:
    """How long a row takes, measured on rows of all kinds."""
    m = len(fitted.classes_)
    proba = np.random.default_rng(0).dirichlet(np.ones(m), size=_N_TIMED)
    rows = np.log(proba) if fitted.input == "logits" else proba
    # The first time pays for what is prepared once.
    seconds = min(timeit.repeat(lambda: unnamed(fitted).transform(rows), number=1, repeat=3))
    microseconds = 1e6 * seconds / _N_TIMED
    return f"{microseconds:,.{0 if microseconds > 10 else 1}f} microseconds per row on this machine"


def _decides(decision: Decision, classes: list[Any]) -> str:
    """The rule, and its numbers by class."""
    if decision.on_input and not decision.counts_costs_alone:
        return "as the predictions came"
    if decision.decides_nothing:
        return "nothing; every row is left to a person"
    if decision.is_argmax:
        left = f", from a probability of {decision.least:.3g} on; other rows are left to a person"
        return f"the most probable class{left if decision.least else ''}"
    names = [name_cell(name) for name in classes]
    if decision.kind != "costs":
        return f"{RULES[decision.kind]}: {_by_name(names, decision.values)}"
    outcomes = [*names, "a person"][: decision.values.shape[1]]
    rows = zip(names[:_SHOWN], decision.values[:_SHOWN], strict=True)
    lines = [f"true {name}: {_by_name(outcomes, costs)}" for name, costs in rows]
    where = ", on the predictions as they came" if decision.on_input else ""
    return "\n".join([RULES["costs"] + where, *lines])


def _by_name(names: list[str], values: Any) -> str:
    return _shortened([f"{name} {value:.3g}" for name, value in zip(names, values, strict=True)])


def _shortened(texts: list[str]) -> str:
    """As many of them as are shown."""
    return ", ".join(texts[:_SHOWN]) + (", ..." if len(texts) > _SHOWN else "")


def _does(fitted: FittedModel) -> str:
    """What the model does to predictions, in words."""
    if hasattr(fitted, "family_"):
        return model_words(fitted)
    inner = chosen_model(fitted)
    if "alpha" in inner.get_params():
        return setting_words(inner.get_params())
    summary = str(inspect.getdoc(type(inner))).splitlines()[0]
    return summary[0].lower() + summary[1:].rstrip(".")


def _card(path: Path, metadata: dict[str, Any], fitted: FittedModel) -> Iterator[str]:
    """The lines of a model card in Markdown."""
    verdict = getattr(fitted, "verdict_", None)
    written = f"{datetime.fromtimestamp(path.stat().st_mtime, UTC):%Y-%m-%d %H:%M} UTC"
    yield f"# Model card: {_plain(path.name)}\n"
    yield "| | |\n|---|---|"
    for name, text in (*_facts(metadata, fitted), ("cost", _cost(fitted)), ("written", written)):
        in_a_line = text.replace("\n", "; ")
        yield f"| {name} | {_plain(in_a_line).replace('|', '&#124;')} |"
    yield "\n## Evidence\n"
    if verdict is None:
        yield "None: it was fitted without labels, so it is unknown whether it helps."
    else:
        applied = applied_words(fitted) if isinstance(fitted, Adjuster) else ""
        yield f"{_plain(verdict_words(verdict))}\n\n{_plain(applied)}"
        if verdict.gates:
            yield f"\n## What had to hold\n\n```\n{verdict.gates}\n```"
        yield from _listed("Cautions", [advised(c.code, c.text) for c in verdict.cautions])
    yield from _listed("Limits", LIMITS)


def _listed(title: str, lines: Sequence[str]) -> Iterator[str]:
    if lines:
        yield f"\n## {title}\n"
        yield from (f"- {_plain(line)}" for line in lines)


def _plain(text: str) -> str:
    """Text on one line, in the words of the command line, that no reader takes for HTML."""
    line = escaped(" ".join(text.split())).replace("&", "&amp;")
    return re.sub("<(?=[A-Za-z/!?])", "&lt;", line)


def export(options: Export) -> None:
    """Write a model as ONNX."""
    output, append_to, force = options.output, options.append_to, options.force
    check_suffix(output, ".onnx", "an ONNX model")
    check_output(output, force=force, others=[options.model, append_to])
    from altnorm.deploy.onnx import export as export_onnx

    export_onnx(
        load(options.model),
        output,
        dtype=options.dtype,
        append_to=append_to,
        label_output=options.label_output,
        force=force,
    )
    if options.json:
        print_json({"output": str(output)})
    else:
        out.say(f"ONNX model: {output}")

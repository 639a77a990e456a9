"""``altnorm info`` and ``altnorm export``: what a model file holds, and the same as ONNX."""

from __future__ import annotations

import inspect
import time
from typing import Any

import numpy as np
from rich.table import Column, Table

from altnorm._base.files import check_output
from altnorm._base.persistence import model_metadata
from altnorm._base.words import mixture_words, model_words, plural, score_name, setting_words
from altnorm.adjuster import Adjuster, load
from altnorm.cli._card import card_lines
from altnorm.cli._commands import Export, Info
from altnorm.cli._options import check_suffix
from altnorm.cli._records import print_json, verdict_record
from altnorm.cli._screen import RULES, name_cell, out, show_verdict
from altnorm.cli.tune import applied_words
from altnorm.decisions.decision import Decision
from altnorm.estimator.base import chosen_model, unnamed
from altnorm.estimator.kinds import FittedModel, kind_of

_SHOWN = 10  # classes that are named
_N_TIMED = 2000  # rows


def info(options: Info) -> None:
    """Show what a model file holds, or print its card."""
    model = options.model
    metadata, fitted = model_metadata(model), load(model)
    verdict = getattr(fitted, "verdict_", None)
    if options.card:
        applied = applied_words(fitted) if isinstance(fitted, Adjuster) else ""
        facts = [*_lines(metadata, fitted), ("cost", _cost(fitted))]
        print("\n".join(card_lines(model, facts, verdict, applied)))
        return
    if options.json:
        decided = None if verdict is None else verdict_record(verdict)
        print_json({**metadata, "does": _does(fitted), "verdict": decided})
        return
    grid = Table.grid("", Column(overflow="fold"), padding=(0, 2))
    for name, text in _lines(metadata, fitted):
        grid.add_row(name, text)
    out.print(grid)
    if verdict is not None:
        show_verdict(verdict)


def _lines(metadata: dict[str, Any], fitted: FittedModel) -> list[tuple[str, str]]:
    labels = "several labels per row" if kind_of(fitted).is_multilabel else "one label per row"
    verdict = getattr(fitted, "verdict_", None)
    goal = [] if verdict is None else [score_name(verdict.scoring, verdict.multilabel)]
    decision, mixture = getattr(fitted, "decision_", None), getattr(fitted, "mixture_", None)
    versions = metadata["versions"].items()
    return [
        ("kind", metadata["kind"]),
        *metadata["about"].items(),
        *([] if verdict is None else [("labelled rows", f"{verdict.n_rows:,}")]),
        ("takes", f"{'logits' if fitted.input == 'logits' else 'probabilities'}, {labels}"),
        ("classes", _classes(metadata["classes"])),
        *(("goal", text) for text in goal),
        ("does", _does(fitted)),
        *([] if mixture is None else [("mixes", mixture_words(mixture.weights.tolist()))]),
        *([] if decision is None else [("decides", _decides(decision, metadata["classes"]))]),
        ("saved by", ", ".join(f"{name} {version}" for name, version in versions)),
        ("format", str(metadata["format_version"])),
        ("digest", metadata["digest"]),
    ]


def _cost(fitted: FittedModel) -> str:
    """How long a row takes, measured on rows of all kinds."""
    m = len(fitted.classes_)
    proba = np.random.default_rng(0).dirichlet(np.ones(m), size=_N_TIMED)
    rows = np.log(proba) if fitted.input == "logits" else proba
    seconds = []
    for _ in range(3):  # the first pays for what is prepared once
        start = time.perf_counter()
        unnamed(fitted).transform(rows)
        seconds.append(time.perf_counter() - start)
    return f"{1e6 * min(seconds) / _N_TIMED:.2g} microseconds per row on this machine"


def _decides(decision: Decision, classes: list[Any]) -> str:
    """The rule, and its numbers by class."""
    if decision.on_input:
        return "as the predictions came"
    if decision.is_argmax and decision.least:
        return (
            f"the most probable class, from a probability of {decision.least:.3g} on; other rows "
            "are left to a person"
        )
    if decision.is_argmax:
        return "the most probable class"
    names = [name_cell(name) for name in classes]
    if decision.kind != "costs":
        return f"{RULES[decision.kind]}: {_by_name(names, decision.values)}"
    outcomes = [*names, "a person"][: decision.values.shape[1]]
    rows = zip(names[:_SHOWN], decision.values[:_SHOWN], strict=True)
    lines = [f"true {name}: {_by_name(outcomes, costs)}" for name, costs in rows]
    return "\n".join([RULES["costs"], *lines])


def _by_name(names: list[str], values: Any) -> str:
    """Numbers beside their names, as many as are shown."""
    shown = zip(names[:_SHOWN], values[:_SHOWN], strict=True)
    more = ", ..." if len(names) > _SHOWN else ""
    return ", ".join(f"{name} {value:.3g}" for name, value in shown) + more


def _classes(classes: list[Any]) -> str:
    names = ", ".join(name_cell(name) for name in classes[:_SHOWN])
    more = ", ..." if len(classes) > _SHOWN else ""
    return f"{plural(len(classes), 'class', 'classes')}: {names}{more}"


def _does(fitted: FittedModel) -> str:
    """What the model does to predictions, in words."""
    if hasattr(fitted, "family_"):
        return model_words(fitted)
    inner = chosen_model(fitted)
    if "alpha" in inner.get_params():
        return setting_words(inner.get_params())
    summary = str(inspect.getdoc(type(inner))).splitlines()[0]
    return summary[0].lower() + summary[1:].rstrip(".")


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

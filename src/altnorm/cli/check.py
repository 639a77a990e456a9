"""``altnorm check``, the whole way from predictions to an answer, and ``altnorm demo`` of it."""

from __future__ import annotations

import webbrowser
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import numpy as np
from rich.padding import Padding
from rich.text import Text

from altnorm import Adjuster, load
from altnorm._base.errors import InputError
from altnorm._base.files import check_output
from altnorm.adjuster.applied import does
from altnorm.cli import _options as options
from altnorm.cli._journey import Journey, show_files, show_journey, travel
from altnorm.cli._screen import (
    by_class,
    changed_table,
    head,
    in_options,
    out,
    print_json,
    score_table,
    show_cautions,
    show_verdict,
)
from altnorm.evidence.verdict import outcome
from altnorm.io.columns import Layout
from altnorm.io.datasets import Demo, load_demo
from altnorm.io.predictions import Predictions, read_predictions, read_texts
from altnorm.method.estimator import ProbabilityTransformer
from altnorm.method.explanation import ChangedRow
from altnorm.report import check_page, write_report
from altnorm.report.evaluation import Evaluation, check_kind, evaluate

MODEL = Path("altnorm-model.safetensors")
REPORT = Path("altnorm-report.html")
N_SHOWN = 5
"""Fixed and broken rows that are shown, each."""


@options.grouped
def check(
    validation: Annotated[
        Path,
        options.argument(
            "VAL", "Predictions on validation data, with labels; with --model, new predictions."
        ),
    ],
    test: Annotated[
        Path | None,
        options.argument(
            "TEST", "Predictions on test data, with labels. Without, VAL is cross-validated."
        ),
    ] = None,
    model: Annotated[
        Path | None,
        options.option(
            "MODEL",
            "Fit nothing: judge this model on new predictions or, without labels, say whether "
            "they look like those it was tuned on.",
        ),
    ] = None,
    output: Annotated[Path, options.option("FILE", "Model to write.", "--output", "-o")] = MODEL,
    report: Annotated[Path, options.option("FILE", "Report to write.")] = REPORT,
    open_page: options.OpenPage = False,
    *,
    tuning: options.Tuning,
    labels: options.LabelColumns,
    group: options.Group = None,
    columns: options.ClassColumns,
    logits: options.Logits = False,
    text: Annotated[
        str | None, options.option("NAME", "Column to show beside the changed rows of the report.")
    ] = None,
    explain: Annotated[bool, options.flag("--explain", "Say what the numbers mean.")] = False,
    force: options.Force = False,
    strict: options.Strict = False,
    json: options.Json = False,
) -> int:
    """Tune, judge, compare with other methods, and write a model and a report.

    Without TEST every validation row is judged by a model that was fitted without it. With --model
    an existing model is judged on new predictions, and nothing is fitted.
    """
    # Tuning takes a while: what would be refused at its end is refused now.
    check_page(report)
    check_output(report, force=force)
    if model is None:
        check_output(output, force=force)
        layout = columns.layout(labels, logits=logits, group=group, gaps=True)
        journey = _fit(tuning, layout, validation, test, text, output, report, force)
        helps = _show(journey, json=json, explain=explain)
    else:
        given = {"TEST": test is not None, "--output": output != MODEL, "--logits": logits}
        _check_nothing_fitted(tuning, given | {"--explain": explain})
        fitted = load(model)
        layout = columns.layout(labels, logits=fitted.input == "logits", group=group)
        new = read_predictions(validation, layout, classes=fitted.classes_)
        if new.labels is None:
            helps = _watch(fitted, new, json=json)
        else:
            with by_class(new.classes):
                result = evaluate(fitted, new, scoring=tuning.scoring)
            texts, scoring = _texts(text, validation, layout), tuning.scoring
            write_report(fitted, new, report, texts=texts, scoring=scoring, force=force)
            helps = _show_judged(fitted, new, result, report, json=json)
    if open_page and report.exists():
        webbrowser.open(report.absolute().as_uri())
    return int(strict and not helps)


def _fit(
    tuning: options.Tuning,
    layout: Layout,
    validation: Path,
    test: Path | None,
    text: str | None,
    model: Path,
    report: Path,
    force: bool,
) -> Journey:
    """Read the files, and go the whole way."""
    val, tested = read_predictions(validation, layout), None
    if test is not None:
        layout = replace(layout, logits=val.input == "logits", gaps=False)
        tested = read_predictions(test, layout, classes=val.classes)
    return travel(
        Adjuster(**tuning.settings(val)),
        val,
        tested,
        model=model,
        report=report,
        texts=_texts(text, test or validation, layout),
        force=force,
    )


def _texts(name: str | None, path: Path, layout: Layout) -> list[str] | None:
    return None if name is None else read_texts(path, name, layout)


def _check_nothing_fitted(tuning: options.Tuning, given: dict[str, bool]) -> None:
    """Raise if there is something that only a fit could use."""
    given = {
        **given,
        "--costs": tuning.costs is not None,
        "--insist": tuning.insist,
        "--multilabel": tuning.multilabel is not None,
    }
    useless = [name for name, is_given in given.items() if is_given]
    if useless:
        raise InputError(
            "With --model nothing is fitted: it takes one file of new predictions",
            f"{useless[0]} is given, too",
            f"Leave out {useless[0]}, or --model.",
        )


def _show(journey: Journey, *, json: bool, explain: bool) -> bool:
    """Tell the journey; return whether the verdict is yes, and no test rows contradict it."""
    if json:
        print_json(journey.to_dict())
    else:
        show_journey(journey, explain=explain)
        show_files(journey)
        if does(journey.tuned) != "changes nothing":
            out.print(f"Next:   altnorm apply {journey.model} NEW -o OUT", soft_wrap=True)
    worse = journey.result is not None and outcome(journey.result.verdict) == "worse"
    return journey.tuned.verdict_.adopted and not worse


def _watch(fitted: ProbabilityTransformer, predictions: Predictions, *, json: bool) -> bool:
    """Say whether unlabelled rows look like those that the model was tuned on."""
    check_kind(predictions, fitted)
    drift = fitted.drift(predictions.proba)
    if json:
        print_json({"drift": asdict(drift)})
    else:
        out.print(in_options(str(drift)))
        out.print("Only labels can say whether it helps here: `altnorm ask` chooses rows to label.")
    return drift.advice != "stop"


def _show_judged(
    fitted: ProbabilityTransformer,
    predictions: Predictions,
    result: Evaluation,
    report: Path,
    *,
    json: bool,
) -> bool:
    """Tell what a model does to labelled rows; return whether it helps."""
    if json:
        print_json({**result.to_dict(), "report": str(report)})
        return result.verdict.adopted
    show_verdict(result.verdict)
    out.print(score_table([result.verdict, *result.scores]))
    for rows, what in ((result.fixed, "fixed"), (result.broken, "broken")):
        changed = result.changed(rows)[:N_SHOWN]
        if changed:
            lines = [(f"{one.row:,}", _truth(predictions, one.row), one) for one in changed]
            shown = f", the first {len(changed)}" if len(changed) < rows.size else ""
            out.print(changed_table(lines, f"{rows.size:,} rows {what}{shown}"))
    tuned = getattr(fitted, "verdict_", None)
    show_cautions(() if tuned is None else tuned.cautions, " from tuning")
    out.print(f"Report: {report.absolute()}", soft_wrap=True)
    return result.verdict.adopted


def _truth(predictions: Predictions, row: int) -> str:
    """The label of a row, or its labels."""
    label = np.asarray(predictions.labels)[row]
    return ", ".join(map(str, predictions.kind.named(label, predictions.classes)))


def demo(
    output: Annotated[
        Path, options.option("FILE", "Report to write; the model goes beside it.", "--output", "-o")
    ] = Path("altnorm-demo.html"),
    open_page: options.OpenPage = False,
    jobs: options.Jobs = -1,
    json: options.Json = False,
) -> None:
    """Run `check` on 7,500 real queries to an assistant that come with the package."""
    check_page(output)
    data = load_demo()
    journey = travel(
        Adjuster(n_jobs=jobs),
        data.validation,
        data.test,
        model=output.with_suffix(".safetensors"),
        report=output,
        texts=data.queries,
        title="Demo: intents of queries to an assistant",
        force=True,
    )
    if json:
        print_json(journey.to_dict())
    else:
        head("The classifier")
        classes = data.validation.proba.shape[1]
        out.print(
            f"Naive Bayes on word counts says which of {classes} intents a query to an assistant "
            "has. It was trained on imbalanced data (CLINC150, Larson et al. 2019, CC BY 3.0)."
        )
        show_journey(journey, explain=True)
        if journey.result is not None:
            _show_rows(data, journey.result)
        show_files(journey)
        out.print("Next:   altnorm check val.parquet test.parquet --label NAME")
    if open_page:
        webbrowser.open(output.absolute().as_uri())


def _show_rows(data: Demo, result: Evaluation) -> None:
    head("Why? Three rows that were fixed and one that was broken")
    fixed = _telling(result.changed(result.fixed), 3)
    broken = _telling(result.changed(result.broken), 1)
    for row, mark, style in (
        *((row, "fixed", "green") for row in fixed),
        *((row, "broken", "red") for row in broken),
    ):
        out.print(Text(f"{mark:>6}", style=style), Text(f"“{data.queries[row.row]}”"))
        out.print(Padding(Text(str(row), style="dim"), (0, 0, 0, 7)))


def _telling(rows: list[ChangedRow], n: int) -> list[ChangedRow]:
    """The clearest changes, no class twice."""
    chosen: list[ChangedRow] = []
    for row in sorted(rows, key=lambda row: -row.proba_after):
        seen = {name for one in chosen for name in (one.before, one.after)}
        if not seen & {row.before, row.after}:
            chosen.append(row)
    return chosen[:n]

"""``altnorm check``: the whole way from predictions to an answer."""

from __future__ import annotations

import webbrowser
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from altnorm import Adjuster
from altnorm._files import check_output
from altnorm.cli import _options as options
from altnorm.cli._fit import read_groups
from altnorm.cli._journey import Files, show_files, show_journey, travel
from altnorm.cli._screen import errors, out, print_json
from altnorm.predictions import read_predictions, read_texts
from altnorm.report import check_page
from altnorm.tuning.summary import does

EXAMPLE = "altnorm check val.parquet test.parquet --label intent"


def check(
    validation: options.Validation,
    test: Annotated[
        Path | None,
        typer.Argument(
            metavar="[TEST]",
            help="Predictions on test data, with labels; without them the evidence is that of "
            "cross-fitting.",
            show_default=False,
        ),
    ] = None,
    model: Annotated[Path, typer.Option("--model", metavar="FILE", help="Model to write.")] = Path(
        "altnorm-model.safetensors"
    ),
    report: Annotated[
        Path, typer.Option("--report", metavar="FILE", help="Report to write.")
    ] = Path("altnorm-report.html"),
    open_page: Annotated[
        bool, typer.Option("--open", metavar="", help="Open the report in a browser.")
    ] = False,
    scoring: options.Scoring = None,
    multilabel: options.MultiLabel = None,
    label: options.Label = None,
    label_prefix: options.LabelPrefix = None,
    group: options.Group = None,
    prefix: options.Prefix = "",
    other: options.Other = None,
    logits: options.Logits = False,
    format: options.Format = None,
    usual_options: options.UsualOptions = False,
    text: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Column of TEST to show with the changed rows.",
            show_default=False,
        ),
    ] = None,
    significance: options.Significance = 0.05,
    seed: options.Seed = 0,
    jobs: options.Jobs = -1,
    force: options.Force = False,
    strict: options.Strict = False,
    json: options.Json = False,
) -> int:
    """Tune, judge, compare with other methods, and write a model and a report.

    Without TEST every validation row is judged by fits that have not seen it.
    """
    files = Files(model, report)
    check_page(report)
    for path in (model, report):
        check_output(path, force=force)
    shown = validation if test is None else test
    others = [*(other or ()), *([group] if group else ())]
    layout = options.layout(
        label, label_prefix, prefix, others, logits, format, usual_options, gaps=True
    )
    val = read_predictions(validation, layout)
    tested = None
    if test is not None:
        is_logits = val.input == "logits"
        layout = replace(layout, other=tuple(other or ()), logits=is_logits, gaps=False)
        tested = read_predictions(test, layout, classes=val.classes)
    estimator = Adjuster(
        scoring=scoring,
        multilabel=multilabel,
        significance=significance,
        input=val.input,
        random_state=seed,
        n_jobs=jobs,
        verbose=int(errors.is_terminal),
    )
    journey = travel(
        estimator,
        val,
        tested,
        files,
        groups=read_groups(validation, group, len(val.proba), layout),
        texts=None if text is None else read_texts(shown, text, layout),
        force=force,
    )
    if json:
        print_json({**journey.to_dict(), "model": str(model), "report": str(report)})
    else:
        show_journey(journey)
        show_files(journey, files)
        if does(journey.tuned) != "changes nothing":
            out.print(f"Next:   altnorm apply {model} NEW -o OUT", soft_wrap=True)
    if open_page:
        webbrowser.open(report.absolute().as_uri())
    return int(strict and not journey.tuned.verdict_.adopted)

"""``altnorm check``: the whole way from predictions to an answer."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from altnorm import Adjuster
from altnorm._base.files import check_output
from altnorm.adjuster.summary import does
from altnorm.cli import _options as options
from altnorm.cli._fit import read_groups
from altnorm.cli._journey import Files, Journey, show_files, show_journey, travel
from altnorm.cli._screen import out, print_json
from altnorm.io.predictions import read_predictions, read_texts
from altnorm.report import check_page

EXAMPLE = "altnorm check val.parquet test.parquet --label intent"


@options.grouped
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
    *,
    tuning: options.Tuning,
    labels: options.LabelColumns,
    group: options.Group = None,
    columns: options.ClassColumns,
    logits: options.Logits = False,
    text: options.Text = None,
    force: options.Force = False,
    strict: options.Strict = False,
    json: options.Json = False,
) -> int:
    """Tune, judge, compare with other methods, and write a model and a report.

    Without TEST every validation row is judged by fits that have not seen it.
    """
    files = Files(model, report)
    # Tuning takes a while: what would be refused at its end is refused now.
    check_page(report)
    for path in (model, report):
        check_output(path, force=force)
    shown = validation if test is None else test
    layout = columns.layout(labels, logits=logits, group=group, gaps=True)
    val = read_predictions(validation, layout)
    tested = None
    if test is not None:
        layout = columns.layout(labels, logits=val.input == "logits")
        tested = read_predictions(test, layout, classes=val.classes)
    journey = travel(
        Adjuster(**tuning.settings(), input=val.input),
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
        _show(journey, files)
    if open_page:
        webbrowser.open(report.absolute().as_uri())
    return int(strict and not journey.tuned.verdict_.adopted)


def _show(journey: Journey, files: Files) -> None:
    show_journey(journey)
    show_files(journey, files)
    if does(journey.tuned) != "changes nothing":
        out.print(f"Next:   altnorm apply {files.model} NEW -o OUT", soft_wrap=True)

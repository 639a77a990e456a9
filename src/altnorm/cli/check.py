"""``altnorm check``: the whole way from predictions to an answer."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from altnorm import Adjuster, load
from altnorm._base.errors import InputError
from altnorm._base.files import check_output
from altnorm.adjuster.summary import does
from altnorm.cli import _options as options
from altnorm.cli._existing import Existing
from altnorm.cli._journey import Files, Journey, travel
from altnorm.cli._screen import out, print_json
from altnorm.cli._story import show_files, show_journey
from altnorm.evidence.sentences import outcome
from altnorm.io.columns import Layout
from altnorm.io.predictions import read_predictions, read_texts
from altnorm.report import check_page

EXAMPLE = "altnorm check val.parquet test.parquet --label intent"
MODEL = Path("altnorm-model.safetensors")


@options.grouped
def check(
    validation: Annotated[
        Path,
        typer.Argument(
            metavar="VAL",
            help="Predictions on validation data, with labels; with --model new predictions.",
        ),
    ],
    test: Annotated[
        Path | None,
        typer.Argument(
            metavar="[TEST]",
            help="Predictions on test data, with labels; without them the evidence is that of "
            "cross-fitting.",
            show_default=False,
        ),
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option(
            "--model",
            metavar="MODEL",
            help="Fit nothing: judge this model on new predictions or, without labels, say "
            "whether they look like those it was tuned on.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Model to write.")
    ] = MODEL,
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
    explain: Annotated[
        bool, typer.Option("--explain", metavar="", help="Say what the numbers mean.")
    ] = False,
    force: options.Force = False,
    strict: options.Strict = False,
    json: options.Json = False,
) -> int:
    """Tune, judge, compare with other methods, and write a model and a report.

    Without TEST every validation row is judged by fits that have not seen it. With --model an
    existing model is judged on new predictions, and nothing is fitted.
    """
    # Tuning takes a while: what would be refused at its end is refused now.
    check_page(report)
    check_output(report, force=force)
    asked = _Asked(tuning, labels, columns, group, text, logits, explain, force, json)
    if model is None:
        helps = asked.fit(validation, test, Files(output, report))
    else:
        given = {"TEST": test is not None, "--output": output != MODEL}
        helps = asked.judge(load(model), validation, report, given)
    if open_page and report.exists():
        webbrowser.open(report.absolute().as_uri())
    return int(strict and not helps)


class _Asked(NamedTuple):
    """The options that say how."""

    tuning: options.Tuning
    labels: options.LabelColumns
    columns: options.ClassColumns
    group: str | None
    text: str | None
    logits: bool
    explain: bool
    force: bool
    json: bool

    def fit(self, validation: Path, test: Path | None, files: Files) -> bool:
        """Go the whole way; return whether the verdict is yes, and no test rows contradict it."""
        check_output(files.model, force=self.force)
        layout = self.columns.layout(self.labels, logits=self.logits, group=self.group, gaps=True)
        val = read_predictions(validation, layout)
        tested = None
        if test is not None:
            is_logits = val.input == "logits"
            layout = self.columns.layout(self.labels, logits=is_logits, group=self.group)
            tested = read_predictions(test, layout, classes=val.classes)
        journey = travel(
            Adjuster(**self.tuning.settings(val)),
            val,
            tested,
            files,
            texts=self._texts(validation if test is None else test, layout),
            force=self.force,
        )
        if self.json:
            record = {"model": str(files.model), "report": str(files.report)}
            print_json({**journey.to_dict(), **record})
        else:
            self._show(journey, files)
        worse = journey.result is not None and outcome(journey.result.verdict) == "worse"
        return journey.tuned.verdict_.adopted and not worse

    def judge(self, fitted: Any, new: Path, report: Path, given: dict[str, bool]) -> bool:
        """Judge an existing model; return whether it helps or, without labels, still suits."""
        _check_nothing_fitted(
            given
            | {"--logits": self.logits}
            | {"--costs": self.tuning.costs is not None, "--insist": self.tuning.insist}
            | {"--multilabel": self.tuning.multilabel is not None, "--explain": self.explain}
        )
        is_logits = fitted.input == "logits"
        layout = self.columns.layout(self.labels, logits=is_logits, group=self.group)
        predictions = read_predictions(new, layout, classes=fitted.classes_)
        existing = Existing(fitted, predictions, self.tuning.scoring)
        if predictions.labels is None:
            return existing.watch(json=self.json)
        texts = self._texts(new, layout)
        return existing.judge(report, texts, force=self.force, json=self.json)

    def _texts(self, path: Path, layout: Layout) -> list[str] | None:
        return None if self.text is None else read_texts(path, self.text, layout)

    def _show(self, journey: Journey, files: Files) -> None:
        show_journey(journey, explain=self.explain)
        show_files(journey, files)
        if does(journey.tuned) != "changes nothing":
            out.print(f"Next:   altnorm apply {files.model} NEW -o OUT", soft_wrap=True)


def _check_nothing_fitted(given: dict[str, bool]) -> None:
    """Raise if there is something that only a fit could use."""
    useless = [name for name, is_given in given.items() if is_given]
    if useless:
        raise InputError(
            "With --model nothing is fitted: it takes one file of new predictions",
            f"{useless[0]} is given, too",
            f"Leave out {useless[0]}, or --model.",
            value=useless[0],
            code="option",
        )

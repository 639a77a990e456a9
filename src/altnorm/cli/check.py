"""``altnorm check``: the whole way from predictions to an answer."""

from __future__ import annotations

import webbrowser
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import typer

from altnorm import Adjuster, load
from altnorm._base.errors import InputError
from altnorm._base.files import check_output
from altnorm.adjuster.summary import does
from altnorm.cli import _options as options
from altnorm.cli._journey import Journey, travel
from altnorm.cli._screen import (
    changed_table,
    in_options,
    out,
    print_json,
    score_table,
    show_cautions,
    show_verdict,
)
from altnorm.cli._story import show_files, show_journey
from altnorm.evidence.sentences import outcome
from altnorm.io.columns import Layout
from altnorm.io.predictions import Predictions, read_predictions, read_texts
from altnorm.method.estimator import ProbabilityTransformer
from altnorm.report import check_page, write_report
from altnorm.report.evaluation import Evaluation, check_kind, evaluate

EXAMPLE = "altnorm check val.parquet test.parquet --label intent"
MODEL = Path("altnorm-model.safetensors")
N_SHOWN = 5
"""Fixed and broken rows that are shown, each."""


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
            metavar="TEST",
            help="Predictions on test data, with labels; without them the evidence is that of "
            "cross-fitting.",
        ),
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option(
            metavar="MODEL",
            help="Fit nothing: judge this model on new predictions or, without labels, say "
            "whether they look like those it was tuned on.",
        ),
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Model to write.")
    ] = MODEL,
    report: Annotated[Path, typer.Option(metavar="FILE", help="Report to write.")] = Path(
        "altnorm-report.html"
    ),
    open_page: options.OpenPage = False,
    *,
    tuning: options.Tuning,
    labels: options.LabelColumns,
    group: options.Group = None,
    columns: options.ClassColumns,
    logits: options.Logits = False,
    text: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Column of the file judged to show with the changed rows."
        ),
    ] = None,
    explain: Annotated[bool, options.flag("--explain", "Say what the numbers mean.")] = False,
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
        helps = asked.fit(validation, test, output, report)
    else:
        asked.check_nothing_fitted({"TEST": test is not None, "--output": output != MODEL})
        helps = asked.judge(load(model), validation, report)
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

    def fit(self, validation: Path, test: Path | None, model: Path, report: Path) -> bool:
        """Go the whole way; return whether the verdict is yes, and no test rows contradict it."""
        check_output(model, force=self.force)
        layout = self.columns.layout(self.labels, logits=self.logits, group=self.group, gaps=True)
        val = read_predictions(validation, layout)
        tested = None
        if test is not None:
            layout = replace(layout, logits=val.input == "logits", gaps=False)
            tested = read_predictions(test, layout, classes=val.classes)
        journey = travel(
            Adjuster(**self.tuning.settings(val)),
            val,
            tested,
            model=model,
            report=report,
            texts=self._texts(test or validation, layout),
            force=self.force,
        )
        if self.json:
            print_json(journey.to_dict())
        else:
            _show(journey, explain=self.explain)
        worse = journey.result is not None and outcome(journey.result.verdict) == "worse"
        return journey.tuned.verdict_.adopted and not worse

    def check_nothing_fitted(self, given: dict[str, bool]) -> None:
        """Raise if there is something that only a fit could use."""
        given = {
            **given,
            "--logits": self.logits,
            "--costs": self.tuning.costs is not None,
            "--insist": self.tuning.insist,
            "--multilabel": self.tuning.multilabel is not None,
            "--explain": self.explain,
        }
        useless = [name for name, is_given in given.items() if is_given]
        if useless:
            raise InputError(
                "With --model nothing is fitted: it takes one file of new predictions",
                f"{useless[0]} is given, too",
                f"Leave out {useless[0]}, or --model.",
                value=useless[0],
                code="option",
            )

    def judge(self, fitted: ProbabilityTransformer, new: Path, report: Path) -> bool:
        """Judge an existing model; return whether it helps or, without labels, still suits."""
        is_logits = fitted.input == "logits"
        layout = self.columns.layout(self.labels, logits=is_logits, group=self.group)
        predictions = read_predictions(new, layout, classes=fitted.classes_)
        if predictions.labels is None:
            return _watch(fitted, predictions, json=self.json)
        scoring, texts = self.tuning.scoring, self._texts(new, layout)
        result = evaluate(fitted, predictions, scoring=scoring)
        write_report(fitted, predictions, report, texts=texts, scoring=scoring, force=self.force)
        if self.json:
            print_json({**result.to_dict(), "report": str(report)})
        else:
            _show_judged(fitted, predictions, result)
            out.print(f"Report: {report.absolute()}", soft_wrap=True)
        return result.verdict.adopted

    def _texts(self, path: Path, layout: Layout) -> list[str] | None:
        return None if self.text is None else read_texts(path, self.text, layout)


def _show(journey: Journey, *, explain: bool) -> None:
    show_journey(journey, explain=explain)
    show_files(journey)
    if does(journey.tuned) != "changes nothing":
        out.print(f"Next:   altnorm apply {journey.model} NEW -o OUT", soft_wrap=True)


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
    fitted: ProbabilityTransformer, predictions: Predictions, result: Evaluation
) -> None:
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


def _truth(predictions: Predictions, row: int) -> str:
    """The label of a row, or its labels."""
    label = np.asarray(predictions.labels)[row]
    return ", ".join(map(str, predictions.kind.named(label, predictions.classes)))

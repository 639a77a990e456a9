"""The whole way from validation predictions to an answer: tune, judge, compare, report."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.text import Text
from sklearn.frozen import FrozenEstimator

from altnorm._base.words import setting_words
from altnorm.adjuster.comparison import Comparison, default_methods
from altnorm.adjuster.estimator import BaseAdjuster
from altnorm.adjuster.summary import does
from altnorm.cli._fit import fit_named
from altnorm.cli._screen import out, score_table, show_cautions, show_verdict
from altnorm.cli.compare import compare_files, comparison_table
from altnorm.evidence.sentences import calibration_words, change_words, family_words, rise_words
from altnorm.io.predictions import Predictions
from altnorm.report import write_report
from altnorm.report.evaluation import Evaluation, evaluate, tuned_for

OURS = "altnorm"
"""What the tuned model is called among the methods."""

MEANINGS = {
    "accuracy": "Accuracy is the share of rows whose class is right; in tuning its gain allows for "
    "the choice among many settings, so it is a little less than fixed minus broken rows. ",
    "f1_micro": "Micro-F1 weighs labels found against labels missed and labels given wrongly. ",
}
MEANING = (
    "Log loss is the mean surprise at the true class: 0 for one that was certain, 0.7 for a coin "
    "toss. The 95% interval says how far chance may have moved a change; p, how often chance alone "
    "would bring one as large."
)


@dataclass(frozen=True)
class Files:
    """What is written."""

    model: Path
    report: Path


@dataclass(frozen=True, eq=False)
class Journey:
    """What was found on the way.

    Attributes
    ----------
    tuned : Adjuster or AlternatingNormalizerCV
        The model.
    validation, test : Predictions
        What it was tuned on, and what it was judged on, if anything.
    result : Evaluation or None
        Before and after on the labels of `test`.
    compared : Comparison or None
        The model and its peers on `test`.
    """

    tuned: Any
    validation: Predictions
    test: Predictions | None
    result: Evaluation | None
    compared: Comparison | None

    def to_dict(self) -> dict[str, Any]:
        """Return what JSON can hold."""
        tuned, calibration = self.tuned, self.tuned.calibration_
        return {
            "validation": tuned.verdict_.to_dict(),
            "family": tuned.family_,
            "families": {name: one.to_dict() for name, one in tuned.families_.items()},
            "calibration": None if calibration is None else calibration.to_dict(),
            "best_params": tuned.best_params_,
            "test": None if self.result is None else self.result.to_dict(),
            "comparison": None if self.compared is None else self.compared.to_dicts(),
        }


def travel(
    estimator: BaseAdjuster,
    validation: Predictions,
    test: Predictions | None,
    files: Files,
    *,
    groups: Any = None,
    texts: Sequence[str] | None = None,
    title: str | None = None,
    force: bool = False,
) -> Journey:
    """Tune once, judge, compare with the peers, and write model and report.

    Without test predictions the evidence is the cross-fitted one, and the report is about the
    validation predictions, whose labels it must not look at again.
    """
    tuned = fit_named(estimator, validation, groups=groups)
    # Rows without labels served as reference in tuning; peers can make no use of them.
    labelled = validation.labelled()
    result = compared = None
    if test is not None and test.labels is not None:
        result = evaluate(tuned, test)
        compared = compare_tuned(tuned, labelled, test)
    # The report takes seconds: an interrupt meanwhile should leave nothing behind.
    write_report(
        tuned,
        validation if test is None else test,
        files.report,
        comparison=compared,
        validation=labelled,
        texts=texts,
        title=title,
        seen=test is None,
        force=force,
    )
    tuned.save(files.model, force=force)
    return Journey(tuned, validation, test, result, compared)


def compare_tuned(
    tuned: Any, validation: Predictions, test: Predictions, scoring: Any = None
) -> Comparison:
    """Compare a fitted model with its peers, which alone are fitted here."""
    methods = {
        name: method
        for name, method in default_methods(validation.multilabel).items()
        if not isinstance(method, BaseAdjuster)
    }
    ours = copy(tuned)
    ours.input = "proba"  # what all methods are given here
    methods[OURS] = FrozenEstimator(ours)
    return compare_files(
        validation, test, methods, tuned_for(tuned) if scoring is None else scoring
    )


def show_journey(journey: Journey) -> None:
    """Print what was found, and what the numbers mean."""
    tuned = journey.tuned
    rows = f"{journey.validation.has_label.sum():,}"
    head(f"Should I use it? Tuned on {rows} validation rows, each judged by fits without it")
    show_verdict(tuned.verdict_)
    start = "It applies" if tuned.verdict_.adopted else "The best candidate, not applied"
    out.print(f"{start}: {setting_words(tuned.best_params_)}.")
    head("What was tried?")
    for name, verdict in tuned.families_.items():
        out.print(family_words(name, verdict, chosen=name == tuned.family_))
    if tuned.calibration_ is not None:
        out.print(calibration_words(tuned.calibration_))
    if journey.result is not None:
        _show_result(journey.result)
    if journey.compared is not None:
        head("How does it compare? On the same test rows")
        out.print(comparison_table(journey.compared))
        # Where the model does not help, its user should know what does.
        if journey.result is None or not journey.result.verdict.adopted:
            out.print(journey.compared.alternative())
    head("What do the numbers mean?")
    out.print(MEANINGS.get(tuned.verdict_.scoring, "") + MEANING)


def _show_result(result: Evaluation) -> None:
    verdict = result.verdict
    head(f"What changes? Before and after on {verdict.n_rows:,} test rows that it has not seen")
    out.print(f"On the test rows {rise_words(verdict)}; {change_words(verdict)}.")
    show_cautions(verdict.cautions)
    out.print(score_table([verdict, *result.scores]))


def show_files(journey: Journey, files: Files) -> None:
    """Print where everything is, and what to do next."""
    head("Where is it?")
    out.print(f"Model:  {files.model.absolute()} ({does(journey.tuned)})", soft_wrap=True)
    out.print(f"Report: {files.report.absolute()}", soft_wrap=True)


def head(text: str) -> None:
    """Print a heading."""
    out.print()
    out.print(Text(text, style="bold"))

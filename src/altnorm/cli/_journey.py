"""The whole way from validation predictions to an answer: tune, judge, compare, report, tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table
from rich.text import Text
from sklearn.frozen import FrozenEstimator

from altnorm import Adjuster, compare
from altnorm._base.errors import InputError
from altnorm._base.words import DO_NOTHING, FAMILY_NAMES
from altnorm.adjuster.applied import does
from altnorm.adjuster.comparison import Comparison, default_methods
from altnorm.cli._screen import (
    by_class,
    errors,
    gain_style,
    head,
    new_table,
    out,
    score_table,
    show_cautions,
    show_verdict,
)
from altnorm.decisions import Decision, resolve_purpose
from altnorm.evidence.verdict import Verdict, change_words, outcome, rise_words, score_figures
from altnorm.io.predictions import Predictions
from altnorm.method.estimator import unnamed
from altnorm.method.kinds import kind_of
from altnorm.report import write_report
from altnorm.report.evaluation import Evaluation, evaluate

OURS = "altnorm"
"""What the tuned model is called among the methods."""

# What to say where the labels are of this kind, and the estimator is for the other one.
_OTHER_KIND = {
    "multi-label": (
        "Without --multilabel each row needs one class",
        "Pass --multilabel labelwise (each label its own problem) or --multilabel pairs (the "
        "paper's way).",
    ),
    "single-label": (
        "For --multilabel each label needs a 0/1 column",
        "Pass --label-prefix, or leave --multilabel out.",
    ),
}


MEANINGS = {
    "accuracy": "Accuracy is the share of rows whose class is right. ",
    "balanced_accuracy": "Balanced accuracy is the share of rows whose class is right, taken for "
    "each class and averaged over the classes. ",
    "f1_micro": "Micro-F1 weighs labels found against labels missed and labels given wrongly. ",
    "neg_mean_cost": "The mean cost is what a row's decision costs on average, by your table. ",
}
MEANING = (
    "Log loss is the mean surprise at the true class: 0 for one that was certain, 0.7 for a coin "
    "toss. The 95% interval says how far chance may have moved a change; p, how often chance alone "
    "would bring one as large."
)

RULES = {
    "weights": "the class of largest weighted probability",
    "costs": "the decision of least expected cost",
    "thresholds": "every label whose probability is above its threshold",
}


@dataclass(frozen=True, eq=False)
class Journey:
    """What was found on the way, and where it was written."""

    tuned: Adjuster
    validation: Predictions
    result: Evaluation | None  # on the labels of test predictions
    compared: Comparison | None  # with the peers, on the same
    model: Path
    report: Path

    def to_dict(self) -> dict[str, Any]:
        """Return what JSON can hold."""
        return {
            "validation": self.tuned.verdict_.to_dict(),
            **tuned_record(self.tuned),
            "test": None if self.result is None else self.result.to_dict(),
            "comparison": None if self.compared is None else self.compared.to_dicts(),
            "model": str(self.model),
            "report": str(self.report),
        }


def tuned_record(tuned: Adjuster) -> dict[str, Any]:
    """What tuning found and what is applied, as JSON can hold it."""
    return {
        "family": tuned.family_,
        "families": {name: one.to_dict() for name, one in tuned.families_.items()},
        "calibration": tuned.calibration_.to_dict(),
        "applied": {
            "model": type(tuned.model_).__name__,
            "temperature": tuned.temperature_,
            "decision": tuned.decision_.kind,
            "values": tuned.decision_.values.tolist(),
        },
    }


def travel(
    estimator: Adjuster,
    validation: Predictions,
    test: Predictions | None,
    *,
    model: Path,
    report: Path,
    texts: Sequence[str] | None = None,
    title: str | None = None,
    force: bool = False,
) -> Journey:
    """Tune once, judge, compare with the peers, and write report and model.

    Without test predictions the evidence is the cross-fitted one, and the report is about the
    validation predictions, whose labels it must not look at again.
    """
    tuned = fit_named(estimator, validation)
    # Rows without labels served as reference in tuning; peers can make no use of them.
    labelled = validation.labelled()
    result = compared = None
    if test is not None and test.labels is not None:
        result = evaluate(tuned, test)
        compared = _compare(tuned, labelled, test)
    # The report takes seconds: an interrupt meanwhile should leave nothing behind.
    write_report(
        tuned,
        validation if test is None else test,
        report,
        comparison=compared,
        validation=labelled,
        texts=texts,
        title=title,
        seen=test is None,
        force=force,
    )
    save_model(tuned, model, force=force)
    return Journey(tuned, validation, result, compared, model, report)


def save_model(tuned: Adjuster, path: Path, *, force: bool) -> None:
    """Write a model without the number of threads, which is this machine's and not the model's."""
    kept = copy(tuned)
    kept.n_jobs = None
    kept.save(path, force=force)


def _compare(tuned: Adjuster, validation: Predictions, test: Predictions) -> Comparison:
    """Compare a fitted model with its peers, which alone are fitted here."""
    purpose = resolve_purpose(tuned.scoring, tuned.costs, kind_of(tuned), tuned.classes_)
    return compare(
        validation.probabilities(),
        validation.codes,
        test.probabilities(),
        test.codes,
        methods=_methods(tuned, multilabel=validation.multilabel),
        scoring=purpose.score,
        test_groups=test.groups,
        verbose=int(errors.is_terminal),
    )


def _methods(tuned: Adjuster, *, multilabel: bool) -> Mapping[str, Any]:
    methods = {
        name: method.set_params(n_jobs=tuned.n_jobs) if "n_jobs" in method.get_params() else method
        for name, method in default_methods(multilabel).items()
        if not isinstance(method, Adjuster)
    }
    ours = copy(tuned)
    ours.input = "proba"  # what all methods are given here
    # Doing nothing comes first, and what this is about second.
    return {DO_NOTHING: methods.pop(DO_NOTHING), OURS: FrozenEstimator(ours), **methods}


@dataclass(frozen=True)
class NamedColumns:
    """A frame of probabilities: `fit` learns from it which class each column stands for.

    Labels alone would not tell: some classes may have no row, and columns come in any order.
    """

    values: np.ndarray
    columns: list[Any]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        # NumPy before 2.0 knows no `copy=None`.
        return np.asarray(self.values, dtype) if not copy else np.array(self.values, dtype)


def fit_named(estimator: Any, predictions: Predictions, *, labelled: bool = True) -> Any:
    """Fit on columns with names; return the estimator, which takes arrays in their order."""
    labels = _check_labels(estimator, predictions) if labelled else None
    frame = NamedColumns(predictions.proba, predictions.classes.tolist())
    # Groups are the units of the evidence, of which there is none without labels.
    has_groups = labelled and predictions.groups is not None
    more = {"groups": predictions.groups} if has_groups else {}
    with by_class(predictions.classes):
        return unnamed(estimator.fit(frame, labels, **more))


def _check_labels(estimator: Any, predictions: Predictions) -> Any:
    """Return the labels, if there are any and they are of the estimator's kind."""
    _ = predictions.codes  # raises where there are none
    given = predictions.kind.words
    if given != kind_of(estimator).words:
        rule, remedy = _OTHER_KIND[given.problem]
        raise InputError(rule, f"the labels are {given.labels}", remedy)
    return predictions.labels


def show_journey(journey: Journey, *, explain: bool) -> None:
    """Print what was found and, if asked to, what the numbers mean."""
    tuned = journey.tuned
    rows = f"{journey.validation.has_label.sum():,}"
    head(f"Should I use it? Tuned on {rows} validation rows, each judged by a fit without it")
    show_verdict(tuned.verdict_)
    head("What was tried? Log loss on the same rows, lower is better")
    out.print(tried_table(tuned))
    out.print(applied_words(tuned))
    if journey.result is not None:
        _show_result(journey.result)
    if journey.compared is not None:
        _show_comparison(journey)
    if explain:
        head("What do the numbers mean?")
        out.print(MEANINGS.get(tuned.verdict_.scoring, "") + MEANING)


def tried_table(tuned: Adjuster) -> Table:
    """One row per family: its log loss, and the change from what a temperature gives."""
    table = new_table(("", "log loss", "change", "95% interval", "result"), ("", "result"))
    tried = [one for one in tuned.families_.values() if outcome(one) != "not_tried"]
    if tried:
        table.add_row("at most a temperature", score_figures(tried[0]).before, "", "", "")
    for name, verdict in tuned.families_.items():
        label = FAMILY_NAMES.get(name, name)
        if outcome(verdict) == "not_tried":
            table.add_row(label, "", "", "", f"not tried: {verdict.reason_text}")
            continue
        figures = score_figures(verdict)
        change = Text(figures.change, style=gain_style(figures))
        interval = f"{figures.low} to {figures.high}"
        table.add_row(label, figures.after, change, interval, _fate(tuned, name, verdict))
    return table


def _fate(tuned: Adjuster, name: str, verdict: Verdict) -> str:
    if name == tuned.family_:
        return "applied"
    if verdict.reason == "no_gain":
        return "no better than a temperature"
    return "passes" if verdict.adopted else verdict.reason_text


def applied_words(tuned: Adjuster) -> str:
    """Say what is applied: to probabilities, and to decide."""
    what = f"The model {does(tuned)}."
    numbers = score_figures(tuned.calibration_)
    if numbers.changed:
        what += f" Probabilities: {numbers.name} {numbers.before} -> {numbers.after}."
    return f"{what} {_rule(tuned.decision_)}".rstrip() if tuned.verdict_.adopted else what


def _rule(decision: Decision) -> str:
    if decision.is_argmax:
        return ""
    person = " A row may be left to a person." if decision.leaves_rows else ""
    return f"It decides for {RULES[decision.kind]}.{person}"


def _show_result(result: Evaluation) -> None:
    verdict = result.verdict
    head(f"What changes? Before and after on {verdict.n_rows:,} test rows that it has not seen")
    out.print(f"On the test rows {rise_words(verdict)}; {change_words(verdict)}.")
    show_cautions(verdict.cautions)
    out.print(score_table([verdict, *result.scores]))


def _show_comparison(journey: Journey) -> None:
    compared, decision = journey.compared, journey.tuned.decision_
    assert compared is not None
    head("How does it compare? On the same test rows")
    if decision.kind != "thresholds" and not decision.is_argmax:
        out.print("The other methods decide for the most probable class.")
    out.print(comparison_table(compared))
    # Where the model does not help, its user should know what does.
    alternative = compared.alternative()
    if alternative and journey.result is not None and not journey.result.verdict.adopted:
        out.print(alternative)


def comparison_table(result: Comparison) -> Table:
    """One row per method, best first."""
    header, *lines = result.cells()
    table = new_table(header, header[:1])
    rows = sorted(result, key=lambda row: -row.score)
    for (method, score, change, *rest), row in zip(lines, rows, strict=True):
        table.add_row(method, score, Text(change, style=gain_style(result.figures(row))), *rest)
    return table


def show_files(journey: Journey) -> None:
    """Print where everything is."""
    head("Where is it?")
    out.print(f"Model:  {journey.model.absolute()} ({does(journey.tuned)})", soft_wrap=True)
    out.print(f"Report: {journey.report.absolute()}", soft_wrap=True)

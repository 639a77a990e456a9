"""The whole way from validation predictions to an answer: tune, judge, compare, report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator

from altnorm import Adjuster, compare
from altnorm._base.errors import InputError
from altnorm._base.words import DO_NOTHING
from altnorm.adjuster.comparison import Comparison, default_methods
from altnorm.cli._screen import REMEDIES, errors
from altnorm.decisions import resolve_purpose
from altnorm.io.columns import listed, names_of
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


@dataclass(frozen=True, eq=False)
class Journey:
    """What was found on the way, and where it was written.

    Attributes
    ----------
    tuned : Adjuster
        The model.
    validation : Predictions
        What it was tuned on.
    result : Evaluation or None
        Before and after on the labels of test predictions.
    compared : Comparison or None
        The model and its peers on the same.
    model, report : Path
        Files.
    """

    tuned: Adjuster
    validation: Predictions
    result: Evaluation | None
    compared: Comparison | None
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
    try:
        return unnamed(estimator.fit(frame, labels, **more))
    except InputError as error:
        if error.code != "row_sum":
            raise
        # A column that is no class is the likeliest reason.
        names = listed(names_of(predictions.classes))
        hint = f"The classes are {names}; name a column that is not a class with --other."
        remedy = f"{REMEDIES['row_sum']} {hint}"
        raise error.replace(remedy=remedy, code="class_columns") from error


def _check_labels(estimator: Any, predictions: Predictions) -> Any:
    """Return the labels, if there are any and they are of the estimator's kind."""
    _ = predictions.codes  # raises where there are none
    given = predictions.kind.words
    if given != kind_of(estimator).words:
        rule, remedy = _OTHER_KIND[given.problem]
        raise InputError(rule, f"the labels are {given.labels}", remedy, code="option")
    return predictions.labels

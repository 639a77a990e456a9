"""The whole way from validation predictions to an answer: tune, judge, compare, report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sklearn.frozen import FrozenEstimator

from altnorm import Adjuster, compare
from altnorm._base.words import DO_NOTHING
from altnorm.adjuster.comparison import Comparison, default_methods
from altnorm.cli._fit import fit_named
from altnorm.cli._screen import errors
from altnorm.decisions import resolve_purpose
from altnorm.io.predictions import Predictions
from altnorm.method.kinds import kind_of
from altnorm.report import write_report
from altnorm.report.evaluation import Evaluation, evaluate

OURS = "altnorm"
"""What the tuned model is called among the methods."""


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
    tuned : Adjuster
        The model.
    validation, test : Predictions
        What it was tuned on, and what it was judged on, if anything.
    result : Evaluation or None
        Before and after on the labels of `test`.
    compared : Comparison or None
        The model and its peers on `test`.
    """

    tuned: Adjuster
    validation: Predictions
    test: Predictions | None
    result: Evaluation | None
    compared: Comparison | None

    def to_dict(self) -> dict[str, Any]:
        """Return what JSON can hold."""
        return {
            "validation": self.tuned.verdict_.to_dict(),
            **tuned_record(self.tuned),
            "test": None if self.result is None else self.result.to_dict(),
            "comparison": None if self.compared is None else self.compared.to_dicts(),
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
    files: Files,
    *,
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

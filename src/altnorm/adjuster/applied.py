"""What a fitted model does to rows, and what it comes to in a few words."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit, logit

from altnorm._base.arrays import Array, array_namespace, quiet, softmax, to_numpy, widest_float
from altnorm._base.words import FAMILY_NAMES
from altnorm.decisions import resolve_purpose
from altnorm.evidence.sentences import score_figures
from altnorm.method.estimator import ProbabilityTransformer, read_weight
from altnorm.method.kinds import LabelKind, kind_of


def apply_model(
    model: ProbabilityTransformer, temperature: float, kind: LabelKind, proba: Array
) -> Array:
    """Return the probabilities of a model, divided by a temperature, in double precision.

    Parameters
    ----------
    model : estimator
        Fitted; takes probabilities.
    temperature : float
        What logarithms, or log-odds, are divided by afterwards; 1 changes nothing.
    kind : LabelKind
        The kind of labels.
    proba : array of shape (n, m)
        Clean probabilities.

    Returns
    -------
    array of shape (n, m)
        New memory.
    """
    xp = array_namespace(proba)
    wide = xp.astype(proba, widest_float(proba))
    new = model.transform_clean(wide)
    if temperature == 1:
        return new
    with quiet(np):
        if kind.is_multilabel:
            return np.asarray(expit(logit(new) / temperature))
        return softmax(xp.log(new) / temperature)


def score_of(estimator: Any, proba: Array, y: Any, sample_weight: Any) -> float:
    """Return the purpose's score on labelled rows, given their adjusted probabilities."""
    kind = kind_of(estimator)
    labels = kind.encode(kind.check_labels(y, tuple(proba.shape)), estimator.classes_)
    purpose = resolve_purpose(estimator.scoring, estimator.costs, kind, estimator.classes_)
    by_proba = purpose.score.needs == "proba"
    predicted = to_numpy(proba) if by_proba else estimator.decision_.codes(proba)
    return purpose.score(labels, predicted, read_weight(sample_weight, len(labels)))


def fitted_words(adjuster: Any) -> str:
    """Say in a few words what was adopted."""
    verdict = adjuster.verdict_
    figures = score_figures(verdict)
    if not verdict.adopted:
        applied = "a temperature" if adjuster.temperature_ != 1 else "nothing"
        return f"no decision changes, {applied} is applied"
    name = FAMILY_NAMES.get(adjuster.family_, adjuster.family_)
    return f"{name}, {figures.name} {figures.change_and_unit}"

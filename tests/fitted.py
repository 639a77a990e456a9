"""Fitted normalizers that several test files ask for."""

import itertools

import numpy as np
from sklearn.base import clone

from altnorm import Adjuster, AlternatingNormalizer, AlternatingNormalizerCV
from altnorm.io.predictions import Predictions
from altnorm.method.kinds import kind_of
from altnorm.peers import Identity, MatrixScaling, ShrunkBias


def tune(validation: Predictions, **options) -> AlternatingNormalizerCV:
    """Search a small grid; the classes are named as in `validation`."""
    settings = {"alphas": (0.5, 1.0, 2.0), "depths": (1, 2), "smoothings": (0.0,), "n_repeats": 1}
    tuned = AlternatingNormalizerCV(random_state=0, **{**settings, **options})
    tuned.fit(validation.proba, validation.codes)
    for fitted in (tuned, tuned.best_normalizer_):
        fitted.classes_ = validation.classes
    return tuned


DECIDERS = {
    "identity": Identity(),
    "alternating": AlternatingNormalizer(2.0, 1, 0.5, prior="shrunk"),
    "deep": AlternatingNormalizer(0.7, 3, 0.4),
    "bias": ShrunkBias(),
    "matrix": MatrixScaling(1.0),
}
CALIBRATIONS = (None, "temperatures", "bias", "matrix")
FORMS = list(itertools.product(DECIDERS, CALIBRATIONS))
"""Every pair of a decision's family and a calibration that `Adjuster.fit` can leave."""

LABEL_FORMS = list(
    itertools.product(("pairs", "labelwise"), ("identity", "alternating"), (None, "temperatures"))
)
"""The same for several labels per row, with the kind of labels first."""


def assemble(decider, calibration, values, y, *, multilabel=None, input="proba", **settings):
    """Make an Adjuster of these two stages, as if the evidence had asked for them.

    The stages are fitted to all rows; the temperatures are far from 1, so that a calibration
    without :func:`keep_decisions` would change decisions.
    """
    adjuster = Adjuster(
        families=("alternating",) if multilabel else ("bias",),
        multilabel=multilabel,
        input=input,
        n_repeats=1,
        **settings,
    ).fit(values, y)
    proba = kind_of(adjuster).read(np.asarray(values), input)
    inner = clone(DECIDERS[decider])
    if multilabel is not None:
        inner.set_params(multilabel=multilabel)
    codes = y if multilabel is not None else kind_of(adjuster).encode(y, adjuster.classes_)
    adjuster.best_normalizer_ = inner.fit(proba, codes)
    adjuster.family_ = {"identity": None, "deep": "alternating"}.get(decider, decider)
    adjuster.temperatures_, adjuster.calibrator_ = None, None
    if calibration == "temperatures":
        adjuster.temperatures_ = np.array([1.7, 0.6])
    elif calibration is not None:
        adjuster.calibrator_ = clone(DECIDERS[calibration]).fit(proba, codes)
    return adjuster

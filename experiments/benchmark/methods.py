"""What is fitted on a classifier's probabilities: what others offer, CAN, and ours."""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegressionCV

import altnorm
from altnorm import Adjuster, AlternatingNormalizer, AlternatingNormalizerCV, peers

__all__ = ["FLOOR", "LEFT", "METHODS", "OURS", "TARGET", "Labelled", "Method", "floored"]

OURS = "altnorm"
FLOOR = 1e-6  # of a probability, where its logarithm is taken; fixed before anything was measured
TARGET = 0.95  # how much of what is decided shall be right
LEFT = -1  # the decision on a row that is left to a person


@dataclass(frozen=True)
class Labelled:
    """Validation rows with labels, the test rows' probabilities, and the training frequencies.

    Nobody is given a probability below the floor: most methods take logarithms.
    """

    proba: np.ndarray
    labels: np.ndarray
    test_proba: np.ndarray
    prior: np.ndarray

    @property
    def n_classes(self) -> int:
        """Number of columns."""
        return self.proba.shape[1]


@dataclass(frozen=True)
class Method:
    """A way from labelled validation rows to the test rows' probabilities.

    Parameters
    ----------
    name, package : str
        What the tables call it, and the package that it comes from.
    adjust : callable
        Takes `Labelled` and returns probabilities of the test rows.
    only_two : bool
        Whether it exists for two classes only.
    defers : bool
        Whether it returns decisions in place of probabilities, `LEFT` where a person decides.
    """

    name: str
    package: str
    adjust: Callable[[Labelled], Any]
    only_two: bool = False
    defers: bool = False

    @property
    def is_installed(self) -> bool:
        """Whether the package can be imported."""
        return importlib.util.find_spec(_MODULES.get(self.package, self.package)) is not None

    @property
    def version(self) -> str:
        """The package's version; of ours a digest, for its source changes between tags."""
        return _digest() if self.package == OURS else version(self.package)


_NO_PART_IN_FITS = ("asking", "cli", "deploy", "io", "report")
_MODULES = {
    "scikit-learn": "sklearn",
    "venn-abers": "venn_abers",
    "ml-insights": "ml_insights",
}


@cache
def _digest() -> str:
    """The first digits of a hash of the source that fits can depend on."""
    digest = hashlib.sha256()
    source = Path(altnorm.__file__).parent
    for path in sorted(source.rglob("*.py")):
        if path.relative_to(source).parts[0] not in _NO_PART_IN_FITS:
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def floored(proba: np.ndarray) -> np.ndarray:
    """Rows with no probability below the floor, up to their renewed sum of 1."""
    raised = np.maximum(proba, FLOOR)
    return raised / raised.sum(axis=1, keepdims=True)


class _Probabilities(ClassifierMixin, BaseEstimator):
    """A classifier whose inputs are its probabilities, for scikit-learn's calibration."""

    def __init__(self, n_classes: int) -> None:
        self.n_classes = n_classes
        self.classes_ = np.arange(n_classes)

    def fit(self, proba: np.ndarray, labels: np.ndarray) -> _Probabilities:
        """Do nothing."""
        return self

    def predict_proba(self, proba: np.ndarray) -> np.ndarray:
        """What it is given."""
        return proba

    def predict(self, proba: np.ndarray) -> np.ndarray:
        """The most probable class."""
        return proba.argmax(axis=1)


def _scikit_learn(data: Labelled, *, method: str) -> np.ndarray:
    # A frozen classifier needs no folds, and folds would refuse a class with fewer than five rows.
    everything = np.arange(len(data.labels))
    calibrated = CalibratedClassifierCV(
        FrozenEstimator(_Probabilities(data.n_classes)),
        method=method,
        cv=[(everything, everything)],
        ensemble=False,
    )
    return calibrated.fit(data.proba, data.labels).predict_proba(data.test_proba)


def _logistic_regression(data: Labelled) -> np.ndarray:
    model = LogisticRegressionCV(
        scoring="neg_log_loss", max_iter=1000, l1_ratios=(0,), use_legacy_attributes=False
    )
    model.fit(np.log(data.proba), data.labels)
    return _all_columns(data, model.predict_proba(np.log(data.test_proba)))


def _probmetrics(data: Labelled, *, method: str) -> np.ndarray:
    from probmetrics.calibrators import get_calibrator

    quiet = {"sms_print_init_info": False, "svs_print_init_info": False}
    calibrator = get_calibrator(method, **quiet)
    calibrator.fit(data.proba, data.labels)
    return calibrator.predict_proba(data.test_proba)


def _netcal(data: Labelled, *, method: str) -> np.ndarray:
    from netcal import scaling

    calibrator = getattr(scaling, method)()
    if data.n_classes > 2:
        calibrator.fit(data.proba, data.labels)
        return calibrator.transform(data.test_proba)
    calibrator.fit(data.proba[:, 1], data.labels)
    return _two_columns(calibrator.transform(data.test_proba[:, 1]))


def _betacal(data: Labelled) -> np.ndarray:
    from betacal import BetaCalibration

    calibrator = BetaCalibration().fit(data.proba[:, 1], data.labels)
    return _two_columns(calibrator.predict(data.test_proba[:, 1]))


def _abstention(data: Labelled) -> np.ndarray:
    from abstention.calibration import TempScaling

    known = np.eye(data.n_classes)[data.labels]
    bcts = TempScaling(bias_positions="all")
    return bcts(data.proba, known, posterior_supplied=True)(data.test_proba)


def _venn_abers(data: Labelled) -> np.ndarray:
    from venn_abers import VennAbersCalibrator

    known = {"p_cal": data.proba, "y_cal": data.labels}
    proba = VennAbersCalibrator().predict_proba(**known, p_test=data.test_proba)
    return _all_columns(data, proba)


def _splines(data: Labelled) -> np.ndarray:
    from ml_insights import SplineCalib

    calibrator = SplineCalib()
    if data.n_classes > 2:
        calibrator.fit(data.proba, data.labels)
        return calibrator.calibrate(data.test_proba)
    calibrator.fit(data.proba[:, 1], data.labels)
    return _two_columns(calibrator.calibrate(data.test_proba[:, 1]))


def _mapie(data: Labelled, *, procedure: str) -> np.ndarray:
    """Rows above the least confidence that MAPIE proves to be right often enough."""
    from experiments.evidence.promise.rules import Labelled as Rows, mapie

    least = mapie(Rows(data.proba, data.labels), TARGET, method=procedure)
    return np.where(data.test_proba.max(axis=1) >= least, data.test_proba.argmax(axis=1), LEFT)


def _all_columns(data: Labelled, proba: np.ndarray) -> np.ndarray:
    """Zeros for classes that no label names, where a method leaves their columns out."""
    filled = np.zeros_like(data.test_proba)
    filled[:, np.unique(data.labels)] = proba
    return filled


def _two_columns(positive: np.ndarray) -> np.ndarray:
    return np.column_stack([1 - np.ravel(positive), np.ravel(positive)])


def _naive(data: Labelled) -> Any:
    """Exponent 1 and depth 1, as in the paper's analysis."""
    normalizer = AlternatingNormalizer(prior=data.prior)
    return normalizer.fit(data.proba).transform(data.test_proba)


def _published(data: Labelled, *, reference: str) -> Any:
    """The paper's grid, the best setting on the rows that serve as reference, without a test."""
    search = AlternatingNormalizerCV(
        references=(reference,), smoothings=(0.0,), tuning="as-published", prior=data.prior
    )
    return search.fit(data.proba, data.labels).transform(data.test_proba)


def _ours(data: Labelled, *, estimator: Callable[[], Any]) -> Any:
    return estimator().fit(data.proba, data.labels).transform(data.test_proba)


def _target(data: Labelled) -> np.ndarray:
    adjuster = Adjuster(target_accuracy=TARGET).fit(data.proba, data.labels)
    decided = adjuster.predict(data.test_proba)
    return np.array([LEFT if decision is None else decision for decision in decided])


METHODS = (
    Method("sigmoid", "scikit-learn", partial(_scikit_learn, method="sigmoid")),
    Method("isotonic", "scikit-learn", partial(_scikit_learn, method="isotonic")),
    Method("temperature", "scikit-learn", partial(_scikit_learn, method="temperature")),
    Method("LogisticRegressionCV", "scikit-learn", _logistic_regression),
    Method("logistic (SMS)", "probmetrics", partial(_probmetrics, method="logistic")),
    Method("SVS", "probmetrics", partial(_probmetrics, method="svs")),
    Method("ts-mix", "probmetrics", partial(_probmetrics, method="ts-mix")),
    Method("LogisticCalibration", "netcal", partial(_netcal, method="LogisticCalibration")),
    Method("TemperatureScaling", "netcal", partial(_netcal, method="TemperatureScaling")),
    Method("beta", "betacal", _betacal, only_two=True),
    Method("BCTS", "abstention", _abstention),
    Method("Venn-Abers", "venn-abers", _venn_abers),
    Method("splines", "ml-insights", _splines),
    Method("CAN, naive", OURS, _naive),
    Method("CAN, as published", OURS, partial(_published, reference="confident")),
    Method("CAN, all rows", OURS, partial(_published, reference="all")),
    Method("TemperatureScaling", OURS, partial(_ours, estimator=peers.TemperatureScaling)),
    Method("bias", OURS, partial(_ours, estimator=peers.BiasCorrectedTemperature)),
    Method("matrix", OURS, partial(_ours, estimator=peers.MatrixScaling)),
    Method("curves", OURS, partial(_ours, estimator=peers.CurveScaling)),
    Method("Adjuster", OURS, partial(_ours, estimator=Adjuster)),
    *(
        Method(f"threshold, {name}", "mapie", partial(_mapie, procedure=procedure), defers=True)
        for name, procedure in (("Holm", "bonferroni_holm"), ("in sequence", "fixed_sequence"))
    ),
    Method("Adjuster, target 95 %", OURS, _target, defers=True),
)

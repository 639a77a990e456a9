"""What competes for the probabilities: temperature, bias, matrix, alternating normalization.

Every candidate is cross-fitted on the same folds and tells the log-probability of each row's label
under a fit that has not seen the row's fold. Whole probabilities are worked out when asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from scipy.special import log_expit, logit

from altnorm._base.arrays import (
    Array,
    array_namespace,
    quiet,
    take_rows,
    to_numpy,
    widest_float,
)
from altnorm.adjuster.alternating_paths import (
    ClassPaths,
    LabelPaths,
    Setting,
    fit_alternating,
    make_paths,
)
from altnorm.adjuster.validation import Validation
from altnorm.evidence.scores import NEG_LOG_LOSS
from altnorm.families import (
    BiasCorrectedTemperature,
    Identity,
    LabelwiseScaling,
    MatrixScaling,
)
from altnorm.families.crossfit import STRENGTHS, Path, cross_fit
from altnorm.families.labelwise import Labelwise, labelwise_path
from altnorm.families.likelihood import Likelihood, fit_slope
from altnorm.families.matrix import matrix_path
from altnorm.families.temperature import Tilt, bias_path

FAMILIES = ("alternating", "bias", "matrix")
"""The families that a user may choose from; a temperature always competes."""

LABELS_PER_CLASS = 5
"""Labels per class below which a matrix only learns noise."""

LARGEST_WORK = 1e9
"""Rows times classes squared beyond which a matrix takes longer than all else."""

MANY_ENTRIES = 2**24
"""Probabilities beyond which alternating normalization competes with one iteration only."""

LARGEST_REFERENCE = 1e8
"""Numbers in the rows that stand for classes without labels, beyond which a model is too large."""

PENALTIES = ("ridge", "cauchy")
"""What a matrix may expect: many small confusions, or few large ones."""

MENU = tuple(
    Setting(alpha, 5, 0.25, "all", smoothing) for alpha in (0.5, 1.0, 2.0) for smoothing in (0, 0.1)
)
"""Alternating normalization as it competes, each at every depth: as good as the paper's grid."""

SHARPENING_SHRINKAGE = 1.0
"""Pulls the logarithm of a slope above 1 to 0 as one row would: where all predictions are right, it
would be infinite."""

_RANKING_ROWS = 1000  # rows on which settings are compared, all on the same: more change no order


@dataclass(frozen=True)
class Candidate:
    """A way to better probabilities, cross-fitted."""

    family: str  # "temperature", "bias", "matrix", "alternating" or "none"
    params: dict[str, Any]
    log_p: np.ndarray  # (n,) of each row's label; of several labels per row their mean
    proba: Callable[[], np.ndarray]  # (n, m)
    fit: Callable[[], tuple[Any, float]]  # on all rows: the model, and the temperature that follows

    def log_loss(self, weight: np.ndarray) -> float:
        """Mean cross-fitted log loss."""
        return -float(np.average(self.log_p, weights=weight))


class Competitors(NamedTuple):
    """All candidates, and why some families do not compete."""

    untouched: Candidate
    temperature: Candidate
    others: list[Candidate]
    skipped: dict[str, str]
    own_decisions: dict[Setting, np.ndarray]  # of alternating normalization, without a temperature

    def all(self) -> list[Candidate]:
        """Every candidate, the mildest first."""
        return [self.untouched, self.temperature, *self.others]

    def likeliest_linear(self, weight: np.ndarray) -> Candidate:
        """Return the candidate of least log loss whose scores are linear."""
        linear = [one for one in self.all() if one.family in ("temperature", "bias", "matrix")]
        return min(linear, key=lambda one: one.log_loss(weight))


class CrossFitter:
    """Cross-fits candidates on one assignment of rows to folds."""

    def __init__(self, data: Validation, folds: np.ndarray, *, calibrate: bool = True) -> None:
        self.data, self.folds, self.calibrate = data, folds, calibrate
        self.rows = to_scores(data, data.work)
        self.lowest = float(np.log(np.finfo(data.proba.dtype).eps))
        self.own_decisions: dict[Setting, np.ndarray] = {}

    def compete(self, families: Sequence[str], *, n_jobs: int | None = None) -> Competitors:
        """Cross-fit the best setting of each family."""
        reasons = {name: self.obstacle(name) for name in families}
        makers: dict[str, list[Callable[[], Candidate | None]]] = {
            "alternating": [self.alternating],
            "bias": [partial(self._of_family, "bias")],
            "matrix": [partial(self._of_family, "matrix", penalty=one) for one in PENALTIES],
        }
        tasks = [make for name in families if not reasons[name] for make in makers[name]]
        found = Parallel(n_jobs=n_jobs, prefer="threads")(delayed(task)() for task in tasks)
        others = [candidate for candidate in found if candidate is not None]
        skipped = {name: reason for name, reason in reasons.items() if reason}
        untouched, temperature = self.untouched(), self.temperature()
        return Competitors(untouched, temperature, others, skipped, self.own_decisions)

    def on(self, folds: np.ndarray) -> CrossFitter:
        """Return the same for another assignment of the same rows."""
        other = copy(self)
        other.folds, other.own_decisions = folds, {}
        other.__dict__.pop("_paths", None)
        return other

    def again(self, candidate: Candidate) -> Candidate:
        """Cross-fit the setting of a candidate that comes from other folds."""
        if candidate.family == "alternating":
            return self.at_setting(Setting(**candidate.params))
        if candidate.family in ("temperature", "none"):
            return self.temperature() if candidate.family == "temperature" else self.untouched()
        return self._of_family(candidate.family, **candidate.params)

    def obstacle(self, family: str) -> str:
        """Why a family is not worth trying on these data; empty if it is."""
        n, m = self.data.proba.shape
        if family == "alternating" and not self.data.kind.is_multilabel:
            # A class without labels stands in the reference with a row of its own.
            unseen = m - np.unique(self.data.labels).size
            return "too_few_labels" if unseen * m > LARGEST_REFERENCE else ""
        if family != "matrix":
            return ""
        if self.data.kind.is_multilabel:
            return "several_labels"
        if n < LABELS_PER_CLASS * m:
            return "too_few_labels"
        return "too_much_work" if float(n) * m * m > LARGEST_WORK else ""

    def untouched(self) -> Candidate:
        """Return the predictions as they came."""
        log_p = self._clip(no_change(self.data).label_log_p(self.rows, self.data.labels))
        proba = self.data.proba
        return Candidate("none", {}, log_p, lambda: proba, lambda: (self._identity(), 1.0))

    def _identity(self) -> Identity:
        return Identity(multilabel=self.data.kind.multilabel).fit(self.data.proba[:1])

    def temperature(self) -> Candidate:
        """Return one temperature for all."""
        return self._tempered("temperature", self.rows, self._identity)

    def alternating(self) -> Candidate | None:
        """Return the best setting of the menu of alternating normalization, and a temperature."""
        best = self._best_setting()
        return None if best is None else self.at_setting(best)

    @cached_property
    def _paths(self) -> ClassPaths | LabelPaths:
        return make_paths(self.data, self.folds)

    def _best_setting(self) -> Setting | None:
        best, least = None, np.inf
        some, slope = self._some_rows(), 1.0
        # Where rows are so many, further iterations would take longer than all else.
        depth = 1 if self.data.proba.size > MANY_ENTRIES else MENU[0].depth
        for start in MENU:
            for setting, proba in self._paths.path(start._replace(depth=depth)):
                self.own_decisions[setting] = self.data.kind.decide(proba)
                loss, slope = self._loss_after_temperature(take_rows(proba, some), some, slope)
                if loss < least:
                    best, least = setting, loss
                del proba  # as large as the data, and the next one comes
        return best

    def _some_rows(self) -> np.ndarray:
        n = len(self.data.proba)
        return np.arange(0, n, max(1, n // _RANKING_ROWS))

    def _loss_after_temperature(
        self, proba: Array, rows: np.ndarray, slope: float
    ) -> tuple[float, float]:
        """Log loss, and the slope that gives it; searched from the one of a setting like it."""
        scores, labels = to_scores(self.data, proba), self.data.labels[rows]
        weight = self.data.weight[rows]
        fit = no_change(self.data)
        if self.calibrate:
            (fit,) = temperature_path(
                scores, labels, weight, (0.0,), unchanged=fit, rough=True, start=slope
            )
            slope = float(fit.slope)
        return -float(weight @ self._clip(fit.label_log_p(scores, labels))), slope

    def at_setting(self, setting: Setting) -> Candidate:
        """Return one setting of alternating normalization, and a temperature."""
        *_, (_, proba) = self._paths.path(setting)
        params, scores = setting._asdict(), to_scores(self.data, proba)
        plain = partial(fit_alternating, self.data, setting)
        if self.calibrate:
            del proba  # as large as the data
            # The cross-fitted rows stand for new ones better than those the fit has seen.
            return self._tempered("alternating", scores, plain, **params)
        log_p = self._clip(no_change(self.data).label_log_p(scores, self.data.labels))
        whole = to_numpy(proba)
        return Candidate("alternating", params, log_p, lambda: whole, lambda: (plain(), 1.0))

    def _tempered(
        self, name: str, rows: Array, make: Callable[[], Any], **params: Any
    ) -> Candidate:
        """Cross-fit the temperature that follows a model, given the scores that it makes."""
        path = partial(temperature_path, unchanged=no_change(self.data))

        def fit(_: float) -> tuple[Any, float]:
            (last,) = path(rows, self.data.labels, self.data.weight, (0.0,))
            return make(), 1 / float(last.slope)

        return self._of_path(name, path, rows, (0.0,), fit, params)

    def _family(self, name: str, penalty: str) -> tuple[Path, Callable[[float], tuple[Any, float]]]:
        """The path of a family, and its fit on all rows at a strength."""
        data = self.data
        if name == "matrix":
            path: Path = partial(matrix_path, penalty=penalty)
            make: Callable[[float], Any] = partial(MatrixScaling, penalty=penalty)
        elif data.kind.is_multilabel:
            path, make = labelwise_path, LabelwiseScaling
        else:
            path, make = bias_path, BiasCorrectedTemperature

        def fit(strength: float) -> tuple[Any, float]:
            rows = data.proba if name == "matrix" else data.work
            model = make(strength).fit(rows, data.labels, sample_weight=data.weight)
            if data.kind.is_multilabel:
                model.multilabel = data.kind.multilabel
            return model, 1.0

        return path, fit

    def _of_family(
        self, name: str, *, penalty: str = "ridge", strength: float | None = None
    ) -> Candidate:
        """Cross-fit a family, at the strength of least log loss if none is given."""
        path, fit = self._family(name, penalty)
        params = {"penalty": penalty} if name == "matrix" else {}
        strengths = STRENGTHS if strength is None else (strength,)
        return self._of_path(name, path, self.rows, strengths, fit, params)

    def _of_path(
        self,
        name: str,
        path: Path,
        rows: Array,
        strengths: Sequence[float],
        fit: Callable[[float], tuple[Any, float]],
        params: dict[str, Any],
    ) -> Candidate:
        known = self.data.labels, self.data.weight, self.folds
        found = cross_fit(path, rows, *known, strengths)
        k = found.best(self.data.weight)
        strength = found.strengths[k]
        return Candidate(
            name,
            {"strength": strength, **params} if name in ("bias", "matrix") else params,
            self._clip(found.label_log_p[k]),
            lambda: to_numpy(found.proba(k, rows)),
            cache(lambda: fit(strength)),  # some are asked for twice
        )

    def _clip(self, log_p: np.ndarray) -> np.ndarray:
        """As in scikit-learn: one zero must not decide the mean over all rows."""
        if self.data.kind.is_multilabel:
            log_p = log_p / self.data.proba.shape[1]
        return np.maximum(log_p, self.lowest)


def to_scores(data: Validation, proba: Array) -> Array:
    """Log-probabilities, or log-odds with several labels, in double precision."""
    xp = array_namespace(proba)
    with quiet(np):
        wide = xp.astype(proba, widest_float(proba), copy=False)
        return np.asarray(logit(wide)) if data.kind.is_multilabel else xp.log(wide)


def score_rows(data: Validation, proba: np.ndarray) -> np.ndarray:
    """Log-probability of each row's label; of several labels per row their mean."""
    return NEG_LOG_LOSS.per_row(data.labels, proba)  # type: ignore[misc]


def no_change(data: Validation) -> Tilt | Labelwise:
    """What leaves scores as they are."""
    m = data.proba.shape[1]
    if data.kind.is_multilabel:
        return Labelwise(1.0, np.zeros(m), np.inf)
    return Tilt(1.0, np.zeros(m))


def temperature_path(
    rows: Array,
    labels: np.ndarray,
    weight: np.ndarray,
    strengths: Sequence[float],
    *,
    unchanged: Tilt | Labelwise,
    rough: bool = False,
    start: float = 1.0,
) -> Generator[Tilt | Labelwise, None, None]:
    """Yield the one fit of a temperature; it has no penalty to choose."""
    if isinstance(unchanged, Labelwise):  # every label of a row is a row of two classes
        weight, labels = np.repeat(weight, rows.shape[1]), labels.reshape(-1).astype(int)
        rows = np.stack([log_expit(-rows).reshape(-1), log_expit(rows).reshape(-1)], axis=1)
    loss = Likelihood.build(rows, labels, weight, rough=rough)
    for _ in strengths:
        slope = fit_slope(loss, shrink=SHARPENING_SHRINKAGE, start=start, rough=rough)
        yield unchanged._replace(slope=slope)

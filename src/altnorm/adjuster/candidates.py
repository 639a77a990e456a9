"""What competes for the probabilities: bias, matrix, curves, alternating normalization.

Every candidate is cross-fitted on the same folds and gives the log-probability of each row's label
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

from altnorm import families
from altnorm._base.arrays import Array, array_namespace, log_odds, quiet, take_rows, to_numpy, wide
from altnorm.adjuster.alternating_paths import (
    K_MAX,
    ClassPaths,
    LabelPaths,
    Setting,
    fit_alternating,
    make_paths,
)
from altnorm.adjuster.validation import Validation
from altnorm.evidence.scores import NEG_LOG_LOSS
from altnorm.families.crossfit import STRENGTHS, Path, cross_fit, is_behind
from altnorm.families.labelwise import OddsTempering, fit_odds_tempering, labelwise_path
from altnorm.families.linear import (
    CURVE_STRENGTHS,
    FACET_ROWS,
    MATRIX_STRENGTHS,
    N_FACETS,
    curve_path,
    matrix_path,
)
from altnorm.families.scores import Tempering, fit_tempering
from altnorm.families.temperature import bias_path

# The families that a user may choose from; a temperature always takes part.
FAMILIES = ("alternating", "bias", "matrix", "curves")
# Labels per class below which a family only learns noise.
LABELS_PER_CLASS = {"matrix": 5, "curves": 20}
MOST_CLASSES = 40  # classes beyond which bent lines have more unknowns than labels can settle
# Standard errors behind the best family beyond which a finer version of one is not tried.
FAR_BEHIND = 2.0
LARGEST_WORK = 1e9  # rows times classes squared beyond which a matrix takes longer than all else
# Probabilities beyond which alternating normalization competes with one iteration only.
MANY_ENTRIES = 2**22
# Numbers in the rows that stand for classes without labels, beyond which a model is too large.
LARGEST_REFERENCE = 1e8
# Alternating normalization as it competes, each at every depth: as good as the paper's grid.
MENU = tuple(
    Setting(alpha, 5, 0.25, "all", smoothing) for alpha in (0.5, 1.0, 2.0) for smoothing in (0, 0.1)
)
_RANKING_ROWS = 1000  # rows on which settings are compared, all on the same: more change no order


@dataclass(frozen=True)
class Candidate:
    """A way to better probabilities, cross-fitted."""

    family: str  # one of FAMILIES, or "temperature" or "none"
    params: dict[str, Any]
    log_p: np.ndarray  # (n,) of each row's label; of several labels per row their mean
    proba: Callable[[], np.ndarray]  # (n, m)
    fit: Callable[[], Fitted]  # on all rows

    def log_loss(self, weight: np.ndarray) -> float:
        """Mean cross-fitted log loss."""
        return -float(np.average(self.log_p, weights=weight))


class Fitted(NamedTuple):
    """What a candidate comes to on all rows."""

    model: Any  # an estimator; Identity where only a temperature is fitted
    tempering: Tempering | OddsTempering | None  # what follows it, if anything does


class Competitors(NamedTuple):
    """The best of each family, the simplest first, and why some families do not compete."""

    candidates: list[Candidate]
    skipped: dict[str, str]


class CrossFitter:
    """Cross-fits candidates on one assignment of rows to folds."""

    def __init__(
        self, data: Validation, folds: np.ndarray, *, calibrate: bool = True, k_max: int = K_MAX
    ) -> None:
        self.data, self.folds, self.calibrate, self.k_max = data, folds, calibrate, k_max
        self.lowest = float(np.log(np.finfo(data.proba.dtype).eps))

    @cached_property
    def rows(self) -> Array:
        """Scores of the rows: log-probabilities, or log-odds with several labels."""
        return to_scores(self.data, self.data.work)

    def release(self) -> None:
        """Forget what is as large as the data, and can be worked out again."""
        self.__dict__.pop("rows", None)

    def compete(self, names: Sequence[str], *, n_jobs: int | None = None) -> Competitors:
        """Cross-fit the best setting of each family."""
        reasons = {name: self.obstacle(name) for name in names}
        competing = [name for name in FAMILIES if name in reasons and not reasons[name]]
        tasks = (delayed(self._best_of)(name) for name in competing)
        candidates = list(Parallel(n_jobs=n_jobs, prefer="threads")(tasks))
        if "curves" in competing and self._may_gain_by_facets(candidates):
            candidates.append(self.of_family("curves", facets=True))
        simplest_first = ("bias", "matrix", "curves", "alternating")
        candidates.sort(key=lambda each: simplest_first.index(each.family))
        skipped = {name: reason for name, reason in reasons.items() if reason}
        return Competitors(candidates, skipped)

    def on(self, folds: np.ndarray) -> CrossFitter:
        """Return the same for another assignment of the same rows."""
        fitter = copy(self)
        fitter.folds = folds
        for cross_fitted in ("temperature", "_paths"):
            fitter.__dict__.pop(cross_fitted, None)
        return fitter

    def again(self, candidate: Candidate) -> Candidate:
        """Cross-fit the setting of a candidate that comes from other folds."""
        if candidate.family == "alternating":
            return self.at_setting(Setting(**candidate.params))
        if candidate.family == "temperature":
            return self.temperature
        return self.of_family(candidate.family, **candidate.params)

    def obstacle(self, family: str) -> str:
        """Why a family is not worth trying on these data; empty if it is."""
        n, m = self.data.proba.shape
        if family == "bias":
            return ""
        if family == "alternating":
            # A class without labels stands in the reference with a row of its own.
            unseen = 0 if self.data.kind.is_multilabel else m - np.unique(self.data.labels).size
            return "too_few_labels" if unseen * m > LARGEST_REFERENCE else ""
        if self.data.kind.is_multilabel:  # where each label is a problem of two classes
            if family == "matrix":
                return "several_labels"
            return "too_few_labels" if n < 2 * LABELS_PER_CLASS[family] else ""
        if n < LABELS_PER_CLASS[family] * m:
            return "too_few_labels"
        if family == "curves":
            return "too_many_classes" if m > MOST_CLASSES else ""
        return "too_much_work" if float(n) * m * m > LARGEST_WORK else ""

    @cached_property
    def untouched(self) -> Candidate:
        """The predictions as they came."""
        proba = self.data.proba
        log_p = self._clip(score_rows(self.data.labels, proba))
        return Candidate("none", {}, log_p, lambda: proba, lambda: Fitted(self._identity(), None))

    def _identity(self) -> families.Identity:
        return families.Identity(multilabel=self.data.kind.multilabel).fit(self.data.proba[:1])

    @cached_property
    def temperature(self) -> Candidate:
        """One temperature for all."""
        return self._tempered("temperature", lambda: self.rows, self._identity)

    def _best_of(self, family: str) -> Candidate:
        """Return the best setting of a family."""
        if family != "alternating":
            return self.of_family(family)
        candidate = self.at_setting(self._best_setting())
        self.__dict__.pop("_paths", None)  # as large as the data, and seldom needed again
        return candidate

    @cached_property
    def _paths(self) -> ClassPaths | LabelPaths:
        return make_paths(self.data, self.folds, k_max=self.k_max)

    def _best_setting(self) -> Setting:
        n, losses = len(self.data.proba), dict[Setting, float]()
        ranking = np.arange(0, n, max(1, n // _RANKING_ROWS))
        # Where rows are so many, further iterations would take longer than all else.
        depth = 1 if self.data.proba.size > MANY_ENTRIES else MENU[0].depth
        for start in MENU:
            for setting, proba in self._paths.path(start._replace(depth=depth)):
                losses[setting] = self._loss_after_temperature(take_rows(proba, ranking), ranking)
                del proba  # as large as the data, and the next one comes
        return min(losses, key=losses.__getitem__)

    def _loss_after_temperature(self, proba: Array, rows: np.ndarray) -> float:
        labels, weight = self.data.labels[rows], self.data.weight[rows]
        if self.calibrate:
            scores = to_scores(self.data, proba)
            fit = self.temper(scores, labels, weight, rough=True)
            log_p = fit.label_log_p(scores, labels) / self._labels_per_row
        else:
            log_p = score_rows(labels, to_numpy(proba))
        return -float(weight @ self._clip(log_p))

    def at_setting(self, setting: Setting) -> Candidate:
        """Return one setting of alternating normalization, and a temperature."""
        params = setting._asdict()
        make = partial(fit_alternating, self.data, setting, k_max=self.k_max)

        def proba() -> Array:
            *_, (_, last) = self._paths.path(setting)
            return last

        if self.calibrate:
            # The cross-fitted rows stand for new ones better than those the fit has seen.
            return self._tempered(
                "alternating", lambda: to_scores(self.data, proba()), make, **params
            )
        rows = to_numpy(proba())
        log_p = self._clip(score_rows(self.data.labels, rows))
        return Candidate("alternating", params, log_p, lambda: rows, lambda: Fitted(make(), None))

    @property
    def temper(self) -> Callable[..., Tempering | OddsTempering]:
        """How a temperature is fitted to scores, labels and weights."""
        return fit_odds_tempering if self.data.kind.is_multilabel else fit_tempering

    def _tempered(
        self, name: str, rows: Callable[[], Array], make: Callable[[], Any], **params: Any
    ) -> Candidate:
        """Cross-fit the temperature that follows a model, given the scores that it makes."""

        def path(
            x: Array, labels: np.ndarray, weight: np.ndarray, _: Sequence[float], /, *, rough: bool
        ) -> Generator[Tempering | OddsTempering, None, None]:
            yield self.temper(x, labels, weight, rough=rough)  # it has no penalty to choose

        def fit(_: float) -> Fitted:
            return Fitted(make(), self.temper(rows(), self.data.labels, self.data.weight))

        return self._of_path(name, path, rows, (0.0,), fit, params)

    def _may_gain_by_facets(self, candidates: list[Candidate]) -> bool:
        """Whether bends on sums of classes, which take longest, are worth a try.

        They come on top of each class's own. Where these are far behind, so are they.
        """
        if len(self.data.proba) < FACET_ROWS or self.data.kind.is_multilabel:
            return False
        weight = self.data.weight
        leader = min(candidates, key=lambda each: each.log_loss(weight))
        (bent,) = (each for each in candidates if each.family == "curves")
        return not is_behind(bent.log_p, leader.log_p, weight, n_errors=FAR_BEHIND)

    def of_family(
        self, name: str, *, strength: float | None = None, facets: bool = False
    ) -> Candidate:
        """Cross-fit a family with penalties, at the strength of least log loss if none is given."""
        path, strengths, make = self._family(name, facets)
        params = {"facets": facets} if name == "curves" else {}
        data = self.data

        def fit(best: float) -> Fitted:
            rows = data.work if name == "bias" else data.proba
            model = make(best).fit(rows, data.labels, sample_weight=data.weight)
            if data.kind.is_multilabel:
                model.multilabel = data.kind.multilabel
            return Fitted(model, None)

        tried = strengths if strength is None else (strength,)
        return self._of_path(name, path, lambda: self.rows, tried, fit, params)

    def _family(
        self, name: str, facets: bool
    ) -> tuple[Path, Sequence[float], Callable[[float], Any]]:
        """The path of a family, the strengths to try, and its estimator at a strength."""
        if self.data.kind.is_multilabel:
            bends = name == "curves"
            labels = partial(labelwise_path, bends=bends)
            return labels, STRENGTHS, partial(families.LabelwiseScaling, bends=bends)
        if name == "matrix":
            return matrix_path, MATRIX_STRENGTHS, families.MatrixScaling
        if name == "curves":
            path: Path = partial(curve_path, n_facets=N_FACETS * facets)
            return path, CURVE_STRENGTHS, partial(families.CurveScaling, facets=facets)
        return bias_path, STRENGTHS, families.BiasCorrectedTemperature

    def _of_path(
        self,
        name: str,
        path: Path,
        rows: Callable[[], Array],
        strengths: Sequence[float],
        fit: Callable[[float], Fitted],
        params: dict[str, Any],
    ) -> Candidate:
        """Cross-fit along a path. Rows are as large as the data, so they are not kept."""
        best = cross_fit(path, rows(), self.data.labels, self.data.weight, self.folds, strengths)
        strength, log_p = best.strength, best.label_log_p
        log_p /= self._labels_per_row  # in place: nobody else needs it
        np.maximum(log_p, self.lowest, out=log_p)
        return Candidate(
            name,
            {"strength": strength, **params} if name in ("bias", "matrix", "curves") else params,
            log_p,
            lambda: to_numpy(best.proba(rows())),
            cache(lambda: fit(strength)),  # some are asked for twice
        )

    def _clip(self, log_p: np.ndarray) -> np.ndarray:
        """As in scikit-learn: one zero must not decide the mean over all rows."""
        return np.maximum(log_p, self.lowest)

    @property
    def _labels_per_row(self) -> int:
        return self.data.proba.shape[1] if self.data.kind.is_multilabel else 1


def to_scores(data: Validation, proba: Array) -> Array:
    """Log-probabilities, or log-odds with several labels, in double precision."""
    logs = log_odds if data.kind.is_multilabel else array_namespace(proba).log
    with quiet(np):
        return logs(wide(proba))


def score_rows(labels: np.ndarray, proba: np.ndarray) -> np.ndarray:
    """Log-probability of each row's label; of several labels per row their mean."""
    return NEG_LOG_LOSS.per_row(labels, proba)  # type: ignore[misc]

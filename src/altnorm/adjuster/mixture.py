r"""The probabilities that an Adjuster gives: a mixture that needs no test.

.. math:: p = w_1 \, c + w_2 \, t + w_3 \, b + w_4 / m

A row as it came is `b`; `t` is the same at a temperature, `c` is what a family makes of it, and the
last part lifts what labels refute a probability of 0 for. Weights maximise the likelihood of
cross-fitted rows, so the mixture leans on a family just as far as the labels ask for.

Where the decisions of a family are not adopted, rows are drawn back towards the same mixture
without `c`, which keeps the order of the classes, just as far as keeps the decision.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from altnorm._base.arrays import Array, array_namespace, block_slices
from altnorm._base.fitted import Fields
from altnorm._base.persistence import storable
from altnorm.adjuster.candidates import Candidate, CrossFitter
from altnorm.estimator.base import ProbabilityTransformer
from altnorm.estimator.correction import Engine, Untouched
from altnorm.families.labelwise import OddsTempering
from altnorm.families.scores import Tempering

# Rows that speak for the temperature before any label does: one, as if it had been seen.
PRIOR_ROWS = 1.0
PARTS = ("correction", "temperature", "untouched", "uniform")  # what is mixed
LARGEST = 1e3  # beyond any logarithm of a number: as a floor it changes nothing
_BARRIERS = (1e-2, 1e-4, 1e-6, 1e-9)  # that hold weights off 0, of the mean log-likelihood
_LAST_GAIN = 1e-3  # of a barrier: what one more step may gain
_MOST_STEPS = 50  # of Newton's method; it takes about five
_TO_EDGE = 0.9  # of the way to a weight of 0
_AS_GOOD_AS_0 = 1e-6  # a weight that only the barrier holds
_MOST_ROWS = 2**16  # rows that weights are fitted to: more would move them by less than 1 %
_CLEAR = 1 - 2.0**-20  # a lead that single precision can still see


def mixture_weights(label_p: np.ndarray, weight: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """Weights of maximum likelihood.

    `label_p` (n, k) is what each part gives the label of each row, and `prior` (k,) how many rows
    speak for a part beforehand. The likelihood is concave in the weights, and Newton's method finds
    its maximum inside a barrier that is lowered; steps of expectation and maximisation would take
    thousands where most rows are as good with every part.
    """
    thinned = slice(None, None, max(1, len(label_p) // _MOST_ROWS))
    label_p, share = label_p[thinned], weight[thinned] * (weight.sum() / weight[thinned].sum())
    total, k = float(share.sum() + prior.sum()), label_p.shape[1]
    label_p = np.maximum(label_p, np.finfo(np.float64).eps ** 2)  # a logarithm as good as infinite
    weights = np.full(k, 1 / k)
    for barrier in _BARRIERS:
        held = prior + barrier * total
        for _ in range(_MOST_STEPS):
            step, gain = _newton_step(weights, label_p, share, held)
            if gain <= _LAST_GAIN * barrier * total:
                break
            weights = _walk(weights, step, label_p, share, held)
    weights = np.where(weights > _AS_GOOD_AS_0, weights, 0.0)
    return np.asarray(weights / weights.sum())


def _walk(
    weights: np.ndarray,
    step: np.ndarray,
    label_p: np.ndarray,
    share: np.ndarray,
    held: np.ndarray,
) -> np.ndarray:
    """Go along a step, not to the edge, and half as far as long as nothing is gained."""

    def value(at: np.ndarray) -> float:
        return float(share @ np.log(label_p @ at) + held @ np.log(at))

    length = min(1.0, _TO_EDGE / max(float(np.max(-step / weights)), _TO_EDGE))
    here = value(weights)
    while length > _AS_GOOD_AS_0 and value(weights + length * step) < here:
        length /= 2
    return np.asarray(weights + length * step)


def _newton_step(
    weights: np.ndarray, label_p: np.ndarray, share: np.ndarray, held: np.ndarray
) -> tuple[np.ndarray, float]:
    """Newton's step among weights that sum to 1, and what it would gain."""
    k, mixed = weights.size, label_p @ weights
    gradient = (share / mixed) @ label_p + held / weights
    curvature = (label_p * (share / mixed**2)[:, None]).T @ label_p + np.diag(held / weights**2)
    # In units of the weights, which may differ by many powers of ten.
    scaled = curvature * np.outer(weights, weights)
    system = np.zeros((k + 1, k + 1))
    system[:k, :k], system[k, :k], system[:k, k] = scaled, weights, weights
    step = weights * np.linalg.solve(system, np.append(weights * gradient, 0.0))[:k]
    return step, float(gradient @ step) / 2


@storable
@dataclass(frozen=True, eq=False)
class Mixture:
    """Weights, and the temperatures that rows are mixed at.

    Attributes
    ----------
    weights : ndarray of shape (4,)
        Of the correction, the temperature, the row as it came, and the uniform distribution.
    tempering : ndarray of shape (3,)
        Slope, floor (of log-odds, the limit) and share of the uniform distribution.
    following : ndarray of shape (3,) or None
        The same for the temperature that follows the correction, if one does.
    keeps : bool
        Whether rows keep the decisions that they came with.
    baseline : ndarray of shape (3,)
        Weights of the same mixture without the correction.
    log_ratio : ndarray of shape (m,) or None
        Another class balance: logarithms of by how much classes have become more frequent.
    is_multilabel : bool
        Whether entries of a row are independent.
    """

    weights: np.ndarray
    tempering: np.ndarray
    baseline: np.ndarray
    following: np.ndarray | None = None
    keeps: bool = False
    log_ratio: np.ndarray | None = None
    is_multilabel: bool = False

    def _check_fitted(self, fields: Fields) -> None:
        fields.array("weights", "f", (4,), 0, 1, total=1)
        fields.array("baseline", "f", (3,), 0, 1, total=1)
        fields.require(
            "keeps", not (self.keeps and self.is_multilabel), "False with several labels"
        )
        self._check_tempering(fields, "tempering")
        if self.following is not None:
            self._check_tempering(fields, "following")
        if self.log_ratio is not None:
            fields.array("log_ratio", "f", (fields.n_classes,), -1e3, 1e3)

    def _check_tempering(self, fields: Fields, name: str) -> None:
        slope, limit, uniform = fields.array(name, "f", (3,), -1e9, 1e9)
        limit_holds = 0 <= (limit if self.is_multilabel else -limit) <= LARGEST
        holds = slope > 0 and limit_holds and 0 <= uniform <= 1
        fields.require(name, holds, "a slope above 0, a limit, and a share from 0 to 1")

    @property
    def changes_nothing(self) -> bool:
        """Whether rows come back as they are."""
        return bool(self.weights[2] == 1) and self.log_ratio is None

    @property
    def needs_correction(self) -> bool:
        """Whether the correction has any part in the result."""
        return bool(self.weights[0] > 0)

    def stage(self, model: ProbabilityTransformer) -> Mixed | Untouched:
        """What it makes of a row, with the model that corrects."""
        if self.changes_nothing:
            return Untouched()
        n_classes = len(model.classes_)

        def temper(constants: np.ndarray) -> Tempering | OddsTempering:
            slope, floor, uniform = map(float, constants)
            if self.is_multilabel:
                return OddsTempering(slope, floor, uniform)
            return Tempering(slope, floor, uniform, n_classes)

        return Mixed(
            model.stage() if self.needs_correction else None,
            tuple(map(float, self.weights)),
            tuple(map(float, self.baseline)),
            temper(self.tempering),
            None if self.following is None else temper(self.following),
            self.keeps,
            np.arange(n_classes),
            None if self.log_ratio is None else np.exp(self.log_ratio),
        )


def no_mixture(is_multilabel: bool) -> Mixture:
    """What leaves rows as they are."""
    weights = np.array([0.0, 0.0, 1.0, 0.0])
    unchanged = np.array([1.0, LARGEST if is_multilabel else -LARGEST, 0.0])
    return Mixture(weights, unchanged, weights[1:].copy(), is_multilabel=is_multilabel)


class Mixed(NamedTuple):
    """A mixture's constants, and what it does to rows."""

    correction: Any  # the family's stage; None where it has no part in the result
    weights: tuple[float, ...]
    baseline: tuple[float, ...]
    tempering: Tempering | OddsTempering
    following: Tempering | OddsTempering | None
    keeps: bool
    columns: np.ndarray  # (m,) their numbers
    ratio: np.ndarray | None

    def __call__(self, p: Array, engine: Engine) -> Array:
        """Return new probabilities."""
        p = engine.wide(p)
        correct = None if self.correction is None else self.correction(p, engine)
        is_odds = isinstance(self.tempering, OddsTempering)
        logs = engine.log_odds if is_odds else engine.log
        return engine.map_blocks(partial(self.mixed, logs), p, correct)

    def unrolled(self) -> Mixed:
        """Return the same with its correction unrolled."""
        if self.correction is None:
            return self
        return self._replace(correction=self.correction.unrolled())

    def mixed(self, logs: Callable[[Array], Array], p: Array, correct: Array | None) -> Array:
        """Mix rows; `logs` gives log-probabilities or log-odds, and `correct` is the family's."""
        tempered = self.tempering.proba(logs(p))
        mixed = self._without_correction(self.weights[1:], p, tempered)
        if correct is not None:
            if self.following is not None:
                correct = self.following.proba(logs(correct))
            mixed = mixed + self.weights[0] * correct
        if self.keeps:  # the baseline has the order of the classes as they came
            baseline = self._without_correction(self.baseline, p, tempered)
            mixed = draw_back(mixed, baseline, p, self.columns)
        if self.ratio is None:
            return mixed
        tilted = mixed * self.ratio
        return tilted / array_namespace(tilted).sum(tilted, axis=1, keepdims=True)

    def _without_correction(self, weights: tuple[float, ...], p: Array, tempered: Array) -> Array:
        on_tempered, on_untouched, on_uniform = weights
        return on_tempered * tempered + on_untouched * p + on_uniform / self.tempering.n_outcomes


def draw_back(p: Array, target: Array, decides: Array, columns: Array) -> Array:
    """Draw rows towards a target just as far as the most probable class is that of `decides`.

    The target's most probable class is that one, too; `columns` are their numbers. Ties and
    rounding to single precision change nothing: the class leads visibly where another one that
    comes first could be taken.
    """
    xp = array_namespace(p)
    kept = xp.argmax(decides, axis=1, keepdims=True)
    earlier, later = columns < kept, columns > kept
    zero, one = xp.zeros_like(p), xp.ones_like(p)

    def of_kept(values: Array) -> Array:
        only = xp.where(earlier, zero, xp.where(later, zero, values))
        return xp.sum(only, axis=1, keepdims=True)

    ahead, behind = p - of_kept(p), of_kept(target) - target
    total = ahead + xp.maximum(behind, zero)
    needed = xp.where(ahead > 0, ahead / xp.where(ahead > 0, total, one), zero)
    share = xp.max(needed, axis=1, keepdims=True)
    drawn = (1 - share) * p + share * target
    lead = of_kept(drawn)
    highest = xp.where(earlier, lead * _CLEAR, lead)
    drawn = xp.minimum(drawn, highest)
    return drawn / xp.sum(drawn, axis=1, keepdims=True)


class CrossMixture:
    """A mixture whose weights are fitted outside each fold, so that rows can be judged by it.

    Of a correction, the temperature and the rows as they came. Without calibration nothing is
    mixed: the correction stands alone, or the row as it came.
    """

    def __init__(self, fitter: CrossFitter, candidate: Candidate) -> None:
        self.data, self.folds, self.calibrate = fitter.data, fitter.folds, fitter.calibrate
        self.candidates = candidate, fitter.temperature, fitter.untouched
        self.candidate, self.temperature, self.untouched = self.candidates
        uniform = np.full((len(self.folds), 1), 1 / self._n_outcomes)
        label_p = [self._label_p(part) for part in self.candidates]
        # (4, n, 1), or with several labels (4, n, m): what each part gives each label.
        self._parts = np.stack(np.broadcast_arrays(*label_p, uniform))
        outside = [self.folds != k for k in range(int(self.folds.max()) + 1)]
        self._by_fold = np.stack([self.weights(rows) for rows in outside])
        self._baseline_by_fold = np.stack([self.baseline_weights(rows) for rows in outside])

    @property
    def _n_outcomes(self) -> int:
        return 2 if self.data.kind.is_multilabel else self.data.proba.shape[1]

    def _label_p(self, part: Candidate) -> np.ndarray:
        """What a part gives the label of each row, (n, 1); each of several labels, (n, m)."""
        if not self.data.kind.is_multilabel:
            return np.exp(part.log_p)[:, None]
        yes = part.proba()
        return np.where(self.data.labels, yes, 1 - yes)

    def weights(self, rows: Any = slice(None)) -> np.ndarray:
        """Weights of the four parts, fitted to some rows."""
        fixed = np.array([1.0, 0.0, 0.0, 0.0])
        return self._fit(self._parts, rows) if self.calibrate else fixed

    def baseline_weights(self, rows: Any = slice(None)) -> np.ndarray:
        """Weights of the same without the correction, fitted to some rows.

        Also without calibration: rows of any confidence are what decisions are compared with.
        """
        return self._fit(self._parts[1:], rows)

    def _fit(self, parts: np.ndarray, rows: Any) -> np.ndarray:
        label_p = parts[:, rows]
        n_parts, _, n_labels = label_p.shape
        weight = np.repeat(self.data.weight[rows], n_labels)
        prior = np.zeros(n_parts)
        prior[n_parts - 3] = PRIOR_ROWS  # the temperature's place
        return mixture_weights(label_p.reshape(n_parts, -1).T, weight, prior)

    @cached_property
    def log_p(self) -> np.ndarray:
        """Log-probability of each row's label; of several labels per row their mean."""
        return self._mean_log(self._parts, self._by_fold)

    @cached_property
    def baseline_log_p(self) -> np.ndarray:
        """The same without the correction."""
        return self._mean_log(self._parts[1:], self._baseline_by_fold)

    def _mean_log(self, parts: np.ndarray, by_fold: np.ndarray) -> np.ndarray:
        mixed = np.einsum("knl,nk->nl", parts, by_fold[self.folds])
        lowest = np.finfo(self.data.proba.dtype).eps
        return np.asarray(np.log(np.maximum(mixed, lowest)).mean(axis=1))

    @cached_property
    def proba(self) -> np.ndarray:
        """Whole probabilities, (n, m)."""
        uniform = self._by_fold[self.folds, 3:] / self._n_outcomes
        mixed = np.repeat(uniform, self.data.proba.shape[1], axis=1)
        # One part after another, and in blocks: each is as large as the data.
        for k, part in enumerate(self.candidates):
            proba = part.proba()
            for rows in block_slices(len(mixed), 16 * mixed.shape[1], mixed, cached=True):
                mixed[rows] += self._by_fold[self.folds[rows], k : k + 1] * proba[rows]
            del proba  # the next one is as large
        return mixed

    def keeping(self, before: np.ndarray) -> np.ndarray:
        """Whole probabilities, drawn back where they would decide otherwise than before."""
        rows, drawn = np.flatnonzero(self.proba.argmax(axis=1) != before), self.proba.copy()
        if rows.size:
            weights, untouched = self._baseline_by_fold[self.folds[rows]], self.data.proba[rows]
            baseline = weights[:, :1] * self.temperature.proba()[rows]
            baseline = baseline + weights[:, 1:2] * untouched + weights[:, 2:] / self._n_outcomes
            drawn[rows] = draw_back(drawn[rows], baseline, untouched, np.arange(drawn.shape[1]))
        return drawn

    def fit(self, *, keeps: bool = False) -> tuple[Any, Mixture]:
        """Fit on all rows: the correction's estimator, and the mixture."""
        model, following = self.candidate.fit()
        tempering = self.temperature.fit().tempering
        assert tempering is not None
        return model, Mixture(
            self.weights(),
            np.array(tempering[:3]),
            self.baseline_weights(),
            following=None if following is None else np.array(following[:3]),
            keeps=keeps,
            is_multilabel=self.data.kind.is_multilabel,
        )

"""Cross-fitted predictions of many settings at once: a row never sees references of its own fold.

The first iteration is exact. Deeper iterations follow the reference's own path
(:func:`altnorm.method.scaling.reference_path`): good enough to compare settings, and free of
products. What is chosen in the end is evaluated exactly.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from scipy.special import expit, logit

from altnorm._base.arrays import block_slices, quiet
from altnorm.adjuster.folds import Dealing
from altnorm.adjuster.predicted import Predictions
from altnorm.adjuster.settings import Grid, Setting
from altnorm.method.kinds import Pairs
from altnorm.method.one_step import ColumnSums, PowerRows, step_block, step_once
from altnorm.method.scaling import LogReference, column_log_sums, log_add, reference_path
from altnorm.method.several_labels import binary_ambiguity
from altnorm.method.two_classes import log_sigmoids

LOG_SAFE = -600.0  # a sum of exponentials above it has lost nothing to underflow


class ClassCrossFit:
    """Cross-fitted adjustment of rows that sum to 1.

    Parameters
    ----------
    dealing : Dealing
        The rows, their folds, and weights and priors outside each fold. Rows without labels are
        outside every fold.

    Notes
    -----
    Predictions come for the rows with labels, as the score needs them: class codes, (n,), or
    probabilities, (n, m).
    """

    def __init__(self, dealing: Dealing) -> None:
        data = dealing.data
        n_unlabelled = len(data.unlabelled)
        self.proba = np.concatenate([data.proba, data.unlabelled]) if n_unlabelled else data.proba
        self.folds = np.concatenate([dealing.folds, np.full(n_unlabelled, -1)])
        self.priors = [outside.prior for outside in dealing.outside]
        self.absent = np.stack([outside.absent for outside in dealing.outside])
        ones = np.ones(n_unlabelled)
        self.weight = np.stack([np.append(o.weight, ones) for o in dealing.outside])
        self.keep_proba = data.score.needs == "proba"
        self.base = data.proba if self.keep_proba else data.proba.argmax(axis=1)
        self.ambiguity = data.ambiguity()

    def serves(self, threshold: float, reference: str) -> np.ndarray:
        """Which rows serve as reference, whatever their fold."""
        return self.ambiguity <= (threshold if reference == "confident" else math.inf)

    def first(
        self, alpha: float, grid: Grid, *, sure: bool = False
    ) -> Iterator[tuple[Setting, Predictions]]:
        """Yield each setting of depth 1 with its predictions."""
        thresholds, smoothings = grid.thresholds, grid.smoothings
        rows = self._in_doubt(min(thresholds))
        parts = [
            (name, low, smoothing, _smooth(log_s, total * smoothing, self.priors))
            for name, low, log_s, total in self._references(alpha, grid)
            for smoothing in smoothings
        ]
        # Class codes of all settings come from one pass; whole rows of all would not fit.
        for batch in [[part] for part in parts] if self.keep_proba else [parts]:
            sizes = [self._count_doubtful(rows, low) for _, low, _, _ in batch]
            steps = [Predictions.room(size, self.base, sure=sure) for size in sizes]
            self._step(rows, [log_s for *_, log_s in batch], alpha, steps)
            for (name, low, smoothing, _), new in zip(batch, steps, strict=True):
                for threshold in thresholds if name == "all" else (low,):
                    setting = Setting(alpha, 1, threshold, name, smoothing)
                    size = self._count_doubtful(rows, threshold)
                    yield setting, self._among_all(rows[:size], new.head(size))

    def deeper(
        self, setting: Setting, depth: int, *, start: int = 2, sure: bool = False
    ) -> Iterator[tuple[Setting, Predictions]]:
        """Yield the setting at depths `start` to `depth`, as `first` does."""
        serves = self.serves(setting.threshold, setting.reference)
        if not ((self.weight * serves).any(axis=1) | self.absent.any(axis=1)).all():
            return  # some fold has no confident row outside of it
        rows = np.flatnonzero((self.ambiguity > setting.threshold) & (self.folds >= 0))
        steps = [
            self._fold_path(setting, rows, k, depth, sure=sure)[start - 1 :]
            for k in range(len(self.priors))
        ]
        for d in range(start, depth + 1):
            new = Predictions.room(rows.size, self.base, sure=sure)
            for k, path in enumerate(steps):
                new.put(self.folds[rows] == k, path.pop(0))
            yield setting._replace(depth=d), self._among_all(rows, new)

    def _in_doubt(self, threshold: float) -> np.ndarray:
        """Rows with labels that are in doubt, the most doubtful first."""
        rows = np.flatnonzero((self.ambiguity > threshold) & (self.folds >= 0))
        return rows[np.argsort(-self.ambiguity[rows], kind="stable")]

    def _count_doubtful(self, rows: np.ndarray, threshold: float) -> int:
        """How many of `rows`, which `_in_doubt` has ordered, are above a threshold."""
        return int(np.searchsorted(-self.ambiguity[rows], -threshold))

    def _references(
        self, alpha: float, grid: Grid
    ) -> Iterator[tuple[str, float, np.ndarray, np.ndarray]]:
        """Yield each set of reference rows: its name, the lowest threshold, sums and total weight.

        With all rows as reference the threshold only says which rows are adjusted. A set that
        leaves some fold without a confident row outside of it is left out.
        """
        thresholds, references = grid.thresholds, grid.references
        sets = [("all", min(thresholds))] if "all" in references else []
        sets += [("confident", t) for t in thresholds if "confident" in references]
        masks = np.stack([self.serves(t, name) for name, t in sets])
        sums, mass = self._outside_sums(alpha, masks)
        for (name, low), log_s, total in zip(sets, sums, mass, strict=True):
            if (total > 0).all():
                yield name, low, log_s, total

    def _among_all(self, rows: np.ndarray, new: Predictions) -> Predictions:
        """Predictions of all rows, given those of the rows in doubt."""
        predicted = Predictions.room(len(self.base), self.base, sure=new.sure is not None)
        predicted.values[:] = self.base
        predicted.put(rows, new)
        return predicted

    def _fold_path(
        self, setting: Setting, rows: np.ndarray, fold: int, depth: int, *, sure: bool
    ) -> list[Predictions]:
        """Predictions of one fold's rows after each iteration against the rows of the others."""
        serves = self.serves(setting.threshold, setting.reference)
        used = np.flatnonzero(serves & (self.weight[fold] > 0))
        missing = np.flatnonzero(self.absent[fold])
        weight = np.append(self.weight[fold, used], self.absent[fold, missing])
        mass = setting.smoothing * weight.sum()
        with quiet(np):
            path = reference_path(
                LogReference(
                    self._log_reference(used, missing),
                    np.log(weight),
                    np.log(self.priors[fold]),
                    setting.alpha,
                    math.log(mass) if mass else None,
                )
            )
            inside = rows[self.folds[rows] == fold]
            b, base = self.proba[inside], self.base[inside]
            steps = []
            for _ in range(depth):
                b = step_once(b, next(path), self.priors[fold], alpha=setting.alpha)
                steps.append(Predictions.of(b, base, sure=sure))
        return steps

    def _log_reference(self, used: np.ndarray, missing: np.ndarray) -> np.ndarray:
        """Logs of reference rows and of sure rows for missing classes, in memory of their own."""
        m = self.proba.shape[1]
        log_a = np.full((used.size + missing.size, m), -math.inf)
        log_a[np.arange(used.size, len(log_a)), missing] = 0.0
        for rows in block_slices(used.size, 16 * m, self.proba, cached=True):
            np.log(self.proba[used[rows]], out=log_a[rows], dtype=np.float64)
        return log_a

    def _step(
        self, rows: np.ndarray, log_sums: Sequence[np.ndarray], alpha: float, new: list[Predictions]
    ) -> None:
        """Make one iteration against each reference: of as many of the first rows as have room.

        The most doubtful rows come first, so these are the ones above a threshold. The powers of a
        block of rows are taken once, and all references meet it in the cache.
        """
        sure = any(out.sure is not None for out in new)
        with quiet(np):
            for k, q in enumerate(self.priors):
                sums = [ColumnSums.of(log_s[k], self.proba) for log_s in log_sums]
                here = np.flatnonzero(self.folds[rows] == k)
                for block in block_slices(here.size, 40 * q.size, self.proba, cached=True):
                    at = here[block]
                    powers = PowerRows.of(self.proba[rows[at]], q, alpha)
                    base = self.base[rows[at]]
                    for one, out in zip(sums, new, strict=True):
                        n = int(np.searchsorted(at, len(out.values)))
                        if n:
                            # Decisions are read after the division, too: it rounds, and among
                            # classes that the reference hardly has rounding decides. So both
                            # kinds of predictions agree.
                            step = step_block(powers.head(n), one)
                            step /= step.sum(axis=1, keepdims=True)
                            out.put(at[:n], Predictions.of(step, base[:n], sure=sure))

    def _outside_sums(self, alpha: float, masks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Log column sums and total weight outside each fold, for each set of reference rows.

        One pass over the predictions serves all sets and folds: a product with their indicators.
        """
        n_folds, (n, m) = len(self.priors), self.proba.shape
        groups = (masks[:, None, :] * self.weight).reshape(-1, n)
        log_s = np.full((groups.shape[0], m), -math.inf)
        with quiet(np):
            for rows in block_slices(n, 24 * m, self.proba, cached=True):
                x = np.multiply(alpha, np.log(self.proba[rows]), dtype=np.float64)
                # A column of zeros has the maximum -inf, and -inf minus -inf would be NaN.
                top = np.maximum(x.max(axis=0), np.finfo(x.dtype).min)
                log_s = log_add(log_s, top + np.log(groups[:, rows] @ np.exp(x - top)))
            self._repair(log_s, groups, alpha)
            log_s = log_add(log_s.reshape(-1, n_folds, m), np.log(self.absent))
        return log_s, groups.sum(axis=1).reshape(-1, n_folds) + self.absent.sum(axis=1)

    def _repair(self, log_s: np.ndarray, groups: np.ndarray, alpha: float) -> None:
        """Recompute, in place, the sums so far below the largest power that they underflowed."""
        low = LOG_SAFE + alpha * np.log(self.proba.max(axis=0).astype(np.float64))
        lost = log_s < low
        for group in np.flatnonzero(lost.any(axis=1)):
            used = np.flatnonzero(groups[group])
            if used.size:
                log_a = np.log(self.proba[np.ix_(used, lost[group])].astype(np.float64, copy=False))
                log_w = np.log(groups[group, used])
                log_s[group, lost[group]] = column_log_sums(log_a, log_w, alpha)


def _smooth(log_s: np.ndarray, mass: np.ndarray, priors: Sequence[np.ndarray]) -> np.ndarray:
    """Add the smoothing's share to the log column sums outside each fold."""
    if not mass.any():
        return log_s
    with quiet(np):
        return np.asarray(log_add(log_s, np.log(mass[:, None] * np.stack(priors))))


class BinaryCrossFit:
    """Cross-fitted adjustment of independent probabilities of yes.

    Parameters
    ----------
    dealing : Dealing
        As for :class:`ClassCrossFit`. There is one prior of yes for all labels ("pairs"), or one
        each ("labelwise").
    """

    def __init__(self, dealing: Dealing) -> None:
        data = dealing.data
        self.n_rows, n_unlabelled = len(data.proba), len(data.unlabelled)
        self.read = data.predicted
        self.proba = np.concatenate([data.proba, data.unlabelled]) if n_unlabelled else data.proba
        self.folds = np.concatenate([dealing.folds, np.full(n_unlabelled, -1)])
        pooled = isinstance(data.kind, Pairs)
        self.priors = np.stack([o.prior[:1] if pooled else o.prior for o in dealing.outside])
        self.axis = None if pooled else 0
        self.weight = np.append(data.row_weight, np.ones(n_unlabelled))
        self.ambiguity = binary_ambiguity(self.proba)
        with quiet(np):
            self.logits = logit(self.proba.astype(np.float64, copy=False))

    def first(
        self, alpha: float, grid: Grid, *, sure: bool = False
    ) -> Iterator[tuple[Setting, Predictions]]:
        """Yield each setting of depth 1 with its predictions; `sure` has no meaning here."""
        _, _, thresholds, references, smoothings = grid
        sets = [("all", math.inf)] if "all" in references else []
        sets += [("confident", t) for t in thresholds if "confident" in references]
        p = self.proba.astype(np.float64, copy=False)
        powers = p**alpha, (1 - p) ** alpha
        q = self.priors[self.folds]
        open_prior = (q > 0) & (q < 1)  # else nothing can be said, as in `adjust_binary`
        for name, high in sets:
            serves = (self.ambiguity <= high) * self.weight[:, None]
            sum_yes, sum_no, mass = (self._outside(serves * power) for power in (*powers, 1.0))
            if not mass.any(axis=1).all():
                continue  # some fold has no confident entry outside of it
            for smoothing in smoothings:
                with quiet(np):
                    a = q * powers[0] / (sum_yes + smoothing * mass * q + powers[0])
                    b = (1 - q) * powers[1] / (sum_no + smoothing * mass * (1 - q) + powers[1])
                    new = a / (a + b)
                new = np.where((mass > 0) & open_prior & np.isfinite(new), new, self.proba)
                for threshold in thresholds if name == "all" else (high,):
                    adjusted = np.where(self.ambiguity > threshold, new, self.proba)
                    adjusted = adjusted.astype(self.proba.dtype, copy=False)
                    setting = Setting(alpha, 1, threshold, name, smoothing)
                    yield setting, Predictions(self.read(adjusted[: self.n_rows]))

    def _outside(self, values: np.ndarray) -> np.ndarray:
        """Sums over the rows outside the fold of each row: for all labels, or for each."""
        inside = np.stack(
            [values[self.folds == k].sum(axis=self.axis) for k in range(len(self.priors))]
        )
        # Summed, not subtracted from the total, which would leave its rounding error behind.
        outside = 1.0 - np.eye(len(self.priors))
        always = np.atleast_1d(values[self.folds < 0].sum(axis=self.axis))
        # A row without a label takes the sums of some fold; nobody asks what becomes of it.
        return (outside @ inside.reshape(len(self.priors), -1) + always)[self.folds]

    def deeper(
        self, setting: Setting, depth: int, *, start: int = 2, sure: bool = False
    ) -> Iterator[tuple[Setting, Predictions]]:
        """Yield the setting at depths `start` to `depth`, as `first` does."""
        serves = (self.ambiguity <= setting.threshold) | (setting.reference == "all")
        used = serves.any(axis=1) & (self.weight > 0)
        if not all((used & (self.folds != k)).any() for k in range(len(self.priors))):
            return  # some fold has no confident entry outside of it
        steps = np.empty((depth, *self.proba.shape), self.proba.dtype)
        with quiet(np):
            for k in range(len(self.priors)):
                path = [expit(logits) for logits in self._fold_path(setting, k, depth)]
                steps[:, self.folds == k] = path
        for d in range(start, depth + 1):
            adjusted = np.where(self.ambiguity > setting.threshold, steps[d - 1], self.proba)
            yield setting._replace(depth=d), Predictions(self.read(adjusted[: self.n_rows]))

    def _fold_path(self, setting: Setting, fold: int, depth: int) -> Iterator[np.ndarray]:
        """Logits of one fold's rows after each iteration against the rows of the others."""
        alpha, outside, y = setting.alpha, self.folds != fold, self.logits[self.folds == fold]
        weight = np.broadcast_to(self.weight[outside, None], self.logits[outside].shape)
        if setting.reference == "confident":
            weight = weight * (self.ambiguity[outside] <= setting.threshold)
        mass = setting.smoothing * weight.sum(axis=self.axis)
        q = self.priors[fold]
        log_q = np.log(q), np.log1p(-q)
        z = self.logits[outside]
        for _ in range(depth):
            sums = [
                np.log((weight * np.exp(alpha * part)).sum(axis=self.axis) + mass * np.exp(lq))
                for part, lq in zip(log_sigmoids(z), log_q, strict=True)
            ]
            own = [alpha * part for part in log_sigmoids(y)]
            kept = [
                lq + o - log_add(o, s + 0 * o) for o, s, lq in zip(own, sums, log_q, strict=True)
            ]
            new = kept[0] - kept[1]
            # Where prior or reference has only one of yes and no, there is nothing to weigh: the
            # entry stays as it is.
            y = np.where(np.isfinite(new) & np.isfinite(sums[0] - sums[1]), new, y)
            yield y
            step = (log_q[0] - sums[0]) - (log_q[1] - sums[1])
            z = alpha * z + np.where(np.isfinite(step), step, 0.0)

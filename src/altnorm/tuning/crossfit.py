"""Cross-fitted predictions of many settings at once: a row never sees references of its own fold.

The first iteration is exact. Deeper iterations follow the reference's own path
(:func:`altnorm._scaling.reference_path`): good enough to compare settings, and free of products.
What is chosen in the end is evaluated exactly.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from scipy.special import expit, logit

from altnorm._array import block_slices, quiet
from altnorm._binary import log_sigmoids
from altnorm._entropy import row_ambiguity
from altnorm._kinds import Pairs
from altnorm._multilabel import binary_ambiguity
from altnorm._scaling import LogReference, column_log_sums, log_add, reference_path, step_once
from altnorm.tuning.folds import Dealing
from altnorm.tuning.settings import Grid, Setting

__all__ = ["BinaryCrossFit", "ClassCrossFit"]

_LOG_SAFE = -600.0  # a sum of exponentials above it has lost nothing to underflow


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
        self.ambiguity = row_ambiguity(self.proba, k_max=data.k_max)

    def serves(self, threshold: float, reference: str) -> np.ndarray:
        """Which rows serve as reference, whatever their fold."""
        return self.ambiguity <= (threshold if reference == "confident" else math.inf)

    def first(self, alpha: float, grid: Grid) -> Iterator[tuple[Setting, np.ndarray]]:
        """Yield each setting of depth 1 with its predictions."""
        _, _, thresholds, references, smoothings = grid
        # With all rows as reference the threshold only says which rows are adjusted.
        sets = [("all", min(thresholds))] if "all" in references else []
        sets += [("confident", t) for t in thresholds if "confident" in references]
        masks = np.stack([self.serves(t, name) for name, t in sets])
        sums, mass = self._outside_sums(alpha, masks)
        for (name, low), log_s, total in zip(sets, sums, mass, strict=True):
            if not (total > 0).all():
                continue  # some fold has no confident row outside of it
            rows = np.flatnonzero((self.ambiguity > low) & (self.folds >= 0))
            for smoothing in smoothings:
                new = self._step(rows, self.proba[rows], log_s, total * smoothing, alpha)
                new = new if self.keep_proba else new.argmax(axis=1)
                for threshold in thresholds if name == "all" else (low,):
                    setting = Setting(alpha, 1, threshold, name, smoothing)
                    keep = self.ambiguity[rows] > threshold
                    yield setting, self._among_all(rows[keep], new[keep])

    def deeper(self, setting: Setting, depth: int) -> Iterator[tuple[Setting, np.ndarray]]:
        """Yield the setting at depths 2 to `depth`, as `first` does."""
        serves = self.serves(setting.threshold, setting.reference)
        if not ((self.weight * serves).any(axis=1) | self.absent.any(axis=1)).all():
            return  # some fold has no confident row outside of it
        rows = np.flatnonzero((self.ambiguity > setting.threshold) & (self.folds >= 0))
        steps = [self._fold_path(setting, rows, k, depth) for k in range(len(self.priors))]
        for d in range(1, depth):
            new = self.base[rows]
            for k, path in enumerate(steps):
                new[self.folds[rows] == k] = path[d]
            yield setting._replace(depth=d + 1), self._among_all(rows, new)

    def _among_all(self, rows: np.ndarray, new: np.ndarray) -> np.ndarray:
        """Predictions of all rows, given those of the rows in doubt."""
        pred = self.base.copy()
        pred[rows] = new
        return pred

    def _fold_path(
        self, setting: Setting, rows: np.ndarray, fold: int, depth: int
    ) -> list[np.ndarray]:
        """Predictions of one fold's rows after each iteration against the rows of the others."""
        used = self.serves(setting.threshold, setting.reference) & (self.weight[fold] > 0)
        missing = np.flatnonzero(self.absent[fold])
        with quiet(np):
            sure = np.eye(self.proba.shape[1])[missing]
            reference = np.concatenate([self.proba[used], sure])
            weight = np.append(self.weight[fold, used], self.absent[fold, missing])
            mass = setting.smoothing * weight.sum()
            path = reference_path(
                LogReference(
                    np.log(reference),
                    np.log(weight),
                    np.log(self.priors[fold]),
                    setting.alpha,
                    math.log(mass) if mass else None,
                )
            )
            b = self.proba[rows[self.folds[rows] == fold]]
            steps = []
            for _ in range(depth):
                b = step_once(b, next(path), self.priors[fold], alpha=setting.alpha)
                steps.append(b if self.keep_proba else b.argmax(axis=1))
        return steps

    def _step(
        self, rows: np.ndarray, b: np.ndarray, log_s: np.ndarray, mass: np.ndarray, alpha: float
    ) -> np.ndarray:
        """One iteration, each row against the column sums outside its fold."""
        new = np.empty_like(b)
        with quiet(np):
            for k, q in enumerate(self.priors):
                here = self.folds[rows] == k
                column = log_s[k]
                if mass[k]:
                    column = log_add(column, np.log(mass[k] * q))
                new[here] = step_once(b[here], column, q, alpha=alpha)
        return new

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
                top = np.maximum(x.max(axis=0), np.finfo(x.dtype).min)
                log_s = log_add(log_s, top + np.log(groups[:, rows] @ np.exp(x - top)))
            self._repair(log_s, groups, alpha)
            log_s = log_add(log_s.reshape(-1, n_folds, m), np.log(self.absent))
        return log_s, groups.sum(axis=1).reshape(-1, n_folds) + self.absent.sum(axis=1)

    def _repair(self, log_s: np.ndarray, groups: np.ndarray, alpha: float) -> None:
        """Recompute, in place, the sums so far below the largest power that they underflowed."""
        low = _LOG_SAFE + alpha * np.log(self.proba.max(axis=0).astype(np.float64))
        lost = log_s < low
        for group in np.flatnonzero(lost.any(axis=1)):
            used = np.flatnonzero(groups[group])
            if used.size:
                log_a = np.log(self.proba[np.ix_(used, lost[group])].astype(np.float64, copy=False))
                log_w = np.log(groups[group, used])
                log_s[group, lost[group]] = column_log_sums(log_a, log_w, alpha)


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

    def first(self, alpha: float, grid: Grid) -> Iterator[tuple[Setting, np.ndarray]]:
        """Yield each setting of depth 1 with its predictions."""
        _, _, thresholds, references, smoothings = grid
        sets = [("all", math.inf)] if "all" in references else []
        sets += [("confident", t) for t in thresholds if "confident" in references]
        p = self.proba.astype(np.float64, copy=False)
        powers = p**alpha, (1 - p) ** alpha
        q = self.priors[self.folds]
        open_prior = (q > 0) & (q < 1)  # else nothing can be said, as in `adjust_yes`
        for name, high in sets:
            serves = (self.ambiguity <= high) * self.weight[:, None]
            yes, no, mass = (self._outside(serves * power) for power in (*powers, 1.0))
            if not mass.any(axis=1).all():
                continue  # some fold has no confident entry outside of it
            for smoothing in smoothings:
                with quiet(np):
                    a = q * powers[0] / (yes + smoothing * mass * q + powers[0])
                    b = (1 - q) * powers[1] / (no + smoothing * mass * (1 - q) + powers[1])
                    new = a / (a + b)
                new = np.where((mass > 0) & open_prior & np.isfinite(new), new, self.proba)
                for threshold in thresholds if name == "all" else (high,):
                    adjusted = np.where(self.ambiguity > threshold, new, self.proba)
                    adjusted = adjusted.astype(self.proba.dtype, copy=False)
                    setting = Setting(alpha, 1, threshold, name, smoothing)
                    yield setting, self.read(adjusted[: self.n_rows])

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

    def deeper(self, setting: Setting, depth: int) -> Iterator[tuple[Setting, np.ndarray]]:
        """Yield the setting at depths 2 to `depth`, as `first` does."""
        serves = (self.ambiguity <= setting.threshold) | (setting.reference == "all")
        used = serves.any(axis=1) & (self.weight > 0)
        if not all((used & (self.folds != k)).any() for k in range(len(self.priors))):
            return  # some fold has no confident entry outside of it
        steps = np.empty((depth, *self.proba.shape), self.proba.dtype)
        with quiet(np):
            for k in range(len(self.priors)):
                path = [expit(logits) for logits in self._fold_path(setting, k, depth)]
                steps[:, self.folds == k] = path
        for d in range(1, depth):
            adjusted = np.where(self.ambiguity > setting.threshold, steps[d], self.proba)
            yield setting._replace(depth=d + 1), self.read(adjusted[: self.n_rows])

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
            y = np.where(np.isfinite(new) & np.isfinite(sums[0] - sums[1]), new, y)
            yield y
            step = (log_q[0] - sums[0]) - (log_q[1] - sums[1])
            z = alpha * z + np.where(np.isfinite(step), step, 0.0)

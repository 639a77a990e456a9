"""Cross-fitting where the predictions are on a device, such as a GPU.

What has an entry for each row and class stays there. Class codes, sums and everything that the
evidence is made of come back to host memory, so that all else is the same code.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from altnorm._base.arrays import (
    Array,
    array_namespace,
    as_array,
    block_slices,
    device,
    is_foreign,
    move,
    quiet,
    take_rows,
    to_numpy,
    widest_float,
)
from altnorm.adjuster.crossfit import LOG_SAFE, ClassCrossFit
from altnorm.adjuster.folds import Dealing
from altnorm.adjuster.predicted import Predictions
from altnorm.adjuster.settings import Setting
from altnorm.method.one_step import step_once
from altnorm.method.scaling import LogReference, column_log_sums, log_add, reference_path

LEAST_ENTRIES = 2**18  # fewer are tuned in host memory within seconds
HOST = 1  # what DLPack calls the memory of the CPU


def is_worth_a_device(rows: Array) -> bool:
    """Whether to tune on the rows where they are, and not on their copy in host memory.

    Libraries round differently. Of settings that are as good as equal another one may come out
    then, so few rows, of which it takes no longer, are left to NumPy.
    """
    if not is_foreign(rows) or int(rows.__dlpack_device__()[0]) == HOST:
        return False
    return math.prod(rows.shape) >= LEAST_ENTRIES


class DeviceCrossFit(ClassCrossFit):
    """As `ClassCrossFit`: whatever reads whole rows does so on their device."""

    def __init__(self, dealing: Dealing) -> None:
        super().__init__(dealing)
        data = dealing.data
        self.rows = data.work
        if len(data.unlabelled):
            xp = array_namespace(data.work)
            self.rows = xp.concat([data.work, as_array(data.unlabelled, data.work)])

    def _step(
        self, rows: np.ndarray, log_sums: Sequence[np.ndarray], alpha: float, new: list[Predictions]
    ) -> None:
        """Make one iteration against each reference: of as many of the first rows as have room."""
        sure = any(out.sure is not None for out in new)
        for k, q in enumerate(self.priors):
            here, prior = np.flatnonzero(self.folds[rows] == k), self._wide(q)
            b, base = take_rows(self.rows, rows[here]), self.base[rows[here]]
            for log_s, out in zip(log_sums, new, strict=True):
                n, sums = int(np.searchsorted(here, len(out.values))), self._wide(log_s[k])
                if n:
                    step = step_once(b[:n, :], sums, prior, alpha=alpha)
                    out.put(here[:n], Predictions.of(step, base[:n], sure=sure))

    def _fold_path(
        self, setting: Setting, rows: np.ndarray, fold: int, depth: int, *, sure: bool
    ) -> list[Predictions]:
        """Predictions of one fold's rows after each iteration against the rows of the others."""
        used = self.serves(setting.threshold, setting.reference) & (self.weight[fold] > 0)
        missing = np.flatnonzero(self.absent[fold])
        weight = np.append(self.weight[fold, used], self.absent[fold, missing])
        mass, prior = setting.smoothing * weight.sum(), self._wide(self.priors[fold])
        inside, xp = rows[self.folds[rows] == fold], array_namespace(self.rows)
        b = take_rows(self.rows, inside)
        reference = xp.astype(take_rows(self.rows, used), prior.dtype, copy=False)
        # A class without labels stands in the reference with a sure row of its own.
        one_hot = self._wide(np.eye(prior.shape[0])[missing])
        steps = []
        with quiet(np):
            path = reference_path(
                LogReference(
                    xp.log(xp.concat([reference, one_hot])),
                    xp.log(self._wide(weight)),
                    xp.log(prior),
                    setting.alpha,
                    math.log(mass) if mass else None,
                )
            )
            for _ in range(depth):
                b = step_once(b, next(path), prior, alpha=setting.alpha)
                steps.append(Predictions.of(b, self.base[inside], sure=sure))
        return steps

    def _outside_sums(self, alpha: float, masks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Log column sums and total weight outside each fold, for each set of reference rows."""
        n_folds, (n, m) = len(self.priors), self.rows.shape
        groups = (masks[:, None, :] * self.weight).reshape(-1, n)
        xp, weights = array_namespace(self.rows), self._wide(groups)
        log_s = self._wide(np.full((groups.shape[0], m), -math.inf))
        with quiet(np):
            for rows in block_slices(n, 24 * m, self.rows, cached=True):
                x = alpha * xp.astype(xp.log(self.rows[rows, :]), log_s.dtype, copy=False)
                # A column of zeros has the maximum -inf, and -inf minus -inf would be NaN.
                top = xp.clip(xp.max(x, axis=0), min=float(xp.finfo(x.dtype).min))
                log_s = log_add(log_s, top + xp.log(weights[:, rows] @ xp.exp(x - top)))
            # From here on the sums are small, one row per fold and set, and stay on the host.
            sums = np.array(to_numpy(log_s))
            self._repair(sums, groups, alpha)
            sums = log_add(sums.reshape(-1, n_folds, m), np.log(self.absent))
        return sums, groups.sum(axis=1).reshape(-1, n_folds) + self.absent.sum(axis=1)

    def _repair(self, log_s: np.ndarray, groups: np.ndarray, alpha: float) -> None:
        """Recompute, in place, the sums so far below the largest power that they underflowed."""
        xp = array_namespace(self.rows)
        largest = to_numpy(xp.max(self.rows, axis=0)).astype(np.float64)
        lost = log_s < LOG_SAFE + alpha * np.log(largest)
        for group in np.flatnonzero(lost.any(axis=1)):
            used, columns = np.flatnonzero(groups[group]), np.flatnonzero(lost[group])
            if used.size:
                some = xp.take(take_rows(self.rows, used), move(columns, self.rows), axis=1)
                log_a = xp.log(xp.astype(some, widest_float(some), copy=False))
                log_w = self._wide(np.log(groups[group, used]))
                log_s[group, columns] = to_numpy(column_log_sums(log_a, log_w, alpha))

    def _wide(self, values: np.ndarray) -> Array:
        """Numbers in double precision, where the rows are."""
        xp, dtype = array_namespace(self.rows), widest_float(self.rows)
        return xp.asarray(values, dtype=dtype, device=device(self.rows))

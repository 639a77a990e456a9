"""One classifier, made ready to try many references at depth 1."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from sklearn.model_selection import KFold

import altnorm
from experiments.suite.files import Classifier

__all__ = ["N_FOLDS", "THRESHOLDS", "Bench", "Rows", "find_neighbours", "one_step", "prior_of"]

THRESHOLDS = (0.25, 0.5, 0.75)
N_FOLDS = 5


def one_step(power: np.ndarray, sums: np.ndarray, prior: np.ndarray) -> np.ndarray:
    r"""Class of each row after one iteration, given column sums of the reference.

    The library takes one reference for all rows; here each row may have its own, so
    :math:`\arg\max_j q_j b_j^\alpha / (S_j + b_j^\alpha)` is written out.

    Parameters
    ----------
    power : ndarray of shape (t, m)
        Rows in doubt, to the power alpha.
    sums : ndarray of shape (m,) or (t, m)
        Column sums of the reference, to the power alpha.
    prior : ndarray of shape (m,)
        Class prior.

    Returns
    -------
    ndarray of shape (t,)
        Class codes.
    """
    total = power + sums
    np.divide(power, total, out=total, where=total > 0)
    total *= prior
    return total.argmax(axis=1)


def prior_of(kind: str, proba: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Class prior as the library counts it: "counted", "uniform" or "shrunk"."""
    prior = None if kind == "counted" else kind
    normalizer = altnorm.AlternatingNormalizer(prior=prior, reference="all").fit(proba, y)
    return normalizer.prior_


class Rows(NamedTuple):
    """Rows that may be in doubt: of each validation fold, then of the test data."""

    proba: np.ndarray
    y: np.ndarray
    ambiguity: np.ndarray
    spans: tuple[slice, ...]  # one per fold, and the last for the test rows


class Bench:
    """Validation rows as reference, cross-fitted for each other and whole for the test rows.

    Parameters
    ----------
    data : Classifier
        Predictions and labels.
    seed : int
        Deals the validation rows into folds.

    Attributes
    ----------
    rows : Rows
        What is adjusted.
    folds : ndarray
        Fold of each validation row.
    outside : ndarray of shape (n_folds + 1, n_val)
        Whether a validation row may serve as reference for each span of rows.
    ambiguity, predicted : ndarray
        Of the validation rows.
    """

    def __init__(self, data: Classifier, seed: int) -> None:
        self.data = data
        self.ambiguity = altnorm.ambiguity(data.val_proba)
        self.predicted = data.val_proba.argmax(axis=1)
        n = len(data.val_y)
        self.folds = np.empty(n, int)
        deal = KFold(N_FOLDS, shuffle=True, random_state=seed)
        for k, (_, inside) in enumerate(deal.split(data.val_proba)):
            self.folds[inside] = k
        groups = np.arange(N_FOLDS + 1)[:, None]
        self.outside = self.folds != groups
        self.sizes = np.array([n, len(data.test_y)])
        self.rows = self._collect_rows()
        self._before = self.rows.proba.argmax(axis=1) == self.rows.y

    def _collect_rows(self) -> Rows:
        data, low = self.data, min(THRESHOLDS)
        test_ambiguity = altnorm.ambiguity(data.test_proba)
        parts = [np.flatnonzero((self.folds == k) & (self.ambiguity > low)) for k in range(N_FOLDS)]
        val, test = np.concatenate(parts), np.flatnonzero(test_ambiguity > low)
        ends = np.cumsum([0, *map(len, parts), len(test)])
        return Rows(
            np.concatenate([data.val_proba[val], data.test_proba[test]]),
            np.concatenate([data.val_y[val], data.test_y[test]]),
            np.concatenate([self.ambiguity[val], test_ambiguity[test]]),
            tuple(slice(a, b) for a, b in pairwise(ends)),
        )

    def priors(self, kind: str) -> np.ndarray:
        """Prior for each span of rows, counted on the validation rows outside of it."""
        val, y = self.data.val_proba, self.data.val_y
        return np.stack([prior_of(kind, val[rows], y[rows]) for rows in self.outside])

    def gains(self, power: np.ndarray, sums: np.ndarray, priors: np.ndarray) -> np.ndarray:
        """Gain in accuracy points for each threshold, cross-fitted and on test data.

        Parameters
        ----------
        power : ndarray of shape (t, m)
            The rows, to the power alpha.
        sums : ndarray of shape (n_folds + 1, m) or (t, m)
            Column sums of the reference, for each span or for each row.
        priors : ndarray of shape (n_folds + 1, m)
            Prior for each span.

        Returns
        -------
        ndarray of shape (n_thresholds, 2)
            Gains.
        """
        step = np.empty(len(power))
        own = len(sums) == len(power)
        for k, span in enumerate(self.rows.spans):
            after = one_step(power[span], sums[span] if own else sums[k], priors[k])
            step[span] = (after == self.rows.y[span]).astype(float) - self._before[span]
        doubt = self.rows.ambiguity > np.array(THRESHOLDS)[:, None]
        moved = step * doubt
        n_val = self.rows.spans[-1].start
        totals = [moved[:, :n_val].sum(axis=1), moved[:, n_val:].sum(axis=1)]
        return 100 * np.stack(totals, axis=1) / self.sizes


def find_neighbours(bench: Bench, sizes: tuple[int, ...]) -> dict[int, np.ndarray]:
    r"""For each row the nearest validation rows outside its fold.

    Near means a small Hellinger distance between the probabilities, that is, a large sum of
    :math:`\sqrt{p_j a_j}`.

    Parameters
    ----------
    bench : Bench
        The rows.
    sizes : tuple of int
        How many neighbours to take.

    Returns
    -------
    dict of ndarray of shape (t, n_val)
        For each size a 0/1 matrix that says which validation rows serve.
    """
    near = np.sqrt(bench.rows.proba) @ np.sqrt(bench.data.val_proba).T
    for k, span in enumerate(bench.rows.spans):
        near[span, ~bench.outside[k]] = -1
    found = {}
    for size in sizes:
        kept = np.argpartition(-near, size - 1, axis=1)[:, :size]
        serves = np.zeros(near.shape)
        np.put_along_axis(serves, kept, 1.0, axis=1)
        found[size] = serves
    return found

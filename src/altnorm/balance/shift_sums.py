"""What is kept of validation rows and of new ones to find out about a class balance."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from altnorm.balance.mean_tests import Sums


class Profile(NamedTuple):
    """Sums over calibrated validation rows, and some of these.

    Attributes
    ----------
    table : ndarray of shape (m, b, m)
        Rows by predicted class, confidence bin and label; of weighted rows, as many as they are
        worth.
    edges : ndarray of shape (m, b - 1)
        Confidences between the bins of each predicted class.
    balance : ndarray of shape (m,)
        Class balance, as the calibrated probabilities have it.
    products : ndarray of shape (m, m)
        Mean product of the probabilities of two classes.
    rows : ndarray of float32 of shape (k, m)
        Rows that stand for all of them, each for as many.

    See Also
    --------
    altnorm.balance.label_shift.profile_rows : Sums rows up.

    Examples
    --------
    A fitted estimator keeps them as plain arrays:

    >>> import numpy as np
    >>> from altnorm import Adjuster
    >>> from altnorm.balance.label_shift import Profile
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(2, size=100)
    >>> proba = np.where(y[:, None] == [0, 1], 0.8, 0.2)
    >>> Profile(*Adjuster(("bias",)).fit(proba, y).shift_profile_).n_rows
    100.0
    """

    table: np.ndarray
    edges: np.ndarray
    balance: np.ndarray
    products: np.ndarray
    rows: np.ndarray

    @property
    def counts(self) -> np.ndarray:
        """Rows of each predicted class and confidence bin, (m, b)."""
        return np.asarray(self.table.sum(axis=2))

    @property
    def n_rows(self) -> float:
        """Number of rows, or what weighted ones are worth."""
        return float(self.table.sum())

    def reweighted(self, balance: np.ndarray) -> np.ndarray:
        """Rows of each bin, (m, b), if the classes had another balance.

        Re-weighted rows count less than as many independent ones: they are scaled to the number
        that these are worth.
        """
        weight = balance / self.balance
        sums = self.table @ weight
        return np.asarray(sums * _ratio(sums.sum(), (self.table @ weight**2).sum()))

    def reweighted_within(self, balance: np.ndarray) -> np.ndarray:
        """Return the same, with the rows of each predicted class scaled on their own."""
        weight = balance / self.balance
        sums, squares = self.table @ weight, self.table @ weight**2
        return np.asarray(sums * _ratio(sums.sum(axis=1), squares.sum(axis=1))[:, None])

    def sums(self, balance: np.ndarray | None = None) -> Sums:
        """Return mean and variance of the probabilities, if the classes had another balance.

        A row counts as much as its calibrated probabilities say that its class does.
        """
        mean = self.products.sum(axis=1)
        variance = np.diag(self.products) - mean**2
        if balance is None:
            return Sums(self.n_rows, mean, variance)
        changed = self.products @ (balance / self.balance)
        return Sums(float(self.reweighted(balance).sum()), changed / changed.sum(), variance)

    @property
    def covariance(self) -> np.ndarray:
        """Covariance of the probabilities of a row, (m, m)."""
        mean = self.products.sum(axis=1)
        return np.asarray(self.products - np.outer(mean, mean))


def _ratio(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.divide(a, b, out=np.zeros(np.shape(a)), where=np.asarray(b) > 0)


class Intake(NamedTuple):
    """Sums over calibrated new rows; those of two batches add up.

    Attributes
    ----------
    counts : ndarray of shape (m, b)
        Rows of each predicted class and confidence bin.
    mass, squares : ndarray of shape (m,)
        Sums of the probabilities and of their squares.
    share : ndarray of shape (g, m)
        Sum of the probabilities under the balance of the batch, for each of `g` priors.
    one_class : ndarray of shape (k, m)
        Log-likelihood that one class has one of `k` shares and the others their old proportions.
    evidence : ndarray of shape (g + 1,)
        Held-out log-likelihood of each prior, and of a change of one class, less that of the old
        balance.
    information : ndarray of shape (m, m)
        Fisher information about the balance.
    """

    counts: np.ndarray
    mass: np.ndarray
    squares: np.ndarray
    share: np.ndarray
    one_class: np.ndarray
    evidence: np.ndarray
    information: np.ndarray

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.counts.sum())

    def plus(self, other: Intake) -> Intake:
        """Return the sums over both batches."""
        return Intake(*(a + b for a, b in zip(self, other, strict=True)))

    def sums(self) -> Sums:
        """Return mean and variance of the probabilities."""
        mean = self.mass / max(self.n_rows, 1)
        return Sums(self.n_rows, mean, self.squares / max(self.n_rows, 1) - mean**2)


def find_bins(proba: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Number of each row's bin, by predicted class and confidence."""
    decided = proba.argmax(axis=1)
    above = proba.max(axis=1)[:, None] > edges[decided]
    return np.asarray(decided * (edges.shape[1] + 1) + above.sum(axis=1))

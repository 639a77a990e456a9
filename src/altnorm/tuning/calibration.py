r"""Probabilities that can be trusted, without touching a decision.

What is best for decisions is often bad for probabilities: alternating normalization moves mass as
if it were certain. So after the decisions are made, probabilities get a competition of their own,
judged by log-loss: a temperature on what the decisions' family returns (one for the rows it
touched, one for the others), the bias family, and the matrix family. Where a calibrated row would
decide otherwise, the classes ahead of the decided one are lowered, and it is raised, until they
meet (:func:`keep_decisions`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, logit, softmax

from altnorm._array import block_slices, quiet
from altnorm._scores import MULTI_LABEL, SINGLE_LABEL
from altnorm.peers._likelihood import Likelihood, fit_slope
from altnorm.tuning.attribution import Attribution
from altnorm.tuning.evidence import Ledger
from altnorm.tuning.families import AffineFamily, Family
from altnorm.tuning.folds import Dealing, Validation

__all__ = ["Temperatures", "cool", "fit_temperatures", "keep_decisions", "try_calibrations"]

FEWEST = 50  # rows, or labels, that a temperature of its own needs


class Temperatures(NamedTuple):
    """A temperature for rows that the family touched, and one for the others."""

    touched: float
    others: float

    @property
    def family(self) -> str:
        """Name of the family."""
        return "temperature"

    def severity(self) -> tuple[float, ...]:
        """Order among calibrations of equal gain: a temperature is the mildest."""
        return (0.0,)


TEMPERATURES = Temperatures(np.nan, np.nan)
"""Stands for the temperatures that each fold gets from the others."""


def keep_decisions(
    proba: np.ndarray, decided: np.ndarray, *, overwrite: bool = False
) -> np.ndarray:
    """Return `proba`, changed as little as leaves `decided` on top.

    In a row that would decide otherwise, the classes above some level are lowered to it, and what
    they lose lifts the decided class to the same level (the nearest such row in Kullback-Leibler
    divergence), and a hair above it.

    Parameters
    ----------
    proba : ndarray of shape (n, m)
        Rows that sum to 1.
    decided : ndarray of shape (n,)
        Class of each row.
    overwrite : bool, default=False
        Whether the memory of `proba` may be used.

    Returns
    -------
    ndarray of shape (n, m)
        Rows that sum to 1, whose largest entry is that of the decided class.

    Examples
    --------
    >>> import numpy as np
    >>> from altnorm.tuning.calibration import keep_decisions
    >>> keep_decisions(np.array([[0.5, 0.3, 0.2], [0.7, 0.2, 0.1]]), np.array([1, 0])).round(3)
    array([[0.4, 0.4, 0.2],
           [0.7, 0.2, 0.1]])
    """
    rows = np.flatnonzero(proba.argmax(axis=1) != decided)
    if not rows.size:
        return proba
    out = proba if overwrite else proba.copy()
    hair = 4 * float(np.finfo(proba.dtype).eps)
    for block in block_slices(rows.size, 48 * proba.shape[1], proba, cached=True):
        some = rows[block]
        out[some] = _raise_decided(proba[some].astype(np.float64), decided[some], hair)
    return out


def _raise_decided(p: np.ndarray, own: np.ndarray, hair: float) -> np.ndarray:
    """Lower the classes ahead of each row's own until they meet, a hair below it."""
    n, m = p.shape
    kept = p[np.arange(n), own][:, None]
    p[np.arange(n), own] = -1.0
    ahead = -np.sort(-p, axis=1)[:, : m - 1]
    # Lowering the k largest others gives their mean with the decided class. It rises with k as long
    # as the next one is above it, so the largest mean is the level at which they meet.
    level = ((kept + ahead.cumsum(axis=1)) / np.arange(2, m + 1)).max(axis=1, keepdims=True)
    p = np.minimum(p, level * (1 - hair))
    p[np.arange(n), own] = 0.0
    # The rest of the row, which rounding may leave a little below the level.
    p[np.arange(n), own] = np.maximum(1 - p.sum(axis=1), level[:, 0])
    return p


def cool(proba: np.ndarray, touched: np.ndarray, temperatures: Temperatures) -> np.ndarray:
    """Divide log-probabilities by the temperature of their row.

    For several labels per row, log-odds by that of their entry: `touched` has the shape of
    `proba` there.
    """
    return _cool(proba, np.where(touched, temperatures.touched, temperatures.others))


def _cool(proba: np.ndarray, temperature: np.ndarray) -> np.ndarray:
    """As `cool`, given the temperature of each row, or of each entry."""
    out = np.empty_like(proba)
    with quiet(np):
        for rows in block_slices(len(proba), 48 * proba.shape[1], proba, cached=True):
            p, t = proba[rows].astype(np.float64, copy=False), temperature[rows]
            if t.ndim == 1:
                out[rows] = softmax(np.log(p) / t[:, None], axis=1)
            else:
                out[rows] = expit(logit(p) / t)
    return out


def fit_temperatures(
    proba: np.ndarray, touched: np.ndarray, labels: np.ndarray, weight: np.ndarray
) -> Temperatures:
    """Fit both temperatures to labels; a group too small for its own takes that of all.

    Rows of weight 0 have no part in it.
    """
    if touched.ndim == 2:  # every label of a row is a row of two classes
        weight = np.repeat(weight, proba.shape[1])
        touched, labels = touched.reshape(-1), labels.reshape(-1).astype(int)
        proba = np.stack([1 - proba.reshape(-1), proba.reshape(-1)], axis=1)
    groups = [np.flatnonzero(group & (weight > 0)) for group in (touched, ~touched)]
    # One after the other, so that each group is a slice of one copy of the rows.
    rows = np.concatenate(groups)
    log_p = proba[rows]
    with quiet(np):
        np.log(log_p, out=log_p)
    eps = float(np.finfo(proba.dtype).eps)
    both = Likelihood.build(log_p, labels[rows], weight[rows], eps, overwrite=True)
    parts = both.take(slice(groups[0].size)), both.take(slice(groups[0].size, None))
    enough = [part if part.codes.size >= FEWEST else both for part in parts]
    return Temperatures(*(1 / fit_slope(loss, shrink=1.0) for loss in enough))


def is_touched(data: Validation, before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """Which rows a family changed at all, or which entries where there are several labels."""
    differs = before != after
    if data.kind.is_multilabel and data.kind.decision != "threshold":
        # Such a rule compares labels with one another: only one temperature for all keeps it.
        return np.zeros_like(differs)
    return differs if data.kind.is_multilabel else differs.any(axis=1)


def try_calibrations(
    data: Validation,
    dealings: list[Dealing],
    decider: tuple[Family, Any] | None,
    families: Sequence[AffineFamily],
) -> Ledger:
    """Judge every calibration by log-loss, cross-fitted, on the dealings that were explored."""
    table = MULTI_LABEL if data.kind.is_multilabel else SINGLE_LABEL
    data = data._replace(score=table["neg_log_loss"])
    ledger: Ledger | None = None
    for dealing in dealings:
        ledger = _try_dealing(data, dealing, decider, families, ledger)
    assert ledger is not None
    return ledger


def _try_dealing(
    data: Validation,
    dealing: Dealing,
    decider: tuple[Family, Any] | None,
    families: Sequence[AffineFamily],
    ledger: Ledger | None,
) -> Ledger:
    """Add the records of one dealing; what is as large as the data is gone afterwards."""
    base = data.proba if decider is None else decider[0].crossfit_proba(dealing, decider[1])
    attribution = Attribution(data, base)
    ledger = Ledger(attribution) if ledger is None else ledger
    ledger.attribute = attribution
    ledger.start_round()
    for setting, proba in _calibrations(dealing, base, families):
        ledger.record(setting, proba)
        del proba  # before the next one is made
    return ledger


def _calibrations(
    dealing: Dealing, base: np.ndarray, families: Sequence[AffineFamily]
) -> Iterator[tuple[Any, np.ndarray]]:
    """Yield each calibration with its cross-fitted probabilities."""
    if dealing.data.kind.is_multilabel:
        yield TEMPERATURES, _crossfit_cooled(dealing, base)
        return
    decided = base.argmax(axis=1)
    yield TEMPERATURES, keep_decisions(_crossfit_cooled(dealing, base), decided, overwrite=True)
    for family in families:
        setting = family.likeliest()
        proba = family.crossfit_proba(dealing, setting)
        yield setting, keep_decisions(proba, decided, overwrite=True)
        del proba


def _crossfit_cooled(dealing: Dealing, base: np.ndarray) -> np.ndarray:
    """Divide by the temperatures that each fold gets from the others."""
    data = dealing.data
    touched = is_touched(data, data.proba, base)
    temperature = np.empty(touched.shape)
    for k in range(dealing.n_folds):
        inside = dealing.folds == k
        weight = np.where(inside, 0.0, data.row_weight)
        found = fit_temperatures(base, touched, data.labels, weight)
        temperature[inside] = np.where(touched[inside], *found)
    return _cool(base, temperature)

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
from scipy.special import expit, logit

from altnorm._base.arrays import (
    Array,
    array_namespace,
    as_array,
    block_slices,
    column_of_max,
    is_foreign,
    move,
    put_rows,
    quiet,
    softmax,
    take_rows,
    to_numpy,
    widest_float,
)
from altnorm.adjuster.attribution import Attribution
from altnorm.adjuster.evidence import Ledger
from altnorm.adjuster.families import AffineFamily, Family
from altnorm.adjuster.folds import Dealing, Validation
from altnorm.evidence.scores import NEG_LOG_LOSS
from altnorm.families.device import DeviceLikelihood
from altnorm.families.likelihood import Likelihood, fit_slope
from altnorm.method.kinds import LabelKind

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


def keep_decisions(proba: Array, decided: np.ndarray, *, overwrite: bool = False) -> np.ndarray:
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
    >>> from altnorm.adjuster.calibration import keep_decisions
    >>> keep_decisions(np.array([[0.5, 0.3, 0.2], [0.7, 0.2, 0.1]]), np.array([1, 0])).round(3)
    array([[0.4, 0.4, 0.2],
           [0.7, 0.2, 0.1]])
    """
    differs = column_of_max(proba) != decided
    if not differs.any():
        return proba
    xp, rows = array_namespace(proba), np.flatnonzero(differs)
    out = proba if overwrite else xp.asarray(proba, copy=True)
    hair = 4 * float(xp.finfo(proba.dtype).eps)
    if is_foreign(proba):  # few rows, and a sort of each
        p = to_numpy(take_rows(proba, rows)).astype(np.float64)
        return put_rows(out, differs, _raise_decided(p, decided[rows], hair))
    for block in block_slices(rows.size, 48 * proba.shape[1], proba, cached=True):
        some = rows[block]
        out[some] = _raise_decided(proba[some].astype(np.float64), decided[some], hair)
    return out


def settle_decisions(
    kind: LabelKind, proba: Array, decided: np.ndarray, *, overwrite: bool = False
) -> Array:
    """Return calibrated probabilities that decide as `decided` says."""
    if kind.is_multilabel:  # a temperature leaves every label on its side of one half
        return proba
    return keep_decisions(proba, decided, overwrite=overwrite)


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


def cool(proba: Array, touched: np.ndarray, temperatures: Temperatures) -> Array:
    """Divide log-probabilities by the temperature of their row.

    For several labels per row, log-odds by that of their entry: `touched` has the shape of
    `proba` there.
    """
    return _cool(proba, np.where(touched, temperatures.touched, temperatures.others))


def _cool(proba: Array, temperature: np.ndarray) -> Array:
    """As `cool`, given the temperature of each row, or of each entry."""
    if is_foreign(proba):
        xp = array_namespace(proba)
        p = xp.astype(proba, widest_float(proba), copy=False)
        return xp.astype(softmax(xp.log(p) / as_array(temperature, p)[:, None]), proba.dtype)
    out = np.empty_like(proba)
    with quiet(np):
        for rows in block_slices(len(proba), 48 * proba.shape[1], proba, cached=True):
            p, t = proba[rows].astype(np.float64, copy=False), temperature[rows]
            if t.ndim == 1:
                out[rows] = softmax(np.log(p) / t[:, None])
            else:
                out[rows] = expit(logit(p) / t)
    return out


def fit_temperatures(
    proba: Array, touched: np.ndarray, labels: np.ndarray, weight: np.ndarray
) -> Temperatures:
    """Fit both temperatures to labels; a group too small for its own takes that of all.

    Rows of weight 0 have no part in it.
    """
    if touched.ndim == 2:  # every label of a row is a row of two classes
        weight = np.repeat(weight, proba.shape[1])
        touched, labels = touched.reshape(-1), labels.reshape(-1).astype(int)
        proba = np.stack([1 - proba.reshape(-1), proba.reshape(-1)], axis=1)
    if is_foreign(proba):
        losses = _device_losses(proba, touched, labels, weight)
        return Temperatures(*(1 / fit_slope(loss, shrink=1.0) for loss in losses))
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


def _device_losses(
    proba: Array, touched: np.ndarray, labels: np.ndarray, weight: np.ndarray
) -> list[DeviceLikelihood]:
    """Losses of the rows that were touched and of the others, where the rows are."""
    xp = array_namespace(proba)
    log_p, eps = xp.log(proba), float(xp.finfo(proba.dtype).eps)
    weights = [np.where(group, weight, 0.0) for group in (touched, ~touched)]
    enough = [w if np.count_nonzero(w) >= FEWEST else weight for w in weights]
    zero = np.zeros(log_p.shape[1])
    return [DeviceLikelihood.build(log_p, labels, w, eps, shift=zero) for w in enough]


def temperature_groups(kind: LabelKind, before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """Which rows, or which entries, get the temperature of those that a family touched."""
    touched = kind.touched(before, after)
    # Where a rule compares labels, only one temperature for all leaves the comparison as it is.
    return np.zeros_like(touched) if kind.compares_labels else touched


def try_calibrations(
    data: Validation,
    dealings: list[Dealing],
    decider: tuple[Family, Any] | None,
    families: Sequence[AffineFamily],
) -> Ledger:
    """Judge every calibration by log-loss, cross-fitted, on the dealings that were explored."""
    data = data._replace(score=NEG_LOG_LOSS)
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
    kind = dealing.data.kind
    decided = kind.decide(base)
    cooled = settle_decisions(kind, _crossfit_cooled(dealing, base), decided, overwrite=True)
    yield TEMPERATURES, to_numpy(cooled)
    del cooled
    for family in families:
        setting = family.likeliest()
        proba = family.crossfit_proba(dealing, setting)
        yield setting, settle_decisions(kind, proba, decided, overwrite=True)
        del proba


def _crossfit_cooled(dealing: Dealing, base: np.ndarray) -> Array:
    """Divide by the temperatures that each fold gets from the others."""
    data = dealing.data
    touched = temperature_groups(data.kind, data.proba, base)
    temperature, base = np.empty(touched.shape), move(base, data.work)
    for k in range(dealing.n_folds):
        inside = dealing.folds == k
        weight = np.where(inside, 0.0, data.row_weight)
        found = fit_temperatures(base, touched, data.labels, weight)
        temperature[inside] = np.where(touched[inside], *found)
    return _cool(base, temperature)

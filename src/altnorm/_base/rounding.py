"""Rows that almost sum to 1: whether the way their numbers were written explains it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

HALF_PRECISION = 1e-2  # how far a softmax in 16 bits may be from 1
_MOST = {2: 0.02}  # so few decimals explain anything: not further than this
_MOST_OTHERWISE = 0.05


class Rounding(NamedTuple):
    """How numbers were rounded, and how far from 1 that lets the sum of a row be."""

    how: str
    tolerance: float


def find_rounding(values: np.ndarray) -> Rounding | None:
    """Say how probabilities were rounded, from the values alone; None if they were not.

    With `d` decimals each of `m` numbers is off by at most half a unit of the last, and their sum
    by ``m / 2 * 10**-d``.

    Parameters
    ----------
    values : ndarray of shape (n, m)
        Finite numbers, float32 or float64.

    Returns
    -------
    Rounding or None
        To decimals, or to half precision.

    Examples
    --------
    >>> import numpy as np
    >>> from altnorm._base.rounding import find_rounding
    >>> find_rounding(np.array([[0.3333, 0.3333, 0.3333]])).how
    '4 decimals'
    >>> find_rounding(np.array([[1 / 3, 1 / 3, 1 / 3]])) is None
    True
    """
    if values.max() > 2:  # no probability, however it was rounded
        return None
    single, half = values.astype(np.float32), values.astype(np.float16)
    if np.array_equal(half, values):
        return Rounding("half precision", HALF_PRECISION)
    if np.array_equal(single, values) and not (single.view(np.uint32) & 0xFFFF).any():
        return Rounding("bfloat16", HALF_PRECISION)
    for decimals in range(2, 6 if values.dtype == np.float32 else 9):
        scaled = values.astype(np.float64) * 10.0**decimals
        if (np.abs(scaled - np.rint(scaled)) <= 4 * np.finfo(values.dtype).eps * scaled).all():
            bound = values.shape[1] / 2 * 10.0**-decimals
            return Rounding(
                f"{decimals} decimals", min(bound, _MOST.get(decimals, _MOST_OTHERWISE))
            )
    return None

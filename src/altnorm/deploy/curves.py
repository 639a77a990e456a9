"""Smooth functions of one number, tabulated to rounding accuracy.

With two classes, or for one of several labels, the whole of alternating normalization, whatever its
depth and however large the reference, is a function from one number to another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.polynomial import chebyshev
from scipy.optimize import brentq
from scipy.special import expit

from altnorm.deploy.program import Curve
from altnorm.method.ambiguity import binary_ambiguity
from altnorm.method.two_classes import chebyshev_nodes, chebyshev_series

_DEGREE = 13
_PIECES = 8  # at the start
_MAX_PIECES = 4096
_LARGEST_LOGIT = 745.0  # of the smallest positive double

Function = Callable[[np.ndarray], np.ndarray]


def largest_logit(threshold: float) -> float:
    """Log-odds at which the entropy of two probabilities, in bits, falls to `threshold`."""
    if threshold >= 1:
        return 1e-3  # nothing is in doubt

    def excess(z: float) -> float:
        return float(binary_ambiguity(expit(np.array(-z)))) - threshold

    if excess(_LARGEST_LOGIT) >= 0:
        return _LARGEST_LOGIT
    return min(_LARGEST_LOGIT, 1e-3 + brentq(excess, 0.0, _LARGEST_LOGIT))


def tabulate(functions: Sequence[Function], reach: float, tolerance: float) -> Curve:
    """Tabulate functions on [-reach, reach]; an error is relative where values exceed 1."""
    pieces = [_pieces(function, reach, tolerance) for function in functions]
    count = np.array([len(center) for center, _, _ in pieces])
    last = np.cumsum(count) - 1
    center, half, coefficients = (
        np.concatenate(part, axis=-1) for part in zip(*pieces, strict=True)
    )
    first = last + 1 - count
    n_halvings = int(np.max(last - first)).bit_length()
    where = reach, n_halvings, first, last, center - half
    return Curve(*where, center, 1 / half, tuple(coefficients))


def _pieces(
    function: Function, reach: float, tolerance: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Polynomials on pieces, each cut in four until it is as exact as the function itself.

    The function costs about the same at ten points and at ten thousand, so all pieces of one
    size are tried at once.
    """
    half = np.full(_PIECES, reach / _PIECES)
    center = reach * (2 * np.arange(_PIECES) + 1 - _PIECES) / _PIECES
    done: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    n_pieces = 0
    while center.size:
        coefficients, good = _fit_pieces(function, center, half, tolerance)
        too_many = n_pieces + 4 * center.size > _MAX_PIECES
        good |= too_many | (half < 1e-12 * np.maximum(1.0, np.abs(center)))
        done.append((center[good], half[good], coefficients[:, good]))
        n_pieces += int(good.sum())
        quarter = half[~good] / 4
        center = (center[~good] + quarter * np.array([[-3.0], [-1.0], [1.0], [3.0]])).reshape(-1)
        half = np.tile(quarter, 4)
    centers, halves, coefficients = (
        np.concatenate(part, axis=-1) for part in zip(*done, strict=True)
    )
    order = np.argsort(centers)
    return centers[order], halves[order], coefficients[:, order]


def _fit_pieces(
    function: Function, center: np.ndarray, half: np.ndarray, tolerance: float
) -> tuple[np.ndarray, np.ndarray]:
    """Interpolate on each piece; say where the result holds between the nodes, too."""
    nodes = chebyshev_nodes(_DEGREE)
    between = 0.5 * (nodes[1:] + nodes[:-1])
    points = center + half * np.concatenate([nodes, between])[:, None]
    values = function(points.reshape(-1)).reshape(points.shape)
    series = chebyshev_series(values[: nodes.size])
    to_powers = np.stack([_powers(k) for k in range(_DEGREE + 1)], axis=1)
    coefficients = to_powers @ series
    found = np.vander(between, _DEGREE + 1, increasing=True) @ coefficients
    truth = values[nodes.size :]
    error = np.abs(found - truth) / np.maximum(1.0, np.abs(truth))
    return coefficients, (error <= tolerance).all(axis=0)


def _powers(k: int) -> np.ndarray:
    """Chebyshev polynomial k in powers of its argument."""
    unit = np.zeros(_DEGREE + 1)
    unit[k] = 1.0
    powers = np.zeros(_DEGREE + 1)
    powers[: k + 1] = chebyshev.cheb2poly(unit)[: k + 1]
    return powers

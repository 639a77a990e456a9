"""The sliders beyond depth 1, where the browser cannot compute: all positions computed beforehand.

From the second iteration on every row has a reference of its own, so that a position costs two
matrix products for each further iteration. The page carries the outcome for a sample of rows.
"""

from __future__ import annotations

import warnings

import numpy as np

from altnorm._base.errors import InputWarning
from altnorm.method.functional import alternating_normalization
from altnorm.report._reference import Block, Reference

ALPHAS = (0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 4, 8, 16)
THRESHOLDS = (0.25, 0.5, 0.75)
TOP = 8
BUDGET = 5e10  # multiplications in all; some ten seconds of one core
MOST_ROWS, FEWEST_ROWS = 1000, 100
LEVELS = 2**16 - 2


def affordable_rows(reference: Reference, depth: int, n_positions: int) -> int:
    """Return how many rows may be adjusted at every position; 0 where it would be too few."""
    size = sum(block.rows.size for block in reference.blocks)
    n_classes = reference.blocks[0].rows.shape[1]
    if n_classes == 2:  # the cost is that of the reference alone
        return MOST_ROWS if 50 * size * depth * n_positions < BUDGET else 0
    rows = int(BUDGET / (2 * (depth - 1) * size * n_positions))
    return min(rows, MOST_ROWS) if rows >= FEWEST_ROWS else 0


def adjusted(
    rows: np.ndarray,
    ambiguity: np.ndarray,
    block: Block,
    reference: Reference,
    alpha: float,
    depth: int,
    threshold: float,
) -> np.ndarray:
    """Adjust the rows in doubt against those of a block that serve.

    Parameters
    ----------
    rows : ndarray of shape (n, m)
        Probabilities.
    ambiguity : ndarray of shape (n,)
        Theirs.
    block : Block
        Reference rows and prior.
    reference : Reference
        Which of them serve, and the smoothing.
    alpha, depth, threshold : float, int, float
        The setting.

    Returns
    -------
    ndarray of shape (n, m)
        Probabilities; rows without doubt as they were.
    """
    found = np.array(rows, dtype=np.float64)
    doubt = ambiguity > threshold
    serves = block.weight > 0
    if reference.confident:
        serves &= block.ambiguity <= threshold
    if not (doubt.any() and serves.any()):
        return found
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)  # fit has said it
        found[doubt] = alternating_normalization(
            found[doubt],
            np.asarray(block.rows[serves], dtype=np.float64),
            prior=block.prior,
            alpha=alpha,
            depth=depth,
            reference_weight=block.weight[serves],
            smoothing=reference.smoothing,
        )
    return found


def quantized(proba: np.ndarray) -> np.ndarray:
    """Probabilities in 65,535 steps; the largest of a row stays the only largest."""
    steps = np.floor(proba * LEVELS)
    steps[np.arange(len(steps)), proba.argmax(axis=1)] += 1
    return steps.astype(np.uint16)

r"""Predictions as they would be if the decisions that came with them were right.

The log loss of a correction is evidence for other decisions if it is lower than with any
probabilities of which the decisions as they came are the best. For accuracy these are the rows at a
temperature. A goal that counts class j with weight :math:`w_j` asks for the class of largest
:math:`w_j p_j`; that is the most probable class of a row b as it came if

.. math:: p_j \propto b_j^a / w_j .

So rows of a classifier that was trained for the goal gain much log loss by other probabilities, and
that says nothing for other decisions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from scipy.optimize import minimize

from altnorm._base.arrays import Array
from altnorm.families.likelihood import (
    BIASES,
    SLOPE_SHRINKAGE,
    SLOPES,
    Likelihood,
    label_log_p,
)
from altnorm.families.scores import fit_tempering


def as_if_right(
    log_p: np.ndarray,
    labels: np.ndarray,
    weight: np.ndarray,
    folds: np.ndarray,
    class_weights: Sequence[np.ndarray],
    *,
    is_known: bool,
) -> np.ndarray:
    """Log-probability of each row's label, cross-fitted, if decisions as they came were right.

    `class_weights` are those of the goal's rule, fitted outside each fold. If the goal does not
    make them known, they are uncertain themselves, and labels say how much of them there is.
    """
    out = np.empty(len(log_p))
    for k, weights in enumerate(class_weights):
        inside = folds == k
        scores = _fit(log_p[~inside], labels[~inside], weight[~inside], weights, is_known)
        out[inside] = label_log_p(scores, log_p[inside], labels[inside])
    return out


def _fit(
    log_p: np.ndarray,
    labels: np.ndarray,
    weight: np.ndarray,
    class_weights: np.ndarray,
    is_known: bool,
) -> Callable[[Array], Array]:
    """Fit the slope and, unless it is known, how much of the class weights there is.

    What is returned gives scores of rows of log-probabilities; their softmax is the prediction.
    Before labels speak, the slope is that of the temperature alone: where all predictions are
    right, it would be infinite otherwise, and one row would outweigh all others.
    """
    tempering = fit_tempering(log_p, labels, weight)
    loss = Likelihood.build(tempering.logs(log_p), labels, weight)
    tilt = np.log(class_weights)
    tilt = np.minimum(tilt.max() - tilt, BIASES[1] - BIASES[0])
    most = BIASES[1] / max(float(tilt.max()), 1.0)
    shares = (1.0, 1.0) if is_known else (0.0, most)
    bounds = (tuple(np.log(SLOPES)), shares)
    best = minimize(partial(_loss, loss, tilt), (0.0, 1.0), jac=True, bounds=bounds).x
    slope, tilt = float(np.exp(best[0])), best[1] * tilt
    return lambda rows: slope * tempering.logs(rows) + tilt


def _loss(loss: Likelihood, tilt: np.ndarray, at: np.ndarray) -> tuple[float, np.ndarray]:
    """The loss and its derivatives by the logarithm of the slope and by the share."""
    slope, held = float(np.exp(at[0])), SLOPE_SHRINKAGE * float(at[0])
    value, by_slope, by_bias = loss.value_and_grad(slope, at[1] * tilt)
    return value + held * float(at[0]) / 2, np.array([slope * by_slope + held, by_bias @ tilt])

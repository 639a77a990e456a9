"""Matrix scaling: the score of a class is a line in the log-probabilities of all classes."""

from __future__ import annotations

from functools import partial

import numpy as np

from altnorm._base.arrays import Array
from altnorm._base.fitted import Fields
from altnorm._base.persistence import storable
from altnorm.families.base import PenalisedPeer
from altnorm.families.scores import Held, Scores, Shape, Tempering, fit_scores, score_path

MATRIX_STRENGTHS = tuple(512.0 * 4.0**-k for k in range(11))
"""Penalties to try, strongest first: with many classes far weaker ones are best than with ten."""


def matrix_shape(x: np.ndarray, weight: np.ndarray) -> Shape:
    """Log-probabilities as they are, pairs of classes held more firmly than the rest."""
    m = x.shape[1]
    # There are m - 1 times as many pairs. Times m, as the size of all scores grows with it.
    held = m * np.append(np.full(m, m - 1.0), 1.0)
    return Shape(None, np.zeros(m), np.ones(m), Held(held, pairs=float(m)))


matrix_path = partial(score_path, shape=matrix_shape)
"""Matrix scaling along a path of penalties."""


class ScoreScaling(PenalisedPeer):
    """Base of the peers whose scores are linear in what is fitted."""

    def _check_fitted(self, fields: Fields) -> None:
        super()._check_fitted(fields)
        m = fields.n_classes
        fields.array("matrix_", "f", (m, m), -1e9, 1e9)
        fields.array("bias_", "f", (m,), -1e9, 1e9)
        fields.number("strength_", 0, 1e300)
        fields.number("slope_", 1e-9, 1e9)
        fields.number("floor_", -1e3, 0)
        fields.number("uniform_", 0, 1)

    def _shape(self, n_rows: int) -> partial[Shape]:
        """What the scores are made of, given how many rows there are."""
        raise NotImplementedError

    def _fit(self, log_p: Array, codes: np.ndarray, weight: np.ndarray) -> None:
        shape = self._shape(codes.size)
        path = partial(score_path, shape=shape)
        strengths = self._choose_strength(path, log_p, codes, weight)
        self._store(fit_scores(log_p, codes, weight, strengths, shape=shape))

    def _store(self, fitted: Scores) -> None:
        self.slope_, self.floor_, self.uniform_ = fitted.tempering[:3]
        self.matrix_, self.bias_ = fitted.matrix, fitted.bias

    def _fitted_scores(self) -> Scores:
        slope, floor, uniform = map(float, (self.slope_, self.floor_, self.uniform_))
        tempering = Tempering(slope, floor, uniform, self.bias_.size)
        return Scores(tempering, self.matrix_, self.bias_)


@storable
class MatrixScaling(ScoreScaling):
    r"""Matrix scaling: the score of each class is a penalised sum over all log-probabilities.

    .. math:: p'_{i\cdot} = \operatorname{softmax}(x_i + D x_i + b),

    as in [1]_, with :math:`x_i` the log-probabilities at the temperature of least log loss, mixed
    with :math:`1 / (n + 1)` of the uniform distribution. It repairs confusions of pairs of classes,
    which no factor for each class can. Matrix and biases minimise the log loss on the validation
    labels plus

    .. math:: \frac{\lambda m}{2} \sum_j \Bigl(b_j^2 + \bigl(\sum_l D_{jl}\bigr)^2\Bigr)
              + \sum_{j \ne l} \log\Bigl(1 + \frac{\lambda m (m - 1)}{2} D_{jl}^2\Bigr),

    a weak penalty on what concerns one class, and a strong one on the many pairs of classes
    [2]_. The logarithm is that of a Cauchy density: confusions are expected to be few, and those
    that labels support are set free, while the others stay small.

    Parameters
    ----------
    strength : float or "cv", default="cv"
        Strength :math:`\lambda` of the penalty; "cv" as for :class:`BiasCorrectedTemperature`,
        among 512, 128, .., 1/2048.
    cv, input
        As for :class:`BiasCorrectedTemperature`.

    Attributes
    ----------
    matrix_ : ndarray of shape (n_classes, n_classes)
        Weight of each log-probability (columns) in the score of each class (rows): I + D.
    bias_ : ndarray of shape (n_classes,)
        Constants of the scores.
    strength_ : float
        The strength used.
    slope_, floor_, uniform_ : float
        How :math:`x` is made: the inverse temperature, what stands in for smaller
        log-probabilities, and the share of the uniform distribution.
    classes_ : ndarray of shape (n_classes,)
        The class each column stands for.

    References
    ----------
    .. [1] Guo, Pleiss, Sun, Weinberger, "On calibration of modern neural networks", ICML 2017.
    .. [2] Berta, Holzmüller, Jordan, Bach, "Structured matrix scaling for multi-class
       calibration", 2025.

    Examples
    --------
    Class 2 is mistaken for class 1 whenever class 0 is improbable:

    >>> import numpy as np
    >>> from altnorm.families import MatrixScaling
    >>> proba = np.array([[0.4, 0.5, 0.1], [0.1, 0.5, 0.4]] * 20)
    >>> scaling = MatrixScaling(strength=0.1).fit(proba, [1, 2] * 20)
    >>> scaling.predict(proba[:2])
    array([1, 2])
    """

    strengths = MATRIX_STRENGTHS

    def _shape(self, n_rows: int) -> partial[Shape]:
        return partial(matrix_shape)

"""Matrix and curve scaling: scores that are sums of lines, straight or bent, in all classes."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from functools import partial

import numpy as np

from altnorm._base.arrays import Array, block_slices
from altnorm._base.fitted import Fields
from altnorm._base.persistence import storable
from altnorm._base.validation import check_choice
from altnorm.families import scores
from altnorm.families.base import PenalisedPeer
from altnorm.families.labelwise import QUARTILES
from altnorm.families.scores import Bends, MakeShape, Scores, Shape

MATRIX_STRENGTHS = tuple(512.0 * 4.0**-k for k in range(11))
CURVE_STRENGTHS = tuple(256.0 * 4.0**-k for k in range(7))
"""Penalties to try, strongest first: with many classes a matrix asks for far weaker ones."""

N_FACETS = 300
"""Bends on sums of three classes: 1,000 are as good, at four times the cost."""

FACET_ROWS = 600
"""Rows from which on these are worth a try."""

MOST_ROWS = 2**15
"""Rows that bent lines are fitted to at most: four times as many gained less than 0.003 nats, and
take a gigabyte where there are a million."""

_CLASSES_OF_A_FACET = 3
_FLAT = 1e-9  # standard deviation of a feature that is as good as constant


def matrix_shape(x: np.ndarray, weight: np.ndarray) -> Shape:
    """Log-probabilities as they are, pairs of classes held more firmly than the rest."""
    m = x.shape[1]
    # There are m - 1 times as many pairs. Times m, as the size of all scores grows with it.
    held = m * np.append(np.full(m, m - 1.0), 1.0)
    return Shape(None, np.zeros(m), np.ones(m), held, pairs=float(m))


matrix_path = partial(scores.score_path, shape=matrix_shape)
"""Matrix scaling along a path of penalties."""


def curve_shape(x: np.ndarray, weight: np.ndarray, *, n_facets: int) -> Shape:
    """Log-probabilities and their bends, all standardised and held alike."""
    parts = zip(_own_bends(x), _facets(x, n_facets), strict=True)
    bends = Bends(*map(np.concatenate, parts))
    center, scale = _standard(x, weight, bends)
    return Shape(bends, center, scale, np.ones(center.size + 1))


def _standard(x: np.ndarray, weight: np.ndarray, bends: Bends) -> tuple[np.ndarray, np.ndarray]:
    """Weighted mean and standard deviation of each feature, in blocks of rows."""
    blocks = list(block_slices(len(x), 24 * (x.shape[1] + bends.edges.size), x, cached=True))

    def mean(function: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        sums = (weight[rows] @ function(scores.features_of(x[rows], bends)) for rows in blocks)
        return np.asarray(sum(sums) / weight.sum())

    center = mean(lambda features: features)
    scale = np.sqrt(mean(lambda features: (features - center) ** 2))
    return center, np.where(scale < _FLAT, 1.0, scale)


def curve_path(
    log_p: Array,
    codes: np.ndarray,
    weight: np.ndarray,
    strengths: Sequence[float],
    *,
    n_facets: int,
    rough: bool = False,
) -> Generator[Scores, None, None]:
    """Curve scaling along a path of penalties, fitted to some of very many rows."""
    shape = partial(curve_shape, n_facets=n_facets)
    yield from scores.score_path(log_p, codes, thinned(weight), strengths, shape=shape, rough=rough)


def thinned(weight: np.ndarray) -> np.ndarray:
    """Weights of which only some, at equal steps, are positive where rows are very many."""
    used = np.flatnonzero(weight > 0)
    if used.size <= MOST_ROWS:
        return weight
    kept = np.zeros_like(weight)
    kept[used[np.linspace(0, used.size - 1, MOST_ROWS).astype(int)]] = 1
    return weight * kept


def _own_bends(x: np.ndarray) -> Bends:
    """Each log-probability on its own, bent at its quartiles."""
    edges = np.quantile(x, QUARTILES, axis=0)
    return Bends(np.tile(np.eye(x.shape[1]), (len(QUARTILES), 1)), edges.ravel())


def _facets(x: np.ndarray, n_facets: int) -> Bends:
    """Sums of a few log-probabilities with random weights, each bent somewhere in the middle.

    Always the same draws; classes are taken in the order of their mean, so that renaming them
    changes nothing.
    """
    rng, m = np.random.default_rng(0), x.shape[1]
    order, size = np.argsort(x.mean(axis=0), kind="stable"), min(m, _CLASSES_OF_A_FACET)
    axes = np.zeros((n_facets, m))
    for axis in axes:
        axis[order[rng.choice(m, size, replace=False)]] = rng.normal(size=size)
    places = (rng.uniform(0.1, 0.9, size=n_facets) * (len(x) - 1)).astype(int)
    axes /= np.sqrt((axes**2).sum(axis=1, keepdims=True))
    edges = [np.partition(x @ axis, k)[k] for axis, k in zip(axes, places, strict=True)]
    return Bends(axes, np.array(edges))


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

    def _shape(self, n_rows: int) -> MakeShape:
        """What the scores are made of, given how many rows there are."""
        raise NotImplementedError

    def _fit(self, log_p: Array, codes: np.ndarray, weight: np.ndarray) -> None:
        shape = self._shape(codes.size)
        path = partial(scores.score_path, shape=shape)
        strengths = self._choose_strength(path, log_p, codes, weight)
        self._store(scores.fit_scores(log_p, codes, weight, strengths, shape=shape))

    def _store(self, fitted: Scores) -> None:
        self.slope_, self.floor_, self.uniform_ = fitted.tempering[:3]
        self.matrix_, self.bias_ = fitted.matrix, fitted.bias

    def _fitted_scores(self) -> Scores:
        slope, floor, uniform = map(float, (self.slope_, self.floor_, self.uniform_))
        tempering = scores.Tempering(slope, floor, uniform, self.bias_.size)
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
    >>> from altnorm.peers import MatrixScaling
    >>> proba = np.array([[0.4, 0.5, 0.1], [0.1, 0.5, 0.4]] * 20)
    >>> scaling = MatrixScaling(strength=0.1).fit(proba, [1, 2] * 20)
    >>> scaling.predict(proba[:2])
    array([1, 2])
    """

    strengths = MATRIX_STRENGTHS

    def _shape(self, n_rows: int) -> MakeShape:
        return matrix_shape


@storable
class CurveScaling(ScoreScaling):
    r"""Curve scaling: scores are sums of bent lines in all log-probabilities.

    .. math:: p'_{i\cdot} = \operatorname{softmax}(x_i + D x_i + b + W h(x_i)), \qquad
              h_k(x) = \max(a_k \cdot x - t_k, 0),

    with :math:`x_i` as for :class:`MatrixScaling`. Each log-probability may bend at its quartiles;
    from 600 rows on, 300 sums of three log-probabilities, drawn once and for all, may bend as well.
    Bends are fixed before labels are looked at, so that the log loss is convex in :math:`D`,
    :math:`b` and :math:`W`; these minimise it plus :math:`\frac{\lambda}{2}` times the sum of their
    squares, features standardised. With two classes this is a spline.

    Parameters
    ----------
    strength : float or "cv", default="cv"
        Strength :math:`\lambda` of the penalty; "cv" as for :class:`BiasCorrectedTemperature`,
        among 256, 64, .., 1/16.
    facets : bool or "auto", default="auto"
        Whether sums of three log-probabilities may bend; "auto": from 600 rows on.
    cv, input
        As for :class:`MatrixScaling`.

    Attributes
    ----------
    matrix_, bias_, strength_, slope_, floor_, uniform_, classes_
        As for :class:`MatrixScaling`.
    axes_ : ndarray of shape (n_bends, n_classes)
        The directions :math:`a_k`.
    edges_ : ndarray of shape (n_bends,)
        Where they bend, :math:`t_k`.
    weights_ : ndarray of shape (n_classes, n_bends)
        The weights :math:`W`.

    Examples
    --------
    The classifier is right where it is moderately sure, and wrong where it is very sure:

    >>> import numpy as np
    >>> from altnorm.peers import CurveScaling
    >>> p = np.repeat([0.1, 0.3, 0.7, 0.9], 50)
    >>> y = np.repeat([1, 0, 1, 0], 50)
    >>> scaling = CurveScaling(strength=1.0).fit(np.column_stack([1 - p, p]), y)
    >>> scaling.predict([[0.9, 0.1], [0.3, 0.7], [0.1, 0.9]])
    array([1, 1, 0])
    """

    strengths = CURVE_STRENGTHS

    def __init__(
        self,
        strength: float | str = "cv",
        *,
        facets: bool | str = "auto",
        cv: int = 5,
        input: str = "proba",
    ) -> None:
        super().__init__(strength, cv=cv, input=input)
        self.facets = facets

    def _check_params(self) -> None:
        super()._check_params()
        if not isinstance(self.facets, (bool, np.bool_)):
            check_choice(self.facets, "facets", (True, False, "auto"))

    def _check_fitted(self, fields: Fields) -> None:
        super()._check_fitted(fields)
        m = fields.n_classes
        edges = fields.array("edges_", "f", (None,), -1e9, 1e9)
        fields.array("axes_", "f", (edges.size, m), -1e9, 1e9)
        fields.array("weights_", "f", (m, edges.size), -1e9, 1e9)

    def _fit(self, log_p: Array, codes: np.ndarray, weight: np.ndarray) -> None:
        super()._fit(log_p, codes, thinned(weight))

    def _shape(self, n_rows: int) -> MakeShape:
        drawn = n_rows >= FACET_ROWS if self.facets == "auto" else bool(self.facets)
        return partial(curve_shape, n_facets=N_FACETS * drawn)

    def _store(self, fitted: Scores) -> None:
        super()._store(fitted)
        assert fitted.bends is not None
        (self.axes_, self.edges_), self.weights_ = fitted.bends, fitted.weights

    def _fitted_scores(self) -> Scores:
        bends = Bends(self.axes_, self.edges_)
        return super()._fitted_scores()._replace(bends=bends, weights=self.weights_)

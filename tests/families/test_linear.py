"""MatrixScaling and CurveScaling: the penalised optimum, its limits, and what they can repair."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from altnorm.families.linear import MOST_ROWS, thinned
from altnorm.families.scores import ScoreLoss, log_floor
from altnorm.peers import CurveScaling, MatrixScaling
from tests.libraries import LIBRARIES
from tests.problems import favouring

NEAR = 1e-6  # of the penalised loss per row: optimisers stop


def draw():
    logits, y = favouring(300, 3)
    return softmax(logits, axis=1), y


def start_of(fitted, proba):
    """Where scores begin, as the docstring has it, from scratch."""
    log_p = np.maximum(np.log(proba), fitted.floor_)
    share = fitted.uniform_
    return np.log((1 - share) * softmax(fitted.slope_ * log_p, axis=1) + share / proba.shape[1])


def penalised_loss(coefficients, features, x, y, weight, penalty):
    """Loss of scores ``x + features @ coefficients.T``, and a penalty."""
    w = coefficients.reshape(x.shape[1], -1)
    scores = log_softmax(x + features @ w.T, axis=1)
    return -weight @ scores[np.arange(len(y)), y] + penalty(w)


def is_the_optimum(fitted_w, features, x, y, weight, penalty):
    """Nearby, that is: the penalty on pairs of classes is not convex."""
    problem = features, x, y, weight, penalty
    best = minimize(penalised_loss, 0.9 * fitted_w.ravel(), problem, method="BFGS").fun
    assert penalised_loss(fitted_w, *problem) == pytest.approx(best, abs=NEAR * len(y))


@pytest.mark.parametrize("strength", [8.0, 0.5, 1 / 32])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_matrix_is_the_penalised_optimum(strength, weighted):
    proba, y = draw()
    weight = np.random.default_rng(1).uniform(0.2, 3, len(y)) if weighted else np.ones(len(y))
    weight /= weight.mean()
    fitted = MatrixScaling(strength).fit(proba, y, sample_weight=weight if weighted else None)
    x = start_of(fitted, proba)
    np.testing.assert_allclose(
        fitted.transform(proba), softmax(x @ fitted.matrix_.T + fitted.bias_, axis=1), atol=1e-12
    )

    def penalty(w):
        """A ridge on biases and sums, m - 1 times as firm near 0 on pairs; all times m."""
        ridge = (w[:, 3] ** 2).sum() + (w[:, :3].sum(axis=1) ** 2).sum()
        pairs = np.log1p(0.5 * 3 * strength * 2 * w[:, :3][~np.eye(3, dtype=bool)] ** 2)
        return 0.5 * 3 * strength * ridge + pairs.sum()

    w = np.column_stack([fitted.matrix_ - np.eye(3), fitted.bias_])
    is_the_optimum(w, np.column_stack([x, np.ones(len(x))]), x, y, weight, penalty)


def test_a_few_confused_pairs_are_set_free():
    """The first class of each pair takes 60 % of its score from the second."""
    rng = np.random.default_rng(0)
    logits = 2 * rng.normal(size=(4300, 10))
    y = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    first = np.arange(0, 10, 2)
    logits[:, first] += 0.6 * (logits[:, first + 1] - logits[:, first])
    proba = softmax(logits, axis=1)
    fitted = MatrixScaling().fit(proba[:300], y[:300])
    decided = fitted.predict(proba[300:]), proba[300:].argmax(axis=1)
    after, before = ((codes == y[300:]).mean() for codes in decided)
    assert after - before > 0.07  # of 0.10; a ridge gains 0.05
    off = np.abs(fitted.matrix_ - np.diag(np.diag(fitted.matrix_)))
    confused = np.zeros_like(off, dtype=bool)
    confused[first, first + 1] = True
    assert off[confused].min() > off[~confused].max()


@pytest.mark.parametrize("strength", [64.0, 1.0])
def test_curves_are_the_penalised_optimum(strength):
    proba, y = draw()
    fitted = CurveScaling(strength, facets=False).fit(proba, y)
    x = start_of(fitted, proba)
    bends = np.maximum(x @ fitted.axes_.T - fitted.edges_, 0)
    scores = x @ fitted.matrix_.T + fitted.bias_ + bends @ fitted.weights_.T
    np.testing.assert_allclose(fitted.transform(proba), softmax(scores, axis=1), atol=1e-12)
    np.testing.assert_allclose(
        fitted.edges_.reshape(3, 3), np.quantile(x, [0.25, 0.5, 0.75], axis=0)
    )
    # Every feature standardised, and held alike.
    features = np.concatenate([x, bends], axis=1)
    center, scale = features.mean(axis=0), features.std(axis=0)
    slopes = np.column_stack([fitted.matrix_ - np.eye(3), fitted.weights_])
    w = np.column_stack([slopes * scale, fitted.bias_ + slopes @ center])
    z = np.column_stack([(features - center) / scale, np.ones(len(x))])
    is_the_optimum(w, z, x, y, np.ones(len(y)), lambda w: 0.5 * strength * (w**2).sum())


@pytest.mark.parametrize("make", [MatrixScaling, CurveScaling])
def test_a_strong_penalty_leaves_a_temperature(make):
    """The slope of least loss, held to 1 as if by four rows, and a little of everything."""
    proba, y = draw()
    fitted = make(1e12).fit(proba, y)
    np.testing.assert_allclose(fitted.transform(proba), np.exp(start_of(fitted, proba)), atol=1e-6)

    def loss(slope):
        log_p = log_softmax(slope * np.log(proba), axis=1)
        return -log_p[np.arange(len(y)), y].sum() + 2 * np.log(slope) ** 2

    assert fitted.slope_ == pytest.approx(
        minimize(lambda s: loss(s[0]), [1.0], method="Nelder-Mead").x[0], rel=1e-3
    )
    assert fitted.uniform_ == 1 / 301


def test_facets_see_what_depends_on_two_classes_at_once():
    """The label is 1 where two classes are about equally probable."""
    proba = np.random.default_rng(0).dirichlet(np.ones(3), 2000)
    y = (np.abs(np.log(proba[:, 0] / proba[:, 1])) < 0.7).astype(int)
    y[proba[:, 2] > 0.9] = 2
    drawn, without = (CurveScaling(1.0, facets=facets).fit(proba, y) for facets in (True, False))
    assert (drawn.predict(proba) == y).mean() > 0.98 > (without.predict(proba) == y).mean()
    assert len(drawn.edges_) == 309
    assert len(CurveScaling(1.0).fit(proba[:599], y[:599]).edges_) == 9


def test_zeros_are_less_than_the_smallest_share():
    with np.errstate(divide="ignore"):
        shares = np.log(np.array([[0.01, 0.99], [0.0, 1.0]]))
    assert log_floor(shares) == pytest.approx(np.log(0.005))
    assert log_floor(np.log(np.array([[1e-30, 1.0]]))) == -25
    proba, y = draw()
    proba[:40] = np.eye(3)[y[:40]]
    proba[40] = np.eye(3)[(y[40] + 1) % 3]  # a label that had no chance
    for peer in (MatrixScaling(0.5), CurveScaling(4.0)):
        adjusted = peer.fit(proba, y).transform(proba)
        assert (adjusted > 0).all()
        np.testing.assert_allclose(adjusted.sum(axis=1), 1)


def test_of_very_many_rows_curves_take_some():
    weight = np.ones(200_000)
    weight[::2] = 0
    kept = thinned(weight)
    assert np.count_nonzero(kept) == MOST_ROWS
    assert not kept[::2].any()
    np.testing.assert_array_equal(thinned(weight[:1000]), weight[:1000])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("library", LIBRARIES[1:])
def test_a_device_has_the_same_loss_and_derivative(library, dtype):
    """Scores and features as large as they come, weights, and the loss in double precision."""
    rng = np.random.default_rng(0)
    x, z = 5 * rng.normal(size=(300, 4)), rng.normal(size=(300, 7))
    y, weight = rng.integers(4, size=300), rng.exponential(size=300)
    loss = ScoreLoss(x.astype(dtype), z.astype(dtype), y, weight, library.make(x, "float64"))
    coefficients = rng.normal(size=(4, 7))
    p = softmax(x + z @ coefficients.T, axis=1)
    there = loss(coefficients.ravel())
    tolerance = 1e-13 if dtype is np.float64 else 1e-5
    expected = -weight @ np.log(p[np.arange(300), y])
    assert there.value == pytest.approx(expected, rel=tolerance)
    slope = ((p - np.eye(4)[y]) * weight[:, None]).T @ z
    np.testing.assert_allclose(there.gradient, slope.ravel(), rtol=0, atol=tolerance * 300)

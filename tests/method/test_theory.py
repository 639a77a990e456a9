"""What docs/mathematics.md states about the method, each statement with numbers."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.special import expit, logit, logsumexp, softmax

import altnorm
from altnorm import AlternatingNormalizer, alternating_normalization, trajectory
from altnorm.method import paper
from altnorm.peers import BiasCorrectedTemperature

HEAVY = 1e9  # weight of a reference beside which the row itself does not count
EXACT = 1e-9  # what a weight of 1e9 leaves
LIMIT = 1e-6  # after many iterations


def draw(seed, n, m):
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.ones(m), n), rng.dirichlet(np.full(m, 5.0))


def world(seed, k=30, m=4):
    """Points x with P(x), P(y | x), and P(y): all that there is to know."""
    p, _ = draw(seed, k, m)
    weight = np.random.default_rng(seed + 1).dirichlet(np.ones(k))
    return weight, p, weight @ p


def divide(rows):
    return rows / rows.sum(axis=1, keepdims=True)


# Where it comes from: Rational Speech Acts.


def listen(meanings, prior, rationality, depth, cost):
    """Speakers choose utterances (rows) for a referent (column), listeners guess the referent."""
    listener = meanings
    for _ in range(depth):
        utility = np.log(listener) - cost[:, None]
        speaker = softmax(rationality * utility, axis=0)
        listener = divide(speaker * prior)
    return listener


@pytest.mark.parametrize("depth", [1, 2, 4])
@pytest.mark.parametrize("alpha", [0.5, 1.0, 3.0])
def test_it_is_the_pragmatic_listener_of_rational_speech_acts(alpha, depth):
    rows, prior = draw(0, 6, 4)
    free = listen(rows, prior, alpha, depth, cost=np.zeros(6))[-1]
    assert_allclose(paper.adjust(rows[-1], rows[:-1], prior, alpha, depth), free, atol=1e-13)
    cost = np.array([0.3, 0.0, 1.2, 0.7, 2.0, 0.0])  # none for the utterance in question
    weight = np.exp(-alpha * cost[:-1])
    options = {"prior": prior, "alpha": alpha, "depth": depth, "reference_weight": weight}
    adjusted = alternating_normalization(rows[-1:], rows[:-1], **options)[0]
    assert_allclose(adjusted, listen(rows, prior, alpha, depth, cost)[-1], atol=1e-13)


# Much smoothing.


def test_much_smoothing_leaves_a_power_of_the_row():
    rows, prior = draw(9, 20, 4)
    options = {"prior": prior, "smoothing": HEAVY}
    for alpha, depth in ((1.0, 3), (1.7, 2), (0.5, 4)):
        adjusted = alternating_normalization(rows, rows[:6], alpha=alpha, depth=depth, **options)
        assert_allclose(adjusted, divide(rows ** (alpha**depth)), atol=10 * EXACT)


# Depth 1 and alpha 1: a bias without labels.


@pytest.mark.parametrize(("n", "bound"), [(10, 0.25), (100, 0.025), (1000, 0.0025), (8000, 0.0003)])
def test_one_iteration_is_a_class_bias_up_to_one_row_in_n(n, bound):
    rows, prior = draw(n, n + 200, 10)
    b, reference = rows[:200], rows[200:]
    bias = np.log(prior) - np.log(reference.sum(axis=0))
    biased = softmax(np.log(b) + bias, axis=1)
    assert np.abs(alternating_normalization(b, reference, prior=prior) - biased).max() < bound


@pytest.mark.parametrize("seed", range(3))
def test_a_sure_reference_multiplies_calibrated_rows_by_how_hard_a_class_is(seed):
    """By 1 / P(sure | class): nothing is wrong with these rows, and they are changed."""
    weight, p, prior = world(seed)
    sure = p.max(axis=1) > 0.6
    sure_of_class = (weight * sure) @ p / prior
    adjusted = alternating_normalization(
        p[~sure], p[sure], prior=prior, reference_weight=HEAVY * weight[sure]
    )
    assert_allclose(adjusted, divide(p[~sure] / sure_of_class), rtol=0, atol=10 * EXACT)
    everything = alternating_normalization(p, p, prior=prior, reference_weight=HEAVY * weight)
    assert_allclose(everything, p, rtol=0, atol=EXACT)


# Depth.


@pytest.mark.parametrize("seed", range(3))
def test_depth_recovers_the_truth_where_only_the_classifiers_prior_is_wrong(seed):
    weight, truth, prior = world(seed)
    wrong = divide(truth * np.exp(np.random.default_rng(seed).normal(size=4)))
    steps = trajectory(wrong, wrong, prior=prior, depth=60, reference_weight=HEAVY * weight)
    error = np.abs(steps - truth).max(axis=(1, 2))
    assert error[-1] < LIMIT
    assert error[1] > 0.01
    assert (np.diff(error)[error[:-1] > LIMIT] < 0).all()


def test_em_under_label_shift_solves_the_same_equation_for_the_other_unknown():
    """EM knows the classifier's prior and finds the new one; here it is the other way round."""
    p, old = draw(3, 400, 4)
    new = old
    for _ in range(3000):
        new = divide(p * new / old).mean(axis=0)
    by_em = divide(p * new / old)
    assert_allclose(by_em.mean(axis=0), new, atol=LIMIT)
    adjusted = alternating_normalization(
        p, p, prior=new, depth=200, reference_weight=np.full(400, HEAVY)
    )
    assert_allclose(adjusted, by_em, rtol=0, atol=1e-4)


def test_the_limit_is_the_bias_that_labels_of_these_frequencies_would_give():
    """With slope 1; a slope that is fitted, too, leads elsewhere."""
    p, prior = draw(5, 300, 4)
    y = np.repeat(np.arange(4), np.round(300 * prior).astype(int))[:300]
    y = np.concatenate([y, np.zeros(300 - y.size, int)])
    prior = np.bincount(y) / 300

    def loss(theta):
        scores = theta[0] * np.log(p) + np.append(theta[1:], 0)
        return np.mean(logsumexp(scores, axis=1) - scores[np.arange(300), y])

    def fitted(slope):
        bounds = [slope, *[(None, None)] * 3]
        theta = minimize(loss, [1, 0, 0, 0], bounds=bounds, tol=1e-15).x
        return softmax(theta[0] * np.log(p) + np.append(theta[1:], 0), axis=1)

    limit = alternating_normalization(
        p, p, prior=prior, depth=100, reference_weight=np.full(300, HEAVY)
    )
    assert_allclose(limit.mean(axis=0), prior, atol=LIMIT)
    assert_allclose(limit, fitted((1, 1)), rtol=0, atol=1e-5)
    assert np.abs(limit - fitted((0, None))).max() > 0.1  # labels that know nothing of the rows


@pytest.mark.parametrize("strength", [0.5, 8.0])
def test_labels_enter_the_biases_of_bcts_through_their_counts_alone(strength):
    """At the optimum n_j less the sum of the predictions is the strength times b_j."""
    p, prior = draw(6, 300, 4)
    y = np.random.default_rng(6).choice(4, size=300, p=prior)
    fitted = BiasCorrectedTemperature(strength=strength).fit(p, y)
    missing = np.bincount(y, minlength=4) - fitted.transform(p).sum(axis=0)
    assert_allclose(missing, strength * fitted.bias_, atol=1e-4)
    assert np.abs(missing).max() > 0.4


# The exponent.


def test_a_large_exponent_asks_who_is_largest_beside_the_references_largest():
    rows, prior = draw(1, 220, 5)
    reference = np.vstack([rows[:20], 0.9 * np.eye(5) + 0.02])
    reference[-5:] /= reference[-5:].sum(axis=1, keepdims=True)
    b, top = rows[20:], reference.max(axis=0)
    for q in (prior, prior[::-1]):
        adjusted = alternating_normalization(b, reference, prior=q, alpha=3000.0)
        below = (b < top).all(axis=1)
        assert below.sum() > 150
        winner = (b / top).argmax(axis=1)
        assert_allclose(adjusted[below], np.eye(5)[winner[below]], atol=0.01)
    # A class beside which the reference has nothing as large keeps its share of the prior.
    above = np.array([[0.5, 0.3, 0.2]])
    low = np.array([[0.1, 0.1, 0.8]])
    adjusted = alternating_normalization(above, low, prior=[0.2, 0.6, 0.2], alpha=500.0)
    assert_allclose(adjusted, [[0.25, 0.75, 0.0]], atol=1e-9)


@pytest.mark.parametrize(("alpha", "least", "most"), [(1, 0.1, 1), (35, 0, 0.02), (1000, 0, 0)])
@pytest.mark.parametrize("depth", [1, 3])
def test_with_a_sure_row_of_every_class_a_large_exponent_changes_no_decision(
    alpha, least, most, depth
):
    rows, prior = draw(2, 300, 6)
    adjusted = alternating_normalization(rows, np.eye(6), prior=prior, alpha=alpha, depth=depth)
    assert least <= np.mean(adjusted.argmax(axis=1) != rows.argmax(axis=1)) <= most


def test_an_exponent_below_1_leads_to_the_prior_on_the_rows_own_classes():
    rows, prior = draw(4, 9, 5)
    b = np.array([[0.5, 0.0, 0.2, 0.0, 0.3]])
    expected = divide(prior * (b > 0))
    steps = trajectory(b, rows, prior=prior, alpha=0.5, depth=40)[:, 0]
    assert_allclose(steps[-1], expected[0], atol=1e-9)
    error = np.abs(steps - expected).max(axis=1)
    assert error[11] / error[10] == pytest.approx(0.5, abs=0.01)  # the rate is alpha
    tiny = alternating_normalization(b, rows, prior=prior, alpha=1e-7)
    assert_allclose(tiny, expected, atol=LIMIT)


# Fixed points and rates at alpha 1: Sinkhorn's.


@pytest.mark.parametrize(("p", "p_a"), [(0.5, 0.2), (0.9, 0.3), (0.35, 0.6)])
def test_two_rows_and_two_classes(p, p_a):
    difference = logit(p) - logit(p_a)
    limit = expit(difference / 2)
    steps = trajectory(np.array([[p, 1 - p]]), np.array([[p_a, 1 - p_a]]), depth=30)[:, 0, 0]
    assert steps[-1] == pytest.approx(limit, abs=1e-9)
    errors = np.abs(steps - limit)
    late = np.flatnonzero(errors > 1e-9)[-2:]
    rate = errors[late[1]] / errors[late[0]]
    assert rate == pytest.approx(np.tanh(difference / 4) ** 2, rel=0.01)


def test_a_sure_reference_is_reached_slowly():
    """The teaser's limit is [1, 0], at a distance of 1 / (2 d + 2)."""
    steps = trajectory(np.array([[0.5, 0.5]]), np.array([[0.0, 1.0]]), depth=50)[:, 0]
    assert_allclose(1 - steps[:, 0], 1 / (2 * np.arange(51) + 2), atol=1e-12)


def test_differences_of_logits_grow_by_alpha_in_each_iteration():
    L = np.array([[0.4, 0.6], [0.5, 0.5], [0.7, 0.3]])
    for alpha in (0.5, 1.0, 1.5):
        after = paper.iterate(L, np.array([0.8, 0.2]), alpha)
        assert_allclose(np.diff(logit(after[:, 0])), alpha * np.diff(logit(L[:, 0])), atol=1e-12)


@pytest.mark.parametrize("p_a", [0.4, 0.6])
@pytest.mark.parametrize("alpha", [1.2, 1.5, 4.0])
def test_above_1_two_rows_end_in_a_corner(alpha, p_a):
    corner = [[1, 0]] if p_a < 0.5 else [[0, 1]]
    adjusted = alternating_normalization([[0.5, 0.5]], [[p_a, 1 - p_a]], alpha=alpha, depth=40)
    assert_allclose(adjusted, corner, atol=1e-9)


def test_above_1_an_uneven_prior_may_leave_a_row_split():
    """It then has what the row in the corner leaves of a class that is rare."""
    options = {"prior": [0.1, 0.9], "alpha": 1.2}
    a, b = [[0.4, 0.6]], [[0.5, 0.5]]
    steps = [alternating_normalization(b, a, depth=depth, **options) for depth in (100, 150)]
    assert_allclose(steps[0], [[0.2047, 0.7953]], atol=1e-4)
    assert_allclose(*steps, atol=EXACT)
    assert_allclose(alternating_normalization(a, b, depth=100, **options), [[0, 1]], atol=EXACT)


def test_above_1_most_rows_of_more_classes_end_in_corners_and_some_stay_split():
    largest = []
    for seed in range(60):
        rows, _ = draw(seed, 4, 3)
        options = {"prior": rows[3], "alpha": 1.5, "depth": 50}
        steps = [alternating_normalization(rows[2:3], rows[:2], **options)]
        steps += [alternating_normalization(rows[2:3], rows[:2], **options | {"depth": 60})]
        assert np.abs(steps[1] - steps[0]).max() < 1e-3
        largest.append(steps[1].max())
    corners = np.mean(np.array(largest) > 0.999)
    assert 0.6 < corners < 0.95


def test_the_rate_is_the_second_singular_value_squared():
    rows, prior = draw(6, 8, 4)
    steps = trajectory(rows[-1:], rows[:-1], prior=prior, depth=60)[:, 0]
    L = rows
    for _ in range(200):
        L = paper.iterate(L, prior, 1.0)
    assert_allclose(steps[-1], L[-1], atol=1e-12)
    assert_allclose(L.sum(axis=0), 8 * prior, atol=1e-12)
    sigma = np.linalg.svd(L / np.sqrt(L.sum(axis=0)), compute_uv=False)[1]
    errors = np.abs(steps - L[-1]).max(axis=1)
    late = np.flatnonzero(errors > 1e-10)[-2:]
    assert errors[late[1]] / errors[late[0]] == pytest.approx(sigma**2, rel=0.02)


def test_whether_sums_are_reached_depends_on_zeros_and_not_on_rank():
    """Rank 1 without zeros: at once. The identity, of full rank, beside an uneven prior: never."""
    prior = np.array([0.9, 0.1])
    flat = np.tile([0.3, 0.7], (2, 1))
    assert_allclose(paper.iterate(flat, prior, 1.0).sum(axis=0), 2 * prior)
    L = np.eye(2)
    for _ in range(100):
        L = paper.iterate(L, prior, 1.0)
    assert_allclose(L.sum(axis=0), [1, 1])


# The scaling form.


@pytest.mark.parametrize(("alpha", "depth"), [(1.0, 1), (1.7, 3), (0.4, 5)])
def test_equations_12_and_13(alpha, depth):
    """Rows and columns of a power of L_0 are multiplied by factors, b_0 among them."""
    rows, prior = draw(8, 6, 4)
    L = rows
    for _ in range(depth):
        powers = L**alpha
        of_columns = prior / powers.sum(axis=0)  # the diagonal of Lambda_1
        of_rows = 1 / (powers @ of_columns)  # and of Lambda_2
        L = paper.iterate(L, prior, alpha)
        assert_allclose(L, np.diag(of_rows) @ powers @ np.diag(of_columns), atol=1e-13)
        assert_allclose(L[-1], of_rows[-1] * of_columns * powers[-1], atol=1e-13)
    ratio = np.log(L) - alpha**depth * np.log(rows)
    factors = ratio.mean(axis=0) + ratio.mean(axis=1, keepdims=True) - ratio.mean()
    assert_allclose(ratio, factors, atol=1e-11)  # one per row plus one per column


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize(("alpha", "depth"), [(1.0, 3), (1.7, 3), (0.4, 5)])
def test_the_iteration_of_the_scaling_form_as_it_is_written(alpha, depth, smoothing):
    """Line by line, with the names of the page, in plain numbers."""
    rows, q = draw(12, 30, 4)
    A, b = rows[:12], rows[12:]
    w = np.random.default_rng(12).uniform(0.5, 2, 12)
    options = {"prior": q, "alpha": alpha, "smoothing": smoothing, "reference_weight": w}
    M, log_b, C = smoothing * w.sum(), np.log(b), np.zeros_like(b)
    for k in range(1, depth + 1):
        S = w @ A**alpha + M * q
        c = np.log(q) - np.log(S)
        W = w[:, None] * A**alpha * q / S
        assert_allclose(W.sum(axis=0) + M * q * np.exp(c), q)
        R = np.log(np.exp(C) @ A.T)
        P = np.exp(-alpha * R) @ W + M * q * np.exp(c - alpha * C)
        if k == 1:
            assert_allclose(P, np.tile(q, (len(b), 1)))
        u = alpha * (log_b - C) + c
        log_b = np.log(q) - np.log(1 + P * np.exp(-u))
        log_b -= logsumexp(log_b, axis=1, keepdims=True)
        C = np.log(q) - np.log(P + np.exp(u))
        A = divide(A**alpha * q / S)
        adjusted = alternating_normalization(b, rows[:12], depth=k, **options)
        assert_allclose(np.exp(log_b), adjusted, atol=1e-12)


# Several labels as pairs.


def test_pairs_keep_the_order_of_entries_in_doubt_and_not_of_all():
    rng = np.random.default_rng(0)
    proba = np.concatenate(
        [rng.beta(0.2, 3.0, (300, 4)), np.linspace(0.01, 0.99, 400)[:, None] + np.zeros(4)]
    )
    model = AlternatingNormalizer(multilabel="pairs", prior=[0.05, 0.95]).fit(proba)
    p = np.linspace(0.001, 0.999, 2001)
    new = model.transform(p[:, None] + np.zeros(4))[:, 0]
    doubt = altnorm.ambiguity(np.column_stack([p, 1 - p])) > 0.75
    assert (np.diff(new[doubt]) > 0).all()
    edges = np.flatnonzero(np.diff(doubt))
    drops = (new[:-1] - new[1:])[edges]
    assert drops.max() > 0.1
    assert_array_equal(new[~doubt], p[~doubt])

"""P-values, intervals and standard errors against naive formulas, brute force and simulation."""

import itertools
import math

import numpy as np
import pytest
from altnorm.evidence.resampling import mcnemar_p_value, paired_interval
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.stats import multinomial
from sklearn import metrics as sk

from altnorm.evidence.metrics import resolve_scoring
from altnorm.evidence.scores import Score
from altnorm.evidence.verdict import compare_predictions
from tests.problems import SCORES, label_problem, problem

# The exact test and its interval.


@given(fixed=st.integers(0, 40), broken=st.integers(0, 40))
def test_mcnemar_is_twice_the_binomial_tail(fixed, broken):
    n = fixed + broken
    tail = sum(math.comb(n, k) for k in range(max(fixed, broken), n + 1)) / 2**n
    assert mcnemar_p_value(fixed, broken) == pytest.approx(min(1.0, 2 * tail), rel=1e-10)


def naive_score_statistic(b, c, n, delta):
    """Tango's statistic with the nuisance parameter found by numerical maximisation."""

    def minus_log_likelihood(q):
        terms = [(b, q + delta), (c, q), (n - b - c, 1 - 2 * q - delta)]
        return -sum(k * math.log(max(p, 1e-300)) for k, p in terms if k)

    bounds = (max(0.0, -delta), (1 - delta) / 2)
    q = minimize_scalar(
        minus_log_likelihood, bounds=bounds, method="bounded", options={"xatol": 1e-12}
    ).x
    return (b - c - n * delta) / math.sqrt(n * (2 * q + delta - delta**2))


@pytest.mark.parametrize(("b", "c", "n"), [(14, 5, 100), (5, 14, 100), (3, 1, 10), (641, 64, 4500)])
@pytest.mark.parametrize(("confidence", "z"), [(0.95, 1.959964), (0.9, 1.644854)])
def test_interval_inverts_the_score_test(b, c, n, confidence, z):
    low, high = paired_interval(b, c, n, confidence)
    assert naive_score_statistic(b, c, n, low) == pytest.approx(z, abs=1e-4)
    assert naive_score_statistic(b, c, n, high) == pytest.approx(-z, abs=1e-4)


@given(b=st.integers(0, 20), c=st.integers(0, 20), rest=st.integers(0, 50))
def test_interval_is_ordered_bounded_and_mirrored(b, c, rest):
    n = max(b + c + rest, 1)
    low, high = paired_interval(b, c, n)
    assert -1 <= low <= (b - c) / n <= high <= 1
    assert high - low > 1e-6
    assert paired_interval(c, b, n) == (-high, -low)


def test_interval_at_the_edges_has_the_closed_form():
    z2 = 1.959963984540054**2
    low, high = paired_interval(0, 0, 50)
    assert (low, high) == pytest.approx((-z2 / (50 + z2), z2 / (50 + z2)))
    assert paired_interval(50, 0, 50) == pytest.approx(((50 - z2) / (50 + z2), 1), abs=1e-9)


@pytest.mark.parametrize(
    ("n", "p_fixed", "p_broken"), [(20, 0.1, 0.1), (40, 0.2, 0.05), (60, 0.05, 0.02)]
)
def test_interval_covers_at_its_level(n, p_fixed, p_broken):
    """Exact coverage: every outcome, weighted by its probability."""
    covered = 0.0
    for b, c in itertools.product(range(n + 1), repeat=2):
        if b + c > n:
            continue
        mass = multinomial.pmf([b, c, n - b - c], n, [p_fixed, p_broken, 1 - p_fixed - p_broken])
        if mass > 1e-7:
            low, high = paired_interval(b, c, n)
            covered += mass * (low <= p_fixed - p_broken <= high)
    assert 0.94 <= covered <= 0.985


# The exchange test and the standard error for other scores.


def brute_force_p_value(score, y, old, new, weight=None):
    """Share of all exchanges of rows that gain at least as much."""
    observed = score(y, new, weight) - score(y, old, weight)
    gains = []
    for flips in itertools.product([False, True], repeat=len(y)):
        f = np.array(flips).reshape((-1,) + (1,) * (old.ndim - 1))
        a, b = np.where(f, old, new), np.where(f, new, old)
        gains.append(score(y, a, weight) - score(y, b, weight))
    return np.mean(abs(np.array(gains)) >= abs(observed) - 1e-12)


@pytest.mark.parametrize("scoring", [*SCORES, "f1_weighted", "neg_brier_score", "jaccard_macro"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
def test_few_rows_are_tested_exactly(scoring, weighted):
    y, before, after = problem(3, n=6, m=3, shift=1.0)
    weight = np.arange(1.0, 7.0) if weighted else None
    score = resolve_scoring(scoring)
    pair = (before, after) if score.needs == "proba" else (before.argmax(1), after.argmax(1))
    verdict = compare_predictions(
        y, before, after, scoring=scoring, sample_weight=weight, n_resamples=2**6 + 1
    )
    assert verdict.p_value == pytest.approx(brute_force_p_value(score, y, *pair, weight))


@pytest.mark.parametrize("scoring", ["f1_micro", "f1_macro", "f1_samples"])
def test_few_multilabel_rows_are_tested_exactly(scoring):
    y, before, after = label_problem(2, n=8)
    score = resolve_scoring(scoring, multilabel=True)
    verdict = compare_predictions(y, before, after, scoring=scoring)
    expected = brute_force_p_value(score, y, before > 0.5, after > 0.5)
    assert verdict.p_value == pytest.approx(expected)


def test_random_exchanges_agree_with_the_exact_test():
    y, before, after = problem(1, n=200, shift=0.3)
    counts = Score(
        "accuracy by counts",
        "labels",
        counts=lambda y, p: np.stack([y == p, np.ones(len(y))], axis=1).astype(float),
        of_counts=lambda sums: sums[..., 0] / sums[..., 1],
    )
    plain = Score("accuracy as a whole", "labels", function=lambda y, p, w: np.mean(y == p))
    exact = compare_predictions(y, before, after)
    assert 0.01 < exact.p_value < 0.9
    for score, n_resamples in [(counts, 20_000), (plain, 2000)]:
        found = compare_predictions(y, before, after, scoring=score, n_resamples=n_resamples)
        noise = 4 * math.sqrt(exact.p_value / n_resamples)
        assert found.p_value == pytest.approx(exact.p_value, abs=noise)
        assert found.std_error == pytest.approx(exact.std_error, rel=0.1)


def test_bootstrap_error_equals_a_naive_bootstrap():
    y, before, after = problem(5, n=150)
    old, new = before.argmax(1), after.argmax(1)
    rng = np.random.default_rng(0)
    gains = []
    for _ in range(200):
        i = rng.integers(0, 150, 150)
        scores = [sk.f1_score(y[i], p[i], average="macro") for p in (old, new)]
        gains.append(scores[1] - scores[0])
    verdict = compare_predictions(y, before, after, scoring="f1_macro", n_resamples=4000)
    assert verdict.std_error == pytest.approx(np.std(gains), rel=0.15)
    assert verdict.after == pytest.approx(sk.f1_score(y, new, average="macro"))


def test_interval_of_an_average_is_the_paired_t_interval():
    y, before, after = problem(6, n=50)
    rows = np.log(after[np.arange(50), y]) - np.log(before[np.arange(50), y])
    half = 2.009575 * rows.std(ddof=1) / math.sqrt(50)
    verdict = compare_predictions(y, before, after, scoring="neg_log_loss")
    assert verdict.ci_low == pytest.approx(rows.mean() - half, rel=1e-5)
    assert verdict.ci_high == pytest.approx(rows.mean() + half, rel=1e-5)


@pytest.mark.parametrize("scoring", ["f1_macro", "matthews_corrcoef", "neg_log_loss", "weighted"])
def test_size_and_coverage_where_nothing_is_gained(scoring):
    """Opposite biases are equally good but not exchangeable: a null that could go wrong."""
    rng, n_trials, n = np.random.default_rng(0), 150, 150
    rejected = covered = 0
    for trial in range(n_trials):
        y = rng.integers(0, 4, n)
        logit = rng.normal(size=(n, 4)) + 1.5 * np.eye(4)[y]
        pair = [np.exp(logit + b * np.array([0.5, -0.5, 0.25, -0.25])) for b in (1, -1)]
        pair = [p / p.sum(axis=1, keepdims=True) for p in pair]
        weighted = scoring == "weighted"
        verdict = compare_predictions(
            y,
            *pair,
            scoring="accuracy" if weighted else scoring,
            sample_weight=rng.random(n) if weighted else None,
            n_resamples=250,
            random_state=trial,
        )
        rejected += verdict.adopted
        covered += verdict.ci_low <= 0 <= verdict.ci_high
    # Three standard errors of the simulation.
    assert rejected / n_trials <= 0.05 + 0.053
    assert abs(covered / n_trials - 0.95) <= 0.053

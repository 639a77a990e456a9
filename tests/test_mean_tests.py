"""Do two samples have the same mean? Against textbooks, and at its level."""

import numpy as np
import pytest
from scipy.stats import chi2, norm

from altnorm.balance.mean_tests import Sums, compare_means


def sums(rows):
    return Sums(len(rows), rows.mean(axis=0), rows.var(axis=0))


def test_independent_classes_give_the_chi_squared_test():
    variance = np.array([0.04, 0.01, 0.02])
    before = Sums(300, np.array([0.5, 0.3, 0.2]), variance)
    now = Sums(200, np.array([0.52, 0.29, 0.215]), variance)
    statistic = ((now.mean - before.mean) ** 2 / (variance * (1 / 300 + 1 / 200))).sum()
    expected = chi2.sf(statistic, 3)
    assert compare_means(before, now, np.diag(variance)) == pytest.approx(expected)


def test_two_classes_give_the_test_of_one_mean():
    """Both classes say the same, so it counts once."""
    covariance = 0.04 * np.array([[1.0, -1.0], [-1.0, 1.0]])
    before, now = (
        Sums(n, np.array([p, 1 - p]), np.full(2, 0.04)) for n, p in ((90, 0.5), (60, 0.56))
    )
    z = 0.06 / np.sqrt(0.04 * (1 / 90 + 1 / 60))
    assert compare_means(before, now, covariance) == pytest.approx(2 * norm.sf(z))


@pytest.mark.parametrize(("m", "n"), [(3, 300), (60, 150)])
def test_the_test_keeps_its_level(m, n):
    rng = np.random.default_rng(0)
    p_values = []
    for _ in range(300):
        old, new = (rng.dirichlet(np.full(m, 0.3), size) for size in (2 * n, n))
        covariance = np.cov(old.T, bias=True)
        p_values.append(compare_means(sums(old), sums(new), covariance))
    assert 0.02 <= np.mean(np.less(p_values, 0.05)) <= 0.09


def test_classes_without_spread_are_no_evidence():
    same = Sums(10, np.array([1.0, 0.0]), np.zeros(2))
    assert compare_means(same, same, np.zeros((2, 2))) == 1
    rows = np.random.default_rng(0).dirichlet(np.ones(3), 50)
    wide = np.column_stack([rows, np.zeros(50)])
    half = slice(25), slice(25, 50)
    narrow, padded = (
        compare_means(*(sums(x[h]) for h in half), np.cov(x.T, bias=True)) for x in (rows, wide)
    )
    assert narrow == pytest.approx(padded)

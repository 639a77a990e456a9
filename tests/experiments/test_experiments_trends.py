"""What holds across classifiers: how trends are counted."""

import pytest
from scipy.stats import spearmanr

from experiments.suite import trends
from experiments.suite.trends import Point


def points(gains):
    return [
        Point(f"source{i}_net", 10 * (i + 1), 50.0, "any", gain, gain - 1, gain + 1)
        for i, gain in enumerate(gains)
    ]


def test_a_trend_is_a_rank_correlation_with_an_interval():
    rising = trends.trend(points([0.0, 0.1, 3.0, 3.5, 20.0]), lambda p: p.classes)
    assert (rising.rho, rising.low, rising.high) == pytest.approx((1, 1, 1))
    assert rising.n == 5
    x, y = range(6), [1.0, -1.0, 2.0, 0.5, -2.0, 1.5]
    mixed = trends.trend(points(y), lambda p: p.classes)
    assert mixed.rho == pytest.approx(spearmanr(x, y).statistic)
    assert mixed.low < 0 < mixed.high


def test_classifiers_of_one_source_are_drawn_together():
    # One source alone has nothing to be drawn anew: the interval is a point.
    alone = [p._replace(classifier=f"one_{i}") for i, p in enumerate(points([1.0, 5.0, 2.0, 3.0]))]
    found = trends.trend(alone, lambda p: p.classes)
    assert found.low == pytest.approx(found.rho) == found.high


def test_the_papers_own_tables_have_13_of_18_small_depths():
    assert "13 of 18 (72%)" in trends.depths_table([{"method": "CAN as published", "depth": 1}])

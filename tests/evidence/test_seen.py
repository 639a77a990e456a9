"""Rows that were seen are found again, in any order and in fewer digits, and no others are."""

import numpy as np
import pytest

from altnorm.evidence.seen import share_seen, sketch_rows, would_be_found


def of_two_classes(p):
    return np.column_stack([p, 1 - p])


def told_apart_by(decimals, n=40):
    """Rows that as many decimals tell apart, and fewer do not."""
    rng = np.random.default_rng(0)
    steps = np.arange(n) + rng.uniform(-0.4, 0.4, n)
    return of_two_classes(0.11 + rng.permutation(steps) / 10**decimals)


@pytest.mark.parametrize("decimals", [2, 3, 4, 5, 6])
def test_rows_are_found_in_a_file_of_as_many_decimals_as_tell_them_apart(decimals):
    proba = told_apart_by(decimals)
    sketch = sketch_rows(proba)
    assert share_seen(sketch, proba.round(decimals)) == 1
    others = of_two_classes(proba[:, 0] + 0.4)
    assert share_seen(sketch, np.concatenate([proba, others])[::-1]) == 0.5
    assert would_be_found(sketch, proba)
    # Rows of fewer decimals say nothing, if they are most.
    coarse = proba.round(decimals - 1)
    assert not would_be_found(sketch, coarse)
    assert would_be_found(sketch, np.concatenate([coarse[:16], proba[:24]]))
    assert not would_be_found(sketch, np.concatenate([coarse[:24], proba[:16]]))


def test_rows_of_a_large_file_are_told_apart_by_more_decimals_than_some_of_them():
    proba = of_two_classes(np.random.default_rng(0).random(2**16))
    assert share_seen(sketch_rows(proba), proba[::-1]) == 1


def test_rows_that_look_alike_by_chance_prove_nothing():
    rng = np.random.default_rng(0)
    coarse, sure = rng.dirichlet([1, 1], 2000).round(2), np.eye(5)[rng.integers(5, size=500)]
    assert sketch_rows(coarse).size == sketch_rows(sure).size == 0
    sketch = sketch_rows(rng.dirichlet(np.ones(5), 50))
    assert share_seen(sketch, sure) == 0
    assert not would_be_found(sketch, sure)
    assert not would_be_found(sketch_rows(coarse), coarse)

"""Like rows stay together, and copies are told from rows that are merely alike."""

import numpy as np
import pytest

from altnorm.evidence.folds import deal_clusters
from altnorm.evidence.likeness import (
    Copies,
    like_clusters,
    look_for_copies,
    repeats_in_blocks,
)


def test_copies_are_dealt_together():
    rng = np.random.default_rng(0)
    rows = np.repeat(rng.normal(size=(150, 4)), 4, axis=0) + 1e-4 * rng.normal(size=(600, 4))
    folds = deal_clusters(like_clusters(rows, 5, 12), 5)
    together = [np.ptp(folds[4 * i : 4 * i + 4]) == 0 for i in range(150)]
    assert np.mean(together) > 0.95
    assert np.bincount(folds).max() < 2 * np.bincount(folds).min()


@pytest.mark.parametrize("dimensions", [2, 4, 10])
@pytest.mark.parametrize("size", [4, 40])
def test_near_copies_are_told_from_rows_that_are_spread(dimensions, size):
    rng = np.random.default_rng(0)
    rows, labels = rng.normal(size=(1200, dimensions)), rng.integers(3, size=1200)
    assert look_for_copies(rows, labels, 0.5) == Copies()
    cases = rng.permutation(np.repeat(np.arange(1200 // size), size))
    copies = rows[cases] + 1e-3 * rng.normal(size=rows.shape)
    assert look_for_copies(copies, labels[cases], 0.5).per_case == size
    # The same places, as of votes; but each row has a label of its own.
    assert look_for_copies(copies, labels, 0.5) == Copies()
    assert look_for_copies(copies, labels[cases], 0.005) == Copies()  # too few errors to tell


def test_rows_whose_neighbours_agree_without_a_gap_beyond_them_are_no_copies():
    """Where they are, not what they are copies of, says their label; predictions do not see it."""
    rows = np.random.default_rng(0).normal(size=(1200, 2))
    assert look_for_copies(rows, (rows[:, 0] > 0).astype(int), 0.5) == Copies(1, may_be=True)


@pytest.mark.parametrize("size", [2, 3])
def test_two_or_three_copies_are_told_by_the_nearest_neighbours(size):
    rng = np.random.default_rng(0)
    cases, labels = rng.normal(size=(300, 6)), rng.integers(4, size=300)
    order = rng.permutation(np.repeat(np.arange(300), size))
    copies = cases[order] + 0.2 * rng.normal(size=(order.size, 6))
    assert look_for_copies(copies, labels[order], 0.5) == Copies(1, may_be=True)
    alone = rng.normal(size=(600, 6))  # labels that near rows share more and more often
    near = (alone[:, 0] + 0.7 * rng.normal(size=600) > 0).astype(int)
    assert look_for_copies(alone, near, 0.5) == Copies()


def test_rows_of_few_values_and_of_one_class_for_the_most_part_are_no_copies():
    """A classifier that is wrong on nearly all of them says nothing of how labels agree."""
    rng = np.random.default_rng(0)
    rows = 10 * rng.normal(size=(12, 2))[rng.integers(12, size=400)]
    labels = (rng.random(400) < 0.06).astype(int)
    assert look_for_copies(rows + 1e-3 * rng.normal(size=rows.shape), labels, 0.9) == Copies()


@pytest.mark.parametrize(("n_copies", "n_lacking"), [(2, 0), (2, 9), (5, 0), (5, 50), (20, 1)])
def test_blocks_are_counted_that_repeat(n_copies, n_lacking):
    rng = np.random.default_rng(0)
    rows = np.tile(rng.normal(size=(60, 3)), (n_copies, 1))[n_lacking:]
    labels = np.tile(rng.integers(3, size=60), n_copies)[n_lacking:]
    assert repeats_in_blocks(rows, labels) == n_copies
    assert repeats_in_blocks(rng.normal(size=rows.shape), labels) == 0
    assert repeats_in_blocks(rows, rng.permutation(labels)) == 0

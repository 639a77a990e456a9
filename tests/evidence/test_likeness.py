"""Like rows stay together, and copies are told from rows that are merely alike."""

import numpy as np
import pytest

from altnorm.evidence.folds import deal_clusters
from altnorm.evidence.likeness import (
    Copies,
    correlate_neighbours,
    like_clusters,
    like_rows,
    look_for_copies,
    repeats_in_blocks,
)


@pytest.mark.parametrize("odds", [False, True])
@pytest.mark.parametrize(("n", "m"), [(60, 4), (60, 40), (30, 40), (10, 40)])
def test_rows_keep_their_distances_in_the_directions_in_which_they_differ_most(n, m, odds):
    scores = np.random.default_rng(0).normal(size=(n, m)) * np.linspace(0.1, 3, m)
    scores[::7, -1] = -np.inf
    x = np.clip(scores, *np.quantile(scores[np.isfinite(scores)], (0.001, 0.999)))
    x -= 0 if odds else x.mean(axis=1, keepdims=True)
    x -= x.mean(axis=0)
    along = x @ np.linalg.svd(x)[2][:16].T
    rows = like_rows(scores, odds=odds)
    assert rows.shape[1] <= 16
    np.testing.assert_allclose(rows @ rows.T, along @ along.T, atol=1e-9)
    np.testing.assert_array_equal(like_rows(np.copysign(np.inf, x), odds=odds), 0)


def test_neighbours_are_as_alike_as_their_deviations_from_the_mean_of_the_class():
    rng = np.random.default_rng(0)
    proba, labels = rng.dirichlet(np.ones(3), 43), np.repeat([0, 1, 2, 3], [30, 10, 2, 1])
    x = like_rows(np.log(proba))
    x -= np.array([x[labels == c].mean(axis=0) for c in labels])
    square = (x**2).sum() / 43
    pairs = [i for i in range(42) if labels[i] == labels[i + 1]]
    # Two of n rows whose mean is taken off are correlated by -1/(n - 1).
    chance = square / (np.bincount(labels)[labels[pairs]] - 1)
    products = np.array([x[i] @ x[i + 1] for i in pairs]) + chance
    found = products.mean() / square, products.sum() / np.linalg.norm(products)
    assert correlate_neighbours(proba, labels) == pytest.approx(found)
    assert correlate_neighbours(np.full((9, 3), 1 / 3), np.arange(9) % 2) == (0, 0)


def test_clusters_are_of_the_size_asked_for():
    rows = np.random.default_rng(0).normal(size=(4000, 3))
    for n, n_parts, size, n_clusters in ((600, 5, 12, 50), (40, 5, 12, 5), (4000, 5, 2, 1000)):
        clusters = like_clusters(rows[:n], n_parts, size)
        assert (clusters.size, np.unique(clusters).size) == (n, n_clusters)


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
    for scale in (1e-6, 1, 1e6):
        assert look_for_copies(scale * copies, labels[cases], 0.5).per_case == size
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
    # Nor do those that are equal, which no distance is small beside.
    pairs, twice = np.tile(cases[:, :2], (2, 1)), np.tile(labels, 2)
    assert look_for_copies(pairs, twice, 0.5) == Copies(1, may_be=True)
    alone = rng.normal(size=(600, 6))  # labels that near rows share more and more often
    near = (alone[:, 0] + 0.7 * rng.normal(size=600) > 0).astype(int)
    assert look_for_copies(alone, near, 0.5) == Copies()


@pytest.mark.parametrize(("n_cases", "size", "found"), [(7, 10, 1), (8, 10, 10), (7, 15, 15)])
def test_copies_of_fewer_cases_are_clouds_unless_there_are_many(n_cases, size, found):
    rng = np.random.default_rng(0)
    cases = rng.permutation(np.repeat(np.arange(n_cases), size))
    rows = cases[:, None] + 0.03 * rng.normal(size=(cases.size, 8))
    assert look_for_copies(rows, cases // 2, 0.5).per_case == found


@pytest.mark.parametrize(
    ("size", "noise", "n_wrong", "found"),
    [
        (10, 1e-3, 60, Copies(9, may_be=True)),
        (10, 1e-3, 120, Copies()),
        (2, 0.1, 80, Copies(1, may_be=True)),
        (2, 0.1, 95, Copies()),
    ],
)
def test_copies_may_have_other_labels_but_rarely(size, noise, n_wrong, found):
    """Less often than four tenths of what is usual, or neighbours are merely near."""
    rng = np.random.default_rng(0)
    cases = rng.permutation(np.arange(400) % (400 // size))
    labels = rng.integers(50 // size, size=400)[cases]
    wrong = rng.permutation(400)[:n_wrong]
    labels[wrong] = -wrong
    rows = rng.normal(size=(400, 5))[cases] + noise * rng.normal(size=(400, 5))
    assert look_for_copies(rows, labels, 0.9) == found


@pytest.mark.parametrize("n_values", [2, 6])
def test_equal_rows_of_a_tree_have_no_order_that_could_make_copies_of_them(n_values):
    """Whichever of them happens to be named the nearest."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        values = rng.integers(n_values, size=1000)
        labels = np.where(rng.random(1000) < 0.9, values % 2, 1 - values % 2)
        assert look_for_copies(np.eye(n_values)[values], labels, 0.1) == Copies()


def test_rows_of_few_values_and_of_one_class_for_the_most_part_are_no_copies():
    """A classifier that is wrong on nearly all of them says nothing of how labels agree."""
    rng = np.random.default_rng(0)
    rows = 10 * rng.normal(size=(12, 2))[rng.integers(12, size=400)]
    labels = (rng.random(400) < 0.06).astype(int)
    assert look_for_copies(rows + 1e-3 * rng.normal(size=rows.shape), labels, 0.9) == Copies()


@pytest.mark.parametrize(
    ("n_cases", "n_copies", "n_lacking"),
    [(60, 2, 0), (60, 2, 9), (60, 5, 0), (60, 5, 50), (60, 20, 1), (40, 2, 0), (10, 3, 0)],
)
def test_blocks_are_counted_that_repeat(n_cases, n_copies, n_lacking):
    rng = np.random.default_rng(0)
    rows = np.tile(rng.normal(size=(n_cases, 3)), (n_copies, 1))[n_lacking:]
    labels = np.tile(rng.integers(3, size=n_cases), n_copies)[n_lacking:]
    assert repeats_in_blocks(rows, labels) == n_copies
    assert repeats_in_blocks(rng.normal(size=rows.shape), labels) == 0
    assert repeats_in_blocks(rows, rng.permutation(labels)) == 0
    labels[5] = 1 if labels[5] != 1 else 0  # of one row alone, and a neighbour's
    assert repeats_in_blocks(rows, labels) == 0


@pytest.mark.parametrize(("noise", "n_blocks"), [(0.9, 2), (1.1, 0)])
def test_rows_of_blocks_are_closer_than_half_of_what_rows_of_a_class_are(noise, n_blocks):
    rng = np.random.default_rng(0)
    rows = np.tile(rng.normal(size=(400, 3)), (2, 1)) + noise * rng.normal(size=(800, 3))
    assert repeats_in_blocks(rows, np.tile(rng.integers(3, size=400), 2)) == n_blocks


def test_rows_that_are_merely_alike_or_that_end_as_they_began_are_no_blocks():
    rng = np.random.default_rng(0)
    rows, labels = np.cumsum(rng.normal(size=(300, 3)), axis=0), rng.integers(3, size=300)
    assert repeats_in_blocks(rows, labels) == 0
    rows[250:], labels[250:] = rows[:50], labels[:50]
    assert repeats_in_blocks(rows, labels) == 0

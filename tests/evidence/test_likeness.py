"""Like rows stay together, and copies are told from rows that are merely alike."""

import numpy as np
import pytest

from altnorm.evidence.folds import deal_clusters
from altnorm.evidence.likeness import Copies, like_clusters, look_for_copies


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

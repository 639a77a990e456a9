"""How rows are dealt into folds, and what a fold may know of the others."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import softmax
from sklearn.model_selection import KFold, RepeatedKFold, ShuffleSplit, StratifiedKFold

from altnorm._base.errors import InputError
from altnorm.adjuster.folds import Dealing, Validation, assign_folds
from altnorm.evidence.metrics import resolve_scoring
from altnorm.method.kinds import resolve_kind


def draw(n=120, m=4, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(m, size=n)
    return softmax(rng.normal(size=(n, m)) + np.eye(m)[y], axis=1), y


def state(seed=0):
    return np.random.RandomState(seed)


# Folds.


@given(n=st.integers(2, 60), cv=st.integers(2, 7))
def test_folds_are_balanced_and_know_nothing_of_the_labels(n, cv):
    """Were they dealt class by class, some folds would tell the class balance of the others."""
    folds = assign_folds(np.arange(n) % 3, cv, state())
    assert set(folds) == set(range(min(cv, n)))
    assert np.ptp(np.bincount(folds)) <= 1
    np.testing.assert_array_equal(folds, assign_folds(np.zeros(n, dtype=int), cv, state()))
    np.testing.assert_array_equal(folds, assign_folds(np.ones((n, 4), dtype=bool), cv, state()))


def test_folds_are_dealt_by_the_random_state():
    labels = np.arange(60) % 3
    np.testing.assert_array_equal(
        assign_folds(labels, 5, state(1)), assign_folds(labels, 5, state(1))
    )
    assert (assign_folds(labels, 5, state(1)) != assign_folds(labels, 5, state(2))).any()


@pytest.mark.parametrize(
    "splitter",
    [KFold(3), KFold(4, shuffle=True, random_state=0), StratifiedKFold(3)],
    ids=repr,
)
def test_splitters_are_taken_as_they_are(splitter):
    labels = draw()[1]
    folds = assign_folds(labels, splitter, state())
    for k, (_, test) in enumerate(splitter.split(labels[:, None], labels)):
        np.testing.assert_array_equal(np.flatnonzero(folds == k), np.sort(test))


def test_lists_of_splits():
    labels = np.zeros(10, dtype=int)
    parts = np.arange(6), np.arange(6, 10)
    folds = assign_folds(labels, [(parts[1], parts[0]), (parts[0], parts[1])], state())
    assert folds.tolist() == 6 * [0] + 4 * [1]


@pytest.mark.parametrize(
    ("cv", "n", "message"),
    [
        (1, 10, "`cv` must be an integer, 2 or greater; it is 1"),
        (5, 1, "needs at least 2 rows; there are n_samples = 1"),
        (ShuffleSplit(1, test_size=4, random_state=0), 10, "one split; 6 of 10 are in none"),
        (RepeatedKFold(n_splits=2, random_state=0), 10, "one split; 10 of 10"),
    ],
    ids=["one", "rows", "partial", "repeated"],
)
def test_folds_that_are_none(cv, n, message):
    with pytest.raises(InputError, match=message):
        assign_folds(np.zeros(n, dtype=int), cv, state())


@given(n_groups=st.integers(2, 12), cv=st.integers(2, 5), seed=st.integers(0, 99))
def test_groups_are_dealt_out_whole(n_groups, cv, seed):
    groups = np.random.default_rng(seed).integers(n_groups, size=60)
    groups[:n_groups] = np.arange(n_groups)
    folds = assign_folds(np.zeros(60, dtype=int), cv, state(seed), groups)
    assert len(set(zip(groups, folds, strict=True))) == n_groups
    assert set(folds) == set(range(min(cv, n_groups)))


def test_one_group_cannot_be_dealt_out():
    with pytest.raises(InputError, match="at least 2 groups; there are n_samples = 10 in 1 group"):
        assign_folds(np.zeros(10, dtype=int), 5, state(), np.zeros(10, dtype=int))


# What a fold may know.


def deal(y, folds, prior="shrunk", weight=None):
    proba = np.full((len(y), 4), 0.25)
    score = resolve_scoring(None)
    empty, kind = np.empty((0, 4)), resolve_kind(None)
    data = Validation(proba, y, weight, None, empty, kind, 10, prior, score)
    return Dealing(data, folds)


@pytest.mark.parametrize("prior", [None, "shrunk", "uniform", [0.1, 0.2, 0.3, 0.4]], ids=str)
def test_labels_of_a_fold_have_no_part_in_what_it_knows(prior):
    y = draw()[1]
    folds = assign_folds(y, 4, state())
    clean = deal(y, folds, prior).outside[2]
    spoilt = y.copy()
    spoilt[folds == 2] = 0
    found = deal(spoilt, folds, prior).outside[2]
    for one, other in zip(clean, found, strict=True):
        np.testing.assert_array_equal(one, other)
    assert (clean.weight[folds == 2] == 0).all()


def test_with_fixed_class_counts_the_other_folds_tell_nothing():
    """Each class weighs what the prior gives it, however its rows were dealt."""
    y = np.arange(200) % 4
    for seed in range(5):
        folds = assign_folds(y, 5, state(seed))
        for outside in deal(y, folds).outside:
            mass = np.bincount(y, outside.weight)
            np.testing.assert_allclose(mass / mass.sum(), outside.prior)


def test_weights_count_in_the_strata():
    y, folds = draw()[1], assign_folds(draw()[1], 4, state())
    weight = np.random.default_rng(0).uniform(0.5, 2, y.size)
    outside = deal(y, folds, "uniform", weight).outside[1]
    mass = np.bincount(y, outside.weight)
    np.testing.assert_allclose(mass, weight[folds != 1].sum() / 4)
    one = (y == 2) & (folds != 1)
    ratio = outside.weight[one] / weight[one]
    np.testing.assert_allclose(ratio, ratio[0])

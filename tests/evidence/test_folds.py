"""Folds without chance: neighbours together, every class in every fold, groups whole."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.special import softmax
from sklearn.model_selection import GroupKFold, KFold, LeaveOneOut, ShuffleSplit, StratifiedKFold

from altnorm import Adjuster, InputError
from altnorm.evidence.folds import (
    assign_folds,
    deal_groups,
    deal_in_order,
    is_unclear,
    number_groups,
)


@given(st.lists(st.integers(0, 4), min_size=2, max_size=200), st.integers(2, 6))
def test_every_row_has_a_fold_and_every_fold_a_row(classes, cv):
    classes = np.array(classes)
    folds = assign_folds(classes, cv)
    assert folds.shape == classes.shape
    used = np.unique(folds)
    assert used.tolist() == list(range(used.size))
    assert 2 <= used.size <= cv
    np.testing.assert_array_equal(folds, assign_folds(classes, cv))


def test_a_class_in_one_place_is_in_every_fold():
    """Its rows would be judged by fits that have not seen the class."""
    classes = np.random.default_rng(0).integers(3, size=400)
    classes[100:140] = 3
    folds = assign_folds(classes, 5)
    assert (np.diff(folds[classes == 3]) >= 0).all()
    assert np.unique(folds[classes == 3]).size == 5
    np.testing.assert_array_equal(folds[classes < 3], (np.arange(400) // 80)[classes < 3])


SORTED = [(150, 150), (60, 40), (100, 100, 100), (300, 40, 25), (60,) * 5, (12,) * 20, (200, 8)]


@pytest.mark.parametrize("counts", SORTED, ids=str)
@pytest.mark.parametrize("cv", [2, 5])
def test_a_file_sorted_by_class_has_every_class_outside_every_fold(counts, cv):
    classes = np.repeat(np.arange(len(counts)), counts)
    folds = assign_folds(classes, cv)
    for c in range(len(counts)):
        of_class = folds[classes == c]
        assert (np.diff(of_class) >= 0).all()
        assert np.unique(of_class).size > 1


@pytest.mark.parametrize("counts", [(40,) * 6, (21, 20, 21)])
def test_folds_of_a_sorted_file_share_a_balance_by_design(counts):
    """Classes of equal size are no chance that a fit could learn from."""
    classes = np.repeat(np.arange(len(counts)), counts)
    folds = assign_folds(classes, 5)
    for c in range(len(counts)):
        assert np.ptp(np.bincount(folds[classes == c], minlength=5)) <= 2


@pytest.mark.parametrize("cv", [2, 5, 10])
def test_folds_of_a_sorted_file_differ_in_balance_as_by_chance(cv):
    """If all had the sample's balance, a fit to what is chance in it would look like a gain."""
    counts = np.array([100, 200, 400] * cv)
    folds = assign_folds(np.repeat(np.arange(counts.size), counts), cv)
    starts = np.cumsum(counts) - counts
    table = np.add.reduceat(np.eye(cv)[folds], starts)
    variance = ((table - counts[:, None] / cv) ** 2).mean(axis=1)
    np.testing.assert_allclose(variance, counts * (cv - 1) / cv**2, rtol=0.2)
    np.testing.assert_allclose(table.sum(axis=0), counts.sum() / cv, rtol=0.03)


def go_by_class(classes, cv=5, proba=None):
    """Which rows are of classes that are not dealt by fifths, of those with rows enough."""
    fifths = np.arange(classes.size) * cv // classes.size
    moved = classes[assign_folds(classes, cv, proba=proba) != fifths]
    return np.isin(classes, moved) & (np.bincount(classes)[classes] >= cv)


@pytest.mark.parametrize(("n", "m", "cv"), [(40, 2, 5), (300, 100, 5), (1000, 20, 5), (40, 10, 2)])
def test_a_shuffled_file_hardly_ever_looks_sorted(n, m, cv):
    rng = np.random.default_rng(0)
    assert sum(go_by_class(rng.integers(m, size=n), cv).any() for _ in range(200)) <= 4


@pytest.mark.parametrize(
    ("n", "step", "start", "is_sorted"),
    [(40, 5, 39, 1), (40, 5, 40, 0), (30, 7, 29, 1), (30, 7, 30, 0), (10, 20, 0, 0)],
)
def test_a_class_spread_over_half_of_a_file_is_sorted_if_near_an_end(n, step, start, is_sorted):
    """Then two fifths lack it; ten rows are too few to show that."""
    classes = np.zeros(400, int)
    classes[start + step * np.arange(n)] = 1
    for file in (classes, classes[::-1]):
        np.testing.assert_array_equal(go_by_class(file), file * is_sorted)


@pytest.mark.parametrize(("n_in_one", "is_sorted"), [(116, False), (124, True)])
def test_a_class_mostly_in_one_fifth_is_sorted(n_in_one, is_sorted):
    """Fits to the others lack a quarter of what they should have of it."""
    classes = np.zeros((5, 200), int)
    for k, n in enumerate(np.where(np.arange(5) == 2, n_in_one, 50 - n_in_one // 4)):
        classes[k, np.arange(n) * 200 // n] = 1
    assert go_by_class(classes.ravel()).any() == is_sorted


@pytest.mark.parametrize("n_classes", [5, 20, 50])
def test_a_file_in_two_passes_over_the_classes_is_sorted(n_classes):
    """Fits to four fifths of it would lack half of the rows of the classes that they are judged by.

    No single one of many classes has rows enough to show that.
    """
    one_pass = np.repeat(np.arange(n_classes), 400 // n_classes)
    folds = assign_folds(np.concatenate((one_pass, one_pass)), 5)
    for c in range(n_classes):
        assert np.bincount(folds[np.tile(one_pass, 2) == c], minlength=5).min() >= 1


def draw_patients(n_patients, n_classes, seed):
    """Twenty rows of each patient, who has one class or two, and a bias of his own."""
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(n_classes, 0.1), size=n_patients)
    y = np.concatenate([rng.choice(n_classes, 20, p=share) for share in shares])
    logits = 2 * np.eye(n_classes)[y] + rng.normal(size=(y.size, n_classes))
    bias = np.repeat(rng.normal(size=shares.shape), 20, axis=0)
    return softmax(logits + bias, axis=1), y


@pytest.mark.parametrize("seed", range(5))
def test_a_file_of_patients_with_few_classes_goes_by_fifths(seed):
    """By class, what is learnt of a patient would be judged by that patient."""
    proba, y = draw_patients(20, 10, seed)
    fifths = np.arange(400) * 5 // 400
    folds = assign_folds(y, 5, proba=proba)
    many = np.bincount(y)[y] >= 5
    np.testing.assert_array_equal(folds[many], fifths[many])
    # It is their likeness that shows it, not the order of the labels.
    shuffled_within = proba.copy()
    rng = np.random.default_rng(seed)
    for c in range(10):
        rows = np.flatnonzero(y == c)
        shuffled_within[rows] = proba[rng.permutation(rows)]
    assert (assign_folds(y, 5, proba=shuffled_within) != fifths)[many].any()


@pytest.mark.parametrize(
    ("likeness", "n_exchanged", "sorts"), [(0.08, 1, True), (0.15, 1, False), (0.15, 0, True)]
)
@pytest.mark.parametrize("m", [2, 4])
def test_near_rows_that_are_alike_forbid_folds_by_class(m, likeness, n_exchanged, sorts):
    """Unless they hardly are, or the file merely passes over the classes, once or twice."""
    classes = np.tile(np.repeat(np.arange(m), 2000 // m), m // 2)
    for row in range(n_exchanged):
        classes[[row + 100, row + 1300]] = classes[[row + 1300, row + 100]]
    x = np.random.default_rng(0).normal(size=(classes.size, 4))
    for i in range(1, classes.size):
        x[i] = likeness * x[i - 1] + np.sqrt(1 - likeness**2) * x[i]
    assert go_by_class(classes, proba=softmax(x, axis=1)).any() == sorts
    assert is_unclear(softmax(x, axis=1), classes) == (sorts and n_exchanged > 0)


@pytest.mark.parametrize("seed", [0, 1, 5])
def test_what_is_learnt_of_patients_with_few_classes_is_not_adopted(seed):
    proba, y = draw_patients(20, 10, seed)
    fitted = Adjuster(("bias", "matrix")).fit(proba, y, classes=np.arange(10))
    assert not fitted.verdict_.adopted


def test_few_rows_of_a_class_are_in_different_folds():
    classes = np.repeat([0, 1], [100, 3])
    assert np.unique(assign_folds(classes, 5)[classes == 1]).size == 3


@given(st.integers(2, 40), st.integers(2, 6), st.integers(0, 50))
def test_groups_are_whole(n_groups, cv, seed):
    rng = np.random.default_rng(seed)
    groups = rng.integers(n_groups, size=120)
    groups[:2] = 0, 1
    classes = rng.integers(3, size=120)
    folds = assign_folds(classes, cv, groups)
    assert all(np.unique(folds[groups == g]).size == 1 for g in np.unique(groups))
    assert np.unique(folds).size >= 2
    renamed = np.random.default_rng(seed + 1).permutation(1000)[groups]
    np.testing.assert_array_equal(folds, assign_folds(classes, cv, renamed))


def test_groups_count_as_rows_of_their_most_frequent_class():
    groups = np.repeat(np.arange(60), 3)
    classes = np.repeat(np.arange(60) >= 30, 3).astype(int)
    classes[::3] = 0  # a minority of every group
    by_group = deal_in_order(np.arange(60) >= 30, 5)
    assert np.unique(by_group[30:]).size == 5  # as the file is sorted
    np.testing.assert_array_equal(deal_groups(groups, classes, 5), by_group[groups])


PARTS = np.arange(24).reshape(3, 8)
SPLITS = [(np.setdiff1d(np.arange(24), part), part) for part in PARTS]


@pytest.mark.parametrize(
    "cv",
    [KFold(4), StratifiedKFold(3), LeaveOneOut(), GroupKFold(5), SPLITS],
    ids=lambda cv: str(cv)[:20],
)
def test_splitters_and_lists_of_splits_are_taken_as_they_are(cv):
    classes = np.arange(24) % 2
    groups = np.arange(24) // 4 if isinstance(cv, GroupKFold) else None
    splits = cv if cv is SPLITS else cv.split(np.zeros((24, 1)), classes, groups)
    folds = assign_folds(classes, cv, groups)
    for k, (_, test) in enumerate(splits):
        np.testing.assert_array_equal(np.flatnonzero(folds == k), test)


@pytest.mark.parametrize(
    ("cv", "n", "message"),
    [
        (1, 30, "`cv` must be an integer, 2 or greater"),
        (True, 30, "`cv` must be an integer"),
        (ShuffleSplit(3, random_state=0), 30, "test part of one split; .* of 30 are in none or"),
        (5, 1, "at least 2 rows; there is 1 sample"),
    ],
    ids=str,
)
def test_folds_that_are_none(cv, n, message):
    with pytest.raises(InputError, match=message):
        assign_folds(np.zeros(n, int), cv)
    with pytest.raises(InputError, match="at least 2 groups; there are 9 rows in 1 group"):
        assign_folds(np.arange(9) % 2, 5, np.zeros(9, int))


def test_rows_without_a_group_are_told_from_the_first_on():
    counted = np.arange(9) > 1
    groups = [None, "a", "b", 3, "b", None, "a", None, 3]
    with pytest.raises(InputError, match="2 of 7 rows with a label have none, the first is row 5"):
        number_groups(groups, counted)
    groups[5] = groups[7] = "b"
    assert number_groups(groups, counted).tolist() == [0, 1, 0, 0, 2, 0, 1]

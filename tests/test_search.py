"""Settings, folds, scores outside each fold, and the choice."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, softmax
from sklearn.metrics import accuracy_score, f1_score, fbeta_score, log_loss, make_scorer
from sklearn.model_selection import KFold, RepeatedKFold, ShuffleSplit, StratifiedKFold

from altnorm._validation import InputError
from altnorm.metrics import loose_macro_f1, resolve_scoring
from altnorm.search import IDENTITY, FoldScorer, Scored, Setting, assign_folds, choose

EXACT = 1e-12


def draw(n=120, m=4, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(m, size=n)
    return softmax(rng.normal(size=(n, m)) + np.eye(m)[y], axis=1), y


def draw_many(n=120, m=4, seed=0):
    rng = np.random.default_rng(seed)
    z = 2 * rng.normal(size=(n, m))
    return expit(z), rng.random((n, m)) < expit(z)


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
        (RepeatedKFold(n_splits=2, n_repeats=2, random_state=0), 10, "one split; 10 of 10"),
    ],
    ids=["one", "rows", "partial", "repeated"],
)
def test_folds_that_are_none(cv, n, message):
    with pytest.raises(InputError, match=message):
        assign_folds(np.zeros(n, dtype=int), cv, state())


# Scores.

single = [
    ("accuracy", "labels", accuracy_score, {}),
    ("f1_macro", "labels", f1_score, {"average": "macro"}),
    ("f1_weighted", "labels", f1_score, {"average": "weighted"}),
    (
        "neg_log_loss",
        "proba",
        lambda y, p, **k: -log_loss(y, p, labels=range(4), **k),
        {},
    ),
    (
        make_scorer(fbeta_score, beta=2, average="macro"),
        "proba",
        lambda y, p, **k: fbeta_score(y, p.argmax(axis=1), beta=2, average="macro", **k),
        {},
    ),
]


@pytest.mark.parametrize(
    ("scoring", "needs", "metric", "options"), single, ids=lambda v: str(v)[:20]
)
@pytest.mark.parametrize("weighted", [False, True])
def test_scores_are_the_metric_on_the_rows_outside_each_fold(
    scoring, needs, metric, options, weighted
):
    proba, y = draw()
    folds = assign_folds(y, 4, state())
    weight = np.random.default_rng(0).integers(1, 4, y.size).astype(float) if weighted else None
    score = resolve_scoring(scoring)
    assert score.needs == needs
    pred = proba if needs == "proba" else proba.argmax(axis=1)
    found = FoldScorer(score, y, folds, weight)(pred)
    assert found.shape == (5,)
    for k in range(5):  # the last is no fold: all rows
        rows = folds != k
        more = {} if weight is None else {"sample_weight": weight[rows]}
        assert found[k] == pytest.approx(metric(y[rows], pred[rows], **options, **more), abs=EXACT)


def test_a_class_that_only_one_fold_has():
    proba, y = draw()
    y[y == 3] = 0
    y[0] = 3
    folds = assign_folds(y, 4, state())
    pred = np.where(proba.argmax(axis=1) == 3, 0, proba.argmax(axis=1))
    found = FoldScorer(resolve_scoring("f1_macro"), y, folds, None)(pred)
    for k in range(5):
        rows = folds != k
        assert found[k] == pytest.approx(f1_score(y[rows], pred[rows], average="macro"), abs=EXACT)


@pytest.mark.parametrize(
    ("scoring", "metric"),
    [
        ("f1_micro", lambda y, p: f1_score(y, p, average="micro")),
        ("f1_macro", lambda y, p: f1_score(y, p, average="macro", zero_division=0)),
        ("accuracy", accuracy_score),
        ("loose_macro_f1", loose_macro_f1),
    ],
)
def test_scores_of_several_labels(scoring, metric):
    proba, y = draw_many()
    folds = assign_folds(y, 4, state())
    found = FoldScorer(resolve_scoring(scoring, True), y, folds, None)(proba > 0.5)
    for k in range(5):
        rows = folds != k
        assert found[k] == pytest.approx(metric(y[rows], proba[rows] > 0.5), abs=EXACT)


@pytest.mark.parametrize("scoring", ["accuracy", "f1_macro", "neg_log_loss"])
def test_labels_of_a_fold_have_no_part_in_the_score_outside_it(scoring):
    proba, y = draw()
    folds = assign_folds(y, 4, state())
    score = resolve_scoring(scoring)
    pred = proba if score.needs == "proba" else proba.argmax(axis=1)
    spoilt = y.copy()
    spoilt[folds == 2] = 0
    before, after = (FoldScorer(score, labels, folds, None)(pred) for labels in (y, spoilt))
    assert before[2] == after[2]
    assert (np.delete(before, 2) != np.delete(after, 2)).all()


# The choice.


def scored(*scores, changed=5, **setting):
    given = {"alpha": 1.0, "depth": 1, "threshold": 0.5, "reference": "all", "smoothing": 0.0}
    return Scored(Setting(**{**given, **setting}), np.array(scores), changed)


def test_the_best_outside_a_fold_is_chosen():
    first, second = scored(0.9, 0.5, 0.7), scored(0.8, 0.6, 0.71)
    assert choose([first, second], fold=0) is first
    assert choose([first, second], fold=1) is second
    assert choose([first, second]) is second


@pytest.mark.parametrize(
    ("milder", "other"),
    [
        ({"changed": 3}, {"changed": 4}),
        ({"depth": 1, "alpha": 9.0}, {"depth": 2, "alpha": 1.0}),
        ({"alpha": 2.0}, {"alpha": 3.0}),
        ({"alpha": 0.9}, {"alpha": 1.5}),
        ({"alpha": 0.5}, {"alpha": 0.4}),
        ({"threshold": 0.75}, {"threshold": 0.25}),
        ({"smoothing": 1.0}, {"smoothing": 0.1}),
        ({"changed": 3, "depth": 5}, {"changed": 4, "depth": 1}),
    ],
    ids=str,
)
def test_ties_go_to_the_milder(milder, other):
    milder, other = scored(0.7, **milder), scored(0.7, **other)
    assert choose([milder, other]) is milder
    assert choose([other, milder]) is milder


def test_rounding_errors_do_not_break_ties():
    milder, other = scored(0.3), scored(0.1 + 0.2, depth=2)
    assert milder.scores[0] < other.scores[0]
    assert choose([other, milder]) is milder


def test_identity_is_the_mildest():
    identity = Scored(IDENTITY, np.array([0.7]), 0)
    assert choose([scored(0.7, changed=0), identity]) is identity
    assert choose([scored(0.7), identity]) is identity
    assert choose([scored(0.71), identity]) is not identity

"""What a row adds to a gain: sums, exchanges, groups, and scores of every form."""

import numpy as np
import pytest
from altnorm.adjuster.attribution import Attribution, derivative, sureness
from altnorm.adjuster.folds import Validation
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, softmax
from sklearn.metrics import fbeta_score, make_scorer

from altnorm.evidence.metrics import resolve_scoring
from altnorm.method.kinds import resolve_kind

SINGLE = 1e-6  # contributions are kept in single precision


def draw(scoring=None, n=150, seed=0, mode=None, weight=None, groups=None):
    """Validation data, and other predictions for the same rows."""
    rng = np.random.default_rng(seed)
    kind = resolve_kind(mode)
    if mode is None:
        y = rng.integers(4, size=n)
        old, new = (softmax(rng.normal(size=(n, 4)) + k * np.eye(4)[y], axis=1) for k in (1, 1.3))
    else:
        y = rng.random((n, 5)) < 0.3
        old, new = (expit(rng.normal(size=(n, 5)) + k * (y - 0.6)) for k in (1, 1.5))
    score = resolve_scoring(scoring, mode is not None)
    empty = np.empty((0, old.shape[1]))
    return Validation(old, y, weight, groups, empty, kind, 10, "shrunk", score), new


SCORES = [
    ("accuracy", None),
    ("f1_macro", None),
    ("balanced_accuracy", None),
    ("matthews_corrcoef", None),
    ("neg_log_loss", None),
    (make_scorer(fbeta_score, beta=2, average="macro"), None),
    ("f1_micro", "labelwise"),
    ("f1_macro", "pairs"),
    ("neg_log_loss", "labelwise"),
]
scores = pytest.mark.parametrize(("scoring", "mode"), SCORES, ids=str)


@scores
@pytest.mark.parametrize("weighted", [False, True])
def test_contributions_add_up_to_the_gain(scoring, mode, weighted):
    weight = np.random.default_rng(1).uniform(0.5, 2, 150) if weighted else None
    data, new = draw(scoring, mode=mode, weight=weight)
    found = Attribution(data)(data.predicted(new))
    gain = data.score(data.labels, data.predicted(new), weight) - data.score(
        data.labels, data.predicted(data.proba), weight
    )
    tolerance = 0.05 * abs(gain) if data.score.function is not None else SINGLE
    assert found.gain == pytest.approx(gain, abs=tolerance)


@pytest.mark.parametrize("scoring", ["accuracy", "f1_macro"])
@pytest.mark.parametrize("grouped", [False, True])
def test_the_test_sees_rows_weighed_by_how_sure_they_are(scoring, grouped):
    groups = np.arange(150) // 3 if grouped else None
    data, new = draw(scoring, groups=groups)
    pred, sure = data.predicted(new), np.random.default_rng(1).random(150)
    rows = Attribution(data._replace(groups=None))(pred).units
    found = Attribution(data)(pred, sure)
    expected = rows * sure
    if grouped:
        expected = expected.reshape(-1, 3).sum(axis=1)
    np.testing.assert_allclose(found.weighted, expected, atol=SINGLE)
    np.testing.assert_array_equal(found.units, Attribution(data)(pred).units)


@scores
@pytest.mark.parametrize("grouped", [False, True])
def test_without_a_word_on_sureness_all_rows_count_alike(scoring, mode, grouped):
    data, new = draw(scoring, mode=mode, groups=np.arange(150) // 3 if grouped else None)
    found = Attribution(data)(data.predicted(new))
    np.testing.assert_array_equal(found.weighted, found.units)


def test_sureness_is_the_root_of_the_advantage():
    """0 where both decisions are as probable, 1 where the old one is impossible."""
    np.testing.assert_allclose(sureness(np.array([1.0, 0.6, 0.0])), [0, 0.5, 1])


@scores
def test_untouched_predictions_add_nothing(scoring, mode):
    data, _ = draw(scoring, mode=mode)
    found = Attribution(data)(data.predicted(data.proba))
    assert not found.units.any()
    assert found[2:] == (0, 0, 0)


@pytest.mark.parametrize("scoring", ["accuracy", "f1_macro", "matthews_corrcoef", "neg_log_loss"])
def test_a_row_adds_half_of_what_its_exchange_costs(scoring):
    """The defining property, by brute force: exchange one row, before for after."""
    data, new = draw(scoring)
    old, new = data.predicted(data.proba), data.predicted(new)
    found = Attribution(data)(new)
    gain = data.score(data.labels, new) - data.score(data.labels, old)
    for row in range(0, 150, 7):
        first, second = old.copy(), new.copy()
        first[row], second[row] = new[row], old[row]
        rest = data.score(data.labels, second) - data.score(data.labels, first)
        # Scores of counts are not linear: one row in 150 bends them by parts of a thousand.
        assert found.units[row] == pytest.approx((gain - rest) / 2, abs=3e-4)


def test_groups_add_what_their_rows_add():
    groups = np.random.default_rng(2).integers(30, size=150)
    rows, new = draw("accuracy")
    by_row = Attribution(rows)(rows.predicted(new)).units
    grouped = Attribution(rows._replace(groups=groups))(rows.predicted(new)).units
    np.testing.assert_allclose(grouped, np.bincount(groups, by_row), atol=SINGLE)


def test_decisions_that_changed_are_counted():
    data, new = draw("neg_log_loss")
    found = Attribution(data)(new)
    old, after = data.proba.argmax(axis=1), new.argmax(axis=1)
    assert found.n_changed == (old != after).sum()
    assert found.n_fixed == ((old != data.labels) & (after == data.labels)).sum()
    assert found.n_broken == ((old == data.labels) & (after != data.labels)).sum()


@given(st.lists(st.floats(0.5, 50), min_size=2, max_size=6))
def test_derivatives(counts):
    at = np.array([*counts, 0.0])

    def ratio(c):
        return c[..., 0] / (c[..., 0] + c[..., 1])

    expected = np.zeros(at.size)
    total = at[0] + at[1]
    expected[:2] = at[1] / total**2, -at[0] / total**2
    np.testing.assert_allclose(derivative(ratio, at), expected, atol=1e-7)

"""What each row adds to a gain: for every score the rows add up to it, with the right error."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import jaccard_score, make_scorer

from altnorm.evidence.attribution import attribute_gain
from altnorm.evidence.metrics import resolve_scoring
from altnorm.evidence.paired import paired_test
from altnorm.evidence.scores import MULTI_LABEL, SINGLE_LABEL, cost_score

COSTS = cost_score(np.array([[0.0, 2, 5, 1], [1, 0, 1, 1], [9, 3, 0, 1]]))
JACCARD = make_scorer(jaccard_score, average="macro", zero_division=0)
SINGLE = {
    **SINGLE_LABEL,
    **{name: resolve_scoring(name) for name in ("fbeta=2_macro", "fbeta=0.5_weighted")},
    "costs": COSTS,
    "scorer": resolve_scoring(JACCARD),
}
MULTI = {
    **MULTI_LABEL,
    "fbeta=2_micro": resolve_scoring("fbeta=2_micro", True),
    "scorer": resolve_scoring(JACCARD, True),
}


def draw(score, n, seed, *, several, m=3, changed=0.4):
    """Labels, and predictions of which a part changes, as the score needs them."""
    rng = np.random.default_rng(seed)
    touched = rng.random(n) < changed
    if score.needs == "proba":
        before, after = rng.random((2, n, m)) if several else rng.dirichlet(np.ones(m), (2, n))
    elif several:
        before, after = rng.integers(2, size=(2, n, m))
    else:
        before, after = rng.integers(m + (score is COSTS), size=(2, n))
    mask = touched[:, None] if before.ndim == 2 else touched
    labels = rng.integers(2, size=(n, m)).astype(bool) if several else rng.integers(m, size=n)
    labels[:m] = np.eye(m, dtype=bool) if several else np.arange(m)
    return labels, before, np.where(mask, after, before)


@pytest.mark.parametrize(
    ("scores", "name"),
    [*itertools.product(["SINGLE"], SINGLE), *itertools.product(["MULTI"], MULTI)],
)
@settings(max_examples=8)
@given(n=st.integers(6, 40), seed=st.integers(0, 1000), weighted=st.booleans())
def test_rows_add_up_to_the_gain(scores, name, n, seed, weighted):
    score, several = globals()[scores][name], scores == "MULTI"
    labels, before, after = draw(score, n, seed, several=several)
    weight = np.random.default_rng(seed).integers(0, 3, n) + 0.0 if weighted else np.ones(n)
    weight[:3] = 1
    rows = attribute_gain(score, labels, before, after, weight, np.arange(n) % 4)
    gain = score(labels, after, weight) - score(labels, before, weight)
    assert rows.shape == (n,)
    assert rows.sum() == pytest.approx(gain, abs=1e-9)
    if score.function is None:
        same = (before == after).reshape(n, -1).all(axis=1) | (weight == 0)
        assert not rows[same].any()  # what did not change adds nothing


@pytest.mark.parametrize("name", ["f1_macro", "balanced_accuracy", "matthews_corrcoef", "scorer"])
def test_the_error_is_that_of_the_bootstrap(name):
    score, n = SINGLE[name], 300
    rng = np.random.default_rng(0)
    labels = rng.choice(3, n, p=[0.2, 0.3, 0.5])
    proba = [rng.dirichlet(np.ones(3), n) + share * np.eye(3)[labels] for share in (0.4, 0.7)]
    proba[1][:200] = proba[0][:200]
    pair = [p / p.sum(axis=1, keepdims=True) for p in proba]
    before, after = pair if score.needs == "proba" else [p.argmax(axis=1) for p in pair]
    rows = attribute_gain(score, labels, before, after, np.ones(n), np.arange(n) % 20)
    clusters = [np.arange(n) % 20] if score.function is not None else []
    gains = []
    for _ in range(60):
        i = rng.integers(n, size=n)
        gains.append(score(labels[i], after[i]) - score(labels[i], before[i]))
    found = paired_test(rows, np.ones(n), clusters)
    assert found.std_error == pytest.approx(np.std(gains), rel=0.35 if clusters else 0.2)


@pytest.mark.parametrize("name", ["accuracy", "neg_log_loss", "costs"])
def test_rows_of_an_average_add_what_they_are_worth(name):
    labels, before, after = draw(SINGLE[name], 50, 0, several=False)
    weight = np.random.default_rng(0).random(50)
    rows = attribute_gain(SINGLE[name], labels, before, after, weight, np.zeros(50, int))
    for i in range(50):
        one = slice(i, i + 1)
        gain = SINGLE[name](labels[one], after[one]) - SINGLE[name](labels[one], before[one])
        assert rows[i] == pytest.approx(gain * weight[i] / weight.sum())


@pytest.mark.parametrize("name", ["f1_macro", "balanced_accuracy", "fbeta=2_macro"])
def test_a_row_adds_half_of_what_its_exchange_costs(name):
    """To first order: the derivative says what a single row does to the score."""
    score = SINGLE[name]
    labels, before, after = draw(score, 2000, 0, several=False, changed=0.05)
    rows = attribute_gain(score, labels, before, after, np.ones(2000), np.zeros(2000, int))
    gain = score(labels, after) - score(labels, before)
    exact = np.zeros(2000)
    for i in np.flatnonzero(before != after):
        old, new = before.copy(), after.copy()
        old[i], new[i] = after[i], before[i]
        exact[i] = (gain - (score(labels, new) - score(labels, old))) / 2
    np.testing.assert_allclose(rows, exact, atol=0.02 * np.abs(exact).max())

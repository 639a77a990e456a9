"""Rules and scores of the studies with several labels per row, against naive loops."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score

from experiments._multilabel.rules import (
    above,
    above_or_best,
    above_or_best_over,
    tune_second_threshold,
)
from experiments._multilabel.scores import loose_macro_f1, loose_micro_f1

TIGHT = {"rel": 1e-12, "abs": 1e-12}
PROBA = np.array([[0.7, 0.6, 0.1], [0.4, 0.2, 0.4], [0.1, 0.2, 0.1], [0.5, 0.5, 0.0]])


def naive_loose_macro(y, p):
    precision, recall = [], []
    for true, pred in zip(y, p, strict=True):
        gold = {j for j, v in enumerate(true) if v}
        found = {j for j, v in enumerate(pred) if v}
        if found:
            precision.append(len(gold & found) / len(found))
        if gold:
            recall.append(len(gold & found) / len(gold))
    if not precision or not recall:
        return 0.0
    a, b = sum(precision) / len(precision), sum(recall) / len(recall)
    return 2 * a * b / (a + b) if a + b else 0.0


@given(seed=st.integers(0, 10_000), density=st.sampled_from([0.0, 0.05, 0.3, 0.9]))
def test_loose_f1_equals_a_naive_loop_and_scikit_learn(seed, density):
    rng = np.random.default_rng(seed)
    y, p = (rng.random((2, rng.integers(1, 12), rng.integers(2, 7))) < density).astype(np.int8)
    assert loose_macro_f1(y, p) == pytest.approx(naive_loose_macro(y, p), **TIGHT)
    micro = f1_score(y, p, average="micro", zero_division=0.0)
    assert loose_micro_f1(y, p) == pytest.approx(micro, **TIGHT)


@pytest.mark.parametrize(
    ("decided", "expected"),
    [
        (above(PROBA), ["110", "000", "000", "000"]),
        (above_or_best(PROBA), ["110", "100", "010", "100"]),
        (above_or_best_over(PROBA, 0.2), ["110", "100", "000", "100"]),
        (above_or_best_over(PROBA, 0.5), ["110", "000", "000", "000"]),
        (above_or_best_over(PROBA, 0.0), ["110", "100", "010", "100"]),
    ],
)
def test_rules_by_hand(decided, expected):
    assert ["".join(map(str, row)) for row in decided] == expected


@given(
    seed=st.integers(0, 10_000),
    dtype=st.sampled_from([np.float32, np.float64]),
    ties=st.booleans(),
    scale=st.sampled_from([0.5, 0.9]),
)
def test_second_threshold_is_the_best_of_all(seed, dtype, ties, scale):
    rng = np.random.default_rng(seed)
    proba = (rng.random((rng.integers(1, 15), 3)) * scale).astype(dtype)
    if ties:
        proba = np.round(proba, 1)
    y = (rng.random(proba.shape) < proba).astype(int)
    found = tune_second_threshold(proba, y)
    # Every threshold acts like one of the probabilities, or like 0 or 0.5.
    candidates = [0.0, 0.5, *proba.ravel().astype(float)]
    best = max(loose_micro_f1(y, above_or_best_over(proba, c)) for c in candidates)
    assert loose_micro_f1(y, above_or_best_over(proba, found)) == pytest.approx(best, **TIGHT)
    assert 0 <= found <= 0.5


def test_second_threshold_adds_nothing_without_need():
    proba = np.array([[0.9, 0.1], [0.4, 0.1]])
    assert tune_second_threshold(proba, np.array([[1, 0], [0, 0]])) == 0.5
    assert tune_second_threshold(proba, np.array([[0, 0], [0, 0]])) == 0.5


def test_second_threshold_between_neighbouring_floats():
    low = np.float32(0.3)
    proba = np.array([[np.nextafter(low, np.float32(1)), 0], [low, 0]], dtype=np.float32)
    found = tune_second_threshold(proba, np.array([[1, 0], [0, 1]]))
    assert above_or_best_over(proba, found).tolist() == [[1, 0], [0, 0]]

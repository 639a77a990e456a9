"""What studies with several labels share: rules and scores against naive loops, and files."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.special import expit, logit
from sklearn.metrics import f1_score

from experiments._methods import GlobalThreshold
from experiments._multilabel.files import join_seeds, read_seed, seed_names, write_arrays
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


# A method that only studies need.


EXACT = 1e-12


def test_one_threshold_is_the_best_there_is():
    rng = np.random.default_rng(0)
    z = rng.normal(-1.5, 1.5, (60, 5))
    proba, y = expit(z - 1).round(2), (rng.random(z.shape) < expit(z)).astype(int)
    fitted = GlobalThreshold().fit(proba, y)
    adjusted = fitted.transform(proba)
    np.testing.assert_array_equal(adjusted > 0.5, proba > fitted.threshold_)
    best = max(f1_score(y, proba > t, average="micro") for t in np.unique(proba)[:-1])
    assert f1_score(y, adjusted > 0.5, average="micro") == pytest.approx(best, abs=EXACT)
    inside = (proba > 0) & (proba < 1)
    shift = logit(proba[inside]) - logit(adjusted[inside])
    np.testing.assert_allclose(shift, logit(fitted.threshold_), atol=1e-9)


# The predictions of several seeds in one file.


def draw_arrays(seed):
    """Logits of the seed's own, and labels that all seeds share."""
    rng = np.random.default_rng(seed)
    logits = np.round(rng.normal(-4, 3, (200, 7)), 1).astype(np.float16)
    logits[0, :2] = 0.0, -np.inf
    return {
        "val_logits": logits,
        "val_labels": np.random.default_rng(0).integers(2, size=(200, 7), dtype=np.uint8),
        "train_frequencies": np.linspace(0, 1, 7),
        "meta": np.array([f"seed {seed}"]),
    }


@pytest.fixture
def seeds(tmp_path):
    for seed in range(3):
        write_arrays(tmp_path / f"study_seed{seed}.npz", draw_arrays(seed))
    return [tmp_path / f"study_seed{seed}.npz" for seed in range(3)]


def assert_same(found, expected):
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)


def test_every_seed_comes_back_to_the_bit(seeds, tmp_path):
    joined = tmp_path / "predictions.npz"
    join_seeds(seeds[::-1], joined)
    assert seed_names(joined) == ["study_seed0", "study_seed1", "study_seed2"]
    assert seed_names(seeds[1]) == ["study_seed1"]
    write_arrays(tmp_path / "again.npz", draw_arrays(0))
    assert (tmp_path / "again.npz").read_bytes() == seeds[0].read_bytes()
    for seed, path in enumerate(seeds):
        assert_same(read_seed(path), draw_arrays(seed))
        assert_same(read_seed(joined, path.stem), draw_arrays(seed))

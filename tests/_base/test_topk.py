"""Truncated scores are filled as documented, against a loop that does it entry by entry."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from altnorm import InputError, from_topk


def by_hand(indices, proba, n_classes):
    rows = []
    for columns, values in zip(indices, proba, strict=True):
        known = {int(j): float(p) for j, p in zip(columns, values, strict=True) if j >= 0}
        missing = [j for j in range(n_classes) if j not in known]
        rest = max(0.0, 1 - sum(known.values()))
        share = min(rest / len(missing), min(known.values())) if missing else 0.0
        row = [known.get(j, share) for j in range(n_classes)]
        rows.append([p / sum(row) for p in row])
    return np.array(rows)


@given(seed=st.integers(0, 2**16), n_classes=st.integers(2, 12), n=st.integers(1, 5))
def test_agrees_with_a_loop(seed, n_classes, n):
    rng = np.random.default_rng(seed)
    k = int(rng.integers(1, n_classes + 1))
    proba = rng.dirichlet(np.full(n_classes, 0.5), n) + 1e-12
    indices = np.argsort(-proba, axis=1)[:, :k]
    values = np.take_along_axis(proba, indices, axis=1)
    hidden = rng.random((n, k)) < 0.3
    hidden[:, 0] = False
    indices = np.where(hidden, -1, indices)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = by_hand(indices, values, n_classes)
        assert_allclose(from_topk(indices, values, n_classes, input="proba"), expected, rtol=1e-9)
        assert_allclose(from_topk(indices, np.log(values), n_classes), expected, rtol=1e-9)


def test_missing_classes_never_exceed_the_smallest_known():
    filled = from_topk([[0, 1]], [[0.5, 0.01]], 3, input="proba")
    assert filled[0, 2] == filled[0, 1]
    assert filled.argmax() == 0


def test_precision_and_infinite_logarithms():
    single = from_topk([[0, 1]], np.log(np.array([[0.5, 0.25]], np.float32)), 3)
    assert single.dtype == np.float32
    assert from_topk([[0, 1]], [[0.0, -np.inf]], 3).tolist() == [[1, 0, 0]]


def test_little_known_mass_is_counted():
    with pytest.warns(UserWarning, match="1 of 2 rows know less than 10%"):
        from_topk([[0], [1]], [[0.01], [0.5]], 4, input="proba")


@pytest.mark.parametrize(
    ("indices", "values", "options", "message"),
    [
        ([[0, 5]], [[0.5, 0.1]], {"input": "proba"}, r"from -1 to 3; .* column 1 \(5\)"),
        ([[0, 0]], [[0.5, 0.1]], {"input": "proba"}, "different classes in each row"),
        ([[0, 1]], [[0.5, 0.1]], {}, r"logarithms of probabilities.*\(0.5\)"),
        ([[0, 1]], [[-0.5, -0.1]], {"input": "proba"}, "from 0 to 1"),
        ([[0, 1]], [[np.nan, 0.1]], {"input": "proba"}, "from 0 to 1"),
        ([[0, 1]], [[0.9, 0.9]], {"input": "proba"}, r"row 0 \(sum 1.8\)"),
        ([[-1, -1]], [[0.9, 0.9]], {"input": "proba"}, "more than 0 and at most 1"),
        ([[0]], [[0.9, 0.1]], {"input": "proba"}, r"shapes are \(1, 1\) and \(1, 2\)"),
        ([[0.0]], [[0.9]], {"input": "proba"}, "must hold integers"),
        ([[0]], [[0.9]], {"input": "logits"}, "'log_proba' or 'proba'"),
    ],
)
def test_bad_input_is_told(indices, values, options, message):
    with pytest.raises(InputError, match=message):
        from_topk(indices, values, 4, **options)

"""Top-k entropy against the paper's lines, row by row."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context

from altnorm import AlternatingNormalizer, InputError, ambiguity, from_topk, topk_entropy
from altnorm.method import paper
from tests.libraries import LIBRARIES
from tests.oracle import draw_rows

ATOL = 1e-13


@pytest.mark.parametrize("m", [2, 3, 9, 10, 11, 50])
def test_against_the_paper(m):
    proba = draw_rows(np.random.default_rng(m), 15, m)
    for k in {2, min(3, m), m}:
        expected = [paper.topk_entropy(row, k) for row in proba]
        assert_allclose(topk_entropy(proba, k), expected, rtol=0, atol=ATOL)
    for k_max in (2, 5, 10, 100):
        expected = [paper.ambiguity(row, k_max) for row in proba]
        assert_allclose(ambiguity(proba, k_max=k_max), expected, rtol=0, atol=ATOL)


@settings(max_examples=50)
@given(st.lists(st.integers(0, 1000), min_size=2, max_size=30).filter(any))
def test_any_row(counts):
    row = np.array(counts, dtype=float)[None, :] / sum(counts)
    result = ambiguity(row)
    assert 0 <= result[0] <= 1
    assert (result[0] == 0) == (np.count_nonzero(counts) == 1)
    assert_allclose(result, paper.ambiguity(row[0]), rtol=0, atol=ATOL)


@pytest.mark.parametrize("megabytes", [1e-6, 0.01])
def test_blocks(megabytes):
    proba = draw_rows(np.random.default_rng(1), 300, 12)
    at_once = ambiguity(proba)
    with config_context(working_memory=megabytes):
        assert_array_equal(ambiguity(proba), at_once)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("threshold", [0.0, 0.1, 0.25, 0.5, 0.75, 0.99, 1 - 2**-53, 1.0])
def test_what_serves_as_reference_is_not_in_doubt(threshold, dtype):
    rng = np.random.default_rng(0)
    for m in (2, 3, 10, 40):
        flat = [np.full(m, 1 / m), np.eye(m)[0]]
        # Rows at the edge: two, three, .. equal classes beside one of any share.
        shares = np.linspace(1 / m, 1, 200)
        for k in range(2, m + 1):
            edge = np.zeros((200, m))
            edge[:, 0], edge[:, 1:k] = shares, ((1 - shares) / (k - 1))[:, None]
            flat.extend(edge)
        drawn = rng.dirichlet(np.full(m, 0.3), 500)
        proba = np.concatenate([np.stack(flat), drawn]).astype(dtype)
        proba /= proba.sum(axis=1, keepdims=True)
        fitted = AlternatingNormalizer(threshold=threshold).fit(proba)
        assert_array_equal(fitted.reference_, proba[ambiguity(proba) <= threshold])


# Truncated scores are filled as documented, against a loop that does it entry by entry.


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


@pytest.mark.parametrize("library", LIBRARIES)
def test_filled_rows_are_of_the_library_of_the_values(library):
    values = library.make([[0.7, 0.2], [0.5, 0.5]], dtype="float32")
    filled = from_topk([[2, 0], [1, 3]], values, 4, input="proba")
    assert library.same_place(filled, values)
    assert filled.dtype == values.dtype


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

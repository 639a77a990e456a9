"""Rows that almost sum to 1 are accepted as far as their digits or their precision explain it."""

import numpy as np
import pytest

from altnorm import AlternatingNormalizer, InputError, ambiguity
from altnorm.peers import BiasCorrectedTemperature, Identity
from tests.libraries import LIBRARIES


def wide(n=200, m=60):
    return np.random.default_rng(0).dirichlet(np.full(m, 0.3), n)


def clean(rows, **settings):
    """Rows as every function and estimator goes on with them."""
    uniform = np.full((1, rows.shape[1]), 1 / rows.shape[1])
    return Identity(**settings).fit(uniform).transform(rows)


def to_bfloat16(values):
    bits = values.astype(np.float32).view(np.uint32)
    return ((bits + 0x8000) & 0xFFFF0000).astype(np.uint32).view(np.float32)


ROUNDED = {
    "3 decimals": lambda p: p.round(3),
    "4 decimals": lambda p: p.round(4),
    "half precision": lambda p: p.astype(np.float16),
    "bfloat16": to_bfloat16,
}


@pytest.mark.parametrize("how", ROUNDED)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rows_that_rounding_explains_are_divided_by_their_sum(how, dtype):
    rounded = ROUNDED[how](wide()).astype(dtype)
    with pytest.warns(UserWarning, match=f"rounding to {how} explains"):
        checked = clean(rounded)
    np.testing.assert_allclose(checked.sum(axis=1), 1, atol=1e-4)
    untouched = np.abs(rounded.sum(axis=1) - 1) <= 1e-4
    np.testing.assert_array_equal(checked[untouched], rounded[untouched])
    with pytest.warns(UserWarning, match=f"rounding to {how} explains"):
        assert ambiguity(rounded).shape == (200,)


def test_small_rounding_is_nothing_to_speak_of():
    rounded = wide(m=20).round(5)
    sums = rounded.sum(axis=1)
    assert 1e-7 < np.abs(sums - 1).max() <= 1e-4
    np.testing.assert_array_equal(clean(rounded), rounded)
    half = wide(40).astype(np.float16)  # as it came
    with pytest.warns(UserWarning, match="half precision explains"):
        np.testing.assert_allclose(clean(half).sum(axis=1), 1, atol=1e-3)


def test_what_digits_do_not_explain_is_refused():
    rounded, exact = wide().round(4), wide()
    rounded[7, 0] += 0.01
    exact[3] *= 1.0005
    for rows, message in (
        (rounded, "1 of 200 rows do not, the first is row 7"),
        (exact, "the first is row 3"),
        (np.array([[0.3, 0.3, 0.3]]), "must sum to 1"),
        (np.array([[0.5, 0.8]]), "must sum to 1"),
        (np.array([[1e300, 0.8], [1e308, 0.1]]), "must sum to 1"),
        (np.array([[-1e-9, 1.0]]), "must not be negative"),
    ):
        with pytest.raises(InputError, match=message):
            clean(rows)


def test_what_rounding_makes_negative_is_zero():
    checked = clean(np.array([[-1e-17, 1.0], [0.5, 0.5]]))
    assert checked[0, 0] == 0
    assert not np.signbit(checked).any()
    labels = clean(np.array([[-1e-17, 1 + 2e-16]]), multilabel="labelwise")
    assert labels.min() >= 0
    assert labels.max() <= 1


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize(
    "method", [AlternatingNormalizer(), BiasCorrectedTemperature(16.0), Identity()], ids=str
)
def test_one_warning_is_enough(library, method):
    """`fit` and `explain` read their rows for two purposes."""
    rows, y = wide(m=6).round(3), np.arange(200) % 6
    for call in (lambda: method.fit(library.make(rows), y), lambda: method.explain(rows)):
        with pytest.warns(UserWarning, match="rounding to 3 decimals explains") as issued:
            call()
        assert len(issued) == 1

"""What an estimator can declare about its settings and fitted attributes, and what then holds."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from altnorm._base.specs import (
    ABSENT,
    Scope,
    array,
    has_type,
    integer,
    labels,
    mapping,
    number,
    one_of,
    record,
    rule,
    table,
)
from altnorm.evidence.verdict import Caution, Verdict

NAN = float("nan")
VERDICT = Verdict("accuracy", 0.5, 0.6, 0.1, 0.01, 0.0, 0.2, 0.05, 100, 10, 10, 0, True)


def holds(spec, value, **sizes):
    return bool(spec.holds(value, Scope(None, sizes)))


@pytest.mark.parametrize(
    ("spec", "good", "bad"),
    [
        (number(0, 1), [0, 1, 0.5, np.float64(1), np.int64(0)], [-1, 1.1, NAN, True, "0", None]),
        (number(), [-1e308, 10**300], [np.inf, NAN, 10**400]),
        (number(0, 1, above=True), [1e-300], [0, 0.0]),
        (integer(2, 5), [2, np.int32(5)], [1, 6, 2.0, True, "2"]),
        (one_of((None, "a")), [None, "a"], ["b", 0, ["a"], np.array(["a", "a"])]),
        (integer(1, 2) | None, [1, None], [0, ABSENT]),
        (integer(1, 2) | ABSENT, [1, ABSENT], [0, None]),
        (integer(1, 2) | one_of(("all",)), [1, "all"], [0, "none", None]),
        (mapping(), [{}, {"a": object()}], [[], {1: 2}]),
        (mapping(number(0, 1)), [{}, {"a": 0.5}], [{"a": 2}, {"a": 0.5, "b": NAN}]),
        (table(), [{}, {"a": np.ones(2), "b": np.array(["x", None])}], [{"a": 1}, []]),
        (table(), [], [{"a": np.ones(2), "b": np.ones(3)}, {"a": np.ones((2, 2))}]),
        (labels("m"), [np.arange(3), np.array(["a", 1], object)], [np.array(["a", "a"]), [1, 2]]),
        (labels("m"), [], [np.array([1, "1"], object), np.array([(1,), 2], object)]),
        (integer(0) & rule("odd", lambda value, _: value % 2), [1], [2, -1, 1.5, None]),
        (rule("odd", lambda value, _: value % 2), [1, 3], [2]),
    ],
)
def test_values(spec, good, bad):
    assert all(holds(spec, value) for value in good)
    assert not any(holds(spec, value) for value in bad)


@pytest.mark.parametrize(
    ("spec", "good", "bad"),
    [
        (array("f", ("m",)), [np.zeros(3), np.float32([1, 2, 3])], [np.zeros(2), np.arange(3)]),
        (array("f", ("m",)), [], [[0.0] * 3, np.array([0, NAN, 0]), np.array([0, np.inf, 0])]),
        (array("f", ("m", "m")), [np.eye(3)], [np.zeros(3), np.ones((3, 4))]),
        (array("f", ("m", "k")), [np.ones((3, 4))], [np.ones((4, 3)), np.ones((3, 0))]),
        (array("f", ("k", "k")), [np.eye(2)], [np.ones((3, 4))]),
        (array("f", (2,), 0, 1), [np.array([0.0, 1.0])], [np.array([0.0, 1.1]), np.zeros(3)]),
        (array("i u", ("m",), 0), [np.arange(3), np.uint8([1, 2, 3])], [np.array([-1, 0, 0])]),
        (array("u8", ("k",)), [np.uint64([2**64 - 1])], [np.uint32([1]), np.array([1])]),
        (array("u8", ("k",), rising=True), [np.uint64([1, 2])], [np.uint64([2, 2])]),
        (array("f", ("k",), empty=True), [np.zeros(0)], [np.zeros((0, 2))]),
        (array("f", ("k", "m"), total=1), [np.eye(3)], [np.ones((2, 3))]),
        (array("f4", ("k", "m")), [np.ones((1, 3), np.float32)], [np.ones((1, 3))]),
        (array("U O", ("m",)), [np.array(["a", "b", "c"])], [np.array(["a", None, "c"], object)]),
        (array("f", ("k", "m")) | array("f", ("k",)), [np.eye(3), np.ones(2)], [np.ones((2, 2))]),
    ],
)
def test_arrays(spec, good, bad):
    assert all(holds(spec, value, m=3) for value in good)
    assert not any(holds(spec, value, m=3) for value in bad)


def test_equal_letters_are_equal_sizes():
    scope = Scope(None, {})
    rows, weight = array("f", ("n", "m")), array("f", ("n",))
    assert rows.holds(np.ones((4, 2)), scope)
    assert weight.holds(np.ones(4), scope)
    assert not weight.holds(np.ones(2), scope)


def test_an_array_that_does_not_fit_binds_no_size():
    scope = Scope(None, {"m": 3})
    assert not array("f", ("n", "m")).holds(np.ones((4, 2)), scope)
    assert scope.sizes == {"m": 3}


@pytest.mark.parametrize(
    ("hint", "good", "bad"),
    [
        (float, [1.0, 1, NAN], [True, "1", None]),
        (int, [1, np.int64(1)], [1.0, True]),
        (bool, [True], [1, None]),
        (str | None, ["a", None], [1]),
        (tuple[float, ...], [(), (1.0, 2)], [[1.0], ("a",)]),
        (tuple[int, str], [(1, "a")], [(1,), ("a", 1)]),
        (dict[str, float], [{"a": 1.0}], [{1: 1.0}, {"a": "b"}, []]),
        (np.ndarray, [np.ones(2)], [[1.0]]),
        (Any, [None, object()], []),
        (Caution, [Caution("a", "b", 1.0)], [Caution(1, "b", 1.0), ("a", "b", 1.0)]),
    ],
)
def test_annotations(hint, good, bad):
    assert all(has_type(value, hint) for value in good)
    assert not any(has_type(value, hint) for value in bad)


@pytest.mark.parametrize(
    "changes",
    [{"gain": "0.1"}, {"n_rows": 1.5}, {"adopted": 1}, {"cautions": (Caution("a", "b", "c"),)}],
)
def test_fields_of_a_verdict_are_checked(changes):
    assert holds(record(Verdict), VERDICT)
    assert not holds(record(Verdict), replace(VERDICT, **changes))

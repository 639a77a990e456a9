"""The table of gates: what a reader sees of what had to hold."""

import pytest

from altnorm.evidence.gates import Gate, Gates

TINY, SMALL = "< 0.001", "one-sided p < 0.01"


@pytest.mark.parametrize(
    ("gate", "cells"),
    [
        (Gate("rise", True, 0.2, 0.0), ("yes", "0.2", "> 0")),
        (Gate("rise", True, 0.0005, 0.0), ("yes", "0.0005", "> 0")),  # a gain is no p-value
        (Gate("score", True, 0.0005, 0.01), ("yes", TINY, SMALL)),
        (Gate("score", True, 0.001, 0.01), ("yes", "0.001", SMALL)),
        # Beside a tinier limit the number is what counts.
        (Gate("score", True, 0.0005, 0.0001), ("yes", "0.0005", "one-sided p < 0.0001")),
        (Gate("log_loss", False, 0.2, 0.01), ("no", "0.2", SMALL)),
        (Gate("changed_rows", False, 0.2, 0.05), ("no", "0.2", "one-sided p < 0.05")),
        (Gate("input", False, 0.0, 1.0), ("no", "", "")),
        (Gate("likeness", False, 0.0, 1.0), ("no", "", "")),
    ],
)
def test_a_gate_says_whether_it_held_its_number_and_what_that_had_to_be(gate, cells):
    header, row = Gates([gate]).rows()
    assert header[2:] == ("held", "value", "needed")
    assert row[2:] == cells


def test_a_route_is_named_once():
    tests = [("score", "score"), ("changed_rows", "log_loss"), ("log_loss", "log_loss")]
    on_routes = [Gate(name, True, 0.002, 0.01, route) for name, route in tests]
    gates = Gates([Gate("rise", True, 1.0, 0.0), *on_routes])
    assert [row[0] for row in gates.rows()] == ["", "always", "either", "or all of", ""]


def test_without_gates_nothing_had_to_hold():
    assert str(Gates()) == Gates().to_html() == "Nothing had to hold."

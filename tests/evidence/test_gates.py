"""The table of gates: what a reader sees of what had to hold."""

import numpy as np
import pytest

from altnorm import Adjuster
from altnorm.evidence.gates import Gate, Gates


@pytest.mark.parametrize(
    ("name", "value", "limit", "shown"),
    [
        ("score", 0.0005, 0.01, "< 0.001"),
        ("score", 0.001, 0.01, "0.001"),
        ("score", 0.2, 0.01, "0.2"),
        ("score", 0.0005, 0.0001, "0.0005"),  # beside a tinier limit the number is what counts
        ("rise", 0.0005, 0.01, "0.0005"),  # a gain is no p-value
    ],
)
def test_tiny_p_values_are_shown_as_such(name, value, limit, shown):
    (_, row) = Gates([Gate(name, True, value, limit)]).rows()
    assert row[3] == shown


@pytest.mark.parametrize(
    ("gate", "needed"),
    [
        (Gate("rise", True, 0.2, 0.0), "> 0"),
        (Gate("score", False, 0.2, 0.01, "score"), "one-sided p < 0.01"),
        (Gate("log_loss", False, 0.2, 0.01, "log_loss"), "one-sided p < 0.01"),
        (Gate("changed_rows", False, 0.2, 0.05, "log_loss"), "one-sided p < 0.05"),
    ],
)
def test_a_gate_says_what_its_number_had_to_be(gate, needed):
    header, row = Gates([gate]).rows()
    assert header[-1] == "needed"
    assert row[3:] == ("0.2", needed)


@pytest.mark.parametrize("name", ["input", "likeness"])
def test_a_gate_without_a_number_shows_none(name):
    assert Gates([Gate(name, False, 0.0, 1.0)]).rows()[1][2:] == ("no", "", "")


def test_a_p_value_of_a_gate_is_half_of_the_verdict_s_and_says_so():
    """Where the score rises: the one is one-sided, the other two-sided as the interval is."""
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=200)
    scores = rng.normal(size=(200, 3)) + 1.5 * np.eye(3)[y] + [0.8, 0, 0]
    verdict = Adjuster(input="logits").fit(scores, y).verdict_
    gate = next(gate for gate in verdict.gates if gate.name == "score")
    assert verdict.gain > 0
    assert gate.value == pytest.approx(verdict.p_value / 2)
    line = next(line for line in str(verdict.gates).splitlines() if gate.text in line)
    assert line.split()[-5:] == [f"{gate.value:.3g}", "one-sided", "p", "<", "0.01"]


def test_a_further_gate_comes_last_unless_asked_for():
    rise, likeness = Gate("rise", True, 1.0, 0.0), Gate("likeness", False, 0.0, 1.0)
    gates = Gates([rise])
    assert gates.with_gate(likeness) == (rise, likeness)
    assert gates.with_gate(likeness, first=True) == (likeness, rise)


def test_a_route_is_named_once():
    gates = Gates(
        [
            Gate("rise", True, 1.0, 0.0),
            Gate("score", False, 0.2, 0.01, "score"),
            Gate("changed_rows", True, 0.01, 0.05, "log_loss"),
            Gate("log_loss", True, 0.002, 0.01, "log_loss"),
        ]
    )
    assert [row[0] for row in gates.rows()] == ["", "always", "either", "or all of", ""]


def test_without_gates_nothing_had_to_hold():
    assert str(Gates()) == Gates().to_html() == "Nothing had to hold."

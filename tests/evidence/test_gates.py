"""The table of gates: what a reader sees of what had to hold."""

import pytest

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
            Gate("changed_rows", True, 0.01, 0.025, "log_loss"),
            Gate("log_loss", True, 0.002, 0.01, "log_loss"),
        ]
    )
    assert [row[0] for row in gates.rows()] == ["", "always", "either", "or all of", ""]

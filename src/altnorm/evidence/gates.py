"""What had to hold for a change of decisions, and whether it did."""

from __future__ import annotations

from dataclasses import dataclass

from altnorm._base.fitted import Fields
from altnorm._base.persistence import storable
from altnorm._base.words import html_table, text_table

GATES = {  # what each of them asks for
    "input": "the input looks right",
    "rise": "the score rises",
    "score": "the score's own test",
    "log_loss": "lower log loss on all rows",
    "changed_rows": "lower log loss on rows that gain or lose",
    "likeness": "the gain stays when like rows are kept together",
}
_ROUTES = {"": "always", "score": "either", "log_loss": "or all of"}
_TESTS = ("score", "log_loss", "changed_rows")  # whose number is a one-sided p-value
_WITHOUT_NUMBER = ("input", "likeness")


@storable
@dataclass(frozen=True)
class Gate:
    """One thing that had to hold.

    Attributes
    ----------
    name : str
        A key of ``GATES``.
    held : bool
        Whether it did.
    value, limit : float
        Its number, and what that had to pass. Of a test that is a one-sided p-value: half of the
        verdict's, which is two-sided, where the score rises.
    route : {"", "score", "log_loss"}
        Which evidence it belongs to; one of the two is enough. Without a route it must hold.
    """

    name: str
    held: bool
    value: float
    limit: float
    route: str = ""

    def _check_fitted(self, fields: Fields) -> None:
        fields.choice("name", tuple(GATES))
        fields.choice("route", tuple(_ROUTES))

    @property
    def text(self) -> str:
        """What it asks for, in words."""
        return GATES[self.name]


class Gates(tuple[Gate, ...]):
    """Gates in the order of deciding; a table as text and in a notebook.

    Parameters
    ----------
    iterable : iterable of Gate
        The gates.

    Examples
    --------
    >>> from altnorm.evidence.gates import Gate, Gates
    >>> gates = Gates([Gate("rise", True, 0.012, 0.0), Gate("score", False, 0.2, 0.01, "score")])
    >>> gates.passed
    False
    >>> print(gates)
               had to hold           held  value              needed
    always     the score rises       yes   0.012                 > 0
    either     the score's own test  no      0.2  one-sided p < 0.01
    """

    @property
    def passed(self) -> bool:
        """Whether all that must hold does, and one kind of evidence is there."""
        return all(gate.held for gate in self if not gate.route) and self.route != ""

    @property
    def route(self) -> str:
        """Which evidence is there: that of the score, or that of the log loss; empty: none."""
        for route in ("score", "log_loss"):
            gates = [gate for gate in self if gate.route == route]
            if gates and all(gate.held for gate in gates):
                return route
        return ""

    def largest_p(self, route: str) -> float:
        """The largest p-value of the tests on a route: that of all of them together."""
        return max((gate.value for gate in self if gate.route == route), default=1.0)

    def rows(self) -> list[tuple[str, ...]]:
        """A row of text for each gate, under a header."""
        lines: list[tuple[str, ...]] = [("", "had to hold", "held", "value", "needed")]
        before = None
        for gate in self:
            start = _ROUTES[gate.route] if gate.route != before else ""
            held = "yes" if gate.held else "no"
            tiny = gate.name in _TESTS and gate.value < 0.001 <= gate.limit
            value = "< 0.001" if tiny else f"{gate.value:.3g}"
            needed = f"one-sided p < {gate.limit:.3g}" if gate.name in _TESTS else "> 0"
            numbers = ("", "") if gate.name in _WITHOUT_NUMBER else (value, needed)
            lines.append((start, gate.text, held, *numbers))
            before = gate.route
        return lines

    def __str__(self) -> str:
        return text_table(self.rows(), n_left=3) if self else "Nothing had to hold."

    def to_html(self) -> str:
        """Return the table for a notebook."""
        header, *rows = self.rows()
        return html_table(header, rows) if rows else str(self)

    _repr_html_ = to_html

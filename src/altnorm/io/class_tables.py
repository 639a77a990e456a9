"""Small files that people write about classes: how frequent they are, and what mistakes cost."""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np

from altnorm._base.errors import InputError, shown
from altnorm._base.files import check_input
from altnorm.decisions.purpose import read_costs
from altnorm.io.columns import listed, names_of
from altnorm.io.json_lines import read_json
from altnorm.io.text_tables import DELIMITERS

PERSON = ("person", "abstain", "defer", "reject", "")
"""What the decision to leave a row to a person may be called, unless a class has that name."""

LONG = ("true", "decision", "cost")
"""Columns of a table with one cost per line."""

_COSTS = (
    "a table of costs in UTF-8: the classes as header and first column, or the columns true, "
    "decision, cost"
)
_JSON_COSTS = (
    'a table of costs like {"ill": {"healthy": 20}}, or a list of objects with true, decision and '
    "cost"
)


def read_balance(path: str | os.PathLike[str], names: Sequence[str]) -> np.ndarray:
    """Read one number per class, in the order of `names`, from a CSV file of class and number.

    Its first line is a header unless its second field is a number. Each class must be there once,
    in any order; the numbers need not sum to 1.
    """
    source = check_input(path)
    lines = _read_lines(source, "a CSV file of classes and numbers, in UTF-8", "labels")
    if lines and (len(lines[0]) != 2 or not _is_number(lines[0][1])):
        lines = lines[1:]
    for line in lines:
        if len(line) != 2 or not _is_number(line[1]):
            raise InputError(
                f"Each line of '{source}' must hold a class and a number, 0 or greater",
                f"one is '{','.join(line)}'",
                "Write for example 'cat,0.3'.",
                code="labels",
            )
    found = [line[0] for line in lines]
    wrong = {
        "missing": [name for name in names if name not in found],
        "unknown": [name for name in found if name not in names],
        "there twice": [name for name in names if found.count(name) > 1],
    }
    for what, offenders in wrong.items():
        if offenders:
            raise InputError(
                f"'{source}' must name each of the {len(names)} classes once",
                f"{listed(offenders)} {'is' if len(offenders) == 1 else 'are'} {what}",
                "Write a line per class.",
                value=offenders[0],
                code="labels",
            )
    values = {name: float(number) for name, number in lines}
    return np.array([values[name] for name in names])


def _is_number(text: str) -> bool:
    try:
        return 0 <= float(text) < np.inf
    except ValueError:
        return False


def read_cost_file(path: str | os.PathLike[str], classes: Any) -> np.ndarray:
    """Read a table of costs as :class:`altnorm.Adjuster` takes it: rows are true classes.

    A table has a line and a column for each class, and maybe one for a person; from lines of true,
    decision and cost, and in JSON, some may be missing. The page on the command line tells all.
    """
    source, names = check_input(path), names_of(classes)
    is_json = source.suffix.lower() == ".json"
    given = _read_json(source) if is_json else _read_text(source, names)
    known, costs = set(names), {}
    for true, decision, cost in given:
        if true not in known:
            raise _unknown(source, "class", true, names)
        is_person = decision not in known and decision.lower() in PERSON
        if decision not in known and not is_person:
            raise _unknown(source, "decision", decision, names)
        key = true, None if is_person else decision
        if key in costs:
            raise InputError(
                f"'{source.name}' must give each cost once",
                f"deciding '{shown(decision)}' where '{shown(true)}' is true has two",
                "Remove one of them.",
                code="costs",
            )
        costs[key] = _number(source, true, decision, cost)
    return read_costs(costs, np.asarray(classes))


def _read_json(source: Path) -> list[tuple[str, str, Any]]:
    """True class, decision and cost, from either form."""
    try:
        found = read_json(source.read_text(encoding="utf-8-sig"))
        if isinstance(found, list):
            return [(str(one["true"]), str(one["decision"] or ""), one["cost"]) for one in found]
        return [(true, name, cost) for true, row in found.items() for name, cost in row.items()]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _form_error(source, "it is not such a JSON file", _JSON_COSTS) from error


def _read_text(source: Path, names: list[str]) -> list[tuple[str, str, Any]]:
    """The same from one cost per line, or from a table that has all classes, in any order."""
    rows = _read_lines(source, _COSTS, "costs")
    lines = [[cell.strip() for cell in row] for row in rows]
    if len(lines) < 2 or len({len(line) for line in lines}) != 1:
        raise _form_error(source, "its lines are too few, or of different lengths")
    (_, *decisions), *lines = lines
    header = [cell.strip().lower() for cell in rows[0]]
    if sorted(header) == sorted(LONG):
        true, decision, cost = (header.index(name) for name in LONG)
        return [(line[true], line[decision], line[cost]) for line in lines]
    for what, found in (("a line", [line[0] for line in lines]), ("a column", decisions)):
        missing = [name for name in names if name not in found]
        if missing:
            raise InputError(
                f"A table of costs must have {what} for each class",
                f"'{source.name}' has none for {listed(missing)}",
                "Add it, or write lines of true, decision, cost: costs that are not given are 0 if "
                "right and 1 if wrong.",
                value=missing[0],
                code="costs",
            )
    return [
        (true, decision, cost)
        for true, *costs in lines
        for decision, cost in zip(decisions, costs, strict=True)
    ]


def _number(source: Path, true: str, decision: str, cost: Any) -> float:
    try:
        return float(cost)
    except (TypeError, ValueError):
        raise InputError(
            f"Costs in '{source.name}' must be numbers",
            f"that of deciding '{decision}' where '{true}' is true is {cost!r}",
            "Write 0 for a decision that costs nothing.",
            value=cost,
            code="costs",
        ) from None


def _unknown(source: Path, what: str, name: str, names: list[str]) -> InputError:
    near = get_close_matches(name, names, 1)
    return InputError(
        f"'{source.name}' names the unknown {what} '{name}'",
        remedy=f"Did you mean '{near[0]}'?"
        if near
        else f"The classes are {listed(names)}; `person` leaves a row to a person.",
        value=name,
        code="costs",
    )


def _read_lines(source: Path, what: str, code: str) -> list[list[str]]:
    """Cells of a .csv or .tsv file, line by line; empty lines are left out."""
    delimiter = DELIMITERS.get(source.suffix.lower().lstrip("."), ",")
    try:
        with source.open(newline="", encoding="utf-8-sig") as file:
            return [row for row in csv.reader(file, delimiter=delimiter) if any(row)]
    except (UnicodeDecodeError, csv.Error) as error:
        raise _form_error(source, f"it cannot be read ({error})", what, code) from error


def _form_error(source: Path, offender: str, what: str = _COSTS, code: str = "costs") -> InputError:
    remedy = "See the page on the command line for an example."
    return InputError(f"'{source.name}' must be {what}", offender, remedy, code=code)

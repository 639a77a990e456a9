"""Small files that people write about classes: how frequent they are, and what mistakes cost."""

from __future__ import annotations

import csv
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from altnorm._base.errors import InputError, shown
from altnorm._base.files import check_input
from altnorm.decisions.purpose import read_costs
from altnorm.io.formats import DELIMITERS
from altnorm.io.json_lines import read_json
from altnorm.io.labels import did_you_mean, listed, names_of

# What the decision to leave a row to a person may be called, unless a class has that name.
_PERSON = ("person", "abstain", "defer", "reject", "")
_LONG = ("true", "decision", "cost")  # columns of a table with one cost per line
_FORMS = {
    "labels": "a CSV file of classes and numbers, 0 or greater, in UTF-8",
    "costs": "a table of costs in UTF-8: the classes as header and first column, or the columns "
    'true, decision, cost; in JSON like {"ill": {"healthy": 20}}, or a list of objects with true, '
    "decision and cost",
}


def read_balance(path: str | os.PathLike[str], names: Sequence[str]) -> np.ndarray:
    """Read one number per class, in the order of `names`, from a CSV file of class and number.

    Its first line is a header unless its second field is a number. Each class must be there once,
    in any order; the numbers need not sum to 1.
    """
    source = check_input(path)
    lines = _read_lines(source, "labels")
    lines = lines if not lines or _is_share(lines[0]) else lines[1:]
    for line in lines:
        if not _is_share(line):
            raise _form_error(source, "labels", f"one line is '{','.join(line)}'")
    count = Counter(name for name, _ in lines)
    for offenders, fault in (
        ([name for name in names if name not in count], "missing"),
        ([name for name in count if name not in names], "unknown"),
        ([name for name in names if count[name] > 1], "there twice"),
    ):
        if offenders:
            raise InputError(
                f"'{source}' must name each of the {len(names)} classes once",
                f"{listed(offenders)} {'is' if len(offenders) == 1 else 'are'} {fault}",
                "Write a line per class.",
                value=offenders[0],
                code="labels",
            )
    shares = dict(lines)
    return np.array([float(shares[name]) for name in names])


def _is_share(line: Sequence[str]) -> bool:
    """Whether a line has two cells, the second of which is a number that is not negative."""
    try:
        return len(line) == 2 and 0 <= float(line[1]) < np.inf
    except ValueError:
        return False


def read_cost_file(path: str | os.PathLike[str], classes: Any) -> np.ndarray:
    """Read a table of costs as :class:`altnorm.Adjuster` takes it: rows are true classes.

    The page on the command line tells which forms it may have.
    """
    source, names = check_input(path), names_of(classes)
    is_json = source.suffix.lower() == ".json"
    costs: dict[tuple[str, str | None], float] = {}
    for true, decision, cost in _read_json(source) if is_json else _read_text(source, names):
        is_person = decision not in names and decision.lower() in _PERSON
        key = true, None if is_person else decision
        for role, name in zip(("class", "decision"), key, strict=True):
            if name is not None and name not in names:
                rule = f"'{source.name}' names the unknown {role} '{shown(name)}'"
                classes_are = f"The classes are {listed(names)}; `person` leaves a row to a person."
                raise _cost_error(rule, remedy=did_you_mean(name, names) or classes_are)
        pair = f"deciding '{shown(decision)}' where '{shown(true)}' is true"
        if key in costs:
            raise _cost_error(f"'{source.name}' must give each cost once", f"{pair} has two")
        try:
            costs[key] = float(cost)
        except (TypeError, ValueError):
            rule = f"Costs in '{source.name}' must be numbers"
            raise _cost_error(rule, f"that of {pair} is {shown(repr(cost))}") from None
    return read_costs(costs, np.asarray(classes))


def _read_json(source: Path) -> list[tuple[str, str, Any]]:
    """True class, decision and cost, from either form."""
    try:
        content = read_json(source.read_text(encoding="utf-8-sig"))
        if isinstance(content, list):
            return [(str(x["true"]), str(x["decision"] or ""), x["cost"]) for x in content]
        return [(true, name, cost) for true, row in content.items() for name, cost in row.items()]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _form_error(source, "costs", "it is not such a JSON file") from error


def _read_text(source: Path, names: list[str]) -> list[tuple[str, str, Any]]:
    """The same from one cost per line, or from a table that has all classes, in any order."""
    lines = [[cell.strip() for cell in line] for line in _read_lines(source, "costs")]
    if len(lines) < 2 or len({len(line) for line in lines}) != 1:
        raise _form_error(source, "costs", "its lines are too few, or of different lengths")
    header, *lines = lines
    lower = [cell.lower() for cell in header]
    if sorted(lower) == sorted(_LONG):
        true, decision, cost = map(lower.index, _LONG)
        return [(line[true], line[decision], line[cost]) for line in lines]
    for place, named in (("line", [line[0] for line in lines]), ("column", header[1:])):
        missing = [name for name in names if name not in named]
        if missing:
            rule = f"A table of costs must have a {place} for each class"
            raise _cost_error(rule, f"'{source.name}' has none for {listed(missing)}")
    return [
        (true, decision, cost)
        for true, *costs in lines
        for decision, cost in zip(header[1:], costs, strict=True)
    ]


def _cost_error(rule: str, offender: str = "", remedy: str = "") -> InputError:
    default = "In lines of true, decision, cost, what is not given costs 0 if right and 1 if wrong."
    return InputError(rule, offender, remedy or default, code="costs")


def _read_lines(source: Path, code: str) -> list[list[str]]:
    """Cells of a .csv or .tsv file, line by line; empty lines are left out."""
    delimiter = DELIMITERS.get(source.suffix.lower().lstrip("."), ",")
    try:
        with source.open(newline="", encoding="utf-8-sig") as file:
            return [line for line in csv.reader(file, delimiter=delimiter) if any(line)]
    except (UnicodeDecodeError, csv.Error) as error:
        raise _form_error(source, code, f"it cannot be read ({error})") from error


def _form_error(source: Path, code: str, offender: str) -> InputError:
    remedy = "See the page on the command line for an example."
    return InputError(f"'{source.name}' must be {_FORMS[code]}", offender, remedy, code=code)

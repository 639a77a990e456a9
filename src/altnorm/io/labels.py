"""Names of classes, and what labels mean: by name, or by index where nothing is ambiguous."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from difflib import get_close_matches
from typing import Any, NamedTuple

import numpy as np

from altnorm._base.errors import InputError, shown
from altnorm._base.files import file_error
from altnorm.io.formats import Layout

# What a missing label looks like as text; -1 is how scikit-learn marks rows without one.
_MISSING = ("None", "", "nan", "-1", "-1.0")


def column_error(rule: str, offender: str = "", remedy: str = "", **fields: Any) -> InputError:
    """Return an error about columns: their names, and what they hold."""
    return InputError(rule, offender, remedy, code="columns", **fields)


def name_taken(name: str) -> InputError:
    """Return an error about a column to append that has the name of one that is there."""
    return column_error(
        "An appended column must have a new name",
        f"there is a column {name!r} already",
        "Pass another `output` or `prediction`.",
        value=name,
        parameter="prediction",
    )


def names_of(values: Any) -> list[str]:
    """Text of each class or label."""
    return [str(value) for value in np.asarray(values).tolist()]


def listed(names: Sequence[str]) -> str:
    """Tell names in a sentence, the first few of them."""
    message = ", ".join(f"'{shown(name)}'" for name in names[:6])
    return message if len(names) <= 6 else f"{message} and {len(names) - 6} more"


def did_you_mean(name: str, names: Collection[str]) -> str:
    """Ask for the name that is near one that is not there; nothing if none is."""
    by_case = {candidate.lower(): candidate for candidate in names}
    near = get_close_matches(name.lower(), by_case, 1)
    return f"Did you mean '{shown(by_case[near[0]])}'?" if near else ""


def check_rows(n: int) -> None:
    """Raise if a file has no rows."""
    if not n:
        raise file_error("The file must have at least one row", "it has none", "Write predictions.")


def read_labels(
    values: Sequence[Any], classes: np.ndarray, layout: Layout, *, reordered: bool = False
) -> np.ndarray:
    """Return labels, given as class names or as column indices, as classes; None where missing.

    Missing are empty cells, NaN, and -1 where that is not a class. Columns are `reordered` if they
    are in another order than the model's, or in another one from line to line.
    """
    names = set(names_of(classes))
    is_missing = np.array([str(v) in _MISSING and str(v) not in names for v in values], dtype=bool)
    if is_missing.any() and (not layout.gaps or is_missing.all()):
        row = int(is_missing.argmax())
        holds = "is empty" if values[row] in (None, "") else f"holds {shown(values[row])}"
        rule, remedy = "Each row must have a label", "Drop the rows without one."
        if layout.gaps:
            rule = "Some rows must have a label"
            remedy = "Without any, `altnorm tune --no-labels` makes a model."
        raise column_error(
            rule, f"'{shown(layout.label or 'labels')}' {holds} in row {row}", remedy
        )
    rows = np.flatnonzero(~is_missing)
    texts = names_of([values[i] for i in rows.tolist()])
    resolved = classes[_find_columns(texts, names_of(classes), rows, reordered)]
    if not is_missing.any():
        return resolved
    labels = np.full(is_missing.size, None, dtype=object)
    labels[rows] = resolved
    return labels


def _find_columns(
    texts: list[str], names: list[str], rows: np.ndarray, reordered: bool
) -> list[int]:
    """The columns of the classes that labels of some rows mean, by name or by index.

    Names win; 3, 3.0 and "3.0" are one name, and so are 1 and True. Indices are understood only
    where no class name is a number and no column is reordered, so that there is nothing to guess.
    """
    # As written first: "1.0" and "1" may be two classes.
    for spelled in (str, _as_integer):
        codes = {spelled(name): j for j, name in enumerate(names)}
        labels = [spelled(label) for label in texts]
        if len(codes) == len(names) and all(label in codes for label in labels):
            return [codes[label] for label in labels]
    # Nine digits always fit an index; a longer text is no index and may be too long to convert.
    numbers = all(re.fullmatch(r"[0-9]{1,9}", label) for label in labels)
    numeric_names = any(re.fullmatch(r"-?\d+(\.\d*)?", name) for name in names)
    if numbers and not numeric_names and max(map(int, labels)) < len(names):
        if reordered:
            raise column_error(
                "Labels that are column indices are ambiguous where the order of classes varies",
                remedy="Use class names as labels.",
            )
        return [int(label) for label in labels]
    i, label = next((i, label) for i, label in enumerate(labels) if label not in codes)
    raise column_error(
        f"Each label must be a class name or a column index from 0 to {len(names) - 1}",
        f"row {rows[i]} has '{shown(label)}'",
        prefix_remedy(names, labels) or f"The classes are {listed(names)}.",
    )


def _as_integer(text: str) -> str:
    """A whole number or truth value as an integer: a gap in a column may have made it another."""
    if text.lower() in ("true", "false"):
        return str(int(text.lower() == "true"))
    return re.sub(r"^(-?[0-9]+)\.0*$", r"\1", text)


def prefix_remedy(columns: Sequence[str], names: Collection[str]) -> str:
    """Advise --prefix where all names are there, behind the same text; else nothing."""
    first = next(iter(names))
    for column in columns:
        prefix = column.removesuffix(first)
        if prefix != column and {prefix + name for name in names} <= set(columns):
            return f"If the class columns start with '{shown(prefix)}', pass --prefix {prefix}."
    return ""


# Columns, and labels in a file of their own.


def column_values(table: Any, name: str) -> list[Any]:
    """Values of a column, or of a field of a nested one: "doc.answer" is `answer` of `doc`."""
    names = table.schema.names
    column, *path = [name] if name in names else name.split(".")
    if column not in names:
        raise no_such_column(name, names)
    values = table.column(column).to_pylist()
    if path:
        values = [field_of(value, path) for value in values]
        if all(value is None for value in values):
            raise column_error(
                f"The column '{shown(column)}' has no field '{shown('.'.join(path))}'",
                remedy="Check the names between the dots.",
                value=name,
            )
    return values


def no_such_column(name: str, names: Sequence[str]) -> InputError:
    """Return the error for a column that was named and is not there."""
    remedy = f"{did_you_mean(name, names)} Its columns are {listed(names)}.".lstrip()
    return column_error(f"The table has no column '{shown(name)}'", remedy=remedy, value=name)


def not_numbers(name: str, column: Any) -> InputError:
    """Say what a class column holds instead of numbers, and where."""
    holds = shown(column.type)
    for row, value in enumerate(column.to_pylist()):
        try:
            float(value)
        except (TypeError, ValueError):
            holds = f"'{shown(value)}' in row {row}"
            break
    rule = "Class columns must hold numbers with a decimal point"
    return column_error(rule, f"'{shown(name)}' holds {holds}", "Correct or convert it.")


def field_of(value: Any, names: Sequence[str]) -> Any:
    """What lies under a path of names in a nested value, which may be JSON text."""
    for name in names:
        value = parse_nested(value) if isinstance(value, str) else value
        value = value.get(name) if isinstance(value, dict) else None
    return value


def parse_nested(text: str | None) -> Any:
    """The value that a JSON text stands for; the text itself if it is none."""
    try:
        return None if text is None else json.loads(text)
    except (ValueError, RecursionError):
        return text


class LabelFile(NamedTuple):
    """Labels in a file of their own: that of each id, and what ids are called."""

    name: str
    id_name: str
    labels: dict[str, Any]

    @classmethod
    def of(cls, table: Any, layout: Layout) -> LabelFile:
        """The columns that the layout names, else `id` and `label`, else both that there are."""
        path, names = layout.labels, table.schema.names
        by_place = names if len(names) == 2 else (None, None)
        id_name = next((name for name in (layout.id, "id") if name in names), by_place[0])
        label_name = next((name for name in (layout.label, "label") if name in names), by_place[1])
        if id_name is None or label_name is None or id_name == label_name:
            raise file_error(
                f"'{path}' must have a column of ids and one of labels",
                f"its columns are {', '.join(names)}",
                "Call them `id` and `label`, or name them with --id and --label; a column `row` "
                "counts rows from 0.",
            )
        labels: dict[str, Any] = {}
        ids, values = table[id_name].to_pylist(), table[label_name].to_pylist()
        for key, label in zip(map(str, ids), values, strict=True):
            if labels.setdefault(key, label) != label:
                offender = f"'{key}' has '{labels[key]}' and '{label}'"
                remedy = "Remove one of them."
                raise file_error(f"'{path}' must give each id one label", offender, remedy)
        return cls(str(path), id_name, labels)

    def classes(self) -> list[str]:
        """The labels that occur."""
        return sorted({str(label) for label in self.labels.values() if label is not None})

    def match(self, ids: Sequence[Any]) -> list[Any]:
        """The label of each id; None where the file has none."""
        matched = [self.labels.get(str(key)) for key in ids]
        if all(label is None for label in matched):
            raise file_error(
                f"The ids in '{self.name}' must be those of the predictions",
                f"it has '{next(iter(self.labels), '')}', ..., and they have '{ids[0]}', ...",
                "Name the column of ids with --id; to count rows from 0, call it `row`.",
            )
        return matched

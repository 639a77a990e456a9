"""Data frames of any kind: the names of their columns, and these in order as one array.

Frames are recognised by their methods, so that no library has to be imported.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np

from altnorm._base.errors import InputError, shown


def column_names(values: Any) -> list[Any] | None:
    """Names of the columns of a frame (pandas, Polars, PyArrow, DuckDB); None of anything else."""
    if _is_lazy(values):
        return list(values.collect_schema().names())
    if hasattr(values, "column_names") and hasattr(values, "schema"):  # PyArrow
        return list(values.column_names)
    columns = getattr(values, "columns", None)
    return None if columns is None or callable(columns) else list(columns)


def collected(values: Any) -> Any:
    """Return an array in place of a frame that scikit-learn cannot read; all else as it is."""
    if not _is_foreign(values):
        return values
    return _read(values, column_names(values) or [])


def named_columns(values: Any, wanted: Sequence[Any], *, by_position: bool) -> Any:
    """Return the wanted columns of a frame, by their text; None if columns count by position.

    With `by_position`, those of a frame without any wanted name do, if scikit-learn warns of it.
    """
    names = column_names(values)
    if names is None:
        return None
    if names == list(range(len(names))) and not _is_foreign(values):
        return None  # pandas numbers the columns of an array
    texts, wanted = [str(name) for name in names], [str(name) for name in wanted]
    if by_position and not _is_foreign(values) and not set(wanted).intersection(texts):
        return None
    check_same_names(wanted, texts, extra=False)
    check_once(wanted, texts)
    named = dict(zip(texts, names, strict=True))
    return _read(values, [named[name] for name in wanted])


def check_same_names(wanted: Sequence[str], found: Sequence[str], *, extra: bool = True) -> None:
    """Raise unless `found` has every wanted name and, if `extra` names are an error, no other."""
    expected, present = set(wanted), set(found)
    missing = [name for name in wanted if name not in present]
    others = [name for name in found if name not in expected]
    if missing:
        first = shown(missing[0])
        verb = "is" if len(missing) == 1 else "are"
        message = f"{len(missing)} of {len(wanted)} {verb} missing, the first is '{first}'"
        # Its time grows with the product of both lengths.
        likely = [name for name in others[:1000] if len(name) < 200]
        near = get_close_matches(first, likely, 1)
        if not near and extra and others:
            if len(missing) == len(others) == 1:  # it can stand for nothing else
                near = others
            else:
                message += f"; unknown is '{shown(others[0])}'"
        remedy = "Add or rename columns."
        if near:
            remedy = f"Unknown column '{shown(near[0])}': did you mean '{first}'? Rename it."
        rule = "There must be one column for each class"
        raise InputError(rule, message, remedy, value=missing[0], code="columns")
    if others and extra:
        rule = "There must be one column for each class and no other"
        first = f"the first is '{shown(others[0])}'"
        offender = f"{len(others)} of {len(found)} are unknown classes, {first}"
        raise InputError(rule, offender, "Drop or rename them.", code="columns")


def check_once(wanted: Sequence[str], found: Sequence[str]) -> None:
    count = Counter(found)
    for name in wanted:
        if count[name] != 1:
            rule = f"Column '{shown(name)}' must appear once"
            offender = f"it appears {count[name]} times among the {len(found)} columns"
            remedy = "Rename the columns, or pass another name."
            raise InputError(rule, offender, remedy, code="columns")


def _is_lazy(values: object) -> bool:
    return hasattr(values, "collect_schema") and hasattr(values, "collect")


def _is_relation(values: object) -> bool:  # of DuckDB
    return hasattr(values, "fetchnumpy") and hasattr(values, "project")


def _is_foreign(values: object) -> bool:
    is_arrow = hasattr(values, "column_names") and hasattr(values, "schema")
    return is_arrow or _is_lazy(values) or _is_relation(values)


def _read(values: Any, names: list[Any]) -> Any:
    """The columns `names` of a frame, in this order and with nothing else read."""
    if _is_relation(values):
        quoted = ", ".join('"' + name.replace('"', '""') + '"' for name in names)
        columns = values.project(quoted).fetchnumpy()
        return np.column_stack([np.ma.filled(columns[name], np.nan) for name in names])
    if hasattr(values, "lazy"):  # Polars; scikit-learn would widen single precision
        return values.lazy().select(names).collect().to_numpy()
    if _is_foreign(values):
        return np.column_stack([np.asarray(values.column(name)) for name in names])
    return values[names]

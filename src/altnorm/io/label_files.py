"""Labels in a file of their own, which belong to predictions by an id."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

from altnorm._base.files import file_error
from altnorm.io.formats import Layout
from altnorm.io.tables import read_table


class LabelFile(NamedTuple):
    """What it says: the label of each id, and what ids are called."""

    path: str | os.PathLike[str]
    id_name: str
    labels: dict[str, Any]

    def classes(self) -> list[str]:
        """The labels that occur."""
        return sorted({str(label) for label in self.labels.values() if label is not None})

    def match(self, ids: Sequence[Any]) -> list[Any]:
        """The label of each id; None where the file has none."""
        matched = [self.labels.get(str(key)) for key in ids]
        if all(label is None for label in matched):
            raise file_error(
                f"The ids in '{self.path}' must be those of the predictions",
                f"it has '{next(iter(self.labels), '')}', ..., and they have '{ids[0]}', ...",
                "Name the column of ids with --id; to count rows from 0, call it `row`.",
            )
        return matched


def read_label_file(path: str | os.PathLike[str], layout: Layout) -> LabelFile:
    """Read a table of ids and labels: those that the layout names, `id` and `label`, or its two."""
    table = read_table(path)
    names = table.schema.names
    by_place = names if len(names) == 2 else (None, None)
    id_name = next((name for name in (layout.id, "id") if name in names), by_place[0])
    label_name = next((name for name in (layout.label, "label") if name in names), by_place[1])
    if id_name is None or label_name is None or id_name == label_name:
        raise file_error(
            f"'{path}' must have a column of ids and one of labels",
            f"its columns are {', '.join(names)}",
            "Call them `id` and `label`, or name them with --id and --label; a column `row` counts "
            "rows from 0.",
        )
    labels: dict[str, Any] = {}
    for key, label in zip(table[id_name].to_pylist(), table[label_name].to_pylist(), strict=True):
        if labels.setdefault(str(key), label) != label:
            raise file_error(
                f"'{path}' must give each id one label",
                f"'{key}' has '{labels[str(key)]}' and '{label}'",
                "Remove one of them.",
                value=key,
            )
    return LabelFile(path, id_name, labels)

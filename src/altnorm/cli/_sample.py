"""Some rows of a stream, at equal steps, however long it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from altnorm._base.errors import InputError
from altnorm.io.columns import (
    Layout,
    check_no_spare,
    class_columns,
    column_matrix,
    names_of,
    spare_columns,
    with_spare_hint,
)
from altnorm.io.formats import find_source
from altnorm.io.predictions import read_predictions
from altnorm.io.tables import open_table
from altnorm.report.evaluation import check_kind

MOST_NUMBERS = 2**22
"""Most numbers that are kept of a stream."""


class RowSample:
    """Keeps every row, then every second, every fourth, ... as more come.

    Parameters
    ----------
    most : int, default=MOST_NUMBERS
        Most numbers to keep.
    """

    def __init__(self, most: int = MOST_NUMBERS) -> None:
        self.most = most
        self.step = 1
        self._n_seen = 0
        self._kept: list[np.ndarray] = []

    def add(self, values: np.ndarray) -> None:
        """Take in the next rows."""
        first = -self._n_seen % self.step
        self._kept.append(np.array(values[first :: self.step]))
        self._n_seen += len(values)
        while sum(part.size for part in self._kept) > self.most:
            self._kept = [np.concatenate(self._kept)[::2]]
            self.step *= 2

    @property
    def rows(self) -> np.ndarray | None:
        """The rows kept; None if there were none."""
        return np.concatenate(self._kept) if self._n_seen else None


def sample_file(normalizer: Any, source: Path, layout: Layout) -> np.ndarray:
    """Return predictions from a file, columns in the order of a model's classes."""
    sample = RowSample()
    if find_source(source, layout.format).is_table:
        _sample_table(sample, normalizer, source, layout)
    else:
        predictions = read_predictions(source, layout, classes=normalizer.classes_)
        check_kind(predictions, normalizer)
        sample.add(predictions.proba)
    if sample.rows is None:
        raise InputError(
            "Adapting needs predictions",
            f"'{source}' has no rows",
            "Name a file with some hundred rows.",
            code="too_few_rows",
        )
    return sample.rows


def _sample_table(sample: RowSample, normalizer: Any, source: Path, layout: Layout) -> None:
    columns = [layout.prefix + name for name in names_of(normalizer.classes_)]
    with open_table(source, numbers=columns, **layout.reading) as table:
        class_columns(table.schema, layout, normalizer.classes_)
        # Probabilities give a class too many away by their sum; logits do not.
        if layout.logits:
            check_no_spare(table.schema, layout, columns)
        try:
            for batch in table.batches:
                sample.add(column_matrix(batch, columns))
        except InputError as error:
            spare = spare_columns(table.schema, layout, columns)
            raise with_spare_hint(error, spare) from error

"""Tables that are read batch by batch: what is open, what is kept and what is counted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from altnorm._base.normalizer import FittedNormalizer
from altnorm._base.words import plural
from altnorm.io.columns import Layout, class_columns, names_of, spare_columns, spare_hint
from altnorm.io.tables import TableSource, open_table
from altnorm.method.kinds import kind_of

MOST_NUMBERS = 2**22
"""Most numbers that are kept of a stream."""


@contextmanager
def open_classes(
    source: Path, layout: Layout, normalizer: FittedNormalizer
) -> Iterator[tuple[TableSource, list[str]]]:
    """Open a table whose class columns, which come with it, are those that a model expects."""
    columns = [layout.prefix + name for name in names_of(normalizer.classes_)]
    with open_table(source, numbers=columns, **layout.reading) as table:
        # Neither logits nor labels have a sum that would give away a class too many.
        sums = not (layout.logits or kind_of(normalizer).is_multilabel)
        class_columns(table.schema, layout, normalizer.classes_, sums=sums)
        with spare_hint(spare_columns(table.schema, layout, columns)):
            yield table, columns


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
        self.n_seen = 0
        self._kept: list[np.ndarray] = []

    def add(self, values: np.ndarray) -> None:
        """Take in the next rows."""
        first = -self.n_seen % self.step
        self._kept.append(np.array(values[first :: self.step]))
        self.n_seen += len(values)
        while sum(part.size for part in self._kept) > self.most:
            self._kept = [np.concatenate(self._kept)[::2]]
            self.step *= 2

    @property
    def rows(self) -> np.ndarray | None:
        """The rows kept; None if there were none."""
        return np.concatenate(self._kept) if self.n_seen else None


class ChangeCount:
    """Adds up how many rows, and how many decisions, a model changes.

    Parameters
    ----------
    fitted : estimator
        The model.
    """

    def __init__(self, fitted: FittedNormalizer) -> None:
        self.fitted = fitted
        self.decision = getattr(fitted, "decision_", None)
        self.n_rows = self.n_decisions = self.n_left = 0

    def add(self, values: np.ndarray, after: np.ndarray) -> None:
        """Count predictions as the file held them, and as they became."""
        if not len(values):
            return
        kind = kind_of(self.fitted)
        before = kind.from_logits(values) if self.fitted.input == "logits" else values
        # As written: in single precision that may tip a tie, and a count can bear it.
        decided = kind.decide(after) if self.decision is None else self.decision.codes(after)
        self.n_rows += int((before != after).any(axis=1).sum())
        self.n_decisions += int(np.count_nonzero(kind.decide(before) != decided))
        if self.decision is not None and self.decision.leaves_rows:
            self.n_left += int(np.count_nonzero(decided == after.shape[1]))

    def __str__(self) -> str:
        if not self.n_rows and not self.n_decisions:
            return "nothing changed"
        noun = kind_of(self.fitted).words.decision
        text = f"{plural(self.n_rows, 'row')} and {plural(self.n_decisions, noun)} changed"
        return f"{text}, {plural(self.n_left, 'row')} left to a person" if self.n_left else text

"""Lines with a score for each label -> probabilities, one column per label."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

import numpy as np

from altnorm._base.errors import InputError
from altnorm._base.files import file_error
from altnorm.estimator.topk import from_topk
from altnorm.io.json_lines import Line


class Scores:
    """The scores of lines like ``{"scores": {"cat": -0.1, "dog": -2.3}, "y": "cat"}``.

    They are probabilities if none is negative, else all are log-probabilities; a label that a
    line lacks is filled in by :func:`altnorm.from_topk`. Lines that name the top few may lack some
    of the `labels` that are known from elsewhere altogether. Where there may be `gaps`, a line
    without any is one.
    """

    def __init__(self, labels: Collection[str], *, gaps: bool = False) -> None:
        self._gaps = gaps
        self._codes = {name: j for j, name in enumerate(labels)}
        self._orders: set[tuple[str, ...]] = set()
        self._low, self._high = 0.0, 0.0

    def learn(self, number: int, scores: Any) -> None:
        """Record those of a line in the first pass."""
        if self._gaps and scores == {}:
            return
        if not isinstance(scores, dict) or not scores or not all(map(is_number, scores.values())):
            raise file_error(
                "`scores` must give a number for each label",
                f"line {number} has {json.dumps(scores)[:60]}",
                'Write for example {"scores": {"yes": -0.1, "no": -2.4}}.',
            )
        self._low = min(self._low, *scores.values())
        self._high = max(self._high, *scores.values())
        for name in scores:
            self._codes.setdefault(name, len(self._codes))
        if len(self._orders) < 2:  # with two of them it is known that there is no one order
            self._orders.add(tuple(scores))

    def classes(self) -> list[str]:
        """Their labels, after the first pass."""
        if self._low < 0 < self._high or self._high > 1 + 1e-6:
            raise file_error(
                "`scores` must all be probabilities, from 0 to 1, or all log-probabilities, at "
                "most 0",
                f"they span {self._low:g} to {self._high:g}",
                "For logits, write one key per class and pass --logits.",
            )
        return list(self._codes)

    def are_ordered(self) -> bool:
        """Whether every line gives the labels in the order of `classes`, after the first pass."""
        return self._orders == {tuple(self._codes)}

    def proba(self, lines: list[Line]) -> np.ndarray:
        """Probabilities of some lines, one column per class; NaN in gaps."""
        scored = [line for line in lines if line[1]["scores"]]
        if len(scored) < len(lines):
            proba = np.full((len(lines), len(self._codes)), np.nan)
            if scored:
                proba[[bool(record["scores"]) for _, record in lines]] = self.proba(scored)
            return proba
        width = max(len(record["scores"]) for _, record in lines)
        indices = np.full((len(lines), width), -1)
        values = np.zeros((len(lines), width))
        for i, (_, record) in enumerate(lines):
            scores = record["scores"]
            indices[i, : len(scores)] = [self._codes[name] for name in scores]
            values[i, : len(scores)] = list(scores.values())
        kind = "log_proba" if self._low < 0 else "proba"
        try:
            return from_topk(indices, values, len(self._codes), input=kind)
        except InputError as error:
            if error.place is None:
                raise
            offender = f"line {lines[error.place.row][0]} has {error.place.note}"
            remedy = "Correct the scores; where several labels may apply, write a column per label."
            raise file_error(error.rule, offender, remedy) from error


def is_number(value: Any) -> bool:
    """Whether a value of JSON is a number."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)

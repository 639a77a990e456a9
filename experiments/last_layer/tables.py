"""The tables of the page of results."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from experiments._output import markdown_table
from experiments.last_layer.study import (
    AT_TEST,
    SOFTMAX,
    TARGET_BOTH,
    TRAINING_BOTH,
    Record,
)

__all__ = ["make_tables"]


def make_tables(records: Sequence[Record]) -> dict[str, str]:
    """The tables of the page."""
    return {
        "balanced": _table(records, "balanced"),
        "as trained": _table(records, "as trained"),
        "through": _through(records),
    }


def _select(records: Sequence[Record], target: str, arm: str, field: str) -> np.ndarray:
    chosen = [r for r in records if (r.target, r.arm) == (target, arm)]
    return np.array([getattr(r, field) for r in sorted(chosen)])


def gain(
    records: Sequence[Record], target: str, arm: str, base: str = SOFTMAX
) -> tuple[float, float]:
    """Mean gain in accuracy points over `base`, and its standard error."""
    difference = 100 * (
        _select(records, target, arm, "accuracy") - _select(records, target, base, "accuracy")
    )
    return float(difference.mean()), float(difference.std(ddof=1) / np.sqrt(difference.size))


def _table(records: Sequence[Record], target: str) -> str:
    arms = list(dict.fromkeys(r.arm for r in records if r.target == target))
    rows = []
    for arm in arms:
        mean, error = gain(records, target, arm)
        numbers = [
            f"{100 * _select(records, target, arm, 'accuracy').mean():.2f}",
            "" if arm == SOFTMAX else f"{mean:+.2f} ± {error:.2f}",
            f"{_select(records, target, arm, 'log_loss').mean():.3f}",
        ]
        rows.append([arm, *numbers])
    return markdown_table(["classifier", "accuracy", "gain", "log loss"], rows)


def _through(records: Sequence[Record]) -> str:
    """Training through the module against applying it at test only."""
    compared = (
        ("balanced", TARGET_BOTH),
        ("balanced", TRAINING_BOTH),
        ("as trained", TRAINING_BOTH),
    )
    rows = []
    for target, arm in compared:
        mean, error = gain(records, target, arm, base=AT_TEST)
        rows.append([arm, target, f"{mean:+.2f} ± {error:.2f}"])
    return markdown_table(["classifier", "tested on rows", f"gain over *{AT_TEST}*"], rows)

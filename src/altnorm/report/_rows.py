"""The table of changed rows: what the page needs of each, most telling first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from altnorm.report._case import Case

MAX_ROWS = 1500
MAX_TEXT = 240
TOP = 5


def changed_rows(case: Case, texts: Sequence[str] | None) -> dict[str, Any]:
    """Return the changed rows as columns; where there are too many, a random part of them.

    Parameters
    ----------
    case : Case
        The predictions before and after.
    texts : sequence of str, optional
        A text for each row of the predictions.

    Returns
    -------
    dict
        "n", "of", and one list per column.
    """
    explained = case.explanation
    entries = np.arange(len(explained))
    if entries.size > MAX_ROWS:
        entries = np.sort(np.random.default_rng(0).choice(entries.size, MAX_ROWS, replace=False))
    rows = explained.row[entries]
    data = {
        "n": int(entries.size),
        "of": len(explained),
        "row": rows.tolist(),
        "ambiguity": _short(explained.ambiguity[entries]),
        "before": explained.codes[entries, 0].tolist(),
        "after": explained.codes[entries, 1].tolist(),
        **_top(
            explained.proba_before[entries],
            explained.proba_after[entries],
            explained.codes[entries],
        ),
    }
    if explained.label is not None:
        position = {name: j for j, name in enumerate(case.classes.tolist())}
        data["label"] = [position[name] for name in explained.label[entries].tolist()]
    if case.codes is not None:
        truth = case.codes[rows]
        if truth.ndim == 2:
            truth = truth[np.arange(rows.size), data["label"]]
        data["truth"] = truth.astype(int).tolist()
    if texts is not None:
        data["text"] = [clip(str(texts[row])) for row in rows.tolist()]
    return data


def _top(before: np.ndarray, after: np.ndarray, codes: np.ndarray) -> dict[str, Any]:
    """The classes that matter in each row, with their probabilities before and after."""
    top = min(TOP, before.shape[1])
    weight = np.maximum(before, after)
    np.put_along_axis(weight, codes, np.inf, axis=1)  # the two classes at stake are always shown
    index = np.argsort(-weight, axis=1, kind="stable")[:, :top]
    old, new = (np.take_along_axis(p, index, axis=1) for p in (before, after))
    return {
        "top": top,
        "index": index.reshape(-1).tolist(),
        "old": _short(old.reshape(-1)),
        "new": _short(new.reshape(-1)),
    }


def _short(values: np.ndarray) -> list[float]:
    return [float(f"{value:.5g}") for value in values.tolist()]


def clip(text: str) -> str:
    """Shorten a long text."""
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"

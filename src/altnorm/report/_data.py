"""What the page's scripts work with, as one JSON-ready dictionary: purposes and changed rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from altnorm._base.words import score_name
from altnorm.report._case import Case

MAX_ROWS = 1000
MAX_TEXT = 240
MAX_CLASSES = 2000  # whose recalls the page carries
TOP = 5


def page_data(case: Case, texts: Sequence[str] | None) -> dict[str, Any]:
    """Return what the scripts need; None where there is nothing to show."""
    found: dict[str, Any] = _plain(
        {
            "classes": case.names,
            "multilabel": case.kind.is_multilabel,
            "purposes": _purposes(case),
            "rows": changed_rows(case, texts),
        }
    )
    return found


def _purposes(case: Case) -> dict[str, Any] | None:
    found = case.purposes
    if found is None:
        return None
    at = 0.5 if case.kind.is_multilabel else float(case.purpose == "balanced_accuracy")
    # The classes that the choice matters to most come first; of very many, the others stay out.
    order = np.argsort(-found.spread, kind="stable")[:MAX_CLASSES]
    order = order[found.n_true[order] > 0]
    return {
        "positions": found.positions,
        "start": int(np.argmin(np.abs(found.positions - at))),
        "names": [score_name(name, case.kind.is_multilabel) for name in found.names],
        "scores": found.scores,
        "before": found.scores_before,
        "changed": found.changed,
        "classes": order,
        "n": found.n_true[order],
        "recall": found.recall[:, order].round(4),
        "recall_before": found.recall_before[order].round(4),
    }


def changed_rows(case: Case, texts: Sequence[str] | None) -> dict[str, Any]:
    """Return the changed rows as columns; where there are too many, a random part of them."""
    explained = case.explanation
    entries = np.arange(len(explained))
    if entries.size > MAX_ROWS:
        entries = np.sort(np.random.default_rng(0).choice(entries.size, MAX_ROWS, replace=False))
    rows = explained.row[entries]
    data = {
        "n": entries.size,
        "of": len(explained),
        "row": rows,
        "before": explained.codes[entries, 0],
        "after": explained.codes[entries, 1],
        "reason": [str(explained[int(i)]) for i in entries],
        **_top(
            explained.proba_before[entries],
            explained.proba_after[entries],
            explained.codes[entries],
        ),
    }
    if explained.label is not None:
        position = {name: j for j, name in enumerate(case.classes.tolist())}
        data["label"] = [position[name] for name in explained.label[entries].tolist()]
    if case.evaluation is not None and case.judged is not None:
        truth = case.judged.truth[rows]
        if truth.ndim == 2:
            truth = truth[np.arange(rows.size), data["label"]].astype(int)
        data["truth"] = truth
    if texts is not None:
        data["text"] = [_clip(str(texts[row])) for row in rows.tolist()]
    return data


def _top(before: np.ndarray, after: np.ndarray, codes: np.ndarray) -> dict[str, Any]:
    """The classes that matter in each row, with their probabilities before and after."""
    top = min(TOP, before.shape[1])
    weight = np.maximum(before, after)
    # The classes at stake are always shown; a person has no probability.
    at_stake = np.minimum(codes, before.shape[1] - 1)
    at_stake[:, 1] = np.where(codes[:, 1] < before.shape[1], at_stake[:, 1], at_stake[:, 0])
    np.put_along_axis(weight, at_stake, np.inf, axis=1)
    index = np.argsort(-weight, axis=1, kind="stable")[:, :top]
    old, new = (np.take_along_axis(p, index, axis=1).round(4) for p in (before, after))
    return {"index": index, "old": old, "new": new}


def _clip(text: str) -> str:
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"


def _plain(value: Any) -> Any:
    """Turn what JSON does not know into what it knows; numbers to six digits."""
    if isinstance(value, dict):
        return {key: _plain(v) for key, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value

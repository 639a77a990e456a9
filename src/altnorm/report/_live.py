"""The sample behind the sliders: doubtful rows and column sums, small enough for a page.

At depth 1 a row needs only its own probabilities, the prior and the reference's column sums, so
the browser can compute the adjustment itself. A yes/no decision of a multi-label problem is a row
of two classes like any other.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np

from altnorm._array import quiet
from altnorm.report._case import Case
from altnorm.report._reference import Reference, log_sums
from altnorm.report._rows import clip

__all__ = ["live_data", "pack"]

ALPHAS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.2, 1.5, 2, 3, 4, 5, 7, 10, 15, 20, 35)
THRESHOLDS = (0.1, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.9)
FEW_THRESHOLDS = (0.25, 0.5, 0.75, 0.9)
MAX_SUMS = 60_000  # classes times exponents times thresholds, above which thresholds are few
MAX_ROWS = 4000
MAX_OTHERS = 2000
TOP = 12


def pack(values: Any, kind: str = "<f4") -> dict[str, str]:
    """Numbers as base64 of little-endian bytes, with their type."""
    array = np.ascontiguousarray(np.asarray(values).astype(kind))
    return {"type": kind[1:], "base64": base64.b64encode(array.tobytes()).decode()}


def live_data(
    case: Case, reference: Reference | None, texts: Sequence[str] | None = None
) -> dict[str, Any] | None:
    """Return what the sliders need, or None where there is no reference to compute with."""
    # The sliders decide entry by entry, which a rule that looks at whole rows cannot do.
    if reference is None or (case.kind.is_multilabel and case.kind.decision != "threshold"):
        return None
    settings = case.settings
    width = sum(block.rows.shape[1] for block in reference.blocks)
    alphas = _with(ALPHAS, settings.get("alpha"))
    many = reference.confident and width * alphas.size * len(THRESHOLDS) > MAX_SUMS
    taus = _with(FEW_THRESHOLDS if many else THRESHOLDS, settings.get("threshold"))
    served = taus if reference.confident else np.array([np.inf])
    sums = [log_sums(block, alphas, served, reference.smoothing) for block in reference.blocks]
    prior = np.concatenate([block.prior for block in reference.blocks])
    with quiet(np):
        log_prior = np.log(prior)
    return {
        "alphas": alphas.tolist(),
        "thresholds": taus.tolist(),
        "start": [
            _nearest(alphas, settings.get("alpha", 1.0)),
            _nearest(taus, settings.get("threshold", 0.5)),
        ],
        "sums": pack(np.concatenate(sums, axis=2)),
        "prior": pack(log_prior),
        "width": width,
        "source": reference.source,
        "depth": int(settings.get("depth", 1)),
        **_sample(case, float(taus[0]), len(reference.blocks), texts),
    }


def _with(values: tuple[float, ...], own: Any) -> np.ndarray:
    return np.unique([*values, float(own)] if own is not None else values)


def _nearest(values: np.ndarray, own: Any) -> int:
    return int(np.argmin(np.abs(values - float(own))))


def _sample(
    case: Case, lowest: float, n_blocks: int, texts: Sequence[str] | None
) -> dict[str, Any]:
    """Rows that some position of the slider adjusts; the rest is only counted."""
    flat = case.ambiguity.reshape(-1)  # of rows, or of entries row after row
    doubtful = np.flatnonzero(flat > lowest)
    chosen, weight = _draw(doubtful, _telling(case).reshape(-1)[doubtful])
    described = (_entries if case.kind.is_multilabel else _rows)(case, chosen, n_blocks)
    if texts is not None:
        rows = chosen // (case.before.shape[1] if case.kind.is_multilabel else 1)
        described["text"] = [clip(str(texts[row])) for row in rows.tolist()]
    return {
        **described,
        "n": int(chosen.size),
        "of": int(doubtful.size),
        "total": int(flat.size),
        "weight": pack(weight),
        "ambiguity": pack(flat[chosen]),
        "outside": _outside(case, doubtful),
    }


def _telling(case: Case) -> np.ndarray:
    """Decisions that F1 depends on; rare among yes/no decisions, and sampled more densely."""
    if not case.kind.is_multilabel:
        return np.ones(case.ambiguity.shape, dtype=bool)
    near = case.before > 0.2
    return near if case.codes is None else near | (case.codes > 0)


def _draw(candidates: np.ndarray, telling: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Draw from the telling and from the other candidates; a weight says what each stands for."""
    random = np.random.default_rng(0)
    chosen, weight = [], []
    for group, most in ((candidates[telling], MAX_ROWS), (candidates[~telling], MAX_OTHERS)):
        part = group
        if group.size > most:
            part = np.sort(random.choice(group, most, replace=False))
        chosen.append(part)
        weight.append(np.full(part.size, group.size / max(1, part.size)))
    return np.concatenate(chosen), np.concatenate(weight)


def _rows(case: Case, chosen: np.ndarray, n_blocks: int) -> dict[str, Any]:
    """The most probable classes of each row."""
    proba = case.before[chosen]
    top = min(TOP, proba.shape[1])
    index = np.argsort(-proba, axis=1, kind="stable")[:, :top]
    truth = np.full(chosen.size, -1) if case.codes is None else case.codes[chosen]
    return {
        "top": top,
        "index": pack(index, "<u2"),
        "p": pack(np.take_along_axis(proba, index, axis=1)),
        "row": pack(chosen, "<u4"),
        "truth": pack(truth, "<i4"),
    }


def _entries(case: Case, chosen: np.ndarray, n_blocks: int) -> dict[str, Any]:
    """Each decision as a row of two classes, no and yes."""
    row, label = np.divmod(chosen, case.before.shape[1])
    yes = case.before.reshape(-1)[chosen]
    first = 2 * (label if n_blocks > 1 else np.zeros_like(label))
    truth = np.full(chosen.size, -1)
    if case.codes is not None:
        truth = first + case.codes.reshape(-1)[chosen].astype(int)
    return {
        "top": 2,
        "index": pack(np.stack([first, first + 1], axis=1), "<u2"),
        "p": pack(np.stack([1 - yes, yes], axis=1)),
        "row": pack(row, "<u4"),
        "label": pack(label, "<u2"),
        "truth": pack(truth, "<i4"),
    }


def _outside(case: Case, doubtful: np.ndarray) -> dict[str, int] | None:
    """What is known of the rows that no position of the slider touches."""
    if case.codes is None:
        return None
    decided = case.decided[0]
    right = (decided == case.codes).reshape(-1)
    others = np.ones(right.size, dtype=bool)
    others[doubtful] = False
    counts = {"right": int(right[others].sum())}
    if case.kind.is_multilabel:
        truth, said = (x.reshape(-1)[others] for x in (case.codes > 0, decided > 0))
        counts |= {
            "hits": int((truth & said).sum()),
            "named": int(truth.sum() + said.sum()),
        }
    return counts

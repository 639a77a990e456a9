"""The sample behind the sliders: doubtful rows and column sums, small enough for a page.

At depth 1 a row needs only its own probabilities, the prior and the reference's column sums, so
the browser can compute the adjustment itself; what deeper models do is computed here. A yes/no
decision of a multi-label problem is a row of two classes like any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from altnorm._base.arrays import quiet
from altnorm.report import _deep as _deeper
from altnorm.report._case import Case
from altnorm.report._packing import pack
from altnorm.report._reference import Reference, log_sums
from altnorm.report._rows import clip
from altnorm.report._views import view_of

ALPHAS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.2, 1.5, 2, 3, 4, 5, 7, 10, 15, 20, 35)
THRESHOLDS = (0.1, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.9)
FEW_THRESHOLDS = (0.25, 0.5, 0.75, 0.9)
MAX_SUMS = 60_000  # classes times exponents times thresholds, above which thresholds are few
MAX_ROWS = 4000
MAX_OTHERS = 2000
TOP = 12


def live_data(
    case: Case, reference: Reference | None, texts: Sequence[str] | None = None
) -> dict[str, Any] | None:
    """Return what the sliders need, or None where there is no reference to compute with."""
    if reference is None:
        return None
    depth = int(case.settings.get("depth", 1))
    found = None if depth == 1 else _deep(case, reference, depth, texts)
    found = found or _shallow(case, reference, texts)
    return {**found, "source": reference.source, "model_depth": depth}


def _shallow(case: Case, reference: Reference, texts: Sequence[str] | None) -> dict[str, Any]:
    """Column sums of the reference, with which the browser computes one iteration itself."""
    settings = case.settings
    width = sum(block.rows.shape[1] for block in reference.blocks)
    alphas = _with(ALPHAS, settings.get("alpha"))
    many = reference.confident and width * alphas.size * len(THRESHOLDS) > MAX_SUMS
    taus = _with(FEW_THRESHOLDS if many else THRESHOLDS, settings.get("threshold"))
    served = taus if reference.confident else np.array([np.inf])
    sums = [log_sums(block, alphas, served, reference.smoothing) for block in reference.blocks]
    with quiet(np):
        log_prior = np.log(np.concatenate([block.prior for block in reference.blocks]))
    chosen, sample = _sample(case, float(taus[0]), (MAX_ROWS, MAX_OTHERS), texts)
    return {
        **_positions(case, alphas, taus),
        **sample,
        **view_of(case.kind).described(case, chosen, len(reference.blocks), TOP),
        "depth": 1,
        "sums": pack(np.concatenate(sums, axis=2)),
        "prior": pack(log_prior),
        "width": width,
    }


def _deep(
    case: Case, reference: Reference, depth: int, texts: Sequence[str] | None
) -> dict[str, Any] | None:
    """The outcome at every position; None where too few rows could be computed."""
    settings = case.settings
    alphas = _with(_deeper.ALPHAS, settings.get("alpha"))
    taus = _with(_deeper.THRESHOLDS, settings.get("threshold"))
    most = _deeper.affordable_rows(reference, depth, alphas.size * taus.size)
    if not most:
        return None
    chosen, sample = _sample(case, float(taus[0]), (most, most // 2), texts)
    view = view_of(case.kind)
    described = view.described(case, chosen, len(reference.blocks), _deeper.TOP)
    after = [
        view.outcome(case, chosen, reference, (alpha, depth, tau))
        for tau in taus.tolist()
        for alpha in alphas.tolist()
    ]
    return {
        **_positions(case, alphas, taus),
        **sample,
        **described,
        "depth": depth,
        "after": pack(np.stack(after), "<u2"),
    }


def _positions(case: Case, alphas: np.ndarray, taus: np.ndarray) -> dict[str, Any]:
    """Where the sliders can stand, and where they start."""
    settings = case.settings
    start = [
        _nearest(alphas, settings.get("alpha", 1.0)),
        _nearest(taus, settings.get("threshold", 0.5)),
    ]
    return {"alphas": alphas.tolist(), "thresholds": taus.tolist(), "start": start}


def _with(values: tuple[float, ...], own: Any) -> np.ndarray:
    return np.unique([*values, float(own)] if own is not None else values)


def _nearest(values: np.ndarray, own: Any) -> int:
    return int(np.argmin(np.abs(values - float(own))))


def _sample(
    case: Case, lowest: float, most: tuple[int, int], texts: Sequence[str] | None
) -> tuple[np.ndarray, dict[str, Any]]:
    """Rows that some position of the slider adjusts; the rest is only counted."""
    flat = case.ambiguity.reshape(-1)  # of rows, or of entries row after row
    doubtful = np.flatnonzero(flat > lowest)
    view = view_of(case.kind)
    chosen, weight = _draw(doubtful, view.telling(case).reshape(-1)[doubtful], most)
    sample = {
        "n": int(chosen.size),
        "of": int(doubtful.size),
        "total": int(flat.size),
        "weight": pack(weight),
        "ambiguity": pack(flat[chosen]),
        "outside": _outside(case, doubtful),
    }
    if texts is not None:
        rows = view.rows_of(chosen, case.before.shape[1])
        sample["text"] = [clip(str(texts[row])) for row in rows.tolist()]
    return chosen, sample


def _draw(
    candidates: np.ndarray, telling: np.ndarray, most: tuple[int, int]
) -> tuple[np.ndarray, np.ndarray]:
    """Draw from the telling and from the other candidates; a weight says what each stands for."""
    random = np.random.default_rng(0)
    chosen, weight = [], []
    for group, size in zip((candidates[telling], candidates[~telling]), most, strict=True):
        part = group
        if group.size > size:
            part = np.sort(random.choice(group, size, replace=False))
        chosen.append(part)
        weight.append(np.full(part.size, group.size / max(1, part.size)))
    return np.concatenate(chosen), np.concatenate(weight)


def _outside(case: Case, doubtful: np.ndarray) -> dict[str, int] | None:
    """What is known without a sample: all rows before, and those that no position touches."""
    if case.codes is None:
        return None
    decided = case.decided[0]
    right = (decided == case.codes).reshape(-1)
    others = np.ones(right.size, dtype=bool)
    others[doubtful] = False
    counts = {"right": int(right[others].sum()), "right_in_all": int(right.sum())}
    truth, said = (x.reshape(-1)[others] for x in (case.codes > 0, decided > 0))
    return counts | view_of(case.kind).counts(truth, said)

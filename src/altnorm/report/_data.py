"""Everything the page's charts draw, as one JSON-ready dictionary."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from altnorm._base.words import Figures, score_name
from altnorm.adjuster.comparison import Comparison
from altnorm.io.predictions import Predictions
from altnorm.report._case import Case
from altnorm.report._live import live_data
from altnorm.report._reference import Reference, find_reference
from altnorm.report._rows import changed_rows
from altnorm.report._views import view_of
from altnorm.report._words import typeset
from altnorm.report.display import _measures as measures
from altnorm.report.display._records import Flows

MAX_FLOWS = 400
FEW_FLOWS = 18  # as many as the diagram shows one by one
N_GROUPS = 8


def chart_data(
    case: Case,
    comparison: Comparison | None,
    validation: Predictions | None,
    texts: Sequence[str] | None,
) -> dict[str, Any]:
    """Compute what every chart of the page draws; None where a chart has nothing to show."""
    reference = find_reference(case, validation)
    data = {
        "classes": [str(name) for name in case.classes.tolist()],
        "multilabel": case.kind.multilabel,
        "kind": case.family,
        "n_rows": case.before.shape[0],
        "labelled": case.codes is not None,
        "threshold": case.threshold,
        "flows": _flows(case),
        "changes": _changes(case),
        "balance": view_of(case.kind).balance(case),
        "ambiguity": _ambiguity(case),
        "use": _use(case, reference),
        "tuning": _tuning(case),
        "peers": _peers(comparison, multilabel=case.kind.is_multilabel),
        "reliability": _reliability(case),
        "rows": changed_rows(case, texts),
        "live": live_data(case, reference, texts),
    }
    found: dict[str, Any] = _plain(data)
    return found


def _flows(case: Case) -> dict[str, Any] | None:
    found = view_of(case.kind).flows(case)
    if found is None:
        return None
    flows = {name: v if v is None else v[:MAX_FLOWS] for name, v in vars(found).items()}
    grouped = _grouped(found, case.classes.size) if found.count.size > FEW_FLOWS else None
    return {
        **flows,
        "n": found.count.size,
        "rows": int(found.count.sum()),
        "grouped": grouped,
    }


def _grouped(flows: Flows, n_classes: int) -> dict[str, Any]:
    """All flows between the classes that lose and gain most, and all others (the last code)."""
    ends = []
    for codes in (flows.source, flows.target):
        moved = np.bincount(codes, flows.count, minlength=n_classes)
        kept = np.argsort(-moved, kind="stable")[:N_GROUPS]
        ends.append(np.where(np.isin(codes, kept), codes, n_classes))
    keys, group = np.unique(np.stack(ends, axis=1), axis=0, return_inverse=True)
    sums = {
        name: None if values is None else np.bincount(group.reshape(-1), values)
        for name, values in (
            ("count", flows.count),
            ("fixed", flows.fixed),
            ("broken", flows.broken),
        )
    }
    return {"source": keys[:, 0], "target": keys[:, 1], **sums}


def _changes(case: Case) -> dict[str, Any] | None:
    if not len(case.explanation):
        return None
    return vars(measures.class_changes(*case.decided, case.classes.size, case.codes))


def _ambiguity(case: Case) -> dict[str, Any]:
    right: list[np.ndarray | None] = [None, None]
    if case.codes is not None:
        right = [decided == case.codes for decided in case.decided]
    histogram = measures.ambiguity_histogram(case.ambiguity, *right, threshold=case.threshold)
    return vars(histogram)


def _use(case: Case, reference: Reference | None) -> dict[str, Any] | None:
    """Prior, what the reference uses up, and the factor of each class or label."""
    if reference is None:
        return None
    view, blocks = view_of(case.kind), reference.blocks
    chosen = [_serving(block, case, reference.confident) for block in blocks]
    use = view.use(case.classes, blocks, chosen)
    return {
        "classes": [str(name) for name in use.classes.tolist()],
        "prior": use.prior,
        "used": use.used,
        "factor": None if case.family == "identity" else view.factors(case.before, case.after),
        "n": int(sum(rows.shape[0] for rows, _ in chosen)),
        "source": reference.source,
        "confident": reference.confident and case.threshold is not None,
    }


def _serving(block: Any, case: Case, confident: bool) -> tuple[np.ndarray, np.ndarray]:
    serves = np.ones(block.ambiguity.size, dtype=bool)
    if confident and case.threshold is not None:
        serves = block.ambiguity <= case.threshold
    if not block.weight[serves].sum() > 0:
        return block.prior[None, :], np.ones(1)
    return block.rows[serves], block.weight[serves]


def _tuning(case: Case) -> dict[str, Any] | None:
    results = getattr(case.normalizer, "cv_results_", None)
    if results is None or "alpha" not in results:  # a peer keeps results of its own
        return None
    found = measures.tuning_curves(results, getattr(case.normalizer, "best_params_", None))
    family = np.asarray(results.get("family", np.full(len(results["score"]), "alternating")))
    top = np.sort(np.asarray(results["score"])[family == "alternating"])[::-1][:10]
    return {
        "curves": [vars(curve) for curve in found.curves],
        "base": found.base,
        "best": found.best,
        "n": found.n_settings,
        "spread": float(top[0] - top[-1]),
        "points": case.tuned is None or case.tuned.in_points,
        "loss": case.tuned is not None and case.tuned.scoring.startswith("neg_"),
    }


def _peers(comparison: Comparison | None, *, multilabel: bool) -> dict[str, Any] | None:
    if comparison is None:
        return None
    rows = [
        {**vars(row), "figures": _texts(typeset(comparison.figures(row)))}
        for row in sorted(comparison, key=lambda row: -row.score)
    ]
    name = score_name(comparison.scoring, multilabel)
    return {"rows": rows, "points": comparison.in_points, "name": name}


def _texts(of: Figures) -> dict[str, str]:
    """The texts of a line that the page shows."""
    names = ("after", "change", "change_and_unit", "low", "high", "p_value")
    return {name: getattr(of, name) for name in names}


def _reliability(case: Case) -> dict[str, Any] | None:
    if case.codes is None:
        return None
    stages = {"before": case.before, "after": case.after}
    if case.decided_only is not None:
        stages["decided"] = case.decided_only
    return {name: asdict(measures.reliability(proba, case.codes)) for name, proba in stages.items()}


def _plain(value: Any) -> Any:
    """Turn what JSON does not know into what it knows; numbers to six digits."""
    if isinstance(value, dict):
        return {key: _plain(v) for key, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if isinstance(value, np.ndarray):
        return [_plain(v) for v in value.tolist()]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value

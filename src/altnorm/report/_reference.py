"""What the page's sliders compute with: a reference, a prior, and their sums on a grid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from altnorm._base.arrays import quiet
from altnorm.io.predictions import Predictions
from altnorm.method.kinds import SingleLabel
from altnorm.method.scaling import column_log_sums, log_add
from altnorm.report._case import Case

MAX_ENTRIES = 4_000_000  # of the reference; above, its rows are sampled

OWN = "the model’s own reference and prior"
VALIDATION = "the validation predictions and their class frequencies"
THESE = "these predictions themselves and a uniform prior"


@dataclass(frozen=True, eq=False)
class Block:
    """Reference rows of one problem: all classes, or one yes/no question.

    Attributes
    ----------
    rows : ndarray of shape (n, m)
        Probabilities; for a yes/no question the columns are no and yes.
    weight : ndarray of shape (n,)
        Weights.
    prior : ndarray of shape (m,)
        Class prior.
    ambiguity : ndarray of shape (n,)
        Ambiguity of the rows.
    """

    rows: np.ndarray
    weight: np.ndarray
    prior: np.ndarray
    ambiguity: np.ndarray


@dataclass(frozen=True, eq=False)
class Reference:
    """Blocks of reference rows, and where they come from.

    Attributes
    ----------
    blocks : list of Block
        One; one per label for "labelwise" problems.
    confident : bool
        Whether only rows that are not in doubt serve.
    smoothing : float
        As for ``AlternatingNormalizer``.
    source : str
        Where reference and prior come from, in words.
    """

    blocks: list[Block]
    confident: bool
    smoothing: float
    source: str


def find_reference(case: Case, validation: Predictions | None) -> Reference | None:
    """Return the model's reference; else one made of validation, or of these predictions."""
    if case.family == "alternating":
        return _own(case)
    if validation is not None and validation.labels is not None:
        return _from_validation(case, validation)
    if not case.kind.sums_to_one:  # a uniform prior makes sense only where labels exclude others
        return None
    m = case.before.shape[1]
    return Reference([_block(case.before, None, np.full(m, 1 / m), case)], True, 0.0, THESE)


def log_sums(
    block: Block, alphas: np.ndarray, thresholds: np.ndarray, smoothing: float
) -> np.ndarray:
    r"""Log of what the reference puts into each column of the first iteration.

    Parameters
    ----------
    block : Block
        Reference rows.
    alphas : ndarray of shape (n_alphas,)
        Exponents.
    thresholds : ndarray of shape (n_thresholds,)
        Increasing; rows with an ambiguity of at most the threshold serve.
    smoothing : float
        Adds `smoothing` times the prior times the weight of the rows.

    Returns
    -------
    ndarray of shape (n_thresholds, n_alphas, m)
        The logarithms, ``-inf`` where no row serves.
    """
    order = np.argsort(block.ambiguity, kind="stable")
    ends = np.searchsorted(block.ambiguity[order], thresholds, side="right")
    weight, rows = block.weight[order], block.rows[order]
    mass = np.concatenate([[0.0], np.cumsum(weight)])[ends]
    found = np.full((thresholds.size, alphas.size, rows.shape[1]), -np.inf)
    with quiet(np):
        log_rows, log_w, log_q = np.log(rows), np.log(weight), np.log(block.prior)
        for a, alpha in enumerate(alphas):
            total = found[0, a]
            for t, (start, end) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
                if end > start:
                    more = column_log_sums(log_rows[start:end], log_w[start:end], float(alpha))
                    total = log_add(total, more)
                found[t, a] = total
        extra = np.log(smoothing * mass)[:, None, None] + log_q
        return np.asarray(log_add(found, extra)) if smoothing else found


def _own(case: Case) -> Reference:
    inner = case.inner
    stored, weight, prior = inner.reference_, inner.reference_weight_, inner.prior_
    kind, spans = case.kind, case.kind.stored_parts(getattr(inner, "offsets_", None))
    blocks = [
        _block(
            kind.as_rows(stored[span]),
            None if weight is None else weight[span],
            kind.part_prior(prior, j),
            case,
        )
        for j, span in spans
    ]
    return Reference(blocks, inner.reference == "confident", float(inner.smoothing), OWN)


def _from_validation(case: Case, validation: Predictions) -> Reference:
    proba, codes = np.asarray(validation.probabilities()), validation.codes
    prior = case.kind.count_prior(codes, proba.shape[1], "shrunk", None)
    blocks = [
        _block(case.kind.as_rows(proba[at]), None, case.kind.part_prior(prior, j), case)
        for j, at in enumerate(case.kind.parts(proba.shape[1]))
    ]
    settings = case.settings
    confident = settings.get("reference", "confident") == "confident"
    return Reference(blocks, confident, float(settings.get("smoothing", 0.0)), VALIDATION)


def _block(rows: np.ndarray, weight: Any, prior: np.ndarray, case: Case) -> Block:
    """Rows of a reference, sampled if there are very many."""
    rows = np.asarray(rows)
    weight = np.ones(rows.shape[0]) if weight is None else np.asarray(weight, dtype=np.float64)
    most = max(1, MAX_ENTRIES // rows.shape[1])
    if rows.shape[0] > most:
        chosen = np.sort(np.random.default_rng(0).choice(rows.shape[0], most, replace=False))
        scale = weight.sum() / weight[chosen].sum()
        rows, weight = rows[chosen], weight[chosen] * scale
    ambiguity = SingleLabel().ambiguity(rows, k_max=getattr(case.normalizer, "k_max", 10))
    return Block(rows, weight, np.asarray(prior, dtype=np.float64), ambiguity)

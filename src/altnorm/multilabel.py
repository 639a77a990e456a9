"""Several labels a row: every probability is a two-class problem of its own, yes or no.

"pairs" (the paper) pools all n * m probabilities, with one prior and one reference for all labels.
"labelwise" gives each label its own prior and its own reference.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from scipy.special import entr, expit, logit

from altnorm._array import quiet
from altnorm._validation import InputError, check_entries, check_matrix
from altnorm.binary import iterate_logits

__all__ = [
    "adjust_yes",
    "binary_ambiguity",
    "check_label_matrix",
    "check_yes_proba",
    "label_slices",
]


def check_yes_proba(proba: np.ndarray, name: str = "proba") -> np.ndarray:
    """Return independent probabilities, each between 0 and 1."""
    array = check_matrix(proba, name)
    check_entries(array, name)
    if array.size and array.max() > 1:
        row, column = np.unravel_index(np.argmax(array), array.shape)
        raise InputError(
            f"Each entry of `{name}` must be at most 1; {int((array > 1).sum())} of {array.size} "
            f"are not, the largest is row {row}, column {column} ({array[row, column]:.6g}). If "
            "these are logits, pass input='logits'."
        )
    return array


def check_label_matrix(y: object, shape: tuple[int, ...]) -> np.ndarray:
    """Return the 0/1 label matrix as booleans."""
    dense = y.toarray() if hasattr(y, "toarray") else y
    labels = np.asarray(dense)
    if labels.shape != shape:
        raise InputError(
            f"For multi-label problems `y` must be a 0/1 matrix shaped like `proba`, {shape}; it "
            f"has shape {labels.shape}. Pass one column a label."
        )
    if not np.isin(labels, (0, 1)).all():
        wrong = labels[~np.isin(labels, (0, 1))][0]
        raise InputError(
            f"For multi-label problems `y` must hold 0 and 1 only; it holds {wrong!r}. Pass a 0/1 "
            "matrix with one column a label."
        )
    return labels.astype(bool)


def binary_ambiguity(p: np.ndarray) -> np.ndarray:
    """Ambiguity of yes/no probabilities: their entropy in bits."""
    return (entr(p) + entr(1 - p)) / math.log(2)


def adjust_yes(
    p: np.ndarray,
    reference: np.ndarray,
    weight: np.ndarray | None,
    prior: float,
    *,
    alpha: float,
    depth: int,
    smoothing: float,
) -> np.ndarray:
    """Alternating normalization of yes-probabilities against yes-probabilities.

    Where the prior is 0 or 1 there is no doubt to resolve, and `p` comes back as it was.
    """
    if not 0 < prior < 1 or not p.size:
        return p.copy()
    total = reference.size if weight is None else float(weight.sum())
    with quiet(np):
        steps = iterate_logits(
            logit(p),
            logit(reference.astype(p.dtype, copy=False)),
            None if weight is None else weight.astype(p.dtype, copy=False),
            (math.log(prior), math.log1p(-prior)),
            alpha=alpha,
            depth=depth,
            log_mass=math.log(smoothing * total) if smoothing else None,
        )
        *_, logits = steps
        return expit(logits)


def label_slices(offsets: np.ndarray) -> Iterator[tuple[int, slice]]:
    """Each label with the slice of its reference entries."""
    for label, (start, stop) in enumerate(pairwise(offsets)):
        yield label, slice(int(start), int(stop))

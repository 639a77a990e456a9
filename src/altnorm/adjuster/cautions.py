"""What the evidence cannot see, said with a number."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.stats import binomtest

from altnorm.adjuster.folds import Validation
from altnorm.evidence.scores import SINGLE_LABEL
from altnorm.evidence.verdict import Caution, Verdict

MANY_DUPLICATES = 0.05  # share of rows
CLEAR_FALL = 0.01  # of balanced accuracy
LEAST_FALL = 0.05  # of the recall of the class that is recognised least
LEVEL = 0.05
DIRECTIONS = 16
ALIKE = 0.1  # correlation of rows that follow each other
ALIKE_ERRORS = 5.0  # and how many of its standard errors that must be
UNSURE = 0.8  # share of dealings that agree
POWER = 0.84  # standard errors beyond the border for a power of 80 %
BORDER = 1.96


def find_cautions(
    data: Validation, verdict: Verdict, after: np.ndarray | None, classes: np.ndarray
) -> tuple[Caution, ...]:
    """Look for what the verdict cannot see.

    Parameters
    ----------
    data : Validation
        What was tuned on.
    verdict : Verdict
        The verdict so far.
    after : ndarray or None
        Cross-fitted probabilities of what is adopted; None where nothing is.
    classes : ndarray
        Names of the classes.
    """
    found = [_duplicates(data), _dealing(verdict), _too_few_rows(verdict)]
    if not data.kind.is_multilabel:
        found += [_alike(data), _unseen_classes(data), _below_majority(data)]
        if after is not None:
            found += [_unbalanced(data, after), _worst_class(data, after, classes)]
    return tuple(_present(found))


def _present(found: list[Caution | None]) -> Iterator[Caution]:
    return (caution for caution in found if caution is not None)


def _unseen_classes(data: Validation) -> Caution | None:
    m = data.proba.shape[1]
    unseen = m - np.unique(data.labels[data.row_weight > 0]).size
    if not unseen:
        return None
    text = (
        f"The labels never show {unseen} of {m} classes: nothing can be said about rows of these. "
        "If the file is sorted by class, shuffle it before cutting."
    )
    return Caution("unseen_classes", text, float(unseen))


def _below_majority(data: Validation) -> Caution | None:
    weight = data.row_weight / data.row_weight.sum()
    accuracy = float(weight @ (data.proba.argmax(axis=1) == data.labels))
    majority = float(np.bincount(data.labels, weight).max())
    if accuracy >= majority:
        return None
    text = (
        f"The classifier is right in {accuracy:.1%} of rows, and always naming the most frequent "
        f"class would be right in {majority:.1%}. Check that columns and labels are in the same "
        "order."
    )
    return Caution("below_majority", text, accuracy)


def _duplicates(data: Validation) -> Caution | None:
    if data.groups is not None:
        return None
    labels = data.labels.reshape(len(data.labels), -1)
    # Equal rows have equal projections, and others practically never.
    rng = np.random.default_rng(0)
    keys = data.proba @ rng.normal(size=data.proba.shape[1])
    keys = keys + labels @ rng.normal(size=labels.shape[1])
    # Sure rows of one class look alike without being copies.
    unsure = data.proba.max(axis=1) < 1 - 1e-6
    repeated = int(unsure.sum()) - np.unique(keys[unsure]).size
    if repeated <= MANY_DUPLICATES * len(labels):
        return None
    text = (
        f"{repeated} of {len(labels)} rows repeat another row exactly. Copies are no further "
        "evidence: drop them, or pass groups that say which rows belong together."
    )
    return Caution("duplicates", text, float(repeated))


def _alike(data: Validation) -> Caution | None:
    """Whether rows that follow each other are more alike than others of their class.

    So are the sentences of one document or the frames of one film. If rows of a class came in
    random order, the product of two neighbours' deviations from the class mean would be as often
    negative as positive; a file that is merely sorted by class is no cause.
    """
    if data.groups is not None:
        return None
    rng = np.random.default_rng(0)
    order = np.argsort(data.labels, kind="stable")
    # A few directions say as much of likeness as a thousand classes do.
    rows = (data.proba @ rng.normal(size=(data.proba.shape[1], DIRECTIONS)))[order]
    labels, start, counts = np.unique(data.labels[order], return_index=True, return_counts=True)
    rows -= np.repeat(np.add.reduceat(rows, start) / counts[:, None], counts, axis=0)
    size = np.repeat(counts, counts)[1:]
    same = np.repeat(labels, counts)[1:] == np.repeat(labels, counts)[:-1]
    square = (rows**2).sum(axis=1).mean()
    # Deviations from the mean of n rows are correlated with each other by -1/(n - 1).
    products = ((rows[1:] * rows[:-1]).sum(axis=1) + square / np.maximum(size - 1, 1))[same]
    error = float(np.sqrt((products**2).sum()))
    correlation = float(products.mean() / square) if error else 0.0
    if correlation < ALIKE or products.sum() < ALIKE_ERRORS * error:
        return None
    text = (
        f"Rows that follow each other are alike (correlation {correlation:.2f} within a class). "
        "If they belong together, as rows of one person or document do, they are less evidence "
        "than their number: pass groups that say which."
    )
    return Caution("neighbours_alike", text, correlation)


def _unbalanced(data: Validation, after: np.ndarray) -> Caution | None:
    score = SINGLE_LABEL["balanced_accuracy"]
    before, now = (score(data.labels, p.argmax(axis=1), data.weight) for p in (data.proba, after))
    if now - before >= -CLEAR_FALL:
        return None
    text = (
        f"Balanced accuracy, the mean over classes, falls by {100 * (before - now):.1f} points, "
        f"to {now:.1%}: frequent classes gain at the expense of rare ones. If these matter, pass "
        "scoring='balanced_accuracy'."
    )
    return Caution("balanced_accuracy_falls", text, float(now - before))


def _worst_class(data: Validation, after: np.ndarray, classes: np.ndarray) -> Caution | None:
    """Whether the class that is recognised least is one that was recognised better before.

    That a class which was named too often loses some recall is what an adjustment is for; that it
    becomes the worst of all is not.
    """
    right, right_after = (p.argmax(axis=1) == data.labels for p in (data.proba, after))
    before, now = (_recalls(data, hit) for hit in (right, right_after))
    worst = int(np.nanargmin(now))
    if now[worst] > np.nanmin(before) - LEAST_FALL:
        return None
    changed = (data.labels == worst) & (right != right_after)
    test = binomtest(int(right[changed].sum()), int(changed.sum()), alternative="greater")
    # Any class could have become the least: the level is shared among them.
    if test.pvalue > LEVEL / np.isfinite(now).sum():
        return None
    text = (
        f"{classes[worst]} becomes the class that is recognised least: in {now[worst]:.1%} of its "
        f"rows, before in {before[worst]:.1%}. If every class matters, pass "
        "scoring='balanced_accuracy'."
    )
    return Caution("worst_class_falls", text, float(now[worst] - before[worst]))


def _recalls(data: Validation, right: np.ndarray) -> np.ndarray:
    """Share of right decisions in each class; not a number where the labels show none."""
    m, weight = data.proba.shape[1], data.row_weight
    n = np.bincount(data.labels, weight, m)
    hits = np.bincount(data.labels, weight * right, m)
    return np.divide(hits, n, out=np.full(m, np.nan), where=n > 0)


def _dealing(verdict: Verdict) -> Caution | None:
    if verdict.n_dealings < 2 or verdict.agreement > UNSURE:
        return None
    text = (
        f"The evidence hangs on how rows are dealt into folds: {verdict.agreement:.0%} of "
        f"{verdict.n_dealings} dealings agree. More labels would settle it."
    )
    return Caution("depends_on_dealing", text, verdict.agreement)


def _too_few_rows(verdict: Verdict) -> Caution | None:
    if verdict.reason != "not_significant" or verdict.gain <= 0:
        return None
    ratio = (BORDER + POWER) * verdict.std_error / verdict.gain
    needed = int(np.ceil(verdict.n_rows * max(1.0, ratio**2)))
    text = (
        f"A gain of this size would show in about {needed:,} labelled rows; there are "
        f"{verdict.n_rows:,}."
    )
    return Caution("too_few_rows", text, float(needed))

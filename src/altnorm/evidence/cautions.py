"""What the evidence cannot see, said with a number."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.stats import norm

from altnorm.evidence.folds import is_unclear
from altnorm.evidence.likeness import ALIKE, correlate_neighbours
from altnorm.evidence.seen import SURE
from altnorm.evidence.suspicion import BY_CHANCE, Labelled
from altnorm.evidence.verdict import Caution, Verdict

MANY_DUPLICATES = 0.05  # share of rows
CLEAR_FALL = 0.01  # of balanced accuracy
LOST_RECALL = 0.02  # a class that is recognised less often is lost
CLEAR_ERRORS = 2.0  # standard errors beyond which a difference is clear
COMPARED_ROWS = 100  # with labels, and without: the means of fewer say little
FEWEST_EFFECTIVE = 0.1  # share of the rows that weights leave of the evidence
FADED = 2.33  # standard errors by which a gain shrinks along the file
ALIKE_ERRORS = 5.0  # standard errors of the correlation of rows that follow each other
REALISTIC = 100  # times as many rows as there are: nobody labels more
ENOUGH_MORE = 1.2  # times as many rows at least, or the number says nothing
POWER = 0.84  # standard errors beyond the border for a power of 80 %


def find_cautions(rows: Labelled, *, grouped: bool) -> list[Caution | None]:
    """Say what about single-label rows a reader should know, whatever is adopted."""
    dependent = None if grouped else _alike(rows) or _sorted(rows)
    return [_unseen_classes(rows), _below_majority(rows), _few_carry_all(rows), dependent]


def frequent_positive(rows: Labelled, positive: int) -> Caution | None:
    """Say which of two named classes an F-score is about, where it is the frequent one."""
    share = float(rows.share[rows.labels == positive].sum())
    if rows.classes.dtype.kind in "biuf" or share <= 0.5:
        return None
    name, other = rows.classes[positive], rows.classes[1 - positive]
    text = (
        f"The F-score is that of class {name}, the second of the two and that of {share:.1%} of "
        f"the rows. If class {other} is meant, put its column second, or pass a scorer of "
        "scikit-learn with its name as pos_label."
    )
    return Caution("frequent_positive", text, share)


def _few_carry_all(rows: Labelled) -> Caution | None:
    """Weights that leave little of the evidence."""
    n, effective = len(rows.weight), float(rows.weight.sum() ** 2 / (rows.weight @ rows.weight))
    if effective >= FEWEST_EFFECTIVE * n:
        return None
    text = (
        f"The weights are so uneven that {n:,} rows are worth about {effective:,.0f}: everything "
        "that is fitted follows these."
    )
    return Caution("uneven_weights", text, effective)


def unlike_labelled(proba: np.ndarray, unlabelled: np.ndarray) -> Caution | None:
    """Say that rows with labels are another kind than those without: surer, or less sure."""
    if min(len(proba), len(unlabelled)) < COMPARED_ROWS:
        return None
    with_label, without = proba.max(axis=1), unlabelled.max(axis=1)
    spread = math.hypot(
        with_label.std() / math.sqrt(len(proba)), without.std() / math.sqrt(len(unlabelled))
    )
    difference = float(with_label.mean() - without.mean())
    if abs(difference) < max(0.05, norm.isf(BY_CHANCE) * spread):
        return None
    text = (
        f"Rows with labels are {'surer' if difference > 0 else 'less sure'} than those without "
        f"(mean confidence {with_label.mean():.0%} and {without.mean():.0%}). The verdict is about "
        "rows like those with labels."
    )
    return Caution("unlike_labelled", text, difference)


def fading_gain(rows: np.ndarray, weight: np.ndarray, blocks: np.ndarray) -> Caution | None:
    """Say that a gain shrinks along the file until nothing is left, given what each row adds to it.

    That is read off a straight line through what rows add, each by its weight: it falls clearly,
    and ends at or below 0. The gain in log loss shows it from fewer rows than that in the score.
    `blocks` number rows that may be alike, or share evenly; the larger of the errors counts.
    """
    place = np.arange(rows.size) - np.average(np.arange(rows.size), weights=weight)
    squares, fall = float(weight @ place**2), -float(place @ rows)
    independent = math.sqrt(float(place**2 @ rows**2))
    if fall <= FADED * independent:  # as where a single row has all the weight: `squares` is 0
        return None
    line = rows.sum() / weight.sum() - fall / squares * place
    alike = float(np.linalg.norm(np.bincount(blocks, place * (rows - weight * line))))
    error = max(independent, alike)
    if line[weight > 0][-1] > 0 or fall < FADED * error:
        return None
    text = (
        "The gain shrinks along the file, and at its end there is none. If rows are in order of "
        "time, expect none on new ones."
    )
    return Caution("fading", text, fall / error, serious=True)


def duplicates(proba: np.ndarray, labels: np.ndarray) -> Caution | None:
    """Say that many rows repeat others exactly."""
    labels = labels.reshape(len(labels), -1)
    # Equal rows have equal projections, and others practically never.
    rng = np.random.default_rng(0)
    keys = proba @ rng.normal(size=proba.shape[1]) + labels @ rng.normal(size=labels.shape[1])
    # Sure rows of one class look alike without being copies.
    unsure = proba.max(axis=1) < SURE
    repeated = int(unsure.sum()) - np.unique(keys[unsure]).size
    if repeated <= MANY_DUPLICATES * len(labels):
        return None
    text = (
        f"{repeated:,} of {len(labels):,} rows repeat another row exactly. Copies are no further "
        "evidence: drop them, or pass groups that say which rows belong together. Trees, forests "
        "and neighbours give few different probabilities: with them, equal rows may be different "
        "cases."
    )
    return Caution("duplicates", text, float(repeated))


def _unseen_classes(rows: Labelled) -> Caution | None:
    m = rows.classes.size
    unseen = m - np.unique(rows.labels[rows.weight > 0]).size
    if not unseen:
        return None
    text = (
        f"The labels never show {unseen} of {m} classes: nothing can be said about rows of these. "
        "If the file is sorted by class, shuffle it before cutting."
    )
    return Caution("unseen_classes", text, float(unseen))


def _below_majority(rows: Labelled) -> Caution | None:
    accuracy, majority = rows.accuracy, float(np.bincount(rows.labels, rows.share).max())
    if accuracy >= majority:
        return None
    text = (
        f"The classifier is right in {accuracy:.1%} of rows, and always naming the most frequent "
        f"class would be right in {majority:.1%}. Check that columns and labels are in the same "
        "order; if they are, accuracy says little here: try scoring='balanced_accuracy'."
    )
    return Caution("below_majority", text, accuracy)


def _alike(rows: Labelled) -> Caution | None:
    """Whether rows that follow each other are more alike than others of their class.

    So are the sentences of one document or the frames of one film.
    """
    correlation, errors = correlate_neighbours(rows.proba, rows.labels)
    if correlation < ALIKE or errors < ALIKE_ERRORS:
        return None
    text = (
        f"Rows that follow each other are alike (correlation {correlation:.2f} within a class). "
        "If they belong together, as rows of one person or document do, they are less evidence "
        "than their number: pass groups that say which."
    )
    return Caution("neighbours_alike", text, correlation)


def _sorted(rows: Labelled) -> Caution | None:
    """Whether rows of a class are near each other, and nobody can see if they belong together."""
    if not is_unclear(rows.proba, rows.labels):
        return None
    text = (
        "Rows of a class are near each other. If that is because neighbours belong together, as "
        "rows of one person or document do, pass groups that say which."
    )
    n_runs = 1 + np.count_nonzero(rows.labels[1:] != rows.labels[:-1])
    return Caution("classes_in_places", text, float(n_runs))


def too_few_rows(verdict: Verdict) -> Caution | None:
    """Say how many labels a gain of the size seen would need."""
    if verdict.reason != "not_significant" or verdict.gain <= 0:
        return None
    border = float(norm.isf(verdict.significance))
    ratio = ((border + POWER) * verdict.std_error / verdict.gain) ** 2
    needed = verdict.n_rows * ratio
    if ratio < ENOUGH_MORE:  # about as many as there are: nothing to advise
        return None
    if ratio > REALISTIC:
        text = "No realistic number of labels would show a gain of this size."
    else:
        rounded = round(needed, -max(0, len(str(int(needed))) - 2))
        text = (
            f"A gain of this size would show in about {rounded:,.0f} labelled rows; there are "
            f"{verdict.n_rows:,}."
        )
    return Caution("too_few_rows", text, float(needed))


def labels_to_ask(verdict: Verdict) -> float:
    """About how many labels would decide, if only rows whose decision changes are labelled.

    0 where that is not known, infinity where it is not realistic.
    """
    needed = sum(caution.value for caution in verdict.cautions if caution.code == "too_few_rows")
    times = needed / verdict.n_rows
    return math.inf if times > REALISTIC else float(f"{times * verdict.n_changed:.1g}")


class Recalls(NamedTuple):
    """How often each class is recognised, and their mean: balanced accuracy."""

    accuracy: float
    balanced: float
    by_class: np.ndarray  # (m,) not a number where the labels show none

    @classmethod
    def of(cls, rows: Labelled, decided: np.ndarray) -> Recalls:
        """Measure decisions by class."""
        m, weight, hit = rows.classes.size, rows.weight, decided == rows.labels
        n, hits = np.bincount(rows.labels, weight, m), np.bincount(rows.labels, weight * hit, m)
        recall = np.divide(hits, n, out=np.full(m, np.nan), where=n > 0)
        return cls(float(np.average(hit, weights=weight)), float(np.nanmean(recall)), recall)


def hurt_classes(
    rows: Labelled, before: np.ndarray, after: np.ndarray, balanced: np.ndarray
) -> Caution | None:
    """Say that what is adopted gives a class up, or lowers balanced accuracy clearly.

    `before` and `after` are cross-fitted decisions, and `balanced` those that aim at balanced
    accuracy, from the same probabilities: what the other purpose would give.
    """
    old, new, aimed = (Recalls.of(rows, codes) for codes in (before, after, balanced))
    fall = old.balanced - new.balanced
    is_lost = (new.by_class < LOST_RECALL) & (old.by_class > new.by_class + LOST_RECALL)
    lost = np.flatnonzero(is_lost)
    clear = fall > CLEAR_FALL and fall > CLEAR_ERRORS * _balanced_error(rows, before, after)
    if not clear and not lost.size:
        return None
    words = _lost_words(rows, after, lost) if lost.size else ""
    if clear:
        # The difference of the rounded numbers that stand beside it.
        shown = round(100 * old.balanced, 1) - round(100 * new.balanced, 1)
        words += f"{' and ' if words else ''}balanced accuracy falls by {shown:.1f} points"
    aimed = max(old, aimed, key=lambda each: each.balanced)  # without a rise decisions stay
    if aimed.balanced > new.balanced:
        words += (
            f"; scoring='balanced_accuracy' would give a balanced accuracy of {aimed.balanced:.1%} "
            f"instead of {new.balanced:.1%} ({old.balanced:.1%} before), at an accuracy of "
            f"{aimed.accuracy:.1%}"
        )
    text = f"{words}."
    return Caution("other_purpose", text[0].upper() + text[1:], -float(fall), serious=True)


def _lost_words(rows: Labelled, decided: np.ndarray, lost: np.ndarray) -> str:
    names = ", ".join(str(rows.classes[j]) for j in lost[:3])
    if lost.size > 3:
        names += f" and {lost.size - 3} more"
    never = not np.isin(decided[rows.weight > 0], lost).any()
    noun, verb = ("class", "is") if lost.size == 1 else ("classes", "are")
    return f"{noun} {names} {verb} {'never predicted' if never else 'hardly recognised'} any more"


def _balanced_error(rows: Labelled, before: np.ndarray, after: np.ndarray) -> float:
    """Standard error of the change of balanced accuracy, class by class."""
    change = (after == rows.labels).astype(float) - (before == rows.labels)
    n = np.bincount(rows.labels, minlength=rows.classes.size)
    square = np.bincount(rows.labels, change**2, rows.classes.size)
    seen = n > 0
    return float(np.sqrt((square[seen] / n[seen] ** 2).sum()) / seen.sum())

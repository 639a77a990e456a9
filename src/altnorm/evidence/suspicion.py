"""Input that is probably wrong, so that nothing should be learnt from it."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.special import gammaln
from scipy.stats import binom, norm
from sklearn.metrics import roc_auc_score

from altnorm.evidence.verdict import Caution

SWAPPED = 0.25  # area under the ROC curve of a class against another; mistakes are nearer to 0.5
SWAPPED_ROWS = 10  # of such a class at least: a few rows may all be mistaken for one other class
SWAPPED_ODDS = 0.5  # by which log-odds differ at least: leaving a row out takes less from its class
MANY_CLASSES = 2000  # beyond which the search for exchanged columns, their cube, takes too long
BY_CHANCE = 0.001  # probability of so little agreement between unrelated columns
TRAINED_ROWS = 100  # that a classifier has all right, so that it may have been trained on them
TRAINED_ERRORS = 5  # that its own confidence expects among them
FEWEST_RANKED = 5  # rows of a class, and of all others, whose ranks say something
BACKWARDS = -0.5  # correlation in a direction; where it is clear, honest ones are above -0.35
MANY_LEFT_OUT = 200  # classes: of more nobody leaves out single rows, and directions take seconds
BACKWARDS_ERRORS = 4.0  # standard errors: there are many directions, and models of few rows err
SAMPLE_ROWS = 4096  # that show such a correlation
LOWEST = 0.001  # quantile of log-probabilities that lower ones, and those of zeros, count as
ROUNDING = 1e-12  # of the largest variance: smaller ones are those of rounding
CUT_ERRORS = 5.0  # standard errors of the rows of unseen classes: their number is skewed


class Labelled(NamedTuple):
    """Rows with one class each, and what is decided about them."""

    proba: np.ndarray  # (n, m) as they came
    labels: np.ndarray  # (n,)
    weight: np.ndarray  # (n,)
    classes: np.ndarray  # (m,) names

    @property
    def share(self) -> np.ndarray:
        """Weight of each row, of all."""
        return self.weight / self.weight.sum()

    @property
    def accuracy(self) -> float:
        """Share of rows whose most probable class is theirs."""
        return float(self.share @ (self.proba.argmax(axis=1) == self.labels))


def find_suspicion(rows: Labelled) -> Caution | None:
    """Say what makes the input look wrong, so that nothing should be learnt from it."""
    checks = (
        _one_class,
        _cut_by_class,
        _swapped_columns,
        _ranked_backwards,
        _told_backwards,
        _below_chance,
        _trained_on,
    )
    return next((caution for check in checks if (caution := check(rows))), None)


def _one_class(rows: Labelled) -> Caution | None:
    seen = np.unique(rows.labels[rows.weight > 0])
    if seen.size > 1:
        return None
    text = f"All labels are {rows.classes[seen[0]]!s}: nothing can be learnt from a single class."
    return Caution("one_class", text, 1.0, serious=True)


def _cut_by_class(rows: Labelled) -> Caution | None:
    """Labels that come class by class, and stop before all classes were there."""
    labels, counts = rows.labels, np.unique(rows.labels, return_counts=True)[1]
    unseen, n_runs = rows.classes.size - counts.size, np.count_nonzero(np.diff(labels)) + 1
    # In random order: the orders of whole classes, among those of all rows.
    by_chance = gammaln(counts.size + 1) + gammaln(counts + 1).sum() - gammaln(labels.size + 1)
    is_sorted = n_runs <= counts.size and by_chance <= math.log(BY_CHANCE)
    if not unseen or not is_sorted or _lacks_rare_classes(rows) or _has_rare_classes(rows):
        return None
    text = (
        f"The rows come class by class, and {unseen} of {rows.classes.size} classes never: this "
        "looks like the beginning of a sorted file. Shuffle the file before cutting it; if all "
        "rows are here, shuffle them."
    )
    return Caution("cut_by_class", text, float(unseen), serious=True)


def _lacks_rare_classes(rows: Labelled) -> bool:
    """Whether so few rows of the unseen classes are expected that a sample may lack them.

    Each class lacks all of its rows with the probability of a Poisson variable being 0.
    """
    expected = rows.proba.sum(axis=0)
    lacking = np.exp(-expected)
    spread = np.sqrt((expected**2 * lacking * (1 - lacking)).sum())
    is_unseen = np.bincount(rows.labels, minlength=expected.size) == 0
    return bool(expected[is_unseen].sum() <= expected @ lacking + CUT_ERRORS * spread)


def _has_rare_classes(rows: Labelled) -> bool:
    """Whether the rarest class seen is so rare that others, no more frequent, may be lacking.

    Predictions alone are no measure: many classifiers expect too much of rare classes. The last
    class does not count, for its rows may be cut off.
    """
    seen, first, counts = np.unique(rows.labels, return_index=True, return_counts=True)
    complete = counts[first < first.max()]
    by_chance = (rows.classes.size - seen.size) * math.exp(-float(complete.min()))
    return by_chance > BY_CHANCE


def _swapped_columns(rows: Labelled) -> Caution | None:
    """Columns that would be right under another class's name."""
    m = rows.classes.size
    if m > MANY_CLASSES:
        return None
    table = np.zeros((m, m))
    np.add.at(table, (rows.labels, rows.proba.argmax(axis=1)), rows.weight)
    _, column = linear_sum_assignment(-table)
    enough = np.bincount(rows.labels, minlength=m) >= SWAPPED_ROWS
    moved = np.flatnonzero((column != np.arange(m)) & enough & enough[column])
    # Decisions show little of rare classes, so one class is compared with the other.
    area = {j: _area_between(rows, int(j), int(column[j])) for j in moved}
    moved = np.array([j for j in moved if area[j] < SWAPPED], dtype=int)
    # All columns of an exchange must look exchanged: one class may be mistaken for another.
    moved = moved[np.isin(column[moved], moved)]
    if len(moved) < 2:
        return None
    first, second = rows.classes[moved[0]], rows.classes[column[moved[0]]]
    names = f"{first} and {second}" if len(moved) == 2 else f"{first} and {len(moved) - 1} others"
    text = (
        f"The columns of {names} look exchanged: of a row of {first} and one of {second}, that of "
        f"{second} looks more like {first} in {1 - area[moved[0]]:.0%} of cases. Put the columns "
        "into the order of the classes."
    )
    return Caution("swapped_columns", text, float(len(moved)), serious=True)


def _area_between(rows: Labelled, first: int, second: int) -> float:
    """Area under the ROC curve of two columns, for rows of their classes; 0.5 for small odds."""
    inside = np.isin(rows.labels, (first, second))
    is_first = rows.labels[inside] == first
    proba = rows.proba[inside][:, [first, second]]
    # The median of two infinite odds overflows.
    odds = np.subtract(*np.log(np.maximum(proba, np.finfo(proba.dtype).smallest_subnormal)).T)
    difference = np.median(odds[is_first]) - np.median(odds[~is_first])
    return float(roc_auc_score(is_first, odds)) if abs(difference) > SWAPPED_ODDS else 0.5


def _below_chance(rows: Labelled) -> Caution | None:
    """Labels that agree with the predictions less often than if they were dealt at random."""
    m, decided, share = rows.classes.size, rows.proba.argmax(axis=1), rows.share
    chance = float(np.bincount(decided, share, m) @ np.bincount(rows.labels, share, m))
    n, agreed = len(rows.labels), int((decided == rows.labels).sum())
    if binom.cdf(agreed, n, chance) > BY_CHANCE:
        return None
    text = (
        f"Predictions agree with the labels in {rows.accuracy:.1%} of rows, less often than by "
        f"chance ({chance:.1%}). Check that rows, columns and labels are in the same order."
    )
    return Caution("below_chance", text, rows.accuracy, serious=True)


def _ranked_backwards(rows: Labelled) -> Caution | None:
    """Columns that are lowest where their class is, all of them.

    Leaving a row out lowers the predicted share of its own class: so do predictions of a classifier
    that learnt nothing else, one row or group left out at a time.
    """
    areas, scores = [], []
    for column, p in enumerate(rows.proba.T):
        has_label = rows.labels == column
        n, others = int(has_label.sum()), int((~has_label).sum())
        if min(n, others) >= FEWEST_RANKED:
            area = float(roc_auc_score(has_label, p))
            if area >= 0.5:
                return None
            areas.append(area)
            scores.append((area - 0.5) * math.sqrt(12 * n * others / (n + others + 1)))
    if not areas or sum(scores) > -norm.isf(BY_CHANCE) * math.sqrt(len(areas)):
        return None
    text = (
        f"Every column is lower where its class is (area under the ROC curve at most "
        f"{max(areas):.2f}). Check the order of the columns, and do not leave out single rows, or "
        "groups of one class, when predicting out of fold."
    )
    return Caution("ranked_backwards", text, max(areas), serious=True)


def _told_backwards(rows: Labelled) -> Caution | None:
    """Labels that run against the log-probabilities in one of their main directions.

    Of few features, or of little that was learnt, most directions hold nothing but what leaving a
    row out took from its own class. They are small, and a fit makes them large.
    """
    if rows.classes.size > MANY_LEFT_OUT:
        return None
    step = max(1, len(rows.labels) // SAMPLE_ROWS)
    correlation, errors = _lowest_correlation(rows.proba[::step], rows.labels[::step])
    if correlation > BACKWARDS or errors > -BACKWARDS_ERRORS:
        return None
    text = (
        "Labels can be told from the predictions, backwards: a weighted sum of log-probabilities "
        f"has a correlation of {correlation:.2f} with the same sum of the labels. Do not leave out "
        "single rows, or groups of one class, when predicting out of fold; take few folds, such as "
        "cv=5."
    )
    return Caution("told_backwards", text, correlation, serious=True)


def _lowest_correlation(proba: np.ndarray, labels: np.ndarray) -> tuple[float, float]:
    """The lowest correlation of log-probabilities and labels along a principal direction.

    Also in standard errors, which few rows of rare classes cannot make many.
    """
    with np.errstate(divide="ignore"):
        log_p = np.log(proba)
    log_p = np.maximum(log_p, np.quantile(log_p[np.isfinite(log_p)], LOWEST))
    x, y = (_centred(each) for each in (log_p, np.eye(proba.shape[1])[labels]))
    variance, directions = np.linalg.eigh(x.T @ x)
    directions = directions[:, variance > ROUNDING * variance[-1]]
    if not directions.size:
        return 0.0, 0.0
    x, y = x @ directions, y @ directions
    products, size = x * y, np.linalg.norm(x, axis=0) * np.linalg.norm(y, axis=0)
    correlation = np.divide(products.sum(axis=0), size, out=np.zeros(len(size)), where=size > 0)
    lowest = int(correlation.argmin())
    error = float(np.linalg.norm(products[:, lowest]))
    return float(correlation[lowest]), float(products[:, lowest].sum()) / error if error else 0.0


def _centred(x: np.ndarray) -> np.ndarray:
    x = x - x.mean(axis=1, keepdims=True)
    return np.asarray(x - x.mean(axis=0))


def _trained_on(rows: Labelled) -> Caution | None:
    """Predictions that are all right, and do not know it: of rows seen in training."""
    n, expected = len(rows.labels), float((1 - rows.proba.max(axis=1)).sum())
    # Shares of all rows need not add up to 1 exactly, so mistakes are looked for.
    mistaken = (rows.weight > 0) & (rows.proba.argmax(axis=1) != rows.labels)
    if mistaken.any() or n < TRAINED_ROWS or expected < TRAINED_ERRORS:
        return None
    text = (
        f"Did the classifier see these rows in training? All {n:,} predictions are right, and "
        f"their own confidence expects {expected:.0f} of them to be wrong. Fit on rows that it has "
        "not seen, or pass insist=True."
    )
    return Caution("trained_on", text, expected, serious=True)

"""What the evidence cannot see, said with a number; and input that is probably wrong."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.special import gammaln
from scipy.stats import binom, norm, rankdata

from altnorm.evidence.folds import is_unclear
from altnorm.evidence.likeness import ALIKE, correlate_neighbours
from altnorm.evidence.verdict import Caution, Verdict

MANY_DUPLICATES = 0.05  # share of rows
CLEAR_FALL = 0.01  # of balanced accuracy
LOST_RECALL = 0.02  # a class that is recognised less often is lost
CLEAR_ERRORS = 2.0  # standard errors beyond which a difference is clear
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
BACKWARDS_ERRORS = 5.0  # standard errors: there are many directions, and models of few rows err
SAMPLE_ROWS = 4096  # that show such a correlation
LOWEST = 0.001  # quantile of log-probabilities that lower ones, and those of zeros, count as
ROUNDING = 1e-12  # of the largest variance: smaller ones are those of rounding
FEWEST_EFFECTIVE = 0.1  # share of the rows that weights leave of the evidence
CUT_ERRORS = 5.0  # standard errors of the rows of unseen classes: their number is skewed
FADED = 2.33  # standard errors by which the end of a file gains less than its beginning
ALIKE_ERRORS = 5.0  # standard errors of the correlation of rows that follow each other
REALISTIC = 100  # times as many rows as there are: nobody labels more
ENOUGH_MORE = 1.2  # times as many rows at least, or the number says nothing
POWER = 0.84  # standard errors beyond the border for a power of 80 %
N_KEPT = 256
_DECIMALS = (6, 5, 4, 3, 2)  # that rows are compared by: single precision has no more
_ALIKE_BY_ROUNDING = 0.01  # share of rows
_SAMPLE_ROWS = 2**13  # that show how many decimals tell rows apart
_DISTINCT = 0.95  # share of rows that must differ, or equal rows prove nothing
_SURE = 1 - 1e-6  # rows that are surer look alike without being the same
_FEWEST = 5
_BLOCK = 2**17  # entries that are hashed at a time, so that they stay in the cache


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
    whole = counts[first < first.max()]
    by_chance = (rows.classes.size - seen.size) * math.exp(-float(whole.min()))
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
    first, other = rows.classes[moved[0]], rows.classes[column[moved[0]]]
    names = f"{first} and {other}" if len(moved) == 2 else f"{first} and {len(moved) - 1} others"
    text = (
        f"The columns of {names} look exchanged: of a row of {first} and one of {other}, that of "
        f"{other} looks more like {first} in {1 - area[moved[0]]:.0%} of cases. Put the columns "
        "into the order of the classes."
    )
    return Caution("swapped_columns", text, float(len(moved)), serious=True)


def _area_between(rows: Labelled, one: int, other: int) -> float:
    """Area under the ROC curve of two columns, for rows of their classes; 0.5 for small odds."""
    inside = np.isin(rows.labels, (one, other))
    is_one = rows.labels[inside] == one
    with np.errstate(divide="ignore", invalid="ignore"):
        odds = np.nan_to_num(np.subtract(*np.log(rows.proba[inside][:, [one, other]]).T))
    difference = np.median(odds[is_one]) - np.median(odds[~is_one])
    return _area(odds, is_one) if abs(difference) > SWAPPED_ODDS else 0.5


def _area(values: np.ndarray, is_positive: np.ndarray) -> float:
    """Area under the ROC curve, from the ranks of the positive rows."""
    n = int(is_positive.sum())
    above = rankdata(values)[is_positive].sum() - n * (n + 1) / 2
    return float(above / (n * (is_positive.size - n)))


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
            area = _area(p, has_label)
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
    """Without the mean of each row and column."""
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


def find_cautions(rows: Labelled, *, grouped: bool) -> list[Caution | None]:
    """Say what about single-label rows a reader should know, whatever is adopted."""
    dependent = None if grouped else _alike(rows) or _sorted(rows)
    return [_unseen_classes(rows), _below_majority(rows), _few_carry_all(rows), dependent]


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
    if min(len(proba), len(unlabelled)) < TRAINED_ROWS:
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


def fading_gain(rows: np.ndarray) -> Caution | None:
    """Say that a gain is gone at the end of the file, given what each row adds to it.

    That of the log loss shows it from fewer rows than that of the score.
    """
    later = np.arange(rows.size) >= rows.size // 2
    early, late = float(rows[~later].sum()), float(rows[later].sum())
    if late > 0 or early - late < FADED * math.sqrt(float(rows @ rows)):
        return None
    text = (
        "The gain comes from the first half of the file, and there is none in the second. If rows "
        "are in order of time, expect none on new ones."
    )
    return Caution("fading", text, late, serious=True)


def duplicates(proba: np.ndarray, labels: np.ndarray) -> Caution | None:
    """Say that many rows repeat others exactly."""
    labels = labels.reshape(len(labels), -1)
    # Equal rows have equal projections, and others practically never.
    rng = np.random.default_rng(0)
    keys = proba @ rng.normal(size=proba.shape[1]) + labels @ rng.normal(size=labels.shape[1])
    # Sure rows of one class look alike without being copies.
    unsure = proba.max(axis=1) < _SURE
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
        "order."
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


def sketch_rows(proba: np.ndarray) -> np.ndarray:
    """Keep the smallest hashes of rows of probabilities, rising; none where too many are alike.

    Of rows that were seen, those with a hash below the largest one kept are found again, whatever
    their order and whichever others are missing. Rows are rounded to as few decimals as tell them
    apart, so that they are found again in a file of fewer digits, too. How many these are stands
    before the hashes.
    """
    decimals = _fewest_decimals(proba)
    hashes = _hash_rows(proba, decimals)
    distinct = np.unique(hashes)
    if distinct.size < max(_DISTINCT * hashes.size, 1):
        return distinct[:0]
    return np.concatenate([np.array([decimals], dtype=np.uint64), distinct[:N_KEPT]])


def _fewest_decimals(proba: np.ndarray) -> int:
    """Decimals that make one row in a hundred equal to others; rows are compared in pairs."""
    sample = proba[:: max(1, len(proba) // _SAMPLE_ROWS)]
    times = len(proba) / len(sample)
    fewest, *coarser = _DECIMALS
    at_most = np.unique(_hash_rows(sample, fewest)).size
    for decimals in coarser:
        alike = at_most - np.unique(_hash_rows(sample, decimals)).size
        if alike * times > _ALIKE_BY_ROUNDING * len(sample):
            break
        fewest = decimals
    return fewest


def share_seen(sketch: np.ndarray, proba: np.ndarray) -> float:
    """Estimate which share of rows a sketch has seen; 0 where too few can be compared."""
    if not sketch.size:
        return 0.0
    decimals, kept = int(sketch[0]), sketch[1:]
    hashes = _hash_rows(proba, decimals)
    if kept.size == N_KEPT:  # a sketch that is not full holds every row
        hashes = hashes[hashes <= kept[-1]]
    return float(np.isin(hashes, kept).mean()) if hashes.size >= _FEWEST else 0.0


def _hash_rows(proba: np.ndarray, decimals: int) -> np.ndarray:
    """Hash the rows that are not sure, rounded."""
    unsure = np.flatnonzero(proba.max(axis=1) < _SURE)
    m = proba.shape[1]
    factors = _mix(np.arange(1, m + 1, dtype=np.uint64)) | np.uint64(1)
    step = max(1, _BLOCK // m)
    parts = [np.empty(0, dtype=np.uint64)]
    for start in range(0, unsure.size, step):
        rows = np.rint(proba[unsure[start : start + step]] * 10.0**decimals).astype(np.uint64)
        parts.append(_mix((_mix(rows) * factors).sum(axis=1, dtype=np.uint64)))
    return np.concatenate(parts)


def _mix(x: np.ndarray) -> np.ndarray:
    """Spread 64 bits evenly: the finaliser of SplitMix64, modulo 2**64."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(x ^ (x >> np.uint64(31)))

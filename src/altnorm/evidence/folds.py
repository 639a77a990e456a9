"""Which rows are fitted and judged together: folds without chance.

Rows of a file often depend on their neighbours: utterances of one speaker, heartbeats of one
patient. Shuffled folds hide that, and blocks of a file that is sorted by class lack whole classes.
So fold k gets the k-th fifth of the file or, of classes that are sorted, the k-th part of each
class. Neighbours stay together, rows in random order lose nothing, and no random number is drawn:
the same data give the same verdict.

Why not always by class, and why not exactly a fifth of each: folds that share the class balance
which the sample has by chance make a fit to that balance look like a gain. So parts of classes are
as uneven as those of rows in random order would be, unless the balance is no chance: classes of
equal size are a design.

A file may look sorted because its patients have few classes each. Parts of a class would have rows
of every patient, and what is learnt of a patient would be judged by that patient. Then rows of a
class that follow each other are alike, and the file goes by fifths.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from scipy.stats import chi2, norm
from sklearn.model_selection import check_cv

from altnorm._base.arrays import Array, on_host
from altnorm._base.errors import InputError
from altnorm._base.labels import is_missing
from altnorm._base.validation import check_integer, check_unmasked
from altnorm.evidence.likeness import ALIKE, correlate_neighbours

# Pieces of a file whose sums give a standard error: enough for one, and as long as can be. So many
# blocks of rows are exchanged, too, for scores that can only be called.
N_PIECES = 20
# Rows of a piece at least: fewer say more about themselves than about their neighbourhood.
PIECE_ROWS = 20
# Distance of a class's rows from an even spread over the file (that of Kolmogorov and Smirnov),
# above which the file is sorted by class. In a file that is, it is 1 less the class's share for the
# first and the last class, so at least 0.5 for one of them.
SORTED = 0.4
# Of what fits to the other parts of a file can lack of the classes that they are judged by: 0 where
# the order is random, 1 where each class is in one part. In two passes over the classes it is 0.375
# of five parts: fits have 5 of 8 rows that they should have. In three it is 0.17, or 5 of 6. Files
# of persons with few classes each lie between 0.1 and 0.3.
LACKING = 0.25
PASSES = 2  # at most, therefore
BY_CHANCE = 0.01  # probability with which a file in random order may look sorted, or its rows alike
_GOLDEN = (np.sqrt(5) - 1) / 2  # its multiples spread evenly over the unit interval


def deal_in_order(classes: np.ndarray, n_parts: int, proba: np.ndarray | None = None) -> np.ndarray:
    """Number the part of each row: part k gets the k-th share of the file.

    Of a class by which the file is sorted, part k gets the k-th part instead, unless rows of a
    class that follow each other are alike in their probabilities, if those are passed. So it does
    of a class with fewer rows than parts. `classes` are all equal where there are none.

    Examples
    --------
    >>> import numpy as np
    >>> from altnorm.evidence.folds import deal_in_order
    >>> deal_in_order(np.array([0, 1, 0, 1, 0, 1, 0, 1]), 2)
    array([0, 0, 0, 0, 1, 1, 1, 1])
    >>> np.bincount(deal_in_order(np.repeat([0, 1], 20), 2)[:20])
    array([10, 10])
    >>> np.bincount(deal_in_order(np.repeat([0, 1], [20, 30]), 2)[:20])
    array([ 8, 12])
    """
    parts = np.arange(len(classes)) * n_parts // len(classes)
    _, codes, counts = np.unique(classes, return_inverse=True, return_counts=True)
    if counts.size == 1:
        return parts
    go_by_class = (counts < n_parts) | _are_sorted(codes, parts, proba)
    return np.where(go_by_class[codes], deal_by_class(classes, n_parts), parts)


def is_unclear(proba: np.ndarray, labels: np.ndarray) -> bool:
    """Say whether folds go by class although the file does not merely pass over the classes."""
    _, codes = np.unique(labels, return_inverse=True)
    fifths = np.arange(codes.size) * 5 // codes.size
    return bool(not _passes_over(codes) and _are_sorted(codes, fifths, proba).any())


def _are_sorted(codes: np.ndarray, parts: np.ndarray, proba: np.ndarray | None) -> np.ndarray:
    """Say which classes are in few places of the file, and not because near rows are alike."""
    are_sorted = _are_in_one_place(codes) | _are_in_few_parts(codes, parts)
    if proba is not None and are_sorted.any() and not _passes_over(codes):
        correlation, errors = correlate_neighbours(proba, codes)
        are_sorted &= correlation < ALIKE or errors < norm.isf(BY_CHANCE)
    return are_sorted


def _passes_over(codes: np.ndarray) -> bool:
    """Say whether classes come one after the other, as nothing but sorting makes them."""
    n_runs = 1 + np.count_nonzero(codes[1:] != codes[:-1])
    return bool(n_runs <= PASSES * (codes.max() + 1))


def _are_in_one_place(codes: np.ndarray) -> np.ndarray:
    """Say which classes have their rows in one place, more than chance would have it."""
    counts = np.bincount(codes)
    place = (np.argsort(codes, kind="stable") + 0.5) / codes.size
    start = np.cumsum(counts) - counts
    rank = np.arange(codes.size) - np.repeat(start, counts) + 0.5
    distance = np.maximum.reduceat(np.abs(rank / np.repeat(counts, counts) - place), start)
    # What `counts` rows in random order exceed with a given probability: Massart's bound.
    border = np.sqrt(np.log(2 * counts.size / BY_CHANCE) / (2 * counts))
    return np.asarray(distance > np.maximum(border, SORTED))


def _are_in_few_parts(codes: np.ndarray, parts: np.ndarray) -> np.ndarray:
    """Say which classes are in few parts of the file, more than chance would have it.

    All are if they are so together: each may have too few rows to show it. A class in few parts is
    lacking where fits to the other parts are judged: of its rows, the mean share that is in a row's
    own part is a chi-square statistic, if parts are equally large.
    """
    table = np.zeros((parts[-1] + 1, codes.max() + 1))
    np.add.at(table, (parts, codes), 1)
    n, counts = codes.size, table.sum(axis=0)
    freedom, n_others = table.shape[0] - 1, table.shape[1] - 1
    expected = table.sum(axis=1, keepdims=True) * counts / n
    statistic = ((table - expected) ** 2 / expected).sum(axis=0)
    by_chance = freedom * (n - counts) / (n - 1)  # in the mean over all orders of the file
    most = freedom * counts

    def lacking(statistic: Array, by_chance: Array, most: Array, border: float) -> np.ndarray:
        return (statistic - by_chance > LACKING * (most - by_chance)) & (statistic > border)

    each = lacking(statistic, by_chance, most, chi2.isf(BY_CHANCE / counts.size, freedom))
    border = chi2.isf(BY_CHANCE, freedom * n_others)
    return each | lacking(statistic.sum(), by_chance.sum(), most.sum(), border)


def deal_by_class(classes: np.ndarray, n_parts: int) -> np.ndarray:
    """Number the part of each row: part k gets the k-th part of every class, in order.

    The sizes of a class's parts are spread as those of rows in random order are: by the quantiles
    of a normal distribution with the standard deviation of a binomial one, each class beginning
    with another quantile. Parts of classes of equal size are equal: their balance is no chance.
    Rows of a class with fewer rows than parts are in different parts.
    """
    _, first, inverse, counts = np.unique(
        classes, return_index=True, return_inverse=True, return_counts=True
    )
    # Classes by their first row, so that renaming them changes nothing.
    number = np.argsort(np.argsort(first))
    order = np.argsort(inverse, kind="stable")
    start = np.cumsum(counts) - counts
    rank = np.empty(len(classes))
    rank[order] = np.arange(len(classes)) - np.repeat(start, counts)
    # An offset for each class, so that rounding favours no part.
    place = (rank + (number * _GOLDEN % 1.0)[inverse]) / counts[inverse]
    parts = np.arange(n_parts)
    quantiles = norm.ppf((parts + 0.5) / n_parts)
    spread = (quantiles / quantiles.std())[(parts + number[:, None]) % n_parts]
    by_chance = (counts >= n_parts) & (np.ptp(counts) > 1)
    error = np.sqrt((n_parts - 1) / counts) * by_chance / n_parts
    shares = np.maximum(1 / n_parts + spread * error[:, None], 0)
    ends = np.cumsum(shares / shares.sum(axis=1, keepdims=True), axis=1)
    return np.asarray((place[:, None] >= ends[inverse, :-1]).sum(axis=1))


def deal_groups(groups: np.ndarray, classes: np.ndarray, n_parts: int) -> np.ndarray:
    """As `deal_in_order`, groups whole: each counts as a row of its most frequent class."""
    _, first, codes = np.unique(groups, return_index=True, return_inverse=True)
    _, kinds = np.unique(classes, return_inverse=True)
    table = np.zeros((first.size, kinds.max() + 1))
    np.add.at(table, (codes, kinds), 1)
    order = np.argsort(first)
    parts = np.empty(first.size, dtype=int)
    parts[order] = deal_in_order(table.argmax(axis=1)[order], n_parts)
    return parts[codes]


def number_blocks(n_rows: int, groups: np.ndarray | None) -> np.ndarray:
    """Number the block of each row: pieces of the file, or some groups each."""
    return np.arange(n_rows) * N_PIECES // n_rows if groups is None else groups % N_PIECES


def number_groups(groups: Any, counted: np.ndarray) -> np.ndarray:
    """Number the groups of the rows that are `counted`, in the order in which they come."""
    check_unmasked(groups, "groups")
    values = np.asarray(on_host(groups))
    if values.shape != counted.shape:
        rule, remedy = "`groups` must have one entry per row", "Pass the group of each row."
        offender = f"its shape is {values.shape} and there are {counted.size} rows"
        raise InputError(rule, offender, remedy, value=values.shape, code="shape")
    listed = values[counted].tolist()
    missing = [i for i, value in enumerate(listed) if is_missing(value)]
    if missing:
        rule, first = "Every row must have a group", np.flatnonzero(counted)[missing[0]]
        offender = (
            f"{len(missing)} of {counted.sum()} rows with a label have none, the first is row "
        )
        remedy = "Give a row that belongs to no group one of its own."
        raise InputError(rule, f"{offender}{first}", remedy, code="groups")
    # By what they are, not by order: names and numbers may be mixed.
    numbers: dict[Any, int] = {}
    try:
        return np.array([numbers.setdefault(value, len(numbers)) for value in listed])
    except TypeError as error:  # Python's: unhashable type: 'dict'
        rule = "`groups` must hold names or numbers"
        raise InputError(rule, str(error), "Pass text.", code="groups") from error


def assign_folds(
    classes: np.ndarray,
    cv: Any,
    groups: np.ndarray | None = None,
    proba: np.ndarray | None = None,
) -> np.ndarray:
    """Number the fold of each row.

    `cv` is a number of folds, or a scikit-learn splitter that tests every row once; `classes` are
    all equal with several labels per row, rows of a group stay together, and without groups
    `proba` show whether rows depend on each other.
    """
    n_units = len(classes) if groups is None else np.unique(groups).size
    if n_units < 2:
        noun, offender = "rows", f"there is {len(classes)} sample"
        if groups is not None:
            noun, offender = "groups", f"there are {len(classes)} rows in {n_units} group"
        rule = f"Cross-fitting needs at least 2 {noun}"
        remedy = "Use AlternatingNormalizer with fixed settings."
        raise InputError(rule, offender, remedy, value=n_units, code="too_few_rows")
    if not isinstance(cv, Integral):
        return _given_folds(classes, cv, groups)
    n_folds = min(check_integer(cv, "cv", low=2), n_units)
    folds = (
        deal_in_order(classes, n_folds, proba)
        if groups is None
        else deal_groups(groups, classes, n_folds)
    )
    return _without_gaps(folds)


def _without_gaps(folds: np.ndarray) -> np.ndarray:
    """Renumber folds: with very few rows some may have none."""
    used, codes = np.unique(folds, return_inverse=True)
    if used.size < 2:  # such as two rows of two classes
        codes = np.arange(folds.size) % 2
    return codes


def _given_folds(classes: np.ndarray, cv: Any, groups: Any) -> np.ndarray:
    n_rows = len(classes)
    folds, times = np.zeros((2, n_rows), dtype=int)
    splits = check_cv(cv, classes, classifier=True).split(np.zeros((n_rows, 1)), classes, groups)
    for k, (_, test) in enumerate(splits):
        folds[test] = k
        times[test] += 1
    n_wrong = int((times != 1).sum())
    if n_wrong:
        rule = "Each row must be in the test part of one split"
        offender = f"{n_wrong} of {n_rows} are in none or in several"
        remedy = "Pass a splitter that partitions the rows, such as KFold."
        raise InputError(rule, offender, remedy, value=n_wrong, code="parameter")
    return folds


def deal_clusters(clusters: np.ndarray, n_parts: int) -> np.ndarray:
    """Number the fold of each row: clusters, as of `like_clusters`, are dealt whole.

    What is fitted has few, global parameters, so leaving out a whole neighbourhood costs it
    little; but a gain that comes from near copies of a row in other folds vanishes.
    """
    sizes = np.bincount(clusters)
    # Largest first, each to the fold with fewest rows.
    part_of, load = np.empty(sizes.size, dtype=int), np.zeros(n_parts)
    for cluster in np.argsort(-sizes, kind="stable"):
        part_of[cluster] = load.argmin()
        load[part_of[cluster]] += sizes[cluster]
    return _without_gaps(part_of[clusters])

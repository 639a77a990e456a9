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

import warnings
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import chi2, norm
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import check_cv
from sklearn.neighbors import NearestNeighbors

from altnorm._base.arrays import (
    Array,
    array_namespace,
    as_array,
    block_slices,
    on_host,
    to_numpy,
)
from altnorm._base.errors import InputError
from altnorm._base.labels import is_missing
from altnorm._base.validation import check_integer, check_unmasked

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
ALIKE = 0.1  # correlation of rows of a class that follow each other: less does little
CLUSTER_ROWS = 12  # rows of a cluster of like rows at least: fewer than a region
_GOLDEN = (np.sqrt(5) - 1) / 2  # its multiples spread evenly over the unit interval
_DIRECTIONS = 16  # directions in which likeness is measured: enough to tell rows apart
_MOST_PAIRS = 2**16  # of rows that follow each other: enough to see a small correlation
_MOST_CLUSTERS = 1000  # more would take longer than the fits
_SAMPLE_ROWS = 4096  # rows that show in which directions rows differ
_ASKED, _NEIGHBOURS = 300, 200  # rows whose neighbours are looked at, and how many
_FEWEST_NEIGHBOURS, _MOST_DIMENSIONS = 4, 100  # with a row's label; of the space that they are in
_EQUAL = 0.01  # of the largest distance: smaller ones count as this
_FEWEST_WRONG = 10  # predictions: fewer do not show how often labels agree by themselves
_WIDE = 8.0  # times the mean: a gap between copies; without copies its median is about 6
_FEWEST_CASES, _MANY = 8, 100  # of copies among fewer rows: two classes may be a few clouds of rows
_NEAREST = 5  # neighbours that are copies if any are
_OTHER_LABEL, _OTHER_LABEL_NEAREST = 0.35, 0.4  # of the error rate; without copies about 1
_MOST_BLOCKS, _CLOSE = 20, 0.5  # of copies, and how close they are beside rows of their class
_SHORTEST_BLOCK = 10  # rows


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
    return bool(
        not _passes_over(codes) and codes.max() > 0 and _are_sorted(codes, fifths, proba).any()
    )


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
    found = ((table - expected) ** 2 / expected).sum(axis=0)
    by_chance = freedom * (n - counts) / (n - 1)  # in the mean over all orders of the file
    most = freedom * counts

    def lacking(found: Array, by_chance: Array, most: Array, border: float) -> np.ndarray:
        return (found - by_chance > LACKING * (most - by_chance)) & (found > border)

    each = lacking(found, by_chance, most, chi2.isf(BY_CHANCE / counts.size, freedom))
    border = chi2.isf(BY_CHANCE, freedom * n_others)
    return each | lacking(found.sum(), by_chance.sum(), most.sum(), border)


def correlate_neighbours(proba: np.ndarray, labels: np.ndarray) -> tuple[float, float]:
    """Return how alike rows of a class that follow each other are, and in standard errors.

    If rows of a class came in random order, the product of two neighbours' deviations from the
    class mean would be as often negative as positive; a file that is merely sorted by class is no
    cause.
    """
    order = np.argsort(labels, kind="stable")
    first = np.arange(0, order.size - 1, max(1, order.size // _MOST_PAIRS))
    place = np.union1d(first, first + 1)
    _, start, codes, counts = np.unique(
        labels[order[place]], return_index=True, return_inverse=True, return_counts=True
    )
    with np.errstate(divide="ignore"):
        x = like_rows(np.log(proba[order[place]]))
    x -= (np.add.reduceat(x, start) / counts[:, None])[codes]
    square = float(np.vdot(x, x)) / len(x)
    # Deviations from the mean of n rows are correlated with each other by -1/(n - 1).
    products = np.einsum("ij,ij->i", x[1:], x[:-1])
    products += square / np.maximum(counts[codes[1:]] - 1, 1)
    products = products[(np.diff(place) == 1) & (codes[1:] == codes[:-1])]
    error = float(np.sqrt((products**2).sum()))
    return (float(products.mean() / square), float(products.sum() / error)) if error else (0.0, 0.0)


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


def number_groups(groups: Any, known: np.ndarray) -> np.ndarray:
    """Number the groups of the rows that are `known`, in the order in which they come."""
    check_unmasked(groups, "groups")
    values = np.asarray(on_host(groups))
    if values.shape != known.shape:
        raise InputError(
            "`groups` must have one entry per row",
            f"its shape is {values.shape} and there are {known.size} rows",
            "Pass the group of each row.",
            value=values.shape,
            code="shape",
        )
    listed = values[known].tolist()
    missing = [i for i, value in enumerate(listed) if is_missing(value)]
    if missing:
        raise InputError(
            "Every row must have a group",
            f"{len(missing)} of {known.sum()} rows with a label have none, the first is row "
            f"{np.flatnonzero(known)[missing[0]]}",
            "Give a row that belongs to no group one of its own.",
            value=None,
            code="groups",
        )
    # By what they are, not by order: names and numbers may be mixed.
    numbers: dict[Any, int] = {}
    try:
        return np.array([numbers.setdefault(value, len(numbers)) for value in listed])
    except TypeError as error:  # Python's: unhashable type: 'dict'
        raise InputError(
            "`groups` must hold names or numbers", str(error), "Pass text.", code="groups"
        ) from error


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
        noun = "rows" if groups is None else "groups"
        raise InputError(
            f"Cross-fitting needs at least 2 {noun}",
            f"there is {len(classes)} sample"
            if groups is None
            else f"there are {len(classes)} rows in {n_units} group",
            "Use AlternatingNormalizer with fixed settings.",
            value=n_units,
            code="too_few_rows",
        )
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
    folds = np.full(n_rows, -1)
    times = np.zeros(n_rows, dtype=int)
    splits = check_cv(cv, classes, classifier=True).split(np.zeros((n_rows, 1)), classes, groups)
    for k, (_, test) in enumerate(splits):
        folds[test] = k
        times[test] += 1
    if (times != 1).any():
        raise InputError(
            "Each row must be in the test part of one split",
            f"{(times != 1).sum()} of {n_rows} are in none or in several",
            "Pass a splitter that partitions the rows, such as KFold.",
            value=int((times != 1).sum()),
            code="parameter",
        )
    return folds


def like_rows(scores: Array, *, odds: bool = False) -> np.ndarray:
    """Return coordinates in which like rows are near each other, (n, d) with small d.

    Centred scores, in the directions in which they differ most. Log-odds of several labels need no
    centring; infinite scores will do.
    """
    sample = to_numpy(scores[:: max(1, scores.shape[0] // _SAMPLE_ROWS), :])
    finite = sample[np.isfinite(sample)]
    limits = np.quantile(finite, (0.001, 0.999)) if finite.size else np.zeros(2)

    def centred(rows: Array) -> Array:
        xp = array_namespace(rows)
        x = xp.clip(rows, *map(float, limits))
        return x if odds else x - xp.mean(x, axis=1, keepdims=True)

    x = centred(sample)
    center = x.mean(axis=0)
    x -= center
    directions = _main_directions(x) if x.shape[1] > _DIRECTIONS else np.eye(x.shape[1])
    onto, shift, out = as_array(directions, scores), center @ directions, []
    for block in block_slices(scores.shape[0], 24 * scores.shape[1], scores, cached=True):
        out.append(to_numpy(centred(scores[block, :]) @ onto) - shift)
    return np.concatenate(out)


def _main_directions(x: np.ndarray) -> np.ndarray:
    """Return the directions in which centred rows differ most, from the smaller of two products.

    A few rows of very many classes differ in few directions: columns beyond these are 0.
    """
    if x.shape[1] <= len(x):
        return np.linalg.eigh(x.T @ x)[1][:, -_DIRECTIONS:]
    directions = x.T @ np.linalg.eigh(x @ x.T)[1][:, -_DIRECTIONS:]
    length = np.linalg.norm(directions, axis=0)
    smallest = len(x) * np.finfo(float).eps * length.max()
    return directions / np.where(length > smallest, length, np.inf)


def like_clusters(rows: np.ndarray, n_parts: int, size: int) -> np.ndarray:
    """Number the cluster of each row: about `size` like rows each, at least one for each part.

    `rows` are coordinates, as `like_rows` gives them.
    """
    sample = rows[:: max(1, len(rows) // (size * _MOST_CLUSTERS))]
    n_clusters = max(n_parts, min(len(sample) // size, _MOST_CLUSTERS))
    distinct = np.unique(sample, axis=0).shape[0]
    # One start and few rounds: any clusters of near rows will do.
    means = KMeans(min(n_clusters, distinct), init="random", n_init=1, max_iter=5, random_state=0)
    with warnings.catch_warnings():  # rows that take few values may fill fewer clusters
        warnings.simplefilter("ignore", ConvergenceWarning)
        means.fit(sample)
    return np.asarray(means.labels_ if len(sample) == len(rows) else means.predict(rows))


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


class Copies(NamedTuple):
    """What the neighbours of rows say of copies."""

    per_case: int = 1  # rows per case, where most rows are noisy copies of a few cases
    may_be: bool = False  # near rows have the same label more often than predictions are right


def look_for_copies(rows: np.ndarray, labels: np.ndarray, error_rate: float) -> Copies:
    """Look at the neighbours of some rows; `rows` are coordinates, as `like_rows` gives them.

    Where rows are spread evenly, in any number of dimensions, products of k and the rise of the
    logarithm from the k-th to the next distance are independent and have one exponential
    distribution (Rényi 1953). Beyond the copies of a case there is a gap, so that one of them is
    far too large. And neighbours nearer than the gap share the label far more often than
    predictions are right. Those of rows that merely take few values, as votes of trees do, have
    another label about as often as predictions are wrong.
    """
    n = len(rows)
    if n * error_rate < _FEWEST_WRONG:
        return Copies()
    asked, labels = np.arange(0, n, max(1, n // _ASKED)), labels.reshape(n, -1)
    search = NearestNeighbors(n_neighbors=min(_NEIGHBOURS, n // 2) + 1, algorithm="brute").fit(rows)
    gaps, agree = np.empty((asked.size, 3)), np.empty(asked.size)
    for i, (distance, near) in enumerate(zip(*search.kneighbors(rows[asked]), strict=True)):
        is_other = near != asked[i]
        same = (labels[near[is_other]] == labels[asked[i]]).all(axis=1)
        gaps[i], agree[i] = _widest_gap(distance[is_other], same), same[:_NEAREST].mean()
    width, size = np.median(gaps[:, :2], axis=0)
    is_clear = width > _WIDE and n >= min(_FEWEST_CASES * size, _MANY)
    is_copied = is_clear and gaps[:, 2].mean() < _OTHER_LABEL * error_rate
    may_be = 1 - agree.mean() < _OTHER_LABEL_NEAREST * error_rate
    return Copies(int(size) if is_copied else 1, may_be=bool(may_be))


def _widest_gap(distance: np.ndarray, same: np.ndarray) -> tuple[float, int, float]:
    """Find the widest gap between a row's neighbours with its label, given all in order.

    Return its width in units of the others' mean, the number of rows with that label nearer than
    it (the row is one of them), and the share of other labels among its neighbours there.
    """
    place = np.flatnonzero(same)
    if place.size < _FEWEST_NEIGHBOURS:
        return 0.0, 1, 1.0
    # Distances far below all others are those of equal rows, and of rounding.
    lowest = _EQUAL * distance[place[-1]] + np.finfo(np.float64).tiny
    rises = np.diff(np.log(np.maximum(distance[place], lowest))) * np.arange(1, place.size)
    last = int(rises.argmax())
    usual = max((rises.sum() - rises[last]) / (rises.size - 1), 1 / _MOST_DIMENSIONS)
    n_near, n_all = last + 1, place[last] + 1
    return rises[last] / usual, n_near + 1, 1 - n_near / n_all


def repeats_in_blocks(rows: np.ndarray, classes: np.ndarray) -> int:
    """Number of blocks in which the same cases seem to come again, one after another; 0: none.

    So do several noisy predictions of the same images. Labels repeat with the period of a block,
    and rows one period apart are much closer than others of their class. `rows` are coordinates,
    as `like_rows` gives them.
    """
    for n_blocks in range(2, _MOST_BLOCKS + 1):
        period, left = divmod(len(rows), n_blocks)
        repeats = not left and np.array_equal(classes[period:], classes[:-period])
        if not repeats or period < _SHORTEST_BLOCK:
            continue
        apart = ((rows[period:] - rows[:-period]) ** 2).sum(axis=1).mean()
        codes = np.unique(classes, return_inverse=True)[1]
        means = np.zeros((codes.max() + 1, rows.shape[1]))
        np.add.at(means, codes, rows)
        means /= np.bincount(codes)[:, None]
        # Two rows of a class that have nothing else in common are twice their variance apart.
        if apart < _CLOSE * 2 * ((rows - means[codes]) ** 2).sum(axis=1).mean():
            return n_blocks
    return 0

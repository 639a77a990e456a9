"""Which rows are like each other, and whether they are copies of a few cases.

Rows that depend on each other are less evidence than their number, and a gain may rest on rows that
resemble those it is judged by. Without groups only the predictions can show it: rows of a class
that follow each other are alike, blocks repeat, or near rows share the label too often.
"""

from __future__ import annotations

import math
import warnings
from typing import NamedTuple

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import NearestNeighbors

from altnorm._base.arrays import Array, array_namespace, as_array, block_slices, to_numpy

ALIKE = 0.1  # correlation of rows of a class that follow each other: less does little
CLUSTER_ROWS = 12  # rows of a cluster of like rows at least: fewer than a region
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
_LEAST_AGAIN, _ROWS_AGAIN = 0.4, 40  # share of rows, and rows: labels of few come again by chance


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


class Copies(NamedTuple):
    """What the neighbours of rows say of copies."""

    per_case: int = 1  # rows per case, where most rows are noisy copies of a few cases
    may_be: bool = False  # near rows have the same label suspiciously often


def look_for_copies(rows: np.ndarray, labels: np.ndarray, error_rate: float) -> Copies:
    """Look at the neighbours of some rows; `rows` are coordinates, as `like_rows` gives them.

    Where rows are spread evenly, in any number of dimensions, products of k and the rise of the
    logarithm from the k-th to the next distance are independent and have one exponential
    distribution (Rényi 1953). Beyond the copies of a case there is a gap, so that one of them is
    far too large. And neighbours nearer than the gap share the label far more often than
    predictions are right. Those of rows that merely take few values, as votes of trees do, have
    another label about as often as predictions are wrong, or as the most frequent label would be:
    a classifier may be wrong far more often than that.

    Two or three copies leave no gap that is clear. Of them the nearest neighbour has another label
    far less often than the next ones, or all of these far less often than predictions are wrong.
    """
    n, labels = len(rows), labels.reshape(len(rows), -1)
    sample = labels[:: max(1, n // _SAMPLE_ROWS)]
    most_frequent = np.unique(sample, axis=0, return_counts=True)[1].max() / len(sample)
    error_rate = min(error_rate, 1 - most_frequent)
    if n * error_rate < _FEWEST_WRONG:
        return Copies()
    asked = np.arange(0, n, max(1, n // _ASKED))
    search = NearestNeighbors(n_neighbors=min(_NEIGHBOURS, n // 2) + 1, algorithm="brute").fit(rows)
    gaps, differs = np.empty((asked.size, 3)), np.zeros(_NEAREST)
    for i, (distance, near) in enumerate(zip(*search.kneighbors(rows[asked]), strict=True)):
        others = near != asked[i]
        same = (labels[near[others]] == labels[asked[i]]).all(axis=1)
        gaps[i] = _widest_gap(distance[others], same)
        is_other = ~same[:_NEAREST]
        if distance[_NEAREST] <= _EQUAL * distance[-1]:  # equal rows, as of a tree, have no order
            is_other = np.full(_NEAREST, is_other.mean())
        differs += is_other / asked.size
    width, size = np.median(gaps[:, :2], axis=0)
    is_clear = width > _WIDE and n >= min(_FEWEST_CASES * size, _MANY)
    is_copied = is_clear and gaps[:, 2].mean() < _OTHER_LABEL * error_rate
    nearest, usual = (differs[0], differs.mean()), (differs[1:].mean(), error_rate)
    may_be = np.less(nearest, np.multiply(_OTHER_LABEL_NEAREST, usual)).any()
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
    _, codes = np.unique(classes, return_inverse=True)
    period = _period(codes)
    if not period:
        return 0
    means = np.zeros((codes.max() + 1, rows.shape[1]))
    np.add.at(means, codes, rows)
    means /= np.bincount(codes)[:, None]
    # Two rows of a class that have nothing else in common are twice their variance apart.
    variance = ((rows - means[codes]) ** 2).sum(axis=1).mean()
    apart = ((rows[period:] - rows[:-period]) ** 2).sum(axis=1).mean()
    return math.ceil(len(rows) / period) if apart < _CLOSE * 2 * variance else 0


def _period(codes: np.ndarray) -> int:
    """Steps after which all labels come again, the last block whole or not; 0: there are none.

    Sums of squared differences at all steps at once, from the autocorrelation of the codes.
    """
    n, x = codes.size, codes.astype(np.float64)
    size = 2 ** math.ceil(math.log2(2 * n))
    products = np.fft.irfft(np.abs(np.fft.rfft(x, size)) ** 2, size)[:n]
    before = np.concatenate([[0.0], np.cumsum(x**2)])  # squares of the first 0 .. n
    differences = before[n:0:-1] + before[n] - before[:n] - 2 * products
    shortest = max(_SHORTEST_BLOCK, n // _MOST_BLOCKS)
    again = max(int(_LEAST_AGAIN * n), min(_ROWS_AGAIN, n // 2))
    repeats = differences[shortest : n - again + 1] < 0.5  # whole numbers but for rounding
    return shortest + int(repeats.argmax()) if repeats.any() else 0

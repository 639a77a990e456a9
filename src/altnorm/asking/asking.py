"""Which rows to label, and what the labels given so far say: an answer valid at any time.

Whether an adjustment helps is decided only by rows whose decision it changes. `ask` draws these
at random, without replacement; `judge` weighs their labels one by one, so that one may look after
each and stop as soon as the answer is there. See :mod:`altnorm.asking.betting` for the reasoning.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import check_random_state

from altnorm._base.errors import InputError
from altnorm._base.labels import class_codes
from altnorm._base.validation import check_integer
from altnorm.asking.judgement import Judgement, Pool, weigh_labels
from altnorm.method.estimator import read_before
from altnorm.method.kinds import kind_of


class Changes(NamedTuple):
    """The rows of a pool whose decision an adjustment changes."""

    rows: np.ndarray
    """Their row numbers, ascending."""
    before: np.ndarray
    """Their decisions: class codes, one column, or a 0/1 matrix with one column per label."""
    after: np.ndarray
    n_rows: int
    """Rows in the pool."""
    multilabel: bool

    @property
    def pool(self) -> Pool:
        """What the weighing of labels has to know about the pool."""
        n_changes, n_decisions = int(self.size.sum()), self.before.shape[1]
        return Pool(self.n_rows, self.rows.size, n_changes, n_decisions, self.multilabel)

    @property
    def size(self) -> np.ndarray:
        """Changed decisions of each row: 1, or more in multi-label problems."""
        return np.count_nonzero(self.before != self.after, axis=1)

    def order(self, random_state: Any) -> np.ndarray:
        """Positions in a random order: one with `size` 2 is twice as likely to be the next."""
        # The first of several exponential clocks rings in proportion to their rates.
        clocks = check_random_state(random_state).standard_exponential(self.rows.size)
        return np.argsort(clocks / self.size, kind="stable")


def ask(normalizer: Any, proba: Any, *, n: int | None = None, random_state: Any = 0) -> np.ndarray:
    """Say which rows of an unlabelled pool to label, to learn whether an adjustment helps.

    Only rows whose decision changes are asked for: labels of all others say nothing. They come in
    a random order, without replacement, that depends on `random_state` only: the first 10 of 40
    are those of ``n=10``, and one may stop anywhere. In multi-label problems a row with two changed
    labels is twice as likely to come next as a row with one.

    Label them in this order, and do not skip any: rows that are skipped because they are hard
    would bias the answer.

    Parameters
    ----------
    normalizer : Adjuster, AlternatingNormalizer or any fitted transformer of altnorm
        The adjustment in question. Labels of the pool must have had no part in fitting it.
    proba : array-like of shape (n_samples, n_classes)
        Predictions on the pool, columns as in `fit`.
    n : int, optional
        Number of rows; by default all that change. There may be fewer.
    random_state : int, RandomState or None, default=0
        Fixes the order.

    Returns
    -------
    ndarray of shape (n,)
        Row numbers, in the order in which to label them.

    See Also
    --------
    judge : What their labels say.

    Examples
    --------
    >>> import altnorm
    >>> val, test, _ = altnorm.load_demo()
    >>> normalizer = altnorm.AlternatingNormalizer().fit(val.proba, val.labels)
    >>> rows = altnorm.ask(normalizer, test.proba, n=40)
    >>> rows[:3]
    array([3555,  569, 3520])
    """
    changes = find_changes(normalizer, proba)
    if n is not None:
        n = check_integer(n, "n", low=1)
    return changes.rows[changes.order(random_state)[:n]]


def judge(
    normalizer: Any, proba: Any, asked: Any, y: Any, *, significance: float = 0.05
) -> Judgement:
    r"""Say whether to adopt an adjustment, from the labels given so far to the rows of `ask`.

    The answer is valid whenever one looks: after each label, and with any rule for when to stop.
    It rests on bets against "no more decisions are fixed than broken" and against "more are"
    ([1]_, for sampling without replacement), whose capital reaches :math:`1 / \alpha` with
    probability at most :math:`\alpha` if the claim is true, however long one goes on; the interval
    holds the gains that no bet has ruled out (a confidence sequence, [2]_).

    Parameters
    ----------
    normalizer : Adjuster, AlternatingNormalizer or any fitted transformer of altnorm
        As for :func:`ask`.
    proba : array-like of shape (n_samples, n_classes)
        The pool, as for :func:`ask`.
    asked : array-like of shape (n_asked,)
        Row numbers from :func:`ask`, in its order.
    y : array-like of shape (n_labelled,) or (n_labelled, n_classes)
        Labels of the first of these rows: class labels, or a 0/1 matrix, of which only changed
        labels are looked at. None or NaN is a missing label; what follows it does not count yet.
    significance : float, default=0.05
        Largest probability of a wrong answer.

    Returns
    -------
    Judgement
        `decision` is "adopt", "do not adopt" or "go on"; `str` gives all in one line.

    See Also
    --------
    ask : Which rows to label.

    References
    ----------
    .. [1] Waudby-Smith, Ramdas. Estimating means of bounded random variables by betting. Journal
           of the Royal Statistical Society B, 2024.
    .. [2] Howard, Ramdas, McAuliffe, Sekhon. Time-uniform, nonparametric, nonasymptotic
           confidence sequences. Annals of Statistics, 2021.

    Examples
    --------
    >>> import altnorm
    >>> val, test, _ = altnorm.load_demo()
    >>> normalizer = altnorm.AlternatingNormalizer().fit(val.proba, val.labels)
    >>> rows = altnorm.ask(normalizer, test.proba, n=40)
    >>> print(altnorm.judge(normalizer, test.proba, rows, test.labels[rows[:10]]))
    Go on: 10 of 693 changed rows labelled, 7 fixed, 1 broken; gain over the pool +9.2 points
    (95% CI -3.4 to +14.7, valid at any time), p = 0.094; about 7 more labels should decide.
    >>> altnorm.judge(normalizer, test.proba, rows, test.labels[rows[:20]]).decision
    'adopt'
    """
    changes = find_changes(normalizer, proba)
    position = _positions(changes, asked)
    before, after = changes.before[position], changes.after[position]
    truth = _TRUTHS[changes.multilabel](y, normalizer.classes_, before != after)
    labelled = ~np.isnan(truth).any(axis=1)
    # Up to the first row without a label: skipping rows would let who labels choose them.
    n = int(np.append(labelled, False).argmin())
    before, after, truth = before[:n], after[:n], truth[:n]
    changed = before != after
    return weigh_labels(
        changes.pool,
        np.count_nonzero(changed & (after == truth), axis=1),
        np.count_nonzero(changed & (before == truth), axis=1),
        np.count_nonzero(changed, axis=1),
        significance=significance,
        n_waiting=int(np.count_nonzero(labelled[n:])),
    )


def find_changes(normalizer: Any, proba: Any) -> Changes:
    """Return the rows whose decision a fitted transformer changes, with both decisions."""
    kind = kind_of(normalizer)
    after = kind.encode(np.asarray(normalizer.predict(proba)), normalizer.classes_)
    untouched = read_before(normalizer, proba)
    before, after = (v.reshape(len(after), -1) for v in (kind.decide(untouched), after))
    rows = np.flatnonzero((before != after).any(axis=1))
    return Changes(rows, before[rows], after[rows], len(before), kind.is_multilabel)


def _positions(changes: Changes, asked: Any) -> np.ndarray:
    """Where in `changes` the asked rows are."""
    rows = np.asarray(asked)
    remedy = "Pass what `ask` returned for this normalizer and this pool."
    if rows.ndim != 1 or (rows.size and rows.dtype.kind not in "iu"):
        raise InputError(
            "`asked` must hold row numbers",
            f"it has shape {rows.shape} and dtype {rows.dtype}",
            remedy,
            code="asked_rows",
        )
    unchanged = rows[~np.isin(rows, changes.rows)]
    if unchanged.size:
        raise InputError(
            "`asked` must hold rows whose decision changes",
            f"{unchanged.size} of {rows.size} do not, the first is row {unchanged[0]}",
            remedy,
            value=int(unchanged[0]),
            code="asked_rows",
        )
    values, times = np.unique(rows, return_counts=True)
    if (times > 1).any():
        twice = values[times.argmax()]
        raise InputError(
            "`asked` must hold each row once",
            f"row {twice} is there {times.max()} times",
            remedy,
            value=int(twice),
            code="asked_rows",
        )
    return np.searchsorted(changes.rows, rows).astype(int)


def _class_truth(y: Any, classes: np.ndarray, changed: np.ndarray) -> np.ndarray:
    """Class code of each label, NaN where it is missing, in one column."""
    labels = np.asarray(y, dtype=object)
    if labels.ndim != 1 or labels.size > len(changed):
        raise InputError(
            f"`y` must hold one class label for each of the {len(changed)} asked rows, or for the "
            "first of them",
            f"it has shape {labels.shape}",
            "Pass the labels in the order of `asked`.",
            value=labels.shape,
            code="shape",
        )
    given = np.array([not _is_missing(label) for label in labels], dtype=bool)
    truth = np.full((labels.size, 1), np.nan)
    if given.any():
        truth[given, 0] = class_codes(np.asarray(labels[given].tolist()), classes)
    return truth


def _label_truth(y: Any, classes: np.ndarray, changed: np.ndarray) -> np.ndarray:
    """The 0/1 matrix with NaN where a changed label is missing, and 0 where nothing changed."""
    labels = np.asarray(y.toarray() if issparse(y) else y, dtype=np.float64)
    if labels.size == 0:
        return np.empty((0, changed.shape[1]))
    if labels.ndim != 2 or labels.shape[1] != changed.shape[1] or len(labels) > len(changed):
        raise InputError(
            f"`y` must be a 0/1 matrix with {changed.shape[1]} columns and a row for each of the "
            f"{len(changed)} asked rows, or for the first of them",
            f"it has shape {labels.shape}",
            "Pass the labels in the order of `asked`.",
            value=labels.shape,
            code="shape",
        )
    truth = np.where(changed[: len(labels)], labels, 0)
    wrong = truth[~np.isin(truth, (0, 1)) & ~np.isnan(truth)]
    if wrong.size:
        raise InputError(
            "`y` must hold only 0 and 1, and NaN where a label is missing",
            f"{wrong.size} entries do not, the first is {wrong[0]:g}",
            "Write 1 where the label applies.",
            value=float(wrong[0]),
            code="asked_rows",
        )
    return truth


_TRUTHS = {False: _class_truth, True: _label_truth}


def _is_missing(label: Any) -> bool:
    """Whether a label is None, NaN, pandas' NA or empty text."""
    return label is None or type(label).__name__ == "NAType" or label != label or label == ""

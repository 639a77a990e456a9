"""Which rows to label: those on which two models decide differently; and what a label is worth."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from altnorm._base.errors import InputError
from altnorm._base.validation import check_integer
from altnorm.decisions.decision import class_decisions, decision_of
from altnorm.estimator.kinds import FittedModel, kind_of
from altnorm.estimator.reading import read_on_host

Seed = int | np.random.RandomState | None

OTHER = -1  # code of a truth that is neither of two classes, and not said to be which


class Changes(NamedTuple):
    """The rows of a pool that two models decide differently."""

    rows: np.ndarray  # their row numbers, ascending
    before: np.ndarray  # their decisions: class codes (k, 1), or 0 and 1 for each label (k, m)
    after: np.ndarray
    size: np.ndarray  # the most that the change of each row can be worth for the purpose, or cost
    n_rows: int  # rows in the pool
    multilabel: bool

    def order(self, random_state: Seed) -> np.ndarray:
        """Positions in a random order: one of twice the size is twice as likely to be the next."""
        # The first of several exponential clocks rings in proportion to their rates.
        clocks = check_random_state(random_state).standard_exponential(self.rows.size)
        return np.argsort(clocks / self.size, kind="stable")


def ask(
    adjuster: FittedModel,
    proba: Any,
    *,
    against: FittedModel | None = None,
    n: int | None = None,
    random_state: Seed = 0,
) -> np.ndarray:
    """Say which rows of an unlabelled pool to label, to learn whether an adjustment helps.

    Only rows whose decision changes are asked for: labels of all others say nothing. They come in
    a random order, without replacement, that depends on `random_state` only: the first 10 of 40
    are those of ``n=10``, and one may stop anywhere. A row whose change can be worth twice as much
    for the purpose of `adjuster`, such as one with two changed labels, is twice as likely to come
    next. Do not skip any: without those that are hard the answer would be biased.

    Parameters
    ----------
    adjuster : Adjuster or any fitted model with `predict` and `classes_`
        The model in question. Labels of the pool must have had no part in fitting it.
    proba : array-like of shape (n_samples, n_classes)
        Predictions on the pool, columns as in `fit`.
    against : model like `adjuster`, optional
        What it is compared with, such as the model before :meth:`altnorm.Adjuster.adapt`; by
        default the predictions as they came.
    n : int, optional
        Number of rows; by default all that change. There may be fewer.
    random_state : int, RandomState or None, default=0
        Fixes the order.

    Returns
    -------
    ndarray of shape (n,)
        Row numbers, in the order in which to label them.

    Examples
    --------
    >>> import altnorm
    >>> val, test, _ = altnorm.load_demo()
    >>> normalizer = altnorm.AlternatingNormalizer().fit(val.proba, val.labels)
    >>> rows = altnorm.ask(normalizer, test.proba, n=40)
    >>> rows[:3]
    array([3555,  569, 3520])
    """
    changes = find_changes(adjuster, proba, against)
    if n is not None:
        n = check_integer(n, "n", low=1)
    return changes.rows[changes.order(random_state)[:n]]


def find_changes(adjuster: FittedModel, proba: Any, against: FittedModel | None = None) -> Changes:
    """Return the rows that a model decides differently than another, or than what it is given."""
    kind, new = kind_of(adjuster), class_decisions(adjuster, proba)
    if against is None:
        old = np.asarray(kind.decide(read_on_host(adjuster, proba).proba), dtype=int)
    else:
        old = _other_decisions(against, adjuster, proba)
    before, after = (codes.reshape(len(new), -1) for codes in (old, new))
    worth = decision_of(adjuster).table(person=not hasattr(adjuster, "decision_"))
    if not kind.is_multilabel:
        _check_outcomes(before, after, worth.shape[1])
    size = value_changes(worth, before, after).size
    # A change that is worth nothing, whatever the truth, need not be asked about.
    rows = np.flatnonzero(size > 0)
    return Changes(rows, before[rows], after[rows], size[rows], len(after), kind.is_multilabel)


def _check_outcomes(before: np.ndarray, after: np.ndarray, n_outcomes: int) -> None:
    """Raise where a row is left to a person, and the purpose does not say what that is worth."""
    for decided in (before, after):
        unknown = np.flatnonzero(decided[:, 0] >= n_outcomes)
        if unknown.size:
            raise InputError(
                "The goal of the model must say what it costs to leave a row to a person",
                f"{unknown.size} of {len(decided)} rows are, the first is row {unknown[0]}",
                "Give it `costs` with a column more than there are classes.",
                value=int(unknown[0]),
                code="against",
            )


def _other_decisions(against: FittedModel, adjuster: FittedModel, proba: Any) -> np.ndarray:
    """Decisions of another model, coded as those of the first, for which `proba` is made."""
    _check_comparable(adjuster, against)
    classes, new_order = (list(model.classes_) for model in (adjuster, against))
    if classes == new_order:
        return class_decisions(against, proba)
    reordered = read_on_host(adjuster, proba).values[:, [classes.index(name) for name in new_order]]
    codes = class_decisions(against, reordered, adjuster.classes_)
    return codes if codes.ndim == 1 else codes[:, [new_order.index(name) for name in classes]]


def _check_comparable(adjuster: FittedModel, against: FittedModel) -> None:
    """Raise unless both models take the same predictions and decide about the same classes."""
    takes = getattr(adjuster, "input", None)
    pairs: dict[str, list[Any]] = {
        "classes": [sorted(np.asarray(m.classes_).tolist()) for m in (adjuster, against)],
        "kind of input": [takes, getattr(against, "input", takes)],
        "kind of labels": [kind_of(model).words.problem for model in (adjuster, against)],
    }
    for aspect, (first, second) in pairs.items():
        if first != second:
            raise InputError(
                f"Both models must have the same {aspect}",
                f"they have {str(first)[:80]} and {str(second)[:80]}",
                "Compare models of one classifier.",
                value=second,
                code="against",
            )


# What changes are worth, under each truth that a label may tell.


def common_step(worth: np.ndarray) -> float:
    """A number of which all values, and so all sums of them, are multiples; 0 if none is seen."""
    values = np.abs(worth[worth != 0])
    if not values.size:
        return 0.0
    multiples = values / values.min()
    off = np.abs(multiples - multiples.round()).max()
    return float(values.min()) if off <= 4 * np.finfo(float).eps * multiples.max() else 0.0


class Outcomes(NamedTuple):
    """What the changes of some rows are worth, now that their truth is known."""

    x: np.ndarray  # value gained in each row
    size: np.ndarray  # the most that could have been gained or lost in each row
    n_fixed: int  # decisions that are worth more than before
    n_broken: int  # and less


class ChangeValues(NamedTuple):
    """The changed decisions of some rows, and what each is worth under each truth."""

    row: np.ndarray  # row of each changed decision
    column: np.ndarray  # its label; 0 where each row has one class
    case: np.ndarray  # its line of `table`
    # Value gained (lines) if the truth is that (columns); for classes, the last is `OTHER`: NaN
    # where the gain depends on which other class it is.
    table: np.ndarray
    n_rows: int

    @property
    def size(self) -> np.ndarray:
        """The most that can be gained or lost in each row."""
        largest = np.nan_to_num(np.abs(self.table)).max(axis=1, initial=0)
        return self._per_row(largest[self.case])

    def outcomes(self, truth: np.ndarray) -> Outcomes:
        """What the changes are worth under this truth, one column per decision."""
        gained = self.table[self.case, truth[self.row, self.column]]
        counts = (int(np.count_nonzero(sign)) for sign in (gained > 0, gained < 0))
        return Outcomes(self._per_row(gained), self.size, *counts)

    def _per_row(self, values: np.ndarray) -> np.ndarray:
        return np.bincount(self.row, weights=values, minlength=self.n_rows)


def value_changes(worth: np.ndarray, before: np.ndarray, after: np.ndarray) -> ChangeValues:
    """Value each changed decision by the table of a `Decision`; codes are (n, 1), or (n, m) 0/1."""
    row, column = np.nonzero(before != after)
    old, new = before[row, column], after[row, column]
    is_multilabel = worth.ndim == 3
    key = np.column_stack([column, new] if is_multilabel else [old, new])
    cases, case = np.unique(key, axis=0, return_inverse=True)
    if is_multilabel:  # what is gained if the truth is no, and if it is yes
        table = worth[cases[:, 0], :, cases[:, 1]] - worth[cases[:, 0], :, 1 - cases[:, 1]]
    else:
        table = _class_table(worth, *cases.T)
    return ChangeValues(row, column, case.reshape(-1), table, len(before))


def _class_table(worth: np.ndarray, old: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Value gained by each change of class, for each true class and for `OTHER`."""
    gained = (worth[:, new] - worth[:, old]).T
    classes = np.arange(len(worth))
    is_other = (old[:, None] != classes) & (new[:, None] != classes)
    low = np.where(is_other, gained, np.inf).min(axis=1)
    high = np.where(is_other, gained, -np.inf).max(axis=1)
    rounding = 4 * np.finfo(float).eps * np.abs(gained).max(axis=1)
    gain_of_other = np.where(high - low > rounding, np.nan, high)
    return np.column_stack([gained, np.where(is_other.any(axis=1), gain_of_other, 0.0)])

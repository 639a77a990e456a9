"""What kind of labels a problem has: one class per row, or several labels per row.

Probabilities may be arrays of any library where each row has one class; what is found out about
them comes as NumPy arrays.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from types import EllipsisType
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from altnorm._base.arrays import Array, column_of_max, on_host, to_numpy
from altnorm._base.errors import InputError, shape_error
from altnorm._base.labels import check_indicator, check_label_proba, check_targets, class_codes
from altnorm._base.validation import check_choice, check_proba, check_unmasked
from altnorm.estimator.correction import to_proba
from altnorm.method.ambiguity import binary_ambiguity, in_doubt, row_ambiguity
from altnorm.method.reference import Prior, Strata, class_prior, label_prior, post_stratify

Part = EllipsisType | tuple[slice, int]  # indexes entries


class KindWords(NamedTuple):
    """What messages say about a kind."""

    problem: str
    labels: str  # what labels of this kind are
    changed: str  # what an adjustment changes, one of them
    decision: str
    fixed: str
    still_wrong: str  # what to add about changed decisions that are wrong before and after


class _Kind(ABC):
    is_multilabel: ClassVar[bool]

    def from_logits(self, logits: Array) -> Array:
        """Return the probabilities that logits stand for."""
        return to_proba(logits, is_multilabel=self.is_multilabel)

    @abstractmethod
    def count_prior(
        self, labels: np.ndarray | None, n_columns: int, prior: Prior, weight: np.ndarray | None
    ) -> np.ndarray:
        """Return the prior that a setting stands for, given the labels."""

    def prior_names(self, names: list[str]) -> list[str]:
        """What the entries of a prior are for, given the names of the columns."""
        return list(names)

    def parts(self, n_columns: int) -> Sequence[Part]:
        """Index the entries that share a prior and a reference: all of them."""
        return [...]

    def count_once(
        self, labels: np.ndarray, n_columns: int, prior: Prior, weight: np.ndarray
    ) -> Strata:
        """Let rows weigh what they are given."""
        return Strata(
            weight, np.zeros(n_columns), self.count_prior(labels, n_columns, prior, weight)
        )


class SingleLabel(_Kind):
    """One class per row: rows sum to 1, labels and decisions are one per row."""

    multilabel: ClassVar[None] = None  # how estimators spell the kind
    is_multilabel: ClassVar[bool] = False
    scores: ClassVar = ("accuracy", "balanced_accuracy", "f1_macro", "neg_log_loss")  # usual first
    nouns: ClassVar = ("row", "class", "classes")  # what is decided, a column, and columns
    words: ClassVar = KindWords(
        problem="single-label",
        labels="one class per row",
        changed="row",
        decision="decision",
        fixed="fixed",
        still_wrong=", {:,} still wrong",
    )

    def check(self, proba: Array) -> Array:
        """Return rows that sum to 1, or raise."""
        return check_proba(proba, logits="pass input='logits'")

    def check_labels(self, y: Any, shape: tuple[int, ...]) -> np.ndarray:
        """Return one class label per row, (n,) of any dtype."""
        check_unmasked(y, "y")
        labels = np.asarray(on_host(y))
        # A column of a data frame, or of a reshaped array, is as good as a vector.
        if labels.ndim == 2 and labels.shape[1] == 1:
            labels = labels[:, 0]
        if labels.ndim != 1:
            rule = "`y` must hold one class label per row"
            remedy = "For a 0/1 matrix of several labels, pass multilabel='labelwise' or 'pairs'."
            raise shape_error(rule, labels, remedy, "one_label_per_row")
        if labels.shape[0] != shape[0]:
            rule = "`proba` and `y` must have the same number of rows"
            offender = f"they have {shape[0]} and {labels.shape[0]}"
            remedy = "Pass one label for each row."
            raise InputError(rule, offender, remedy, value=labels.shape[0], code="shape")
        return check_targets(labels)

    def encode(self, labels: np.ndarray, classes: np.ndarray) -> np.ndarray:
        """Column of each row's label."""
        return class_codes(labels, classes)

    def ambiguity(self, proba: Array, *, k_max: int = 10) -> np.ndarray:
        """Ambiguity of each row."""
        return to_numpy(row_ambiguity(proba, k_max=k_max))

    def in_doubt(self, proba: Array, threshold: float, *, k_max: int = 10) -> np.ndarray:
        """Say which rows have an ambiguity above `threshold`."""
        return in_doubt(proba, threshold, k_max=k_max)

    def decide(self, proba: Array) -> np.ndarray:
        """Column of the most probable class of each row."""
        return column_of_max(proba)

    def count_prior(
        self, labels: np.ndarray | None, n_columns: int, prior: Prior, weight: np.ndarray | None
    ) -> np.ndarray:
        """Class prior, (m,)."""
        return class_prior(labels, n_columns, prior, weight)

    def stratify(
        self, labels: np.ndarray, n_columns: int, prior: Prior, weight: np.ndarray
    ) -> Strata:
        """Give every class the share that the prior gives it."""
        return post_stratify(labels, n_columns, prior, weight)

    def count_use(self, proba: Array, doubt: np.ndarray) -> np.ndarray:
        """How many rows without doubt are predicted to have each class."""
        return np.bincount(column_of_max(proba)[~doubt], minlength=proba.shape[1])


class _MultiLabel(_Kind):
    """Several labels per row: every probability is a yes/no question of its own."""

    is_multilabel: ClassVar[bool] = True
    scores: ClassVar = ("f1_micro", "f1_macro", "accuracy", "neg_log_loss")
    nouns: ClassVar = ("decision", "label", "labels")
    words: ClassVar = KindWords(
        problem="multi-label",
        labels="a 0/1 matrix",
        changed="label decision",
        decision="label decision",
        fixed="decisions fixed",
        still_wrong="",  # a yes/no decision that changes was wrong before or is wrong now
    )

    def check(self, proba: Array) -> Array:
        """Return entries in [0, 1], or raise."""
        return check_label_proba(proba)

    def check_labels(self, y: Any, shape: tuple[int, ...]) -> np.ndarray:
        """Return the 0/1 label matrix as booleans (n, m)."""
        return check_indicator(y, shape)

    def encode(self, labels: np.ndarray, classes: np.ndarray) -> np.ndarray:
        """Return the 0/1 matrix, whose columns are the labels already."""
        return labels

    def ambiguity(self, proba: Array, *, k_max: int = 10) -> np.ndarray:
        """Ambiguity of each entry."""
        return np.asarray(binary_ambiguity(proba))

    def in_doubt(self, proba: Array, threshold: float, *, k_max: int = 10) -> np.ndarray:
        """Say which entries have an ambiguity above `threshold`."""
        return self.ambiguity(proba) > threshold

    def decide(self, proba: Array) -> np.ndarray:
        """Return the 0/1 matrix of the labels that are more probable than not."""
        return (check_label_proba(proba) > 0.5).astype(np.int8)

    stratify = _Kind.count_once  # labels that come and go together have no shares to keep

    def count_use(self, proba: Array, doubt: np.ndarray) -> np.ndarray:
        """How often each label is more probable than not, without doubt."""
        return ((proba > 0.5) & ~doubt).sum(axis=0)


class PooledPairs(_MultiLabel):
    """All n * m probabilities are one two-class problem, with one prior (the paper's way)."""

    multilabel: ClassVar[str] = "pairs"

    def prior_names(self, names: list[str]) -> list[str]:
        """One prior of yes and no for all labels."""
        return ["yes", "no"]

    def count_prior(
        self, labels: np.ndarray | None, n_columns: int, prior: Prior, weight: np.ndarray | None
    ) -> np.ndarray:
        """Return the probabilities of yes and no."""
        no = None if labels is None else 1 - labels.reshape(-1).astype(int)  # yes is class 0
        entry_weight = None if weight is None else np.repeat(weight, n_columns)
        return class_prior(no, 2, prior, entry_weight)


class SeparateLabels(_MultiLabel):
    """Each label is a two-class problem with its own prior and reference."""

    multilabel: ClassVar[str] = "labelwise"

    def count_prior(
        self, labels: np.ndarray | None, n_columns: int, prior: Prior, weight: np.ndarray | None
    ) -> np.ndarray:
        """Return the probability of each label."""
        return label_prior(labels, n_columns, prior, weight)

    def parts(self, n_columns: int) -> Sequence[Part]:
        """The entries of a label share a reference."""
        return [np.s_[:, j] for j in range(n_columns)]


LabelKind = SingleLabel | PooledPairs | SeparateLabels
"""Any of the kinds: all answer the same questions."""

_KINDS: dict[str | None, LabelKind] = {
    None: SingleLabel(),
    "pairs": PooledPairs(),
    "labelwise": SeparateLabels(),
}


def resolve_kind(multilabel: str | None) -> LabelKind:
    """Return the kind that the setting `multilabel` of an estimator stands for."""
    check_choice(multilabel, "multilabel", tuple(_KINDS))
    return _KINDS[multilabel]


def kind_of_labels(multilabel: bool) -> LabelKind:
    """Return the kind where how several labels share a reference and a prior does not matter."""
    return resolve_kind("labelwise" if multilabel else None)


class FittedModel(Protocol):
    """An Adjuster, an AlternatingNormalizer, a peer, or another with what they have."""

    input: str  # "proba" or "logits": what the methods take
    multilabel: str | None  # the kind of labels, as `resolve_kind` takes it
    classes_: np.ndarray  # (m,) the class that each column stands for

    def transform(self, proba: Any) -> Any:
        """Return adjusted class probabilities, (n, m)."""

    def predict(self, proba: Any) -> Any:
        """Return the decision of each row: a class, None if left to a person, or 0/1 labels."""


def kind_of(estimator: object) -> LabelKind:
    """Return the kind of labels that an estimator is for."""
    return resolve_kind(getattr(estimator, "multilabel", None))

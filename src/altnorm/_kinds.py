"""What kind of labels a problem has: one class per row, or several labels per row.

The question is asked once, at the door, as that for the array namespace is: `resolve_kind` answers
it, and whoever holds the kind need not ask again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit
from sklearn.utils import assert_all_finite

from altnorm._array import Array, column_of_max, on_host, softmax, to_numpy
from altnorm._decisions import decide
from altnorm._entropy import in_doubt, row_ambiguity
from altnorm._labels import check_indicator, check_label_proba, check_targets, class_codes
from altnorm._multilabel import binary_ambiguity
from altnorm._validation import InputError, check_choice, check_proba
from altnorm.reference import class_prior, label_prior

__all__ = ["Labelwise", "Pairs", "SingleLabel", "kind_of", "resolve_kind"]

DECISIONS = ("threshold", "argmax_or_threshold")
_REMEDY = (
    "If these are logits, pass input='logits'; if they were rounded, divide each row by its sum."
)


@dataclass(frozen=True)
class LabelKind(ABC):
    """What differs between the kinds; `multilabel` is how estimators spell the kind.

    Probabilities may be arrays of any library where each row has one class; what is found out about
    them comes as NumPy arrays.

    Parameters
    ----------
    decision : str, default="threshold"
        Rule from the probabilities of several labels to decisions, one of `DECISIONS`.
    """

    decision: str = "threshold"
    multilabel: ClassVar[str | None]
    is_multilabel: ClassVar[bool]
    scores: ClassVar[tuple[str, ...]]  # what people look at; the first is the natural one
    nouns: ClassVar[tuple[str, str, str]]  # what is decided, a column, and columns

    @abstractmethod
    def from_logits(self, logits: Array) -> Array:
        """Probabilities that logits stand for."""

    @abstractmethod
    def check(self, proba: Array) -> Array:
        """Return probabilities of this kind, or raise."""

    @abstractmethod
    def check_labels(self, y: Any, shape: tuple[int, ...]) -> np.ndarray:
        """Return labels for probabilities of that shape: (n,) of any dtype, or booleans (n, m)."""

    @abstractmethod
    def encode(self, labels: np.ndarray, classes: np.ndarray) -> np.ndarray:
        """Column of each row's label, or the 0/1 matrix as it is."""

    @abstractmethod
    def ambiguity(self, proba: Array, *, k_max: int = 10) -> np.ndarray:
        """Ambiguity of each row, or of each entry where labels are several."""

    @abstractmethod
    def in_doubt(self, proba: Array, threshold: float, *, k_max: int = 10) -> np.ndarray:
        """Say which rows, or which entries, have an ambiguity above `threshold`."""

    @abstractmethod
    def decide(self, proba: Array) -> np.ndarray:
        """Column of the predicted class of each row, or a 0/1 matrix of decisions."""

    @abstractmethod
    def count_prior(
        self, labels: np.ndarray | None, n_columns: int, prior: Any, weight: np.ndarray | None
    ) -> np.ndarray:
        """Class prior that a setting stands for, given class codes (n,) or booleans (n, m)."""

    @abstractmethod
    def parts(self, n_columns: int) -> list[Any]:
        """Index the entries that share a prior and a reference, one part after the other."""

    @abstractmethod
    def count_use(self, proba: Array, doubt: np.ndarray) -> np.ndarray:
        """How often each class is predicted without doubt."""

    def read(self, values: Array, input: str) -> Array:
        """Return the probabilities that `values` are or, as logits, stand for."""
        check_choice(input, "input", ("proba", "logits"))
        return self.from_logits(values) if input == "logits" else self.check(values)


@dataclass(frozen=True)
class SingleLabel(LabelKind):
    """One class per row: rows sum to 1, labels and decisions are one per row."""

    multilabel: ClassVar[None] = None
    is_multilabel: ClassVar[bool] = False
    scores = ("accuracy", "f1_macro", "neg_log_loss", "neg_brier_score")
    nouns = ("row", "class", "classes")

    def from_logits(self, logits: Array) -> Array:
        """Softmax."""
        return softmax(_two_columns(logits))

    def check(self, proba: Array) -> Array:
        """Return rows that sum to 1, or raise."""
        return check_proba(_two_columns(proba), remedy=_REMEDY)

    def check_labels(self, y: Any, shape: tuple[int, ...]) -> np.ndarray:
        """Return one class label per row."""
        labels = np.asarray(on_host(y))
        if labels.ndim == 2 and labels.shape[1] == 1:
            labels = labels[:, 0]
        if labels.ndim != 1:
            raise InputError(
                "`y` must hold one class label per row",
                f"it has shape {labels.shape}",
                "For a 0/1 matrix of several labels per row, pass multilabel='labelwise' or "
                "'pairs'.",
                value=labels.shape,
                code="one_label_per_row",
            )
        if labels.shape[0] != shape[0]:
            raise InputError(
                "`proba` and `y` must have the same number of rows",
                f"they have {shape[0]} and {labels.shape[0]}",
                "Pass one label for each row.",
                value=labels.shape[0],
                code="shape",
            )
        assert_all_finite(labels, input_name="y")
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
        self, labels: np.ndarray | None, n_columns: int, prior: Any, weight: np.ndarray | None
    ) -> np.ndarray:
        """Return the class prior, (m,)."""
        return class_prior(labels, n_columns, prior, sample_weight=weight)

    def parts(self, n_columns: int) -> list[Any]:
        """All rows are one problem."""
        return [...]

    def count_use(self, proba: Array, doubt: np.ndarray) -> np.ndarray:
        """How many rows without doubt are predicted to have each class."""
        return np.bincount(column_of_max(proba)[~doubt], minlength=proba.shape[1])


class _MultiLabel(LabelKind):
    """Several labels per row: every probability is a yes/no question of its own."""

    is_multilabel: ClassVar[bool] = True
    scores = ("f1_micro", "f1_macro", "accuracy", "neg_log_loss")
    nouns = ("decision", "label", "labels")

    def from_logits(self, logits: Array) -> Array:
        """Logistic function."""
        return np.asarray(expit(logits))

    def check(self, proba: Array) -> Array:
        """Return entries in [0, 1], or raise."""
        return check_label_proba(proba)

    def check_labels(self, y: Any, shape: tuple[int, ...]) -> np.ndarray:
        """Return the 0/1 label matrix as booleans."""
        labels = check_indicator(on_host(y), "y")
        if labels.shape != shape:
            raise InputError(
                f"`y` must be a 0/1 matrix of the shape of `proba`, {shape}",
                f"it has shape {labels.shape}",
                "Use scikit-learn's MultiLabelBinarizer to make one.",
                value=labels.shape,
                code="label_matrix",
            )
        return np.asarray(labels.toarray() if hasattr(labels, "toarray") else labels)

    def encode(self, labels: np.ndarray, classes: np.ndarray) -> np.ndarray:
        """Return the 0/1 matrix, whose columns are the labels already."""
        return labels

    def ambiguity(self, proba: Array, *, k_max: int = 10) -> np.ndarray:
        """Ambiguity of each entry."""
        return binary_ambiguity(proba)

    def in_doubt(self, proba: Array, threshold: float, *, k_max: int = 10) -> np.ndarray:
        """Say which entries have an ambiguity above `threshold`."""
        return binary_ambiguity(proba) > threshold

    def decide(self, proba: Array) -> np.ndarray:
        """Return the 0/1 matrix of decisions."""
        return decide(proba, decision=self.decision)

    def count_use(self, proba: Array, doubt: np.ndarray) -> np.ndarray:
        """How often each label is more probable than not, without doubt."""
        return ((proba > 0.5) & ~doubt).sum(axis=0)


@dataclass(frozen=True)
class Pairs(_MultiLabel):
    """All n * m probabilities are one two-class problem, with one prior (the paper's way)."""

    multilabel: ClassVar[str] = "pairs"

    def count_prior(
        self, labels: np.ndarray | None, n_columns: int, prior: Any, weight: np.ndarray | None
    ) -> np.ndarray:
        """Return the probabilities of yes and no."""
        no = None if labels is None else 1 - labels.reshape(-1).astype(int)  # yes is class 0
        each = None if weight is None else np.repeat(weight, n_columns)
        return class_prior(no, 2, prior, sample_weight=each)

    def parts(self, n_columns: int) -> list[Any]:
        """All entries share a reference."""
        return [...]


@dataclass(frozen=True)
class Labelwise(_MultiLabel):
    """Each label is a two-class problem with its own prior and reference."""

    multilabel: ClassVar[str] = "labelwise"

    def count_prior(
        self, labels: np.ndarray | None, n_columns: int, prior: Any, weight: np.ndarray | None
    ) -> np.ndarray:
        """Return the probability of each label."""
        return label_prior(labels, n_columns, prior, sample_weight=weight)

    def parts(self, n_columns: int) -> list[Any]:
        """The entries of a label share a reference."""
        return [np.s_[:, j] for j in range(n_columns)]


_KINDS: tuple[type[LabelKind], ...] = (SingleLabel, Pairs, Labelwise)


def resolve_kind(multilabel: str | None, decision: str = "threshold") -> LabelKind:
    """Return the kind that the settings `multilabel` and `decision` of an estimator stand for.

    Parameters
    ----------
    multilabel : None, "pairs" or "labelwise"
        As for :class:`~altnorm.AlternatingNormalizer`.
    decision : str, default="threshold"
        Rule of :func:`altnorm.metrics.decide`; only several labels per row need one.

    Returns
    -------
    SingleLabel, Pairs or Labelwise
        The kind.
    """
    check_choice(multilabel, "multilabel", tuple(kind.multilabel for kind in _KINDS))
    check_choice(decision, "decision", DECISIONS)
    return next(kind(decision) for kind in _KINDS if kind.multilabel == multilabel)


def kind_of(estimator: Any) -> LabelKind:
    """Return the kind of labels that an estimator is for."""
    multilabel = getattr(estimator, "multilabel", None)
    return resolve_kind(multilabel, getattr(estimator, "decision", "threshold"))


def _two_columns(values: Array) -> Array:
    if values.shape[1] < 2:
        raise InputError(
            "`proba` must have one column per class and at least 2 classes",
            f"it has {values.shape[1]} feature(s)",
            "For one probability per row, pass [1 - p, p].",
            value=values.shape[1],
            code="shape",
        )
    return values

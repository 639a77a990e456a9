"""The questions that each kind of labels answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from altnorm._base.arrays import Array
from altnorm._base.validation import check_choice
from altnorm.method.reference import Strata


class KindWords(NamedTuple):
    """What messages say about a kind."""

    problem: str
    labels: str  # what labels of this kind are
    changed: str  # what an adjustment changes, one of them
    decision: str
    fixed: str
    still_wrong: str  # what to add about changed decisions that are wrong before and after


@dataclass(frozen=True)
class LabelKind(ABC):
    """What differs between the kinds; `multilabel` is how estimators spell the kind.

    Probabilities may be arrays of any library where each row has one class; what is found out about
    them comes as NumPy arrays.
    """

    multilabel: ClassVar[str | None]
    is_multilabel: ClassVar[bool]
    scores: ClassVar[tuple[str, ...]]  # what people look at; the first is the natural one
    decision_scores: ClassVar[tuple[str, ...]]  # those that are the share of right decisions
    nouns: ClassVar[tuple[str, str, str]]  # what is decided, a column, and columns
    words: ClassVar[KindWords]
    sums_to_one: ClassVar[bool]  # whether each row of probabilities does
    any_library: ClassVar[bool]  # whether the numerics work on arrays of any library
    min_columns: ClassVar[int]
    prior_sums_to_one: ClassVar[bool]

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
    def decode(self, decided: np.ndarray, classes: np.ndarray) -> np.ndarray:
        """Labels that decisions stand for: the way back from `encode`."""

    @abstractmethod
    def reorder(self, codes: np.ndarray, order: Sequence[int], classes: np.ndarray) -> np.ndarray:
        """Labels after the columns are put into `order`, where they stand for `classes`."""

    @abstractmethod
    def class_labels(self, labels: np.ndarray | None) -> np.ndarray | None:
        """Labels that name classes, from which these may be learnt; None where they do not."""

    @abstractmethod
    def named(self, label: Any, classes: np.ndarray) -> list[Any]:
        """Classes or labels that the label of one row stands for."""

    @abstractmethod
    def outcomes(self, names: list[str]) -> list[str]:
        """What a decision can come to, given the names of the columns."""

    @abstractmethod
    def prior_names(self, names: list[str]) -> list[str]:
        """What the entries of a prior are for, given the names of the columns."""

    @abstractmethod
    def n_decisions(self, n_columns: int) -> int:
        """Decisions per row."""

    @abstractmethod
    def even_share(self, n_columns: int) -> float:
        """Probability of every class, or label, where nothing is known."""

    @abstractmethod
    def unrounded(self, proba: np.ndarray, dtype: str) -> np.ndarray:
        """Undo what rounding to `dtype` did to the sums of rows."""

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
    def stratify(
        self, labels: np.ndarray, n_columns: int, prior: Any, weight: np.ndarray | None
    ) -> Strata:
        """Weigh labelled rows so that no class has more than its share."""

    @abstractmethod
    def touched(self, before: Array, after: Array) -> np.ndarray:
        """Say which rows, or which entries, are not what they were."""

    @abstractmethod
    def parts(self, n_columns: int) -> list[Any]:
        """Index the entries that share a prior and a reference, one part after the other."""

    @abstractmethod
    def stored_parts(self, offsets: np.ndarray | None) -> Iterable[tuple[int, slice]]:
        """Number each part, and say where a fitted normalizer's reference has its entries."""

    @abstractmethod
    def as_rows(self, part: np.ndarray) -> np.ndarray:
        """Probabilities of a part as rows that sum to 1: of classes, or of no and yes."""

    @abstractmethod
    def part_prior(self, prior: np.ndarray, part: int) -> np.ndarray:
        """Prior of a part, for the columns that `as_rows` gives it."""

    @abstractmethod
    def count_use(self, proba: Array, doubt: np.ndarray) -> np.ndarray:
        """How often each class is predicted without doubt."""

    def read(self, values: Array, input: str) -> Array:
        """Return the probabilities that `values` are or, as logits, stand for."""
        check_choice(input, "input", ("proba", "logits"))
        return self.from_logits(values) if input == "logits" else self.check(values)

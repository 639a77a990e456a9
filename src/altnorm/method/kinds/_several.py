"""Several labels per row, with one reference for all of them or with one for each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit

from altnorm._base.arrays import Array, on_host
from altnorm._base.errors import InputError
from altnorm._base.labels import check_indicator, check_label_proba
from altnorm.method.kinds._base import KindWords, LabelKind
from altnorm.method.reference import Strata, class_prior, label_prior
from altnorm.method.several_labels import binary_ambiguity, label_slices


class _MultiLabel(LabelKind):
    """Several labels per row: every probability is a yes/no question of its own."""

    is_multilabel: ClassVar[bool] = True
    scores = ("f1_micro", "f1_macro", "accuracy", "neg_log_loss")
    nouns = ("decision", "label", "labels")
    words = KindWords(
        problem="multi-label",
        labels="a 0/1 matrix",
        changed="label decision",
        decision="label decision",
        fixed="decisions fixed",
        # A yes/no decision that changes was wrong before or is wrong now: none is still wrong.
        still_wrong="",
    )
    decision_scores = ()
    sums_to_one = False
    any_library = False
    min_columns = 1

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

    def decode(self, decided: np.ndarray, classes: np.ndarray) -> np.ndarray:
        """Return the 0/1 matrix, which is how several labels are written."""
        return decided

    def reorder(self, codes: np.ndarray, order: Sequence[int], classes: np.ndarray) -> np.ndarray:
        """Return the columns of the 0/1 matrix in their new order."""
        return codes[:, list(order)]

    def class_labels(self, labels: np.ndarray | None) -> None:
        """A 0/1 matrix names no classes."""

    def named(self, label: Any, classes: np.ndarray) -> list[Any]:
        """Return the labels that are there."""
        present: list[Any] = classes[np.asarray(label, dtype=bool)].tolist()
        return present

    def outcomes(self, names: list[str]) -> list[str]:
        """Each label is there or not."""
        return ["yes", "no"]

    def n_decisions(self, n_columns: int) -> int:
        """One for each label."""
        return n_columns

    def even_share(self, n_columns: int) -> float:
        """A label is as probable as not."""
        return 0.5

    def unrounded(self, proba: np.ndarray, dtype: str) -> np.ndarray:
        """Return the entries, which have no sum to tell by."""
        return proba

    def ambiguity(self, proba: Array, *, k_max: int = 10) -> np.ndarray:
        """Ambiguity of each entry."""
        return binary_ambiguity(proba)

    def in_doubt(self, proba: Array, threshold: float, *, k_max: int = 10) -> np.ndarray:
        """Say which entries have an ambiguity above `threshold`."""
        return binary_ambiguity(proba) > threshold

    def decide(self, proba: Array) -> np.ndarray:
        """Return the 0/1 matrix of the labels that are more probable than not."""
        return (check_label_proba(proba) > 0.5).astype(np.int8)

    def stratify(
        self, labels: np.ndarray, n_columns: int, prior: Any, weight: np.ndarray | None
    ) -> Strata:
        """Count every row alike: labels that come and go together have no shares to keep."""
        each = np.ones(len(labels)) if weight is None else weight
        return Strata(each, np.zeros(n_columns))

    def touched(self, before: Array, after: Array) -> np.ndarray:
        """Say which entries are not what they were."""
        return np.asarray(before != after)

    def stored_parts(self, offsets: np.ndarray | None) -> Iterable[tuple[int, slice]]:
        """Entries lie label after label, or all in one."""
        assert offsets is not None
        return label_slices(offsets)

    def as_rows(self, part: np.ndarray) -> np.ndarray:
        """Return the probabilities of no and yes."""
        proba = np.asarray(part, dtype=np.float64).reshape(-1)
        return np.stack([1 - proba, proba], axis=1)

    def part_prior(self, prior: np.ndarray, part: int) -> np.ndarray:
        """Return the prior of no and yes."""
        return self.as_rows(prior[part])[0]

    def count_use(self, proba: Array, doubt: np.ndarray) -> np.ndarray:
        """How often each label is more probable than not, without doubt."""
        return ((proba > 0.5) & ~doubt).sum(axis=0)


@dataclass(frozen=True)
class Pairs(_MultiLabel):
    """All n * m probabilities are one two-class problem, with one prior (the paper's way)."""

    multilabel: ClassVar[str] = "pairs"
    prior_sums_to_one = True

    def prior_names(self, names: list[str]) -> list[str]:
        """One prior of yes and no for all labels."""
        return ["yes", "no"]

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
    prior_sums_to_one = False

    def prior_names(self, names: list[str]) -> list[str]:
        """The probability of yes for each label."""
        return list(names)

    def count_prior(
        self, labels: np.ndarray | None, n_columns: int, prior: Any, weight: np.ndarray | None
    ) -> np.ndarray:
        """Return the probability of each label."""
        return label_prior(labels, n_columns, prior, sample_weight=weight)

    def parts(self, n_columns: int) -> list[Any]:
        """The entries of a label share a reference."""
        return [np.s_[:, j] for j in range(n_columns)]

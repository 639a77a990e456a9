"""One class per row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import assert_all_finite

from altnorm._base.arrays import Array, array_namespace, column_of_max, on_host, softmax, to_numpy
from altnorm._base.errors import InputError
from altnorm._base.labels import check_targets, class_codes
from altnorm._base.validation import check_proba, check_unmasked, sum_tolerance
from altnorm.method.ambiguity import in_doubt, row_ambiguity
from altnorm.method.kinds._base import KindWords, LabelKind
from altnorm.method.reference import Strata, class_prior, post_stratify

_REMEDY = (
    "If these are logits, pass input='logits'; if they were rounded, divide each row by its sum."
)


@dataclass(frozen=True)
class SingleLabel(LabelKind):
    """One class per row: rows sum to 1, labels and decisions are one per row."""

    multilabel: ClassVar[None] = None
    is_multilabel: ClassVar[bool] = False
    scores = ("accuracy", "f1_macro", "neg_log_loss", "neg_brier_score")
    nouns = ("row", "class", "classes")
    words = KindWords(
        problem="single-label",
        labels="one class per row",
        changed="row",
        decision="decision",
        fixed="fixed",
        still_wrong=", {:,} still wrong",
    )
    decision_scores = ("accuracy",)
    sums_to_one = True
    any_library = True
    min_columns = 2
    prior_sums_to_one = True

    def from_logits(self, logits: Array) -> Array:
        """Softmax."""
        return softmax(_two_columns(logits))

    def check(self, proba: Array) -> Array:
        """Return rows that sum to 1, or raise."""
        return check_proba(_two_columns(proba), remedy=_REMEDY)

    def check_labels(self, y: Any, shape: tuple[int, ...]) -> np.ndarray:
        """Return one class label per row."""
        check_unmasked(y, "y")
        labels = np.asarray(on_host(y))
        # A column of a data frame, or of a reshaped array, is as good as a vector.
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

    def decode(self, decided: np.ndarray, classes: np.ndarray) -> np.ndarray:
        """Class of each row."""
        return classes[decided]

    def reorder(self, codes: np.ndarray, order: Sequence[int], classes: np.ndarray) -> np.ndarray:
        """Class of each row, under its new name."""
        # The inverse of `order` takes an old column to its new place.
        return classes[np.argsort(order)[codes]]

    def class_labels(self, labels: np.ndarray | None) -> np.ndarray | None:
        """Return the labels, which are classes."""
        return labels

    def named(self, label: Any, classes: np.ndarray) -> list[Any]:
        """Return the class itself."""
        return [label]

    def outcomes(self, names: list[str]) -> list[str]:
        """A row has one of the classes."""
        return list(names)

    def prior_names(self, names: list[str]) -> list[str]:
        """A prior has one entry per class."""
        return list(names)

    def n_decisions(self, n_columns: int) -> int:
        """One class per row."""
        return 1

    def even_share(self, n_columns: int) -> float:
        """Classes share the row."""
        return 1 / n_columns

    def unrounded(self, proba: np.ndarray, dtype: str) -> np.ndarray:
        """Divide rows by their sums, where these are as near to 1 as rounding leaves them."""
        sums = proba.sum(axis=1, keepdims=True)
        return proba / np.where(np.abs(sums - 1) <= sum_tolerance(dtype), sums, 1)

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

    def stratify(
        self, labels: np.ndarray, n_columns: int, prior: Any, weight: np.ndarray | None
    ) -> Strata:
        """Give every class the share that the prior gives it."""
        return post_stratify(labels, n_columns, prior, sample_weight=weight)

    def touched(self, before: Array, after: Array) -> np.ndarray:
        """Say which rows are not what they were."""
        return to_numpy(array_namespace(before).any(before != after, axis=1))

    def parts(self, n_columns: int) -> list[Any]:
        """All rows are one problem."""
        return [...]

    def stored_parts(self, offsets: np.ndarray | None) -> Iterable[tuple[int, slice]]:
        """All rows are one part."""
        return [(0, slice(None))]

    def as_rows(self, part: np.ndarray) -> np.ndarray:
        """Return the rows as they are."""
        return part

    def part_prior(self, prior: np.ndarray, part: int) -> np.ndarray:
        """Return the prior, which is that of the one part."""
        return prior

    def count_use(self, proba: Array, doubt: np.ndarray) -> np.ndarray:
        """How many rows without doubt are predicted to have each class."""
        return np.bincount(column_of_max(proba)[~doubt], minlength=proba.shape[1])


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

"""What the page shows of each kind of labels: rows of classes, or yes/no decisions.

A yes/no decision is a row of two classes, no and yes, like any other. The sample behind the sliders
numbers decisions label by label within a row, row after row.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from altnorm.method.kinds import LabelKind
from altnorm.report import _deep
from altnorm.report._case import Case
from altnorm.report._packing import pack
from altnorm.report._reference import Block, Reference
from altnorm.report.display import _measures as measures
from altnorm.report.display._records import ClassUse, Flows

Serving = list[tuple[np.ndarray, np.ndarray]]
"""Rows and weights of those rows of each block that serve."""


class RowView:
    """One class per row."""

    @staticmethod
    def flows(case: Case) -> Flows | None:
        """Rows that moved between each two classes."""
        return measures.flows(*case.decided, case.codes) if len(case.explanation) else None

    @staticmethod
    def balance(case: Case) -> dict[str, Any] | None:
        """How often each class is predicted before, and how often it occurs."""
        if case.codes is None:
            return None
        m = case.classes.size
        predicted = np.bincount(case.decided[0], minlength=m)
        return {"predicted": predicted, "occurs": np.bincount(case.codes, minlength=m)}

    @staticmethod
    def use(classes: np.ndarray, blocks: list[Block], serving: Serving) -> ClassUse:
        """What is expected of each class, and what the reference uses up."""
        rows, weight = serving[0]
        return measures.class_use(rows, blocks[0].prior, classes, weight)

    @staticmethod
    def factors(before: np.ndarray, after: np.ndarray) -> np.ndarray:
        """Typical factor of each class, among the rows that were touched."""
        rows = (before != after).any(axis=1)
        return measures.class_factors(before[rows], after[rows], relative=True)

    @staticmethod
    def rows_of(chosen: np.ndarray, n_columns: int) -> np.ndarray:
        """Row numbers of a sample."""
        return chosen

    @staticmethod
    def telling(case: Case) -> np.ndarray:
        """Every row counts for the accuracy."""
        return np.ones(case.ambiguity.shape, dtype=bool)

    @staticmethod
    def described(case: Case, chosen: np.ndarray, n_blocks: int, top: int) -> dict[str, Any]:
        """Each row by its most probable classes."""
        proba = case.before[chosen]
        index = _leading(proba, top)
        truth = np.full(chosen.size, -1) if case.codes is None else case.codes[chosen]
        return {
            "top": index.shape[1],
            "index": pack(index, "<u2"),
            "p": pack(np.take_along_axis(proba, index, axis=1)),
            "row": pack(chosen, "<u4"),
            "truth": pack(truth, "<i4"),
        }

    @staticmethod
    def outcome(
        case: Case, chosen: np.ndarray, reference: Reference, setting: tuple[float, int, float]
    ) -> np.ndarray:
        """Probabilities after the adjustment of the classes that `described` names."""
        rows = case.before[chosen]
        found = _deep.adjusted(
            rows, case.ambiguity[chosen], reference.blocks[0], reference, *setting
        )
        return _deep.quantized(np.take_along_axis(found, _leading(rows, _deep.TOP), axis=1))

    @staticmethod
    def counts(truth: np.ndarray, said: np.ndarray) -> dict[str, int]:
        """What the score needs of rows beside the number of right ones."""
        return {}


class EntryView:
    """All labels one yes/no problem."""

    @staticmethod
    def flows(case: Case) -> None:
        """Between yes and no there is nothing to draw."""

    @staticmethod
    def balance(case: Case) -> None:
        """Labels have no balance: a row may have any number of them."""

    @staticmethod
    def use(classes: np.ndarray, blocks: list[Block], serving: Serving) -> ClassUse:
        """What is expected of no and yes, and what the reference uses up."""
        rows, weight = serving[0]
        return measures.class_use(rows, blocks[0].prior, np.array(["no", "yes"]), weight)

    @staticmethod
    def factors(before: np.ndarray, after: np.ndarray) -> np.ndarray:
        """Typical factors of no and of yes, among the entries that were touched."""
        moved = before != after
        return measures.class_factors(
            *(np.stack([1 - p[moved], p[moved]], axis=1) for p in (before, after))
        )

    @staticmethod
    def rows_of(chosen: np.ndarray, n_columns: int) -> np.ndarray:
        """Row numbers of a sample."""
        return chosen // n_columns

    @staticmethod
    def telling(case: Case) -> np.ndarray:
        """Decisions that F1 depends on; they are rare, and sampled more densely."""
        near = case.before > 0.2
        return near if case.codes is None else near | (case.codes > 0)

    @staticmethod
    def described(case: Case, chosen: np.ndarray, n_blocks: int, top: int) -> dict[str, Any]:
        """Each decision as a row of two classes, no and yes."""
        row, label = np.divmod(chosen, case.before.shape[1])
        # Where each label has a reference of its own, it has two columns of the sums of its own.
        first = 2 * (label if n_blocks > 1 else np.zeros_like(label))
        truth = np.full(chosen.size, -1)
        if case.codes is not None:
            truth = first + case.codes.reshape(-1)[chosen].astype(int)
        return {
            "top": 2,
            "index": pack(np.stack([first, first + 1], axis=1), "<u2"),
            "p": pack(case.kind.as_rows(case.before.reshape(-1)[chosen])),
            "row": pack(row, "<u4"),
            "label": pack(label, "<u2"),
            "truth": pack(truth, "<i4"),
        }

    @staticmethod
    def outcome(
        case: Case, chosen: np.ndarray, reference: Reference, setting: tuple[float, int, float]
    ) -> np.ndarray:
        """Probabilities of no and yes after the adjustment."""
        ambiguity, proba = (v.reshape(-1)[chosen] for v in (case.ambiguity, case.before))
        found = case.kind.as_rows(proba)
        blocks, label = reference.blocks, chosen % case.before.shape[1]
        for j, block in enumerate(blocks):
            mine = label == j if len(blocks) > 1 else np.ones(label.size, dtype=bool)
            found[mine] = _deep.adjusted(found[mine], ambiguity[mine], block, reference, *setting)
        return _deep.quantized(found)

    @staticmethod
    def counts(truth: np.ndarray, said: np.ndarray) -> dict[str, int]:
        """What F1 needs of decisions beside the number of right ones."""
        return {"hits": int((truth & said).sum()), "named": int(truth.sum() + said.sum())}


class LabelView(EntryView):
    """Each label a yes/no problem of its own."""

    @staticmethod
    def use(classes: np.ndarray, blocks: list[Block], serving: Serving) -> ClassUse:
        """What is expected of each label, and what its reference uses up."""
        prior = np.array([block.prior[1] for block in blocks])
        used = np.array([np.average(rows[:, 1], weights=weight) for rows, weight in serving])
        return ClassUse(classes, prior, used)

    @staticmethod
    def factors(before: np.ndarray, after: np.ndarray) -> np.ndarray:
        """Typical factor of each label, among the entries that were touched."""
        moved = before != after
        return measures.class_factors(*(np.where(moved, p, 0.0) for p in (before, after)))


View = type[RowView] | type[EntryView]
_VIEWS: dict[str | None, View] = {None: RowView, "pairs": EntryView, "labelwise": LabelView}


def view_of(kind: LabelKind) -> View:
    """Return what the page shows of a kind of labels."""
    return _VIEWS[kind.multilabel]


def _leading(proba: np.ndarray, top: int) -> np.ndarray:
    """The most probable classes of each row."""
    return np.argsort(-proba, axis=1, kind="stable")[:, :top]

"""What kind of labels a problem has: one class per row, or several labels per row.

The question is asked once, at the door, as that for the array namespace is: `resolve_kind` answers
it, and whoever holds the kind need not ask again.
"""

from __future__ import annotations

from typing import Any

from altnorm._base.validation import check_choice
from altnorm.method.kinds._base import KindWords, LabelKind
from altnorm.method.kinds._several import Labelwise, Pairs
from altnorm.method.kinds._single import SingleLabel

__all__ = [
    "KindWords",
    "LabelKind",
    "Labelwise",
    "Pairs",
    "SingleLabel",
    "kind_of",
    "kind_of_labels",
    "resolve_kind",
]

_KINDS: tuple[type[LabelKind], ...] = (SingleLabel, Pairs, Labelwise)


def resolve_kind(multilabel: str | None) -> LabelKind:
    """Return the kind that the setting `multilabel` of an estimator stands for.

    Parameters
    ----------
    multilabel : None, "pairs" or "labelwise"
        As for :class:`~altnorm.AlternatingNormalizer`.

    Returns
    -------
    SingleLabel, Pairs or Labelwise
        The kind.
    """
    check_choice(multilabel, "multilabel", tuple(kind.multilabel for kind in _KINDS))
    return next(kind() for kind in _KINDS if kind.multilabel == multilabel)


def kind_of_labels(multilabel: bool) -> LabelKind:
    """Return the kind where no more is known than whether rows have several labels.

    How several labels share a reference and a prior then does not matter.
    """
    return Labelwise() if multilabel else SingleLabel()


def kind_of(estimator: Any) -> LabelKind:
    """Return the kind of labels that an estimator is for."""
    return resolve_kind(getattr(estimator, "multilabel", None))

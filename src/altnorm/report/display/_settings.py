"""Displays about the adjustment by class: class use, and rows fixed and broken."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from altnorm._base.errors import InputError
from altnorm.method.kinds import SingleLabel, kind_of, kind_of_labels
from altnorm.method.normalizer import AlternatingNormalizer
from altnorm.method.several_labels import label_slices
from altnorm.report.display._axes import (
    BROKEN,
    FIXED,
    INK,
    Display,
)
from altnorm.report.display._measures import class_changes, class_use
from altnorm.report.display._records import ClassChanges, ClassUse
from altnorm.report.evaluation import before_and_after


class _ClassDisplay(Display):
    """Base of the displays with one line per class, of which the most telling are drawn."""

    n_classes = 20

    def plot(self, ax: Any = None, *, n_classes: int = 20) -> Self:
        """Draw the classes where there is most to see.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to; None makes new axes.
        n_classes : int, default=20
            How many classes to show.

        Returns
        -------
        self : object
            The display, with `ax_`.
        """
        self.n_classes = n_classes
        return super().plot(ax)


class ClassUseDisplay(_ClassDisplay):
    """Class prior against what the reference rows use up; doubt is resolved between the two.

    Drawn are the classes where prior and use differ most.

    Parameters
    ----------
    use : ClassUse
        The shares.

    Examples
    --------
    >>> from altnorm import AlternatingNormalizer, load_demo
    >>> from altnorm.report.display import ClassUseDisplay
    >>> val = load_demo().validation
    >>> normalizer = AlternatingNormalizer().fit(val.proba, val.labels)
    >>> display = ClassUseDisplay.from_estimator(normalizer)
    >>> str(display.use.classes[display.use.ratio.argmax()])
    'oil_change_how'
    >>> display.plot(n_classes=10).ax_.get_xlabel()
    'share'
    """

    def __init__(self, use: ClassUse) -> None:
        self.use = use

    @classmethod
    def from_predictions(
        cls,
        proba: Any,
        *,
        prior: Any = None,
        classes: Any = None,
        threshold: float = 0.75,
        k_max: int = 10,
    ) -> ClassUseDisplay:
        """Compute what the rows that are not in doubt use up.

        Parameters
        ----------
        proba : array-like of shape (n_samples, n_classes)
            Probabilities; rows sum to 1.
        prior : array-like of shape (n_classes,), optional
            Class prior; None is uniform.
        classes : array-like of shape (n_classes,), optional
            Names.
        threshold : float, default=0.75
            Rows with an ambiguity of at most this count.
        k_max : int, default=10
            As for :func:`altnorm.ambiguity`.

        Returns
        -------
        ClassUseDisplay
            Not yet drawn.
        """
        rows = np.asarray(proba)
        m = rows.shape[1]
        sure = rows[SingleLabel().ambiguity(rows, k_max=k_max) <= threshold]
        if not len(sure):
            raise InputError(
                f"No row has an ambiguity of at most `threshold` {threshold:g}",
                remedy="Raise `threshold`.",
                code="normalizer",
            )
        expected = np.full(m, 1 / m) if prior is None else np.asarray(prior, dtype=np.float64)
        names = np.arange(m) if classes is None else np.asarray(classes)
        return cls(class_use(sure, expected / expected.sum(), names))

    @classmethod
    def from_estimator(cls, normalizer: Any) -> ClassUseDisplay:
        """Take reference and prior from a fitted normalizer.

        Parameters
        ----------
        normalizer : AlternatingNormalizer, AlternatingNormalizerCV or Adjuster
            Fitted; a tuned one must have adopted alternating normalization, which alone keeps a
            reference. What is shown makes the decisions; a calibration has no part in it.

        Returns
        -------
        ClassUseDisplay
            Not yet drawn.
        """
        inner = getattr(normalizer, "best_normalizer_", normalizer)
        if not isinstance(inner, AlternatingNormalizer):
            raise InputError(
                "The normalizer must keep a reference",
                f"it applies {type(inner).__name__}",
                "Use ClassUseDisplay.from_predictions.",
                value=type(inner).__name__,
                code="normalizer",
            )
        weight = inner.reference_weight_
        names = np.asarray(normalizer.classes_)
        if not kind_of(inner).is_multilabel:
            return cls(class_use(inner.reference_, inner.prior_, names, weight))
        used = _label_use(inner)
        if used.size == 1 < names.size:  # one reference for all labels
            names = np.array(["yes"])
        return cls(ClassUse(names, inner.prior_[: used.size], used))

    def _draw(self, ax: Any) -> None:
        prior, used = self.use.prior, self.use.used
        far = np.argsort(-np.abs(used - prior), kind="stable")[: self.n_classes]
        shown = far[np.argsort(used[far] - prior[far], kind="stable")]
        at = np.arange(shown.size)
        colours = [BROKEN if used[i] > prior[i] else FIXED for i in shown]
        ax.hlines(at, prior[shown], used[shown], color=colours, linewidth=2)
        ax.scatter(used[shown], at, color=colours, zorder=3, label="used by the reference")
        ax.scatter(prior[shown], at, color=INK, marker="|", s=120, zorder=4, label="prior")
        ax.set_yticks(at, [str(self.use.classes[i]) for i in shown])
        ax.set_xlabel("share")
        ax.legend(frameon=False)


def _label_use(inner: AlternatingNormalizer) -> np.ndarray:
    """Mean reference probability of yes, label by label; the prior where there is no reference."""
    weight = inner.reference_weight_
    weight = np.ones(inner.reference_.size) if weight is None else weight
    used = []
    for label, span in label_slices(inner.offsets_):
        total = float(weight[span].sum())
        mean = weight[span] @ inner.reference_[span] / total if total else inner.prior_[label]
        used.append(float(mean))
    return np.array(used)


class FixedBrokenDisplay(_ClassDisplay):
    """Rows that became right and wrong, by true class (by label in multi-label problems).

    Drawn are the classes that gain most, and those that lose most.

    Parameters
    ----------
    changes : ClassChanges
        The counts.
    classes : ndarray of shape (n_classes,)
        Names.

    Examples
    --------
    >>> from altnorm import AlternatingNormalizer, load_demo
    >>> from altnorm.report.display import FixedBrokenDisplay
    >>> demo = load_demo()
    >>> normalizer = AlternatingNormalizer().fit(demo.validation.proba, demo.validation.labels)
    >>> display = FixedBrokenDisplay.from_estimator(normalizer, demo.test.proba, demo.test.labels)
    >>> bool(display.changes.fixed.sum() > display.changes.broken.sum())
    True
    >>> display.plot(n_classes=12).ax_.get_xlabel()
    'rows broken and fixed'
    """

    def __init__(self, changes: ClassChanges, classes: np.ndarray) -> None:
        self.changes = changes
        self.classes = classes

    @classmethod
    def from_predictions(
        cls, y_true: Any, before: Any, after: Any, *, classes: Any = None
    ) -> FixedBrokenDisplay:
        """Count the rows.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,) or (n_samples, n_labels)
            Class codes 0 .. m-1, or a 0/1 matrix.
        before, after : array-like of shape (n_samples, n_classes)
            Probabilities.
        classes : array-like of shape (n_classes,), optional
            Names.

        Returns
        -------
        FixedBrokenDisplay
            Not yet drawn.
        """
        truth, m = np.asarray(y_true), np.shape(before)[1]
        kind = kind_of_labels(truth.ndim == 2)
        old, new = (kind.decide(np.asarray(proba)) for proba in (before, after))
        names = np.arange(m) if classes is None else np.asarray(classes)
        return cls(class_changes(old, new, m, truth), names)

    @classmethod
    def from_estimator(cls, normalizer: Any, proba: Any, y: Any) -> FixedBrokenDisplay:
        """Count the rows that a fitted normalizer fixes and breaks.

        Parameters
        ----------
        normalizer : AlternatingNormalizer or another fitted transformer of altnorm
            What to apply.
        proba : array-like of shape (n_samples, n_classes)
            What the normalizer's `transform` takes.
        y : array-like
            Labels out of ``normalizer.classes_``, or a 0/1 matrix for multi-label problems.

        Returns
        -------
        FixedBrokenDisplay
            Not yet drawn.
        """
        before, after = before_and_after(normalizer, proba)
        kind, classes = kind_of(normalizer), normalizer.classes_
        truth = kind.encode(kind.check_labels(y, before.shape), classes)
        return cls.from_predictions(truth, before, after, classes=classes)

    def _draw(self, ax: Any) -> None:
        assert self.changes.fixed is not None
        assert self.changes.broken is not None
        fixed, broken = self.changes.fixed, self.changes.broken
        order = np.argsort(fixed - broken, kind="stable")
        order = order[(fixed + broken)[order] > 0]
        if order.size > self.n_classes:
            n_worst = min(self.n_classes // 3, int((fixed < broken).sum()))
            n_best = self.n_classes - n_worst
            order = np.concatenate([order[:n_worst], order[order.size - n_best :]])
        shown, at = order, np.arange(order.size)
        ax.barh(at, fixed[shown], color=FIXED, label="fixed")
        ax.barh(at, -broken[shown], color=BROKEN, label="broken")
        ax.axvline(0, color=INK, linewidth=1)
        ax.set_yticks(at, [str(self.classes[i]) for i in shown])
        ax.set_xlabel("rows broken and fixed")
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.xaxis.set_major_formatter(lambda value, _: f"{abs(value):g}")
        ax.legend(frameon=False)

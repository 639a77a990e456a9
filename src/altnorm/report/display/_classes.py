"""The display with one line per class: rows fixed and broken."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from altnorm._base.normalizer import FittedNormalizer
from altnorm.report.display._axes import BROKEN, FIXED, INK, Display, apply_labelled
from altnorm.report.measures import ClassChanges, class_changes


class FixedBrokenDisplay(Display):
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

    n_classes = 20

    def __init__(self, changes: ClassChanges, classes: np.ndarray) -> None:
        self.changes = changes
        self.classes = classes

    @classmethod
    def from_predictions(
        cls, y_true: Any, before: Any, after: Any, *, classes: Any
    ) -> FixedBrokenDisplay:
        """Count the rows.

        Parameters
        ----------
        y_true, before, after : array-like of shape (n_samples,) or (n_samples, n_labels)
            True and decided class codes 0 .. m-1, or 0/1 matrices.
        classes : array-like of shape (n_classes,)
            Names.

        Returns
        -------
        FixedBrokenDisplay
            Not yet drawn.
        """
        truth, old, new = (np.asarray(codes) for codes in (y_true, before, after))
        names = np.asarray(classes)
        return cls(class_changes(old, new, names.size, truth), names)

    @classmethod
    def from_estimator(cls, normalizer: FittedNormalizer, proba: Any, y: Any) -> FixedBrokenDisplay:
        """Count the rows that a fitted transformer fixes and breaks.

        Parameters
        ----------
        normalizer : Adjuster or another fitted transformer of altnorm
            What to apply; its `predict` decides.
        proba : array-like of shape (n_samples, n_classes)
            What the normalizer's `transform` takes.
        y : array-like
            Labels out of ``normalizer.classes_``, or a 0/1 matrix for multi-label problems.

        Returns
        -------
        FixedBrokenDisplay
            Not yet drawn.
        """
        truth, (_, _, old, new) = apply_labelled(normalizer, proba, y)
        return cls.from_predictions(truth, old, new, classes=normalizer.classes_)

    def plot(self, ax: Any = None, *, n_classes: int = 20) -> Self:
        """Draw the classes where there is most to see.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to; None makes new axes.
        n_classes : int, default=20
            How many classes to show: half of them from each end.

        Returns
        -------
        self : object
            The display, with `ax_`.
        """
        self.n_classes = n_classes
        return super().plot(ax)

    def _draw(self, ax: Any) -> None:
        assert self.changes.fixed is not None
        assert self.changes.broken is not None
        fixed, broken = self.changes.fixed, self.changes.broken
        order = np.argsort(fixed - broken, kind="stable")
        shown = order[(fixed + broken)[order] > 0]
        if shown.size > self.n_classes:
            low = self.n_classes // 2
            shown = np.concatenate([shown[:low], shown[shown.size - self.n_classes + low :]])
        at = np.arange(shown.size)
        ax.barh(at, fixed[shown], color=FIXED, label="fixed")
        ax.barh(at, -broken[shown], color=BROKEN, label="broken")
        ax.axvline(0, color=INK, linewidth=1)
        ax.set_yticks(at, [str(self.classes[i]) for i in shown])
        ax.set_xlabel("rows broken and fixed")
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.xaxis.set_major_formatter(lambda value, _: f"{abs(value):g}")
        ax.legend(frameon=False)

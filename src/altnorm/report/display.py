"""Figures for notebooks: scikit-learn-style displays that compute once and draw later.

Each display has `from_predictions` and `from_estimator`, which compute, and `plot`, which draws on
a matplotlib axes. The numbers come from :mod:`altnorm.report.measures`, as those of the report do.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np

from altnorm._base.errors import InputError
from altnorm.estimator.kinds import FittedModel, kind_of
from altnorm.evidence.drawing import AFTER, BEFORE, BROKEN, FIXED, INK, draw_coverage, find_axes
from altnorm.evidence.promise import Coverage, coverage_of
from altnorm.report.evaluation import Applied, apply
from altnorm.report.measures import ClassChanges, Reliability, class_changes, ends, reliability

__all__ = ["CoverageDisplay", "FixedBrokenDisplay", "ReliabilityDisplay"]


class Display:
    """Base of the displays: `plot` finds the axes, `_draw` of a subclass draws on them."""

    @classmethod
    def from_estimator(cls, model: FittedModel, proba: Any, y: Any, **options: Any) -> Self:
        """Compute the figure for a fitted transformer on labelled rows.

        Parameters
        ----------
        model : Adjuster or another fitted transformer of altnorm
            What to apply.
        proba : array-like of shape (n_samples, n_classes)
            What its `transform` takes, of rows that it was not fitted on.
        y : array-like
            Labels out of ``model.classes_``, or a 0/1 matrix for multi-label problems.
        **options
            Those of `from_predictions`.
        """
        kind, applied = kind_of(model), apply(model, proba)
        labels = kind.check_labels(y, applied.before.shape)
        truth = kind.encode(labels, model.classes_)
        return cls._from_applied(applied._replace(truth=truth), model, **options)

    @classmethod
    def _from_applied(cls, applied: Applied, model: FittedModel, **options: Any) -> Self:
        raise NotImplementedError

    def plot(self, ax: Any = None, **options: Any) -> Self:
        """Draw on a matplotlib axes, on new ones without `ax`; they are in `ax_` afterwards."""
        self.ax_ = find_axes(ax)
        self._draw(self.ax_, **options)
        return self

    def _draw(self, ax: Any) -> None:
        raise NotImplementedError


@dataclass(repr=False, eq=False)
class CoverageDisplay(Display):
    """Accuracy among the rows decided against their share, the most confident rows first.

    How much can be decided alone, before and after an adjustment, with the interval of the
    accuracy after it.

    Parameters
    ----------
    before : Coverage
        Without the adjustment.
    after : Coverage, optional
        With it.
    target : float, optional
        Accuracy that the decided rows must have; drawn as a line. `from_estimator` takes that of
        the estimator.
    share : float, optional
        Share of the rows that is decided; drawn as a point.

    Examples
    --------
    >>> from altnorm import load_demo
    >>> from altnorm.report.display import CoverageDisplay
    >>> test = load_demo().test
    >>> display = CoverageDisplay.from_predictions(test.codes, test.proba, target=0.95)
    >>> before = display.before
    >>> print(f"{before.accuracy[-1]:.2f} of all are right, {before.accuracy[999]:.2f} of 1,000")
    0.71 of all are right, 0.99 of 1,000
    >>> display.plot().ax_.get_xlabel()
    'share of the rows decided'
    """

    before: Coverage
    after: Coverage | None = None
    _: KW_ONLY
    target: float | None = None
    share: float | None = None

    @classmethod
    def from_predictions(
        cls, y_true: Any, before: Any, after: Any = None, **options: float | None
    ) -> Self:
        """Compute the accuracy at every share, from class codes 0 .. m-1 and probabilities.

        The most probable class is what is decided; `options` are `target` and `share`.
        """
        truth = np.asarray(y_true)
        if truth.ndim != 1:
            rule, offender = "`y_true` must have one class per row", f"its shape is {truth.shape}"
            remedy = "Of several labels per row, look at each on its own."
            raise InputError(rule, offender, remedy, value=truth.shape, code="shape")
        adjusted = None if after is None else coverage_of(np.asarray(after), truth)
        return cls(coverage_of(np.asarray(before), truth), adjusted, **options)

    @classmethod
    def _from_applied(cls, applied: Applied, model: FittedModel, **options: Any) -> Self:
        target = getattr(model, "target_accuracy", None)
        decided = None if applied.undecided is None else float(1 - applied.undecided.mean())
        sides = applied.truth, applied.before, applied.after
        return cls.from_predictions(*sides, **{"target": target, "share": decided, **options})

    def _draw(self, ax: Any) -> None:
        draw_coverage(ax, self.before, self.after, target=self.target, share=self.share)


@dataclass(repr=False, eq=False)
class FixedBrokenDisplay(Display):
    """Rows that became right and wrong, by true class (by label in multi-label problems).

    Of the classes ``plot(n_classes=20)`` draws those that gain most and, up to half of that number,
    those that lose most.

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
    >>> model = AlternatingNormalizer().fit(demo.validation.proba, demo.validation.labels)
    >>> display = FixedBrokenDisplay.from_estimator(model, demo.test.proba, demo.test.labels)
    >>> bool(display.changes.fixed.sum() > display.changes.broken.sum())
    True
    >>> display.plot(n_classes=12).ax_.get_xlabel()
    'rows broken and fixed'
    """

    changes: ClassChanges
    classes: np.ndarray

    @classmethod
    def from_predictions(cls, y_true: Any, before: Any, after: Any, *, classes: Any) -> Self:
        """Count the rows, from true and decided class codes 0 .. m-1, or from 0/1 matrices."""
        truth, old, new = (np.asarray(codes) for codes in (y_true, before, after))
        names = np.asarray(classes)
        return cls(class_changes(old, new, names.size, truth), names)

    @classmethod
    def _from_applied(cls, applied: Applied, model: FittedModel, **options: Any) -> Self:
        decided = applied.truth, applied.old, applied.new
        return cls.from_predictions(*decided, classes=model.classes_, **options)

    def _draw(self, ax: Any, *, n_classes: int = 20) -> None:
        (fixed, broken), shown = self.changes, ends(*self.changes, n_classes)[::-1]
        at = np.arange(shown.size)
        ax.barh(at, fixed[shown], color=FIXED, label="fixed")
        ax.barh(at, -broken[shown], color=BROKEN, label="broken")
        ax.axvline(0, color=INK, linewidth=1)
        ax.set_yticks(at, [str(self.classes[i]) for i in shown])
        ax.set_xlabel("rows broken and fixed")
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.xaxis.set_major_formatter(lambda value, _: f"{abs(value):g}")
        ax.legend(frameon=False)


@dataclass(repr=False, eq=False)
class ReliabilityDisplay(Display):
    """Confidence against the share that is right, before and after an adjustment.

    Parameters
    ----------
    before : Reliability
        Without the adjustment.
    after : Reliability, optional
        With it.

    Examples
    --------
    >>> from altnorm import load_demo
    >>> from altnorm.report.display import ReliabilityDisplay
    >>> test = load_demo().test
    >>> display = ReliabilityDisplay.from_predictions(test.codes, test.proba)
    >>> round(display.before.error, 2)
    0.03
    >>> display.plot().ax_.get_xlabel()
    'confidence'
    """

    before: Reliability
    after: Reliability | None = None

    @classmethod
    def from_predictions(
        cls, y_true: Any, before: Any, after: Any = None, *, n_bins: int = 12
    ) -> Self:
        """Compute `n_bins` bins of equally many predictions, from class codes or a 0/1 matrix."""
        truth = np.asarray(y_true)
        sides = [np.asarray(proba) for proba in (before, after) if proba is not None]
        return cls(*(reliability(proba, truth, n_bins=n_bins) for proba in sides))

    @classmethod
    def _from_applied(cls, applied: Applied, model: FittedModel, **options: Any) -> Self:
        return cls.from_predictions(applied.truth, applied.before, applied.after, **options)

    def _draw(self, ax: Any) -> None:
        ax.plot([0, 1], [0, 1], color=INK, linestyle=":", linewidth=1)
        for side, name, colour in ((self.before, "before", BEFORE), (self.after, "after", AFTER)):
            if side is not None:
                label = f"{name}, error {side.error:.3f}"
                ax.plot(side.confidence, side.right, "o-", color=colour, label=label)
        ax.set(
            xlabel="confidence", ylabel="share that is right", xlim=(0, 1), ylim=(0, 1), aspect=1
        )
        ax.legend(frameon=False)

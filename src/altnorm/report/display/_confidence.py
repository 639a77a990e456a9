"""Displays about confidence: ambiguity and calibration."""

from __future__ import annotations

from typing import Any

import numpy as np

from altnorm.method.estimator import read_before
from altnorm.method.kinds import kind_of, resolve_kind
from altnorm.report.display._axes import AFTER, BEFORE, INK, Display
from altnorm.report.display._measures import ambiguity_histogram, reliability
from altnorm.report.display._records import AmbiguityHistogram, Reliability
from altnorm.report.evaluation import before_and_after


class AmbiguityDisplay(Display):
    """How ambiguous predictions are, with the threshold above which they are in doubt.

    What is in doubt is drawn in colour.

    Parameters
    ----------
    histogram : AmbiguityHistogram
        The counts.

    Examples
    --------
    >>> from altnorm import load_demo
    >>> from altnorm.report.display import AmbiguityDisplay
    >>> display = AmbiguityDisplay.from_predictions(load_demo().test.proba, threshold=0.5)
    >>> int(display.histogram.count.sum())
    4500
    >>> display.plot().ax_.get_xlabel()
    'ambiguity'
    """

    def __init__(self, histogram: AmbiguityHistogram) -> None:
        self.histogram = histogram

    @classmethod
    def from_predictions(
        cls,
        proba: Any,
        *,
        threshold: float | None = 0.75,
        k_max: int = 10,
        multilabel: str | None = None,
        bins: int = 40,
    ) -> AmbiguityDisplay:
        """Compute the ambiguity of each row.

        Parameters
        ----------
        proba : array-like of shape (n_samples, n_classes)
            Probabilities.
        threshold : float or None, default=0.75
            Where doubt begins.
        k_max : int, default=10
            As for :func:`altnorm.ambiguity`.
        multilabel : None, "pairs" or "labelwise", default=None
            As for :class:`~altnorm.AlternatingNormalizer`; None if rows sum to 1.
        bins : int, default=40
            Number of bins.

        Returns
        -------
        AmbiguityDisplay
            Not yet drawn.
        """
        ambiguity = resolve_kind(multilabel).ambiguity(np.asarray(proba), k_max=k_max)
        return cls(ambiguity_histogram(ambiguity, threshold=threshold, bins=bins))

    @classmethod
    def from_estimator(cls, normalizer: Any, proba: Any, *, bins: int = 40) -> AmbiguityDisplay:
        """Compute the ambiguity of each row, with the threshold of a fitted normalizer.

        Parameters
        ----------
        normalizer : AlternatingNormalizer or another fitted transformer of altnorm
            Families that do not look at the ambiguity have no threshold, and none is drawn.
        proba : array-like of shape (n_samples, n_classes)
            What the normalizer's `transform` takes.
        bins : int, default=40
            As for `from_predictions`.

        Returns
        -------
        AmbiguityDisplay
            Not yet drawn.
        """
        inner = getattr(normalizer, "best_normalizer_", normalizer)
        kind = kind_of(normalizer)
        before = read_before(normalizer, proba)
        ambiguity = kind.ambiguity(before, k_max=getattr(normalizer, "k_max", 10))
        threshold = getattr(inner, "threshold", None)
        return cls(ambiguity_histogram(ambiguity, threshold=threshold, bins=bins))

    def _draw(self, ax: Any) -> None:
        edges, threshold = self.histogram.edges, self.histogram.threshold
        limit = np.inf if threshold is None else threshold
        colours = [AFTER if low >= limit - 1e-9 else BEFORE for low in edges[:-1]]
        ax.bar(edges[:-1], self.histogram.count, np.diff(edges) * 0.9, align="edge", color=colours)
        if threshold is not None:
            ax.axvline(threshold, color=INK, linestyle=":", linewidth=1)
            share = self.histogram.count[edges[:-1] >= threshold - 1e-9].sum()
            share = share / max(1, self.histogram.count.sum())
            ax.set_title(f"{share:.0%} in doubt (τ = {threshold:g})", loc="left")
        ax.set(xlabel="ambiguity", ylabel="rows", xlim=(0, 1))


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

    def __init__(self, before: Reliability, after: Reliability | None = None) -> None:
        self.before = before
        self.after = after

    @classmethod
    def from_predictions(
        cls, y_true: Any, before: Any, after: Any = None, *, n_bins: int = 12
    ) -> ReliabilityDisplay:
        """Compute bins of equally many predictions.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,) or (n_samples, n_labels)
            Class codes 0 .. m-1, or a 0/1 matrix.
        before, after : array-like of shape (n_samples, n_classes)
            Probabilities.
        n_bins : int, default=12
            Number of bins.

        Returns
        -------
        ReliabilityDisplay
            Not yet drawn.
        """
        truth = np.asarray(y_true)
        sides = [None if p is None else np.asarray(p) for p in (before, after)]
        found = [None if p is None else reliability(p, truth, n_bins=n_bins) for p in sides]
        assert found[0] is not None
        return cls(found[0], found[1])

    @classmethod
    def from_estimator(
        cls, normalizer: Any, proba: Any, y: Any, *, n_bins: int = 12
    ) -> ReliabilityDisplay:
        """Compute both sides of a fitted normalizer.

        Parameters
        ----------
        normalizer : AlternatingNormalizer or another fitted transformer of altnorm
            What to apply.
        proba : array-like of shape (n_samples, n_classes)
            What the normalizer's `transform` takes.
        y : array-like
            Labels out of ``normalizer.classes_``, or a 0/1 matrix for multi-label problems.
        n_bins : int, default=12
            Number of bins.

        Returns
        -------
        ReliabilityDisplay
            Not yet drawn.
        """
        before, after = before_and_after(normalizer, proba)
        kind = kind_of(normalizer)
        truth = kind.encode(kind.check_labels(y, before.shape), normalizer.classes_)
        return cls.from_predictions(truth, before, after, n_bins=n_bins)

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

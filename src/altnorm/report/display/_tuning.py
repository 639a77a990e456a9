"""The display of what tuning found."""

from __future__ import annotations

from typing import Any

import numpy as np

from altnorm._base.errors import InputError
from altnorm.report.display._axes import BEFORE, DEPTHS, INK, find_axes
from altnorm.report.display._measures import tuning_curves
from altnorm.report.display._records import TuningCurves

_ALPHA_TICKS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50)


class TuningDisplay:
    """Cross-fitted score against the exponent, for each depth and threshold.

    Parameters
    ----------
    curves : TuningCurves
        The scores.
    instead : str, optional
        Another family that was adopted instead of alternating normalization; the title says so.

    Examples
    --------
    >>> import numpy as np
    >>> from altnorm import AlternatingNormalizerCV
    >>> from altnorm.report.display import TuningDisplay
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(3, size=300)
    >>> proba = np.exp(rng.normal(size=(300, 3)) + 1.5 * np.eye(3)[y] + [1.5, 0, 0])
    >>> proba /= proba.sum(axis=1, keepdims=True)
    >>> tuned = AlternatingNormalizerCV(alphas=(0.5, 1, 2), depths=(1,), random_state=0)
    >>> display = TuningDisplay.from_estimator(tuned.fit(proba, y))
    >>> [curve.threshold for curve in display.curves.curves]
    [0.25, 0.5, 0.75]
    >>> display.plot(threshold=0.5).ax_.get_xlabel()
    'exponent α'
    """

    def __init__(self, curves: TuningCurves, instead: str | None = None) -> None:
        self.curves = curves
        self.instead = instead

    @classmethod
    def from_estimator(cls, normalizer: Any) -> TuningDisplay:
        """Take the results of a tuned normalizer.

        Parameters
        ----------
        normalizer : AlternatingNormalizerCV or Adjuster
            Fitted, with alternating normalization among its families.

        Returns
        -------
        TuningDisplay
            Not yet drawn.
        """
        results = normalizer.cv_results_
        if "alpha" not in results:
            raise InputError(
                "The normalizer must have tried alternating normalization",
                f"it tried {', '.join(np.unique(results['family']))}",
                "Add 'alternating' to `families`.",
                value=tuple(np.unique(results["family"])),
                code="not_supported",
            )
        family = getattr(normalizer, "family_", None)
        curves = tuning_curves(results, normalizer.best_params_)
        return cls(curves, None if family == "alternating" else family)

    def plot(self, ax: Any = None, *, threshold: float | None = None) -> TuningDisplay:
        """Draw one line for each depth, the best setting ringed.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to; None makes new axes.
        threshold : float, optional
            Which threshold to show; None takes that of the best setting.

        Returns
        -------
        TuningDisplay
            Itself, with `ax_`.
        """
        self.ax_ = find_axes(ax)
        best = self.curves.best
        shown = best["threshold"] if threshold is None else threshold
        for curve in self.curves.curves:
            if curve.threshold == shown:
                colour = DEPTHS[min(curve.depth, len(DEPTHS)) - 1]
                label = f"depth {curve.depth}"
                self.ax_.plot(curve.alpha, curve.score, "o-", color=colour, ms=4, label=label)
        self.ax_.axhline(self.curves.base, color=BEFORE, ls="--", lw=1, label="no adjustment")
        if shown == best["threshold"]:
            self.ax_.scatter(
                best["alpha"], best["score"], s=140, facecolors="none", edgecolors=INK, zorder=4
            )
        self.ax_.set(xscale="log", xlabel="exponent α", ylabel="score, cross-fitted")
        tried = np.concatenate([curve.alpha for curve in self.curves.curves])
        marks = [a for a in _ALPHA_TICKS if tried.min() <= a <= tried.max()]
        self.ax_.set_xticks(marks, [f"{a:g}" for a in marks])
        self.ax_.set_xticks([], minor=True)
        instead = "" if self.instead is None else f"; adopted instead: {self.instead}"
        self.ax_.set_title(f"τ = {shown:g}{instead}", loc="left")
        self.ax_.legend(frameon=False)
        return self

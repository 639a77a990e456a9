"""AlternatingNormalizerCV: alternating normalization alone, tuned and judged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from altnorm.adjuster.estimator import BaseAdjuster
from altnorm.adjuster.settings import PAPER_ALPHAS, PAPER_DEPTHS, PAPER_THRESHOLDS, Grid


class AlternatingNormalizerCV(BaseAdjuster):
    r"""Alternating normalization, tuned on validation data and adopted only on evidence.

    The single-family form of :class:`Adjuster`, without calibration. Settings are compared by
    *cross-fitting*: a validation row is adjusted only against reference rows, and with a prior,
    from other folds. Tuned on its own references, as published, the method looks better than it is,
    because the doubtful rows are the complement of the confident ones and the labels leak through
    the class balance.

    Whether there is anything to gain is decided on a small menu of settings fixed beforehand; which
    setting is applied, by the whole search. Unless the evidence passes `significance`, `transform`
    changes nothing.

    Parameters
    ----------
    alphas : sequence of float, default=0.1, .., 0.9, 1, .., 35
        Exponents to try: every third first, then those near the best.
    depths : sequence of int, default=1, .., 5
        Numbers of iterations to try. The best exponents go deeper than 1, each with the
        threshold, reference and smoothing that suit it best.
    thresholds : sequence of float, default=(0.25, 0.5, 0.75)
        Ambiguity thresholds to try.
    references : sequence of {"confident", "all"}, default=("confident", "all")
        References to try.
    smoothings : sequence of float, default=(0.0, 0.1, 1.0)
        Smoothings to try.
    prior, scoring, cv, n_repeats, significance, multilabel, decision, n_jobs, random_state, verbose
        As for :class:`Adjuster`.
    k_max, input
        As for :class:`AlternatingNormalizer`.

    Attributes
    ----------
    best_params_ : dict
        The settings with the best cross-fitted score, adopted or not.
    best_normalizer_ : AlternatingNormalizer or Identity
        What `transform` applies: the best settings, fitted on all validation rows, or identity.
    verdict_ : Verdict
        The evidence, on rows that had no part in the choice.
    cv_results_ : dict of ndarray
        The settings tried, one entry each: "alpha", "depth", "threshold", "reference",
        "smoothing", "score" (cross-fitted), "gain" over no adjustment, "n_changed", "rank".
    shift_, shift_calibrator_, shift_matrix_, shift_profile_, classes_, n_features_in_
        As for :class:`Adjuster`.

    Examples
    --------
    >>> import numpy as np
    >>> from altnorm import AlternatingNormalizerCV
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(3, size=600)
    >>> scores = rng.normal(size=(600, 3)) + 1.5 * np.eye(3)[y] + [1.5, 0, 0]  # favours class 0
    >>> proba = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    >>> normalizer = AlternatingNormalizerCV().fit(proba, y)
    >>> normalizer.verdict_.adopted
    True
    """

    families = ("alternating",)
    calibrate = False

    def __init__(
        self,
        alphas: Sequence[float] = PAPER_ALPHAS,
        depths: Sequence[int] = PAPER_DEPTHS,
        thresholds: Sequence[float] = PAPER_THRESHOLDS,
        *,
        references: Sequence[str] = ("confident", "all"),
        smoothings: Sequence[float] = (0.0, 0.1, 1.0),
        prior: Any = "shrunk",
        scoring: Any = None,
        cv: Any = 5,
        n_repeats: int = 8,
        significance: float = 0.05,
        k_max: int = 10,
        multilabel: str | None = None,
        decision: str = "threshold",
        input: str = "proba",
        n_jobs: int | None = None,
        random_state: Any = 0,
        verbose: int = 0,
    ) -> None:
        self.alphas = alphas
        self.depths = depths
        self.thresholds = thresholds
        self.references = references
        self.smoothings = smoothings
        self.prior = prior
        self.scoring = scoring
        self.cv = cv
        self.n_repeats = n_repeats
        self.significance = significance
        self.k_max = k_max
        self.multilabel = multilabel
        self.decision = decision
        self.input = input
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _grid(self) -> Grid:
        return Grid(self.alphas, self.depths, self.thresholds, self.references, self.smoothings)

"""Adjuster: the best decisions and probabilities that the labels support."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from altnorm._base.errors import InputError
from altnorm._base.validation import check_choice
from altnorm.adjuster.estimator import BaseAdjuster
from altnorm.adjuster.settings import (
    FAMILIES,
    PAPER_ALPHAS,
    PAPER_DEPTHS,
    PAPER_THRESHOLDS,
    Grid,
)

_GRID = Grid(PAPER_ALPHAS, PAPER_DEPTHS, PAPER_THRESHOLDS, ("confident", "all"), (0.0, 0.1, 1.0))


class Adjuster(BaseAdjuster):
    r"""Better decisions and probabilities from validation labels, adopted only on evidence.

    Three families compete on rows that had no part in their fits:

    - "alternating": alternating normalization, the method of [1]_ with all its settings. It changes
      only rows in doubt and needs few labels.
    - "bias": a temperature and one bias for each class [2]_, shrunk towards zero or towards what
      the class prior suggests.
    - "matrix": the score of a class may depend on the probabilities of all others [3]_, held back
      by a penalty that expects many small confusions, or few large ones. It repairs confusions of
      pairs of classes, which the other two cannot. It competes where there are at least 5 labels
      per class, and rows times classes squared do not exceed 10^9: beyond that its fits would take
      longer than all else.

    One test at the full level decides whether anything is adopted (`verdict_`); if not, decisions
    stay as they are. Then probabilities are calibrated without changing a decision, if that lowers
    the log-loss (`calibration_`).

    Parameters
    ----------
    families : sequence of {"alternating", "bias", "matrix"}, default=all three
        Which families compete. Multi-label problems have "alternating" only.
    scoring : str, callable or None, default=None
        What to maximise; see :func:`altnorm.evidence.metrics.resolve_scoring`. None is accuracy,
        and micro-F1 for multi-label problems.
    calibrate : bool, default=True
        Whether to calibrate probabilities. With False, and "alternating" adopted, rows that are
        not in doubt come back bit for bit.
    cv : int or splitter, default=5
        Number of folds, into which the rows are dealt at random, or a scikit-learn splitter.
    significance : float, default=0.05
        Significance level, two-sided; only gains are adopted.
    prior : None, "counted", "uniform", "shrunk" or array, default="shrunk"
        Class prior, as for :class:`AlternatingNormalizer`.
    multilabel, input, k_max
        As for :class:`AlternatingNormalizer`.
    decision : {"threshold", "argmax_or_threshold"}, default="threshold"
        For multi-label problems, how probabilities become labels; see
        :func:`altnorm.evidence.metrics.decide`.
    n_repeats : int, default=8
        How often the rows are dealt into folds at most. Dealing stops as soon as more of it could
        no longer change the answer. With a splitter there is one dealing.
    n_jobs : int, optional
        Number of threads; None is 1, -1 is all cores.
    random_state : int or RandomState, default=0
        Deals the rows out to folds.
    verbose : int, default=0
        Whether to show a progress bar (needs Rich).

    Attributes
    ----------
    verdict_ : Verdict
        The evidence for the decisions, with `cautions`.
    families_ : dict of Verdict
        The evidence for each family on its own.
    family_ : str or None
        The family that was adopted, or None.
    best_params_ : dict
        The setting with the best cross-fitted score, adopted or not.
    best_normalizer_ : AlternatingNormalizer, ShrunkBias, MatrixScaling or Identity
        What makes the decisions: the best setting, fitted on all validation rows, or identity.
    calibration_ : Verdict or None
        The evidence for the calibration, on log-loss.
    temperatures_ : ndarray of shape (2,) or None
        Temperatures of the rows that the family touches and of the others, if these calibrate.
    calibrator_ : ShrunkBias, MatrixScaling or None
        What calibrates otherwise.
    cv_results_ : dict of ndarray
        The settings tried, one entry each: "family", their parameters, "score" (cross-fitted),
        "gain" over no adjustment, "n_changed", "rank".
    shift_ : Shift
        On copies that `adapt` returned: the test, the class balance before and after, the reason.
    shift_calibrator_ : ShrunkBias or None
        What calibrates predictions for the tests of `adapt`; None for multi-label problems.
    shift_matrix_ : MatrixScaling or None
        What calibrates them for the estimate of the balance, where it is better at that.
    shift_profile_ : tuple of ndarray or None
        Sums over the validation rows and some of these, calibrated, for `adapt`.
    classes_ : ndarray of shape (n_classes,)
        The class each column stands for.
    n_features_in_ : int
        Number of classes.

    References
    ----------
    .. [1] Jia, Reiter, Lim, Artzi, Cardie. When in Doubt: Improving Classification Performance
           with Alternating Normalization. Findings of EMNLP 2021.
    .. [2] Alexandari, Kundaje, Shrikumar. Maximum likelihood with bias-corrected calibration is
           hard-to-beat at label shift adaptation. ICML 2020.
    .. [3] Guo, Pleiss, Sun, Weinberger. On calibration of modern neural networks. ICML 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from altnorm import Adjuster
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(3, size=600)
    >>> scores = rng.normal(size=(600, 3)) + 1.5 * np.eye(3)[y] + [1.5, 0, 0]  # favours class 0
    >>> proba = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    >>> adjuster = Adjuster().fit(proba, y)
    >>> adjuster.verdict_.adopted, adjuster.family_
    (True, 'bias')
    >>> better = adjuster.transform(proba)
    """

    def __init__(
        self,
        families: Sequence[str] = FAMILIES,
        *,
        scoring: Any = None,
        calibrate: bool = True,
        cv: Any = 5,
        significance: float = 0.05,
        prior: Any = "shrunk",
        multilabel: str | None = None,
        decision: str = "threshold",
        input: str = "proba",
        k_max: int = 10,
        n_repeats: int = 8,
        n_jobs: int | None = None,
        random_state: Any = 0,
        verbose: int = 0,
    ) -> None:
        self.families = families
        self.scoring = scoring
        self.calibrate = calibrate
        self.cv = cv
        self.significance = significance
        self.prior = prior
        self.multilabel = multilabel
        self.decision = decision
        self.input = input
        self.k_max = k_max
        self.n_repeats = n_repeats
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _grid(self) -> Grid:
        return _GRID

    def _check_params(self) -> None:
        super()._check_params()
        if isinstance(self.families, str) or not len(self.families):
            raise InputError(
                "`families` must hold at least one family",
                f"it is {self.families!r}",
                "Pass for example families=('alternating',).",
                value=self.families,
                code="parameter",
            )
        for family in self.families:
            check_choice(family, "families", FAMILIES)

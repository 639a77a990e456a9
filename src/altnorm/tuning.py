"""AlternatingNormalizerCV: chooses the settings by cross-fitting, and identity without evidence."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from numbers import Integral
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight

from altnorm._estimator import ProbabilityTransformer
from altnorm._kinds import kind_of
from altnorm._progress import track
from altnorm._validation import InputError, check_choice, check_integer, check_level, check_positive
from altnorm.explanation import Explanation
from altnorm.metrics import resolve_scoring
from altnorm.peers import Identity
from altnorm.reference import REFERENCES
from altnorm.refine import BiasCrossFit, PriorGuidedBias, best_bias
from altnorm.search import Scored, Setting, assign_folds, choose
from altnorm.selection import Dealing, Plan, Validation, make_plan
from altnorm.verdict import Verdict, compare_predictions

__all__ = ["AlternatingNormalizerCV"]

PAPER_ALPHAS = (*(round(0.1 * i, 1) for i in range(1, 10)), *(float(i) for i in range(1, 36)))
PAPER_DEPTHS = (1, 2, 3, 4, 5)
PAPER_THRESHOLDS = (0.25, 0.5, 0.75)


class AlternatingNormalizerCV(ProbabilityTransformer):
    r"""Alternating normalization, tuned on validation data and adopted only on evidence.

    Settings are compared by *cross-fitting*: a validation row is adjusted only against reference
    rows, and with a prior, from other folds. Tuned on its own references, as published, the
    method looks better than it is, because the doubtful rows are the complement of the confident
    ones and the labels leak through the class balance.

    The choice and its evidence are kept apart: for each fold the best setting on all other folds
    is applied to it, and the predictions put together in this way are compared with the untouched
    ones (`verdict_`). Unless the evidence passes `significance`, `transform` changes nothing.

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
    prior : None, "counted", "uniform", "shrunk" or array, default="shrunk"
        As for :class:`AlternatingNormalizer`. Class frequencies are shrunk towards uniform as far
        as counting noise explains them.
    scoring : str or callable, default="accuracy"
        What to maximise; see :func:`altnorm.metrics.resolve_scoring`. For multi-label problems
        the default stands for "f1_micro" (ask for "subset_accuracy" to count rows with every
        label right).
    cv : int or splitter, default=5
        Number of folds, into which the rows are dealt at random, or a scikit-learn splitter. Folds
        stratified by class would let labels leak through a counted prior.
    n_repeats : int, default=3
        How often the rows are dealt into folds anew. The p-value is twice the median over the
        repeats, which is valid however they depend on one another, and makes the verdict less a
        matter of how the rows were dealt. Repeats that cannot turn it any more are left out. With
        a splitter there is one.
    significance : float, default=0.05
        Level at which the adjustment is adopted.
    k_max, multilabel, input
        As for :class:`AlternatingNormalizer`.
    decision : {"threshold", "argmax_or_threshold"}, default="threshold"
        For multi-label problems, how probabilities become labels; see
        :func:`altnorm.metrics.decide`.
    refine : bool, default=False
        Whether to let a temperature and class biases, shrunk towards what the prior suggests,
        compete with alternating normalization; see :mod:`altnorm.refine`. Pays where labels are
        many. Not for multi-label problems.
    n_jobs : int, optional
        Number of threads; None is 1, -1 is all cores.
    random_state : int or RandomState, optional
        Deals the rows out to folds.
    verbose : int, default=0
        Whether to show a progress bar (needs Rich).

    Attributes
    ----------
    best_params_ : dict
        The settings with the best cross-fitted score, adopted or not.
    best_normalizer_ : AlternatingNormalizer, PriorGuidedBias or Identity
        What `transform` applies: the best settings, fitted on all validation rows, or identity.
    verdict_ : Verdict
        The evidence, on rows that had no part in the choice.
    arms_ : dict of Verdict
        The evidence for each family: "alternating", and "bias" with ``refine=True``.
    cv_results_ : dict of ndarray
        The settings tried, one entry each: "alpha", "depth", "threshold", "reference",
        "smoothing", "score" (cross-fitted), "gain" over no adjustment, "n_changed", "rank".
    classes_ : ndarray of shape (n_classes,)
        The class each column stands for.
    n_features_in_ : int
        Number of classes.

    Examples
    --------
    >>> import numpy as np
    >>> from altnorm import AlternatingNormalizerCV
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(3, size=600)
    >>> scores = rng.normal(size=(600, 3)) + 1.5 * np.eye(3)[y] + [1.5, 0, 0]  # favours class 0
    >>> proba = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    >>> normalizer = AlternatingNormalizerCV(random_state=0).fit(proba, y)
    >>> normalizer.verdict_.adopted
    True
    """

    def __init__(
        self,
        alphas: Sequence[float] = PAPER_ALPHAS,
        depths: Sequence[int] = PAPER_DEPTHS,
        thresholds: Sequence[float] = PAPER_THRESHOLDS,
        *,
        references: Sequence[str] = ("confident", "all"),
        smoothings: Sequence[float] = (0.0, 0.1, 1.0),
        prior: Any = "shrunk",
        scoring: Any = "accuracy",
        cv: Any = 5,
        n_repeats: int = 3,
        significance: float = 0.05,
        k_max: int = 10,
        multilabel: str | None = None,
        decision: str = "threshold",
        input: str = "proba",
        refine: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
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
        self.refine = refine
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, proba: Any, y: Any, sample_weight: Any = None) -> AlternatingNormalizerCV:
        """Choose the settings and weigh the evidence.

        Parameters
        ----------
        proba : array-like of shape (n_samples, n_classes)
            Predictions on validation data.
        y : array-like of shape (n_samples,) or (n_samples, n_classes)
            Labels; a 0/1 matrix for multi-label problems.
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each row, in the reference, the prior and the score.

        Returns
        -------
        self : AlternatingNormalizerCV
            The fitted normalizer.
        """
        data = self._read_validation(proba, y, sample_weight)
        rounds, biases = [], []
        verdicts: dict[str, list[Verdict]] = {"alternating": []}
        if self.refine:
            verdicts["bias"] = []
        plan = None
        for folds in self._deal(data):
            dealing = Dealing(data, folds)
            plan, scored = self._score(dealing, plan)
            rounds.append(scored)
            after = dealing.nested([*scored, dealing.identity()])
            verdicts["alternating"].append(self._judge(data, after))
            if self.refine:
                biases.append(dealing.biases())
                verdicts["bias"].append(self._judge(data, biases[-1].nested()))
            if all(self._is_decided(arm) for arm in verdicts.values()):
                break
        self.arms_ = {name: self._combine(arm) for name, arm in verdicts.items()}
        self._conclude(data, _average(rounds), biases)
        return self

    def explain(self, proba: Any) -> Explanation:
        """Say why the class of each changed row changed; see :class:`AlternatingNormalizer`.

        Parameters
        ----------
        proba : array-like of shape (n_samples, n_classes)
            Predictions, columns as in `fit`.

        Returns
        -------
        Explanation
            One entry for each row whose class changes.
        """
        before = self._check_transform(proba)
        after = self._transform(before)
        kind = kind_of(self)
        ambiguity = kind.ambiguity(before, k_max=self.k_max)
        return Explanation.from_predictions(before, after, ambiguity, self.classes_, kind.decide)

    def _transform(self, proba: np.ndarray) -> np.ndarray:
        return np.asarray(self.best_normalizer_.transform(proba))

    def _read_validation(self, proba: Any, y: Any, sample_weight: Any) -> Validation:
        self._check_grid()
        checked, labels = self._check_labelled(proba, y)
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, checked, ensure_non_negative=True)
        if self.refine and self.multilabel is not None:
            raise InputError(
                f"`refine` is for single-label problems; multilabel is {self.multilabel!r}. Pass "
                "refine=False."
            )
        scoring = self.scoring
        if self.multilabel is not None and scoring == "accuracy":
            scoring = "f1_micro"
        kind = kind_of(self)
        score = resolve_scoring(
            scoring, kind.is_multilabel, classes=self.classes_, decision=kind.decide
        )
        return Validation(
            checked,
            labels,
            sample_weight,
            self.multilabel,
            self.k_max,
            self.prior,
            score,
            kind.decide,
        )

    def _check_grid(self) -> None:
        """Raise unless every setting of the grid is one that AlternatingNormalizer takes."""
        kind_of(self)
        check_level(self.significance, "significance")
        for name in ("alphas", "depths", "thresholds", "references", "smoothings"):
            if not len(getattr(self, name)):
                raise InputError(f"`{name}` must hold at least one value; it is empty. Pass some.")
        for alpha in self.alphas:
            check_positive(alpha, "alphas")
        for depth in self.depths:
            check_integer(depth, "depths", low=1)
        for name in ("thresholds", "smoothings"):
            for value in getattr(self, name):
                check_positive(value, name, zero=True)
        for reference in self.references:
            check_choice(reference, "references", REFERENCES)

    def _deal(self, data: Validation) -> Iterator[np.ndarray]:
        """Deal the rows into folds, again and again; once for folds that are given."""
        random_state = check_random_state(self.random_state)
        for _ in range(self._planned_repeats()):
            yield assign_folds(data.labels, self.cv, random_state)

    def _planned_repeats(self) -> int:
        repeats = check_integer(self.n_repeats, "n_repeats", low=1)
        return repeats if isinstance(self.cv, Integral) else 1

    def _score(self, dealing: Dealing, plan: Plan | None) -> tuple[Plan, list[Scored]]:
        """Score settings: those of the plan, or, without one, those that a search visits."""
        grid = self.thresholds, self.references, self.smoothings
        depth = max(self.depths)

        def first(alphas: Sequence[float]) -> list[Scored]:
            return self._map(lambda alpha: dealing.first(alpha, grid), alphas)

        if plan is None:
            plan, scored = make_plan(self.alphas, depth, first)
        else:
            scored = first(plan.alphas)
        scored += self._map(lambda setting: dealing.deeper(setting, depth), plan.deeper)
        scored = [one for one in scored if one.setting.depth in self.depths]
        if not scored:
            raise InputError(
                f"No setting could be tried: no fold leaves a confident row at the thresholds "
                f"{tuple(self.thresholds)}. Raise `thresholds`, or add 'all' to `references`."
            )
        return plan, scored

    def _map(self, function: Callable[[Any], list[Scored]], items: Sequence[Any]) -> list[Scored]:
        """Score the parts of a search, in threads, and string the results together."""
        parallel = Parallel(n_jobs=self.n_jobs, prefer="threads", return_as="generator")
        results = parallel(delayed(function)(item) for item in items)
        shown = track(results, len(items), "Comparing settings", enabled=self.verbose > 0)
        return [one for part in shown for one in part]

    def _judge(self, data: Validation, after: np.ndarray) -> Verdict:
        return compare_predictions(
            data.labels,
            data.proba,
            after,
            scoring=data.score,
            significance=self._level(),
            sample_weight=data.weight,
            rule=self.decision,
        )

    def _level(self) -> float:
        """Level that a family has to pass: where two compete, half of it each."""
        return self.significance / 2 if self.refine else self.significance

    def _is_decided(self, verdicts: list[Verdict]) -> bool:
        """Whether the repeats that are left cannot turn the median p-value any more."""
        majority = self._planned_repeats() // 2 + 1
        passed = sum(one.gain > 0 and 2 * one.p_value < self._level() for one in verdicts)
        return passed >= majority or len(verdicts) - passed >= majority

    def _combine(self, verdicts: list[Verdict]) -> Verdict:
        """The verdict with the median p-value, doubled: valid however the repeats depend."""
        repeats = self._planned_repeats()
        order = sorted(verdicts, key=lambda one: one.p_value if one.gain > 0 else 1.0)
        median = order[min(repeats // 2, len(order) - 1)]
        return median.with_p_value(median.p_value * (2 if repeats > 1 else 1))

    def _conclude(self, data: Validation, scored: list[Scored], biases: list[BiasCrossFit]) -> None:
        """Keep the results, and fit what is adopted on all rows."""
        best, prior = choose(scored).setting, data.count_prior()
        winner: Any = data.normalizer(best, prior)
        self.best_params_: dict[str, Any] = best._asdict()
        self.verdict_ = self.arms_["alternating"]
        bias = self.arms_.get("bias", self.verdict_)
        if bias.adopted and bias.gain > self.verdict_.gain * self.verdict_.adopted:
            self.verdict_ = bias
            self.best_params_ = best_bias(biases)._asdict()
            winner = PriorGuidedBias(**self.best_params_, prior=prior)
        if not self.verdict_.adopted:
            winner = Identity(multilabel=self.multilabel)
        # `labels` count for the biases only: the prior is given.
        self.best_normalizer_ = winner.fit(data.proba, data.labels, sample_weight=data.weight)
        base = self.verdict_.before
        self.cv_results_ = _as_table(scored, base)


def _average(rounds: list[list[Scored]]) -> list[Scored]:
    """Mean over the repeats, which all scored the same settings."""
    by_setting: dict[Setting, list[Scored]] = {}
    for scored in rounds:
        for one in scored:
            by_setting.setdefault(one.setting, []).append(one)
    return [
        Scored(
            setting,
            np.mean([one.scores for one in group], axis=0),
            round(float(np.mean([one.n_changed for one in group]))),
        )
        for setting, group in by_setting.items()
    ]


def _as_table(scored: list[Scored], base: float) -> dict[str, np.ndarray]:
    """Scores of all settings as columns."""
    columns = zip(*(one.setting for one in scored), strict=True)
    table = {name: np.array(v) for name, v in zip(Setting._fields, columns, strict=True)}
    table["score"] = np.array([one.scores[-1] for one in scored])
    table["gain"] = table["score"] - base
    table["n_changed"] = np.array([one.n_changed for one in scored])
    table["rank"] = 1 + np.argsort(np.argsort(-table["score"], kind="stable"))
    return table

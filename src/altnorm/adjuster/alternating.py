"""AlternatingNormalizerCV: the paper's method, its settings chosen on validation data."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice, product
from typing import Any, NamedTuple, Self

import numpy as np

from altnorm._base.arrays import Array, one_thread, to_numpy
from altnorm._base.errors import InputError
from altnorm._base.fitted import Fields
from altnorm._base.persistence import storable
from altnorm._base.symbols import CHOSEN_BY_FIT, names_symbols
from altnorm._base.validation import check_choice, check_integer, check_level, check_positive
from altnorm.adjuster.alternating_paths import (
    K_MAX,
    ClassPaths,
    LabelPaths,
    Setting,
    fit_alternating,
    make_paths,
)
from altnorm.adjuster.choice import Evidence, Trial
from altnorm.adjuster.validation import Validation, read_validation
from altnorm.decisions.purpose import purpose_of
from altnorm.estimator.base import ProbabilityTransformer, all_or_nothing
from altnorm.estimator.correction import Stage
from altnorm.estimator.normalizer import AlternatingNormalizer
from altnorm.evidence.folds import assign_folds
from altnorm.evidence.gates import Gates
from altnorm.evidence.verdict import Caution, Verdict
from altnorm.families import Identity
from altnorm.method.reference import REFERENCES

PAPER_ALPHAS = (*(round(0.1 * i, 1) for i in range(1, 10)), *(float(i) for i in range(1, 36)))
PAPER_DEPTHS = (1, 2, 3, 4, 5)
PAPER_THRESHOLDS = (0.25, 0.5, 0.75)

TUNINGS = ("cross-fitted", "as-published")

COARSE = 3  # every third exponent is tried first: scores change slowly with it
BEST = 3  # near so many of the best exponents the others are tried, and these are iterated further


class Tried(NamedTuple):
    """A setting and its scores: on all rows, and on those outside each fold."""

    setting: Setting
    score: float
    outside: np.ndarray

    def order(self, fold: int | None = None) -> tuple[float, ...]:
        """Least for the best setting, outside a fold if one is named."""
        score = self.score if fold is None else self.outside[fold]
        return (-score if math.isfinite(score) else math.inf, *self.setting.severity())


@storable
class AlternatingNormalizerCV(ProbabilityTransformer):
    r"""Alternating normalization with settings chosen on validation data, adopted on evidence.

    Settings are compared by *cross-fitting*: a validation row is adjusted only against reference
    rows, and with a prior, from other folds. Tuned on its own references, as published, the method
    looks better than it is, because the doubtful rows are the complement of the confident ones and
    the labels leak through the class balance.

    The evidence is nested: each fold is judged under the setting that is best on the other folds.
    Unless the gain passes `significance`, `transform` changes nothing.

    Parameters
    ----------
    alphas : sequence of float, default=0.1, .., 0.9, 1, .., 35
        Exponents to try, the paper's: every third first, then those near the best.
    depths : sequence of int, default=1, .., 5
        Numbers of iterations to try. Only the best exponents go deeper than 1, with the threshold,
        reference and smoothing that suit them best.
    thresholds : sequence of float, default=(0.25, 0.5, 0.75)
        Ambiguity thresholds to try.
    references : sequence of {"confident", "all"}, default=("confident", "all")
        References to try.
    smoothings : sequence of float, default=(0.0, 0.1, 1.0)
        Smoothings to try.
    tuning : {"cross-fitted", "as-published"}, default="cross-fitted"
        "as-published" tries every setting on the rows that serve as reference, and applies the
        best without a test, as the paper does; see :meth:`as_published`.
    k_max : int, default=10
        Largest number of classes that the ambiguity looks at.
    prior, scoring, cv, significance, multilabel, input
        As for :class:`Adjuster`.

    Attributes
    ----------
    best_params_ : dict
        The settings with the best score, adopted or not.
    best_normalizer_ : AlternatingNormalizer or Identity
        What `transform` applies: the best settings, fitted on all validation rows, or identity.
    verdict_ : Verdict
        The evidence, on rows that had no part in the choice.
    cv_results_ : dict of ndarray
        The settings tried, one entry each: "alpha", "depth", "threshold", "reference",
        "smoothing", "score", "rank".
    classes_, n_features_in_
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

    any_library = True

    @names_symbols(
        alpha="alphas",
        d="depths",
        depth="depths",
        tau="thresholds",
        threshold="thresholds",
        k="k_max",
        q="prior",
    )
    def __init__(
        self,
        alphas: Sequence[float] = PAPER_ALPHAS,
        depths: Sequence[int] = PAPER_DEPTHS,
        thresholds: Sequence[float] = PAPER_THRESHOLDS,
        *,
        references: Sequence[str] = ("confident", "all"),
        smoothings: Sequence[float] = (0.0, 0.1, 1.0),
        tuning: str = "cross-fitted",
        k_max: int = K_MAX,
        prior: Any = "shrunk",
        scoring: Any = None,
        cv: Any = 5,
        significance: float = 0.01,
        multilabel: str | None = None,
        input: str = "proba",
    ) -> None:
        self.alphas = alphas
        self.depths = depths
        self.thresholds = thresholds
        self.references = references
        self.smoothings = smoothings
        self.tuning = tuning
        self.k_max = k_max
        self.prior = prior
        self.scoring = scoring
        self.cv = cv
        self.significance = significance
        self.multilabel = multilabel
        self.input = input

    @classmethod
    @names_symbols(**CHOSEN_BY_FIT, k="k_max", q="prior")
    def as_published(
        cls,
        *,
        prior: Any = "counted",
        k_max: int = K_MAX,
        scoring: Any = None,
        multilabel: str | None = None,
        input: str = "proba",
    ) -> Self:
        """Return the paper's own procedure (CAN), to be fitted.

        Its grid of settings, confident rows as reference, no smoothing; the setting that scores
        best on the validation rows is applied, whether it gains or not. To compare settings deeper
        than one iteration, the reference is iterated once for all rows; what is applied is exact.
        As in the paper, `prior` may be the class frequencies of the training data, and several
        labels are "pairs".
        """
        return cls(
            references=("confident",),
            smoothings=(0.0,),
            tuning="as-published",
            k_max=k_max,
            prior=prior,
            scoring=scoring,
            multilabel=multilabel,
            input=input,
        )

    @all_or_nothing
    def fit(
        self,
        proba: Any,
        y: Any,
        sample_weight: Any = None,
        groups: Any = None,
        classes: Any = None,
    ) -> Self:
        """Compare the settings, and weigh the evidence; takes what :meth:`Adjuster.fit` takes."""
        self._check_params()
        data, read = read_validation(self, proba, y, sample_weight, groups, classes)
        self._keep(read)
        with one_thread():
            published = self.tuning == "as-published"
            folds = assign_folds(data.classes, self.cv, data.groups, data.proba)
            paths = make_paths(data, None if published else folds, k_max=self.k_max)
            search = Search(data, paths, folds)
            tried = search.run(self)
            self.cv_results_ = _as_table(tried)
            best = min(tried, key=Tried.order).setting
            self.best_params_ = best._asdict()
            trial = search.trial(tried, self.significance, nested=not published)
            self.verdict_ = _as_published(trial.verdict) if published else trial.verdict
            if self.verdict_.adopted:
                model = fit_alternating(data, best, k_max=self.k_max, stratified=not published)
            else:
                model = Identity(multilabel=self.multilabel).fit(data.proba[:1])
            self.best_normalizer_ = model
        return self

    def score(self, proba: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the score that `scoring` names, as :meth:`Adjuster.score` does."""
        return self._score_by(purpose_of(self).score, proba, y, sample_weight)

    def _check_params(self) -> None:
        super()._check_params()
        check_level(self.significance, "significance")
        check_choice(self.tuning, "tuning", TUNINGS)
        check_integer(self.k_max, "k_max", low=2)
        checks: dict[str, Callable[[Any, str], object]] = {
            "alphas": check_positive,
            "depths": partial(check_integer, low=1),
            "thresholds": partial(check_positive, zero=True),
            "references": partial(check_choice, choices=REFERENCES),
            "smoothings": partial(check_positive, zero=True),
        }
        for name, check in checks.items():
            values = getattr(self, name)
            if not isinstance(values, Collection) or not len(values):
                rule, offender = f"`{name}` must hold at least one value", f"it is {values!r}"
                raise InputError(
                    rule, offender, "Pass a list of values.", value=values, code="parameter"
                )
            for value in values:
                check(value, name)

    def _check_fitted(self, fields: Fields) -> None:
        super()._check_fitted(fields)
        fields.require("best_params_", isinstance(fields.get("best_params_"), dict), "a dictionary")
        fields.model("best_normalizer_", AlternatingNormalizer, Identity)
        fields.record("verdict_", Verdict)
        fields.table("cv_results_")

    def stage(self) -> Stage:
        """Return what it does to a row of probabilities."""
        stage: Stage = self.best_normalizer_.stage()
        return stage


class Search:
    """Tries settings, coarse first, then near the best, then deeper."""

    def __init__(self, data: Validation, paths: ClassPaths | LabelPaths, folds: np.ndarray) -> None:
        self.data, self.paths, self.folds = data, paths, folds
        self.outside = [folds != k for k in range(int(folds.max()) + 1)]

    def run(self, cv: AlternatingNormalizerCV) -> list[Tried]:
        """Try the settings of a grid: all of them as published, else those that are worth it."""
        if cv.tuning == "as-published":
            tried = self._try(cv, cv.alphas, max(cv.depths))
        else:
            tried = self._try_near_the_best(cv)
        tried = [entry for entry in tried if entry.setting.depth in cv.depths]
        if tried:
            return tried
        raise InputError(
            "No setting could be tried",
            f"no fold leaves a confident row at the thresholds {tuple(cv.thresholds)}",
            "Raise `thresholds`, or add 'all' to `references`.",
            value=tuple(cv.thresholds),
            code="no_reference",
        )

    def _try_near_the_best(self, cv: AlternatingNormalizerCV) -> list[Tried]:
        alphas = sorted({float(alpha) for alpha in cv.alphas})
        coarse = {*range(0, len(alphas), COARSE), len(alphas) - 1}
        tried = self._try(cv, [alphas[i] for i in sorted(coarse)])
        best = [alphas.index(alpha) for alpha in _best_alphas(tried)]
        near = [i for i in range(len(alphas)) if any(abs(i - k) < COARSE for k in best)]
        tried += self._try(cv, [alphas[i] for i in near if i not in coarse])
        if max(cv.depths) > 1:
            for alpha in _best_alphas(tried):
                same_alpha = [entry for entry in tried if entry.setting.alpha == alpha]
                start = min(same_alpha, key=Tried.order).setting
                tried += self._follow(start._replace(depth=max(cv.depths)), skip=1)
        return tried

    def _try(
        self, cv: AlternatingNormalizerCV, alphas: Sequence[float], depth: int = 1
    ) -> list[Tried]:
        """Try exponents with all else in the grid, at every depth up to this one."""
        grid = product(alphas, [depth], cv.thresholds, cv.references, cv.smoothings)
        return [entry for values in grid for entry in self._follow(Setting(*values))]

    def _follow(self, setting: Setting, skip: int = 0) -> Iterator[Tried]:
        for deeper, proba in islice(self.paths.path(setting), skip, None):
            yield Tried(deeper, *self._scores(proba))

    def _scores(self, proba: Array) -> tuple[float, np.ndarray]:
        """The score on all rows, and on those outside each fold."""
        data, score = self.data, self.data.purpose.score
        # Decided where the rows are: all of them would take longer to copy than to adjust.
        pred = to_numpy(proba) if score.needs == "proba" else data.kind.decide(proba)
        parts = [score(data.labels[o], pred[o], data.weight[o]) for o in self.outside]
        return score(data.labels, pred, data.weight), np.array(parts)

    def trial(self, tried: Sequence[Tried], significance: float, *, nested: bool) -> Trial:
        """Judge each fold under the setting that is best without it, or else the best of all."""
        proba = self.data.proba.copy()
        for fold, outside in enumerate(self.outside):
            order = partial(Tried.order, fold=fold if nested else None)
            *_, (_, adjusted) = self.paths.path(min(tried, key=order).setting)
            proba[~outside] = to_numpy(adjusted)[~outside]
        evidence = Evidence(self.data, self.folds, significance)
        return evidence.compare(self.data.kind.decide(proba), proba)


def _best_alphas(tried: Sequence[Tried]) -> list[float]:
    ranked = sorted(tried, key=Tried.order)
    return list(dict.fromkeys(entry.setting.alpha for entry in ranked))[:BEST]


def _as_published(verdict: Verdict) -> Verdict:
    """The verdict where the best is applied, whatever a test says."""
    text = (
        "It is applied as published, whatever a test says: its settings were chosen on the rows "
        "that judge them, so expect less on others."
    )
    caution = Caution("in_sample", text, verdict.gain, serious=True)
    return replace(verdict, adopted=True, reason="", gates=Gates()).with_cautions((caution,))


def _as_table(tried: Sequence[Tried]) -> dict[str, np.ndarray]:
    table = {
        name: np.array([getattr(entry.setting, name) for entry in tried])
        for name in Setting._fields
    }
    table["score"] = np.array([entry.score for entry in tried])
    # The first `argsort` says who comes at each rank, the second at which rank each comes.
    table["rank"] = 1 + np.argsort(np.argsort(-table["score"], kind="stable"))
    return table

"""What Adjuster and AlternatingNormalizerCV share: the way from validation data to a decision."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral
from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils import check_random_state
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from altnorm._base.arrays import (
    Array,
    array_namespace,
    move,
    on_host,
    take_rows,
    to_numpy,
)
from altnorm._base.errors import InputError
from altnorm._base.seen_rows import sketch_rows
from altnorm._base.validation import check_integer, check_level
from altnorm.adjuster.adaptation import Adaptable
from altnorm.adjuster.calibration import (
    Temperatures,
    cool,
    fit_temperatures,
    settle_decisions,
    temperature_groups,
    try_calibrations,
)
from altnorm.adjuster.cautions import find_cautions
from altnorm.adjuster.competition import CONFIDENCE, Competition, compete, make_verdict, not_tried
from altnorm.adjuster.device import is_worth_a_device
from altnorm.adjuster.evidence import max_t, settle
from altnorm.adjuster.families import (
    AffineFamily,
    AlternatingFamily,
    BiasFamily,
    Family,
    MatrixFamily,
)
from altnorm.adjuster.folds import Validation, assign_folds
from altnorm.adjuster.results import as_table
from altnorm.adjuster.settings import Grid
from altnorm.adjuster.summary import tuned_html
from altnorm.adjuster.unlabelled import has_label
from altnorm.evidence.metrics import resolve_scoring
from altnorm.families import Identity
from altnorm.method.drift import count_usage
from altnorm.method.estimator import read_weight, require_labels, resolve_classes
from altnorm.method.kinds import kind_of


class BaseAdjuster(Adaptable):
    """Lets families compete on validation data and applies the winner, if it has proved itself.

    A subclass sets, in `__init__`, the parameters that this class reads, and writes `_grid`.
    """

    any_library = True

    threshold = 0.75
    """Ambiguity above which `check` counts a prediction as doubtful."""

    families: Any
    calibrate: bool
    prior: Any
    scoring: Any
    cv: Any
    n_repeats: int
    significance: float
    k_max: int
    decision: str
    n_jobs: int | None
    random_state: Any
    verbose: int

    def fit(self, proba: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Let the families compete, and weigh the evidence.

        Parameters
        ----------
        proba : array-like of shape (n_samples, n_classes)
            Predictions on validation data.
        y : array-like of shape (n_samples,) or (n_samples, n_classes)
            Labels; a 0/1 matrix for multi-label problems. Rows without a label (None, NaN, or -1
            among integer labels that are no class numbers below 0) only serve as reference.
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each row, in the reference, the prior, the fits and the score.
        groups : array-like of shape (n_samples,), optional
            Which rows belong together (a patient, a speaker, a document). Groups are dealt into
            folds whole, and the evidence counts groups, not rows.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        self._check_params()
        data = self._read_validation(proba, y, sample_weight, groups)
        families, skipped = self._make_families(data)
        # With threads of our own, each gets one thread of the linear algebra: more would fight.
        # And only a matrix has products that are large enough for several.
        matrix = any(isinstance(family, MatrixFamily) for family in families)
        single = effective_n_jobs(self.n_jobs) > 1 or not matrix
        with threadpool_limits(1 if single else None, user_api="blas"):
            outcome = compete(data, families, self._deal(data), significance=self.significance)
            self._conclude(data, families, outcome)
            self._fit_calibration(data, families, outcome)
        for name, reason in skipped.items():
            self.families_[name] = not_tried(self.verdict_, reason)
        self.usage_counts_, *self.usage_doubt_ = count_usage(self, data.work)
        self.seen_rows_ = sketch_rows(data.proba)
        self._fit_profile(data, families, outcome.dealings[0])
        return self

    @property
    def _repr_html_(self) -> Any:
        return lambda: self._repr_mimebundle_()["text/html"]

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        """What a notebook shows: scikit-learn's diagram and, once fitted, what was found."""
        bundle: dict[str, str] = super()._repr_mimebundle_(**options)
        if hasattr(self, "verdict_"):
            bundle["text/html"] = bundle.get("text/html", "") + tuned_html(self)
        return bundle

    def _grid(self) -> Grid:
        raise NotImplementedError

    def _check_params(self) -> None:
        self._grid().check()
        kind_of(self)
        check_integer(self.n_repeats, "n_repeats", low=1)
        check_integer(self.k_max, "k_max", low=2)
        check_level(self.significance, "significance")

    def _read_validation(self, proba: Any, y: Any, sample_weight: Any, groups: Any) -> Validation:
        require_labels(self, y)
        checked, _ = self._check_fit(proba)
        known, labels = self._read_labels(y, checked)
        weight = read_weight(sample_weight, checked.shape[0])
        kind = kind_of(self)
        score = resolve_scoring(
            self.scoring, kind.is_multilabel, classes=self.classes_, decision=kind.decide
        )
        rows = checked if known.all() else take_rows(checked, known)  # no needless copy
        return Validation(
            to_numpy(rows),
            labels,
            None if weight is None else weight[known],
            _read_groups(groups, known),
            to_numpy(take_rows(checked, ~known)),
            kind,
            self.k_max,
            self.prior,
            score,
            rows if is_worth_a_device(rows) else None,
        )

    def _read_labels(self, y: Any, proba: Array) -> tuple[np.ndarray, np.ndarray]:
        """Which rows have labels, and these: class codes, or booleans of shape (n, m)."""
        names = getattr(self, "feature_names_in_", None)
        if names is None and not np.array_equal(self.classes_, np.arange(proba.shape[1])):
            names = self.classes_  # column names that scikit-learn does not keep
        known, y = has_label(on_host(y), tuple(proba.shape), names)
        kind = kind_of(self)
        labels = kind.check_labels(y, (int(known.sum()), proba.shape[1]))
        self.classes_ = resolve_classes(kind.class_labels(labels), proba.shape[1], names)
        return known, kind.encode(labels, self.classes_)

    def _make_families(self, data: Validation) -> tuple[list[Family], dict[str, str]]:
        """Return the families that compete, and why others do not."""
        made: list[Family] = []
        skipped, kind = {}, kind_of(self)
        for name in self.families:
            if name == "alternating":
                made.append(
                    AlternatingFamily(self._grid(), n_jobs=self.n_jobs, verbose=self.verbose)
                )
            elif not kind.sums_to_one:
                continue  # they fit rows that do
            elif name == "bias":
                made.append(BiasFamily(n_jobs=self.n_jobs))
            elif reason := MatrixFamily.obstacle(data):
                skipped[name] = reason
            else:
                made.append(MatrixFamily(n_jobs=self.n_jobs))
        if not made:
            raise InputError(
                "At least one family must be able to compete",
                f"of {tuple(self.families)} none can ({', '.join(skipped.values()) or 'several'} "
                "labels per row are for 'alternating')",
                "Add 'alternating' to `families`.",
                value=tuple(self.families),
                code="parameter",
            )
        return made, skipped

    def _deal(self, data: Validation) -> Iterator[np.ndarray]:
        """Deal the rows into folds, again and again; once for folds that are given."""
        random_state = check_random_state(self.random_state)
        for _ in range(self.n_repeats if isinstance(self.cv, Integral) else 1):
            yield assign_folds(data.labels, self.cv, random_state, data.groups)

    def _conclude(self, data: Validation, families: list[Family], outcome: Competition) -> None:
        """Keep the results, and fit what is adopted on all rows."""
        setting, verdict = outcome.finding.setting, outcome.verdict
        winner = next(family for family in families if family.name == setting.family)
        self.best_params_ = setting._asdict()
        self.families_ = outcome.families
        self.family_ = winner.name if verdict.adopted else None
        self.cv_results_ = as_table(outcome.ledger)
        if verdict.adopted:
            self.best_normalizer_ = winner.fit(data, setting)
            after = winner.crossfit_proba(outcome.dealings[0], setting)
        else:
            identity = Identity(multilabel=self.multilabel)
            self.best_normalizer_ = identity.fit(data.proba)
            after = None
        self.verdict_ = verdict.with_cautions(find_cautions(data, verdict, after, self.classes_))

    def _fit_calibration(
        self, data: Validation, families: list[Family], outcome: Competition
    ) -> None:
        """Let calibrations compete by log-loss, given the decisions."""
        self.calibration_, self.calibrator_, self.temperatures_ = None, None, None
        if not self.calibrate:
            return
        decider = None
        if self.family_ is not None:
            winner = next(family for family in families if family.name == self.family_)
            decider = winner, outcome.finding.setting
        affine = [family for family in families if isinstance(family, AffineFamily)]
        ledger = try_calibrations(data, outcome.dealings, decider, affine)
        settings = ledger.common()
        test = max_t(ledger, [[setting] for setting in settings], self.significance / 2)
        finding = settle(ledger, settings, confidence=CONFIDENCE)
        self.calibration_ = make_verdict(ledger, finding, test, self.significance)
        if not self.calibration_.adopted:
            return
        if isinstance(finding.setting, Temperatures):
            # The cross-fitted rows stand for new ones better than those the fit has seen.
            base = data.proba
            if decider is not None:
                base = decider[0].crossfit_proba(outcome.dealings[0], decider[1])
            touched = temperature_groups(data.kind, data.proba, base)
            there = move(base, data.work)
            found = fit_temperatures(there, touched, data.labels, data.row_weight)
            self.temperatures_ = np.array(found)
        else:
            family = next(one for one in affine if one.name == finding.setting.family)
            self.calibrator_ = family.fit(data, finding.setting)

    def _transform(self, proba: Array) -> Array:
        xp, kind, adjusted = array_namespace(proba), kind_of(self), self._decided(proba)
        if self.temperatures_ is not None:
            touched = kind.touched(proba, adjusted)
            final = cool(adjusted, touched, Temperatures(*self.temperatures_))
        elif self.calibrator_ is not None:
            final = xp.astype(self.calibrator_.transform_clean(proba), proba.dtype, copy=False)
        else:
            return adjusted
        return settle_decisions(kind, final, kind.decide(adjusted))

    def _decided(self, proba: Array) -> Array:
        """Probabilities after the decisions' family alone."""
        return self.best_normalizer_.transform_clean(proba)


def _read_groups(groups: Any, known: np.ndarray) -> np.ndarray | None:
    """Number the groups of the rows with labels."""
    if groups is None:
        return None
    values = np.asarray(on_host(groups))
    if values.shape != known.shape:
        raise InputError(
            "`groups` must have one entry per row",
            f"its shape is {values.shape} and there are {known.size} rows",
            "Pass the group of each row.",
            value=values.shape,
            code="shape",
        )
    _, codes = np.unique(values[known], return_inverse=True)
    return codes

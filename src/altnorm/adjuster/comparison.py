"""Alternating normalization next to the methods a careful user compares it with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from sklearn.base import clone

from altnorm import families
from altnorm._base.errors import InputError
from altnorm._base.words import (
    DO_NOTHING,
    FAMILY_NAMES,
    Figures,
    figures,
    html_table,
    score_name,
    text_table,
)
from altnorm.adjuster import Adjuster, AlternatingNormalizerCV
from altnorm.adjuster.classifier import stated_purpose
from altnorm.decisions.decision import class_decisions
from altnorm.estimator.kinds import kind_of, kind_of_labels
from altnorm.evidence.promise import coverage_of
from altnorm.evidence.scores import NEG_LOG_LOSS, resolve_scoring
from altnorm.evidence.verdict import SIGNIFICANCE, Verdict, compare_predictions

ALTERNATING = FAMILY_NAMES["alternating"]

OURS = "altnorm"  # what Adjuster is called among the methods
LOWER = " (lower is better)"  # how the name of a score ends that is a loss
# What the column of that name says.
AREA = "Area: accuracy among the most confident rows, averaged over all shares of them"


@dataclass(frozen=True)
class MethodResult:
    """One method on the test data, next to the untouched predictions."""

    method: str
    score: float  # of its decisions
    gain: float  # over the score of the untouched predictions
    ci_low: float  # ends of its 95 % interval
    ci_high: float
    p_value: float  # of a paired test
    n_fixed: int
    n_broken: int
    log_loss: float  # of its probabilities; lower is better
    area: float | None  # under accuracy by share of rows; None with several labels per row

    @classmethod
    def measure(
        cls, method: str, verdict: Verdict, truth: np.ndarray, proba: np.ndarray
    ) -> MethodResult:
        """Take over a verdict on decisions, and measure probabilities."""
        shared = {each.name: getattr(verdict, each.name) for each in fields(cls)[2:-2]}
        area = coverage_of(proba, truth).area if truth.ndim == 1 else None
        return cls(method, verdict.after, **shared, log_loss=-NEG_LOG_LOSS(truth, proba), area=area)


@dataclass(frozen=True)
class Comparison:
    """One row per method, best first where printed.

    Attributes
    ----------
    scoring : str
        Name of the score.
    base : float
        Score of the untouched predictions.
    rows : tuple of MethodResult
        One for each method, in the order given.
    in_points : bool
        Whether differences are told in points (hundredths).
    ahead : dict of str to float
        Methods that score higher than the one called "altnorm", each with the p-value of a paired
        test of the two.
    """

    scoring: str
    base: float
    rows: tuple[MethodResult, ...]
    in_points: bool = True
    ahead: dict[str, float] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[MethodResult]:
        return iter(self.rows)

    def __getitem__(self, i: int) -> MethodResult:
        return self.rows[i]

    @property
    def has_area(self) -> bool:
        """Whether there is an area for each method: with one class per row."""
        return all(row.area is not None for row in self.rows)

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return the rows as dictionaries, for a data frame or JSON."""
        return [dict(vars(row)) for row in self.rows]

    def figures(self, row: MethodResult) -> Figures:
        """Return the numbers of a row as text."""
        interval = row.ci_low, row.ci_high
        return figures(
            self.scoring,
            self.base,
            row.score,
            interval,
            row.p_value,
            in_points=self.in_points,
            beside=max(abs(each.gain) for each in self.rows),
        )

    def cells(self) -> list[tuple[str, ...]]:
        """Return the table as text, with its header, best first."""
        name = score_name(self.scoring)
        name += LOWER if self.scoring.startswith("neg_") else ""
        change = "points" if self.in_points else "change"
        lines = [("method", name, change, "95% interval", "log loss", "area")]
        for row in sorted(self.rows, key=lambda row: -row.score):
            figures = self.figures(row)
            numbers = figures.after, figures.change, f"{figures.low} to {figures.high}"
            area = "" if row.area is None else f"{row.area:.3f}"
            lines.append((row.method, *numbers, f"{row.log_loss:.3f}", area))
        return [line if self.has_area else line[:-1] for line in lines]

    def alternative(self) -> str:
        """Name the method that helps most on these rows; empty where none clearly does."""
        best = max(self.rows, key=lambda row: row.score)
        if not best.ci_low > 0:
            return ""
        figures = self.figures(best)
        change = f"{figures.change_and_unit}, 95% interval {figures.low} to {figures.high}"
        return (
            f"Another method helps on these rows: {best.method}, {figures.name} {figures.before} "
            f"-> {figures.after} ({change}). It was picked among {len(self.rows)} by the labels of "
            "these rows: expect a little less."
        )

    def ahead_words(self) -> str:
        """Say of methods that score higher than ours whether that is more than chance."""
        by_chance = [name for name, p_value in self.ahead.items() if p_value >= SIGNIFICANCE]
        better = [name for name in self.ahead if name not in by_chance]
        sentences = []
        if better:
            verb = "is" if len(better) == 1 else "are"
            sentences.append(f"Better on these rows, beyond chance, {verb} {_joined(better)}.")
        if by_chance:
            verb = "scores" if len(by_chance) == 1 else "score"
            sentences.append(f"{_joined(by_chance)} {verb} higher, but within chance.")
        return " ".join(text[0].upper() + text[1:] for text in sentences)

    def __str__(self) -> str:
        return text_table(self.cells())

    def _repr_html_(self) -> str:
        header, *rows = self.cells()
        return html_table(header, rows)


def default_methods(multilabel: bool = False) -> dict[str, Any]:
    """Return the methods that :func:`compare` tries, by name."""
    if multilabel:
        return {
            DO_NOTHING: families.Identity(multilabel="pairs"),
            "label thresholds": families.LabelThresholds(),
            f"{ALTERNATING}, pairs": AlternatingNormalizerCV(multilabel="pairs"),
            f"{ALTERNATING}, labelwise": AlternatingNormalizerCV(multilabel="labelwise"),
            OURS: Adjuster(multilabel="labelwise"),
        }
    return {
        DO_NOTHING: families.Identity(),
        "temperature scaling": families.TemperatureScaling(),
        "BCTS": families.BiasCorrectedTemperature(),
        "batch calibration": families.BatchCalibration(),
        ALTERNATING: AlternatingNormalizerCV(),
        OURS: Adjuster(),
    }


def compare(
    val_proba: Any,
    val_y: Any,
    test_proba: Any,
    test_y: Any,
    *,
    methods: Mapping[str, Any] | None = None,
    scoring: Any = None,
    test_groups: Any = None,
    verbose: int = 0,
) -> Comparison:
    """Fit each method on validation data and compare it with doing nothing on test data.

    Parameters
    ----------
    val_proba : array-like of shape (n_validation, n_classes)
        Validation predictions.
    val_y : array-like of shape (n_validation,) or (n_validation, n_classes)
        Validation labels; a 0/1 matrix for multi-label problems.
    test_proba, test_y : array-like
        The same for test data, which serve for the comparison only.
    methods : mapping of str to estimator, optional
        Estimators with fit(proba, y), predict(proba) and transform(proba); those with a parameter
        `scoring` that is not set are given the score. None takes the peers in
        :mod:`altnorm.families`, :class:`AlternatingNormalizerCV` and :class:`Adjuster`.
    scoring : str or callable, optional
        As for :class:`Adjuster`.
    test_groups : array-like of shape (n_test,), optional
        Which test rows belong together; intervals and p-values count groups then.
    verbose : int, default=0
        Whether to show a progress bar (needs Rich).

    Returns
    -------
    Comparison
        One row per method: score, gain with its interval and p-value, rows fixed and broken, log
        loss, and `area`: the accuracy among the most confident rows, averaged over all shares of
        them, which says how well the confidence tells right from wrong.

    Examples
    --------
    >>> import numpy as np
    >>> from altnorm import compare
    >>> from altnorm.families import BiasCorrectedTemperature, Identity
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(3, size=800)
    >>> proba = np.exp(rng.normal(size=(800, 3)) + 1.5 * np.eye(3)[y] + [1.5, 0, 0])
    >>> proba /= proba.sum(axis=1, keepdims=True)
    >>> methods = {"do nothing": Identity(), "BCTS": BiasCorrectedTemperature()}
    >>> result = compare(proba[:400], y[:400], proba[400:], y[400:], methods=methods)
    >>> [row.method for row in result if row.gain > 0]
    ['BCTS']
    """
    multilabel = np.ndim(val_y) == 2
    methods = default_methods(multilabel) if methods is None else methods
    if not methods:
        raise InputError(
            "`methods` must name at least one estimator",
            "it is empty",
            "Pass for example {'BCTS': BiasCorrectedTemperature()}, or None for all of them.",
            code="parameter",
        )
    # Reads probabilities as every method does, so that "before" is what they start from.
    identity = families.Identity(multilabel=kind_of_labels(multilabel).multilabel)
    before = np.asarray(identity.fit(val_proba, val_y).transform(test_proba))
    kind = kind_of(identity)
    truth = kind.encode(kind.check_labels(test_y, before.shape), identity.classes_)
    score = resolve_scoring(scoring, multilabel, classes=identity.classes_)
    old = before if score.needs == "proba" else kind.decide(before)
    person = None if multilabel else before.shape[1]
    rows, decided = [], dict[str, np.ndarray]()
    for name, method in _tracked(methods) if verbose else methods.items():
        fitted = _for_purpose(clone(method), scoring).fit(val_proba, val_y)
        proba = np.asarray(fitted.transform(test_proba))
        new = proba if score.needs == "proba" else class_decisions(fitted, test_proba)
        verdict = compare_predictions(
            truth, old, new, scoring=score, groups=test_groups, person=person
        )
        rows.append(MethodResult.measure(name, verdict, truth, proba))
        decided[name] = new
    base = rows[0].score - rows[0].gain  # every method starts from the same score
    scores, ahead = {row.method: row.score for row in rows}, {}
    for name in (name for name in scores if OURS in scores and scores[name] > scores[OURS]):
        pair = truth, decided[OURS], decided[name]
        ahead[name] = compare_predictions(*pair, scoring=score, groups=test_groups).p_value
    return Comparison(score.name, base, tuple(rows), score.in_points, ahead)


def _joined(names: list[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def _for_purpose(method: Any, scoring: Any) -> Any:
    """Tell the purpose to a method that has not been told one."""
    is_aimless = "scoring" in method.get_params() and not stated_purpose(method)
    return method.set_params(scoring=scoring) if is_aimless and scoring is not None else method


def _tracked(methods: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the methods, showing how many are done."""
    from rich.console import Console
    from rich.progress import track

    items, console = list(methods.items()), Console(stderr=True)
    yield from track(items, "Comparing methods", console=console, transient=True)

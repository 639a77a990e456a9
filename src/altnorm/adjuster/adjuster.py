"""Adjuster: the best decisions and probabilities that the labels support."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from html import escape
from typing import Any, NamedTuple, Self, overload

import numpy as np
from sklearn.utils.validation import check_is_fitted

from altnorm import families
from altnorm._base.arrays import GivenArray, entries_at, move, one_thread
from altnorm._base.errors import InputError, shown
from altnorm._base.fitted import Fields
from altnorm._base.persistence import storable
from altnorm._base.symbols import CHOSEN_BY_FIT, names_symbols
from altnorm._base.validation import check_integer, check_level
from altnorm._base.words import html_card, model_words
from altnorm.adjuster import choice
from altnorm.adjuster.adaptation import KnownBalance, adapt
from altnorm.adjuster.alternating_paths import K_MAX
from altnorm.adjuster.candidates import FAMILIES, Competitors, CrossFitter
from altnorm.adjuster.left_out import find_left_out
from altnorm.adjuster.mixture import Mixture
from altnorm.adjuster.validation import Validation, read_validation
from altnorm.balance import Shift
from altnorm.decisions.decision import Decision
from altnorm.decisions.purpose import purpose_of
from altnorm.estimator.base import ProbabilityTransformer, all_or_nothing
from altnorm.estimator.correction import Rule, Stage
from altnorm.estimator.drift import Drift
from altnorm.estimator.normalizer import AlternatingNormalizer
from altnorm.estimator.reading import read_input
from altnorm.evidence.cautions import (
    duplicates,
    fading_gain,
    find_cautions,
    frequent_positive,
    too_few_rows,
    unlike_labelled,
)
from altnorm.evidence.folds import assign_folds
from altnorm.evidence.gates import Gate, Gates
from altnorm.evidence.promise import coverage, make_promise
from altnorm.evidence.seen import sketch_rows
from altnorm.evidence.suspicion import Labelled, find_suspicion
from altnorm.evidence.verdict import Caution, Verdict


class Judged(NamedTuple):
    """Rows that the verdict rests on, cross-fitted; kept in memory, never in files."""

    before: np.ndarray  # (n, m) probabilities as they came
    after: np.ndarray  # (n, m)
    decided: np.ndarray  # (n,) columns, or (n, m) 0 and 1
    labels: np.ndarray


MODELS = (  # what may correct probabilities
    families.Identity,
    families.BiasCorrectedTemperature,
    families.MatrixScaling,
    families.CurveScaling,
    families.LabelwiseScaling,
    AlternatingNormalizer,
)


@storable
class Adjuster(ProbabilityTransformer):
    """Better probabilities and decisions from validation labels.

    *Probabilities, always.* Families compete on rows that had no part in their fits, judged by log
    loss:

    - "bias": a temperature and one bias for each class [2]_; with several labels per row a slope
      and an intercept for each label.
    - "matrix": the score of a class may depend on the log-probabilities of all others [3]_; biases
      are held by a weak penalty, pairs of classes by a strong one. It repairs confusions of pairs
      of classes. From 5 labels per class on, and up to 10^9 rows times classes squared.
    - "curves": each log-probability, and from 600 rows on sums of three of them, may act through a
      bent line. For up to 40 classes with at least 20 labels each.
    - "alternating": alternating normalization, the method of [1]_, followed by a temperature. It
      needs few labels.

    The best of them, or a simpler one that is as good, is mixed with a temperature, the row as it
    came, and a little of the uniform distribution, with the weights that suit the labels best.

    *Decisions, on evidence.* For accuracy the decision is the most probable class, for balanced
    accuracy the class of largest probability over share, for costs the one of least expected cost,
    for F-scores the class of largest weighted probability, or with several labels those above a
    threshold. It is adopted if the cross-fitted score of the purpose rises and there is evidence,
    from a paired test of the score itself or from the log loss (`verdict_`, and its `gates`). If
    your labels do not show a gain, your decisions stay as they were: for accuracy, the
    probabilities of a row are then drawn back just as far as keeps its decision.

    Folds are parts of the data in their order, not random: the same data give the same verdict.

    Parameters
    ----------
    families : sequence of {"alternating", "bias", "matrix", "curves"}, default=all
        Which families compete.
    scoring : str, callable or None, default=None
        The purpose: "accuracy" (None), "balanced_accuracy", "f1_macro", "f1", "fbeta=2",
        "neg_log_loss", a scikit-learn scorer or the name of one; with several labels "f1_micro"
        (None), "f1_macro" and others. Where the optimal rule for a score is not known, the
        decision is the most probable class, and the score judges.
    costs : array of shape (m, m) or (m, m + 1), mapping or None, default=None
        The purpose, as costs: rows are true classes, columns decisions. One column more is the
        cost of leaving a row to a person; `predict` says None there. A mapping
        {(true, decision): cost} gives single costs, the others are 0 if right and 1 if wrong; the
        decision None leaves the row to a person. The score is minus the mean cost.
    target_accuracy : float or None, default=None
        Decide the most confident rows alone, as many as the labels prove to be right that often,
        with 95 % confidence, and leave the others to a person: `predict` says None there, and
        ``verdict_.promise`` says how many are decided. For accuracy with one class per row.
    calibrate : bool, default=True
        Whether probabilities may change where decisions do not. With False nothing is mixed, and
        nothing is changed unless it is adopted; with "alternating" adopted, rows that are not in
        doubt come back bit for bit.
    cv : int or splitter, default=5
        Number of folds, or a scikit-learn splitter that tests every row once.
    significance : float, default=0.01
        Level of the tests, one-sided.
    prior : None, "counted", "uniform", "shrunk" or array, default="shrunk"
        Class prior of alternating normalization, as for :class:`AlternatingNormalizer`.
    k_max, multilabel, input
        As for :class:`AlternatingNormalizer`.
    insist : bool, default=False
        Whether to apply the best correction and its decisions although evidence is missing, or the
        input looks wrong. The verdict goes on saying so.
    n_jobs : int, optional
        Number of threads; None is 1, -1 is all cores.

    Attributes
    ----------
    verdict_ : Verdict
        The evidence for the decisions, with `cautions`.
    calibration_ : Verdict
        The evidence for the probabilities: their log loss before and after.
    families_ : dict of Verdict
        How each family's log loss compares with that of a temperature.
    family_ : str or None
        The family that corrects the probabilities; "temperature" where none competes, and None
        where nothing is applied.
    decision_ : Decision
        From probabilities to decisions: weights, costs or thresholds.
    model_ : estimator
        The correction: BiasCorrectedTemperature, MatrixScaling, CurveScaling, LabelwiseScaling,
        AlternatingNormalizer or Identity, fitted on all validation rows.
    mixture_ : Mixture
        What it is mixed with: `weights` of the correction, the temperature, the row as it came and
        the uniform distribution.
    cv_results_ : dict of ndarray
        The candidates, one entry each: "family", their parameters, and cross-fitted "log_loss".
    shift_ : Shift
        On copies that `adapt` returned: what was seen of another class balance.
    classes_ : ndarray of shape (n_classes,)
        The class each column stands for.

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
    >>> adjuster.verdict_.adopted
    True
    >>> better, decided = adjuster.predict_proba(proba), adjuster.predict(proba)

    Missing class 2 is ten times as bad as any other mistake:

    >>> careful = Adjuster(costs={(2, 0): 10, (2, 1): 10}).fit(proba, y)
    >>> bool((careful.predict(proba) == 2).sum() > (decided == 2).sum())
    True

    Only decisions of which 90 % are right; the other rows are for a person:

    >>> picky = Adjuster(target_accuracy=0.9).fit(proba, y)
    >>> round(picky.verdict_.promise.share, 1)
    0.4
    >>> picky.predict(proba[:3])
    array([2, None, 1], dtype=object)
    """

    any_library = True
    model_: ProbabilityTransformer
    shift_: Shift  # of copies that `adapt` returned

    @names_symbols(**CHOSEN_BY_FIT, k="k_max", q="prior")
    def __init__(
        self,
        families: Sequence[str] = FAMILIES,
        *,
        scoring: Any = None,
        costs: Any = None,
        target_accuracy: float | None = None,
        calibrate: bool = True,
        cv: Any = 5,
        significance: float = 0.01,
        prior: Any = "shrunk",
        k_max: int = K_MAX,
        multilabel: str | None = None,
        input: str = "proba",
        insist: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        self.families = families
        self.scoring = scoring
        self.costs = costs
        self.target_accuracy = target_accuracy
        self.calibrate = calibrate
        self.cv = cv
        self.significance = significance
        self.prior = prior
        self.k_max = k_max
        self.multilabel = multilabel
        self.input = input
        self.insist = insist
        self.n_jobs = n_jobs

    @all_or_nothing
    def fit(
        self,
        proba: Any,
        y: Any,
        sample_weight: Any = None,
        groups: Any = None,
        classes: Any = None,
    ) -> Self:
        """Choose probabilities, then decisions, and weigh the evidence.

        Parameters
        ----------
        proba : array-like of shape (n_samples, n_classes)
            Predictions on validation data.
        y : array-like of shape (n_samples,) or (n_samples, n_classes)
            Labels; a 0/1 matrix for multi-label problems. Rows without a label (None, NaN, or -1
            unless that is itself a class) only serve as reference.
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each row, in the fits and the score. Only their ratios count, and rows of
            weight 0 are left out.
        groups : array-like of shape (n_samples,), optional
            Which rows belong together (a patient, a speaker, a document). Whole groups go
            into a fold, and the evidence counts groups, not rows.
        classes : array-like of shape (n_classes,), optional
            The class that each column stands for, such as the `classes_` of your classifier; some
            may have no labels. By default the column names of a data frame, the labels in `y` if
            there are as many as columns, or column numbers.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        self._check_params()
        data, read = read_validation(self, proba, y, sample_weight, groups, classes)
        self._keep(read)
        with one_thread():
            folds = assign_folds(data.classes, self.cv, data.groups, data.proba)
            evidence = choice.Evidence(data, folds, self.significance)
            fitter = CrossFitter(data, folds, calibrate=self.calibrate, k_max=self.k_max)
            competitors = fitter.compete(self.families, n_jobs=self.n_jobs)
            trial = choice.choose(evidence, fitter, competitors)
            cautions, refused = self._examine(fitter, trial)
            fitter.release()
            self._conclude(competitors, trial, cautions, refused)
            del evidence, trial, competitors  # some hold rows as large as the data
            self._remember(data)
        return self

    @overload
    def predict_proba(self, proba: GivenArray) -> GivenArray: ...

    @overload
    def predict_proba(self, proba: Any) -> np.ndarray: ...

    def predict_proba(self, proba: Any) -> Any:
        """Return the same as :meth:`transform`, whatever output scikit-learn is set to."""
        return move(self._transform(read_input(self, proba)), proba)

    def score(self, proba: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the purpose's score, larger is better; it takes what :meth:`fit` takes.

        Of `costs` it is minus the mean cost; with `target_accuracy` the accuracy of all rows, as if
        none were left to a person.
        """
        return self._score_by(purpose_of(self).score, proba, y, sample_weight)

    def adapt(self, proba: Any, assume: str | None = None, *, insist: bool = False) -> Self:
        """Return a fitted copy; for the class balance of new predictions if you say so.

        Predictions alone cannot tell a change of the class balance from other changes. So by
        default the copy is equal to the original, and its `shift_`, a
        :class:`~altnorm.balance.Shift`, says which balance it would be and what would follow.
        :func:`altnorm.ask` says which rows to label so that they decide whether a copy is better.

        Parameters
        ----------
        proba : array-like of shape (n_samples, n_classes)
            New predictions, columns as in `fit`, a few hundred rows at least.
        assume : {None, "label_shift"}, default=None
            What you know about the new data: nothing, or that each class looks as it did and only
            the shares of the classes have changed; then the copy is for the new shares.
        insist : bool, default=False
            Whether to adapt even if the predictions contradict what you assume, by an energy test
            at the level 0.05; otherwise that is an InputError.

        Returns
        -------
        self : object
            The copy.
        """
        check_is_fitted(self)
        adapted: Self = adapt(self, proba, assume, insist=insist)
        return adapted

    @property
    def _repr_html_(self) -> Any:
        return lambda: self._repr_mimebundle_()["text/html"]

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        """What a notebook shows: scikit-learn's diagram and, once fitted, what was figures."""
        bundle: dict[str, str] = super()._repr_mimebundle_(**options)
        if hasattr(self, "verdict_"):
            verdict, does = self.verdict_, f"<p>It {model_words(self)}.</p>"
            cautions = [caution.text for caution in verdict.cautions]
            words = f"<p>Probabilities: {escape(str(self.calibration_))}</p>"
            card = html_card(str(verdict), cautions, does, verdict.gates.to_html(), words)
            bundle["text/html"] = bundle.get("text/html", "") + card
        return bundle

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        shown: str = super().__repr__(N_CHAR_MAX=N_CHAR_MAX)
        if hasattr(self, "verdict_"):
            shown += ", fitted: " + str(self.verdict_).partition(" (")[0]
        return shown

    def _check_params(self) -> None:
        super()._check_params()
        check_level(self.significance, "significance")
        check_integer(self.k_max, "k_max", low=2)
        self._check_target()
        is_list = isinstance(self.families, Collection) and not isinstance(self.families, str)
        names = list(self.families) if is_list else []
        unknown = [name for name in names if name not in FAMILIES]
        if unknown or not names:
            it_is = f"it is {self.families!r}"
            raise InputError(
                "`families` must name at least one of 'alternating', 'bias', 'matrix' and 'curves'",
                shown(f"{unknown[0]!r} is not one of them" if unknown else it_is),
                "Pass for example families=('bias',); a goal is passed as scoring='f1_macro'.",
                value=self.families,
                code="parameter",
                parameter="families",
                example=("bias",),
            )

    def _check_target(self) -> None:
        if self.target_accuracy is None:
            return
        check_level(self.target_accuracy, "target_accuracy", example=0.95)
        is_accuracy = isinstance(self.scoring, str) and self.scoring == "accuracy"
        against = {
            "costs": self.costs is not None,
            "multilabel": self.multilabel is not None,
            "scoring": not (self.scoring is None or is_accuracy),
        }
        for name in (name for name, is_given in against.items() if is_given):
            value = "given" if name == "costs" else repr(getattr(self, name))
            raise InputError(
                "`target_accuracy` is for accuracy with one class per row",
                shown(f"`{name}` is {value}"),
                "Leave one of the two out.",
                value=name,
                code="parameter",
            )

    def _check_fitted(self, fields: Fields) -> None:
        super()._check_fitted(fields)
        fields.model("model_", *MODELS)
        fields.record("mixture_", Mixture)
        same_kind = self.mixture_.is_multilabel == (self.multilabel is not None)
        fields.require("mixture_", same_kind, "a mixture of rows of the same kind")
        fields.record("decision_", Decision)
        fields.record("verdict_", Verdict)
        fields.record("calibration_", Verdict)
        fields.records("families_", Verdict)
        fields.choice("family_", (None, "temperature", *FAMILIES))
        fields.table("cv_results_")
        seen = fields.array("seen_rows_", "u8", (None,), empty=True)
        fields.require("seen_rows_", (seen[1:] > seen[:-1]).all(), "numbers that increase")
        if fields.get("balance_") is not None:
            fields.record("balance_", KnownBalance)
        if fields.has("shift_"):
            fields.record("shift_", Shift)

    def _examine(
        self, fitter: CrossFitter, trial: choice.MixtureTrial
    ) -> tuple[list[Caution | None], str]:
        """What the evidence cannot see, and why nothing must be adopted; else nothing."""
        data, cautions = fitter.data, list[Caution | None]()
        if data.groups is None:
            cautions.append(duplicates(data.proba, data.labels))
        if not data.kind.is_multilabel:
            rows = Labelled(data.proba, data.labels, data.weight, self.classes_)
            suspicion = find_suspicion(rows)
            if suspicion is not None:
                return [suspicion], "suspect_input"
            cautions += find_cautions(rows, grouped=data.groups is not None)
            f_beta = data.purpose.score.f_beta
            if f_beta is not None and f_beta.average == "binary":
                cautions.append(frequent_positive(rows, f_beta.positive))
            if trial.accepted:
                before, after = trial.evidence.before, trial.codes
                cautions.append(data.purpose.price(rows, before, after, trial.mixture.proba))
                cautions.append(
                    fading_gain(trial.rows, data.weight, data.blocks())
                    or fading_gain(trial.log_loss_rows, data.weight, data.blocks())
                )
            cautions.append(unlike_labelled(data.proba, data.unlabelled))
        likeness = choice.try_likeness(fitter, trial)
        if likeness is not None and likeness.serious:
            return [*cautions, likeness], "near_copies"
        left_out = find_left_out(trial)
        return ([*cautions, likeness], "") if left_out is None else ([left_out], "suspect_input")

    def _conclude(
        self,
        competitors: Competitors,
        trial: choice.MixtureTrial,
        cautions: list[Caution | None],
        refused: str,
    ) -> None:
        """Keep the results, and fit what is applied on all rows."""
        evidence, suspect = trial.evidence, refused == "suspect_input"
        adopted = trial.accepted and not refused
        applied = adopted or (self.insist and trial.reason != "identical")
        gates = trial.gates
        if refused:
            objection = Gate("input" if suspect else "likeness", False, 0.0, 1.0)
            gates = Gates([objection, *gates] if suspect else [*gates, objection])
        verdict = replace(
            trial.verdict,
            adopted=adopted,
            reason=refused if suspect or trial.accepted else trial.reason,
            gates=gates,
            insisted=applied and not adopted,
        )
        self.verdict_ = verdict.with_cautions([*cautions, too_few_rows(verdict)])
        # What makes decisions suspect concerns probabilities, too: they come from the same rows.
        nothing = (bool(refused) and not self.insist) or not (self.calibrate or applied)
        outcome = choice.conclude(trial, applied=applied, nothing=nothing)
        self.model_, self.mixture_, self.decision_, self.family_, proba, log_p = outcome
        decided = trial.codes if applied else evidence.before
        if self.target_accuracy is not None:
            self._promise(evidence.data, proba, decided)
        self._judged = Judged(evidence.data.proba, proba, decided, evidence.data.labels)
        untouched = trial.mixture.untouched
        self.calibration_ = choice.log_loss_verdict(
            evidence, log_p, untouched.log_p, adopted=not nothing
        )
        self.families_ = choice.family_verdicts(trial, competitors)
        tried = [untouched, trial.mixture.temperature, *competitors.candidates]
        self.cv_results_ = choice.candidates_table(tried, evidence.data.weight)

    def _promise(self, data: Validation, proba: np.ndarray, decided: np.ndarray) -> None:
        """Choose which rows to decide, by cross-fitted probabilities of what is decided."""
        assert self.target_accuracy is not None
        untouched = data.proba.argmax(axis=1)
        after, before = (
            coverage(entries_at(p, codes), codes == data.labels, data.weight, data.groups)
            for p, codes in ((proba, decided), (data.proba, untouched))
        )
        promise, least = make_promise(float(self.target_accuracy), after, before)
        self.verdict_ = replace(self.verdict_, promise=promise)
        # Adjusted probabilities have the most probable class that is decided, also where
        # decisions stay as they were, so one rule says both the class and the confidence.
        self.decision_ = replace(self.decision_, on_input=False, least=least)

    def __getstate__(self) -> dict[str, Any]:
        """What is pickled: all but the rows that were judged."""
        state: dict[str, Any] = dict(super().__getstate__())
        state.pop("_judged", None)
        return state

    def _remember(self, data: Validation) -> None:
        """Keep what `adapt` needs to know of the validation data."""
        self.seen_rows_ = sketch_rows(data.proba)
        one_class = not data.kind.is_multilabel
        self.balance_ = KnownBalance.of(data, self.adjusted) if one_class else None
        self.__dict__.pop("shift_", None)  # of a copy that is fitted again

    def _advise(self, drift: Drift, rows: np.ndarray) -> Drift:
        if not drift.drifted or self.balance_ is None:
            return drift
        shift = self.balance_.look(rows, self.adjusted)
        return replace(drift, advice="stop" if shift.shift_rejected else "adapt")

    def stage(self) -> Stage:
        """Return what it does to a row of probabilities."""
        return self.mixture_.stage(self.model_)

    def _rule(self) -> Rule:
        return self.decision_.rule()

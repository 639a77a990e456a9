"""Adjuster: the best decisions and probabilities that the labels support."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import Any, Self, overload

import numpy as np
from scipy.special import expit, logit
from sklearn.utils.validation import check_is_fitted

from altnorm._base.arrays import (
    Array,
    GivenArray,
    array_namespace,
    move,
    one_thread,
    quiet,
    softmax,
    to_numpy,
    widest_float,
)
from altnorm._base.errors import InputError, shown
from altnorm._base.fitted import Fields
from altnorm._base.persistence import storable
from altnorm._base.validation import check_choice, check_level
from altnorm._base.words import FAMILY_NAMES, html_card, html_table, model_words
from altnorm.adjuster.adaptation import KnownBalance, contradicted, known_balance, retargeted
from altnorm.adjuster.candidates import FAMILIES, Candidate, Competitors, CrossFitter
from altnorm.adjuster.choice import (
    Choice,
    Judge,
    candidates_table,
    choose,
    family_verdicts,
    log_loss_verdict,
    refuse,
    try_likeness,
)
from altnorm.adjuster.validation import Validation, read_validation
from altnorm.balance import Shift
from altnorm.decisions.decision import Decision
from altnorm.decisions.purpose import purpose_of
from altnorm.estimator.base import ProbabilityTransformer, all_or_nothing
from altnorm.estimator.drift import Drift, count_usage
from altnorm.estimator.kinds import LabelKind, kind_of
from altnorm.estimator.normalizer import AlternatingNormalizer
from altnorm.estimator.reading import (
    read_input,
    read_on_host,
    read_training,
    read_weight,
    require_labels,
)
from altnorm.evidence.cautions import (
    Labelled,
    duplicates,
    find_cautions,
    find_suspicion,
    sketch_rows,
    too_few_rows,
)
from altnorm.evidence.folds import assign_folds
from altnorm.evidence.verdict import Caution, Verdict, outcome, score_figures
from altnorm.families import (
    BiasCorrectedTemperature,
    Identity,
    LabelwiseScaling,
    MatrixScaling,
)


@storable
class Adjuster(ProbabilityTransformer):
    r"""Better probabilities and decisions from validation labels, adopted only on evidence.

    *Probabilities first.* Three families compete on rows that had no part in their fits, judged by
    log loss; a temperature always competes:

    - "alternating": alternating normalization, the method of [1]_, followed by a temperature. It
      needs few labels.
    - "bias": a temperature and one bias for each class [2]_, held back by a penalty; with several
      labels per row a slope and an intercept for each label.
    - "matrix": the score of a class may depend on the probabilities of all others [3]_, held back
      by a penalty that expects many small confusions, or few large ones. It repairs confusions of
      pairs of classes, which the other two cannot. It competes where there are at least 5 labels
      per class, and rows times classes squared do not exceed 10^9.

    The best is adopted if its log loss is proved to be below that of a temperature.

    *Then the decision that the purpose asks for.* For accuracy it is the most probable class, for
    balanced accuracy the class of largest probability over share, for costs the one of least
    expected cost, for F-scores the class of largest weighted probability, or with several labels
    those above a threshold. It is adopted if the cross-fitted score of the purpose rises and there
    is evidence, from the probabilities or from a paired test of the score itself (`verdict_`). If
    not, decisions stay as they are, and a temperature is all that is applied.

    Folds are parts of the data in their order, not random: the same data give the same verdict.

    Parameters
    ----------
    families : sequence of {"alternating", "bias", "matrix"}, default=all three
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
    calibrate : bool, default=True
        Whether a temperature may be applied, alone or after alternating normalization. With False,
        and "alternating" adopted, rows that are not in doubt come back bit for bit.
    cv : int or splitter, default=5
        Number of folds, or a scikit-learn splitter that tests every row once.
    significance : float, default=0.01
        Level of the tests, one-sided.
    prior : None, "counted", "uniform", "shrunk" or array, default="shrunk"
        Class prior of alternating normalization, as for :class:`AlternatingNormalizer`.
    multilabel, input
        As for :class:`AlternatingNormalizer`.
    insist : bool, default=False
        Whether to fit even if the input looks wrong: columns exchanged, labels of a single class,
        predictions of training rows.
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
        The family whose decisions were adopted; "temperature" where only a rule was; None where
        decisions stay as they are.
    decision_ : Decision
        From probabilities to decisions: weights, costs or thresholds.
    model_ : estimator
        What makes the probabilities: Identity, BiasCorrectedTemperature, MatrixScaling,
        LabelwiseScaling or AlternatingNormalizer, fitted on all validation rows.
    temperature_ : float
        The temperature that follows it.
    cv_results_ : dict of ndarray
        The candidates, one entry each: "family", their parameters, and cross-fitted "log_loss".
    shift_ : Shift
        On copies that `adapt` returned: what was seen of another class balance.
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
    >>> adjuster.verdict_.adopted
    True
    >>> better, decided = adjuster.predict_proba(proba), adjuster.predict(proba)

    Missing class 2 is ten times as bad as any other mistake:

    >>> careful = Adjuster(costs={(2, 0): 10, (2, 1): 10}).fit(proba, y)
    >>> bool((careful.predict(proba) == 2).sum() > (decided == 2).sum())
    True
    """

    any_library = True

    def __init__(
        self,
        families: Sequence[str] = FAMILIES,
        *,
        scoring: Any = None,
        costs: Any = None,
        calibrate: bool = True,
        cv: Any = 5,
        significance: float = 0.01,
        prior: Any = "shrunk",
        multilabel: str | None = None,
        input: str = "proba",
        insist: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        self.families = families
        self.scoring = scoring
        self.costs = costs
        self.calibrate = calibrate
        self.cv = cv
        self.significance = significance
        self.prior = prior
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
            among integer labels that are no class numbers below 0) only serve as reference.
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
        require_labels(self, y)
        read = read_training(self, proba, y, sample_weight, classes, gaps=True)
        data = read_validation(self, read, groups)
        self._keep(read)
        with one_thread():
            folds = assign_folds(data.classes, self.cv, data.groups)
            judge = Judge(data, folds, self.significance)
            fitter = CrossFitter(data, folds, calibrate=self.calibrate)
            competitors = fitter.compete(self.families, n_jobs=self.n_jobs)
            choice = choose(judge, fitter, competitors, calibrate=self.calibrate)
            cautions, refused = self._examine(judge, fitter, choice)
            self._conclude(judge, competitors, choice, cautions, refused)
            likeliest = competitors.likeliest_linear(data.weight)
            del judge, choice, competitors  # some hold rows as large as the data
            self._remember(data, likeliest)
        return self

    @overload
    def predict_proba(self, proba: GivenArray) -> GivenArray: ...

    @overload
    def predict_proba(self, proba: Any) -> np.ndarray: ...

    def predict_proba(self, proba: Any) -> Any:
        """Return the same as `transform`, whatever output scikit-learn is set to.

        Parameters
        ----------
        proba : array-like of shape (n_samples, n_classes)
            Class probabilities, columns as in `fit`.

        Returns
        -------
        array of shape (n_samples, n_classes)
            Probabilities.
        """
        return move(self._transform(read_input(self, proba).proba), proba)

    def score(self, proba: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the purpose's score of the decisions, or of the probabilities.

        Parameters
        ----------
        proba : array-like of shape (n_samples, n_classes)
            Predictions, columns as in `fit`.
        y : array-like of shape (n_samples,) or (n_samples, n_classes)
            Labels.
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each row.

        Returns
        -------
        float
            The score, larger is better; of `costs`, minus the mean cost.
        """
        given = read_input(self, proba)
        new, kind = self._probabilities(given.proba), given.kind
        labels = kind.encode(kind.check_labels(y, tuple(new.shape)), self.classes_)
        score = purpose_of(self).score
        predicted = to_numpy(new) if score.needs == "proba" else self.decision_.codes(new)
        return score(labels, predicted, read_weight(sample_weight, len(labels)))

    def adapt(self, proba: Any, *, assume: str | None = None, insist: bool = False) -> Self:
        """Return a fitted copy; for the class balance of new predictions if you say so.

        Predictions alone cannot tell a change of the class balance from other changes. So by
        default the copy is equal to the original, and its `shift_` says which balance it would be
        and what would follow. With ``assume="label_shift"`` you say that only the balance has
        changed, and the copy is for it; not if the predictions contradict that.

        Parameters
        ----------
        proba : array-like of shape (n_samples, n_classes)
            New predictions, columns as in `fit`, a few hundred rows at least.
        assume : {None, "label_shift"}, default=None
            What you know about the new data: nothing, or that each class looks as it did and only
            the shares of the classes have changed.
        insist : bool, default=False
            Whether to adapt even if the predictions contradict what you assume.

        Returns
        -------
        self : object
            The copy, with a :class:`~altnorm.balance.Shift` as `shift_`.

        Raises
        ------
        InputError
            If an energy test contradicts ``assume="label_shift"``, at the level 0.05.

        See Also
        --------
        altnorm.ask : Which rows to label so that they decide whether the copy is better.
        """
        check_is_fitted(self)
        known = known_balance(self)
        check_choice(assume, "assume", ("label_shift", None))
        rows = read_on_host(self, proba).proba
        shift = known.look(rows)
        adapted = retargeted(self, np.array(shift.before), np.array(shift.after))
        before, after = (
            one.decision_.codes(apply_model(one.model_, one.temperature_, kind_of(self), rows))
            for one in (self, adapted)
        )
        if assume is None:
            adapted = copy(self)
        elif shift.contradicted and not insist:
            raise contradicted(shift)
        else:
            adapted.usage_ = count_usage(self, rows)
        adapted.shift_ = replace(
            shift,
            n_changed=int((before != after).sum()),
            adapted=assume is not None,
            names=tuple(str(name) for name in self.classes_),
        )
        return adapted

    @property
    def _repr_html_(self) -> Any:
        return lambda: self._repr_mimebundle_()["text/html"]

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        """What a notebook shows: scikit-learn's diagram and, once fitted, what was found."""
        bundle: dict[str, str] = super()._repr_mimebundle_(**options)
        if hasattr(self, "verdict_"):
            bundle["text/html"] = bundle.get("text/html", "") + _tuned_html(self)
        return bundle

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        shown: str = super().__repr__(N_CHAR_MAX=N_CHAR_MAX)
        return f"{shown}, fitted: {_fitted_words(self)}" if hasattr(self, "verdict_") else shown

    def _check_params(self) -> None:
        super()._check_params()
        check_level(self.significance, "significance")
        named = [] if isinstance(self.families, str) else list(self.families)
        unknown = [family for family in named if family not in FAMILIES]
        if not named or unknown:
            offender = (
                f"{unknown[0]!r} is not one of them" if unknown else f"it is {self.families!r}"
            )
            raise InputError(
                "`families` must name at least one of 'alternating', 'bias' and 'matrix'",
                shown(offender),
                value=self.families,
                code="parameter",
                parameter="families",
                example=("bias",),
            )

    def _check_fitted(self, fields: Fields) -> None:
        super()._check_fitted(fields)
        families = (Identity, BiasCorrectedTemperature, MatrixScaling, LabelwiseScaling)
        fields.model("model_", *families, AlternatingNormalizer)
        fields.number("temperature_", 1e-9, 1e9)
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
        self, judge: Judge, fitter: CrossFitter, choice: Choice
    ) -> tuple[list[Caution | None], str]:
        """What the evidence cannot see, and why nothing must be adopted; else nothing."""
        data, found = judge.data, list[Caution | None]()
        if data.groups is None:
            found.append(duplicates(data.proba, data.labels))
        if not data.kind.is_multilabel:
            rows = Labelled(data.proba, data.labels, data.weight, self.classes_)
            suspicion = None if self.insist else find_suspicion(rows)
            if suspicion is not None:
                return [suspicion], "suspect_input"
            found += find_cautions(rows, grouped=data.groups is not None)
            if choice.trial.accepted:
                decided = judge.before, choice.trial.codes
                found.append(data.purpose.price(rows, *decided, choice.trial.candidate.proba()))
        likeness, refused = try_likeness(judge, fitter, choice)
        return [*found, likeness], refused

    def _conclude(
        self,
        judge: Judge,
        competitors: Competitors,
        choice: Choice,
        cautions: list[Caution | None],
        refused: str,
    ) -> None:
        """Keep the results, and fit what is adopted on all rows."""
        if refused:
            choice = refuse(judge, competitors, choice, calibrate=self.calibrate, reason=refused)
        trial, candidate = choice.trial, choice.candidate
        verdict = replace(trial.verdict, adopted=choice.adopted, reason=refused or trial.reason)
        self.verdict_ = verdict.with_cautions([*cautions, too_few_rows(verdict)])
        family = trial.candidate.family
        only_rule = family == "none"
        self.family_ = None if not choice.adopted else "temperature" if only_rule else family
        self.decision_ = choice.decision
        self.model_, self.temperature_ = candidate.fit()
        same = candidate is competitors.untouched
        self.calibration_ = log_loss_verdict(
            judge, candidate, competitors.untouched, adopted=not same
        )
        self.families_ = family_verdicts(judge, competitors, choice.mildest)
        self.cv_results_ = candidates_table(competitors.all(), judge.data.weight)

    def _remember(self, data: Validation, likeliest: Candidate) -> None:
        """Keep what `adapt` needs to know of the validation data."""
        self.seen_rows_ = sketch_rows(data.proba)
        one_class = not data.kind.is_multilabel
        self.balance_ = KnownBalance.of(data, *likeliest.fit()) if one_class else None
        self.__dict__.pop("shift_", None)  # of a copy that is fitted again

    def _advise(self, drift: Drift, rows: np.ndarray) -> Drift:
        if not drift.drifted or self.balance_ is None:
            return drift
        return replace(drift, advice="stop" if self.balance_.look(rows).contradicted else "adapt")

    def _transform(self, proba: Array) -> Array:
        xp = array_namespace(proba)
        return xp.astype(self._probabilities(proba), proba.dtype, copy=False)

    def _probabilities(self, proba: Array) -> Array:
        """Probabilities in double precision, from which decisions are taken."""
        return apply_model(self.model_, self.temperature_, kind_of(self), proba)

    def _codes(self, proba: Array) -> np.ndarray:
        return self.decision_.codes(self._probabilities(proba))

    def _named(self, codes: np.ndarray) -> np.ndarray:
        return self.decision_.names(codes, self.classes_)


def apply_model(
    model: ProbabilityTransformer, temperature: float, kind: LabelKind, proba: Array
) -> Array:
    """Return the probabilities (n, m) of a model, in double precision and new memory.

    Their logarithms, or log-odds, are divided by the temperature; 1 changes nothing.
    """
    xp = array_namespace(proba)
    wide = xp.astype(proba, widest_float(proba))
    new = model.transform_clean(wide)
    if temperature == 1:
        return new
    with quiet(np):
        if kind.is_multilabel:
            return np.asarray(expit(logit(new) / temperature))
        return softmax(xp.log(new) / temperature)


def _fitted_words(adjuster: Any) -> str:
    """Say in a few words what was adopted."""
    verdict = adjuster.verdict_
    figures = score_figures(verdict)
    if not verdict.adopted:
        applied = "a temperature" if adjuster.temperature_ != 1 else "nothing"
        return f"no decision changes, {applied} is applied"
    name = FAMILY_NAMES.get(adjuster.family_, adjuster.family_)
    return f"{name}, {figures.name} {figures.change_and_unit}"


def _families_table(tuned: Any) -> list[tuple[str, ...]]:
    """Return a row of text for each family, and for the calibration, under a header."""
    rows = [("decisions", tuned.verdict_, "adopted")]
    for name, verdict in tuned.families_.items():
        word = "chosen" if name == tuned.family_ else "passes"
        rows.append((FAMILY_NAMES.get(name, name), verdict, word))
    rows.append(("probabilities", tuned.calibration_, "adopted"))
    header = ("", "score", "before", "after", "change", "95% interval", "result")
    return [header, *(_line(*row) for row in rows)]


def _line(name: str, verdict: Verdict, word: str) -> tuple[str, ...]:
    result = word if verdict.adopted or word == "chosen" else verdict.reason_text
    if outcome(verdict) == "not_tried":
        return name, "", "", "", "", "", result
    found = score_figures(verdict)
    numbers = found.before, found.after, found.change_and_unit, f"{found.low} to {found.high}"
    return name, found.name, *numbers, result


def _tuned_html(tuned: Any) -> str:
    """Return what was found, for a notebook."""
    header, *rows = _families_table(tuned)
    cautions = [caution.text for caution in tuned.verdict_.cautions]
    after = f"<p>It {model_words(tuned)}.</p>"
    return html_card(str(tuned.verdict_), cautions, after, html_table(header, rows))

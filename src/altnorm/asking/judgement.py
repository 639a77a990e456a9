"""What labels of changed rows say about an adjustment; `betting.py` has the reasoning."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse

from altnorm._base.errors import InputError, shape_error
from altnorm._base.labels import class_codes, is_missing
from altnorm._base.validation import check_level, check_unmasked
from altnorm._base.words import p_words
from altnorm.asking import betting
from altnorm.asking.sampling import Outcomes, common_step, find_changes, value_changes
from altnorm.decisions.decision import Decision, decision_of
from altnorm.estimator.kinds import FittedModel, kind_of_labels

ADOPT, DO_NOT, GO_ON = "adopt", "do not adopt", "go on"
_IN_ORDER = "Pass the labels in the order of `asked`."


@dataclass(frozen=True)
class Judgement:
    """What the labels of some changed rows say about an adjustment.

    Attributes
    ----------
    decision : {"adopt", "do not adopt", "go on"}
        Whether the adjustment gains over the pool, or not; or the labels do not decide it yet.
        Looking after every label and stopping at the first of the two answers, one errs with
        probability at most `significance`.
    gain : float
        Estimate of the gain per row over the whole pool, for the purpose of the model, or of the
        share of right decisions where it has none; NaN without labels.
    ci_low, ci_high : float
        Confidence sequence for this gain: with probability at least ``1 - significance`` it holds
        the gain after each and every label. Each side has half of `significance`, and a decision,
        which can be wrong on one side only, all of it: it may fall before the interval leaves 0.
    p_value : float
        For "the adjustment gains nothing", valid at any time.
    n_rows, n_changed : int
        Rows in the pool, and rows whose decision changes.
    n_labelled, n_fixed, n_broken : int
        Labelled rows, and the decisions among them that are worth more than before, and less.
    n_expected : int
        About how many further labelled rows will decide, if the others are like those labelled.
    n_decided : int or None
        Number of labelled rows after which the decision fell.
    n_waiting : int
        Labels that do not count yet, because an earlier row has none.
    significance : float
        The level.
    multilabel : bool
        Whether decisions are label decisions.
    in_costs : bool
        Whether the gain is cost saved per row; else it is one of a score, 0.01 a point.
    """

    decision: str
    gain: float
    ci_low: float
    ci_high: float
    p_value: float
    n_rows: int
    n_changed: int
    n_labelled: int
    n_fixed: int
    n_broken: int
    n_expected: int
    n_decided: int | None = None
    n_waiting: int = 0
    significance: float = 0.05
    multilabel: bool = False
    in_costs: bool = False

    @property
    def adopted(self) -> bool:
        """Whether the decision is to adopt."""
        return self.decision == ADOPT

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a dictionary that JSON can hold; what is not finite becomes None."""
        return {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in asdict(self).items()
        }

    def __str__(self) -> str:
        start = self.decision.capitalize()
        if self.n_changed == 0:
            return f"{start}: no decision changes in {self.n_rows:,} rows."
        if self.n_labelled == 0:
            changed = f"{self.n_changed:,} of {self.n_rows:,} rows change"
            return f"{start}: no labels yet, {changed}; {self._outlook()}."
        fixed = f"{self.n_fixed:,} {kind_of_labels(self.multilabel).words.fixed}"
        return (
            f"{start}: {self.n_labelled:,} of {self.n_changed:,} changed rows labelled, {fixed}, "
            f"{self.n_broken:,} broken; {self._gain()}{self._rest()}."
        )

    def _gain(self) -> str:
        values = self.gain, self.ci_low, self.ci_high
        if self.in_costs:
            gain, low, high = (f"{value:+.3g}" for value in values)
            start = f"cost saved per row {gain}"
        else:
            points = [100 * value for value in values]
            digits = 1 if max(map(abs, points)) >= 1 else 2
            gain, low, high = (f"{value:+.{digits}f}" for value in points)
            start = f"gain over the pool {gain} points"
        interval = f"{1 - self.significance:.0%} CI {low} to {high}, valid at any time"
        return f"{start} ({interval}), {p_words(self.p_value)}"

    def _rest(self) -> str:
        """What is to come, or why the interval does not say what the decision says."""
        if self.decision == GO_ON:
            return f"; {self._outlook()}"
        holds_other = self.ci_low <= 0 if self.adopted else self.ci_high > 0
        return "; the sign is settled, the two-sided interval still holds 0" if holds_other else ""

    def _outlook(self) -> str:
        more = f"about {self.n_expected:,} more labels should decide"
        if self.n_waiting:
            more += f"; {self.n_waiting:,} labels do not count until all rows before them have one"
        return more


class Pool(NamedTuple):
    """What has to be known about the pool from which the labelled rows were drawn."""

    n_rows: int
    n_changed: int  # rows with a changed decision
    total: float  # the most that all changes together can be worth, or cost
    decision: Decision  # how decisions are taken, and what they are worth

    @property
    def worth(self) -> np.ndarray:
        """What decisions are worth, rows that are left to a person among them."""
        return self.decision.table(person=True)


def judge(
    adjuster: FittedModel,
    proba: Any,
    asked: Any,
    y: Any,
    *,
    against: FittedModel | None = None,
    significance: float = 0.05,
) -> Judgement:
    """Say whether to adopt an adjustment, from the labels given so far to the rows of `ask`.

    A changed row counts what it is worth for the purpose of `adjuster` (its `scoring` or `costs`;
    accuracy for models without one). The answer is valid whenever one looks: after each label, and
    with any rule for when to stop. It rests on bets, without replacement [1]_, whose capital is
    seldom ever large if the adjustment gains nothing; the interval holds the gains that no bet
    has ruled out (a confidence sequence, [2]_).

    Parameters
    ----------
    adjuster : Adjuster or any fitted model with `predict` and `classes_`
        As for :func:`ask`.
    proba : array-like of shape (n_samples, n_classes)
        The pool, as for :func:`ask`.
    asked : array-like of shape (n_asked,)
        Row numbers from :func:`ask`, in its order.
    y : array-like of shape (n_labelled,) or (n_labelled, n_classes)
        Labels of the first of these rows, or a 0/1 matrix, of which only changed labels are looked
        at. None or NaN is a missing label; what follows it does not count yet.
    against : model like `adjuster`, optional
        As for :func:`ask`: "adopt" then means that `adjuster` is better than this one.
    significance : float, default=0.05
        Largest probability of a wrong answer.

    Returns
    -------
    Judgement
        `decision` is "adopt", "do not adopt" or "go on"; `str` gives all in one line.

    References
    ----------
    .. [1] Waudby-Smith, Ramdas. Estimating means of bounded random variables by betting. Journal
           of the Royal Statistical Society B, 2024.
    .. [2] Howard, Ramdas, McAuliffe, Sekhon. Time-uniform, nonparametric, nonasymptotic
           confidence sequences. Annals of Statistics, 2021.

    Examples
    --------
    >>> import altnorm
    >>> val, test, _ = altnorm.load_demo()
    >>> normalizer = altnorm.AlternatingNormalizer().fit(val.proba, val.labels)
    >>> rows = altnorm.ask(normalizer, test.proba, n=40)
    >>> print(altnorm.judge(normalizer, test.proba, rows, test.labels[rows[:10]]))
    Go on: 10 of 693 changed rows labelled, 7 fixed, 1 broken; gain over the pool +9.2 points
    (95% CI -3.4 to +14.7, valid at any time), p = 0.094; about 7 more labels should decide.
    >>> altnorm.judge(normalizer, test.proba, rows, test.labels[rows[:20]]).decision
    'adopt'
    """
    changes = find_changes(adjuster, proba, against)
    decision = decision_of(adjuster)
    position = _find_positions(changes.rows, asked)
    before, after = changes.before[position], changes.after[position]
    check_unmasked(y, "y")
    read = _label_truth if changes.multilabel else _class_truth
    truth = read(y, before != after, np.asarray(adjuster.classes_))
    labelled = ~np.isnan(truth).any(axis=1)
    # Up to the first row without a label: skipping rows would be a way to choose them.
    n = int(np.append(labelled, False).argmin())
    pool = Pool(changes.n_rows, changes.rows.size, float(changes.size.sum()), decision)
    outcomes = value_changes(pool.worth, before[:n], after[:n]).outcomes(truth[:n].astype(int))
    n_waiting = int(np.count_nonzero(labelled[n:]))
    return weigh_labels(pool, outcomes, significance=significance, n_waiting=n_waiting)


def weigh_labels(
    pool: Pool, outcomes: Outcomes, *, significance: float = 0.05, n_waiting: int = 0
) -> Judgement:
    """Weigh the labels of changed rows, one after the other, in the order they were drawn in."""
    check_level(significance, "significance")
    step = common_step(pool.worth)
    draws = betting.DrawnUnits(outcomes.x, outcomes.size, pool.total, pool.n_changed, step)
    decision, n_decided = _decide(draws, significance)
    low, high = betting.total_limits(draws, significance)
    unit = max(1, pool.n_rows)
    return Judgement(
        decision,
        float(np.clip(_estimate(draws), low, high)) / unit,
        low / unit,
        high / unit,
        _p_value(draws),
        pool.n_rows,
        pool.n_changed,
        outcomes.x.size,
        outcomes.n_fixed,
        outcomes.n_broken,
        betting.expected_labels(draws, significance) if decision == GO_ON else 0,
        n_decided,
        n_waiting,
        significance,
        pool.decision.kind == "thresholds",
        pool.decision.kind == "costs",
    )


def _decide(draws: betting.DrawnUnits, significance: float) -> tuple[str, int | None]:
    """The decision, and the number of labels after which it fell."""
    adopt_at = betting.first_crossing(draws, 0, significance)
    # A total that is not above 0 is below the first that is.
    reject_at = betting.first_crossing(draws.mirrored(), -draws.step, significance)
    lowest, highest = betting.possible(draws)
    if lowest[-1] > draws.rounding:  # certainty outweighs earlier evidence
        return ADOPT, adopt_at
    settled = np.flatnonzero(highest <= draws.rounding)
    if settled.size:
        return DO_NOT, int(settled[0]) if reject_at is None else min(reject_at, int(settled[0]))
    if adopt_at is not None and (reject_at is None or adopt_at < reject_at):
        return ADOPT, adopt_at
    return (GO_ON, None) if reject_at is None else (DO_NOT, reject_at)


def _estimate(draws: betting.DrawnUnits) -> float:
    """Total of the pool if the rest is like what was drawn."""
    if not draws.x.size:
        return math.nan if draws.n_units else 0.0
    left = draws.total - draws.k.sum()
    return float(draws.x.sum() + left * np.mean(draws.x / draws.k))


def _p_value(draws: betting.DrawnUnits) -> float:
    """For "the total is not above 0": one over the largest capital so far."""
    if betting.possible(draws)[0][-1] > draws.rounding:
        return 0.0
    return min(1.0, float(np.exp(-betting.log_capital(draws, 0).max())))


# Labels as a person gives them: in order, with gaps.


def _find_positions(changed: np.ndarray, asked: Any) -> np.ndarray:
    """Where among the changed rows, in ascending order, the asked ones are."""
    check_unmasked(asked, "asked")
    rows = np.asarray(asked)
    if rows.ndim != 1 or (rows.size and rows.dtype.kind not in "iu"):
        raise _asked_error("row numbers", f"it has shape {rows.shape} and dtype {rows.dtype}")
    unchanged = rows[~np.isin(rows, changed)]
    if unchanged.size:
        first = f"{unchanged.size} of {rows.size} do not, the first is row {unchanged[0]}"
        raise _asked_error("rows whose decision changes", first, int(unchanged[0]))
    values, times = np.unique(rows, return_counts=True)
    if (times > 1).any():
        twice = int(values[times.argmax()])
        raise _asked_error("each row once", f"row {twice} appears {times.max()} times", twice)
    return np.searchsorted(changed, rows).astype(int)


def _asked_error(rows: str, offender: str, value: int | None = None) -> InputError:
    remedy = "Pass what `ask` returned for these models and this pool."
    return InputError(f"`asked` must hold {rows}", offender, remedy, value=value, code="asked_rows")


def _class_truth(y: Any, changed: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Class code of each label, NaN where it is missing, in one column."""
    labels = np.asarray(y, dtype=object)
    if labels.ndim != 1 or labels.size > len(changed):
        rule = f"`y` must hold one class label for each of the {len(changed)} asked rows"
        raise shape_error(f"{rule}, or for the first of them", labels, _IN_ORDER)
    has_label = np.array([not (is_missing(label) or label == "") for label in labels], dtype=bool)
    truth = np.full((labels.size, 1), np.nan)
    if has_label.any():
        truth[has_label, 0] = class_codes(np.asarray(labels[has_label].tolist()), classes)
    return truth


def _label_truth(y: Any, changed: np.ndarray, _: np.ndarray) -> np.ndarray:
    """The 0/1 matrix with NaN where a changed label is missing, and 0 where nothing changed."""
    labels = np.asarray(y.toarray() if issparse(y) else y, dtype=np.float64)
    if labels.size == 0:
        return np.empty((0, changed.shape[1]))
    if labels.ndim != 2 or labels.shape[1] != changed.shape[1] or len(labels) > len(changed):
        rule = f"`y` must be a 0/1 matrix with {changed.shape[1]} columns and a row for each of the"
        raise shape_error(
            f"{rule} {len(changed)} asked rows, or for the first of them", labels, _IN_ORDER
        )
    truth = np.where(changed[: len(labels)], labels, 0)
    wrong = truth[~np.isin(truth, (0, 1)) & ~np.isnan(truth)]
    if wrong.size:
        raise InputError(
            "`y` must hold only 0 and 1, and NaN where a label is missing",
            f"{wrong.size} entries do not, the first is {wrong[0]:g}",
            "Write 1 where the label applies.",
            value=float(wrong[0]),
            code="asked_rows",
        )
    return truth

"""Families compete on the same dealings, and one test at the full level judges the outcome."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from altnorm.adjuster.attribution import Attribution
from altnorm.adjuster.evidence import (
    ExchangeTest,
    Finding,
    Ledger,
    is_settled,
    max_t,
    settle,
    without_luck,
)
from altnorm.adjuster.families import Family, check_tried
from altnorm.adjuster.folds import Dealing, Validation
from altnorm.evidence.verdict import Verdict, reason_against

FULL_DEALINGS = 2  # dealings on which every setting is tried; later ones try only the menu
CONFIDENCE = 0.95


class Competition(NamedTuple):
    """The outcome: the winner, the verdict on it, and a verdict on each family."""

    finding: Finding
    verdict: Verdict
    families: dict[str, Verdict]
    ledger: Ledger
    dealings: list[Dealing]  # those on which every setting was tried


def compete(
    data: Validation,
    families: Sequence[Family],
    folds: Iterable[np.ndarray],
    *,
    significance: float,
) -> Competition:
    """Try all families on dealing after dealing until the answer is settled, and judge them.

    Parameters
    ----------
    data : Validation
        Validation data.
    families : sequence of Family
        Those that compete.
    folds : iterable of ndarray
        Assignments of the rows to folds; as many as it holds are used at the most.
    significance : float
        Two-sided level.

    Returns
    -------
    Competition
        The outcome.
    """
    ledger, dealings = Ledger(Attribution(data)), list[Dealing]()
    menu = [entry for family in families for entry in family.menu()]
    for number, assignment in enumerate(folds):
        dealing, full = Dealing(data, assignment), number < FULL_DEALINGS
        ledger.start_round(full=full)
        for family in families:
            family.explore(dealing, ledger.record, full=full)
        if full:
            dealings.append(dealing)
        # One-sided: a verdict asks only for a gain, so it has half of the two-sided level.
        test = max_t(ledger, menu, significance / 2)
        if number + 1 >= FULL_DEALINGS and is_settled(test):
            break
    return _conclude(ledger, families, test, significance, dealings)


def _conclude(
    ledger: Ledger,
    families: Sequence[Family],
    test: ExchangeTest,
    significance: float,
    dealings: list[Dealing],
) -> Competition:
    settings = ledger.common()
    check_tried(settings, families)
    verdicts, handicap = {}, {}
    for family in families:
        own = [s for s in settings if s.family == family.name]
        if not own:
            continue
        finding = settle(ledger, own, confidence=CONFIDENCE)
        handicap[family.name] = finding.optimism
        own_test = max_t(ledger, family.menu(), significance / 2)
        verdicts[family.name] = make_verdict(ledger, finding, own_test, significance)
    # A family with many settings has the luckier best one, so each brings its own handicap.
    finding = settle(ledger, settings, confidence=CONFIDENCE, handicap=handicap)
    verdict = make_verdict(ledger, finding, test, significance)
    return Competition(finding, verdict, verdicts, ledger, dealings)


def make_verdict(
    ledger: Ledger, finding: Finding, test: ExchangeTest, significance: float
) -> Verdict:
    """Put the test and the estimate into one record."""
    attribution: Any = ledger.attribute
    p_value = min(1.0, 2 * test.p_value)
    identical = finding.n_changed == 0 and finding.gain == 0
    reason = reason_against(finding.gain, p_value, significance, identical=identical)
    if not reason:
        finding = without_luck(finding, test)
    return Verdict(
        attribution.score.name,
        attribution.base_score,
        attribution.base_score + finding.gain,
        finding.gain,
        p_value,
        finding.ci_low,
        finding.ci_high,
        finding.std_error,
        len(attribution.labels),
        finding.n_changed,
        finding.n_fixed,
        finding.n_broken,
        adopted=not reason,
        significance=significance,
        confidence=CONFIDENCE,
        in_points=attribution.score.in_points,
        reason=reason,
        n_dealings=len(ledger.rounds),
        agreement=test.agreement,
        multilabel=attribution.labels.ndim == 2,
        is_decision=True,
    )


def not_tried(like: Verdict, reason: str) -> Verdict:
    """Return the verdict on a family that could not compete."""
    return Verdict(
        like.scoring,
        like.before,
        like.before,
        0.0,
        1.0,
        0.0,
        0.0,
        0.0,
        like.n_rows,
        0,
        0,
        0,
        adopted=False,
        significance=like.significance,
        in_points=like.in_points,
        reason=reason,
        is_decision=True,
    )

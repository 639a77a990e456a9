"""The answer, and why, in words."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from altnorm._base import words
from altnorm._base.words import Figures, percent, plural
from altnorm.adjuster.comparison import Comparison
from altnorm.decisions.decision import HALF, decision_of
from altnorm.decisions.purpose import purpose_of
from altnorm.estimator.normalizer import AlternatingNormalizer
from altnorm.evidence.cautions import labels_to_ask
from altnorm.evidence.verdict import (
    Caution,
    Verdict,
    evidence_words,
    kept_words,
    remarks,
    rise_words,
    score_figures,
)
from altnorm.families import CurveScaling, Identity
from altnorm.report.evaluation import TESTED_BEFORE, Case


class Answer(NamedTuple):
    """The answer to "should I use it?"."""

    tone: str
    headline: str
    sentence: str
    basis: str = ""
    verdict: Verdict | None = None  # whose numbers stand below the answer


def score_line(verdict: Verdict) -> Figures:
    """Return the numbers of a verdict with minus signs, and p-values that do not break."""
    return typeset(score_figures(verdict))


def typeset(figures: Figures) -> Figures:
    """The same numbers as a page shows them."""
    numbers = {
        name: getattr(figures, name).replace("-", "\u2212").replace("unknown", "\u2013")
        for name in ("before", "after", "change", "low", "high")
    }
    return replace(figures, **numbers, p_value=figures.p_value.replace(" ", "\u00a0"))


def answer(case: Case) -> Answer:
    """Say whether to use the model, in a headline and a sentence."""
    tuned, tested = case.tuned, case.tested
    if tuned is not None and not (tuned.adopted or tuned.insisted):
        return _not_adopted(tuned, getattr(case.model, "calibration_", None))
    if tested is not None:
        return _tested(tuned, tested)
    if tuned is not None:
        return _only_tuned(case, tuned)
    return Answer(
        "open",
        "Open: there are no labels.",
        "The page shows what the adjustment changes. Whether that is better, only labels can tell.",
    )


def _only_tuned(case: Case, tuned: Verdict) -> Answer:
    basis = f"cross-validated on {plural(tuned.n_rows, 'validation row')}"
    notes = "".join(f" {capital(text)}." for text in remarks(tuned))
    if tuned.insisted:
        sentence = f"{_rise(tuned)}, {basis}.{notes}"
        return Answer("care", "Applied because you insisted.", sentence, basis, tuned)
    unconfirmed = (
        "A test set would confirm it."
        if case.seen
        else "These predictions have no labels, so nothing here can confirm it."
    )
    sentence = f"{_rise(tuned)}, {basis}. {unconfirmed}"
    price = _price(tuned)
    if price:
        evidence = f" {capital(evidence_words(tuned))}." if evidence_words(tuned) else ""
        return Answer("care", price, sentence + evidence, basis, tuned)
    # Likelihoods may have decided where the interval of the score itself still holds a loss.
    tone, start = ("yes", "Yes") if tuned.ci_low > 0 else ("care", "Probably")
    return Answer(tone, f"{start}, as far as validation tells.", sentence + notes, basis, tuned)


def _tested(tuned: Verdict | None, tested: Verdict) -> Answer:
    basis, expected = f"on {plural(tested.n_rows, 'test row')}", ""
    # Of costs it estimates the gain over decisions of least expected cost, not over argmax.
    if tuned is not None and tuned.scoring == tested.scoring != "neg_mean_cost":
        expected = f" Cross-validation estimated {score_line(tuned).change_and_unit}."
    sentence = f"{_rise(tested)} {basis}.{expected}"
    if tested.adopted:
        price = _price(tested, tuned)
        headline = price or ("Yes. Use it." if tuned is not None else "Yes, on these data.")
        return Answer("care" if price else "yes", headline, sentence, basis, tested)
    if tested.ci_high < 0:
        sentence += " Check whether these rows come from the same source as the validation rows."
        return Answer("no", "No. It does harm here.", sentence, basis, tested)
    if not tested.n_changed and tested.reason == "identical":
        sentence = f"No decision among {plural(tested.n_rows, 'test row')} changes.{expected}"
    else:
        chance = f"within what chance explains ({score_line(tested).p_value})"
        sentence = f"{_rise(tested)} {basis}: {chance}.{expected}"
    return Answer("care", "Not settled by these data.", sentence, basis, tested)


def _price(verdict: Verdict, tuned: Verdict | None = None) -> str:
    """A headline for a gain that has a serious caution, here or on validation; else empty."""
    sides = {"": verdict} if tuned is None else {"": verdict, "on the validation rows ": tuned}
    for where, side in sides.items():
        for caution in side.cautions:
            if caution.serious:
                line = score_line(verdict)
                change = f"{capital(line.name)} {line.change_and_unit}"
                return f"{change}, but {where}{_clause(caution)}."
    return ""


def _clause(caution: Caution) -> str:
    """The first part of a caution, as it stands within a sentence."""
    # The name of a class may hold a full stop.
    end = "; scoring=" if caution.code == "other_purpose" else ". "
    first = caution.text.split(end)[0].rstrip(".")
    return first[0].lower() + first[1:]


def _not_adopted(tuned: Verdict, calibration: Verdict | None) -> Answer:
    line, n_rows = score_line(tuned), plural(tuned.n_rows, "validation row")
    if tuned.reason == "suspect_input":
        serious = " ".join(c.text for c in tuned.cautions if c.serious)
        return Answer("no", "No. The input is probably wrong.", f"{serious} Nothing is applied.")
    why = {
        "identical": "no decision changed",
        "no_gain": f"{line.name} did not improve ({line.before} to {line.after})",
        "not_significant": f"the evidence for a gain in {line.name} ({line.change_and_unit}) is "
        "too weak",
    }.get(tuned.reason, tuned.reason_text)
    tried = f"Tried on {n_rows}, {why}. "
    if calibration is not None and calibration.adopted and calibration.ci_low > 0:
        sentence = (
            f"{tried}So {kept_words(tuned)}. The probabilities are better: "
            f"{rise_words(calibration)}, cross-validated."
        )
        headline = "For its probabilities, not for its decisions."
        return Answer("care", headline, sentence, f"cross-validated on {n_rows}", calibration)
    # Costs count without the correction, too.
    decides = tuned.scoring == "neg_mean_cost"
    outcome = "the model changes nothing: every prediction stays as it is."
    if decides:
        outcome = f"{kept_words(tuned)}."
    if calibration is not None and calibration.adopted:
        outcome = f"{kept_words(tuned)}, and probabilities are not clearly better."
    basis = f"the best candidate, cross-validated on {n_rows}"
    headline = "Decide without the correction" if decides else "Leave the predictions alone"
    return Answer("no", f"No. {headline}.", f"{tried}So {outcome}", basis, tuned)


def cautions(case: Case, comparison: Comparison | None = None) -> list[str]:
    """What the reader should know before using the answer, each in a sentence."""
    sentences = []
    if comparison is not None:
        # Where the model does not help, or others score higher, its user should know.
        helps = case.tested is not None and case.tested.adopted
        better = comparison.ahead_words() if helps else comparison.alternative()
        sentences.append(better.replace("->", "\u2192"))
    if case.tested is not None and getattr(case.model, "costs", None) is not None:
        sentences.append(TESTED_BEFORE)
    sentences.append(_other_scores(case))
    if case.judged is not None:
        sentences.append(case.judged.only_losing(case.names))
    tested = () if case.tested is None else case.tested.cautions
    sentences += [c.text for c in tested]
    codes = {c.code for c in tested}
    about = "" if case.tested is None else "About the validation rows: "
    if case.tuned is not None and case.tuned.reason != "suspect_input":
        sentences += [about + c.text for c in case.tuned.cautions if c.code not in codes]
        sentences.append(_way_to_decide(case.tuned))
    return [text for text in sentences if text]


def _way_to_decide(tuned: Verdict) -> str:
    """Say how few labels may be enough, where the evidence is too weak."""
    n_labels = labels_to_ask(tuned)
    if tuned.reason != "not_significant" or not 0 < n_labels < math.inf:
        return ""
    return (
        f"About {n_labels:,.0f} labels may decide if they are those of rows whose decision would "
        "change: fit with insist=True (--insist), and altnorm ask chooses them."
    )


def _other_scores(case: Case) -> str:
    """Say which scores get worse although the one that was asked for improves."""
    if case.evaluation is None or not case.evaluation.verdict.adopted:
        return ""
    # What a serious caution says of balanced accuracy need not be said twice.
    is_said = any(c.code == "other_purpose" for c in case.evaluation.verdict.cautions)
    changes = [
        rise_words(score)
        for score in case.evaluation.scores
        if score.ci_high < 0 and not (is_said and score.scoring == "balanced_accuracy")
    ]
    if not changes:
        return ""
    changed = " and ".join(changes)
    return f"Not everything improves: {changed}. Decide which score matters to you."


def why_proba(case: Case) -> Iterator[str]:
    """Say what the model does to probabilities; of what was chosen alone."""
    chosen, mixture = case.chosen, getattr(case.model, "mixture_", None)
    untouched = isinstance(chosen, Identity) if mixture is None else mixture.changes_nothing
    if untouched:
        yield "The model returns every probability as it is."
        return
    is_visible = mixture is None or mixture.weights[0] >= words.VISIBLE
    if is_visible and not isinstance(chosen, Identity):
        yield _why_correction(case, chosen)
    if mixture is not None and mixture.weights.max() < 1:
        parts = words.mixture_words(mixture.weights.tolist())
        yield f"Probabilities are a mixture that suits the labels best: {parts}."
    if mixture is not None and mixture.keeps:
        yield "Where the mixture would decide otherwise, it is drawn back to keep the decision."


def _why_correction(case: Case, chosen: Any) -> str:
    if isinstance(chosen, AlternatingNormalizer):
        in_doubt = case.kind.in_doubt(case.applied.before, chosen.threshold, k_max=chosen.k_max)
        return (
            f"{percent(float(np.mean(in_doubt)))} of the {case.kind.nouns[0]}s are in doubt, and "
            "are adjusted together with rows seen before, so that classes are used as often as "
            f"they occur ({words.setting_words(chosen.get_params())})."
        )
    if isinstance(chosen, CurveScaling):
        return (
            "The score of a class may depend on the probabilities of all others, and on sums of "
            "them, along bent lines, as learnt from labels under a penalty."
        )
    if hasattr(chosen, "matrix_"):
        return (
            "The score of a class may depend on the probabilities of all others, as learnt from "
            "labels under a penalty: classes that are mistaken for each other are told apart."
        )
    if not hasattr(chosen, "bias_"):
        return f"Every row is adjusted by {type(chosen).__name__}."
    action = "The probability of each class is multiplied"
    if case.kind.is_multilabel:
        action = "The odds of each label are raised to a power and multiplied"
    return f"{action} by a factor of its own, learnt from labels under a penalty."


def why_decision(case: Case) -> Iterator[str]:
    """Say how the model decides, unless it is for what is most probable."""
    decision = decision_of(case.model)
    if decision.is_argmax:
        return
    if decision.kind == "costs":
        yield "The decision is the one of least expected cost, not the most probable class."
    elif decision.kind == "weights":
        name = words.score_name(purpose_of(case.model).score.name)
        yield f"For {name}, the decision is the class of largest weighted probability."
    elif (decision.values != decision.values[0]).any():
        low, high = decision.values.min(), decision.values.max()
        yield f"A label is given above its own threshold, between {low:.2f} and {high:.2f}."
    elif decision.values[0] != HALF:
        yield f"A label is given where its probability exceeds {decision.values[0]:.2f}."


def capital(text: str) -> str:
    """A text that begins a sentence; other letters stay, as in micro-F1."""
    return text[0].upper() + text[1:]


def _rise(verdict: Verdict) -> str:
    return capital(rise_words(verdict))

"""Numbers and verdicts in words."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from altnorm._base.words import Figures, plural
from altnorm.adjuster.comparison import Comparison
from altnorm.evidence.sentences import remarks, rise_words, score_figures
from altnorm.evidence.verdict import Verdict
from altnorm.report._case import Case


@dataclass(frozen=True)
class Answer:
    """The answer to "should I use it?"."""

    tone: str
    headline: str
    sentence: str
    shown: Figures | None
    basis: str
    verdict: Verdict | None


def typeset(figures: Figures) -> Figures:
    """The same numbers with minus signs, and p-values that do not break."""
    numbers = {
        name: getattr(figures, name).replace("-", "\u2212").replace("unknown", "\u2013")
        for name in ("before", "after", "change", "low", "high")
    }
    return replace(figures, **numbers, p_value=figures.p_value.replace(" ", "\u00a0"))


def score_line(verdict: Verdict) -> Figures:
    """Return the numbers of a verdict as the page shows them."""
    return typeset(score_figures(verdict))


def answer(case: Case) -> Answer:
    """Say whether to use the model, in a headline and a sentence."""
    tuned, tested = case.tuned, case.tested
    if tuned is not None and not tuned.adopted:
        return _no_evidence(tuned, getattr(case.normalizer, "calibration_", None))
    if tested is None and tuned is None:
        return Answer(
            "open",
            "Open: there are no labels.",
            "The page shows what the adjustment changes. Whether that is better, only labels can "
            "tell.",
            None,
            "",
            None,
        )
    if tested is None and tuned is not None:
        line = score_line(tuned)
        unconfirmed = (
            "A test set would confirm it."
            if case.seen
            else "These predictions have no labels, so nothing here can confirm it."
        )
        sentence = (
            f"{_rise(tuned)} on validation rows that had no part in choosing the settings. "
            f"{unconfirmed}{_remarks(tuned)}"
        )
        basis = f"cross-fitted on {plural(tuned.n_rows, 'validation row')}"
        return Answer("yes", "Yes, as far as validation tells.", sentence, line, basis, tuned)
    assert tested is not None
    return _with_labels(tuned, tested)


def cautions(case: Case, comparison: Comparison | None = None) -> list[str]:
    """What the reader should know before using the answer, each in a sentence."""
    tested, tuned = (v.cautions if v is not None else () for v in (case.tested, case.tuned))
    about = "" if case.tested is None else "About the validation rows: "
    found = [c.text for c in tested] + [about + c.text for c in tuned]
    return [text for text in (_alternative(case, comparison), _other_scores(case), *found) if text]


def _alternative(case: Case, comparison: Comparison | None) -> str:
    """Say which other method helps where the model does not."""
    if comparison is None or (case.tested is not None and case.tested.adopted):
        return ""
    return comparison.alternative().replace("->", "\u2192")


def _other_scores(case: Case) -> str:
    """Say which scores get worse although the one that was asked for improves."""
    if case.evaluation is None or not case.evaluation.verdict.adopted:
        return ""
    worse = [one for one in case.evaluation.scores if one.ci_high < 0]
    if not worse:
        return ""
    lines = [score_line(one) for one in worse]
    changes = " and ".join(
        f"{line.name} {'rises' if line.lower else 'falls'} from {line.before} to {line.after}"
        for line in lines
    )
    if all(line.lower for line in lines):
        return (
            f"Use its decisions rather than its probabilities: {changes}. Calibrate afterwards if "
            "the probabilities matter to you."
        )
    return f"Not everything improves: {changes}. Decide which score matters to you."


def _with_labels(tuned: Verdict | None, tested: Verdict) -> Answer:
    line = score_line(tested)
    basis = f"on {plural(tested.n_rows, 'test row')}"
    promised = ""
    if tuned is not None:
        expected = score_line(tuned)
        promised = (
            f" Tuning had promised {expected.change} {expected.unit}".rstrip() + ", cross-fitted."
        )
    if tested.adopted:
        tone, headline = "yes", "Yes. Use it." if tuned is not None else "Yes, on these data."
        sentence = f"{_rise(tested)} {basis}.{promised}{_remarks(tested)}"
    elif tested.ci_high < 0:
        tone, headline = "no", "No. It does harm here."
        sentence = (
            f"{_rise(tested)} {basis}.{promised} Check whether these rows come from the same "
            "source as the validation rows."
        )
    else:
        tone, headline = "care", "Not settled by these data."
        if not tested.n_changed:
            sentence = f"No decision among {plural(tested.n_rows, 'test row')} changes.{promised}"
        else:
            sentence = (
                f"{_rise(tested)} {basis}: within what chance explains ({line.p_value}).{promised}"
            )
    return Answer(tone, headline, sentence, line, basis, tested)


def _no_evidence(tuned: Verdict, calibration: Verdict | None) -> Answer:
    line = score_line(tuned)
    why = {
        "identical": "no setting changed a decision",
        "no_gain": f"{line.name} did not improve ({line.before} to {line.after})",
    }.get(
        tuned.reason,
        f"the gain in {line.name} ({line.change} {line.unit}) could be chance ({line.p_value}, "
        f"and {tuned.significance:g} is the limit)",
    )
    tried = f"Tried on {plural(tuned.n_rows, 'validation row')}, {why}. "
    basis = f"the best candidate, cross-fitted on {plural(tuned.n_rows, 'validation row')}"
    if calibration is None or not calibration.adopted:
        sentence = f"{tried}So the model changes nothing: every prediction stays as it is."
        return Answer("no", "No. Leave the predictions alone.", sentence, line, basis, tuned)
    sentence = (
        f"{tried}So no decision changes. The probabilities are calibrated, because that helps: "
        f"{rise_words(calibration)}, cross-fitted."
    )
    shown = score_line(calibration)
    basis = f"cross-fitted on {plural(calibration.n_rows, 'validation row')}"
    headline = "For its probabilities, not for its decisions."
    return Answer("care", headline, sentence, shown, basis, calibration)


def _remarks(verdict: Verdict) -> str:
    """Further sentences, where interval and decision seem to disagree."""
    return "".join(f" {text[0].upper()}{text[1:]}." for text in remarks(verdict))


def _rise(verdict: Verdict) -> str:
    words = rise_words(verdict)
    return words[0].upper() + words[1:]


def value_words(value: Any) -> str:
    """A setting as text; long arrays only by their size."""
    if hasattr(value, "shape") and getattr(value, "size", 0) > 8:
        return f"array of shape {tuple(value.shape)}"
    if isinstance(value, (list, tuple)) and len(value) > 12:
        return f"{value[0]} … {value[-1]} ({len(value)} values)"
    if isinstance(value, (list, tuple)):
        return ", ".join(str(v) for v in value)
    return f"{value:g}" if isinstance(value, float) else str(value)

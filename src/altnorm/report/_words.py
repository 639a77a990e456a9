"""Numbers and verdicts in words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from altnorm.report._case import Case
from altnorm.verdict import Verdict

__all__ = [
    "Answer",
    "ScoreLine",
    "answer",
    "caution",
    "p_words",
    "plural",
    "score_line",
    "score_name",
    "setting_words",
]

NAMES = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "f1_macro": "macro-F1",
    "f1_micro": "micro-F1",
    "f1_weighted": "weighted F1",
    "f1_samples": "F1 of a row",
    "loose_macro_f1": "loose macro-F1",
    "loose_micro_f1": "loose micro-F1",
    "neg_log_loss": "log loss",
    "neg_brier_score": "Brier score",
    "top_k_accuracy": "top-2 accuracy",
    "matthews_corrcoef": "Matthews correlation",
}


@dataclass(frozen=True)
class ScoreLine:
    """A comparison as the page tells it; losses are told as losses, lower is better."""

    name: str
    before: str
    after: str
    change: str
    low: str
    high: str
    unit: str
    p_value: str
    better: str
    lower: bool
    numbers: tuple[float, float, float]


@dataclass(frozen=True)
class Answer:
    """The answer to "should I use it?"."""

    tone: str
    headline: str
    sentence: str
    shown: ScoreLine | None
    basis: str
    verdict: Verdict | None


def plural(n: int, one: str, many: str | None = None) -> str:
    """A count with its noun."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def score_name(scoring: str, multilabel: bool = False) -> str:
    """Name of a score for people."""
    if multilabel and scoring == "accuracy":
        return "exact-match accuracy"
    return NAMES.get(scoring, scoring.replace("_", " "))


def p_words(p_value: float) -> str:
    """A p-value with its sign of relation."""
    return ("p < 0.001" if p_value < 0.001 else f"p = {p_value:.2g}").replace(" ", "\u00a0")


def score_line(verdict: Verdict, multilabel: bool = False) -> ScoreLine:
    """Turn a verdict into text: percent and points, or four digits; losses positive."""
    lower = verdict.scoring.startswith("neg_")
    sign = -1.0 if lower else 1.0
    scale, digits = (100.0, 1) if verdict.in_points else (1.0, 3)
    bounds = (sign * verdict.ci_low, sign * verdict.ci_high)
    numbers = (scale * sign * verdict.gain, scale * min(bounds), scale * max(bounds))
    if verdict.in_points and max(map(abs, numbers)) < 1:
        digits = 2

    def shown(value: float, form: str = "") -> str:
        if not math.isfinite(value):
            return "–"
        rounded = round(value, digits) + 0.0  # no negative zero
        return f"{rounded:{form if rounded else ''}.{digits}f}".replace("-", "−")

    unit = " %" if verdict.in_points else ""
    return ScoreLine(
        name=score_name(verdict.scoring, multilabel),
        before=shown(sign * scale * verdict.before) + unit,
        after=shown(sign * scale * verdict.after) + unit,
        change=shown(numbers[0], "+"),
        low=shown(numbers[1], "+"),
        high=shown(numbers[2], "+"),
        unit="points" if verdict.in_points else "",
        p_value=p_words(verdict.p_value),
        better="better" if verdict.ci_low > 0 else "worse" if verdict.ci_high < 0 else "unclear",
        lower=lower,
        numbers=numbers,
    )


def answer(case: Case) -> Answer:
    """Say whether to use the model, in a headline and a sentence."""
    tuned, tested = case.tuned, case.tested
    if tuned is not None and not tuned.adopted:
        return _no_evidence(tuned)
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
        sentence = (
            f"{_rise(line, tuned)} on validation rows that had no part in choosing the settings. "
            "These predictions have no labels, so nothing here can confirm it."
        )
        basis = f"cross-fitted on {plural(tuned.n_rows, 'validation row')}"
        return Answer("yes", "Yes, as far as validation tells.", sentence, line, basis, tuned)
    assert tested is not None
    return _with_labels(tuned, tested)


def caution(case: Case) -> str:
    """Say which scores get worse although the one that was asked for improves."""
    if case.evaluation is None or not case.evaluation.verdict.adopted:
        return ""
    worse = [one for one in case.evaluation.scores if one.ci_high < 0]
    if not worse:
        return ""
    lines = [score_line(one, case.kind.is_multilabel) for one in worse]
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
        sentence = f"{_rise(line, tested)} {basis}.{promised}"
    elif tested.ci_high < 0:
        tone, headline = "no", "No. It does harm here."
        sentence = (
            f"{_rise(line, tested)} {basis}.{promised} Check whether these rows come from the same "
            "source as the validation rows."
        )
    else:
        tone, headline = "care", "Not settled by these data."
        if not tested.n_changed:
            sentence = f"No decision among {plural(tested.n_rows, 'test row')} changes.{promised}"
        else:
            sentence = (
                f"{_rise(line, tested)} {basis}: within what chance explains "
                f"({line.p_value}).{promised}"
            )
    return Answer(tone, headline, sentence, line, basis, tested)


def _no_evidence(tuned: Verdict) -> Answer:
    line = score_line(tuned)
    why = {
        "identical": "no setting changed a decision",
        "no_gain": f"{line.name} did not rise ({line.before} to {line.after})",
    }.get(
        tuned.reason,
        f"the gain in {line.name} ({line.change} {line.unit}) could be chance ({line.p_value}, "
        f"and {tuned.significance:g} is the limit)",
    )
    sentence = (
        f"Tried on {plural(tuned.n_rows, 'validation row')}, {why}. So the model changes nothing: "
        "every prediction stays as it is."
    )
    basis = f"the best candidate, cross-fitted on {plural(tuned.n_rows, 'validation row')}"
    return Answer("no", "No. Leave the predictions alone.", sentence, line, basis, tuned)


def _rise(line: ScoreLine, verdict: Verdict) -> str:
    name = line.name[0].upper() + line.name[1:]
    risen = verdict.after > verdict.before
    verb = "falls" if risen == line.lower else "rises"
    if verdict.after == verdict.before:
        return f"{name} stays at {line.before}"
    return f"{name} {verb} from {line.before} to {line.after}"


def setting_words(value: Any) -> str:
    """A setting as text; long arrays only by their size."""
    if hasattr(value, "shape") and getattr(value, "size", 0) > 8:
        return f"array of shape {tuple(value.shape)}"
    if isinstance(value, (list, tuple)) and len(value) > 12:
        return f"{value[0]} … {value[-1]} ({len(value)} values)"
    if isinstance(value, (list, tuple)):
        return ", ".join(str(v) for v in value)
    return f"{value:g}" if isinstance(value, float) else str(value)

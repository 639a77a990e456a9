"""What a verdict says, in sentences.

A decision (may this be applied?) and a test result (was it better on these rows?) come from the
same numbers and need other words: labels that do not settle a question revoke no decision.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from altnorm._base.words import Figures, figures, html_card, html_table, plural
from altnorm.method.kinds import kind_of_labels

if TYPE_CHECKING:
    from altnorm.evidence.verdict import Verdict

NOT_TRIED = ("too_few_labels", "too_much_work", "several_labels")

OUTCOMES = {
    "adopted": "Adopted",
    "not_adopted": "Not adopted",
    "not_tried": "Not tried",
    "better": "Better",
    "worse": "Worse",
    "unchanged": "No change",
    "open": "Not settled by these data",
}


def outcome(verdict: Verdict) -> str:
    """Return the key of `OUTCOMES` that a verdict comes to."""
    if verdict.reason in NOT_TRIED:
        return "not_tried"
    if verdict.is_decision:
        return "adopted" if verdict.adopted else "not_adopted"
    if verdict.adopted:
        return "better"
    if verdict.reason == "identical":
        return "unchanged"
    clear = verdict.gain < 0 and verdict.p_value < verdict.significance
    return "worse" if clear else "open"


def score_figures(verdict: Verdict) -> Figures:
    """Return the numbers of a verdict as text."""
    return figures(
        verdict.scoring,
        verdict.before,
        verdict.after,
        (verdict.ci_low, verdict.ci_high),
        verdict.p_value,
        in_points=verdict.in_points,
        multilabel=verdict.multilabel,
    )


def verdict_line(verdict: Verdict) -> str:
    """Return a verdict in one line."""
    result = outcome(verdict)
    if result == "not_tried":
        return f"{OUTCOMES[result]}: {verdict.reason_text}."
    numbers = score_figures(verdict)
    start = f"{OUTCOMES[result]}: {numbers.name}"
    if verdict.reason == "identical":
        parts = [f"{start} stays at {numbers.before}", "no decision changes"]
    else:
        lower = ", lower is better" if numbers.lower else ""
        parts = [
            f"{start} {numbers.before} -> {numbers.after} ({numbers.change_and_unit}{lower}, "
            f"{_evidence(verdict, numbers)})"
        ]
        if verdict.n_changed or not numbers.lower:  # probabilities may change without a decision
            parts.append(change_words(verdict))
    parts += remarks(verdict)
    if result == "not_adopted" and verdict.reason != "identical":
        parts.append("decisions stay as they are")
    return "; ".join(parts) + "."


def _evidence(verdict: Verdict, numbers: Figures) -> str:
    return f"{verdict.confidence:.0%} interval {numbers.low} to {numbers.high}, {numbers.p_value}"


def change_words(verdict: Verdict) -> str:
    """Say how many decisions change, and what became of them; the parts add up."""
    if not verdict.n_changed:
        return "no decision changes"
    words = kind_of_labels(verdict.multilabel).words
    total = verdict.n_fixed + verdict.n_broken + verdict.n_still_wrong + verdict.n_left
    left = f", {verdict.n_left:,} left to a person" if verdict.n_left else ""
    return (
        f"{plural(total, words.changed)} changed: {verdict.n_fixed:,} fixed, "
        f"{verdict.n_broken:,} broken{words.still_wrong.format(verdict.n_still_wrong)}{left}"
    )


def rise_words(verdict: Verdict) -> str:
    """Say how a score rises or falls."""
    numbers = score_figures(verdict)
    if not numbers.changed:
        return f"{numbers.name} stays at {numbers.before}"
    verb = "falls" if (verdict.gain > 0) == numbers.lower else "rises"
    return f"{numbers.name} {verb} from {numbers.before} to {numbers.after}"


def remarks(verdict: Verdict) -> Iterator[str]:
    """What belongs to the first line: what the evidence is, why not, and what is lost."""
    if verdict.is_decision and verdict.reason and verdict.reason != "identical":
        yield verdict.reason_text
    if verdict.evidence == "log_loss":
        yield "a gain is likely, its size is uncertain: the evidence is the log loss"
    for caution in verdict.cautions:
        if caution.serious:
            text = caution.text[0].lower() + caution.text[1:].rstrip(".")
            yield f"but {text}" if verdict.adopted else text


def verdict_html(verdict: Verdict) -> str:
    """Return a verdict for a notebook."""
    table = ""
    if outcome(verdict) != "not_tried":
        numbers = score_figures(verdict)
        interval = f"{numbers.low} to {numbers.high}"
        header = (
            numbers.name,
            "before",
            "after",
            "change",
            f"{verdict.confidence:.0%} interval",
            "p",
        )
        p_value = numbers.p_value.removeprefix("p ").removeprefix("= ")
        row = ("", numbers.before, numbers.after, numbers.change_and_unit, interval, p_value)
        table = html_table(header, [row])
    return html_card(verdict_line(verdict), [c.text for c in verdict.cautions], table)

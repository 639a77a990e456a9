"""What was found, told in the order in which people ask."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from altnorm import Adjuster
from altnorm._base.words import FAMILY_NAMES
from altnorm.adjuster.comparison import Comparison
from altnorm.adjuster.summary import does
from altnorm.cli._journey import Journey
from altnorm.cli._screen import gain_style, new_table, out, score_table, show_cautions, show_verdict
from altnorm.decisions import Decision
from altnorm.evidence.sentences import change_words, outcome, rise_words, score_figures
from altnorm.evidence.verdict import Verdict
from altnorm.report.evaluation import Evaluation

MEANINGS = {
    "accuracy": "Accuracy is the share of rows whose class is right. ",
    "balanced_accuracy": "Balanced accuracy is the share of rows whose class is right, taken for "
    "each class and averaged over the classes. ",
    "f1_micro": "Micro-F1 weighs labels found against labels missed and labels given wrongly. ",
    "neg_mean_cost": "The mean cost is what a row's decision costs on average, by your table. ",
}
MEANING = (
    "Log loss is the mean surprise at the true class: 0 for one that was certain, 0.7 for a coin "
    "toss. The 95% interval says how far chance may have moved a change; p, how often chance alone "
    "would bring one as large."
)

RULES = {
    "weights": "the class of largest weighted probability",
    "costs": "the decision of least expected cost",
    "thresholds": "every label whose probability is above its threshold",
}


def show_journey(journey: Journey, *, explain: bool) -> None:
    """Print what was found and, if asked to, what the numbers mean."""
    tuned = journey.tuned
    rows = f"{journey.validation.has_label.sum():,}"
    head(f"Should I use it? Tuned on {rows} validation rows, each judged by fits without it")
    show_verdict(tuned.verdict_)
    head("What was tried? Log loss on the same rows, lower is better")
    out.print(tried_table(tuned))
    out.print(applied_words(tuned))
    if journey.result is not None:
        _show_result(journey.result)
    if journey.compared is not None:
        _show_comparison(journey)
    if explain:
        head("What do the numbers mean?")
        out.print(MEANINGS.get(tuned.verdict_.scoring, "") + MEANING)


def head(text: str) -> None:
    """Print a heading."""
    out.print()
    out.print(Text(text, style="bold"))


def tried_table(tuned: Adjuster) -> Table:
    """One row per family: its log loss, and the change from what a temperature gives."""
    table = new_table(("", "log loss", "change", "95% interval", "result"), ("", "result"))
    tried = [one for one in tuned.families_.values() if outcome(one) != "not_tried"]
    if tried:
        table.add_row("at most a temperature", score_figures(tried[0]).before, "", "", "")
    for name, verdict in tuned.families_.items():
        label = FAMILY_NAMES.get(name, name)
        if outcome(verdict) == "not_tried":
            table.add_row(label, "", "", "", f"not tried: {verdict.reason_text}")
            continue
        figures = score_figures(verdict)
        change = Text(figures.change, style=gain_style(figures))
        interval = f"{figures.low} to {figures.high}"
        table.add_row(label, figures.after, change, interval, _fate(tuned, name, verdict))
    return table


def _fate(tuned: Adjuster, name: str, verdict: Verdict) -> str:
    if name == tuned.family_:
        return "applied"
    if verdict.reason == "no_gain":
        return "no better than a temperature"
    return "passes" if verdict.adopted else verdict.reason_text


def applied_words(tuned: Adjuster) -> str:
    """Say what is applied: to probabilities, and to decide."""
    what = f"The model {does(tuned)}."
    numbers = score_figures(tuned.calibration_)
    if numbers.changed:
        what += f" Probabilities: {numbers.name} {numbers.before} -> {numbers.after}."
    return f"{what} {_rule(tuned.decision_)}".rstrip() if tuned.verdict_.adopted else what


def _rule(decision: Decision) -> str:
    if decision.is_argmax:
        return ""
    person = " A row may be left to a person." if decision.leaves_rows else ""
    return f"It decides for {RULES[decision.kind]}.{person}"


def _show_result(result: Evaluation) -> None:
    verdict = result.verdict
    head(f"What changes? Before and after on {verdict.n_rows:,} test rows that it has not seen")
    out.print(f"On the test rows {rise_words(verdict)}; {change_words(verdict)}.")
    show_cautions(verdict.cautions)
    out.print(score_table([verdict, *result.scores]))


def _show_comparison(journey: Journey) -> None:
    compared, decision = journey.compared, journey.tuned.decision_
    assert compared is not None
    head("How does it compare? On the same test rows")
    if decision.kind != "thresholds" and not decision.is_argmax:
        out.print("The other methods decide for the most probable class.")
    out.print(comparison_table(compared))
    # Where the model does not help, its user should know what does.
    alternative = compared.alternative()
    if alternative and journey.result is not None and not journey.result.verdict.adopted:
        out.print(alternative)


def comparison_table(result: Comparison) -> Table:
    """One row per method, best first."""
    header, *lines = result.cells()
    table = new_table(header, header[:1])
    rows = sorted(result, key=lambda row: -row.score)
    for (method, score, change, *rest), row in zip(lines, rows, strict=True):
        table.add_row(method, score, Text(change, style=gain_style(result.figures(row))), *rest)
    return table


def show_files(journey: Journey) -> None:
    """Print where everything is."""
    head("Where is it?")
    out.print(f"Model:  {journey.model.absolute()} ({does(journey.tuned)})", soft_wrap=True)
    out.print(f"Report: {journey.report.absolute()}", soft_wrap=True)

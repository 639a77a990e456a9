"""``altnorm check``, the whole way from predictions to an answer, and ``altnorm demo`` of it."""

from __future__ import annotations

import webbrowser
from collections.abc import Sequence
from copy import copy
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.padding import Padding
from rich.table import Table
from rich.text import Text
from sklearn.frozen import FrozenEstimator

from altnorm import Adjuster, compare, load
from altnorm._base.errors import InputError
from altnorm._base.files import check_output
from altnorm._base.words import FAMILY_NAMES, model_words, percent
from altnorm.adjuster.comparison import AREA, LOWER, OURS, Comparison, default_methods
from altnorm.cli import _screen as screen, tune
from altnorm.cli._commands import MODEL, REPORT, Check, Demo
from altnorm.cli._folder import check_folder
from altnorm.cli._options import SIGNIFICANCE, prefix_words
from altnorm.cli._records import file_words, print_json, tested_record, tuned_record
from altnorm.cli._screen import errors, out
from altnorm.decisions.decision import decision_codes
from altnorm.decisions.purpose import purpose_of
from altnorm.estimator.base import ProbabilityTransformer, unnamed
from altnorm.estimator.explanation import ChangedRow
from altnorm.evidence.seen import would_be_found
from altnorm.evidence.verdict import family_words, outcome, score_figures
from altnorm.io.columns import read_texts
from altnorm.io.datasets import load_demo
from altnorm.io.formats import Layout
from altnorm.io.labels import names_of
from altnorm.io.predictions import Predictions, read_predictions
from altnorm.report import check_page, write_report
from altnorm.report.evaluation import TESTED_BEFORE, Evaluation, check_kind, evaluate

MEANING = (
    "Accuracy is the share of rows whose class is right. Log loss is the mean surprise at the true "
    "class: 0 for one that was certain, 0.7 for a coin toss. The 95% interval says how far chance "
    "may have moved a change; p, how often chance alone would bring one as large, up or down; a "
    "one-sided p counts one direction."
)
TUNED_BEFORE = (
    "Before: the predictions as they came, decided by cost or for the most probable class, "
    "whichever costs less here."
)


def check(options: Check) -> int:
    """Fit and judge, or judge an existing model, or judge each log of a folder."""
    useless = {"TEST": options.test is not None, "--output": options.output != MODEL}
    source, columns, tuning = options.validation, options.columns, options.tuning
    if source.is_dir():
        useless |= {
            "--model": options.model is not None,
            "--report": options.report != REPORT,
            "--text": bool(options.text),
        }
        rule = "A folder is checked task by task, and nothing is written"
        _refuse(rule, useless, "name a file")
        return int(not check_folder(source, columns, tuning, json=options.json) and options.strict)
    check_page(options.report)
    if options.model is None:
        helps = _check_fit(options)
    else:
        useless |= {
            "--costs": tuning.costs is not None,
            "--insist": tuning.insist,
            "--multilabel": tuning.multilabel is not None,
            "--significance": tuning.significance != SIGNIFICANCE,
            "--target-accuracy": tuning.target_accuracy is not None,
            "--logits": columns.logits,
        }
        rule = "With --model nothing is fitted: it takes one file of new predictions"
        _refuse(rule, useless, "--model")
        helps = _check_model(options, options.model)
    if options.open_page and options.report.exists():
        webbrowser.open(options.report.absolute().as_uri())
    return int(options.strict and not helps)


def _refuse(rule: str, useless: dict[str, bool], instead: str) -> None:
    """Raise if an option that could not be used is there."""
    for name, is_there in useless.items():
        if is_there:
            raise InputError(rule, f"{name} is given, too", f"Leave out {name}, or {instead}.")


def _page(
    options: Check, files: dict[str, Path], layout: Layout, predictions: Predictions
) -> dict[str, Any]:
    """What the report shows beside the model: the last file's texts, the files, the date."""
    texts, source = None, list(files.values())[-1]
    if options.text is not None:
        columns = read_texts(source, layout, [options.text], classes=predictions.classes)
        texts = columns[options.text]
    about = {name: file_words(path) for name, path in files.items()}
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    return {"texts": texts, "about": {**about, "Date": today}, "force": options.force}


def _check_fit(options: Check) -> bool:
    """Fit, judge, compare and write; return whether the answer is yes."""
    val, tested = read_predictions(options.validation, replace(options.columns, gaps=True)), None
    layout = replace(options.columns, logits=val.input == "logits")
    files = {"Validation rows": options.validation}
    if options.test is not None:
        tested = read_predictions(options.test, layout, classes=val.classes)
        files["Test rows"] = options.test
    # Tuning takes a while: what would be refused at its end is refused now.
    inputs = [*files.values(), options.tuning.costs, options.columns.labels]
    check_output(options.report, force=options.force, others=inputs)
    check_output(options.output, force=options.force, others=[*inputs, options.report])
    page = _page(options, files, layout, tested or val)
    estimator = Adjuster(**tune.settings_of(options.tuning, val))
    data = page["about"]["Validation rows"]
    journey = travel(
        estimator, val, tested, model=options.output, report=options.report, data=data, **page
    )
    tuned, result = journey.tuned, journey.result
    if options.json:
        print_json(journey.record())
    else:
        show_journey(journey)
        show_files(journey)
        if model_words(tuned) != "changes nothing":
            prefix = prefix_words(options.columns)
            out.say(f"Next:   altnorm apply {journey.model} NEW{prefix} -o OUT")
        tune.say_how_to_ask(tuned, journey.model, options.columns, "--report candidate.html")
    # The answer is yes unless test rows contradict it.
    return tuned.verdict_.adopted and (result is None or outcome(result.verdict) != "worse")


@dataclass(frozen=True, eq=False)
class Journey:
    """What was found on the way, and where it was written."""

    tuned: Adjuster
    result: Evaluation | None  # on the labels of test predictions
    compared: Comparison | None  # with the peers, on the same
    model: Path
    report: Path

    def record(self) -> dict[str, Any]:
        """What --json prints."""
        return {
            **tuned_record(self.tuned),
            "test": None if self.result is None else tested_record(self.result),
            "comparison": None if self.compared is None else self.compared.to_dicts(),
            "model": str(self.model),
            "report": str(self.report),
        }


def travel(
    estimator: Adjuster,
    validation: Predictions,
    test: Predictions | None,
    *,
    model: Path,
    report: Path,
    data: str,
    force: bool,
    **page: Any,
) -> Journey:
    """Tune once, judge, compare with the peers, and write report and model.

    Without test predictions the evidence is the cross-fitted one, and the report is about the
    validation predictions, whose labels it must not look at again. `data` is what the model says
    it was fitted on, and `page` what else the report shows.
    """
    tuned = tune.fit_named(estimator, validation)
    result = compared = None
    if test is not None and test.labels is not None:
        result = evaluate(tuned, test)
        # Rows without labels served as reference in tuning; peers can make no use of them.
        compared = _compare(tuned, validation.labelled(), test)
    # The report takes seconds: an interrupt meanwhile should leave nothing behind.
    page |= {"comparison": compared, "seen": test is None}
    write_report(tuned, validation if test is None else test, report, force=force, **page)
    tune.save_model(tuned, model, force=force, data=data)
    return Journey(tuned, result, compared, model, report)


def _compare(tuned: Adjuster, validation: Predictions, test: Predictions) -> Comparison:
    """Compare a fitted model with its peers, which alone are fitted here."""
    ours = copy(tuned)
    ours.input = "proba"  # what all methods are given here
    methods = {**default_methods(validation.multilabel), OURS: FrozenEstimator(ours)}
    for method in methods.values():
        if "n_jobs" in method.get_params(deep=False):
            method.set_params(n_jobs=tuned.n_jobs)
    return compare(
        validation.probabilities(),
        validation.codes,
        test.probabilities(),
        test.codes,
        methods=methods,
        scoring=purpose_of(tuned).score,
        test_groups=test.groups,
        verbose=int(errors.is_terminal),
    )


def show_journey(journey: Journey) -> None:
    """Print what was found."""
    tuned = journey.tuned
    screen.head(f"Should I use it? Cross-validated on {tuned.verdict_.n_rows:,} rows")
    screen.show_verdict(tuned.verdict_)
    if tuned.costs is not None:
        out.print(TUNED_BEFORE)
    screen.head("What was tried? Log loss on the same rows, lower is better")
    out.print(tried_table(tuned))
    out.print(tune.applied_words(tuned))
    if journey.result is not None and journey.compared is not None:
        verdict = journey.result.verdict
        was_seen = any(caution.code == "tuned_on_these_rows" for caution in verdict.cautions)
        is_known = would_be_found(tuned.seen_rows_, journey.result.applied.before)
        unseen = " that it has not seen" if is_known and not was_seen else ""
        screen.head(f"What changes? Before and after on {verdict.n_rows:,} test rows{unseen}")
        _show_judged(tuned, journey.result)
        _show_comparison(tuned, journey.result, journey.compared)


def _show_judged(model: ProbabilityTransformer, result: Evaluation) -> None:
    screen.show_verdict(result.verdict)
    if getattr(model, "costs", None) is not None:
        out.print(TESTED_BEFORE)
    for sentence in (result.applied.only_losing(names_of(model.classes_)), result.kept):
        if sentence:
            out.print(str(sentence))
    out.print(screen.score_table([result.verdict, *result.scores]))


def tried_table(tuned: Adjuster) -> Table:
    """One row per family: its log loss, and the change from what a temperature gives.

    Between the predictions as they came and what is applied: families are judged alone, and the
    mixture by weights that are fitted without the rows that judge it.
    """
    table = screen.new_table(("", "log loss", "change", "95% interval", "result"), ("", "result"))
    tried = [v for v in tuned.families_.values() if outcome(v) != "not_tried"]
    applied = score_figures(tuned.calibration_)
    table.add_row("as they came", applied.before, "", "", "")
    if tried:
        table.add_row("temperature only", score_figures(tried[0]).before, "", "", "")
    for name, verdict in tuned.families_.items():
        label = FAMILY_NAMES[name]
        share = float(tuned.mixture_.weights[0]) if name == tuned.family_ else None
        words = family_words(verdict, share)
        if outcome(verdict) == "not_tried":
            table.add_row(label, "", "", "", words)
            continue
        figures = score_figures(verdict)
        change = screen.tinted(figures.change, figures)
        table.add_row(label, figures.after, change, f"{figures.low} to {figures.high}", words)
    if tuned.family_ is not None:
        words = "the mixture, whose weights are cross-fitted, too"
        words += "; drawn back to keep decisions" if tuned.mixture_.keeps else ""
        table.add_row("what is applied", applied.after, "", "", words)
    return table


def _show_comparison(tuned: Adjuster, result: Evaluation, compared: Comparison) -> None:
    screen.head("How does it compare? On the same test rows")
    decision = tuned.decision_
    if decision.kind != "thresholds" and not decision.is_argmax:
        out.print("The other methods decide for the most probable class.")
    header, *lines = compared.cells()
    # A long header would leave no room for the names of the methods.
    losses = [name.removesuffix(LOWER) for name in header if name.endswith(LOWER)]
    table = screen.new_table([name.removesuffix(LOWER) for name in header], header[:1])
    notes = [f"Lower is better: {', '.join([*losses, 'log loss'])}"] if losses else []
    table.caption = "\n".join([*notes, AREA] if compared.has_area else notes) or None
    rows = sorted(compared, key=lambda row: -row.score)
    for (method, score, change, *rest), row in zip(lines, rows, strict=True):
        table.add_row(method, score, screen.tinted(change, compared.figures(row)), *rest)
    out.print(table)
    # Where the model does not help, or others score higher, its user should know.
    words = compared.ahead_words() if result.verdict.adopted else compared.alternative()
    if words:
        out.print(words)


def show_files(journey: Journey) -> None:
    """Print where everything is."""
    screen.head("Files written")
    out.say(f"Model:  {journey.model.absolute()} ({model_words(journey.tuned)})")
    out.say(f"Report: {journey.report.absolute()}")


# With --model: an existing model meets new predictions.


def _check_model(options: Check, model: Path) -> bool:
    """Judge a model by the labels of new rows or, without, by their looks; whether it helps."""
    fitted, source = unnamed(load(model)), options.validation
    scoring = options.tuning.scoring
    layout = replace(options.columns, logits=fitted.input == "logits")
    new = read_predictions(source, layout, classes=fitted.classes_)
    if new.labels is None:
        return _watch(fitted, new, json=options.json)
    others = [source, model, options.columns.labels]
    check_output(options.report, force=options.force, others=others)
    with screen.by_class(new.classes):
        result = evaluate(fitted, new, scoring=scoring)
    page = _page(options, {"Model": model, "Rows": source}, layout, new)
    write_report(fitted, new, options.report, scoring=scoring, **page)
    if options.json:
        print_json({"test": tested_record(result), "report": str(options.report)})
    else:
        _show_judged(fitted, result)
        tuned = getattr(fitted, "verdict_", None)
        screen.show_cautions(() if tuned is None else tuned.cautions, " from tuning")
        out.say(f"Report, with all rows that changed: {options.report.absolute()}")
    broken = result.kept is not None and result.kept.outcome == "broken"
    return result.verdict.adopted and not broken


def _watch(fitted: ProbabilityTransformer, predictions: Predictions, *, json: bool) -> bool:
    """Say whether unlabelled rows look like those that the model was tuned on."""
    check_kind(predictions, fitted)
    drift, left = fitted.drift(predictions.proba), None
    promise = getattr(getattr(fitted, "verdict_", None), "promise", None)
    if promise is not None:
        undecided = decision_codes(fitted, predictions.proba) == len(fitted.classes_)
        left = {"now": float(undecided.mean()), "at_fit": 1 - promise.share}
    if json:
        print_json({"drift": asdict(drift), "share_left": left})
    else:
        out.print(screen.advised(drift.advice, str(drift)))
        if left is not None:
            now, at_fit = map(percent, left.values())
            out.print(f"It would leave {now} of these rows to a person; at fit it was {at_fit}.")
        out.print("Only labels can say whether it helps here: `altnorm ask` chooses rows to label.")
    return drift.advice != "stop"


def demo(options: Demo) -> None:
    """Go the whole way on the predictions that ship with the package."""
    check_page(options.output)
    data = load_demo()
    journey = travel(
        Adjuster(n_jobs=options.jobs),
        data.validation,
        data.test,
        model=options.output.with_suffix(".safetensors"),
        report=options.output,
        data="the demo's 3,000 validation rows",
        force=True,
        texts=data.queries,
        title="Demo: intents of queries to an assistant",
    )
    if options.json:
        print_json(journey.record())
    else:
        screen.head("The classifier")
        classes = data.validation.proba.shape[1]
        out.print(
            f"Naive Bayes on word counts says which of {classes} intents a query to an assistant "
            "has. It was trained on imbalanced data (CLINC150, Larson et al. 2019, CC BY 3.0)."
        )
        show_journey(journey)
        screen.head("What do the numbers mean?")
        out.print(MEANING)
        if journey.result is not None:
            changed = list(journey.tuned.explain(data.test.proba))
            _show_rows(changed, journey.result, data.queries)
        show_files(journey)
        out.print("Next:   altnorm check val.parquet test.parquet --label NAME")
    if options.open_page:
        webbrowser.open(options.output.absolute().as_uri())


def _show_rows(changed: list[ChangedRow], result: Evaluation, queries: Sequence[str]) -> None:
    screen.head("Why? Three rows that were fixed and one that was broken")
    for numbers, n, mark, style in (
        (result.fixed, 3, "fixed", "green"),
        (result.broken, 1, "broken", "red"),
    ):
        for row in _telling([row for row in changed if row.row in numbers], n):
            out.print(Text(f"{mark:>6}", style=style), Text(f"“{queries[row.row]}”"))
            out.print(Padding(Text(str(row), style="dim"), (0, 0, 0, 7)))


def _telling(rows: list[ChangedRow], n: int) -> list[ChangedRow]:
    """The clearest changes, no class twice."""
    chosen: list[ChangedRow] = []
    for row in sorted(rows, key=lambda row: -row.proba_after):
        named = {name for earlier in chosen for name in (earlier.before, earlier.after)}
        if not named & {row.before, row.after}:
            chosen.append(row)
    return chosen[:n]

"""``altnorm ask`` and ``altnorm judge``: rows to label, and what their labels say of a model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from rich.text import Text

from altnorm._base.files import check_output
from altnorm._base.persistence import model_metadata
from altnorm._base.validation import check_integer
from altnorm._base.words import plural
from altnorm.adjuster import load
from altnorm.asking.judgement import GO_ON, Judgement
from altnorm.asking.questions import (
    NEITHER,
    NO_MODEL,
    OWN_COLUMNS,
    Origin,
    Questions,
    make_questions,
    read_questions,
)
from altnorm.asking.sampling import find_changes
from altnorm.cli._commands import Ask, Judge
from altnorm.cli._options import check_suffix
from altnorm.cli._records import print_json
from altnorm.cli._screen import out
from altnorm.estimator.base import unnamed
from altnorm.io.columns import read_texts
from altnorm.io.labels import names_of
from altnorm.io.predictions import read_predictions
from altnorm.report.evaluation import check_kind

_STYLES = {"adopt": "bold green", "do not adopt": "bold yellow", GO_ON: "bold"}


def ask(options: Ask) -> None:
    """Write questions about a pool, or further ones into a file of them."""
    check_integer(options.number, "number", low=1)
    check_integer(options.seed, "seed", low=0, high=2**32 - 1)
    model, output, force = options.model, options.output, options.force
    check_suffix(output, ".csv", "a CSV file to fill in")
    asked = read_questions(output) if output.exists() and not force else None
    inputs = [model, options.pool, options.against]
    check_output(output, force=force or asked is not None, others=inputs)
    n_before = 0 if asked is None else asked.n_rows
    questions = _pool_questions(options, n_before + options.number)
    if asked is not None:
        questions = asked.extended(questions)
    if questions.lines:
        questions.write(output, force=force)
    if options.json:
        source = questions.source
        counts = {"n_rows": source.n_rows, "n_changed": source.n_changed, "seed": source.seed}
        print_json({"output": str(output), "n_asked": questions.n_rows, **counts})
    else:
        _show(questions, n_before, model, output)


def _pool_questions(options: Ask, n: int) -> Questions:
    """The first `n` questions about a pool."""
    model, against, pool, layout = options.model, options.against, options.pool, options.columns
    fitted = unnamed(load(model))
    opponent = None if against is None else unnamed(load(against))
    # The pool is read without its labels; they may have gaps, or be of another kind.
    plain = replace(layout, label=None, label_prefix=None, logits=fitted.input == "logits")
    predictions = read_predictions(pool, plain, classes=fitted.classes_)
    check_kind(predictions, fitted)
    changes = find_changes(fitted, predictions.proba, opponent)
    digests = [model_metadata(path)["digest"] for path in (model, against) if path is not None]
    names = names_of(fitted.classes_)
    prefixes = {layout.prefix, layout.label_prefix or layout.prefix}
    scores_and_labels = {prefix + name for prefix in prefixes for name in names}
    hidden = scores_and_labels | set(OWN_COLUMNS)
    texts = read_texts(pool, layout, options.text or [], classes=names, hidden=hidden)
    source = Origin.of(changes, options.seed, *digests)
    return make_questions(changes, fitted.classes_, source, n=n, texts=texts)


def _show(questions: Questions, n_before: int, model: Path, output: Path) -> None:
    source = questions.source
    if not questions.lines:
        out.print(
            f"The model changes no decision in {source.n_rows:,} rows: nothing to label. One whose "
            "evidence was too weak changes them if it is tuned with --insist."
        )
        return
    added = questions.n_rows - n_before
    left = source.n_changed - questions.n_rows
    rows = f"{plural(added, 'further row' if n_before else 'row')} to label"
    out.say(
        f"{rows}, of {source.n_changed:,} that the model changes among {source.n_rows:,}"
        f"{'' if left else ' (these are all)'}: {output}"
    )
    shown = [name for name in questions.columns if name not in OWN_COLUMNS]
    hint = "no column of the pool; --text NAME shows one, or a field such as doc.question"
    out.say(f"Shown with them: {', '.join(shown) or hint}.")
    answers = "yes or no"
    if not questions.multilabel:
        answers = f"one of the candidates, another class, or `{NEITHER}`"
    out.say(
        f"Fill in the column `label` from the top ({answers}), then: altnorm judge {model} {output}"
    )


def judge(options: Judge) -> int:
    """Weigh the answers in a file of questions."""
    model, asked = options.model, options.asked
    questions = read_questions(asked)
    questions.check_model(model_metadata(model)["digest"])
    judgement = questions.judge(load(model), significance=options.significance)
    step = _next_step(judgement, questions, model, asked)
    if options.json:
        step = step.removeprefix("Next: ")
        print_json({**judgement.to_dict(), "n_asked": questions.n_rows, "next": step})
    else:
        line = Text(str(judgement))
        line.stylize(_STYLES[judgement.decision], 0, len(judgement.decision))
        out.print(line)
        out.say(step)
    return int(options.strict and not judgement.adopted)


def _next_step(judgement: Judgement, questions: Questions, model: Path, asked: Path) -> str:
    """What to do now, in one sentence."""
    has_opponent = questions.source.against != NO_MODEL
    if judgement.adopted:
        return f"Next: altnorm apply {model} IN -o OUT"
    if judgement.decision != GO_ON:
        if has_opponent:
            return "Next: keep the model that it was compared with."
        return "Next: leave the predictions as they are."
    if questions.n_rows > judgement.n_labelled:
        return f"Next: go on with question {judgement.n_labelled + 1} in {asked}."
    more = judgement.n_expected
    against = " --against MODEL0" if has_opponent else ""
    command = f"altnorm ask {model} POOL{against} -n {more} -o {asked}"
    return f"Next: {command} appends {more:,} further rows."

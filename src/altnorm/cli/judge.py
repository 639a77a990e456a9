"""``altnorm judge``: what the labels given so far say about a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from altnorm._base.persistence import load, model_metadata
from altnorm.asking.judgement import GO_ON, Judgement
from altnorm.cli import _options as options
from altnorm.cli._screen import out, print_json
from altnorm.cli.ask import pool_questions
from altnorm.io.questions import Questions, read_questions

EXAMPLE = "altnorm judge model.safetensors ask.csv"
_STYLES = {"adopt": "bold green", "do not adopt": "bold yellow", GO_ON: "bold"}


@options.grouped
def judge(
    model: options.Model,
    asked: Annotated[
        Path, typer.Argument(metavar="ASKED", help="File that `ask` wrote, with some labels.")
    ],
    pool: Annotated[
        Path | None,
        typer.Option(
            "--pool",
            metavar="POOL",
            help="If all rows are labelled and do not decide, append as many as are expected to.",
            show_default=False,
        ),
    ] = None,
    *,
    labels: options.LabelColumns,
    columns: options.ClassColumns,
    significance: options.Significance = 0.05,
    strict: options.Strict = False,
    json: options.Json = False,
) -> int:
    """Adopt, do not adopt, or go on: from the labels so far, as often as you like.

    The file may be half filled. Looking after every label does not spoil the answer.
    """
    questions = read_questions(asked)
    questions.check_model(model_metadata(model)["digest"])
    judgement = questions.judge(load(model).classes_, significance=significance)
    done = judgement.n_labelled == questions.n_rows
    n_before = questions.n_rows
    if pool is not None and judgement.decision == GO_ON and done:
        layout = columns.layout(labels)
        stop = n_before + judgement.n_expected
        more = pool_questions(model, pool, layout, questions.source.seed, stop)
        questions = questions.extended(more)
        questions.write(asked, force=True)
    step = _next_step(judgement, questions, n_before, model, asked)
    if json:
        print_json({**judgement.to_dict(), "n_asked": questions.n_rows, "next": step})
    else:
        line = Text(str(judgement))
        line.stylize(_STYLES[judgement.decision], 0, len(judgement.decision))
        out.print(line)
        out.print(step, markup=False, soft_wrap=True)
    return int(strict and not judgement.adopted)


def _next_step(
    judgement: Judgement, questions: Questions, n_before: int, model: Path, asked: Path
) -> str:
    """What to do now, in one sentence."""
    if judgement.adopted:
        return f"Next: altnorm apply {model} IN -o OUT"
    if judgement.decision != GO_ON:
        return "Next: leave the predictions as they are."
    left = questions.n_rows - judgement.n_labelled
    added = questions.n_rows - n_before
    if left:
        appended = f" ({added:,} rows were appended)" if added else ""
        return f"Next: label question {judgement.n_labelled + 1} and so on in {asked}{appended}."
    more = judgement.n_expected
    return f"Next: altnorm ask {model} POOL -n {more} -o {asked} appends {more:,} further rows."

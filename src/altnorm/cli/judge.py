"""``altnorm judge``: what the labels given so far say about a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from altnorm._base.persistence import model_metadata
from altnorm.adjuster import load
from altnorm.asking.judgement import GO_ON, Judgement
from altnorm.cli import _options as options
from altnorm.cli._screen import out, print_json
from altnorm.io.questions import NO_MODEL, Questions, read_questions

EXAMPLE = "altnorm judge model.safetensors ask.csv"
_STYLES = {"adopt": "bold green", "do not adopt": "bold yellow", GO_ON: "bold"}


def judge(
    model: options.Model,
    asked: Annotated[
        Path, typer.Argument(metavar="ASKED", help="File that `ask` wrote, with some labels.")
    ],
    *,
    significance: options.Significance = 0.05,
    strict: options.Strict = False,
    json: options.Json = False,
) -> int:
    """Adopt, do not adopt, or go on: from the labels so far, as often as you like.

    The file may be half filled. Looking after every label does not spoil the answer.
    """
    questions = read_questions(asked)
    questions.check_model(model_metadata(model)["digest"])
    judgement = questions.judge(load(model), significance=significance)
    step = _next_step(judgement, questions, model, asked)
    if json:
        print_json({**judgement.to_dict(), "n_asked": questions.n_rows, "next": step})
    else:
        line = Text(str(judgement))
        line.stylize(_STYLES[judgement.decision], 0, len(judgement.decision))
        out.print(line)
        out.print(step, soft_wrap=True)
    return int(strict and not judgement.adopted)


def _next_step(judgement: Judgement, questions: Questions, model: Path, asked: Path) -> str:
    """What to do now, in one sentence."""
    has_other = questions.source.against != NO_MODEL
    if judgement.adopted:
        return f"Next: altnorm apply {model} IN -o OUT"
    if judgement.decision != GO_ON:
        if has_other:
            return "Next: keep the model that it was compared with."
        return "Next: leave the predictions as they are."
    if questions.n_rows > judgement.n_labelled:
        return f"Next: go on with question {judgement.n_labelled + 1} in {asked}."
    more = judgement.n_expected
    other = " --against MODEL0" if has_other else ""
    command = f"altnorm ask {model} POOL{other} -n {more} -o {asked}"
    return f"Next: {command} appends {more:,} further rows."

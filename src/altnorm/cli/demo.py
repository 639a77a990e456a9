"""``altnorm demo``: the whole story on real predictions that ship inside the package."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated

import typer
from rich.padding import Padding
from rich.text import Text

from altnorm import Adjuster
from altnorm.cli import _options as options
from altnorm.cli._journey import travel
from altnorm.cli._screen import out, print_json
from altnorm.cli._story import head, show_files, show_journey
from altnorm.io.datasets import Demo, load_demo
from altnorm.method.explanation import ChangedRow
from altnorm.report import check_page
from altnorm.report.evaluation import Evaluation

EXAMPLE = "altnorm demo"


def demo(
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Report to write; the model goes beside it."
        ),
    ] = Path("altnorm-demo.html"),
    open_page: options.OpenPage = False,
    jobs: options.Jobs = -1,
    json: options.Json = False,
) -> None:
    """What `check` does, on 7,500 real queries to an assistant. Needs no network."""
    check_page(output)
    data = load_demo()
    journey = travel(
        Adjuster(n_jobs=jobs),
        data.validation,
        data.test,
        model=output.with_suffix(".safetensors"),
        report=output,
        texts=data.queries,
        title="Demo: intents of queries to an assistant",
        force=True,
    )
    if json:
        print_json(journey.to_dict())
    else:
        head("The classifier")
        classes = data.validation.proba.shape[1]
        out.print(
            f"Naive Bayes on word counts says which of {classes} intents a query to an assistant "
            "has. It was trained on imbalanced data (CLINC150, Larson et al. 2019, CC BY 3.0)."
        )
        show_journey(journey, explain=True)
        if journey.result is not None:
            _show_rows(data, journey.result)
        show_files(journey)
        out.print("Next:   altnorm check val.parquet test.parquet --label NAME")
    if open_page:
        webbrowser.open(output.absolute().as_uri())


def _show_rows(data: Demo, result: Evaluation) -> None:
    head("Why? Three rows that were fixed and one that was broken")
    fixed = _telling(result.changed(result.fixed), 3)
    broken = _telling(result.changed(result.broken), 1)
    for row, mark, style in (
        *((row, "fixed", "green") for row in fixed),
        *((row, "broken", "red") for row in broken),
    ):
        out.print(Text(f"{mark:>6}", style=style), Text(f"“{data.queries[row.row]}”"))
        out.print(Padding(Text(str(row), style="dim"), (0, 0, 0, 7)))


def _telling(rows: list[ChangedRow], n: int) -> list[ChangedRow]:
    """The clearest changes, no class twice."""
    chosen: list[ChangedRow] = []
    for row in sorted(rows, key=lambda row: -row.proba_after):
        seen = {name for one in chosen for name in (one.before, one.after)}
        if not seen & {row.before, row.after}:
            chosen.append(row)
    return chosen[:n]

"""The commands, put together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer
from rich.table import Table

from altnorm.cli import (
    adapt,
    apply,
    ask,
    check,
    demo,
    export,
    info,
    judge,
    tune,
)
from altnorm.cli._screen import out
from altnorm.cli._version import short_version, version_lines

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Start with: altnorm demo",
)


@app.callback(invoke_without_command=True)
def altnorm(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", metavar="", help="Print the version.")
    ] = False,
    verbose: Annotated[
        bool,
        typer.Option(
            "--verbose", metavar="", help="With --version: libraries, threads and devices too."
        ),
    ] = False,
) -> None:
    """Better decisions and probabilities from a classifier's predictions, only on evidence."""
    if not version:
        if context.invoked_subcommand is None:
            print(context.get_help())
        return
    if not verbose:
        print(f"altnorm {short_version()}")
    else:
        grid = Table.grid(padding=(0, 2))
        for name, value in version_lines():
            grid.add_row(name, value)
        out.print(grid)
    raise typer.Exit


def _add(function: Callable[..., Any], example: str) -> None:
    app.command(epilog=f"Example: {example}", no_args_is_help=False)(function)


_add(demo.demo, demo.EXAMPLE)
_add(check.check, check.EXAMPLE)
_add(tune.tune, tune.EXAMPLE)
_add(apply.apply, apply.EXAMPLE)
_add(adapt.adapt, adapt.EXAMPLE)
_add(ask.ask, ask.EXAMPLE)
_add(judge.judge, judge.EXAMPLE)
_add(export.export, export.EXAMPLE)
_add(info.info, info.EXAMPLE)

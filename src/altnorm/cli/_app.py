"""The commands, put together, and ``altnorm --version``."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from importlib import metadata
from typing import Annotated, Any

import typer
from joblib import cpu_count
from rich.table import Table
from threadpoolctl import threadpool_info  # type: ignore[import-untyped]

from altnorm._base.persistence import FORMAT_VERSION, versions
from altnorm.cli import adapt, apply, ask, check, demo, export, info, judge, tune
from altnorm.cli._options import flag
from altnorm.cli._screen import out

OPTIONAL = ("pyarrow", "onnx", "torch", "pyspark", "ray", "matplotlib", "jinja2")

COMMANDS: dict[Callable[..., Any], str] = {
    demo.demo: demo.EXAMPLE,
    check.check: check.EXAMPLE,
    tune.tune: tune.EXAMPLE,
    apply.apply: apply.EXAMPLE,
    adapt.adapt: adapt.EXAMPLE,
    ask.ask: ask.EXAMPLE,
    judge.judge: judge.EXAMPLE,
    export.export: export.EXAMPLE,
    info.info: info.EXAMPLE,
}

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Start with: altnorm demo",
)
for _command, _example in COMMANDS.items():
    app.command(epilog=f"Example: {_example}", no_args_is_help=False)(_command)


@app.callback(invoke_without_command=True)
def altnorm(
    context: typer.Context,
    version: Annotated[bool, flag("--version", "Print the version.")] = False,
    verbose: Annotated[
        bool, flag("--verbose", "With --version: libraries, threads and devices too.")
    ] = False,
) -> None:
    """Better decisions and probabilities from a classifier's predictions, only on evidence."""
    if not version:
        if context.invoked_subcommand is None:
            print(context.get_help())
        return
    if not verbose:
        print(f"altnorm {versions()['altnorm']}")
    else:
        grid = Table.grid(padding=(0, 2))
        for name, value in _version_lines():
            grid.add_row(name, value)
        out.print(grid)
    raise typer.Exit


def _version_lines() -> list[tuple[str, str]]:
    """What a report of a problem should say about the machine."""
    import sklearn  # noqa: F401  loads the libraries whose threads are told

    lines = list(versions().items())
    for name in OPTIONAL:
        try:
            lines.append((name, metadata.version(name)))
        except metadata.PackageNotFoundError:
            lines.append((name, "not installed"))
    for pool in threadpool_info():
        kind = pool["internal_api"]
        lines.append((kind, f"{pool.get('version') or '?'}, {pool['num_threads']} threads"))
    lines.append(("cores", f"{cpu_count()} of {os.cpu_count()}"))
    lines.append(("devices", _devices()))
    lines.append(("platform", platform.platform()))
    lines.append(("model format", str(FORMAT_VERSION)))
    return lines


def _devices() -> str:
    """Accelerators that PyTorch sees, if it is installed."""
    try:
        import torch
    except ImportError:
        return "cpu"
    names = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    return ", ".join(["cpu", *names])

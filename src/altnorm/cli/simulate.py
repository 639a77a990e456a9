"""``altnorm simulate``: the paper's Monte Carlo study, with its figure."""

from __future__ import annotations

import csv
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.table import Table

from altnorm._base.errors import InputError
from altnorm._base.files import check_output, replacing
from altnorm.cli import _options as options
from altnorm.cli._screen import out, print_json, progress
from altnorm.simulation import Design, Simulation, average, table
from altnorm.simulation import simulate as run_study
from altnorm.simulation._figure import draw_simulation, interval_names

EXAMPLE = "altnorm simulate -o simulation --draws 20"


def simulate(
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Folder for table and figure.")
    ],
    draws: Annotated[
        int, typer.Option(metavar="N", min=1, help="Draws for each pair of ambiguity intervals.")
    ] = 200,
    seed: options.Seed = 0,
    jobs: options.Jobs = -1,
    force: options.Force = False,
    json: options.Json = False,
) -> None:
    """Repeat the paper's simulation: what one iteration does to random rows.

    Writes results.csv, simulation.png and simulation.svg. The paper's 200 draws adjust 104 million
    rows.
    """
    if find_spec("matplotlib") is None:
        raise InputError("The figure needs the extra `display`: pip install 'altnorm[display]'")
    output.mkdir(parents=True, exist_ok=True)
    files = [output / name for name in ("results.csv", "simulation.png", "simulation.svg")]
    for file in files:
        check_output(file, force=force)
    design = Design(n_draws=draws, random_state=seed)
    with progress("Simulating", len(design.cells)) as advance:
        result = run_study(design, n_jobs=jobs, on_cell=lambda done, total: advance(1))
    _write_csv(result, files[0], force)
    for file in files[1:]:
        with replacing(file, force=force) as temporary:
            draw_simulation(result, temporary, file.suffix[1:])
    if json:
        print_json({"files": [str(file) for file in files], "n_rows": design.n_adjusted})
    else:
        _show(result, output)


def _write_csv(result: Simulation, path: Path, force: bool) -> None:
    columns = table(result)
    with replacing(path, force=force) as temporary, temporary.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        for row in zip(*columns.values(), strict=True):
            writer.writerow(f"{x:.5g}" if isinstance(x, float) else x for x in row)


def _show(result: Simulation, output: Path) -> None:
    names = interval_names(result.design.edges)
    gain, switched = (average(x, keep=(1, 2)).mean for x in (result.gain, result.switched))
    shown = Table(
        title="Mean gain δ and share of switched rows", box=box.SIMPLE_HEAD, title_justify="left"
    )
    shown.add_column("reference \\ row")
    for name in names:
        shown.add_column(name, justify="right")
    for name, gains, shares in zip(names, gain, switched, strict=True):
        cells = (f"{g:.2f}  {s:.1%}" for g, s in zip(gains, shares, strict=True))
        shown.add_row(name, *cells)
    out.print(shown)
    out.print(f"{result.design.n_adjusted:,} rows adjusted; table and figure in {output}")

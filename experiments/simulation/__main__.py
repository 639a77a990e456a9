"""``python -m experiments.simulation [--quick] [--output DIR]``."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from experiments._output import fill_page, interval_labels, parse_arguments, write_csv
from experiments.simulation.draws import Design
from experiments.simulation.extensions import Depths, by_depth, variants
from experiments.simulation.figures import draw_heatmaps, draw_lines
from experiments.simulation.rows import describe_rows, sharpened_share
from experiments.simulation.study import Estimate, Simulation, average, pair_table, simulate, table
from experiments.simulation.tables import make_tables

PAGE = Path(__file__).parent / "results" / "README.md"
FEW_ALPHAS = (0.1, 0.5, 1.0, 2.0, 5.0, 9.0)
FEW_SIZES = (2, 3, 5, 10, 30, 100)


def main(argv: Sequence[str] | None = None) -> None:
    arguments = parse_arguments("simulation", "The paper's Monte Carlo study.", argv)
    design, depth_design, variant_design = _designs(arguments.quick, arguments.seed)
    start = time.perf_counter()
    result = simulate(design, n_jobs=arguments.jobs, on_cell=_progress)
    seconds = time.perf_counter() - start
    print(f"\n{design.n_adjusted:,} rows in {seconds:.0f} s; depths and variants follow")
    depths = by_depth(depth_design, n_jobs=arguments.jobs)
    authors = simulate(replace(design, prior_concentration=None), n_jobs=arguments.jobs)
    others = variants(variant_design, result, authors, n_jobs=arguments.jobs)
    tables = make_tables(
        result,
        authors,
        others,
        describe_rows(depth_design, n_jobs=arguments.jobs),
        sharpened_share(depth_design, above=5),
    )
    fill_page(PAGE, arguments.output, tables)
    write_csv(arguments.output / "results.csv", table(result))
    write_csv(arguments.output / "authors_prior.csv", pair_table(authors))
    write_csv(arguments.output / "depth.csv", depth_table(depths))
    draw_figures(result, depths, arguments.output)
    print(f"results in {arguments.output}")


def _designs(quick: bool, seed: int) -> tuple[Design, Design, Design]:
    """Designs of the study, of the depths and of the variants."""
    if quick:
        small = Design(
            sizes=(2, 5, 20), alphas=FEW_ALPHAS, n_draws=10, n_rows=20, random_state=seed
        )
        return small, small, small
    few = {"sizes": FEW_SIZES, "random_state": seed}
    return (
        Design(random_state=seed),
        Design(alphas=FEW_ALPHAS, n_draws=20, **few),
        Design(n_draws=50, **few),
    )


def _progress(done: int, total: int) -> None:
    if sys.stderr.isatty():
        print(f"\r{done} of {total} cells", end="", file=sys.stderr, flush=True)


def depth_table(depths: Depths) -> dict[str, list[float]]:
    """Columns of the depth table: one row for each depth, size, pair of intervals and alpha."""
    parts = [table(Simulation(depths.design, *x)) for x in zip(*depths[1:], strict=True)]
    rows = len(parts[0]["m"])
    columns = {"depth": [depth for depth in range(1, len(parts) + 1) for _ in range(rows)]}
    return columns | {name: [x for part in parts for x in part[name]] for name in parts[0]}


def draw_figures(result: Simulation, depths: Depths, folder: Path) -> None:
    design = result.design
    labels = interval_labels(design.edges)
    draw_heatmaps(*(average(x, keep=(1, 2)) for x in result[1:]), labels, folder)
    for axis, name, x, xlabel, ticks in (
        (0, "by_size", design.sizes, "number of classes m", (2, 3, 5, 10, 20, 50, 100)),
        (4, "by_alpha", design.alphas, "exponent alpha", (0.1, 0.2, 0.5, 1, 2, 5, 9)),
    ):
        lines = [
            _split(average(v, keep=tuple(sorted((2, axis)))), axis, labels) for v in result[1:]
        ]
        draw_lines(
            x,
            *lines,
            folder,
            name,
            xlabel=xlabel,
            ticks=[t for t in ticks if t <= max(x)],
            log_gain=axis == 4,
            legend="ambiguity of b₀",
        )
    _draw_depths(depths, folder)


def _split(lines: Estimate, axis: int, labels: list[str]) -> dict[str, Estimate]:
    """One estimate for each interval of the rows."""
    parts = lines if axis == 4 else Estimate(lines.mean.T, lines.se.T)
    return {label: Estimate(*x) for label, x in zip(labels, zip(*parts, strict=True), strict=True)}


def _draw_depths(depths: Depths, folder: Path) -> None:
    lines = []
    for values in depths[1:]:
        steps = [average(x, keep=(4,)) for x in values]
        mean, se = (np.stack(x, axis=1) for x in zip(*steps, strict=True))
        lines.append(
            {f"{alpha:g}": Estimate(mean[i], se[i]) for i, alpha in enumerate(depths.design.alphas)}
        )
    x = range(1, len(depths.gain) + 1)
    draw_lines(
        x, *lines, folder, "by_depth", xlabel="depth", ticks=x, log=False, legend="exponent alpha"
    )


if __name__ == "__main__":
    main()

"""``python -m experiments.simulation.geometry [--quick] [--output DIR]``."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np

from experiments._output import fill_page, parse_arguments, write_csv
from experiments.simulation.geometry import study
from experiments.simulation.geometry.figures import (
    draw_alpha,
    draw_larger,
    draw_paths,
    draw_powers,
    draw_rates,
    draw_steps,
)
from experiments.simulation.geometry.tables import make_tables

PAGE = Path(__file__).parents[1] / "results" / "README.md"
DEPTH = 50
STARTS = np.array([0.05, 0.2, 0.35, 0.5, 0.65, 0.8, 0.95])
ONE_REFERENCE = 0.2
ROUNDED = 14  # decimals
ALPHAS = np.array([0.25, 0.35, 0.5, 0.7, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0, 3.0, 4.0])
QUICK_ALPHAS = (0.5, 1.0, 1.5, 2.0, 4.0)
SHOWN_ALPHAS = (1.5, 4.0)


def main(argv: Sequence[str] | None = None) -> None:
    arguments = parse_arguments("simulation", "One iteration in pictures; convergence.", argv)
    folder, quick = arguments.output, arguments.quick
    references = {"teaser": study.TEASER_REFERENCE, "steps": study.BINARY_REFERENCE}
    for name, reference in references.items():
        draw_steps(study.iteration_steps(np.array([0.5, 0.5]), reference), folder, name)
    report_alpha(folder, quick)
    results = report_two_by_two(folder, quick) | report_larger(folder, quick, arguments.seed)
    fill_page(PAGE, folder, make_tables(**results))
    print(f"results in {folder}")


def report_alpha(folder: Path, quick: bool) -> None:
    """The effect of alpha on one iteration."""
    first = np.linspace(0.001, 0.999, 51 if quick else 333)
    shown = (0.25, 0.5, 1.0, 2.0, 4.0, 16.0)
    curves = dict(zip(shown, study.alpha_curves(first, np.array(shown)), strict=True))
    powers = np.array([0.5, 1.0, 2.0, 5.0])
    lines = dict(zip(powers.tolist(), study.power_curves(first, powers), strict=True))
    draw_powers(lines, study.power_curves(np.array([0.5]), powers)[:, 0], folder)
    alphas = np.geomspace(0.1, 35, 25 if quick else 101)
    starts = np.array([0.1, 0.2, 0.3, 0.4, 0.5])
    by_alpha = study.alpha_curves(starts, alphas)
    draw_alpha(first, curves, alphas, dict(zip(starts, by_alpha.T, strict=True)), folder)
    columns = {"alpha": np.repeat(alphas, len(starts)), "b0": np.tile(starts, len(alphas))}
    write_csv(folder / "alpha.csv", _plain(columns | {"b1": by_alpha.ravel()}))


def report_two_by_two(folder: Path, quick: bool) -> dict:
    """Paths, limits and rates of two rows in two classes."""
    paths = {a: study.two_by_two_paths(STARTS, ONE_REFERENCE, a, DEPTH) for a in (0.5, 1.0, 2.0)}
    draw_paths(STARTS, ONE_REFERENCE, {a: path[:13] for a, path in paths.items()}, folder)
    limits = study.two_by_two_limit(STARTS, ONE_REFERENCE)
    rates = study.two_by_two_rate(STARTS, ONE_REFERENCE)
    certain = study.certain_reference(10 * DEPTH)
    # A row at p_A, or at 1 - p_A where it starts at its limit, has no distance to show.
    chosen = [i for i in range(len(STARTS)) if abs(STARTS[i] - limits[i]) > 1e-9 and rates[i] > 0]
    draw_rates(
        {f"{STARTS[i]:g}": np.abs(paths[1.0][:, i] - limits[i]) for i in chosen},
        {f"{STARTS[i]:g}": float(rates[i]) for i in chosen},
        certain,
        folder,
    )
    _write_paths(folder, paths, limits)
    grid = np.linspace(0.05, 0.95, 7 if quick else 19)
    ends = study.grid_of_limits(grid, 4 * DEPTH)
    error = np.abs(ends - study.two_by_two_limit(grid[None, :], grid[:, None])).max()
    return {"grid_error": error, "grid_largest": ends.max(), "certain": certain}


def _write_paths(folder: Path, paths: dict[float, np.ndarray], limits: np.ndarray) -> None:
    ends = {0.5: np.full_like(limits, 0.5), 1.0: limits, 2.0: np.sign(limits - 0.5) / 2 + 0.5}
    keys = list(product(paths, range(DEPTH + 1), range(len(STARTS))))
    columns = {
        "alpha": [alpha for alpha, _, _ in keys],
        "reference": [ONE_REFERENCE] * len(keys),
        "row": [STARTS[i] for _, _, i in keys],
        "depth": [depth for _, depth, _ in keys],
        "first_class": [paths[alpha][depth, i] for alpha, depth, i in keys],
        "limit": [ends[alpha][i] for alpha, _, i in keys],
    }
    write_csv(folder / "two_by_two.csv", columns)


def report_larger(folder: Path, quick: bool, seed: int) -> dict:
    """Rates and fates of random problems with more classes."""
    alphas = np.array(QUICK_ALPHAS) if quick else ALPHAS
    sizes = (3, 10, 30) if quick else (3, 10, 30, 100)
    n_problems = 3 if quick else 20
    rates = study.larger_rates(sizes, n_problems, DEPTH, seed)
    fates = study.fates(sizes, alphas, n_problems // 2 + 1, DEPTH, seed)
    draw_larger(rates, fates, sizes, alphas, folder)
    columns = {"m": rates.m, "measured": rates.measured, "predicted": rates.predicted}
    write_csv(folder / "rates.csv", _plain(columns))
    pairs = {"m": np.repeat(sizes, len(alphas)), "alpha": np.tile(alphas, len(sizes))}
    write_csv(
        folder / "fates.csv",
        _plain(pairs | {name: x.ravel() for name, x in fates._asdict().items()}),
    )
    few = [i for i, alpha in enumerate(alphas) if alpha in SHOWN_ALPHAS]
    shown = study.Fates(*(x[:, few] for x in fates))
    return {"rates": rates, "fates": shown, "sizes": sizes, "alphas": alphas[few]}


def _plain(columns: dict[str, np.ndarray]) -> dict[str, list]:
    """Columns as lists; what is nothing but rounding, and differs by machine, becomes 0."""
    return {name: np.round(values, ROUNDED).tolist() for name, values in columns.items()}


if __name__ == "__main__":
    main()

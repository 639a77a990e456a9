"""``python -m experiments.blur --data DIR [--quick] [--output DIR]``."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from itertools import chain, product
from pathlib import Path

from joblib import Parallel, delayed

from experiments._output import parse_arguments, write_csv
from experiments.blur import study
from experiments.blur.figures import draw_gains, draw_references
from experiments.blur.page import write_page
from experiments.blur.study import Measured

HOLDS = "imagenet5k_lite0_blur00.npz to imagenet5k_lite0_blur32.npz"
TENTHS = tuple(round(0.1 * i, 1) for i in range(1, 10))
FULL = study.Grid((*TENTHS, *map(float, range(1, 36))), (*TENTHS, 1.0, 2.0, 3.0), 5, {})
QUICK = study.Grid(
    (0.5, 1.0, 2.0), (1.0,), 2, {"alphas": (0.5, 1.0, 2.0), "depths": (1,), "n_repeats": 1}
)
SHARES = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)


def main(argv: Sequence[str] | None = None) -> None:
    arguments = parse_arguments("blur", "Gain against blur.", argv, data=HOLDS)
    report(measure(arguments), arguments.output, quick=arguments.quick)
    print(f"results in {arguments.output}")


def measure(arguments: Namespace) -> Measured:
    """Measure all blurs."""
    quick = arguments.quick
    grid, seeds, halves = (QUICK, (0,), (0,)) if quick else (FULL, (0, 1, 2), (0, 1))
    paths = {sigma: study.blur_path(arguments.data, sigma) for sigma in study.SIGMAS}
    parallel = Parallel(n_jobs=arguments.jobs)
    gains = parallel(
        delayed(study.measure_split)(paths[sigma], sigma, arguments.seed + seed, half, grid)
        for sigma, seed, half in product(study.SIGMAS, seeds, halves)
    )
    references = parallel(
        delayed(study.measure_references)(path, sigma, SHARES, 1 if quick else 6, arguments.seed)
        for sigma, path in paths.items()
    )
    doubt = {sigma: study.measure_doubt(path) for sigma, path in paths.items()}
    return Measured(list(chain(*gains)), list(chain(*references)), doubt)


def report(measured: Measured, folder: Path, *, quick: bool) -> None:
    """Write tables, figures and the page."""
    for name, table in (("gains", measured.gains), ("references", measured.references)):
        columns = {key: [record[key] for record in table] for key in table[0]}
        write_csv(folder / f"{name}.csv", columns)
    draw_gains(measured.gains, measured.doubt, folder)
    draw_references(measured.references, folder)
    (folder / "README.md").write_text(write_page(measured, quick=quick), encoding="utf-8")


if __name__ == "__main__":
    main()

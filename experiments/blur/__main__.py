"""``python -m experiments.blur --data DIR [--device cuda] [--quick] [--output DIR]``.

What the paper did, the whole grid on all images, comes from ``experiments.blur.published``, and
the same question on language from ``experiments.blur.corruption``.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from itertools import chain, product
from pathlib import Path

from joblib import Parallel, delayed

from experiments._methods import SMALL_MENU
from experiments._output import fill_page, parse_arguments, read_records, write_records
from experiments.blur import study
from experiments.blur.grid import DEVICE
from experiments.blur.tables import make_tables

PAGE = Path(__file__).parent / "results" / "README.md"
HOLDS = "imagenet5k_lite0_blur00.npz to imagenet5k_lite0_blur32.npz"
TENTHS = tuple(round(0.1 * i, 1) for i in range(1, 10))
FULL = study.Grid((*TENTHS, *map(float, range(1, 36))), (*TENTHS, 1.0, 2.0, 3.0), 5, SMALL_MENU)
QUICK = study.Grid((0.5, 1.0, 2.0), (1.0,), 2, {"alphas": (0.5, 1.0, 2.0), "depths": (1,)})
SHARES = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)


def main(argv: Sequence[str] | None = None) -> None:
    options = {"--device": DEVICE}
    arguments = parse_arguments(
        "blur", "Gain against blur.", argv, data=HOLDS, options=options, has_tables=True
    )
    if not arguments.tables:
        measure(arguments)
    if not arguments.measure:
        report(arguments.output)
    print(f"results in {arguments.output}")


def measure(arguments: Namespace) -> None:
    """Measure all blurs, and write the numbers down."""
    quick, folder = arguments.quick, arguments.output
    grid, seeds, halves = (QUICK, (0,), (0,)) if quick else (FULL, (0, 1, 2), (0, 1))
    paths = {sigma: study.blur_path(arguments.data, sigma) for sigma in study.SIGMAS}
    parallel = Parallel(n_jobs=arguments.jobs)
    gains = parallel(
        delayed(study.measure_split)(
            paths[sigma], sigma, arguments.seed + seed, half, grid, arguments.device
        )
        for sigma, seed, half in product(study.SIGMAS, seeds, halves)
    )
    references = parallel(
        delayed(study.measure_references)(path, sigma, SHARES, 1 if quick else 6, arguments.seed)
        for sigma, path in paths.items()
    )
    write_records(folder / "gains.csv", list(chain(*gains)))
    write_records(folder / "references.csv", list(chain(*references)))
    doubt = [{"sigma": s} | study.measure_doubt(path)._asdict() for s, path in paths.items()]
    write_records(folder / "doubt.csv", doubt)


def report(folder: Path) -> None:
    """Figures and page from the numbers; what other commands measure is the committed."""
    # Imported here: a machine that only measures, with a GPU, need not have matplotlib.
    from experiments.blur import figures
    from experiments.blur.corruption import figures as language_figures, tables as language_tables
    from experiments.blur.corruption.__main__ import FULL as CORRUPTIONS

    names = ("gains", "references", "doubt")
    gains, references, doubt = (read_records(folder / f"{name}.csv") for name in names)
    published, language = (
        read_records(PAGE.with_name(f"{name}.csv")) for name in ("published", "corruption")
    )
    figures.draw_example(folder)
    figures.draw_gains(gains, {row["sigma"]: row["share"] for row in doubt}, folder)
    figures.draw_published(published, folder)
    figures.draw_references(references, folder)
    for kind in CORRUPTIONS.rates:
        language_figures.draw_gains(language, CORRUPTIONS, kind, folder)
    tables = make_tables(gains, references, doubt, published)
    fill_page(PAGE, folder, tables | language_tables.make_tables(language, CORRUPTIONS))


if __name__ == "__main__":
    main()

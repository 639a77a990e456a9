"""The blur study on language: ``python -m experiments.blur.corruption --data DIR [--quick]``.

It only measures; ``python -m experiments.blur --tables`` makes figures and page.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from itertools import chain, product
from typing import Any

from joblib import Parallel, delayed

from experiments._methods import SMALL_MENU
from experiments._output import parse_arguments, write_records
from experiments.blur.corruption import data, study
from experiments.blur.study import Grid

HOLDS = "the folders clinc150 and banking77"
TENTHS = tuple(round(0.1 * i, 1) for i in range(1, 10))
FULL = study.Design(
    data.CORPORA,
    {"typos": (0.05, 0.1, 0.2, 0.4), "dropped words": (0.2, 0.4, 0.6, 0.8)},
    n_seeds=2,
    grid=Grid(
        (*TENTHS, 1.0, 2.0, 3.0, 4.0, 6.0, 9.0, 16.0, 35.0), (0.7, 0.9, 1.0, 2.0), 3, SMALL_MENU
    ),
)
QUICK = study.Design(
    ("banking77",),
    {"typos": (0.1, 0.3), "dropped words": (0.3, 0.7)},
    n_seeds=1,
    grid=Grid((0.5, 1.0, 2.0), (1.0,), 2, {"alphas": (0.5, 1.0, 2.0), "depths": (1,)}),
)


def main(argv: Sequence[str] | None = None) -> None:
    arguments = parse_arguments("blur", __doc__, argv, data=HOLDS)
    records = measure(arguments, QUICK if arguments.quick else FULL)
    write_records(arguments.output / "corruption.csv", records)
    print(f"results in {arguments.output}")


def measure(arguments: Namespace, design: study.Design) -> list[dict[str, Any]]:
    """Measure all classifiers."""
    parts = Parallel(n_jobs=arguments.jobs)(
        delayed(study.measure)(arguments.data, corpus, model, design, arguments.seed)
        for corpus, model in product(design.corpora, study.MODELS)
    )
    return list(chain(*parts))


if __name__ == "__main__":
    main()

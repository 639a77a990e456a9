"""Run every method on every classifier: ``python -m experiments.suite --data FOLDER``."""

from __future__ import annotations

from collections.abc import Sequence

from joblib import Parallel, delayed

from experiments._output import parse_arguments
from experiments.suite.figure import draw_gains
from experiments.suite.files import suite_paths
from experiments.suite.measure import measure
from experiments.suite.page import write_page


def main(argv: Sequence[str] | None = None) -> None:
    """Measure all classifiers in a folder."""
    arguments = parse_arguments("suite", __doc__, argv, data="the predictions (.npz)")
    paths = suite_paths(arguments.data, quick=arguments.quick)
    parallel = Parallel(n_jobs=arguments.jobs, return_as="generator")
    rows = []
    for part in parallel(delayed(measure)(path, arguments.seed) for path in paths):
        print(f"done: {part[0]['classifier']}", flush=True)
        rows += part
    draw_gains(rows, arguments.output)
    print(write_page(rows, arguments.output))


if __name__ == "__main__":
    main()

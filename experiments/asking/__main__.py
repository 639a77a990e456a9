"""``python -m experiments.asking --data FOLDER [--quick] [--output DIR]``."""

from __future__ import annotations

from collections.abc import Sequence

from joblib import Parallel, delayed

from experiments._output import parse_arguments, write_csv
from experiments.asking.figures import draw_labels
from experiments.asking.page import write_page
from experiments.asking.study import Summary, measure
from experiments.suite.files import suite_paths

RUNS, QUICK_RUNS = 500, 20


def main(argv: Sequence[str] | None = None) -> None:
    """Measure all classifiers in a folder."""
    arguments = parse_arguments("asking", __doc__, argv, data="the predictions (.npz)")
    paths = suite_paths(arguments.data, quick=arguments.quick)
    n_runs = QUICK_RUNS if arguments.quick else RUNS
    parts = Parallel(n_jobs=arguments.jobs)(
        delayed(measure)(path, n_runs, arguments.seed) for path in paths
    )
    found = [one for part in parts for one in part]
    columns = {name: [getattr(one, name) for one in found] for name in Summary._fields}
    write_csv(arguments.output / "asking.csv", columns)
    draw_labels(found, arguments.output)
    (arguments.output / "README.md").write_text(write_page(found), encoding="utf-8")
    print(f"results in {arguments.output}")


if __name__ == "__main__":
    main()

"""``python -m experiments.last_layer [--quick] [--output DIR]``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch

from experiments._output import fill_page, parse_arguments, write_csv
from experiments.last_layer.study import Design, Record, run
from experiments.last_layer.tables import make_tables

PAGE = Path(__file__).parent / "results" / "README.md"


def main(argv: Sequence[str] | None = None) -> None:
    arguments = parse_arguments("last_layer", "A network trained through the module.", argv)
    torch.set_num_threads(1)  # the network is too small for more
    design = Design(n_seeds=2, epochs=12) if arguments.quick else Design()
    records: list[Record] = []
    for seed in range(arguments.seed, arguments.seed + design.n_seeds):
        records += run(seed, design)
        print(f"draw {seed + 1 - arguments.seed} of {design.n_seeds}", flush=True)
    fill_page(PAGE, arguments.output, make_tables(records))
    write_csv(
        arguments.output / "results.csv",
        {name: [getattr(r, name) for r in records] for name in Record._fields},
    )
    print(f"results in {arguments.output}")


if __name__ == "__main__":
    main()

"""The paper's whole grid on every classifier.

``python -m experiments.suite.published --data FOLDER [--device cuda]`` writes the settings that the
paper's tuning chooses, for a uniform prior and for counted class frequencies; the suite reads them.
Minutes on a GPU, many hours on a CPU; several labels per row need no GPU, and a quarter of an hour.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from altnorm.evidence.verdict import compare_predictions
from experiments._output import parse_arguments, write_records
from experiments.suite.files import read_classifier, suite_paths
from experiments.suite.paper import (
    COUNTED,
    UNIFORM,
    PaperTuning,
    choose,
    frequencies,
    prior_for,
)

DEVICE = {"metavar": "NAME", "help": "PyTorch device, such as cuda; without it NumPy is used"}


def measure(path: Path, seed: int, device: str | None) -> list[dict[str, Any]]:
    """Choose on validation data and measure on test data, once for each prior."""
    data = read_classifier(path, seed=seed)
    rows = []
    for kind in (COUNTED,) if data.multilabel else (UNIFORM, COUNTED):
        start = time.perf_counter()
        prior = frequencies(kind, data.val_y, data.val_proba.shape[1])
        best = choose(data.val_proba, data.val_y, prior, device=device)
        seconds = time.perf_counter() - start
        fitted = PaperTuning(kind, best[:3]).fit(data.val_proba, data.val_y)
        after = fitted.transform(data.test_proba)
        found = compare_predictions(data.test_y, data.test_proba, after, scoring=None)
        gains = {name: 100 * getattr(found, name) for name in ("gain", "ci_low", "ci_high")}
        allowed = data.multilabel or kind == prior_for(data.name)
        rows.append(
            {"classifier": data.name, "prior": kind, "allowed": allowed}
            | {**best._asdict(), "score": 100 * best.score}
            | {**gains, "seconds": seconds}
        )
    return rows


def main(argv: Sequence[str] | None = None) -> None:
    """Search all classifiers in a folder."""
    options = {"--device": DEVICE}
    arguments = parse_arguments(
        "suite", __doc__, argv, data="the predictions (.npz)", options=options
    )
    rows: list[dict[str, Any]] = []
    for path in suite_paths(arguments.data, quick=arguments.quick):
        rows += measure(path, arguments.seed, arguments.device)
        print(*rows[-1].values(), flush=True)
        write_records(arguments.output / "published.csv", rows)  # what is done is kept


if __name__ == "__main__":
    main()

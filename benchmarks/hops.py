"""How much of the package a reader meets: ``python -m benchmarks.hops``.

Runs four journeys and counts the functions and files of altnorm that each of them enters.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import altnorm
from altnorm import Adjuster
from benchmarks.bench_tuning import confused_pairs

ROOT = str(Path(altnorm.__file__).parent)


def hops(journey: Callable[[], object]) -> tuple[int, int]:
    """Count the functions and the files of altnorm that a journey enters."""
    entered: set[tuple[str, str]] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(ROOT):
            entered.add((code.co_filename, code.co_qualname))

    sys.setprofile(note)
    try:
        journey()
    finally:
        sys.setprofile(None)
    # Modules, classes and small functions without a name of their own are not places to read.
    functions = {one for one in entered if "<" not in one[1].replace("<locals>", "")}
    return len(functions), len({name for name, _ in functions})


def check(folder: Path, proba: np.ndarray, y: np.ndarray) -> None:
    """Run ``altnorm check`` on two halves."""
    from altnorm.cli._run import run as run_command

    half = len(y) // 2
    for name, rows in (("val", slice(half)), ("test", slice(half, None))):
        np.savez(folder / f"{name}.npz", proba=proba[rows], labels=y[rows])
    with redirect_stdout(StringIO()):
        outputs = ["-o", str(folder / "model"), "--report", str(folder / "report.html"), "-j", "1"]
        run_command(["check", str(folder / "val.npz"), str(folder / "test.npz"), *outputs])


def run() -> None:
    """Print the table."""
    from altnorm.onnx import export

    proba, y = confused_pairs(2_000, 6)
    model = Adjuster().fit(proba, y)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        journeys: dict[str, Callable[[], object]] = {
            "Adjuster().fit": lambda: Adjuster().fit(proba, y),
            ".transform": lambda: model.transform(proba),
            "altnorm check VAL TEST": lambda: check(folder, proba, y),
            "altnorm.onnx.export": lambda: export(model, folder / "model.onnx"),
        }
        print("| journey | functions | files |\n|---|---:|---:|")
        for journey, start in journeys.items():
            functions, files = hops(start)
            print(f"| `{journey}` | {functions} | {files} |", flush=True)


if __name__ == "__main__":
    run()

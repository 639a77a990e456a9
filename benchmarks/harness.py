"""What a benchmark is: a named function that returns rows of the table."""

from __future__ import annotations

import importlib
import json
import pkgutil
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import benchmarks


class Row(NamedTuple):
    """One line of the table."""

    name: str
    what: str
    measured: str
    target: str = ""
    ok: bool | None = None  # None where there is no target


Benchmark = Callable[[], list[Row]]
_registry: dict[str, Benchmark] = {}


def benchmark(function: Benchmark) -> Benchmark:
    """Register `function` under its own name."""
    _registry[function.__name__] = function
    return function


def discover() -> dict[str, Benchmark]:
    """Import every ``bench_*`` module and return the benchmarks by name."""
    for module in pkgutil.iter_modules(benchmarks.__path__, "benchmarks."):
        if module.name.startswith("benchmarks.bench_"):
            importlib.import_module(module.name)
    return dict(_registry)


def seconds(function: Callable[[], object]) -> float:
    """Wall-clock time of one call."""
    start = perf_counter()
    function()
    return perf_counter() - start


def alternate(*contenders: Callable[[], object], repeats: int = 5) -> list[float]:
    """Shortest time of each contender, taking turns so that they share what the machine does."""
    times = [[seconds(contender) for contender in contenders] for _ in range(repeats)]
    return [min(column) for column in zip(*times, strict=True)]


def run_alone(module: str, *arguments: object) -> Any:
    """What ``python -m benchmarks.MODULE`` prints last, as JSON: a process has its own memory."""
    command = [sys.executable, "-m", f"benchmarks.{module}", *map(str, arguments)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def peak_gigabytes() -> float:
    """Largest resident size of this process so far.

    Linux counts a parent's memory at the time of the fork into ``ru_maxrss``, but not into VmHWM.
    """
    status = Path("/proc/self/status")
    if status.exists():
        (line,) = (x for x in status.read_text().splitlines() if x.startswith("VmHWM"))
        return int(line.split()[1]) * 1024 / 1e9
    unit = 1 if sys.platform == "darwin" else 1024  # bytes there, KiB elsewhere
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9


def at_most(name: str, what: str, ratio: float, limit: float, detail: str) -> Row:
    """A ratio that must not exceed a limit."""
    return Row(name, what, f"{ratio:.2f}x ({detail})", f"<= {limit:g}x", ratio <= limit)

"""The machine and the versions, in one line."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_info  # type: ignore[import-untyped]

LIBRARIES = ("altnorm", "numpy", "scipy", "scikit-learn")


def describe() -> str:
    """CPU, cores, BLAS, versions."""
    versions = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    return (
        f"{cpu_model()}, {cores()} cores; {blas()}; Python {platform.python_version()}, {versions}"
    )


def cpu_model() -> str:
    """Name of the processor, as the system gives it."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def blas() -> str:
    """Library, kernel and threads behind NumPy's matrix product."""
    np.ones((2, 2)) @ np.ones((2, 2))
    found = [info for info in threadpool_info() if info["user_api"] == "blas"]
    if not found:
        return "BLAS unknown"
    info = found[0]
    kernel = info.get("architecture", "")
    return f"{info['internal_api']} {info['version']} {kernel} with {info['num_threads']} threads"

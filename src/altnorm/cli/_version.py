"""``altnorm --version``."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version

from joblib import cpu_count
from threadpoolctl import threadpool_info  # type: ignore[import-untyped]

from altnorm._base.persistence import FORMAT_VERSION, versions

OPTIONAL = ("pyarrow", "onnx", "torch", "pyspark", "ray", "matplotlib", "jinja2")


def short_version() -> str:
    """Return the version of altnorm."""
    return versions()["altnorm"]


def version_lines() -> list[tuple[str, str]]:
    """Return what a report of a problem should say about the machine."""
    import sklearn  # noqa: F401  loads the libraries whose threads are told

    lines = list(versions().items())
    for name in OPTIONAL:
        try:
            lines.append((name, version(name)))
        except PackageNotFoundError:
            lines.append((name, "not installed"))
    for pool in threadpool_info():
        kind = pool["internal_api"]
        lines.append((kind, f"{pool.get('version') or '?'}, {pool['num_threads']} threads"))
    lines.append(("cores", f"{cpu_count()} of {os.cpu_count()}"))
    lines.append(("devices", _devices()))
    lines.append(("platform", platform.platform()))
    lines.append(("model format", str(FORMAT_VERSION)))
    return lines


def _devices() -> str:
    """Accelerators that PyTorch sees, if it is installed."""
    try:
        import torch
    except ImportError:
        return "cpu"
    names = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    return ", ".join(["cpu", *names])

"""Which modules are collected for doctests, and what a skipped test means."""

import os
from collections.abc import Generator
from importlib.util import find_spec

import pytest

# Figures in examples are drawn without a screen; set before anything imports matplotlib.
os.environ.setdefault("MPLBACKEND", "Agg")

REQUIRE_ALL = os.environ.get("ALTNORM_REQUIRE_ALL") == "1"

# Modules of src/altnorm that can be imported only with an extra. Under ALTNORM_REQUIRE_ALL they are
# collected regardless, so that a missing extra is an error and not a silence.
NEEDS = {
    "arrow.py": "pyarrow",
    "cli": "typer",
    "deploy/arrow.py": "pyarrow",
    "deploy/graph.py": "onnx",
    "deploy/onnx.py": "onnx",
    "deploy/ray.py": "ray",
    "deploy/spark.py": "pyspark",
    "deploy/torch.py": "torch",
    "onnx.py": "onnx",
    "ray.py": "ray",
    "report": "jinja2",
    "report/display": "matplotlib",
    "spark.py": "pyspark",
    "torch.py": "torch",
}

HEAVY = tuple(
    f"src/altnorm/{folder}{name}"
    for folder in ("", "deploy/")
    for name in ("ray.py", "spark", "torch")
)

# A few files take half of the time: processes that are killed, files that are damaged, arrays of
# every library, pages and studies that are run.
SLOW = tuple(
    f"tests/{name}"
    for name in (
        "adjuster/test_estimators_on_arrays",
        "cli/test_journey",
        "experiments/",
        "io/test_faults",
        "io/test_fuzz",
        "project/test_docs",
    )
)

collect_ignore = [
    f"src/altnorm/{path}"
    for path, library in NEEDS.items()
    if find_spec(library) is None and not REQUIRE_ALL
]
collect_ignore.append("src/altnorm/_base/cuda.py")  # has no examples, and needs a device to import


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what `make test` leaves to `make test-all`."""
    for item in items:
        path = item.path.relative_to(item.config.rootpath).as_posix()
        if path.startswith(HEAVY):
            item.add_marker(pytest.mark.heavy)
        if path.startswith(SLOW):
            item.add_marker(pytest.mark.slow)


def _fail_if_skipped(report: pytest.TestReport | pytest.CollectReport) -> None:
    excused = hasattr(report, "wasxfail") or "device" in getattr(report, "keywords", ())
    if not (REQUIRE_ALL and report.skipped) or excused:
        return
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
    report.outcome = "failed"
    report.longrepr = f"{report.nodeid}: skipped, and ALTNORM_REQUIRE_ALL=1 is set. {reason}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    _fail_if_skipped(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    _fail_if_skipped(report)
    return report

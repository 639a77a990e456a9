"""How long a newcomer waits: importing altnorm, and the demonstration."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from tempfile import TemporaryDirectory

from benchmarks.harness import Row, alternate, benchmark, seconds

LIMIT_IMPORT, LIMIT_DEMO = 0.4, 30


@benchmark
def importing() -> list[Row]:
    """Importing altnorm beside importing scikit-learn."""
    ours, theirs = alternate(lambda: _python("import altnorm"), lambda: _python("import sklearn"))
    more = ours - theirs
    measured = f"{more:.2f} s more ({ours:.2f} and {theirs:.2f} s)"
    return [
        Row(
            "import altnorm",
            "beside import sklearn",
            measured,
            f"< {LIMIT_IMPORT:g} s more",
            more < LIMIT_IMPORT,
        )
    ]


@benchmark
def command_demo() -> list[Row]:
    """The whole of ``altnorm demo``."""
    if find_spec("typer") is None:
        return [Row("altnorm demo", "", "not installed")]
    code = "import sys; from altnorm.cli import main; sys.argv = ['altnorm', 'demo']; main()"
    time = seconds(lambda: _python(code))
    what = "tuning, evaluation and comparison, 3,000 + 4,500 rows, 150 classes"
    return [Row("altnorm demo", what, f"{time:.1f} s", f"< {LIMIT_DEMO} s", time < LIMIT_DEMO)]


def _python(code: str) -> None:
    with TemporaryDirectory() as folder:  # the demonstration leaves a report behind
        command = [sys.executable, "-c", code]
        subprocess.run(command, check=True, capture_output=True, cwd=folder)

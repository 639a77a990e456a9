"""A bounded run of the fuzzing harness; ``python -m benchmarks.soak`` goes on for longer."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzzing import CASES

COUNTS = dict.fromkeys(CASES, 40) | {"options": 25, "kernel": 150}


@pytest.mark.parametrize("what", CASES)
def test_damaged_input_is_answered_or_refused(tmp_path, what):
    command = [sys.executable, "-W", "error", "-m", "tests.fuzzing", what, "0", "0"]
    done = subprocess.run(
        [*command, str(COUNTS[what]), tmp_path],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 0, f"case {(tmp_path / 'number').read_text()}: {done.stderr[-3000:]}"

"""A bounded run of the fuzzing harness; ``python -m benchmarks.soak`` goes on for longer."""

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import soak
from tests.fuzzing import CASES

COUNTS = dict.fromkeys(CASES, 40) | {"options": 25}


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


def test_a_soak_has_as_many_cases_of_each_kind_as_asked_for():
    plan = list(soak.plan_series(["csv", "npz"], 7, 450, minutes=0))
    sizes = [("csv", 200), ("npz", 200)] * 2 + [("csv", 50), ("npz", 50)]
    assert [(what, size) for what, _, size in plan] == sizes
    assert [seed for _, seed, _ in plan] == [7, 7, 8, 8, 9, 9]


def test_a_soak_goes_on_after_a_case_that_fails(monkeypatch, tmp_path):
    def run_series(what, seed, first, size, keep, ended):
        ended["apply 0"] += 1
        return 2 if first == 0 else None

    monkeypatch.setattr(soak, "run_series", run_series)
    tally = soak.soak(iter([("csv", 1, 10)]), tmp_path)
    assert (tally.done["csv"], tally.failed["csv"], tally.ended["apply 0"]) == (10, 1, 2)
    assert str(tally).endswith("10 cases, 1 failed")

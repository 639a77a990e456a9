"""Verdicts do not contradict their own numbers, and pages stay short."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from altnorm import Adjuster
from altnorm.evidence.cautions import too_few_rows

ROOT = Path(__file__).parents[2]
LEVEL = 0.01


def biased(seed, favour):
    """Predictions of 539 rows; of three classes the first is favoured a little."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=539)
    scores = rng.normal(size=(539, 3)) + 1.4 * np.eye(3)[y] + [favour, 0, 0]
    return np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True), y


@pytest.fixture(scope="module")
def fits():
    """Fits around the border between enough evidence and too little."""
    data = [biased(seed, favour) for seed in range(4) for favour in (0.2, 0.45, 0.8, 1.2)]
    return [Adjuster(("bias",), significance=LEVEL).fit(proba, y) for proba, y in data]


def test_the_evidence_is_too_weak_only_beside_a_p_value_that_is_too_large(fits):
    weak = [fit.verdict_ for fit in fits if "the evidence is too weak" in str(fit.verdict_)]
    adopted = [fit.verdict_ for fit in fits if fit.verdict_.evidence == "score"]
    assert min(len(weak), len(adopted)) >= 3
    for verdict in weak:
        shown = float(re.search(r"p = ([\d.]+)", str(verdict))[1])
        assert shown >= 2 * LEVEL
        assert not verdict.gates.passed
    assert all(verdict.p_value < 2 * LEVEL and verdict.ci_low > 0 for verdict in adopted)


def test_an_adopted_change_of_unclear_size_names_the_p_value_of_its_evidence():
    costs = np.array([[0, 1, 1], [1, 0, 1], [20, 20, 0]])
    fits = [Adjuster(("bias",), costs=costs).fit(*biased(seed, 0.6)) for seed in range(6)]
    unclear = [fit.verdict_ for fit in fits if fit.verdict_.evidence == "log_loss"]
    assert len(unclear) >= 3
    for verdict in unclear:
        (p_value,) = re.findall(r"\bone-sided p [=<] ([\d.]+)", str(verdict))
        assert len(re.findall(r"\bp [=<]", str(verdict))) == 1
        assert float(p_value) <= 0.05
        assert "so the size of the gain is uncertain" in str(verdict)


def test_more_rows_are_asked_for_only_if_they_are_clearly_more(fits):
    near = replace(
        fits[0].verdict_, reason="not_significant", n_rows=539, gain=0.031, std_error=0.01
    )
    assert too_few_rows(near) is None  # about 560 rows would do
    assert "there are 539" in str(too_few_rows(replace(near, gain=0.02)))


def test_probabilities_are_applied_and_not_adopted(fits):
    """They take no test, so no p-value stands beside the word that says there was one."""
    lines = [str(fit.calibration_) for fit in fits]
    assert all(line.startswith("Applied: log loss") for line in lines)
    assert any("these labels do not show that it falls" in line for line in lines)


def test_readme_and_pages_stay_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150
    pages = [p for kind in ("md", "rst") for p in (ROOT / "docs").glob(f"*.{kind}")]
    assert len([page for page in pages if page.stem != "sg_execution_times"]) <= 22

"""The simulation and the geometry: their cores, what they conclude, and that they run."""

from itertools import pairwise

import numpy as np
import pytest

import altnorm

pytest.importorskip("matplotlib")

from experiments.simulation import __main__ as simulation, claims, extensions
from experiments.simulation.draws import PAPER_EDGES, Design, draw, draw_log_rows
from experiments.simulation.geometry import __main__ as geometry, study
from experiments.simulation.study import Estimate, simulate
from tests.pages import check_page

TABLES = {"results", "authors_prior", "depth", "alpha", "two_by_two", "rates", "fates"}
SMALL = Design(sizes=(2, 5, 12), alphas=(0.3, 1.0, 4.0), n_draws=4, n_rows=6)


def pairs(mean, se=0.001):
    return Estimate(np.array(mean), np.full(np.shape(mean), se))


def test_quick_runs_write_everything_the_page_mentions(tmp_path, monkeypatch):
    tiny = Design(sizes=(2, 4), alphas=(0.5, 1.0, 5.0), n_draws=3, n_rows=4)
    monkeypatch.setattr(simulation, "_designs", lambda quick, seed: (tiny, tiny, tiny))
    monkeypatch.setattr(geometry, "DEPTH", 12)
    for module in (simulation, geometry):
        module.main(["--quick", "--output", str(tmp_path), "--jobs", "1"])
    tables = check_page(tmp_path)
    assert set(tables) == TABLES
    assert min(map(len, tables.values())) > 5


@pytest.mark.parametrize("m", [2, 3, 10, 11, 100])
@pytest.mark.parametrize("interval", list(pairwise(PAPER_EDGES)))
def test_every_row_lies_in_its_interval(m, interval):
    rows = np.exp(draw_log_rows(np.random.default_rng(m), 2000, m, interval))
    ambiguity = altnorm.ambiguity(rows)
    low, high = interval
    assert ambiguity.min() >= low
    assert ambiguity.max() < high


def test_the_authors_prior_is_nearly_flat():
    assert Design().n_adjusted == 103_680_000  # in the paper's study
    design = Design(sizes=(2, 40), n_draws=500, n_rows=1, prior_concentration=None)
    for i, m in enumerate(design.sizes):
        prior = draw(design, (i, 0, 0)).prior
        np.testing.assert_allclose(prior.sum(axis=1), 1)
        # Each share is between 1 and 2, divided by a sum between m and 2 m.
        assert 1 / (2 * m) < prior.min() < prior.max() < 2 / m
        assert (prior.max(axis=1) / prior.min(axis=1)).max() < 2


def test_verdicts_follow_the_confidence_limits():
    rising = pairs(np.add.outer(-0.01 * np.arange(4), np.arange(4.0)) + 1)
    assert claims.lower_bounds(rising).verdict == claims.AGREES
    assert claims.between_rows(rising).verdict == claims.AGREES
    assert claims.confident_reference(rising).verdict == claims.AGREES
    falling = pairs(rising.mean[:, ::-1])
    assert claims.between_rows(falling).verdict == claims.DISAGREES
    assert claims.between_rows(pairs(rising.mean, se=10.0)).verdict == claims.OPEN


def test_first_depth_is_the_simulation():
    expected, by_depth = simulate(SMALL), extensions.by_depth(SMALL)
    np.testing.assert_allclose(by_depth.gain[0], expected.gain, rtol=1e-9)
    np.testing.assert_array_equal(by_depth.switched[0], expected.switched)


def test_pooled_gain_is_the_ratio_of_means():
    design = Design(sizes=(3,), alphas=(1.0,), n_draws=5, n_rows=4)
    draws = extensions.draw(design, (0, 0, 3))
    after = [
        altnorm.alternating_normalization(np.exp(b), np.exp(a), prior=q) @ q
        for a, b, q in zip(*draws, strict=True)
    ]
    before = [np.exp(b) @ q for b, q in zip(draws.log_rows, draws.prior, strict=True)]
    pooled = extensions.pooled_gain(design)[0, 0, 3].mean()
    assert pooled == pytest.approx(np.mean(after) / np.mean(before) - 1, rel=1e-9)


def test_steps_and_power_curves_end_where_the_library_does():
    row = np.array([0.5, 0.5])
    steps = study.iteration_steps(row, study.BINARY_REFERENCE)
    expected = altnorm.alternating_normalization(row[None], study.BINARY_REFERENCE)[0]
    np.testing.assert_allclose(steps.rows_divided[-1], expected, rtol=1e-12)
    first, alphas = np.array([0.05, 0.5, 0.7]), np.array([0.5, 1.0, 5.0])
    rows = np.stack([first, 1 - first], axis=1)
    for alpha, curve in zip(alphas, study.power_curves(first, alphas), strict=True):
        expected = altnorm.alternating_normalization(
            rows, study.FIGURE_REFERENCE[None], alpha=alpha
        )
        np.testing.assert_allclose(curve / curve.sum(axis=1, keepdims=True), expected, rtol=1e-12)

"""The simulation's core: exact intervals, the batched iteration, seeds, standard errors."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import altnorm
from altnorm.simulation import (
    PAPER_EDGES,
    Design,
    adjust_draws,
    average,
    draw,
    draw_log_rows,
    simulate,
    table,
)

SMALL = Design(sizes=(2, 5, 12), alphas=(0.3, 1.0, 4.0), n_draws=4, n_rows=6)
CELLS = [(0, 0, 3), (1, 3, 0), (2, 1, 2), (2, 0, 0)]
RTOL = 1e-11


def test_paper_design_is_the_whole_study():
    design = Design()
    assert len(design.sizes) == len(design.alphas) == 18
    assert len(design.cells) == 18 * 16
    assert design.n_adjusted == 103_680_000


@pytest.mark.parametrize("m", [2, 3, 10, 11, 100])
@pytest.mark.parametrize("interval", list(pairwise(PAPER_EDGES)))
def test_every_row_lies_in_its_interval(m, interval):
    rows = np.exp(draw_log_rows(np.random.default_rng(m), 2000, m, interval))
    found = altnorm.ambiguity(rows)
    low, high = interval
    assert found.min() >= low
    assert found.max() < high


def test_targets_fill_the_interval_evenly():
    rows = np.exp(draw_log_rows(np.random.default_rng(1), 20_000, 7, (0.25, 0.5)))
    counts = np.histogram(altnorm.ambiguity(rows), bins=10, range=(0.25, 0.5))[0]
    assert counts.sum() == 20_000
    assert abs(counts - 2000).max() < 5 * np.sqrt(2000)


def test_rows_are_probabilities_and_classes_are_exchangeable():
    log_rows = draw_log_rows(np.random.default_rng(2), 20_000, 4, (0.5, 0.75))
    assert np.isfinite(log_rows).all()
    np.testing.assert_allclose(np.exp(log_rows).sum(axis=1), 1, rtol=RTOL)
    assert abs(np.bincount(log_rows.argmax(axis=1)) - 5000).max() < 5 * np.sqrt(5000)


@settings(max_examples=30)
@given(
    m=st.integers(2, 30),
    low=st.floats(0, 0.9),
    width=st.floats(0.01, 0.1),
    concentration=st.floats(0.2, 20),
    seed=st.integers(0, 100),
)
def test_any_interval_can_be_drawn(m, low, width, concentration, seed):
    rng = np.random.default_rng(seed)
    rows = draw_log_rows(rng, 50, m, (low, low + width), concentration=concentration)
    found = altnorm.ambiguity(np.exp(rows))
    assert np.all((found >= low) & (found < low + width))


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("alpha", [0.1, 1.0, 9.0])
def test_batched_iteration_is_alternating_normalization(cell, alpha):
    draws = draw(SMALL, cell)
    new = adjust_draws(draws, alpha)
    new /= new.sum(axis=2, keepdims=True)
    for reference, rows, prior, found in zip(*draws, new, strict=True):
        expected = altnorm.alternating_normalization(
            np.exp(rows), np.exp(reference), prior=prior, alpha=alpha
        )
        np.testing.assert_allclose(found, expected, rtol=RTOL, atol=1e-13)


def test_metrics_against_a_loop_over_rows():
    result = simulate(SMALL)
    for cell in CELLS:
        draws = draw(SMALL, cell)
        for k, (reference, rows, prior) in enumerate(zip(*draws, strict=True)):
            before = np.exp(rows)
            for i, alpha in enumerate(SMALL.alphas):
                after = altnorm.alternating_normalization(
                    before, np.exp(reference), prior=prior, alpha=alpha
                )
                gain = [(a - b) @ prior / (b @ prior) for a, b in zip(after, before, strict=True)]
                changed = after.argmax(axis=1) != before.argmax(axis=1)
                switched = (np.array(gain) > 0) & changed
                assert result.gain[(*cell, k, i)] == pytest.approx(np.mean(gain), rel=1e-9)
                assert result.switched[(*cell, k, i)] == np.mean(switched)


def test_same_seed_same_result_whatever_the_workers_and_the_other_sizes():
    one, two = simulate(SMALL, n_jobs=1), simulate(SMALL, n_jobs=2)
    np.testing.assert_array_equal(one.gain, two.gain)
    np.testing.assert_array_equal(one.switched, two.switched)
    alone = simulate(Design(sizes=(5,), alphas=SMALL.alphas, n_draws=4, n_rows=6))
    np.testing.assert_array_equal(alone.gain[0], one.gain[1])
    other = simulate(Design(sizes=(5,), alphas=SMALL.alphas, n_draws=4, n_rows=6, random_state=1))
    assert not np.array_equal(other.gain, alone.gain)


def test_progress_counts_cells():
    seen = []
    simulate(SMALL, on_cell=lambda done, total: seen.append((done, total)))
    assert seen == [(i, 48) for i in range(1, 49)]


def test_average_has_the_standard_error_of_stratified_draws():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(2, 4, 4, 50, 3)) * np.array([1.0, 3.0])[:, None, None, None, None]
    found = average(values, keep=(1, 2))
    per_draw = values.mean(axis=4)
    variance = per_draw.var(axis=3, ddof=1) / 50
    np.testing.assert_allclose(found.mean, values.mean(axis=(0, 3, 4)))
    np.testing.assert_allclose(found.se, np.sqrt(variance.sum(axis=0)) / 2)
    np.testing.assert_allclose(average(values).mean, values.mean())
    assert average(values, keep=(0, 1, 2, 4)).se.shape == (2, 4, 4, 3)


def test_table_has_one_row_a_combination():
    result = simulate(SMALL)
    columns = table(result)
    assert {len(column) for column in columns.values()} == {3 * 16 * 3}
    row = [columns["m"][i] for i in (0, -1)], columns["alpha"][:3], columns["reference_high"][-1]
    assert row == ([2, 12], [0.3, 1.0, 4.0], 1.0)
    assert columns["gain"][-1] == pytest.approx(result.gain[2, 3, 3, :, 2].mean())


def test_uniform_prior_has_no_gain():
    draws = draw(SMALL, (1, 0, 3))
    flat = draws._replace(prior=np.full_like(draws.prior, 1 / 5))
    new = adjust_draws(flat, 2.0)
    agreement = (new * flat.prior[:, None]).sum(axis=2) / new.sum(axis=2)
    np.testing.assert_allclose(agreement, 1 / 5, rtol=RTOL)

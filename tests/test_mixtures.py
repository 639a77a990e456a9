"""Proportions of a mixture: against a general optimiser, a naive loop, and at the ends."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import softmax

from altnorm.balance.mixtures import (
    CONCENTRATIONS,
    candidates,
    held_out,
    mix,
    pseudo_rows,
    share_rows,
)
from altnorm.balance.one_class import one_class_balance, one_class_likelihood

SOURCE = np.array([0.5, 0.3, 0.2])
OPTIMISER = 1e-4


def draw(n, seed, balance=(0.1, 0.2, 0.7)):
    """Densities of rows, scaled so that under SOURCE they are 1."""
    rng = np.random.default_rng(seed)
    codes = rng.choice(3, n, p=balance)
    scores = rng.normal(size=(n, 3)) + 1.5 * np.eye(3)[codes]
    return softmax(1.5 * scores + np.log(SOURCE), axis=1) / SOURCE


def test_em_maximises_the_posterior():
    """Oracle: a general optimiser on the log-posterior, for every strength of the prior."""
    density, pseudo = draw(300, 1), pseudo_rows(SOURCE)
    found = share_rows(density, pseudo) + pseudo
    for rows, prior in zip(found, pseudo, strict=True):

        def loss(theta, prior=prior):
            return -np.log(density @ softmax(theta)).sum() - prior @ np.log(softmax(theta))

        best = minimize(loss, np.zeros(3), method="BFGS", options={"gtol": 1e-6})
        np.testing.assert_allclose(rows / rows.sum(), softmax(best.x), atol=OPTIMISER)


def test_pseudo_rows_are_rows_of_the_old_proportions():
    np.testing.assert_allclose(pseudo_rows(SOURCE).sum(axis=1), 3 * CONCENTRATIONS)
    np.testing.assert_allclose(pseudo_rows(SOURCE)[0] / pseudo_rows(SOURCE)[0].sum(), SOURCE)


def test_held_out_rows_have_no_part_in_the_fit():
    """Oracle: a loop over folds and strengths, row by row."""
    density = draw(60, 2)
    expected = np.zeros(CONCENTRATIONS.size + 1)
    for k in range(5):
        others = np.array([row for i, row in enumerate(density) if i % 5 != k])
        for g, concentration in enumerate(CONCENTRATIONS):
            pseudo = concentration * 3 * SOURCE
            rows = share_rows(others, pseudo[None])[0] + pseudo
            for row in density[k::5]:
                expected[g] += np.log(row @ rows / rows.sum())
        single = one_class_balance(SOURCE, one_class_likelihood(others, SOURCE))
        expected[-1] += np.log(density[k::5] @ single).sum()
    np.testing.assert_allclose(held_out(density, SOURCE), expected, atol=0.01)


def test_other_proportions_are_found_and_the_old_ones_are_kept():
    moved, still = held_out(draw(400, 3), SOURCE), held_out(draw(400, 3, SOURCE), SOURCE)
    assert moved.min() > 50
    assert still.max() < 3
    assert still.argmax() == 0  # the strongest prior
    assert (held_out(draw(4, 3), SOURCE) == 0).all()


@pytest.mark.parametrize("n", [50, 2500])
def test_the_mixture_is_between_its_parts(n):
    density, pseudo = draw(n, 4), pseudo_rows(SOURCE)
    share = share_rows(density, pseudo)
    found = candidates(SOURCE, share, one_class_likelihood(density, SOURCE))
    np.testing.assert_allclose(
        found[:-1], (share + pseudo) / (share + pseudo).sum(axis=1, keepdims=True)
    )
    balance, concentration = mix(SOURCE, found, held_out(density, SOURCE))
    parts = np.vstack([SOURCE, found])
    assert balance.sum() == pytest.approx(1)
    assert (balance >= parts.min(axis=0) - 1e-12).all()
    assert (balance <= parts.max(axis=0) + 1e-12).all()
    assert CONCENTRATIONS.min() <= concentration <= CONCENTRATIONS.max()


def test_evidence_picks_its_part():
    density = draw(50, 5)
    share = share_rows(density, pseudo_rows(SOURCE))
    found = candidates(SOURCE, share, one_class_likelihood(density, SOURCE))
    unmoved, _ = mix(SOURCE, found, np.full(5, -100.0))
    np.testing.assert_allclose(unmoved, SOURCE)
    fourth, concentration = mix(SOURCE, found, np.array([0.0, 0.0, 0.0, 100.0, 0.0]))
    np.testing.assert_allclose(fourth, found[3])
    assert concentration == pytest.approx(CONCENTRATIONS[3])
    single, _ = mix(SOURCE, found, np.array([0.0, 0.0, 0.0, 0.0, 100.0]))
    np.testing.assert_allclose(single, found[4])

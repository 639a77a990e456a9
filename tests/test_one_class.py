"""A change of one class: against integration on a fine grid, at the ends, and as sums."""

import numpy as np
import pytest
from scipy.special import softmax

from altnorm.balance import one_class as _one_class
from altnorm.balance.mixtures import held_out
from altnorm.balance.one_class import N_SHARES, one_class_balance, one_class_likelihood

SOURCE = np.array([0.4, 0.3, 0.2, 0.1])
INTEGRATION = 2e-3


def with_share(k, share):
    """Proportions with one class changed."""
    others = SOURCE * (1 - share) / (1 - SOURCE[k])
    others[k] = share
    return others


def draw(n, seed, balance):
    """Densities of rows, scaled so that under SOURCE they are 1."""
    rng = np.random.default_rng(seed)
    codes = rng.choice(4, n, p=balance)
    scores = rng.normal(size=(n, 4)) + 1.5 * np.eye(4)[codes]
    return softmax(1.5 * scores + np.log(SOURCE), axis=1) / SOURCE


def mean_by_hand(density):
    """Class by class, on a grid of shares that is fine in the angle."""
    parts, log_weights = [], []
    for k in range(4):
        for angle in np.linspace(0.01, np.pi / 2 - 0.01, 2001):
            parts.append(with_share(k, np.sin(angle) ** 2))
            log_weights.append(np.log(density @ parts[-1]).sum())
    return softmax(log_weights) @ np.array(parts)


@pytest.mark.parametrize(("n", "k", "share"), [(40, 3, 0.5), (400, 3, 0.5), (2000, 0, 0.02)])
def test_the_mean_is_the_integral(n, k, share):
    density = draw(n, 1, with_share(k, share))
    found = one_class_balance(SOURCE, one_class_likelihood(density, SOURCE))
    assert found.sum() == pytest.approx(1)
    np.testing.assert_allclose(found, mean_by_hand(density), atol=INTEGRATION)


@pytest.mark.parametrize("share", [0.0, 0.9])
def test_a_class_that_is_gone_or_dominates_is_found(share):
    expected = with_share(1, share)
    density = draw(3000, 2, expected)
    found = one_class_balance(SOURCE, one_class_likelihood(density, SOURCE))
    np.testing.assert_allclose(found, expected, atol=0.03)


def test_it_wins_where_one_class_has_changed_and_loses_where_all_have():
    one = held_out(draw(600, 3, with_share(3, 0.6)), SOURCE)
    assert one.argmax() == 4
    every = held_out(draw(600, 3, SOURCE[::-1]), SOURCE)
    assert every.argmax() < 4


def test_sums_add_up_and_classes_permute():
    density, order = draw(300, 4, with_share(2, 0.7)), [3, 1, 0, 2]
    whole = one_class_likelihood(density, SOURCE)
    parts = sum(one_class_likelihood(part, SOURCE) for part in np.array_split(density, 7))
    np.testing.assert_allclose(whole, parts)
    permuted = one_class_likelihood(density[:, order], SOURCE[order])
    np.testing.assert_allclose(permuted, whole[:, order])


def test_certain_rows_and_no_rows():
    certain = (np.eye(4) / SOURCE).repeat([10, 20, 30, 40], axis=0)
    table = one_class_likelihood(certain, SOURCE)
    assert np.isfinite(table).all()
    assert np.isfinite(one_class_balance(SOURCE, table)).all()
    assert (one_class_likelihood(np.empty((0, 4)), SOURCE) == np.zeros((N_SHARES, 4))).all()


def test_of_very_many_rows_some_speak(monkeypatch):
    density = draw(1000, 5, with_share(0, 0.8))
    monkeypatch.setattr(_one_class, "_MOST_TERMS", 1000 * 4 * N_SHARES // 3)
    found = one_class_likelihood(density, SOURCE)
    monkeypatch.undo()
    np.testing.assert_allclose(found, one_class_likelihood(density[::3], SOURCE))

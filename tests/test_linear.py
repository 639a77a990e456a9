"""Iterations without logarithms: exact against 50 digits, and refused where they could not be."""

from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose

from altnorm.method.functional import follow_linearly
from altnorm.method.problem import problem
from tests.oracle import draw_cases, oracle

ATOL = 1e-12  # from the defining equations, with exponents that magnify no rounding error
ATOL_FAR = 1e-10  # as of the other kernels
SETTINGS = [(0.3, 4), (0.9, 5), (1.0, 2), (1.0, 5), (1.5, 3), (2.0, 4), (5.0, 2)]


def sure_rows(n=40, m=6, seed=0):
    """Rows of a classifier that is sure of most of them; the last class is rare."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(n, m)) + 5 * np.eye(m)[np.arange(n) % (m - 1)]
    scores[:, -1] -= 1
    p = np.exp(scores)
    return p / p.sum(axis=1, keepdims=True)


def doubtful_rows(m=6, seed=1):
    """Among them one with a zero, one with very small entries, and one sure of the rare class."""
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.full(m, 2.0), 6)
    rows[1, 2] = 0
    rows[2, :2] = 1e-30, 1e-12
    rows[3] = 0.01
    rows[3, -1] = 1
    return rows / rows.sum(axis=1, keepdims=True)


def path_of(reference, depth, **settings):
    settings = {"prior": None, "alpha": 1.0, "reference_weight": None, "smoothing": 0.0} | settings
    return follow_linearly(problem(reference[:0], reference, depth=depth, **settings))


@pytest.mark.parametrize(("alpha", "depth"), SETTINGS)
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize("weighted", [False, True])
def test_against_the_defining_equations(alpha, depth, smoothing, weighted):
    reference, rows = sure_rows(), doubtful_rows()
    settings = {
        "alpha": alpha,
        "smoothing": smoothing,
        "prior": np.array([0.3, 0.25, 0.2, 0.15, 0.09, 0.01]),
        "reference_weight": np.tile([0.5, 3.0, 0.0, 1.0], 10) if weighted else None,
    }
    path = path_of(reference, depth, **settings)
    expected = oracle(rows, reference, depth=depth, **settings)[-1]
    for i in range(len(rows)):
        assert_allclose(path.adjust(rows[i : i + 1])[0], expected[i], rtol=0, atol=ATOL)
    assert_allclose(path.adjust(rows), expected, rtol=0, atol=ATOL)


@pytest.mark.parametrize("smoothing", [False, True])
def test_whatever_it_answers_is_right(smoothing):
    """Cases with everything that may go wrong in them; it may refuse, but must not err."""
    n_answers = 0
    for case in draw_cases(900, 150, smoothing=smoothing):
        path = follow_linearly(problem(case.proba, case.reference, **case.keywords))
        expected = oracle(case.proba, case.reference, **case.keywords)[-1]
        for i in range(len(case.proba) if path is not None else 0):
            found = path.adjust(case.proba[i : i + 1])
            if found is not None:
                assert_allclose(found[0], expected[i], rtol=0, atol=ATOL_FAR)
                n_answers += 1
    assert n_answers >= 30


def test_many_iterations():
    reference, rows = sure_rows(), doubtful_rows()
    found = path_of(reference, 40).adjust(rows)
    assert_allclose(found, oracle(rows, reference, depth=40)[-1], rtol=0, atol=ATOL)


def test_exponent_one_keeps_one_matrix_for_all_iterations():
    stages = path_of(sure_rows(), 5).stages
    assert len(stages) == 4
    assert all(s.before is s.after is stages[0].before for s in stages)


def test_other_exponents_keep_one_matrix_per_iteration():
    stages = path_of(sure_rows(), 5, alpha=0.9).stages
    assert all(one.after is two.before for one, two in pairwise(stages))


def test_an_entry_that_an_exponent_below_one_could_bring_back_is_refused():
    rows = np.array([[0.5, 0.5, 1e-300, 0, 0, 0]])
    path = path_of(sure_rows(), 3, alpha=0.99)
    assert path.adjust(rows) is None
    assert path.adjust(np.where(rows < 1e-200, 0, rows)) is not None


@pytest.mark.parametrize(
    "settings",
    [
        {"prior": np.array([0.5, 0.5, 1e-12, 0.1, 0.1, 0.1])},
        {"prior": np.array([0.5, 0.5, 0.0, 0.1, 0.1, 0.1])},
        {"alpha": 30.0, "depth": 4},
    ],
    ids=["rare", "impossible", "amplified"],
)
def test_extreme_settings_are_refused(settings):
    assert path_of(sure_rows(), **{"depth": 3} | settings) is None


@pytest.mark.parametrize("value", [0.0, 1e-200])
def test_a_class_that_the_reference_hardly_has_is_refused(value):
    reference = sure_rows()
    reference[:, 0] = value
    reference /= reference.sum(axis=1, keepdims=True)
    assert path_of(reference, 3) is None

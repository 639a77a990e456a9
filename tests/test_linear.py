"""Iterations without logarithms: exact against 50 digits, and refused where they could not be."""

import math
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from altnorm import AlternatingNormalizer
from altnorm._functional import follow_linearly
from altnorm._linear import stack_paths
from altnorm._problem import problem
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


@pytest.mark.parametrize("alpha", [0.8, 1.0])
@pytest.mark.parametrize("smoothing", [0.0, 0.5])
def test_problems_side_by_side_are_as_each_alone(alpha, smoothing):
    references = [sure_rows(n, seed=n) for n in (12, 30, 7)]
    paths = [path_of(one, 4, alpha=alpha, smoothing=smoothing) for one in references]
    rows = doubtful_rows()
    found = stack_paths(paths).adjust(np.stack([rows[:2], rows[2:4], rows[4:]]))
    for i, path in enumerate(paths):
        alone = path.adjust(rows[2 * i : 2 * i + 2])
        assert_allclose(found[i], alone, rtol=0, atol=1e-15)


def two_class(p, reference, prior, **settings):
    """One label after the defining equations."""
    rows, others = (np.stack([x, 1 - x], axis=-1) for x in (p, reference))
    return oracle(rows, others, prior=np.array([prior, 1 - prior]), **settings)[-1][:, 0]


@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("alpha", [0.7, 1.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_labels_against_the_defining_equations(depth, alpha, dtype):
    """Labels with references of several sizes, some of weight 0; one with a prior of 0."""
    rng = np.random.default_rng(0)
    proba = rng.beta(0.2, 0.4, size=(30, 4))
    proba[:, 1] = rng.beta(5, 5, size=30)  # few sure ones
    proba[:3, 1] = 0.02, 0.02, 0.99  # equal entries are merged
    weight = np.tile([0.0, 1.0, 2.0], 10)
    prior = np.array([0.3, 0.5, 0.0, 0.6])
    normalizer = AlternatingNormalizer(alpha, depth, 0.6, prior=prior, multilabel="labelwise")
    normalizer.fit(proba, sample_weight=weight)
    row = np.array([[0.4, 0.6, 0.45, 0.001]], dtype=dtype)
    found = normalizer.transform(row)
    assert found.dtype == dtype
    assert_array_equal(found[0, 2:], row[0, 2:])
    for j in (0, 1):
        p = proba[:, j]
        entropy = -(p * np.log2(p) + (1 - p) * np.log2(1 - p))
        sure = entropy <= 0.6
        expected = two_class(
            row[:, j].astype(float), p[sure], prior[j],
            alpha=alpha, depth=depth, reference_weight=weight[sure],
        )  # fmt: skip
        atol = ATOL if dtype == np.float64 else 1e-7
        assert_allclose(found[:, j], expected, rtol=0, atol=atol)


@pytest.mark.parametrize("kind", ["pairs", "labelwise"])
@pytest.mark.parametrize("depth", [1, 3])
def test_few_doubts_are_as_many(kind, depth):
    """Some entries in doubt come with others that are not, in one row and in several."""
    rng = np.random.default_rng(2)
    proba, rows = rng.beta(0.3, 0.6, (200, 5)), rng.beta(0.6, 0.6, (120, 5))
    normalizer = AlternatingNormalizer(1.3, depth, 0.5, multilabel=kind)
    normalizer.fit(proba, rng.random((200, 5)) < proba)
    together = normalizer.transform(rows)
    for few in (1, 3):
        parts = [normalizer.transform(rows[i : i + few]) for i in range(0, 120, few)]
        assert_allclose(np.concatenate(parts), together, rtol=0, atol=1e-13)
    same = together == rows
    assert same.any()
    assert not same.all()


def test_a_label_that_nobody_has_takes_logarithms():
    proba = np.array([[0.0, 0.9], [0.0, 0.1], [0.0, 0.05]])
    normalizer = AlternatingNormalizer(1.0, 2, 0.9, prior=[0.4, 0.5], multilabel="labelwise")
    normalizer.fit(proba)
    found = normalizer.transform(np.array([[0.5, 0.6]]))
    for j, prior in enumerate((0.4, 0.5)):
        expected = two_class(np.array([[0.5, 0.6][j]]), proba[:, j], prior, depth=2)
        assert math.isclose(found[0, j], expected[0], abs_tol=ATOL)

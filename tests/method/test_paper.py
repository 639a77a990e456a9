"""The paper's lines against its equations, and everything fast against the paper's lines."""

import ast
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose
from scipy.stats import entropy

import altnorm
from altnorm.method import paper
from tests.oracle import draw_rows, oracle

ROUNDING = 1e-13  # 9e-15 was the largest of 1,500 draws


def draw_problem(seed, m, n, alpha, depth):
    """Rows without zeros: 0 / 0 is what the paper's lines make of a column that nobody uses."""
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.full(m, rng.choice([0.5, 1.0, 5.0])), n + 3) + 1e-6
    rows /= rows.sum(axis=1, keepdims=True)
    return rows[:3], rows[3:], rng.dirichlet(np.full(m, 5.0)), alpha, depth


PROBLEMS = st.builds(
    draw_problem,
    st.integers(0, 2**32 - 1),
    st.integers(2, 20),
    st.integers(1, 30),
    st.floats(0.3, 5.0),
    st.integers(1, 5),
)


def bare_functions(source):
    """Functions without types and docstrings, as text."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef):
            node.returns = None
            for argument in node.args.args:
                argument.annotation = None
            if ast.get_docstring(node):
                node.body = node.body[1:]
            yield ast.unparse(node)


def test_the_readme_shows_these_lines():
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"```python\n(import numpy as np\n+def .*?)```", readme, re.DOTALL)
    source = Path(paper.__file__).read_text(encoding="utf-8")
    assert list(bare_functions(shown)) == list(bare_functions(source))


@given(st.integers(0, 2**32 - 1), st.integers(2, 30))
def test_entropy_is_scipys(seed, m):
    (row,) = draw_rows(np.random.default_rng(seed), 1, m)
    for k in (2, m):
        expected = entropy(np.sort(row)[::-1][:k], base=k)
        assert paper.topk_entropy(row, k) == pytest.approx(expected, abs=ROUNDING)


@given(PROBLEMS)
def test_the_lines_are_the_equations(problem):
    """Against 50-digit arithmetic."""
    proba, reference, prior, alpha, depth = problem
    exact = oracle(proba[:1], reference[:4], prior=prior, alpha=alpha, depth=depth)[-1, 0]
    adjusted = paper.adjust(proba[0], reference[:4], prior, alpha, depth)
    assert_allclose(adjusted, exact, rtol=0, atol=ROUNDING)


@settings(max_examples=200)
@given(PROBLEMS, st.sampled_from([0.25, 0.5, 0.75]), st.integers(2, 12))
def test_the_estimator_is_the_paper(problem, tau, k_max):
    """Doubt, reference, prior, iterations: everything but the choice of the settings."""
    proba, validation, prior, alpha, depth = problem
    validation = np.vstack([validation, np.eye(proba.shape[1])])  # sure of every class once
    sure = [p for p in validation if paper.ambiguity(p, k_max) <= tau]
    expected = [
        paper.adjust(b0, sure, prior, alpha, depth) if paper.ambiguity(b0, k_max) > tau else b0
        for b0 in proba
    ]
    model = altnorm.AlternatingNormalizer(alpha, depth, tau, k_max=k_max, prior=prior)
    adjusted = model.fit(validation).transform(proba)
    assert_allclose(adjusted, expected, rtol=0, atol=ROUNDING)

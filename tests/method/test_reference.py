"""Class priors: shrinking of counted frequencies, and the share of each class."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from altnorm import AlternatingNormalizer, InputError
from altnorm.method.reference import post_stratify, shrink_frequencies

EXACT = 1e-12


def james_stein(counts):
    """Hausser and Strimmer (2009), their equations for counts and target 1/p, term by term."""
    n, p = sum(counts), len(counts)
    ml = [c / n for c in counts]
    above = 1.0
    below = 0.0
    for theta in ml:
        above -= theta**2
        below += (1 / p - theta) ** 2
    below *= n - 1
    intensity = 1.0 if below == 0 else min(1.0, max(0.0, above / below))
    return [intensity / p + (1 - intensity) * theta for theta in ml]


@given(st.lists(st.integers(0, 200), min_size=2, max_size=30).filter(any))
def test_shrinking_is_the_papers_formula(counts):
    counts = np.array(counts)
    shrunk = shrink_frequencies(counts / counts.sum(), counts.sum())
    np.testing.assert_allclose(shrunk, james_stein(counts.tolist()), rtol=1e-9, atol=EXACT)
    assert shrunk.sum() == pytest.approx(1)
    assert (shrunk >= 0).all()


def test_rows_weigh_what_the_prior_gives_their_class():
    codes = np.array([0, 0, 0, 1])
    strata = post_stratify(codes, 3, "uniform", np.ones(4))
    np.testing.assert_allclose(np.bincount(codes, strata.weight), [4 / 3, 4 / 3])
    np.testing.assert_allclose(strata.absent, [0, 0, 4 / 3])


CODES = np.repeat([0, 1, 2], [50, 30, 20])
COUNTED, THIRDS = [0.5, 0.3, 0.2], [1 / 3] * 3
PRIORS = [
    (None, CODES, COUNTED),
    ("counted", CODES, COUNTED),
    ("uniform", CODES, THIRDS),
    ("shrunk", CODES, james_stein([50, 30, 20])),
    ([6, 3, 1], CODES, [0.6, 0.3, 0.1]),
    (None, None, THIRDS),
    ("uniform", None, THIRDS),
    ("shrunk", None, THIRDS),
    ([6, 3, 1], None, [0.6, 0.3, 0.1]),
]


@pytest.mark.parametrize(("prior", "labels", "expected"), PRIORS, ids=str)
def test_what_a_setting_of_the_prior_stands_for(prior, labels, expected):
    proba = np.random.default_rng(0).dirichlet([0.3] * 3, size=100)
    fitted = AlternatingNormalizer(prior=prior).fit(proba, labels)
    np.testing.assert_allclose(fitted.prior_, expected, rtol=EXACT)


def test_a_counted_prior_needs_labels():
    with pytest.raises(InputError, match=r"prior='counted' requires y") as caught:
        AlternatingNormalizer(prior="counted").fit(np.eye(3))
    assert caught.value.code == "no_labels"

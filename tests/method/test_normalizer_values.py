"""What AlternatingNormalizer makes of rows that sum to 1: against a naive loop, and invariances."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax
from sklearn.base import clone

from altnorm import AlternatingNormalizer, ambiguity
from altnorm.method.reference import shrink_frequencies
from tests.problems import draw

EXACT = 1e-12  # float64 against a float64 loop
SINGLE = 2e-5  # float32 against float64


def loop(b, reference, prior, alpha=1.0, depth=1, weight=None, smoothing=0.0):
    """One doubtful row, by the two defining equations."""
    weight = np.ones(len(reference)) if weight is None else weight
    rows, share = np.vstack([reference, b]), np.append(weight, 1.0)
    for _ in range(depth):
        power = rows**alpha
        sums = share @ power + smoothing * weight.sum() * prior
        rows = power / sums * prior
        rows /= rows.sum(axis=1, keepdims=True)
    return rows[-1]


def by_loop(validation, proba, prior, threshold, reference="confident", weight=None, **settings):
    """What `transform` must return."""
    serves = (ambiguity(validation) <= threshold) | (reference == "all")
    weight = None if weight is None else weight[serves]
    out = proba.copy()
    for i in np.flatnonzero(ambiguity(proba) > threshold):
        out[i] = loop(proba[i], validation[serves], prior, weight=weight, **settings)
    return out


# What comes out.


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("alpha", [0.3, 1.0, 2.5])
@pytest.mark.parametrize("m", [2, 5])
@pytest.mark.parametrize("reference", ["confident", "all"])
@pytest.mark.parametrize("smoothing", [0.0, 0.4])
def test_transform_follows_the_defining_equations(m, alpha, depth, reference, smoothing):
    validation, y = draw(m=m)
    proba, _ = draw(m=m, seed=1)
    normalizer = AlternatingNormalizer(
        alpha, depth, 0.6, reference=reference, smoothing=smoothing
    ).fit(validation, y)
    prior = np.bincount(y, minlength=m) / y.size
    expected = by_loop(
        validation,
        proba,
        prior,
        0.6,
        reference,
        alpha=alpha,
        depth=depth,
        smoothing=smoothing,
    )
    np.testing.assert_allclose(normalizer.transform(proba), expected, rtol=EXACT, atol=EXACT)
    assert (expected != proba).any()
    assert (expected == proba).all(axis=1).any()


@settings(max_examples=30)
@given(
    seed=st.integers(0, 2**31),
    m=st.integers(2, 6),
    alpha=st.floats(0.2, 3.0),
    depth=st.integers(1, 3),
    threshold=st.floats(0.3, 1.0),
    reference=st.sampled_from(["confident", "all"]),
    weighted=st.booleans(),
)
def test_any_setting_follows_the_defining_equations(
    seed, m, alpha, depth, threshold, reference, weighted
):
    validation, y = draw(25, m, seed)
    validation[0] = np.eye(m)[0]  # somebody is sure
    proba, _ = draw(10, m, seed + 1, scale=1.0)
    weight = np.random.default_rng(seed).integers(1, 4, 25).astype(float) if weighted else None
    normalizer = AlternatingNormalizer(alpha, depth, threshold, reference=reference)
    normalizer.fit(validation, y, sample_weight=weight)
    prior = np.bincount(y, weights=weight, minlength=m) / (25 if weight is None else weight.sum())
    expected = by_loop(
        validation, proba, prior, threshold, reference, weight, alpha=alpha, depth=depth
    )
    np.testing.assert_allclose(normalizer.transform(proba), expected, rtol=1e-9, atol=EXACT)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("input", ["proba", "logits"])
def test_confident_rows_come_back_bit_for_bit(dtype, depth, input):
    validation, y = draw(200)
    if input == "logits":
        values = np.log(draw(200, seed=1)[0]).astype(dtype) + dtype(3)
        fitted = AlternatingNormalizer(depth=depth, input="logits").fit(np.log(validation), y)
        expected = softmax(values, axis=1)
    else:
        expected = values = draw(200, seed=1)[0].astype(dtype)
        fitted = AlternatingNormalizer(depth=depth).fit(validation, y)
    adjusted = fitted.transform(values)
    sure = ambiguity(expected) <= 0.75
    assert adjusted.dtype == dtype
    assert 0 < sure.sum() < 200
    np.testing.assert_array_equal(adjusted[sure], expected[sure])
    assert (adjusted[~sure] != expected[~sure]).any(axis=1).all()


def test_the_input_is_not_written_to():
    validation, y = draw()
    proba = draw(seed=1)[0]
    kept = proba.copy()
    AlternatingNormalizer(threshold=0.0, reference="all").fit(validation, y).transform(proba)
    np.testing.assert_array_equal(proba, kept)


@pytest.mark.parametrize("depth", [1, 3])
def test_a_row_does_not_depend_on_its_batch(depth):
    validation, y = draw(300, 6)
    proba, _ = draw(80, 6, seed=1)
    normalizer = AlternatingNormalizer(1.5, depth, 0.4).fit(validation, y)
    whole = normalizer.transform(proba)
    order = np.random.default_rng(0).permutation(80)
    shuffled = normalizer.transform(proba[order])
    np.testing.assert_allclose(shuffled, whole[order], rtol=EXACT, atol=EXACT)
    single = np.vstack([normalizer.transform(row[None, :]) for row in proba])
    np.testing.assert_allclose(single, whole, rtol=EXACT, atol=EXACT)


@pytest.mark.parametrize("depth", [1, 2])
def test_permuting_classes_permutes_the_result(depth):
    validation, y = draw(100, 5)
    proba, _ = draw(50, 5, seed=1)
    order = np.array([3, 0, 4, 1, 2])
    plain = AlternatingNormalizer(2.0, depth).fit(validation, y).transform(proba)
    moved = AlternatingNormalizer(2.0, depth).fit(validation[:, order], np.argsort(order)[y])
    np.testing.assert_allclose(
        moved.transform(proba[:, order]), plain[:, order], rtol=EXACT, atol=EXACT
    )


def test_thresholds_zero_and_one():
    validation, y = draw()
    proba = draw(seed=1)[0]
    nothing = AlternatingNormalizer(threshold=1.0).fit(validation, y)
    np.testing.assert_array_equal(nothing.transform(proba), proba)
    assert nothing.reference_.shape == validation.shape
    validation[:3] = np.eye(4)[:3]
    proba[0] = np.eye(4)[1]
    everything = AlternatingNormalizer(threshold=0.0).fit(validation, y)
    np.testing.assert_array_equal(everything.reference_, validation[:3])
    assert (everything.transform(proba) != proba).any(axis=1).tolist() == [False] + 59 * [True]


@pytest.mark.parametrize("depth", [1, 2])
def test_weight_two_is_a_repeated_row(depth):
    validation, y = draw()
    proba = draw(seed=1)[0]
    weight = np.random.default_rng(0).integers(0, 4, 60)
    for prior in (None, "shrunk"):
        weighted = AlternatingNormalizer(0.7, depth, prior=prior, smoothing=0.2)
        repeated = clone(weighted).fit(validation.repeat(weight, axis=0), y.repeat(weight))
        weighted.fit(validation, y, sample_weight=weight)
        np.testing.assert_allclose(weighted.prior_, repeated.prior_, rtol=EXACT)
        np.testing.assert_allclose(
            weighted.transform(proba), repeated.transform(proba), rtol=EXACT, atol=EXACT
        )


def test_single_precision_agrees_with_double():
    validation, y = draw()
    proba = draw(seed=1)[0].astype(np.float32)
    double = AlternatingNormalizer(2.0, 2).fit(validation, y)
    single = AlternatingNormalizer(2.0, 2).fit(validation.astype(np.float32), y)
    assert single.transform(proba).dtype == np.float32
    for fitted in (single, double):
        np.testing.assert_allclose(
            fitted.transform(proba), double.transform(proba.astype(float)), atol=SINGLE
        )


# The prior.


def test_priors():
    validation, y = draw(60, 3)
    counted = np.bincount(y, minlength=3) / 60

    def prior(value, labels=y):
        return AlternatingNormalizer(prior=value).fit(validation, labels).prior_

    np.testing.assert_allclose(prior(None), counted)
    np.testing.assert_array_equal(prior(None, None), np.full(3, 1 / 3))
    np.testing.assert_array_equal(prior("shrunk", None), np.full(3, 1 / 3))
    np.testing.assert_array_equal(prior("uniform"), np.full(3, 1 / 3))
    np.testing.assert_array_equal(prior("shrunk"), shrink_frequencies(counted, 60))
    np.testing.assert_allclose(prior([2, 1, 1]), [0.5, 0.25, 0.25])
    np.testing.assert_array_equal(prior(np.array([0.5, 0.5, 0.0])), [0.5, 0.5, 0.0])


def test_labels_serve_only_to_count():
    validation, y = draw()
    proba = draw(seed=1)[0]
    shuffled = np.random.default_rng(0).permutation(y)
    first, second = (AlternatingNormalizer().fit(validation, labels) for labels in (y, shuffled))
    np.testing.assert_array_equal(first.transform(proba), second.transform(proba))


def test_a_class_missing_from_validation_gets_nothing_if_in_doubt():
    validation, y = draw(60, 4)
    y[y == 3] = 0
    normalizer = AlternatingNormalizer().fit(validation, y)
    np.testing.assert_array_equal(normalizer.classes_, np.arange(4))
    doubt = ambiguity(validation) > 0.75
    adjusted = normalizer.transform(validation)
    assert (adjusted[doubt, 3] == 0).all()
    shrunk = AlternatingNormalizer(prior="shrunk").fit(validation, y)
    assert shrunk.prior_[3] > 0
    assert (shrunk.transform(validation)[:, 3] > 0).all()

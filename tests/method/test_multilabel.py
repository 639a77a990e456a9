"""Several labels per row: "pairs" and "labelwise" are nothing but two-class problems."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from scipy.special import expit, logit

from altnorm import AlternatingNormalizer, InputError, alternating_normalization, ambiguity
from altnorm.method.ambiguity import binary_ambiguity
from altnorm.method.reference import shrink_frequencies
from altnorm.method.two_classes import BinaryReference, odds_function
from tests.oracle import oracle

EXACT = 1e-12
MODES = ("pairs", "labelwise")
both = pytest.mark.parametrize("mode", MODES)


def draw(n=80, m=5, seed=0):
    rng = np.random.default_rng(seed)
    z = 2.5 * rng.normal(size=(n, m)) - 1
    return expit(z), (rng.random((n, m)) < expit(z + 0.7)).astype(int)


def two_classes(p):
    """Columns (yes, no)."""
    return np.stack([p, 1 - p], axis=1)


def adjust(p, reference, q, **settings):
    """Yes-probabilities through the functional entry point."""
    prior = np.array([q, 1 - q])
    return alternating_normalization(
        two_classes(p), two_classes(reference), prior=prior, **settings
    )[:, 0]


SETTINGS = [
    {"alpha": 1.0, "depth": 1},
    {"alpha": 0.4, "depth": 2},
    {"alpha": 5.0, "depth": 1, "smoothing": 0.3},
    {"alpha": 2.0, "depth": 3},
    {"alpha": 16.0, "depth": 2},
]
setting = pytest.mark.parametrize("settings", SETTINGS, ids=str)


@setting
@pytest.mark.parametrize("reference", ["confident", "all"])
def test_pairs_equals_flattening(settings, reference):
    validation, y = draw()
    proba, _ = draw(seed=1)
    normalizer = AlternatingNormalizer(
        threshold=0.6, reference=reference, multilabel="pairs", **settings
    ).fit(validation, y)
    flat, rows = validation.ravel(), proba.ravel()
    serves = (ambiguity(two_classes(flat)) <= 0.6) | (reference == "all")
    expected = rows.copy()
    doubt = ambiguity(two_classes(rows)) > 0.6
    expected[doubt] = adjust(rows[doubt], flat[serves], y.mean(), **settings)
    np.testing.assert_allclose(normalizer.prior_, [y.mean(), 1 - y.mean()])
    np.testing.assert_allclose(
        normalizer.transform(proba).ravel(), expected, rtol=1e-10, atol=EXACT
    )
    np.testing.assert_array_equal(normalizer.transform(proba).ravel()[~doubt], rows[~doubt])


@setting
@pytest.mark.parametrize("reference", ["confident", "all"])
def test_labelwise_equals_a_loop_over_labels(settings, reference):
    validation, y = draw()
    proba, _ = draw(seed=1)
    normalizer = AlternatingNormalizer(
        threshold=0.6, reference=reference, multilabel="labelwise", **settings
    ).fit(validation, y)
    np.testing.assert_allclose(normalizer.prior_, y.mean(axis=0))
    expected = proba.copy()
    for j, (column, p) in enumerate(zip(validation.T, proba.T, strict=True)):
        serves = (ambiguity(two_classes(column)) <= 0.6) | (reference == "all")
        doubt = ambiguity(two_classes(p)) > 0.6
        expected[doubt, j] = adjust(p[doubt], column[serves], y[:, j].mean(), **settings)
    np.testing.assert_allclose(normalizer.transform(proba), expected, rtol=1e-10, atol=EXACT)


@both
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_confident_entries_come_back_bit_for_bit(mode, dtype):
    validation, y = draw()
    proba = draw(seed=1)[0].astype(dtype)
    fitted = AlternatingNormalizer(multilabel=mode).fit(validation, y)
    adjusted = fitted.transform(proba)
    sure = binary_ambiguity(proba) <= 0.75
    assert adjusted.dtype == dtype
    assert 0 < sure.sum() < sure.size
    np.testing.assert_array_equal(adjusted[sure], proba[sure])
    assert (adjusted[~sure] != proba[~sure]).mean() > 0.9


@both
def test_logits(mode):
    validation, y = draw()
    proba = draw(seed=1)[0]
    plain = AlternatingNormalizer(multilabel=mode).fit(validation, y)
    fitted = AlternatingNormalizer(multilabel=mode, input="logits").fit(logit(validation), y)
    np.testing.assert_allclose(
        fitted.transform(logit(proba)), plain.transform(proba), rtol=1e-9, atol=EXACT
    )


@both
@pytest.mark.parametrize("depth", [1, 2])
def test_weight_two_is_a_repeated_row(mode, depth):
    validation, y = draw()
    proba = draw(seed=1)[0]
    weight = np.random.default_rng(0).integers(0, 4, 80)
    for prior in (None, "shrunk"):
        weighted = AlternatingNormalizer(
            0.7, depth, prior=prior, smoothing=0.2, multilabel=mode
        ).fit(validation, y, sample_weight=weight)
        repeated = AlternatingNormalizer(**weighted.get_params())
        repeated.fit(validation.repeat(weight, axis=0), y.repeat(weight, axis=0))
        np.testing.assert_allclose(weighted.prior_, repeated.prior_, rtol=EXACT)
        np.testing.assert_allclose(
            weighted.transform(proba), repeated.transform(proba), rtol=1e-10, atol=EXACT
        )


def test_labels_about_which_nothing_is_known_are_left():
    validation, y = draw(m=6)
    validation[:, 0] = 0.5  # no confident entry
    y[:, 1] = 0  # prior 0
    y[:, 2] = 1  # prior 1
    proba = draw(m=6, seed=1)[0]
    fitted = AlternatingNormalizer(multilabel="labelwise").fit(validation, y)
    adjusted = fitted.transform(proba)
    np.testing.assert_array_equal(adjusted[:, :3], proba[:, :3])
    assert (adjusted[:, 3:] != proba[:, 3:]).any(axis=0).all()


@pytest.mark.parametrize("smoothing", [0.0, 0.5])
def test_a_label_whose_reference_has_no_weight_is_left(smoothing):
    validation, y = draw()
    validation[10:, 0] = 0.5
    weight = np.ones(80)
    weight[:10] = 0
    fitted = AlternatingNormalizer(multilabel="labelwise", smoothing=smoothing)
    fitted.fit(validation, y, sample_weight=weight)
    proba = draw(seed=1)[0]
    np.testing.assert_array_equal(fitted.transform(proba)[:, 0], proba[:, 0])


def exactly(p, reference, q, **settings):
    """Yes-probabilities after the defining equations."""
    prior = np.array([q, 1 - q])
    return oracle(two_classes(p), two_classes(reference), prior=prior, **settings)[-1][:, 0]


def draw_reference(rng):
    """Few entries or many, some of them sure, now and then with weights."""
    p = rng.beta(*rng.uniform(0.1, 2, 2), size=int(rng.choice([1, 2, 7, 60])))
    weight = rng.choice([0.3, 1.0, 40.0], p.size) if rng.random() < 0.5 else None
    return p, weight, float(rng.uniform(0.01, 0.99))


@pytest.mark.parametrize("alpha", [0.3, 1.0, 1.7, 4.0])
@pytest.mark.parametrize("smoothing", [0.0, 0.5])
def test_what_is_tabulated_once_is_exact_for_every_doubt(alpha, smoothing):
    """Against the defining equations: also for sure rows, which shift a small reference far."""
    rng = np.random.default_rng(int(10 * alpha))
    p = np.array([1e-9, 0.01, 0.3, 0.5, 0.62, 0.97, 1 - 1e-9])
    for depth in (1, 2, 3, 5):
        settings = {"alpha": alpha, "depth": depth, "smoothing": smoothing}
        drawn = [draw_reference(rng) for _ in range(4)]
        references = [BinaryReference.of(logit(a), w, q, **settings) for a, w, q in drawn]
        found = expit(odds_function(references, threshold=0.0)(logit(p)[:, None]))
        atol = EXACT * max(1.0, alpha ** (depth - 1))
        for j, (reference, weight, prior) in enumerate(drawn):
            expected = exactly(p, reference, prior, reference_weight=weight, **settings)
            np.testing.assert_allclose(found[:, j], expected, rtol=0, atol=atol)


@pytest.mark.parametrize("alpha", [0.7, 1.5, 9.0])
def test_two_classes_one_by_one_are_exact(alpha):
    """Tabulated where that is exact enough, and iterated where it is not."""
    rng = np.random.default_rng(3)
    validation, p = rng.beta(0.4, 0.8, 300), np.linspace(0.2, 0.8, 7)
    settings = {"alpha": alpha, "depth": 4, "smoothing": 0.1}
    fitted = AlternatingNormalizer(**settings, threshold=0.5, reference="all", prior=[0.3, 0.7])
    fitted.fit(two_classes(validation))
    found = np.concatenate([fitted.transform(row[None]) for row in two_classes(p)])
    atol = EXACT * max(1.0, alpha**3)
    np.testing.assert_allclose(found[:, 0], exactly(p, validation, 0.3, **settings), atol=atol)


def test_priors():
    validation, y = draw()
    shares = y.mean(axis=0)

    def prior(value, mode, labels=y):
        fitted = AlternatingNormalizer(prior=value, multilabel=mode).fit(validation, labels)
        return fitted.prior_

    np.testing.assert_allclose(prior(None, "labelwise"), shares)
    np.testing.assert_allclose(prior(None, "pairs"), [y.mean(), 1 - y.mean()])
    np.testing.assert_array_equal(prior(None, "labelwise", None), np.full(5, 0.5))
    np.testing.assert_array_equal(prior(None, "pairs", None), [0.5, 0.5])
    np.testing.assert_array_equal(prior("uniform", "labelwise"), np.full(5, 0.5))
    np.testing.assert_array_equal(prior("uniform", "pairs"), [0.5, 0.5])
    pooled = shrink_frequencies(np.array([y.mean(), 1 - y.mean()]), y.size)
    np.testing.assert_allclose(prior("shrunk", "pairs"), pooled)
    np.testing.assert_allclose(prior([3, 1], "pairs"), [0.75, 0.25])
    np.testing.assert_array_equal(prior(shares, "labelwise"), shares)
    y[:, 0] = 0
    shrunk = prior("shrunk", "labelwise", y)
    assert ((shrunk > 0) & (shrunk < 1)).all()
    np.testing.assert_allclose(shrunk, y.mean(axis=0), atol=1 / 80)


@both
def test_sparse_labels_and_frames(mode):
    validation, y = draw()
    names = list("edcba")
    frame = pd.DataFrame(validation, columns=names)
    plain = AlternatingNormalizer(multilabel=mode).fit(validation, y)
    fitted = AlternatingNormalizer(multilabel=mode).fit(frame, csr_array(y))
    np.testing.assert_array_equal(fitted.classes_, names)
    np.testing.assert_array_equal(fitted.transform(frame), plain.transform(validation))


@both
def test_predict_is_the_0_1_matrix(mode):
    validation, y = draw()
    fitted = AlternatingNormalizer(multilabel=mode).fit(validation, y)
    decided = fitted.predict(validation)
    assert decided.dtype.kind == "i"
    np.testing.assert_array_equal(decided, fitted.transform(validation) > 0.5)


@pytest.mark.parametrize(
    ("settings", "wrong", "message"),
    [
        ({}, {"y": np.zeros(80)}, r"shape \(80,\)"),
        ({}, {"y": np.zeros((80, 4))}, r"`proba`, \(80, 5\).*\(80, 4\)"),
        ({}, {"y": np.full((80, 5), 2)}, "must hold (only )?0 and 1"),
        ({}, {"proba": np.full((80, 5), 1.5)}, r"must .*; 400 of 400 .*row 0, column 0 \(1.5\)"),
        ({}, {"proba": np.full((80, 5), -0.5)}, r"must .*; 400 of 400 .*row 0, column 0 \(-0.5\)"),
        ({"threshold": 0.0}, {}, "at least one row; none of 400 has an ambiguity"),
    ],
    ids=["vector", "shape", "values", "above", "below", "no reference"],
)
@both
def test_errors(mode, settings, wrong, message):
    validation, y = draw()
    given = {"proba": validation, "y": y, **wrong}
    with pytest.raises(InputError, match=message):
        AlternatingNormalizer(multilabel=mode, **settings).fit(**given)


@pytest.mark.parametrize("prior", [[0.5, 0.5], [0.1, 0.2, 0.3, 0.4, 1.5], [-0.1, 0, 0, 0, 0]])
def test_a_prior_that_is_not_one_probability_a_label(prior):
    with pytest.raises(InputError, match="one probability of yes per label, 5 numbers from 0 to 1"):
        AlternatingNormalizer(multilabel="labelwise", prior=prior).fit(draw()[0])


def test_a_prior_that_is_not_yes_and_no():
    with pytest.raises(InputError, match=r"`prior` must have one entry per class, shape \(2,\)"):
        AlternatingNormalizer(multilabel="pairs", prior=[0.2, 0.3, 0.5]).fit(draw()[0])


@both
def test_many_labels(mode):
    rng = np.random.default_rng(0)
    n, m = 300, 2000
    proba = rng.random((n, m), dtype=np.float32) ** 30
    labels = rng.random((n, m), dtype=np.float32) < 0.001
    normalizer = AlternatingNormalizer(16.0, multilabel=mode, threshold=0.25, prior="shrunk")
    adjusted = normalizer.fit(proba, labels).transform(proba)
    assert adjusted.dtype == np.float32
    assert (adjusted != proba).any()
    assert np.isfinite(adjusted).all()


# Rows that come one by one.


@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("alpha", [0.7, 1.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_one_row_against_the_defining_equations(depth, alpha, dtype):
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
    np.testing.assert_array_equal(found[0, 2:], row[0, 2:])
    for j in (0, 1):
        p = proba[:, j]
        entropy = -(p * np.log2(p) + (1 - p) * np.log2(1 - p))
        sure = entropy <= 0.6
        expected = exactly(
            row[:, j].astype(float), p[sure], prior[j],
            alpha=alpha, depth=depth, reference_weight=weight[sure],
        )  # fmt: skip
        atol = EXACT if dtype == np.float64 else 1e-7
        np.testing.assert_allclose(found[:, j], expected, rtol=0, atol=atol)

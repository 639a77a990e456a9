"""Several labels per row: "pairs" and "labelwise" are nothing but two-class problems."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.special import expit, logit

from altnorm import AlternatingNormalizer, InputError, alternating_normalization, ambiguity
from altnorm.method.reference import shrink_frequencies
from altnorm.method.two_classes import BinaryReference, odds_function
from tests.oracle import oracle
from tests.problems import planted_labels

EXACT = 1e-12
MODES = ("pairs", "labelwise")
both = pytest.mark.parametrize("mode", MODES)


def draw(n=80, m=5, seed=0):
    return planted_labels(n, m, seed)


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
@both
@pytest.mark.parametrize("reference", ["confident", "all"])
@pytest.mark.parametrize("weighted", [False, True])
def test_each_label_or_all_of_them_are_a_problem_of_two_classes(
    mode, settings, reference, weighted
):
    validation, y = draw()
    validation[1::9], y[1::9] = validation[::9], y[::9]  # equal entries are merged
    weight = np.tile([0.0, 1.0, 2.0, 1.0], 20) if weighted else np.ones(80)
    proba, _ = draw(seed=1)
    normalizer = AlternatingNormalizer(
        threshold=0.6, reference=reference, multilabel=mode, **settings
    ).fit(validation, csr_array(y), sample_weight=weight if weighted else None)
    assert normalizer.reference_.size < validation.size
    each = np.repeat(weight, 5) if mode == "pairs" else weight
    problems = [v.reshape(-1, 1) if mode == "pairs" else v for v in (validation, y, proba)]
    expected = problems[2].copy()
    for j, (seen, labels, p) in enumerate(zip(*(v.T for v in problems), strict=True)):
        serves = (ambiguity(two_classes(seen)) <= 0.6) | (reference == "all")
        doubt = ambiguity(two_classes(p)) > 0.6
        share = np.average(labels, weights=each)
        options = settings | {"reference_weight": each[serves]}
        expected[doubt, j] = adjust(p[doubt], seen[serves], share, **options)
    adjusted, expected = normalizer.transform(proba), expected.reshape(proba.shape)
    np.testing.assert_allclose(adjusted, expected, rtol=1e-10, atol=EXACT)
    sure = ambiguity(two_classes(proba.ravel())).reshape(proba.shape) <= 0.6
    assert 0 < sure.sum() < sure.size
    np.testing.assert_array_equal(adjusted[sure], proba[sure])  # bit for bit
    np.testing.assert_array_equal(normalizer.predict(proba), (adjusted > 0.5).astype(int))


@pytest.mark.parametrize("smoothing", [0.0, 0.5])
def test_labels_about_which_nothing_is_known_are_left(smoothing):
    validation, y = draw(m=7)
    validation[:, 0] = 0.5  # no confident entry
    y[:, 1] = 0  # prior 0
    y[:, 2] = 1  # prior 1
    validation[10:, 3] = 0.5  # confident entries have no weight
    weight = np.r_[np.zeros(10), np.ones(70)]
    proba = draw(m=7, seed=1)[0]
    fitted = AlternatingNormalizer(multilabel="labelwise", smoothing=smoothing)
    adjusted = fitted.fit(validation, y, sample_weight=weight).transform(proba)
    np.testing.assert_array_equal(adjusted[:, :4], proba[:, :4])
    assert (adjusted[:, 4:] != proba[:, 4:]).any(axis=0).all()


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
        adjusted = expit(odds_function(references, threshold=0.0)(logit(p)[:, None]))
        atol = EXACT * max(1.0, alpha ** (depth - 1))
        for j, (reference, weight, prior) in enumerate(drawn):
            expected = exactly(p, reference, prior, reference_weight=weight, **settings)
            np.testing.assert_allclose(adjusted[:, j], expected, rtol=0, atol=atol)


@pytest.mark.parametrize("alpha", [0.7, 1.5, 9.0])
def test_two_classes_one_by_one_are_exact(alpha):
    """Tabulated where that is exact enough, and iterated where it is not."""
    rng = np.random.default_rng(3)
    validation, p = rng.beta(0.4, 0.8, 300), np.linspace(0.2, 0.8, 7)
    settings = {"alpha": alpha, "depth": 4, "smoothing": 0.1}
    fitted = AlternatingNormalizer(**settings, threshold=0.5, reference="all", prior=[0.3, 0.7])
    fitted.fit(two_classes(validation))
    adjusted = np.concatenate([fitted.transform(row[None]) for row in two_classes(p)])
    atol = EXACT * max(1.0, alpha**3)
    np.testing.assert_allclose(adjusted[:, 0], exactly(p, validation, 0.3, **settings), atol=atol)


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


PER_LABEL = "probability of yes per label, 5 numbers from 0 to 1)"


@pytest.mark.parametrize(
    ("settings", "wrong", "message"),
    [
        ({}, {"y": np.zeros(80)}, r"shape \(80,\)"),
        ({}, {"y": np.zeros((80, 4))}, r"`proba`, \(80, 5\).*\(80, 4\)"),
        ({}, {"y": np.full((80, 5), 2)}, "must hold (only )?0 and 1"),
        ({}, {"proba": np.full((80, 5), 1.5)}, r"must .*; 400 of 400 .*row 0, column 0 \(1.5\)"),
        ({}, {"proba": np.full((80, 5), -0.5)}, r"must .*; 400 of 400 .*row 0, column 0 \(-0.5\)"),
        ({"threshold": 0.0}, {}, "at least one row; none of 400 has an ambiguity"),
        ({"prior": [0.2, 0.3, 0.5]}, {}, r"one (entry per class, shape \(2,\)|" + PER_LABEL),
        ({"prior": [-0.1, 0, 0, 0, 0]}, {}, r"one (entry per class, shape \(2,\)|" + PER_LABEL),
        ({"prior": [0.1, 0.2, 0.3, 0.4, 1.5]}, {}, r"one (entry per class, |" + PER_LABEL),
    ],
    ids=str,
)
@both
def test_errors(mode, settings, wrong, message):
    validation, y = draw()
    arguments = {"proba": validation, "y": y, **wrong}
    with pytest.raises(InputError, match=message):
        AlternatingNormalizer(multilabel=mode, **settings).fit(**arguments)

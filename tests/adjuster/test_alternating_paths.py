"""Cross-fitted alternating normalization: each row as if its fold did not exist."""

from itertools import islice

import numpy as np
import pytest
from scipy.special import expit, logsumexp, softmax
from sklearn.model_selection import PredefinedSplit

from altnorm import AlternatingNormalizer
from altnorm.adjuster.alternating_paths import Setting, make_paths, reference_sums
from altnorm.adjuster.validation import Validation
from altnorm.decisions.purpose import resolve_purpose
from altnorm.estimator.kinds import resolve_kind

EXACT = {np.float64: 1e-12, np.float32: 2e-5}
CLOSE = 0.01  # deeper iterations follow the reference's own path
MODES = (None, "pairs", "labelwise")
SETTINGS = [
    Setting(alpha, 1, threshold, reference, smoothing)
    for alpha in (0.1, 1.0, 9.0, 35.0)
    for threshold, reference in ((0.0, "all"), (0.25, "confident"), (0.75, "all"))
    for smoothing in (0.0, 0.1)
]


def draw(mode, n=60, m=4, seed=0, spread=3.0, dtype=np.float64):
    """Rows, some of them sure or with zeros, and labels."""
    rng = np.random.default_rng(seed)
    if mode is None:
        proba, labels = softmax(spread * rng.normal(size=(n, m)), axis=1), rng.integers(m, size=n)
        labels[: 2 * m] = np.tile(np.arange(m), 2)
        proba[: n // 5] = np.eye(m)[rng.integers(m, size=n // 5)]
        proba[n // 5 : n // 3, 0] = 0
        proba /= proba.sum(axis=1, keepdims=True)
    else:
        proba = expit(spread * rng.normal(size=(n, m)) - 1)
        proba[: n // 5] = np.round(proba[: n // 5])
        labels = rng.random((n, m)) < proba
    return proba.astype(dtype), labels


def validation(proba, labels, mode, weight=None):
    kind = resolve_kind(mode)
    purpose = resolve_purpose(None, None, kind, np.arange(proba.shape[1]))
    weight = np.ones(len(proba)) if weight is None else weight
    return Validation(proba, proba, labels, weight, None, proba[:0], kind, None, purpose)


def path(setting, folds, *args):
    return [p for _, p in make_paths(validation(*args), folds).path(setting)]


def one_by_one(proba, labels, mode, folds, setting, weight=None):
    """Fit a normalizer on the rows outside each fold, and apply it to the fold."""
    normalizer = AlternatingNormalizer(**setting._asdict(), multilabel=mode)
    weight, out = np.ones(len(proba)) if weight is None else weight, proba.copy()
    for outside, inside in PredefinedSplit(folds).split():
        normalizer.fit(proba[outside], labels[outside], sample_weight=weight[outside])
        out[inside] = normalizer.transform(proba[inside])
    return out


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("mode", MODES)
def test_the_first_iteration_is_exact(mode, dtype, weighted):
    proba, labels = draw(mode, dtype=dtype)
    folds = np.random.default_rng(1).permutation(60) % 4
    weight = np.random.default_rng(2).integers(1, 4, 60).astype(float) if weighted else None
    for setting in SETTINGS:
        (adjusted,) = path(setting, folds, proba, labels, mode, weight)
        expected = one_by_one(proba, labels, mode, folds, setting, weight)
        np.testing.assert_allclose(adjusted, expected, atol=EXACT[dtype], err_msg=str(setting))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("alpha", [0.3, 1.0, 2.0])
def test_deeper_iterations_are_close(mode, alpha):
    proba, labels = draw(mode, 1500, spread=2.0)
    folds = np.arange(1500) % 5
    setting = Setting(alpha, 3, 0.5, "confident", 0.1)
    by_depth = path(setting, folds, proba, labels, mode)
    assert len(by_depth) == 3
    for depth, adjusted in enumerate(by_depth, 1):
        expected = one_by_one(proba, labels, mode, folds, setting._replace(depth=depth))
        np.testing.assert_allclose(adjusted, expected, atol=CLOSE)


@pytest.mark.parametrize("spread", [1.0, 5.0, 60.0])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("alpha", [0.5, 1.0, 2.0, 9.0])
def test_the_references_of_all_folds_iterated_on_their_own(alpha, smoothing, spread):
    """Against the two equations in logs, also where linear numbers would underflow."""
    proba, _ = draw(None, spread=spread)
    proba[:, 3] = 0  # a class that no row has
    proba[:12] = np.eye(4)[np.arange(12) % 3]
    proba /= proba.sum(axis=1, keepdims=True)
    rng = np.random.default_rng(1)
    weight = rng.uniform(0.5, 2, (3, 60)) * (np.arange(60) % 3 != np.arange(3)[:, None])
    q = rng.dirichlet(np.ones(4), 3)
    steps = reference_sums(proba, weight, q, Setting(alpha, 5, 0.25, "all", smoothing))
    with np.errstate(divide="ignore"):
        log_a = [np.log(proba[w > 0]) for w in weight]
        mass = np.log(smoothing * weight.sum(axis=1, keepdims=True)) + np.log(q)
    for log_sums in islice(steps, 5):
        for k, (w, share) in enumerate(zip(weight, np.log(q), strict=True)):
            expected = logsumexp(alpha * log_a[k], b=w[w > 0][:, None], axis=0)
            expected = np.logaddexp(expected, mass[k])
            np.testing.assert_allclose(log_sums[k], expected, rtol=1e-9, atol=1e-9)
            has_rows = np.isfinite(expected)
            new = alpha * log_a[k] + np.where(has_rows, share - np.where(has_rows, expected, 0), 0)
            log_a[k] = new - logsumexp(new, axis=1, keepdims=True)


@pytest.mark.parametrize("mode", MODES)
def test_without_folds_rows_are_adjusted_against_all_as_published(mode):
    proba, labels = draw(mode)
    for setting in SETTINGS:
        (adjusted,) = path(setting, None, proba, labels, mode)
        normalizer = AlternatingNormalizer(**setting._asdict(), multilabel=mode)
        expected = normalizer.fit(proba, labels).transform(proba)
        np.testing.assert_allclose(adjusted, expected, atol=EXACT[np.float64], err_msg=str(setting))

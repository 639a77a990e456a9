"""What all estimators of one form have in common: conventions, dtypes, zeros, messages."""

import pickle
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import expit, log_softmax, logit, softmax
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

from altnorm import AlternatingNormalizer, InputError, peers
from altnorm.families import LabelwiseScaling
from altnorm.families.linear import ScoreScaling
from tests.libraries import make_strict
from tests.problems import planted_labels

SINGLE = [
    AlternatingNormalizer(reference="all"),
    AlternatingNormalizer(0.7, 2, reference="all", prior="shrunk", smoothing=0.2),
    peers.Identity(),
    peers.TemperatureScaling(),
    peers.BiasCorrectedTemperature(),
    peers.BiasCorrectedTemperature(1.0),
    peers.BatchCalibration(),
    peers.BatchCalibration(gamma=0.5),
]
BY_LABEL = [
    peers.LabelThresholds(),
    LabelwiseScaling(),
    LabelwiseScaling(1.0),
    LabelwiseScaling(1.0, bends=True),
]
MULTI = [
    AlternatingNormalizer(multilabel="pairs"),
    AlternatingNormalizer(0.7, 2, prior="shrunk", smoothing=0.2, multilabel="labelwise"),
    *BY_LABEL,
]
NEED_Y = [peers.TemperatureScaling(), peers.BiasCorrectedTemperature(), *BY_LABEL]

# Found by iterations that end when they come to little.
NEARLY = [peers.MatrixScaling(0.5), peers.CurveScaling(4.0), peers.CurveScaling(4.0, facets=True)]

single = pytest.mark.parametrize("peer", SINGLE, ids=repr)
multi = pytest.mark.parametrize("peer", MULTI, ids=repr)
all_forms = pytest.mark.parametrize("peer", SINGLE + MULTI + NEARLY, ids=repr)

ROUNDING = {np.float64: 1e-12, np.float32: 2e-6}


def single_label(n=90, m=4, seed=0):
    """Predictions with zeros, wrong about the prior, and labels drawn from the truth."""
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.full(m, 0.4), n)
    truth[rng.random((n, m)) < 0.1] = 0
    truth += 1e-3 * (np.arange(m) == truth.argmax(1)[:, None])
    truth /= truth.sum(1, keepdims=True)
    y = np.array([rng.choice(m, p=row) for row in truth])
    skewed = truth**1.5 * np.arange(1, m + 1)
    return skewed / skewed.sum(1, keepdims=True), y


def data_for(peer):
    by_label = isinstance(peer, tuple(map(type, BY_LABEL))) or peer.multilabel
    return planted_labels(90, 4) if by_label else single_label()


def within(peer, atol):
    return 2e-3 if peer in NEARLY else atol


@multi
def test_labels_by_the_row_follow_scikit_learns_conventions(peer):
    """Its checks, which the others pass, draw no matrices of labels."""
    proba, y = planted_labels(90, 4)
    before, fitted = peer.get_params(), clone(peer).fit(proba, y)
    assert fitted.get_params() == before
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.transform(proba), fitted.transform(proba))
    np.testing.assert_array_equal(again.predict(proba), fitted.predict(proba))
    assert fitted.transform(proba.astype(np.float32)).dtype == np.float32
    elsewhere = make_strict(proba)
    assert type(fitted.predict(elsewhere)) is type(fitted.transform(elsewhere)) is type(elsewhere)
    assert make_pipeline(clone(peer), clone(peer)).fit(proba, y).predict(proba).shape == y.shape
    with pytest.raises(NotFittedError):
        clone(fitted).transform(proba)


@single
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_sum_to_one_and_zeros_stay_zero(peer, dtype):
    proba, y = single_label()
    exact = clone(peer).fit(proba, y).transform(proba)
    proba = proba.astype(dtype)
    adjusted = clone(peer).fit(proba, y).transform(proba)
    assert adjusted.dtype == dtype
    np.testing.assert_allclose(adjusted, exact, atol=2e-5)
    assert (proba == 0).any()
    np.testing.assert_allclose(adjusted.sum(axis=1), 1, atol=ROUNDING[dtype])
    np.testing.assert_array_equal(adjusted[proba == 0], 0)
    assert (adjusted >= 0).all()


@pytest.mark.parametrize("peer", SINGLE + MULTI, ids=repr)
def test_logits_are_probabilities_up_to_a_constant(peer):
    proba, y = data_for(peer)
    logits, to_proba = logit(proba), expit
    if y.ndim == 1:
        logits = log_softmax(np.random.default_rng(1).normal(0, 3, proba.shape), axis=1) + 5
        to_proba = partial(softmax, axis=1)
    by_logits = clone(peer).set_params(input="logits").fit(logits, y)
    by_proba = clone(peer).fit(to_proba(logits), y)
    adjusted, expected = by_logits.transform(logits), by_proba.transform(to_proba(logits))
    np.testing.assert_allclose(adjusted, expected, atol=1e-6)
    np.testing.assert_array_equal(by_logits.predict(logits), by_proba.predict(to_proba(logits)))


@all_forms
def test_permuting_classes_and_rows_permutes_the_answer(peer):
    proba, y = data_for(peer)
    order, rows = np.array([2, 0, 3, 1]), np.random.default_rng(3).permutation(len(y))
    if getattr(peer, "strength", None) == "cv":
        rows = np.arange(len(y))  # they would be in other folds
    moved = proba[rows][:, order]
    permuted = clone(peer).fit(moved, (np.argsort(order)[y] if y.ndim == 1 else y[:, order])[rows])
    expected = clone(peer).fit(proba, y).transform(proba)[rows][:, order]
    np.testing.assert_allclose(permuted.transform(moved), expected, atol=within(peer, 1e-7))


def copies_of(peer, weight):
    """With penalties that come to the same for as many copies: the mean weight is 1."""
    settings = peer.get_params()
    mean = weight[weight > 0].mean()
    names = {"strength", "shrinkage"} & settings.keys()
    return clone(peer).set_params(**{name: settings[name] * mean for name in names})


@all_forms
def test_a_weight_is_a_number_of_copies(peer):
    proba, y = data_for(peer)
    weight = np.arange(len(y)) % 3
    counts_rows = isinstance(peer, (LabelwiseScaling, ScoreScaling))
    if getattr(peer, "strength", None) == "cv" or counts_rows:
        # Copies of a row would be in several folds; these count rows, not weights, somewhere.
        weight = np.minimum(weight, 1)
    weighted = clone(peer).fit(proba, y, sample_weight=weight)
    copied = clone(peer) if weight.max() == 1 else copies_of(peer, weight)
    copied.fit(np.repeat(proba, weight, axis=0), np.repeat(y, weight, axis=0))
    adjusted, expected = weighted.transform(proba), copied.transform(proba)
    np.testing.assert_allclose(adjusted, expected, atol=within(peer, 1e-6))


@single
@settings(max_examples=15)
@given(
    scores=arrays(np.float64, (9, 3), elements=st.sampled_from([0.0, 1e-300, 1e-9, 0.2, 1.0, 3.0])),
    codes=arrays(np.int64, 9, elements=st.integers(0, 2)),
)
def test_extreme_probabilities_never_give_nan(peer, scores, codes):
    scores[scores.sum(axis=1) < 1e-200] = [0, 0, 1]
    proba = scores / scores.sum(axis=1, keepdims=True)
    adjusted = clone(peer).fit(proba, codes).transform(proba)
    np.testing.assert_allclose(adjusted.sum(axis=1), 1, atol=1e-12)
    assert (adjusted[proba == 0] == 0).all()


@pytest.mark.parametrize("peer", NEED_Y, ids=repr)
def test_labels_are_required(peer):
    assert peer.__sklearn_tags__().target_tags.required
    with pytest.raises(InputError, match="requires y to be passed, but the target y is None"):
        clone(peer).fit(data_for(peer)[0])


BAD_SETTINGS = [
    (peers.BiasCorrectedTemperature("auto"), "`strength` must be 'cv'; it is 'auto'"),
    (peers.BiasCorrectedTemperature(-1.0), "`strength` must be a finite number, 0 or greater"),
    (peers.BatchCalibration(gamma=-1.0), "`gamma` must be a finite number, 0 or greater"),
    (peers.LabelThresholds(-1.0), "`shrinkage` must be a finite number, 0 or greater"),
    (peers.MatrixScaling(0.0), "`strength` must be a finite number greater than 0"),
    (peers.CurveScaling(facets=3), "`facets` must be True or False or 'auto'; it is 3"),
    (peers.CurveScaling(facets="many"), "`facets` must be True or False or 'auto'"),
    (LabelwiseScaling(0.0), "`strength` must be a finite number greater than 0"),
    (LabelwiseScaling(cv=1), "`cv` must be an integer, 2 or greater"),
    (peers.Identity(input="odds"), "`input` must be 'proba' or 'logits'; it is 'odds'"),
]


@pytest.mark.parametrize(("peer", "message"), BAD_SETTINGS, ids=lambda case: repr(case)[:50])
def test_bad_settings_are_told_in_a_sentence(peer, message):
    with pytest.raises(InputError, match=message):
        peer.fit(*data_for(peer))


@pytest.mark.parametrize("peer", [peers.BiasCorrectedTemperature(), LabelwiseScaling()], ids=repr)
def test_one_row_is_too_few_for_cross_validation(peer):
    proba, y = data_for(peer)
    with pytest.raises(InputError, match="at least 2 rows"):
        clone(peer).fit(proba[:1], y[:1])

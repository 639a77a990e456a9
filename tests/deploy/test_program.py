"""The program of a fitted model on NumPy arrays: what `transform` and `predict` say, row by row."""

import warnings

import numpy as np
import pytest
from scipy.special import expit, softmax

from altnorm import Adjuster, AlternatingNormalizer, AlternatingNormalizerCV
from altnorm.deploy.program import ArrayBackend
from altnorm.deploy.reading import read_program
from altnorm.families import LabelwiseScaling
from altnorm.peers import (
    BatchCalibration,
    BiasCorrectedTemperature,
    Identity,
    LabelThresholds,
    MatrixScaling,
    TemperatureScaling,
)
from tests.oracle import draw_cases, oracle
from tests.problems import planted, planted_labels
from tests.programs import (
    FORMS,
    LABEL_MODELS,
    answer,
    draw_labels,
    draw_logits,
    fit_case,
    several,
    single,
)

TOLERANCE = 1e-12
ROUNDING = 1e-13  # times alpha^depth, by which rounding errors grow


def run(fitted, values):
    """Probabilities and decisions."""
    program = read_program(fitted)
    with np.errstate(all="ignore"):
        p = program.probabilities(np.asarray(values, dtype=np.float64), ArrayBackend())
    return p, program.rule(p)


def test_teaser():
    normalizer = AlternatingNormalizer(threshold=0.5, prior="uniform").fit(np.array([[0.0, 1.0]]))
    p, decided = run(normalizer, [[0.5, 0.5], [0.0, 1.0]])
    np.testing.assert_array_equal(p, [[0.75, 0.25], [0.0, 1.0]])
    np.testing.assert_array_equal(decided, [0, 1])


@pytest.mark.parametrize("smoothing", [False, True])
def test_everything_that_may_go_wrong(smoothing):
    for i, case in enumerate(draw_cases(6, 80, smoothing=smoothing)):
        normalizer = fit_case(case)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*prior zero")
            want = normalizer.transform(case.proba)
        tolerance = ROUNDING * max(1.0, case.keywords["alpha"] ** case.keywords["depth"])
        found = run(normalizer, case.proba)[0]
        np.testing.assert_allclose(found, want, atol=tolerance, rtol=0, err_msg=str(i))


@pytest.mark.parametrize("m", [2, 5])
@pytest.mark.parametrize("depth", [1, 3])
def test_the_defining_equations(m, depth):
    rng = np.random.default_rng(m)
    reference, rows = rng.dirichlet(np.full(m, 0.4), 6), rng.dirichlet(np.full(m, 4.0), 4)
    rows[0, 0], reference[:, -1] = 0.0, 0.0
    rows, reference = (x / x.sum(axis=1, keepdims=True) for x in (rows, reference))
    normalizer = AlternatingNormalizer(1.5, depth, 0.0, prior="uniform", reference="all")
    found, _ = run(normalizer.fit(reference), rows)
    want = oracle(rows, reference, alpha=1.5, depth=depth)[-1]
    np.testing.assert_allclose(found, want, atol=TOLERANCE, rtol=0)


@pytest.mark.parametrize(("model", "rule"), FORMS)
@pytest.mark.parametrize("given", ["proba", "logits"])
def test_both_stages(model, rule, given):
    fitted, values = single(model, rule, given)
    p, decided = run(fitted, values)
    want, codes = answer(fitted, values)
    np.testing.assert_allclose(p, want, atol=TOLERANCE, rtol=0)
    np.testing.assert_array_equal(decided, codes)
    assert np.unique(decided).size > 2 + (rule == "person")


@pytest.mark.parametrize("model", LABEL_MODELS)
@pytest.mark.parametrize("given", ["proba", "logits"])
def test_several_labels(model, given):
    fitted, values = several(model, given)
    p, decided = run(fitted, values)
    want, codes = answer(fitted, values)
    np.testing.assert_allclose(p, want, atol=TOLERANCE, rtol=0)
    np.testing.assert_array_equal(decided, codes)
    assert 0 < decided.mean() < 1


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"families": ("alternating",), "calibrate": False},
        {"families": ("bias",), "scoring": "balanced_accuracy"},
        {"families": ("matrix",), "costs": np.column_stack([1 - np.eye(4), np.full(4, 0.3)])},
    ],
    ids=["default", "alternating", "balanced", "costs"],
)
def test_a_fitted_adjuster(settings):
    p, y = planted(600)
    adjuster = Adjuster(**settings).fit(p, y)
    assert adjuster.verdict_.adopted
    found, decided = run(adjuster, p)
    np.testing.assert_allclose(found, adjuster.transform(p), atol=TOLERANCE, rtol=0)
    names = adjuster.decision_.names(decided, adjuster.classes_)
    np.testing.assert_array_equal(names, adjuster.predict(p))


@pytest.mark.parametrize("multilabel", ["pairs", "labelwise"])
def test_a_fitted_adjuster_for_several_labels(multilabel):
    p, y = planted_labels(400)
    adjuster = Adjuster(multilabel=multilabel).fit(p, y)
    found, decided = run(adjuster, p)
    np.testing.assert_allclose(found, adjuster.transform(p), atol=TOLERANCE, rtol=0)
    np.testing.assert_array_equal(decided, adjuster.predict(p))


def test_peers_on_their_own():
    z, y = draw_logits()
    z[0] = [0.0, -900.0, -1000.0, 1.0, 1.0]  # a softmax would round to zero what counts
    for peer in (TemperatureScaling(), BiasCorrectedTemperature(1.0), MatrixScaling(), Identity()):
        for given in ("proba", "logits"):
            values = z if given == "logits" else softmax(z, axis=1)
            fitted = peer.set_params(input=given).fit(values[:300], y[:300])
            p, decided = run(fitted, values)
            np.testing.assert_allclose(p, fitted.transform(values), atol=TOLERANCE, rtol=0)
            clear = np.diff(np.sort(p, axis=1)[:, -2:], axis=1)[:, 0] > TOLERANCE
            np.testing.assert_array_equal(decided[clear], fitted.predict(values)[clear])


def test_label_peers_on_their_own():
    z, labels = draw_labels()
    for peer in (LabelThresholds(), LabelwiseScaling(4.0)):
        for given in ("proba", "logits"):
            values = z if given == "logits" else expit(z)
            fitted = peer.set_params(input=given).fit(values[:300], labels[:300])
            p, decided = run(fitted, values)
            np.testing.assert_allclose(p, fitted.transform(values), atol=TOLERANCE, rtol=0)
            np.testing.assert_array_equal(decided, fitted.predict(values))


@pytest.mark.parametrize("significance", [0.9, 1e-12])
def test_a_search_is_what_it_chose(significance):
    z, y = draw_logits(3)
    search = AlternatingNormalizerCV(
        (0.5, 1.0), (1, 2), (0.25, 0.5), input="logits", significance=significance, random_state=0
    ).fit(z, y)
    p, decided = run(search, z)
    np.testing.assert_allclose(p, search.transform(z), atol=TOLERANCE, rtol=0)
    np.testing.assert_array_equal(decided, search.predict(z))


def test_a_label_without_reference_and_a_reference_without_rows():
    p = np.array([[0.02, 0.5], [0.97, 0.45], [0.03, 0.55]])
    for depth in (1, 2):
        normalizer = AlternatingNormalizer(depth=depth, multilabel="labelwise").fit(p)
        np.testing.assert_array_equal(run(normalizer, p)[0], p)
        rows = np.array([[0.4, 0.3, 0.3], [0.5, 0.5, 0.0]])
        # The only reference row has no class that can occur.
        empty = AlternatingNormalizer(2.0, depth, 0.2, prior=[0.6, 0.4, 0.0]).fit(np.eye(3)[2:])
        np.testing.assert_allclose(run(empty, rows)[0], empty.transform(rows), atol=TOLERANCE)


def test_what_cannot_be_deployed():
    for model in (
        AlternatingNormalizer(),
        BatchCalibration().fit(np.array([[0.9, 0.1], [0.4, 0.6]])),
        np.ones(3),
    ):
        with pytest.raises(ValueError, match="must be a fitted Adjuster"):
            read_program(model)

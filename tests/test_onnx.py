"""The exported graph, run by onnxruntime, against `transform` in double precision."""

from __future__ import annotations

import json
import warnings

import numpy as np
import onnx
import pytest
from scipy.special import expit, softmax

import altnorm.onnx
from altnorm import Adjuster, AlternatingNormalizer, AlternatingNormalizerCV
from altnorm.onnx import export
from altnorm.peers import (
    BiasCorrectedTemperature,
    Identity,
    MatrixScaling,
    ShrunkBias,
    TemperatureScaling,
)
from tests.fitted import FORMS, LABEL_FORMS, assemble, fit_case
from tests.graphs import OPSETS, noisy_labels, noisy_logits, run, run_all, settings_in
from tests.oracle import draw_cases
from tests.problems import planted

FLOAT32_TOLERANCE = 1e-6  # the contract says 1e-5
FLOAT64_TOLERANCE = 1e-13  # times alpha^depth, by which rounding errors grow


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.onnx"


@pytest.mark.parametrize("m", [2, 10, 155])
@pytest.mark.parametrize("alpha", [0.1, 0.7, 1, 5.0, 16.0, 35.0])
@pytest.mark.parametrize("depth", [1, 2, 3, 5])
def test_single_label(path, m, alpha, depth):
    rng = np.random.default_rng(m + depth)
    z, y = noisy_logits(rng, 500, m)
    p = softmax(z, axis=1)
    normalizer = AlternatingNormalizer(alpha, depth, 0.5).fit(p[:300], y[:300] if m < 100 else None)
    x = p[300:].astype(np.float32)
    got, want = run(export(normalizer, path), x), normalizer.transform(x.astype(np.float64))
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, want, atol=FLOAT32_TOLERANCE, rtol=0)
    sure = altnorm.ambiguity(x.astype(np.float64)) <= 0.5
    assert 0 < sure.sum() < len(x)
    assert (got[sure] == x[sure]).all()


@pytest.mark.parametrize(("alpha", "depth"), [(0.6, 3), (20.0, 1), (16.0, 3)])
def test_thousand_classes(path, alpha, depth):
    z, _ = noisy_logits(np.random.default_rng(0), 400, 1000)
    p = softmax(z, axis=1)
    normalizer = AlternatingNormalizer(alpha, depth).fit(p[:300])
    x = p[300:].astype(np.float32)
    want = normalizer.transform(x.astype(np.float64))
    np.testing.assert_allclose(
        run(export(normalizer, path), x), want, atol=FLOAT32_TOLERANCE, rtol=0
    )


@pytest.mark.parametrize("smoothing", [False, True])
def test_everything_that_may_go_wrong(path, smoothing):
    for i, case in enumerate(draw_cases(7, 40, smoothing=smoothing)):
        keywords, normalizer = case.keywords, fit_case(case)
        m = case.proba.shape[1]
        x = np.concatenate([case.proba, np.full((1, m), 1 / m)])
        got = run(export(normalizer, path, dtype="float64", opset=OPSETS[i % len(OPSETS)]), x)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*prior zero")
            want = normalizer.transform(x)
        tolerance = FLOAT64_TOLERANCE * max(1.0, keywords["alpha"] ** keywords["depth"])
        np.testing.assert_allclose(got, want, atol=tolerance, rtol=0, err_msg=str(i))


@pytest.mark.parametrize("mode", ["pairs", "labelwise"])
@pytest.mark.parametrize("given", ["proba", "logits"])
@pytest.mark.parametrize(
    ("alpha", "depth", "threshold"),
    [(1, 1, 0.75), (16.0, 1, 0.25), (0.7, 2, 0.25), (8.0, 3, 0.75), (35.0, 5, 0.25), (2.0, 2, 0.0)],
)
def test_multilabel(path, mode, given, alpha, depth, threshold):
    z, labels = noisy_labels(np.random.default_rng(1), 500, 8)
    labels[:, 3] = False  # a prior of zero: that label is never adjusted
    x = z if given == "logits" else expit(z)
    normalizer = AlternatingNormalizer(
        alpha, depth, threshold, multilabel=mode, input=given, reference="all", smoothing=0.1
    ).fit(x[:300], labels[:300], sample_weight=np.arange(1.0, 301.0))
    x = x[300:].astype(np.float32)
    got, want = run(export(normalizer, path), x), normalizer.transform(x.astype(np.float64))
    np.testing.assert_allclose(got, want, atol=FLOAT32_TOLERANCE, rtol=0)


def test_label_without_reference(path):
    p = np.array([[0.02, 0.5], [0.97, 0.45], [0.03, 0.55]])
    normalizer = AlternatingNormalizer(depth=2, multilabel="labelwise").fit(p)
    np.testing.assert_array_equal(run(export(normalizer, path, dtype="float64"), p), p)


def test_graph_of_many_pairs_is_small(path):
    z, labels = noisy_labels(np.random.default_rng(2), 5000, 20)
    normalizer = AlternatingNormalizer(3.0, 3, multilabel="pairs").fit(expit(z), labels)
    assert export(normalizer, path).ByteSize() < 20_000


@pytest.mark.parametrize("multilabel", [None, "labelwise"])
def test_logits(path, multilabel):
    z, _ = noisy_logits(np.random.default_rng(3), 300, 5)
    normalizer = AlternatingNormalizer(2.0, 2, 0.5, input="logits", multilabel=multilabel).fit(z)
    want = normalizer.transform(z)
    got = run(export(normalizer, path, dtype="float64"), z)
    np.testing.assert_allclose(got, want, atol=1e-12, rtol=0)


def test_identity(path):
    p = softmax(np.random.default_rng(4).normal(size=(20, 3)), axis=1).astype(np.float32)
    assert (run(export(Identity().fit(p), path), p) == p).all()
    model = export(Identity(input="logits").fit(p), path)
    np.testing.assert_allclose(run(model, p), softmax(p, axis=1), atol=FLOAT32_TOLERANCE)


def test_peers_that_score_classes(path):
    z, y = noisy_logits(np.random.default_rng(8), 200, 4)
    p = softmax(z, axis=1)
    p[:, 2] = 0
    p /= p.sum(axis=1, keepdims=True)
    y[y == 2] = 1
    peers = (
        TemperatureScaling(),
        BiasCorrectedTemperature(ridge=1.0),
        ShrunkBias(),
        MatrixScaling(),
    )
    for peer in peers:
        peer.fit(p, y)
        got = run(export(peer, path, dtype="float64"), p)
        np.testing.assert_allclose(got, peer.transform(p), atol=1e-12, rtol=0)
    assert settings_in(export(ShrunkBias(ridge=np.inf).fit(p, y), path))["ridge"] == "inf"


@pytest.mark.parametrize("significance", [0.9, 1e-12])
def test_search_exports_what_it_chose(path, significance):
    z, y = noisy_logits(np.random.default_rng(5), 400, 3)
    names = np.array(["a", "b", "c"])
    z[:, 0] += 2
    search = AlternatingNormalizerCV(
        (0.5, 1.0), (1, 2), (0.25, 0.5), input="logits", significance=significance, random_state=0
    ).fit(z, names[y])
    model = export(search, path)
    x = z.astype(np.float32)
    np.testing.assert_allclose(
        run(model, x), search.transform(x.astype(np.float64)), atol=FLOAT32_TOLERANCE, rtol=0
    )
    metadata = {entry.key: json.loads(entry.value) for entry in model.metadata_props[:2]}
    assert metadata["altnorm.classes"] == ["a", "b", "c"]
    assert metadata["altnorm.settings"]["input"] == "logits"
    assert metadata["altnorm.settings"]["method"] == type(search.best_normalizer_).__name__


@pytest.mark.parametrize(("decider", "calibration"), FORMS)
@pytest.mark.parametrize("given", ["proba", "logits"])
def test_both_stages_of_an_adjuster(path, decider, calibration, given):
    z, y = noisy_logits(np.random.default_rng(9), 500, 5)
    z[:, 0] += 2
    z[::50] = -800 * (np.arange(5) != 3)  # one-hot rows: logs of zero
    values = z if given == "logits" else softmax(z, axis=1)
    adjuster = assemble(decider, calibration, values[:300], y[:300], input=given)
    for dtype, tolerance in (("float32", FLOAT32_TOLERANCE), ("float64", 1e-12)):
        x = values.astype(dtype)
        want = adjuster.transform(x.astype(np.float64))
        model = export(adjuster, path, dtype=dtype, label_output="class")
        got, label = run_all(model, x)
        np.testing.assert_allclose(got, want, atol=tolerance, rtol=0)
        np.testing.assert_array_equal(got.argmax(axis=1), want.argmax(axis=1))
        np.testing.assert_array_equal(label, adjuster.classes_[want.argmax(axis=1)])
        assert [len(part) for part in run_all(model, x[:0])] == [0, 0]


@pytest.mark.parametrize(("mode", "decider", "calibration"), LABEL_FORMS)
@pytest.mark.parametrize("given", ["proba", "logits"])
def test_both_stages_for_several_labels(path, mode, decider, calibration, given):
    z, labels = noisy_labels(np.random.default_rng(10), 400, 6)
    values = z if given == "logits" else expit(z)
    values[0, :2] = (-900, 900) if given == "logits" else (0, 1)
    settings = {"multilabel": mode, "input": given}
    adjuster = assemble(decider, calibration, values[:300], labels[:300], **settings)
    for dtype, tolerance in (("float32", FLOAT32_TOLERANCE), ("float64", 1e-12)):
        x = values.astype(dtype)
        got, label = run_all(export(adjuster, path, dtype=dtype, label_output="yes"), x)
        np.testing.assert_allclose(got, adjuster.transform(x.astype(float)), atol=tolerance, rtol=0)
        np.testing.assert_array_equal(label, adjuster.predict(x.astype(float)))


@pytest.mark.parametrize("opset", OPSETS)
def test_calibration_keeps_decisions_in_every_operator_set(path, opset):
    z, y = noisy_logits(np.random.default_rng(11), 400, 4)
    p = softmax(z, axis=1)
    adjuster = assemble("alternating", "matrix", p, y)
    x = np.random.default_rng(12).dirichlet(np.ones(4), 2000).astype(np.float32)
    want = adjuster.transform(x.astype(np.float64))
    plain = adjuster.calibrator_.transform(x.astype(np.float64))
    assert (plain.argmax(axis=1) != want.argmax(axis=1)).sum() > 100  # there is something to keep
    got = run(export(adjuster, path, opset=opset), x)
    np.testing.assert_array_equal(got.argmax(axis=1), want.argmax(axis=1))
    np.testing.assert_allclose(got.sum(axis=1), 1, atol=FLOAT32_TOLERANCE)


def test_a_fitted_adjuster(path):
    p, y = planted(1000)
    adjuster = Adjuster(n_repeats=1).fit(p, y)
    assert adjuster.verdict_.adopted
    assert adjuster.calibration_.adopted
    got = run(export(adjuster, path, dtype="float64"), p)
    np.testing.assert_allclose(got, adjuster.transform(p), atol=1e-12, rtol=0)
    settings = settings_in(onnx.load(path))
    assert settings["method"] == type(adjuster.best_normalizer_).__name__
    assert ("temperatures" in settings) != ("calibrator" in settings)


@pytest.mark.parametrize("families", [("alternating",), ("matrix",)])
def test_an_adapted_copy(path, families):
    p, y = planted(1000)
    rare = y != 3
    rare[::20] = True
    adapted = Adjuster(families, n_repeats=1).fit(p, y).adapt(p[rare])
    assert adapted.shift_.adapted
    got = run(export(adapted, path, dtype="float64"), p)
    np.testing.assert_allclose(got, adapted.transform(p), atol=1e-12, rtol=0)


def test_peers_take_logits_without_a_detour(path):
    """A softmax would round to zero what a high temperature brings back."""
    z = np.array([[0.0, -900.0, -1000.0], [5.0, 0.0, 5.0]])
    peer = TemperatureScaling(input="logits").fit(z, [1, 0])
    assert peer.temperature_ == pytest.approx(1000)
    np.testing.assert_allclose(run(export(peer, path, dtype="float64"), z), peer.transform(z))

"""The exported graph, run by onnxruntime, against `transform` and `predict` in double precision."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.special import expit, softmax

import altnorm
from altnorm import AlternatingNormalizer
from altnorm.onnx import export
from altnorm.peers import TemperatureScaling
from tests.graphs import OPSETS, run
from tests.oracle import draw_cases
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

FLOAT32_TOLERANCE = 1e-6  # the contract says 1e-5
FLOAT64_TOLERANCE = 1e-13  # times alpha^depth, by which rounding errors grow


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.onnx"


@pytest.mark.parametrize("m", [2, 10, 155])
@pytest.mark.parametrize("alpha", [0.1, 1, 5.0, 35.0])
@pytest.mark.parametrize("depth", [1, 2, 5])
def test_single_label(path, m, alpha, depth):
    z, y = draw_logits(m)
    p = softmax((1 + np.log(m) / 5) * z, axis=1)
    normalizer = AlternatingNormalizer(alpha, depth, 0.5).fit(p[:300], y[:300] if m < 100 else None)
    x = p[300:].astype(np.float32)
    got, decided = run(export(normalizer, path), x)
    want = normalizer.transform(x.astype(np.float64))
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, want, atol=FLOAT32_TOLERANCE, rtol=0)
    # Extreme exponents leave classes level to the last bit.
    lead = np.diff(np.sort(want, axis=1)[:, -2:], axis=1)[:, 0]
    assert (decided == want.argmax(axis=1))[lead > FLOAT64_TOLERANCE].all()
    sure = altnorm.ambiguity(x.astype(np.float64)) <= 0.5
    assert 0 < sure.sum() < len(x)
    assert (got[sure] == x[sure]).all()


@pytest.mark.parametrize(("alpha", "depth"), [(0.6, 3), (20.0, 1), (16.0, 3)])
def test_thousand_classes(path, alpha, depth):
    z, _ = draw_logits(1000, 400)
    p = softmax(2 * z, axis=1)
    normalizer = AlternatingNormalizer(alpha, depth).fit(p[:300])
    x = p[300:].astype(np.float32)
    want = normalizer.transform(x.astype(np.float64))
    got, _ = run(export(normalizer, path), x)
    np.testing.assert_allclose(got, want, atol=FLOAT32_TOLERANCE, rtol=0)


@pytest.mark.parametrize("smoothing", [False, True])
def test_everything_that_may_go_wrong(path, smoothing):
    for i, case in enumerate(draw_cases(7, 40, smoothing=smoothing)):
        keywords, normalizer = case.keywords, fit_case(case)
        m = case.proba.shape[1]
        x = np.concatenate([case.proba, np.full((1, m), 1 / m)])
        model = export(normalizer, path, dtype="float64", opset=OPSETS[i % len(OPSETS)])
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*prior zero")
            want = normalizer.transform(x)
        tolerance = FLOAT64_TOLERANCE * max(1.0, keywords["alpha"] ** keywords["depth"])
        np.testing.assert_allclose(run(model, x)[0], want, atol=tolerance, rtol=0, err_msg=str(i))


@pytest.mark.parametrize(("model", "rule"), FORMS)
@pytest.mark.parametrize("given", ["proba", "logits"])
def test_both_stages(path, model, rule, given):
    fitted, values = single(model, rule, given)
    for dtype, tolerance in (("float32", FLOAT32_TOLERANCE), ("float64", 1e-12)):
        x = values.astype(dtype)
        graph = export(fitted, path, dtype=dtype, label_output="class")
        got, decided, label = run(graph, x)
        want, codes = answer(fitted, x)
        np.testing.assert_allclose(got, want, atol=tolerance, rtol=0)
        np.testing.assert_array_equal(decided, codes)
        assert decided.dtype == np.int64
        left_out = [*map(str, fitted.classes_), ""]
        names = np.array(left_out) if rule == "person" else fitted.classes_
        np.testing.assert_array_equal(label, names[decided])
        assert [len(part) for part in run(graph, x[:0])] == [0, 0, 0]


@pytest.mark.parametrize("model", LABEL_MODELS)
@pytest.mark.parametrize("given", ["proba", "logits"])
def test_several_labels(path, model, given):
    fitted, values = several(model, given)
    for dtype, tolerance in (("float32", FLOAT32_TOLERANCE), ("float64", 1e-12)):
        x = values.astype(dtype)
        got, decided, label = run(export(fitted, path, dtype=dtype, label_output="yes"), x)
        want, codes = answer(fitted, x)
        np.testing.assert_allclose(got, want, atol=tolerance, rtol=0)
        np.testing.assert_array_equal(decided, codes)
        np.testing.assert_array_equal(label, decided)


@pytest.mark.parametrize("mode", ["pairs", "labelwise"])
@pytest.mark.parametrize(
    ("alpha", "depth", "threshold"), [(16.0, 1, 0.25), (35.0, 5, 0.25), (2.0, 2, 0)]
)
def test_labels_with_weights(path, mode, alpha, depth, threshold):
    z, labels = draw_labels(8)
    normalizer = AlternatingNormalizer(
        alpha, depth, threshold, multilabel=mode, input="logits", reference="all", smoothing=0.1
    ).fit(z[:300], labels[:300], sample_weight=np.arange(1.0, 301.0))
    x = z.astype(np.float32)
    got, decided = run(export(normalizer, path), x)
    want = normalizer.transform(x.astype(np.float64))
    np.testing.assert_allclose(got, want, atol=FLOAT32_TOLERANCE, rtol=0)
    np.testing.assert_array_equal(decided, want > 0.5)


def test_graph_of_many_pairs_is_small(path):
    z, labels = draw_labels(20, 5000)
    normalizer = AlternatingNormalizer(3.0, 3, multilabel="pairs").fit(expit(z), labels)
    assert export(normalizer, path).ByteSize() < 20_000


def test_peers_take_logits_without_a_detour(path):
    """A softmax would round to zero what a high temperature brings back."""
    z = np.array([[0.0, -900.0, -1000.0], [5.0, 0.0, 5.0]])
    peer = TemperatureScaling(input="logits").fit(z, [1, 0])
    assert peer.temperature_ == pytest.approx(1000)
    got, _ = run(export(peer, path, dtype="float64"), z)
    np.testing.assert_allclose(got, peer.transform(z))

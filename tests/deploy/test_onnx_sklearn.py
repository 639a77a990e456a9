"""Classifiers that adjust their own predictions, converted by skl2onnx."""

import sys
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits, make_classification
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from altnorm import AdjustedClassifier, AlternatingNormalizer
from altnorm.onnx import register_converter
from tests.graphs import run
from tests.programs import MODELS, answer, assemble, decide

SINGLE = 2e-5  # the classifier itself runs in single precision


@pytest.fixture(autouse=True, scope="module")
def _registered():
    register_converter()


def to_onnx(model, x, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from skl2onnx import to_onnx

        return to_onnx(model, x[:1], **{"options": {"zipmap": False}} | settings)


def noisy_digits():
    x, y = load_digits(return_X_y=True)
    return (x + np.random.default_rng(0).normal(scale=8, size=x.shape)).astype(np.float32), y


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("rule", ["argmax", "costs"])
def test_every_form_of_an_adjuster(kind, rule):
    x, y = noisy_digits()
    inner = LogisticRegression(max_iter=2000, C=1e-3).fit(x[:600], y[:600])
    normalizer = AlternatingNormalizer(prior="uniform")
    model = AdjustedClassifier(FrozenEstimator(inner), normalizer)
    model.fit(x[600:1200], y[600:1200])
    estimator, temperature = MODELS[kind]
    fitted = clone(estimator).fit(inner.predict_proba(x[600:1200]), y[600:1200])
    model.adjuster_ = assemble(fitted, temperature, decide(rule, 10), "proba")
    label, proba = run(to_onnx(model, x), x[1200:])
    before = inner.predict_proba(x[1200:])
    want, codes = answer(model.adjuster_, before)
    np.testing.assert_allclose(proba, want, atol=SINGLE, rtol=0)
    # The classifier itself runs in single precision, and near ties fall as they fall.
    assert (label == codes).mean() > 0.99


@pytest.mark.parametrize("names", [["one", "two", "three"], [7, -1, 3]], ids=["text", "numbers"])
def test_pipelines_names_and_options(names):
    x, y = make_classification(600, 10, n_informative=4, n_classes=3, random_state=0)
    y = np.array(names)[y]
    model = AdjustedClassifier(
        make_pipeline(StandardScaler(), GaussianNB()), AlternatingNormalizer(2.0, 2, 0.5)
    )
    whole = make_pipeline(StandardScaler(), model).fit(x, y)
    graph = to_onnx(whole, x, options={id(model): {"zipmap": False}})
    label, proba = run(graph, x)
    np.testing.assert_allclose(proba, whole.predict_proba(x), atol=1e-9, rtol=0)
    np.testing.assert_array_equal(label, whole.predict(x))
    single = x.astype(np.float32)  # what maps may hold
    mapped = run(to_onnx(whole, single, options=None), single)
    assert set(mapped[1][0]) == set(names)
    codes, _ = run(to_onnx(model, x, options={"zipmap": False, "nocl": True}), x)
    assert set(codes.tolist()) <= {0, 1, 2}


def test_operator_sets():
    x, y = make_classification(300, 10, n_informative=4, n_classes=3, random_state=0)
    model = AdjustedClassifier(GaussianNB(), AlternatingNormalizer(2.0, 3, 0.5))
    model.fit(x, y)
    for opset in (13, 15, 18):
        graph = to_onnx(model, x, target_opset={"": opset, "ai.onnx.ml": 2})
        _, proba = run(graph, x)
        np.testing.assert_allclose(proba, model.predict_proba(x), atol=1e-9, rtol=0)
    with pytest.raises(ValueError, match="`target_opset` must be 13 or later; it is 12"):
        to_onnx(model, x, target_opset={"": 12, "ai.onnx.ml": 1})


def test_missing_library_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "skl2onnx", None)
    with pytest.raises(ImportError, match="pip install skl2onnx"):
        register_converter()

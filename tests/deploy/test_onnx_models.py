"""Exported files: what is in them, and graphs of classifiers with the adjustment at their end."""

from __future__ import annotations

import importlib
import json
import sys
import warnings

import numpy as np
import onnx
import pytest
from scipy.special import softmax
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import altnorm.deploy.onnx
from altnorm import AlternatingNormalizer
from altnorm.onnx import export
from altnorm.peers import Identity, TemperatureScaling
from tests.graphs import OPSETS, run
from tests.programs import draw_logits


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.onnx"


@pytest.fixture
def fitted():
    z, y = draw_logits(4, 300)
    return AlternatingNormalizer(2.0, 2, 0.5).fit(softmax(z, axis=1), y)


def operators(graph: onnx.GraphProto):
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            yield from operators(attribute.g)


@pytest.mark.parametrize("opset", OPSETS)
def test_model_file(path, fitted, opset):
    export(fitted, path, opset=opset)
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    assert [(s.domain, s.version) for s in model.opset_import] == [("", opset)]
    assert {node.domain for node in operators(model.graph)} == {""}
    p = softmax(np.random.default_rng(6).normal(size=(50, 4)), axis=1).astype(np.float32)
    whole, decided = run(model, p)
    for rows in (0, 1, 7):
        some, code = run(model, p[:rows])
        assert some.shape == (rows, 4)
        np.testing.assert_allclose(some, whole[:rows], atol=1e-7)
        np.testing.assert_array_equal(code, decided[:rows])


def test_settings_are_in_the_metadata(path, fitted):
    metadata = {e.key: e.value for e in export(fitted, path).metadata_props}
    settings = json.loads(metadata["altnorm.settings"])
    assert settings["alpha"] == 2.0
    assert settings["depth"] == 2
    assert settings["threshold"] == 0.5
    assert json.loads(metadata["altnorm.classes"]) == [0, 1, 2, 3]
    assert metadata["altnorm.version"]


@pytest.fixture(scope="module")
def pipeline():
    x, y = load_digits(return_X_y=True)
    x = x + np.random.default_rng(0).normal(scale=8, size=x.shape)
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=200)).fit(x[:600], y[:600])
    return model, x[600:].astype(np.float32), y[600:]


def converted(model, x: np.ndarray, target_opset=None, **options) -> onnx.ModelProto:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from skl2onnx import to_onnx

        return to_onnx(model, x[:1], options=options, target_opset=target_opset)


@pytest.mark.parametrize("depth", [1, 3])
def test_appended_to_a_scikit_learn_model(path, tmp_path, pipeline, depth):
    model, x, y = pipeline
    proba = model.predict_proba(x)
    normalizer = AlternatingNormalizer(2.0, depth, 0.5).fit(proba[:600], y[:600])
    classifier = converted(model, x, zipmap=False)
    (tmp_path / "classifier.onnx").write_bytes(classifier.SerializeToString())
    for given in (classifier, tmp_path / "classifier.onnx"):
        merged = export(normalizer, path, append_to=given, label_output="label")
        onnx.checker.check_model(str(path), full_check=True)
        names = [output.name for output in merged.graph.output]
        assert names == ["adjusted", "decision", "label", "label_before", "probabilities"]
        adjusted, decided, label, label_before, before = run(merged, x)
        # The classifier itself runs in single precision, which the adjustment passes on.
        np.testing.assert_allclose(adjusted, normalizer.transform(proba), atol=1e-5, rtol=0)
        np.testing.assert_allclose(before, proba, atol=1e-5, rtol=0)
        np.testing.assert_array_equal(decided, adjusted.argmax(axis=1))
        np.testing.assert_array_equal(label, decided)
        np.testing.assert_array_equal(label_before, before.argmax(axis=1))
        assert (label != label_before).any()
    assert [o.name for o in classifier.graph.output] == ["label", "probabilities"]


def test_class_names_are_kept_in_the_metadata_of_a_classifier(path, pipeline):
    model, x, y = pipeline
    names = np.array([f"digit {c}" for c in range(10)])
    proba = model.predict_proba(x)
    normalizer = AlternatingNormalizer(2.0).fit(proba[:600], names[y[:600]])
    classifier = converted(model, x, zipmap=False)
    onnx.helper.set_model_props(classifier, {"author": "somebody"})
    merged = export(normalizer, path, append_to=classifier, label_output="name")
    metadata = {entry.key: entry.value for entry in merged.metadata_props}
    assert metadata["author"] == "somebody"
    assert json.loads(metadata["altnorm.classes"]) == names.tolist()
    assert set(run(merged, x)[2]) == set(names)


def test_append_twice(path, pipeline):
    model, x, y = pipeline
    proba = model.predict_proba(x)
    first = AlternatingNormalizer(2.0, 1, 0.5).fit(proba[:600], y[:600])
    second = TemperatureScaling().fit(first.transform(proba)[:600], y[:600])
    merged = export(first, path, append_to=converted(model, x, zipmap=False), output_name="once")
    twice = export(second, path, append_to=merged, append_output="once", output_name="twice")
    got = dict(zip([o.name for o in twice.graph.output], run(twice, x), strict=True))
    assert list(got) == [
        "twice",
        "decision",
        "once",
        "decision_before",
        "label_before",
        "probabilities",
    ]
    want = second.transform(first.transform(proba))
    np.testing.assert_allclose(got["twice"], want, atol=1e-5, rtol=0)


def test_append_errors(path, pipeline, fitted):
    model, x, _ = pipeline
    classifier = converted(model, x, zipmap=False)
    with pytest.raises(ValueError, match=r"one output of floats with 4 columns.*zipmap=False"):
        export(fitted, path, append_to=classifier)
    with pytest.raises(ValueError, match="does not exist"):
        export(fitted, path, append_to=path)
    ten = Identity().fit(np.full((1, 10), 0.1))
    with pytest.raises(ValueError, match="named 'label'"):
        export(ten, path, append_to=classifier, append_output="label")
    with pytest.raises(ValueError, match="names that the classifier does not use; it uses 'X'"):
        export(ten, path, append_to=classifier, output_name="X")
    old = converted(model, x, {"": 12, "ai.onnx.ml": 1}, zipmap=False)
    with pytest.raises(ValueError, match="must be 13 or later; it is 12"):
        export(ten, path, append_to=old)
    for attribute in (a for n in operators(classifier.graph) for a in n.attribute):
        if attribute.name == "axis":
            attribute.i = 17
    softmax_node = onnx.helper.make_node("Softmax", ["probabilities"], ["soft"], axis=17)
    classifier.graph.node.append(softmax_node)
    with pytest.raises(ValueError, match=r"must be a sound ONNX graph; this one is not \(.*axis"):
        export(ten, path, append_to=classifier)
    assert not path.exists()


def test_bad_options(path, fitted):
    with pytest.raises(ValueError, match="must be a fitted Adjuster"):
        export(AlternatingNormalizer(), path)
    with pytest.raises(ValueError, match="`dtype` must be"):
        export(fitted, path, dtype="float16")
    with pytest.raises(ValueError, match="13 or greater"):
        export(fitted, path, opset=9)


def test_a_failed_export_leaves_the_old_file(path, fitted, monkeypatch):
    export(fitted, path)
    before = path.read_bytes()
    monkeypatch.setattr(altnorm.deploy.onnx, "_LARGEST_FILE", 10)
    with pytest.raises(ValueError, match="below 2 GB"):
        export(fitted, path)
    with pytest.raises(ValueError, match="exists already"):
        export(Identity().fit(np.eye(4)), path, force=False)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_missing_library_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    monkeypatch.delitem(sys.modules, "altnorm.deploy.onnx")
    with pytest.raises(ImportError, match=r"pip install 'altnorm\[onnx\]'"):
        importlib.import_module("altnorm.deploy.onnx")

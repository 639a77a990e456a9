"""Exported graphs, run by onnxruntime, against `transform` and `predict` in double precision."""

from __future__ import annotations

import json
import sys
import warnings

import numpy as np
import onnx
import onnxruntime
import pytest
from scipy.special import expit, softmax
from sklearn.base import clone
from sklearn.datasets import load_digits, make_classification
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import altnorm
from altnorm import AdjustedClassifier, Adjuster, AlternatingNormalizer
from altnorm.onnx import export, register_converter
from altnorm.peers import BatchCalibration, Identity, LabelThresholds
from tests.problems import planted, planted_labels
from tests.programs import PROGRAMS, answer, draw_labels, draw_logits, hard_cases, make

OPSETS = (13, 17, 18, 21, 23)
FLOAT32_TOLERANCE = 1e-6  # the contract says 1e-5
LAST_BITS = 1e-14  # that documentation says the ambiguity of a row may be off by
TOLERANCES = {"float32": FLOAT32_TOLERANCE, "float64": 1e-12}


def run(model: onnx.ModelProto, x: np.ndarray) -> list[np.ndarray]:
    """Return all outputs."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    (entry,) = session.get_inputs()
    return session.run(None, {entry.name: x})


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.onnx"


# Values.


@pytest.mark.parametrize(("m", "alpha"), [(2, 0.1), (10, 1), (10, 35.0), (155, 5.0), (1000, 16.0)])
@pytest.mark.parametrize("depth", [1, 3])
def test_many_classes_and_large_exponents(path, m, alpha, depth):
    z, y = draw_logits(m)
    p = softmax((1 + np.log(m) / 5) * z, axis=1)
    normalizer = AlternatingNormalizer(alpha, depth, 0.5).fit(p[:300], y[:300] if m < 100 else None)
    x = p[300:].astype(np.float32)
    got, decided = run(export(normalizer, path), x)
    want = normalizer.transform(x.astype(np.float64))
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, want, atol=FLOAT32_TOLERANCE, rtol=0)
    np.testing.assert_array_equal(decided, got.argmax(axis=1))
    sure = altnorm.ambiguity(x.astype(np.float64)) <= 0.5
    assert 0 < sure.sum() < len(x)
    assert (got[sure] == x[sure]).all()


@pytest.mark.parametrize("m", [2, 5])
def test_rows_are_in_doubt_as_for_transform_but_for_the_last_bits(path, m):
    rng = np.random.default_rng(m)
    rows, reference = rng.dirichlet(np.ones(m), 60), rng.dirichlet(np.full(m, 0.1), 200)
    for value in altnorm.ambiguity(rows)[:8]:
        for threshold in (value - LAST_BITS, value + LAST_BITS):
            normalizer = AlternatingNormalizer(threshold=threshold, reference="all").fit(reference)
            got = run(export(normalizer, path, dtype="float64", force=True), rows)[0]
            np.testing.assert_allclose(got, normalizer.transform(rows), atol=1e-12, rtol=0)


@pytest.mark.parametrize("smoothing", [False, True])
def test_everything_that_may_go_wrong(path, smoothing):
    for i, (normalizer, x, want, atol) in enumerate(hard_cases(7, 20, smoothing=smoothing)):
        model = export(normalizer, path, dtype="float64", opset=OPSETS[i % len(OPSETS)])
        np.testing.assert_allclose(run(model, x)[0], want, atol=atol, rtol=0, err_msg=str(i))


@pytest.mark.parametrize(("model", "rule"), PROGRAMS)
@pytest.mark.parametrize("input", ["proba", "logits"])
def test_both_stages(path, model, rule, input):
    fitted, values = make(model, rule, input)
    for dtype, tolerance in TOLERANCES.items():
        x = values.astype(dtype)
        graph = export(fitted, path, dtype=dtype, label_output="class")
        got, decided, label = run(graph, x)
        want, codes = answer(fitted, x)
        np.testing.assert_allclose(got, want, atol=tolerance, rtol=0)
        np.testing.assert_array_equal(decided, codes)
        assert decided.dtype == np.int64
        if rule == "argmax":
            np.testing.assert_array_equal(decided, got.argmax(axis=1))
        if rule in ("person", "target"):
            assert 0 < (decided == got.shape[1]).sum() < len(got)
        elif model == "kept":
            np.testing.assert_array_equal(decided, x.argmax(axis=1))
        names = dict.fromkeys(("person", "target"), np.array([*map(str, fitted.classes_), ""]))
        names |= dict.fromkeys(("thresholds", "thresholds as it came"), np.arange(2))
        np.testing.assert_array_equal(label, names.get(rule, fitted.classes_)[decided])
        assert [len(part) for part in run(graph, x[:0])] == [0, 0, 0]


PERSON = np.column_stack([1 - np.eye(4), np.full(4, 0.3)])
SEARCH = altnorm.AlternatingNormalizerCV((0.5, 1.0), (1, 2), (0.25, 0.5))


@pytest.mark.parametrize("input", ["proba", "logits"])
@pytest.mark.parametrize(
    "model",
    [
        Adjuster(("alternating",), calibrate=False),
        Adjuster(("matrix",), costs=PERSON),
        Adjuster(scoring="balanced_accuracy", significance=1e-300),
        Adjuster(multilabel="labelwise"),
        BatchCalibration(),
        LabelThresholds(),
        SEARCH,
        clone(SEARCH).set_params(significance=1e-12),
    ],
    ids=lambda model: str(model)[:50],
)
def test_models_as_they_are_fitted(path, model, input):
    by_label = getattr(model, "multilabel", None) or isinstance(model, LabelThresholds)
    proba, y = planted_labels(400) if by_label else planted(400)
    values = proba if input == "proba" else np.log(proba) - (np.log1p(-proba) if by_label else 0)
    fitted = clone(model).set_params(input=input).fit(values, y)
    adjusted, decided = run(export(fitted, path, dtype="float64"), values)
    np.testing.assert_allclose(adjusted, fitted.transform(values), atol=1e-12, rtol=0)
    want = fitted.predict(values)
    if not by_label:
        want = [4 if name is None else name for name in want.tolist()]
    np.testing.assert_array_equal(decided, want)


def test_a_label_without_reference_and_a_reference_without_rows(path):
    p = np.array([[0.02, 0.5], [0.97, 0.45], [0.03, 0.55]])
    rows = np.array([[0.4, 0.3, 0.3], [0.5, 0.5, 0.0]])
    for depth in (1, 2):
        normalizer = AlternatingNormalizer(depth=depth, multilabel="labelwise").fit(p)
        adjusted = run(export(normalizer, path, dtype="float64"), p)[0]
        np.testing.assert_array_equal(adjusted, p)
        # The only reference row has no class that can occur.
        empty = AlternatingNormalizer(2.0, depth, 0.2, prior=[0.6, 0.4, 0.0]).fit(np.eye(3)[2:])
        adjusted = run(export(empty, path, dtype="float64"), rows)[0]
        np.testing.assert_allclose(adjusted, empty.transform(rows), atol=1e-12)


def test_graph_of_many_pairs_is_small(path):
    z, labels = draw_labels(20, 5000)
    normalizer = AlternatingNormalizer(3.0, 3, multilabel="pairs").fit(expit(z), labels)
    assert export(normalizer, path).ByteSize() < 20_000


# Files.


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
    everything, decided = run(model, p)
    for rows in (0, 1, 7):
        part, code = run(model, p[:rows])
        assert part.shape == (rows, 4)
        np.testing.assert_allclose(part, everything[:rows], atol=1e-7)
        np.testing.assert_array_equal(code, decided[:rows])
    metadata = {e.key: e.value for e in model.metadata_props}
    settings = json.loads(metadata["altnorm.settings"])
    assert (settings["alpha"], settings["depth"], settings["threshold"]) == (2.0, 2, 0.5)
    assert json.loads(metadata["altnorm.classes"]) == [0, 1, 2, 3]
    assert metadata["altnorm.version"]


SOUND = AlternatingNormalizer(reference="all").fit(np.eye(4))


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        (AlternatingNormalizer(), {}, "must be a fitted Adjuster"),
        (np.ones(3), {}, "must be a fitted Adjuster"),
        (SOUND, {"dtype": "float16"}, "`dtype` must be"),
        (SOUND, {"opset": 9}, "13 or greater"),
        (SOUND, {"label_output": ""}, r"none .* empty or 'proba'; .* 'adjusted', 'decision', ''"),
        (SOUND, {"label_output": "decision"}, "must have different names"),
    ],
    ids=lambda case: str(case)[:20],
)
def test_what_cannot_be_exported(path, model, options, message):
    with pytest.raises(ValueError, match=message):
        export(model, path, **options)


def test_a_failed_export_leaves_the_old_file(path, fitted, monkeypatch):
    export(fitted, path)
    before = path.read_bytes()
    monkeypatch.setattr("altnorm.deploy.onnx._LARGEST_FILE", 10)
    with pytest.raises(ValueError, match="below 2 GB"):
        export(fitted, path)
    with pytest.raises(ValueError, match="exists already"):
        export(Identity().fit(np.eye(4)), path, force=False)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


# Classifiers with the adjustment at their end.


@pytest.fixture(scope="module")
def pipeline():
    x, y = load_digits(return_X_y=True)
    x = x + np.random.default_rng(0).normal(scale=8, size=x.shape)
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=200)).fit(x[:600], y[:600])
    return model, x[600:].astype(np.float32), y[600:]


def converted(model, x, **settings) -> onnx.ModelProto:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from skl2onnx import to_onnx

        register_converter()
        return to_onnx(model, x[:1], **{"options": {"zipmap": False}, **settings})


@pytest.mark.parametrize("depth", [1, 3])
def test_appended_to_a_scikit_learn_model(path, tmp_path, pipeline, depth):
    model, x, y = pipeline
    proba = model.predict_proba(x)
    normalizer = AlternatingNormalizer(2.0, depth, 0.5).fit(proba[:600], y[:600])
    classifier = converted(model, x)
    (tmp_path / "classifier.onnx").write_bytes(classifier.SerializeToString())
    for source in (classifier, tmp_path / "classifier.onnx"):
        merged = export(normalizer, path, append_to=source, label_output="label")
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
    plain = export(normalizer, path, append_to=classifier)
    names = [output.name for output in plain.graph.output]
    assert names == ["adjusted", "decision", "label_before", "probabilities"]
    twice = export(normalizer, path, append_to=merged, append_output="adjusted_before")
    want = normalizer.transform(adjusted.astype(np.float64))
    np.testing.assert_allclose(run(twice, x)[0], want, atol=1e-5, rtol=0)


def test_append_errors(path, pipeline, fitted):
    model, x, _ = pipeline
    classifier = converted(model, x)
    with pytest.raises(ValueError, match=r"one output of floats with 4 columns.*zipmap=False"):
        export(fitted, path, append_to=classifier)
    with pytest.raises(ValueError, match="does not exist"):
        export(fitted, path, append_to=path)
    ten = Identity().fit(np.full((1, 10), 0.1))
    with pytest.raises(ValueError, match="named 'label'"):
        export(ten, path, append_to=classifier, append_output="label")
    with pytest.raises(ValueError, match=r"empty or 'X', .*; they are .*, 'X'\."):
        export(ten, path, append_to=classifier, label_output="X")
    old = converted(model, x, target_opset={"": 12, "ai.onnx.ml": 1})
    with pytest.raises(ValueError, match="must be 13 or later; it is 12"):
        export(ten, path, append_to=old)
    for attribute in (a for n in operators(classifier.graph) for a in n.attribute):
        if attribute.name == "axis":
            attribute.i = 17
    softmax_node = onnx.helper.make_node("Softmax", ["probabilities"], ["soft"], axis=17)
    classifier.graph.node.append(softmax_node)
    with pytest.raises(ValueError, match=r"an ONNX model; this one is not, or .* \(.*axis"):
        export(ten, path, append_to=classifier)
    assert not path.exists()


@pytest.mark.parametrize("costs", [None, 3 * (1 - np.eye(10)) + np.tri(10, k=-1)])
def test_a_frozen_classifier_and_its_decisions(pipeline, costs):
    inner, x, y = pipeline
    adjuster = Adjuster(("bias",), costs=costs, insist=True)
    model = AdjustedClassifier(FrozenEstimator(inner), adjuster).fit(x[:600], y[:600])
    label, proba = run(converted(model, x), x[600:])
    np.testing.assert_allclose(proba, model.predict_proba(x[600:]), atol=1e-4, rtol=0)
    # The classifier itself runs in single precision, and near ties fall as they fall.
    assert (label == model.predict(x[600:])).mean() > 0.99


@pytest.mark.parametrize("names", [["one", "two", "three"], [7, -1, 3]], ids=["text", "numbers"])
def test_pipelines_names_and_options(names):
    x, y = make_classification(600, 10, n_informative=4, n_classes=3, random_state=0)
    y = np.array(names)[y]
    model = AdjustedClassifier(
        make_pipeline(StandardScaler(), GaussianNB()), AlternatingNormalizer(2.0, 2, 0.5)
    )
    pipeline = make_pipeline(StandardScaler(), model).fit(x, y)
    graph = converted(pipeline, x, options={id(model): {"zipmap": False}})
    label, proba = run(graph, x)
    np.testing.assert_allclose(proba, pipeline.predict_proba(x), atol=1e-9, rtol=0)
    np.testing.assert_array_equal(label, pipeline.predict(x))
    single = x.astype(np.float32)  # what maps may hold
    mapped = run(converted(pipeline, single, options=None), single)
    assert set(mapped[1][0]) == set(names)
    codes, _ = run(converted(model, x, options={"zipmap": False, "nocl": True}), x)
    assert set(codes.tolist()) <= {0, 1, 2}
    for opset in (13, 18):
        _, proba = run(converted(model, x, target_opset={"": opset, "ai.onnx.ml": 2}), x)
        np.testing.assert_allclose(proba, model.predict_proba(x), atol=1e-9, rtol=0)
    with pytest.raises(ValueError, match="`target_opset` must be 13 or later; it is 12"):
        converted(model, x, target_opset={"": 12, "ai.onnx.ml": 1})


def test_a_missing_converter_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "skl2onnx", None)
    with pytest.raises(ImportError, match="pip install skl2onnx"):
        register_converter()

"""Record batches, by class columns or lists, come out as `transform` and `predict` say."""

import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from altnorm import AlternatingNormalizer, InputError, ambiguity
from altnorm.peers import Identity, LabelThresholds
from tests import batches
from tests.batches import CLASSES, LIST_TYPES, class_batch, draw, list_batch, matrix
from tests.problems import planted
from tests.programs import FORMS, LABEL_MODELS, several, single

pa = pytest.importorskip("pyarrow")
arrow = pytest.importorskip("altnorm.arrow")


@pytest.fixture(scope="module")
def normalizer():
    return batches.fit_drawn(CLASSES, 200)


def apply_one(model, batch, **options):
    (out,) = arrow.apply_batches(model, [batch], **options)
    return out


# Class columns, matched by name.


def test_other_columns_and_the_schema_are_kept_and_nothing_is_copied(normalizer):
    proba = draw(50, seed=1)
    batch = class_batch(proba, id=np.arange(50), text=["x", None] * 25)
    batch = batch.select(["id", *CLASSES, "text"]).replace_schema_metadata({"made": "by hand"})
    out = apply_one(normalizer, batch)
    assert out.schema.names == [*batch.schema.names, "prediction"]
    assert out.schema.metadata == batch.schema.metadata
    assert out.schema.field("prediction").type == pa.string()
    assert out["prediction"].to_pylist() == normalizer.predict(proba).tolist()
    assert out.select(["id", "text"]).equals(batch.select(["id", "text"]))
    assert out["id"].buffers()[1].address == batch["id"].buffers()[1].address
    np.testing.assert_array_equal(matrix(out), normalizer.transform(proba))


@settings(max_examples=40)
@given(order=st.permutations(range(4)), cuts=st.lists(st.integers(0, 30), max_size=3))
def test_neither_order_of_columns_nor_cuts_matter(normalizer, order, cuts):
    proba = draw(30, seed=2)
    batch = class_batch(proba[:, order], CLASSES[order])
    edges = [0, *sorted(cuts), 30]
    parts = [batch.slice(a, b - a) for a, b in pairwise(edges)]
    out = pa.Table.from_batches(arrow.apply_batches(normalizer, parts, prediction=None))
    assert out.column_names == batch.schema.names
    # Products of one row sum in another order.
    np.testing.assert_allclose(matrix(out), normalizer.transform(proba), atol=1e-15, rtol=0)


def test_columns_keep_their_type(normalizer):
    proba = draw(50, seed=3, dtype=np.float32)
    mixed = class_batch(proba).set_column(1, "bee", pa.array(proba[:, 1].astype(np.float64)))
    assert apply_one(normalizer, mixed, prediction=None).schema.equals(mixed.schema)


def test_prefix_and_output(normalizer):
    proba = draw(20, seed=5)
    new = [f"new_{name}" for name in CLASSES]
    batch = class_batch(proba, [f"p_{name}" for name in CLASSES], ant=np.zeros(20))
    out = apply_one(normalizer, batch, prefix="p_", output="new_")
    assert out.schema.names == [*batch.schema.names, *new, "prediction"]
    assert out.select(batch.schema.names).equals(batch)
    np.testing.assert_array_equal(matrix(out, new), normalizer.transform(proba))


def test_integer_classes_and_data_frames_are_matched_by_their_names():
    pd = pytest.importorskip("pandas")
    proba = draw(30, seed=7)
    numbered = AlternatingNormalizer().fit(draw(40))
    out = apply_one(numbered, class_batch(proba[:, ::-1], [3, 2, 1, 0]), prediction="class")
    np.testing.assert_array_equal(matrix(out, range(4)), numbered.transform(proba))
    assert out["class"].type == pa.int64()
    assert out["class"].to_pylist() == numbered.predict(proba).tolist()
    named = AlternatingNormalizer(threshold=0.6).fit(pd.DataFrame(draw(60), columns=CLASSES))
    adjusted = matrix(apply_one(named, class_batch(proba)))
    np.testing.assert_array_equal(adjusted, named.transform(pd.DataFrame(proba, columns=CLASSES)))


# Lists.


@pytest.mark.parametrize("kind", LIST_TYPES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_lists_are_equal_to_transform(normalizer, kind, dtype):
    proba = draw(40, seed=9, dtype=dtype)
    batch = list_batch(proba, kind)
    options = {"columns": "scores", "prediction": None}
    out = list(arrow.apply_batches(normalizer, [batch.slice(0, 7), batch.slice(7)], **options))
    assert all(part.schema.equals(batch.schema) for part in out)
    adjusted = np.concatenate([batches.list_matrix(part) for part in out])
    np.testing.assert_array_equal(adjusted, normalizer.transform(proba))
    added = apply_one(normalizer, batch, columns="scores", output="adjusted")
    np.testing.assert_array_equal(batches.list_matrix(added), proba)
    assert added.schema.field("adjusted").type == batch.schema.field("scores").type
    np.testing.assert_array_equal(batches.list_matrix(added, "adjusted"), adjusted)


@pytest.mark.parametrize("kind", ["fixed", "list"])
def test_half_precision(normalizer, kind):
    proba = draw(200, seed=10, dtype=np.float16)
    adjusted = batches.list_matrix(apply_one(normalizer, list_batch(proba, kind), columns="scores"))
    wide = proba.astype(np.float64)
    wide /= wide.sum(axis=1, keepdims=True)
    assert adjusted.dtype == np.float16
    np.testing.assert_allclose(adjusted, normalizer.transform(wide), atol=1e-3)
    kept = ambiguity(wide) < normalizer.threshold - 1e-3
    np.testing.assert_array_equal(adjusted[kept], proba[kept])
    proba[7] = [0.5, 0.2, 0, 0]
    with pytest.raises(InputError, match=r"must sum to 1; 1 of 200 rows do not, .* row 7"):
        apply_one(normalizer, list_batch(proba, kind), columns="scores")
    labels = Identity(multilabel="pairs").fit(wide)  # have no sum to tell by
    adjusted = batches.list_matrix(apply_one(labels, list_batch(proba, kind), columns="scores"))
    np.testing.assert_array_equal(adjusted, proba)


def test_a_prediction_is_never_less_probable_than_another_class_as_written(normalizer):
    """It is decided before rounding: in half precision the two largest may be written as equal."""
    proba = draw(20_000, seed=3).astype(np.float16)
    out = apply_one(normalizer, class_batch(proba), prediction="class")
    written, names = matrix(out), CLASSES.tolist()
    codes = [names.index(name) for name in out["class"].to_pylist()]
    np.testing.assert_array_equal(written[np.arange(len(written)), codes], written.max(axis=1))


class Spy(Identity):
    """Returns what it is given, and remembers where it was."""

    def transform(self, proba):
        self.log.append(proba.__array_interface__["data"][0])
        return proba


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("offset", [0, 5])
@pytest.mark.parametrize("kind", LIST_TYPES)
def test_lists_are_neither_copied_in_nor_out(dtype, offset, kind):
    spy = Spy().fit(draw(10))
    spy.log = []
    batch = list_batch(draw(50, dtype=dtype), kind).slice(offset)
    out = apply_one(spy, batch, columns="scores")
    (start_of_input,) = spy.log
    for column in (batch["scores"], out["scores"]):
        array = (column.storage if kind == "tensor" else column).flatten()
        start = array.buffers()[1].address + array.offset * array.type.bit_width // 8
        assert start == start_of_input


# Models of every kind.


@pytest.mark.parametrize(("model", "rule"), FORMS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_decision_for_a_purpose(model, rule, dtype):
    fitted, values = single(model, rule, "proba", m=4, classes=CLASSES)
    rows = values[:100].astype(dtype)
    rows /= rows.sum(axis=1, keepdims=True)
    parts = [class_batch(part) for part in (rows[:70], rows[70:70], rows[70:])]
    out = pa.Table.from_batches(arrow.apply_batches(fitted, parts))
    # Products of other shapes sum in another order.
    tolerance = 1e-12 if dtype == np.float64 else 1e-6
    np.testing.assert_allclose(matrix(out), fitted.transform(rows), atol=tolerance, rtol=0)
    assert out["prediction"].to_pylist() == fitted.predict(rows).tolist()
    assert (out["prediction"].null_count > 0) == (rule in ("person", "target"))


def label_peer():
    labels = np.random.default_rng(13).random((80, 6)) < 0.3
    proba = np.clip(0.5 * labels + 0.5 * draw(80, 6, seed=13), 0, 1)
    return LabelThresholds().fit(proba, labels), proba


@pytest.mark.parametrize("model", [*LABEL_MODELS, "peer"])
def test_several_labels_a_row(model):
    fitted, values = label_peer() if model == "peer" else several(model, "proba")
    out = apply_one(fitted, class_batch(values, range(6)))
    np.testing.assert_array_equal(matrix(out, range(6)), fitted.transform(values))
    expected = [np.flatnonzero(row).tolist() for row in fitted.predict(values)]
    assert [] in expected
    assert out["prediction"].to_pylist() == expected


class Contrary(Identity):
    """Decides for the least probable class."""

    def predict(self, proba):
        return self.classes_[proba.argmin(axis=1)]


def test_a_model_that_decides_by_itself_is_asked():
    proba, y = planted(300)
    model = Contrary().fit(proba, CLASSES[y])
    out = apply_one(model, class_batch(proba), prediction="class")
    assert out["class"].to_pylist() == model.predict(proba).tolist()


def test_logits():
    rng = np.random.default_rng(16)
    normalizer = AlternatingNormalizer(input="logits").fit(rng.normal(size=(80, 4)))
    logits = rng.normal(size=(20, 4)).astype(np.float16)
    adjusted = matrix(apply_one(normalizer, class_batch(logits, range(4))), range(4))
    np.testing.assert_allclose(adjusted, normalizer.transform(logits.astype(np.float32)), atol=1e-3)


# What is wrong is said, with the row's number in the stream.

SCORES = {"columns": "scores"}
PAIR = pa.record_batch({"scores": pa.array([[0.5, 0.5]], pa.list_(pa.float64(), 2))})


def changed(row, column, value):
    proba = draw(3)
    proba[row, column] = value
    return class_batch(proba)


def named(names, m=4):
    return class_batch(draw(3, m), names)


@pytest.mark.parametrize(
    ("batch", "options", "message"),
    [
        (named(CLASSES[:3]), {}, r"1 of 4 is missing, the first is 'dog'"),
        (named(["ant", "bee", "cat", "dogs"]), {}, "Unknown column 'dogs': did you mean 'dog'"),
        (named([f"p_{c}" for c in [*CLASSES, "eel"]], 5), {"prefix": "p_"}, "first is 'p_eel'"),
        (named(CLASSES).append_column("dog", pa.array([0.0] * 3)), {}, "once; it appears 2 times"),
        (list_batch(draw(3)), {"columns": "score"}, "'score' must appear once; it appears 0"),
        (list_batch(draw(3)), SCORES | {"output": "scores"}, "a column 'scores' already"),
        (list_batch(draw(3)), SCORES | {"prediction": "scores"}, "a column 'scores' already"),
        (named(CLASSES), {"columns": CLASSES}, "must be the name of one column .* leave it out"),
        (PAIR, SCORES, "one entry per class, 4; their type says 2"),
        (pa.record_batch({"scores": [1.0]}), SCORES, "must hold lists .* its type is double"),
        (pa.record_batch({"scores": [[1, 0, 0, 0]]}), SCORES, "numbers; its type is list"),
    ],
)
def test_a_batch_that_does_not_fit_is_refused(normalizer, batch, options, message):
    with pytest.raises(InputError, match=message):
        apply_one(normalizer, batch, **options)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            named(CLASSES).set_column(2, "cat", pa.array([None, 0.1, None, None]).slice(1)),
            r"column 'cat' has 2 null.* first in row 21\.",
        ),
        (
            pa.record_batch({"scores": [*draw(2).tolist(), None]}),
            r"column 'scores' has 1 null.* first in row 22\.",
        ),
        (
            pa.record_batch({"scores": [*draw(1).tolist(), [0.5, 0.5, 0.0, None]]}),
            r"column 'scores' has 1 null.* first in row 21\.",
        ),
        (
            pa.record_batch({"scores": [*draw(2).tolist(), [0.5, 0.5]]}),
            r"1 in this batch do not, .* row 22 \(length 2\)",
        ),
        (
            changed(2, 1, np.nan),
            r"1 of 12 entries are not, the first is row 22, class 'bee' \(nan\)",
        ),
        (changed(1, 1, 9.0), r"starts at row 20: .* 1 of 3 rows .* row 21 \(sum 9\."),
        (changed(1, 2, -0.1), r"row 21, class 'cat' \(-0\.1\)"),
        (
            class_batch(draw(3, dtype=np.float32)),
            r"starts at row 20 has another .* 'ant' \(float\) in place of 'ant' \(double\)",
        ),
        (named(CLASSES).select(CLASSES[:3]), r"column None in place of 'dog' \(double\)"),
    ],
)
def test_a_fault_is_named_by_its_row_in_the_stream(normalizer, wrong, message):
    lists = "scores" in wrong.schema.names
    good = list_batch(draw(10), "list") if lists else class_batch(draw(10))
    stream = arrow.apply_batches(normalizer, [good, good, wrong], **(SCORES if lists else {}))
    assert next(stream).num_rows == next(stream).num_rows == 10
    with pytest.raises(InputError, match=message):
        next(stream)


# Batch after batch.


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_input_cut_off_in_the_middle(normalizer, n_jobs):
    def cut_off():
        for seed in range(5):
            yield class_batch(draw(10, seed=seed))
        raise OSError("the disk is gone")

    seen = []
    with pytest.raises(OSError, match="the disk is gone"):
        seen.extend(arrow.apply_batches(normalizer, cut_off(), n_jobs=n_jobs))
    assert seen
    for seed, batch in enumerate(seen):
        np.testing.assert_array_equal(matrix(batch), normalizer.transform(draw(10, seed=seed)))


def test_batches_are_read_when_they_are_wanted(normalizer):
    read = []

    def source():
        for seed in range(100):
            read.append(seed)
            yield class_batch(draw(10, seed=seed))

    stream = arrow.apply_batches(normalizer, source())
    assert read == []
    for n_read in range(1, 4):
        next(stream)
        assert len(read) == n_read
    ahead = arrow.apply_batches(normalizer, source(), n_jobs=2)
    next(ahead)
    ahead.close()
    assert len(read) < 3 + 10


def test_nothing_in_nothing_out(normalizer):
    assert list(arrow.apply_batches(normalizer, [])) == []
    empty, full = (apply_one(normalizer, class_batch(draw(n))) for n in (0, 1))
    assert empty.schema.equals(full.schema)
    assert empty.num_rows == 0
    with pytest.raises(ValueError, match="not fitted"):
        apply_one(AlternatingNormalizer(), class_batch(draw(3)))


def test_a_missing_library_names_the_extra():
    needs = {"spark": "pyspark", "ray": "ray", "arrow": "pyarrow", "onnx": "onnx", "torch": "torch"}
    code = f"""
import sys
for module, library in {needs}.items():
    sys.modules[library] = None
    try:
        __import__("altnorm." + module)
    except ImportError as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        f"altnorm.{module} needs the `{module}` extra; "
        f"install it with pip install 'altnorm[{module}]'"
        for module in needs
    ]

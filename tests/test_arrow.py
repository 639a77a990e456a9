"""Record batches in, record batches out: layouts, names, faults, and what is not copied."""

import runpy
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from altnorm import AlternatingNormalizer, AlternatingNormalizerCV
from altnorm._validation import InputError, InputTypeError
from altnorm.peers import GlobalThreshold, Identity, TemperatureScaling

pa = pytest.importorskip("pyarrow")
arrow = pytest.importorskip("altnorm.arrow")

EXAMPLES = Path(__file__).parent.parent / "examples" / "engines"
CLASSES = np.array(["ant", "bee", "cat", "dog"])
LIST_TYPES = {
    "fixed": lambda value: pa.list_(value, 4),
    "list": lambda value: pa.list_(value),
    "large": lambda value: pa.large_list(value),
    "tensor": lambda value: pa.fixed_shape_tensor(value, (4,)),
}


def draw(n, m=4, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.full(m, 0.4), size=n).astype(dtype)


@pytest.fixture(scope="module")
def normalizer():
    return AlternatingNormalizer(threshold=0.6).fit(draw(200), np.tile(CLASSES, 50))


def class_batch(proba, names=CLASSES, **others):
    columns = {str(name): np.ascontiguousarray(proba[:, j]) for j, name in enumerate(names)}
    return pa.record_batch(columns | others)


def list_batch(proba, kind="fixed", name="scores"):
    value = pa.from_numpy_dtype(proba.dtype)
    type_ = LIST_TYPES[kind](value)
    storage = type_.storage_type if kind == "tensor" else type_
    array = pa.array(list(proba), storage)
    return pa.record_batch(
        {name: pa.ExtensionArray.from_storage(type_, array) if kind == "tensor" else array}
    )


def matrix(batch, names=CLASSES):
    return np.column_stack([batch[str(name)].to_numpy() for name in names])


def list_matrix(batch, name="scores"):
    array = batch[name]
    array = array.storage if isinstance(array, pa.ExtensionArray) else array
    return array.flatten().to_numpy().reshape(batch.num_rows, -1)


class TestColumns:
    def test_equal_to_transform_and_other_columns_untouched(self, normalizer):
        proba = draw(50, seed=1)
        ids = pa.array(range(50))
        text = pa.array(["x", None] * 25)
        batch = pa.record_batch(
            [ids, *(pa.array(proba[:, j].copy()) for j in range(4)), text],
            names=["id", *CLASSES, "text"],
        )
        (out,) = arrow.apply_batches(normalizer, [batch])
        assert out.schema.equals(batch.schema)
        assert out["id"].equals(ids)
        assert out["text"].equals(text)
        np.testing.assert_array_equal(matrix(out), normalizer.transform(proba))

    @given(order=st.permutations(range(4)), cuts=st.lists(st.integers(0, 30), max_size=3))
    def test_neither_order_of_columns_nor_cuts_matter(self, normalizer, order, cuts):
        proba = draw(30, seed=2)
        batch = class_batch(proba[:, order], CLASSES[order])
        edges = [0, *sorted(cuts), 30]
        parts = [batch.slice(a, b - a) for a, b in pairwise(edges)]
        out = pa.Table.from_batches(arrow.apply_batches(normalizer, parts))
        assert out.column_names == batch.schema.names
        expected = normalizer.transform(proba)
        for j, name in enumerate(CLASSES):
            np.testing.assert_array_equal(out[name].to_numpy(), expected[:, j])

    def test_confident_rows_keep_every_bit(self, normalizer):
        proba = draw(50, seed=3, dtype=np.float32)
        (out,) = arrow.apply_batches(normalizer, [class_batch(proba)])
        kept = normalizer._ambiguity(proba) <= normalizer.threshold
        assert 0 < kept.sum() < 50
        assert out["ant"].type == pa.float32()
        np.testing.assert_array_equal(matrix(out)[kept], proba[kept])

    def test_types_may_differ_from_column_to_column(self, normalizer):
        batch = class_batch(draw(9, seed=4)).set_column(
            1, "bee", pa.array(draw(9, seed=4)[:, 1].astype(np.float32))
        )
        (out,) = arrow.apply_batches(normalizer, [batch])
        assert out.schema.equals(batch.schema)

    def test_prefix_and_output_prefix(self, normalizer):
        proba = draw(20, seed=5)
        batch = class_batch(proba, [f"p_{name}" for name in CLASSES], ant=np.zeros(20))
        (out,) = arrow.apply_batches(normalizer, [batch], prefix="p_", output="new_")
        assert out.schema.names == [*batch.schema.names, *(f"new_{name}" for name in CLASSES)]
        assert out.select(batch.schema.names).equals(batch)
        np.testing.assert_array_equal(
            matrix(out, [f"new_{name}" for name in CLASSES]), normalizer.transform(proba)
        )

    def test_columns_may_be_listed_in_any_order(self, normalizer):
        proba = draw(20, seed=6)
        (out,) = arrow.apply_batches(normalizer, [class_batch(proba)], columns=CLASSES[::-1])
        np.testing.assert_array_equal(matrix(out), normalizer.transform(proba))

    def test_integer_classes_are_matched_by_their_digits(self):
        proba = draw(30, seed=7)
        normalizer = AlternatingNormalizer().fit(draw(40))
        batch = class_batch(proba[:, ::-1], [3, 2, 1, 0])
        (out,) = arrow.apply_batches(normalizer, [batch], prediction="class")
        np.testing.assert_array_equal(matrix(out, range(4)), normalizer.transform(proba))
        assert out["class"].type == pa.int64()
        assert out["class"].to_pylist() == normalizer.predict(proba).tolist()

    def test_fitted_on_a_data_frame(self):
        pd = pytest.importorskip("pandas")
        frame = pd.DataFrame(draw(60), columns=CLASSES)
        normalizer = AlternatingNormalizer(threshold=0.6).fit(frame)
        proba = draw(20, seed=8)
        (out,) = arrow.apply_batches(normalizer, [class_batch(proba)], prediction="class")
        expected = normalizer.transform(pd.DataFrame(proba, columns=CLASSES))
        np.testing.assert_array_equal(matrix(out), expected)
        assert hasattr(normalizer, "feature_names_in_")


class TestNames:
    def test_missing_class(self, normalizer):
        batch = class_batch(draw(3)[:, :3], CLASSES[:3])
        with pytest.raises(InputError, match=r"1 of 4 are missing, the first is 'dog'"):
            next(arrow.apply_batches(normalizer, [batch]))

    def test_renamed_class_is_not_taken_by_position(self, normalizer):
        batch = class_batch(draw(3), ["ant", "bee", "cat", "dogs"])
        with pytest.raises(InputError, match=r"the first is 'dog'; 'dogs' is there"):
            next(arrow.apply_batches(normalizer, [batch]))

    @pytest.mark.parametrize("how", ["prefix", "columns"])
    def test_extra_class(self, normalizer, how):
        names = ["p_" + name for name in [*CLASSES, "eel"]]
        options = {"prefix": "p_"} | ({"columns": names} if how == "columns" else {})
        with pytest.raises(InputError, match="no known class, the first is 'p_eel'"):
            next(arrow.apply_batches(normalizer, [class_batch(draw(3, 5), names)], **options))

    def test_column_twice(self, normalizer):
        batch = class_batch(draw(3)).append_column("dog", pa.array([0.0] * 3))
        with pytest.raises(InputError, match=r"'dog' must be there once; it is there 2 times"):
            next(arrow.apply_batches(normalizer, [batch]))

    def test_no_such_column_of_lists(self, normalizer):
        with pytest.raises(InputError, match=r"'score' must be there once; it is there 0 times"):
            next(arrow.apply_batches(normalizer, [list_batch(draw(3))], columns="score"))

    @pytest.mark.parametrize("option", ["output", "prediction"])
    def test_appended_column_must_be_new(self, normalizer, option):
        with pytest.raises(InputError, match="there is a column 'scores' already"):
            next(
                arrow.apply_batches(
                    normalizer, [list_batch(draw(3))], columns="scores", **{option: "scores"}
                )
            )


class TestLists:
    @pytest.mark.parametrize("kind", LIST_TYPES)
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_equal_to_transform(self, normalizer, kind, dtype):
        proba = draw(40, seed=9, dtype=dtype)
        batch = list_batch(proba, kind)
        out = list(
            arrow.apply_batches(normalizer, [batch.slice(0, 7), batch.slice(7)], columns="scores")
        )
        assert all(part.schema.equals(batch.schema) for part in out)
        np.testing.assert_array_equal(
            np.concatenate([list_matrix(part) for part in out]), normalizer.transform(proba)
        )

    def test_output_is_a_new_column(self, normalizer):
        batch = list_batch(draw(40, seed=9), "list")
        (out,) = arrow.apply_batches(normalizer, [batch], columns="scores", output="adjusted")
        assert out["scores"].equals(batch["scores"])
        assert out.schema.field("adjusted").type == batch.schema.field("scores").type
        np.testing.assert_array_equal(
            list_matrix(out, "adjusted"), normalizer.transform(draw(40, seed=9))
        )

    @pytest.mark.parametrize("kind", ["fixed", "list"])
    def test_half_precision(self, normalizer, kind):
        proba = draw(200, seed=10, dtype=np.float16)
        (out,) = arrow.apply_batches(normalizer, [list_batch(proba, kind)], columns="scores")
        wide = proba.astype(np.float64)
        wide /= wide.sum(axis=1, keepdims=True)
        found = list_matrix(out)
        assert found.dtype == np.float16
        np.testing.assert_allclose(found, normalizer.transform(wide), atol=1e-3)
        kept = normalizer._ambiguity(wide) < normalizer.threshold - 1e-3
        np.testing.assert_array_equal(found[kept], proba[kept])

    def test_wrong_length_names_the_row(self, normalizer):
        rows = [*draw(3).tolist(), [0.5, 0.5], *draw(2).tolist()]
        batch = pa.record_batch({"scores": rows})
        stream = arrow.apply_batches(
            normalizer, [list_batch(draw(10), "list"), batch], columns="scores"
        )
        next(stream)
        with pytest.raises(InputError, match=r"1 in this batch do not, .* row 13 \(length 2\)"):
            next(stream)

    def test_wrong_fixed_size(self, normalizer):
        batch = pa.record_batch({"scores": pa.array([[0.5, 0.5]], pa.list_(pa.float64(), 2))})
        with pytest.raises(InputError, match="one entry a class, 4; their type says 2"):
            next(arrow.apply_batches(normalizer, [batch], columns="scores"))

    def test_not_a_list(self, normalizer):
        batch = pa.record_batch({"scores": [1.0]})
        with pytest.raises(InputTypeError, match=r"must hold lists .* its type is double"):
            next(arrow.apply_batches(normalizer, [batch], columns="scores"))

    def test_integers(self, normalizer):
        batch = pa.record_batch({"scores": [[1, 0, 0, 0]]})
        with pytest.raises(InputTypeError, match="floating-point numbers; its type is list"):
            next(arrow.apply_batches(normalizer, [batch], columns="scores"))


class TestRows:
    """What is wrong with a row is said with its number in the stream."""

    def stream(self, normalizer, wrong, **options):
        good = class_batch(draw(10)) if "columns" not in options else list_batch(draw(10), "list")
        stream = arrow.apply_batches(normalizer, [good, good, wrong], **options)
        assert next(stream).num_rows == next(stream).num_rows == 10
        return stream

    def test_null_in_a_column(self, normalizer):
        wrong = class_batch(draw(3)).set_column(2, "cat", pa.array([0.1, None, None]))
        with pytest.raises(InputError, match=r"column 'cat' has 2 null.* first in row 21\."):
            next(self.stream(normalizer, wrong))

    def test_null_list(self, normalizer):
        wrong = pa.record_batch({"scores": [*draw(2).tolist(), None]})
        with pytest.raises(InputError, match=r"column 'scores' has 1 null.* first in row 22\."):
            next(self.stream(normalizer, wrong, columns="scores"))

    def test_null_entry(self, normalizer):
        wrong = pa.record_batch({"scores": [*draw(1).tolist(), [0.5, 0.5, 0.0, None]]})
        with pytest.raises(InputError, match=r"column 'scores' has 1 null.* first in row 21\."):
            next(self.stream(normalizer, wrong, columns="scores"))

    def test_null_in_a_sliced_batch(self, normalizer):
        batch = class_batch(draw(6)).set_column(0, "ant", pa.array([None, 0.1, 0.1, None, 1, 1]))
        with pytest.raises(InputError, match=r"has 1 null.* first in row 2\."):
            next(arrow.apply_batches(normalizer, [batch.slice(1)]))

    def test_not_finite(self, normalizer):
        proba = draw(3)
        proba[2, 1] = np.nan
        with pytest.raises(InputError, match=r"1 in this batch .* row 22, class 'bee' \(nan\)"):
            next(self.stream(normalizer, class_batch(proba)))

    def test_sum(self, normalizer):
        proba = draw(3)
        proba[1] *= 1.3
        expected = r"batch that starts at row 20: .* 1 of 3 rows .* row 21 \(sum 1\.3\)"
        with pytest.raises(InputError, match=expected):
            next(self.stream(normalizer, class_batch(proba)))

    def test_negative(self, normalizer):
        proba = np.array([[0.5, 0.5, 0.0, 0.0], [1.1, 0.0, -0.1, 0.0]])
        with pytest.raises(InputError, match=r"row 21, class 'cat' \(-0\.1\)"):
            next(self.stream(normalizer, class_batch(proba)))

    def test_schema_that_changes(self, normalizer):
        wrong = class_batch(draw(3, dtype=np.float32))
        expected = r"starts at row 20 has another .* 'ant' \(float\) in place of 'ant' \(double\)"
        with pytest.raises(InputError, match=expected):
            next(self.stream(normalizer, wrong))

    def test_schema_that_lacks_a_column(self, normalizer):
        with pytest.raises(InputError, match=r"column None in place of 'dog' \(double\)"):
            next(self.stream(normalizer, class_batch(draw(3)).select(CLASSES[:3])))

    @pytest.mark.parametrize("n_jobs", [1, 2])
    def test_input_cut_off_in_the_middle(self, normalizer, n_jobs):
        def cut_off():
            for seed in range(5):
                yield class_batch(draw(10, seed=seed))
            raise OSError("the disk is gone")

        seen = []
        with pytest.raises(OSError, match="the disk is gone"):
            seen.extend(arrow.apply_batches(normalizer, cut_off(), n_jobs=n_jobs))
        for seed, batch in enumerate(seen):
            np.testing.assert_array_equal(matrix(batch), normalizer.transform(draw(10, seed=seed)))

    def test_truncated_file(self, normalizer, tmp_path):
        path = tmp_path / "cut.arrow"
        batch = class_batch(draw(1000))
        with pa.ipc.new_stream(path, batch.schema) as writer:
            for _ in range(5):
                writer.write_batch(batch)
        path.write_bytes(path.read_bytes()[:-2000])
        seen = []
        with pa.ipc.open_stream(path.read_bytes()) as reader, pytest.raises((OSError, ValueError)):
            seen.extend(arrow.apply_batches(normalizer, reader))
        assert len(seen) == 4

    def test_consumer_that_stops_early(self, normalizer):
        read = []

        def source():
            for seed in range(100):
                read.append(seed)
                yield class_batch(draw(10, seed=seed))

        stream = arrow.apply_batches(normalizer, source(), n_jobs=2)
        next(stream)
        stream.close()
        assert len(read) < 10


class TestStream:
    def test_empty(self, normalizer):
        assert list(arrow.apply_batches(normalizer, [])) == []

    @pytest.mark.parametrize("options", [{}, {"prediction": "class"}])
    def test_batch_without_rows(self, normalizer, options):
        (out,) = arrow.apply_batches(normalizer, [class_batch(draw(0))], **options)
        schema = class_batch(draw(1)).schema
        assert out.schema.equals(arrow.output_schema(normalizer, schema, **options))
        assert out.num_rows == 0

    def test_threads_keep_the_order(self, normalizer):
        batches = [class_batch(draw(20, seed=seed), n=[seed] * 20) for seed in range(20)]
        one = list(arrow.apply_batches(normalizer, batches))
        two = list(arrow.apply_batches(normalizer, batches, n_jobs=2))
        assert all(a.equals(b) for a, b in zip(one, two, strict=True))

    def test_one_batch_at_a_time(self, normalizer):
        read = []

        def source():
            for seed in range(3):
                read.append(seed)
                yield class_batch(draw(10, seed=seed))

        stream = arrow.apply_batches(normalizer, source())
        assert read == []
        for n_read, _ in enumerate(stream, start=1):
            assert len(read) == n_read

    def test_schema_keeps_metadata_and_order(self, normalizer):
        schema = class_batch(draw(1), note=["x"]).schema.with_metadata({"made": "by hand"})
        out = arrow.output_schema(normalizer, schema, prediction="class", output="new_")
        assert out.metadata == schema.metadata
        assert out.names == [*schema.names, *("new_" + name for name in CLASSES), "class"]
        assert out.field("class").type == pa.string()

    def test_reader_to_reader(self, normalizer):
        table = pa.Table.from_batches([class_batch(draw(30, seed=s)) for s in range(3)])
        reader = pa.RecordBatchReader.from_batches(
            arrow.output_schema(normalizer, table.schema),
            arrow.apply_batches(normalizer, table.to_reader()),
        )
        assert reader.read_all().num_rows == 90

    def test_must_be_fitted(self):
        with pytest.raises(ValueError, match="not fitted"):
            next(arrow.apply_batches(AlternatingNormalizer(), [class_batch(draw(3))]))


class TestPredictions:
    def test_one_label_a_row(self, normalizer):
        proba = draw(40, seed=11)
        (out,) = arrow.apply_batches(normalizer, [class_batch(proba)], prediction="class")
        assert out["class"].to_pylist() == normalizer.predict(proba).tolist()

    @pytest.mark.parametrize("multilabel", ["pairs", "labelwise"])
    def test_several_labels_a_row(self, multilabel):
        rng = np.random.default_rng(12)
        normalizer = AlternatingNormalizer(multilabel=multilabel).fit(rng.uniform(size=(60, 4)))
        normalizer.classes_ = CLASSES
        proba = np.vstack([rng.uniform(size=(30, 4)), np.zeros((1, 4))])
        (out,) = arrow.apply_batches(normalizer, [class_batch(proba)], prediction="labels")
        np.testing.assert_array_equal(matrix(out), normalizer.transform(proba))
        expected = [CLASSES[row == 1].tolist() for row in normalizer.predict(proba)]
        assert out["labels"].to_pylist() == expected
        assert out["labels"][30].as_py() == []

    def test_normalizers_with_their_own_decision(self):
        rng = np.random.default_rng(13)
        labels = rng.integers(2, size=(80, 4))
        proba = np.clip(0.5 * labels + rng.uniform(0, 0.5, size=(80, 4)), 0, 1)
        peer = GlobalThreshold().fit(proba, labels)
        (out,) = arrow.apply_batches(peer, [class_batch(proba, range(4))], prediction="labels")
        expected = [np.flatnonzero(row).tolist() for row in peer.predict(proba)]
        assert out["labels"].to_pylist() == expected

    @pytest.mark.parametrize("peer", [Identity(), TemperatureScaling()])
    def test_peers(self, peer):
        peer.fit(draw(80), np.tile(CLASSES, 20))
        proba = draw(30, seed=14)
        (out,) = arrow.apply_batches(peer, [class_batch(proba)], prediction="class")
        np.testing.assert_array_equal(matrix(out), peer.transform(proba))
        assert out["class"].to_pylist() == peer.predict(proba).tolist()

    def test_tuned(self):
        rng = np.random.default_rng(15)
        labels = rng.integers(4, size=300)
        scores = rng.normal(size=(300, 4)) + 1.5 * np.eye(4)[labels] + [1.5, 0, 0, 0]
        proba = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
        tuned = AlternatingNormalizerCV(
            alphas=[1.0], depths=[1], thresholds=[0.5], cv=2, random_state=0
        ).fit(proba, CLASSES[labels])
        (out,) = arrow.apply_batches(tuned, [class_batch(proba)], prediction="class")
        np.testing.assert_array_equal(matrix(out), tuned.transform(proba))
        assert out["class"].to_pylist() == tuned.predict(proba).tolist()

    def test_logits(self):
        rng = np.random.default_rng(16)
        normalizer = AlternatingNormalizer(input="logits").fit(rng.normal(size=(80, 4)))
        logits = rng.normal(size=(20, 4)).astype(np.float16)
        (out,) = arrow.apply_batches(normalizer, [class_batch(logits, range(4))])
        expected = normalizer.transform(logits.astype(np.float32))
        np.testing.assert_allclose(matrix(out, range(4)), expected, atol=1e-3)


class TestMemory:
    class Spy(Identity):
        """Returns what it is given, and remembers where it was."""

        def transform(self, proba):
            self.log.append(proba.__array_interface__["data"][0])
            return proba

    @pytest.fixture
    def spy(self):
        spy = self.Spy().fit(draw(10))
        spy.log = []
        return spy

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @pytest.mark.parametrize("offset", [0, 5])
    @pytest.mark.parametrize("kind", LIST_TYPES)
    def test_lists_are_neither_copied_in_nor_out(self, spy, dtype, offset, kind):
        batch = list_batch(draw(50, dtype=dtype), kind).slice(offset)
        (out,) = arrow.apply_batches(spy, [batch], columns="scores")
        (given,) = spy.log
        entries = batch["scores"]
        entries = entries.storage.flatten() if kind == "tensor" else entries.flatten()
        written = out["scores"]
        written = written.storage.flatten() if kind == "tensor" else written.flatten()
        for array in (entries, written):
            start = array.buffers()[1].address + array.offset * array.type.bit_width // 8
            assert start == given

    def test_other_columns_are_shared(self, normalizer):
        batch = class_batch(draw(50), id=np.arange(50))
        (out,) = arrow.apply_batches(normalizer, [batch])
        assert out["id"].buffers()[1].address == batch["id"].buffers()[1].address

    def test_arrow_allocates_nothing_for_the_entries(self, normalizer):
        batch = list_batch(draw(10_000))
        before = pa.total_allocated_bytes()
        (out,) = arrow.apply_batches(normalizer, [batch], columns="scores")
        assert pa.total_allocated_bytes() - before < 1000
        assert out.num_rows == 10_000

    def test_the_input_is_not_written_to(self, normalizer):
        batch = list_batch(draw(100))
        before = list_matrix(batch).copy()
        list(arrow.apply_batches(normalizer, [batch], columns="scores"))
        np.testing.assert_array_equal(list_matrix(batch), before)


class TestExamples:
    """The scripts in examples/engines run, and say what the normalizer says."""

    def test_duckdb(self):
        pytest.importorskip("duckdb")
        told = runpy.run_path(str(EXAMPLES / "duckdb_example.py"))
        normalizer, given = told["normalizer"], told["predictions"].take(np.arange(0, 10_000, 2))
        proba = matrix(given, normalizer.classes_)
        result = told["result"]
        assert result.column_names == ["id", "dog", "cat", "bird", "class"]
        assert result["id"].to_pylist() == given["id"].to_pylist()
        found = matrix(result, normalizer.classes_)
        np.testing.assert_array_equal(found, normalizer.transform(proba))
        assert result["class"].to_pylist() == normalizer.predict(proba).tolist()

    def test_polars(self):
        pytest.importorskip("polars")
        told = runpy.run_path(str(EXAMPLES / "polars_example.py"))
        normalizer, proba = told["normalizer"], told["proba"]
        expected = normalizer.transform(proba)
        assert told["adjusted"].columns == ["id", "dog", "cat", "bird", "class"]
        np.testing.assert_array_equal(told["adjusted"][normalizer.classes_].to_numpy(), expected)
        np.testing.assert_array_equal(told["adjusted_arrays"]["scores"].to_numpy(), expected)
        for frame in (told["adjusted"], told["adjusted_arrays"]):
            assert frame["class"].to_list() == normalizer.predict(proba).tolist()


def test_missing_library_names_the_extra():
    code = """
import sys
for module, library in {"spark": "pyspark", "ray": "ray", "arrow": "pyarrow"}.items():
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
        for module in ("spark", "ray", "arrow")
    ]

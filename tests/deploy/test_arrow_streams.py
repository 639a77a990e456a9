"""Batch after batch: faults are named by their row, the order is kept, and nothing is copied."""

import numpy as np
import pytest

from altnorm import AlternatingNormalizer
from altnorm._base.errors import InputError
from altnorm.peers import Identity
from tests.batches import (
    CLASSES,
    LIST_TYPES,
    class_batch,
    draw,
    fit_drawn,
    list_batch,
    list_matrix,
    matrix,
)

pa = pytest.importorskip("pyarrow")
arrow = pytest.importorskip("altnorm.arrow")


@pytest.fixture(scope="module")
def normalizer():
    return fit_drawn(CLASSES, 200)


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
        assert seen
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

    def test_batch_without_rows(self, normalizer):
        (out,) = arrow.apply_batches(normalizer, [class_batch(draw(0))])
        (full,) = arrow.apply_batches(normalizer, [class_batch(draw(1))])
        assert out.schema.equals(full.schema)
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
        batch = class_batch(draw(1), note=["x"]).replace_schema_metadata({"made": "by hand"})
        (out,) = arrow.apply_batches(normalizer, [batch], prediction="class", output="new_")
        assert out.schema.metadata == batch.schema.metadata
        added = [*("new_" + name for name in CLASSES), "class"]
        assert out.schema.names == [*batch.schema.names, *added]
        assert out.schema.field("class").type == pa.string()

    def test_must_be_fitted(self):
        with pytest.raises(ValueError, match="not fitted"):
            next(arrow.apply_batches(AlternatingNormalizer(), [class_batch(draw(3))]))


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
        (out,) = arrow.apply_batches(normalizer, [batch], columns="scores", prediction=None)
        assert pa.total_allocated_bytes() - before < 1000
        assert out.num_rows == 10_000

    def test_the_input_is_not_written_to(self, normalizer):
        batch = list_batch(draw(100))
        before = list_matrix(batch).copy()
        list(arrow.apply_batches(normalizer, [batch], columns="scores"))
        np.testing.assert_array_equal(list_matrix(batch), before)

"""Files that are damaged, huge, empty or odd: understood, or refused with the remedy."""

import contextlib
import time
import tracemalloc
import zipfile

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from altnorm import InputError
from altnorm._base.frames import check_same_names
from altnorm.io.columns import Layout
from altnorm.io.predictions import Predictions, read_predictions, write_predictions
from tests.io.test_predictions import CLASSES, LABELS, PROBA, frame, write_frame


def test_only_what_is_needed_is_read(tmp_path):
    bomb = np.zeros((4000, 250_000), np.uint8)  # a gigabyte that compresses to a megabyte
    np.savez_compressed(tmp_path / "a.npz", proba=PROBA, other=bomb)
    tracemalloc.start()
    try:
        read_predictions(tmp_path / "a.npz")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 20e6  # bytes: the rest of the gigabyte was not touched
    np.savez_compressed(tmp_path / "b.npz", proba=PROBA, labels=bomb)
    with pytest.raises(InputError, match="one entry per row"):
        read_predictions(tmp_path / "b.npz")


def test_sizes_are_compared_before_anything_is_read(tmp_path):
    np.save(tmp_path / "a.npy", PROBA)
    whole = (tmp_path / "a.npy").read_bytes()
    (tmp_path / "a.npy").write_bytes(whole.replace(b"(4, 3), }", b"(4000000000000, 3), }")[:224])
    with pytest.raises(InputError, match="bytes are announced and"):
        read_predictions(tmp_path / "a.npy")
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        np.save(tmp_path / "b.npy", PROBA)
        stored = (tmp_path / "b.npy").read_bytes()
        archive.writestr("proba.npy", stored.replace(b"(4, 3), }  ", b"(400, 3), }"))
    with pytest.raises(InputError, match="bytes are announced and"):
        read_predictions(tmp_path / "a.npz")


@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_damaged_arrays_are_one_kind_of_error(tmp_path, suffix):
    path = tmp_path / f"a{suffix}"
    write_predictions(Predictions(PROBA, CLASSES), path)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    for _ in range(400):
        damaged = np.frombuffer(whole, np.uint8).copy()
        damaged[rng.integers(damaged.size, size=3)] = rng.integers(256, size=3)
        path.write_bytes(damaged.tobytes())
        with contextlib.suppress(InputError):
            read_predictions(path)


def test_files_without_rows_are_told(tmp_path):
    for path in (tmp_path / "a.npz", tmp_path / "a.parquet"):
        write_predictions(Predictions(PROBA[:0], CLASSES), path)
        with pytest.raises(InputError, match="at least one row; it has none"):
            read_predictions(path)


def test_names_that_are_not_text_are_told(tmp_path):
    np.savez(tmp_path / "a.npz", proba=PROBA, classes=["a", "b", "\udcff"])
    with pytest.raises(InputError, match=r"valid text; '\\udcff' is not"):
        read_predictions(tmp_path / "a.npz")
    (tmp_path / "a.csv").write_bytes("é,b\n0.5,0.5\n".encode("latin-1"))
    with pytest.raises(InputError, match="cannot be read as CSV"):
        read_predictions(tmp_path / "a.csv")


@pytest.mark.parametrize("dtype", [">f8", ">f4", np.longdouble])
def test_unusual_floats(tmp_path, dtype):
    np.savez(tmp_path / "a.npz", proba=PROBA.astype(dtype))
    read = read_predictions(tmp_path / "a.npz")
    assert read.proba.dtype in (np.float32, np.float64)
    np.testing.assert_allclose(read.proba, PROBA, rtol=1e-6)


def test_an_extra_column_of_logits_is_told(tmp_path):
    data = frame(y=LABELS, loss=[0.1, 2.3, 0.4, 1.1])
    path = write_frame(data, tmp_path / "a.csv")
    with pytest.raises(InputError, match=r"no row's label, the first is 'loss'.* --other 'loss'"):
        read_predictions(path, Layout("y", logits=True))
    read = read_predictions(path, Layout("y", other=["loss"], logits=True))
    assert read.classes.tolist() == CLASSES.tolist()


def test_a_class_of_only_zeros_is_not_dropped(tmp_path):
    (tmp_path / "a.csv").write_text("cat,dog,eel,id\n0.5,0.5,0,7\n0.25,0.75,0,8\n")
    with pytest.raises(InputError, match=r"'eel' holds only 0 and may be a class.* --other 'eel'"):
        read_predictions(tmp_path / "a.csv")
    assert read_predictions(tmp_path / "a.csv", Layout(other=["eel"])).classes.size == 2
    assert read_predictions(tmp_path / "a.csv", classes=CLASSES).proba[:, 2].tolist() == [0, 0]


@pytest.mark.parametrize(
    ("classes", "labels", "codes"),
    [
        (["1", "2", "3"], ["3.0", "1.0", "2.0", "1.0"], [2, 0, 1, 0]),
        (["1", "2", "3"], [3.0, 1.0, 2.0, 1.0], [2, 0, 1, 0]),
        (["1.0", "2.0", "3.0"], ["3", "1", "2", "1"], [2, 0, 1, 0]),
        (["0", "1", "2"], [True, False, True, True], [1, 0, 1, 1]),
        (["0", "1", "2"], ["true", "false", "true", "true"], [1, 0, 1, 1]),
        (["cat", "dog", "eel"], ["2.0", "1.0", "0.0", "1.0"], [2, 1, 0, 1]),
    ],
)
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_whole_numbers_and_truth_values_are_one_name(tmp_path, suffix, classes, labels, codes):
    data = frame(y=labels).rename(columns=dict(zip(CLASSES, classes, strict=True)))
    path = write_frame(data, tmp_path / f"a{suffix}")
    assert read_predictions(path, Layout("y")).codes.tolist() == codes


def test_decimal_columns_are_classes(tmp_path):
    columns = {name: pa.array(column) for name, column in zip(CLASSES, PROBA.T, strict=True)}
    decimals = {name: column.cast(pa.decimal128(10, 4)) for name, column in columns.items()}
    pa.parquet.write_table(pa.table(decimals), tmp_path / "a.parquet")
    read = read_predictions(tmp_path / "a.parquet")
    np.testing.assert_allclose(read.proba, PROBA, rtol=1e-15)


def test_integer_one_hot_files(tmp_path):
    hard = np.eye(3, dtype=int)[[0, 1, 2, 0]]
    np.savez(tmp_path / "a.npz", proba=hard)
    with pytest.raises(InputError, match=r"it is int64 .*astype\(float\)"):
        read_predictions(tmp_path / "a.npz")
    data = pd.DataFrame(hard, columns=["p_" + name for name in CLASSES])
    path = write_frame(data, tmp_path / "a.csv")
    with pytest.raises(InputError, match="for whole numbers, start their names alike"):
        read_predictions(path)
    assert read_predictions(path, Layout(prefix="p_")).proba.tolist() == hard.tolist()


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_many_classes_are_matched_quickly(tmp_path, suffix):
    names = np.array([f"class {j}" for j in range(20_000)])
    predictions = Predictions(np.full((1, names.size), 1 / names.size), names, names[:1])
    write_predictions(predictions, tmp_path / f"a{suffix}")
    start = time.process_time()
    read = read_predictions(tmp_path / f"a{suffix}", Layout("label"), classes=names[::-1])
    assert read.labels.tolist() == ["class 0"]
    with pytest.raises(InputError, match=r"1 of 20001 is missing.*did you mean 'klass 7'"):
        check_same_names([*names, "klass 7"], [*names[::-1], "class_7"])
    assert time.process_time() - start < 10  # 77 s once; what is left is PyArrow's

"""Predictions come back from every format, matched by class name, or are refused in a sentence."""

import time
import tracemalloc

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from altnorm import InputError
from altnorm._base.frames import check_same_names
from altnorm.io.formats import Layout
from altnorm.io.predictions import Predictions, read_predictions, write_predictions
from altnorm.io.tables import open_table

CLASSES = np.array(["cat", "dog", "eel"])
PROBA = np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.25, 0.25, 0.5], [0.2, 0.3, 0.5]])
LABELS = np.array(["cat", "dog", "eel", "cat"])
MATRIX = np.array([[1, 0, 1], [0, 0, 0], [1, 1, 1], [0, 1, 0]], dtype=np.uint8)
TABLES = [".csv", ".parquet", ".arrow", ".feather"]
TEXTS = [".tsv", ".csv.gz", ".tsv.gz", ".jsonl", ".jsonl.gz", ".CSV"]


def frame(**columns):
    return pd.DataFrame({"id": [1, 2, 3, 4], **dict(zip(CLASSES, PROBA.T, strict=True)), **columns})


def write_frame(data, path):
    if path.suffix == ".csv":
        data.to_csv(path, index=False)
    elif path.suffix == ".parquet":
        data.to_parquet(path, index=False)
    else:
        data.to_feather(path)
    return path


def check_same(read, expected, kind="proba"):
    np.testing.assert_array_equal(read.proba, expected.proba)
    assert read.classes.tolist() == expected.classes.tolist()
    assert read.labels.tolist() == expected.labels.tolist()
    assert read.input == kind


@pytest.mark.parametrize("suffix", [".npz", *TABLES, *TEXTS])
@pytest.mark.parametrize("labels", [[0, 1, 2, 0], MATRIX], ids=["single", "multi"])
def test_round_trip(tmp_path, suffix, labels):
    classes, path = np.array(["a\tb", 'c"d', "e,f"]), tmp_path / f"a{suffix}"
    labels = labels if labels is MATRIX else classes[labels]
    predictions = Predictions(PROBA, classes, labels)
    layout = Layout(prefix="p_")
    if suffix != ".npz":
        layout = Layout("y", "p_") if labels.ndim == 1 else Layout(None, "p_", "y_")
    write_predictions(predictions, path, layout)
    check_same(read_predictions(path, layout), predictions)
    written = path.read_bytes()
    assert written.startswith(b"\x1f\x8b") == suffix.endswith(".gz")
    write_predictions(predictions, path, layout, force=True)
    assert path.read_bytes() == written


@pytest.mark.parametrize("suffix", TABLES)
def test_columns_are_matched_by_name_or_are_classes_if_they_hold_numbers(tmp_path, suffix):
    expected = Predictions(PROBA, CLASSES, LABELS)
    path = write_frame(frame(y=LABELS, note=list("abcd")), tmp_path / f"a{suffix}")
    check_same(read_predictions(path, Layout("y")), expected)
    data = frame(y=LABELS, price=1.5)[["eel", "y", "cat", "id", "price", "dog"]]
    path = write_frame(data, tmp_path / f"b{suffix}")
    check_same(read_predictions(path, Layout("y"), classes=CLASSES), expected)
    aside = read_predictions(path, Layout(other=["price"]))
    assert (aside.classes.tolist(), aside.labels) == (["eel", "cat", "dog"], None)


def test_labels_may_be_indices_where_they_are_not_ambiguous(tmp_path):
    for suffix in (".csv", ".parquet"):
        path = write_frame(frame(y=[0, 1, 2, 0]), tmp_path / f"a{suffix}")
        check_same(read_predictions(path, Layout("y")), Predictions(PROBA, CLASSES, LABELS))
    data = frame(y=[0, 1, 2, 0])[["eel", "dog", "cat", "y"]]
    path = write_frame(data, tmp_path / "a.parquet")
    with pytest.raises(InputError, match="ambiguous where the order of classes varies"):
        read_predictions(path, Layout("y"), classes=CLASSES)
    numbered = frame(y=[0, 1, 2, 0]).rename(columns={"cat": "1", "dog": "2", "eel": "3"})
    path = write_frame(numbered, tmp_path / "b.parquet")
    with pytest.raises(InputError, match="row 0 has '0'"):
        read_predictions(path, Layout("y"))


def test_classes_that_are_numbers(tmp_path):
    numbered = frame(y=["3", "1", "2", "1"]).rename(columns={"cat": "1", "dog": "2", "eel": "3"})
    path = write_frame(numbered, tmp_path / "a.csv")
    read = read_predictions(path, Layout("y"), classes=np.array([1, 2, 3]))
    assert read.labels.tolist() == [3, 1, 2, 1]
    assert read.codes.tolist() == [2, 0, 1, 0]


def test_leading_zeros_of_labels_survive_csv(tmp_path):
    text = "p_007,p_08,y\n0.5,0.5,08\n0.25,0.75,007\n"
    (tmp_path / "a.csv").write_text(text)
    assert read_predictions(tmp_path / "a.csv", Layout("y", "p_")).codes.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("classes", "labels"),
    [
        (np.array([10, 20, 30]), np.array([10, 30, 20, 10])),
        (np.array([0.5, 1.0, 2.0]), np.array([1.0, 0.5, 2.0, 2.0])),
        (np.array([False, True]), np.array([True, False, True, True])),
        (np.array(["a", "b", "c"]), np.array(["c", "b", "a", "a"])),
    ],
)
def test_npz_keeps_the_type_of_classes(tmp_path, classes, labels):
    proba = np.full((4, classes.size), 1 / classes.size)
    write_predictions(Predictions(proba, classes, labels), tmp_path / "a.npz")
    read = read_predictions(tmp_path / "a.npz")
    assert read.classes.dtype == classes.dtype
    assert read.labels.tolist() == labels.tolist()


def test_npz_says_logits_itself(tmp_path):
    np.savez(tmp_path / "a.npz", logits=PROBA, labels=[0, 1, 2, 0])
    read = read_predictions(tmp_path / "a.npz")
    assert read.input == "logits"
    np.testing.assert_allclose(read.probabilities().sum(axis=1), 1)
    np.savez(tmp_path / "b.npz", logits=PROBA, proba=PROBA)
    assert read_predictions(tmp_path / "b.npz").input == "proba"
    assert read_predictions(tmp_path / "b.npz", Layout(logits=True)).input == "logits"
    np.savez(tmp_path / "c.npz", proba=PROBA)
    with pytest.raises(InputError, match="must hold `logits`; it holds 'proba'"):
        read_predictions(tmp_path / "c.npz", Layout(logits=True))


def test_npy(tmp_path):
    np.save(tmp_path / "a.npy", PROBA)
    read = read_predictions(tmp_path / "a.npy", classes=[0, 1, 2])
    np.testing.assert_array_equal(read.proba, PROBA)
    with pytest.raises(InputError, match=r"3 columns without names.*'cat'.*array `classes`"):
        read_predictions(tmp_path / "a.npy", classes=CLASSES)
    write_predictions(read, tmp_path / "b.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "b.npy"), PROBA)


@pytest.mark.parametrize("prefix", ["", "p_"])
def test_missing_renamed_and_extra_classes_are_named(tmp_path, prefix):
    data = frame().rename(columns={name: prefix + name for name in CLASSES})
    path = write_frame(data.drop(columns=prefix + "dog"), tmp_path / "missing.parquet")
    with pytest.raises(InputError, match=f"1 of 3 is missing, the first is '{prefix}dog'"):
        read_predictions(path, Layout(prefix=prefix), classes=CLASSES)
    renamed = data.rename(columns={prefix + "dog": prefix + "dogs"})
    path = write_frame(renamed, tmp_path / "renamed.parquet")
    with pytest.raises(InputError, match=f"'{prefix}dogs': did you mean '{prefix}dog'"):
        read_predictions(path, Layout(prefix=prefix), classes=CLASSES)
    data[prefix + "fox"] = 0.1
    path = write_frame(data, tmp_path / "extra.parquet")
    layout = Layout(prefix=prefix, logits=True)
    with pytest.raises(InputError, match=f"'{prefix}fox'"):
        read_predictions(path, layout, classes=CLASSES)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["cat", "dog", "eel", ""], ["cat", "dog", "eel", None]),
        ([0, 1, 2, 0], ["cat", "dog", "eel", "cat"]),
        (MATRIX, MATRIX[:, [2, 0, 1]].tolist()),
    ],
    ids=["names", "indices", "matrix"],
)
def test_arrays_are_put_into_the_order_of_the_classes_expected(tmp_path, labels, expected):
    np.savez(tmp_path / "a.npz", proba=PROBA, classes=CLASSES, labels=labels)
    read = read_predictions(tmp_path / "a.npz", Layout(gaps=True), classes=["eel", "cat", "dog"])
    np.testing.assert_array_equal(read.proba, PROBA[:, [2, 0, 1]])
    assert read.labels.tolist() == expected
    with pytest.raises(InputError, match="unknown classes, the first is 'eel'"):
        read_predictions(tmp_path / "a.npz", Layout(gaps=True), classes=["cat", "dog"])


@pytest.mark.parametrize(
    ("columns", "layout", "message"),
    [
        ({"y": ["cat", "dog", "eel", "fox"]}, Layout("y"), "row 3 has 'fox'"),
        ({"y": [0, 1, 2, 3]}, Layout("y"), "from 0 to 2; row 0 has '0'"),
        ({"y": ["cat", None, "eel", "cat"]}, Layout("y"), "'y' is empty in row 1"),
        ({"cat": [0.7, None, 0.1, 0.2]}, Layout(), r"row 1, class 'cat' \(nan\)"),
        ({}, Layout("z"), "has no column 'z'"),
        ({}, Layout(prefix="q_"), "at least 2; found 0"),
        ({"y_cat": [0, 1, 2, 0], "y_dog": 0, "y_eel": 0}, Layout(None, "", "y_"), "first is 2"),
        ({"y_cat": [0, 1, 1, 0], "y_dog": 0}, Layout(None, "", "y_"), "missing.*'y_eel'"),
    ],
)
def test_bad_tables_are_told(tmp_path, columns, layout, message):
    path = write_frame(frame(**columns), tmp_path / "a.parquet")
    with pytest.raises(InputError, match=message):
        read_predictions(path, layout)


def test_bad_arrays_are_told(tmp_path):
    def refused(message, **arrays):
        np.savez(tmp_path / "a.npz", **arrays)
        with pytest.raises(InputError, match=message):
            read_predictions(tmp_path / "a.npz")

    refused("must hold `proba` or `logits`; it holds 'x'", x=PROBA)
    refused(r"it is int64 of shape .*astype\(float\)", proba=np.eye(3, dtype=int))
    refused(r"it is float64 of shape \(4,\)", proba=PROBA[:, 0])
    refused("must name each of the 3 columns once", proba=PROBA, classes=["a", "a", "b"])
    refused("one entry per row", proba=PROBA, labels=[0, 1])
    refused("row 0 has 'x'", proba=PROBA, labels=["x"] * 4)
    refused("must be a 0/1 matrix.*dtype <U1", proba=PROBA, labels=np.full(PROBA.shape, "1"))
    objects = np.array(["ant"] * len(PROBA), dtype=object)
    refused(r"`labels` in .* labels=np\.asarray\(labels, str\)", proba=PROBA, labels=objects)
    refused(r"valid text; '\\udcff' is not", proba=PROBA, classes=["a", "b", "\udcff"])
    (tmp_path / "a.txt").touch()
    with pytest.raises(InputError, match=r"'a\.txt' does not"):
        read_predictions(tmp_path / "a.txt")
    with pytest.raises(InputError, match=r"'b\.txt' does not"):
        write_predictions(Predictions(PROBA, CLASSES), tmp_path / "b.txt")


TEXT = "ant,bee,cow,y\n0.2,0.3,0.5,ant\noops,0.3,0.5,bee\n0.2,0.2,0.6,cow\n"
BAD_TEXTS = [
    (TEXT, Layout("y"), "numbers with a decimal point; 'ant' holds 'oops' in row 1"),
    (TEXT, Layout("y", other=["ant"]), "row 0 has 'ant'. The classes are 'bee', 'cow'"),
    ("id,p,y\n1,0.3,0\n2,0.6,1\n", Layout("y"), "found 1 .* If 'p' is .* write 1 minus it into"),
    (TEXT, Layout("y", prefix="p_"), r"found 0 .* with --prefix, have names"),
    (TEXT.replace(",", ";"), Layout("y"), r"by commas; its first line has semicolons"),
    (TEXT.replace(",", "\t"), Layout("y"), r"'a\.csv' must be separated .* line has tabs"),
    ("ant,bee,y\n0.5,0.5,\udce9\n", Layout("y"), "must be text in UTF-8; some of its bytes"),
    ("\udce9,b\n0.5,0.5\n", Layout(), "cannot be read as csv"),
    ("p_a,p_b\n1,0\n0,1\n", Layout(), "or, with --prefix, have names that start with it"),
]


@pytest.mark.parametrize(("text", "layout", "message"), BAD_TEXTS)
def test_bad_texts_are_told(tmp_path, text, layout, message):
    path = tmp_path / "a.csv"
    path.write_text(text, encoding="utf-8", errors="surrogateescape")
    with pytest.raises(InputError, match=message):
        read_predictions(path, layout)


def test_whole_numbers_are_read_and_text_is_not_where_columns_are_known(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("p_a,p_b,y\n1,0,p_a\n0,1,p_b\n")
    for layout in (Layout(prefix="p_"), Layout("y")):  # labels name their classes, too
        assert read_predictions(path, layout).proba.tolist() == [[1, 0], [0, 1]]
    path.write_text(TEXT)
    with (
        pytest.raises(InputError, match="'ant' holds 'oops' in row 1"),
        open_table(path, numbers=["ant", "bee", "cow"]) as opened,
    ):
        list(opened.batches)


def test_pickles_are_never_loaded(tmp_path):
    class Trap:
        def __reduce__(self):
            return (open, (str(tmp_path / "sprung"), "w"))

    trap = np.array([Trap()], dtype=object)
    np.save(tmp_path / "a.npy", trap, allow_pickle=True)
    np.savez(tmp_path / "a.npz", proba=PROBA, labels=trap)
    for name in ("a.npy", "a.npz"):
        with pytest.raises(InputError, match="pickled objects"):
            read_predictions(tmp_path / name)
    assert not (tmp_path / "sprung").exists()


WITH_AN_END = [".npz", ".npy", ".parquet", ".arrow", ".feather", ".csv.gz", ".jsonl.gz"]


@pytest.mark.parametrize("suffix", WITH_AN_END)
def test_files_cut_off_anywhere_are_refused(tmp_path, suffix):
    name = f"a{suffix}"
    write_predictions(Predictions(PROBA, CLASSES), tmp_path / name)
    content = (tmp_path / name).read_bytes()
    for size in np.linspace(0, len(content) - 1, 12).astype(int):
        (tmp_path / name).write_bytes(content[:size])
        with pytest.raises(InputError, match=r"cut off|is empty|it has none"):
            read_predictions(tmp_path / name)


def test_categorical_labels_decimals_and_mixed_widths(tmp_path):
    table = pa.table(
        {
            "a": pa.array([0.5, 0.125], pa.float32()),
            "b": pa.array([0.25, 0.625], pa.float64()),
            "c": pa.array([0.25, 0.25]).cast(pa.decimal128(10, 4)),
            "y": pa.array(["b", "a"]).dictionary_encode(),
        }
    )
    pa.parquet.write_table(table, tmp_path / "a.parquet")
    read = read_predictions(tmp_path / "a.parquet", Layout("y"))
    assert read.proba.tolist() == [[0.5, 0.25, 0.25], [0.125, 0.625, 0.25]]
    assert read.proba.dtype == np.float64
    assert read.codes.tolist() == [1, 0]


# Files that are damaged, huge, empty or odd: understood, or refused with the remedy.


def test_only_what_is_needed_is_read(tmp_path):
    bomb = np.zeros((1000, 100_000), np.uint8)  # a hundred megabytes, compressed to a hundredth
    np.savez_compressed(tmp_path / "a.npz", proba=PROBA, other=bomb)
    tracemalloc.start()
    try:
        read_predictions(tmp_path / "a.npz")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 20e6  # bytes: the rest of the hundred megabytes was not touched
    np.savez_compressed(tmp_path / "b.npz", proba=PROBA, labels=bomb)
    with pytest.raises(InputError, match="one entry per row"):
        read_predictions(tmp_path / "b.npz")


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


def test_classes_of_another_model_are_no_slips_of_the_pen():
    wanted = ["benign", "malignant"]
    with pytest.raises(InputError, match="'no': did you mean 'malignant'"):
        check_same_names(wanted, ["benign", "no"])
    message = r"the first is 'benign'; unknown is 'play_music'\. Add or rename columns\."
    with pytest.raises(InputError, match=message):
        check_same_names(wanted, ["play_music", "transfer", "who_made_you"])


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_many_classes_are_matched_quickly(tmp_path, suffix):
    names = np.array([f"class {j}" for j in range(6000)])
    predictions = Predictions(np.full((1, names.size), 1 / names.size), names, names[:1])
    write_predictions(predictions, tmp_path / f"a{suffix}")
    start = time.process_time()
    read = read_predictions(tmp_path / f"a{suffix}", Layout("label"), classes=names[::-1])
    assert read.labels.tolist() == ["class 0"]
    with pytest.raises(InputError, match=r"1 of 6001 is missing.*did you mean 'klass 7'"):
        check_same_names([*names, "klass 7"], [*names[::-1], "class_7"])
    assert time.process_time() - start < 3  # 7 s once; what is left is PyArrow's

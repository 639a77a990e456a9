"""Files that lie or are odd: no row is lost in silence, and no file makes a traceback or a hang."""

import gzip
import os
import tracemalloc
import warnings
import zipfile

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

from altnorm import InputError
from altnorm.io.formats import Layout
from altnorm.io.predictions import read_predictions
from altnorm.io.tables import open_table, read_table
from altnorm.io.text_tables import neutralise_formula
from tests.commands import CLASSES, refused, run, table
from tests.io.test_tables import put
from tests.versions import present_versions

LAYOUT = Layout("y")
PROBA = table(60, 0)[CLASSES].to_numpy()


def write_text(path, data, marks):
    """A CSV file whose last column is text; `marks` puts text of its own into some lines."""
    lines = data.assign(note="plain").to_csv(index=False).splitlines()
    for number, mark in marks.items():
        lines[number - 1] = lines[number - 1].replace("plain", mark)
    path.write_text("\n".join(lines) + "\n")
    return path


# Quotes.


@pytest.mark.parametrize("n_rows", [60, 120_000])  # also more than is read at a time
@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
def test_a_quote_that_never_ends_is_refused(tmp_path, n_rows, suffix):
    path = write_text(tmp_path / "a.csv", table(n_rows, 0), {12: '"plain'})
    if suffix == ".csv.gz":
        path.with_suffix(".csv.gz").write_bytes(gzip.compress(path.read_bytes(), 1))
        path = path.with_suffix(".csv.gz")
    with pytest.raises(InputError, match=r"must end; the last one of 'a\.csv.* begins with 'plain"):
        read_predictions(path, LAYOUT)
    with (
        pytest.raises(InputError, match="must end"),
        open_table(path, numbers=CLASSES) as opened,
    ):
        list(opened.batches)


def test_rows_within_quotes_are_told(tmp_path):
    path = write_text(tmp_path / "a.csv", table(60, 0), {12: '"plain', 32: 'plain"'})
    with pytest.warns(UserWarning, match=r"20 lines of 'a\.csv' .* the first of them in row 10\."):
        assert read_table(path).num_rows == 40


@pytest.mark.parametrize("block", [97, 98, 99, 100, 101, 499])
def test_quoted_text_across_the_border_of_blocks(tmp_path, monkeypatch, block):
    """Wherever a block ends: in text, within an escaped quote, between two lines of a field."""
    monkeypatch.setattr("altnorm.io.text_tables._BLOCK", block)
    texts = [f'{"x" * (i % 7)}, "{i}"\nand\n\nmore' for i in range(50)]
    data = pd.DataFrame({"note": texts, "a": 0.25, "b": 0.75, "tail": texts[::-1]})
    data.to_csv(tmp_path / "a.csv", index=False)
    with open_table(tmp_path / "a.csv", numbers=["a", "b"]) as opened:
        batches = list(opened.batches)
    assert len(batches) > 3
    read = pa.Table.from_batches(batches)
    pd.testing.assert_frame_equal(read.to_pandas(), data, check_dtype=False)


@pytest.mark.parametrize("text", ['"', '"x', '"x""', '"""x', '"x\n', '"x\r\n"",', '"1\n2,3\n4,5\n'])
@pytest.mark.parametrize("before", ["a,b\n1,", "a\n", 'a,b\n"1",2\n"x""y",'])
def test_the_last_quote_is_open(tmp_path, text, before):
    (tmp_path / "a.csv").write_bytes((before + text).encode())
    with pytest.raises(InputError, match=r"Every quoted field must end; the last one of 'a\.csv'"):
        read_table(tmp_path / "a.csv")


@pytest.mark.parametrize(
    ("text", "n_told"),
    [
        ('a,b\n1,""', 0),
        ('a,b\n1,""""', 0),
        ('a,b\n1,"x"""', 0),
        ('a,b\n1,x"', 0),
        ('a,b\n1,"x"\n\n', 0),
        ('a,b\n"1\n2",3\n', 0),
        ('a,b\n"1\n2,3",4\n', 1),
        ('a,b\n1,"2\r\n3,4\r5,6\n7,8"\n9,""', 3),
        ('a,b\n"1\n2,,3",4\n', 0),
        ('a,b,c\n"1\n2,3,4",5,"\n,,"\n"\n,,",,\n', 3),
        ('a\n"1\n2"\n', 0),  # in a single column any line of text looks like a row
    ],
)
def test_lines_within_quotes_are_told_if_they_look_like_rows(tmp_path, text, n_told):
    (tmp_path / "a.csv").write_bytes(text.encode())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        read_table(tmp_path / "a.csv")
    assert [str(w.message).partition(" ")[0] for w in caught] == [str(n_told)] * (n_told > 0)


# Parquet.

N_ROWS = 2000


def varint(number):
    """How a Parquet file writes a count of two bytes."""
    return bytes([(2 * number) & 0x7F | 0x80, (2 * number) >> 7])


@present_versions  # PyArrow 16 itself crashes on such a file
def test_no_row_of_a_parquet_file_is_lost_in_silence(tmp_path):
    path = tmp_path / "a.parquet"
    sound = pa.Table.from_pandas(table(N_ROWS, 0), preserve_index=False)
    parquet.write_table(sound, path)
    content, at, n_refused = path.read_bytes(), -1, 0
    while (at := content.find(varint(N_ROWS), at + 1)) >= 0:
        for count in (0, 1500, 1999):
            path.write_bytes(content[:at] + varint(count) + content[at + 2 :])
            try:
                assert read_table(path).equals(sound)
            except InputError as error:
                n_refused += "rows and" in str(error)
    assert n_refused > 3


def test_text_of_a_parquet_file_must_be_utf8(tmp_path):
    data = pa.table({"text": pa.array([b"\xff\xfe", b"b"]), "a": [0.5, 0.2], "b": [0.5, 0.8]})
    text = pa.StringArray.from_buffers(2, *data["text"].chunk(0).buffers()[1:])
    parquet.write_table(data.set_column(0, "text", text), tmp_path / "a.parquet")
    with pytest.raises(InputError, match=r"cannot be read as parquet.*UTF8"):
        read_table(tmp_path / "a.parquet")


# Arrow.


def write_arrow(path, opener):
    data = pa.Table.from_pandas(table(40, 0), preserve_index=False)
    with opener(path, data.schema) as writer:
        writer.write_table(data, max_chunksize=15)
    return path.read_bytes()


def footer_of(content):
    """Where the last part of an Arrow file begins."""
    return len(content) - 10 - int.from_bytes(content[-10:-6], "little")


def test_no_batch_of_an_arrow_file_is_lost_in_silence(tmp_path):
    path = tmp_path / "a.arrow"
    content = write_arrow(path, pa.ipc.new_file)
    assert read_table(path).num_rows == 40
    n_refused = 0
    for at in range(footer_of(content), len(content) - 10):
        if content[at : at + 4] == (3).to_bytes(4, "little"):
            path.write_bytes(content[:at] + (1).to_bytes(4, "little") + content[at + 4 :])
            try:
                assert read_table(path).num_rows == 40
            except InputError as error:
                n_refused += "1 batches of rows and holds 3" in str(error)
    assert n_refused == 1


def test_an_arrow_file_need_not_end_its_stream(tmp_path):
    """What follows the last batch is the footer."""
    path = tmp_path / "a.arrow"
    content = write_arrow(path, pa.ipc.new_file)
    footer, end = footer_of(content), b"\xff" * 4 + bytes(4)
    assert content[:footer].endswith(end)
    path.write_bytes(content[: footer - len(end)] + content[footer:])
    assert read_table(path).num_rows == 40


@present_versions  # not tried with the oldest ones
@pytest.mark.parametrize("compression", ["uncompressed", "lz4"])
def test_an_arrow_file_of_polars_is_sound(tmp_path, compression):
    """Its schema is no message, and dictionaries come last."""
    data = pl.from_pandas(table(40, 0)).with_columns(pl.col("y").cast(pl.Categorical))
    data.write_ipc(tmp_path / "a.arrow", compression=compression)
    read = read_predictions(tmp_path / "a.arrow", LAYOUT)
    assert read.labels.tolist() == table(40, 0)["y"].tolist()


def test_a_stream_that_ends_too_soon(tmp_path):
    path = tmp_path / "a.arrow"
    content = write_arrow(path, pa.ipc.new_stream)
    assert read_table(path).num_rows == 40
    starts = [i for i in range(8, len(content)) if content[i : i + 4] == b"\xff" * 4][1:-1]
    path.write_bytes(content[: starts[-1]])
    with pytest.warns(UserWarning, match=r"'a\.arrow' does not say where it ends"):
        assert read_table(path).num_rows < 40
    path.write_bytes(content[: starts[-1] + 4] + bytes(4) + content[starts[-1] + 8 :])
    with pytest.raises(InputError, match=r"it says that it ends, and [\d,]+ bytes follow"):
        read_table(path)


# Formulas.

FORMULAS = {
    "=1+1": "'=1+1",
    "+a": "'+a",
    "-1+cmd()": "'-1+cmd()",
    "@a": "'@a",
    "\t=1": "'\t'=1",
    '="a,b"': '\'="a,b"',
    # A spreadsheet may cut at semicolons or tabs where the file has commas, quotes or not.
    "x;=cmd|' /C calc'!A0": "x;'=cmd|' /C calc'!A0",
    "x\t@a\n+b,-c": "x\t'@a\n'+b,'-c",
    'x;"=1+1;': "x;\"'=1+1;",
}
HARMLESS = ["-1.5", "+2e-3", "a=1", "", "a, b; c", "a - b"]


@pytest.mark.parametrize("name", ["t.csv", "t.tsv.gz"])
def test_a_table_that_is_safe_for_spreadsheets(tmp_path, name):
    cells = [*FORMULAS, *HARMLESS]
    data = pa.table({"=name": cells, "x": np.arange(-1.0, len(cells) - 1)})
    put(data, tmp_path / name, spreadsheet_safe=True)
    sep = "," if "csv" in name else "\t"
    read = pd.read_csv(tmp_path / name, sep=sep, keep_default_na=False, dtype={"'=name": str})
    assert read["'=name"].tolist() == [*FORMULAS.values(), *HARMLESS]
    assert [neutralise_formula(cell) for cell in cells] == [*FORMULAS.values(), *HARMLESS]
    assert read["x"].tolist() == data["x"].to_pylist()


def test_apply_writes_a_table_for_spreadsheets(folder, model, capsys):
    table(60, 0).assign(note="=1+1").to_csv("in.csv", index=False)
    np.savez("in.npz", proba=PROBA, classes=CLASSES)
    apply = ["apply", model, "in.csv", "-o"]
    assert run([*apply, "plain.csv"]) == 0
    assert run([*apply, "safe.csv", "--spreadsheet-safe"]) == 0
    assert set(pd.read_csv("plain.csv")["note"]) == {"=1+1"}
    assert set(pd.read_csv("safe.csv")["note"]) == {"'=1+1"}
    for source, output in (("in.csv", "o.parquet"), ("in.npz", "o.npz")):
        message = refused(capsys, "apply", model, source, "-o", output, "--spreadsheet-safe")
        assert f"'{output}' is neither" in message


# JSON lines.


def test_json_lines_are_written_as_json(tmp_path):
    data = pa.table({"x": [float("nan"), 1.0], "l": [[float("nan")], [2.0]]})
    put(data, tmp_path / "a.jsonl")
    lines = (tmp_path / "a.jsonl").read_text().splitlines()
    assert lines == ['{"x": null, "l": [null]}', '{"x": 1.0, "l": [2.0]}']
    data = pa.table({"x": [float("inf")]})
    with pytest.raises(InputError, match="finite numbers; there is inf"):
        put(data, tmp_path / "b.jsonl")


# Arrays.


def beyond_unicode(text):
    numbers = text.view(np.uint32).copy()
    numbers[0] = 0x7FFFFFFF
    return numbers.view(text.dtype)


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("name", ["classes", "labels"])
def test_text_beyond_unicode_is_refused(tmp_path, name, order):
    arrays = {"proba": PROBA, "classes": CLASSES, "labels": np.array(["bee"] * 60)}
    spoiled = beyond_unicode(arrays[name])
    as_numbers = spoiled.view(np.uint32).astype(f"{order}u4")
    arrays[name] = as_numbers.view(spoiled.dtype.newbyteorder(order))
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(InputError, match="code points beyond Unicode"):
        read_predictions(tmp_path / "a.npz")


@pytest.mark.parametrize("name", ["a.npy", "a.npz"])
@pytest.mark.parametrize("n_rows", [b"(50, 3), }", b"(4000000000000, 3), }"])
def test_a_header_says_how_many_rows_there_are(tmp_path, name, n_rows):
    """Fewer, and some would be lost in silence; more, and memory would be taken for nothing."""
    np.save(tmp_path / "a.npy", PROBA)
    header = b"(60, 3), }"
    stored = (tmp_path / "a.npy").read_bytes()
    stored = stored.replace(header + b" " * (len(n_rows) - len(header)), n_rows)
    if name == "a.npy":
        (tmp_path / name).write_bytes(stored)
    else:
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            archive.writestr("proba.npy", stored)
    with pytest.raises(InputError, match="bytes are announced and"):
        read_predictions(tmp_path / name)


@pytest.mark.parametrize(("n_rows", "n_classes"), [(1, 2**31), (600, 2 * 10**6), (2000, 10**6)])
@pytest.mark.parametrize("wanted", [None, CLASSES])
def test_claims_are_refused_before_memory_is_taken(tmp_path, n_rows, n_classes, wanted):
    rows = {"indices": np.tile([[0, 1]], (n_rows, 1)), "proba": np.tile([[0.5, 0.4]], (n_rows, 1))}
    np.savez(tmp_path / "a.npz", **rows, n_classes=n_classes)
    tracemalloc.start()
    with pytest.raises(InputError, match=f"says that there are {n_classes:,} classes"):
        read_predictions(tmp_path / "a.npz", classes=wanted)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 2**24


def test_a_matrix_without_rows_takes_no_memory(tmp_path):
    np.save(tmp_path / "a.npy", np.empty((0, 2**31), np.float32))
    with pytest.raises(InputError, match="at least one row"):
        read_predictions(tmp_path / "a.npy")


# Whatever the format.


def test_a_pipe_is_no_input(tmp_path, folder, model, capsys):
    os.mkfifo("pipe.csv")
    for command in (["apply", model, "pipe.csv"], ["apply", "pipe.csv", "val.parquet"]):
        message = refused(capsys, *command, "-o", "o.csv")
        assert "'pipe.csv' is not a regular file" in message

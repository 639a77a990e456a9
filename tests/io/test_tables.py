"""Streams of record batches: values, types, text and order survive."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st
from pyarrow import feather, parquet

from altnorm import InputError
from altnorm.io.tables import open_table, read_table, write_table

TABLE = pa.table(
    {
        "id": pa.array([7, None, 9], pa.int16()),
        "text": ['a "quoted", one', "", "two\nlines"],
        "p_a": pa.array([0.1, 1 / 3, 1e-300], pa.float64()),
        "kind": pa.array(["x", "y", "x"]).dictionary_encode(),
        "p_b": pa.array([0.9, 2 / 3, 1.0], pa.float32()),
        "list": pa.array([[1, 2], None, []], pa.list_(pa.field("element", pa.int64()))),
    }
).replace_schema_metadata({"made by": "us"})


def put(table, path, **options):
    """Write a whole table."""
    with write_table(path, table.schema, **options) as write:
        for batch in table.to_batches():
            write(batch)


def rewrite(path, target, numbers=()):
    with (
        open_table(path, numbers=numbers) as table,
        write_table(target, table.schema, like=table) as write,
    ):
        for batch in table.batches:
            write(batch)


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow", "t.feather"])
def test_values_types_order_and_metadata_survive(tmp_path, name):
    feather.write_feather(TABLE, tmp_path / "in.feather")
    rewrite(tmp_path / "in.feather", tmp_path / name)
    back = read_table(tmp_path / name)
    assert back.schema.equals(TABLE.schema, check_metadata=True)
    assert back.equals(TABLE)


def test_parquet_is_read_in_batches_and_written_in_larger_row_groups(tmp_path, monkeypatch):
    monkeypatch.setattr("altnorm.io.tables._GROUP_BYTES", 8 * 1000)
    monkeypatch.setattr("altnorm.io.tables._BATCH_VALUES", 300)
    table = pa.table({"p": [i / 10_000 for i in range(10_000)]})
    parquet.write_table(table, tmp_path / "in.parquet", row_group_size=10_000)
    with open_table(tmp_path / "in.parquet") as source:
        assert source.n_rows == 10_000
        with write_table(tmp_path / "out.parquet", source.schema, like=source) as write:
            for batch in source.batches:
                assert batch.num_rows <= 300
                write(batch)
    metadata = parquet.ParquetFile(tmp_path / "out.parquet").metadata
    assert 5 <= metadata.num_row_groups <= 12
    assert read_table(tmp_path / "out.parquet").equals(table)


def changing_dictionaries(path):
    """Two batches whose column `kind` is encoded by dictionaries of their own, also in records."""
    encoded = pa.dictionary(pa.int8(), pa.string())
    kinds = {"kind": encoded}
    if path.suffix != ".parquet":  # which knows dictionaries of plain columns only
        kinds |= {"record": pa.struct({"kind": encoded}), "list": pa.list_(encoded)}
        kinds |= {"pair": pa.list_(encoded, 1), "map": pa.map_(pa.string(), encoded)}
    schema, batches = pa.schema(kinds | {"p": pa.float64()}), []
    for values, p in ((["x", "y", "x"], [0.1, 0.2, 0.3]), (["z", None, "y"], [0.4, 0.5, 0.6])):
        kind = pa.array(values).dictionary_encode().cast(encoded)
        record = pa.StructArray.from_arrays([kind], ["kind"])
        columns = {
            "kind": kind,
            "record": record,
            "list": pa.ListArray.from_arrays([0, 1, 2, 3], kind),
            "pair": pa.FixedSizeListArray.from_arrays(kind, 1),
            "map": pa.MapArray.from_arrays([0, 1, 2, 3], ["a", "b", "c"], kind),
        }
        batches.append(pa.record_batch({name: columns[name] for name in kinds} | {"p": p}, schema))
    opened = parquet.ParquetWriter if path.suffix == ".parquet" else pa.ipc.new_stream
    with opened(path, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return [row for batch in batches for row in batch.to_pylist()]


@pytest.mark.parametrize("source", ["in.parquet", "in.arrow"])
@pytest.mark.parametrize("target", ["t.arrow", "t.feather", "t.parquet", "t.csv", "t.jsonl"])
def test_dictionaries_that_change_between_batches(tmp_path, source, target):
    rows = changing_dictionaries(tmp_path / source)
    rewrite(tmp_path / source, tmp_path / target)
    back = read_table(tmp_path / target).to_pylist()
    if target == "t.csv":  # where nothing and an empty text are the same
        rows = [row | {"kind": row["kind"] or ""} for row in rows]
    if target in ("t.csv", "t.jsonl"):  # which are read as they are written: as JSON
        nested = ("record", "list", "pair", "map") if source == "in.arrow" else ()
        back = [row | {name: json.loads(row[name]) for name in nested} for row in back]
    assert json.dumps(back) == json.dumps(rows)  # in which the pairs of a map are lists


def test_large_ipc_batches_are_cut(tmp_path, monkeypatch):
    monkeypatch.setattr("altnorm.io.tables._BATCH_VALUES", 12)
    feather.write_feather(TABLE, tmp_path / "t.feather")
    with open_table(tmp_path / "t.feather") as table:
        assert [batch.num_rows for batch in table.batches] == [2, 1]


def test_csv_text_stays_as_it_is(tmp_path):
    text = 'id,note,p,q\n007,"a ""b"", c",0.25,0.75\n1.50,,1e-3,0.999\n,"x\ny",1,0\n'
    (tmp_path / "in.csv").write_text(text)
    rewrite(tmp_path / "in.csv", tmp_path / "out.csv", numbers=["p", "q"])
    before, after = (
        pd.read_csv(tmp_path / name, dtype={"id": str}) for name in ("in.csv", "out.csv")
    )
    pd.testing.assert_frame_equal(after, before)
    rewrite(tmp_path / "out.csv", tmp_path / "again.csv", numbers=["p", "q"])
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "out.csv").read_bytes()


texts = st.text(st.characters(codec="utf-8", exclude_characters="\r\x00"), max_size=8)
floats = st.floats(allow_nan=False, allow_infinity=False)


@settings(max_examples=40)
@given(rows=st.lists(st.tuples(texts, floats), min_size=1, max_size=5), names=st.just(["t", "x"]))
def test_csv_round_trip(rows, names, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "round trip.csv"
    table = pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))
    put(table, path, force=True)
    back = read_table(path, text=["t"])
    assert back["t"].to_pylist() == [text for text, _ in rows]
    assert back["x"].cast(pa.float64()).to_pylist() == [x for _, x in rows]


KINDS_OF_TEXT = [pa.large_string(), pa.binary(), pa.large_binary()]
if hasattr(pa, "json_"):  # PyArrow 19; older ones cannot convert views either
    KINDS_OF_TEXT += [pa.string_view(), pa.binary_view(), pa.json_()]


@pytest.mark.parametrize("kind", KINDS_OF_TEXT, ids=str)
def test_csv_quotes_text_of_every_type(tmp_path, kind):
    texts = ["a,b", 'say "x"', "two\nlines", "plain", None]
    table = pa.table({"t": pa.array(texts, kind), "x": [1.5] * 5})
    put(table, tmp_path / "t.csv")
    back = read_table(tmp_path / "t.csv", text=["t"])
    assert back["t"].to_pylist() == [*texts[:-1], ""]
    assert back["x"].to_pylist() == [1.5] * 5


def test_csv_refuses_what_is_not_text(tmp_path):
    table = pa.table({"b": pa.array([b"\xff\xfe"])})
    with pytest.raises(InputError, match=r"column 'b' \(binary\) cannot be written as text"):
        put(table, tmp_path / "t.csv")


@pytest.mark.parametrize("stream", [False, True], ids=["file", "stream"])
def test_wrong_offsets_in_arrow_files_are_noticed(tmp_path, stream):
    table = pa.table({"t": ["aaaa", "bbbb", "cccc"], "x": [0.1, 0.2, 0.3]})
    opened = pa.ipc.new_stream if stream else pa.ipc.new_file
    with opened(tmp_path / "t.arrow", table.schema) as writer:
        writer.write_table(table)
    content = (tmp_path / "t.arrow").read_bytes()
    offsets = np.array([0, 4, 8, 12], np.int32).tobytes()
    assert content.count(offsets) == 1
    for wrong in ([0, 4, 2**30, 12], [0, -(2**30), 8, 12], [0, 8, 4, 12], [0, 4, 8, 2**31 - 1]):
        damaged = content.replace(offsets, np.array(wrong, np.int32).tobytes())
        (tmp_path / "t.arrow").write_bytes(damaged)
        with pytest.raises(InputError, match="cut off or damaged"):
            read_table(tmp_path / "t.arrow")


def test_empty_tables(tmp_path):
    empty = TABLE.select(["id", "p_a"]).slice(0, 0)
    for name in ("t.parquet", "t.arrow", "t.feather"):
        with write_table(tmp_path / name, empty.schema):
            pass
        assert read_table(tmp_path / name).num_rows == 0
    with write_table(tmp_path / "t.csv", empty.schema):
        pass
    assert (tmp_path / "t.csv").read_text() == '"id","p_a"\n'


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.parquet", b"PAR1 not really", r"t.parquet' cannot be read as parquet"),
        ("t.arrow", b"", r"t.arrow' is empty"),
        ("t.feather", b"FEA1....", r"t.feather' cannot be read as arrow"),
        ("t.csv", b"a,b\n1,2\n3\n", r"cannot be read as csv.*Expected 2 columns, got 1"),
        ("t.csv", b"a,a\n1,2\n", "2 columns 'a'"),
        ("t.xls", b"", "must end in one of"),
    ],
)
def test_errors_are_one_sentence(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_table(tmp_path / name)

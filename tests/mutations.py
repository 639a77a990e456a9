"""Sound files of every kind, and ways to spoil them: by accident, or as an adversary would."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pandas as pd
import pyarrow as pa
from pyarrow import csv, feather, parquet

from altnorm import Adjuster, AlternatingNormalizer
from altnorm._base.persistence import read_content, write_content
from tests.commands import answered

N_ROWS = 40
NAMES = ["ant", "bee, or wasp", '"cow"']
LABEL = "y"
TEXT_FILES = (".csv", ".tsv", ".csv.gz", ".jsonl", ".jsonl.gz")
INTERESTING = [0, 1, -1, 127, 255, 2**15, 2**31 - 1, -(2**31), 2**32 - 1, 2**62, -(2**62)]
WORDS = ["nan", "inf", "-1", "1e400", "", '"', ",", "0", "1", "-0.0", "1e-320", "x", "\r", "\x00"]
WORDS += ['"x', "=1+1", "z" * 100_000, "9" * 5000, "NaN", "[1]", '{"a": [1]}', "\ud7ff", "\u202e"]
VALUES: list[Any] = [None, True, -1, 0, 17, 0.5, "", "x", "1" * 5000, [], [1, 2], {}, {"a": [1]}]
VALUES += [10**30, 1e308, "=1+1", ["a", "b"], {"arg_0": 1}]

Change = Callable[[bytes, np.random.Generator], bytes]


def soundness(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Some sound predictions and their labels."""
    codes = rng.integers(3, size=N_ROWS)
    scores = rng.normal(size=(N_ROWS, 3)) + np.eye(3)[codes] + [1.0, 0, 0]
    proba = np.exp(scores)
    return proba / proba.sum(axis=1, keepdims=True), codes


def write_sound(folder: Path, rng: np.random.Generator) -> None:
    """Write one sound file of each format, and models."""
    proba, codes = soundness(rng)
    labels = [NAMES[code] for code in codes]
    columns = {"id": np.arange(N_ROWS), "text": [f"row, {i}" for i in range(N_ROWS)], LABEL: labels}
    table = pa.table(columns | dict(zip(NAMES, proba.T.copy(), strict=True)))
    np.savez_compressed(folder / "sound.npz", proba=proba, classes=NAMES, labels=labels)
    np.save(folder / "sound.npy", proba)
    parquet.write_table(table, folder / "sound.parquet")
    feather.write_feather(table, folder / "sound.feather")
    with pa.ipc.new_file(folder / "sound.arrow", table.schema) as writer:
        writer.write_table(table, max_chunksize=15)
    with pa.ipc.new_stream(folder / "sound.ipc", table.schema) as writer:
        writer.write_table(table, max_chunksize=15)
    csv.write_csv(table, folder / "sound.csv")
    # Text in the last column, too, and quoted without need: a stray quote finds no other there.
    tabs = table.append_column("note", pa.array([f"n{i}" for i in range(N_ROWS)]))
    csv.write_csv(tabs, folder / "sound.tsv", csv.WriteOptions(delimiter="\t"))
    rows = [json.dumps(row) for row in table.to_pylist()]
    scores = [
        {"id": i, LABEL: y, "scores": dict(zip(NAMES, row, strict=True))}
        for i, (y, row) in enumerate(zip(labels, np.log(proba).tolist(), strict=True))
    ]
    (folder / "sound.jsonl").write_text("\n".join(rows))
    (folder / "scores.jsonl").write_text("\n".join(map(json.dumps, scores)))
    log = [
        answered(i, row, str(code), texts=NAMES, doc={"question": f"q{i}", "answer": code})
        for i, (row, code) in enumerate(zip(np.log(proba).tolist(), codes.tolist(), strict=True))
    ]
    (folder / "log.jsonl").write_text("\n".join(map(json.dumps, log)))
    for name in ("csv", "jsonl"):
        packed = gzip.compress((folder / f"sound.{name}").read_bytes(), mtime=0)
        (folder / f"sound.{name}.gz").write_bytes(packed)
    os.mkfifo(folder / "pipe.csv")  # nobody writes to it: who opens it waits forever
    write_tables(folder)
    write_graph(folder / "sound.onnx")
    write_models(folder, proba, codes)


def write_tables(folder: Path) -> None:
    """Write tables of costs and of the class balance."""
    costs = pd.DataFrame(1 - np.eye(3), NAMES, NAMES)
    costs.to_json(folder / "costs.json", orient="index")
    costs.assign(person=0.3).to_csv(folder / "costs.csv", index_label="true")
    pd.Series(0.5, NAMES, name="share").to_csv(folder / "balance.csv", index_label="class")


def write_models(folder: Path, proba: np.ndarray, codes: np.ndarray) -> None:
    """Write models of the paper's method and one that was tuned, with names and without."""
    paper = {"reference": "all", "threshold": 0.3}
    models: dict[str, Any] = {
        "one": AlternatingNormalizer(**paper).fit(proba),
        "deep": AlternatingNormalizer(2.0, 3, **paper).fit(proba),
        "tuned": Adjuster(("bias",), insist=True).fit(proba, codes),
    }
    for name, model in models.items():
        model.save(folder / f"{name}-unnamed.model", force=True)
        model.classes_ = np.array(NAMES)
        model.save(folder / f"{name}.model", force=True)


def write_graph(path: Path, axis: int = -1) -> None:
    """Write a classifier as ONNX: five features, a softmax over three classes."""
    weights = ", ".join(map(str, np.linspace(-1, 1, 15, dtype=np.float32)))
    model = onnx.parser.parse_model(f"""
        <ir_version: 8, opset_import: ["": 17]>
        classifier (float[n, 5] features) => (float[n, 3] probabilities)
        <float[5, 3] weights = {{{weights}}}> {{
            scores = MatMul(features, weights)
            probabilities = Softmax <axis: int = {axis}> (scores)
        }}
    """)
    path.write_bytes(model.SerializeToString())


# Bytes.


def damage(content: bytes, rng: np.random.Generator) -> bytes:
    """Change a few bytes, or cut, repeat or overwrite a piece."""
    data = bytearray(content)
    for _ in range(rng.integers(1, 4)):
        if len(data) < 16:
            break
        at = int(rng.integers(len(data) - 8))
        size = int(rng.integers(1, 1 + min(64, len(data) - at)))
        choice = rng.integers(6)
        if choice == 0:
            data[at] ^= 1 << rng.integers(8)
        elif choice == 1:
            value = INTERESTING[rng.integers(len(INTERESTING))]
            width = int(rng.choice([1, 2, 4, 8]))
            data[at : at + width] = (value % 256**width).to_bytes(width, "little")
        elif choice == 2:
            data[at : at + size] = rng.bytes(size)
        elif choice == 3:
            del data[at : at + size]
        elif choice == 4:
            data[at:at] = data[at : at + size]
        else:
            del data[at:]
    return bytes(data)


def damage_numbers(content: bytes, rng: np.random.Generator) -> bytes:
    """Change one of the whole numbers by which an Arrow file describes itself."""
    values = np.frombuffer(content[: len(content) // 4 * 4], np.int32)
    places = np.flatnonzero((values > 0) & (values < 200))
    changed = values.copy()
    at = rng.choice(places)
    changed[at] = rng.choice([0, 1, changed[at] - 1, changed[at] + 1, 2 * changed[at]])
    return changed.tobytes() + content[changed.nbytes :]


# Text.


def damage_text(content: bytes, rng: np.random.Generator) -> bytes:
    """Replace some fields of a table by odd ones."""
    between = "\t" if b"\t" in content else ","
    lines = [line.split(between) for line in content.decode().split("\n")]
    for _ in range(rng.integers(1, 6)):
        line = lines[rng.integers(len(lines))]
        # More often in the first columns, which are text: other numbers are soon refused.
        width = len(line) if rng.random() < 0.4 else min(3, len(line))
        line[rng.integers(width)] = WORDS[rng.integers(len(WORDS))]
    return "\n".join(between.join(line) for line in lines).encode()


def damage_quotes(content: bytes, rng: np.random.Generator) -> bytes:
    """Drop some quotes, and put others where there were none."""
    data = bytearray(content)
    for _ in range(rng.integers(1, 4)):
        places = [i for i, byte in enumerate(data) if byte == ord('"')]
        at = int(rng.choice(places)) if places else 0
        choice = rng.random()
        if choice < 0.5:
            del data[at : at + 1]
        elif choice < 0.8:  # within text
            at = max(0, at - int(rng.integers(8)))
            data[at:at] = b'"'
        else:
            starts = [i + 1 for i, byte in enumerate(data) if byte in b",\t\n"]
            at = int(rng.choice(starts))
            data[at:at] = b'"'
    return bytes(data)


def damage_json(content: bytes, rng: np.random.Generator) -> bytes:
    """Replace, drop or add values of some lines of JSON, nested ones too."""
    lines = content.decode().split("\n")
    for _ in range(rng.integers(1, 4)):
        number = int(rng.integers(len(lines)))
        try:
            record = json.loads(lines[number])
        except ValueError:
            continue
        spoil_value(record, rng)
        lines[number] = json.dumps(record)
    return "\n".join(lines).encode()


def spoil_value(value: Any, rng: np.random.Generator) -> None:
    """Change one entry of an object or a list, or of one that is nested in it."""
    if not isinstance(value, dict | list) or not value:
        return
    keys: list[Any] = sorted(value) if isinstance(value, dict) else [*range(len(value))]
    key = keys[rng.integers(len(keys))]
    if isinstance(value[key], dict | list) and value[key] and rng.random() < 0.8:
        spoil_value(value[key], rng)
    elif isinstance(value, dict) and rng.random() < 0.2:
        del value[key]
    else:
        value[key] = VALUES[rng.integers(len(VALUES))]


# What a format holds.


def damage_arrays(path: Path, target: Path, rng: np.random.Generator) -> None:
    """Replace an array of an .npz file by one of another kind, or let it claim more than it has."""
    with np.load(path) as stored:
        arrays = dict(stored)
    odd_text = np.array(["ant", "bee", "cow"])
    odd_text.view(np.uint32)[rng.integers(9)] = rng.choice([0x110000, 0x7FFFFFFF, 0xD800])
    odd = [
        np.full((N_ROWS, 3), "1"),
        odd_text,
        np.empty((0, 2**31), np.float32),
        np.zeros(N_ROWS, "M8[s]"),
        np.zeros(N_ROWS, [("a", int)]),
        np.full((N_ROWS, 3), np.nan),
        np.array(2**31),
        np.array(2 * 10**6),
        np.zeros((N_ROWS, 2), int),
    ]
    for _ in range(rng.integers(1, 3)):
        name = str(rng.choice(["proba", "classes", "labels", "logits", "indices", "n_classes"]))
        arrays[name] = odd[rng.integers(len(odd))]
    if rng.random() < 0.5:
        arrays.pop("classes", None)
    np.savez(target, **arrays)


def forge(path: Path, target: Path, rng: np.random.Generator) -> None:
    """Change what a model says, with a digest that fits, as an attacker would."""
    content, tensors = read_content(path)
    odd = [None, -1, 0, 10**12, 0.5, "x", [], {}, {"float": "nan"}, {"list": [1]}, True]
    odd += [
        {"dict": [[1, 2]]},
        {"record": "Verdict", "fields": {}},
        {"tensor": "prior_", "fortran": True},
    ]
    for _ in range(rng.integers(1, 3)):
        record = content[str(rng.choice(["settings", "state"]))]
        key = str(rng.choice(sorted(record)))
        if isinstance(record[key], dict) and rng.random() < 0.3:
            record = record[key]
            key = str(rng.choice(sorted(record)))
        record[key] = odd[rng.integers(len(odd))]
    for name, array in tensors.items():
        if rng.random() < 0.3 and array.dtype.kind == "f":
            changed = array.copy()
            value = rng.choice([np.nan, np.inf, -1.0, 2.0, 0.0])
            changed.flat[rng.integers(max(1, changed.size))] = value
            tensors[name] = changed if rng.random() < 0.5 else changed[: len(changed) // 2].copy()
    write_content(target, content, tensors)


def repacked(change: Change) -> Change:
    """A change of what is compressed."""

    def changed(content: bytes, rng: np.random.Generator) -> bytes:
        return gzip.compress(change(gzip.decompress(content), rng), mtime=0)

    return changed


WAYS: dict[str, list[Change]] = {
    ".csv": [damage_text, damage_quotes],
    ".tsv": [damage_text, damage_quotes],
    ".csv.gz": [repacked(damage_text), repacked(damage_quotes)],
    ".jsonl": [damage_text, damage_json],
    ".jsonl.gz": [repacked(damage_json)],
    ".arrow": [damage_numbers],
    ".ipc": [damage_numbers],
}


def spoil(path: Path, suffix: str, rng: np.random.Generator) -> bytes:
    """Return the bytes of a file, spoilt in one of the ways that its format allows."""
    ways = [damage, *WAYS.get(suffix, [])]
    return ways[rng.integers(len(ways))](path.read_bytes(), rng)

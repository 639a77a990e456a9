"""Damaged files, odd options and hard numbers: the command line answers, or refuses in a sentence.

``python -m tests.fuzzing WHAT SEED FIRST COUNT FOLDER`` runs one series in a process of its own, so
that a crash is noticed; FOLDER then holds the case and its number. Same seed, same cases.
"""

from __future__ import annotations

import gzip
import io
import json
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv, feather, parquet

from altnorm import AlternatingNormalizer, InputError, alternating_normalization, load
from altnorm._base.persistence import read_content, write_content
from altnorm.cli._run import run
from altnorm.io.predictions import read_predictions

NAMES = ["ant", "bee, or wasp", '"cow"']
SECONDS = 20  # after which a case counts as hanging
INTERESTING = [0, 1, -1, 127, 255, 2**15, 2**31 - 1, -(2**31), 2**32 - 1, 2**62, -(2**62)]
WORDS = ["nan", "inf", "-1", "1e400", "", '"', ",", "0", "1", "-0.0", "1e-320", "x", "\r", "\x00"]
WORDS += ['"x', "=1+1", "z" * 100_000, "9" * 5000, "NaN", "[1]", '{"a": [1]}']
MESSAGE = 2000  # characters that a refusal may have


def soundness(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Some sound predictions and their labels."""
    codes = rng.integers(3, size=40)
    scores = rng.normal(size=(40, 3)) + np.eye(3)[codes] + [1.0, 0, 0]
    proba = np.exp(scores)
    return proba / proba.sum(axis=1, keepdims=True), codes


def write_sound(folder: Path, rng: np.random.Generator) -> None:
    """Write one sound file of each format, and models."""
    proba, codes = soundness(rng)
    labels = [NAMES[code] for code in codes]
    columns = {"id": np.arange(40), "text": [f"row, {i}" for i in range(40)], "y": labels}
    table = pa.table(columns | dict(zip(NAMES, proba.T.copy(), strict=True)))
    np.savez_compressed(folder / "sound.npz", proba=proba, classes=NAMES, labels=labels)
    np.save(folder / "sound.npy", proba)
    parquet.write_table(table, folder / "sound.parquet")
    feather.write_feather(table, folder / "sound.feather")
    with pa.ipc.new_file(folder / "sound.arrow", table.schema) as writer:
        writer.write_table(table, max_chunksize=15)
    with pa.ipc.new_stream(folder / "sound.ipc", table.schema) as writer:
        writer.write_table(table)
    csv.write_csv(table, folder / "sound.csv")
    (folder / "sound.csv.gz").write_bytes(gzip.compress((folder / "sound.csv").read_bytes()))
    lines = [json.dumps(row) for row in table.to_pylist()]
    (folder / "sound.jsonl").write_text("\n".join(lines))
    scores = [
        {"y": y, "scores": dict(zip(NAMES, row, strict=True))}
        for y, row in zip(labels, np.log(proba).tolist(), strict=True)
    ]
    (folder / "scores.jsonl").write_text("\n".join(map(json.dumps, scores)))
    (folder / "log.jsonl").write_text("\n".join(map(json.dumps, logged(proba, codes))))
    for name, settings in (("one", {}), ("deep", {"depth": 3, "alpha": 2.0})):
        normalizer = AlternatingNormalizer(reference="all", threshold=0.3, **settings).fit(proba)
        normalizer.save(folder / f"{name}-unnamed.model", force=True)
        normalizer.classes_ = np.array(NAMES)
        normalizer.save(folder / f"{name}.model", force=True)


def logged(proba: np.ndarray, codes: np.ndarray) -> list[dict[str, object]]:
    """The same predictions as lm-evaluation-harness would log them."""
    asked = {f"gen_args_{j}": {"arg_0": "?", "arg_1": name} for j, name in enumerate(NAMES)}
    return [
        {
            "doc_id": i,
            "target": str(code),
            "arguments": asked,
            "filtered_resps": [[str(value), "False"] for value in np.log(row)],
            "filter": "none",
        }
        for i, (row, code) in enumerate(zip(proba, codes, strict=True))
    ]


def damage(whole: bytes, rng: np.random.Generator) -> bytes:
    """Change a few bytes, or cut, repeat or overwrite a piece."""
    data = bytearray(whole)
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


def damage_text(whole: bytes, rng: np.random.Generator) -> bytes:
    """Replace some fields of a table by odd ones."""
    lines = [line.split(",") for line in whole.decode().split("\n")]
    for _ in range(rng.integers(1, 6)):
        line = lines[rng.integers(len(lines))]
        line[rng.integers(len(line))] = WORDS[rng.integers(len(WORDS))]
    return "\n".join(",".join(line) for line in lines).encode()


def damage_counts(whole: bytes, rng: np.random.Generator) -> bytes:
    """Change one of the places where a Parquet file says how many rows or values there are."""
    said, places, at = count_bytes(40), [], -1
    while (at := whole.find(said, at + 1)) >= 0:
        places.append(at)
    at = int(rng.choice(places))
    return whole[:at] + count_bytes(int(rng.choice([0, 1, 30, 39, 41, 63]))) + whole[at + 1 :]


def count_bytes(count: int) -> bytes:
    """How a Parquet file writes a count below 64."""
    return bytes([2 * count])


def damage_arrays(path: Path, target: Path, rng: np.random.Generator) -> None:
    """Replace an array of an .npz file by one of another kind, or let it claim more than it has."""
    with np.load(path) as stored:
        arrays = dict(stored)
    odd_text = np.array(["ant", "bee", "cow"])
    odd_text.view(np.uint32)[rng.integers(9)] = rng.choice([0x110000, 0x7FFFFFFF, 0xD800])
    odd = [
        np.full((40, 3), "1"),
        odd_text,
        np.empty((0, 2**31), np.float32),
        np.zeros(40, "M8[s]"),
        np.zeros(40, [("a", int)]),
        np.full((40, 3), np.nan),
        np.array(2**31),
        np.zeros((40, 2), int),
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


@contextmanager
def hurry() -> Iterator[None]:
    """Raise if the block takes too long."""

    def late(*_: object) -> None:
        raise TimeoutError(f"a case took more than {SECONDS} s")

    signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)


def command(*arguments: object) -> int:
    """Run a command; raise unless it is done, or refuses its input in one sentence."""
    out, errors = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(errors), hurry():
        status = run([str(argument) for argument in arguments])
    said = [line for line in errors.getvalue().splitlines() if not line.startswith("Warning: ")]
    if status == 2:
        assert len(said) == 1, said
        assert said[0].startswith("Error: "), said
        assert len(said[0]) < MESSAGE, said[0][:300]
    else:
        assert status in (0, 1), errors.getvalue()
        assert not said, said
    return status


def check_output(path: Path, normalizer_classes: list[str] | None) -> None:
    """Raise unless what was written are probabilities."""
    proba = read_predictions(path, classes=normalizer_classes).proba
    assert np.isfinite(proba).all()
    np.testing.assert_allclose(proba.sum(axis=1), 1, atol=1e-3)


def file_case(suffix: str, stem: str = "sound") -> Callable[[Path, np.random.Generator], None]:
    """A damaged file of predictions, adjusted and evaluated."""
    is_text = suffix in (".csv", ".jsonl")

    def case(folder: Path, rng: np.random.Generator) -> None:
        whole = (folder / f"{stem}{suffix}").read_bytes()
        change = damage_text if is_text and rng.random() < 0.6 else damage
        if suffix == ".parquet" and rng.random() < 0.3:
            change = damage_counts
        path = folder / f"case{suffix}"
        path.write_bytes(change(whole, rng))
        if suffix == ".npz" and rng.random() < 0.4:
            damage_arrays(folder / "sound.npz", path, rng)
        unnamed = suffix == ".npy"
        model = folder / f"{rng.choice(['one', 'deep'])}{'-unnamed' if unnamed else ''}.model"
        output = folder / f"output{suffix}"
        if command("apply", model, path, "-o", output, "--force", "-j", 1) == 0:
            _check_no_row_lost(path, output, change)
            names = [str(name) for name in load(model).classes_]
            if suffix not in (".npz", ".npy") or len(read_predictions(output).proba):
                _check_if_rows(output, names)
        label = [] if suffix in (".npz", ".npy") or stem == "log" else ["--label", "y"]
        page = folder / "output.html"
        command("check", path, "--model", model, "--report", page, "--force", *label)

    return case


def _check_no_row_lost(path: Path, output: Path, change: Callable[..., bytes]) -> None:
    """Raise if a file that only lies about its counts comes out with fewer rows."""
    if change is damage_counts and path.suffix == ".parquet":
        assert parquet.read_table(output).num_rows == 40


def _check_if_rows(output: Path, names: list[str]) -> None:
    try:
        check_output(output, names)
    except InputError as error:
        if "at least one row" not in str(error):
            raise


def model_case(folder: Path, rng: np.random.Generator) -> None:
    """A damaged or forged model, applied to sound predictions."""
    sound = folder / f"{rng.choice(['one', 'deep'])}.model"
    path = folder / "case.model"
    if rng.random() < 0.4:
        path.write_bytes(damage(sound.read_bytes(), rng))
    else:
        forge(sound, path, rng)
    output = folder / "output.parquet"
    if command("apply", path, folder / "sound.parquet", "-o", output, "--force", "-j", 1) == 0:
        check_output(output, NAMES)


OPTIONS = {
    "--jobs": ["0", "-1", "1", "-7", "x", "99999999"],
    "--families": ["bias", "alternating,bias", "x", "", ",", "matrix, bias"],
    "--costs": ["sound.parquet", "nothing.csv", ""],
    "--cv": ["0", "1", "2", "40", "41", "1000000", "-3"],
    "--significance": ["nan", "-1", "0", "2", "0.05", "inf"],
    "--scoring": ["accuracy", "nonsense", "f1", "neg_log_loss", "roc_auc", "fbeta=2", ""],
    "--prior": ["uniform", "shrunk", "x", ""],
    "--label": ["y", "ant", "id", "text", "", "[/]"],
    "--prefix": ["", "a", "zzz", "["],
    "--other": ["ant", "id", "nothing", "y"],
    "--multilabel": ["pairs", "labelwise", "x"],
}


def options_case(folder: Path, rng: np.random.Generator) -> None:
    """Sound predictions with odd options."""
    arguments = ["--families", "bias", "--label", "y", "--jobs", "1"]
    for name in rng.choice(list(OPTIONS), size=rng.integers(1, 4), replace=False):
        arguments += [str(name), str(rng.choice(OPTIONS[name]))]
    output = folder / "tuned.model"
    command("tune", folder / "sound.parquet", "-o", output, "--force", *arguments)


def kernel_case(folder: Path, rng: np.random.Generator) -> None:
    """Rows with zeros and tiny numbers, any exponent: probabilities come out, or a refusal."""
    m = int(rng.choice([2, 3, 10]))
    n = int(rng.choice([1, 5, 300, 6000 // m]))
    dtype = [np.float64, np.float32][rng.integers(2)]
    rows = rng.dirichlet(np.full(m, rng.choice([1.0, 0.05, 0.005])), n + 4)
    rows = np.nan_to_num(rows).astype(dtype)
    rows[rows.sum(axis=1) == 0, 0] = 1
    rows /= rows.sum(axis=1, keepdims=True)
    depth = int(rng.choice([1, 2, 3, 10]))
    settings = {
        "alpha": float(np.exp(rng.uniform(-20, 75) / depth)),
        "depth": depth,
        "smoothing": float(rng.choice([0, 0.5, 1e-10])),
        "reference_weight": None if rng.random() < 0.5 else np.exp(rng.uniform(-90, 50, size=n)),
        "prior": None if rng.random() < 0.5 else rng.dirichlet(np.ones(m)),
    }
    np.savez(folder / "case.npz", rows=rows, **{k: v for k, v in settings.items() if v is not None})
    try:
        after = alternating_normalization(rows[:4], rows[4:], **settings)
    except InputError:
        return
    assert np.isfinite(after).all()
    np.testing.assert_allclose(after.sum(axis=1), 1, atol=1e-4)
    assert not after[rows[:4] == 0].any()
    alone = alternating_normalization(rows[2:3], rows[4:], **settings)
    np.testing.assert_allclose(alone[0], after[2], atol=1e-4)


CASES: dict[str, Callable[[Path, np.random.Generator], None]] = {
    **{name: file_case(f".{name}") for name in ("npz", "npy", "csv", "parquet")},
    **{name: file_case(f".{name}") for name in ("feather", "arrow", "ipc", "csv.gz", "jsonl")},
    "scores": file_case(".jsonl", "scores"),
    "log": file_case(".jsonl", "log"),
    "model": model_case,
    "options": options_case,
    "kernel": kernel_case,
}


def series(what: str, seed: int, first: int, count: int, folder: Path) -> None:
    """Run cases; the number of each is written down before, so that it is known if it crashes."""
    write_sound(folder, np.random.default_rng(0))
    for number in range(first, first + count):
        (folder / "number").write_text(str(number))
        CASES[what](folder, np.random.default_rng([seed, number]))


if __name__ == "__main__":
    series(sys.argv[1], *map(int, sys.argv[2:5]), Path(sys.argv[5]))

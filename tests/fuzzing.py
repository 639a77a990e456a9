"""Spoilt files and odd options: every command answers, or refuses in a sentence.

``python -m tests.fuzzing WHAT SEED FIRST COUNT FOLDER`` runs one series in a process of its own, so
that a crash is noticed; FOLDER then holds the case and its number. Same seed, same cases. It prints
how often each command answered (0) and refused (2). Files are spoilt by tests/mutations.py.

What is asserted of every case: no traceback, no hang, not much memory; a refusal is one short
sentence; and no row that came through unharmed is missing from the output unless that was told.
"""

from __future__ import annotations

import gzip
import io
import json
import re
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from typer.main import get_command

import altnorm
from altnorm import InputError
from altnorm.cli._run import make_app, run
from altnorm.io.formats import Layout
from altnorm.io.predictions import read_predictions
from altnorm.io.tables import read_table
from benchmarks.harness import peak_gigabytes
from tests import mutations
from tests.commands import QUICK
from tests.mutations import LABEL, N_ROWS, NAMES

SECONDS, WALL_SECONDS = 60, 600  # of computing, or of waiting, after which a case counts as hanging
MESSAGE = 2000  # characters that a refusal may have
MEMORY = 2.1  # GB that the process may ever have taken

Case = Callable[[Path, np.random.Generator], None]
COUNTS: Counter[str] = Counter()
"""How often each command ended with each status."""


class Hanging(BaseException):
    """A case takes too long; no error that the command line could tell in a sentence."""


class Ran(NamedTuple):
    """What a command did."""

    status: int
    warnings: list[str]


@contextmanager
def hurry() -> Iterator[None]:
    """Raise if the block takes too long."""

    def late(*_: object) -> None:
        raise Hanging(f"a case took more than {SECONDS} s")

    for number in (signal.SIGVTALRM, signal.SIGALRM):
        signal.signal(number, late)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    signal.alarm(WALL_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.alarm(0)


def command(*arguments: object) -> Ran:
    """Run a command; raise unless it is done, or refuses its input in one sentence."""
    out, errors = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(errors), hurry():
        status = run([str(argument) for argument in arguments])
    lines = errors.getvalue().splitlines()
    warnings = [line for line in lines if line.startswith("Warning: ")]
    refusals = [line for line in lines if not line.startswith("Warning: ")]
    COUNTS[f"{arguments[0]} {status}"] += 1
    if status == 2:
        assert len(refusals) == 1, refusals
        assert refusals[0].startswith("Error: "), refusals
        assert len(refusals[0]) < MESSAGE, refusals[0][:300]
    else:
        assert status == 0 or (status == 1 and "--strict" in arguments), errors.getvalue()
        assert not refusals, refusals
    assert all(len(line) < MESSAGE for line in warnings), warnings
    return Ran(status, warnings)


# Files of predictions.


def file_case(suffix: str, stem: str = "sound") -> Case:
    """A spoilt file of predictions, adjusted, and given to one more command."""

    def case(folder: Path, rng: np.random.Generator) -> None:
        path = folder / f"case{suffix}"
        path.write_bytes(mutations.spoil(folder / f"{stem}{suffix}", suffix, rng))
        if suffix == ".npz" and rng.random() < 0.4:
            mutations.damage_arrays(folder / "sound.npz", path, rng)
        unnamed = "-unnamed" if suffix == ".npy" else ""
        model = folder / f"{rng.choice(['one', 'deep', 'tuned'])}{unnamed}.model"
        output = folder / f"output{suffix}"
        ran = command("apply", model, path, "-o", output, "--force", "-j", 1)
        if ran.status == 0:
            check_output(output, [str(name) for name in altnorm.load(model).classes_])
            check_no_row_lost(path, folder / f"{stem}{suffix}", output, ran.warnings)
        has_label = suffix in (".npz", ".npy") or stem == "log"
        one_more(path, folder, rng, unnamed, [] if has_label else ["--label", LABEL])

    return case


def one_more(
    path: Path, folder: Path, rng: np.random.Generator, unnamed: str, label: list[str]
) -> None:
    """Give a file to one of the other commands that read predictions."""
    model, tuned = (folder / f"{name}{unnamed}.model" for name in ("one", "tuned"))
    page, written = folder / "output.html", folder / "output.model"
    choice = rng.integers(8)
    if choice <= 2:
        command("check", path, "--model", model, "--report", page, "--force", *label)
    elif choice == 3:
        assume = ["--assume", "label-shift", "-o", written, "--force"]
        command("adapt", tuned, path, *(assume if rng.random() < 0.5 else []))
    elif choice <= 5:
        asked = folder / "output-ask.csv"
        if command("ask", model, path, "-o", asked, "--force", "-n", 5).status == 0:
            command("judge", model, asked)
    elif choice == 6 or rng.random() < 0.8:
        command("tune", path, "-o", written, "--force", *QUICK, *label)
    else:
        files = ["-o", written, "--report", page, "--force", "--jobs", 1]
        command("check", path, path, *files, *label)


def check_output(path: Path, names: list[str]) -> None:
    """Raise unless what was written are probabilities; a table may have no rows."""
    try:
        proba = read_predictions(path, classes=names).proba
    except InputError as error:
        if "at least one row" not in str(error):
            raise
        return
    assert np.isfinite(proba).all()
    np.testing.assert_allclose(proba.sum(axis=1), 1, atol=1e-3)


def check_no_row_lost(path: Path, sound: Path, output: Path, warnings: list[str]) -> None:
    """Raise if a row that the damage has not touched is not in the output, and nothing told so."""
    if any(re.search("within quotes|where it ends|several filters", line) for line in warnings):
        return
    suffix = "".join(path.suffixes)
    if suffix not in mutations.TEXT_FILES:
        is_array = suffix in (".npz", ".npy")
        n = len(read_predictions(output, Layout()).proba if is_array else read_table(output))
        assert n == N_ROWS, f"{n} of {N_ROWS} rows"
        return
    intact = Counter(lines_of(path)) & Counter(lines_of(sound)[suffix[:4] in (".csv", ".tsv") :])
    wanted = Counter(identity(line) for line in intact.elements())
    table = read_table(output, text=["id"])
    key = next((name for name in ("id", "doc_id") if name in table.schema.names), None)
    if key is None:  # its name is damaged
        assert table.num_rows >= wanted.total()
        return
    rows_found = Counter(str(value).removesuffix(".0") for value in table[key].to_pylist())
    assert not wanted - rows_found, f"rows {sorted(wanted - rows_found)} are lost"


def lines_of(path: Path) -> list[bytes]:
    """Lines of a text file, which may be compressed."""
    content = path.read_bytes()
    content = gzip.decompress(content) if path.suffix == ".gz" else content
    return [line for line in re.split(rb"\r\n|\r|\n", content) if line]


def identity(line: bytes) -> str:
    """The identifier of a row of a sound file."""
    if line.startswith(b"{"):
        record = json.loads(line)
        return str(record.get("id", record.get("doc_id")))
    return re.split(rb"[,\t]", line)[0].decode()


# Models, graphs, questions and small tables.


def model_case(folder: Path, rng: np.random.Generator) -> None:
    """A damaged or forged model, given to any command that takes one."""
    sound = folder / f"{rng.choice(['one', 'deep', 'tuned'])}.model"
    path, table = folder / "case.model", folder / "sound.parquet"
    if rng.random() < 0.4:
        path.write_bytes(mutations.damage(sound.read_bytes(), rng))
    else:
        mutations.forge(sound, path, rng)
    output = folder / "output.parquet"
    if command("apply", path, table, "-o", output, "--force", "-j", 1).status == 0:
        check_output(output, NAMES)
    page, label = folder / "output.html", ["--label", LABEL]
    commands = [
        ["info", path],
        ["export", path, "-o", folder / "output.onnx", "--force"],
        ["adapt", path, table],
        ["ask", path, table, "-o", folder / "output-ask.csv", "--force"],
        ["check", table, "--model", path, *label, "--report", page, "--force"],
    ]
    command(*commands[rng.integers(5)])


def graph_case(folder: Path, rng: np.random.Generator) -> None:
    """A model appended to a spoilt ONNX graph."""
    path = folder / "case.onnx"
    mutations.write_graph(path, axis=int(rng.choice([-1, 1, 0, 17, -3, 2**31 - 1])))
    if rng.random() < 0.8:
        path.write_bytes(mutations.damage(path.read_bytes(), rng))
    model = folder / f"{rng.choice(['one', 'deep', 'tuned'])}.model"
    more = ["--label-output", str(rng.choice(["label", "", "scores"]))] * int(rng.integers(2))
    command("export", model, "-o", folder / "output.onnx", "--append-to", path, "--force", *more)


def questions_case(folder: Path, rng: np.random.Generator) -> None:
    """Questions that a person, a program or an adversary has changed."""
    model, pool, path = folder / "one.model", folder / "sound.csv", folder / "case.csv"
    command("ask", model, pool, "-o", path, "--force", "-n", 12, "--label", LABEL)
    questions = pd.read_csv(path, dtype=str, keep_default_na=False)
    questions.loc[: rng.integers(1, 9), "label"] = str(rng.choice(NAMES))
    if rng.random() < 0.6:
        edit_questions(questions, rng)
        questions.to_csv(path, index=False, sep=str(rng.choice([",", ";"])))
    else:
        questions.to_csv(path, index=False)
        change = mutations.damage if rng.random() < 0.5 else mutations.damage_text
        path.write_bytes(change(path.read_bytes(), rng))
    command("judge", model, path)
    command("ask", model, pool, "-o", path, "-n", 3, "--label", LABEL)


def edit_questions(questions: pd.DataFrame, rng: np.random.Generator) -> None:
    """Change numbers that the answer rests on, or repeat a question."""
    if rng.random() < 0.2:
        questions.loc[1] = questions.loc[0]
        return
    name = str(rng.choice(["ask", "row", "candidate_1", "candidate_2", "label", "pool"]))
    rows = slice(None) if rng.random() < 0.5 else int(rng.integers(len(questions)))
    if name == "pool":
        part = str(rng.choice(["rows", "changed", "total", "seed", "lines", "model"]))
        odd = f"{part}={rng.choice(['0', '1', '9' * 5000, '-1', '1e9', 'x'])}"
        questions.loc[rows, name] = re.sub(rf"{part}=\S+", odd, questions[name].iloc[0])
    else:
        odd_words = ["", "0", "-1", "1" * 5000, "x", "neither", "=1+1", "ant", "nan", "1.0"]
        questions.loc[rows, name] = str(rng.choice(odd_words))


def costs_case(folder: Path, rng: np.random.Generator) -> None:
    """A spoilt table of costs, or class balance."""
    name = str(rng.choice(["costs.csv", "costs.json", "balance.csv"]))
    path = folder / f"case-{name}"
    damage_form = mutations.damage_json if name.endswith("json") else mutations.damage_text
    damage = [mutations.damage, damage_form][rng.integers(2)]
    path.write_bytes(damage((folder / name).read_bytes(), rng))
    option = "--prior" if name == "balance.csv" else "--costs"
    tune = ["tune", folder / "sound.parquet", "-o", folder / "output.model", "--force"]
    command(*tune, *QUICK, "--label", LABEL, option, path)


# Options.

OPTIONS = {
    "--jobs": ["0", "-1", "1", "-7", "x", "99999999"],
    "--families": ["bias", "alternating,bias", "x", "", ",", "matrix, bias"],
    "--costs": ["sound.parquet", "nothing.csv", ""],
    "--cv": ["0", "1", "2", "40", "41", "1000000", "-3"],
    "--significance": ["nan", "-1", "0", "2", "0.05", "inf"],
    "--scoring": ["accuracy", "nonsense", "f1", "neg_log_loss", "roc_auc", "fbeta=2", "fbeta=", ""],
    "--prior": ["uniform", "shrunk", "x", ""],
    "--label": ["y", "ant", "id", "text", "", "[/]"],
    "--label-prefix": ["y", "", "z_"],
    "--labels": ["sound.csv", "sound.npz", "costs.json", "nothing.csv", ""],
    "--id": ["id", "y", "nothing", "text.a", ""],
    "--classes": ["ant,bee,cow", "ant", "ant,ant", "", ",", "cow, bee,ant"],
    "--group": ["id", "text", "y", "ant", "nothing", ""],
    "--prefix": ["", "a", "zzz", "["],
    "--other": ["ant", "id", "nothing", "y"],
    "--multilabel": ["pairs", "labelwise", "x"],
    "--format": ["csv", "parquet", "npz", "lm-eval", "x", ""],
    "--text": ["text", "id", "y", "nothing", "text.a", ""],
    "--number": ["0", "1", "-1", "1000000", "x"],
    "--seed": ["0", "-1", "4294967296", "x"],
    "--assume": ["label-shift", "x"],
    "--dtype": ["float32", "float64", "int8", ""],
    "--prediction": ["class", "id", "ant", ""],
    "--label-output": ["label", ""],
}
FLAGS = ("--strict", "--json", "--insist", "--logits", "--no-labels")
FLAGS += ("--spreadsheet-safe", "--no-prediction", "--card")
CASES_OF_OPTIONS: dict[str, tuple[str, ...]] = {
    "tune": ("sound.parquet", "-o", "output.model", *QUICK, "--label", "y", "--force"),
    "check": ("sound.csv", "sound.csv", "-o", "output.model", "--label", "y", "--force", "-j", "1"),
    "apply": ("one.model", "sound.csv", "-o", "output.csv", "--force", "-j", "1"),
    "adapt": ("tuned.model", "sound.csv"),
    "ask": ("one.model", "sound.csv", "-o", "output-ask.csv", "--force"),
    "judge": ("one.model", "output-ask.csv"),
    "export": ("one.model", "-o", "output.onnx", "--force"),
    "info": ("one.model",),
    "demo": ("-j", "1", "-o", "demo.html"),
}
SELDOM = {"demo": 0.01, "check": 0.05}  # those that take seconds


def options_case(folder: Path, rng: np.random.Generator) -> None:
    """Sound files with odd options, of every command."""
    names = list(CASES_OF_OPTIONS)
    weight = np.array([SELDOM.get(name, 0.13) for name in names])
    name = str(rng.choice(names, p=weight / weight.sum()))
    files = {path.name for path in folder.iterdir()}
    arguments = [
        str(folder / word) if word in files or word.startswith(("output", "demo")) else word
        for word in CASES_OF_OPTIONS[name]
    ]
    commands: Any = get_command(make_app())
    options = {text for option in commands.commands[name].params for text in option.opts}
    choices = [option for option in (*OPTIONS, *FLAGS) if option in options]
    choices += ["--odd"] if rng.random() < 0.1 else []
    n_odd = min(int(rng.integers(1, 4)), len(choices))
    for option in rng.choice(choices, size=n_odd, replace=False):
        values = OPTIONS.get(str(option))
        arguments += [str(option), *([str(rng.choice(values))] if values else [])]
    if name == "check":
        arguments += ["--report", str(folder / "output.html")]
    if rng.random() < 0.1 and arguments[0] != "-j":
        arguments[0] = str(folder / "pipe.csv")
    command(name, *arguments)


# All of them.

FORMATS = ("npz", "npy", "csv", "tsv", "csv.gz", "jsonl", "jsonl.gz", "parquet", "feather")
CASES: dict[str, Case] = {
    **{name: file_case(f".{name}") for name in (*FORMATS, "arrow", "ipc")},
    "scores": file_case(".jsonl", "scores"),
    "log": file_case(".jsonl", "log"),
    "model": model_case,
    "graph": graph_case,
    "questions": questions_case,
    "costs": costs_case,
    "options": options_case,
}


def series(what: str, seed: int, first: int, count: int, folder: Path) -> None:
    """Run cases; the number of each is written down before, so that it is known if it crashes."""
    mutations.write_sound(folder, np.random.default_rng(0))
    for number in range(first, first + count):
        (folder / "number").write_text(str(number))
        CASES[what](folder, np.random.default_rng([seed, number]))
        assert peak_gigabytes() < MEMORY, f"{peak_gigabytes():.1f} GB of memory"
    print(json.dumps(COUNTS))


if __name__ == "__main__":
    series(sys.argv[1], *map(int, sys.argv[2:5]), Path(sys.argv[5]))

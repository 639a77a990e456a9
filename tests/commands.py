"""What the tests of the command line run, on which files, and how they read what it says."""

import json

import numpy as np
import pandas as pd

from altnorm.cli._run import run

CLASSES = np.array(["ant", "bee", "cow"])
QUICK = ["--families", "bias", "--jobs", "1"]  # a second less


def draw(n, seed, bias=(2.0, 0.0, 0.0)):
    rng = np.random.default_rng(seed)
    codes = rng.integers(3, size=n)
    scores = rng.normal(size=(n, 3)) + 1.5 * np.eye(3)[codes] + np.asarray(bias)
    proba = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    return proba, codes


def table(n, seed, **options):
    proba, codes = draw(n, seed, **options)
    columns = dict(zip(CLASSES, proba.T, strict=True))
    return pd.DataFrame({"id": np.arange(n), **columns, "y": CLASSES[codes], "note": "a, b"})


def write_log(path, data, options=3, doc=lambda i, target: {"text": f"t{i}"}):
    """A table as a sample log, in which every tenth question has another number of options."""
    lines = []
    for i, row in enumerate(np.log(data[CLASSES].to_numpy())):
        shown = row[:options] if i % 10 == 0 else row
        target = min(CLASSES.tolist().index(data["y"][i]), len(shown) - 1)
        answers = [[value, False] for value in shown]
        line = {"doc_id": i, "doc": doc(i, target), "target": target, "filtered_resps": answers}
        lines.append(json.dumps(line) + "\n")
    path.write_text("".join(lines))


def answered(i, values, target, *, texts=("A", "B", "C"), as_text=True, **more):
    """A line of a sample log as lm-evaluation-harness 0.4 writes it (evaluation_tracker.py)."""
    answers = [
        [str(v), str(v == max(values))] if as_text else [v, v == max(values)] for v in values
    ]
    return {
        "doc_id": i,
        "doc": {"question": f"number {i}"},
        "target": target,
        "arguments": {
            f"gen_args_{j}": {"arg_0": f"Question {i}", "arg_1": f" {text}"}
            for j, text in enumerate(texts)
        },
        "resps": [[answer] for answer in answers],
        "filtered_resps": answers,
        "filter": "none",
        "acc": 1.0,
        **more,
    }


def out(capsys):
    return capsys.readouterr().out


def said(capsys, arguments, status=0):
    """Run a command; return what it prints, whatever the terminal's width."""
    capsys.readouterr()
    assert run(arguments) == status
    return " ".join(out(capsys).split())


def told(capsys, arguments):
    """Run a command that must do its work; return the record that it prints."""
    capsys.readouterr()
    assert run(arguments) == 0
    return json.loads(out(capsys))


def refused(capsys, *arguments):
    """Run a command that must fail; return its one sentence."""
    capsys.readouterr()
    assert run([str(a) for a in arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    lines = captured.err.strip().splitlines()
    assert len(lines) == 1, lines
    assert lines[0].startswith("Error: ")
    assert lines[0].endswith((".", "'"))
    return lines[0]

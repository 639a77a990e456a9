"""Predictions that studies read; and what the page of a study mentions must lie beside it."""

import csv

import numpy as np


def draw_logits(n, seed, bias, signal=2.0, noise=1.5):
    """Scores of a classifier that favours some classes, and labels."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(len(bias), size=n)
    scores = signal * np.eye(len(bias))[labels] + noise * rng.normal(size=(n, len(bias)))
    return scores + np.asarray(bias), labels


def draw_tags(n, seed, m=4):
    """Log-odds of several labels per row, and labels."""
    rng = np.random.default_rng(seed)
    labels = (rng.random((n, m)) < 0.3).astype(int)
    return 3 * labels - 2.5 + rng.normal(size=labels.shape), labels


def write_classifier(path, validation, test):
    """A file of predictions, from logits and labels of both parts."""
    path.parent.mkdir(exist_ok=True)
    parts = {"val": validation, "test": test}
    kinds = ("logits", "labels")
    arrays = {f"{p}_{k}": a for p, pair in parts.items() for k, a in zip(kinds, pair, strict=True)}
    np.savez(path, **arrays)


def read_page(folder):
    return (folder / "README.md").read_text(encoding="utf-8")


def check_figures(folder, names):
    """The page shows each figure, and there is something in its file."""
    page = read_page(folder)
    for name in names:
        assert f"({name}.png)" in page
        assert (folder / f"{name}.png").stat().st_size > 1000


def read_table(folder, name, *, finite=True):
    """Rows of a table that the page mentions; there are some, and every number is one."""
    assert f"({name}.csv)" in read_page(folder)
    with (folder / f"{name}.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert rows
    odd = {"nan", "inf"} & {value for row in rows for value in row.values()}
    assert not (finite and odd)
    return rows

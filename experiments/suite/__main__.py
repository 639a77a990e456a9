"""Run every method on every classifier: ``python -m experiments.suite --data FOLDER``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed

import altnorm
from altnorm.comparison import default_methods
from experiments._output import markdown_table, parse_arguments, write_csv
from experiments.suite.figure import draw_gains
from experiments.suite.files import Classifier, read_classifier, suite_paths
from experiments.suite.paper import PaperTuning

TIE = 0.05  # points: a smaller difference counts as none


def methods_for(classifier: Classifier) -> dict[str, Any]:
    """The paper's tuning, ours, and the peers."""
    paper = PaperTuning(multilabel="pairs" if classifier.multilabel else None)
    return {"CAN as published": paper, **default_methods(classifier.multilabel)}


def measure(path: Path, seed: int) -> list[dict[str, Any]]:
    """Gains of all methods on one classifier's test data, in points."""
    classifier = read_classifier(path, seed=seed)
    result = altnorm.compare(
        classifier.val_proba,
        classifier.val_y,
        classifier.test_proba,
        classifier.test_y,
        methods=methods_for(classifier),
    )
    kind = "multi-label" if classifier.multilabel else "single-label"
    return [
        {
            "classifier": classifier.name,
            "kind": kind,
            "classes": classifier.val_proba.shape[1],
            "validation": len(classifier.val_y),
            "base": 100 * result.base,
            "method": row.method,
            "gain": 100 * row.gain,
            "ci_low": 100 * row.ci_low,
            "ci_high": 100 * row.ci_high,
            "p_value": row.p_value,
            "n_fixed": row.n_fixed,
            "n_broken": row.n_broken,
        }
        for row in result
        if row.method != "identity"
    ]


def gain_table(rows: list[dict[str, Any]], kind: str) -> str:
    """One line a classifier, one column a method, and summary lines below."""
    rows = [row for row in rows if row["kind"] == kind]
    methods = list(dict.fromkeys(row["method"] for row in rows))
    names = list(dict.fromkeys(row["classifier"] for row in rows))
    gains = {(row["classifier"], row["method"]): row for row in rows}
    lines = []
    for name in names:
        base = next(row["base"] for row in rows if row["classifier"] == name)
        cells = [_cell(gains[name, method]) for method in methods]
        lines.append([name, f"{base:.2f}", *cells])
    columns = [np.array([gains[name, method]["gain"] for name in names]) for method in methods]
    for label, text in (
        ("**mean gain**", lambda g: f"**{g.mean():+.2f}**"),
        ("**worst**", lambda g: f"**{g.min():+.2f}**"),
        ("**better / worse**", lambda g: f"**{(g > TIE).sum()} / {(g < -TIE).sum()}**"),
    ):
        lines.append([label, "", *(text(column) for column in columns)])
    return markdown_table(["classifier", "base", *methods], lines)


def _cell(row: dict[str, Any]) -> str:
    if row["gain"] == 0 and row["ci_low"] == 0:
        return "0"
    return f"{row['gain']:+.2f} [{row['ci_low']:+.1f}, {row['ci_high']:+.1f}]"


def write_page(rows: list[dict[str, Any]], folder: Path) -> None:
    """Write the table as CSV and as Markdown."""
    write_csv(folder / "suite.csv", {name: [row[name] for row in rows] for name in rows[0]})
    text = f"""# Real classifiers

Gains over the untouched predictions on test data, in points, with 95 % intervals; 0 means that
nothing was changed. Every method was fitted on validation data alone. "CAN as published" takes
the setting with the best score on the validation data themselves (depth 1); "CAN" is
`AlternatingNormalizerCV` with its defaults, "CAN, refined" the same with `refine=True`. Better and
worse count differences of more than {TIE} points. All numbers: [suite.csv](suite.csv).

![Gains of each classifier, as published and ours](gains.png)

## Single-label: accuracy

{gain_table(rows, "single-label")}

## Multi-label: micro-F1

{gain_table(rows, "multi-label")}
"""
    (folder / "README.md").write_text(text, encoding="utf-8")


def main(argv: Sequence[str] | None = None) -> None:
    """Measure all classifiers in a folder."""
    arguments = parse_arguments("suite", __doc__, argv, data="the predictions (.npz)")
    paths = suite_paths(arguments.data, quick=arguments.quick)
    parts = Parallel(n_jobs=arguments.jobs)(delayed(measure)(p, arguments.seed) for p in paths)
    rows = [row for part in parts for row in part]
    write_page(rows, arguments.output)
    draw_gains(rows, arguments.output)
    print((arguments.output / "README.md").read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()

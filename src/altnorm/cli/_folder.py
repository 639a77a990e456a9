"""``altnorm check FOLDER``: all sample logs of lm-evaluation-harness in it, a line per task."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from altnorm import Adjuster
from altnorm._base.errors import InputError
from altnorm._base.words import figures
from altnorm.cli._options import Tuning
from altnorm.cli._records import print_json, verdict_record
from altnorm.cli._screen import head, in_options, new_table, out
from altnorm.cli.tune import fit_named, settings_of
from altnorm.evidence.verdict import Verdict, score_figures
from altnorm.io.formats import Layout
from altnorm.io.predictions import read_predictions
from altnorm.io.sample_logs import find_logs


def check_folder(folder: Path, layout: Layout, tuning: Tuning, *, json: bool) -> bool:
    """Judge every task by itself, and tell; return whether a change is adopted for some."""
    logs = find_logs(folder)
    verdicts, refused = _judge(logs, layout, tuning)
    if not verdicts:
        name, reason = next(iter(refused.items()))
        offender = f"'{name}' is not: {reason.rstrip('.')}"
        raise InputError(f"Some log in '{folder}' must be readable", offender)
    before = [verdict.before for verdict in verdicts.values()]
    after = [v.after if v.adopted else v.before for v in verdicts.values()]
    means = float(np.mean(before)), float(np.mean(after))
    if json:
        tasks = {
            name: {
                "file": str(path),
                "verdict": verdict_record(verdicts[name]) if name in verdicts else None,
                "error": refused.get(name),
            }
            for name, path in logs.items()
        }
        print_json({"tasks": tasks, "mean": dict(zip(("before", "after"), means, strict=True))})
    else:
        _show(verdicts, refused, means)
    return any(verdict.adopted for verdict in verdicts.values())


def _judge(
    logs: Mapping[str, Path], layout: Layout, tuning: Tuning
) -> tuple[dict[str, Verdict], dict[str, str]]:
    """Fit each task; a log that cannot be read, of which the reason is kept, stops no other."""
    verdicts, refused = {}, {}
    for name, path in logs.items():
        try:
            predictions = read_predictions(path, layout)
            tuned = fit_named(Adjuster(**settings_of(tuning, predictions)), predictions)
        except InputError as error:
            refused[name] = str(in_options(error))
        else:
            verdicts[name] = tuned.verdict_
    return verdicts, refused


def _show(
    verdicts: Mapping[str, Verdict], refused: Mapping[str, str], means: tuple[float, float]
) -> None:
    head("Should I use it? Each task is cross-validated by itself")
    table = new_table(("task", "rows", "before", "after", "result"), ("task", "result"))
    for name, verdict in verdicts.items():
        numbers = score_figures(verdict)
        after = numbers.after if verdict.adopted else numbers.before
        result = "adopted" if verdict.adopted else f"unchanged: {verdict.reason_text}"
        table.add_row(name, f"{verdict.n_rows:,}", numbers.before, after, result)
    for name, reason in refused.items():
        table.add_row(name, "", "", "", f"not read: {reason}")
    first = next(iter(verdicts.values()))  # the score is the same for all
    mean = figures(first.scoring, *means, (0, 0), 1, in_points=first.in_points)
    table.add_section()
    table.add_row("mean", "", mean.before, mean.after, f"{len(verdicts)} tasks")
    out.print(table)
    out.say("Next: altnorm check LOG, for the model and the report of one task")

"""An existing model on new data: before and after where there are labels, else drift."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from altnorm.cli._screen import (
    changed_table,
    out,
    print_json,
    score_table,
    show_cautions,
    show_verdict,
)
from altnorm.io.predictions import Predictions
from altnorm.report import write_report
from altnorm.report.evaluation import Evaluation, check_kind, evaluate

N_SHOWN = 5
"""Fixed and broken rows that are shown, each."""


@dataclass(frozen=True, eq=False)
class Existing:
    """A model that was read, and new predictions.

    Attributes
    ----------
    model : estimator
        Fitted.
    predictions : Predictions
        In the order of its classes.
    scoring : str or None
        Another score than the one it was tuned for.
    """

    model: Any
    predictions: Predictions
    scoring: str | None = None

    def judge(self, report: Path, texts: Sequence[str] | None, *, force: bool, json: bool) -> bool:
        """Say whether the model helps on labelled rows, and write a report."""
        result = evaluate(self.model, self.predictions, scoring=self.scoring)
        write_report(
            self.model, self.predictions, report, texts=texts, scoring=self.scoring, force=force
        )
        if json:
            print_json({**result.to_dict(), "report": str(report)})
        else:
            self._show(result)
            out.print(f"Report: {report.absolute()}", soft_wrap=True)
        return result.verdict.adopted

    def watch(self, *, json: bool) -> bool:
        """Say whether unlabelled rows look like those that the model was tuned on."""
        check_kind(self.predictions, self.model)
        drift = self.model.drift(self.predictions.proba)
        if json:
            print_json({"drift": asdict(drift)})
        else:
            out.print(str(drift))
            out.print("There are no labels: whether the model helps here, `altnorm ask` can tell.")
        return drift.advice != "stop"

    def _show(self, result: Evaluation) -> None:
        show_verdict(result.verdict)
        out.print(score_table([result.verdict, *result.scores]))
        for rows, what in ((result.fixed, "fixed"), (result.broken, "broken")):
            self._show_changed(result, rows, what)
        tuned = getattr(self.model, "verdict_", None)
        show_cautions(() if tuned is None else tuned.cautions, " from tuning")

    def _show_changed(self, result: Evaluation, rows: np.ndarray, what: str) -> None:
        """Print a table of some of the rows that were fixed or broken."""
        changed = result.changed(rows)[:N_SHOWN]
        if not changed:
            return
        described = [(f"{one.row:,}", self._truth(one.row), one) for one in changed]
        shown = f", the first {len(changed)}" if len(changed) < rows.size else ""
        out.print(changed_table(described, f"{rows.size:,} rows {what}{shown}"))

    def _truth(self, row: int) -> str:
        """The label of a row, or its labels."""
        assert self.predictions.labels is not None
        label = self.predictions.labels[row]
        names = self.predictions.kind.named(label, self.predictions.classes)
        return ", ".join(str(name) for name in names)

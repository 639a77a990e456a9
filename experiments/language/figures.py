"""The figures of the study: drawn from records, nothing is measured here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes

from experiments._figures import BLUE, GREY, INK, ORANGE, PURPLE, TEAL, figure, save
from experiments.language.study import SETS, UNTOUCHED

__all__ = ["draw_budgets"]

_CURVES = {
    "batch calibration, learnt": (PURPLE, "^"),
    "BCTS": (ORANGE, "s"),
    "AlternatingNormalizerCV": (TEAL, "D"),
    "Adjuster": (BLUE, "o"),
}
_MEASURES = {
    "accuracy": ("gain", "ci_low", "ci_high", "gain in accuracy, points"),
    "log_loss": ("change", "change_low", "change_high", "change of log loss (lower is better)"),
}


def draw_budgets(records: Sequence[Mapping[str, Any]], folder: Path) -> None:
    """Gain in accuracy, and change of log loss, against the number of labels, set by set."""
    shown = [r for r in records if r["against"] == UNTOUCHED]
    names = list(dict.fromkeys(r["classifier"] for r in shown))
    for measure, fields in _MEASURES.items():
        with figure(len(names), (3.3 * len(names), 3.7), squeeze=False) as (canvas, panels):
            for panel, name in zip(panels[0], names, strict=True):
                _draw_set(panel, [r for r in shown if r["classifier"] == name], fields)
                panel.set_title(f"{SETS[name].model}:\n{SETS[name].task}", fontsize=10)
            panels[0][0].set_ylabel(fields[3])
            handles, labels = panels[0][0].get_legend_handles_labels()
            canvas.legend(handles, labels, loc="outside lower center", ncols=len(handles))
            save(canvas, folder, measure)


def _draw_set(panel: Axes, records: Sequence[Mapping[str, Any]], fields: Sequence[str]) -> None:
    value, low, high, _ = fields
    panel.axhline(0, color=INK, linewidth=1)
    batch = next(r for r in records if r["method"] == "batch calibration")
    label = "batch calibration, no labels"
    panel.axhline(batch[value], color=GREY, linewidth=1.4, linestyle=(0, (4, 3)), label=label)
    for i, (method, (colour, mark)) in enumerate(_CURVES.items()):
        line = [r for r in records if r["method"] == method]
        # Moved apart a little, so that no interval hides another.
        x = [r["labels"] * 1.05 ** (i - 1.5) for r in line]
        panel.plot(x, [r[value] for r in line], f"{mark}-", color=colour, ms=4.5, label=method)
        panel.vlines(x, [r[low] for r in line], [r[high] for r in line], color=colour, alpha=0.5)
    ticks = [r["labels"] for r in line]
    panel.set_xscale("log")
    panel.set_xticks(ticks, [f"{n:,}" for n in ticks], rotation=45)
    panel.minorticks_off()
    panel.set_xlabel("labels")

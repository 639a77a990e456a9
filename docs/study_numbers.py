"""Numbers of the other studies, as README and docs show them; see `docs/suite_numbers.py`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from statistics import fmean

from experiments._output import read_records

__all__ = ["NUMBERS"]

EXPERIMENTS = Path(__file__).resolve().parent.parent / "experiments"
DEAR = "missing two classes costs 10"


def costs() -> str:
    """What decisions cost on simulated predictions, beside the least possible."""
    rows = read_records(EXPERIMENTS / "evidence" / "results" / "costs.csv")
    some = [row for row in rows if row["costs"] == DEAR]
    least = fmean(row["least"] for row in some)
    relative = {
        who: f"{fmean(row[who] for row in some) / least:.2f}"
        for who in ("argmax", "by_costs", "adjuster")
    }
    return (
        "- `costs=...`, on simulated predictions of biased classifiers, where missing two of ten "
        f"classes costs 10 and any other mistake 1: {relative['adjuster']} times the least "
        f"possible cost, against {relative['by_costs']} with the same costs on the predictions as "
        f"they came and {relative['argmax']} with the most probable class."
    )


NUMBERS: dict[str, Callable[[], str]] = {"costs": costs}
"""What may stand between markers, by name."""

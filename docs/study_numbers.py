"""Numbers of the other studies, as README and docs show them; see `docs/suite_numbers.py`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from statistics import fmean, median

from experiments._output import read_records
from experiments.confident_reference.study import REFERENCES, SPREADS
from experiments.language.methods import DIVIDED

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


def no_labels() -> str:
    """What dividing by the mean prediction brings without any label."""
    rows = read_records(EXPERIMENTS / "language" / "results" / "no_labels.csv")
    asked, others = (
        [row["gain"] for row in rows if (row["language_model"], row["method"]) == (kind, DIVIDED)]
        for kind in (True, False)
    )
    return (
        f"On the {len(asked)} sets of language models' answers that we have it brings "
        f"{fmean(asked):+.1f} points of accuracy on average and {median(asked):+.1f} in the "
        f"median, from {min(asked):+.1f} to {max(asked):+.1f}. On {len(others)} classifiers of "
        f"other kinds the same recipe brings {fmean(others):+.1f} on average and "
        f"{median(others):+.1f} in the median, down to {min(others):+.1f}: it makes classes "
        "equally frequent that are not."
    )


def confident_reference() -> str:
    """What sure rows as reference cost a calibrated classifier, and what all rows do."""
    rows = read_records(EXPERIMENTS / "confident_reference" / "results" / "results.csv")
    found: dict[str, list[float]] = {}
    for row in rows:
        if (row["classes"], row["spread"]) == (10, max(SPREADS)):
            found.setdefault(row["reference"], []).append(row["gain"])
    means = [fmean(found[name]) for name in REFERENCES]
    lost = [f"{-mean:.1f}" for mean in means[:-1]]
    return (
        "In {doc}`a simulation of a calibrated classifier <studies/confident_reference>`, ten "
        "classes of which some are much harder than others, sure rows as reference cost "
        f"{', '.join(lost[:-1])} and {lost[-1]} points of accuracy at the three thresholds; all "
        f"rows change it by {abs(means[-1]):.2f}."
    )


NUMBERS: dict[str, Callable[[], str]] = {
    "confident-reference": confident_reference,
    "costs": costs,
    "no-labels": no_labels,
}
"""What may stand between markers, by name."""

"""The promise on real classifiers: learnt from validation rows, held to test rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binomtest

from altnorm import Adjuster
from experiments._output import markdown_table
from experiments.evidence.promise.rules import RULES, Labelled, decide, mapie_sequence
from experiments.suite.files import Classifier, read_classifier

TARGETS = (0.9, 0.95)
NAMES = {
    "as_they_came": "as they came",
    "mapie_holm": "MAPIE",
    "mapie_hundredths": "MAPIE, at hundredths",
    "mapie_sequence": "MAPIE, in sequence",
    "adjusted": "adjusted",
    "mapie_adjusted": "adjusted by half the labels, MAPIE in sequence by the others",
}
LEVEL = 0.025


def measure_classifier(path: Path) -> list[dict[str, Any]]:
    """Return one record for each target and rule; none of a classifier with several labels."""
    data = read_classifier(path)
    if data.multilabel:
        return []
    rows, truth = Labelled(data.val_proba, data.val_y), np.eye(data.test_proba.shape[1])
    half, calibrated = _adjust_half(data)
    records = []
    for target in TARGETS:
        adjuster = Adjuster(target_accuracy=target).fit(rows.proba, rows.y)
        after = adjuster.transform(data.test_proba)
        results = {name: (data.test_proba, rule(rows, target)) for name, rule in RULES.items()}
        results["adjusted"] = after, adjuster.decision_.least
        results["mapie_adjusted"] = (
            half.transform(data.test_proba),
            mapie_sequence(calibrated, target),
        )
        for name, (proba, least) in results.items():
            share, accuracy = decide(proba, least, truth[data.test_y])
            n = round(share * len(data.test_y))
            hits = 0 if n == 0 else round(accuracy * n)
            clearly = bool(n) and binomtest(hits, n, target, "less").pvalue < LEVEL
            records.append(
                {
                    "classifier": data.name,
                    "classes": data.val_proba.shape[1],
                    "labels": len(data.val_y),
                    "target": target,
                    "rule": name,
                    "share": share,
                    "n_decided": n,
                    "n_right": hits,
                    "clearly_broken": int(clearly),
                }
            )
    return records


def _adjust_half(data: Classifier) -> tuple[Adjuster, Labelled]:
    """Fit to every second row; return the others as adjusted, which had no part in it."""
    fitted = Adjuster().fit(data.val_proba[::2], data.val_y[::2])
    return fitted, Labelled(fitted.transform(data.val_proba[1::2]), data.val_y[1::2])


def summary_table(records: Sequence[Mapping[str, Any]]) -> str:
    """One line per rule: mean share decided, and on how many test halves fewer are right."""
    header = ["rule"]
    for target in TARGETS:
        header += [f"{target:.0%}: decided", "nothing decided in", "fewer right in", "clearly in"]
    lines = []
    for name, words in NAMES.items():
        line = [words]
        for target in TARGETS:
            chosen = [r for r in records if r["rule"] == name and r["target"] == target]
            n, decided = len(chosen), [r for r in chosen if r["n_decided"]]
            fewer = sum(r["n_right"] < target * r["n_decided"] for r in decided)
            clearly = sum(r["clearly_broken"] for r in chosen)
            line += [f"{np.mean([r['share'] for r in chosen]):.1%}", f"{n - len(decided)} of {n}"]
            line += [f"{fewer}", f"{clearly}"]
        lines.append(line)
    return markdown_table(header, lines)

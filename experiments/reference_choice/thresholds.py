"""Which rows to adjust where no slope and bias helps: the page on alternating normalization."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import altnorm
from experiments.suite.files import read_classifier

__all__ = ["FILE", "measure"]

FILE = "snphotcc3_wavelets-nb.npz"  # supernovae, naive Bayes


def measure(path: Path) -> list[dict[str, Any]]:
    """Gain in points, for each threshold and for biases that are fitted by likelihood."""
    data = read_classifier(path)
    methods: dict[str, Any] = {
        f"threshold {threshold}": altnorm.AlternatingNormalizer(
            alpha=1, depth=5, threshold=threshold, reference="all"
        )
        for threshold in (0, 0.25, 0.5, 0.75)
    }
    methods["biases by likelihood"] = altnorm.peers.BiasCorrectedTemperature()
    before = np.mean(data.test_proba.argmax(axis=1) == data.test_y)
    records = []
    for name, method in methods.items():
        after = method.fit(data.val_proba, data.val_y).score(data.test_proba, data.test_y)
        records.append({"method": name, "gain": 100 * float(after - before)})
    return records

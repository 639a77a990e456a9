"""Why the demonstration gains less on its test queries than its validation queries promise.

``python -m experiments.demo_data.transfer`` fits the same adjustment to ten queries per intent of
one part, and applies it to queries of the same part that the fit has not seen, and of the other.
If rows of a part were drawn as those of the other are, the two gains would be equal.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np

from altnorm import load_demo
from altnorm.io.predictions import Predictions
from altnorm.peers import BiasCorrectedTemperature, MatrixScaling
from experiments._output import markdown_table

__all__ = ["main", "measure"]

PER_CLASS = 10
N_HALVINGS = 5
METHODS: dict[str, Callable[[], Any]] = {
    "matrix": lambda: MatrixScaling(16.0),
    "bias": lambda: BiasCorrectedTemperature(16.0),
}


def main() -> None:
    demo = load_demo()
    parts = {"validation": demo.validation, "test": demo.test}
    rows = [
        [name, fitted_on, *(f"{gains[fitted_on, on]:+.1f}" for on in parts)]
        for name, make in METHODS.items()
        for gains in [measure(parts, make)]
        for fitted_on in parts
    ]
    print(markdown_table(["adjustment", "fitted on", *(f"gain on {on}" for on in parts)], rows))


def measure(
    parts: dict[str, Predictions], make: Callable[[], Any], *, seed: int = 0
) -> dict[tuple[str, str], float]:
    """Mean gain in points of accuracy, for each part to fit on and each to apply it to."""
    rng = np.random.default_rng(seed)
    gains: dict[tuple[str, str], list[float]] = {pair: [] for pair in product(parts, parts)}
    for _ in range(N_HALVINGS):
        seen = {name: _draw(part.codes, rng) for name, part in parts.items()}
        for name, part in parts.items():
            fitted = make().fit(part.proba[seen[name]], part.codes[seen[name]])
            for on, other in parts.items():
                unseen = ~seen[on]
                gains[name, on].append(_gain(fitted, other.proba[unseen], other.codes[unseen]))
    return {pair: float(np.mean(found)) for pair, found in gains.items()}


def _draw(codes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Ten rows of each class, as a mask."""
    drawn = np.zeros(codes.size, dtype=bool)
    for code in np.unique(codes):
        drawn[rng.choice(np.flatnonzero(codes == code), PER_CLASS, replace=False)] = True
    return drawn


def _gain(fitted: Any, proba: np.ndarray, codes: np.ndarray) -> float:
    before, after = (p.argmax(axis=1) == codes for p in (proba, fitted.transform(proba)))
    return 100 * float(after.mean() - before.mean())


if __name__ == "__main__":
    main()

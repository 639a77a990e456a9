"""The two defining equations in 50-digit arithmetic, and the cases they are asked about.

Written from the equations alone: no logarithms, no scaling form, no shared code with altnorm.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import mpmath
import numpy as np

PAPER_ALPHAS = [round(0.1 * i, 1) for i in range(1, 10)] + [float(i) for i in range(1, 36)]
ROW_KINDS = ("dirichlet", "softmax", "one-hot", "uniform", "sparse", "fractions", "tiny")
DIGITS = 50


def oracle(
    proba: np.ndarray,
    reference: np.ndarray,
    *,
    prior: np.ndarray | None = None,
    alpha: float = 1.0,
    depth: int = 1,
    reference_weight: np.ndarray | None = None,
    smoothing: float = 0.0,
) -> np.ndarray:
    """Trajectory of every row of `proba`, (depth + 1, t, m), rounded to float64 at the end."""
    with mpmath.workdps(DIGITS):
        m = reference.shape[1]
        weights = np.ones(len(reference)) if reference_weight is None else reference_weight
        weight = [mpmath.mpf(float(w)) for w in weights]
        q = [mpmath.mpf(float(x)) for x in (np.ones(m) if prior is None else prior)]
        q = [x / mpmath.fsum(q) for x in q]
        extra = [mpmath.mpf(smoothing) * x * mpmath.fsum(weight) for x in q]
        exponent = mpmath.mpf(alpha)
        a0 = [[mpmath.mpf(float(x)) for x in row] for row in reference]
        steps = []
        for b0 in proba:
            rows = [*a0, [mpmath.mpf(float(x)) for x in b0]]
            path = [rows[-1]]
            for _ in range(depth):
                rows = _iteration(rows, [*weight, mpmath.mpf(1)], q, extra, exponent)
                path.append(rows[-1])
            steps.append([[float(x) for x in row] for row in path])
    return np.array(steps).reshape(len(proba), depth + 1, m).transpose(1, 0, 2)


def _iteration(rows: list, weight: list, q: list, extra: list, alpha: mpmath.mpf) -> list:
    """Powers; columns divided by their sums and multiplied by the prior; rows by theirs."""
    powers = [[x**alpha if x else x for x in row] for row in rows]
    sums = [
        mpmath.fsum(w * row[j] for w, row in zip(weight, powers, strict=True)) + extra[j]
        for j in range(len(q))
    ]
    # Where the column sum is zero, so is the numerator: a row of weight zero may still have the
    # class, and is as good as absent.
    factor = [qj / s if s else mpmath.mpf(0) for qj, s in zip(q, sums, strict=True)]
    new = [[x * f for x, f in zip(row, factor, strict=True)] for row in powers]
    totals = [mpmath.fsum(row) for row in new]
    return [
        [x / total for x in row] if total else old
        for row, total, old in zip(new, totals, rows, strict=True)
    ]


@dataclass
class Case:
    """One call of `alternating_normalization`."""

    proba: np.ndarray
    reference: np.ndarray
    keywords: dict[str, Any] = field(default_factory=dict)

    @property
    def amplification(self) -> float:
        """How much one rounding error of the reference can grow."""
        return float(self.keywords["alpha"] ** (self.keywords["depth"] - 1))


def draw_rows(rng: np.random.Generator, n: int, m: int, kind: str | None = None) -> np.ndarray:
    """Draw `n` probability rows, each of a kind of its own unless one is given."""
    kinds = [kind or str(rng.choice(ROW_KINDS)) for _ in range(n)]
    return np.array([_draw_row(rng, m, each) for each in kinds]).reshape(n, m)


def _draw_row(rng: np.random.Generator, m: int, kind: str) -> np.ndarray:
    if kind == "dirichlet":
        row = rng.dirichlet(np.full(m, rng.choice([0.3, 1.0, 10.0])))
    elif kind == "softmax":
        row = np.exp(-np.abs(rng.normal(size=m)) * rng.choice([1.0, 5.0, 30.0]))
    elif kind == "one-hot":
        row = np.eye(m)[rng.integers(m)]
    elif kind == "uniform":
        row = np.ones(m)
    elif kind == "sparse":
        row = rng.random(m) * (rng.random(m) < 0.5)
        row[rng.integers(m)] = 1.0
    elif kind == "fractions":
        row = rng.integers(0, 4, m).astype(float)
        row[rng.integers(m)] += 1.0
    else:
        row = 10.0 ** -rng.uniform(0, 300, m)
        row[rng.integers(m)] = 1.0
    return row / row.sum()


def draw_prior(rng: np.random.Generator, m: int) -> np.ndarray | None:
    """Draw no prior, frequencies, counts, a very uneven prior, or one with zeros."""
    kind = rng.choice(["none", "frequencies", "counts", "uneven", "zeros"])
    if kind == "none":
        return None
    prior = rng.dirichlet(np.ones(m))
    if kind == "counts":
        prior = rng.integers(1, 1000, m).astype(float)
    elif kind == "uneven":
        prior = 10.0 ** -rng.uniform(0, 8, m)
    elif kind == "zeros":
        prior = prior * (rng.random(m) < 0.6)
        prior[rng.integers(m)] = 0.5
    return prior


def draw_case(rng: np.random.Generator, *, smoothing: bool = False) -> Case:
    """Draw a small case with everything that may go wrong in it."""
    m = int(rng.choice([2, 3, int(rng.integers(2, 11)), int(rng.integers(2, 51))]))
    n = int(rng.choice([1, 2, int(rng.integers(1, 7))]))
    t = 1 if m > 10 else 2
    reference, proba = draw_rows(rng, n, m), draw_rows(rng, t, m)
    if rng.random() < 0.3:
        reference[-1] = reference[0]
    if rng.random() < 0.3:
        proba[0] = reference[0]
    weight = rng.choice([0.0, 0.5, 1.0, 2.0, 1000.0], n) if rng.random() < 0.4 else None
    if weight is not None and not weight.any():
        weight[0] = 1.0
    alpha = float(rng.choice(PAPER_ALPHAS))
    if rng.random() < 0.3:
        alpha = float(np.exp(rng.uniform(np.log(0.1), np.log(35.0))))
    keywords = {
        "prior": draw_prior(rng, m),
        "alpha": alpha,
        "depth": int(rng.integers(1, 6)),
        "reference_weight": weight,
        "smoothing": float(rng.choice([0.01, 0.3, 5.0])) if smoothing else 0.0,
    }
    return Case(proba, reference, keywords)


def draw_cases(seed: int, count: int, *, smoothing: bool = False) -> Iterator[Case]:
    """Draw `count` cases from one seed."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        yield draw_case(rng, smoothing=smoothing)

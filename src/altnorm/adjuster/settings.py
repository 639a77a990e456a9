"""What can be tried: the settings of each family, the grid, and the menu for the evidence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from altnorm._base.errors import InputError
from altnorm._base.validation import check_choice, check_integer, check_positive
from altnorm.method.reference import REFERENCES

FAMILIES = ("alternating", "bias", "matrix")
"""The families, the mildest first: alternating normalization leaves sure rows alone."""

PAPER_ALPHAS = (*(round(0.1 * i, 1) for i in range(1, 10)), *(float(i) for i in range(1, 36)))
PAPER_DEPTHS = (1, 2, 3, 4, 5)
PAPER_THRESHOLDS = (0.25, 0.5, 0.75)

# Alternating normalization as the evidence looks at it: three exponents, all rows as reference.
_MENU_ALPHAS = (0.5, 1.0, 2.0)
_MENU_SMOOTHINGS = (0.0, 0.1)


class Setting(NamedTuple):
    """One combination of hyper-parameters of alternating normalization."""

    alpha: float
    depth: int
    threshold: float
    reference: str
    smoothing: float

    @property
    def family(self) -> str:
        """Name of the family."""
        return "alternating"

    def severity(self) -> tuple[float, ...]:
        """Order among settings that score and change the same: the mildest first."""
        return (0, self.depth, abs(math.log(self.alpha)), -self.threshold, -self.smoothing)


class BiasSetting(NamedTuple):
    """What the class biases are shrunk towards, and the strength of the penalty."""

    member: str
    ridge: float

    @property
    def family(self) -> str:
        """Name of the family."""
        return "bias"

    def severity(self) -> tuple[float, ...]:
        """Order among settings that score and change the same: the mildest first."""
        return (1, -self.ridge, self.member == "prior")


class MatrixSetting(NamedTuple):
    """The strength of the penalty on the matrix, and its kind."""

    ridge: float
    penalty: str = "ridge"

    @property
    def family(self) -> str:
        """Name of the family."""
        return "matrix"

    def severity(self) -> tuple[float, ...]:
        """Order among settings that score and change the same: the mildest first."""
        return (2, -self.ridge, self.penalty == "cauchy")


class Grid(NamedTuple):
    """The settings of alternating normalization that a search may visit."""

    alphas: Sequence[float]
    depths: Sequence[int]
    thresholds: Sequence[float]
    references: Sequence[str]
    smoothings: Sequence[float]

    def check(self) -> None:
        """Raise unless every setting of the grid is one that AlternatingNormalizer takes."""
        for name, values in self._asdict().items():
            if not len(values):
                raise InputError(
                    f"`{name}` must hold at least one value",
                    "it is empty",
                    "Pass some.",
                    value=values,
                    code="parameter",
                )
        for alpha in self.alphas:
            check_positive(alpha, "alphas")
        for depth in self.depths:
            check_integer(depth, "depths", low=1)
        for name in ("thresholds", "smoothings"):
            for value in getattr(self, name):
                check_positive(value, name, zero=True)
        for reference in self.references:
            check_choice(reference, "references", REFERENCES)

    def menu(self) -> Grid:
        """Return the small part of the grid, fixed beforehand, that serves as evidence."""
        reference = "all" if "all" in self.references else self.references[0]
        return Grid(
            sorted({_nearest(self.alphas, alpha) for alpha in _MENU_ALPHAS}),
            (min(self.depths),),
            (min(self.thresholds),),
            (reference,),
            sorted({min(self.smoothings, key=lambda s: abs(s - k)) for k in _MENU_SMOOTHINGS}),
        )


def _nearest(alphas: Sequence[float], wanted: float) -> float:
    def distance(alpha: Any) -> float:
        return abs(math.log(float(alpha) / wanted))

    return float(min(alphas, key=distance))

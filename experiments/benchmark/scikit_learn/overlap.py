"""The standard error of a mean over random splits of the same rows.

Splits of a data set share most of their rows, so what they give is not independent, and the plain
standard error is too small. Nadeau and Bengio ("Inference for the generalization error", *Machine
Learning* 52, 2003) multiply the variance over J splits by 1/J + n_test / n_train in place of 1/J.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import variance

__all__ = ["TEST_TO_TRAINING", "corrected_error", "plain_error"]

TEST_TO_TRAINING = (1 / 3) / (2 / 3)
"""Rows that are measured, for each row that anything is fitted to.

A third trains the classifier and a third is for the tools: both count as training, since what is
measured depends on both. To count the tools' third alone would give 1, and larger errors: fewer of
the rises after altnorm would be called clear.
"""


def plain_error(differences: Sequence[float]) -> float:
    """As if the splits were independent."""
    return (variance(differences) / len(differences)) ** 0.5


def corrected_error(differences: Sequence[float]) -> float:
    """With the correction for splits that overlap."""
    return (variance(differences) * (1 / len(differences) + TEST_TO_TRAINING)) ** 0.5

"""The page of results: one table for each kind of test."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from experiments._output import markdown_table
from experiments.last_layer.study import (
    AT_TEST,
    SOFTMAX,
    TARGET_BOTH,
    TRAINING_BOTH,
    Design,
    Record,
)

__all__ = ["write_page"]

_PAGE = """# Alternating normalization as a last layer in training

`python -m experiments.last_layer` ({seconds:.0f} s). The paper names training through the
normalization as future work; this is one small look at it.

Scikit-learn's digits with noise, {n_seeds} draws. Training and validation rows are imbalanced
({imbalance:g} to 1, other classes in every draw); the network has one hidden layer of {hidden}
units and is trained for {epochs} epochs. Where the module (`altnorm.torch.AlternatingNorm`, alpha
{alpha:g}, depth {depth}, threshold {threshold:g}, soft {soft:g}) takes part in training, it does
so after a quarter of the epochs, as the last layer under the log loss. Its reference, the
network's predictions on all validation rows, is taken anew in every epoch. "Target prior" is the
class prior of the test, "training prior" the class frequencies in training; at test the module
always has the target prior.

Gains are against softmax, in points of accuracy, paired over the draws, with their standard error.

## Tested on balanced rows (uniform target prior)

{balanced}

## Tested on rows weighted as in training

{as_trained}

## What happens

{findings}

A module that is told the target prior in training asks for balanced predictions where the labels
are not balanced, and the network learns to undo it: the last row of the first table is what is
left of the network without the module. Told the training prior, it costs little or nothing, and
the network then needs the module at test. This small study gives no reason to train through the
normalization rather than to apply it afterwards.
"""


def write_page(records: Sequence[Record], design: Design, seconds: float) -> str:
    """Render the page."""
    tables = {target: _table(records, target) for target in ("balanced", "as trained")}
    return _PAGE.format(
        seconds=seconds,
        balanced=tables["balanced"],
        as_trained=tables["as trained"],
        findings=_findings(records),
        **vars(design),
    )


def _select(records: Sequence[Record], target: str, arm: str, field: str) -> np.ndarray:
    chosen = [r for r in records if (r.target, r.arm) == (target, arm)]
    return np.array([getattr(r, field) for r in sorted(chosen)])


def gain(
    records: Sequence[Record], target: str, arm: str, base: str = SOFTMAX
) -> tuple[float, float]:
    """Mean gain in accuracy points over `base`, and its standard error."""
    difference = 100 * (
        _select(records, target, arm, "accuracy") - _select(records, target, base, "accuracy")
    )
    return float(difference.mean()), float(difference.std(ddof=1) / np.sqrt(difference.size))


def _table(records: Sequence[Record], target: str) -> str:
    arms = list(dict.fromkeys(r.arm for r in records if r.target == target))
    rows = []
    for arm in arms:
        mean, error = gain(records, target, arm)
        numbers = [
            f"{100 * _select(records, target, arm, 'accuracy').mean():.2f}",
            "" if arm == SOFTMAX else f"{mean:+.2f} ± {error:.2f}",
            f"{_select(records, target, arm, 'log_loss').mean():.3f}",
            f"{100 * _select(records, target, arm, 'in_doubt').mean():.0f} %",
        ]
        rows.append([arm, *numbers])
    return markdown_table(["", "accuracy", "gain", "log loss", "rows in doubt"], rows)


def _findings(records: Sequence[Record]) -> str:
    """Statements whose numbers, and whose signs, are read off the records."""
    compared = (
        ("balanced", TARGET_BOTH),
        ("balanced", TRAINING_BOTH),
        ("as trained", TRAINING_BOTH),
    )
    told = []
    for target, arm in compared:
        mean, error = gain(records, target, arm, base=AT_TEST)
        verdict = "no clear difference"
        if abs(mean) > 2 * error:
            verdict = "training through it helps" if mean > 0 else "training through it hurts"
        told.append(
            f"- {target}: *{arm}* against *{AT_TEST}* {mean:+.2f} ± {error:.2f} points: {verdict}."
        )
    return "\n".join(told)

"""``altnorm adapt``: a model for the class balance of new predictions."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from altnorm._base.files import check_output
from altnorm.adjuster import load
from altnorm.balance.shift import Shift
from altnorm.cli import _options as options
from altnorm.cli._screen import out, print_json
from altnorm.cli._window import adapt_to_file
from altnorm.io.columns import names_of

EXAMPLE = "altnorm adapt model.safetensors new.parquet -o model2.safetensors"

_N_SHOWN = 5


@options.grouped
def adapt(
    model: options.Model,
    new: Annotated[
        Path, typer.Argument(metavar="NEW", help="Predictions without labels, some hundred rows.")
    ],
    output: options.Output,
    *,
    columns: options.ClassColumns,
    only_balance: options.OnlyBalance = False,
    force: options.Force = False,
    strict: options.Strict = False,
    json: options.Json = False,
) -> int:
    """Adapt a model to another class balance, without labels, and only when the data say so.

    Where they show no other balance, or one that is hardly another, or where it is not the balance
    that has changed, the new model is equal to the old one.
    """
    check_output(output, force=force)
    normalizer = load(model)
    layout = columns.layout(logits=normalizer.input == "logits")
    adapted = adapt_to_file(normalizer, new, layout, only_balance=only_balance)
    adapted.save(output, force=force)
    if json:
        print_json({"model": str(output), "shift": asdict(adapted.shift_)})
    else:
        show_shift(adapted.shift_, names_of(adapted.classes_))
        out.print(f"Model: {output}", soft_wrap=True)
    return int(strict and not adapted.shift_.adapted)


def show_shift(shift: Shift, names: list[str]) -> None:
    """Print the line of a shift, and the classes whose share changed most."""
    out.print(str(shift), soft_wrap=True)
    if not shift.adapted:
        return
    order = sorted(range(len(names)), key=lambda j: -abs(shift.after[j] - shift.before[j]))
    for j in order[:_N_SHOWN]:
        out.print(
            f"  {names[j]}: {shift.before[j]:.1%} before, {shift.after[j]:.1%} now "
            f"({shift.after_low[j]:.1%} to {shift.after_high[j]:.1%})",
            soft_wrap=True,
        )

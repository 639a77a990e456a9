"""``altnorm export``: a model as an ONNX graph."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from altnorm.adjuster import load
from altnorm.cli import _options as options
from altnorm.cli._screen import out, print_json

EXAMPLE = "altnorm export model.safetensors -o model.onnx"


def export(
    model: options.Model,
    output: options.Output,
    dtype: Annotated[
        str, typer.Option(metavar="TYPE", help="Type of input and output, float32 or float64.")
    ] = "float32",
    append_to: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="ONNX classifier to append the adjustment to."),
    ] = None,
    label_output: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Also write the decided class by its name, as an output of this name.",
        ),
    ] = None,
    force: options.Force = False,
    json: options.Json = False,
) -> None:
    """Write the model as an ONNX graph on standard operators, or append it to a classifier's."""
    from altnorm.deploy.onnx import export as export_onnx

    export_onnx(
        load(model),
        output,
        dtype=dtype,
        append_to=append_to,
        label_output=label_output,
        force=force,
    )
    if json:
        print_json({"output": str(output)})
    else:
        out.print(f"ONNX model: {output}", soft_wrap=True)

"""``altnorm tune``: choose settings on validation predictions and say whether they help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from altnorm import Adjuster, AlternatingNormalizerCV
from altnorm._base.files import check_output
from altnorm._base.words import plural, setting_words
from altnorm.adjuster.summary import does
from altnorm.cli import _options as options
from altnorm.cli._fit import fit_named, read_groups
from altnorm.cli._screen import out, print_json, show_verdict
from altnorm.cli._unlabelled import fit_unlabelled, resolve_prior, save_unlabelled
from altnorm.evidence.sentences import calibration_words
from altnorm.io.columns import listed, names_of
from altnorm.io.predictions import Predictions, read_predictions

EXAMPLE = "altnorm tune val.parquet --label intent -o model.safetensors"
DEPTHS, THRESHOLDS = "1,2,3,4,5", "0.25,0.5,0.75"
FAMILIES = "alternating,bias,matrix"


@options.grouped
def tune(
    validation: options.Validation,
    output: options.Output,
    *,
    tuning: options.Tuning,
    labels: options.LabelColumns,
    group: options.Group = None,
    columns: options.ClassColumns,
    logits: options.Logits = False,
    prior: Annotated[
        str,
        typer.Option(
            metavar="PRIOR",
            help="Class prior: `counted` from the labels, counted and `shrunk` towards uniform, "
            "`uniform`, or a CSV file with a class and a number per line.",
        ),
    ] = "shrunk",
    alphas: Annotated[
        str | None,
        typer.Option(metavar="LIST", help="Exponents to try.", show_default="0.1 to 35"),
    ] = None,
    depths: Annotated[
        str, typer.Option(metavar="LIST", help="Numbers of iterations to try.")
    ] = DEPTHS,
    thresholds: Annotated[
        str, typer.Option(metavar="LIST", help="Ambiguity thresholds to try.")
    ] = THRESHOLDS,
    no_labels: Annotated[
        bool,
        typer.Option(
            "--no-labels",
            metavar="",
            help="Use no labels: nothing is chosen or judged. `altnorm ask` says which to get.",
        ),
    ] = False,
    families: Annotated[
        str, typer.Option(metavar="LIST", help="Families that compete.")
    ] = FAMILIES,
    calibrate: Annotated[
        bool,
        typer.Option(
            "--calibrate/--no-calibrate",
            metavar="",
            help="Calibrate probabilities, without changing a decision.",
        ),
    ] = True,
    cv: Annotated[int, typer.Option(metavar="K", help="Number of folds.")] = 5,
    force: options.Force = False,
    strict: options.Strict = False,
    json: options.Json = False,
) -> int:
    """Choose settings by cross-fitting, judge them, and write a model file.

    Without enough evidence for a gain the model changes nothing, and says so.
    """
    check_output(output, force=force)
    layout = columns.layout(labels, logits=logits, group=group, gaps=True)
    predictions = read_predictions(validation, layout)
    known = resolve_prior(prior, predictions, tuning.multilabel)
    grid = _grid(alphas, _unless(depths, DEPTHS), _unless(thresholds, THRESHOLDS))
    if no_labels:
        fitted = fit_unlabelled(predictions, known, tuning.multilabel, grid)
        save_unlabelled(fitted, output, force=force, json=json)
        return 0
    settings = {**tuning.settings(), "prior": known, "cv": cv, "input": predictions.input}
    tuned = _estimator(grid, families, calibrate, **settings)
    groups = read_groups(validation, group, len(predictions.proba), layout)
    fit_named(tuned, predictions, groups=groups)
    tuned.save(output, force=force)
    if json:
        print_json(_record(tuned, output))
    else:
        _show(tuned, predictions, output)
    return int(strict and not tuned.verdict_.adopted)


def _estimator(grid: dict[str, Any], families: str, calibrate: bool, **options: Any) -> Any:
    """Return the estimator: a grid is for alternating normalization alone."""
    if grid:
        return AlternatingNormalizerCV(**grid, **options)
    chosen = tuple(name.strip() for name in families.split(","))
    return Adjuster(chosen, calibrate=calibrate, **options)


def _grid(alphas: str | None, depths: str | None, thresholds: str | None) -> dict[str, Any]:
    """Settings to try, as the estimator takes them; what is None has its default."""
    given = {
        "alphas": (alphas, float),
        "depths": (depths, int),
        "thresholds": (thresholds, float),
    }
    return {
        name: options.numbers(text, f"--{name}", kind)
        for name, (text, kind) in given.items()
        if text is not None
    }


def _unless(text: str, default: str) -> str | None:
    return None if text == default else text


def _record(tuned: Any, output: Path) -> dict[str, object]:
    return {
        "model": str(output),
        "verdict": tuned.verdict_.to_dict(),
        "family": tuned.family_,
        "families": {name: one.to_dict() for name, one in tuned.families_.items()},
        "calibration": None if tuned.calibration_ is None else tuned.calibration_.to_dict(),
        "best_params": tuned.best_params_,
        "n_settings": len(tuned.cv_results_["score"]),
    }


def _show(tuned: Any, predictions: Predictions, output: Path) -> None:
    rows, classes = predictions.proba.shape
    n_settings = len(tuned.cv_results_["score"])
    unknown = rows - int(predictions.has_label.sum())
    without = f" ({unknown:,} without a label)" if unknown else ""
    out.print(
        f"{plural(rows, 'row')}{without}, {plural(classes, 'class', 'classes')} "
        f"({listed(names_of(predictions.classes))}), {plural(n_settings, 'setting')} compared."
    )
    show_tuned(tuned)
    out.print(f"Model: {output} ({does(tuned)})", soft_wrap=True)


def show_tuned(tuned: Any) -> None:
    """Print what tuning found: the verdict, the setting, and the calibration."""
    show_verdict(tuned.verdict_)
    start = "Setting" if tuned.verdict_.adopted else "Best setting, not applied"
    out.print(f"{start}: {setting_words(tuned.best_params_)}")
    if tuned.calibration_ is not None:
        out.print(calibration_words(tuned.calibration_))

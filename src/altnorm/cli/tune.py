"""``altnorm tune``: only the model, for scripts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from altnorm import Adjuster, AlternatingNormalizer
from altnorm._base.errors import InputError
from altnorm._base.files import check_output
from altnorm._base.words import plural
from altnorm.cli import _options as options
from altnorm.cli._journey import applied_words, fit_named, save_model, tuned_record
from altnorm.cli._screen import out, print_json, show_verdict
from altnorm.io.class_tables import read_balance
from altnorm.io.columns import listed, names_of
from altnorm.io.predictions import Predictions, read_predictions
from altnorm.method.kinds import resolve_kind
from altnorm.method.reference import PRIORS

FAMILIES = "alternating,bias,matrix"


@options.grouped
def tune(
    validation: Annotated[
        Path, options.argument("VAL", "Predictions on validation data, with labels.")
    ],
    output: options.Output,
    *,
    tuning: options.Tuning,
    labels: options.LabelColumns,
    group: options.Group = None,
    columns: options.ClassColumns,
    logits: options.Logits = False,
    prior: Annotated[
        str,
        options.option(
            "PRIOR",
            "Class prior: `counted` from the labels, counted and `shrunk` towards uniform, "
            "`uniform`, or a CSV file with a class and a number per line.",
        ),
    ] = "shrunk",
    no_labels: Annotated[
        bool,
        options.flag(
            "--no-labels",
            "Fit without labels: nothing is chosen or judged. `altnorm ask` says which to get.",
        ),
    ] = False,
    families: Annotated[str, options.option("LIST", "Families that compete.")] = FAMILIES,
    calibrate: Annotated[
        bool,
        options.flag(
            "--calibrate/--no-calibrate",
            "Let a temperature be applied, alone or after alternating normalization.",
        ),
    ] = True,
    cv: Annotated[int, options.option("K", "Number of folds.")] = 5,
    force: options.Force = False,
    strict: options.Strict = False,
    json: options.Json = False,
) -> int:
    """Choose what to apply by cross-fitting, judge it, and write a model file.

    Without enough evidence for a gain the model changes no decision, and says so.
    """
    check_output(output, force=force)
    layout = columns.layout(labels, logits=logits, group=group, gaps=True)
    predictions = read_predictions(validation, layout)
    known = _resolve_prior(prior, predictions, tuning.multilabel)
    if no_labels:
        _fit_unlabelled(predictions, known, tuning.multilabel).save(output, force=force)
        _tell_unlabelled(output, json=json)
        return 0
    chosen = tuple(name.strip() for name in families.split(","))
    settings = {**tuning.settings(predictions), "prior": known, "calibrate": calibrate, "cv": cv}
    tuned = fit_named(Adjuster(chosen, **settings), predictions)
    save_model(tuned, output, force=force)
    if json:
        verdict = tuned.verdict_.to_dict()
        print_json({"model": str(output), "verdict": verdict, **tuned_record(tuned)})
    else:
        _show(tuned, predictions, output)
    return int(strict and not tuned.verdict_.adopted)


def _show(tuned: Adjuster, predictions: Predictions, output: Path) -> None:
    rows, classes = predictions.proba.shape
    unknown = rows - int(predictions.has_label.sum())
    without = f" ({unknown:,} without a label)" if unknown else ""
    out.print(
        f"{plural(rows, 'row')}{without}, {plural(classes, 'class', 'classes')} "
        f"({listed(names_of(predictions.classes))})."
    )
    show_verdict(tuned.verdict_)
    out.print(applied_words(tuned))
    out.print(f"Model: {output}", soft_wrap=True)


def _resolve_prior(prior: str, predictions: Predictions, multilabel: str | None) -> Any:
    """The prior that --prior names: a kind of prior, or a file with one number per class."""
    if prior in PRIORS:
        return prior
    if not Path(prior).is_file():
        raise InputError(
            f"--prior must be one of {', '.join(PRIORS)}, or a CSV file with a number per class",
            f"it is '{prior}', and there is no such file",
            "Check the name of the file, or pass for example --prior uniform.",
        )
    names = resolve_kind(multilabel).prior_names(names_of(predictions.classes))
    return read_balance(prior, names)


def _fit_unlabelled(
    predictions: Predictions, prior: Any, multilabel: str | None
) -> AlternatingNormalizer:
    """Fit alternating normalization at its default setting."""
    # Without labels there is nothing to count, nor anything to shrink.
    known = "uniform" if isinstance(prior, str) else prior
    normalizer = AlternatingNormalizer(prior=known, multilabel=multilabel, input=predictions.input)
    return fit_named(normalizer, predictions, labelled=False)


def _tell_unlabelled(output: Path, *, json: bool) -> None:
    if json:
        print_json({"model": str(output), "verdict": None})
        return
    out.print(
        f"Model: {output} (no labels used, so it is unknown whether it helps)", soft_wrap=True
    )
    out.print(f"Next: altnorm ask {output} POOL -o ask.csv", soft_wrap=True)

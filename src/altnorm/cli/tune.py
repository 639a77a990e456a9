"""``altnorm tune``: only the model, for scripts; `check` fits, tells and writes it likewise."""

from __future__ import annotations

import math
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

from altnorm import Adjuster, AlternatingNormalizer
from altnorm._base.errors import InputError
from altnorm._base.files import check_output
from altnorm._base.words import model_words, plural
from altnorm.adjuster.candidates import FAMILIES
from altnorm.cli._commands import Tune
from altnorm.cli._options import Tuning, prefix_words
from altnorm.cli._records import file_words, print_json, tuned_record
from altnorm.cli._screen import RULES, by_class, out, show_verdict
from altnorm.estimator.kinds import kind_of, resolve_kind
from altnorm.evidence.cautions import labels_to_ask
from altnorm.evidence.verdict import score_figures
from altnorm.io.class_tables import read_balance, read_cost_file
from altnorm.io.formats import Layout
from altnorm.io.labels import listed, names_of
from altnorm.io.predictions import Predictions, read_predictions
from altnorm.method.reference import PRIORS

CANDIDATE = "candidate.safetensors"
"""What a model may be called that is applied on trial."""

# What to say where the labels are of this kind, and the estimator is for the other one.
_OTHER_KIND = {
    "multi-label": (
        "Without --multilabel each row needs one class",
        "Pass --multilabel labelwise (each label its own problem) or --multilabel pairs (the "
        "paper's way).",
    ),
    "single-label": (
        "For --multilabel each label needs a 0/1 column",
        "Pass --label-prefix, or leave --multilabel out.",
    ),
}


def tune(options: Tune) -> int:
    """Fit, write and tell; without labels, fit and write."""
    output, tuning = options.output, options.tuning
    others = [options.validation, options.columns.labels, tuning.costs, options.prior]
    check_output(output, force=options.force, others=others)
    predictions = read_predictions(options.validation, replace(options.columns, gaps=True))
    prior = _resolve_prior(options.prior, predictions, tuning.multilabel)
    if options.no_labels:
        _tune_unlabelled(options, predictions, prior)
        return 0
    names = FAMILIES if options.families is None else options.families.split(",")
    settings = {
        **settings_of(tuning, predictions),
        "families": tuple(name.strip() for name in names),
        "prior": prior,
        "calibrate": options.calibrate,
        "cv": options.cv,
    }
    tuned = fit_named(Adjuster(**settings), predictions)
    save_model(tuned, output, force=options.force, data=file_words(options.validation))
    if options.json:
        print_json({**tuned_record(tuned), "model": str(output)})
    else:
        _show(tuned, predictions, options)
    return int(options.strict and not tuned.verdict_.adopted)


def _show(tuned: Adjuster, predictions: Predictions, options: Tune) -> None:
    rows, classes = predictions.proba.shape
    unknown = rows - int(predictions.has_label.sum())
    without = f" ({unknown:,} without a label)" if unknown else ""
    out.print(
        f"{plural(rows, 'row')}{without}, {plural(classes, 'class', 'classes')} "
        f"({listed(names_of(predictions.classes))})."
    )
    show_verdict(tuned.verdict_)
    out.print(applied_words(tuned))
    out.say(f"Model: {options.output}")
    say_how_to_ask(tuned, options.output, options.columns)


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


def _tune_unlabelled(options: Tune, predictions: Predictions, prior: Any) -> None:
    """Fit alternating normalization at its default setting, write and tell."""
    output, multilabel = options.output, options.tuning.multilabel
    # Without labels there is nothing to count, nor anything to shrink.
    prior = "uniform" if isinstance(prior, str) else prior
    normalizer = AlternatingNormalizer(prior=prior, multilabel=multilabel, input=predictions.input)
    with by_class(predictions.classes):
        normalizer.fit(predictions.proba, classes=predictions.classes)
    normalizer.save(output, force=options.force)
    if options.json:
        print_json({"verdict": None, "model": str(output)})
    else:
        out.say(f"Model: {output} (no labels used, so it is unknown whether it helps)")
        out.say(f"Next: altnorm ask {output} POOL{prefix_words(options.columns)} -o ask.csv")


# What `check` does, too: fit, write the model, say what is applied.


def settings_of(tuning: Tuning, predictions: Predictions) -> dict[str, Any]:
    """Return options as :class:`~altnorm.Adjuster` takes them."""
    costs = None if tuning.costs is None else read_cost_file(tuning.costs, predictions.classes)
    return {**vars(tuning), "costs": costs, "input": predictions.input}


def fit_named(estimator: Adjuster, predictions: Predictions) -> Adjuster:
    """Fit an estimator, which takes columns in the order of the file's classes."""
    _ = predictions.codes  # raises where there are no labels
    words = predictions.kind.words
    if words != kind_of(estimator).words:
        rule, remedy = _OTHER_KIND[words.problem]
        raise InputError(rule, f"the labels are {words.labels}", remedy)
    with by_class(predictions.classes):
        # Labels alone would not tell the classes: some have no row, and columns come in any order.
        return estimator.fit(
            predictions.proba,
            predictions.labels,
            groups=predictions.groups,
            classes=predictions.classes,
        )


def say_how_to_ask(tuned: Adjuster, model: Path, columns: Layout, *files: str) -> None:
    """Where labels are too few, say how to get those that decide, and about how many it takes.

    One that was insisted on can be asked about as it is, at `model`. `files` are options that keep
    what a second run of the command writes apart from the first.
    """
    verdict, n_labels = tuned.verdict_, labels_to_ask(tuned.verdict_)
    if verdict.reason != "not_significant" or math.isinf(n_labels):
        return
    about = f" (about {n_labels:,.0f} labels)" if n_labels else ""
    again = " ".join(["--insist -o", CANDIDATE, *files])
    first = "" if verdict.insisted else f"run this again with {again}, then: "
    asked = model if verdict.insisted else CANDIDATE
    ask = f"altnorm ask {asked} POOL{prefix_words(columns)} -o ask.csv"
    out.say(f"Next:   ask for the labels that decide{about}: {first}{ask}")


def save_model(tuned: Adjuster, path: Path, *, force: bool, data: str) -> None:
    """Write a model without the number of threads, which is this machine's and not the model's."""
    kept = copy(tuned)
    kept.n_jobs = None
    kept.save(path, force=force, about={"data": data})


def applied_words(tuned: Adjuster) -> str:
    """Say what is applied: to probabilities, and to decide."""
    if tuned.family_ is None:
        return f"The model {model_words(tuned)}."
    numbers = score_figures(tuned.calibration_)
    change = f"{numbers.name} {numbers.before} -> {numbers.after}"
    if tuned.decision_.on_input:
        clearly = "" if tuned.calibration_.ci_low > 0 else "not clearly "
        words = f"are {clearly}better" if numbers.changed else "hardly change"
        costs = " Decisions count your costs." if tuned.decision_.counts_costs_alone else ""
        return f"Probabilities {words}: {change}.{costs}"
    words = f"The model {model_words(tuned)}. Probabilities: {change}."
    if not tuned.decision_.is_argmax:
        words += f" It takes {RULES[tuned.decision_.kind]}."
        words += " A row may be left to a person." if tuned.decision_.leaves_rows else ""
    return words

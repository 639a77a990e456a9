"""``altnorm tune``: only the model, for scripts; `check` fits, tells and writes it likewise."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from altnorm import Adjuster, AlternatingNormalizer
from altnorm._base.errors import InputError
from altnorm._base.files import check_output
from altnorm._base.words import model_words, plural
from altnorm.adjuster.candidates import FAMILIES
from altnorm.cli import _options as options
from altnorm.cli._records import file_words, print_json, tuned_record
from altnorm.cli._screen import RULES, by_class, out, show_verdict
from altnorm.decisions.decision import Decision
from altnorm.estimator.kinds import kind_of, resolve_kind
from altnorm.evidence.cautions import REALISTIC
from altnorm.evidence.verdict import score_figures
from altnorm.io.class_tables import read_balance
from altnorm.io.columns import listed, names_of
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


@options.grouped
def tune(
    validation: Annotated[
        Path, options.argument("VAL", "Predictions on validation data, with labels.")
    ],
    output: options.Output,
    *,
    tuning: options.Tuning,
    columns: options.EvidenceColumns,
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
    families: Annotated[str, options.option("LIST", "Families that compete.")] = ",".join(FAMILIES),
    calibrate: Annotated[
        bool,
        options.flag(
            "--calibrate/--no-calibrate",
            "Adjust probabilities too, also where your decisions stay as they were.",
        ),
    ] = True,
    cv: Annotated[int, options.option("K", "Number of folds.")] = 5,
    force: options.Force = False,
    strict: options.Strict = False,
    json: options.Json = False,
) -> int:
    """Fit and judge a model and write it, nothing else: for scripts.

    If the labels don't show a gain, the model changes no decision, and says so.
    """
    check_output(output, force=force, others=[validation, tuning.costs, prior])
    predictions = read_predictions(validation, replace(columns, gaps=True))
    class_prior = _resolve_prior(prior, predictions, tuning.multilabel)
    if no_labels:
        _fit_unlabelled(predictions, class_prior, tuning.multilabel).save(output, force=force)
        _tell_unlabelled(output, json=json)
        return 0
    chosen = tuple(name.strip() for name in families.split(","))
    settings = {
        **tuning.settings(predictions),
        "prior": class_prior,
        "calibrate": calibrate,
        "cv": cv,
    }
    tuned = fit_named(Adjuster(chosen, **settings), predictions)
    save_model(tuned, output, force=force, data=file_words(validation))
    if json:
        print_json({**tuned_record(tuned), "model": str(output)})
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
    out.say(f"Model: {output}")
    say_how_to_ask(tuned)


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
    prior = "uniform" if isinstance(prior, str) else prior
    normalizer = AlternatingNormalizer(prior=prior, multilabel=multilabel, input=predictions.input)
    return fit_named(normalizer, predictions, labelled=False)


def _tell_unlabelled(output: Path, *, json: bool) -> None:
    if json:
        print_json({"verdict": None, "model": str(output)})
        return
    out.say(f"Model: {output} (no labels used, so it is unknown whether it helps)")
    out.say(f"Next: altnorm ask {output} POOL -o ask.csv")


# What `check` does, too: fit, write the model, say what is applied.


def fit_named(estimator: Any, predictions: Predictions, *, labelled: bool = True) -> Any:
    """Fit an estimator, which takes columns in the order of the file's classes."""
    labels = _check_labels(estimator, predictions) if labelled else None
    # Groups are the units of the evidence, of which there is none without labels.
    has_groups = labelled and predictions.groups is not None
    more = {"groups": predictions.groups} if has_groups else {}
    with by_class(predictions.classes):
        # Labels alone would not tell the classes: some have no row, and columns come in any order.
        return estimator.fit(predictions.proba, labels, classes=predictions.classes, **more)


def _check_labels(estimator: Any, predictions: Predictions) -> Any:
    """Return the labels, if there are any and they are of the estimator's kind."""
    _ = predictions.codes  # raises where there are none
    words = predictions.kind.words
    if words != kind_of(estimator).words:
        rule, remedy = _OTHER_KIND[words.problem]
        raise InputError(rule, f"the labels are {words.labels}", remedy)
    return predictions.labels


def say_how_to_ask(tuned: Adjuster, *files: str) -> None:
    """Where labels are too few, say how to get those that decide, and about how many it takes.

    `files` are options that keep what a second run of the command writes apart from the first.
    """
    verdict = tuned.verdict_
    needed = [caution.value for caution in verdict.cautions if caution.code == "too_few_rows"]
    times = sum(needed) / verdict.n_rows
    if verdict.reason != "not_significant" or times > REALISTIC:
        return
    # Only rows whose decision changes are evidence.
    n_labels = float(f"{times * verdict.n_changed:.1g}")
    about = f" (about {n_labels:,.0f} labels)" if needed else ""
    again = " ".join(["--insist -o", CANDIDATE, *files])
    out.say(
        f"Next:   ask for the labels that decide{about}: run this again with {again}, then: "
        f"altnorm ask {CANDIDATE} POOL -o ask.csv"
    )


def save_model(tuned: Adjuster, path: Path, *, force: bool, data: str) -> None:
    """Write a model without the number of threads, which is this machine's and not the model's."""
    kept = copy(tuned)
    kept.n_jobs = None
    kept.save(path, force=force, about={"data": data})


def applied_words(tuned: Adjuster) -> str:
    """Say what is applied: to probabilities, and to decide."""
    if tuned.family_ is None:
        return "The model changes nothing."
    numbers = score_figures(tuned.calibration_)
    change = f"{numbers.name} {numbers.before} -> {numbers.after}"
    if tuned.decision_.on_input:
        better = tuned.calibration_.gain > 0 and numbers.changed
        return f"Probabilities {'are better' if better else 'hardly change'}: {change}."
    sentences = f"The model {model_words(tuned)}. Probabilities: {change}."
    return f"{sentences} {_rule(tuned.decision_)}".rstrip()


def _rule(decision: Decision) -> str:
    if decision.is_argmax:
        return ""
    person = " A row may be left to a person." if decision.leaves_rows else ""
    return f"It decides for {RULES[decision.kind]}.{person}"

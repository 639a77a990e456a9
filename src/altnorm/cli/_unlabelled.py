"""A model from predictions alone: settings are given, not chosen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from altnorm import AlternatingNormalizer
from altnorm._base.errors import InputError
from altnorm.cli._fit import fit_named
from altnorm.cli._screen import out, print_json
from altnorm.io.balance_file import read_balance
from altnorm.io.columns import names_of
from altnorm.io.predictions import Predictions
from altnorm.method.kinds import resolve_kind
from altnorm.method.reference import PRIORS


def resolve_prior(prior: str, predictions: Predictions, multilabel: str | None) -> Any:
    """The prior that --prior names: a kind of prior, or a file with one number per class."""
    if prior in PRIORS:
        return prior
    if not Path(prior).is_file():
        raise InputError(
            f"--prior must be one of {', '.join(PRIORS)}, or a CSV file with a number per class",
            f"it is '{prior}'",
            value=prior,
            code="parameter",
        )
    names = resolve_kind(multilabel).prior_names(names_of(predictions.classes))
    return read_balance(prior, names)


def fit_unlabelled(
    predictions: Predictions, prior: Any, multilabel: str | None
) -> AlternatingNormalizer:
    """Fit alternating normalization at its default setting."""
    # Without labels there is nothing to count, nor anything to shrink.
    known = "uniform" if isinstance(prior, str) else prior
    normalizer = AlternatingNormalizer(prior=known, multilabel=multilabel, input=predictions.input)
    return fit_named(normalizer, predictions, labelled=False)


def save_unlabelled(
    fitted: AlternatingNormalizer, output: Path, *, force: bool, json: bool
) -> None:
    """Write a model that was fitted without labels, and say what to do next."""
    fitted.save(output, force=force)
    if json:
        print_json({"model": str(output), "verdict": None})
        return
    out.print(f"Model: {output} (no labels used: whether it helps is open)", soft_wrap=True)
    out.print(f"Next: altnorm ask {output} POOL -o ask.csv", soft_wrap=True)

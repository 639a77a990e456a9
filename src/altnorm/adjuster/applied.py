"""What a fitted estimator does to rows, and what it found, in words."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit, logit

from altnorm._base.arrays import Array, array_namespace, quiet, softmax, widest_float
from altnorm._base.words import FAMILY_NAMES, html_card, html_table, model_words
from altnorm.evidence.verdict import Verdict, outcome, score_figures
from altnorm.method.estimator import ProbabilityTransformer
from altnorm.method.kinds import LabelKind


def apply_model(
    model: ProbabilityTransformer, temperature: float, kind: LabelKind, proba: Array
) -> Array:
    """Return the probabilities (n, m) of a model, in double precision and new memory.

    Their logarithms, or log-odds, are divided by the temperature; 1 changes nothing.
    """
    xp = array_namespace(proba)
    wide = xp.astype(proba, widest_float(proba))
    new = model.transform_clean(wide)
    if temperature == 1:
        return new
    with quiet(np):
        if kind.is_multilabel:
            return np.asarray(expit(logit(new) / temperature))
        return softmax(xp.log(new) / temperature)


def fitted_words(adjuster: Any) -> str:
    """Say in a few words what was adopted."""
    verdict = adjuster.verdict_
    figures = score_figures(verdict)
    if not verdict.adopted:
        applied = "a temperature" if adjuster.temperature_ != 1 else "nothing"
        return f"no decision changes, {applied} is applied"
    name = FAMILY_NAMES.get(adjuster.family_, adjuster.family_)
    return f"{name}, {figures.name} {figures.change_and_unit}"


def calibrates(tuned: Any) -> bool:
    """Whether a tuned estimator calibrates probabilities."""
    calibration = getattr(tuned, "calibration_", None)
    return calibration is not None and bool(calibration.adopted)


def does(tuned: Any) -> str:
    """Say in a few words what a tuned estimator does."""
    return model_words(tuned.family_, calibrates=calibrates(tuned))


def families_table(tuned: Any) -> list[tuple[str, ...]]:
    """Return a row of text for each family, and for the calibration, under a header."""
    rows = [("decisions", tuned.verdict_, "adopted")]
    for name, verdict in tuned.families_.items():
        word = "chosen" if name == tuned.family_ else "passes"
        rows.append((FAMILY_NAMES.get(name, name), verdict, word))
    rows.append(("probabilities", tuned.calibration_, "adopted"))
    header = ("", "score", "before", "after", "change", "95% interval", "result")
    return [header, *(_line(*row) for row in rows)]


def _line(name: str, verdict: Verdict, word: str) -> tuple[str, ...]:
    result = word if verdict.adopted or word == "chosen" else verdict.reason_text
    if outcome(verdict) == "not_tried":
        return name, "", "", "", "", "", result
    found = score_figures(verdict)
    numbers = found.before, found.after, found.change_and_unit, f"{found.low} to {found.high}"
    return name, found.name, *numbers, result


def tuned_html(tuned: Any) -> str:
    """Return what was found, for a notebook."""
    header, *rows = families_table(tuned)
    cautions = [caution.text for caution in tuned.verdict_.cautions]
    after = f"<p>It {does(tuned)}.</p>"
    return html_card(str(tuned.verdict_), cautions, after, html_table(header, rows))

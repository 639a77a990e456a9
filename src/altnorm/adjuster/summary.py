"""What a tuned estimator found, for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from altnorm._base.words import FAMILY_NAMES, html_card, html_table, model_words
from altnorm.evidence.sentences import outcome, score_figures
from altnorm.evidence.verdict import Verdict


def calibrates(tuned: Any) -> bool:
    """Whether a tuned estimator calibrates probabilities."""
    calibration = getattr(tuned, "calibration_", None)
    return calibration is not None and bool(calibration.adopted)


def does(tuned: Any) -> str:
    """Say in a few words what a tuned estimator does."""
    return model_words(tuned.family_, calibrates=calibrates(tuned))


def families_table(tuned: Any) -> list[tuple[str, ...]]:
    """Return a row of text for each family, and for the calibration, under a header."""
    return [("", "score", "before", "after", "change", "95% interval", "result"), *_lines(tuned)]


def _lines(tuned: Any) -> Iterator[tuple[str, ...]]:
    yield _line("decisions", tuned.verdict_, _result(tuned.verdict_, "adopted"))
    for name, verdict in tuned.families_.items():
        chosen = name == tuned.family_
        result = "chosen" if chosen else _result(verdict, "passes")
        yield _line(FAMILY_NAMES.get(name, name), verdict, result)
    calibration = tuned.calibration_
    yield _line("probabilities", calibration, _result(calibration, "adopted"))


def _result(verdict: Verdict, word: str) -> str:
    return word if verdict.adopted else verdict.reason_text


def _line(name: str, verdict: Verdict, result: str) -> tuple[str, ...]:
    if outcome(verdict) == "not_tried":
        return name, "", "", "", "", "", result
    figures = score_figures(verdict)
    interval = f"{figures.low} to {figures.high}"
    return (
        name,
        figures.name,
        figures.before,
        figures.after,
        figures.change_and_unit,
        interval,
        result,
    )


def tuned_html(tuned: Any) -> str:
    """Return what was found, for a notebook."""
    header, *rows = families_table(tuned)
    cautions = [caution.text for caution in tuned.verdict_.cautions]
    after = f"<p>It {does(tuned)}.</p>"
    return html_card(str(tuned.verdict_), cautions, after, html_table(header, rows))

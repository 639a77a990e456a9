"""The page: template, style and script put together with the words and the data."""

from __future__ import annotations

import base64
import hashlib
import json
from importlib.resources import files
from typing import Any

import numpy as np
from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from altnorm._base.persistence import versions
from altnorm._base.words import plural, setting_words
from altnorm.adjuster.comparison import Comparison
from altnorm.adjuster.summary import does
from altnorm.report._case import Case
from altnorm.report._words import answer, cautions, score_line, value_words

SCRIPTS = ("core.js", "plot.js", "changes.js", "reasons.js", "choice.js", "live.js", "rows.js")
STYLES = ("style.css", "charts.css", "print.css")


def render(
    case: Case, data: dict[str, Any], comparison: Comparison | None, title: str | None
) -> str:
    """Fill the template; everything that comes from outside is escaped."""
    environment = Environment(
        loader=FunctionLoader(_read), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    # One function around all files, so that nothing leaks into the page's own names.
    script = "(() => {\n'use strict';\n" + "".join(map(_read, SCRIPTS)) + "})();"
    title = title or "Adjusted predictions"
    style = "".join(map(_read, STYLES)).replace("PAGE_TITLE", _css_string(title))
    return environment.get_template("page.html").render(
        title=title,
        style=Markup(style),
        script=Markup(script),
        policy=Markup(_policy(script, style)),
        data=Markup(_json(data)),
        case=case,
        answer=answer(case),
        cautions=cautions(case, comparison),
        facts=_facts(case),
        scores=_scores(case),
        arms=_arms(case),
        charts=data,
        settings=_settings(case),
        versions=versions(),
        plural=plural,
        does=does(case.normalizer) if hasattr(case.normalizer, "family_") else "",
        setting=setting_words(getattr(case.normalizer, "best_params_", {})),
        shift=str(getattr(case.normalizer, "shift_", "")),
    )


def _read(name: str) -> str:
    return files("altnorm.report").joinpath("page", name).read_text(encoding="utf-8")


def _policy(script: str, style: str) -> str:
    """No request, and no script or style but ours, whatever a class name may contain."""
    hashes = [
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for text in (script, style)
    ]
    return (
        f"default-src 'none'; script-src 'sha256-{hashes[0]}'; style-src 'sha256-{hashes[1]}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _css_string(text: str) -> str:
    """A string of CSS that holds any text; what is not a letter or digit is told by its code."""
    coded = (c if c.isascii() and c.isalnum() else f"\\{ord(c):06x}" for c in text if c != "\0")
    return f'"{"".join(coded)}"'


def _json(data: dict[str, Any]) -> str:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _facts(case: Case) -> dict[str, Any]:
    """Counts that the text mentions."""
    in_doubt = None
    if case.threshold is not None:
        in_doubt = int((case.ambiguity > case.threshold).sum())
    return {
        "n_rows": case.before.shape[0],
        "n_classes": case.before.shape[1],
        "n_decisions": int(case.ambiguity.size),
        "n_doubt": in_doubt,
        "share_doubt": None if in_doubt is None else in_doubt / max(1, case.ambiguity.size),
        "n_changed": int(np.unique(case.explanation.row).size),
        "n_entries": len(case.explanation),
        **dict(zip(("noun", "class_noun", "classes_noun"), case.kind.nouns, strict=True)),
    }


def _scores(case: Case) -> list[Any]:
    if case.evaluation is None:
        return []
    shown = (case.evaluation.verdict, *case.evaluation.scores)
    return [score_line(one) for one in shown]


def _arms(case: Case) -> list[tuple[str, Any, str]]:
    """The families that competed, and what became of each."""
    names = {
        "alternating": "Alternating normalization",
        "bias": "Bias family: a temperature and class biases",
        "matrix": "Matrix family: confusions of pairs of classes",
    }
    found = []
    for name, verdict in getattr(case.normalizer, "families_", {}).items():
        fate = "passes, but gains less" if verdict.adopted else verdict.reason_text
        if name == case.normalizer.family_:
            fate = "chosen"
        found.append((names.get(name, name), score_line(verdict), fate))
    calibration = getattr(case.normalizer, "calibration_", None)
    if calibration is not None:
        fate = "adopted" if calibration.adopted else calibration.reason_text
        found.append(
            (f"Calibration: {score_line(calibration).name}", score_line(calibration), fate)
        )
    return found


def _settings(case: Case) -> list[tuple[str, list[tuple[str, str]]]]:
    """Groups of names and values for the end of the page."""
    groups = []
    best = getattr(case.normalizer, "best_params_", None)
    if best is not None:
        adopted = case.tuned is None or case.tuned.adopted
        groups.append(("Chosen" if adopted else "Best, not adopted", _pairs(best)))
    fitted = {
        name: getattr(case.inner, name)
        for name in ("temperature_", "threshold_")
        if np.ndim(getattr(case.inner, name, np.empty(1))) == 0
    }
    if fitted:
        groups.append(("Fitted", _pairs(fitted)))
    given = {
        name: value
        for name, value in case.normalizer.get_params(deep=False).items()
        if name not in ("n_jobs", "verbose")
    }
    groups.append((type(case.normalizer).__name__, _pairs(given)))
    return groups


def _pairs(settings: dict[str, Any]) -> list[tuple[str, str]]:
    return [(name, value_words(value)) for name, value in settings.items()]

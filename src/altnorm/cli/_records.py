"""What commands print with ``--json``: records in which a field has one meaning.

The page of the command line lists all fields, and a test compares.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from altnorm import Adjuster
from altnorm.adjuster.mixture import PARTS
from altnorm.cli._screen import out
from altnorm.decisions.decision import Decision
from altnorm.evidence.verdict import Verdict, outcome
from altnorm.io.labels import names_of
from altnorm.report.evaluation import Evaluation

PERSON = "person"
"""What leaving a row to a person is called in files of costs."""

_NUMBERS = "scoring before after gain ci_low ci_high p_value n_rows n_changed n_fixed n_broken"
_DECIDING = "adopted reason evidence insisted significance n_left gates cautions promise"


def print_json(record: Mapping[str, Any], screen: Console = out) -> None:
    """Print a record as one line of JSON."""
    print(json.dumps(plain(record), allow_nan=False), file=screen.file)


def plain(value: Any) -> Any:
    """A value as JSON can hold it; costs by (true, decision) as in a file of costs."""
    if isinstance(value, Mapping):
        nested: dict[str, Any] = {}
        for key, part in value.items():
            if isinstance(key, tuple):
                nested.setdefault(str(key[0]), {})[str(key[1] or PERSON)] = plain(part)
            else:
                nested[str(key)] = plain(part)
        return nested
    if isinstance(value, (np.ndarray, np.generic)):
        return plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    return value if value is None or isinstance(value, (int, str)) else str(value)


def file_words(path: Path) -> str:
    """A file by its name and the first digits of its digest, by which it can be told again."""
    if not path.is_file():
        return "standard input"
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return f"{path.name} (sha256 {digest[:12]})"


def verdict_record(verdict: Verdict) -> dict[str, Any]:
    """A verdict that decided what is applied."""
    fields = verdict.to_dict()
    return {name: fields[name] for name in f"{_NUMBERS} {_DECIDING}".split()}


def score_record(verdict: Verdict) -> dict[str, Any]:
    """A score before and after, which decides nothing."""
    fields = verdict.to_dict()
    return {name: fields[name] for name in _NUMBERS.split()} | {"outcome": outcome(verdict)}


def tuned_record(tuned: Adjuster) -> dict[str, Any]:
    """What tuning found, and what is applied."""
    return {
        "verdict": verdict_record(tuned.verdict_),
        "log_loss": {"before": -tuned.calibration_.before, "after": -tuned.calibration_.after},
        "families": {name: _family(verdict) for name, verdict in tuned.families_.items()},
        "applied": {
            "family": tuned.family_,
            "mixture": dict(zip(PARTS, tuned.mixture_.weights, strict=True)),
            "rule": _rule(tuned.decision_, names_of(tuned.classes_)),
        },
    }


def _family(verdict: Verdict) -> dict[str, Any]:
    if outcome(verdict) == "not_tried":
        return {"log_loss": None, "not_tried": verdict.reason_text}
    return {"log_loss": -verdict.after, "not_tried": None}


def _rule(decision: Decision, classes: Sequence[str]) -> dict[str, Any]:
    """How decisions follow from probabilities; what the rule does not have is None."""
    by_class = dict(zip(classes, decision.values, strict=True))
    if decision.kind == "costs":
        outcomes = [*classes, PERSON]  # where the rule leaves no row to one, the last has no cost
        by_class = {name: dict(zip(outcomes, row, strict=False)) for name, row in by_class.items()}
    record: dict[str, Any] = {"of": "input" if decision.on_input else "adjusted"}
    record |= dict.fromkeys(("weights", "thresholds", "costs"))
    return record | {decision.kind: by_class, "least_probability": decision.least}


def tested_record(result: Evaluation) -> dict[str, Any]:
    """What a model does to labelled rows that it has not seen; rows by their ids."""
    before, after = (side.error for side in result.reliability)
    return {
        "score": score_record(result.verdict),
        "other_scores": [score_record(verdict) for verdict in result.scores],
        "calibration_error": {"before": before, "after": after},
        "cautions": result.verdict.to_dict()["cautions"],
        "fixed": result.ids[result.fixed],
        "broken": result.ids[result.broken],
        "left": result.ids[result.applied.left],
        "promise_kept": None if result.kept is None else result.kept.to_dict(),
    }

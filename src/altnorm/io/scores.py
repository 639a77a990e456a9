"""Lines with a score for each label -> probabilities, one column per label.

Lines are ``{"scores": {"cat": -0.1, "dog": -2.3}, "y": "cat"}``. Text-classification pipelines of
Hugging Face give ``[{"label": "joy", "score": 0.9}, ...]`` for each text, alone or as a value of an
object; zero-shot ones parallel lists ``labels`` and ``scores``.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from altnorm._base.errors import InputError, InputWarning, warn
from altnorm._base.files import file_error
from altnorm._base.validation import is_number
from altnorm._base.words import plural
from altnorm.estimator.topk import from_topk
from altnorm.io.json_lines import Line, read_values
from altnorm.io.labels import listed


def has_scores(value: Any) -> bool:
    """Whether a value is, or holds, a score for each label; raise if it could and does not."""
    record = _as_record(value)
    if _is_best_alone(record):
        raise _only_the_best(
            " If `score` is the probability of one of two classes, write a column for each."
        )
    if "generated_text" in record or _is_message(record):
        raise file_error(
            "The log-probabilities of the answers are needed",
            "the file has only generated text",
            "Keep the whole answer of a server that is asked for them (`logprobs`), or use a "
            "text-classification pipeline with top_k=None.",
        )
    return _score_key(record) is not None


def _as_record(value: Any) -> dict[str, Any]:
    return dict(value) if isinstance(value, dict) else {"scores": value}


def _is_best_alone(record: dict[str, Any]) -> bool:
    """Whether it is the best label of a text with its score, and no other number beside it."""
    others = [value for key, value in record.items() if key not in ("label", "score")]
    return (
        isinstance(record.get("label"), str)
        and isinstance(record.get("score"), float)
        and not any(isinstance(value, (float, dict, list)) for value in others)
    )


def _is_message(record: dict[str, Any]) -> bool:
    """Whether it is what was said, in a chat or to a prompt, and no number beside it."""
    has_numbers = any(isinstance(value, float) for value in record.values())
    in_chat = {"role", "content"} <= record.keys() or isinstance(record.get("messages"), list)
    is_nested = any(isinstance(value, (dict, list)) for value in record.values())
    is_completion = {"prompt", "completion"} <= record.keys() and not is_nested
    return (in_chat or is_completion) and not has_numbers


def score_lines(path: Path) -> Iterator[Line]:
    """The lines of a file with a mapping from labels to numbers under ``scores``."""
    is_best_alone = True  # in all lines
    for number, value in read_values(path):
        record = _as_record(value)
        key = _score_key(record)
        scores: Any = None if key is None else record.pop(key)
        is_paired = _are_pairs(scores)
        is_best_alone &= is_paired and len(scores) == 1
        if isinstance(scores, list):
            labels = [pair["label"] for pair in scores] if is_paired else record.pop("labels")
            values = [pair["score"] for pair in scores] if is_paired else scores
            scores = dict(zip(map(str, labels), values, strict=True))
            if len(scores) < len(values):  # the best of several texts
                raise _only_the_best()
        yield number, {**record, "scores": scores}
    if is_best_alone:
        raise _only_the_best()


def _score_key(record: dict[str, Any]) -> str | None:
    """Under which key an object holds its scores."""
    match record:
        case {"scores": dict()}:
            return "scores"
        case {"labels": list(labels), "scores": list(scores)} if len(labels) == len(scores):
            return "scores"
    return next((name for name, value in record.items() if _are_pairs(value)), None)


def _are_pairs(value: Any) -> bool:
    """Whether it is a list of labels with scores."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(pair, dict) and {"label", "score"} <= pair.keys() for pair in value)
    )


def _only_the_best(more: str = "") -> InputError:
    remedy = f"Call the pipeline with top_k=None, which gives the score of every label.{more}"
    return file_error("The score of every label is needed", "the file has only the best", remedy)


class Scores:
    """The scores of all lines of a file, learned in a first pass.

    They are probabilities if none is negative, else all are log-probabilities; a label that a
    line lacks is filled in by :func:`altnorm.from_topk`, also one of the `labels` that are known
    from elsewhere. Where lines may have no scores at all, `gaps` says what is the matter with them.
    """

    def __init__(self, labels: Collection[str] = (), *, gaps: str = "") -> None:
        self._gaps = gaps
        self._codes = {name: j for j, name in enumerate(labels)}
        self._known, self._has_known = set(labels), False
        self._orders: set[tuple[str, ...]] = set()
        self._low, self._high = 0.0, 0.0
        self._n_lines, self._n_gaps, self._first_gap = 0, 0, 0

    def learn(self, number: int, scores: Any) -> None:
        """Record those of a line in the first pass."""
        self._n_lines += 1
        if self._gaps and scores == {}:
            self._n_gaps += 1
            self._first_gap = self._first_gap or number
            return
        if not isinstance(scores, dict) or not scores or not all(map(is_number, scores.values())):
            raise file_error(
                "`scores` must give a number for each label",
                f"line {number} has {json.dumps(scores)[:60]}",
                'Write for example {"scores": {"yes": -0.1, "no": -2.4}}.',
            )
        self._low = min(self._low, *scores.values())
        self._high = max(self._high, *scores.values())
        self._has_known = self._has_known or not self._known.isdisjoint(scores)
        for name in scores:
            self._codes.setdefault(name, len(self._codes))
        if len(self._orders) < 2:  # with two of them it is known that there is no one order
            self._orders.add(tuple(scores))

    def classes(self) -> list[str]:
        """Their labels, after the first pass; warn of lines that have none."""
        if self._low < 0 < self._high or self._high > 1 + 1e-6:
            raise file_error(
                "`scores` must all be probabilities, from 0 to 1, or all log-probabilities, at "
                "most 0",
                f"they span {self._low:g} to {self._high:g}",
                "For logits, write one key per class and pass --logits.",
            )
        if self._known and not self._has_known and self._n_gaps < self._n_lines:
            unknown = [name for name in self._codes if name not in self._known]
            raise file_error(
                f"The scores must be those of the classes {listed(sorted(self._known))}",
                f"they are those of {listed(unknown)}",
                "Write the names of the classes alike, also in upper and lower case.",
            )
        if 0 < self._n_gaps < self._n_lines:
            message = (
                f"{plural(self._n_gaps, 'row')} of {self._n_lines:,} {self._gaps}, the first in "
                f"line {self._first_gap}: no decision for these."
            )
            warn(InputWarning(message, "no_scores"))
        return list(self._codes)

    def are_ordered(self) -> bool:
        """Whether every line gives the labels in the order of `classes`, after the first pass."""
        return self._orders == {tuple(self._codes)}

    def proba(self, lines: list[Line]) -> np.ndarray:
        """Probabilities of some lines, one column per class; NaN in gaps."""
        proba = np.full((len(lines), len(self._codes)), np.nan)
        scored = [i for i, (_, record) in enumerate(lines) if record["scores"]]
        if not scored:
            return proba
        width = max(len(lines[i][1]["scores"]) for i in scored)
        indices = np.full((len(scored), width), -1)
        values = np.zeros((len(scored), width))
        for row, i in enumerate(scored):
            scores = lines[i][1]["scores"]
            indices[row, : len(scores)] = [self._codes[name] for name in scores]
            values[row, : len(scores)] = list(scores.values())
        kind = "log_proba" if self._low < 0 else "proba"
        try:
            proba[scored] = from_topk(indices, values, len(self._codes), input=kind)
        except InputError as error:
            if error.place is None:
                raise
            offender = f"line {lines[scored[error.place.row]][0]} has {error.place.note}"
            remedy = "Correct the scores; where several labels may apply, write a column per label."
            raise file_error(error.rule, offender, remedy) from error
        return proba

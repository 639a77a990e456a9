"""Answers as pipelines and services write them -> scores by label.

Text-classification pipelines give ``[{"label": "joy", "score": 0.9}, ...]`` for each text, alone or
as a value of an object; zero-shot ones parallel lists ``labels`` and ``scores``. Services that
speak OpenAI's language give log-probabilities of tokens, for chats, completions and responses;
batch files wrap them. A token is a class if it equals its name but for white space around it and,
where that is unambiguous, upper and lower case.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from altnorm._base.errors import InputError, InputWarning, shown, warn
from altnorm._base.files import file_error
from altnorm._base.words import plural
from altnorm.io.json_lines import Line, read_lines, read_values

ASK_FOR_SCORES = "Call the pipeline with top_k=None, which gives the score of every label."
ASK_FOR_TOKENS = (
    "Ask the server for them: `logprobs: true, top_logprobs: 20` for chats, `logprobs: 20` for "
    "completions, `top_logprobs: 20` and `include: [message.output_text.logprobs]` for responses."
)
Alternatives = dict[str, float]
"""Log-probability of each token that might have stood at a place."""


# Scores by label.


def has_scores(value: Any) -> bool:
    """Whether a value is, or holds, a score for each label; raise if it could and does not."""
    if isinstance(value, dict) and {"label", "score"} == value.keys():
        raise _only_the_best()
    if isinstance(value, dict) and "generated_text" in value:
        raise file_error(
            "The log-probabilities of the answers are needed",
            "the file has only generated text",
            "Use a text-classification pipeline with top_k=None, or a server that gives them.",
        )
    return _are_pairs(value) or (isinstance(value, dict) and _score_key(value) is not None)


def score_lines(path: Path) -> Iterator[Line]:
    """The lines of a file with a mapping from labels to numbers under ``scores``."""
    for number, value in read_values(path):
        record = dict(value) if isinstance(value, dict) else {"scores": value}
        key = _score_key(record)
        scores: Any = None if key is None else record.pop(key)
        if _are_pairs(scores):
            by_label = {str(pair["label"]): pair["score"] for pair in scores}
            if len(by_label) < len(scores):  # the best of several texts
                raise _only_the_best()
            scores = by_label
        elif isinstance(scores, list):
            scores = dict(zip(map(str, record.pop("labels")), scores, strict=True))
        yield number, {**record, "scores": scores}


def _score_key(record: dict[str, Any]) -> str | None:
    """Under which key an object holds its scores."""
    if isinstance(record.get("scores"), dict) or _are_parallel(record):
        return "scores"
    return next((name for name, value in record.items() if _are_pairs(value)), None)


def _are_pairs(value: Any) -> bool:
    """Whether it is a list of labels with scores, as pipelines of Hugging Face give it."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(pair, dict) and {"label", "score"} <= pair.keys() for pair in value)
    )


def _are_parallel(record: dict[str, Any]) -> bool:
    labels, scores = record.get("labels"), record.get("scores")
    return isinstance(labels, list) and isinstance(scores, list) and len(labels) == len(scores)


def _only_the_best() -> InputError:
    return file_error(
        "The score of every label is needed", "the file has only the best", ASK_FOR_SCORES
    )


# Log-probabilities of tokens.


class _Answer(NamedTuple):
    """What a line says: its other columns, and the tokens, each with its alternatives."""

    columns: dict[str, Any]
    tokens: list[tuple[str, Alternatives]]


def is_answer(value: Any) -> bool:
    """Whether a value is, or holds, the answer of a service."""
    return isinstance(value, dict) and _find_answer(value) is not None


def answer_columns(path: Path) -> Iterator[dict[str, Any]]:
    """What else the lines hold, such as labels."""
    for _, record in read_lines(path):
        yield _columns(record)


def answer_lines(path: Path, classes: Sequence[str], *, tell: bool = False) -> Iterator[Line]:
    """The lines of a file with probabilities of the classes under ``scores``; none if it failed.

    They are read at the first token that is a class, or else at the first that might have been one.
    `tell` warns of answers that do not begin with a class or have none.
    """
    spelled = _spellings(classes)
    places: Counter[int] = Counter()
    without: list[int] = []
    for number, value in read_values(path):
        answer = _read_answer(number, value)
        place = _find_place(answer.tokens, spelled)
        scores = {} if place is None else _probabilities(answer.tokens[place][1], classes, spelled)
        if place is None:
            without.append(number)
        else:
            places[place] += 1
        yield number, {**answer.columns, "scores": scores}
    if not places:
        raise file_error(
            f"Some answer must have a class ({shown(', '.join(classes))}) among its tokens",
            f"none of {plural(len(without), 'answer')} has",
            "Pass the answers that you asked for with --classes; each must be a single token, such "
            "as a letter.",
        )
    if tell:
        _tell_places(places, without)


def _tell_places(places: Counter[int], without: list[int]) -> None:
    if set(places) != {0}:
        often = ", ".join(f"{n:,} at token {place + 1}" for place, n in sorted(places.items()))
        warn(InputWarning(f"Not all answers begin with a class; they are read {often}.", "place"))
    if without:
        message = (
            f"{plural(len(without), 'answer')} of {len(without) + places.total():,} failed or "
            f"cannot be a class, the first in line {without[0]}: no decision for these."
        )
        warn(InputWarning(message, "no_answer"))


def _find_answer(value: dict[str, Any]) -> tuple[str | None, Any] | None:
    """The key under which an object holds an answer (None: it is one), and the answer."""
    if isinstance(value.get("choices"), list) or _is_response(value):
        return None, value
    if "custom_id" in value and "response" in value:  # a batch file; failed lines have no body
        response = value["response"]
        return "response", response.get("body") if isinstance(response, dict) else None
    for name, part in value.items():
        if isinstance(part, dict) and (isinstance(part.get("choices"), list) or _is_response(part)):
            return name, part
    return None


def _is_response(value: dict[str, Any]) -> bool:
    return value.get("object") == "response" and isinstance(value.get("output"), list)


def _columns(record: dict[str, Any]) -> dict[str, Any]:
    """What an object holds beside an answer; of what services write only plain values."""
    answer = _find_answer(record)
    key = None if answer is None else answer[0]
    nested = () if key is not None else (dict, list)
    return {k: v for k, v in record.items() if k != key and not isinstance(v, nested)}


def _read_answer(number: int, value: Any) -> _Answer:
    answer = _find_answer(value) if isinstance(value, dict) else None
    if answer is None:
        raise file_error(
            "Every line must be an answer of the service", f"line {number} is none", "Remove it."
        )
    body = answer[1]
    if not isinstance(body, dict) or body.get("error"):  # a failed line of a batch
        return _Answer(_columns(value), [])
    try:
        tokens = _response_tokens(body) if _is_response(body) else _choice_tokens(body)
    except (KeyError, TypeError, AttributeError, IndexError, ValueError):
        tokens = None
    if tokens is None:
        raise file_error(
            "Every answer must have the log-probabilities of its tokens",
            f"line {number} has none",
            ASK_FOR_TOKENS,
            value=number,
        )
    return _Answer(_columns(value), tokens)


def _choice_tokens(body: dict[str, Any]) -> list[tuple[str, Alternatives]] | None:
    """The tokens of a chat or a completion; None where there are no log-probabilities."""
    if not body.get("choices"):
        return [] if "choices" not in body else None
    logprobs = body["choices"][0]["logprobs"]
    if not logprobs:
        return None
    if "tokens" in logprobs:  # a completion
        parts = zip(
            logprobs["tokens"], logprobs["token_logprobs"], logprobs["top_logprobs"], strict=True
        )
        return [
            (str(token), {str(t): float(q) for t, q in {token: p, **(top or {})}.items()})
            for token, p, top in parts
        ]
    return None if logprobs["content"] is None else _token_list(logprobs["content"])


def _response_tokens(body: dict[str, Any]) -> list[tuple[str, Alternatives]] | None:
    """The tokens of the texts of a response."""
    texts = [part for item in body["output"] for part in item.get("content") or ()]
    tokens = [token for text in texts for token in _token_list(text.get("logprobs") or ())]
    return tokens or None


def _token_list(tokens: Sequence[Any]) -> list[tuple[str, Alternatives]]:
    return [
        (
            str(token["token"]),
            {
                str(part["token"]): float(part["logprob"])
                for part in (token, *token.get("top_logprobs", ()))
            },
        )
        for token in tokens
    ]


def _spellings(classes: Sequence[str]) -> dict[str, str]:
    """Which class a text stands for: by its name, and whatever its case if only one does."""
    folded = Counter(name.strip().casefold() for name in classes)
    any_case = {name.strip().casefold(): name for name in classes}
    unambiguous = {text: name for text, name in any_case.items() if folded[text] == 1}
    return unambiguous | {name.strip(): name for name in classes}


def _class_of(token: str, spelled: dict[str, str]) -> str | None:
    text = token.strip()
    return spelled.get(text, spelled.get(text.casefold()))


def _find_place(tokens: Sequence[tuple[str, Alternatives]], spelled: dict[str, str]) -> int | None:
    """Where the answer is: at the first token that is a class, or else that might have been one."""
    for place, (token, _) in enumerate(tokens):
        if _class_of(token, spelled) is not None:
            return place
    for place, (_, alternatives) in enumerate(tokens):
        if any(_class_of(token, spelled) is not None for token in alternatives):
            return place
    return None


def _probabilities(
    alternatives: Alternatives, classes: Sequence[str], spelled: dict[str, str]
) -> dict[str, float]:
    """Probability of each class: that of its tokens; of one that has none, what may be left for it.

    Missing classes share what the alternatives leave of 1, each no more than the smallest of them.
    """
    by_class: dict[str, float] = {}
    for token, log_p in alternatives.items():
        name = _class_of(token, spelled)
        if name is not None:
            by_class[name] = by_class.get(name, 0.0) + math.exp(min(log_p, 0.0))
    every = [math.exp(min(log_p, 0.0)) for log_p in alternatives.values()]
    n_missing = len(classes) - len(by_class)
    share = min(max(1 - sum(every), 0.0) / max(n_missing, 1), min(every))
    return {name: by_class.get(name, share) for name in classes}

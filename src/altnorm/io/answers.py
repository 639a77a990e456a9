"""Answers of a language model's server -> probabilities of the classes by label.

Servers that speak OpenAI's language give log-probabilities of tokens, for chats, completions and
responses; batch files wrap them. A token is a class if it equals its name but for white space
around it and, where that is unambiguous, upper and lower case.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from altnorm._base.errors import InputWarning, shown, warn
from altnorm._base.files import file_error
from altnorm.io.json_lines import Line, read_values

_ASK_FOR_TOKENS = (
    "Ask the server for them: `logprobs: true, top_logprobs: 20` for chats, `logprobs: 20` for "
    "completions, `top_logprobs: 20` and `include: [message.output_text.logprobs]` for responses."
)

# Objects in the answers of openai 3.51, vLLM 0.33 and llama.cpp.
_OF_SERVERS = {"access_programs", "conversation", "error", "image", "incomplete_details"}
_OF_SERVERS |= {"kv_transfer_params", "metadata", "moderation", "prompt", "reasoning", "text"}
_OF_SERVERS |= {"prompt_cache_diagnostics", "prompt_cache_options", "timings", "tool_choice"}
_OF_SERVERS |= {"tool_usage", "usage"}
_FAILED, _NO_CLASS = -1, -2  # places of answers that are not there, or name no class


class Answer(NamedTuple):
    """A value that is, or holds, the answer of a server."""

    columns: dict[str, Any]  # what it holds beside the answer; of what servers write plain values
    body: Any  # a chat, completion or response; None where the request failed


class _Token(NamedTuple):
    """A token of an answer, and the log-probability of each that might have stood there."""

    text: str
    alternatives: dict[str, float]


def find_answer(value: Any) -> Answer | None:
    """The answer that a value is or holds, if any; raise if it is what was sent to get one."""
    if not isinstance(value, dict):
        return None
    if {"custom_id", "url", "body"} <= value.keys():
        raise file_error(
            "The answers to a batch are needed",
            "the file has the requests",
            "Ask in each `body` for `logprobs: true, top_logprobs: 20`, and pass the output file "
            "of the batch.",
        )
    if _is_body(value):
        return Answer({k: v for k, v in value.items() if not _is_of_server(k, v)}, value)
    if "custom_id" in value and "response" in value:  # a batch file; failed lines have no body
        key, response = "response", value["response"]
        body = response.get("body") if isinstance(response, dict) else None
    else:
        key, body = next(((k, v) for k, v in value.items() if _is_body(v)), ("", None))
        if body is None:
            return None
    return Answer({k: v for k, v in value.items() if k != key}, body)


def _is_of_server(key: str, value: Any) -> bool:
    return isinstance(value, list) or (isinstance(value, dict) and key in _OF_SERVERS)


def _read_answers(path: Path) -> Iterator[tuple[int, Answer]]:
    for number, value in read_values(path):
        answer = find_answer(value)
        if answer is None:
            raise file_error(
                "Every line must be an answer of the server",
                f"line {number} is not one",
                "Remove it.",
            )
        yield number, answer


def columns_beside(path: Path) -> Iterator[Line]:
    """The lines of a file without the answers."""
    return ((number, answer.columns) for number, answer in _read_answers(path))


def answer_lines(path: Path, classes: Sequence[str], places: Counter[int]) -> Iterator[Line]:
    """The lines of a file with probabilities of the classes under ``scores``; none if it failed.

    They are read at the first token that is a class, or else at the first that might have been one;
    `places` counts which token that is, and answers that have none.
    """
    spelled = _spellings(classes)
    is_token_alone = True  # in all answers
    for number, answer in _read_answers(path):
        tokens = _read_tokens(number, answer.body)
        place = _find_place(tokens, spelled)
        scores: dict[str, float] = {}
        if place is None:
            places[_NO_CLASS if tokens else _FAILED] += 1
        else:
            places[place] += 1
            is_token_alone &= len(tokens[place].alternatives) == 1
            scores = _probabilities(tokens[place].alternatives, classes, spelled)
        yield number, {**answer.columns, "scores": scores}
    if is_token_alone and any(place >= 0 for place in places):
        rule, offender = "The alternatives to each token are needed", "the file has only the token"
        raise file_error(rule, offender, _ASK_FOR_TOKENS)


def tell_places(places: Counter[int], classes: Collection[str]) -> None:
    """Warn if not all answers begin with a class, raise if none has one."""
    if set(places) == {_FAILED}:
        raise file_error(
            "At least one request must have been answered",
            f"all {places[_FAILED]:,} failed",
            "Send them again; their lines say why, under `response` or `error`.",
        )
    at_class = {place: n for place, n in places.items() if place >= 0}
    if not at_class:
        raise file_error(
            f"At least one answer must have a class ({shown(', '.join(classes))}) among its tokens",
            "none has",
            "Pass the answers that you asked for with --classes; each must be a single token, such "
            "as a letter.",
        )
    if set(at_class) != {0}:
        often = ", ".join(f"{n:,} at token {place + 1}" for place, n in sorted(at_class.items()))
        message = f"Not all answers begin with their class. Where it is: {often}."
        warn(InputWarning(message, "place"))


def _is_body(value: Any) -> bool:
    match value:
        case {"choices": list()} | {"object": "response", "output": list()}:
            return True
    return False


def _read_tokens(number: int, body: Any) -> list[_Token]:
    """The tokens of an answer; none where it failed."""
    if not _is_body(body) or body.get("error"):  # a failed line of a batch
        return []
    try:
        return _tokens_of(body)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise file_error(
            "Every answer must have the log-probabilities of its tokens",
            f"line {number} has none",
            _ASK_FOR_TOKENS,
            value=number,
        ) from error


def _tokens_of(body: dict[str, Any]) -> list[_Token]:
    match body:
        case {"object": "response", "output": items}:
            texts = [part for item in items for part in item.get("content") or ()]
            tokens = [_chat_token(token) for text in texts for token in text.get("logprobs") or ()]
            if tokens:
                return tokens
        case {"choices": [{"logprobs": {"tokens": _} as logprobs}, *_]}:  # a completion
            columns = (logprobs[name] for name in ("tokens", "token_logprobs", "top_logprobs"))
            return [
                _Token(str(text), {str(t): float(q) for t, q in {text: p, **(top or {})}.items()})
                for text, p, top in zip(*columns, strict=True)
            ]
        case {"choices": [{"logprobs": {"content": list(content)}}, *_]}:  # a chat
            return [_chat_token(token) for token in content]
    raise ValueError("no log-probabilities")


def _chat_token(token: dict[str, Any]) -> _Token:
    parts = (token, *token.get("top_logprobs", ()))
    return _Token(
        str(token["token"]), {str(part["token"]): float(part["logprob"]) for part in parts}
    )


def _spellings(classes: Sequence[str]) -> dict[str, str]:
    """Which class a text stands for: by its name, and whatever its case if only one does."""
    folded = Counter(name.strip().casefold() for name in classes)
    any_case = {name.strip().casefold(): name for name in classes}
    unambiguous = {text: name for text, name in any_case.items() if folded[text] == 1}
    return unambiguous | {name.strip(): name for name in classes}


def _class_of(token: str, spelled: dict[str, str]) -> str | None:
    text = token.strip()
    return spelled.get(text, spelled.get(text.casefold()))


def _find_place(tokens: Sequence[_Token], spelled: dict[str, str]) -> int | None:
    """Where the answer is: at the first token that is a class, or else that might have been one.

    A letter in another case comes second: in "This is a guess: B" the article is no answer.
    """
    written = [[token.text] for token in tokens]
    surely = [
        [text for text in choices if not _is_other_case(text, spelled)] for choices in written
    ]
    for texts in (surely, written, [token.alternatives for token in tokens]):
        for place, choices in enumerate(texts):
            if any(_class_of(text, spelled) is not None for text in choices):
                return place
    return None


def _is_other_case(token: str, spelled: dict[str, str]) -> bool:
    """Whether it is a letter, and the class that it stands for is the same in another case."""
    text, name = token.strip(), _class_of(token, spelled)
    return len(text) == 1 and name is not None and name.strip() != text


def _probabilities(
    alternatives: dict[str, float], classes: Sequence[str], spelled: dict[str, str]
) -> dict[str, float]:
    """Probability of each class: that of its tokens; of one that has none, what may be left for it.

    Missing classes share what the alternatives leave of 1, each no more than the smallest of them.
    """
    proba = {token: math.exp(min(log_p, 0.0)) for token, log_p in alternatives.items()}
    by_class: dict[str, float] = {}
    for token, p in proba.items():
        name = _class_of(token, spelled)
        if name is not None:
            by_class[name] = by_class.get(name, 0.0) + p
    n_missing = len(classes) - len(by_class)
    left = max(1 - sum(proba.values()), 0.0) / max(n_missing, 1)
    share = min(left, *proba.values())
    return {name: by_class.get(name, share) for name in classes}

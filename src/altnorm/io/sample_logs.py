"""Sample logs of lm-evaluation-harness: the answers of a language model to multiple-choice tasks.

One line per question (``samples_TASK_DATE.jsonl``). ``filtered_resps`` holds one pair for each
option, its log-likelihood and whether it is the greedy answer, as numbers or as text; ``target`` is
the index of the right option, or its text; ``arguments`` the prompts and the options' texts.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from scipy.special import softmax

from altnorm._base.errors import InputWarning, shown, warn
from altnorm._base.files import file_error
from altnorm.io.jsonl import Line

KEYS = {"filtered_resps", "target", "doc_id"}


def is_sample(record: dict[str, Any]) -> bool:
    """Whether a line is one of a sample log."""
    return record.keys() >= KEYS


class SampleLog:
    """Lines of a sample log; the options are the classes, named by text or by number.

    Parameters
    ----------
    usual : bool
        Whether to keep only the questions with the usual number of options.
    """

    label = "target"
    ordered = True

    def __init__(self, *, usual: bool = False) -> None:
        self._usual = usual
        self._sizes: Counter[int] = Counter()
        self._texts: set[tuple[str, ...]] = set()
        self._filters: Counter[str] = Counter()
        self._size = 0

    def learn(self, number: int, record: dict[str, Any]) -> None:
        """Count options and filters, and see whether the options are always the same."""
        if not is_sample(record):
            raise file_error(
                f"Each line of a sample log has {', '.join(sorted(KEYS))}",
                f"line {number} has {shown(', '.join(sorted(record)))}",
                "For other JSON lines, pass --format jsonl.",
            )
        # Each filter repeats all questions: lines of one filter only are one set of predictions.
        self._filters[str(record.get("filter"))] += 1
        if not self._is_first_filter(record):
            return
        size = len(_log_likelihoods(record, number))
        self._sizes[size] += 1
        self._texts.add(_option_texts(record, size))
        _check_inputs(record, size, number)

    def classes(self) -> list[str]:
        """Text of the options where they are the same in every line, else their numbers."""
        if not self._sizes:
            raise file_error("A sample log must have lines", "it has none")
        self._size, n_usual = self._sizes.most_common(1)[0]
        n_other = self._sizes.total() - n_usual
        if n_other and not self._usual:
            raise file_error(
                "All questions must have the same number of options",
                f"{n_usual} have {self._size} and {n_other} have another number",
                "Pass --usual-options to keep those with the usual number.",
            )
        if len(self._filters) > 1:
            first, *others = self._filters
            message = (
                f"The log has several filters; the lines of '{shown(first)}' are read, those of "
                f"{shown(', '.join(others))} are not."
            )
            warn(InputWarning(message, "several_filters"))
        texts = {known for known in self._texts if len(known) == self._size}
        same = next(iter(texts)) if len(texts) == 1 else ()
        return list(same) or [str(j) for j in range(self._size)]

    def keeps(self, record: dict[str, Any]) -> bool:
        """Whether the line is of the first filter and has the usual number of options."""
        return self._is_first_filter(record) and len(_log_likelihoods(record, 0)) == self._size

    def others(self, record: dict[str, Any]) -> dict[str, Any]:
        """The question and the right option, by its name among the classes."""
        kept: dict[str, Any] = {k: record[k] for k in ("doc_id", "doc") if k in record}
        size = len(_log_likelihoods(record, 0))
        named = self._size and len({t for t in self._texts if len(t) == self._size}) == 1
        texts = _option_texts(record, size)
        code = _target(record, texts)
        return {**kept, "target": texts[code] if named and texts else str(code)}

    def proba(self, lines: list[Line]) -> np.ndarray:
        """Probabilities of the options: their likelihoods, restricted to them."""
        scores = np.array([_log_likelihoods(record, number) for number, record in lines])
        return softmax(scores, axis=1)

    def _is_first_filter(self, record: dict[str, Any]) -> bool:
        return str(record.get("filter")) == next(iter(self._filters))


def _log_likelihoods(record: dict[str, Any], number: int) -> list[float]:
    """One number for each option; without those that mutual information asks for in addition."""
    answers = record["filtered_resps"]
    try:
        values = [float(answer[0]) for answer in answers if len(answer) == 2]
    except (TypeError, ValueError, KeyError):
        values = []
    if len(values) < 2 or len(values) != len(answers) or not np.isfinite(values).all():
        raise file_error(
            "`filtered_resps` must hold a log-likelihood and a truth value for each option",
            f"line {number} (doc_id {shown(record['doc_id'])}) has {shown(answers)}",
            "Only logs of multiple-choice tasks can be read.",
        )
    asked = _arguments(record, number)
    # For mutual information the harness asks for each option once more, without the prompt.
    half = len(asked) // 2
    if half and all(prompt == "" for prompt, _ in asked[half:]) and asked[0][0] != "":
        return values[:half]
    return values


def _arguments(record: dict[str, Any], number: int = 0) -> list[tuple[str, str]]:
    """Prompt and continuation of each request, where the log has them."""
    given = record.get("arguments")
    # Newer logs name the arguments; older ones list them.
    is_named = isinstance(given, dict)
    requests = list(given.values()) if isinstance(given, dict) else given
    if requests is None:
        return []
    kind = dict if is_named else list
    if not isinstance(requests, list) or not all(isinstance(each, kind) for each in requests):
        raise file_error(
            "`arguments` must hold a prompt and an option for each request",
            f"line {number} (doc_id {shown(record['doc_id'])}) has {shown(given)}",
            "Leave `arguments` out: options are then named by their numbers.",
        )
    if is_named:
        requests = [[each.get("arg_0"), each.get("arg_1")] for each in requests]
    return [(str(each[0]), str(each[1])) for each in requests if len(each) >= 2]


def _option_texts(record: dict[str, Any], size: int) -> tuple[str, ...]:
    texts = tuple(text.strip() for _, text in _arguments(record)[:size])
    # Options that read alike cannot serve as names of classes.
    return texts if len(set(texts)) == size else ()


def _check_inputs(record: dict[str, Any], size: int, number: int) -> None:
    """Raise where the options are in the prompt: the log then lacks the right one."""
    asked = _arguments(record)[:size]
    if len(asked) == size and len({text for _, text in asked}) == 1:
        raise file_error(
            "The options must be what follows the prompt",
            f"in line {number} they are in the prompt, and `target` does not say which is right",
            "Write the scores as JSON lines yourself.",
        )
    _target(record, _option_texts(record, size), size, number)


def _target(
    record: dict[str, Any], texts: tuple[str, ...], size: int | None = None, number: int = 0
) -> int:
    """Index of the right option, which is given as such or as text."""
    given = str(record["target"]).strip()
    # Nine digits always fit an index; a longer text may be too long to convert.
    if given.isdecimal() and len(given) < 10 and (size is None or int(given) < size):
        return int(given)
    if given in texts:
        return texts.index(given)
    raise file_error(
        "`target` must be the index or the text of the right option",
        f"line {number} (doc_id {shown(record['doc_id'])}) has '{shown(given)}'",
        "Only tasks with one right option can be read.",
    )

"""Sample logs of lm-evaluation-harness: the answers of a language model to multiple-choice tasks.

One line per question (``samples_TASK_DATE.jsonl``). ``filtered_resps`` holds one pair for each
option, its log-likelihood and whether it is the greedy answer, as numbers or as text; ``target`` is
the index of the right option, or its text; ``arguments`` the prompts and the options' texts.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import numpy as np
from scipy.special import softmax

from altnorm._base.errors import InputError, InputWarning, shown, warn
from altnorm._base.files import file_error
from altnorm.io.jsonl import Line, Lines

KEYS = {"filtered_resps", "target", "doc_id"}


def is_sample(record: dict[str, Any]) -> bool:
    """Whether a line is one of a sample log."""
    return record.keys() >= KEYS


class SampleLog(Lines):
    """Lines of a sample log; the options are the classes, named by text or by number.

    Parameters
    ----------
    usual : bool
        Whether to keep only the questions with the usual number of options.
    """

    label = "target"

    def __init__(self, *, usual: bool = False) -> None:
        self._usual = usual
        self._sizes: Counter[int] = Counter()
        self._texts: set[tuple[str, ...]] = set()
        self._filters: Counter[str] = Counter()
        self._size = 0
        self._named = False  # whether the options are the same in every line

    def learn(self, line: Line) -> None:
        """Count options and filters, and see whether the options are always the same."""
        number, record = line
        if not is_sample(record):
            raise file_error(
                f"Each line of a sample log has {', '.join(sorted(KEYS))}",
                f"line {number} has {shown(', '.join(sorted(record)))}",
                "For other JSON lines, pass --format jsonl.",
            )
        # Each filter repeats all questions: lines of one filter only are one set of predictions.
        self._filters[str(record.get("filter"))] += 1
        if self._is_first_filter(record):
            question = _read(line)
            self._sizes[len(question.scores)] += 1
            self._texts.add(question.texts)

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
        texts = [known for known in self._texts if len(known) == self._size]
        self._named = len(texts) == 1
        return list(texts[0]) if self._named else [str(j) for j in range(self._size)]

    def keeps(self, line: Line) -> bool:
        """Whether the line is of the first filter and has the usual number of options."""
        return self._is_first_filter(line[1]) and len(_read(line).scores) == self._size

    def others(self, line: Line) -> dict[str, Any]:
        """The question and the right option, by its name among the classes."""
        _, record = line
        if not self._is_first_filter(record):
            return {}
        question = _read(line)
        is_named = self._named and question.texts
        target = question.texts[question.target] if is_named else str(question.target)
        return {**{k: record[k] for k in ("doc_id", "doc") if k in record}, "target": target}

    def proba(self, lines: list[Line]) -> np.ndarray:
        """Probabilities of the options: their likelihoods, restricted to them."""
        return softmax(np.array([_read(line).scores for line in lines]), axis=1)

    def _is_first_filter(self, record: dict[str, Any]) -> bool:
        return str(record.get("filter")) == next(iter(self._filters))


class _Question(NamedTuple):
    """What a line says."""

    scores: list[float]  # log-likelihood of each option
    texts: tuple[str, ...]  # their texts; none where these cannot serve as names
    target: int  # the right one


def _read(line: Line) -> _Question:
    asked = _arguments(line)
    scores = _log_likelihoods(line, asked)
    options = [text.strip() for _, text in asked[: len(scores)]]
    if len(options) == len(scores) and len({text for _, text in asked[: len(scores)]}) == 1:
        raise file_error(
            "The options must be what follows the prompt",
            f"in line {line[0]} they are in the prompt, and `target` does not say which is right",
            "Write the scores as JSON lines yourself.",
        )
    # Options that read alike cannot serve as names of classes.
    texts = tuple(options) if len(set(options)) == len(scores) else ()
    given = str(line[1]["target"]).strip()
    # Nine digits always fit an index; a longer text may be too long to convert.
    if given.isdecimal() and len(given) < 10 and int(given) < len(scores):
        return _Question(scores, texts, int(given))
    if given not in texts:
        raise _line_error(
            line,
            "`target` must be the index or the text of the right option",
            f"'{shown(given)}'",
            "Only tasks with one right option can be read.",
        )
    return _Question(scores, texts, texts.index(given))


def _log_likelihoods(line: Line, asked: list[tuple[str, str]]) -> list[float]:
    """One number for each option; without those that mutual information asks for in addition."""
    answers = line[1]["filtered_resps"]
    try:
        values = [float(answer[0]) for answer in answers if len(answer) == 2]
    except (TypeError, ValueError, KeyError):
        values = []
    if len(values) < 2 or len(values) != len(answers) or not np.isfinite(values).all():
        raise _line_error(
            line,
            "`filtered_resps` must hold a log-likelihood and a truth value for each option",
            shown(answers),
            "Only logs of multiple-choice tasks can be read.",
        )
    # For mutual information the harness asks for each option once more, without the prompt.
    half = len(asked) // 2
    is_mutual = half and all(prompt == "" for prompt, _ in asked[half:]) and asked[0][0] != ""
    return values[:half] if is_mutual else values


def _arguments(line: Line) -> list[tuple[str, str]]:
    """Prompt and continuation of each request, where the log has them."""
    given = line[1].get("arguments")
    if given is None:
        return []
    # Newer logs name the arguments; older ones list them.
    is_named = isinstance(given, dict)
    requests, kind = (list(given.values()), dict) if is_named else (given, list)
    if not isinstance(requests, list) or not all(isinstance(each, kind) for each in requests):
        raise _line_error(
            line,
            "`arguments` must hold a prompt and an option for each request",
            shown(given),
            "Leave `arguments` out: options are then named by their numbers.",
        )
    if is_named:
        requests = [[each.get("arg_0"), each.get("arg_1")] for each in requests]
    return [(str(each[0]), str(each[1])) for each in requests if len(each) >= 2]


def _line_error(line: Line, rule: str, found: str, remedy: str) -> InputError:
    number, record = line
    offender = f"line {number} (doc_id {shown(record['doc_id'])}) has {found}"
    return file_error(rule, offender, remedy)

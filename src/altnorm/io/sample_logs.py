"""Sample logs of lm-evaluation-harness -> probabilities of the options by label.

A line is a question. ``filtered_resps`` holds one pair for each option, its log-likelihood and
whether it is the greedy answer, as numbers or as text; ``target`` is the index of the right option,
or its text; ``arguments`` the prompts and the options' texts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.special import softmax

from altnorm._base.errors import InputError, InputWarning, shown, warn
from altnorm._base.files import file_error
from altnorm.io.json_lines import Line, read_lines

KEYS = {"filtered_resps", "target", "doc_id"}  # of each line
RESULT_KEYS = {"results", "configs"}  # of the file beside the logs, with the scores of the tasks


def find_logs(folder: Path) -> dict[str, Path]:
    """The newest log of each task in a folder and those below it, by the name of the task.

    The harness writes ``MODEL/samples_TASK_DATE.jsonl``; of several models the name says which.
    """
    logs: dict[tuple[str, str], Path] = {}
    for path in sorted(folder.rglob("samples_*.jsonl")):
        name = path.stem.removeprefix("samples_")
        task, _, date = name.rpartition("_")
        logs[path.parent.name, task if date[:4].isdecimal() else name] = path
    if not logs:
        raise file_error(
            "A folder must hold sample logs",
            f"'{folder}' has no file samples_*.jsonl",
            "Run lm_eval with --log_samples, or name a file of predictions.",
        )
    is_single = len({model for model, _ in logs}) == 1
    return {task if is_single else f"{model}/{task}": path for (model, task), path in logs.items()}


def not_a_log(path: Path) -> InputError:
    """Return the error for the scores of tasks in place of their logs."""
    return file_error(
        "The log of a task is needed, with a line for each question",
        f"'{path.name}' has only the scores of the tasks",
        "Run lm_eval with --log_samples, and name a file samples_TASK_DATE.jsonl or their folder.",
    )


def learn_log(path: Path) -> tuple[str, Sequence[str]]:
    """The filter whose lines are read, and what the options are called.

    The options are the classes, named by their texts where these are the same in every question
    that has the usual number of them, else by number.
    """
    filters: dict[str, None] = {}  # in the order of the file
    texts: dict[int, Counter[tuple[str, ...]]] = {}  # of the options, by their number
    for number, record in read_lines(path):
        if not record.keys() >= KEYS:
            raise file_error(
                f"Each line of a sample log has {', '.join(sorted(KEYS))}",
                f"line {number} has {shown(', '.join(sorted(record)))}",
                "For other JSON lines, pass --format jsonl.",
            )
        filters.setdefault(str(record.get("filter")))
        if str(record.get("filter")) == next(iter(filters)):
            question = _Question.of((number, record))
            texts.setdefault(len(question.scores), Counter())[question.texts] += 1
    if not texts:
        raise file_error("A sample log must have lines", "it has none")
    first, *unread = filters
    if unread:
        message = (
            f"The log has several filters; the lines of '{shown(first)}' are read, those of "
            f"{shown(', '.join(unread))} are not."
        )
        warn(InputWarning(message, "several_filters"))
    size = max(texts, key=lambda size: texts[size].total())
    common = next(iter(texts[size])) if len(texts[size]) == 1 else ()
    return first, common or [str(j) for j in range(size)]


def log_lines(path: Path, first: str, names: Sequence[str]) -> Iterator[Line]:
    """The lines of a sample log with scores by label, and the label under ``target``.

    Questions with another number of options than there are `names` have neither.
    """
    for number, record in read_lines(path):
        # Each filter repeats all questions: lines of one filter only are one set of predictions.
        if str(record.get("filter")) != first:
            continue
        question = _Question.of((number, record))
        row: dict[str, Any] = {k: record[k] for k in ("doc_id", "doc") if k in record}
        row |= {"target": None, "scores": {}}
        if len(question.scores) == len(names):
            # Likelihoods, restricted to the options.
            scores = dict(zip(names, softmax(question.scores).tolist(), strict=True))
            row |= {"target": names[question.target], "scores": scores}
        yield number, row


class _Question(NamedTuple):
    """What a line of a sample log says."""

    scores: list[float]  # log-likelihood of each option
    texts: tuple[str, ...]  # their texts; none where these cannot serve as names
    target: int  # the right one

    @classmethod
    def of(cls, line: Line) -> _Question:
        requests = _arguments(line)
        scores = _log_likelihoods(line, requests)
        written = [text for _, text in requests[: len(scores)]]
        if len(written) == len(scores) and len(set(written)) == 1:
            raise _line_error(
                line,
                "The options must be what follows the prompt",
                "them in the prompt",
                "Write the scores as JSON lines yourself.",
            )
        # Options that read alike cannot serve as names of classes.
        options = tuple(text.strip() for text in written)
        texts = options if len(set(options)) == len(scores) else ()
        target = str(line[1]["target"]).strip()
        # Nine digits always fit an index; a longer text may be too long to convert.
        if target.isdecimal() and len(target) < 10 and int(target) < len(scores):
            return cls(scores, texts, int(target))
        if target not in texts:
            raise _line_error(
                line,
                "`target` must be the index or the text of the right option",
                f"'{shown(target)}'",
                "Only tasks with one right option can be read.",
            )
        return cls(scores, texts, texts.index(target))


def _log_likelihoods(line: Line, requests: list[tuple[str, str]]) -> list[float]:
    """One number for each option; without those that mutual information asks for in addition."""
    answers = line[1]["filtered_resps"]
    try:
        values = [float(log_p) for log_p, _ in answers]
    except (TypeError, ValueError):
        values = []
    if len(values) < 2 or not np.isfinite(values).all():
        raise _line_error(
            line,
            "`filtered_resps` must hold a log-likelihood and a truth value for each option",
            shown(answers),
            "Only logs of multiple-choice tasks can be read.",
        )
    # For mutual information the harness asks for each option once more, without the prompt.
    half = len(requests) // 2
    is_mutual = half and requests[0][0] and not any(prompt for prompt, _ in requests[half:])
    return values[:half] if is_mutual else values


def _arguments(line: Line) -> list[tuple[str, str]]:
    """Prompt and continuation of each request, where the log has them."""
    arguments = line[1].get("arguments")
    try:
        # Newer logs name the arguments; older ones list them.
        if isinstance(arguments, dict):
            return [(str(each["arg_0"]), str(each["arg_1"])) for each in arguments.values()]
        return [(str(prompt), str(option)) for prompt, option, *_ in arguments or ()]
    except (TypeError, KeyError, ValueError) as error:
        raise _line_error(
            line,
            "`arguments` must hold a prompt and an option for each request",
            shown(arguments),
            "Leave `arguments` out: options are then named by their numbers.",
        ) from error


def _line_error(line: Line, rule: str, holds: str, remedy: str) -> InputError:
    number, record = line
    place = f"line {number} (doc_id {shown(record['doc_id'])})"
    return file_error(rule, f"{place} has {holds}", remedy)

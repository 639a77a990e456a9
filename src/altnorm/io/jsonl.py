"""JSON lines -> record batches: columns as in CSV, scores by label, or logged answers.

A file is read twice: once to learn its columns and their types, once for the rows. The answers in a
sample log are read as scores by label, after a pass that learns what the options are called.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from scipy.special import softmax

from altnorm._base.errors import InputError, InputWarning, shown, warn
from altnorm._base.files import file_error
from altnorm.estimator.topk import from_topk
from altnorm.io.formats import Layout, open_plain

_ROWS = 4096  # of a batch
Line = tuple[int, dict[str, Any]]


class _Scores:
    """The scores of lines like ``{"scores": {"cat": -0.1, "dog": -2.3}, "y": "cat"}``.

    They are probabilities if none is negative, else all are log-probabilities; a label that a
    line lacks is filled in by :func:`altnorm.from_topk`. Lines that name the top few may lack some
    of the `labels` that are known from elsewhere altogether.
    """

    def __init__(self, labels: Collection[str]) -> None:
        self._codes = {name: j for j, name in enumerate(labels)}
        self._orders: set[tuple[str, ...]] = set()
        self._low, self._high = 0.0, 0.0

    def learn(self, number: int, scores: Any) -> None:
        """Record those of a line in the first pass."""
        if not isinstance(scores, dict) or not scores or not all(map(_is_number, scores.values())):
            raise file_error(
                "`scores` must give a number for each label",
                f"line {number} has {json.dumps(scores)[:60]}",
                'Write for example {"scores": {"yes": -0.1, "no": -2.4}}.',
            )
        self._low = min(self._low, *scores.values())
        self._high = max(self._high, *scores.values())
        for name in scores:
            self._codes.setdefault(name, len(self._codes))
        if len(self._orders) < 2:  # with two of them it is known that there is no one order
            self._orders.add(tuple(scores))

    def classes(self) -> list[str]:
        """Their labels, after the first pass."""
        if self._low < 0 < self._high or self._high > 1 + 1e-6:
            raise file_error(
                "`scores` must all be probabilities, from 0 to 1, or all log-probabilities, at "
                "most 0",
                f"they span {self._low:g} to {self._high:g}",
                "For logits, write one key per class and pass --logits.",
            )
        return list(self._codes)

    def are_ordered(self) -> bool:
        """Whether every line gives the labels in the order of `classes`, after the first pass."""
        return self._orders == {tuple(self._codes)}

    def proba(self, lines: list[Line]) -> np.ndarray:
        """Probabilities of some lines, one column per class."""
        width = max(len(record["scores"]) for _, record in lines)
        indices = np.full((len(lines), width), -1)
        values = np.zeros((len(lines), width))
        for i, (_, record) in enumerate(lines):
            scores = record["scores"]
            indices[i, : len(scores)] = [self._codes[name] for name in scores]
            values[i, : len(scores)] = list(scores.values())
        kind = "log_proba" if self._low < 0 else "proba"
        try:
            return from_topk(indices, values, len(self._codes), input=kind)
        except InputError as error:
            if error.place is None:
                raise
            offender = f"line {lines[error.place.row][0]} has {error.place.note}"
            raise file_error(error.rule, offender, "Correct the scores.") from error


SAMPLE_KEYS = {"filtered_resps", "target", "doc_id"}


def _learn_log(path: Path, *, usual: bool) -> tuple[str, Sequence[str]]:
    """The filter of a sample log whose lines are read, and what the options are called.

    A log of lm-evaluation-harness has one line per question of a multiple-choice task
    (``samples_TASK_DATE.jsonl``). ``filtered_resps`` holds one pair for each option, its
    log-likelihood and whether it is the greedy answer, as numbers or as text; ``target`` is the
    index of the right option, or its text; ``arguments`` the prompts and the options' texts. The
    options are the classes, named by their texts where these are the same in every question, else
    by number. `usual` keeps only the questions with the usual number of options.
    """
    filters: dict[str, None] = {}  # in the order of the file
    sizes: Counter[int] = Counter()
    texts: dict[int, set[tuple[str, ...]]] = {}  # by the number of options
    for number, record in read_lines(path):
        if not record.keys() >= SAMPLE_KEYS:
            raise file_error(
                f"Each line of a sample log has {', '.join(sorted(SAMPLE_KEYS))}",
                f"line {number} has {shown(', '.join(sorted(record)))}",
                "For other JSON lines, pass --format jsonl.",
            )
        filters.setdefault(str(record.get("filter")))
        if str(record.get("filter")) == next(iter(filters)):
            question = _Question.of((number, record))
            sizes[len(question.scores)] += 1
            texts.setdefault(len(question.scores), set()).add(question.texts)
    size = _usual_size(sizes, usual)
    first, *others = filters
    if others:
        message = (
            f"The log has several filters; the lines of '{shown(first)}' are read, those of "
            f"{shown(', '.join(others))} are not."
        )
        warn(InputWarning(message, "several_filters"))
    common = texts[size].pop() if len(texts[size]) == 1 else ()
    return first, common or [str(j) for j in range(size)]


def _log_lines(path: Path, first: str, names: Sequence[str]) -> Iterator[Line]:
    """The lines of a sample log with scores by label, and the label under ``target``."""
    for number, record in read_lines(path):
        # Each filter repeats all questions: lines of one filter only are one set of predictions.
        if str(record.get("filter")) != first:
            continue
        question = _Question.of((number, record))
        if len(question.scores) == len(names):
            row: dict[str, Any] = {k: record[k] for k in ("doc_id", "doc") if k in record}
            # Likelihoods, restricted to the options.
            scores = dict(zip(names, softmax(question.scores).tolist(), strict=True))
            yield number, {**row, "target": names[question.target], "scores": scores}


def _usual_size(sizes: Counter[int], usual: bool) -> int:
    """How many options the questions have that are read."""
    if not sizes:
        raise file_error("A sample log must have lines", "it has none")
    size, n_usual = sizes.most_common(1)[0]
    n_other = sizes.total() - n_usual
    if n_other and not usual:
        raise file_error(
            "All questions must have the same number of options",
            f"{n_usual} have {size} and {n_other} have another number",
            "Pass --usual-options to keep those with the usual number.",
        )
    return size


class _Question(NamedTuple):
    """What a line of a sample log says."""

    scores: list[float]  # log-likelihood of each option
    texts: tuple[str, ...]  # their texts; none where these cannot serve as names
    target: int  # the right one

    @classmethod
    def of(cls, line: Line) -> _Question:
        asked = _arguments(line)
        scores = _log_likelihoods(line, asked)
        written = [text for _, text in asked[: len(scores)]]
        if len(written) == len(scores) and len(set(written)) == 1:
            raise file_error(
                "The options must be what follows the prompt",
                f"in line {line[0]} they are in the prompt, and `target` does not say which is "
                "right",
                "Write the scores as JSON lines yourself.",
            )
        # Options that read alike cannot serve as names of classes.
        options = tuple(text.strip() for text in written)
        texts = options if len(set(options)) == len(scores) else ()
        given = str(line[1]["target"]).strip()
        # Nine digits always fit an index; a longer text may be too long to convert.
        if given.isdecimal() and len(given) < 10 and int(given) < len(scores):
            return cls(scores, texts, int(given))
        if given not in texts:
            raise _line_error(
                line,
                "`target` must be the index or the text of the right option",
                f"'{shown(given)}'",
                "Only tasks with one right option can be read.",
            )
        return cls(scores, texts, texts.index(given))


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


def read_lines(path: Path) -> Iterator[Line]:
    """The objects of a file, with the number of their line, from 1."""
    with open_plain(path) as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                text = line.decode(json.detect_encoding(line), "surrogatepass")
                record = read_json(text)
            except (ValueError, RecursionError) as error:
                raise file_error(f"Line {number} is not JSON", *_reason(error)) from error
            if not isinstance(record, dict):
                raise file_error(
                    "Each line must be a JSON object",
                    f"line {number} is {line.strip()[:40].decode(errors='replace')}",
                    'Write for example {"cat": 0.9, "dog": 0.1, "y": "cat"}.',
                )
            yield number, record


def _reason(error: Exception) -> tuple[str, str]:
    """Why a text is not JSON, and what to do; Python's own words are for its programmers."""
    if isinstance(error, json.JSONDecodeError):
        what = f"{error.msg[0].lower()}{error.msg[1:]} at character {error.pos + 1}"
        return what, "Write one object per line."
    if "int_max_str_digits" in str(error):
        return "a whole number has more digits than can be read", "Write it as text."
    return shown(error), ""


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON value, write null where a value is missing")


def _refuse_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):  # all but the last value would be lost
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key '{shown(twice)}' is there more than once")
    return record


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant, object_pairs_hook=_refuse_repeats)


def read_json(text: str) -> Any:
    """The value of a text that is JSON to the letter: without NaN, and no key twice."""
    return _DECODER.decode(text)


class Known(NamedTuple):
    """What a file itself says about its columns."""

    classes: Sequence[str] = ()
    label: str | None = None
    ordered: bool = True  # whether all rows give the classes in this order: an index is a class


def open_lines(
    path: Path, layout: Layout, numbers: Collection[str]
) -> tuple[Any, Iterator[Any], Known]:
    """Schema, record batches and what is known; columns of `numbers` are read as floating-point.

    What the lines hold is told by the first, unless the layout insists on a format.
    """
    import pyarrow as pa

    first = next(read_lines(path), (0, {}))[1]
    is_log = first.keys() >= SAMPLE_KEYS if layout.format is None else layout.format == "lm-eval"
    lines, scores = partial(read_lines, path), None
    if is_log:
        options = _learn_log(path, usual=layout.usual_options)
        lines, scores = partial(_log_lines, path, *options), _Scores(())
    elif isinstance(first.get("scores"), dict):
        scores = _Scores(numbers)
    kinds: dict[str, set[str]] = {}
    for number, record in lines():
        if scores is not None:
            scores.learn(number, record.pop("scores", None))
        for name, value in record.items():
            kinds.setdefault(name, set()).add(_kind(value))
    types = {name: _arrow_type(found, name in numbers) for name, found in kinds.items()}
    fields, known = [pa.field(name, kind) for name, kind in types.items()], Known()
    if scores is not None:
        classes = scores.classes()
        twice = sorted(set(classes) & kinds.keys())
        if twice:
            rule = f"'{shown(twice[0])}' is both a class and another key"
            raise file_error(rule, remedy="Rename one.")
        fields += [pa.field(name, pa.float64()) for name in classes]
        known = Known(classes, "target" if is_log else None, scores.are_ordered())
    schema = pa.schema(fields)
    return schema, _batches(lines(), scores, types, schema), known


def _batches(
    lines: Iterator[Line], scores: _Scores | None, types: dict[str, Any], schema: Any
) -> Iterator[Any]:
    import pyarrow as pa

    while part := list(islice(lines, _ROWS)):
        columns = [
            pa.array([_plain(record.get(name), kind) for _, record in part], kind)
            for name, kind in types.items()
        ]
        if scores is not None:
            columns += [pa.array(column) for column in scores.proba(part).T.copy()]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _kind(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 2**63:
        return "other"
    return type(value).__name__ if isinstance(value, (bool, int, float, str)) else "other"


def _arrow_type(kinds: set[str], is_number: bool) -> Any:
    """Type of a column: the simplest that holds all values; else text, nested values as JSON."""
    import pyarrow as pa

    kinds = kinds - {"none"}
    if kinds and kinds <= {"int", "float"}:
        return pa.int64() if kinds == {"int"} and not is_number else pa.float64()
    return pa.bool_() if kinds == {"bool"} else pa.string()


def _plain(value: Any, kind: Any) -> Any:
    import pyarrow as pa

    if value is None or not pa.types.is_string(kind) or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def jsonl_writer(file: IO[bytes]) -> Callable[[Any], None]:
    """Write each row as an object."""

    def write(batch: Any) -> None:
        for row in batch.to_pylist():
            try:
                line = json.dumps(row, ensure_ascii=False, default=str, allow_nan=False)
            except ValueError:
                line = json.dumps(_without_nan(row), ensure_ascii=False, default=str)
            file.write(line.encode() + b"\n")

    return write


def _without_nan(value: Any) -> Any:
    """A value with None for NaN, which JSON lacks; infinity, which it lacks too, is refused."""
    if isinstance(value, dict):
        return {name: _without_nan(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_without_nan(one) for one in value]
    if isinstance(value, float) and math.isinf(value):
        raise file_error(
            "JSON lines hold finite numbers", f"there is {value}", "Write a .parquet file."
        )
    return None if isinstance(value, float) and math.isnan(value) else value

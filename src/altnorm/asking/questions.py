"""Rows to label <-> a CSV file that a person fills in, one line per question.

All that is needed to judge the answers travels in the column `pool`, the seed among it: from that
it follows which of the two candidates is the new one, and the person who labels cannot see it.
"""

from __future__ import annotations

import csv
import hashlib
import io
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import count, takewhile
from typing import NamedTuple, Self

import numpy as np

from altnorm._base.errors import InputError, shown
from altnorm._base.files import check_input, replacing
from altnorm.asking.judgement import Judgement, Pool, weigh_labels
from altnorm.asking.sampling import OTHER, Changes, value_changes
from altnorm.decisions.decision import decision_of
from altnorm.estimator.kinds import FittedModel
from altnorm.io.labels import listed, names_of
from altnorm.io.text_tables import neutralise_formula

NO_MODEL, NEITHER, PERSON = "none", "neither", "(left to a person)"
NUMBER, ROW, ABOUT, LABEL, POOL = "ask", "row", "about", "label", "pool"
CANDIDATES = ("candidate_1", "candidate_2")
OWN_COLUMNS = (NUMBER, ROW, ABOUT, *CANDIDATES, LABEL, POOL)
_YES_NO = {"yes": "yes", "1": "yes", "true": "yes", "no": "no", "0": "no", "false": "no"}
_DIGITS = 12
# What the column `pool` holds: an `Origin`, and how many lines there are about the row.
_POOL = re.compile(
    r"rows=(\d{1,18}) changed=(\d{1,18}) total=(\d+(?:\.\d+)?(?:e[+-]\d+)?) seed=(\d{1,18}) "
    r"model=(\w+) against=(\w+) changes=(\w+) lines=(\d{1,18})"
)


class Origin(NamedTuple):
    """Where questions come from: what the column `pool` says in every line."""

    n_rows: int
    n_changed: int
    total: float  # the most that all changes together can be worth, or cost
    seed: int
    model: str  # the first digits of its digest
    against: str  # the same of the other model; `NO_MODEL`: the predictions as they came
    changes: str  # the first digits of a digest of the changed rows and their decisions

    @classmethod
    def of(cls, changes: Changes, seed: int, model: str, against: str | None = None) -> Self:
        """What a file has to say about changes, a seed, and the digests of one or two models."""
        arrays = (changes.rows, changes.before, changes.after, changes.size)
        content = hashlib.sha256(b"".join(np.ascontiguousarray(a).tobytes() for a in arrays))
        return cls(
            changes.n_rows,
            changes.rows.size,
            float(changes.size.sum()),
            seed,
            short_digest(model),
            NO_MODEL if against is None else short_digest(against),
            content.hexdigest()[:_DIGITS],
        )

    def __str__(self) -> str:
        return (
            f"rows={self.n_rows} changed={self.n_changed} total={self.total!r} seed={self.seed} "
            f"model={self.model} against={self.against} changes={self.changes}"
        )


@dataclass(frozen=True)
class Questions:
    """Lines of the file, each a mapping from column names to text."""

    source: Origin
    columns: Sequence[str]
    lines: Sequence[Mapping[str, str]]
    content: bytes | None = None  # what the file held when it was read; None if it was not

    @property
    def multilabel(self) -> bool:
        """Whether a question is about one label of a row."""
        return ABOUT in self.columns

    @property
    def n_rows(self) -> int:
        """Rows of the pool that are asked for, in multi-label problems in one line or more each."""
        return len({line[NUMBER] for line in self.lines})

    def write(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write the file; a file that was read before must not have changed since."""
        replaces = force or self.content is not None
        with (
            replacing(path, force=replaces, expected=self.content) as temporary,
            temporary.open("w", newline="", encoding="utf-8") as file,
        ):
            writer = csv.DictWriter(
                file, self.columns, lineterminator="\n", extrasaction="ignore", restval=""
            )
            writer.writeheader()
            writer.writerows(self.lines)

    def extended(self, longer: Questions) -> Questions:
        """Return these questions, with their answers, then those of `longer` that are not here."""
        if self.source != longer.source:
            pairs = zip(Origin._fields, self.source, longer.source, strict=True)
            different = [name for name, here, there in pairs if here != there]
            raise _file_error(
                "Questions can be added only to a file of the same models, pool and seed",
                f"these differ: {', '.join(different)}",
                "Name another file, or replace this one with --force.",
            )
        # The order is the seed's, so the same number is the same row in both.
        numbers = {line[NUMBER] for line in self.lines}
        more = [line for line in longer.lines if line[NUMBER] not in numbers]
        return replace(self, lines=[*self.lines, *more])

    def check_model(self, digest: str) -> None:
        """Raise if the questions were asked about a model with another digest."""
        if short_digest(digest) != self.source.model:
            raise _file_error(
                "The questions must be those of this model",
                f"they are about {self.source.model}, and the model is {short_digest(digest)}",
                "Name the model that `altnorm ask` was given.",
            )

    def judge(self, model: FittedModel, *, significance: float = 0.05) -> Judgement:
        """Weigh the answers as :func:`altnorm.judge` does; a row without one ends them."""
        names, decision = names_of(model.classes_), decision_of(model)
        answers = self._answers(names)
        # The test is valid for rows in the order of the seed; labels out of turn wait for theirs.
        rows = [answers[number] for number in takewhile(answers.__contains__, count(1))]
        width = len(names) if self.multilabel else 1
        before, after, truth = np.reshape(rows, (-1, 3, width)).astype(int).swapaxes(0, 1)
        pool = Pool(*self.source[:3], decision)
        outcomes = value_changes(pool.worth, before, after).outcomes(truth)
        _check_named(outcomes.x)
        _check_total(pool, outcomes.size)
        n_waiting = len(answers) - len(rows)
        return weigh_labels(pool, outcomes, significance=significance, n_waiting=n_waiting)

    def _answers(self, names: list[str]) -> dict[int, np.ndarray]:
        """Old decision, new one and truth of each row that is labelled, by its question's number.

        A row whose lines are not all there, or not all filled in, is not labelled.
        """
        read = _label_answer if self.multilabel else _class_answer
        seen, n_lines = set(), {}
        answers: dict[int, list[np.ndarray]] = {}
        for line in self.lines:
            number, about = int(line[NUMBER]), line.get(ABOUT, "")
            if (number, about) in seen:
                raise InputError(
                    f"Each question must occur once, and number {number} occurs again",
                    remedy="Keep the lines of `altnorm ask` as they are; fill in the labels only.",
                    code="answers",
                )
            seen.add((number, about))
            n_lines[number] = _read_pool(line)[1]
            answer = read(line, names, self.source.seed)
            answers.setdefault(number, []).extend([] if answer is None else [answer])
        # Answers about single labels are 0 elsewhere.
        return {n: np.sum(rows, axis=0) for n, rows in answers.items() if len(rows) == n_lines[n]}


def short_digest(digest: str) -> str:
    """The first digits of a digest such as "sha256:0416..."; enough to tell models apart."""
    return digest.rpartition(":")[2][:_DIGITS]


def make_questions(
    changes: Changes,
    classes: np.ndarray,
    source: Origin,
    *,
    n: int | None = None,
    texts: Mapping[str, Sequence[str]] | None = None,
) -> Questions:
    """Put changed rows of a pool into questions, the first `n` in the random order of the seed.

    `texts` are columns of the pool to show with each row, one text for each row of the pool.
    """
    visible = {neutralise_formula(name): column for name, column in (texts or {}).items()}
    names = [neutralise_formula(name) for name in [*names_of(classes), PERSON]]
    lines = []
    for number, position in enumerate(changes.order(source.seed)[:n], 1):
        row = int(changes.rows[position])
        start = {NUMBER: str(number), ROW: str(row)}
        start |= {name: neutralise_formula(column[row]) for name, column in visible.items()}
        pairs = _pairs(changes, position, names)
        for about, pair in pairs.items():
            # Who answers must not see which candidate is the adjusted one.
            in_order = pair if place_of_new(source.seed, row, about) else pair[::-1]
            candidates = dict(zip(CANDIDATES, in_order, strict=True))
            pool = f"{source} lines={len(pairs)}"
            lines.append(start | {ABOUT: about, **candidates, LABEL: "", POOL: pool})
    about_columns = [ABOUT] if changes.multilabel else []
    columns = [NUMBER, ROW, *visible, *about_columns, *CANDIDATES, LABEL, POOL]
    return Questions(source, columns, lines)


def _pairs(changes: Changes, position: int, names: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Old and new class of a row, one question; or old and new answer for each label it changes."""
    old, new = changes.before[position], changes.after[position]
    if not changes.multilabel:
        return {"": (names[int(old[0])], names[int(new[0])])}
    columns = np.flatnonzero(old != new).tolist()
    return {names[j]: ("no", "yes") if new[j] else ("yes", "no") for j in columns}


def place_of_new(seed: int, row: int, about: str) -> int:
    """Which candidate is the new one, 0 or 1: looks random, and `judge` can compute it again."""
    return hashlib.sha256(f"{seed} {row} {about}".encode()).digest()[0] % 2


def read_questions(path: str | os.PathLike[str]) -> Questions:
    """Read a CSV file of questions, as it was written or as a spreadsheet program saved it.

    Labels may be filled in, lines sorted and columns added.
    """
    target = check_input(path)
    content = target.read_bytes()
    try:
        text = content.decode("utf-8-sig")
        header = text.partition("\n")[0]
        # Spreadsheet programs write semicolons where the decimal separator is a comma.
        delimiter = ";" if header.count(";") > header.count(",") else ","
        reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter, restval="")
        lines, columns = list(reader), list(reader.fieldnames or ())
    except (UnicodeDecodeError, csv.Error) as error:
        rule = f"'{target}' must be a CSV file in UTF-8"
        raise _file_error(rule, "it cannot be read as one", "Save it as 'CSV UTF-8'.") from error
    missing = [name for name in OWN_COLUMNS if name not in (*columns, ABOUT)]
    if missing or not lines:
        offender = f"it has no column '{missing[0]}'" if missing else "it has no lines"
        remedy = "Pass the file that `altnorm ask` wrote, with all its columns."
        raise _file_error(f"'{target}' must be a file of questions", offender, remedy)
    origins = {_read_pool(line)[0] for line in lines}
    if len(origins) > 1:
        raise _file_error(
            f"The column '{POOL}' must say the same in each line",
            f"the lines are about {len(origins)} pools, models or seeds",
            "Do not mix questions of several files.",
        )
    source = origins.pop()
    _check_possible(source, {(line[NUMBER], line[ROW]) for line in lines})
    return Questions(source, columns, lines, content)


def _check_possible(source: Origin, asked: set[tuple[str, str]]) -> None:
    """Raise unless each question has a number and a row of its own."""
    numbers, rows = ({pair[i] for pair in asked} for i in (0, 1))
    are_numbers = all(re.fullmatch(r"[0-9]{1,18}", text) for text in numbers | rows)
    are_distinct = len(asked) == len(numbers) == len(rows)
    if not are_numbers or not are_distinct or "0" in numbers or source.n_changed > source.n_rows:
        raise _impossible(
            f"its {len(asked)} questions are not about rows of their own, numbered from 1, of "
            f"{source.n_changed} that change among {source.n_rows}"
        )


def _check_total(pool: Pool, sizes: np.ndarray) -> None:
    """Raise if the changes of a pool cannot matter as much, or as little, as is said."""
    by_truth = np.ptp(pool.worth, axis=-1).max(axis=-1)  # with several labels, of each of them
    most = float(by_truth.sum())
    low, high = sizes.sum(), sizes.sum() + most * (pool.n_changed - sizes.size)
    rounding = 1e-9 * high  # finite, whatever the file says
    if not low - rounding <= pool.total <= high + rounding:
        raise _impossible(
            f"all changes together would be worth at most {pool.total:g}, and by its answers "
            f"{low:g} to {high:g}"
        )


def _impossible(offender: str) -> InputError:
    remedy = "The file was modified: restore it, or run `altnorm ask` again."
    return _file_error("The numbers in a file of questions must fit together", offender, remedy)


def _read_pool(line: Mapping[str, str]) -> tuple[Origin, int]:
    """Where a line comes from, and how many lines there are about its row."""
    match = _POOL.fullmatch(line[POOL])
    if match is None:
        raise _file_error(
            f"The column '{POOL}' must be as `altnorm ask` wrote it",
            f"that of the question with number '{line[NUMBER][:20]}' is not",
            "Restore the column, or run `altnorm ask` again.",
        )
    rows, changed, total, seed, model, against, changes, n_lines = match.groups()
    origin = Origin(int(rows), int(changed), float(total), int(seed), model, against, changes)
    return origin, int(n_lines)


def _class_answer(line: Mapping[str, str], names: list[str], seed: int) -> np.ndarray | None:
    """Old class, new class and truth, in one column; None if there is no label."""
    codes = {neutralise_formula(name): j for j, name in enumerate([*names, PERSON])}
    label = _read_label(line, names, (NEITHER,))
    if label is None:
        return None
    truth = names.index(label) if label in names else OTHER
    old, new = _old_and_new(line, codes, seed)
    return np.array([[old], [new], [truth]])


def _label_answer(line: Mapping[str, str], names: list[str], seed: int) -> np.ndarray | None:
    """The same for one label of a row, 0 for all others."""
    labels = {neutralise_formula(name): j for j, name in enumerate(names)}
    answer = _read_label(line, ["yes", "no"])
    if answer is None:
        return None
    old, new = _old_and_new(line, {"no": 0, "yes": 1}, seed)
    row = np.zeros((3, len(names)), dtype=int)
    row[:, _code(line, ABOUT, labels)] = old, new, int(answer == "yes")
    return row


def _code(line: Mapping[str, str], column: str, codes: Mapping[str, int]) -> int:
    """Return the code of the text in a column of ours."""
    if line[column] not in codes:
        text = shown(line[column])
        raise _impossible(f"question {line[NUMBER]} is about '{text}', and the model is not")
    return codes[line[column]]


def _old_and_new(line: Mapping[str, str], codes: Mapping[str, int], seed: int) -> tuple[int, int]:
    pair = [_code(line, name, codes) for name in CANDIDATES]
    if pair[0] == pair[1]:
        raise _impossible(f"question {line[NUMBER]} has the same candidate twice")
    place = place_of_new(seed, int(line[ROW]), line.get(ABOUT, ""))
    return pair[1 - place], pair[place]


def _read_label(
    line: Mapping[str, str], names: list[str], no_class: Sequence[str] = ()
) -> str | None:
    """The class that a person, or a program that takes whole numbers for others, wrote."""
    text = line[LABEL]
    label = text.strip()
    if not label and text not in names:
        return None
    integer = re.sub(r"^(-?\d+)\.0+$", r"\1", label)
    # Copied from a candidate, a class that looks like a formula has a quote before it.
    copied = {neutralise_formula(name): name for name in names}.get(label, label)
    yes_or_no = _YES_NO.get(integer.lower(), label) if names == ["yes", "no"] else label
    for spelling in (text, label, integer, copied, yes_or_no):
        if spelling in names or spelling in no_class:
            return spelling
    near = [f"Did you mean '{name}'?" for name in get_close_matches(label, names, 1)]
    raise InputError(
        f"A label must be one of {listed(names)}" + "".join(f", or '{o}'" for o in no_class),
        f"question {line[NUMBER]} has '{label[:80]}'",
        " ".join([*near, "Correct it, or leave it empty."]),
        value=label,
        code="answers",
    )


def _check_named(x: np.ndarray) -> None:
    """Raise where a gain depends on which class is meant."""
    unknown = np.flatnonzero(np.isnan(x))
    if unknown.size:
        raise InputError(
            "With these costs the right class must be named",
            f"question {unknown[0] + 1} has '{NEITHER}'",
            "Write the class, or leave the label empty.",
            value=NEITHER,
            code="answers",
        )


def _file_error(rule: str, offender: str, remedy: str) -> InputError:
    return InputError(rule, offender, remedy, code="questions_file")

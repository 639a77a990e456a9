"""Rows to label <-> a CSV file that a person fills in.

One line per question, in the order in which to answer them. All that is needed to judge the
answers travels in the file: the column `pool` says how large the pool is, how many decisions
change in it, and the seed, from which it also follows which of the two candidates is the new one.
The person who labels cannot see that, and is not led.
"""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count, takewhile
from typing import Any, NamedTuple, Self

import numpy as np

from altnorm._base.errors import InputError
from altnorm._base.files import check_input, replacing
from altnorm.asking.asking import Changes
from altnorm.asking.judgement import Judgement, Pool, weigh_labels
from altnorm.io.answers import (
    ABOUT,
    CANDIDATES,
    LABEL,
    NEITHER,
    NUMBER,
    OWN_COLUMNS,
    POOL,
    ROW,
    Answers,
    place_of_new,
    read_answers,
)
from altnorm.io.columns import Layout, names_of, said_by_file
from altnorm.io.formats import find_source
from altnorm.io.tables import open_table
from altnorm.method.kinds import kind_of_labels


class Origin(NamedTuple):
    """Where questions come from: what the column `pool` says."""

    n_rows: int
    n_changed: int
    n_changes: int
    seed: int
    model: str
    """The first digits of the model's digest."""

    def __str__(self) -> str:
        return (
            f"rows={self.n_rows} changed={self.n_changed} changes={self.n_changes} "
            f"seed={self.seed} model={self.model}"
        )

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """The way back; None if it is some other text."""
        pattern = r"rows=(\d+) changed=(\d+) changes=(\d+) seed=(\d+) model=(\w+)"
        if (found := re.match(pattern, text)) is None:
            return None
        n_rows, n_changed, n_changes, seed = (int(number) for number in found.groups()[:4])
        return cls(n_rows, n_changed, n_changes, seed, found.group(5))


Candidates = dict[str, tuple[str, str]]
"""Old and new answer of each changed decision of a row, by the label that it is about."""


class _AboutClass:
    """Which class a row has: one question per row."""

    own_columns: tuple[str, ...] = ()
    other_answers: tuple[str, ...] = (NEITHER,)
    hint = f"one of the candidates, another class, or `{NEITHER}`"

    @staticmethod
    def candidates(old: np.ndarray, new: np.ndarray, names: Sequence[str]) -> Candidates:
        return {"": (names[int(old[0])], names[int(new[0])])}

    @staticmethod
    def size(pairs: Candidates) -> str:
        return ""


class _AboutLabel:
    """Whether a row has a label: as many questions about a row as labels change."""

    own_columns: tuple[str, ...] = (ABOUT,)
    other_answers: tuple[str, ...] = ()
    hint = "yes or no"

    @staticmethod
    def candidates(old: np.ndarray, new: np.ndarray, names: Sequence[str]) -> Candidates:
        columns = np.flatnonzero(old != new).tolist()
        return {names[j]: ("no", "yes") if new[j] else ("yes", "no") for j in columns}

    @staticmethod
    def size(pairs: Candidates) -> str:
        # A row counts once all its lines are answered, so each says how many there are.
        return f" size={len(pairs)}"


_FORMS: dict[bool, type[_AboutClass] | type[_AboutLabel]] = {False: _AboutClass, True: _AboutLabel}


@dataclass(frozen=True)
class Questions:
    """Lines of the file, each a mapping from column names to text."""

    source: Origin
    columns: Sequence[str]
    lines: Sequence[Mapping[str, str]]

    @property
    def multilabel(self) -> bool:
        """Whether a question is about one label of a row."""
        return ABOUT in self.columns

    @property
    def form(self) -> type[_AboutClass] | type[_AboutLabel]:
        """How questions of this kind are put."""
        return _FORMS[self.multilabel]

    @property
    def n_rows(self) -> int:
        """Rows of the pool that are asked for, in multi-label problems in one line or more each."""
        return len({line[NUMBER] for line in self.lines})

    def write(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write the file, complete or not at all.

        Parameters
        ----------
        path : str or path-like
            The CSV file.
        force : bool, default=False
            Whether an existing file may be replaced.
        """
        with (
            replacing(path, force=force) as temporary,
            temporary.open("w", newline="", encoding="utf-8") as file,
        ):
            options: dict[str, Any] = {"lineterminator": "\n", "extrasaction": "ignore"}
            writer = csv.DictWriter(file, self.columns, **options)
            writer.writeheader()
            writer.writerows(self.lines)

    def extended(self, longer: Questions) -> Questions:
        """Return these questions, with their answers, and those of `longer` that are not here.

        Parameters
        ----------
        longer : Questions
            Questions about the same pool.

        Returns
        -------
        Questions
            These first.
        """
        if self.source != longer.source:
            raise InputError(
                "Questions can be added only to a file of the same model, pool and seed",
                f"the file says '{self.source}', and now it is '{longer.source}'",
                "Name another file, or replace this one with --force.",
                code="questions_file",
            )
        # The order is the seed's, so the same number is the same row in both.
        asked = {line[NUMBER] for line in self.lines}
        more = [line for line in longer.lines if line[NUMBER] not in asked]
        return replace(self, lines=[*self.lines, *more])

    def check_model(self, digest: str) -> None:
        """Raise if the questions were asked about another model.

        Parameters
        ----------
        digest : str
            The digest of the model file.
        """
        if short_digest(digest) != self.source.model:
            raise InputError(
                "The questions must be those of this model",
                f"they are about {self.source.model}, and the model is {short_digest(digest)}",
                "Name the model that `altnorm ask` was given.",
                code="questions_file",
            )

    def judge(self, classes: Any, *, significance: float = 0.05) -> Judgement:
        """Weigh the answers given so far; the first row without an answer ends them.

        Parameters
        ----------
        classes : array-like of shape (n_classes,)
            The classes of the model.
        significance : float, default=0.05
            Largest probability of a wrong answer.

        Returns
        -------
        Judgement
            As :func:`altnorm.judge` gives it.
        """
        names, kind = names_of(classes), kind_of_labels(self.multilabel)
        may_answer = Answers(kind.outcomes(names), self.form.other_answers)
        answers = read_answers(self.lines, may_answer, seed=self.source.seed)
        # The test is valid for rows in the order of the seed; labels out of turn wait for theirs.
        rows = [np.array(answers[number]) for number in takewhile(answers.__contains__, count(1))]
        return weigh_labels(
            Pool(*self.source[:3], kind.n_decisions(len(names)), self.multilabel),
            np.array([np.count_nonzero(row > 0) for row in rows], dtype=int),
            np.array([np.count_nonzero(row < 0) for row in rows], dtype=int),
            np.array([row.size for row in rows], dtype=int),
            significance=significance,
            n_waiting=len(answers) - len(rows),
        )


def short_digest(digest: str) -> str:
    """The first eight digits of a digest such as "sha256:0416..."; enough to tell models apart."""
    return digest.rpartition(":")[2][:8]


def make_questions(
    changes: Changes,
    classes: Any,
    source: Origin,
    *,
    n: int | None = None,
    others: Mapping[str, Sequence[str]] | None = None,
) -> Questions:
    """Put changed rows of a pool into questions, in the random order of the seed.

    Parameters
    ----------
    changes : Changes
        The changed rows.
    classes : array-like of shape (n_classes,)
        The classes of the model.
    source : Origin
        What the file has to say about the pool.
    n : int, optional
        Number of rows; by default all that change.
    others : mapping of str to sequence of str, optional
        Other columns of the pool, to show with each row.

    Returns
    -------
    Questions
        One for each changed decision.
    """
    names, shown = names_of(classes), {} if others is None else others
    form = _FORMS[changes.multilabel]
    lines = []
    for number, position in enumerate(changes.order(source.seed)[:n], 1):
        row = int(changes.rows[position])
        start = {NUMBER: str(number), ROW: str(row)} | {k: v[row] for k, v in shown.items()}
        pairs = form.candidates(changes.before[position], changes.after[position], names)
        for about, pair in pairs.items():
            # Who answers must not see which candidate is the adjusted one.
            new = place_of_new(source.seed, row, about)
            asked = {ABOUT: about} | dict(zip(CANDIDATES, pair if new else pair[::-1], strict=True))
            lines.append(start | asked | {LABEL: "", POOL: f"{source}{form.size(pairs)}"})
    columns = [NUMBER, ROW, *shown, *form.own_columns, *CANDIDATES, LABEL, POOL]
    return Questions(source, columns, [{name: line[name] for name in columns} for line in lines])


def read_questions(path: str | os.PathLike[str]) -> Questions:
    """Read a file of questions, with the answers that it has.

    Parameters
    ----------
    path : str or path-like
        The CSV file, as it was written or saved by a spreadsheet program (in UTF-8).

    Returns
    -------
    Questions
        Its lines.
    """
    target = check_input(path)
    try:
        with target.open(newline="", encoding="utf-8-sig") as file:
            header = file.readline()
            file.seek(0)
            # Spreadsheet programs write semicolons where the decimal separator is a comma.
            delimiter = ";" if header.count(";") > header.count(",") else ","
            reader = csv.DictReader(file, delimiter=delimiter, restval="")
            lines, columns = list(reader), list(reader.fieldnames or ())
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(
            f"'{target}' must be a CSV file in UTF-8",
            str(error),
            "Save it as 'CSV UTF-8'.",
            code="questions_file",
        ) from error
    missing = [name for name in OWN_COLUMNS if name not in (*columns, ABOUT)]
    if missing or not lines:
        what = f"it has no column '{missing[0]}'" if missing else "it has no lines"
        remedy = "Pass the file that `altnorm ask` wrote, with all its columns."
        raise InputError(
            f"'{target}' must be a file of questions", what, remedy, code="questions_file"
        )
    return Questions(_read_source(lines), columns, lines)


def other_columns(
    path: str | os.PathLike[str],
    layout: Layout,
    class_names: Sequence[str],
    hidden: Sequence[str] = (),
) -> dict[str, list[str]]:
    """Read the columns of a pool that are not classes, as text; none of a file of arrays.

    Parameters
    ----------
    path : str or path-like
        The file.
    layout : Layout
        Its format, and which questions of a sample log are kept.
    class_names : sequence of str
        The columns of the classes.
    hidden : sequence of str
        Further columns to leave out. Those that have the name of a column of questions, those
        that are not text or numbers, and the right answers of a sample log are left out as well.

    Returns
    -------
    dict of str to list of str
        The columns, in the order of the file.
    """
    if not find_source(path, layout.format).is_table:
        return {}
    import pyarrow as pa

    with open_table(path, numbers=class_names, **layout.reading) as opened:
        table = pa.Table.from_batches(opened.batches, opened.schema)
    # The right answer, where the file has it, would spoil the question.
    without = {*class_names, *hidden, *OWN_COLUMNS, said_by_file(table.schema).get("label")}
    return {
        field.name: [
            "" if value is None else str(value) for value in table.column(field.name).to_pylist()
        ]
        for field in table.schema
        if field.name not in without
        and not pa.types.is_nested(field.type)
        and not pa.types.is_binary(field.type)
    }


def _read_source(lines: Sequence[Mapping[str, str]]) -> Origin:
    """What the lines say about the pool, which must be the same in all of them."""
    found = {Origin.parse(line[POOL]) for line in lines}
    source = found.pop()
    if source is None or found:
        raise InputError(
            f"The column '{POOL}' must say the same in each line",
            f"the first line has '{lines[0][POOL]}'",
            "Copy it from the file that `altnorm ask` wrote; do not mix questions of two pools.",
            code="questions_file",
        )
    return source

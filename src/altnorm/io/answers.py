"""What the answers in a file of questions say: both decisions of each row, and the truth."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import NamedTuple

import numpy as np

from altnorm._base.errors import InputError
from altnorm.asking.values import OTHER
from altnorm.io.columns import listed
from altnorm.io.text_tables import neutralise_formula

NEITHER, PERSON = "neither", "(left to a person)"
NUMBER, ROW, ABOUT, LABEL, POOL = "ask", "row", "about", "label", "pool"
CANDIDATES = ("candidate_1", "candidate_2")
OWN_COLUMNS = (NUMBER, ROW, ABOUT, *CANDIDATES, LABEL, POOL)
_YES_NO = {"yes": "yes", "1": "yes", "true": "yes", "no": "no", "0": "no", "false": "no"}


class AnsweredRow(NamedTuple):
    """A labelled row: class codes in one column, or 0/1 for each label."""

    before: np.ndarray
    after: np.ndarray
    truth: np.ndarray


def place_of_new(seed: int, row: int, about: str) -> int:
    """Which candidate is the new one, 0 or 1: random to the eye, and found again by `judge`."""
    return hashlib.sha256(f"{seed} {row} {about}".encode()).digest()[0] % 2


def read_answers(
    lines: Sequence[Mapping[str, str]], sizes: Sequence[int], names: Sequence[str], seed: int
) -> dict[int, AnsweredRow]:
    """Return the rows that are labelled, by the number of their question.

    Parameters
    ----------
    lines : sequence of mappings
        Questions as `altnorm ask` wrote them; with several labels per row, one line per label.
    sizes : sequence of int
        How many lines there are about the row of each line.
    names : sequence of str
        Names of the classes, or of the labels.
    seed : int
        The seed with which the questions were made.

    Returns
    -------
    dict of int to AnsweredRow
        A row whose lines are not all there, or not all filled in, is not labelled.
    """
    found: dict[int, dict[str, AnsweredRow | None]] = {}
    for line in lines:
        about = line.get(ABOUT, "")
        answers = found.setdefault(int(line[NUMBER]), {})
        if about in answers:
            raise InputError(
                f"Each question must be there once, and number {line[NUMBER]} is there again",
                remedy="Keep the lines of `altnorm ask` as they are; fill in the labels only.",
                code="answers",
            )
        read = _label_answer if ABOUT in line else _class_answer
        answers[about] = read(line, list(names), seed)
    size = {int(line[NUMBER]): n for line, n in zip(lines, sizes, strict=True)}
    given = {n: [a for a in answers.values() if a is not None] for n, answers in found.items()}
    return {n: _together(rows) for n, rows in given.items() if len(rows) == size[n]}


def _together(answers: Sequence[AnsweredRow]) -> AnsweredRow:
    """The answers about one row; those about single labels are 0 elsewhere."""
    return AnsweredRow(*(np.sum(column, axis=0) for column in zip(*answers, strict=True)))


def _class_answer(line: Mapping[str, str], names: list[str], seed: int) -> AnsweredRow | None:
    codes = {neutralise_formula(name): j for j, name in enumerate([*names, PERSON])}
    label = _read_label(line, names, (NEITHER,))
    if label is None:
        return None
    truth = names.index(label) if label in names else OTHER
    old, new = _old_and_new(line, codes, seed)
    return AnsweredRow(np.array([old]), np.array([new]), np.array([truth]))


def _label_answer(line: Mapping[str, str], names: list[str], seed: int) -> AnsweredRow | None:
    labels = {neutralise_formula(name): j for j, name in enumerate(names)}
    answer = _read_label(line, ["yes", "no"])
    if answer is None:
        return None
    old, new = _old_and_new(line, {"no": 0, "yes": 1}, seed)
    row = np.zeros((3, len(names)), dtype=int)
    row[:, labels[line[ABOUT]]] = old, new, int(answer == "yes")
    return AnsweredRow(*row)


def _old_and_new(line: Mapping[str, str], codes: Mapping[str, int], seed: int) -> tuple[int, int]:
    pair = [codes[line[name]] for name in CANDIDATES]
    place = place_of_new(seed, int(line[ROW]), line.get(ABOUT, ""))
    return pair[1 - place], pair[place]


def _read_label(
    line: Mapping[str, str], known: list[str], others: Sequence[str] = ()
) -> str | None:
    """The class that a person, or a program that takes whole numbers for others, wrote."""
    text = line[LABEL]
    label = text.strip()
    if not label and text not in known:
        return None
    whole = re.sub(r"^(-?\d+)\.0+$", r"\1", label)
    # Copied from a candidate, a class that looks like a formula has a quote before it.
    spellings = [text, label, whole, label.removeprefix("'"), _yes_or_no(whole, known)]
    found = [spelled for spelled in spellings if spelled in known or spelled in others]
    if found:
        return found[0]
    near = [f"Did you mean '{name}'?" for name in get_close_matches(label, known, 1)]
    raise InputError(
        f"A label must be one of {listed(known)}" + "".join(f", or '{o}'" for o in others),
        f"question {line[NUMBER]} has '{label[:80]}'",
        " ".join([*near, "Correct it, or leave it empty."]),
        value=label,
        code="answers",
    )


def _yes_or_no(text: str, known: list[str]) -> str:
    return _YES_NO.get(text.lower(), text) if known == ["yes", "no"] else text

"""What the answers in a file of questions say about each row: fixed, broken, or neither."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import NamedTuple

from altnorm._base.errors import InputError
from altnorm.io.columns import listed

NEITHER = "neither"
NUMBER, ROW, ABOUT, LABEL, POOL = "ask", "row", "about", "label", "pool"
CANDIDATES = ("candidate_1", "candidate_2")
OWN_COLUMNS = (NUMBER, ROW, ABOUT, *CANDIDATES, LABEL, POOL)
_YES_NO = {"yes": "yes", "1": "yes", "true": "yes", "no": "no", "0": "no", "false": "no"}


class Answers(NamedTuple):
    """What may be answered to a question.

    Of a class, that it is none of those known; a yes/no question has no third answer.
    """

    known: list[str]
    others: tuple[str, ...] = ()


def place_of_new(seed: int, row: int, about: str) -> int:
    """Which candidate is the new one, 0 or 1: random to the eye, and found again by `judge`."""
    return hashlib.sha256(f"{seed} {row} {about}".encode()).digest()[0] % 2


def read_answers(
    lines: Sequence[Mapping[str, str]], answers: Answers, *, seed: int
) -> dict[int, list[int]]:
    """Return the rows that are labelled, by the number of their question.

    Parameters
    ----------
    lines : sequence of mappings
        Questions; in multi-label problems several may be about one row.
    answers : Answers
        What may be answered.
    seed : int
        The seed with which the questions were made.

    Returns
    -------
    dict of int to list of int
        For each changed decision of the row 1 if it is fixed, -1 if broken, 0 if neither.
    """
    rows: dict[int, list[int | None]] = {}
    sizes: dict[int, int] = {}
    for line in lines:
        number = int(line[NUMBER]) if line[NUMBER].isdecimal() else 0
        rows.setdefault(number, []).append(_answer(line, answers, seed))
        size = re.search(r" size=(\d+)$", line[POOL])
        sizes[number] = int(size.group(1)) if size else 1
    for number, found in rows.items():
        if number == 0 or len(found) > sizes[number]:
            raise InputError(
                f"The column '{NUMBER}' must number the questions, each once",
                f"'{number}' is there {len(found)} times",
                "Keep the lines of `altnorm ask` as they are; fill in the labels only.",
                code="answers",
            )
    known = {number: [x for x in found if x is not None] for number, found in rows.items()}
    # A row whose lines are not all there, or not all filled in, is not labelled.
    return {number: found for number, found in known.items() if len(found) == sizes[number]}


def _answer(line: Mapping[str, str], answers: Answers, seed: int) -> int | None:
    """1 if the label is the new candidate, -1 if it is the old one, 0 if neither; None if empty."""
    known = answers.known
    pair = [line[name] for name in CANDIDATES]
    if pair[0] == pair[1] or not set(pair) <= set(known) or not line[ROW].isdecimal():
        raise InputError(
            "Row and candidates of a question must be as `altnorm ask` wrote them",
            f"question {line[NUMBER]} has row '{line[ROW]}', '{pair[0]}' and '{pair[1]}'",
            "Restore them, and write the answer into the column 'label'.",
            code="answers",
        )
    label = _read_label(line[LABEL], known)
    if not label:
        return None
    if label not in known and label in answers.others:
        return 0
    if label not in known:
        raise _unknown_label(line[NUMBER], label, answers)
    new = pair[place_of_new(seed, int(line[ROW]), line.get(ABOUT, ""))]
    return 1 if label == new else -1 if label in pair else 0


def _read_label(text: str, known: Sequence[str]) -> str:
    """The class that a person, or a program that takes whole numbers for others, wrote."""
    if text in known:
        return text
    label = text.strip()
    whole = re.sub(r"^(-?\d+)\.0+$", r"\1", label)
    if known == ["yes", "no"]:
        return _YES_NO.get(whole.lower(), label)
    return whole if whole in known else label


def _unknown_label(number: str, label: str, answers: Answers) -> InputError:
    near = [f"Did you mean '{name}'?" for name in get_close_matches(label, answers.known, 1)]
    others = "".join(f", or '{other}'" for other in answers.others)
    return InputError(
        f"A label must be one of {listed(answers.known)}{others}",
        f"question {number} has '{label}'",
        " ".join([*near, "Correct it, or leave it empty."]),
        value=label,
        code="answers",
    )

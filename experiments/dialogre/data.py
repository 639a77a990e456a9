"""Read DialogRE: dialogues, argument pairs, relations."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from experiments._output import read_text

__all__ = ["DOWNLOADS", "N_RELATIONS", "Pair", "label_matrix", "read_split"]

# The official files of version 2, English, for non-commercial research:
# https://github.com/nlpdata/dialogre (Yu, Sun, Cardie, Yu, ACL 2020).
_ROOT = "https://raw.githubusercontent.com/nlpdata/dialogre/master/data_v2/en/data"
DOWNLOADS = {split: f"{_ROOT}/{split}.json" for split in ("train", "dev", "test")}

N_RELATIONS = 36  # number 37 is "unanswerable": no label


class Pair(NamedTuple):
    """One row: an argument pair of a dialogue.

    Attributes
    ----------
    turns : tuple of str
        The dialogue, "Speaker 1: ..." and so on.
    x, y : str
        The arguments.
    relations : tuple of int
        Relations, 0 .. 35; none for "unanswerable".
    """

    turns: tuple[str, ...]
    x: str
    y: str
    relations: tuple[int, ...]


def read_split(folder: Path, split: str) -> list[Pair]:
    """Read one split.

    Parameters
    ----------
    folder : Path
        Holds ``train.json``, ``dev.json`` and ``test.json``, or the same with ``.gz``; see
        `DOWNLOADS`.
    split : {"train", "dev", "test"}
        Which one.

    Returns
    -------
    list of Pair
        The argument pairs of all dialogues, in the order of the file.
    """
    text = read_text(folder / f"{split}.json", DOWNLOADS[split])
    return [_pair(tuple(turns), entry) for turns, entries in json.loads(text) for entry in entries]


def label_matrix(pairs: Sequence[Pair]) -> np.ndarray:
    """Relations as a 0/1 matrix, shape (n, 36)."""
    labels = np.zeros((len(pairs), N_RELATIONS), np.uint8)
    for row, pair in enumerate(pairs):
        labels[row, list(pair.relations)] = 1
    return labels


def _pair(turns: tuple[str, ...], entry: dict[str, Any]) -> Pair:
    relations = sorted({number - 1 for number in entry["rid"] if number <= N_RELATIONS})
    return Pair(turns, entry["x"], entry["y"], tuple(relations))

"""Read the crowd-sourced part of Ultra-Fine Entity Typing."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from experiments._output import read_text

__all__ = [
    "DOWNLOAD",
    "LEVELS",
    "N_TYPES",
    "Mention",
    "label_matrix",
    "level_of",
    "read_split",
    "read_types",
]

# The official archive; crowd/train.json, dev.json, test.json and ontology/types.txt are in it.
# Choi, Levy, Choi, Zettlemoyer, ACL 2018; some sentences come from licensed news text.
DOWNLOAD = "http://nlp.cs.washington.edu/entity_type/data/ultrafine_acl18.tar.gz"

LEVELS = ("coarse", "fine", "ultra-fine")
N_TYPES = 10_331
_FIRST = (0, 9, 130)  # position in types.txt at which each level begins


class Mention(NamedTuple):
    """One row: a mention in its sentence, and its types."""

    left: str
    mention: str
    right: str
    types: tuple[str, ...]


def read_types(folder: Path) -> list[str]:
    """The names of all types, coarse first, then fine, then ultra-fine."""
    return _text(folder, "types.txt", "ontology").split()


def read_split(folder: Path, split: str) -> list[Mention]:
    """Read one split.

    Parameters
    ----------
    folder : Path
        Holds ``train.json``, ``dev.json``, ``test.json`` and ``types.txt``, with or without
        ``.gz``, or the folders ``crowd`` and ``ontology`` of the archive at `DOWNLOAD`.
    split : {"train", "dev", "test"}
        Which one.

    Returns
    -------
    list of Mention
        The mentions, in the order of the file.
    """
    rows = map(json.loads, _text(folder, f"{split}.json", "crowd").splitlines())
    return [
        Mention(
            " ".join(row["left_context_token"]),
            row["mention_span"],
            " ".join(row["right_context_token"]),
            tuple(row["y_str"]),
        )
        for row in rows
    ]


def label_matrix(mentions: Sequence[Mention], columns: Mapping[str, int]) -> np.ndarray:
    """Types as a 0/1 matrix; types without a column are left out."""
    labels = np.zeros((len(mentions), len(columns)), np.uint8)
    for row, mention in enumerate(mentions):
        labels[row, [columns[name] for name in mention.types if name in columns]] = 1
    return labels


def level_of(columns: np.ndarray) -> np.ndarray:
    """Level of each type, an index into `LEVELS`, from its position in ``types.txt``."""
    return np.searchsorted(_FIRST, columns, side="right") - 1


def _text(folder: Path, name: str, subfolder: str) -> str:
    """The text of a file in the folder or its subfolder, packed or not."""
    inside = folder / subfolder
    return read_text((inside if inside.is_dir() else folder) / name, f"{DOWNLOAD} and unpack it")

"""Intent data sets, and ways to corrupt their text."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from string import ascii_lowercase
from typing import NamedTuple

import numpy as np
from sklearn.model_selection import train_test_split

from experiments._output import read_text

__all__ = ["CORPORA", "DOWNLOADS", "KINDS", "Corpus", "Texts", "corrupt", "read_corpus"]

_CLINC = "https://raw.githubusercontent.com/clinc/oos-eval/master/data/"
_BANKING = (
    "https://raw.githubusercontent.com/PolyAI-LDN/task-specific-datasets/master/banking_data/"
)
CORPORA = ("clinc150", "clinc150 imbalanced", "banking77")
DOWNLOADS = {
    "clinc150/data_full.json": _CLINC + "data_full.json",
    "clinc150/data_imbalanced.json": _CLINC + "data_imbalanced.json",
    "banking77/train.csv": _BANKING + "train.csv",
    "banking77/test.csv": _BANKING + "test.csv",
}
"""Official locations of what a data folder holds; files may be compressed (``.gz``)."""

KINDS = ("typos", "dropped words")


class Texts(NamedTuple):
    """Texts and the codes of their classes."""

    texts: list[str]
    y: np.ndarray


class Corpus(NamedTuple):
    """One data set; validation for tuning, test for the final number."""

    name: str
    train: Texts
    val: Texts
    test: Texts


def read_corpus(folder: Path, name: str, *, seed: int = 0) -> Corpus:
    """Read a data set.

    Banking77 has no validation part: its test part is halved, class by class.

    Parameters
    ----------
    folder : Path
        Holds the files named in `DOWNLOADS`, plain or compressed.
    name : {"clinc150", "clinc150 imbalanced", "banking77"}
        Which one.
    seed : int, default=0
        Of the halves of Banking77.

    Returns
    -------
    Corpus
        Texts and class codes; the classes are those of the training part, sorted.
    """
    if name == "banking77":
        train, rest = (_read_csv(folder, f"banking77/{part}.csv") for part in ("train", "test"))
        labels = [label for _, label in rest]
        val, test = train_test_split(rest, test_size=0.5, stratify=labels, random_state=seed)
    else:
        variant = "imbalanced" if name.endswith("imbalanced") else "full"
        parts = json.loads(_read(folder, f"clinc150/data_{variant}.json"))
        train, val, test = (parts[part] for part in ("train", "val", "test"))
    classes = sorted({label for _, label in train})
    return Corpus(name, *(_encode(part, classes) for part in (train, val, test)))


def _read(folder: Path, file: str) -> str:
    return read_text(folder / file, DOWNLOADS[file])


def _read_csv(folder: Path, file: str) -> list[tuple[str, str]]:
    rows = csv.DictReader(io.StringIO(_read(folder, file)))
    return [(row["text"], row["category"]) for row in rows]


def _encode(pairs: Sequence[Sequence[str]], classes: list[str]) -> Texts:
    codes = {label: code for code, label in enumerate(classes)}
    return Texts([text for text, _ in pairs], np.array([codes[label] for _, label in pairs]))


def corrupt(texts: Sequence[str], kind: str, rate: float, rng: np.random.Generator) -> list[str]:
    """Corrupt texts.

    Parameters
    ----------
    texts : sequence of str
        Clean texts.
    kind : {"typos", "dropped words"}
        "typos": each letter or digit is, with probability `rate`, deleted, replaced by a random
        letter, or exchanged with its right neighbour. "dropped words": each word is left out with
        probability `rate`; of a text that would be empty one word stays.
    rate : float
        Between 0 and 1.
    rng : numpy.random.Generator
        Source of the draws.

    Returns
    -------
    list of str
        Corrupted texts.
    """
    change = _add_typos if kind == "typos" else _drop_words
    return [change(text, rate, rng) for text in texts]


def _add_typos(text: str, rate: float, rng: np.random.Generator) -> str:
    characters = list(text)
    hit = rng.random(len(characters)) < rate
    edit = rng.integers(3, size=len(characters))
    letters = rng.integers(len(ascii_lowercase), size=len(characters))
    for i in np.flatnonzero(hit):
        if not characters[i].isalnum():
            continue
        if edit[i] == 0:
            characters[i] = ""
        elif edit[i] == 1:
            characters[i] = ascii_lowercase[letters[i]]
        elif i + 1 < len(characters):
            characters[i : i + 2] = characters[i + 1], characters[i]
    return "".join(characters)


def _drop_words(text: str, rate: float, rng: np.random.Generator) -> str:
    words = text.split()
    kept = rng.random(len(words)) >= rate
    if words and not kept.any():
        kept[rng.integers(len(words))] = True
    return " ".join(word for word, stays in zip(words, kept, strict=True) if stays)

"""What studies read; and what the page of a study mentions must lie beside it."""

import csv
import re
from importlib import import_module

import numpy as np
import pytest


def draw_logits(n, seed, bias, signal=2.0, noise=1.5):
    """Scores of a classifier that favours some classes, and labels."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(len(bias), size=n)
    scores = signal * np.eye(len(bias))[labels] + noise * rng.normal(size=(n, len(bias)))
    return scores + np.asarray(bias), labels


def draw_tags(n, seed, m=4):
    """Log-odds of several labels per row, and labels."""
    rng = np.random.default_rng(seed)
    labels = (rng.random((n, m)) < 0.3).astype(int)
    return 3 * labels - 2.5 + rng.normal(size=labels.shape), labels


def write_classifier(path, validation, test):
    """A file of predictions, from logits and labels of both parts."""
    path.parent.mkdir(exist_ok=True)
    parts = {"val": validation, "test": test}
    kinds = ("logits", "labels")
    arrays = {f"{p}_{k}": a for p, pair in parts.items() for k, a in zip(kinds, pair, strict=True)}
    np.savez(path, **arrays)


def read_page(folder):
    return (folder / "README.md").read_text(encoding="utf-8")


def check_page(folder, *, finite=True):
    """What the page shows lies beside it: figures with something in them, and tables with rows.

    Returns the tables by name; every number in them is one.
    """
    page = read_page(folder)
    for name in re.findall(r"\((\w+)\.png\)", page):
        assert (folder / f"{name}.png").stat().st_size > 1000
    tables = {}
    for name in re.findall(r"\((\w+)\.csv\)", page):
        with (folder / f"{name}.csv").open() as file:
            rows = tables[name] = list(csv.DictReader(file))
        assert rows
        odd = {"nan", "inf"} & {value for row in rows for value in row.values()}
        assert not (finite and odd)
    return tables


# Encoders, for the studies that train one.


def import_training(study):
    """The program that trains the classifier of a study."""
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    return import_module(f"experiments.{study}.train")


def tiny_encoder(folder, texts):
    """A random BERT of two narrow layers, and a tokenizer that knows the words of `texts`."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers
    from transformers import BertConfig, BertModel

    special = ["[PAD]", "[unused1]", "[unused2]", "[UNK]", "[CLS]", "[SEP]"]
    splitter = pre_tokenizers.BertPreTokenizer()
    words = {w for t in texts for w, _ in splitter.pre_tokenize_str(t.lower())}
    vocabulary = {word: i for i, word in enumerate([*special, *sorted(words)])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizers.Lowercase(), splitter
    folder.mkdir()
    tokenizer.save(str(folder / "tokenizer.json"))
    shape = dict(hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=16)
    BertModel(BertConfig(vocab_size=len(vocabulary), **shape)).save_pretrained(folder)

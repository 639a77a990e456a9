"""The example that wraps a text-classification pipeline, with a model made on the spot."""

import os
import runpy
from pathlib import Path

import numpy as np
import pytest

import altnorm

os.environ["HF_HUB_OFFLINE"] = "1"

pytest.importorskip("torch")
pytest.importorskip("transformers")

pytestmark = pytest.mark.heavy

EXAMPLE = Path(__file__).parents[2] / "examples" / "engines" / "huggingface_example.py"


@pytest.fixture(scope="module")
def example():
    return runpy.run_path(str(EXAMPLE))


def test_same_form_as_the_pipeline(example):
    before, after = example["before"], example["after"]
    assert len(before) == len(after) == len(example["texts"])
    for old, new in zip(before, after, strict=True):
        assert {entry["label"] for entry in new} == {entry["label"] for entry in old}
        scores = [entry["score"] for entry in new]
        assert scores == sorted(scores, reverse=True)
        np.testing.assert_allclose(sum(scores), 1, atol=1e-5)


def test_equal_to_the_normalizer_on_the_matrix_of_logits(example):
    """Against the softmax of the model's own logits, in the order of its configuration."""
    import torch

    pipeline, normalizer = example["pipeline"], example["normalizer"]
    texts = example["texts"]
    with torch.no_grad():
        encoded = pipeline.tokenizer(texts, padding=True, return_tensors="pt")
        logits = pipeline.model(**encoded).logits.double().numpy()
    proba = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    order = [pipeline.model.config.label2id[name] for name in normalizer.classes_]
    expected = normalizer.transform(proba[:, order])
    found = example["scores_to_matrix"](example["after"], normalizer.classes_)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_some_answers_change_and_confident_ones_do_not(example):
    normalizer = example["normalizer"]
    before = example["scores_to_matrix"](example["before"], normalizer.classes_)
    after = example["scores_to_matrix"](example["after"], normalizer.classes_)
    confident = altnorm.ambiguity(before) <= normalizer.threshold
    assert confident.any()
    assert example["changed"]
    np.testing.assert_array_equal(after[confident], before[confident])


def test_round_trip(example):
    scores = example["before"]
    matrix = example["scores_to_matrix"](scores, example["CLASSES"])
    assert example["matrix_to_scores"](matrix, example["CLASSES"]) == scores


def test_unknown_class(example):
    with pytest.raises(KeyError, match="surprised"):
        example["scores_to_matrix"](example["before"], ["negative", "surprised"])

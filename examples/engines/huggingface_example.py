"""
Hugging Face
============

A text-classification pipeline that gives the scores of all classes (``top_k=None``) is followed by
a normalizer. Classes are matched by their names; what comes back looks like what the pipeline
itself returns.

The model is a tiny one with random weights, made on the spot, so that nothing is downloaded.
"""

import os
import tempfile
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import numpy as np
import torch
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    BertTokenizerFast,
    TextClassificationPipeline,
)

from altnorm import AlternatingNormalizer

WORDS = ["the", "film", "story", "was", "and", "not", "very", "good", "bad", "long", "dull"]
CLASSES = ["negative", "neutral", "positive"]


def tiny_pipeline(folder):
    """A pipeline around an untrained model that knows the WORDS and the CLASSES."""
    vocabulary = Path(folder) / "vocab.txt"
    vocabulary.write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]))
    tokenizer = BertTokenizerFast(str(vocabulary))
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=5 + len(WORDS),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=32,
        initializer_range=1.0,
        id2label=dict(enumerate(CLASSES)),
        label2id={name: i for i, name in enumerate(CLASSES)},
    )
    model = BertForSequenceClassification(config).eval()
    return TextClassificationPipeline(
        model=model, tokenizer=tokenizer, framework="pt", device="cpu", top_k=None
    )


# %%
# From the pipeline's scores to a matrix and back, by class name: the pipeline sorts each text's
# classes by score, so positions mean nothing.


def scores_to_matrix(scores, classes):
    """One row per text, one column per class; a missing class is a KeyError with its name."""
    rows = [{entry["label"]: entry["score"] for entry in text} for text in scores]
    return np.array([[row[name] for name in classes] for row in rows])


def matrix_to_scores(proba, classes):
    """What the pipeline returns: for each text its classes, the most probable first."""
    return [
        [{"label": str(classes[j]), "score": float(row[j])} for j in np.argsort(-row)]
        for row in proba
    ]


class AdjustedPipeline:
    """A pipeline whose doubtful answers are adjusted."""

    def __init__(self, pipeline, normalizer):
        self.pipeline, self.normalizer = pipeline, normalizer

    def __call__(self, texts, **options):
        """Adjusted scores of all classes of each text, the most probable class first."""
        classes = self.normalizer.classes_
        proba = scores_to_matrix(self.pipeline(texts, top_k=None, **options), classes)
        return matrix_to_scores(self.normalizer.transform(proba), classes)


# %%
# Fit on the pipeline's scores of validation texts; the labels only give class frequencies.


def random_texts(n, seed):
    """Sentences of random words."""
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS, size=rng.integers(3, 9))) for _ in range(n)]


with tempfile.TemporaryDirectory() as folder:
    pipeline = tiny_pipeline(folder)
validation = scores_to_matrix(pipeline(random_texts(200, seed=1)), CLASSES)
labels = np.random.default_rng(2).choice(CLASSES, size=200)
normalizer = AlternatingNormalizer(threshold=0.6).fit(validation, labels)

adjusted = AdjustedPipeline(pipeline, normalizer)
texts = random_texts(50, seed=3)
before, after = pipeline(texts), adjusted(texts)
changed = [i for i in range(50) if before[i][0]["label"] != after[i][0]["label"]]
for i in changed[:5]:
    print(f"{texts[i]!r}: {before[i][0]['label']} -> {after[i][0]['label']}")

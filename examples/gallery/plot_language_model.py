"""
A language model's label scores
===============================

A few-shot language model scores each answer, and has favourites that depend on the prompt. The
scores below are made by a script, with such a bias; no model is downloaded.
"""

# %%
# Scores (log-probabilities of the answer tokens, up to a constant) for 600 prompts, 6 answers.

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import softmax

from altnorm import Adjuster, AlternatingNormalizer
from altnorm.peers import BatchCalibration

rng = np.random.default_rng(0)
answers = np.array(["anger", "fear", "joy", "love", "sadness", "surprise"])
favourite = np.array([0.0, -1.0, 2.0, -0.5, 1.0, -1.5])
y = rng.integers(6, size=600)
scores = rng.normal(size=(600, 6)) + 1.8 * np.eye(6)[y] + favourite
labels = answers[y]

# %%
# With labels for some prompts: let the evidence decide. `input="logits"` says what the scores are.

adjuster = Adjuster(input="logits").fit(scores[:200], labels[:200])
print(adjuster.verdict_)

# %%
# Without any labels: alternating normalization needs none if the prior is known (with all rows as
# reference, since no label can show that confident rows mislead), and neither does batch
# calibration, which divides by the mean prediction. Here both take the favourites away. On real
# models they help only where answers are nearly equally frequent: have some answers judged,
# :func:`altnorm.ask` says which.

unlabelled = AlternatingNormalizer(reference="all", prior="uniform", input="logits")
unlabelled.fit(scores[:200])
batch = BatchCalibration(input="logits").fit(scores[:200])


def right(adjusted):
    """Share of the other 400 prompts that are right."""
    return np.mean(y[200:] == adjusted.argmax(axis=1))


print(f"untouched: {right(scores[200:]):.1%}")
print(f"the adjuster, 200 labels: {right(adjuster.transform(scores[200:])):.1%}")
print(f"alternating normalization, no labels: {right(unlabelled.transform(scores[200:])):.1%}")
print(f"batch calibration, no labels: {right(batch.transform(scores[200:])):.1%}")

# %%
# How often each answer is given.

figure, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
before = np.bincount(softmax(scores[200:], axis=1).argmax(axis=1), minlength=6)
after = np.bincount(unlabelled.transform(scores[200:]).argmax(axis=1), minlength=6)
place = np.arange(6)
ax.bar(place - 0.2, before, 0.4, color="#9A9A9A", label="before")
ax.bar(place + 0.2, after, 0.4, color="#0072B2", label="after")
ax.set(xticks=place, xticklabels=answers, ylabel="times given")
ax.legend(frameon=False)
plt.show()

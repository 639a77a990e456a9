"""
A service that names only the top answers
=========================================

Language models behind a service often give log-probabilities for the few most probable answers
only. :func:`altnorm.from_topk` turns them into rows, which an :class:`altnorm.Adjuster` takes.
The answers below are made by a script, with favourites and a confusion; nothing is downloaded.
"""

# %%
# 20 possible answers, of which the service names the best five for each of 1,200 prompts. It likes
# some answers better than others, and mixes up two, whose names mean something else to it.

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import log_softmax

from altnorm import Adjuster, from_topk

rng = np.random.default_rng(0)
m, n = 20, 1200
y = rng.integers(m, size=n)
mixed_up = np.isin(y, [0, 1]) & (rng.random(n) < 0.8)
meant = np.where(mixed_up, 1 - y, y)
favour = rng.normal(scale=0.8, size=m)
scores = rng.normal(size=(n, m)) + 3.5 * np.eye(m)[meant] + favour
log_proba = log_softmax(scores, axis=1)
named = np.argsort(-log_proba, axis=1)[:, :5]
values = np.take_along_axis(log_proba, named, axis=1)
print(named[0], values[0].round(2))

# %%
# Each answer that was not named gets an even share of what is left of the row, but never more than
# the last one that was named.

proba = from_topk(named, values, n_classes=m)
print(proba.shape, proba[0].round(3))

# %%
# With labels for half of the prompts. Every family takes the favourites away; no factor for each
# answer exchanges two of them, but a matrix does. Log loss beside that of a temperature:

half = n // 2
adjuster = Adjuster().fit(proba[:half], y[:half])
print(adjuster.verdict_)
for family, verdict in adjuster.families_.items():
    reason = verdict.reason_text if verdict.before == verdict.after else ""
    print(f"{family:12s} {-verdict.before:.3f} -> {-verdict.after:.3f} {reason}")

# %%
# The other half: how many prompts of each answer are right, before and after. The filled marks are
# the two answers that were mixed up.


def recall(decided):
    """Share of the prompts of each answer that got it."""
    right = decided == y[half:]
    return np.array([right[y[half:] == j].mean() for j in range(m)])


before = recall(proba[half:].argmax(axis=1))
after = recall(adjuster.predict(proba[half:]))
figure, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
ax.plot([0, 1], [0, 1], color="#9A9A9A", linewidth=1)
ax.scatter(before[2:], after[2:], s=60, facecolors="none", edgecolors="#0072B2")
ax.scatter(before[:2], after[:2], s=70, color="#D55E00", label="mixed up")
ax.set_xlabel("right before", fontsize=13)
ax.set_ylabel("right after", fontsize=13)
ax.tick_params(labelsize=12)
ax.legend(frameon=False, fontsize=12, loc="lower right")
plt.show()

"""
Multi-label tagging
===================

Each probability says yes or no to one tag. The probabilities of each tag are corrected, rare tags
with the help of the others, and one threshold for all of them gives the best micro-F1.
"""

# %%
# Tags of very different frequency, scored by a tagger with a bias of its own for each tag.

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit
from sklearn.metrics import f1_score

from altnorm import Adjuster, compare

rng = np.random.default_rng(0)
frequency = np.geomspace(0.4, 0.02, 12)
bias = rng.normal(size=12)


def tag(n):
    """Truth and the tagger's probabilities."""
    truth = rng.random((n, 12)) < frequency
    return expit(3 * truth - 1.5 + bias + rng.normal(size=truth.shape)), truth.astype(int)


val_proba, val_y = tag(1500)
test_proba, test_y = tag(1500)
print(compare(val_proba, val_y, test_proba, test_y))

# %%
# F1 of each tag, before and after.

adjuster = Adjuster(multilabel="labelwise").fit(val_proba, val_y)
print(adjuster.verdict_)
before = f1_score(test_y, test_proba > 0.5, average=None, zero_division=0)
after = f1_score(test_y, adjuster.predict(test_proba), average=None, zero_division=0)
figure, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
ax.scatter(bias, before, color="#9A9A9A", label="before")
ax.scatter(bias, after, color="#0072B2", label="after")
ax.set(xlabel="the tagger's bias for the tag", ylabel="F1")
ax.legend(frameon=False)
plt.show()

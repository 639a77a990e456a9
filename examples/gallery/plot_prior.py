"""
What a wrong prior costs
========================

The prior matters as much as the method. Here the true one is mixed with a wrong one, and the gain
is plotted against the error.
"""

# %%
# The demo's validation and test classes are balanced: uniform is the truth. The wrong priors are
# random, and mixed in step by step.

import matplotlib.pyplot as plt
import numpy as np

import altnorm

val, test, _ = altnorm.load_demo()
m = val.proba.shape[1]
truth = np.full(m, 1 / m)
rng = np.random.default_rng(0)
base = np.mean(test.classes[test.proba.argmax(axis=1)] == test.labels)

errors, gains = [], []
for _ in range(5):
    wrong = rng.dirichlet(np.full(m, 0.5))
    for share in np.linspace(0, 1, 9):
        prior = (1 - share) * truth + share * wrong
        normalizer = altnorm.AlternatingNormalizer(alpha=0.6, threshold=0.5, prior=prior)
        adjusted = normalizer.fit(val.proba).transform(test.proba)
        hits = np.mean(test.classes[adjusted.argmax(axis=1)] == test.labels)
        errors.append(np.abs(prior - truth).sum() / 2)
        gains.append(100 * (hits - base))

# %%
# The gain survives a moderate error and turns into harm beyond.

figure, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
ax.scatter(errors, gains, color="#0072B2", s=18)
ax.axhline(0, color="#9A9A9A", linewidth=1)
ax.set(xlabel="error of the prior (total variation)", ylabel="gain in accuracy, points")
plt.show()

"""
Choosing alpha by eye
=====================

Cross-fitted accuracy against the exponent, for each threshold: a broad hill is a good sign, a
lonely peak is chance.
"""

# %%
# A small search on the demo predictions. Every third exponent is tried, then those near the best.

import matplotlib.pyplot as plt
import numpy as np

import altnorm

val, _, _ = altnorm.load_demo()
alphas = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 8.0)
normalizer = altnorm.AlternatingNormalizerCV(
    alphas, depths=(1,), references=("confident",), smoothings=(0.0,)
)
normalizer.fit(val.proba, val.labels)
table = normalizer.cv_results_

# %%
# One curve per threshold. Large exponents over-correct.

figure, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
colours = dict(zip((0.25, 0.5, 0.75), ("#D55E00", "#009E73", "#0072B2"), strict=True))
for threshold, colour in colours.items():
    rows = np.flatnonzero(table["threshold"] == threshold)
    rows = rows[np.argsort(table["alpha"][rows])]
    ax.plot(
        table["alpha"][rows],
        100 * table["score"][rows],
        "o-",
        color=colour,
        label=f"threshold {threshold}",
    )
best = np.argmin(table["rank"])
ax.plot(table["alpha"][best], 100 * table["score"][best], "o", ms=12, mfc="none", mec="#222222")
ax.set(xscale="log", xlabel="alpha", ylabel="cross-fitted accuracy, %")
ax.legend(frameon=False)
plt.show()

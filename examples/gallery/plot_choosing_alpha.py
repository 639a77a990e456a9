"""
Choosing alpha by eye
=====================

Cross-fitted score against the exponent, for each threshold: a broad hill is a good sign, a lonely
peak is luck.
"""

# %%
# A small search on the demo predictions, all exponents.

import matplotlib.pyplot as plt
import numpy as np

import altnorm

val, _, _ = altnorm.load_demo()
alphas = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 8.0)
normalizer = altnorm.AlternatingNormalizerCV(
    alphas, depths=(1,), references=("confident",), smoothings=(0.0,), random_state=0
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
        100 * table["gain"][rows],
        "o-",
        color=colour,
        label=f"tau {threshold}",
    )
best = np.argmin(table["rank"])
ax.plot(table["alpha"][best], 100 * table["gain"][best], "o", ms=12, mfc="none", mec="#222222")
ax.set(xscale="log", xlabel="alpha", ylabel="cross-fitted gain, points")
ax.legend(frameon=False)
plt.show()

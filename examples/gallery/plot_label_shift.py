"""
Label shift
===========

The class balance changes after training. Re-weighting by priors needs calibrated probabilities;
alternating normalization only needs predictions from the new balance and the new prior.
"""

# %%
# A classifier trained on balanced classes, and new data where the classes follow a power law.

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import softmax

from altnorm import compare

rng = np.random.default_rng(0)
m = 10
shifted = (1 / np.arange(1, m + 1)) / (1 / np.arange(1, m + 1)).sum()
directions = rng.normal(size=(m, m))


def predict(n):
    """Overconfident probabilities of a classifier that expects balanced classes."""
    y = rng.choice(m, size=n, p=shifted)
    return softmax(2.5 * (np.eye(m)[y] + 0.8 * rng.normal(size=(n, m)) @ directions / 3), axis=1), y


val_proba, val_y = predict(1000)
test_proba, test_y = predict(4000)

# %%
# All methods see the validation data only.

result = compare(val_proba, val_y, test_proba, test_y)
print(result)

# %%
# Gains with their intervals.

rows = sorted(result, key=lambda row: row.gain)
figure, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
gain = 100 * np.array([row.gain for row in rows])
error = 100 * np.array([[row.gain - row.ci_low, row.ci_high - row.gain] for row in rows]).T
ax.errorbar(gain, range(len(rows)), xerr=np.abs(error), fmt="o", color="#0072B2")
ax.axvline(0, color="#9A9A9A", linewidth=1)
ax.set(yticks=range(len(rows)), yticklabels=[row.method for row in rows], xlabel="gain, points")
plt.show()

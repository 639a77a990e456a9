"""
The class balance changes
=========================

Validation labels describe yesterday's balance of the classes. :meth:`altnorm.Adjuster.adapt` finds
today's from predictions alone, if it is told that nothing else has changed.
"""

# %%
# A classifier that is too sure of itself, on six equally common classes.

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import softmax

from altnorm import Adjuster

rng = np.random.default_rng(0)
even = np.full(6, 1 / 6)
uneven = np.array([0.4, 0.25, 0.15, 0.1, 0.06, 0.04])


def predict(n, balance):
    """Overconfident probabilities, and the truth."""
    y = rng.choice(6, size=n, p=balance)
    return softmax(3 * (rng.normal(size=(n, 6)) + 1.8 * np.eye(6)[y]), axis=1), y


val_proba, val_y = predict(1500, even)
adjuster = Adjuster().fit(val_proba, val_y)
print(adjuster.verdict_)
print(adjuster.calibration_)

# %%
# New predictions without labels; some classes have become rare. Nothing is adapted unless we say
# that only the balance has changed, but ``shift_`` says what would be. Here we know it, since we
# drew the rows.

shifted, shifted_y = predict(2000, uneven)
print(adjuster.adapt(shifted).shift_)
adapted = adjuster.adapt(shifted, assume="label_shift")
print(adapted.shift_)

# %%
# A classifier that has become surer of itself: no other balance explains that, and adapting is
# refused.

surer = predict(2000, even)[0] ** 1.5
surer /= surer.sum(axis=1, keepdims=True)
try:
    adjuster.adapt(surer, assume="label_shift")
except ValueError as error:
    print(error)

# %%
# The labels of the new rows, which nobody had, say whether it was worth it.

for name, fitted in (("before", adjuster), ("adapted", adapted)):
    print(f"{name:8s} accuracy {np.mean(fitted.predict(shifted) == shifted_y):.3f}")

# %%
# The balance as it was, as it was estimated (with 95 % intervals), and as it is.

shift = adapted.shift_
figure, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
place = np.arange(6)
low, high = np.array(shift.low), np.array(shift.high)
middle = (low + high) / 2
ax.plot(place, shift.before, "s", color="#9A9A9A", label="validation")
ax.errorbar(place, middle, yerr=(high - low) / 2, fmt="none", color="#0072B2", capsize=4)
ax.plot(place, shift.after, "o", color="#0072B2", label="estimated without labels")
ax.plot(place, uneven, "_", color="#D55E00", markersize=18, label="truth")
ax.set_xlabel("class", fontsize=13)
ax.set_ylabel("share", fontsize=13)
ax.tick_params(labelsize=12)
ax.set_ylim(bottom=0)
ax.legend(frameon=False, fontsize=12)
plt.show()

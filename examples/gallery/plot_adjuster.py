"""
The Adjuster: three families, one test
======================================

A forest that saw few images of four digits. Alternating normalization, class biases and a matrix
compete to repair it, and a test on rows that had no part in the fit decides.
"""

# %%
# Digits; nine of ten training images of 1, 3, 5 and 8 are lost. Validation and test have all ten
# digits equally often.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

from altnorm import Adjuster

X, y = load_digits(return_X_y=True)
X_train, X_rest, y_train, y_rest = train_test_split(X, y, test_size=0.6, stratify=y, random_state=1)
X_val, X_test, y_val, y_test = train_test_split(
    X_rest, y_rest, test_size=0.5, stratify=y_rest, random_state=1
)
rare = np.isin(y_train, [1, 3, 5, 8]) & (np.random.default_rng(1).random(y_train.size) < 0.9)
model = RandomForestClassifier(random_state=0).fit(X_train[~rare], y_train[~rare])

# %%
# The forest's probabilities for validation rows and their labels are all it takes.

adjuster = Adjuster().fit(model.predict_proba(X_val), y_val)
print(adjuster.verdict_)

# %%
# Each family has a verdict of its own, judged by the same test.

for family, verdict in adjuster.families_.items():
    print(f"{family:12s} {verdict}")

# %%
# Does the promise hold on test rows? Accuracy and log loss, before and after.

before = model.predict_proba(X_test)
after = adjuster.transform(before)
rows = np.arange(y_test.size)


def describe(proba):
    """Accuracy and mean log loss."""
    surprise = -np.log(np.maximum(proba[rows, y_test], 1e-12))
    return f"accuracy {np.mean(proba.argmax(axis=1) == y_test):.3f}, log loss {surprise.mean():.3f}"


print("before:", describe(before))
print("after: ", describe(after))

# %%
# The gain of each family on validation rows, with its 95 % interval, and what came of it on test
# rows: the gain of the one that was adopted, which has noise of its own.

figure, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
names = list(adjuster.families_)
verdicts = [adjuster.families_[name] for name in names]
gain = 100 * np.array([v.gain for v in verdicts])
low, high = (100 * np.array([getattr(v, side) for v in verdicts]) for side in ("ci_low", "ci_high"))
ax.errorbar(gain, names, xerr=[gain - low, high - gain], fmt="o", color="#0072B2", capsize=4)
found = 100 * (np.mean(after.argmax(axis=1) == y_test) - np.mean(before.argmax(axis=1) == y_test))
ax.plot(found, adjuster.family_, "D", color="#D55E00", label="on test rows")
ax.axvline(0, color="#9A9A9A", linewidth=1)
ax.set_xlabel("gain in accuracy, points", fontsize=13)
ax.tick_params(labelsize=13)
ax.margins(y=0.25)
figure.legend(frameon=False, fontsize=12, loc="outside upper right")
plt.show()

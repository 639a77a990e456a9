"""
The Adjuster: what competes, and what decides
=============================================

A forest that saw few images of four digits. Families of corrections compete to repair its
probabilities; whether decisions change, rows that had no part in the fit decide.
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
# What had to hold for that, and what the probabilities are a mixture of.

print(adjuster.verdict_.gates)
parts = ("the family", "a temperature", "as it came", "uniform")
for part, weight in zip(parts, adjuster.mixture_.weights, strict=True):
    print(f"{part:14s} {weight:.1%}")

# %%
# Does it hold on test rows? Accuracy and log loss, before and after.

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
# Cross-fitted log loss of everything that competed, lower is better; the family that was chosen is
# filled.

figure, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
table = adjuster.cv_results_
family = np.where(table["family"] == "none", "untouched", table["family"])
order = np.argsort(-table["log_loss"])
chosen = np.argmin(np.where(table["family"] == adjuster.family_, table["log_loss"], np.inf))
colours = ["#0072B2" if k == chosen else "#BFDCEB" for k in order]
ax.barh(family[order], table["log_loss"][order], color=colours)
ax.set_xlabel("cross-fitted log loss", fontsize=13)
ax.tick_params(labelsize=12)
plt.show()

# %%
# The verdict draws itself: here the gain with its interval.

adjuster.verdict_.plot()
plt.show()

# %%
# With a target accuracy only decisions are made of which so many are right, and the figure shows
# what share of the rows that is, before and after.

careful = Adjuster(target_accuracy=0.98).fit(model.predict_proba(X_val), y_val)
print(careful.verdict_.promise)
careful.verdict_.plot()
plt.show()

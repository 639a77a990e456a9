"""
Rare classes and costs
======================

Nine machines in ten are fine. The most accurate decisions recognise few of the others; decisions
for another goal recognise more of them.
"""

# %%
# A logistic regression, its probabilities for validation rows, and for test rows.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import recall_score

from altnorm import Adjuster

X, y = make_classification(
    9000,
    12,
    n_informative=6,
    n_classes=3,
    weights=[0.88, 0.09, 0.03],
    class_sep=1.4,
    random_state=0,
)
names = ["fine", "repair", "danger"]
y = np.array(names)[y]
model = LogisticRegression(max_iter=1000).fit(X[:3000], y[:3000])
val, val_y = model.predict_proba(X[3000:6000]), y[3000:6000]
test, test_y = model.predict_proba(X[6000:]), y[6000:]

# %%
# The goal is a score to improve, or costs to lower. Each verdict is about that goal.

costs = {("danger", "fine"): 50, ("repair", "fine"): 5}  # (truth, decision)
purposes = {
    "accuracy": Adjuster(),
    "macro-F1": Adjuster(scoring="f1_macro"),
    "balanced accuracy": Adjuster(scoring="balanced_accuracy"),
    "costs": Adjuster(costs=costs),
}
for adjuster in purposes.values():
    print(adjuster.fit(val, val_y).verdict_)

# %%
# How often each class is recognised on test rows.

figure, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
colours = ["#9A9A9A", "#56B4E9", "#0072B2", "#D55E00"]
for k, (purpose, adjuster) in enumerate(purposes.items()):
    recall = recall_score(test_y, adjuster.predict(test), labels=names, average=None)
    ax.bar(np.arange(3) + 0.2 * k - 0.3, recall, 0.2, color=colours[k], label=purpose)
ax.set(xticks=np.arange(3), xticklabels=names, ylabel="share that is recognised")
figure.legend(frameon=False, ncols=2, loc="outside upper right")
plt.show()

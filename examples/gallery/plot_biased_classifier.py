"""
Wrap a scikit-learn model
=========================

Trained on imbalanced data, used on balanced data: a logistic regression favours some digits.
:class:`altnorm.AdjustedClassifier` makes it and its adjustment one estimator.
"""

# %%
# Digits, with most images of some digits missing from the training data.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import recall_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from altnorm import AdjustedClassifier

rng = np.random.default_rng(0)
X, y = load_digits(return_X_y=True)
X = X + rng.normal(scale=6, size=X.shape)  # noisy scans: more doubt
X_train, X_rest, y_train, y_rest = train_test_split(X, y, test_size=0.6, stratify=y, random_state=0)
X_val, X_test, y_val, y_test = train_test_split(
    X_rest, y_rest, test_size=0.5, stratify=y_rest, random_state=0
)
rare = np.isin(y_train, [1, 3, 5, 8]) & (rng.random(y_train.size) < 0.85)
model = make_pipeline(StandardScaler(), LogisticRegression(C=0.01, max_iter=1000))
model.fit(X_train[~rare], y_train[~rare])

# %%
# The trained model is frozen; validation data fit the adjustment alone, by default an
# :class:`altnorm.Adjuster`.

wrapped = AdjustedClassifier(FrozenEstimator(model)).fit(X_val, y_val)
print(wrapped.adjuster_.verdict_)

# %%
# The digits that training saw too little of gain most.

before = recall_score(y_test, model.predict(X_test), average=None)
after = recall_score(y_test, wrapped.predict(X_test), average=None)
figure, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
digits = np.arange(10)
ax.bar(digits - 0.2, before, 0.4, color="#9A9A9A", label="before")
ax.bar(digits + 0.2, after, 0.4, color="#0072B2", label="after")
ax.set(xlabel="digit (1, 3, 5, 8 were rare in training)", ylabel="recall", xticks=digits)
figure.legend(frameon=False, ncols=2, loc="outside upper right")
plt.show()

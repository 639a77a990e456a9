"""
The paper's method alone
========================

Alternating normalization without the other families, on real predictions that ship with the
package: naive Bayes on word counts, trained on an imbalanced part of CLINC150 (150 intents).
"""

# %%
# Validation predictions with labels are all that is needed. Test predictions are only there to see
# whether the verdict holds.

import matplotlib.pyplot as plt
import numpy as np

import altnorm

val, test, _ = altnorm.load_demo()
print(val.proba.shape, test.proba.shape)

# %%
# Fit. The settings are chosen by cross-fitting, and the verdict rests on rows that had no part in
# choosing.

normalizer = altnorm.AlternatingNormalizerCV().fit(val.proba, val.labels)
print(normalizer.verdict_)
print(normalizer.best_params_)

# %%
# Does it hold on test data?

before = np.mean(test.classes[test.proba.argmax(axis=1)] == test.labels)
after = np.mean(normalizer.predict(test.proba) == test.labels)
print(f"accuracy {before:.3f} -> {after:.3f}")

# %%
# Why did a row change?

explanation = normalizer.explain(test.proba)
print(explanation[0])

# %%
# How often confident rows predict each class, against the prior: doubt is resolved away from the
# classes on the right.

sure = altnorm.ambiguity(val.proba) <= normalizer.best_params_["threshold"]
used = np.sort(val.proba[sure].sum(axis=0) / val.proba[sure].sum())
figure, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
ax.plot(used, color="#0072B2", label="predicted by confident rows")
ax.axhline(1 / used.size, color="#9A9A9A", linestyle="--", label="prior")
ax.set(xlabel="class, sorted", ylabel="share")
ax.legend(frameon=False)
plt.show()

"""
Polars
======

A data frame is a list of record batches; so is what comes back.
"""

import numpy as np
import polars as pl

from altnorm import AlternatingNormalizer
from altnorm.arrow import apply_batches

# %%
# Predictions of some classifier: a validation set, and a data frame with one column per class.
rng = np.random.default_rng(0)
validation = rng.dirichlet([0.6, 0.3, 0.2], size=500)
labels = rng.choice(["bird", "cat", "dog"], size=500)
normalizer = AlternatingNormalizer().fit(validation, labels)

proba = rng.dirichlet([0.6, 0.3, 0.2], size=10_000)
frame = pl.DataFrame({"id": np.arange(10_000), "dog": proba[:, 2], "cat": proba[:, 1]})
frame = frame.with_columns(bird=pl.Series(proba[:, 0]))

# %%
# One column per class, found by name.
batches = frame.to_arrow().to_batches()
adjusted = pl.from_arrow(apply_batches(normalizer, batches, prediction="class"))

# %%
# The same with a column of arrays, which is read without a copy.
arrays = pl.DataFrame({"id": np.arange(10_000), "scores": proba})
batches = arrays.to_arrow().to_batches()
adjusted_arrays = pl.from_arrow(
    apply_batches(normalizer, batches, columns="scores", prediction="class")
)

print(adjusted.group_by("class").len().sort("class"))

"""
As a last layer
===============

:func:`altnorm.torch.from_normalizer` makes an ``nn.Module``: what was fitted are buffers, and
gradients flow through it.
"""

# %%
# From a fitted normalizer to a layer that gives the same numbers.

import numpy as np
import torch

import altnorm
from altnorm.torch import from_normalizer

val, test, _ = altnorm.load_demo()
normalizer = altnorm.AlternatingNormalizer(alpha=0.6, threshold=0.5, prior="uniform")
normalizer.fit(val.proba)
layer = from_normalizer(normalizer)
rows = torch.from_numpy(np.array(test.proba[:200], dtype=np.float64))
difference = (layer(rows).numpy() - normalizer.transform(rows.numpy())).__abs__().max()
print(f"largest difference {difference:.1e}")

# %%
# It is differentiable with respect to its input.

rows.requires_grad_()
layer(rows).max(dim=1).values.sum().backward()
print(rows.grad.shape, bool(torch.isfinite(rows.grad).all()))

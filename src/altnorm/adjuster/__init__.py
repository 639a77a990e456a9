"""Tuning on validation data: families compete, and nothing is adopted without evidence.

- `settings`: what can be tried; `folds`: validation data and how rows are dealt into folds.
- `crossfit`, `search`, `families`: predictions for rows that had no part in them.
- `attribution`, `evidence`, `competition`: what a row adds to a gain, and what that proves.
- `calibration`: probabilities, once the decisions are made. `cautions`: what nobody tested.
- `adaptation`: what was fitted, re-targeted to another class balance.
- `adjuster`, `alternating`: the estimators.
"""

from altnorm.adjuster.adaptation import Window
from altnorm.adjuster.adjuster import Adjuster
from altnorm.adjuster.alternating import AlternatingNormalizerCV

__all__ = ["Adjuster", "AlternatingNormalizerCV", "Window"]

"""From probabilities to decisions: the rule that a score, or a table of costs, asks for.

- `decision`: what a fitted model decides with: weights, costs or thresholds.
- `purpose`: which rule a score or costs ask for, and its fit.
- `weights`: class weights that look at labels; thresholds of labels are in `altnorm.families`.
"""

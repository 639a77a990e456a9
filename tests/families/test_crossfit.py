"""Cross-fitted penalties: each fold as if fitted afresh."""

from functools import partial

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.metrics import log_loss

from altnorm.families import LabelwiseScaling
from altnorm.families.crossfit import STRENGTHS, cross_fit, is_past_best
from altnorm.families.labelwise import labelwise_path
from altnorm.families.likelihood import stratified_folds
from altnorm.families.linear import CURVE_STRENGTHS, MATRIX_STRENGTHS, curve_path, matrix_path
from altnorm.families.temperature import bias_path
from altnorm.peers import BiasCorrectedTemperature, CurveScaling, MatrixScaling
from tests.problems import bold_labels, favouring

# What is fitted, its path of penalties, these, and how far off rough fits may leave the loss.
FAMILIES = {
    "bias": (BiasCorrectedTemperature, bias_path, STRENGTHS, 1e-3),
    "matrix": (MatrixScaling, matrix_path, MATRIX_STRENGTHS, 4e-3),
    "curves": (
        partial(CurveScaling, facets=False),
        partial(curve_path, n_facets=0),
        CURVE_STRENGTHS,
        2e-3,
    ),
    "labelwise": (LabelwiseScaling, labelwise_path, STRENGTHS, 1e-4),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_the_strength_is_the_best_by_cross_validation(family):
    """Each fold and strength fitted afresh, scored by scikit-learn."""
    make, path, strengths, rtol = FAMILIES[family]
    by_label = family == "labelwise"
    logits, y = bold_labels(200) if by_label else favouring(200)
    folds = np.arange(200) * 3 // 200 if by_label else stratified_folds(y, 3)
    losses = []
    for strength in strengths:
        after = np.empty_like(logits)
        for k in range(3):
            fitted = make(strength, input="logits").fit(logits[folds != k], y[folds != k])
            after[folds == k] = fitted.transform(logits[folds == k])
        losses.append(log_loss(*((y.ravel(), after.ravel()) if by_label else (y, after))))
    chosen = make(cv=3, input="logits").fit(logits, y).strength_
    assert losses[list(strengths).index(chosen)] == pytest.approx(min(losses), rel=rtol)
    assert max(losses) > min(losses) * (1 + 2 * rtol)
    rows = logits if by_label else np.log(softmax(logits, axis=1))
    best = cross_fit(path, rows, y, np.ones(200), folds, strengths)
    loss = -best.label_log_p.mean() / (4 if by_label else 1)
    assert loss == pytest.approx(losses[list(strengths).index(best.strength)], rel=rtol)
    assert best.strength == chosen
    proba = best.proba(rows)
    of_labels = np.where(y, proba, 1 - proba) if by_label else proba[np.arange(200), y][:, None]
    np.testing.assert_allclose(np.log(of_labels).sum(axis=1), best.label_log_p, rtol=1e-9)


def test_a_path_ends_where_the_loss_is_clearly_above_the_least_twice():
    """Clearly: by one standard error, here 0.1, however many small steps lead there."""
    weight, noise = np.ones(100), np.tile([1.0, -1.0], 50)
    best = np.full(100, -1.0)
    slightly, more, clearly = (best + noise - fall for fall in (0.05, 0.09, 0.12))
    assert not is_past_best([best], weight)
    assert not is_past_best([best, best + 1], weight)
    assert not is_past_best([best, slightly, more], weight)
    assert not is_past_best([best, slightly, more, clearly], weight)
    assert not is_past_best([best, clearly, slightly, clearly], weight)
    assert is_past_best([best, slightly, clearly, clearly], weight)
    assert not is_past_best([slightly, clearly, best], weight)

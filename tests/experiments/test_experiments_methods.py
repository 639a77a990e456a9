"""A method that only studies need."""

import numpy as np
import pytest
from scipy.special import expit, logit
from sklearn.metrics import f1_score

from experiments._methods import GlobalThreshold

EXACT = 1e-12


def test_one_threshold_is_the_best_there_is():
    rng = np.random.default_rng(0)
    z = rng.normal(-1.5, 1.5, (60, 5))
    proba, y = expit(z - 1).round(2), (rng.random(z.shape) < expit(z)).astype(int)
    fitted = GlobalThreshold().fit(proba, y)
    adjusted = fitted.transform(proba)
    np.testing.assert_array_equal(adjusted > 0.5, proba > fitted.threshold_)
    best = max(f1_score(y, proba > t, average="micro") for t in np.unique(proba)[:-1])
    assert f1_score(y, adjusted > 0.5, average="micro") == pytest.approx(best, abs=EXACT)
    inside = (proba > 0) & (proba < 1)
    shift = logit(proba[inside]) - logit(adjusted[inside])
    np.testing.assert_allclose(shift, logit(fitted.threshold_), atol=1e-9)

"""What a confident reference does to predictions that are the true probabilities."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

pytest.importorskip("matplotlib")

from experiments.reference_choice import calibrated as study


def test_predictions_are_bayes_rule():
    rng = np.random.default_rng(0)
    proba, y = study.draw(3, 1.0, 5, rng)
    again = np.random.default_rng(0)
    labels, noise = again.integers(3, size=5), again.normal(size=(5, 3))
    means = np.diag([1.5, 2.5, 3.5])
    density = np.stack(
        [multivariate_normal(mean, np.eye(3)).pdf(noise + means[labels]) for mean in means], axis=1
    )
    np.testing.assert_array_equal(y, labels)
    np.testing.assert_allclose(proba, density / density.sum(axis=1, keepdims=True))


def test_easy_classes_are_far_out():
    proba, y = study.draw(4, 2.0, 20_000, np.random.default_rng(1))
    right = [np.mean(proba[y == k].argmax(axis=1) == k) for k in range(4)]
    assert right == sorted(right)
    assert right[-1] - right[0] > 0.1


def test_a_confident_reference_costs_and_all_rows_do_not():
    design = study.Design(n_test=10_000)
    found = {record.reference: record for record in study.measure(10, 2.0, 0, design, 0)}
    gains = [found[name].gain for name in study.REFERENCES]
    assert gains[0] < gains[1] < gains[2] < -1
    assert gains[3] == pytest.approx(0, abs=0.3)
    assert found["confident, tau 0.25"].hard_half < 20
    assert found["all rows"].hard_half == pytest.approx(50, abs=3)


def test_tables_hold_means_over_draws():
    design = study.Design(sizes=(10,), n_reference=500, n_test=2000, n_draws=2)
    records = [r for number in range(2) for r in study.measure(10, 2.0, number, design, 0)]
    mean = np.mean([r.gain for r in records if r.reference == study.ALL])
    assert f"| {mean:+.2f} |" in study.calibrated_tables(records)["calibrated"]

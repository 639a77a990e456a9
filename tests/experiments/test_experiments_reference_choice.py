"""The study of references: its one iteration, its choices, and that it runs."""

import numpy as np
import pytest
from scipy.special import softmax
from scipy.stats import multivariate_normal

pytest.importorskip("matplotlib")

import altnorm
from experiments.reference_choice import (
    __main__ as reference_choice,
    calibrated,
    study,
    thresholds,
)
from experiments.reference_choice.bench import Bench, find_neighbours, one_step
from experiments.suite.files import Classifier
from tests.pages import check_page, draw_logits, write_classifier

N_CLASSES = 5
BIAS = np.linspace(-1, 1, N_CLASSES)


@pytest.fixture
def bench():
    (val, val_y), (test, test_y) = draw_logits(300, 0, BIAS), draw_logits(200, 1, BIAS)
    data = Classifier("tiny", softmax(val, axis=1), val_y, softmax(test, axis=1), test_y)
    return Bench(data, seed=0)


def test_quick_run_writes_everything_it_mentions(tmp_path):
    folder, names = tmp_path / "data", {"cifar10_a", "cifar10_b"}
    for seed, name in enumerate(sorted(names)):
        parts = draw_logits(260, 2 * seed, BIAS), draw_logits(150, 2 * seed + 1, BIAS)
        write_classifier(folder / f"{name}.npz", *parts)
    arguments = ["--data", str(folder), "--quick", "--output", str(tmp_path), "--jobs", "1"]
    reference_choice.main(arguments)
    tables = check_page(tmp_path)
    assert {row["choice"] for row in tables["gains"]} == {*study.CHOICES, study.DEFAULTS}
    assert {row["classifier"] for row in tables["classifiers"]} == names
    design, worlds = reference_choice.QUICK_CALIBRATED, len(calibrated.SPREADS)
    assert len(tables["calibrated"]) == worlds * design.n_draws * len(calibrated.REFERENCES)


def test_gains_by_threshold_are_those_of_the_whole_test_set(tmp_path):
    path = tmp_path / thresholds.FILE
    write_classifier(path, draw_logits(260, 0, BIAS), draw_logits(150, 1, BIAS))
    methods, gains = zip(*(line.values() for line in thresholds.measure(path)), strict=True)
    assert methods[:2] == ("threshold 0", "threshold 0.25")
    assert methods[4:] == ("biases by likelihood",)
    assert np.mod(np.array(gains) * 1.5 + 0.1, 1) == pytest.approx(0.1)  # whole rows of 150


@pytest.mark.parametrize("alpha", [0.5, 1.0, 4.0])
def test_one_step_is_the_librarys(bench, alpha):
    val, test, prior = bench.data.val_proba, bench.data.test_proba, bench.priors("counted")[-1]
    expected = altnorm.alternating_normalization(test, val, prior=prior, alpha=alpha)
    decided = one_step(test**alpha, (val**alpha).sum(axis=0), prior)
    np.testing.assert_array_equal(decided, expected.argmax(axis=1))


def test_each_row_may_have_its_own_reference(bench):
    rows, val = bench.rows.proba, bench.data.val_proba
    prior = np.full(N_CLASSES, 1 / N_CLASSES)
    serves = find_neighbours(bench, (30,))[30]
    decided = one_step(rows, serves @ val, prior)
    for i in (0, 50, len(rows) - 1):
        alone = altnorm.alternating_normalization(rows[i : i + 1], val[serves[i] > 0], prior=prior)
        assert decided[i] == alone.argmax()


@pytest.mark.parametrize(("threshold", "row"), [(0.25, 0), (0.75, 2)])
def test_gains_on_test_data_are_those_of_the_normalizer(bench, threshold, row):
    data = bench.data
    options = {"threshold": threshold, "reference": "all", "prior": "shrunk", "smoothing": 0.1}
    normalizer = altnorm.AlternatingNormalizer(**options).fit(data.val_proba, data.val_y)
    after = normalizer.predict(data.test_proba) == data.test_y
    before = data.test_proba.argmax(axis=1) == data.test_y
    priors = bench.priors("shrunk")
    masses = bench.outside.astype(float)
    sums = masses @ data.val_proba + 0.1 * masses.sum(axis=1, keepdims=True) * priors
    gains = bench.gains(bench.rows.proba, sums, priors)
    assert gains[row, 1] == pytest.approx(100 * (after.mean() - before.mean()))


def test_nothing_is_chosen_unless_it_promises_a_gain():
    key = study.Key(study.ALL, study.WHOLE, 0, "shrunk")
    bad = study.Candidate(key, 1.0, 0.75, 0.0, expected=-0.1, gain=3.0)
    good = bad._replace(alpha=2.0, expected=0.2, gain=-1.0)
    assert study.choose([]) is None
    assert study.choose([bad]) is None
    assert study.choose([bad, good]) is good


# What a confident reference does to predictions that are the true probabilities.


def test_predictions_are_bayes_rule():
    rng = np.random.default_rng(0)
    proba, y = calibrated.draw(3, 1.0, 5, rng)
    again = np.random.default_rng(0)
    labels, noise = again.integers(3, size=5), again.normal(size=(5, 3))
    means = np.diag([1.5, 2.5, 3.5])
    density = np.stack(
        [multivariate_normal(mean, np.eye(3)).pdf(noise + means[labels]) for mean in means], axis=1
    )
    np.testing.assert_array_equal(y, labels)
    np.testing.assert_allclose(proba, density / density.sum(axis=1, keepdims=True))

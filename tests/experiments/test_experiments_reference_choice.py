"""The study of references: its one iteration, its choices, and that it runs."""

import numpy as np
import pytest
from scipy.special import softmax

pytest.importorskip("matplotlib")

import altnorm
from experiments.reference_choice import __main__ as reference_choice
from experiments.reference_choice import results, study
from experiments.reference_choice.bench import Bench, find_neighbours, one_step
from experiments.suite.files import Classifier
from tests.pages import check_figures, read_table

N_CLASSES = 5


def tiny_part(n, seed):
    rng = np.random.default_rng(seed)
    labels = rng.integers(N_CLASSES, size=n)
    bias = np.linspace(-1, 1, N_CLASSES)
    logits = 2 * np.eye(N_CLASSES)[labels] + 1.5 * rng.normal(size=(n, N_CLASSES)) + bias
    return logits, labels


@pytest.fixture
def bench():
    (val, val_y), (test, test_y) = tiny_part(300, 0), tiny_part(200, 1)
    data = Classifier("tiny", softmax(val, axis=1), val_y, softmax(test, axis=1), test_y)
    return Bench(data, seed=0)


def test_quick_run_writes_everything_it_mentions(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    for seed, name in enumerate(("cifar10_a", "cifar10_b")):
        (val, val_y), (test, test_y) = tiny_part(260, 2 * seed), tiny_part(150, 2 * seed + 1)
        arrays = {"val_logits": val, "val_labels": val_y}
        np.savez(folder / f"{name}.npz", test_logits=test, test_labels=test_y, **arrays)
    arguments = ["--data", str(folder), "--quick", "--output", str(tmp_path), "--jobs", "1"]
    reference_choice.main(arguments)
    check_figures(tmp_path, ["sizes"])
    for table, key in (("gains", "choice"), ("classifiers", "classifier")):
        rows = read_table(tmp_path, table)
        assert all(value not in ("nan", "inf") for row in rows for value in row.values())
        expected = (
            {*study.CHOICES, study.DEFAULTS} if table == "gains" else {"cifar10_a", "cifar10_b"}
        )
        assert {row[key] for row in rows} == expected


@pytest.mark.parametrize("alpha", [0.5, 1.0, 4.0])
def test_one_step_is_the_librarys(bench, alpha):
    val, test, prior = bench.data.val_proba, bench.data.test_proba, bench.priors("counted")[-1]
    expected = altnorm.alternating_normalization(test, val, prior=prior, alpha=alpha)
    found = one_step(test**alpha, (val**alpha).sum(axis=0), prior)
    np.testing.assert_array_equal(found, expected.argmax(axis=1))


def test_each_row_may_have_its_own_reference(bench):
    rows, val = bench.rows.proba, bench.data.val_proba
    prior = np.full(N_CLASSES, 1 / N_CLASSES)
    serves = find_neighbours(bench, (30,))[30]
    found = one_step(rows, serves @ val, prior)
    for i in (0, 50, len(rows) - 1):
        alone = altnorm.alternating_normalization(rows[i : i + 1], val[serves[i] > 0], prior=prior)
        assert found[i] == alone.argmax()


def test_neighbours_are_the_nearest_of_other_folds(bench):
    serves = find_neighbours(bench, (30,))[30]
    np.testing.assert_array_equal(serves.sum(axis=1), 30)
    span = bench.rows.spans[2]
    assert not serves[span][:, bench.folds == 2].any()
    distance = ((np.sqrt(bench.rows.proba[-1]) - np.sqrt(bench.data.val_proba)) ** 2).sum(axis=1)
    assert distance[serves[-1] > 0].max() <= distance[serves[-1] == 0].min()


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


def test_weights_of_the_choices(bench):
    def draw(choice, size=100, threshold=0.5):
        return study.draw_weights(bench, choice, size, threshold, np.random.default_rng(0))

    assert (bench.ambiguity[draw(study.CONFIDENT, 20) > 0] <= 0.5).all()
    assert draw(study.ALL).sum() == 100
    np.testing.assert_array_equal(draw(study.ALL, study.WHOLE), 1)
    assert not draw(study.CONFIDENT, threshold=-1.0).any()
    by_class = np.bincount(bench.predicted, draw(study.STRATIFIED))
    np.testing.assert_allclose(by_class, np.bincount(bench.predicted) / 3, atol=1)
    balanced = np.bincount(bench.predicted, draw(study.BALANCED))
    np.testing.assert_allclose(balanced, 100 / N_CLASSES)
    weighted = draw(study.WEIGHTED, study.WHOLE)
    np.testing.assert_allclose(weighted, 1 - bench.ambiguity)


def test_nothing_is_chosen_unless_it_promises_a_gain():
    key = study.Key(study.ALL, study.WHOLE, 0, "shrunk")
    bad = study.Candidate(key, 1.0, 0.75, 0.0, expected=-0.1, gain=3.0)
    good = bad._replace(alpha=2.0, expected=0.2, gain=-1.0)
    assert study.choose([]) is None
    assert study.choose([bad]) is None
    assert study.choose([bad, good]) is good


def test_smoothing_is_the_librarys_alone():
    key = study.Key(study.ALL, study.WHOLE, 0, "shrunk")
    plain = study.Candidate(key, 1.0, 0.75, 0.0, expected=0.1, gain=0.5)
    smooth = plain._replace(smoothing=1.0, expected=0.9, gain=2.0)
    design = reference_choice.QUICK._replace(near_sizes=(50,))
    found = results.collect([([plain, smooth], {"classifier": "tiny"})], design).gains
    tuned = {(row["choice"], row["size"]): row["tuned_gain"] for row in found}
    assert tuned[study.ALL, study.WHOLE] == 0.5
    assert tuned[study.DEFAULTS, study.WHOLE] == 2.0
    assert tuned[study.NEAREST, study.WHOLE] == 0.5  # all neighbours are all rows

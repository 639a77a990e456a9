"""The suite of real classifiers: its files, the paper's tuning, and the table that it writes."""

import numpy as np
import pytest
from scipy.special import expit, softmax

pytest.importorskip("matplotlib")

import altnorm
from experiments.suite import __main__ as suite
from experiments.suite import paper
from experiments.suite.files import read_classifier
from experiments.suite.measure import top_label_error
from tests.oracle import oracle
from tests.pages import check_figures, read_page, read_table

N_CLASSES = 4


def tiny_part(n, seed):
    rng = np.random.default_rng(seed)
    labels = rng.integers(N_CLASSES, size=n)
    bias = np.linspace(-1.5, 1.5, N_CLASSES)
    return 2 * np.eye(N_CLASSES)[labels] + 1.5 * rng.normal(size=(n, N_CLASSES)) + bias, labels


def tiny_tags(n, seed):
    rng = np.random.default_rng(seed)
    labels = (rng.random((n, N_CLASSES)) < 0.3).astype(int)
    return 3 * labels - 2.5 + rng.normal(size=labels.shape), labels


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "data"
    path.mkdir()
    for name, part in (("cifar10_tiny", tiny_part), ("dialogre_tiny", tiny_tags)):
        (val, val_y), (test, test_y) = part(240, 0), part(160, 1)
        arrays = {"val_logits": val, "val_labels": val_y}
        np.savez(path / f"{name}.npz", test_logits=test, test_labels=test_y, **arrays)
    return path


def test_the_table_holds_what_was_measured(folder, tmp_path):
    output = tmp_path / "out"
    suite.main(["--data", str(folder), "--quick", "--output", str(output), "--jobs", "1"])
    rows = read_table(output, "suite")
    (logits, y), (tags, tag_y) = tiny_part(160, 1), tiny_tags(160, 1)
    hits = (tags > 0) & (tag_y == 1)
    base = {
        "cifar10_tiny": 100 * np.mean(logits.argmax(axis=1) == y),
        "dialogre_tiny": 200 * hits.sum() / ((tags > 0).sum() + tag_y.sum()),
    }
    assert {row["classifier"] for row in rows} == set(base)
    for row in rows:
        assert float(row["base"]) == pytest.approx(base[row["classifier"]], rel=1e-4)
        assert float(row["ci_low"]) <= float(row["gain"]) <= float(row["ci_high"])
    page = read_page(output)
    published = [row for row in rows if row["method"] == "CAN as published"]
    for row in published:
        assert f"| {row['classifier']} | {base[row['classifier']]:.2f} |" in page
    untouched = next(row for row in rows if row["method"] == "untouched")
    own = softmax(logits, axis=1)[np.arange(160), y]
    assert float(untouched["log_loss"]) == pytest.approx(-np.log(own).mean(), rel=1e-4)
    methods = {row["method"] for row in rows}
    assert {"Adjuster", "bias, guarded", "matrix, guarded", "BCTS, always"} <= methods
    # With one classifier of each kind, mean and worst are its gain.
    single = float(published[0]["gain"])
    assert f"| **mean gain** |  | **{single:+.2f}** |" in page
    assert f"| **worst** |  | **{single:+.2f}** |" in page
    check_figures(output, ["gains"])


def test_the_papers_tuning_takes_the_best_setting_on_the_rows_it_sees(monkeypatch):
    monkeypatch.setattr(paper, "ALPHAS", (0.5, 2.0, 8.0))
    logits, y = tiny_part(60, 2)
    proba = softmax(logits, axis=1)
    found = paper.PaperTuning(depth=2).fit(proba, y)
    prior = np.bincount(y) / len(y)
    scores = {}
    for alpha in (0.5, 2.0, 8.0):
        for threshold in paper.THRESHOLDS:
            doubtful = altnorm.ambiguity(proba) > threshold
            steps = oracle(proba[doubtful], proba[~doubtful], prior=prior, alpha=alpha, depth=2)
            for depth in (1, 2):
                after = proba.copy()
                after[doubtful] = steps[depth]
                scores[alpha, depth, threshold] = np.mean(after.argmax(axis=1) == y)
    assert scores[tuple(found.best_params_.values())] == max(scores.values())
    assert max(scores.values()) > np.mean(proba.argmax(axis=1) == y)


def test_halves_are_disjoint_and_keep_the_class_balance(tmp_path):
    logits, labels = tiny_part(400, 3)
    np.savez(tmp_path / "one.npz", logits=logits, labels=labels)
    found = read_classifier(tmp_path / "one.npz", seed=1)
    rows = np.vstack([found.val_proba, found.test_proba])
    together = np.lexsort(rows.T), np.lexsort(softmax(logits, axis=1).T)
    np.testing.assert_allclose(rows[together[0]], softmax(logits, axis=1)[together[1]])
    counts = (np.bincount(y, minlength=N_CLASSES) for y in (found.val_y, found.test_y))
    assert np.abs(np.subtract(*counts)).max() <= 1


def test_a_matrix_of_labels_means_log_odds(folder):
    found = read_classifier(folder / "dialogre_tiny.npz")
    assert found.multilabel
    np.testing.assert_allclose(found.test_proba, expit(tiny_tags(160, 1)[0]))


def test_an_empty_folder_is_told(tmp_path):
    with pytest.raises(SystemExit, match=r"no \.npz files .*--data"):
        suite.main(["--data", str(tmp_path), "--output", str(tmp_path)])


def test_calibration_error_by_hand():
    proba = np.array([[0.9, 0.1], [0.9, 0.1], [0.4, 0.6], [0.4, 0.6]])
    y = np.array([0, 1, 1, 1])
    assert top_label_error(proba, y) == pytest.approx(0.5 * abs(0.9 - 0.5) + 0.5 * abs(0.6 - 1))


def test_a_calibrated_forecaster_has_no_calibration_error():
    rng = np.random.default_rng(0)
    p = rng.random(200_000)
    labels = (rng.random(p.size) < p).astype(int)
    assert top_label_error(np.stack([1 - p, p], axis=1), labels) < 0.005

"""The suite of real classifiers: its files, the paper's tuning, and the table that it writes."""

import numpy as np
import pytest
from scipy.special import expit, softmax

pytest.importorskip("matplotlib")

import altnorm
from experiments._output import read_records
from experiments.suite import __main__ as suite
from experiments.suite import paper, published
from experiments.suite.files import Classifier, read_classifier
from experiments.suite.measure import top_label_error
from experiments.suite.tables import priors_table
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


def test_one_method_alone_leaves_the_other_lines():
    old = [{"classifier": c, "method": m, "gain": 0} for c in "ab" for m in "xy"]
    new = [{"classifier": "b", "method": "x", "gain": 1}]
    assert suite.replaced(old, new) == [old[0], old[1], new[0], old[3]]


def test_priors_are_summed_up_over_single_label_classifiers():
    def row(name, prior, allowed, gain):
        interval = {"ci_low": gain - 0.5, "ci_high": gain + 0.5, "depth": 1}
        return {"classifier": name, "prior": prior, "allowed": allowed, "gain": gain, **interval}

    rows = [row("a", "uniform", True, 1.0), row("a", "counted", False, -1.0)]
    lines = priors_table([*rows, row("tags", "counted", True, 9.0)]).splitlines()[2:]
    assert lines[0] == lines[2].replace("as the source allows", "uniform for all")
    assert lines[0] == "| uniform for all | +1.00 | +1.00 | 1 / 0 | 1 | 1 |"
    assert lines[1] == "| counted for all | -1.00 | -1.00 | 0 / 1 | 1 | 1 |"


@pytest.mark.parametrize("prior", [paper.UNIFORM, paper.COUNTED])
def test_the_papers_tuning_takes_the_best_setting_on_the_rows_it_sees(monkeypatch, prior):
    monkeypatch.setattr(paper, "ALPHAS", (0.5, 2.0, 8.0))
    monkeypatch.setattr(paper, "DEPTHS", (1, 2))
    logits, y = tiny_part(60, 2)
    proba = softmax(logits, axis=1)
    found = paper.PaperTuning(prior).fit(proba, y)
    counts = np.bincount(y) if prior == paper.COUNTED else np.ones(N_CLASSES)
    scores = {}
    for alpha in (0.5, 2.0, 8.0):
        for threshold in paper.THRESHOLDS:
            doubtful = altnorm.ambiguity(proba) > threshold
            q = counts / counts.sum()
            steps = oracle(proba[doubtful], proba[~doubtful], prior=q, alpha=alpha, depth=2)
            for depth in (1, 2):
                after = proba.copy()
                after[doubtful] = steps[depth]
                scores[alpha, depth, threshold] = np.mean(after.argmax(axis=1) == y)
    assert scores[tuple(found.best_params_.values())] == max(scores.values())
    assert max(scores.values()) > np.mean(proba.argmax(axis=1) == y)


@pytest.mark.heavy
def test_the_grid_is_the_same_with_pytorch(monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.setattr(paper, "ALPHAS", (0.3, 1.0, 16.0))
    logits, y = tiny_part(80, 3)
    proba, prior = softmax(logits, axis=1), np.full(N_CLASSES, 1 / N_CLASSES)
    points = paper.scan_grid(proba, y, prior)
    assert points == paper.scan_grid(proba, y, prior, device="cpu")
    assert len(points) == 3 * 5 * 3


def test_settings_that_were_found_are_not_searched_again(tmp_path, monkeypatch):
    path = tmp_path / "published.csv"
    path.write_text("classifier,prior,alpha,depth,threshold\ntiny,uniform,3,2,0.5\n")
    monkeypatch.setattr(paper, "SETTINGS", path)
    logits, y = tiny_part(40, 4)
    data = Classifier("tiny", softmax(logits, axis=1), y, softmax(logits, axis=1), y)
    assert paper.published(data).setting == (3, 2, 0.5)
    assert paper.published(data, paper.COUNTED).setting is None
    fitted = paper.published(data).fit(data.val_proba, y)
    expected = altnorm.AlternatingNormalizer(3, 2, 0.5, prior="uniform").fit(data.val_proba)
    np.testing.assert_array_equal(
        fitted.transform(data.test_proba), expected.transform(data.test_proba)
    )


def test_the_search_is_written_down_for_the_suite(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(paper, "ALPHAS", (0.5, 2.0))
    published.main(["--data", str(folder), "--output", str(tmp_path / "out")])
    rows = read_records(tmp_path / "out" / "published.csv")
    assert [(row["classifier"], row["prior"], row["allowed"]) for row in rows] == [
        ("cifar10_tiny", "uniform", True),
        ("cifar10_tiny", "counted", False),
        ("dialogre_tiny", "counted", True),
    ]
    monkeypatch.setattr(paper, "SETTINGS", tmp_path / "out" / "published.csv")
    data = read_classifier(folder / "cifar10_tiny.npz")
    fitted = paper.published(data).fit(data.val_proba, data.val_y)
    after = fitted.transform(data.test_proba).argmax(axis=1) == data.test_y
    before = data.test_proba.argmax(axis=1) == data.test_y
    assert rows[0]["gain"] == pytest.approx(100 * (after.mean() - before.mean()), rel=1e-4)
    tags = paper.published(read_classifier(folder / "dialogre_tiny.npz"))
    assert tags.setting == (rows[2]["alpha"], rows[2]["depth"], rows[2]["threshold"])


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

"""The suite of real classifiers: its files, its methods, and the tables that it writes."""

import numpy as np
import pytest
from scipy.special import softmax

pytest.importorskip("matplotlib")

from experiments.suite import __main__ as suite
from experiments.suite.files import read_classifier
from experiments.suite.gains import p_value, passes_holm, source_interval
from experiments.suite.measure import DIVIDED, Task, measure, top_label_error
from experiments.suite.names import source_of
from tests.pages import check_page, draw_logits, draw_tags, read_page, write_classifier

BIAS = np.linspace(-1.5, 1.5, 4)


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "data"
    classes = draw_logits(240, 0, BIAS), draw_logits(160, 1, BIAS)
    write_classifier(path / "cifar10_tiny.npz", *classes)
    write_classifier(path / "dialogre_tiny.npz", draw_tags(240, 0), draw_tags(160, 1))
    return path


def test_the_tables_hold_what_was_measured(folder, tmp_path):
    output = tmp_path / "out"
    suite.main(["--data", str(folder), "--quick", "--output", str(output), "--jobs", "1"])
    tables = check_page(output, finite=False)
    single, several, few, few_several, orders = (
        tables[name] for name in ("suite", "labels", "few", "few_labels", "orders")
    )
    (logits, y), (tags, tag_y) = draw_logits(160, 1, BIAS), draw_tags(160, 1)
    untouched = single[0]
    right = 100 * np.mean(logits.argmax(axis=1) == y)
    assert float(untouched["accuracy"]) == pytest.approx(right, rel=1e-4)
    of_label = softmax(logits, axis=1)[np.arange(160), y]
    assert float(untouched["log_loss"]) == pytest.approx(-np.log(of_label).mean(), rel=1e-4)
    hits = ((tags > 0) & (tag_y == 1)).sum()
    micro = 200 * hits / ((tags > 0).sum() + tag_y.sum())
    assert float(several[0]["f1_micro"]) == pytest.approx(micro, rel=1e-4)
    for row in (*single, *several, *few, *few_several, *orders):
        assert float(row["ci_low"]) <= float(row["gain"]) <= float(row["ci_high"])
    assert {"Adjuster", DIVIDED, "curves, always", "matrix, always"} <= {
        r["method"] for r in single
    }
    assert len(few) == len(few_several) == 1 * 3 * 2  # 100 labels of 240, three draws, two methods
    assert [row["order"] for row in orders] == 2 * ["0", "1", "2", "3", "4", "5"]
    (adjuster,) = (row for row in single if row["method"] == "Adjuster")
    assert f"| Adjuster | 1 | {float(adjuster['gain']):+.2f} [" in read_page(output)


def test_some_labels_are_rows_of_the_file_in_their_order(folder):
    path = folder / "cifar10_tiny.npz"
    all_rows, few = read_classifier(path), Task(path, "temperature", 100, 1).read(0)
    assert len(few.val_y) == 100
    places = [np.flatnonzero((all_rows.val_proba == row).all(axis=1))[0] for row in few.val_proba]
    assert (np.diff(places) > 0).all()
    np.testing.assert_array_equal(all_rows.val_y[places], few.val_y)
    assert not np.array_equal(few.val_y, Task(path, "temperature", 100, 2).read(0).val_y)


def test_dividing_by_shares_is_bayes_rule_for_balanced_accuracy(folder):
    path = folder / "cifar10_tiny.npz"
    first, second = measure(Task(path, "Adjuster"), 0)
    (purpose,) = measure(Task(path, "Adjuster, balanced accuracy"), 0)
    assert second["method"] == DIVIDED
    assert first["log_loss"] == second["log_loss"]
    assert second["balanced_accuracy"] == pytest.approx(purpose["balanced_accuracy"], abs=3)


def test_classifiers_of_one_source_are_drawn_together():
    assert source_of("cifar10_a") == source_of("cifar100_b") == "cifar"
    assert source_of("text_banking77_5shot") == source_of("banking77_qwen3") == "banking77"
    assert source_of("llm_mmlu16_llama13b") != source_of("llm_emotion4_qwen")
    apart = {f"{k}_x": float(k % 2) for k in range(40)}
    low, high = source_interval(apart)
    assert (low, high) == pytest.approx((0.35, 0.65), abs=0.03)
    assert source_interval({f"same_{k}": float(k % 2) for k in range(40)}) == (0.5, 0.5)


def test_a_pattern_chooses_classifiers(folder, tmp_path):
    arguments = ["--data", str(folder), "--only", "dialogre*", "--measure", "--skip-few"]
    suite.main([*arguments, "--output", str(tmp_path / "out"), "--jobs", "1"])
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["labels.csv"]


def test_calibration_error_p_values_and_holms_rule_by_hand():
    proba = np.array([[0.9, 0.1], [0.9, 0.1], [0.4, 0.6], [0.4, 0.6]])
    y = np.array([0, 1, 1, 1])
    assert top_label_error(proba, y) == pytest.approx(0.5 * abs(0.9 - 0.5) + 0.5 * abs(0.6 - 1))
    assert p_value({"gain": 2.0, "ci_low": 0.0, "ci_high": 4.0}) == pytest.approx(0.05)
    assert p_value({"gain": 0.0, "ci_low": 0.0, "ci_high": 0.0}) == 1.0
    passed = passes_holm([0.02, 0.011, 0.9, 0.03])  # 0.011 <= 0.05 / 4, but 0.02 > 0.05 / 3
    assert passed.tolist() == [False, True, False, False]
    assert passes_holm([0.01, 0.012, 0.02, 0.04]).all()


def test_another_order_has_the_same_rows(folder):
    path = folder / "cifar10_tiny.npz"
    data, reordered = (Task(path, "Adjuster", order=k).read(0) for k in (0, 1))
    assert not np.array_equal(data.val_y, reordered.val_y)
    first, second = (np.lexsort(part.val_proba.T) for part in (data, reordered))
    np.testing.assert_array_equal(data.val_proba[first], reordered.val_proba[second])
    np.testing.assert_array_equal(data.val_y[first], reordered.val_y[second])
    np.testing.assert_array_equal(data.test_proba, reordered.test_proba)

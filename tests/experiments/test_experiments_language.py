"""The study of language models' answers: its intervals, its methods, and the page that it fills."""

import numpy as np
import pytest
from scipy.special import softmax

pytest.importorskip("matplotlib")

from experiments.language import __main__ as language, study
from experiments.language.methods import DIVIDED, LearntBatchCalibration, fit_method
from tests.pages import check_page, draw_logits, read_page, write_classifier

N_CLASSES = 3
NAME = "llm_mmlu16_llama13b"


def answers(n, seed):
    return draw_logits(n, seed, [1.5, 0.0, -0.5], signal=1.6, noise=1.0)


def test_the_interval_covers_the_mean_of_draws_and_rows():
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(400):
        of_draws, of_rows = 0.5 * rng.normal(size=(6, 1)), rng.normal(size=(1, 40))
        values = 0.3 + of_draws + of_rows + rng.normal(size=(6, 40))
        _, low, high = study.two_way_interval(values)
        covered += low <= 0.3 <= high
    assert covered >= 0.93 * 400


def test_learnt_batch_calibration_takes_the_best_strength():
    scores, y = answers(300, 0)
    proba = softmax(scores, axis=1)
    fitted = LearntBatchCalibration().fit(proba, y)
    right = {
        s: np.mean((np.log(proba) - s * np.log(proba.mean(axis=0))).argmax(axis=1) == y)
        for s in (0.0, 0.5, 1.0, 2.0, fitted.strength_)
    }
    assert right[fitted.strength_] == max(right.values())
    expected = np.log(proba) - fitted.strength_ * np.log(proba.mean(axis=0))
    np.testing.assert_allclose(fitted.transform(proba), softmax(expected, axis=1), rtol=1e-9)


@pytest.mark.parametrize("name", ["BCTS", "temperature", "batch calibration, learnt"])
def test_labels_that_are_not_drawn_are_not_used(name):
    scores, y = answers(120, 0)
    proba, is_drawn = softmax(scores, axis=1), np.arange(120) < 60
    changed = np.where(is_drawn, y, (y + 1) % N_CLASSES)
    first, second = (fit_method(name, proba, labels, is_drawn) for labels in (y, changed))
    np.testing.assert_array_equal(first.transform(proba), second.transform(proba))


def test_the_page_holds_what_was_measured(tmp_path, monkeypatch):
    monkeypatch.setattr(language, "QUICK_DRAWS", 2)
    data, output = tmp_path / "data", tmp_path / "out"
    (val, _), (test, test_y) = parts = answers(90, 0), answers(200, 1)
    write_classifier(data / f"{NAME}.npz", *parts)
    language.main(["--data", str(data), "--quick", "--output", str(output), "--jobs", "1"])
    tables = check_page(output)
    rows = tables["language"]
    assert {row["labels"]: row["draws"] for row in rows} == {"0": "1", "50": "2", "90": "1"}
    base = 100 * np.mean(test.argmax(axis=1) == test_y)
    for row in rows:
        if row["against"] == "untouched":
            assert float(row["accuracy"]) - float(row["gain"]) == pytest.approx(base, abs=1e-2)
    batch = next(row for row in rows if row["method"] == "batch calibration")
    proba = softmax(test, axis=1)
    by_hand = 100 * np.mean((proba / proba.mean(axis=0)).argmax(axis=1) == test_y)
    assert float(batch["accuracy"]) == pytest.approx(by_hand, rel=1e-4)
    (divided,) = (r for r in tables["no_labels"] if r["method"] == DIVIDED)
    mean = np.log(softmax(val, axis=1).mean(axis=0))
    by_hand = 100 * np.mean((test - mean).argmax(axis=1) == test_y)
    # The row itself is one more row of the reference.
    assert float(divided["accuracy"]) == pytest.approx(by_hand, abs=1)
    page = read_page(output)
    assert f"| {base:.1f} % |" in page
    assert "LLaMA-13B" in page

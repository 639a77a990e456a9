"""The shipped predictions, and the script that made them, on a tiny sample."""

import json
import subprocess
import sys

import numpy as np
import pytest
from scipy.special import softmax

from altnorm import ambiguity
from altnorm.io.datasets import DEMO_FILE, decode_log_proba, load_demo
from altnorm.io.predictions import Predictions
from altnorm.peers import BiasCorrectedTemperature
from experiments.demo_data.__main__ import DOWNLOAD, encode_log_proba, load_clinc150
from experiments.demo_data.transfer import measure


def test_demo_is_small_and_sound():
    assert DEMO_FILE.stat().st_size < 1_000_000
    assert (DEMO_FILE.parent / "README.md").exists()
    demo = load_demo()
    assert demo.validation.proba.shape == (3000, 150)
    assert demo.test.proba.shape == (4500, 150)
    assert len(demo.queries) == 4500
    for predictions in (demo.validation, demo.test):
        np.testing.assert_allclose(predictions.proba.sum(axis=1), 1, rtol=0, atol=1e-12)
        assert np.unique(predictions.labels).size == 150
    right = demo.test.classes[demo.test.proba.argmax(axis=1)] == demo.test.labels
    assert right.mean() == pytest.approx(0.7082, abs=1e-4)
    assert 0.3 < (ambiguity(demo.test.proba) > 0.75).mean() < 0.4


def test_rounding_is_close_and_keeps_the_best():
    rng = np.random.default_rng(0)
    log_proba = np.log(rng.dirichlet(np.full(150, 0.1), 200) + 1e-12)
    log_proba -= np.log(np.exp(log_proba).sum(axis=1, keepdims=True))
    codes = encode_log_proba(log_proba)
    proba = decode_log_proba(codes)
    assert codes.dtype == np.uint8
    np.testing.assert_array_equal(proba.argmax(axis=1), log_proba.argmax(axis=1))
    assert np.abs(proba - np.exp(log_proba)).max() < 0.02
    tied = decode_log_proba(encode_log_proba(np.log([[0.3, 0.301, 0.399]])))
    assert tied.argmax() == 2


def sample():
    intents = {"greet": ["hello there", "hi you"], "leave": ["good bye", "bye now"]}
    rows = [[query, name] for name, queries in intents.items() for query in queries]
    return {"train": rows, "val": rows, "test": rows[::-1], "oos_train": [["what", "oos"]]}


@pytest.mark.slow
def test_script_runs_on_a_sample(tmp_path):
    (tmp_path / "data_imbalanced.json").write_text(json.dumps(sample()))
    assert load_clinc150(tmp_path)["test"][0] == ["bye now", "good bye", "hi you", "hello there"]
    command = ["-m", "experiments.demo_data", "--data", str(tmp_path), "--output"]
    output = tmp_path / "demo.npz"
    subprocess.run([sys.executable, *command, str(output)], check=True, capture_output=True)
    with np.load(output, allow_pickle=False) as stored:
        assert stored["classes"].tolist() == ["greet", "leave"]
        proba = decode_log_proba(stored["test_codes"])
        assert proba.argmax(axis=1).tolist() == stored["test_labels"].tolist() == [1, 1, 0, 0]


def test_missing_data_set_says_where_to_get_it(tmp_path):
    with pytest.raises(SystemExit, match=DOWNLOAD):
        load_clinc150(tmp_path)


def biased_part(towards, seed):
    """A classifier that names one of three classes too often."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(3), 200)
    z = np.eye(3)[y] * 2 + rng.normal(size=(600, 3))
    z[:, towards] += 2
    return Predictions(softmax(z, axis=1), np.arange(3), y)


@pytest.mark.slow
def test_an_adjustment_transfers_between_parts_only_if_they_are_alike():
    alike = {"a": biased_part(0, 0), "b": biased_part(0, 1)}
    unlike = {"a": biased_part(0, 0), "b": biased_part(1, 1)}
    gains = measure(alike, BiasCorrectedTemperature)
    assert min(gains.values()) > 5
    assert gains["a", "b"] == pytest.approx(gains["b", "b"], abs=3)
    gains = measure(unlike, BiasCorrectedTemperature)
    assert gains["a", "b"] < 0 < gains["b", "b"]

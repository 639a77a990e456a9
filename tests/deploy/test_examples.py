"""The scripts in examples/engines say what the model says that they wrap."""

import os
import runpy
from pathlib import Path

import numpy as np
import pytest

import altnorm
from tests.batches import matrix

os.environ["HF_HUB_OFFLINE"] = "1"
ENGINES = Path(__file__).parents[2] / "examples" / "engines"


def run(name):
    return runpy.run_path(str(ENGINES / f"{name}_example.py"))


def test_duckdb():
    pytest.importorskip("duckdb")
    example = run("duckdb")
    normalizer, result = example["normalizer"], example["result"]
    rows = example["predictions"].take(np.arange(0, 10_000, 2))
    proba = matrix(rows, normalizer.classes_)
    assert result.column_names == ["id", "dog", "cat", "bird", "class"]
    assert result["id"].to_pylist() == rows["id"].to_pylist()
    adjusted = matrix(result, normalizer.classes_)
    np.testing.assert_array_equal(adjusted, normalizer.transform(proba))
    assert result["class"].to_pylist() == normalizer.predict(proba).tolist()


def test_polars():
    pytest.importorskip("polars")
    example = run("polars")
    normalizer, proba = example["normalizer"], example["proba"]
    expected = normalizer.transform(proba)
    assert example["adjusted"].columns == ["id", "dog", "cat", "bird", "class"]
    np.testing.assert_array_equal(example["adjusted"][normalizer.classes_].to_numpy(), expected)
    np.testing.assert_array_equal(example["adjusted_arrays"]["scores"].to_numpy(), expected)
    for frame in (example["adjusted"], example["adjusted_arrays"]):
        assert frame["class"].to_list() == normalizer.predict(proba).tolist()


@pytest.mark.heavy
# MLflow warns of its own types, and compares names with a range, which pandas will change.
@pytest.mark.filterwarnings("ignore:.*Any type hint is inferred as AnyType")
@pytest.mark.filterwarnings("ignore:Operation with range is deprecated")
def test_mlflow(tmp_path):
    mlflow = pytest.importorskip("mlflow")
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    example = run("mlflow")
    adjuster, rows, adjusted = example["adjuster"], example["proba"][600:], example["adjusted"]
    assert adjuster.verdict_.adopted
    np.testing.assert_array_equal(adjusted[example["CLASSES"]], adjuster.transform(rows))
    assert adjusted["class"].tolist() == adjuster.predict(rows).tolist()
    assert adjusted.index.tolist() == rows.index.tolist()
    mixed = rows[["cow", "ant", "bee"]].assign(id=range(len(rows)))
    np.testing.assert_array_equal(example["served"].predict(mixed), adjusted)


@pytest.fixture(scope="module")
def huggingface():
    """A text-classification pipeline, with a model made on the spot."""
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    return run("huggingface")


@pytest.mark.heavy
def test_huggingface_keeps_the_form_of_the_pipeline(huggingface):
    before, after = huggingface["before"], huggingface["after"]
    assert len(before) == len(after) == len(huggingface["texts"])
    for old, new in zip(before, after, strict=True):
        assert {entry["label"] for entry in new} == {entry["label"] for entry in old}
        scores = [entry["score"] for entry in new]
        assert scores == sorted(scores, reverse=True)
        np.testing.assert_allclose(sum(scores), 1, atol=1e-5)
    rows = huggingface["scores_to_matrix"](before, huggingface["CLASSES"])
    assert huggingface["matrix_to_scores"](rows, huggingface["CLASSES"]) == before
    with pytest.raises(KeyError, match="surprised"):
        huggingface["scores_to_matrix"](before, ["negative", "surprised"])


@pytest.mark.heavy
def test_huggingface_is_equal_to_the_normalizer_on_the_matrix_of_logits(huggingface):
    """Against the softmax of the model's own logits, in the order of its configuration."""
    import torch

    pipeline, normalizer = huggingface["pipeline"], huggingface["normalizer"]
    with torch.no_grad():
        encoded = pipeline.tokenizer(huggingface["texts"], padding=True, return_tensors="pt")
        logits = pipeline.model(**encoded).logits.double().numpy()
    proba = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    order = [pipeline.model.config.label2id[name] for name in normalizer.classes_]
    before, after = (
        huggingface["scores_to_matrix"](huggingface[side], normalizer.classes_)
        for side in ("before", "after")
    )
    np.testing.assert_allclose(after, normalizer.transform(proba[:, order]), atol=1e-5)
    confident = altnorm.ambiguity(before) <= normalizer.threshold
    assert confident.any()
    assert huggingface["changed"]
    np.testing.assert_array_equal(after[confident], before[confident])

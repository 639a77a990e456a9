"""The example that saves a normalizer as an MLflow model."""

import runpy
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("mlflow")

pytestmark = [
    pytest.mark.heavy,
    # MLflow warns of its own types, and compares names with a range, which pandas will change.
    pytest.mark.filterwarnings("ignore:.*Any type hint is inferred as AnyType"),
    pytest.mark.filterwarnings("ignore:Operation with range is deprecated"),
]

EXAMPLE = Path(__file__).parents[2] / "examples" / "engines" / "mlflow_example.py"


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    import mlflow

    mlflow.set_tracking_uri((tmp_path_factory.mktemp("mlflow") / "runs").as_uri())
    return runpy.run_path(str(EXAMPLE))


def test_what_is_served_is_what_the_normalizer_gives(example):
    adjuster, rows, found = example["adjuster"], example["proba"][600:], example["adjusted"]
    assert adjuster.verdict_.adopted
    np.testing.assert_array_equal(found[example["CLASSES"]], adjuster.transform(rows))
    assert found["class"].tolist() == adjuster.predict(rows).tolist()
    assert found.index.tolist() == rows.index.tolist()


def test_columns_in_another_order_and_others(example):
    rows = example["proba"][600:]
    mixed = rows[["cow", "ant", "bee"]].assign(id=range(len(rows)))
    found = example["served"].predict(mixed)
    np.testing.assert_array_equal(found, example["adjusted"])

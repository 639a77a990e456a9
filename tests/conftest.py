"""Settings that every test shares, and fixtures that several files share."""

import os
import shutil
import sys

import pytest
from hypothesis import settings

# What fails in these modules is shown with its values, as in a test file.
pytest.register_assert_rewrite("tests.commands", "tests.pages")

# The same examples on every run; HYPOTHESIS_PROFILE=explore draws new ones.
settings.register_profile("ci", derandomize=True, deadline=None, database=None)
settings.register_profile("explore", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

# Spark's workers would otherwise run the first python3 on the path, outside the environment.
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)


# Ray and Spark. What needs an extra is imported by the fixture that uses it.


@pytest.fixture(scope="module")
def normalizer():
    """For the classes that Ray and Spark are given."""
    from tests.batches import CLUSTER_CLASSES, fit_drawn

    return fit_drawn(CLUSTER_CLASSES, 300)


@pytest.fixture(scope="module", params=["person", "target"])
def adjuster(request):
    """With a temperature; costs, or a target accuracy, leave rows to a person."""
    from tests.batches import CLUSTER_CLASSES
    from tests.programs import single

    return single("cooled", request.param, "proba", m=3, classes=CLUSTER_CLASSES)[0]


@pytest.fixture(scope="module")
def proba():
    """The rows that Ray and Spark are given."""
    from tests.batches import CLUSTER_CLASSES, CLUSTER_ROWS, draw

    return draw(CLUSTER_ROWS, len(CLUSTER_CLASSES), seed=1)


@pytest.fixture(scope="module")
def spark():
    """A session with two local threads for executors, and small batches."""
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "400")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


# The command line.


@pytest.fixture(scope="session")
def prepared(tmp_path_factory):
    """A folder with val.parquet and test.parquet, and a model that was tuned on the first."""
    from tests.commands import QUICK, run, table

    path = tmp_path_factory.mktemp("prepared")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(path)
        table(600, 0).to_parquet("val.parquet", index=False)
        shown = table(900, 1)[["note", "cow", "id", "ant", "y", "bee"]]
        shown.to_parquet("test.parquet", index=False)
        assert run(["tune", "val.parquet", "--label", "y", "-o", "model", *QUICK]) == 0
    return path


@pytest.fixture
def folder(prepared, tmp_path, monkeypatch):
    """The current folder, with val.parquet and test.parquet in it."""
    monkeypatch.chdir(tmp_path)
    for name in ("val.parquet", "test.parquet"):
        shutil.copy(prepared / name, name)
    return tmp_path


@pytest.fixture
def model(prepared, folder):
    """Name of a model in `folder`, tuned on val.parquet."""
    return shutil.copy(prepared / "model", "model")

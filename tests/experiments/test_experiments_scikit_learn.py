"""scikit-learn's classifiers beside its own calibrators."""

import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from experiments._output import read_records
from experiments.benchmark.scikit_learn.__main__ import CLASSIFIERS, TOOLS, main, measure


def test_each_tool_is_fitted_to_the_second_third_and_measured_on_the_last():
    records = {record["tool"]: record for record in measure("iris", "decision tree", 3)}
    assert set(records) == {"as it came", *(tool.name for tool in TOOLS if not tool.only_two)}
    X, y = load_iris(return_X_y=True)
    split = {"stratify": y, "random_state": 3}
    X_train, X_rest, y_train, y_rest = train_test_split(X, y, train_size=1 / 3, **split)
    split["stratify"] = y_rest
    X_val, X_test, y_val, y_test = train_test_split(X_rest, y_rest, train_size=0.5, **split)
    tree = clone(CLASSIFIERS["decision tree"]).fit(X_train, y_train)
    calibrated = CalibratedClassifierCV(FrozenEstimator(tree)).fit(X_val, y_val)
    assert records["as it came"]["accuracy"] == tree.score(X_test, y_test)
    loss = log_loss(y_test, calibrated.predict_proba(X_test))
    assert records["sigmoid"]["log_loss"] == pytest.approx(loss)
    assert records["altnorm"]["log_loss"] < records["as it came"]["log_loss"]
    two = {record["tool"] for record in measure("breast cancer", "naive Bayes", 0)}
    assert "threshold" in two


def test_the_command_writes_a_table(tmp_path, monkeypatch):
    chosen = {"naive Bayes": CLASSIFIERS["naive Bayes"]}
    monkeypatch.setattr("experiments.benchmark.scikit_learn.__main__.CLASSIFIERS", chosen)
    main(["--quick", "--jobs", "1", "--output", str(tmp_path)])
    lines = read_records(tmp_path / "scikit_learn.csv")
    assert {line["data"] for line in lines} == {"iris", "breast cancer"}

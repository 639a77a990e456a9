"""scikit-learn's classifiers beside its own calibrators."""

import numpy as np
import pytest
from sklearn.model_selection import train_test_split

from experiments._output import read_records
from experiments.benchmark.scikit_learn import __main__ as study
from experiments.benchmark.scikit_learn.__main__ import CLASSIFIERS, main, measure
from experiments.benchmark.scikit_learn.overlap import (
    TEST_TO_TRAINING,
    corrected_error,
    plain_error,
)


def test_the_command_writes_a_table(tmp_path, monkeypatch):
    chosen = {"naive Bayes": CLASSIFIERS["naive Bayes"]}
    monkeypatch.setattr(study, "CLASSIFIERS", chosen)
    main(["--quick", "--jobs", "1", "--output", str(tmp_path)])
    lines = read_records(tmp_path / "scikit_learn.csv")
    assert {line["data"] for line in lines} == {"iris", "breast cancer"}
    # A threshold is for two classes only.
    assert [line["data"] for line in lines if line["tool"] == "threshold"] == ["breast cancer"]


def test_the_corrected_error_is_that_of_nadeau_and_bengio():
    differences = [0.1, 0.3, -0.2, 0.4]
    spread = np.var(differences, ddof=1)
    assert plain_error(differences) == pytest.approx(np.sqrt(spread / 4))
    assert corrected_error(differences) == pytest.approx(np.sqrt(spread * (1 / 4 + 1 / 2)))


def test_rows_measured_for_each_row_fitted_to(monkeypatch):
    seen = []

    def split(*arrays, **settings):
        seen.append([len(part) for part in train_test_split(*arrays, **settings)[:2]])
        return train_test_split(*arrays, **settings)

    monkeypatch.setattr(study, "train_test_split", split)
    measure("iris", "naive Bayes", 0)
    (for_classifier, _), (for_tools, measured) = seen
    assert measured / (for_classifier + for_tools) == pytest.approx(TEST_TO_TRAINING)

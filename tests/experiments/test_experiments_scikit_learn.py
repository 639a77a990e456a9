"""scikit-learn's classifiers beside its own calibrators."""

from experiments._output import read_records
from experiments.benchmark.scikit_learn.__main__ import CLASSIFIERS, main


def test_the_command_writes_a_table(tmp_path, monkeypatch):
    chosen = {"naive Bayes": CLASSIFIERS["naive Bayes"]}
    monkeypatch.setattr("experiments.benchmark.scikit_learn.__main__.CLASSIFIERS", chosen)
    main(["--quick", "--jobs", "1", "--output", str(tmp_path)])
    lines = read_records(tmp_path / "scikit_learn.csv")
    assert {line["data"] for line in lines} == {"iris", "breast cancer"}
    # A threshold is for two classes only.
    assert [line["data"] for line in lines if line["tool"] == "threshold"] == ["breast cancer"]

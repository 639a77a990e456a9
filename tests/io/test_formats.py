"""Text, compressed or not, JSON lines, logged answers, the standard input and truncated scores."""

import gzip
import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st
from scipy.special import softmax

from altnorm import InputError, from_topk
from altnorm.io import formats
from altnorm.io.formats import Layout
from altnorm.io.predictions import Predictions, read_predictions, write_predictions
from altnorm.io.tables import read_table
from tests.commands import QUICK, answered, run, table, write_log
from tests.io.test_predictions import CLASSES as PETS, LABELS, PROBA, check_same, frame
from tests.io.test_tables import rewrite

EXPECTED = Predictions(PROBA, PETS, LABELS)


def write_lines(path, records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


plain_values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(codec="utf-8"), max_size=5),
    st.sampled_from(["2026-11-18", "2026-11-18T10:00:00", "-1", ""]),
)


@given(
    st.lists(st.dictionaries(st.sampled_from("abc"), plain_values), min_size=1, max_size=6),
    st.sampled_from([1, 40, 2**20]),
)
def test_values_of_json_lines_are_kept(tmp_path_factory, records, block):
    """Whatever PyArrow makes of them, and wherever a block ends."""
    path = write_lines(tmp_path_factory.getbasetemp() / "values.jsonl", records)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("altnorm.io.json_tables._BLOCK", block)
        read = read_table(path)
    for name in read.schema.names:
        for record, value in zip(records, read[name].to_pylist(), strict=True):
            expected = record.get(name)
            as_text = isinstance(value, str) and not isinstance(expected, str)
            assert value == (json.dumps(expected) if as_text else expected)
            assert as_text or expected is None or isinstance(value, (type(expected), float))


def test_nested_values_survive(tmp_path):
    lines = [
        {
            "id": 1,
            "doc": {"q": "é", "a": None},
            "b": True,
            "l": [1, [2.5]],
            "big": 2**70,
            "t": "{}",
        },
        {"id": 2, "doc": {"other": {"k": True}}, "b": None, "l": [], "big": None, "t": "[1]"},
        {"id": 3, "doc": None, "b": False, "l": ["x"], "big": -(2**80), "t": None},
    ]
    path = write_lines(tmp_path / "a.jsonl", lines)
    rewrite(path, tmp_path / "b.jsonl")
    written = (tmp_path / "b.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in written] == lines


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_labels_and_groups_within_nested_columns(tmp_path, suffix):
    lines = [
        dict(zip(PETS, row, strict=True)) | {"doc": {"answer": y, "by": {"who": f"w{i}"}}}
        for i, (row, y) in enumerate(zip(PROBA.tolist(), LABELS.tolist(), strict=True))
    ]
    path = tmp_path / f"a{suffix}"
    if suffix == ".jsonl":
        write_lines(path, lines)
    else:
        pd.DataFrame(lines).to_parquet(path)
    read = read_predictions(path, Layout("doc.answer", group="doc.by.who"))
    check_same(read, EXPECTED)
    assert read.groups.tolist() == ["w0", "w1", "w2", "w3"]
    with pytest.raises(InputError, match=r"The column 'doc' has no field 'reply'\. Check"):
        read_predictions(path, Layout("doc.reply"))
    with pytest.raises(InputError, match=r"no column 'dock\.answer'"):
        read_predictions(path, Layout("dock.answer"))


def test_scores_that_are_truncated(tmp_path):
    lines = [
        {"scores": {"a": -0.2, "b": -2.0, "c": -4.0}, "y": "a", "loss": 0.5},
        {"scores": {"c": -0.1, "a": -3.0}, "y": "d", "loss": 0.25},
        {"scores": {"d": -0.3}, "y": "b", "loss": 0.75},
    ]
    read = read_predictions(write_lines(tmp_path / "a.jsonl", lines), Layout("y"))
    assert read.classes.tolist() == ["a", "b", "c", "d"]
    assert read.labels.tolist() == ["a", "d", "b"]
    indices = [[0, 1, 2], [2, 0, -1], [3, -1, -1]]
    values = [[-0.2, -2.0, -4.0], [-0.1, -3.0, 0.0], [-0.3, 0.0, 0.0]]
    np.testing.assert_allclose(read.proba, from_topk(indices, values, 4))
    # Of a few rows with the top of many labels: the model knows the others.
    path = write_lines(tmp_path / "b.jsonl", lines[1:2])
    read = read_predictions(path, classes=["d", "c", "b", "a"])
    assert read.classes.tolist() == ["d", "c", "b", "a"]
    np.testing.assert_allclose(read.proba, from_topk([[1, 3]], [[-0.1, -3.0]], 4))
    with pytest.raises(InputError, match="does not know the class column 'c'"):
        read_predictions(path, classes=["a", "b"])


def test_an_index_means_nothing_where_scores_have_no_order(tmp_path):
    """A service names the most probable first: the first label is another one in each line."""
    lines = [{"scores": {"a": -0.2, "b": -2.0}, "y": 0}, {"scores": {"b": -0.1, "a": -3.0}, "y": 1}]
    path = write_lines(tmp_path / "a.jsonl", lines)
    with pytest.raises(InputError, match=r"column indices are ambiguous.* Use class names"):
        read_predictions(path, Layout("y"))
    lines[1]["scores"] = {"a": -3.0, "b": -0.1}
    path = write_lines(tmp_path / "b.jsonl", lines)
    assert read_predictions(path, Layout("y")).labels.tolist() == ["a", "b"]
    with pytest.raises(InputError, match="column indices are ambiguous"):
        read_predictions(path, Layout("y"), classes=["b", "a"])


def test_truncated_arrays(tmp_path):
    indices, values = np.array([[2, 0], [1, 3]]), np.log([[0.7, 0.2], [0.5, 0.4]])
    expected = from_topk(indices, values, 4)
    names = np.array(["a", "b", "c", "d"])
    np.savez(tmp_path / "a.npz", indices=indices, log_proba=values, classes=names, labels=[2, 1])
    read = read_predictions(tmp_path / "a.npz")
    np.testing.assert_allclose(read.proba, expected)
    assert (read.input, read.labels.tolist()) == ("proba", ["c", "b"])
    np.savez(tmp_path / "b.npz", indices=indices, proba=np.exp(values), n_classes=4)
    np.testing.assert_allclose(read_predictions(tmp_path / "b.npz").proba, expected)
    np.savez(tmp_path / "c.npz", indices=indices, proba=np.exp(values))
    with pytest.raises(InputError, match="must hold `classes` or `n_classes`"):
        read_predictions(tmp_path / "c.npz")


LIKELIHOODS = [[-1.5, -0.5, -3.0], [-0.1, -4.0, -5.0], [-2.0, -2.5, -0.75], [-1.0, -1.5, -6.0]]
TARGETS = [1, 0, 2, 1]


@pytest.mark.parametrize("as_text", [True, False])
@pytest.mark.parametrize("target", [str, int, lambda code: f" {'ABC'[code]}"])
def test_sample_logs(tmp_path, as_text, target):
    lines = [
        answered(i, values, target(code), as_text=as_text)
        for i, (values, code) in enumerate(zip(LIKELIHOODS, TARGETS, strict=True))
    ]
    path = write_lines(tmp_path / "samples_task_2026.jsonl", lines)
    for layout in (Layout(), Layout(format="lm-eval")):
        read = read_predictions(path, layout)
        np.testing.assert_allclose(read.proba, softmax(LIKELIHOODS, axis=1), rtol=1e-12)
        assert read.classes.tolist() == ["A", "B", "C"]
        assert read.codes.tolist() == TARGETS


@pytest.mark.parametrize("task", ["letters", "texts"])
def test_real_sample_logs(task, recwarn):
    """Written by lm-evaluation-harness 0.4.13, with its dummy model, on two tasks of our own."""
    path = Path(__file__).parents[1] / "data" / f"samples_{task}.jsonl"
    read = read_predictions(path)
    message = "1 row of 5 had another number of options, the first in line 5: no decision"
    warned = [str(w.message).startswith(message) for w in recwarn]
    assert warned == ([True] if task == "texts" else [])
    lines = [json.loads(line) for line in path.read_text().splitlines()][:4]
    right = read.proba.argmax(axis=1) == read.codes
    assert right.tolist() == [line["acc"] == 1 for line in lines]  # as the harness itself counts
    assert read.codes.tolist() == [line["doc"]["answer"] for line in lines]
    assert read.classes.tolist() == (["A", "B", "C"] if task == "letters" else ["0", "1", "2"])


@pytest.mark.parametrize("texts", [None, ("A", "A", "B")])
def test_sample_logs_whose_options_have_no_names_of_their_own(tmp_path, texts):
    lines = [
        answered(i, values, str(code), texts=texts or "ABC")
        for i, (values, code) in enumerate(zip(LIKELIHOODS, TARGETS, strict=True))
    ]
    if texts is None:
        lines = [{k: v for k, v in line.items() if k != "arguments"} for line in lines]
    read = read_predictions(write_lines(tmp_path / "a.jsonl", lines))
    assert read.classes.tolist() == ["0", "1", "2"]
    assert read.codes.tolist() == TARGETS


def test_sample_logs_with_several_filters_and_mutual_information(tmp_path):
    lines = [
        answered(0, LIKELIHOODS[0], "1"),
        answered(0, LIKELIHOODS[1], "1", filter="other"),
    ]
    path = write_lines(tmp_path / "a.jsonl", lines)
    with pytest.warns(UserWarning, match="the lines of 'none' are read, those of other are not"):
        assert read_predictions(path).proba.shape == (1, 3)
    question = answered(0, [*LIKELIHOODS[0], -9.0, -9.0, -9.0], "1", texts=("A", "B", "C") * 2)
    for j in range(3, 6):
        question["arguments"][f"gen_args_{j}"]["arg_0"] = ""
    read = read_predictions(write_lines(tmp_path / "b.jsonl", [question]))
    np.testing.assert_allclose(read.proba, softmax(LIKELIHOODS[:1], axis=1))


def odd(**changes):
    return answered(3, [-1.0, -2.0, -3.0], "0") | changes


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (odd(target="7"), r"line 2 \(doc_id 3\) has '7'"),
        (odd(target="[0, 1]"), "index or the text of the right option"),
        (odd(filtered_resps=["yes"]), "multiple-choice"),
        (odd(filtered_resps=[["-1.0", "True"], ["nan", "False"]]), "multiple-choice tasks"),
        (answered(3, [-1.0, -2.0, -3.0], "A", texts=("A",) * 3), "them in the prompt"),
        ({"doc_id": 1}, "Each line of a sample log has"),
        (odd(arguments={"a": [1]}), r"`arguments` must hold a prompt.*line 2 .* \{'a': \[1\]\}"),
        (odd(arguments=[1, 2]), r"`arguments` must hold a prompt.*line 2 .* \[1, 2\]"),
        (odd(arguments="text"), "`arguments` must hold a prompt"),
        (odd(target="1" * 5000), r"`target` must be .* \(5,000 characters\)"),
    ],
)
def test_bad_sample_logs_are_told(tmp_path, line, message):
    path = write_lines(tmp_path / "a.jsonl", [answered(0, LIKELIHOODS[0], "1"), line])
    with pytest.raises(InputError, match=message) as caught:
        read_predictions(path)
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 0.5, "b": 0.5}\n{"a"', "Line 2 is not JSON"),
        ("[1, 2]\n", r"line 1 is \[1, 2\]"),
        ('{"scores": {"a": -1, "b": 2}}\n', "they span -1 to 2"),
        ('{"scores": {"a": 1, "b": 2}}\n', "they span 0 to 2"),
        ('{"scores": {"a": 0.5, "b": 0.5}}\n{"x": 1}\n', "line 2 has null"),
        ('{"scores": {"a": "x"}}\n', "a number for each label"),
        ('{"scores": {"a": 0.9, "b": 0.1}, "a": 1}\n', "'a' is both a class and another key"),
        (
            '{"scores": {"a": 0.5, "b": 0.5}}\n\n{"scores": {"a": 0.9, "b": 0.8}}\n',
            "at most 1; line 3 has sum 1.7",
        ),
        ("[" * 100_000, "Line 1 is not JSON"),
        ("9" * 5000, "Line 1 is not JSON; Exceeds the limit"),
        ("null\n", "line 1 is null"),  # on which PyArrow 26 crashes
        ('{"a": 0.5}\nnull\n', "line 2 is null"),
        *(
            ('{"a": 0.5}\n{"a": ' + x + "}", f"Line 2 is not JSON; {x} is not a JSON value")
            for x in ("NaN", "Infinity", "-Infinity")
        ),
        # Python takes the last value, and the others would be lost.
        ('{"a": 1, "b": 0, "a": 0}\n', "Line 1 is not JSON; the key 'a' is there more than once"),
        ("", "at least one row; it has none"),
    ],
)
def test_bad_lines_are_told(tmp_path, text, message):
    (tmp_path / "a.jsonl").write_text(text)
    with pytest.raises(InputError, match=message):
        read_predictions(tmp_path / "a.jsonl")


def test_format_insists(tmp_path):
    write_predictions(EXPECTED, tmp_path / "a.csv", Layout("y"))
    (tmp_path / "a.csv").rename(tmp_path / "a.dat")
    with pytest.raises(InputError, match="Pass --format"):
        read_predictions(tmp_path / "a.dat", Layout("y"))
    check_same(read_predictions(tmp_path / "a.dat", Layout("y", format="csv")), EXPECTED)
    with pytest.raises(InputError, match="--format must be one of"):
        read_predictions(tmp_path / "a.dat", Layout(format="xls"))
    path = write_lines(tmp_path / "a.jsonl", [answered(0, LIKELIHOODS[0], "1")])
    with pytest.raises(InputError, match="at least 2"):
        read_predictions(path, Layout(format="jsonl"))


def test_standard_input(tmp_path, monkeypatch):
    formats._copy_stdin.cache_clear()
    text = frame(y=LABELS).to_csv(index=False).encode()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(text))))
    with pytest.raises(InputError, match="Pass --format"):
        read_predictions("-")
    for _ in range(2):  # commands read some files twice
        check_same(read_predictions("-", Layout("y", format="csv")), EXPECTED)
    formats._copy_stdin.cache_clear()


def test_logs_from_tuning_to_applying(folder, capsys):
    write_log(folder / "samples.jsonl", table(300, 0), options=2)
    assert run(["tune", "samples.jsonl", "-o", "m", *QUICK]) == 0
    assert run(["check", "samples.jsonl", "--model", "m"]) == 0
    assert run(["adapt", "m", "samples.jsonl"]) == 0
    assert run(["apply", "m", "samples.jsonl", "-o", "out.csv"]) == 0
    after = pd.read_csv("out.csv")
    assert after.columns.tolist() == ["doc_id", "doc", "target", "0", "1", "2", "prediction"]
    # Every tenth question has another number of options: it stays, without a decision.
    is_usual = np.arange(300) % 10 > 0
    np.testing.assert_allclose(after[["0", "1", "2"]].sum(axis=1), is_usual)
    assert after["prediction"].notna().tolist() == is_usual.tolist()
    assert "Adopted" in capsys.readouterr().out

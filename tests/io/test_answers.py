"""Answers of pipelines and services, in the shapes of tests/data: the same four rows in each.

The shapes are those of openai 3.51 (``types/chat``, ``types/responses``, ``CompletionChoice``) and
transformers 5.23 (``pipelines/text_classification.py`` and ``zero_shot_classification.py``).
"""

import json
from pathlib import Path

import numpy as np
import pytest

from altnorm import InputError
from altnorm._base.errors import InputWarning
from altnorm.io.formats import Layout
from altnorm.io.predictions import read_predictions
from tests.io.test_formats import write_lines
from tests.mutations import damage_json

DATA = Path(__file__).parents[1] / "data"
CLASSES = ["A", "B", "C"]
MASS = np.array([[0.7, 0.2, 0.05], [0.1, 0.8, 0.05], [0.3, 0.25, 0.4], [0.02, 0.9, 0.03]])
PROBA = MASS / MASS.sum(axis=1, keepdims=True)
ROUNDING = 2e-6  # log-probabilities in the files have six digits
SHAPES = [
    "hf_texts.json",
    "hf_lines.jsonl",
    "hf_objects.jsonl",
    "hf_zero_shot.jsonl",
    "openai_chat.jsonl",
    "openai_responses.jsonl",
    "vllm_completions.jsonl",
]


def first_line(name):
    return json.loads((DATA / name).read_text().splitlines()[0])


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("order", ["ABC", "CAB"])
def test_every_shape_gives_the_same_rows(name, order):
    read = read_predictions(DATA / name, Layout(classes=list(order)))
    assert read.classes.tolist() == list(order)
    np.testing.assert_allclose(read.proba, PROBA[:, ["ABC".index(c) for c in order]], rtol=ROUNDING)
    if name == "hf_objects.jsonl":  # which have labels beside the scores
        assert read_predictions(DATA / name, Layout("truth")).labels.tolist() == list("ABAB")


def test_labels_by_row_number_stay_with_their_rows_where_an_answer_failed(tmp_path):
    lines = (DATA / "vllm_completions.jsonl").read_text().splitlines()
    only = {"tokens": ["?"], "token_logprobs": [0.0], "top_logprobs": [{"?": 0.0}]}
    failed = json.dumps({"choices": [{"text": "?", "logprobs": only}]})
    answers, labels = tmp_path / "answers.jsonl", tmp_path / "labels.csv"
    answers.write_text("\n".join([lines[0], failed, *lines[1:]]))
    labels.write_text("row,answer\n0,A\n1,C\n2,B\n3,A\n4,B\n")
    with pytest.warns(InputWarning, match="1 row of 5"):
        read = read_predictions(answers, Layout(labels=labels, classes=CLASSES))
    assert read.labels.tolist() == ["A", "B", "A", "B"]
    assert read.ids.tolist() == [0, 2, 3, 4]


def test_a_batch_file_has_failed_lines_and_another_order(recwarn):
    layout = Layout(labels=DATA / "batch_labels.csv", gaps=True)
    read = read_predictions(DATA / "openai_batch.jsonl", layout)
    order = [2, 0, 3, 1]
    np.testing.assert_allclose(read.proba, PROBA[order], rtol=ROUNDING)
    assert read.labels.tolist() == ["A", "A", "B", "B"]
    message = "1 row of 5 failed or named no class, the first in line 3"
    assert [message in str(w.message) for w in recwarn] == [True]


@pytest.mark.parametrize("key", ["reply", None])
def test_classes_are_the_labels_of_the_file_itself(tmp_path, key):
    """Beside an answer, or in an object within it that no server writes."""
    answers = [json.loads(line) for line in (DATA / "openai_chat.jsonl").read_text().splitlines()]
    lines = [
        ({key: answer} if key else answer | {"usage": {"total_tokens": 9}})
        | {"doc": {"answer": truth}}
        for answer, truth in zip(answers, "ABCB", strict=True)
    ]
    path = write_lines(tmp_path / "a.jsonl", lines)
    read = read_predictions(path, Layout("doc.answer"))
    assert (read.classes.tolist(), read.labels.tolist()) == (CLASSES, list("ABCB"))
    np.testing.assert_allclose(read.proba, PROBA, rtol=ROUNDING)
    with pytest.raises(InputError, match=r"which tokens are classes.*--classes A,B,C,D"):
        read_predictions(path)
    with pytest.raises(InputError, match=r"no column 'usage'\. .* are .*'doc'"):
        read_predictions(path, Layout("usage"))


def test_scores_beside_a_prompt_and_a_completion_are_read(tmp_path):
    text = {"prompt": "A or B?", "completion": "A"}
    for name, scores in (("a", {"scores": {"A": 0.7, "B": 0.3}}), ("b", {"A": 0.7, "B": 0.3})):
        path = write_lines(tmp_path / f"{name}.jsonl", [text | scores])
        assert read_predictions(path, Layout()).proba.tolist() == [[0.7, 0.3]]


def chat(*tokens):
    """An answer; each token comes with its alternatives and their probabilities."""
    content = [
        {
            "token": token,
            "logprob": float(np.log(alternatives.get(token, 1e-9))),
            "top_logprobs": [
                {"token": t, "logprob": float(np.log(p))} for t, p in alternatives.items()
            ],
        }
        for token, alternatives in tokens
    ]
    return {"choices": [{"message": {}, "logprobs": {"content": content}}]}


def test_tokens_of_a_class_add_up_and_others_share_what_is_left(tmp_path):
    lines = [
        chat(("yes", {"yes": 0.4, " Yes": 0.2, "NO": 0.3, "maybe": 0.06})),
        chat(("no", {"no": 0.5, "the": 0.4, "a": 0.001})),  # 0.099 left, and no more than 0.001
    ]
    path = write_lines(tmp_path / "a.jsonl", lines)
    read = read_predictions(path, Layout(classes=["yes", "no", "so"]))
    mass = np.array([[0.6, 0.3, 0.04], [0.001, 0.5, 0.001]])
    np.testing.assert_allclose(read.proba, mass / mass.sum(axis=1, keepdims=True))
    # Where case tells classes apart, it counts.
    read = read_predictions(path, Layout(classes=["yes", "Yes", "no", "NO"]))
    np.testing.assert_allclose(read.proba[0], np.array([0.4, 0.2, 0.04, 0.3]) / 0.94)


def test_an_answer_may_come_after_other_tokens(tmp_path):
    late = chat(("It", {"It": 0.8, "A": 0.1}), ("'s", {"'s": 1.0}), ("B", {"B": 0.7, "A": 0.2}))
    lines = [late, late, chat(("A", {"A": 0.6, "B": 0.4})), chat(("?", {"?": 0.9}))]
    path = write_lines(tmp_path / "a.jsonl", lines)
    with pytest.warns(InputWarning) as caught:
        read = read_predictions(path, Layout(classes=["A", "B"]))
    np.testing.assert_allclose(read.proba[:, 0], [2 / 9, 2 / 9, 0.6])
    assert [str(w.message) for w in caught] == [
        "1 row of 4 failed or named no class, the first in line 4: no decision for these.",
        "Not all answers begin with their class. Where it is: 1 at token 1, 2 at token 3.",
    ]


def test_an_article_is_no_answer_where_a_letter_follows(tmp_path):
    letter = ("B", {"B": 0.7, "A": 0.2})
    lines = [
        chat(("It", {"It": 1.0}), (" a", {" a": 0.9}), letter),
        chat((" a", {" a": 0.6, "B": 0.3})),
    ]
    path = write_lines(tmp_path / "a.jsonl", lines)
    with pytest.warns(InputWarning, match="1 at token 1, 1 at token 3"):
        read = read_predictions(path, Layout(classes=["A", "B"]))
    np.testing.assert_allclose(read.proba[:, 0], [2 / 9, 2 / 3])


def without_logprobs(name):
    line = first_line(name)
    line["choices"][0]["logprobs"] = None
    return line


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (without_logprobs("openai_chat.jsonl"), r"line 1 has none\. .*`logprobs: true, top_logpro"),
        (without_logprobs("vllm_completions.jsonl"), "the log-probabilities of its tokens"),
        (first_line("openai_responses.jsonl") | {"output": []}, "output_text.logprobs"),
        ({"choices": []}, "the log-probabilities of its tokens"),
        ({"choices": [{"logprobs": {"content": [{"token": "A", "logprob": "x"}]}}]}, "1 has none"),
        ({"label": "joy", "score": 0.9}, "has only the best.*top_k=None"),
        (
            {"id": 3, "text": "a", "label": "joy", "score": 0.9},
            "top_k=None.* of one of two classes",
        ),
        ({"results": {"arc": {"acc": 0.5}}, "configs": {}}, "only the scores of .*--log_samples"),
        ({"scores": {"joy": 0.9, "fear": 0.1}}, r"must be those of .*'A', 'B', 'C'; .* 'joy', 'f"),
        ([{"label": "joy", "score": 0.9}, {"label": "joy", "score": 0.8}], "top_k=None"),
        ([{"label": "joy", "score": 0.9}], "has only the best.*top_k=None"),
        ({"text": "a", "scores": [{"label": "joy", "score": 0.9}]}, "has only the best"),
        ([{"generated_text": "A"}], "needed; the file has only generated text"),
        ({"role": "assistant", "content": [{"type": "text", "text": "A"}]}, "only generated text"),
        ({"role": "user", "content": "A or B?"}, "only generated text"),
        ({"messages": [{"role": "user", "content": "A or B?"}]}, "only generated text"),
        ({"prompt": "A or B?", "completion": "A", "truth": "A"}, "only generated text"),
        (
            {"custom_id": "row-1", "method": "POST", "url": "/v1/chat/completions", "body": {}},
            r"file has the requests\..*logprobs: true.*output file of the batch",
        ),
        (
            {"custom_id": "row-1", "response": None, "error": {"code": "rate_limit"}},
            r"must have been answered; all 1 failed\. .*say why",
        ),
        (
            chat(("A", {"A": 0.7})),
            r"only the token\. Ask .*`logprobs: true, top_logprobs",
        ),
        (chat(("x", {"x": 1.0})), r"class \(A, B, C\) .* none has.*single token"),
    ],
)
def test_what_is_recognised_and_lacks_something_gets_the_recipe(tmp_path, line, message):
    path = write_lines(tmp_path / "a.jsonl", [line])
    with pytest.raises(InputError, match=message):
        read_predictions(path, Layout(classes=CLASSES))


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ("id,label\n5,A\n6,B\n", "ids .* must be those of the predictions; it has '5', .* `row`"),
        ("row,label\n0,A\n0,B\n", "each id one label; '0' has 'A' and 'B'"),
        ("x,y,z\n0,A,1\n", "a column of ids and one of labels; its columns are x, y, z"),
        ("row,label\n0,A\n1,B\n2,D\n3,A\n", "'D'"),
    ],
)
def test_bad_files_of_labels_are_told(tmp_path, labels, message):
    (tmp_path / "labels.csv").write_text(labels)
    layout = Layout(labels=tmp_path / "labels.csv", classes=CLASSES)
    with pytest.raises(InputError, match=message):
        read_predictions(DATA / "openai_chat.jsonl", layout)


@pytest.mark.filterwarnings("ignore::altnorm._base.errors.InputWarning")
@pytest.mark.parametrize("name", [*SHAPES[1:], "openai_batch.jsonl"])
def test_whatever_stands_somewhere_is_read_or_refused(tmp_path, name):
    content, rng, n_refused = (DATA / name).read_bytes(), np.random.default_rng(0), 0
    for _ in range(150):
        (tmp_path / "a.jsonl").write_bytes(damage_json(content, rng))
        try:
            proba = read_predictions(tmp_path / "a.jsonl", Layout(classes=CLASSES)).proba
        except InputError:
            n_refused += 1
        else:
            np.testing.assert_allclose(proba.sum(axis=1), 1)
    assert n_refused > 3

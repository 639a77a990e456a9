"""The study on ultra-fine entity typing: its loader, its scores, its figure, and that it runs."""

import json

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from experiments._multilabel.methods import METHODS
from experiments.ufet import __main__ as ufet, data, evaluation
from tests.pages import check_page, import_training, tiny_encoder

TYPES = [*(f"type{i}" for i in range(130)), "baker", "night_watch"]
ROWS = [
    ("Yesterday", "the old baker", "closed his shop .", ["type0", "type20", "baker"]),
    ("We saw", "it", "from the harbour .", ["type0", "type6"]),
    ("", "Nobody", "answered .", []),
]


def write_mentions(folder, subfolders=False):
    crowd, ontology = (folder / name if subfolders else folder for name in ("crowd", "ontology"))
    for path in (crowd, ontology):
        path.mkdir(parents=True, exist_ok=True)
    (ontology / "types.txt").write_text("\n".join(TYPES) + "\n", encoding="utf-8")
    names = ("left_context_token", "mention_span", "right_context_token", "y_str")
    for split in ("train", "dev", "test"):
        lines = [
            json.dumps(dict(zip(names, (left.split(), mention, right.split(), y), strict=True)))
            for left, mention, right, y in ROWS
        ]
        (crowd / f"{split}.json").write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_predictions(path, seed, n=50):
    rng = np.random.default_rng(seed)
    types = np.array([0, 1, 9, 12, 130, 200, 5000], np.uint16)
    arrays = {"types": types, "train_frequencies": np.full(types.size, 0.3)}
    for split in ("val", "test"):
        labels = (rng.uniform(size=(n, types.size)) < 0.3).astype(np.uint8)
        logits = 3.0 * labels - 2.0 + rng.normal(size=labels.shape)
        arrays |= {f"{split}_labels": labels, f"{split}_logits": logits.round(1)}
    np.savez_compressed(path, **arrays)


@pytest.mark.parametrize("subfolders", [False, True])
def test_mentions_and_types(tmp_path, subfolders):
    write_mentions(tmp_path, subfolders)
    assert data.read_types(tmp_path) == TYPES
    rows = data.read_split(tmp_path, "dev")
    assert rows[0] == ("Yesterday", "the old baker", "closed his shop .", tuple(ROWS[0][3]))
    columns = {name: i for i, name in enumerate(TYPES)}
    labels = data.label_matrix(rows, columns)
    assert labels.sum(axis=1).tolist() == [3, 2, 0]
    assert labels[0, [0, 20, 130]].all()
    assert data.label_matrix(rows, {"type0": 0}).tolist() == [[1], [1], [0]]


def test_scores_by_level():
    labels = np.array([[1, 0, 1], [1, 1, 0]])
    proba = np.array([[0.9, 0.2, 0.3], [0.2, 0.4, 0.1]])
    scores = evaluation.type_scores(labels, proba, np.array([0, 1, 2]))
    # Predicted: the first type, and (as the most probable) the second.
    assert scores.macro == pytest.approx(100 * 2 * 1.0 * 0.5 / 1.5)
    assert scores.micro == pytest.approx(100 * 2 * 2 / (2 + 4))
    assert scores.coarse == pytest.approx(100 * 2 * 1.0 * 0.5 / 1.5)
    assert scores.fine == pytest.approx(100)
    assert scores.ultra_fine == 0


def test_quick_run_writes_everything_it_mentions(tmp_path):
    saved, output = tmp_path / "seed0.npz", tmp_path / "results"
    write_predictions(saved, 0)
    ufet.main(["--quick", "--predictions", str(saved), "--output", str(output)])
    n_lines = {"results": len(METHODS), "tuning": 4 * 2 * 3, "shifted": 2, "doubt": 6, "authors": 2}
    assert {name: len(rows) for name, rows in check_page(output).items()} == n_lines


@pytest.mark.heavy
def test_the_mention_is_marked_and_the_context_cut(tmp_path):
    train = import_training("ufet")
    long = "far " * 200
    tiny_encoder(tmp_path / "encoder", [" ".join(row[:3]) for row in ROWS])
    tokenizer = train.load_tokenizer(tmp_path / "encoder")
    example = train.encode(tokenizer, data.Mention(long, "the old baker", long, ()))
    words = [tokenizer.id_to_token(i) for i in example.ids]
    inside = [w for w, s in zip(words, example.spans, strict=True) if s]
    assert inside == ["[unused1]", "the", "old", "baker", "[unused2]"]
    assert words[-5:] == ["[SEP]", "the", "old", "baker", "[SEP]"]
    assert len(words) == 1 + 2 * train.MAX_SIDE + 5 + 5


@pytest.mark.heavy
def test_training_writes_what_the_study_reads(tmp_path, monkeypatch):
    train = import_training("ufet")
    write_mentions(tmp_path)
    tiny_encoder(tmp_path / "encoder", [" ".join(row[:3]) for row in ROWS])
    paths = ["--data", ".", "--encoder", "encoder", "--output", "out"]
    monkeypatch.chdir(tmp_path)
    train.main([*paths, "--seeds", "1", "--quick", "--device", "cpu"])
    found = evaluation.read_predictions(tmp_path / "out" / "predictions.npz")
    assert found.val_proba.shape == found.test_labels.shape
    np.testing.assert_array_equal(found.val_labels.sum(axis=1), [3, 2, 0])
    assert set(found.levels) >= {0, 1, 2}

"""The study on relations in dialogues: its loader, its scores, its grid, and that it runs."""

import json

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from experiments._multilabel import authors, grid
from experiments._multilabel.methods import METHODS
from experiments.dialogre import __main__ as dialogre, data, evaluation
from tests.pages import check_page, import_training, tiny_encoder

DIALOGUE = [
    "Speaker 1: Have you met Ada?",
    "Speaker 2: She is my sister, and she moved to Oslo.",
    "Speaker 10: Oslo is cold.",
    "Speaker 1: Bring a coat.",
]
ENTRIES = [
    {"x": "Speaker 2", "y": "Ada", "rid": [16, 30], "t": ["sister", ""]},
    {"x": "Ada", "y": "Oslo", "rid": [18], "t": ["moved to"]},
    {"x": "Speaker 10", "y": "Ada", "rid": [37], "t": [""]},
    {"x": "Speaker 1", "y": "Bergen", "rid": [18], "t": ["coat"]},
]


def write_dialogues(folder, copies=1):
    for split in ("train", "dev", "test"):
        text = json.dumps([[DIALOGUE, ENTRIES]] * copies)
        (folder / f"{split}.json").write_text(text, encoding="utf-8")


def write_predictions(path, seed, n=60):
    """A classifier that is right more often than not."""
    rng = np.random.default_rng(seed)
    arrays = {"train_frequencies": np.full(36, 1 / 36)}
    for split in ("val", "test"):
        labels = np.eye(36, dtype=np.uint8)[rng.integers(5, size=n)]
        logits = 4.0 * labels - 3.5 + rng.normal(size=(n, 36))
        arrays |= {
            f"{split}_logits": logits.round(1).astype(np.float16),
            f"{split}_labels": labels,
        }
    np.savez_compressed(path, **arrays)


def test_pairs_and_labels(tmp_path):
    write_dialogues(tmp_path)
    pairs = data.read_split(tmp_path, "dev")
    assert [pair.relations for pair in pairs] == [(15, 29), (17,), (), (17,)]
    assert data.label_matrix(pairs).sum(axis=1).tolist() == [2, 1, 0, 1]


def test_macro_f1_counts_relations_that_never_occur():
    labels = np.zeros((4, 36), np.int8)
    labels[:, 0] = 1
    micro, macro = evaluation.relation_f1(labels, 0.9 * labels, 0.5)
    assert (micro, macro) == (1, pytest.approx(1 / 36))


def test_a_sampled_reference_of_all_sure_pairs_is_the_whole_one(monkeypatch):
    rng = np.random.default_rng(1)
    proba = rng.beta(0.3, 0.6, (30, 5)).round(2).clip(0.01, 0.99)
    labels = (rng.random((30, 5)) < proba).astype(int)
    monkeypatch.setattr(authors, "N_PAIRS", proba.size)

    def score(after):
        return evaluation.tuned_f1(labels, after)

    sampled = authors.fit_sampled(proba, 0.3, score, seed=0)
    best = grid.best_point(
        [p for t in grid.THRESHOLDS for p in grid.scan(proba, 0.3, score, thresholds=(t,))]
    )
    expected = grid.fit_point(best, proba, 0.3).transform(proba)
    np.testing.assert_allclose(sampled.method.transform(proba), expected, rtol=1e-9)


@pytest.mark.parametrize("threshold", [0.25, 0.75])
def test_grid_is_the_normalizer(threshold):
    rng = np.random.default_rng(1)
    proba = rng.beta(0.3, 0.6, (40, 5)).round(2).clip(0.01, 0.99)
    adjusted = []
    points = grid.scan(
        proba,
        0.2,
        lambda after: adjusted.append(after) or 0.0,
        alphas=(0.5, 3.0),
        depths=(1, 3),
        thresholds=(threshold,),
    )
    assert [(p.alpha, p.depth) for p in points] == [(0.5, 1), (0.5, 3), (3.0, 1), (3.0, 3)]
    for point, after in zip(points, adjusted, strict=True):
        expected = grid.fit_point(point, proba, 0.2).transform(proba)
        np.testing.assert_allclose(after, expected, rtol=1e-9, atol=1e-12)


def test_quick_run_writes_everything_it_mentions(tmp_path):
    saved, output = tmp_path / "seed0.npz", tmp_path / "results"
    write_predictions(saved, 0)
    write_predictions(tmp_path / "other.npz", 1)
    other = str(tmp_path / "other.npz")
    arguments = ["--predictions", str(saved), "--output", str(output), "--second-look", other]
    dialogre.main(["--quick", "--jobs", "1", *arguments])
    tables = check_page(output)
    for name in ("results", "second_look"):
        assert [row["method"] for row in tables[name]] == list(METHODS)
        assert 0 < float(tables[name][0]["micro"]) <= 100
    assert len(tables["doubt"]) == 2 * 3
    assert len(tables["authors"]) == 1 + 2 * 5 * 3  # the sample, then settings at each tau


@pytest.mark.heavy
def test_speakers_are_marked_and_arguments_are_spans(tmp_path):
    train = import_training("dialogre")
    tiny_encoder(tmp_path / "encoder", DIALOGUE)
    write_dialogues(tmp_path)
    pairs = data.read_split(tmp_path, "train")
    tokenizer = train.load_tokenizer(tmp_path / "encoder")
    example = train.encode(tokenizer, pairs[2])
    words = [tokenizer.id_to_token(i) for i in example.ids]
    assert words[0] == "[CLS]"
    assert words[-5:] == ["[SEP]", "[unused1]", "[SEP]", "ada", "[SEP]"]
    assert words.count("[unused1]") == 2  # where Speaker 10 speaks, and at the end
    assert words.count("speaker") == 3  # Speakers 1, 2 and 1
    assert [w for w, s in zip(words, example.spans, strict=True) if s] == ["[unused1]", "ada"]


@pytest.mark.heavy
def test_training_writes_what_the_study_reads(tmp_path, monkeypatch):
    train = import_training("dialogre")
    tiny_encoder(tmp_path / "encoder", DIALOGUE)
    write_dialogues(tmp_path, copies=3)
    paths = ["--data", ".", "--encoder", "encoder", "--output", "output"]
    monkeypatch.chdir(tmp_path)
    train.main([*paths, "--seeds", "2", "--quick", "--device", "cpu"])
    joined = tmp_path / "output" / "predictions.npz"
    found = evaluation.read_predictions(joined, "dialogre_seed1")
    assert found.val.proba.shape == found.test.proba.shape == (12, 36)
    np.testing.assert_array_equal(found.val.labels[:4].sum(axis=1), [2, 1, 0, 1])

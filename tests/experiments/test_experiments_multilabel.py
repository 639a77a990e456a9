"""Studies with several labels per row: rules, scores and files that they share; their runs."""

import json

import numpy as np
import pytest
from hypothesis import given, strategies as st
from sklearn.metrics import f1_score

pytest.importorskip("matplotlib")

from experiments import dialogre, ufet
from experiments._multilabel import authors, grid
from experiments._multilabel.files import join_seeds, read_seed, seed_names, write_arrays
from experiments._multilabel.methods import METHODS
from experiments._multilabel.rules import (
    above,
    above_or_best,
    above_or_best_over,
    tune_second_threshold,
)
from experiments._multilabel.scores import loose_macro_f1, loose_micro_f1
from experiments.dialogre import __main__ as dialogre_study
from experiments.ufet import __main__ as ufet_study
from tests.pages import check_page, import_training, tiny_encoder

TIGHT = {"rel": 1e-12, "abs": 1e-12}
PROBA = np.array([[0.7, 0.6, 0.1], [0.4, 0.2, 0.4], [0.1, 0.2, 0.1], [0.5, 0.5, 0.0]])


def naive_loose_macro(y, p):
    shares = [
        [(t & d).sum() / over.sum() for t, d, over in zip(y, p, by, strict=True) if over.any()]
        for by in (p, y)  # precision, recall
    ]
    a, b = (np.mean(part) if part else 0.0 for part in shares)
    return 2 * a * b / (a + b) if a + b else 0.0


@given(seed=st.integers(0, 10_000), density=st.sampled_from([0.0, 0.05, 0.3, 0.9]))
def test_loose_f1_equals_a_naive_loop_and_scikit_learn(seed, density):
    rng = np.random.default_rng(seed)
    y, p = (rng.random((2, rng.integers(1, 12), rng.integers(2, 7))) < density).astype(np.int8)
    assert loose_macro_f1(y, p) == pytest.approx(naive_loose_macro(y, p), **TIGHT)
    micro = f1_score(y, p, average="micro", zero_division=0.0)
    assert loose_micro_f1(y, p) == pytest.approx(micro, **TIGHT)


@pytest.mark.parametrize(
    ("decided", "expected"),
    [
        (above(PROBA), ["110", "000", "000", "000"]),
        (above_or_best(PROBA), ["110", "100", "010", "100"]),
        (above_or_best_over(PROBA, 0.2), ["110", "100", "000", "100"]),
        (above_or_best_over(PROBA, 0.5), ["110", "000", "000", "000"]),
        (above_or_best_over(PROBA, 0.0), ["110", "100", "010", "100"]),
    ],
)
def test_rules_by_hand(decided, expected):
    assert ["".join(map(str, row)) for row in decided] == expected


@given(
    seed=st.integers(0, 10_000),
    dtype=st.sampled_from([np.float32, np.float64]),
    ties=st.booleans(),
    scale=st.sampled_from([0.5, 0.9]),
)
def test_second_threshold_is_the_best_of_all(seed, dtype, ties, scale):
    rng = np.random.default_rng(seed)
    proba = (rng.random((rng.integers(1, 15), 3)) * scale).astype(dtype)
    if ties:
        proba = np.round(proba, 1)
    y = (rng.random(proba.shape) < proba).astype(int)
    tuned = tune_second_threshold(proba, y)
    # Every threshold acts like one of the probabilities, or like 0 or 0.5.
    candidates = [0.0, 0.5, *proba.ravel().astype(float)]
    best = max(loose_micro_f1(y, above_or_best_over(proba, c)) for c in candidates)
    assert loose_micro_f1(y, above_or_best_over(proba, tuned)) == pytest.approx(best, **TIGHT)
    assert 0 <= tuned <= 0.5


# The predictions of several seeds in one file.


def draw_arrays(seed):
    """Logits of the seed's own, and labels that all seeds share."""
    rng = np.random.default_rng(seed)
    logits = np.round(rng.normal(-4, 3, (200, 7)), 1).astype(np.float16)
    logits[0, :2] = 0.0, -np.inf
    return {
        "val_logits": logits,
        "val_labels": np.random.default_rng(0).integers(2, size=(200, 7), dtype=np.uint8),
        "train_frequencies": np.linspace(0, 1, 7),
        "meta": np.array([f"seed {seed}"]),
    }


def assert_same(arrays, expected):
    assert arrays.keys() == expected.keys()
    for name, array in expected.items():
        assert arrays[name].dtype == array.dtype
        np.testing.assert_array_equal(arrays[name], array)


def test_every_seed_comes_back_to_the_bit(tmp_path):
    joined, seeds = tmp_path / "predictions.npz", []
    for seed in range(3):
        seeds.append(tmp_path / f"study_seed{seed}.npz")
        write_arrays(seeds[-1], draw_arrays(seed))
    join_seeds(seeds[::-1], joined)
    assert seed_names(joined) == ["study_seed0", "study_seed1", "study_seed2"]
    assert seed_names(seeds[1]) == ["study_seed1"]
    write_arrays(tmp_path / "again.npz", draw_arrays(0))
    assert (tmp_path / "again.npz").read_bytes() == seeds[0].read_bytes()
    for seed, path in enumerate(seeds):
        assert_same(read_seed(path), draw_arrays(seed))
        assert_same(read_seed(joined, path.stem), draw_arrays(seed))


# Relations in dialogues.

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


def test_pairs_and_labels(tmp_path):
    write_dialogues(tmp_path)
    pairs = dialogre.data.read_split(tmp_path, "dev")
    assert [pair.relations for pair in pairs] == [(15, 29), (17,), (), (17,)]
    assert dialogre.data.label_matrix(pairs).sum(axis=1).tolist() == [2, 1, 0, 1]


def test_a_sampled_reference_of_all_sure_pairs_is_the_whole_one(monkeypatch):
    rng = np.random.default_rng(1)
    proba = rng.beta(0.3, 0.6, (30, 5)).round(2).clip(0.01, 0.99)
    labels = (rng.random((30, 5)) < proba).astype(int)
    monkeypatch.setattr(authors, "N_PAIRS", proba.size)

    def score(after):
        return dialogre.evaluation.tuned_f1(labels, after)

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


@pytest.mark.heavy
def test_speakers_are_marked_and_arguments_are_spans(tmp_path):
    train = import_training("dialogre")
    tiny_encoder(tmp_path / "encoder", DIALOGUE)
    write_dialogues(tmp_path)
    pairs = dialogre.data.read_split(tmp_path, "train")
    tokenizer = train.load_tokenizer(tmp_path / "encoder")
    example = train.encode(tokenizer, pairs[2])
    words = [tokenizer.id_to_token(i) for i in example.ids]
    assert words[0] == "[CLS]"
    assert words[-5:] == ["[SEP]", "[unused1]", "[SEP]", "ada", "[SEP]"]
    assert words.count("[unused1]") == 2  # where Speaker 10 speaks, and at the end
    assert words.count("speaker") == 3  # Speakers 1, 2 and 1
    assert [w for w, s in zip(words, example.spans, strict=True) if s] == ["[unused1]", "ada"]


@pytest.mark.heavy
def test_training_on_dialogues_writes_what_the_study_reads(tmp_path, monkeypatch):
    train = import_training("dialogre")
    tiny_encoder(tmp_path / "encoder", DIALOGUE)
    write_dialogues(tmp_path, copies=3)
    paths = ["--data", ".", "--encoder", "encoder", "--output", "output"]
    monkeypatch.chdir(tmp_path)
    train.main([*paths, "--seeds", "2", "--quick", "--device", "cpu"])
    joined = tmp_path / "output" / "predictions.npz"
    predictions = dialogre.evaluation.read_predictions(joined, "dialogre_seed1")
    assert predictions.val.proba.shape == predictions.test.proba.shape == (12, 36)
    np.testing.assert_array_equal(predictions.val.labels[:4].sum(axis=1), [2, 1, 0, 1])


# Ultra-fine types of entities.

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


@pytest.mark.parametrize("subfolders", [False, True])
def test_mentions_and_types(tmp_path, subfolders):
    write_mentions(tmp_path, subfolders)
    assert ufet.data.read_types(tmp_path) == TYPES
    rows = ufet.data.read_split(tmp_path, "dev")
    assert rows[0] == ("Yesterday", "the old baker", "closed his shop .", tuple(ROWS[0][3]))
    columns = {name: i for i, name in enumerate(TYPES)}
    labels = ufet.data.label_matrix(rows, columns)
    assert labels.sum(axis=1).tolist() == [3, 2, 0]
    assert labels[0, [0, 20, 130]].all()
    assert ufet.data.label_matrix(rows, {"type0": 0}).tolist() == [[1], [1], [0]]


def test_scores_by_level():
    labels = np.array([[1, 0, 1], [1, 1, 0]])
    proba = np.array([[0.9, 0.2, 0.3], [0.2, 0.4, 0.1]])
    scores = ufet.evaluation.type_scores(labels, proba, np.array([0, 1, 2]))
    # Predicted: the first type, and (as the most probable) the second.
    assert scores.macro == pytest.approx(100 * 2 * 1.0 * 0.5 / 1.5)
    assert scores.micro == pytest.approx(100 * 2 * 2 / (2 + 4))
    assert scores.coarse == pytest.approx(100 * 2 * 1.0 * 0.5 / 1.5)
    assert scores.fine == pytest.approx(100)
    assert scores.ultra_fine == 0


@pytest.mark.heavy
def test_the_mention_is_marked_and_the_context_cut(tmp_path):
    train = import_training("ufet")
    long = "far " * 200
    tiny_encoder(tmp_path / "encoder", [" ".join(row[:3]) for row in ROWS])
    tokenizer = train.load_tokenizer(tmp_path / "encoder")
    example = train.encode(tokenizer, ufet.data.Mention(long, "the old baker", long, ()))
    words = [tokenizer.id_to_token(i) for i in example.ids]
    inside = [w for w, s in zip(words, example.spans, strict=True) if s]
    assert inside == ["[unused1]", "the", "old", "baker", "[unused2]"]
    assert words[-5:] == ["[SEP]", "the", "old", "baker", "[SEP]"]
    assert len(words) == 1 + 2 * train.MAX_SIDE + 5 + 5


@pytest.mark.heavy
def test_training_on_types_writes_what_the_study_reads(tmp_path, monkeypatch):
    train = import_training("ufet")
    write_mentions(tmp_path)
    tiny_encoder(tmp_path / "encoder", [" ".join(row[:3]) for row in ROWS])
    paths = ["--data", ".", "--encoder", "encoder", "--output", "out"]
    monkeypatch.chdir(tmp_path)
    train.main([*paths, "--seeds", "1", "--quick", "--device", "cpu"])
    predictions = ufet.evaluation.read_predictions(tmp_path / "out" / "predictions.npz")
    assert predictions.val_proba.shape == predictions.test_labels.shape
    np.testing.assert_array_equal(predictions.val_labels.sum(axis=1), [3, 2, 0])
    assert set(predictions.levels) >= {0, 1, 2}


# The runs.


def write_predictions(path, seed, m, **arrays):
    """A classifier of several labels that is right more often than not."""
    rng = np.random.default_rng(seed)
    for split in ("val", "test"):
        labels = (rng.random((60, m)) < 0.2).astype(np.uint8)
        logits = 3.5 * labels - 3 + rng.normal(size=labels.shape)
        arrays |= {f"{split}_labels": labels, f"{split}_logits": logits.round(1)}
    np.savez_compressed(path, train_frequencies=np.full(m, 0.2), **arrays)


def test_a_quick_run_on_dialogues_writes_everything_it_mentions(tmp_path):
    first, second = tmp_path / "seed0.npz", tmp_path / "other.npz"
    for seed, path in enumerate((first, second)):
        write_predictions(path, seed, 36)
    paths = {"--predictions": first, "--output": tmp_path, "--second-look": second}
    arguments = [str(part) for pair in paths.items() for part in pair]
    dialogre_study.main(["--quick", "--jobs", "1", *arguments])
    tables = check_page(tmp_path)
    for name in ("results", "second_look"):
        assert [row["method"] for row in tables[name]] == list(METHODS)
        assert 0 < float(tables[name][0]["micro"]) <= 100
    assert len(tables["doubt"]) == 2 * 3
    assert len(tables["authors"]) == 1 + 2 * 5 * 3  # the sample, then settings at each tau


def test_a_quick_run_on_types_writes_everything_it_mentions(tmp_path):
    saved, output = tmp_path / "seed0.npz", tmp_path / "results"
    types = np.array([0, 1, 9, 12, 130, 200, 5000], np.uint16)
    write_predictions(saved, 0, types.size, types=types)
    ufet_study.main(["--quick", "--predictions", str(saved), "--output", str(output)])
    n_lines = {"results": len(METHODS), "tuning": 4 * 2 * 3, "shifted": 2, "doubt": 6, "authors": 2}
    assert {name: len(rows) for name, rows in check_page(output).items()} == n_lines

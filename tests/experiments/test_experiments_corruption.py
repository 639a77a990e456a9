"""The corruption study: its data, its corruptions, and that it runs."""

import gzip
import json

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("matplotlib")

import altnorm
from experiments._output import read_records
from experiments.blur.corruption import __main__ as corruption, data, figures, study, tables
from tests.problems import planted

WORDS = {
    "card": ["card", "lost", "stolen", "plastic", "replace", "freeze"],
    "rate": ["rate", "exchange", "currency", "euro", "dollar", "fee"],
    "transfer": ["transfer", "money", "account", "send", "payment", "arrive"],
    "app": ["app", "phone", "login", "password", "crash", "update"],
}


def tiny_pairs(n, seed):
    """Short texts that mix words of their class with words of all classes."""
    rng = np.random.default_rng(seed)
    every = sorted({word for words in WORDS.values() for word in words})
    return [
        (" ".join([*rng.choice(words, 2), *rng.choice(every, 2)]), label)
        for label, words in WORDS.items()
        for _ in range(n)
    ]


@pytest.fixture
def folder(tmp_path):
    """Banking77 as plain files, CLINC150 as a compressed one."""
    for name in ("banking77", "clinc150"):
        (tmp_path / "data" / name).mkdir(parents=True)
    for part, n in (("train", 20), ("test", 30)):
        frame = pd.DataFrame(tiny_pairs(n, seed=n), columns=["text", "category"])
        frame.to_csv(tmp_path / "data" / "banking77" / f"{part}.csv", index=False)
    parts = {part: tiny_pairs(n, seed=n) for part, n in (("train", 9), ("val", 2), ("test", 3))}
    packed = gzip.compress(json.dumps(parts).encode())
    (tmp_path / "data" / "clinc150" / "data_full.json.gz").write_bytes(packed)
    return tmp_path / "data"


def test_a_quick_run_gives_all_tables_and_figures(folder, tmp_path):
    corruption.main(["--data", str(folder), "--quick", "--output", str(tmp_path), "--jobs", "1"])
    records = read_records(tmp_path / "corruption.csv")
    assert {row["method"] for row in records} == set(study.METHODS)
    texts = tables.make_tables(records, corruption.QUICK)
    assert all("nan" not in table for table in texts.values())
    for kind in corruption.QUICK.rates:
        figures.draw_gains(records, corruption.QUICK, kind, tmp_path)
        assert (tmp_path / f"{figures.figure_name(kind)}.png").stat().st_size > 1000


def test_banking_test_data_are_halved_class_by_class_and_clinc_keeps_its_parts(folder):
    corpus = data.read_corpus(folder, "banking77")
    assert len(corpus.train.texts) == 80
    for part in (corpus.val, corpus.test):
        np.testing.assert_array_equal(np.bincount(part.y), [15] * 4)
    corpus = data.read_corpus(folder, "clinc150")
    assert [len(part.y) for part in corpus[1:]] == [36, 8, 12]
    with pytest.raises(SystemExit, match=r"neither data_imbalanced\.json nor .*Download http"):
        data.read_corpus(folder, "clinc150 imbalanced")


@pytest.mark.parametrize("kind", data.KINDS)
def test_rate_zero_changes_nothing_and_seeds_repeat(kind):
    texts = ["how do I send money abroad", "my card is lost"]
    assert data.corrupt(texts, kind, 0.0, np.random.default_rng(0)) == texts
    first, again = (data.corrupt(texts, kind, 0.5, np.random.default_rng(3)) for _ in range(2))
    assert first == again != texts


def test_renewed_reference_needs_no_labels():
    proba, y = planted(600)
    options = {"alphas": (0.5, 1.0), "depths": (1,), "prior": None}
    search = altnorm.AlternatingNormalizerCV(**options).fit(proba, y)
    assert search.verdict_.adopted
    same = study.renew(search, proba)
    np.testing.assert_allclose(same.transform(proba), search.transform(proba), rtol=1e-12)
    refused = altnorm.AlternatingNormalizerCV(**options, significance=1e-200).fit(proba, y)
    np.testing.assert_array_equal(study.renew(refused, proba).transform(proba), proba)

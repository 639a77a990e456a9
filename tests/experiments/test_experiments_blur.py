"""The blur study: what it counts, and that it runs."""

import shutil

import numpy as np
import pytest
from scipy.special import softmax

pytest.importorskip("matplotlib")

import altnorm
from experiments.blur import __main__ as blur, grid as whole_grid, published as as_published, study
from tests.pages import check_page

N_CLASSES = 6


def tiny_logits(noise, seed=0, per_class=15):
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(N_CLASSES), per_class)
    logits = 3 * np.eye(N_CLASSES)[labels] + noise * rng.normal(size=(labels.size, N_CLASSES))
    return logits.astype(np.float16), labels


@pytest.fixture
def folder(tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    for sigma in study.SIGMAS:
        logits, labels = tiny_logits(1 + sigma / 8)
        np.savez(data / f"imagenet5k_lite0_blur{sigma:02d}.npz", logits=logits, labels=labels)
    return data


def test_quick_run_writes_everything_it_mentions(folder, tmp_path):
    blur.main(["--data", str(folder), "--quick", "--output", str(tmp_path), "--jobs", "1"])
    for name in ("published", "corruption"):  # other commands write them
        shutil.copy(blur.PAGE.with_name(f"{name}.csv"), tmp_path)
    tables = check_page(tmp_path)
    for table in ("gains", "references"):
        assert {int(row["sigma"]) for row in tables[table]} == set(study.SIGMAS)


def test_missing_data_is_told(folder, tmp_path):
    (folder / "imagenet5k_lite0_blur08.npz").unlink()
    with pytest.raises(SystemExit, match=r"blur08\.npz"):
        blur.main(["--data", str(folder), "--quick", "--output", str(tmp_path)])


def test_deals_are_disjoint_and_balanced():
    labels = np.random.default_rng(0).permutation(np.repeat(np.arange(4), 5))
    first, second = study.deal_pairs(labels, np.random.default_rng(1))
    assert not set(first) & set(second)
    np.testing.assert_array_equal(np.bincount(labels[first]), [2, 2, 2, 2])
    np.testing.assert_array_equal(np.bincount(labels[second]), [2, 2, 2, 2])


def test_gains_are_counted_on_hard_rows_and_on_all():
    before = np.array([True, False, False, True])
    after = np.array([True, True, False, True])
    hard = np.array([False, True, True, False])
    record = study.gain_record(before, after, hard)
    assert (record["base_hard"], record["gain_hard"]) == (0, 50)
    assert (record["base"], record["gain"]) == (50, 25)
    assert record["se_hard"] == pytest.approx(100 * 0.5 / np.sqrt(2))
    assert record["n_hard"] == 2


def test_the_bound_is_no_worse_than_any_setting_of_its_grid():
    logits, labels = tiny_logits(3.0)
    proba = np.exp(logits.astype(float))
    proba /= proba.sum(axis=1, keepdims=True)
    grid = study.Grid((0.5, 2.0), (1.0,), 3, {})
    step, alpha, depth = study.best_setting(proba, labels, proba[::2], grid)
    best = (step.argmax(axis=1) == labels).mean()
    for setting in ((0.5, 1), (1.0, 3), (2.0, 1), (alpha, depth)):
        options = dict(zip(("alpha", "depth"), setting, strict=True))
        after = altnorm.alternating_normalization(proba, proba[::2], **options)
        assert best >= (after.argmax(axis=1) == labels).mean()
    assert best == (after.argmax(axis=1) == labels).mean()  # at the setting that is named


def test_the_papers_way_takes_the_sure_rest_of_the_same_images(folder, monkeypatch):
    monkeypatch.setattr(whole_grid, "ALPHAS", (0.5, 1.0, 2.0))
    path = study.blur_path(folder, 8)
    rows = {row["method"]: row for row in as_published.measure(path, 8, (0.5, 2), None)}
    logits, labels = tiny_logits(2.0)
    proba = softmax(logits.astype(float), axis=1)
    hard = altnorm.ambiguity(proba) > 0.75
    after = altnorm.alternating_normalization(proba[hard], proba[~hard], alpha=0.5, depth=2)
    right = (after.argmax(axis=1) == labels[hard]).mean()
    papers = rows[as_published.OWN]
    assert papers["base_hard"] + papers["gain_hard"] == pytest.approx(100 * right)
    assert papers["n_hard"] + papers["n_reference"] == papers["n_test"] == labels.size
    assert rows[as_published.BEST]["gain"] >= max(papers["gain"], rows[as_published.NAIVE]["gain"])

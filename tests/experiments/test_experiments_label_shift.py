"""The study of label shift: its samples have the balance they should, and its page says it."""

import numpy as np
import pytest
from scipy.special import softmax

from altnorm import Adjuster
from experiments.label_shift import __main__ as label_shift
from experiments.label_shift.asking import KINDS, ask_once
from experiments.label_shift.study import SHIFTS, new_balance, resample
from experiments.label_shift.worlds import WORLDS, Source
from tests.pages import check_page, draw_logits, read_page, write_classifier

RNG = np.random.default_rng(0)
Y = RNG.choice(4, 3000, p=[0.4, 0.3, 0.2, 0.1])


@pytest.mark.parametrize("shift", SHIFTS)
def test_samples_have_the_balance(shift):
    rng = np.random.default_rng(1)
    balance = new_balance(Y, 4, shift, rng)
    assert balance.sum() == pytest.approx(1)
    rows = resample(Y, balance, 2000, rng)
    assert np.unique(rows).size == rows.size <= 2000
    shares = np.bincount(Y[rows], minlength=4) / rows.size
    np.testing.assert_allclose(shares, balance, atol=0.08)
    if shift == "one class dominates":
        assert balance.max() == 0.5


def test_where_inputs_move_the_classifier_stays_right():
    """Undo what it gets wrong: the labels are as frequent as their probabilities say."""
    world = next(world for world in WORLDS if world.moved_inputs == 2.0)
    source = Source(3, np.random.default_rng(0))
    proba, codes, _ = source.draw(20000, world)
    right = softmax((np.log(proba) - source.bias) / 1.3, axis=1)
    np.testing.assert_allclose(right.mean(axis=0), np.bincount(codes) / 20000, atol=0.01)
    before = source.draw(20000)[0]
    assert proba[:, 0].mean() > before[:, 0].mean() + 0.1


def test_the_quick_run_writes_everything(tmp_path):
    data, results = tmp_path / "data", tmp_path / "results"
    parts = [draw_logits(n, n, np.zeros(3), noise=1.0) for n in (500, 400)]
    for name in ("cifar10_a", "uavhuman_cifar10_b"):
        write_classifier(data / f"{name}.npz", *parts)
    label_shift.main(["--data", str(data), "--output", str(results), "--quick"])
    page = read_page(results)
    assert page.startswith("*The tables are from another run than the words.*")
    tables = check_page(results)
    rows, asked = tables["resampled"], tables["asked"]
    assert {row["change"] for row in rows if row["source"] == "cifar10_a"} == set(SHIFTS)
    assert {row["change"] for row in rows if row["source"] != "cifar10_a"} == {"other people"}
    assert len(tables["simulated"]) == 2 * len(WORLDS)
    gain = np.mean([float(r["word"]) - float(r["none"]) for r in rows if r["change"] == "strong"])
    assert f"| strong | 1 | {gain:+.2f} |" in page
    assert [row["kind"] for row in asked] == [kind for kind in KINDS for _ in range(2)]
    for row in asked:
        assert int(row["labels"]) <= int(row["changed"]) <= 400
    gain = np.mean([float(row["gain"]) for row in asked if row["kind"] == "inputs move"])
    assert f"| inputs move | 2 | {gain:+.1f} |" in page


def test_labels_that_adapting_harms_or_helps_are_told():
    """All labels leave nothing open; the gain is that over all new rows."""
    source = Source(3, np.random.default_rng(0))
    adjuster = Adjuster(("bias",)).fit(*source.draw(600)[:2])
    runs = [ask_once(adjuster, source, world, "any", 500, 0) for world in (WORLDS[1], WORLDS[7])]
    helps, harms = runs
    assert helps.gain > 5
    assert harms.gain < -5
    for run in runs:
        assert run.is_right
        assert 0 < run.labels < run.changed
    assert helps.followed(500) == helps.gain
    assert helps.followed(helps.labels - 1) == harms.followed(500) == 0
    wrong = harms._replace(is_right=False)
    assert wrong.followed(500) == harms.gain

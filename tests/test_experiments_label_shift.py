"""The study of label shift: its samples have the balance they should, and its page says it."""

import numpy as np
import pytest
from scipy.special import softmax

pytest.importorskip("matplotlib")

from experiments.label_shift import __main__ as label_shift
from experiments.label_shift.informed import informed_balance
from experiments.label_shift.study import SHIFTS, new_balance, resample
from experiments.label_shift.worlds import WORLDS, draw_world
from tests.pages import check_figures, read_page, read_table

RNG = np.random.default_rng(0)
Y = RNG.choice(4, 3000, p=[0.4, 0.3, 0.2, 0.1])


@pytest.mark.parametrize("shift", SHIFTS)
def test_samples_have_the_balance(shift):
    rng = np.random.default_rng(1)
    balance = new_balance(Y, 4, shift, rng)
    assert balance.sum() == pytest.approx(1)
    rows = resample(Y, balance, 2000, rng)
    assert np.unique(rows).size == rows.size <= 2000
    found = np.bincount(Y[rows], minlength=4) / rows.size
    np.testing.assert_allclose(found, balance, atol=0.08)
    if shift == "one class gone":
        assert (balance == 0).sum() == 1
    if shift == "one class dominates":
        assert balance.max() == 0.5


def test_worlds_differ_as_they_say():
    sizes = (4, 500, 300)
    for world in WORLDS:
        val, val_y, new, y, balance = draw_world(world, *sizes, np.random.default_rng(0))
        assert balance.sum() == pytest.approx(1)
        assert val.shape == (500, 4)
        assert new.shape == (300, 4)
        assert val_y.max() < 4
        assert y.max() < 4


def test_the_informed_balance_is_the_posterior_mean():
    """Oracles: integration over a grid for two classes, and Bayes' rule for a list of balances."""
    p = RNG.beta(0.7, 0.5, 40)
    density, source = 2 * np.column_stack([p, 1 - p]), np.array([0.5, 0.5])
    shares = (np.arange(2000) + 0.5) / 2000
    both = np.stack([shares, 1 - shares])
    weight = np.exp(np.log(density @ both).sum(axis=0)) * shares * (1 - shares)  # Dirichlet(2, 2)
    expected = shares @ weight / weight.sum()
    found = informed_balance(density, source, np.array([2.0, 2.0]))
    assert found[0] == pytest.approx(expected, abs=0.02)
    listed = np.array([[0.5, 0.5], [0.9, 0.1], [0.1, 0.9]])
    weight = np.prod(density @ listed.T, axis=0)
    np.testing.assert_allclose(
        informed_balance(density, source, listed), weight @ listed / weight.sum()
    )


def test_the_quick_run_writes_everything(tmp_path):
    data, results = tmp_path / "data", tmp_path / "results"
    data.mkdir()
    arrays = {}
    for part, n in (("val", 500), ("test", 400)):
        y = RNG.choice(3, n)
        logits = RNG.normal(size=(n, 3)) + 2 * np.eye(3)[y]
        arrays |= {f"{part}_logits": np.log(softmax(logits, axis=1)), f"{part}_labels": y}
    for name in ("cifar10_a", "uavhuman_cifar10_b"):
        np.savez(data / f"{name}.npz", **arrays)
    label_shift.main(["--data", str(data), "--output", str(results), "--quick"])
    page = read_page(results)
    assert page.startswith("*The tables are from another run than the words.*")
    assert "| share of the oracle's gain, strong shifts | 85 % |" in page
    assert "| other people left alone | all | 2 of 2 |" in page
    label_shift.main(["--tables", "--output", str(results)])
    assert read_page(results) == page
    check_figures(results, ["gains"])
    rows = read_table(results, "cases")
    assert {row["shift"] for row in rows if row["classifier"] == "cifar10_a"} == set(SHIFTS)
    assert {row["shift"] for row in rows if row["classifier"] != "cifar10_a"} == {"no shift"}
    strong = [row for row in rows if row["shift"] in ("strong", "one class dominates")]
    gain = np.mean([float(row["adapt"]) - float(row["none"]) for row in strong])
    assert f"| adapt: our estimate, where the data say so | {gain:+.2f} |" in page
    assert len(read_table(results, "simulated")) == 2 * len(WORLDS)

"""A sketch of rows finds them again, and finds no others."""

import numpy as np
import pytest

from altnorm import Adjuster, load
from altnorm.evidence.seen_rows import N_KEPT, share_seen, sketch_rows
from altnorm.io.predictions import Predictions
from altnorm.report.evaluation import evaluate
from tests.problems import planted


def draw(n, m=5, seed=0):
    return np.random.default_rng(seed).dirichlet(np.ones(m), size=n)


@pytest.mark.parametrize("n", [20, 256, 5000])
def test_rows_are_found_again(n):
    proba = draw(n)
    sketch = sketch_rows(proba)
    assert sketch.size == min(n, N_KEPT)
    order = np.random.default_rng(1).permutation(n)
    np.testing.assert_array_equal(sketch_rows(proba[order]), sketch)
    assert share_seen(sketch, proba[order]) == 1
    assert share_seen(sketch, proba.astype(np.float32)) == 1
    assert share_seen(sketch, draw(n, seed=1)) == 0
    mixed = np.concatenate([proba, draw(n, seed=1)])
    assert share_seen(sketch, mixed) == pytest.approx(0.5, abs=0.1)


def test_rows_that_look_alike_by_chance_prove_nothing():
    coarse = np.round(draw(2000, m=2), 2)
    assert sketch_rows(coarse).size == 0
    sure = np.eye(3)[np.random.default_rng(0).integers(3, size=500)]
    assert sketch_rows(sure).size == 0
    assert share_seen(sketch_rows(draw(50)), sure[:, [0, 1, 2, 0, 1]]) == 0


def test_evaluation_on_the_rows_of_tuning_says_so(tmp_path):
    proba, y = planted(600)
    tuned = Adjuster(("alternating",)).fit(proba[:400], y[:400])
    tuned.save(tmp_path / "m")
    for model in (tuned, load(tmp_path / "m")):
        same = evaluate(model, Predictions(proba[:400], np.arange(4), y[:400]))
        assert [c.code for c in same.verdict.cautions] == ["tuned_on_these_rows"]
        assert "too good" in same.verdict.cautions[0].text
        other = evaluate(model, Predictions(proba[400:], np.arange(4), y[400:]))
        assert other.verdict.cautions == ()
        some = evaluate(model, Predictions(proba[200:], np.arange(4), y[200:]))
        assert some.verdict.cautions[0].value == pytest.approx(0.5, abs=0.15)

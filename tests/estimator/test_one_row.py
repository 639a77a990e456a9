"""Rows that come one by one: what the reference comes to on its own is kept, and stays exact."""

import gc
import pickle
from copy import deepcopy

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context

from altnorm import AlternatingNormalizer
from altnorm._base.arrays import to_numpy
from altnorm.estimator import base as _base
from altnorm.method import scaling as _scaling, two_classes as _binary
from tests.libraries import LIBRARIES
from tests.problems import draw

KINDS = [None, "pairs", "labelwise"]


@pytest.fixture
def count(monkeypatch):
    """How often the reference's own iterations are worked out."""
    calls = []
    for module, name in ((_scaling, "next_anchor"), (_binary, "_column_sums")):
        original = getattr(module, name)

        def counted(*arguments, original=original):
            calls.append(1)
            return original(*arguments)

        monkeypatch.setattr(module, name, counted)
    return lambda: len(calls)


def fitted(kind=None, n=200, m=4, **settings):
    proba, y = draw(n, m)
    settings = {"alpha": 0.8, "depth": 3, "threshold": 0.5} | settings
    y = np.eye(m, dtype=int)[y] if kind else y
    return AlternatingNormalizer(**settings, multilabel=kind).fit(proba, y)


def count_held():
    return len(_base._CORRECTIONS._held)


def in_doubt(n=6, m=4):
    return np.random.default_rng(5).dirichlet(np.full(m, 20.0), n)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("m", [2, 4])
def test_one_by_one_is_as_all_at_once(library, kind, m):
    normalizer, rows = fitted(kind, m=m), np.tile(in_doubt(m=m), (20, 1))
    together = normalizer.transform(library.make(rows))
    for i in range(6):
        alone = normalizer.transform(library.make(rows[i : i + 1]))
        assert library.same_place(alone, together)
        assert_allclose(to_numpy(alone)[0], to_numpy(together)[i], rtol=0, atol=1e-13)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("m", "n"), [(4, 1), (2, 1), (2, 1000)])  # of two classes, batches too
def test_it_is_worked_out_once(kind, m, n, count):
    normalizer, rows = fitted(kind, m=m), in_doubt(2 * n, m)
    normalizer.transform(rows[:n])
    before = count()
    normalizer.transform(rows[n:])
    assert count() == before > 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "change", [{"alpha": 2.0}, {"depth": 2}, {"depth": 1}, {"smoothing": 0.5}], ids=str
)
def test_settings_that_change_between_rows_hold(kind, change):
    normalizer, rows = fitted(kind), in_doubt()
    normalizer.transform(rows[:1])
    normalizer.set_params(**change)
    fresh = fitted(kind, **change)
    assert_array_equal(normalizer.transform(rows[1:2]), fresh.transform(rows[1:2]))


@pytest.mark.parametrize("kind", KINDS)
def test_another_fit_between_rows_holds(kind):
    normalizer, rows = fitted(kind), in_doubt()
    normalizer.transform(rows[:1])
    proba, y = draw(150, seed=7)
    labels = np.eye(4, dtype=int)[y] if kind else y
    adjusted = normalizer.fit(proba, labels, np.linspace(0.5, 2, 150)).transform(rows)
    fresh = deepcopy(normalizer)
    assert_array_equal(adjusted, fresh.transform(rows))
    normalizer.prior_ = np.roll(normalizer.prior_, 1)
    assert not np.allclose(normalizer.transform(rows), adjusted)


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_of_it_is_pickled_and_it_goes_with_its_owner(kind):
    gc.collect()
    n_held = count_held()
    normalizer = fitted(kind)
    before = pickle.dumps(normalizer)
    normalizer.transform(in_doubt())
    assert pickle.dumps(normalizer) == before
    assert count_held() > n_held
    del normalizer
    gc.collect()
    assert count_held() == n_held


@pytest.mark.parametrize("m", [2, 4])
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_large_is_not_kept(kind, m, count):
    normalizer, rows = fitted(kind, m=m), in_doubt(100, m)
    expected = normalizer.transform(rows)
    with config_context(working_memory=0):
        fresh = fitted(kind, m=m)
        assert_allclose(fresh.transform(rows), expected, rtol=0, atol=1e-13)
        before = count()
        assert_allclose(fresh.transform(rows), expected, rtol=0, atol=1e-13)
        assert count() > before

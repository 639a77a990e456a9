"""Families fitted to labels: cross-fitted as if by hand, in blocks of any size, without copies."""

import tracemalloc

import numpy as np
import pytest
from altnorm.adjuster.calibration import try_calibrations
from altnorm.adjuster.families import AlternatingFamily, BiasFamily, MatrixFamily
from altnorm.adjuster.folds import Dealing, Validation
from altnorm.adjuster.settings import BiasSetting, Grid, MatrixSetting, Setting
from scipy.special import softmax
from sklearn import config_context

from altnorm.evidence.scores import SINGLE_LABEL
from altnorm.method.kinds import resolve_kind
from altnorm.peers import MatrixScaling, ShrunkBias
from tests.problems import planted
from tests.versions import present_versions

SAME = 1e-9
N_FOLDS = 3
GRID = Grid((0.5, 1.0, 2.0), (1, 2), (0.25, 0.75), ("confident", "all"), (0.0, 0.1))
FITS = [
    (BiasFamily, BiasSetting("labels", 4.0)),
    (BiasFamily, BiasSetting("prior", 64.0)),
    (MatrixFamily, MatrixSetting(16.0)),
    (MatrixFamily, MatrixSetting(16.0, "cauchy")),
]


def deal(proba, y, score="accuracy", weight=None):
    kind = resolve_kind(None)
    scored = SINGLE_LABEL[score]
    data = Validation(proba, y, weight, None, proba[:0], kind, 10, "shrunk", scored)
    return Dealing(data, np.random.default_rng(0).permutation(len(y)) % N_FOLDS)


def forget(setting, pred, sure):
    """Record nothing."""


def explored(family, dealing):
    """What a family hands over for each setting it tries."""
    found = {}
    family.explore(dealing, lambda setting, pred, sure: found.update({setting: pred}), full=True)
    return found


def test_how_sure_a_change_is_comes_from_the_two_probabilities():
    planted_proba, y = planted(150)
    family, dealing = BiasFamily(), deal(planted_proba, y)
    found = {}
    family.explore(dealing, lambda s, pred, sure: found.update({s: (pred, sure)}), full=True)
    codes, sure = found[BiasSetting("labels", 4.0)]
    proba, base = one_by_one(dealing, BiasSetting("labels", 4.0)), planted_proba.argmax(axis=1)
    assert (codes != base).sum() > 10
    rows = np.arange(len(codes))
    old, new = proba[rows, base], proba[rows, codes]
    np.testing.assert_allclose(sure**2, (new - old) / (new + old), atol=1e-5)


def one_by_one(dealing, setting):
    """Fit the peer outside each fold, and apply it to the fold."""
    data, out = dealing.data, np.empty_like(dealing.data.proba)
    for k, outside in enumerate(dealing.outside):
        rows, inside = outside.rows, dealing.folds == k
        if isinstance(setting, BiasSetting):
            peer = ShrunkBias(setting.member, setting.ridge, prior=outside.prior)
        else:
            peer = MatrixScaling(setting.ridge, penalty=setting.penalty)
        peer.fit(data.proba[rows], data.labels[rows], sample_weight=outside.weight[rows])
        out[inside] = peer.transform(data.proba[inside])
    return out


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("megabytes", [1024, 1e-3])
@pytest.mark.parametrize(("kind", "setting"), FITS, ids=str)
def test_crossfitted_probabilities_are_those_of_a_fit_without_the_fold(
    kind, setting, megabytes, weighted
):
    proba, y = planted(150)
    weight = np.random.default_rng(1).uniform(0.5, 2, 150) if weighted else None
    dealing, family = deal(proba, y, weight=weight), kind()
    with config_context(working_memory=megabytes):
        decided = explored(family, dealing)[setting]
        found = family.crossfit_proba(dealing, setting)
        scored = explored(kind(), deal(proba, y, "neg_log_loss", weight))[setting]
    expected = one_by_one(dealing, setting)
    np.testing.assert_allclose(found, expected, atol=SAME)
    np.testing.assert_allclose(scored, expected, atol=SAME)
    np.testing.assert_array_equal(decided, expected.argmax(axis=1))
    likelihood = dealing.data.row_weight @ np.log(expected[np.arange(150), y])
    assert family.log_likelihood[setting] == pytest.approx(likelihood, rel=SAME)


def test_later_dealings_try_the_menu():
    proba, y = planted(150)
    family, found = MatrixFamily(), {}
    family.explore(deal(proba, y), lambda s, pred, _: found.update({s: pred}), full=False)
    assert family.menu() == [[MatrixSetting(64.0, "cauchy"), MatrixSetting(16.0, "cauchy")]]
    assert list(found) == [MatrixSetting(ridge, "cauchy") for ridge in (256.0, 64.0, 16.0)]
    in_full = explored(MatrixFamily(), deal(proba, y))
    for setting, pred in found.items():
        np.testing.assert_array_equal(pred, in_full[setting])


def test_threads_change_nothing():
    proba, y = planted(150)
    one, two = (explored(BiasFamily(n_jobs=n), deal(proba, y)) for n in (1, 2))
    assert one.keys() == two.keys()
    for setting, pred in one.items():
        np.testing.assert_array_equal(pred, two[setting])


def peak_in_copies(function, like):
    """Largest memory that a call takes, in copies of the data."""
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1] / like.nbytes
    finally:
        tracemalloc.stop()


@pytest.fixture(scope="module")
def wide():
    """Many classes: whole copies of the data are what counts."""
    rng = np.random.default_rng(0)
    y = rng.integers(400, size=2400)
    y[:400] = np.arange(400)
    z = rng.normal(size=(2400, 400)) + rng.normal(size=400)
    z[np.arange(2400), y] += 3
    return deal(softmax(z, axis=1), y)


@present_versions
def test_the_bias_family_copies_the_rows_outside_one_fold_at_a_time(wide):
    peak = peak_in_copies(lambda: BiasFamily().explore(wide, forget, full=False), wide.data.proba)
    assert peak < 1.5  # two thirds, and blocks


@pytest.mark.parametrize("depth", [1, 4])
def test_crossfitted_rows_of_alternating_normalization_are_held_twice(wide, depth):
    """Whatever the depth: iterations on the way are not kept."""
    setting = Setting(1.0, depth, 0.25, "all", 0.1)
    family = AlternatingFamily(GRID)
    assert peak_in_copies(lambda: family.crossfit_proba(wide, setting), wide.data.proba) < 3.5


def test_calibrations_hold_few_copies_of_the_data(wide):
    """What is decided, what is tried, and the rows that a fit uses."""
    family = BiasFamily()
    family.explore(wide, forget, full=True)
    decider = AlternatingFamily(GRID), Setting(1.0, 2, 0.25, "all", 0.1)
    data = wide.data
    peak = peak_in_copies(
        lambda: try_calibrations(data, [wide, wide], decider, [family]), data.proba
    )
    assert peak < 3

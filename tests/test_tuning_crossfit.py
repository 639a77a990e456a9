"""Cross-fitting: each row as if its fold did not exist, for many settings at once."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import expit, softmax
from sklearn import config_context

from altnorm import AlternatingNormalizer
from altnorm.adjuster.crossfit import BinaryCrossFit, ClassCrossFit
from altnorm.adjuster.folds import Sample, Validation
from altnorm.adjuster.settings import Grid, Setting
from altnorm.evidence.scores import SINGLE_LABEL
from altnorm.method.kinds import resolve_kind

EXACT = 1e-12
SINGLE = 2e-5
CLOSE = 0.01  # deeper iterations follow the reference's own path
GRID = Grid((), (1,), (0.0, 0.25, 0.75, 1.0), ("confident", "all"), (0.0, 0.1))
ALPHAS = (0.1, 0.5, 1.0, 2.0, 9.0, 35.0)
MODES = ("pairs", "labelwise")
dtypes = pytest.mark.parametrize("dtype", [np.float64, np.float32])
weights = pytest.mark.parametrize("weighted", [False, True])


def draw(n=60, m=5, seed=0, spread=3.0, n_folds=4):
    """Rows that sum to 1, some of them one-hot or with zeros; folds; a prior for each."""
    rng = np.random.default_rng(seed)
    proba = softmax(spread * rng.normal(size=(n, m)), axis=1)
    proba[: n // 5] = np.eye(m)[rng.integers(m, size=n // 5)]
    proba[n // 5 : n // 3, 0] = 0
    proba /= proba.sum(axis=1, keepdims=True)
    return proba, rng.permutation(n) % n_folds, rng.dirichlet(np.full(m, 3.0), n_folds)


def draw_yes(mode, n=60, m=4, seed=0, spread=3.0, n_folds=4):
    rng = np.random.default_rng(seed)
    proba = expit(spread * rng.normal(size=(n, m)) - 1)
    proba[: n // 5] = np.round(proba[: n // 5])
    priors = rng.uniform(0.05, 0.9, (n_folds, 1 if mode == "pairs" else m))
    return proba, rng.permutation(n) % n_folds, priors


def draw_weight(weighted, n=60):
    return np.random.default_rng(1).integers(0, 4, n).astype(float) if weighted else None


def crossfit_of(proba, folds, priors, weight=None, mode=None, keep_proba=True, unlabelled=0):
    """Cross-fit with given priors and weights; the last `unlabelled` rows have no label."""
    n, m = len(proba) - unlabelled, proba.shape[1]
    score = SINGLE_LABEL["neg_log_loss" if keep_proba else "accuracy"]
    kind = resolve_kind(mode)
    data = Validation(
        proba[:n], np.zeros(n, int), weight, None, proba[n:], kind, 10, "uniform", score
    )
    outside = []
    for k, prior in enumerate(priors):
        q = np.array([prior[0], 1 - prior[0]]) if mode == "pairs" else prior
        rows = folds != k
        outside.append(Sample(rows, data.row_weight * rows, np.zeros(m), q))
    dealing = SimpleNamespace(data=data, folds=folds, outside=outside)
    return ClassCrossFit(dealing) if mode is None else BinaryCrossFit(dealing)


def values(found):
    """Settings with their predictions, without how sure these are."""
    return [(setting, predicted.values) for setting, predicted in found]


def one_by_one(proba, folds, priors, weight, setting, mode=None):
    """Fit a normalizer on the rows outside each fold, and apply it to the fold."""
    out = proba.copy()
    for k, prior in enumerate(priors):
        outside = folds != k
        q = [prior[0], 1 - prior[0]] if mode == "pairs" else prior
        normalizer = AlternatingNormalizer(**setting._asdict(), prior=q, multilabel=mode)
        normalizer.fit(proba[outside], sample_weight=None if weight is None else weight[outside])
        out[~outside] = normalizer.transform(proba[~outside])
    return out


def settings_of(alpha, grid=GRID):
    _, _, thresholds, references, smoothings = grid
    return {
        Setting(alpha, 1, threshold, reference, smoothing)
        for threshold in thresholds
        for reference in references
        for smoothing in smoothings
    }


# The first iteration is exact.


@pytest.mark.parametrize("seed", [0, 1])
@weights
@dtypes
def test_first_is_exact(dtype, weighted, seed):
    proba, folds, priors = draw(m=5 - 3 * seed, seed=seed)
    proba, weight = proba.astype(dtype), draw_weight(weighted)
    crossfit = crossfit_of(proba, folds, priors, weight)
    for alpha in ALPHAS:
        found = dict(values(crossfit.first(alpha, GRID)))
        assert found.keys() == settings_of(alpha)
        for setting, adjusted in found.items():
            expected = one_by_one(proba, folds, priors, weight, setting)
            assert adjusted.dtype == dtype
            np.testing.assert_allclose(
                adjusted, expected, atol=EXACT if dtype == np.float64 else SINGLE, err_msg=setting
            )


def test_class_codes_are_the_largest_probabilities():
    proba, folds, priors = draw()
    whole, codes = (crossfit_of(proba, folds, priors, keep_proba=keep) for keep in (True, False))
    np.testing.assert_array_equal(codes.base, proba.argmax(axis=1))
    np.testing.assert_array_equal(whole.base, proba)
    for alpha in (0.5, 2.0):
        for (one, p), (other, code) in zip(
            values(whole.first(alpha, GRID)), values(codes.first(alpha, GRID)), strict=True
        ):
            assert one == other
            np.testing.assert_array_equal(p.argmax(axis=1), code)
    setting = Setting(1.5, 1, 0.5, "confident", 0.0)
    for (one, p), (other, code) in zip(
        values(whole.deeper(setting, 3)), values(codes.deeper(setting, 3)), strict=True
    ):
        assert one == other
        np.testing.assert_array_equal(p.argmax(axis=1), code)


def test_how_sure_a_change_is_comes_from_the_two_probabilities():
    proba, folds, priors = draw(spread=1.0)
    whole, codes = (crossfit_of(proba, folds, priors, keep_proba=keep) for keep in (True, False))
    setting = Setting(1.5, 1, 0.25, "all", 0.1)
    n_changed = 0
    for (_, all_p), (_, found) in zip(
        [*whole.first(2.0, GRID), *whole.deeper(setting, 3)],
        [*codes.first(2.0, GRID, sure=True), *codes.deeper(setting, 3, sure=True)],
        strict=True,
    ):
        assert all_p.sure is None
        for p, before, after, sure in zip(all_p.values, codes.base, *found, strict=True):
            advantage = (p[after] - p[before]) / (p[after] + p[before])
            assert sure == pytest.approx(advantage**0.5, abs=1e-6)
            n_changed += after != before
    assert n_changed > 100


def test_near_ties_are_broken_as_in_the_probabilities():
    """Classes that the few references hardly have end at their prior, alike but for rounding."""
    rng = np.random.default_rng(0)
    n, m = 400, 40
    proba = softmax(2 * rng.normal(size=(n, m)), axis=1)
    proba[:8] = softmax(12 * np.eye(m)[:8] + rng.normal(size=(8, m)), axis=1)
    folds, priors = np.arange(n) % 4, np.full((4, m), 1 / m)
    grid = Grid((), (1,), (0.25,), ("confident",), (0.0,))
    whole, codes = (crossfit_of(proba, folds, priors, keep_proba=keep) for keep in (True, False))
    for alpha in (6.0, 10.0, 20.0):
        ((_, p),), ((_, decided),) = (
            values(whole.first(alpha, grid)),
            values(codes.first(alpha, grid)),
        )
        assert (np.sort(p, axis=1)[:, -2] > (1 - 1e-12) * p.max(axis=1)).mean() > 0.01
        np.testing.assert_array_equal(decided, p.argmax(axis=1))


@dtypes
def test_sums_that_underflow_beside_larger_ones(dtype):
    """Only a row in doubt has much of class 2: the sums of the others are far below its power."""
    tiny = 1e-12
    doubtful = np.array([[0.4, 0.3, 0.3], [0.5, 0.5 - tiny / 2, tiny / 2]])
    sure = np.array([[1 - tiny, 0, tiny], [0, 1 - tiny, tiny], [1 - tiny / 3, 0, tiny / 3]])
    proba = np.vstack([doubtful, sure, sure]).astype(dtype)
    folds = np.array([0, 1, 0, 0, 0, 1, 1, 1])
    priors = np.array([[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]])
    crossfit = crossfit_of(proba, folds, priors, None)
    ((setting, adjusted),) = values(
        crossfit.first(35.0, Grid((), (1,), (0.5,), ("confident",), (0.0,)))
    )
    expected = one_by_one(proba, folds, priors, None, setting)
    np.testing.assert_allclose(adjusted, expected, atol=SINGLE)


@pytest.mark.parametrize("mode", MODES)
@weights
@dtypes
def test_first_is_exact_for_several_labels(dtype, weighted, mode):
    proba, folds, priors = draw_yes(mode)
    proba, weight = proba.astype(dtype), draw_weight(weighted)
    crossfit = crossfit_of(proba, folds, priors, weight, mode)
    for alpha in ALPHAS:
        found = dict(values(crossfit.first(alpha, GRID)))
        assert found.keys() == settings_of(alpha)
        for setting, adjusted in found.items():
            expected = one_by_one(proba, folds, priors, weight, setting, mode)
            assert adjusted.dtype == dtype
            np.testing.assert_allclose(
                adjusted, expected, atol=EXACT if dtype == np.float64 else SINGLE, err_msg=setting
            )


def test_a_large_power_inside_a_fold_leaves_no_trace_outside():
    """Sums outside a fold are not what rounding leaves of a difference of totals."""
    proba = np.array([[0.95], [0.3], [0.34], [0.01], [0.31], [0.02]])
    folds = np.array([0, 0, 1, 1, 2, 2])
    priors = np.full((3, 1), 0.4)
    crossfit = crossfit_of(proba, folds, priors, mode="labelwise")
    ((setting, adjusted),) = values(crossfit.first(35.0, Grid((), (1,), (0.5,), ("all",), (0.0,))))
    expected = one_by_one(proba, folds, priors, None, setting, "labelwise")
    np.testing.assert_allclose(adjusted, expected, atol=EXACT)


def test_labels_with_a_prior_of_zero_or_one_are_left():
    proba, folds, priors = draw_yes("labelwise")
    priors[:, 0], priors[:, 1] = 0, 1
    crossfit = crossfit_of(proba, folds, priors, mode="labelwise")
    for setting, adjusted in [
        *values(crossfit.first(2.0, GRID)),
        *values(crossfit.deeper(Setting(2.0, 1, 0.25, "confident", 0.1), 3)),
    ]:
        np.testing.assert_allclose(adjusted[:, :2], proba[:, :2], rtol=EXACT)
        expected = one_by_one(proba, folds, priors, None, setting, "labelwise")
        np.testing.assert_array_equal(expected[:, :2], proba[:, :2])


def test_a_row_has_no_part_in_its_own_reference():
    proba, folds, priors = draw()
    row = np.flatnonzero(folds == 0)[-1]
    other = proba.copy()
    other[(folds == 0) & (np.arange(60) != row)] = np.eye(5)[0]
    before, after = (
        [p[row] for _, p in values(crossfit_of(rows, folds, priors).first(1.5, GRID))]
        for rows in (proba, other)
    )
    assert (np.array(before) != proba[row]).any()
    np.testing.assert_allclose(before, after, rtol=EXACT)


@pytest.mark.parametrize("mode", [None, *MODES])
def test_settings_without_a_reference_are_left_out(mode):
    """All confident rows are in one fold: that fold has none outside of it."""
    if mode is None:
        proba, folds, priors = draw()
        proba[:] = [0.3, 0.3, 0.2, 0.1, 0.1]
        proba[folds == 1] = np.eye(5)[0]
        crossfit = crossfit_of(proba, folds, priors, None)
    else:
        proba, folds, priors = draw_yes(mode)
        proba[:] = 0.4
        proba[folds == 1] = 0.0
        crossfit = crossfit_of(proba, folds, priors, mode=mode)
    found = [
        setting
        for setting, _ in values(
            crossfit.first(1.0, Grid((), (1,), (0.5,), ("confident", "all"), (0.0,)))
        )
    ]
    assert found == [Setting(1.0, 1, 0.5, "all", 0.0)]
    assert list(values(crossfit.deeper(Setting(1.0, 1, 0.5, "confident", 0.0), 3))) == []
    assert len(list(values(crossfit.deeper(found[0], 3)))) == 2


@pytest.mark.parametrize("keep_proba", [True, False])
def test_small_blocks_give_the_same(keep_proba):
    proba, folds, priors = draw(n=90)
    crossfit = crossfit_of(proba, folds, priors, draw_weight(True, 90), keep_proba=keep_proba)
    deeper = Setting(1.3, 1, 0.25, "all", 0.1)

    def predictions():
        return dict([*values(crossfit.first(0.7, GRID)), *values(crossfit.deeper(deeper, 3))])

    whole = predictions()
    with config_context(working_memory=1e-6):  # one row at a time
        cut = predictions()
    assert whole.keys() == cut.keys()
    for setting, pred in whole.items():
        np.testing.assert_allclose(cut[setting], pred, atol=EXACT)


@pytest.mark.parametrize("mode", [None, *MODES])
def test_the_last_depths_alone(mode):
    proba, folds, priors = draw() if mode is None else draw_yes(mode)
    crossfit = crossfit_of(proba, folds, priors, mode=mode)
    setting = Setting(1.3, 1, 0.25, "all", 0.1)
    path, last = (list(values(crossfit.deeper(setting, 4, start=start))) for start in (2, 4))
    assert [one.depth for one, _ in path] == [2, 3, 4]
    ((found, pred),) = last
    assert found == path[-1][0]
    np.testing.assert_array_equal(pred, path[-1][1])


# Deeper iterations are close.


@pytest.mark.parametrize("reference", ["confident", "all"])
@pytest.mark.parametrize("alpha", [0.3, 1.0, 2.0, 6.0])
def test_deeper_is_close(alpha, reference):
    rng = np.random.default_rng(0)
    n, m = 1500, 5
    y = rng.integers(m, size=n)
    proba = softmax(1.5 * rng.normal(size=(n, m)) + 2 * np.eye(m)[y] + np.linspace(0, 1, m), axis=1)
    folds, priors = rng.permutation(n) % 5, rng.dirichlet(np.full(m, 50.0), 5)
    crossfit = crossfit_of(proba, folds, priors, None)
    found = list(values(crossfit.deeper(Setting(alpha, 1, 0.5, reference, 0.0), 3)))
    assert [setting.depth for setting, _ in found] == [2, 3]
    for setting, adjusted in found:
        expected = one_by_one(proba, folds, priors, None, setting)
        np.testing.assert_allclose(adjusted, expected, atol=CLOSE)
        assert (adjusted.argmax(axis=1) == expected.argmax(axis=1)).mean() > 0.99


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("alpha", [0.3, 1.0, 2.0, 6.0])
def test_deeper_is_close_for_several_labels(mode, alpha):
    proba, folds, priors = draw_yes(mode, n=1500, spread=2.0)
    crossfit = crossfit_of(proba, folds, priors, mode=mode)
    found = list(values(crossfit.deeper(Setting(alpha, 1, 0.5, "confident", 0.1), 3)))
    assert [setting.depth for setting, _ in found] == [2, 3]
    for setting, adjusted in found:
        expected = one_by_one(proba, folds, priors, None, setting, mode)
        np.testing.assert_allclose(adjusted, expected, atol=CLOSE)
        assert ((adjusted > 0.5) == (expected > 0.5)).mean() > 0.99


@pytest.mark.parametrize("mode", [None, *MODES])
def test_deeper_with_weights_equals_repeated_rows(mode):
    proba, folds, priors = draw() if mode is None else draw_yes(mode)
    weight = draw_weight(True)
    times = weight.astype(int)

    def paths(proba, folds, weight):
        if mode is None:
            crossfit = crossfit_of(proba, folds, priors, weight)
        else:
            crossfit = crossfit_of(proba, folds, priors, weight, mode)
        return [p for _, p in values(crossfit.deeper(Setting(1.3, 1, 0.5, "confident", 0.2), 3))]

    repeated = paths(proba.repeat(times, axis=0), folds.repeat(times), None)
    for one, other in zip(paths(proba, folds, weight), repeated, strict=True):
        np.testing.assert_allclose(one.repeat(times, axis=0), other, atol=EXACT)


@pytest.mark.parametrize("mode", [None, *MODES])
def test_nothing_but_numbers_comes_out(mode):
    proba, folds, priors = draw(spread=60.0) if mode is None else draw_yes(mode, spread=60.0)
    if mode is None:
        crossfit = crossfit_of(proba, folds, priors, None)
    else:
        crossfit = crossfit_of(proba, folds, priors, mode=mode)
    for alpha in ALPHAS:
        setting = Setting(alpha, 1, 0.0, "all", 0.0)
        for _, adjusted in [
            *values(crossfit.first(alpha, GRID)),
            *values(crossfit.deeper(setting, 5)),
        ]:
            assert np.isfinite(adjusted).all()
            assert ((adjusted >= 0) & (adjusted <= 1)).all()


# Rows without labels, and classes without rows.


@pytest.mark.parametrize("mode", [None, *MODES])
def test_rows_without_labels_are_outside_every_fold(mode):
    proba, folds, priors = draw() if mode is None else draw_yes(mode)
    n = 45
    crossfit = crossfit_of(proba, folds[:n], priors, mode=mode, unlabelled=len(proba) - n)
    padded = np.append(folds[:n], np.full(len(proba) - n, -1))
    deeper = Setting(1.3, 1, 0.5, "confident", 0.2)
    for setting, adjusted in [
        *values(crossfit.first(1.5, GRID)),
        *values(crossfit.deeper(deeper, 2)),
    ]:
        expected = one_by_one(proba, padded, priors, None, setting, mode)[:n]
        tolerance = EXACT if setting.depth == 1 else 10 * CLOSE
        np.testing.assert_allclose(adjusted, expected, atol=tolerance)


def test_a_class_without_rows_is_represented_by_a_sure_row():
    proba, folds, priors = draw()
    crossfit = crossfit_of(proba, folds, priors)
    crossfit.absent[2, 3] = 4.0
    found = dict(values(crossfit.first(1.5, GRID)))
    assert found.keys() == settings_of(1.5)
    for setting, adjusted in found.items():
        inside = folds == 2
        normalizer = AlternatingNormalizer(**setting._asdict(), prior=priors[2])
        rows = np.vstack([proba[~inside], np.tile(np.eye(5)[3], (4, 1))])
        expected = normalizer.fit(rows).transform(proba[inside])
        np.testing.assert_allclose(adjusted[inside], expected, atol=EXACT)

"""Adjuster: every family finds what it is for, and the evidence counts units."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax
from sklearn import config_context
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import altnorm
from altnorm import Adjuster, AlternatingNormalizer, AlternatingNormalizerCV
from altnorm._base.errors import InputError
from altnorm.adjuster.families import AlternatingFamily
from altnorm.adjuster.folds import Dealing, Validation
from altnorm.adjuster.settings import Grid, Setting
from altnorm.evidence.metrics import resolve_scoring
from altnorm.method.kinds import _single, resolve_kind
from altnorm.peers import Identity, MatrixScaling, ShrunkBias
from tests.fitted import FORMS, assemble
from tests.problems import planted

GRID = Grid((1.0,), (1,), (0.5,), ("all",), (0.0,))


def confused(n=1500, seed=0):
    """Class 2 looks like class 1 with class 0 improbable: a confusion that no factor repairs."""
    rng = np.random.default_rng(seed)
    y = rng.integers(4, size=n)
    z = 2.0 * np.eye(4)[y] + rng.normal(size=(n, 4))
    two = y == 2
    z[two, 1] += 2.5
    z[two, 0] -= 3.0
    return softmax(z, axis=1), y


def gain(fitted, proba, y):
    return (fitted.predict(proba) == y).mean() - (proba.argmax(axis=1) == y).mean()


# Families.


def test_a_confusion_of_two_classes_is_found_by_the_matrix():
    proba, y = confused()
    fitted = Adjuster().fit(proba, y)
    assert fitted.family_ == "matrix"
    assert isinstance(fitted.best_normalizer_, MatrixScaling)
    assert set(fitted.families_) == {"alternating", "bias", "matrix"}
    assert fitted.families_["matrix"].gain > fitted.families_["bias"].gain + 0.02
    fresh = confused(5000, seed=1)
    assert gain(fitted, *fresh) == pytest.approx(fitted.verdict_.gain, abs=0.03)


def test_a_bias_is_found_by_each_family_alone():
    proba, y = planted(800)
    fresh = planted(4000, seed=1)
    for family in ("alternating", "bias", "matrix"):
        fitted = Adjuster((family,)).fit(proba, y)
        assert fitted.family_ == family
        assert fitted.verdict_ == fitted.families_[family].with_cautions(fitted.verdict_.cautions)
        assert gain(fitted, *fresh) > 0.05


def test_few_labels_per_class_leave_the_matrix_out():
    rng = np.random.default_rng(0)
    proba, y = rng.dirichlet(np.ones(30), 100), rng.integers(30, size=100)
    fitted = Adjuster().fit(proba, y)
    assert fitted.families_["matrix"].reason == "too_few_labels"
    assert "too few labels per class" in str(fitted.families_["matrix"])
    with pytest.raises(InputError, match="At least one family must be able to compete"):
        Adjuster(("matrix",)).fit(proba, y)


def test_the_single_family_form_is_alternating_normalizer_cv():
    proba, y = planted(400)
    one = Adjuster(("alternating",), calibrate=False).fit(proba, y)
    other = AlternatingNormalizerCV().fit(proba, y)
    assert one.best_params_ == other.best_params_
    assert one.verdict_ == other.verdict_
    np.testing.assert_array_equal(one.transform(proba), other.transform(proba))


def test_fitted_families_are_the_peers():
    proba, y = planted(600)
    fitted = Adjuster(("bias",), calibrate=False).fit(proba, y)
    by_hand = fitted.best_normalizer_
    assert isinstance(by_hand, ShrunkBias)
    assert {k: getattr(by_hand, k) for k in fitted.best_params_} == fitted.best_params_
    np.testing.assert_array_equal(fitted.transform(proba), by_hand.transform(proba))


# Nothing there, nothing done.


def test_labels_unrelated_to_predictions_are_no_evidence():
    adopted = 0
    for seed in range(25):
        rng = np.random.default_rng(seed)
        proba = rng.dirichlet(np.full(4, 0.5), 150)
        fitted = Adjuster(calibrate=False).fit(proba, rng.integers(4, size=150))
        adopted += fitted.verdict_.adopted
        if not fitted.verdict_.adopted:
            assert fitted.family_ is None
            assert isinstance(fitted.best_normalizer_, Identity)
            np.testing.assert_array_equal(fitted.transform(proba), proba)
    assert adopted <= 3  # 25 at 2.5 %: four or more in 0.3 % of runs


def test_balanced_samples_do_not_leak():
    """Nothing to gain, three rows per class exactly: cross-fitting alone would promise a gain."""
    adopted = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        z = 3.0 * rng.normal(size=(6000, 60))
        drawn = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
        rows = np.concatenate([np.flatnonzero(drawn == c)[:3] for c in range(60)])
        fitted = Adjuster(calibrate=False).fit(softmax(z[rows], axis=1), drawn[rows])
        adopted += fitted.verdict_.adopted
        assert fitted.families_["alternating"].gain < 0.02
    assert adopted == 0


# Groups, weights, rows without labels.


def test_groups_are_the_units_of_the_evidence():
    """Every row four times: copies are no evidence if they are known to belong together."""
    proba, y = planted(100, seed=3)
    alone = Adjuster().fit(proba, y).verdict_
    copies, labels = np.tile(proba, (4, 1)), np.tile(y, 4)
    grouped = Adjuster().fit(copies, labels, groups=np.tile(np.arange(100), 4)).verdict_
    naive = Adjuster().fit(copies, labels).verdict_
    assert grouped.std_error == pytest.approx(alone.std_error, rel=0.35)
    assert naive.std_error < 0.7 * alone.std_error
    with pytest.raises(InputError, match="`groups` must have one entry per row"):
        Adjuster().fit(proba, y, groups=np.arange(3))


def test_groups_are_routed():
    proba, y = planted(200)
    groups = np.arange(200) // 2
    with config_context(enable_metadata_routing=True):
        asked = Adjuster(("bias",)).set_fit_request(groups=True)
        routed = make_pipeline(FunctionTransformer(), asked).fit(proba, y, groups=groups)
    direct = Adjuster(("bias",)).fit(proba, y, groups=groups)
    assert routed[-1].verdict_ == direct.verdict_


@pytest.mark.parametrize("missing", [None, np.nan, -1], ids=str)
def test_rows_without_labels_serve_as_reference(missing):
    proba, y = planted(600)
    known = np.arange(600) % 3 == 0
    labels = y.astype(object) if missing is None else y.astype(float if missing != -1 else int)
    labels[~known] = missing
    fitted = Adjuster(("alternating",), calibrate=False).fit(proba, labels)
    assert fitted.verdict_.n_rows == known.sum()
    inner = fitted.best_normalizer_
    serves = altnorm.ambiguity(proba) <= (inner.threshold if inner.reference == "confident" else 1)
    assert len(inner.reference_) == serves.sum()
    assert gain(fitted, *planted(3000, seed=1)) > 0.05


def test_minus_one_may_be_a_class():
    proba, y = planted(300)
    two = np.stack([proba[:, 0], 1 - proba[:, 0]], axis=1)
    fitted = Adjuster(("bias",)).fit(two, np.where(y == 0, -1, 1))
    assert fitted.classes_.tolist() == [-1, 1]
    assert fitted.verdict_.n_rows == 300
    with pytest.raises(InputError, match="Some rows must have a label; none of 5 has one"):
        Adjuster().fit(two[:5], [None] * 5)


def test_minus_one_that_could_be_either_is_refused():
    """A class that happens to be absent must not make -1 a class, and shift all the others."""
    proba, y = planted(300)
    labels = np.where(np.arange(300) % 2 == 0, y, -1)
    labels[labels == 3] = -1
    with pytest.raises(InputError, match="or 0 to 3, of which the labels show all but one"):
        Adjuster().fit(proba, labels)
    known = (labels >= 0).sum()
    as_floats = np.where(labels < 0, np.nan, labels)
    assert Adjuster(("bias",)).fit(proba, as_floats).verdict_.n_rows == known
    as_text = labels.astype(str)
    assert Adjuster(("bias",)).fit(proba, as_text).classes_.tolist() == ["-1", "0", "1", "2"]


def test_minus_one_among_columns_with_names():
    proba, y = planted(300)
    labels = np.where(y == 3, -1, y)
    with_minus_one = pd.DataFrame(proba, columns=[0, 1, 2, -1])
    assert Adjuster(("bias",)).fit(with_minus_one, labels).verdict_.n_rows == 300
    codes = pd.DataFrame(proba, columns=list("0123"))
    fitted = Adjuster(("bias",)).fit(codes, np.where(y == 3, -1, y))
    assert fitted.verdict_.n_rows == (y < 3).sum()


# The same answer every time.


def test_the_default_is_reproducible_and_says_how_sure_it_is():
    proba, y = planted(300)
    first, second = (Adjuster().fit(proba, y) for _ in range(2))
    assert first.verdict_ == second.verdict_
    np.testing.assert_array_equal(first.transform(proba), second.transform(proba))
    assert 2 <= first.verdict_.n_dealings <= 8
    assert 0 < first.verdict_.agreement <= 1


def test_the_order_of_classes_does_not_matter():
    proba, y = planted(500)
    order = np.array([2, 0, 3, 1])
    plain = Adjuster().fit(proba, y)
    swapped = Adjuster().fit(proba[:, order], np.argsort(order)[y])
    assert plain.family_ == swapped.family_
    assert plain.verdict_.gain == pytest.approx(swapped.verdict_.gain, abs=1e-3)
    np.testing.assert_allclose(
        plain.transform(proba)[:, order], swapped.transform(proba[:, order]), atol=2e-3
    )


# As an estimator.


def test_frames_names_and_explanations():
    proba, y = planted(600)
    names = np.array(["dog", "ant", "cat", "bee"])
    frame = pd.DataFrame(proba, columns=names)
    fitted = Adjuster().fit(frame, names[y])
    np.testing.assert_array_equal(fitted.classes_, names)
    assert set(fitted.predict(frame)) <= set(names)
    explained = fitted.explain(frame)
    changed = np.flatnonzero(fitted.predict(frame) != names[proba.argmax(axis=1)])
    np.testing.assert_array_equal(explained.row, changed)
    assert not fitted.check(frame).drifted
    assert fitted.check(frame[proba[:, 0] < 0.3]).drifted


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"families": ()}, "`families` must hold at least one family"),
        ({"families": "bias"}, "`families` must hold at least one family; it is 'bias'"),
        ({"families": ("forest",)}, "`families` must be .* it is 'forest'"),
        ({"significance": 2}, "`significance` must be a number between 0 and 1; it is 2"),
        ({"decision": "nonsense"}, "`decision` must be .* it is 'nonsense'"),
    ],
    ids=str,
)
def test_wrong_settings_are_told_before_any_work(settings, message):
    with pytest.raises(InputError, match=message):
        Adjuster(**settings).fit(None, None)


def test_it_is_the_front_door():
    assert "Adjuster" in altnorm.__all__


@pytest.mark.parametrize("depth", [1, 3])
def test_crossfitted_probabilities_are_those_of_a_fit_without_the_fold(depth):
    """Exact at depth 1, close beyond, as in the search."""
    proba, y = planted(400)
    folds = np.arange(400) % 4
    score, kind = resolve_scoring(None), resolve_kind(None)
    data = Validation(proba, y, None, None, proba[:0], kind, 10, None, score)
    setting = Setting(1.3, depth, 0.25, "all", 0.1)
    found = AlternatingFamily(GRID).crossfit_proba(Dealing(data, folds), setting)
    for k in range(4):
        inside = folds == k
        alone = AlternatingNormalizer(**setting._asdict()).fit(proba[~inside], y[~inside])
        expected = alone.transform(proba[inside])
        np.testing.assert_allclose(found[inside], expected, atol=1e-12 if depth == 1 else 0.02)


@pytest.mark.parametrize("bias", [0.0, 1.5])
def test_the_rows_given_are_only_read(bias):
    """They are not copied at the door, so nothing may work in their memory, adopted or not."""
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=400)
    proba = softmax(rng.normal(size=(400, 3)) + 2 * np.eye(3)[y] + [bias, 0, 0], axis=1)
    proba.setflags(write=False)
    fitted = Adjuster().fit(proba, y)
    assert fitted.verdict_.adopted == (bias > 0)
    fitted.transform(proba)


# Its stages are estimators, too.


@pytest.mark.parametrize(("decider", "calibration"), FORMS)
def test_frames_as_output_change_no_number(decider, calibration):
    """Not even where every estimator is told to return them."""
    proba, y = planted(200)
    fitted = assemble(decider, calibration, proba, y)
    expected = fitted.transform(proba)
    with config_context(transform_output="pandas"):
        found = fitted.transform(proba)
        assert isinstance(found, pd.DataFrame)
        np.testing.assert_array_equal(found.to_numpy(), expected)
        np.testing.assert_array_equal(
            fitted.predict(proba), fitted.classes_[expected.argmax(axis=1)]
        )


def test_fit_and_adapt_where_frames_are_the_output():
    proba, y = planted(400)
    plain = Adjuster(("bias",)).fit(proba, y)
    with config_context(transform_output="pandas"):
        framed = Adjuster(("bias",)).fit(proba, y)
        adapted = framed.adapt(proba[y > 1])
    assert framed.verdict_ == plain.verdict_
    assert adapted.shift_ == plain.adapt(proba[y > 1]).shift_


@pytest.mark.parametrize(("decider", "calibration"), FORMS)
def test_a_row_is_checked_once(decider, calibration, monkeypatch):
    proba, y = planted(200)
    fitted, calls = assemble(decider, calibration, proba, y), []
    check = _single.check_proba
    monkeypatch.setattr(_single, "check_proba", lambda *a, **k: calls.append(1) or check(*a, **k))
    fitted.transform(proba[:1])
    assert len(calls) == 1

"""Adjuster: what it promises, for every purpose and family, on data that hypothesis draws."""

from html import escape

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from scipy.special import softmax
from sklearn import config_context, metrics as sk
from sklearn.base import clone
from sklearn.model_selection import PredefinedSplit

import altnorm
from altnorm import Adjuster, AlternatingNormalizer, InputError
from altnorm.evidence.verdict import compare_predictions
from altnorm.peers import BiasCorrectedTemperature, CurveScaling, Identity, MatrixScaling
from tests.problems import MODES, calibrated, confused, planted, planted_labels

FAMILIES = ("alternating", "bias", "matrix", "curves")
COSTS = np.array([[0.0, 2, 4, 1], [1, 0, 1, 1], [3, 1, 0, 1]])
PURPOSES = [
    {},
    {"scoring": "balanced_accuracy"},
    {"scoring": "f1_macro"},
    {"scoring": "fbeta=2_weighted"},
    {"scoring": "matthews_corrcoef"},
    {"scoring": "neg_log_loss"},
    {"scoring": "top_k_accuracy"},
    {"costs": COSTS},
    {"costs": COSTS[:, :3]},
]
LABEL_SCORES = [None, "f1_macro", "accuracy", "f1_samples", "f1_weighted", "neg_log_loss"]


def draw(seed, n, bias, sharpness):
    """Predictions of three classes, more or less biased, more or less sure of themselves."""
    rng = np.random.default_rng(seed)
    y = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    y[:3] = np.arange(3)
    z = rng.normal(size=(n, 3)) + 1.5 * np.eye(3)[y] + [0, bias, 0]
    proba = softmax(sharpness * z, axis=1)
    proba.setflags(write=False)  # it is only read
    return proba, y


SIZES = st.integers(0, 1000), st.integers(30, 150)
PROBLEMS = st.builds(draw, *SIZES, st.sampled_from([0, 0.3, 1.5]), st.sampled_from([0.3, 1, 3]))


def gain(fitted, proba, y):
    return (fitted.predict(proba) == y).mean() - (proba.argmax(axis=1) == y).mean()


def check_verdict(fitted, before, decided_before, truth, given):
    """What a verdict, the model and the tables say must be the same story."""
    verdict = fitted.verdict_
    assert verdict.gain == pytest.approx(verdict.after - verdict.before, abs=1e-9)
    assert verdict.before == pytest.approx(before, abs=1e-9)
    assert verdict.ci_low <= verdict.gain <= verdict.ci_high
    assert (verdict.p_value < 0.05) == (verdict.ci_low > 0 or verdict.ci_high < 0)
    assert verdict.n_rows == len(truth)
    decided = verdict.n_fixed + verdict.n_broken + verdict.n_still_wrong + verdict.n_left
    assert decided == verdict.n_changed
    assert verdict.adopted == bool(verdict) == (verdict.reason == "")
    assert verdict.gates.passed == verdict.adopted
    if verdict.adopted:
        assert verdict.gain > 0
        assert verdict.evidence == verdict.gates.route
    elif decided_before is not None:
        np.testing.assert_array_equal(fitted.predict(given), decided_before)
    rise, test, *_ = verdict.gates
    assert (rise.name, rise.held, rise.value) == ("rise", verdict.gain > 0, verdict.gain)
    assert test.name == "score"
    assert test.held == (test.value < verdict.significance)
    assert min(test.value, 1 - test.value) == pytest.approx(verdict.p_value / 2)
    table = dict(zip(fitted.cv_results_["family"], fitted.cv_results_["log_loss"], strict=False))
    assert -fitted.calibration_.before == pytest.approx(table["none"])
    np.testing.assert_allclose(fitted.mixture_.weights.sum(), 1)
    assert str(verdict).endswith(".")


@settings(max_examples=18)
@given(PROBLEMS, st.sampled_from(PURPOSES), st.sampled_from(FAMILIES))
def test_a_verdict_is_one_story(problem, purpose, family):
    proba, y = problem
    fitted = Adjuster((family,), **purpose).fit(proba, y)
    before = proba.argmax(axis=1)
    score = compare_predictions(y, proba, proba, scoring=purpose.get("scoring")).before
    if "costs" in purpose:  # as they came, or of least cost, whichever does better
        costs = purpose["costs"]
        rules = before, (proba @ costs).argmin(axis=1)
        before = max(rules, key=lambda decided: -costs[y, decided].mean())
        score = -costs[y, before].mean()
        before = None if (before == 3).any() else before  # classes and None do not compare
    check_verdict(fitted, score, before, y, proba)
    after = fitted.transform(proba)
    np.testing.assert_allclose(after.sum(axis=1), 1)
    assert (after > 0).all()
    assert not np.shares_memory(after, proba)
    if not purpose or "log" in purpose.get("scoring", "") or "top" in purpose.get("scoring", ""):
        for rows in (proba, proba.astype(np.float32)):
            probable = fitted.transform(rows).argmax(axis=1)
            np.testing.assert_array_equal(fitted.predict(rows), probable)
    assert set(fitted.families_) == {family}


@settings(max_examples=6)
@given(st.integers(0, 1000), st.sampled_from(LABEL_SCORES), st.sampled_from(MODES))
def test_a_verdict_on_several_labels_is_one_story(seed, scoring, mode):
    proba, y = planted_labels(60, 3, seed)
    fitted = Adjuster(("alternating", "bias"), scoring=scoring, multilabel=mode).fit(proba, y)
    score = compare_predictions(y, proba, proba, scoring=scoring).before
    check_verdict(fitted, score, proba > 0.5, y, proba)
    assert len(fitted.verdict_.gates) == 2  # only the score counts
    decided = fitted.predict(proba)
    assert set(np.unique(decided)) <= {0, 1}
    looked_at = proba if fitted.decision_.on_input else fitted.transform(proba)
    np.testing.assert_array_equal(decided, looked_at > fitted.decision_.values)


# What it finds, and what it leaves alone.


@pytest.mark.parametrize("family", FAMILIES)
def test_a_bias_is_found_by_each_family_alone(family):
    fitted = Adjuster((family,)).fit(*planted(500))
    assert fitted.family_ == family
    fresh = planted(4000, seed=1)
    assert gain(fitted, *fresh) == pytest.approx(fitted.verdict_.gain, abs=0.06)
    assert fitted.families_[family].adopted
    assert sk.log_loss(fresh[1], fitted.transform(fresh[0])) < sk.log_loss(fresh[1], fresh[0]) - 0.2


def test_a_confusion_of_two_classes_is_found_by_the_matrix():
    fitted = Adjuster().fit(*confused(800))
    assert fitted.family_ == "matrix"
    assert isinstance(fitted.model_, MatrixScaling)
    assert set(fitted.families_) == set(FAMILIES)
    assert fitted.families_["matrix"].gain > fitted.families_["alternating"].gain
    assert fitted.families_["matrix"].gain > fitted.families_["bias"].gain
    assert gain(fitted, *confused(4000, seed=1)) > 0.05
    sentence = str(fitted.families_["alternating"])
    assert sentence.startswith("Not adopted: log loss")
    assert sentence.endswith("another family was chosen.")


def test_what_is_right_is_hardly_ever_changed():
    fits = [Adjuster().fit(*calibrated(200, seed)) for seed in range(15)]
    assert sum(fitted.verdict_.adopted for fitted in fits) <= 1
    proba, y = calibrated(10_000, 99)
    rises = [sk.log_loss(y, fitted.transform(proba)) - sk.log_loss(y, proba) for fitted in fits]
    assert np.mean(rises) < 0.01


@pytest.mark.parametrize("sharpness", [0.4, 3.0])
def test_where_only_the_confidence_is_wrong_a_temperature_is_what_is_applied(sharpness):
    proba, y = calibrated(2000)
    fitted = Adjuster(("bias",)).fit(softmax(sharpness * np.log(proba[:500]), axis=1), y[:500])
    assert fitted.mixture_.tempering[0] == pytest.approx(1 / sharpness, rel=0.2)
    assert fitted.calibration_.adopted
    assert not fitted.verdict_.adopted
    assert "fitted: Not adopted: accuracy" in repr(fitted)
    fresh = softmax(sharpness * np.log(proba[500:]), axis=1)
    assert sk.log_loss(y[500:], fitted.transform(fresh)) < sk.log_loss(y[500:], proba[500:]) + 0.02


@pytest.mark.parametrize("mode", MODES)
def test_several_labels_that_say_yes_too_rarely(mode):
    fitted = Adjuster(multilabel=mode).fit(*planted_labels(300))
    assert fitted.verdict_.scoring == "f1_micro"
    assert fitted.families_["matrix"].reason == "several_labels"
    proba, y = planted_labels(2000, seed=1)
    rise = fitted.score(proba, y) - sk.f1_score(y, proba > 0.5, average="micro")
    assert rise == pytest.approx(fitted.verdict_.gain, abs=0.06)
    assert rise > 0.1


def test_few_labels_per_class_leave_the_matrix_out():
    rng = np.random.default_rng(0)
    proba, y = rng.dirichlet(np.ones(30), 100), rng.integers(30, size=100)
    alone = Adjuster(("matrix",)).fit(proba, y)
    assert alone.families_["matrix"].reason == "too_few_labels"
    assert "too few labels per class" in str(alone.families_["matrix"])
    assert alone.family_ == "temperature"
    assert isinstance(alone.model_, Identity)


# Purposes.

DEAR = 1 - np.eye(4) + np.eye(4)[3][:, None] * 4  # to miss the last class


@pytest.mark.parametrize(
    ("purpose", "metric"),
    [
        ({}, sk.accuracy_score),
        ({"scoring": "balanced_accuracy"}, sk.balanced_accuracy_score),
        ({"scoring": "f1_macro"}, lambda y, d: sk.f1_score(y, d, average="macro")),
        ({"costs": DEAR}, lambda y, d: -DEAR[y, d].mean()),
    ],
    ids=["accuracy", "balanced", "f1", "costs"],
)
def test_decisions_serve_the_purpose_on_fresh_rows(purpose, metric):
    fitted = Adjuster(("bias",), **purpose).fit(*planted(500))
    proba, y = planted(4000, seed=1)
    assert fitted.score(proba, y) == pytest.approx(metric(y, fitted.predict(proba)))
    plain = Adjuster(("bias",)).fit(*planted(500))
    assert metric(y, fitted.predict(proba)) > metric(y, plain.predict(proba)) - 0.005
    rise = fitted.score(proba, y) - metric(y, proba.argmax(axis=1))
    assert rise == pytest.approx(fitted.verdict_.gain, abs=0.1)


def test_a_saved_model_is_scored_by_what_it_was_tuned_for(tmp_path):
    proba, y = planted(300)

    def saved(metric, **options):
        model = Adjuster(("bias",), scoring=sk.make_scorer(metric, **options)).fit(proba, y)
        model.save(tmp_path / f"{metric.__name__}.safetensors")
        return model, altnorm.load(tmp_path / f"{metric.__name__}.safetensors")

    fitted, loaded = saved(sk.f1_score, average="macro")
    assert loaded.score(proba, y) == fitted.score(proba, y)
    fitted, loaded = saved(sk.cohen_kappa_score)
    with pytest.raises(InputError, match=r"no score of one's own; .*kappa.*set_params\(scoring="):
        loaded.score(proba, y)
    loaded.set_params(scoring=fitted.scoring)
    assert loaded.score(proba, y) == fitted.score(proba, y)


def test_rows_may_be_left_to_a_person():
    proba, y = planted(400)
    names = np.array(["ant", "bee", "cat", "dog"])
    costs = {(name, None): 0.3 for name in names}
    fitted = Adjuster(("bias",), costs=costs).fit(proba, names[y])
    decided = fitted.predict(proba)
    left = np.array([name is None for name in decided])
    assert 0 < left.sum() < 400
    sure = fitted.transform(proba).max(axis=1)
    np.testing.assert_array_equal(left, sure < 0.7)  # where 0.3 is less than the expected cost
    np.testing.assert_array_equal(
        decided[~left], names[fitted.transform(proba).argmax(axis=1)[~left]]
    )
    expected = -(0.3 * left + (~left & (decided != names[y]))).mean()
    assert fitted.score(proba, names[y]) == pytest.approx(expected)


def test_rows_that_were_left_to_a_person_before_are_no_changes():
    proba, y = planted(400)
    costs = np.pad(1.0 - np.eye(4), ((0, 0), (0, 1)), constant_values=0.3)
    fitted = Adjuster(("bias",), costs=costs).fit(proba, y)
    before = np.where(proba.max(axis=1) < 0.7, 4, proba.argmax(axis=1))
    after = fitted._judged.decided  # cross-fitted
    assert ((before == 4) & (after == 4)).sum() > 50
    assert fitted.verdict_.n_changed == (before != after).sum()
    assert fitted.verdict_.n_left == ((after == 4) & (before != 4)).sum() > 0


# Without a temperature.


def test_without_calibration_rows_without_doubt_come_back_bit_for_bit():
    proba, y = planted(400)
    fitted = Adjuster(("alternating",), calibrate=False, k_max=2).fit(proba, y)
    assert isinstance(fitted.model_, AlternatingNormalizer)
    fresh, _ = planted(1000, seed=1)
    sure = altnorm.ambiguity(fresh, k_max=2) <= fitted.model_.threshold
    assert 0 < sure.sum() < 1000
    np.testing.assert_array_equal(fitted.transform(fresh)[sure], fresh[sure])
    assert not np.array_equal(fitted.transform(fresh), fresh)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_without_calibration_and_evidence_nothing_changes(dtype):
    proba, y = calibrated(150)
    proba = proba.astype(dtype)
    fitted = Adjuster(calibrate=False, significance=1e-12).fit(proba, y)
    assert fitted.family_ is None
    after = fitted.transform(proba)
    assert after.dtype == dtype
    assert not np.shares_memory(after, proba)
    np.testing.assert_array_equal(after, proba)


# What is cross-fitted has not seen the row.


def test_losses_are_those_of_fits_without_the_fold():
    proba, y = planted(200)
    pieces = PredefinedSplit(np.arange(200) * 4 // 200)  # a shuffled file is cut into these
    table = Adjuster(("matrix", "curves"), cv=4).fit(proba, y).cv_results_
    assert table["family"].tolist() == ["none", "temperature", "matrix", "curves"]
    _, _, for_matrix, for_curves = table["strength"]
    models = Identity(), MatrixScaling(for_matrix), CurveScaling(for_curves, facets=False)
    for model, log_loss in zip(models, table["log_loss"][[0, 2, 3]], strict=True):
        after = np.empty_like(proba)
        for train, test in pieces.split():
            after[test] = model.fit(proba[train], y[train]).transform(proba[test])
        # Iterations of a matrix end when they come to little.
        assert log_loss == pytest.approx(sk.log_loss(y, after), rel=3e-3)


# As an estimator.


def test_the_mixture_is_what_its_parts_say():
    proba, y = planted(300)
    fitted = Adjuster(("bias",)).fit(proba, y)
    by_hand = BiasCorrectedTemperature(fitted.cv_results_["strength"][-1]).fit(proba, y)
    slope, floor, share = fitted.mixture_.tempering
    tempered = (1 - share) * softmax(slope * np.maximum(np.log(proba), floor), axis=1) + share / 4
    parts = by_hand.transform(proba), tempered, proba, np.full(proba.shape, 0.25)
    mixed = sum(w * part for w, part in zip(fitted.mixture_.weights, parts, strict=True))
    np.testing.assert_allclose(fitted.transform(proba), mixed, atol=1e-12)


def test_frames_come_out_where_scikit_learn_is_told_so():
    proba, y = planted(300)
    frame = pd.DataFrame(proba, columns=list("abcd"))
    fitted = Adjuster(("bias",)).fit(frame, np.array(list("abcd"))[y])
    assert fitted.drift(frame[proba[:, 0] < 0.3]).drifted
    with config_context(transform_output="pandas"):
        assert isinstance(fitted.transform(frame), pd.DataFrame)
        assert isinstance(fitted.predict_proba(frame), np.ndarray)
        assert clone(fitted).fit(frame, np.array(list("abcd"))[y]).verdict_ == fitted.verdict_


@pytest.mark.parametrize("mode", [None, "pairs"])
def test_a_notebook_shows_what_was_found(mode):
    proba, y = planted(150) if mode is None else planted_labels(100)
    adjuster = Adjuster(("alternating", "bias"), multilabel=mode)
    before, fitted = repr(adjuster), adjuster.fit(proba, y)
    assert repr(fitted).startswith(before)
    assert "fitted: " in repr(fitted)
    assert repr(clone(fitted)) == before
    for page in (fitted._repr_mimebundle_()["text/html"], fitted._repr_html_()):
        assert escape(str(fitted.calibration_)) in page
        assert fitted.verdict_.gates.to_html() in page
    assert "95% interval" not in Adjuster()._repr_html_()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"families": ()}, "must name at least one of 'alternating', 'bias', 'matrix' and 'curv"),
        ({"families": "bias"}, "`families` must name at least one .* it is 'bias'"),
        ({"families": "f1_macro"}, "it is 'f1_macro'. Pass .* a goal is passed as scoring="),
        ({"families": None}, "must name at least one of .*; it is None. Pass for example"),
        ({"families": ("forest",)}, "`families` must name .* 'forest' is not one"),
        ({"significance": 2}, "`significance` must be a number between 0 and 1; it is 2"),
        ({"multilabel": "many"}, "`multilabel` must be .* it is 'many'"),
        ({"scoring": "f2"}, "`scoring` must be a score for single-label predictions; it is 'f2'"),
        ({"scoring": "r2"}, "must be a score for classification; 'r2' is not"),
        ({"prior": "flat"}, "`prior` must be .* it is 'flat'"),
        ({"k_max": 1}, "`k_max` must be an integer, 2 or greater"),
        ({"cv": 1}, "`cv` must be an integer, 2 or greater"),
        ({"input": "scores"}, "`input` must be .* it is 'scores'"),
    ],
    ids=str,
)
def test_wrong_settings_are_told(changes, message):
    with pytest.raises(InputError, match=message):
        Adjuster(**changes).fit(*planted(60))

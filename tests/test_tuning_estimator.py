"""AlternatingNormalizerCV as an estimator: reproducible, its records, weights, frames, errors."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from altnorm import AlternatingNormalizerCV
from altnorm._base.errors import InputError
from altnorm.adjuster.folds import assign_folds
from tests.problems import MODES, SMALL, planted, planted_labels

# Reproducible, in threads or not.


def same(one, other, proba):
    np.testing.assert_array_equal(one.transform(proba), other.transform(proba))
    assert one.best_params_ == other.best_params_
    assert one.verdict_ == other.verdict_
    for name, column in one.cv_results_.items():
        np.testing.assert_array_equal(column, other.cv_results_[name])


def test_a_random_state_reproduces():
    proba, y = planted(300)
    first, second = (AlternatingNormalizerCV(**SMALL).fit(proba, y) for _ in range(2))
    same(first, second, proba)
    state = {**SMALL, "random_state": np.random.RandomState(0)}
    same(AlternatingNormalizerCV(**state).fit(proba, y), first, proba)
    other = AlternatingNormalizerCV(**{**SMALL, "random_state": 1}).fit(proba, y)
    assert set(other.cv_results_["score"]) != set(first.cv_results_["score"])


@pytest.mark.parametrize("mode", [None, *MODES])
def test_threads_change_nothing(mode):
    proba, y = planted(300) if mode is None else planted_labels(200)
    one, two = (
        AlternatingNormalizerCV(**SMALL, multilabel=mode, n_jobs=n).fit(proba, y) for n in (1, 2)
    )
    same(one, two, proba)


def test_pickle_and_clone():
    proba, y = planted(300)
    names = np.array(["a", "b", "c", "d"])
    fitted = AlternatingNormalizerCV(**SMALL).fit(proba, names[y])
    again = pickle.loads(pickle.dumps(fitted))
    same(again, fitted, proba)
    np.testing.assert_array_equal(again.predict(proba), fitted.predict(proba))
    assert set(fitted.predict(proba)) <= set(names)
    assert clone(fitted).get_params() == fitted.get_params()


def test_parameters_are_stored_untouched():
    proba, y = planted(100)
    given = {
        "alphas": [1, 2],
        "depths": np.array([1]),
        "thresholds": [0.5],
        "references": ["all"],
        "smoothings": [0],
        "prior": [1, 1, 1, 1],
        "cv": KFold(3),
    }
    normalizer = AlternatingNormalizerCV(**given).fit(proba, y)
    for name, value in given.items():
        assert getattr(normalizer, name) is value


# What it records.


def test_cv_results():
    proba, y = planted(300)
    normalizer = AlternatingNormalizerCV(**SMALL).fit(proba, y)
    table = normalizer.cv_results_
    assert set(table) == {
        "family",
        "alpha",
        "depth",
        "threshold",
        "reference",
        "smoothing",
        "score",
        "gain",
        "n_changed",
        "rank",
    }
    assert len({column.shape for column in table.values()}) == 1
    assert sorted(table["rank"]) == list(range(1, table["rank"].size + 1))
    assert table["rank"][np.argmax(table["score"])] == 1
    base = (proba.argmax(axis=1) == y).mean()
    np.testing.assert_allclose(table["score"] - table["gain"], base)
    settings = list(zip(*(table[name] for name in normalizer.best_params_), strict=True))
    assert len(set(settings)) == len(settings)
    best = settings.index(tuple(normalizer.best_params_.values()))
    assert table["score"][best] == pytest.approx(table["score"].max())


def test_given_folds_are_used_once():
    proba, y = planted(300)
    parts = np.arange(300) < 150
    splits = [(np.flatnonzero(~parts), np.flatnonzero(parts))]
    splits.append(splits[0][::-1])
    normalizer = AlternatingNormalizerCV(**SMALL, cv=splits).fit(proba, y)
    again = AlternatingNormalizerCV(**{**SMALL, "random_state": 9}, cv=splits).fit(proba, y)
    same(normalizer, again, proba)


# Weights.


def test_weights_count():
    proba, y = planted(300)
    weight = np.random.default_rng(0).integers(0, 3, 300).astype(float)
    grid = {**SMALL, "depths": (1,)}
    weighted = AlternatingNormalizerCV(**grid, cv=KFold(3)).fit(
        proba, y, sample_weight=weight
    )
    right = proba.argmax(axis=1) == y
    assert weighted.verdict_.before == pytest.approx(np.average(right, weights=weight))
    repeat = weight.astype(int)
    folds = assign_folds(y, KFold(3), np.random.RandomState(0)).repeat(repeat)
    splits = [(np.flatnonzero(folds != k), np.flatnonzero(folds == k)) for k in range(3)]
    repeated = AlternatingNormalizerCV(**grid, cv=splits).fit(
        proba.repeat(repeat, axis=0), y.repeat(repeat)
    )
    np.testing.assert_allclose(
        weighted.cv_results_["score"], repeated.cv_results_["score"], rtol=1e-12
    )
    assert weighted.best_params_ == repeated.best_params_
    # What is subtracted for the choice is drawn at random, row by row.
    assert weighted.verdict_.gain == pytest.approx(repeated.verdict_.gain, abs=0.01)
    np.testing.assert_allclose(weighted.transform(proba), repeated.transform(proba), rtol=1e-9)


def test_metadata_routing():
    proba, y = planted(300)
    weight = np.random.default_rng(0).integers(1, 3, 300).astype(float)
    grid = {**SMALL, "depths": (1,), "n_repeats": 1}
    with config_context(enable_metadata_routing=True):
        asked = AlternatingNormalizerCV(**grid).set_fit_request(sample_weight=True)
        routed = make_pipeline(FunctionTransformer(), asked).fit(proba, y, sample_weight=weight)
    direct = AlternatingNormalizerCV(**grid).fit(proba, y, sample_weight=weight)
    same(routed[-1], direct, proba)


# Labels and frames.


def test_frames_and_names():
    proba, y = planted(300)
    names = np.array(["dog", "ant", "cat", "bee"])
    frame = pd.DataFrame(proba, columns=names)
    plain = AlternatingNormalizerCV(**SMALL).fit(proba, y)
    named = AlternatingNormalizerCV(**SMALL).set_output(transform="pandas").fit(frame, names[y])
    np.testing.assert_array_equal(named.classes_, names)
    np.testing.assert_array_equal(named.predict(frame), names[plain.predict(proba)])
    out = named.transform(frame)
    assert list(out.columns) == list(names)
    np.testing.assert_array_equal(out.to_numpy(), plain.transform(proba))


def test_logits():
    proba, y = planted(300)
    plain = AlternatingNormalizerCV(**SMALL).fit(proba, y)
    logits = AlternatingNormalizerCV(**SMALL, input="logits").fit(np.log(proba) + 2, y)
    assert plain.verdict_.adopted
    np.testing.assert_allclose(
        logits.transform(np.log(proba) + 2), plain.transform(proba), rtol=1e-9
    )


def test_classes_rarer_than_folds():
    proba, y = planted(300)
    y[y == 3] = 2
    y[:2] = 3
    for prior in (None, "shrunk"):
        normalizer = AlternatingNormalizerCV(**SMALL, prior=prior).fit(proba, y)
        assert np.isfinite(normalizer.transform(proba)).all()
        assert normalizer.classes_.size == 4


def test_confident_rows_that_one_dealing_leaves_to_one_fold():
    """Few confident rows: other dealings may leave a fold without, and nothing fails."""
    rng = np.random.default_rng(0)
    proba, y = softmax(0.3 * rng.normal(size=(60, 3)), axis=1), rng.integers(3, size=60)
    proba[:2] = [[0.999, 0.001, 0.0], [0.0, 0.999, 0.001]]
    for seed in range(10):
        settings = {**SMALL, "random_state": seed, "significance": 0.99}
        tuned = AlternatingNormalizerCV(**settings).fit(proba, y)
        assert np.isfinite(tuned.transform(proba)).all()


# Errors, by their text.


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"alphas": ()}, "`alphas` must hold at least one value"),
        ({"alphas": (0.0,)}, "`alphas` must be a finite number greater than 0; it is 0.0"),
        ({"depths": (0,)}, "`depths` must be an integer, 1 or greater; it is 0"),
        ({"depths": ()}, "`depths` must hold at least one value"),
        ({"thresholds": ()}, "`thresholds` must hold at least one value"),
        ({"thresholds": (-0.5,)}, "`thresholds` must be a finite number, 0 or greater"),
        ({"references": ("best",)}, "`references` must be .* it is 'best'"),
        ({"smoothings": (-1.0,)}, "`smoothings` must be a finite number, 0 or greater"),
        ({"prior": "flat"}, "`prior` must be .* it is 'flat'"),
        ({"scoring": "f2"}, "`scoring` must be a score for single-label predictions; it is 'f2'"),
        ({"multilabel": "many"}, "`multilabel` must be .* it is 'many'"),
        ({"cv": 1}, "`cv` must be an integer, 2 or greater"),
        ({"significance": 0.0}, "`significance` must be a number between 0 and 1; it is 0.0"),
        ({"decision": "nonsense"}, "`decision` must be .* it is 'nonsense'"),
        ({"n_repeats": 0}, "`n_repeats` must be an integer, 1 or greater"),
        ({"input": "scores"}, "`input` must be .* it is 'scores'"),
    ],
    ids=str,
)
def test_wrong_settings(settings, message):
    with pytest.raises(InputError, match=message):
        AlternatingNormalizerCV(**{**SMALL, **settings}).fit(*planted(60))


def test_labels_are_needed():
    with pytest.raises(InputError, match="requires y to be passed, but the target y is None"):
        AlternatingNormalizerCV().fit(planted(60)[0], None)


def test_no_confident_row():
    proba, y = np.full((40, 4), 0.25), np.arange(40) % 4
    with pytest.raises(InputError, match=r"No setting could be tried.*add 'all' to `references`"):
        AlternatingNormalizerCV(**SMALL, references=("confident",)).fit(proba, y)


def test_label_matrices_need_the_option():
    proba, y = planted(60)
    with pytest.raises(InputError, match=r"one class label per row.*multilabel='labelwise'"):
        AlternatingNormalizerCV(**SMALL).fit(proba, np.eye(4, dtype=int)[y])
    with pytest.raises(InputError, match=r"shape \(60,\)"):
        AlternatingNormalizerCV(**SMALL, multilabel="pairs").fit(proba, y)

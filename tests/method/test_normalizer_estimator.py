"""AlternatingNormalizer as an estimator: labels, data frames, scikit-learn's habits, errors."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer

from altnorm import AlternatingNormalizer, ambiguity
from altnorm._base.errors import InputError
from tests.problems import draw

# Class labels and data frames.


@pytest.mark.parametrize(
    "classes",
    [
        np.array(["ant", "bee", "cat"]),
        np.array(["ant", "bee", "cat"], dtype=object),
        np.array([10, 20, 30]),
        np.array([-1.0, 0.0, 1.0]),
        np.array([0, 1, 2], dtype=np.int8),
    ],
    ids=["str", "object", "int", "float", "int8"],
)
def test_labels_of_any_type(classes):
    proba, y = draw(60, 3)
    normalizer = AlternatingNormalizer().fit(proba, classes[y])
    np.testing.assert_array_equal(normalizer.classes_, classes)
    assert normalizer.classes_.dtype == classes.dtype
    np.testing.assert_array_equal(
        normalizer.predict(proba), classes[normalizer.transform(proba).argmax(axis=1)]
    )


def test_boolean_labels():
    proba, y = draw(60, 2)
    fitted = AlternatingNormalizer().fit(proba, y == 1)
    assert fitted.predict(proba).dtype == bool
    np.testing.assert_array_equal(fitted.predict(proba), fitted.transform(proba)[:, 1] > 0.5)
    only_true = AlternatingNormalizer(prior="uniform").fit(proba, np.ones(60, dtype=bool))
    np.testing.assert_array_equal(only_true.classes_, [False, True])


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_columns_named_after_the_classes(frame):
    proba, y = draw(60, 3)
    names = ["dog", "ant", "cat"]  # not in alphabetical order, and "cat" does not occur
    y[y == 2] = 0
    data = frame(dict(zip(names, proba.T, strict=True)))
    fitted = AlternatingNormalizer().fit(data, np.array(names)[y])
    np.testing.assert_array_equal(fitted.classes_, names)
    np.testing.assert_allclose(fitted.prior_, np.bincount(y, minlength=3) / 60)
    plain = AlternatingNormalizer().fit(proba, y)
    np.testing.assert_array_equal(fitted.predict(data), np.array(names)[plain.predict(proba)])
    np.testing.assert_array_equal(fitted.transform(data), plain.transform(proba))
    np.testing.assert_array_equal(fitted.get_feature_names_out(), names)


def test_columns_numbered_after_the_classes():
    proba, y = draw(60, 3)
    data = pd.DataFrame(proba, columns=[7, 3, 5])
    labels = np.array([7, 3, 5])[np.where(y == 2, 0, y)]
    fitted = AlternatingNormalizer().fit(data, labels)
    np.testing.assert_array_equal(fitted.classes_, [7, 3, 5])
    best = fitted.transform(data).argmax(axis=1)
    np.testing.assert_array_equal(fitted.predict(data), np.array([7, 3, 5])[best])
    np.testing.assert_allclose(fitted.prior_, np.bincount(np.where(y == 2, 0, y), minlength=3) / 60)


def test_other_column_names_leave_sorted_labels():
    proba, y = draw(60, 3)
    data = pd.DataFrame(proba, columns=["p1", "p2", "p3"])
    assert AlternatingNormalizer().fit(data, y + 5).classes_.tolist() == [5, 6, 7]
    assert AlternatingNormalizer().fit(data).classes_.tolist() == ["p1", "p2", "p3"]
    assert AlternatingNormalizer().fit(proba).classes_.tolist() == [0, 1, 2]


@pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])
def test_set_output(library):
    proba, y = draw(60, 3)
    name = library.__name__
    fitted = AlternatingNormalizer().set_output(transform=name).fit(proba, y)
    frame = fitted.transform(proba)
    assert isinstance(frame, library.DataFrame)
    assert list(frame.columns) == list(fitted.get_feature_names_out()) == ["x0", "x1", "x2"]
    plain = AlternatingNormalizer().fit(proba, y)
    np.testing.assert_array_equal(frame.to_numpy(), plain.transform(proba))
    np.testing.assert_array_equal(fitted.predict(proba), plain.predict(proba))


# scikit-learn's habits.

EVERYTHING = {
    "alpha": 2,
    "depth": 3,
    "threshold": 0.5,
    "k_max": 3,
    "prior": [0.2, 0.3, 0.5],
    "reference": "all",
    "smoothing": 0.1,
    "multilabel": None,
    "input": "logits",
}


def test_parameters_are_stored_untouched_and_cloned():
    proba, y = draw(60, 3)
    normalizer = AlternatingNormalizer(**EVERYTHING)
    normalizer.fit(np.log(proba), y)
    for name, value in EVERYTHING.items():
        assert getattr(normalizer, name) is value
    copy = clone(normalizer)
    assert copy.get_params() == normalizer.get_params()
    with pytest.raises(NotFittedError):
        copy.transform(proba)
    assert vars(copy).keys() == EVERYTHING.keys()


@pytest.mark.parametrize("depth", [1, 2])
def test_pickle(depth):
    proba, y = draw()
    fitted = AlternatingNormalizer(depth=depth).fit(proba, np.array(list("abcd"))[y])
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.transform(proba), fitted.transform(proba))
    np.testing.assert_array_equal(again.predict(proba), fitted.predict(proba))


def test_fitted_attributes():
    proba, y = draw()
    fitted = AlternatingNormalizer().fit(proba, y)
    sure = ambiguity(proba) <= 0.75
    np.testing.assert_array_equal(fitted.reference_, proba[sure])
    assert fitted.reference_weight_ is None
    assert fitted.n_features_in_ == 4
    weighted = AlternatingNormalizer().fit(proba, y, sample_weight=np.arange(60) + 1)
    np.testing.assert_array_equal(weighted.reference_weight_, (np.arange(60) + 1)[sure])


def test_k_max_reaches_the_ambiguity():
    proba, y = draw(60, 5)
    proba[0] = [0.8, 0.05, 0.05, 0.05, 0.05]  # the tail adds up to a doubt
    fitted = AlternatingNormalizer(k_max=2, threshold=0.4).fit(proba, y)
    sure = ambiguity(proba, k_max=2) <= 0.4
    assert sure.sum() > (ambiguity(proba) <= 0.4).sum()
    np.testing.assert_array_equal(fitted.reference_, proba[sure])


def test_in_a_pipeline():
    proba, y = draw()
    rounded = proba.round(2)
    divide = FunctionTransformer(lambda p: p / p.sum(axis=1, keepdims=True))
    pipeline = make_pipeline(divide, AlternatingNormalizer()).fit(rounded, y)
    expected = AlternatingNormalizer().fit(divide.transform(rounded), y)
    np.testing.assert_array_equal(
        pipeline.transform(rounded), expected.transform(divide.transform(rounded))
    )
    np.testing.assert_array_equal(
        pipeline.predict(rounded), expected.predict(divide.transform(rounded))
    )
    stacked = Pipeline([("can", AlternatingNormalizer()), ("top", LogisticRegression())])
    assert cross_val_score(stacked, proba, y, cv=3).mean() > 0.5


def test_frozen():
    validation, y = draw()
    fitted = AlternatingNormalizer().fit(validation, y)
    pipeline = make_pipeline(FrozenEstimator(fitted), LogisticRegression())
    proba, other = draw(seed=1)
    pipeline.fit(proba, other)
    assert pipeline[0].estimator is fitted
    np.testing.assert_array_equal(fitted.reference_, validation[ambiguity(validation) <= 0.75])
    np.testing.assert_array_equal(pipeline[:1].transform(proba), fitted.transform(proba))


def test_metadata_routing_passes_weights_through_a_pipeline():
    proba, y = draw()
    weight = np.random.default_rng(0).integers(1, 4, 60).astype(float)
    with config_context(enable_metadata_routing=True):
        asked = AlternatingNormalizer().set_fit_request(sample_weight=True)
        routed = make_pipeline(FunctionTransformer(), asked).fit(proba, y, sample_weight=weight)
    direct = AlternatingNormalizer().fit(proba, y, sample_weight=weight)
    np.testing.assert_array_equal(routed.transform(proba), direct.transform(proba))
    np.testing.assert_array_equal(routed[-1].reference_weight_, direct.reference_weight_)


# Errors, by their text.


def sum_to_wrong():
    proba, y = draw()
    proba[17] *= 1.3
    return proba, y


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"alpha": 0.0}, "`alpha` must be a finite number greater than 0; it is 0.0"),
        ({"alpha": np.nan}, "`alpha` must be a finite number"),
        ({"depth": 0}, "`depth` must be an integer, 1 or greater; it is 0"),
        ({"depth": 1.5}, "`depth` must be an integer, 1 or greater; it is 1.5"),
        ({"threshold": -1.0}, "`threshold` must be a finite number, 0 or greater"),
        ({"k_max": 1}, "`k_max` must be an integer, 2 or greater"),
        ({"smoothing": -0.1}, "`smoothing` must be a finite number, 0 or greater"),
        ({"reference": "some"}, "`reference` must be .*'confident'.*'all'.* it is 'some'"),
        ({"multilabel": "many"}, "`multilabel` must be .*'pairs'.*'labelwise'.* it is 'many'"),
        ({"input": "scores"}, "`input` must be .*'proba'.*'logits'.* it is 'scores'"),
        ({"prior": "flat"}, "`prior` must be .*'uniform'.*'shrunk'.* it is 'flat'"),
        ({"prior": [0.5, 0.5]}, r"`prior` must have one entry per class, shape \(4,\)"),
        ({"prior": [0.5, 0.5, -1, 1]}, "`prior` must be finite and not negative; 1 of 4"),
        ({"prior": [0, 0, 0, 0]}, "`prior` must give some class a positive weight"),
        (
            {"threshold": 0.0},
            "at least one row; none of 60 has an ambiguity of at most `threshold` 0, the lowest "
            "is .* pass reference='all'",
        ),
    ],
    ids=str,
)
def test_wrong_settings(settings, message):
    proba, y = draw()
    with pytest.raises(InputError, match=message):
        AlternatingNormalizer(**settings).fit(proba, y)


def test_rows_that_do_not_sum_to_one():
    proba, y = sum_to_wrong()
    message = r"must sum to 1; 1 of 60 rows do not, the first is row 17 \(sum 1.3\).*input='logits'"
    with pytest.raises(InputError, match=message):
        AlternatingNormalizer().fit(proba, y)
    with pytest.raises(InputError, match=message):
        AlternatingNormalizer().fit(draw()[0]).transform(proba)
    AlternatingNormalizer(input="logits", reference="all").fit(proba, y)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.zeros(59, dtype=int), "same number of rows; they have 60 and 59"),
        (
            np.zeros((60, 4), dtype=int),
            r"one class label per row; it has shape \(60, 4\).*multilabel=",
        ),
        (np.full(60, "a"), "must match the 4 columns of `proba`; there are 1 different labels"),
        (np.arange(60) % 5, "must match the 4 columns of `proba`; there are 5 different labels"),
        (np.full(60, 4), "must match the 4 columns"),
    ],
    ids=["length", "matrix", "names", "too many", "beyond"],
)
def test_labels_that_do_not_match(labels, message):
    with pytest.raises(InputError, match=message):
        AlternatingNormalizer().fit(draw()[0], labels)


def test_a_label_that_no_column_is_named_after():
    data = pd.DataFrame(draw(60, 3)[0], columns=["a", "b", "c"])
    with pytest.raises(InputError, match="must match the 3 columns"):
        AlternatingNormalizer().fit(data, np.array(["a", "z"]).repeat(30))


def test_one_column_is_not_enough():
    with pytest.raises(InputError, match=r"at least 2 classes; it has shape .*1 feature.*\[1 - p, p\]"):
        AlternatingNormalizer().fit(np.ones((5, 1)))


def test_negative_weights_are_an_error():
    proba, y = draw()
    with pytest.raises(ValueError, match="Negative values in data"):
        AlternatingNormalizer().fit(proba, y, sample_weight=-np.ones(60))


def test_rows_with_only_impossible_classes_are_left_and_counted():
    validation, _ = draw(60, 4)
    normalizer = AlternatingNormalizer(prior=[1, 1, 0, 0]).fit(validation)
    proba = np.array([[0, 0, 0.5, 0.5], [0.25, 0.25, 0.25, 0.25]])
    with pytest.warns(UserWarning, match="1 of 2 rows have only classes with prior zero"):
        adjusted = normalizer.transform(proba)
    np.testing.assert_array_equal(adjusted[0], proba[0])
    assert (adjusted[1, 2:] == 0).all()


@pytest.mark.parametrize("mode", [None, "pairs", "labelwise"])
@pytest.mark.parametrize("start", [{}, {"depth": 2}], ids=["depth 1", "depth 2"])
@pytest.mark.parametrize(
    "change",
    [{"alpha": 3.0}, {"smoothing": 0.5}, {"depth": 3}, {"depth": 1, "alpha": 0.4}],
    ids=str,
)
def test_settings_that_change_after_fit_hold(mode, start, change):
    proba, y = draw(n=80)
    y = np.eye(4, dtype=int)[y] if mode else y
    changed = AlternatingNormalizer(threshold=0.5, multilabel=mode, **start).fit(proba, y)
    changed.set_params(**change)
    fresh = AlternatingNormalizer(threshold=0.5, multilabel=mode).set_params(**start)
    fresh.set_params(**change).fit(proba, y)
    np.testing.assert_array_equal(changed.transform(proba), fresh.transform(proba))


def test_fitting_again_forgets_the_first_problem():
    proba, y = draw()
    again = AlternatingNormalizer(multilabel="labelwise").fit(proba, np.eye(4, dtype=int)[y])
    again.set_params(multilabel=None).fit(proba, y)
    once = AlternatingNormalizer().fit(proba, y)
    assert vars(again).keys() == vars(once).keys()
    np.testing.assert_array_equal(again.transform(proba), once.transform(proba))

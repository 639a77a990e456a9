"""AlternatingNormalizer on rows that sum to 1: against a naive loop, and scikit-learn's habits."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer

from altnorm import AlternatingNormalizer, ambiguity
from altnorm._validation import InputError
from altnorm.reference import shrink_frequencies

EXACT = 1e-12  # float64 against a float64 loop
SINGLE = 2e-5  # float32 against float64


def draw(n=60, m=4, seed=0, scale=2.0):
    """Predictions, some sure and some in doubt, and labels."""
    rng = np.random.default_rng(seed)
    y = rng.integers(m, size=n)
    y[:m] = np.arange(m)
    return softmax(scale * (rng.normal(size=(n, m)) + np.eye(m)[y]), axis=1), y


def loop(b, reference, prior, alpha=1.0, depth=1, weight=None, smoothing=0.0):
    """One doubtful row, by the two defining equations."""
    weight = np.ones(len(reference)) if weight is None else weight
    rows, share = np.vstack([reference, b]), np.append(weight, 1.0)
    for _ in range(depth):
        power = rows**alpha
        sums = share @ power + smoothing * weight.sum() * prior
        rows = power / sums * prior
        rows /= rows.sum(axis=1, keepdims=True)
    return rows[-1]


def by_loop(validation, proba, prior, threshold, reference="confident", weight=None, **settings):
    """What `transform` must return."""
    serves = (ambiguity(validation) <= threshold) | (reference == "all")
    weight = None if weight is None else weight[serves]
    out = proba.copy()
    for i in np.flatnonzero(ambiguity(proba) > threshold):
        out[i] = loop(proba[i], validation[serves], prior, weight=weight, **settings)
    return out


# What comes out.


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("alpha", [0.3, 1.0, 2.5])
@pytest.mark.parametrize("m", [2, 5])
@pytest.mark.parametrize("reference", ["confident", "all"])
@pytest.mark.parametrize("smoothing", [0.0, 0.4])
def test_transform_follows_the_defining_equations(m, alpha, depth, reference, smoothing):
    validation, y = draw(m=m)
    proba, _ = draw(m=m, seed=1)
    normalizer = AlternatingNormalizer(
        alpha, depth, 0.6, reference=reference, smoothing=smoothing
    ).fit(validation, y)
    prior = np.bincount(y, minlength=m) / y.size
    expected = by_loop(
        validation,
        proba,
        prior,
        0.6,
        reference,
        alpha=alpha,
        depth=depth,
        smoothing=smoothing,
    )
    np.testing.assert_allclose(normalizer.transform(proba), expected, rtol=EXACT, atol=EXACT)
    assert (expected != proba).any()
    assert (expected == proba).all(axis=1).any()


@settings(max_examples=30)
@given(
    seed=st.integers(0, 2**31),
    m=st.integers(2, 6),
    alpha=st.floats(0.2, 3.0),
    depth=st.integers(1, 3),
    threshold=st.floats(0.3, 1.0),
    reference=st.sampled_from(["confident", "all"]),
    weighted=st.booleans(),
)
def test_any_setting_follows_the_defining_equations(
    seed, m, alpha, depth, threshold, reference, weighted
):
    validation, y = draw(25, m, seed)
    validation[0] = np.eye(m)[0]  # somebody is sure
    proba, _ = draw(10, m, seed + 1, scale=1.0)
    weight = np.random.default_rng(seed).integers(1, 4, 25).astype(float) if weighted else None
    normalizer = AlternatingNormalizer(alpha, depth, threshold, reference=reference)
    normalizer.fit(validation, y, sample_weight=weight)
    prior = np.bincount(y, weights=weight, minlength=m) / (25 if weight is None else weight.sum())
    expected = by_loop(
        validation, proba, prior, threshold, reference, weight, alpha=alpha, depth=depth
    )
    np.testing.assert_allclose(normalizer.transform(proba), expected, rtol=1e-9, atol=EXACT)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("input", ["proba", "logits"])
def test_confident_rows_come_back_bit_for_bit(dtype, depth, input):
    validation, y = draw(200)
    if input == "logits":
        values = np.log(draw(200, seed=1)[0]).astype(dtype) + dtype(3)
        fitted = AlternatingNormalizer(depth=depth, input="logits").fit(np.log(validation), y)
        expected = softmax(values, axis=1)
    else:
        expected = values = draw(200, seed=1)[0].astype(dtype)
        fitted = AlternatingNormalizer(depth=depth).fit(validation, y)
    adjusted = fitted.transform(values)
    sure = ambiguity(expected) <= 0.75
    assert adjusted.dtype == dtype
    assert 0 < sure.sum() < 200
    np.testing.assert_array_equal(adjusted[sure], expected[sure])
    assert (adjusted[~sure] != expected[~sure]).any(axis=1).all()


def test_the_input_is_not_written_to():
    validation, y = draw()
    proba = draw(seed=1)[0]
    kept = proba.copy()
    AlternatingNormalizer(threshold=0.0, reference="all").fit(validation, y).transform(proba)
    np.testing.assert_array_equal(proba, kept)


@pytest.mark.parametrize("depth", [1, 3])
def test_a_row_does_not_depend_on_its_batch(depth):
    validation, y = draw(300, 6)
    proba, _ = draw(80, 6, seed=1)
    normalizer = AlternatingNormalizer(1.5, depth, 0.4).fit(validation, y)
    whole = normalizer.transform(proba)
    order = np.random.default_rng(0).permutation(80)
    shuffled = normalizer.transform(proba[order])
    np.testing.assert_allclose(shuffled, whole[order], rtol=EXACT, atol=EXACT)
    single = np.vstack([normalizer.transform(row[None, :]) for row in proba])
    np.testing.assert_allclose(single, whole, rtol=EXACT, atol=EXACT)


@pytest.mark.parametrize("depth", [1, 2])
def test_permuting_classes_permutes_the_result(depth):
    validation, y = draw(100, 5)
    proba, _ = draw(50, 5, seed=1)
    order = np.array([3, 0, 4, 1, 2])
    plain = AlternatingNormalizer(2.0, depth).fit(validation, y).transform(proba)
    moved = AlternatingNormalizer(2.0, depth).fit(validation[:, order], np.argsort(order)[y])
    np.testing.assert_allclose(
        moved.transform(proba[:, order]), plain[:, order], rtol=EXACT, atol=EXACT
    )


def test_thresholds_zero_and_one():
    validation, y = draw()
    proba = draw(seed=1)[0]
    nothing = AlternatingNormalizer(threshold=1.0).fit(validation, y)
    np.testing.assert_array_equal(nothing.transform(proba), proba)
    assert nothing.reference_.shape == validation.shape
    validation[:3] = np.eye(4)[:3]
    proba[0] = np.eye(4)[1]
    everything = AlternatingNormalizer(threshold=0.0).fit(validation, y)
    np.testing.assert_array_equal(everything.reference_, validation[:3])
    assert (everything.transform(proba) != proba).any(axis=1).tolist() == [False] + 59 * [True]


@pytest.mark.parametrize("depth", [1, 2])
def test_weight_two_is_a_repeated_row(depth):
    validation, y = draw()
    proba = draw(seed=1)[0]
    weight = np.random.default_rng(0).integers(0, 4, 60)
    for prior in (None, "shrunk"):
        weighted = AlternatingNormalizer(0.7, depth, prior=prior, smoothing=0.2)
        repeated = clone(weighted).fit(validation.repeat(weight, axis=0), y.repeat(weight))
        weighted.fit(validation, y, sample_weight=weight)
        np.testing.assert_allclose(weighted.prior_, repeated.prior_, rtol=EXACT)
        np.testing.assert_allclose(
            weighted.transform(proba), repeated.transform(proba), rtol=EXACT, atol=EXACT
        )


def test_single_precision_agrees_with_double():
    validation, y = draw()
    proba = draw(seed=1)[0].astype(np.float32)
    double = AlternatingNormalizer(2.0, 2).fit(validation, y)
    single = AlternatingNormalizer(2.0, 2).fit(validation.astype(np.float32), y)
    assert single.transform(proba).dtype == np.float32
    for fitted in (single, double):
        np.testing.assert_allclose(
            fitted.transform(proba), double.transform(proba.astype(float)), atol=SINGLE
        )


# The prior.


def test_priors():
    validation, y = draw(60, 3)
    counted = np.bincount(y, minlength=3) / 60

    def prior(value, labels=y):
        return AlternatingNormalizer(prior=value).fit(validation, labels).prior_

    np.testing.assert_allclose(prior(None), counted)
    np.testing.assert_array_equal(prior(None, None), np.full(3, 1 / 3))
    np.testing.assert_array_equal(prior("shrunk", None), np.full(3, 1 / 3))
    np.testing.assert_array_equal(prior("uniform"), np.full(3, 1 / 3))
    np.testing.assert_array_equal(prior("shrunk"), shrink_frequencies(counted, 60))
    np.testing.assert_allclose(prior([2, 1, 1]), [0.5, 0.25, 0.25])
    np.testing.assert_array_equal(prior(np.array([0.5, 0.5, 0.0])), [0.5, 0.5, 0.0])


def test_labels_serve_only_to_count():
    validation, y = draw()
    proba = draw(seed=1)[0]
    shuffled = np.random.default_rng(0).permutation(y)
    first, second = (AlternatingNormalizer().fit(validation, labels) for labels in (y, shuffled))
    np.testing.assert_array_equal(first.transform(proba), second.transform(proba))


def test_a_class_missing_from_validation_gets_nothing_if_in_doubt():
    validation, y = draw(60, 4)
    y[y == 3] = 0
    normalizer = AlternatingNormalizer().fit(validation, y)
    np.testing.assert_array_equal(normalizer.classes_, np.arange(4))
    doubt = ambiguity(validation) > 0.75
    adjusted = normalizer.transform(validation)
    assert (adjusted[doubt, 3] == 0).all()
    shrunk = AlternatingNormalizer(prior="shrunk").fit(validation, y)
    assert shrunk.prior_[3] > 0
    assert (shrunk.transform(validation)[:, 3] > 0).all()


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


def test_columns_in_another_order_are_an_error():
    proba, y = draw(60, 3)
    data = pd.DataFrame(proba, columns=["a", "b", "c"])
    fitted = AlternatingNormalizer().fit(data, np.array(["a", "b", "c"])[y])
    with pytest.raises(ValueError, match="feature names should match"):
        fitted.transform(data[["b", "a", "c"]])


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
        ({"prior": [0.5, 0.5]}, r"`prior` must have one entry a class, shape \(4,\)"),
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
            r"one class label a row; it has shape \(60, 4\).*multilabel=",
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
    with pytest.raises(InputError, match=r"at least 2 classes; it has 1 feature.*\[1 - p, p\]"):
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

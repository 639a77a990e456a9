"""AlternatingNormalizer: its values by the defining equations, labels, data frames, errors."""

import inspect

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from scipy.special import softmax

from altnorm import (
    Adjuster,
    AlternatingNormalizer,
    AlternatingNormalizerCV,
    InputError,
    alternating_normalization,
    ambiguity,
    peers,
    trajectory,
)
from altnorm.estimator.correction import tracing
from altnorm.method.scaling import log_product
from tests.oracle import oracle
from tests.problems import draw

EXACT = 1e-12  # from the defining equations


def by_oracle(validation, proba, threshold, reference, weight, **settings):
    """What `transform` must return."""
    serves = (ambiguity(validation) <= threshold) | (reference == "all")
    settings["reference_weight"] = None if weight is None else weight[serves]
    out, doubt = proba.copy(), ambiguity(proba) > threshold
    out[doubt] = oracle(proba[doubt], validation[serves], **settings)[-1]
    return out


# What comes out.


@settings(max_examples=40)
@given(
    seed=st.integers(0, 2**31),
    m=st.integers(2, 6),
    alpha=st.floats(0.2, 3.0),
    depth=st.integers(1, 3),
    threshold=st.floats(0.3, 1.0),
    reference=st.sampled_from(["confident", "all"]),
    weighted=st.booleans(),
    smoothing=st.sampled_from([0.0, 0.4]),
)
def test_any_setting_follows_the_defining_equations(
    seed, m, alpha, depth, threshold, reference, weighted, smoothing
):
    validation, y = draw(25, m, seed)
    validation[0] = np.eye(m)[0]  # somebody is sure
    proba, _ = draw(6, m, seed + 1, scale=1.0)
    weight = np.random.default_rng(seed).integers(1, 4, 25).astype(float) if weighted else None
    normalizer = AlternatingNormalizer(
        alpha, depth, threshold, reference=reference, smoothing=smoothing
    )
    normalizer.fit(validation, y, sample_weight=weight)
    prior = np.bincount(y, weights=weight, minlength=m) / (25 if weight is None else weight.sum())
    settings = {"prior": prior, "alpha": alpha, "depth": depth, "smoothing": smoothing}
    expected = by_oracle(validation, proba, threshold, reference, weight, **settings)
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


# The prior.


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


@pytest.mark.parametrize("depth", [1, 3])
def test_a_reference_of_impossible_classes_leaves_prior_and_smoothing(depth):
    """To rows here, and to those of a PyTorch module or an ONNX graph."""
    reference, proba = np.array([[0.0, 0.0, 1.0]]), np.array([[0.5, 0.3, 0.2]])
    settings = {"alpha": 2.0, "depth": depth, "prior": np.array([0.7, 0.3, 0.0]), "smoothing": 0.5}
    model = AlternatingNormalizer(threshold=0.3, reference="all", **settings).fit(reference)
    expected = oracle(proba, reference, **settings)[-1]
    np.testing.assert_allclose(model.transform(proba), expected, atol=EXACT)
    engine = tracing(log_product, lambda p, doubt, change: change(p))
    with np.errstate(divide="ignore", invalid="ignore"):
        traced = model.correction().unrolled().probabilities(proba, engine)
    np.testing.assert_allclose(traced, expected, atol=EXACT)


# Class labels and data frames.


@pytest.mark.parametrize(
    ("classes", "dtype"),
    [
        (np.array(["ant", "bee", "cat"], dtype=object), object),
        (np.array([10, 20, 30]), int),
        (np.array([10, 20, 30], dtype=object), int),
        (np.array([-1.0, 0.0, 1.0]), float),
        (np.array([0, 1, 2], dtype=np.int8), np.int8),
        (np.array([False, True]), bool),
    ],
)
def test_labels_of_any_type(classes, dtype):
    proba, y = draw(60, len(classes))
    normalizer = AlternatingNormalizer().fit(proba, classes[y])
    decided = normalizer.predict(proba)
    np.testing.assert_array_equal(normalizer.classes_, classes)
    assert decided.dtype == normalizer.classes_.dtype == dtype
    np.testing.assert_array_equal(decided, classes[normalizer.transform(proba).argmax(axis=1)])


def test_which_class_a_column_stands_for():
    proba, y = draw(60, 3)
    named = pd.DataFrame(proba, columns=["p1", "p2", "p3"])
    of_two, fit = np.eye(2)[y % 2], AlternatingNormalizer(prior="uniform").fit
    assert fit(named, y + 5).classes_.tolist() == [5, 6, 7]  # names of columns that are no labels
    assert fit(named).classes_.tolist() == ["p1", "p2", "p3"]
    assert fit(proba).classes_.tolist() == [0, 1, 2]
    assert fit(of_two, np.ones(60, dtype=bool)).classes_.tolist() == [False, True]


# Errors, by their text.


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"depth": 0}, "`depth` must be an integer from 1 to 10000; it is 0"),
        ({"threshold": 75}, "`threshold` must be a number from 0 to 1; it is 75. Pass for example"),
        ({"reference": "some"}, "`reference` must be 'confident' or 'all'; it is 'some'. Pass for"),
        (
            {"reference": np.eye(4)},
            r"it is an array of shape \(4, 4\)\. Give these rows to `fit`, with reference='all'",
        ),
        ({"multilabel": "many"}, "`multilabel` must be .*'pairs'.*'labelwise'.* it is 'many'"),
        ({"input": "scores"}, "`input` must be .*'proba'.*'logits'.* it is 'scores'"),
        ({"prior": "flat"}, "`prior` must be .*'uniform'.*'shrunk'.* it is 'flat'"),
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


NAMED = pd.DataFrame(draw(60, 4)[0], columns=list("abcd"))


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.zeros(59, dtype=int), "same number of rows; they have 60 and 59"),
        (np.zeros((60, 4), dtype=int), r"one class label per row; it has shape \(60, 4\).*multil"),
        (np.full(60, "z"), "must match the 4 columns of `proba`; every label is 'z'"),
        (np.arange(60) % 5, "must match the 4 columns of `proba`; there are 5 different labels"),
        (np.full(60, 4), "must match the 4 columns"),
        (np.array(["a", "z"]).repeat(30), "must match the 4 columns"),
    ],
    ids=["length", "matrix", "names", "too many", "beyond", "no column of that name"],
)
def test_labels_that_do_not_match(labels, message):
    for proba in (draw()[0], NAMED):
        with pytest.raises(InputError, match=message):
            AlternatingNormalizer().fit(proba, labels)


def test_fitting_again_forgets_the_first_problem():
    proba, y = draw()
    again = AlternatingNormalizer(multilabel="labelwise").fit(proba, np.eye(4, dtype=int)[y])
    again.set_params(multilabel=None).fit(proba, y)
    once = AlternatingNormalizer().fit(proba, y)
    assert vars(again).keys() == vars(once).keys()
    np.testing.assert_array_equal(again.transform(proba), once.transform(proba))


@pytest.mark.parametrize("kind", [int, float, str, object])
def test_few_labels_of_many_classes_are_not_taken_for_a_regression(kind):
    names = np.arange(120).astype(str if kind is object else kind).astype(kind)
    proba = pd.DataFrame(np.full((60, 120), 1 / 120), columns=names)
    fitted = AlternatingNormalizer(reference="all").fit(proba, names[::2])  # warnings are errors
    assert fitted.classes_.tolist() == names.tolist()


def test_another_number_of_columns_is_told_in_classes():
    fitted = AlternatingNormalizer(reference="all").fit(np.eye(3))
    message = r"^`proba` must have one column per class, 3; it has 2 .* in the order of `classes_`"
    with pytest.raises(InputError, match=message):
        fitted.transform(np.array([[0.4, 0.6]]))


# What readers of the paper try.


OF_A_FUNCTION = {"d": "depth", "q": "prior", "A0": "reference", "b0": "proba"}
CHOSEN = {"alpha": "alpha", "d": "depth", "tau": "threshold"}


@pytest.mark.parametrize(
    ("call", "here", "chosen"),
    [
        (AlternatingNormalizer, {"d": "depth", "tau": "threshold", "q": "prior", "k": "k_max"}, {}),
        (AlternatingNormalizerCV, {"d": "depths", "tau": "thresholds", "alpha": "alphas"}, {}),
        (AlternatingNormalizerCV.as_published, {"k": "k_max"}, CHOSEN),
        (Adjuster, {"k": "k_max"}, CHOSEN),
        (alternating_normalization, OF_A_FUNCTION, {}),
        (trajectory, OF_A_FUNCTION, {}),
    ],
)
def test_a_symbol_of_the_paper_is_answered_with_our_name(call, here, chosen):
    for symbol, name in here.items():
        with pytest.raises(TypeError, match=f"the paper's {symbol} is `{name}` here"):
            call(**{symbol: 2})
        assert name in inspect.signature(call).parameters
    for symbol, name in chosen.items():
        message = f"`{name}` of AlternatingNormalizer; here the fit chooses it"
        with pytest.raises(TypeError, match=message):
            call(**{symbol: 2})
    with pytest.raises(TypeError, match="unexpected keyword argument 'eta'"):
        call(eta=2)


@pytest.mark.parametrize(
    ("label", "message"), [("a", r" numbers, 0 to 2; to name"), (3, r" the classes.*\[0, 1, 2\]")]
)
def test_labels_that_are_no_column_numbers(label, message):
    proba, _ = draw(50, 3)
    normalizer = AlternatingNormalizer().fit(proba)
    assert normalizer.score(proba, normalizer.predict(proba)) == 1
    with pytest.raises(InputError, match=f"Each label must be one of.*{message}"):
        normalizer.score(proba, [label] * 50)


def test_the_score_is_accuracy_or_micro_f1():
    rng = np.random.default_rng(0)
    proba, y, weight = rng.dirichlet(np.ones(3), 80), rng.choice(list("abc"), 80), rng.random(80)
    for estimator in (AlternatingNormalizer(reference="all"), peers.Identity()):
        model = estimator.fit(proba, y)
        assert model.score(proba, y) == pytest.approx(np.mean(model.predict(proba) == y))
        expected = np.average(model.predict(proba) == y, weights=weight)
        assert model.score(proba, y, weight) == pytest.approx(expected)
    proba, y = rng.random((80, 3)), rng.integers(2, size=(80, 3))
    several = AlternatingNormalizer(multilabel="labelwise").fit(proba, y)
    decided = several.predict(proba)
    expected = 2 * np.sum(y * decided) / (y.sum() + decided.sum())
    assert several.score(proba, y) == pytest.approx(expected)

"""Bad input: one sentence each, with the rule, the offender, its value and the remedy."""

from __future__ import annotations

import re
from datetime import date
from functools import partial

import array_api_strict
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.linear_model import LogisticRegression

import altnorm
from altnorm import (
    Adjuster,
    AlternatingNormalizer,
    InputError,
    alternating_normalization,
    ambiguity,
)
from altnorm.peers import BiasCorrectedTemperature

GOOD = np.array([[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]])


def spoiled(value, row=1, column=2):
    proba = GOOD.copy()
    proba[row, column] = value
    return proba


TWO_CLASSES = (
    "or one probability p per row of two classes, pass np.column_stack([1 - p, p]), and for one "
    "logit z np.column_stack([0 * z, z])"
)
BAD_PROBA = {
    "sum": (
        spoiled(0.9),
        "Each row of `{name}` must sum to 1; 1 of 2 rows do not, the first is row 1 (sum 1.1). If "
        "these are logits, turn them into probabilities first (softmax); if they are rounded or "
        "percentages, divide each row by its sum.",
    ),
    "negative": (
        np.array([[0.5, 0.3, 0.2], [1.5, -0.5, 0.0]]),
        "`{name}` must not be negative; 1 of 6 entries are, the first is row 1, column 1 (-0.5). "
        "If these are logits, turn them into probabilities first (softmax).",
    ),
    "NaN": (
        spoiled(np.nan),
        "`{name}` must be finite; 1 of 6 entries are not, the first is row 1, column 2 (nan). Drop",
    ),
    "minus inf": (spoiled(-np.inf, row=0), "`{name}` must be finite; 1 of 6 entries are not"),
    "integers": (
        np.eye(3, dtype=np.int64),
        "`{name}` must hold floating-point numbers; its dtype is int64. Convert it, for example "
        "with `{name}.astype(float)`, if its values really are probabilities.",
    ),
    "complex": (np.eye(3, dtype=complex), "`{name}` must hold floating-point numbers; its dtype"),
    "one dimension": (
        GOOD[0],
        "`{name}` must be two-dimensional, one row per example and one column per class; it has "
        f"shape (3,). Reshape your data: f{TWO_CLASSES}; a single row is `{{name}}[None, :]`.",
    ),
    "one column": (
        np.ones((4, 1)),
        "`{name}` must have one column per class and at least 2 classes; it has shape (4, 1), 1 "
        f"feature(s). F{TWO_CLASSES}.",
    ),
}

ALPHA = "`alpha` must be a finite number greater than 0; it is {}."
WEIGHT = (
    "`{}` must be finite and not negative; 1 of {} entries are not, the first is entry {} ({})."
)
BAD_KEYWORDS = [
    ({"alpha": 0}, ALPHA.format(0) + " Pass for example alpha=1.0."),
    *(({"alpha": value}, ALPHA.format(repr(value))) for value in (np.nan, np.inf, "1", True)),
    *(({"depth": value}, "`depth` must be an integer, 1 or greater") for value in (0, 2.0, True)),
    ({"smoothing": -0.1}, "`smoothing` must be a finite number, 0 or greater; it is -0.1."),
    ({"prior": [0.5, 0.5]}, "`prior` must have one entry per class, shape (3,); it has shape (2,)"),
    ({"prior": [1, -2, 1]}, WEIGHT.format("prior", 3, 1, -2) + " Pass frequencies or counts."),
    ({"prior": [1, 1, np.nan]}, WEIGHT.format("prior", 3, 2, "nan")),
    (
        {"prior": [0, 0, 0]},
        "`prior` must give some class a positive weight; all 3 entries are zero. Pass class "
        "frequencies, or None for a uniform prior.",
    ),
    ({"prior": ["a", "b", "c"]}, "`prior` must hold numbers; its dtype is <U1. Pass 3 numbers."),
    ({"reference_weight": [1.0]}, "`reference_weight` must have one entry per reference row,"),
    ({"reference_weight": [np.nan, 1.0]}, WEIGHT.format("reference_weight", 2, 0, "nan")),
    (
        {"reference_weight": [0, 0]},
        "`reference_weight` must give some row a positive weight; all 2 entries are zero. Pass N",
    ),
]


def says(sentence):
    """A pattern that matches errors which begin with `sentence`."""
    return "^" + re.escape(sentence)


@pytest.mark.parametrize(("proba", "sentence"), BAD_PROBA.values(), ids=BAD_PROBA)
def test_bad_probabilities(proba, sentence):
    calls = [
        ("proba", lambda: ambiguity(proba)),
        ("proba", lambda: altnorm.topk_entropy(proba, 2)),
        ("proba", lambda: alternating_normalization(proba, GOOD)),
        ("proba", lambda: altnorm.trajectory(proba, GOOD)),
        ("reference", lambda: alternating_normalization(GOOD, proba)),
        ("reference", lambda: altnorm.trajectory(GOOD, proba)),
    ]
    for name, call in calls:
        with pytest.raises(InputError, match=says(sentence.format(name=name))):
            call()


@pytest.mark.parametrize(("keywords", "sentence"), BAD_KEYWORDS, ids=lambda case: str(case)[:30])
def test_bad_keywords(keywords, sentence):
    for function in (alternating_normalization, altnorm.trajectory):
        with pytest.raises(InputError, match=says(sentence)):
            function(GOOD, GOOD, **keywords)


@pytest.mark.parametrize(
    ("reference", "sentence"),
    [
        (np.array([[0.5, 0.5]]), "`proba` and `reference` must have the same classes; `proba` has"),
        (np.empty((0, 3)), "`reference` must have at least one row; it has none."),
        (array_api_strict.asarray(GOOD), "`proba` and `reference` must come from one array libra"),
    ],
    ids=["classes", "empty", "library"],
)
def test_references_that_do_not_fit(reference, sentence):
    with pytest.raises(InputError, match=says(sentence)):
        alternating_normalization(GOOD, reference)


@pytest.mark.parametrize("k", [1, 4, 2.0, True, "2", None])
def test_sizes_of_the_top(k):
    sentence = f"`k` must be an integer from 2 to 3; it is {k!r}. Pass for example k=2."
    with pytest.raises(InputError, match=says(sentence)) as caught:
        altnorm.topk_entropy(GOOD, k)
    assert (caught.value.code, caught.value.value) == ("parameter", k)
    if k != 4:
        with pytest.raises(InputError, match=says("`k_max` must be an integer, 2 or greater")):
            ambiguity(GOOD, k_max=k)


def test_errors_about_types_are_of_both_kinds():
    for kind in (TypeError, ValueError):
        with pytest.raises(kind, match="floating-point"):
            ambiguity(np.eye(2, dtype=int))


def test_numbers_of_any_type_and_precision_are_accepted():
    scalars = {"alpha": np.float32(2.0), "depth": np.int64(2), "smoothing": np.float64(0.5)}
    whole = {"alpha": 2, "prior": [1, 2, 3], "reference_weight": np.array([1, 2])}
    for typed in (scalars, whole):
        plain = {key: np.float64(x) if key != "depth" else 2 for key, x in typed.items()}
        adjusted = [alternating_normalization(GOOD, GOOD, **options) for options in (typed, plain)]
        assert_array_equal(*adjusted)
    single = np.random.default_rng(0).dirichlet(np.ones(1000), 20).astype(np.float32)
    assert ambiguity(single).dtype == ambiguity(GOOD.astype(np.float16)).dtype == np.float32
    assert ambiguity(single.astype(np.float64)).dtype == np.float64  # its sums are not exact


# What scikit-learn would refuse in its own words, what it would let pass.

PROBLEM = np.random.default_rng(0).dirichlet(np.ones(3), 60)
LABELS = np.arange(60) % 3
BIAS, NORMALIZER = Adjuster(("bias",)), AlternatingNormalizer()
FITTED = BiasCorrectedTemperature().fit(PROBLEM, LABELS)
WRAPPED = altnorm.AdjustedClassifier(LogisticRegression())


def assert_refused(message, *calls):
    for call in calls:
        with pytest.raises(InputError, match=message):
            call()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1, 2, 3], r"`proba` must be two-dimensional.*it has shape \(3,\)\. Reshape"),
        (spoiled(np.nan), r"`proba` must be finite; 1 of 6 .* row 1, column 2 \(nan\)\. Drop"),
        (spoiled(-np.inf).tolist(), r"`proba` must be finite; 1 of 6 .* \(-inf\)\. Drop"),
        (pd.DataFrame(spoiled(np.nan)), r"`proba` must be finite; 1 of 6"),
        (spoiled(0.9), r"first is row 1 \(sum 1\.1\).* input='logits'"),
        ([["a", "b", "c"]], "`proba` must hold floating-point numbers; its dtype is <U1"),
    ],
)
def test_estimators_refuse_in_our_own_words(values, message):
    rows = range(len(values))
    assert_refused(
        message, lambda: FITTED.transform(values), lambda: BIAS.fit(values, LABELS[rows])
    )


MASKED = np.ma.masked_array(PROBLEM, mask=np.arange(180).reshape(60, 3) == 7)
MASKED_LABELS = np.ma.masked_array(LABELS, mask=np.arange(60) == 2)
TOP = {"n_classes": 3, "input": "proba"}


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("proba", lambda: FITTED.transform(MASKED)),
        ("proba", lambda: BIAS.fit(MASKED, LABELS)),
        ("proba", lambda: ambiguity(MASKED)),
        ("reference", lambda: alternating_normalization(PROBLEM, MASKED)),
        ("y", lambda: Adjuster(multilabel="labelwise").fit(PROBLEM, MASKED.round())),
        ("values", lambda: altnorm.from_topk(np.tile([0, 1, 2], (60, 1)), MASKED, **TOP)),
        ("costs", lambda: Adjuster(("bias",), costs=MASKED[:3]).fit(PROBLEM, LABELS)),
        ("y", lambda: BIAS.fit(PROBLEM, MASKED_LABELS)),
        ("y", lambda: WRAPPED.fit(PROBLEM, MASKED_LABELS)),
        ("y", lambda: FITTED.score(PROBLEM, MASKED_LABELS)),
        ("groups", lambda: BIAS.fit(PROBLEM, LABELS, groups=MASKED_LABELS)),
        ("sample_weight", lambda: BIAS.fit(PROBLEM, LABELS, sample_weight=MASKED_LABELS)),
        ("y", lambda: altnorm.compare(PROBLEM, MASKED_LABELS, PROBLEM, LABELS)),
        ("y", lambda: altnorm.judge(FITTED, PROBLEM, np.empty(0, int), MASKED_LABELS)),
        ("asked", lambda: altnorm.judge(FITTED, PROBLEM, MASKED_LABELS, [])),
        ("indices", lambda: altnorm.from_topk(MASKED_LABELS[:, None], np.ones((60, 1)), **TOP)),
    ],
)
def test_masked_entries_are_refused(name, call):
    assert_refused(rf"`{name}` must have no masked .* 1 of \d+ .* row 2", call)


def test_a_masked_array_without_masked_entries_is_an_array():
    nothing_masked = np.ma.masked_array(PROBLEM, mask=False)
    assert_array_equal(FITTED.transform(nothing_masked), FITTED.transform(PROBLEM))


@pytest.mark.parametrize("kind", [object, "string", "Int64"])
def test_missing_labels_are_told_where_all_are_needed(kind):
    labels = LABELS.astype(object) if kind is object else pd.Series(LABELS).astype(kind)
    labels[2] = None
    for call in (NORMALIZER.fit, FITTED.score, WRAPPED.fit):
        with pytest.raises(ValueError, match=r"label for every row; 1 of 60 rows .* row 2"):
            call(PROBLEM, labels)


DATES = [date(2026, 1, day) for day in (1, 2, 3)]


HALVES = np.array([0.5, 1.5, 2.5])


@pytest.mark.parametrize(
    "classes", [DATES, HALVES, HALVES.astype(object), [b"a", b"b", b"c"], [0.0, 1.0, np.inf]]
)
def test_what_cannot_be_a_class_is_told(classes):
    labels, message = np.array(classes)[LABELS], "classes must be text, whole .*; `{}` holds"
    calls = (partial(call, PROBLEM, labels) for call in (BIAS.fit, FITTED.score, WRAPPED.fit))
    assert_refused(message.format("y"), *calls)
    assert_refused(message.format("classes"), partial(BIAS.fit, PROBLEM, LABELS, classes=classes))


def test_numbers_are_no_names():
    named = Adjuster(("bias",)).fit(PROBLEM, np.array(["a", "b", "c"], dtype=object)[LABELS])
    assert_refused("one of the classes; 60 of 60 are not", lambda: named.score(PROBLEM, LABELS))


@pytest.mark.parametrize("odd", [0, 2])
def test_labels_of_several_kinds_are_refused(odd):
    labels = LABELS.astype(object)
    labels[odd] = "x"
    calls = (partial(estimator.fit, PROBLEM, labels) for estimator in (BIAS, NORMALIZER))
    assert_refused("labels of one kind; it holds int, str", *calls)


@pytest.mark.parametrize(("weight", "shown"), [(1e-50, "1e-50"), (1e50, r"1e\+50")])
def test_weights_that_no_reference_makes_sense_of_are_refused(weight, shown):
    """The row itself, or rounding, was all that was left."""
    message = rf"The largest `sample_weight` must be from 1e-09 to 1e\+15; it is {shown}\. Divide"
    weights = np.full(60, weight)
    assert_refused(message, lambda: NORMALIZER.fit(PROBLEM, LABELS, sample_weight=weights))


def test_weights_whose_sum_overflows_are_refused():
    weights = np.append([1e308, 1e308], np.ones(58))
    assert_refused(
        r"at most 1\.0e\+150; 2 of .* row 0 \(1e\+308\)\. Divide",
        lambda: alternating_normalization(PROBLEM, PROBLEM, reference_weight=weights),
        lambda: alternating_normalization(PROBLEM, PROBLEM, prior=weights[:3]),
    )


def test_a_message_is_short_whatever_it_is_made_of():
    error = InputError("rule " * 1000, "offender " * 1000, "remedy " * 1000)
    assert len(str(error)) < 2000
    assert error.offender == "offender " * 1000
    assert len(str(InputError("a" * 10**6))) < 3000

"""The door: a refused or failed `fit` changes nothing, and columns may be named."""

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import scale

from altnorm import (
    AdjustedClassifier,
    Adjuster,
    AlternatingNormalizer,
    AlternatingNormalizerCV,
    InputError,
    peers,
)
from tests.problems import SMALL, planted, planted_labels

SINGLE = [
    Adjuster(("bias",)),
    AlternatingNormalizerCV(**SMALL),
    AlternatingNormalizer(),
    peers.Identity(),
    peers.TemperatureScaling(),
    peers.BiasCorrectedTemperature(1.0),
    peers.BatchCalibration(),
    peers.MatrixScaling(4.0),
]
MULTI = [
    Adjuster(("bias",), multilabel="labelwise"),
    AlternatingNormalizer(multilabel="labelwise"),
    peers.LabelThresholds(),
]
CLASSIFIER = AdjustedClassifier(LogisticRegression(), Adjuster(("bias",)), cv=2)
NAMES = np.array(["ant", "bee", "cat", "dog"])


def data_for(estimator, seed=0):
    if getattr(estimator, "multilabel", None) is not None:
        return planted_labels(120, 4, seed)
    proba, y = planted(120, seed)
    return proba, NAMES[y]


def name_of(estimator):
    return f"{type(estimator).__name__}-{getattr(estimator, 'multilabel', None)}"


# A refused or failed fit leaves everything as it was.


class PoisonedError(Exception):
    """What breaks in the middle of a fit."""


@pytest.mark.parametrize("estimator", [*SINGLE, *MULTI, CLASSIFIER], ids=name_of)
def test_a_fit_that_breaks_anywhere_leaves_what_was_fitted(estimator, monkeypatch):
    fitted = clone(estimator).fit(*data_for(estimator))
    before, learnt = joblib.hash(vars(fitted)), [name for name in vars(fitted) if name[-1] == "_"]
    again = data_for(estimator, seed=1)
    for poison in learnt:

        def refuse(self, name, value, poison=poison):
            if name == poison:
                raise PoisonedError
            object.__setattr__(self, name, value)

        with monkeypatch.context() as patch:
            patch.setattr(type(fitted), "__setattr__", refuse)
            with pytest.raises(PoisonedError):
                fitted.fit(*again)
        assert joblib.hash(vars(fitted)) == before, poison
    assert joblib.hash(vars(fitted.fit(*again))) != before


# Names of the columns.


@pytest.mark.parametrize("estimator", SINGLE, ids=name_of)
def test_classes_name_the_columns_where_one_has_no_labels(estimator):
    proba, y = planted(200)
    kept = y != 1
    codes = clone(estimator).fit(proba[kept], y[kept])
    named = clone(estimator).fit(proba[kept], NAMES[y[kept]], classes=NAMES)
    assert named.classes_.tolist() == NAMES.tolist()
    np.testing.assert_array_equal(named.transform(proba), codes.transform(proba))
    np.testing.assert_array_equal(named.predict(proba), NAMES[codes.predict(proba)])
    with pytest.raises(InputError, match=r"must match the 4 columns.*names of the columns as `cla"):
        clone(estimator).fit(proba[kept], NAMES[y[kept]])


def test_classes_need_not_be_sorted_and_find_the_columns_of_a_frame():
    proba, y = planted(200)
    order = [2, 0, 3, 1]
    sorted_ = Adjuster(("bias",)).fit(proba, NAMES[y], classes=NAMES)
    turned = Adjuster(("bias",)).fit(proba[:, order], NAMES[y], classes=NAMES[order])
    np.testing.assert_array_equal(turned.predict(proba[:, order]), sorted_.predict(proba))
    frame = pd.DataFrame(proba[:, order], columns=NAMES[order]).assign(id=range(200))
    by_name = Adjuster(("bias",)).fit(frame, NAMES[y], classes=NAMES)
    np.testing.assert_array_equal(by_name.transform(frame), sorted_.transform(proba))


def test_minus_one_is_a_class_only_if_it_is_named():
    proba, y = planted(200)
    labels = np.where(y == 3, -1, y)
    named = Adjuster(("bias",)).fit(proba, labels, classes=[0, 1, 2, -1])
    assert named.verdict_.n_rows == 200
    missing = Adjuster(("bias",)).fit(proba, labels, classes=[0, 1, 2, 3])
    assert missing.verdict_.n_rows == (y != 3).sum()


@pytest.mark.parametrize("classes", [["ant"] * 4, NAMES[:3], NAMES[None], "ant", 4])
def test_classes_that_are_no_names_of_the_columns(classes):
    proba, y = planted(60)
    with pytest.raises(InputError, match="`classes` must name each of the 4 columns of `proba`"):
        Adjuster(("bias",)).fit(proba, NAMES[y], classes=classes)


# Mistakes that are easily made, answered by what is wrong.


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("ids", [np.arange(120), 10**12 + np.arange(120)], ids=["small", "large"])
def test_an_id_among_the_probabilities_is_named(first, ids):
    proba, y = planted(120)
    frame = pd.DataFrame(proba, columns=NAMES)
    frame.insert(0 if first else 4, "row id", ids)
    message = r"must sum to 1; without column 'row id' they do\. Drop this column, or name .*`clas"
    with pytest.raises(InputError, match=message) as caught:
        Adjuster(("bias",)).fit(frame, NAMES[y])
    assert caught.value.code == "extra_column"
    with pytest.raises(
        InputError, match=rf"without column {0 if first else 4} they do\. Drop this column\.$"
    ):
        peers.TemperatureScaling().fit(frame.to_numpy(), y)
    named = Adjuster(("bias",)).fit(frame, NAMES[y], classes=NAMES)
    plain = Adjuster(("bias",)).fit(proba, NAMES[y])
    np.testing.assert_array_equal(named.transform(frame), plain.transform(proba))


def test_labels_or_text_among_the_probabilities_are_named():
    proba, y = planted(120)
    frame = pd.DataFrame(proba, columns=NAMES)
    with pytest.raises(InputError, match="without column 'truth' they do"):
        Adjuster(("bias",)).fit(frame.assign(truth=y), y)
    with pytest.raises(InputError, match=r"must hold numbers; column 'truth' does not\. Drop it"):
        Adjuster(("bias",)).fit(frame.assign(truth=NAMES[y]), NAMES[y])
    by_label, labels = planted_labels(120, 4)
    with_id = pd.DataFrame(by_label, columns=NAMES).assign(id=range(120))
    with pytest.raises(InputError, match=r"lie in \[0, 1\]; without column 'id' they do"):
        peers.LabelThresholds().fit(with_id, np.c_[labels, labels[:, 0]])


@pytest.mark.parametrize("call", ["fit", "transform"])
@pytest.mark.parametrize("column", [False, True])
def test_one_probability_per_row_of_two_classes(call, column):
    p = planted(120)[0][:, 0]
    fitted = peers.Identity().fit(np.column_stack([1 - p, p]))
    message = r"or one probability p per row of two classes, pass np\.column_stack\(\[1 - p, p\]\)"
    message += r", and for one logit z np\.column_stack\(\[0 \* z, z\]\)"
    with pytest.raises(InputError, match=message):
        getattr(fitted, call)(p[:, None] if column else p)


@pytest.mark.parametrize("estimator", [*SINGLE, *MULTI], ids=name_of)
def test_swapped_arguments(estimator):
    proba, y = data_for(estimator)
    with pytest.raises(InputError, match=r"they are the other way round\. Call fit\(proba, y\)"):
        clone(estimator).fit(y, proba)
    fitted = clone(estimator).fit(proba, y)
    with pytest.raises(InputError, match=r"`score` takes .* Call score\(proba, y\)"):
        fitted.score(y, proba)


@pytest.mark.parametrize("method", [False, True])
def test_a_classifier_in_place_of_its_predictions(method):
    X, y = load_wine(return_X_y=True)
    classifier = RandomForestClassifier(5, random_state=0).fit(X, y)
    fitted = Adjuster(("bias",)).fit(classifier.predict_proba(X), y)
    given = classifier.predict_proba if method else classifier
    message = "it is a (RandomForestClassifier|method). Pass what `predict_proba` returns, or wrap"
    for call in (lambda: Adjuster().fit(given, y), lambda: fitted.transform(given)):
        with pytest.raises(InputError, match=message):
            call()


@pytest.mark.parametrize("centred", [False, True])
def test_features_are_not_taken_for_logits(centred):
    X, y = load_wine(return_X_y=True)
    message = "If these are features, pass what `predict_proba` of your classifier returns. If"
    with pytest.raises(InputError, match=message):
        Adjuster().fit(scale(X) if centred else X, y)
    with pytest.raises(InputError, match=r"\(sum 1\.3\)\. If these are logits"):
        Adjuster().fit([[0.5, 0.8], [0.5, 0.5]], [0, 1])
    with pytest.raises(
        InputError, match="If rows have several labels, pass multilabel='labelwise'"
    ):
        Adjuster().fit([[0.5, 0.8], [0.5, 0.5]], [[0, 1], [1, 1]])

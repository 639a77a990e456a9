"""AdjustedClassifier: a classifier and its adjuster as one."""

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import accuracy_score, balanced_accuracy_score
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    LeaveOneGroupOut,
    LeaveOneOut,
    LeavePOut,
    StratifiedKFold,
    cross_val_predict,
)
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.pipeline import make_pipeline

from altnorm import (
    AdjustedClassifier,
    Adjuster,
    AlternatingNormalizer,
    AlternatingNormalizerCV,
    InputError,
    peers,
)

NAMES = np.array(["ant", "bee", "cat"])
SMALL = {"alphas": (0.5, 1.0, 2.0), "depths": (1,), "thresholds": (0.25,)}


def draw(n=400, seed=0):
    """Three overlapping classes, the first of them rare."""
    rng = np.random.default_rng(seed)
    y = rng.choice(3, size=n, p=[0.15, 0.25, 0.6])
    centres = np.array([[0.0, 1.5, 0, 0], [1.5, 0.0, 0, 0], [0.0, 0.0, 1.5, 0]])
    return rng.normal(size=(n, 4)) + centres[y], y


class Biased(GaussianNB):
    """Believes in the first class, and remembers the weights it was given."""

    def fit(self, X, y, sample_weight=None):
        self.sample_weight_ = sample_weight
        return super().fit(X, y)

    def predict_proba(self, X):
        proba = super().predict_proba(X) * [8, 1, 1]
        return proba / proba.sum(axis=1, keepdims=True)


class Recorder(AlternatingNormalizer):
    """Remembers the predictions, labels, weights and groups it was given."""

    def fit(self, proba, y=None, sample_weight=None, groups=None, classes=None):
        self.given_ = proba, y, sample_weight, groups
        return super().fit(proba, y, sample_weight, classes=classes)


def test_reference_predictions_come_from_rows_not_trained_on():
    X, y = draw()
    cv = StratifiedKFold(4)
    model = AdjustedClassifier(GaussianNB(), Recorder(), cv=cv).fit(X, y)
    expected = cross_val_predict(GaussianNB(), X, y, cv=cv, method="predict_proba")
    np.testing.assert_array_equal(model.adjuster_.given_[0], expected)
    np.testing.assert_array_equal(model.adjuster_.given_[1], y)
    on_all = GaussianNB().fit(X, y).predict_proba(X)
    by_hand = AlternatingNormalizer().fit(expected, y).transform(on_all)
    np.testing.assert_array_equal(model.predict_proba(X), by_hand)


def test_a_frozen_classifier_stays_and_takes_the_data_for_validation():
    train, validation, fresh = (draw(seed=seed) for seed in range(3))
    trained = GaussianNB().fit(*train)
    frozen = AdjustedClassifier(FrozenEstimator(trained), AlternatingNormalizer())
    frozen.fit(*validation)
    assert frozen.estimator_.estimator is trained
    prefit = AdjustedClassifier(trained, AlternatingNormalizer(), cv="prefit").fit(*validation)
    assert prefit.estimator_ is trained
    np.testing.assert_array_equal(prefit.predict_proba(fresh[0]), frozen.predict_proba(fresh[0]))
    by_hand = AlternatingNormalizer().fit(trained.predict_proba(validation[0]), validation[1])
    np.testing.assert_array_equal(
        frozen.predict_proba(fresh[0]), by_hand.transform(trained.predict_proba(fresh[0]))
    )


COSTS = np.c_[1 - np.eye(3), np.full(3, 0.2)]


@pytest.mark.parametrize(
    "adjuster", [AlternatingNormalizerCV(**SMALL), Adjuster(("bias",), costs=COSTS)]
)
def test_validation_data_may_lack_a_class(adjuster):
    X, y = draw()
    model = AdjustedClassifier(FrozenEstimator(GaussianNB().fit(X, NAMES[y])), adjuster)
    X, y = draw(seed=1)
    model.fit(X[y > 0], NAMES[y[y > 0]])
    np.testing.assert_array_equal(model.classes_, NAMES)
    assert model.predict_proba(X).shape == (len(X), 3)
    decided = set(model.predict(X))
    assert decided <= {*NAMES, None}
    assert (None in decided) == isinstance(adjuster, Adjuster)
    with pytest.raises(InputError, match=r"Each label must be one of the classes.*first is .*dog"):
        model.fit(X, np.where(y == 1, "dog", NAMES[y]))


def test_what_the_classifier_knows_of_its_features_is_taken_over():
    X, y = draw(200)
    model = AdjustedClassifier(GaussianNB(), AlternatingNormalizer())
    model.fit(pd.DataFrame(X, columns=list("abcd")), y)
    assert list(model.feature_names_in_) == list("abcd")
    model.fit(X[:, :2], y)
    assert model.n_features_in_ == 2
    assert not hasattr(model, "feature_names_in_")
    texts = [f"{name} pet" for name in NAMES[y]]
    model.set_params(estimator=make_pipeline(CountVectorizer(), MultinomialNB())).fit(texts, y)
    np.testing.assert_array_equal(model.predict(texts), y)


# The purpose.


def test_the_score_is_the_purposes():
    X, y = draw(400)
    fresh, truth = draw(400, seed=1)
    weight = np.random.default_rng(0).uniform(0.5, 2, 400)
    balanced = AdjustedClassifier(Biased(), scoring="balanced_accuracy").fit(X, y)
    assert balanced.adjuster_.scoring == balanced.verdict_.scoring == "balanced_accuracy"
    decided = balanced.predict(fresh)
    expected = balanced_accuracy_score(truth, decided, sample_weight=weight)
    assert balanced.score(fresh, truth, weight) == pytest.approx(expected)
    costs = {("ant", "cat"): 2, **{(name, None): 0.2 for name in NAMES}}
    careful = AdjustedClassifier(Biased(), Adjuster(("bias",)), costs=costs).fit(X, NAMES[y])
    table = np.array([[0, 1, 2, 0.2], [1, 0, 1, 0.2], [1, 1, 0, 0.2]])
    assert careful.verdict_.adopted
    codes = [3 if name is None else NAMES.tolist().index(name) for name in careful.predict(fresh)]
    assert ((careful.predict_proba(fresh) @ table).argmin(axis=1) == codes).mean() > 0.99
    assert careful.score(fresh, NAMES[truth]) == pytest.approx(-table[truth, codes].mean())
    sure = AdjustedClassifier(Biased(), target_accuracy=0.8).fit(X, y)
    assert sure.verdict_.promise.target == 0.8
    plain = AdjustedClassifier(Biased(), peers.Identity()).fit(X, y)
    assert plain.score(fresh, truth) == pytest.approx(accuracy_score(truth, plain.predict(fresh)))


@pytest.mark.parametrize("adjuster", [None, Adjuster(("bias",))], ids=["default", "given"])
@pytest.mark.parametrize(
    "grid",
    [
        {"scoring": [None, "f1_macro"]},
        {"adjuster__scoring": [None, "f1_macro"]},
        {"adjuster__families": [("bias",)], "adjuster__significance": [0.01, 0.2], "cv": [2, 3]},
        {"costs": [None, COSTS], "estimator__var_smoothing": [1e-9, 1e-3]},
    ],
    ids=lambda grid: next(iter(grid)),
)
def test_every_parameter_can_be_searched(adjuster, grid):
    X, y = draw(150)
    search = GridSearchCV(AdjustedClassifier(GaussianNB(), adjuster), grid, cv=2).fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    best = search.best_estimator_.get_params()
    assert {name: str(best[name]) for name in grid} == {
        name: str(value) for name, value in search.best_params_.items()
    }


# Folds.


@pytest.mark.parametrize("cv", [LeaveOneOut(), LeavePOut(1), LeaveOneGroupOut()], ids=str)
def test_parts_of_one_class_are_refused(cv):
    """A class that is left out is taken for rarer than it is: that gives the label away."""
    X, y = draw(60)
    one_class = {"groups": 10 * y + np.arange(60) % 3} if "Group" in str(cv) else {}
    model = AdjustedClassifier(LogisticRegression(C=1e-3), cv=cv)
    message = r"several classes, not single rows or groups of one class; 60 of 60 .*such as cv=5"
    with pytest.raises(InputError, match=message):
        model.fit(X, y, **one_class)
    if one_class:
        several = model.fit(X, y, groups=np.arange(60) % 5)
        assert several.verdict_.n_rows == 60


# Metadata.


@pytest.mark.parametrize("frozen", [False, True])
def test_weights_and_groups_are_routed_through_a_search(frozen):
    X, y = draw(200)
    groups, weight = np.arange(200) % 50, np.random.default_rng(0).uniform(0.5, 2, 200)
    with config_context(enable_metadata_routing=True):
        estimator = Biased().set_fit_request(sample_weight=True)
        model = AdjustedClassifier(FrozenEstimator(estimator.fit(X, y)) if frozen else estimator)
        model.set_score_request(sample_weight=True)
        search = GridSearchCV(model, {"adjuster__significance": [0.01]}, cv=GroupKFold(2))
        search.fit(X, y, groups=groups, sample_weight=weight)
    assert not hasattr(model, "verdict_")
    model.fit(X, y, groups=groups, sample_weight=weight)
    assert model.adjuster is None
    assert search.best_estimator_.verdict_ == model.verdict_


@pytest.mark.parametrize("asked", [None, True, False], ids=["plain", "both", "one"])
def test_weights_reach_both_or_whom_routing_names(asked):
    X, y = draw(200)
    weight = np.random.default_rng(0).integers(1, 4, 200).astype(float)
    with config_context(enable_metadata_routing=asked is not None):
        estimator, normalizer = Biased(), Recorder()
        if asked is not None:
            estimator.set_fit_request(sample_weight=asked)
            normalizer.set_fit_request(sample_weight=True)
        model = AdjustedClassifier(estimator, normalizer)
        model.fit(X, y, sample_weight=weight)
    expected = None if asked is False else weight
    np.testing.assert_array_equal(model.estimator_.sample_weight_, expected)
    np.testing.assert_array_equal(model.adjuster_.given_[2], weight)


class Neighbour(GaussianNB):
    """Knows the label of every row that it has seen: leaks show."""

    def fit(self, X, y):
        self.known_ = {float(x): label for x, label in zip(X[:, 0], y, strict=True)}
        return super().fit(X, y)

    def predict_proba(self, X):
        labels = [self.known_.get(float(x)) for x in X[:, 0]]
        return np.array([np.full(3, 1 / 3) if c is None else np.eye(3)[c] for c in labels])


@pytest.mark.parametrize("routing", [False, True])
@pytest.mark.parametrize("cv", [None, 4, GroupKFold(5)], ids=str)
def test_groups_are_dealt_whole_and_reach_the_adjuster(routing, cv):
    """Sixty subjects with four rows each, which are the same."""
    groups = np.repeat(np.random.default_rng(0).permutation(60), 4)
    X, y = groups[:, None].astype(float), groups % 3
    with config_context(enable_metadata_routing=routing):
        normalizer = Recorder(reference="all")
        if routing:
            normalizer.set_fit_request(groups=True)
        model = AdjustedClassifier(Neighbour(), normalizer, cv=cv)
        model.fit(X, y, groups=groups)
    proba, *_, groups_given = model.adjuster_.given_
    np.testing.assert_array_equal(groups_given, groups)
    np.testing.assert_allclose(proba, 1 / 3)  # no subject was known from another fold


# Errors, by their text.


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            AdjustedClassifier(GaussianNB(), Adjuster(scoring="f1_macro"), costs=COSTS),
            "given once; `costs` is given, and so is `scoring` of",
        ),
        (
            AdjustedClassifier(GaussianNB(), AlternatingNormalizer(), scoring="f1_macro"),
            r"`scoring` is for an adjuster that has it .*Normalizer",
        ),
        (
            AdjustedClassifier(GaussianNB(), AlternatingNormalizer(input="logits")),
            r"must take probabilities.*input is 'logits'",
        ),
        (
            AdjustedClassifier(LinearRegression()),
            "must have predict_proba; LinearRegression has none. Pass a classifier, or wrap it in",
        ),
    ],
    ids=["two goals", "no goal", "logits", "regression"],
)
def test_parts_that_do_not_fit_together(model, message):
    with pytest.raises(InputError, match=message):
        model.fit(*draw(60))


def test_metadata_that_nobody_takes():
    X, y = draw(60)
    model = AdjustedClassifier(GaussianNB(), AlternatingNormalizer())
    with pytest.raises(InputError, match="neither accepts colour"):
        model.fit(X, y, colour=y)
    model.set_params(estimator=FrozenEstimator(GaussianNB().fit(X, y)))
    with pytest.raises(InputError, match="neither accepts groups"):  # and nothing is dealt
        model.fit(X, y, groups=y)

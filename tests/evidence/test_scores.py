"""Scores against naive loops and against scikit-learn, and what may be asked for."""

import pickle

import numpy as np
import pytest
from sklearn import metrics as sk

from altnorm import InputError
from altnorm.evidence.scores import resolve_scoring
from tests.problems import calibrated


def single_problem(seed, m=5, n=60):
    proba, y = calibrated(n, seed, m)
    return y, proba, np.random.default_rng(seed).integers(1, 4, n).astype(float)


SINGLE = {
    "accuracy": lambda y, p, w: sk.accuracy_score(y, p.argmax(1), sample_weight=w),
    "balanced_accuracy": lambda y, p, w: sk.balanced_accuracy_score(
        y, p.argmax(1), sample_weight=w
    ),
    "matthews_corrcoef": lambda y, p, w: sk.matthews_corrcoef(y, p.argmax(1), sample_weight=w),
    "neg_log_loss": lambda y, p, w: -sk.log_loss(y, p, sample_weight=w),
    "neg_brier_score": lambda y, p, w: (
        -np.average(((p - np.eye(p.shape[1])[y]) ** 2).sum(1), weights=w)
    ),
    "top_k_accuracy": lambda y, p, w: sk.top_k_accuracy_score(y, p, k=2, sample_weight=w),
}


def check_form(score):
    """It is an average or made of sums, and can be pickled."""
    assert (score.per_row is None) != (score.counts is None)
    assert (score.counts is None) == (score.of_counts is None)
    assert pickle.loads(pickle.dumps(score)).f_beta == score.f_beta
    assert resolve_scoring(score) is score


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("m", [3, 5, 40])
@pytest.mark.parametrize("name", SINGLE)
def test_single_label_scores_equal_scikit_learn(name, m, weighted):
    y, proba, weight = single_problem(0, m)
    w = weight if weighted else None
    score = resolve_scoring(name)
    check_form(score)
    assert score.name == name
    predicted = proba if score.needs == "proba" else proba.argmax(axis=1)
    assert score(y, predicted, w) == pytest.approx(SINGLE[name](y, proba, w))


def test_top_k_breaks_ties_as_scikit_learn():
    y, proba, _ = single_problem(1, 6)
    proba = np.round(proba, 1) + 0.0
    score = resolve_scoring("top_k_accuracy")
    expected = sk.top_k_accuracy_score(y, proba, k=2, labels=np.arange(6))
    assert score(y, proba) == pytest.approx(expected)


def test_scores_at_their_edges():
    nothing, three = np.zeros(3, int), np.array([0, 1, 2])
    assert np.isfinite(resolve_scoring("neg_log_loss")(np.array([1]), np.array([[1.0, 0.0]])))
    assert resolve_scoring("matthews_corrcoef")(three, nothing) == 0
    assert resolve_scoring("f1")(nothing, nothing) == 0
    y, proba, _ = single_problem(2, 2)
    brier = -sk.brier_score_loss(y, proba[:, 1])  # half of what several classes would give
    assert resolve_scoring("neg_brier_score")(y, proba) == pytest.approx(brier)
    assert resolve_scoring("roc_auc")(y, proba) == pytest.approx(sk.roc_auc_score(y, proba[:, 1]))


def f_beta(average, beta=1.0):
    options = {"beta": beta, "average": average, "zero_division": 0}
    return lambda y, p, w: sk.fbeta_score(y, p > 0.5, sample_weight=w, **options)


MULTI = {
    "accuracy": lambda y, p, w: sk.accuracy_score(y, p > 0.5, sample_weight=w),
    "subset_accuracy": lambda y, p, w: sk.accuracy_score(y, p > 0.5, sample_weight=w),
    **{f"f1_{kind}": f_beta(kind) for kind in ("macro", "micro", "weighted", "samples")},
    "fbeta=2_macro": f_beta("macro", 2.0),
    "neg_log_loss": lambda y, p, w: np.mean(
        [
            -sk.log_loss(*each, sample_weight=w, labels=[0, 1])
            for each in np.stack([y.T, p.T], axis=1)
        ]
    ),
    "neg_brier_score": lambda y, p, w: -np.average(((p - y) ** 2).mean(1), weights=w),
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", MULTI)
def test_multilabel_scores_equal_scikit_learn(name, weighted):
    rng = np.random.default_rng(3)
    proba = rng.random((50, 6)) ** 2
    proba[:, 5] = 0.01
    y = (rng.random(proba.shape) < proba * [1, 1, 1, 1, 1, 0]).astype(int)
    w = rng.integers(1, 4, 50).astype(float) if weighted else None
    score = resolve_scoring(name, multilabel=True)
    check_form(score)
    pred = proba if score.needs == "proba" else proba > 0.5
    assert score(y, pred, w) == pytest.approx(MULTI[name](y, proba, w))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("average", ["macro", "weighted", "micro", "binary"])
@pytest.mark.parametrize("beta", [0.5, 1.0, 2.0])
def test_f_scores_by_name_and_as_scorers_are_scikit_learns(beta, average, weighted):
    m = 2 if average == "binary" else 4
    y, proba, weight = single_problem(7, m)
    w, decided, classes = weight if weighted else None, proba.argmax(axis=1), np.arange(m)
    expected = sk.fbeta_score(y, decided, beta=beta, average=average, sample_weight=w)
    suffix = "" if average == "binary" else f"_{average}"
    spellings = [
        f"fbeta={beta:g}{suffix}",
        sk.make_scorer(sk.fbeta_score, beta=beta, average=average),
    ]
    if beta == 1:
        spellings += [f"f1{suffix}", sk.make_scorer(sk.f1_score, average=average)]
    for scoring in spellings:
        score = resolve_scoring(scoring, classes=classes)
        check_form(score)
        assert score.needs == "labels"  # so that its rule is known
        assert score(y, decided, w) == pytest.approx(expected)


@pytest.mark.parametrize(
    "options",
    [
        {"average": "macro", "labels": [1, 2]},
        {"average": "macro", "zero_division": 1},
        {"average": "macro", "greater_is_better": False},
    ],
    ids=str,
)
def test_f_scorers_with_other_settings_keep_them(options):
    y, proba, _ = single_problem(4, 4)
    proba[:, 3] = 0
    scorer = sk.make_scorer(sk.f1_score, **options)
    score = resolve_scoring(scorer)
    sign = -1 if options.pop("greater_is_better", True) is False else 1
    assert score(y, proba) == pytest.approx(sign * sk.f1_score(y, proba.argmax(1), **options))


@pytest.mark.parametrize(
    ("names", "pos_label", "positive"),
    [
        (["ham", "spam"], None, "spam"),
        (["ham", "spam"], "spam", "spam"),
        (["ham", "spam"], "ham", "ham"),
        ([-1, 1], None, 1),
        ([1, 2], None, 1),  # as scikit-learn has it
        ([1, 2], 2, 2),
        ([False, True], None, True),
    ],
)
def test_the_class_that_a_binary_score_is_about(names, pos_label, positive):
    y, proba, _ = single_problem(5, 2, 100)
    classes, decided = np.array(names), proba.argmax(axis=1)
    expected = sk.f1_score(classes[y], classes[decided], pos_label=positive)
    options = {} if pos_label is None else {"pos_label": pos_label}
    spellings = [sk.make_scorer(sk.f1_score, **options)] + (["f1"] if pos_label is None else [])
    for spelling in spellings:
        score = resolve_scoring(spelling, classes=classes)
        assert score(y, decided) == pytest.approx(expected)


def test_a_positive_class_that_is_none_of_them_is_told_by_scikit_learn():
    y, proba, _ = single_problem(5, 2, 100)
    scorer = sk.make_scorer(sk.f1_score, pos_label="eggs")
    score = resolve_scoring(scorer, classes=np.array(["ham", "spam"]))
    with pytest.raises(InputError, match=r"must suit the labels.*pos_label='?eggs"):
        score(y, proba)


@pytest.mark.parametrize("scoring", ["f1", "fbeta=2", sk.make_scorer(sk.f1_score)], ids=str)
def test_a_binary_score_of_three_classes_is_refused(scoring):
    with pytest.raises(InputError, match=r"about one of two classes; there are 3.*_macro'"):
        resolve_scoring(scoring, classes=np.arange(3))


JACCARD = sk.make_scorer(sk.jaccard_score, average="macro", zero_division=0)


@pytest.mark.parametrize("weighted", [False, True])
def test_any_scikit_learn_scorer_works(weighted):
    y, proba, weight = single_problem(4, 3, 200)
    w = weight if weighted else None
    expected = sk.roc_auc_score(y, proba, multi_class="ovr", sample_weight=w)
    assert resolve_scoring("roc_auc_ovr")(y, proba, w) == pytest.approx(expected)
    expected = sk.jaccard_score(y, proba.argmax(1), average="macro", sample_weight=w)
    assert resolve_scoring(JACCARD)(y, proba, w) == pytest.approx(expected)


@pytest.mark.parametrize("n_labels", [1, 2, 5])
def test_scorers_of_multilabel_predictions(n_labels):
    rng = np.random.default_rng(6)
    proba = rng.random((80, n_labels))
    y = (rng.random(proba.shape) < proba).astype(int)
    for name in ("roc_auc", "average_precision"):
        expected = getattr(sk, f"{name}_score")(y, proba)
        assert resolve_scoring(name, True)(y, proba) == pytest.approx(expected)
    if n_labels > 1:
        expected = sk.jaccard_score(y, proba > 0.5, average="macro", zero_division=0)
        assert resolve_scoring(JACCARD, True)(y, proba) == pytest.approx(expected)


def test_plain_callables_are_scorers_too():
    def share_of_class_0(estimator, X, y):
        return np.mean(estimator.predict(X) == 0)

    y, proba, _ = single_problem(8)
    score = resolve_scoring(share_of_class_0)
    assert score.name == "share_of_class_0"
    share = np.mean(proba.argmax(1) == 0)
    assert score(y, proba) == share
    assert score(y, proba, np.full(len(y), 2.0)) == share  # which weigh nothing
    for scorer in (share_of_class_0, sk.make_scorer(lambda y, pred: np.mean(pred == 0))):
        with pytest.raises(InputError, match=r"must take weights.*no parameter `sample_weight`"):
            resolve_scoring(scorer)(y, proba, 1.0 + np.arange(len(y)))

    def broken(estimator, X, y):
        raise TypeError("no such thing")

    with pytest.raises(TypeError, match="no such thing"):
        resolve_scoring(broken)(y, proba)


@pytest.mark.parametrize(
    ("scoring", "multilabel", "message"),
    [
        (
            "acuracy",
            False,
            "for single-label predictions; it is 'acuracy'. Did you mean 'accuracy'\\? Pass acc",
        ),
        ("balanced", False, "Did you mean 'balanced_accuracy'"),
        ("fbeta", False, "it is .fbeta.. Pass .* fbeta=BETA_macro, or another"),
        ("subset_accuracy", False, "for single-label predictions; it is 'subset_accuracy'"),
        ("top_k_accuracy", True, "for multi-label predictions; it is 'top_k_accuracy'"),
        (3, False, "for single-label predictions; it is '3'"),
    ],
)
def test_unknown_scores_are_told(scoring, multilabel, message):
    with pytest.raises(InputError, match=message):
        resolve_scoring(scoring, multilabel)

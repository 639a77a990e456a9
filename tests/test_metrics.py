"""Metrics against naive loops and against scikit-learn."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array, csr_matrix
from sklearn import metrics as sk

from altnorm._base.errors import InputError
from altnorm.evidence.metrics import (
    loose_macro_f1,
    loose_micro_f1,
    resolve_scoring,
    tune_none_threshold,
)
from altnorm.evidence.scores import Score
from altnorm.method.label_rules import decide

TIGHT = {"rel": 1e-12, "abs": 1e-12}


def naive_loose_macro(y, p):
    precision, recall = [], []
    for true, pred in zip(y, p, strict=True):
        gold = {j for j, v in enumerate(true) if v}
        found = {j for j, v in enumerate(pred) if v}
        if found:
            precision.append(len(gold & found) / len(found))
        if gold:
            recall.append(len(gold & found) / len(gold))
    if not precision or not recall:
        return 0.0
    a, b = sum(precision) / len(precision), sum(recall) / len(recall)
    return 2 * a * b / (a + b) if a + b else 0.0


def naive_loose_micro(y, p):
    hits = predicted = gold = 0
    for true, pred in zip(y, p, strict=True):
        hits += sum(int(a and b) for a, b in zip(true, pred, strict=True))
        predicted += sum(map(int, pred))
        gold += sum(map(int, true))
    if hits == 0:
        return 0.0
    a, b = hits / predicted, hits / gold
    return 2 * a * b / (a + b)


def label_matrices(seed, density=0.3):
    rng = np.random.default_rng(seed)
    n, m = rng.integers(1, 12), rng.integers(2, 7)
    return (rng.random((2, n, m)) < density).astype(int)


@given(seed=st.integers(0, 10_000), density=st.sampled_from([0.05, 0.3, 0.9]))
def test_loose_f1_equals_naive_loops_for_dense_and_sparse(seed, density):
    y, p = label_matrices(seed, density)
    macro, micro = naive_loose_macro(y, p), naive_loose_micro(y, p)
    for kind in (np.asarray, csr_matrix, csr_array, lambda v: v.astype(bool), np.ndarray.tolist):
        assert loose_macro_f1(kind(y), kind(p)) == pytest.approx(macro, **TIGHT)
        assert loose_micro_f1(kind(y), kind(p)) == pytest.approx(micro, **TIGHT)
    assert loose_macro_f1(y, csr_matrix(p)) == pytest.approx(macro, **TIGHT)


def test_loose_f1_without_predictions_or_without_truth_is_zero():
    zero, one = np.zeros((3, 2), dtype=int), np.ones((3, 2), dtype=int)
    for y, p in [(zero, one), (one, zero), (zero, zero)]:
        assert loose_macro_f1(y, p) == 0
        assert loose_micro_f1(y, p) == 0


@pytest.mark.parametrize(
    ("y", "p", "message"),
    [
        (
            [[0, 2]],
            [[0, 1]],
            "`y_true` must hold only 0 and 1; 1 of .* entries do not, the first is 2",
        ),
        ([[0, 1]], [[0.5, 1]], "`y_pred` must hold only 0 and 1"),
        (csr_array([[0, 3]]), [[0, 1]], "`y_true` must hold only 0 and 1"),
        ([0, 1], [[0, 1]], r"`y_true` must be a 0/1 matrix.*shape \(2,\)"),
        ([["a", "b"]], [[0, 1]], "MultiLabelBinarizer"),
        ([[0, 1]], [[0, 1, 0]], r"same shape; they have \(1, 2\) and \(1, 3\)"),
    ],
)
def test_loose_f1_tells_what_is_wrong(y, p, message):
    with pytest.raises(InputError, match=message):
        loose_macro_f1(y, p)


PROBA = np.array([[0.7, 0.6, 0.1], [0.4, 0.2, 0.4], [0.1, 0.2, 0.1], [0.5, 0.5, 0.0]])


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, ["110", "000", "000", "000"]),
        ({"threshold": 0.15}, ["110", "111", "010", "110"]),
        ({"decision": "argmax_or_threshold"}, ["110", "100", "010", "100"]),
        ({"decision": "none_below", "none_threshold": 0.2}, ["110", "100", "000", "100"]),
        ({"decision": "none_below", "none_threshold": 0.5}, ["110", "000", "000", "000"]),
        ({"decision": "none_below", "none_threshold": 0.0}, ["110", "100", "010", "100"]),
    ],
)
def test_decide_by_hand(options, expected):
    decided = decide(PROBA, **options)
    assert decided.dtype == np.int8
    assert ["".join(map(str, row)) for row in decided] == expected


@pytest.mark.parametrize(
    ("proba", "options", "message"),
    [
        (PROBA, {"decision": "best"}, "`decision` must be one of .*it is 'best'"),
        (PROBA, {"decision": "none_below"}, "needs `none_threshold`.*tune_none_threshold"),
        (PROBA * 2, {}, "must lie in \\[0, 1\\]; 2 of 12 entries .* \\(1.4\\)"),
        (PROBA - 1, {}, r"must lie in \[0, 1\]"),
        (PROBA * np.nan, {}, r"must lie in \[0, 1\]; .* \(nan\)"),
        (PROBA, {"threshold": -1}, "`threshold` must be a finite number"),
        (PROBA.astype(int), {}, "must hold floating-point numbers"),
    ],
)
def test_decide_tells_what_is_wrong(proba, options, message):
    with pytest.raises(InputError, match=message):
        decide(proba, **options)


def micro(y, proba, **options):
    decided = decide(proba, **options)
    return 2 * (decided * y).sum() / max(decided.sum(dtype=int) + y.sum(), 1)


@given(
    seed=st.integers(0, 10_000),
    dtype=st.sampled_from([np.float32, np.float64]),
    ties=st.booleans(),
    scale=st.sampled_from([0.5, 0.9]),
)
def test_none_threshold_is_the_best_of_all(seed, dtype, ties, scale):
    rng = np.random.default_rng(seed)
    proba = (rng.random((rng.integers(1, 15), 3)) * scale).astype(dtype)
    if ties:
        proba = np.round(proba, 1)
    y = (rng.random(proba.shape) < proba).astype(int)
    found = tune_none_threshold(proba, y)
    # Every threshold acts like one of the probabilities, or like 0 or 0.5.
    candidates = [0.0, 0.5, *proba.ravel().astype(float)]
    best = max(micro(y, proba, decision="none_below", none_threshold=c) for c in candidates)
    assert micro(y, proba, decision="none_below", none_threshold=found) == pytest.approx(
        best, **TIGHT
    )
    assert 0 <= found <= 0.5
    assert tune_none_threshold(proba, csr_matrix(y)) == found


def test_none_threshold_adds_nothing_without_need():
    proba = np.array([[0.9, 0.1], [0.4, 0.1]])
    assert tune_none_threshold(proba, [[1, 0], [0, 0]]) == 0.5
    assert tune_none_threshold(proba, [[0, 0], [0, 0]]) == 0.5


def test_none_threshold_between_neighbouring_floats():
    low = np.float32(0.3)
    high = np.nextafter(low, np.float32(1))
    proba = np.array([[high, 0], [low, 0]], dtype=np.float32)
    found = tune_none_threshold(proba, [[1, 0], [0, 1]])
    decided = decide(proba, decision="none_below", none_threshold=found)
    assert decided.tolist() == [[1, 0], [0, 0]]


def single_problem(seed, m=5, n=60):
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.full(m, 0.4), n)
    y = (proba.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    return y, proba, rng.integers(1, 4, n).astype(float)


SINGLE = {
    "accuracy": lambda y, p, w: sk.accuracy_score(y, p.argmax(1), sample_weight=w),
    "balanced_accuracy": lambda y, p, w: sk.recall_score(
        y, p.argmax(1), labels=np.unique(y), average="macro", sample_weight=w, zero_division=0
    ),
    "f1_macro": lambda y, p, w: sk.f1_score(y, p.argmax(1), average="macro", sample_weight=w),
    "f1_micro": lambda y, p, w: sk.f1_score(y, p.argmax(1), average="micro", sample_weight=w),
    "f1_weighted": lambda y, p, w: sk.f1_score(y, p.argmax(1), average="weighted", sample_weight=w),
    "matthews_corrcoef": lambda y, p, w: sk.matthews_corrcoef(y, p.argmax(1), sample_weight=w),
    "neg_log_loss": lambda y, p, w: (
        -sk.log_loss(y, p, sample_weight=w, labels=np.arange(p.shape[1]))
    ),
    "neg_brier_score": lambda y, p, w: (
        -np.average(
            ((p - np.eye(p.shape[1])[y]) ** 2).sum(1) / (2 if p.shape[1] == 2 else 1), weights=w
        )
    ),
    "top_k_accuracy": lambda y, p, w: sk.top_k_accuracy_score(
        y, p, k=2, labels=np.arange(p.shape[1]), sample_weight=w
    ),
}


def prediction(score, proba):
    return proba if score.needs == "proba" else proba.argmax(axis=1)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("m", [3, 5, 40])
@pytest.mark.parametrize("name", SINGLE)
def test_single_label_scores_equal_scikit_learn(name, m, weighted):
    y, proba, weight = single_problem(0, m)
    w = weight if weighted else None
    score = resolve_scoring(name)
    assert score.name == name
    assert score(y, prediction(score, proba), w) == pytest.approx(SINGLE[name](y, proba, w))
    if score.per_row is not None:
        rows = score.per_row(y, prediction(score, proba))
        assert np.average(rows, weights=w) == pytest.approx(SINGLE[name](y, proba, w))


def test_top_k_breaks_ties_as_scikit_learn():
    y, proba, _ = single_problem(1, 6)
    proba = np.round(proba, 1) + 0.0
    score = resolve_scoring("top_k_accuracy")
    expected = sk.top_k_accuracy_score(y, proba, k=2, labels=np.arange(6))
    assert score(y, proba) == pytest.approx(expected)


def test_brier_score_of_two_classes_is_halved():
    y, proba, _ = single_problem(2, 2)
    score = resolve_scoring("neg_brier_score")
    assert score(y, proba) == pytest.approx(-sk.brier_score_loss(y, proba[:, 1]))


def test_log_loss_of_a_zero_is_finite():
    assert np.isfinite(resolve_scoring("neg_log_loss")(np.array([1]), np.array([[1.0, 0.0]])))


def test_matthews_of_a_constant_prediction_is_zero():
    score = resolve_scoring("matthews_corrcoef")
    assert score(np.array([0, 1, 2]), np.zeros(3, dtype=int)) == 0


def average_f1(kind):
    return lambda y, p, w: sk.f1_score(
        y, p > 0.5, average=kind, sample_weight=w, zero_division=0
    )  # fmt: skip


MULTI = {
    "accuracy": lambda y, p, w: sk.accuracy_score(y, p > 0.5, sample_weight=w),
    "subset_accuracy": lambda y, p, w: sk.accuracy_score(y, p > 0.5, sample_weight=w),
    **{f"f1_{kind}": average_f1(kind) for kind in ("macro", "micro", "weighted", "samples")},
    "loose_micro_f1": average_f1("micro"),
    "neg_log_loss": lambda y, p, w: (
        -np.mean(
            [
                sk.log_loss(y[:, j], p[:, j], sample_weight=w, labels=[0, 1])
                for j in range(y.shape[1])
            ]
        )
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
    pred = proba if score.needs == "proba" else decide(proba)
    assert score(y, pred, w) == pytest.approx(MULTI[name](y, proba, w))


def test_loose_macro_score_with_weights_repeats_rows():
    y, p = label_matrices(7)
    times = np.arange(1, len(y) + 1)
    score = resolve_scoring("loose_macro_f1", multilabel=True)
    assert score(y, p) == pytest.approx(loose_macro_f1(y, p))
    expected = naive_loose_macro(y.repeat(times, axis=0), p.repeat(times, axis=0))
    assert score(y, p, times) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("name", "multilabel"),
    [*((n, False) for n in SINGLE), *((n, True) for n in MULTI), ("loose_macro_f1", True)],
)
def test_scores_are_averages_or_sums_and_can_be_pickled(name, multilabel):
    score = resolve_scoring(name, multilabel)
    assert (score.per_row is None) != (score.counts is None)
    assert (score.counts is None) == (score.of_counts is None)
    assert pickle.loads(pickle.dumps(score)) == score
    assert resolve_scoring(score) is score


@pytest.mark.parametrize("weighted", [False, True])
def test_any_scikit_learn_scorer_works(weighted):
    y, proba, weight = single_problem(4, 3, 200)
    w = weight if weighted else None
    f2 = sk.make_scorer(sk.fbeta_score, beta=2, average="macro")
    expected = sk.fbeta_score(y, proba.argmax(1), beta=2, average="macro", sample_weight=w)
    assert resolve_scoring(f2)(y, proba, w) == pytest.approx(expected)
    expected = sk.roc_auc_score(y, proba, multi_class="ovr", sample_weight=w)
    assert resolve_scoring("roc_auc_ovr")(y, proba, w) == pytest.approx(expected)


def test_scorers_of_two_classes_see_the_positive_class():
    y, proba, _ = single_problem(5, 2, 100)
    assert resolve_scoring("roc_auc")(y, proba) == pytest.approx(sk.roc_auc_score(y, proba[:, 1]))
    assert resolve_scoring("f1")(y, proba) == pytest.approx(sk.f1_score(y, proba.argmax(1)))


def test_scorers_may_know_the_class_labels():
    y, proba, _ = single_problem(5, 2, 100)
    classes = np.array(["ham", "spam"])
    scorer = sk.make_scorer(sk.f1_score, pos_label="spam")
    score = resolve_scoring(scorer, classes=classes)
    assert score(y, proba) == pytest.approx(sk.f1_score(y, proba.argmax(1)))


@pytest.mark.parametrize("n_labels", [1, 2, 5])
def test_scorers_of_multilabel_predictions(n_labels):
    rng = np.random.default_rng(6)
    proba = rng.random((80, n_labels))
    y = (rng.random(proba.shape) < proba).astype(int)
    for name, pred in [("roc_auc", proba), ("average_precision", proba)]:
        function = {"roc_auc": sk.roc_auc_score, "average_precision": sk.average_precision_score}
        assert resolve_scoring(name, True)(y, proba) == pytest.approx(function[name](y, pred))
    if n_labels > 1:
        expected = sk.jaccard_score(y, proba > 0.5, average="samples", zero_division=0)
        scorer = sk.make_scorer(sk.jaccard_score, average="samples", zero_division=0)
        assert resolve_scoring(scorer, True)(y, proba) == pytest.approx(expected)


def test_plain_callables_are_scorers_too():
    def share_of_class_0(estimator, X, y):
        return np.mean(estimator.predict(X) == 0)

    y, proba, _ = single_problem(8)
    score = resolve_scoring(share_of_class_0)
    assert score.name == "share_of_class_0"
    assert score(y, proba) == np.mean(proba.argmax(1) == 0)


@pytest.mark.parametrize(
    ("scoring", "multilabel", "message"),
    [
        (
            "acuracy",
            False,
            "score for single-label predictions; it is 'acuracy'. Pass one of .*'acc",
        ),
        ("loose_macro_f1", False, "for single-label predictions; it is 'loose_macro_f1'"),
        ("top_k_accuracy", True, "for multi-label predictions; it is 'top_k_accuracy'"),
        (3, False, r"name or a scorer\(estimator, X, y\); it is 3"),
    ],
)
def test_unknown_scores_are_told(scoring, multilabel, message):
    with pytest.raises(InputError, match=message):
        resolve_scoring(scoring, multilabel)


def test_a_score_without_formula_is_told():
    with pytest.raises(InputError, match="'mine' has no formula"):
        Score("mine", "labels")(np.array([0]), np.array([0]))


def test_no_name_is_the_natural_score():
    assert resolve_scoring(None).name == "accuracy"
    assert resolve_scoring(None, multilabel=True).name == "f1_micro"
    assert resolve_scoring("accuracy", multilabel=True).name == "accuracy"

"""Decisions: the rule that a purpose asks for, against brute force over all rules."""

import itertools

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays
from sklearn import metrics as sk

from altnorm import Adjuster, InputError
from altnorm.decisions import weights
from altnorm.decisions.decision import Decision, class_decisions, decision_codes
from altnorm.decisions.purpose import resolve_purpose
from altnorm.decisions.weights import class_shares, fit_weights
from altnorm.estimator.kinds import kind_of_labels
from altnorm.evidence.promise import NOTHING
from altnorm.evidence.scores import resolve_scoring
from altnorm.evidence.suspicion import Labelled
from tests.problems import calibrated, planted, values_of

MULTI = ["f1_micro", "f1_macro", "f1_weighted", "fbeta=2_micro", "fbeta=0.5_macro"]


def purpose_of(scoring=None, costs=None, m=3, *, multilabel=False):
    kind = kind_of_labels("labelwise" if multilabel else False)
    return resolve_purpose(scoring, costs, kind, np.arange(m))


def draw(n=200, m=3, seed=0):
    """Calibrated probabilities of classes of different frequency, labels, and weights."""
    return *calibrated(n, seed, m), np.random.default_rng(seed).integers(1, 4, n).astype(float)


def draw_labels(n=60, m=4, seed=0):
    rng = np.random.default_rng(seed)
    proba = rng.random((n, m)) ** np.linspace(1, 3, m)
    return proba, rng.random((n, m)) < proba, rng.integers(1, 4, n).astype(float)


def world(seed, n_cases=6, m=3):
    """Every case with its labels as often as its probabilities say: nothing is left to chance."""
    counts = np.random.default_rng(seed).integers(1, 12, (n_cases, m)) * [1, 3, 9]
    proba = np.repeat(counts / counts.sum(axis=1, keepdims=True), counts.sum(axis=1), axis=0)
    labels = np.concatenate([np.repeat(np.arange(m), row) for row in counts])
    return proba, labels, counts


def every_rule(counts, n_outcomes):
    """For each of all rules: how often each label (rows) meets each decision (columns)."""
    for rule in itertools.product(range(n_outcomes), repeat=len(counts)):
        yield counts.T @ np.eye(n_outcomes)[list(rule)]


# Balanced accuracy and costs: the rule is known.


@pytest.mark.parametrize("seed", range(5))
def test_no_rule_has_a_better_balanced_accuracy(seed):
    proba, labels, counts = world(seed)
    decision = purpose_of("balanced_accuracy").fit(proba, labels, np.ones(len(labels)))
    score = sk.balanced_accuracy_score(labels, decision.codes(proba))
    best = max((t.diagonal() / t.sum(axis=1)).mean() for t in every_rule(counts, 3))
    assert score == pytest.approx(best)
    assert score > sk.balanced_accuracy_score(labels, proba.argmax(axis=1))


def test_a_class_without_labels_counts_as_rarer_than_any_other():
    proba, labels, weight = draw(m=4)
    seen = labels < 3
    rule = purpose_of("balanced_accuracy", m=4).fit(proba[seen], labels[seen], weight[seen])
    assert np.isfinite(rule.values).all()
    assert rule.values.argmax() == 3


TABLES = arrays(float, (3, 4), elements=st.integers(-3, 9).map(float))


@given(TABLES, st.integers(3, 4), st.integers(0, 100))
def test_the_decision_of_least_expected_cost(table, width, seed):
    # Multiples of 1/64: expected costs are exact, and ties are ties.
    proba = np.random.default_rng(seed).multinomial(64, [0.2, 0.3, 0.5], 20) / 64
    table = table[:, :width]
    decision = purpose_of(costs=table).fit(proba, np.zeros(20, int), np.ones(20))
    for row, code in zip(proba, decision.codes(proba), strict=True):
        expected = [sum(row[j] * table[j, d] for j in range(3)) for d in range(width)]
        assert code == expected.index(min(expected))
    assert decision.leaves_rows == (width == 4)
    plain = purpose_of(costs=table).most_probable(proba, np.zeros(20, int), np.ones(20))
    np.testing.assert_array_equal(plain.values, 1 - np.eye(3))


def test_a_mapping_is_a_table():
    classes = np.array(["ham", "spam"])
    kind = kind_of_labels(False)
    mapping = {("spam", "ham"): 2, ("ham", "spam"): 10, ("ham", None): 0.5, ("spam", "spam"): 0.1}
    table = resolve_purpose(None, mapping, kind, classes).costs
    np.testing.assert_array_equal(table, [[0, 10, 0.5], [2, 0.1, 1]])
    plain = resolve_purpose(None, {("spam", "ham"): 2}, kind, classes).costs
    np.testing.assert_array_equal(plain, [[0, 1], [2, 0]])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"costs": np.ones((2, 3))}, r"shape \(4, 4\), or \(4, 5\).*its shape is \(2, 3\)"),
        ({"costs": [["a"] * 4] * 4}, "table of numbers .* its dtype <U1"),
        ({"costs": [[0, 1], [1]]}, "rows of the same length"),
        ({"costs": np.diag([0, 1, np.nan, np.nan])}, "must be finite.*; row 2, column 2 is nan"),
        ({"costs": {(0, 1): 1e308}}, "at most 1e.15 in size; row 0, column 1 is 1e.308"),
        ({"costs": {(0, 9): 1}}, r"both out of the classes.*\(0, 9\) is not. The classes are 0, 1"),
        ({"costs": {0: 1}}, r"A key of `costs` must be \(true class, decision\).*0 is not"),
        ({"costs": {(0, 1): "dear"}}, "table of numbers"),
        ({"costs": {(0, 1): np.inf}}, "must be finite.*; row 0, column 1 is inf"),
        ({"costs": np.eye(4), "scoring": "accuracy"}, "two ways to state a goal; both are giv"),
        ({"costs": np.eye(4), "multilabel": "pairs"}, "`costs` are for problems with one class"),
    ],
    ids=str,
)
def test_costs_that_are_none(settings, message):
    proba, y = planted(60)
    labels = np.eye(4, dtype=int)[y] if "multilabel" in settings else y
    with pytest.raises(InputError, match=message):
        Adjuster(**settings).fit(proba, labels)


# Scores whose rule is found on labels.


def score_at(log_weights, proba, labels, weight, score):
    return score(labels, (proba * np.exp(log_weights)).argmax(axis=1), weight)


def fit_weights_with(shrinkage, *rows):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(weights, "SHRINKAGE", shrinkage)
        return fit_weights(*rows)


EXPONENTS = np.linspace(0, 1, 9)  # from accuracy to balanced accuracy
COUNTED = ["f1_macro", "f1_weighted", "matthews_corrcoef", "balanced_accuracy", "fbeta=2_macro"]


@pytest.mark.parametrize("scoring", COUNTED)
@pytest.mark.parametrize("n", [15, 200])
def test_weights_are_never_worse_than_a_power_of_the_shares(scoring, n):
    score = resolve_scoring(scoring)
    for seed in range(15):
        proba, labels, weight = draw(n, seed=seed)
        fitted = fit_weights(proba, labels, weight, score.of_counts)
        shares = np.log(class_shares(labels, weight, 3))
        starts = [score_at(-s * shares, proba, labels, weight, score) for s in EXPONENTS]
        assert score_at(np.log(fitted), proba, labels, weight, score) >= max(starts) - 1e-9


@pytest.mark.parametrize("scoring", ["f1", "f1_macro", "fbeta=2", "matthews_corrcoef"])
def test_two_classes_get_the_best_threshold(scoring):
    score = resolve_scoring(scoring)
    for seed in range(6):
        proba, labels, weight = draw(40, 2, seed)
        fitted = fit_weights_with(0.0, proba, labels, weight, score.of_counts)
        odds = np.sort(np.log(proba[:, 0] / proba[:, 1]))
        between = np.concatenate([odds - 1e-9, odds + 1e-9])
        best = max(score_at([0, w], proba, labels, weight, score) for w in between)
        assert score_at(np.log(fitted), proba, labels, weight, score) == pytest.approx(best)


def test_leaders_are_those_of_a_look_at_all_scores():
    """Also where classes are tied, or impossible."""
    rng = np.random.default_rng(0)
    for m in (2, 3, 6):
        scores = np.log(np.round(rng.dirichlet(np.full(m, 0.3), 40), 1) + 1e-300)
        scores[scores < -600] = -np.inf
        leaders = weights._Leaders(scores.copy())
        for _ in range(30):
            j = int(rng.integers(m))
            others = np.where(np.arange(m) == j, -np.inf, scores)
            rival, ahead = leaders.without(j)
            np.testing.assert_array_equal(rival, others.argmax(axis=1))
            np.testing.assert_array_equal(ahead, others.max(axis=1))
            scores[:, j] += rng.choice([-0.5, 0.0, 0.3])
            leaders.change(j, scores[:, j].copy())


@pytest.mark.parametrize("scoring", ["f1_macro", "matthews_corrcoef"])
def test_of_a_class_with_ten_rows_half_of_its_own_weight_is_taken(scoring):
    """The other half is a power of the shares, which is all unless the score is as high."""
    score = resolve_scoring(scoring)
    for seed in range(10):
        proba, labels, weight = draw(60, seed=seed)
        fitted, own, held = (
            np.log(fit_weights_with(shrinkage, proba, labels, weight, score.of_counts))
            for shrinkage in (weights.SHRINKAGE, 0.0, 1e12)
        )
        shares = np.log(class_shares(labels, weight, 3))
        exponent = (held[0] - held[1]) / (shares[1] - shares[0])
        np.testing.assert_allclose(held, -exponent * shares, atol=1e-6)
        trust = 1 / (1 + 10 / np.bincount(labels, weight))
        both = trust * own + (1 - trust) * held
        best = max((both, held), key=lambda each: score_at(each, proba, labels, weight, score))
        np.testing.assert_allclose(fitted, best, atol=1e-9)


def test_no_other_weight_of_a_single_class_is_better():
    score = resolve_scoring("f1_macro")
    for seed in range(5):
        proba, labels, weight = draw(40, seed=seed)
        log_weights = np.log(fit_weights_with(0.0, proba, labels, weight, score.of_counts))
        reached = score_at(log_weights, proba, labels, weight, score)
        for j, more in itertools.product(range(3), np.linspace(-3, 3, 61)):
            other = log_weights + more * np.eye(3)[j]
            assert score_at(other, proba, labels, weight, score) <= reached + 1e-9


@given(st.permutations(range(4)))
def test_the_order_of_classes_does_not_matter(order):
    proba, labels, weight = draw(120, 4, seed=3)
    order = np.array(order)
    for scoring in ("f1_macro", "balanced_accuracy"):
        purpose = purpose_of(scoring, m=4)
        plain = purpose.fit(proba, labels, weight)
        moved = purpose.fit(proba[:, order], np.argsort(order)[labels], weight)
        np.testing.assert_allclose(moved.values, plain.values[order], rtol=1e-9)


# Several labels.


@pytest.mark.parametrize("scoring", ["f1_micro", "fbeta=2_micro", "f1_samples"])
def test_the_common_threshold_is_the_best(scoring):
    purpose = purpose_of(scoring, m=4, multilabel=True)
    for seed in range(5):
        proba, labels, weight = draw_labels(seed=seed)
        rule = purpose.fit(proba, labels, weight)
        assert np.ptp(rule.values) == 0
        levels = np.concatenate([[0], np.sort(proba.ravel())])
        best = max(purpose.score(labels, proba > t, weight) for t in levels)
        assert purpose.score(labels, rule.codes(proba), weight) == pytest.approx(best)


@pytest.mark.parametrize("scoring", ["subset_accuracy", "neg_log_loss", "accuracy"])
def test_labels_above_one_half_where_no_better_rule_is_known(scoring):
    """And each right one is worth the same."""
    proba, labels, weight = draw_labels()
    purpose = purpose_of(scoring, m=4, multilabel=True)
    for rule in (purpose.fit(proba, labels, weight), purpose.most_probable(proba, labels, weight)):
        codes = rule.codes(proba)
        np.testing.assert_array_equal(codes, proba > 0.5)
        np.testing.assert_allclose(values_of(rule, labels, codes), (codes == labels).mean(axis=1))


# What decisions are worth.


PURPOSES = [
    *((name, None, False) for name in [*COUNTED, "accuracy"]),
    (None, [[0, 1, 3, 0.5]] * 3, False),
    *((name, None, True) for name in MULTI),
]


@pytest.mark.parametrize(("scoring", "costs", "multilabel"), PURPOSES)
@pytest.mark.parametrize("plain", [False, True])
def test_worth_is_what_one_more_decision_adds_to_the_score(scoring, costs, multilabel, plain):
    """A rule that is not adopted leaves decisions as they are, and is judged by the purpose too."""
    proba, labels, weight = draw_labels(3000) if multilabel else draw(3000)
    purpose = purpose_of(scoring, costs, proba.shape[1], multilabel=multilabel)
    rule = (purpose.most_probable if plain else purpose.fit)(proba, labels, weight)
    codes = rule.codes(proba)
    before, values = purpose.score(labels, codes, weight), values_of(rule, labels, codes)
    for row in range(0, 3000, 150):
        changed = codes.copy()
        if multilabel:
            changed[row, row // 150 % 4] ^= 1
        else:
            changed[row] = (changed[row] + 1 + row % 2) % 3
        change = purpose.score(labels, changed, weight) - before
        worth = values_of(rule, labels, changed) - values
        assert change == pytest.approx(weight @ worth / weight.sum(), rel=0.05, abs=1e-9)


# Borders of the rules.


def test_a_label_at_its_threshold_is_not_decided():
    rule = Decision("thresholds", np.array([0.5, 0.25]))
    np.testing.assert_array_equal(
        rule.codes(np.array([[0.5, 0.25], [0.51, 0.26]])), [[0, 0], [1, 1]]
    )


def test_a_row_as_sure_as_asked_for_is_decided_and_a_less_sure_one_is_left_to_a_person():
    rule = Decision("weights", np.ones(3), least=0.5)
    codes = rule.codes(np.array([[0.25, 0.5, 0.25], [0.4, 0.49, 0.11]]))
    assert codes.tolist() == [1, 3]
    assert rule.rule().names(codes, np.array(["a", "b", "c"])).tolist() == ["b", None]
    assert repr(rule) == "Decision(the most probable class from 0.5 on)"
    nothing = Decision("weights", np.ones(3), least=NOTHING)
    assert nothing.codes(np.eye(3)).tolist() == [3, 3, 3]
    assert repr(nothing) == "Decision(nothing: every row is left to a person)"


def test_scores_judge_rows_that_a_target_accuracy_leaves_to_a_person():
    proba, labels, _ = draw(600, seed=3)
    model = Adjuster(target_accuracy=0.8).fit(proba, labels)
    left = model.predict(proba) == None  # noqa: E711
    assert 0 < left.sum() < len(left)
    best = model.transform(proba).argmax(axis=1)
    np.testing.assert_array_equal(class_decisions(model, proba), best)
    np.testing.assert_array_equal(decision_codes(model, proba), np.where(left, 3, best))
    # In the order of other classes, too.
    np.testing.assert_array_equal(class_decisions(model, proba, np.array([2, 1, 0])), 2 - best)
    assert model.score(proba, labels) == pytest.approx((best == labels).mean())


@pytest.mark.parametrize(
    ("rule", "worst"),
    [
        (Decision("weights", np.ones(3)), 1.0),
        (Decision("weights", np.ones(2), np.array([[2.0, 0.0], [7.0, -1.0]])), 6.0),
        (Decision("costs", np.array([[0.0, 1.0, 5.0], [3.0, 0.0, 4.0]])), 5.0),
        (Decision("thresholds", np.full(4, 0.5)), 0.25),
        (Decision("thresholds", np.full(1, 0.5), np.array([[[0.0, -3.0], [9.0, 10.0]]])), 3.0),
    ],
    ids=str,
)
def test_the_worst_that_one_decision_can_do(rule, worst):
    assert rule.worst_row() == pytest.approx(worst)


def test_a_right_decision_is_worth_one_and_a_row_left_to_a_person_nothing():
    plain, labels = Decision("weights", np.ones(3)), Decision("thresholds", np.full(4, 0.5))
    np.testing.assert_array_equal(plain.table(person=True), np.eye(3, 4))
    np.testing.assert_array_equal(labels.table(), np.tile(np.eye(2) / 4, (4, 1, 1)))
    assert not plain.leaves_rows


def test_a_class_counts_by_what_missing_it_costs_on_average():
    rule = Decision("costs", np.array([[0.0, 1, 3, 9], [2, 1, 2, 9], [4, 4, 0, 9]]))
    np.testing.assert_array_equal(rule.class_weights, [2, 1, 4])


def test_a_class_that_is_given_up_is_told_unless_the_goal_says_how_classes_count():
    y = np.repeat([0, 1, 2], [80, 10, 10])
    rows = Labelled(np.eye(3)[y], y, np.ones(100), np.arange(3))
    for goal in ("accuracy", "f1_weighted", "balanced_accuracy", None):
        purpose = purpose_of(goal, None if goal else 1 - np.eye(3))
        caution = purpose.price(rows, y, np.zeros(100, int), rows.proba)
        assert (caution is not None) == (goal in ("accuracy", "f1_weighted"))


def test_the_most_probable_class_by_whatever_name():
    assert Decision("costs", 1 - np.eye(3)).is_argmax
    assert not Decision("costs", 2 - np.eye(3)).is_argmax
    assert repr(Decision("weights", np.ones(3))) == "Decision(the most probable class)"
    rare = Decision("weights", np.array([1, 3.00049]))
    assert repr(rare) == "Decision(weights=[1., 3.])"

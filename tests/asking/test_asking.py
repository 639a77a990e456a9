"""Which rows to label, and what their labels say."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from scipy.special import logit
from sklearn.linear_model import LogisticRegression

from altnorm import AlternatingNormalizer, InputError, ask, judge
from altnorm.asking.betting import DrawnUnits, first_crossing
from altnorm.asking.judgement import Pool, weigh_labels
from altnorm.asking.sampling import Outcomes, common_step, find_changes
from altnorm.decisions.decision import Decision
from altnorm.peers import Identity, LabelThresholds
from tests.problems import planted, planted_labels, values_of

POOL, LABELS = planted(600, seed=1)
MULTI_POOL, MULTI_LABELS = planted_labels(300, seed=1)
CLASSES = np.array(["ant", "bee", "cow", "dog"])
ACCURACY = Decision("weights", np.ones(4))


@pytest.fixture(scope="module")
def normalizer():
    return AlternatingNormalizer().fit(*planted(seed=0))


@pytest.fixture(scope="module")
def tagger():
    return AlternatingNormalizer(multilabel="labelwise").fit(*planted_labels(seed=0))


def counted(x):
    """Rows that are fixed (1), broken (-1) or neither."""
    return Outcomes(x.astype(float), np.ones(x.size), int((x > 0).sum()), int((x < 0).sum()))


def test_fewer_rows_are_the_first_of_more_and_the_seed_fixes_the_order(normalizer):
    rows = ask(normalizer, POOL, random_state=3)
    np.testing.assert_array_equal(ask(normalizer, POOL, n=9, random_state=3), rows[:9])
    np.testing.assert_array_equal(ask(normalizer, POOL, n=10**6, random_state=3), rows)
    assert (ask(normalizer, POOL, random_state=4) != rows).any()


def test_a_row_with_more_changed_labels_comes_sooner(tagger):
    changes = find_changes(tagger, MULTI_POOL)
    n_changed = np.count_nonzero(changes.before != changes.after, axis=1)
    assert set(n_changed) >= {1, 2, 3}
    chosen = [int(np.flatnonzero(n_changed == size)[0]) for size in (1, 2, 3)]
    pool = MULTI_POOL[changes.rows[chosen]]
    orders = np.array([ask(tagger, pool, random_state=seed) for seed in range(480)])
    expected = np.array([80, 160, 240])
    first = np.bincount(orders[:, 0], minlength=3)
    assert (np.abs(first - expected) < 4 * np.sqrt(expected)).all()
    second = np.bincount(orders[orders[:, 0] == 2, 1], minlength=3)  # of sizes 1 and 2 left
    assert abs(second[1] / second.sum() - 2 / 3) < 0.12


def test_after_the_decision_its_place_stays(normalizer):
    rows = ask(normalizer, POOL)
    of_all = judge(normalizer, POOL, rows, LABELS[rows])
    n = of_all.n_decided
    assert n < 40
    assert judge(normalizer, POOL, rows, LABELS[rows[: n - 1]]).decision == "go on"
    for more in (n, n + 1, n + 20):
        answer = judge(normalizer, POOL, rows, LABELS[rows[:more]])
        assert (answer.decision, answer.n_decided, answer.n_expected) == ("adopt", n, 0)


def test_labels_after_a_gap_wait(normalizer):
    rows = ask(normalizer, POOL, n=10)
    y = LABELS[rows].astype(object)
    y[4] = None
    answer = judge(normalizer, POOL, rows, y)
    until = judge(normalizer, POOL, rows, LABELS[rows[:4]])
    assert answer == replace(until, n_waiting=5)
    assert "5 labels do not count until all rows before them have one" in str(answer)


@pytest.mark.parametrize("missing", [None, np.nan, "", pd.NA])
def test_ways_to_leave_a_label_out(missing):
    proba, y = planted(seed=0)
    normalizer = AlternatingNormalizer().fit(proba, CLASSES[y])
    rows = ask(normalizer, POOL, n=4)
    for n in (3, 0):
        labels = [*CLASSES[LABELS[rows[:n]]], *[missing] * (4 - n)]
        answer = judge(normalizer, POOL, rows, labels)
        assert (answer.n_labelled, answer.n_waiting) == (n, 0)


def test_label_decisions_are_counted_in_multilabel_problems(tagger):
    rows = ask(tagger, MULTI_POOL)
    before, after = MULTI_POOL > 0.5, tagger.predict(MULTI_POOL) > 0
    assert sorted(rows) == np.flatnonzero((before != after).any(axis=1)).tolist()
    wrong = [(decided != MULTI_LABELS).mean() for decided in (before, after)]
    of_all = judge(tagger, MULTI_POOL, rows, MULTI_LABELS[rows])
    assert of_all.gain == pytest.approx(wrong[0] - wrong[1], abs=1e-15)
    assert of_all.n_fixed + of_all.n_broken == (before != after).sum()
    assert "decisions fixed" in str(of_all)


def test_only_changed_labels_are_looked_at(tagger):
    rows = ask(tagger, MULTI_POOL, n=12)
    changed = (MULTI_POOL > 0.5) != (tagger.predict(MULTI_POOL) > 0)
    y = np.where(changed[rows], MULTI_LABELS[rows], np.nan)
    answer = judge(tagger, MULTI_POOL, rows, y)
    assert answer == judge(tagger, MULTI_POOL, rows, MULTI_LABELS[rows])
    assert answer == judge(tagger, MULTI_POOL, rows, csr_array(MULTI_LABELS[rows]))
    row = int(np.flatnonzero(changed[rows].sum(axis=1) > 1)[0])
    y[row, np.flatnonzero(changed[rows[row]])[0]] = np.nan  # half a row is no row
    assert judge(tagger, MULTI_POOL, rows, y).n_labelled == row


def test_logits_and_other_transformers(normalizer):
    proba, y = planted(seed=0)
    same = AlternatingNormalizer(input="logits").fit(np.log(proba), y)
    rows = ask(same, np.log(POOL))
    assert sorted(rows) == sorted(ask(normalizer, POOL))
    proba, labels = planted_labels(seed=0)
    thresholds = LabelThresholds(input="logits").fit(logit(proba), labels)
    rows = ask(thresholds, logit(MULTI_POOL))
    changed = thresholds.predict(logit(MULTI_POOL)) != (MULTI_POOL > 0.5)
    assert sorted(rows) == np.flatnonzero(changed.any(axis=1)).tolist()


def test_the_order_of_the_classes_does_not_matter(normalizer):
    proba, y = planted(seed=0)
    turned = AlternatingNormalizer().fit(proba[:, ::-1], 3 - y)
    rows = ask(normalizer, POOL, n=30)
    np.testing.assert_array_equal(ask(turned, POOL[:, ::-1], n=30), rows)
    answer = judge(turned, POOL[:, ::-1], rows, 3 - LABELS[rows])
    assert answer == judge(normalizer, POOL, rows, LABELS[rows])


def test_where_nothing_changes_there_is_nothing_to_ask():
    identity = Identity().fit(*planted(seed=0))
    rows = ask(identity, POOL)
    answer = judge(identity, POOL, rows, [])
    assert rows.shape == (0,)
    assert str(answer) == "Do not adopt: no decision changes in 600 rows."
    assert str([answer.gain, answer.ci_low, answer.ci_high]) == "[0.0, 0.0, 0.0]"  # and not -0.0


def test_without_labels_there_is_no_answer_yet(normalizer):
    rows = ask(normalizer, POOL, n=10)
    answer = judge(normalizer, POOL, rows, [])
    assert answer.decision == "go on"
    assert np.isnan(answer.gain)
    assert answer.p_value == 1
    assert json.loads(json.dumps(answer.to_dict()))["gain"] is None
    n_changed = answer.n_changed
    assert (answer.ci_low, answer.ci_high) == (-n_changed / 600, n_changed / 600)
    assert str(answer).startswith(f"Go on: no labels yet, {n_changed} of 600 rows change; about")


@pytest.mark.parametrize("sign", [1, -1])
def test_a_decision_that_falls_before_the_interval_says_so(sign):
    settled = "; the sign is settled, the two-sided interval still holds 0."
    pool = Pool(900, 300, 300.0, ACCURACY)
    outcomes = set()
    for n in range(1, 16):  # every label speaks for the same side
        answer = weigh_labels(pool, counted(np.full(n, sign)))
        is_settled = answer.ci_low > 0 if sign > 0 else answer.ci_high <= 0
        assert str(answer).endswith(settled) == (answer.decision != "go on" and not is_settled)
        outcomes.add((answer.decision, is_settled))
    assert {decision for decision, _ in outcomes} == {
        "go on",
        "adopt" if sign > 0 else "do not adopt",
    }
    assert len(outcomes) == 3  # go on; the decision alone; both


def test_no_gain_is_a_total_below_the_smallest_gain():
    """Of whole rows that is 1, so that a total of 0 need not be ruled out first."""
    pool = Pool(90, 20, 20.0, ACCURACY)
    answer = weigh_labels(pool, counted(np.full(9, -1)))
    losses = DrawnUnits(np.ones(9), np.ones(9), 20.0, 20)
    by_step, by_zero = (first_crossing(losses, total, 0.05) for total in (-1.0, 0.0))
    assert answer.n_decided == by_step < by_zero


class Fixed:
    """A model that has made up its mind, with a purpose if it is given one."""

    input = "proba"

    def __init__(self, decided, classes, decision=None, multilabel=None):
        self.decided, self.classes_, self.multilabel = decided, np.asarray(classes), multilabel
        if decision is not None:
            self.decision_ = decision

    def predict(self, proba):
        return self.decided


COSTS = np.array([[0, 1, 4, 9, 2], [1, 0, 1, 1, 0.5], [2, 2, 0, 2, 0.5], [20, 1, 1, 0, 0.5]])
SHARES = np.array([0.1, 0.2, 0.3, 0.4])
BY_HIT, BY_PREDICTED = np.array([0.9, 0.5, 0.4, 0.3]), np.array([-0.4, -0.2, -0.1, -0.1])
DECISIONS = {
    "accuracy": ACCURACY,
    "balanced accuracy": Decision(
        "weights", 1 / SHARES, np.stack([1 / (4 * SHARES), 0 * SHARES], axis=1)
    ),
    "f1": Decision("weights", np.ones(4), np.stack([BY_HIT, BY_PREDICTED], axis=1)),
    "costs": Decision("costs", COSTS),
}


def undecided(n, seed, decision):
    """Two models that differ in about half of the rows, and the truth; some rows are left."""
    rng = np.random.default_rng(seed)
    n_outcomes = 4 + decision.leaves_rows
    names = np.array([*CLASSES, None], dtype=object)
    truth, first = rng.integers(4, size=n), rng.integers(n_outcomes, size=n)
    second = np.where(rng.random(n) < 0.5, first, rng.integers(n_outcomes, size=n))
    better = rng.random(n) < 0.3
    second[better] = truth[better]
    models = (Fixed(names[codes], CLASSES, decision) for codes in (second, first))
    return *models, (second, first), truth


@pytest.mark.parametrize("name", DECISIONS)
def test_a_changed_row_counts_what_it_is_worth(name):
    decision = DECISIONS[name]
    new, old, codes, truth = undecided(300, 0, decision)
    pool = np.empty((300, 4))
    rows = ask(new, pool, against=old)
    assert sorted(rows) == np.flatnonzero(codes[0] != codes[1]).tolist()
    answer = judge(new, pool, rows, CLASSES[truth[rows]], against=old)
    after, before = (values_of(decision, truth, decided) for decided in codes)
    assert answer.gain == pytest.approx((after - before).mean(), abs=1e-12)
    assert answer.ci_low == answer.ci_high == answer.gain
    assert (answer.n_fixed, answer.n_broken) == ((after > before).sum(), (after < before).sum())
    assert answer.decision == ("adopt" if answer.gain > 0 else "do not adopt")
    assert ("cost saved per row +" in str(answer)) == (name == "costs")
    back = judge(old, pool, rows, CLASSES[truth[rows]], against=new)
    assert back.gain == pytest.approx(-answer.gain, abs=1e-12)
    for n in (0, 7, 40):
        early = judge(new, pool, rows, CLASSES[truth[rows[:n]]], against=old)
        assert early.ci_low <= answer.gain <= early.ci_high
        gain = (after - before)[rows[:n]]
        assert (early.n_fixed, early.n_broken) == ((gain > 0).sum(), (gain < 0).sum())
        assert (early.n_rows, early.n_changed, early.n_labelled) == (300, len(rows), n)
        assert n == 0 or early.ci_low <= early.gain <= early.ci_high


def test_any_fitted_estimator_that_decides():
    proba, y = planted(seed=0)
    models = [LogisticRegression(C=c).fit(proba, y) for c in (1.0, 1e-3)]
    rows = ask(models[0], POOL, against=models[1])
    decided = [model.predict(POOL) for model in models]
    assert sorted(rows) == np.flatnonzero(decided[0] != decided[1]).tolist()
    answer = judge(models[0], POOL, rows, LABELS[rows], against=models[1])
    assert answer.gain == pytest.approx(np.subtract(*(np.mean(d == LABELS) for d in decided)))
    rows = ask(models[1], POOL)  # against the predictions as they came
    assert sorted(rows) == np.flatnonzero(decided[1] != POOL.argmax(axis=1)).tolist()


def test_classes_in_another_order(normalizer, tagger):
    for model, pool in ((normalizer, POOL), (tagger, MULTI_POOL)):
        identity, turned = (Identity(multilabel=model.multilabel).fit(pool) for _ in range(2))
        turned.classes_ = model.classes_[::-1]
        rows = ask(model, pool, against=turned)
        np.testing.assert_array_equal(rows, ask(model, pool))
        assert ask(identity, pool, against=turned).size == 0


def test_models_that_cannot_be_compared():
    left = Fixed(np.array([*LABELS[:-1], None], dtype=object), range(4))
    plain = Fixed(LABELS, range(4), ACCURACY)
    logits = Fixed(LABELS, range(4))
    logits.input = "logits"
    for against, message in (
        (Fixed(LABELS, range(3)), r"same classes; they have \[0, 1, 2, 3\] and \[0, 1, 2\]"),
        (logits, "same kind of input; they have proba and logits"),
        (Fixed(LABELS, range(4), multilabel="pairs"), "kind of labels; they have single-label"),
        (left, "to leave a row to a person; 1 of 600 rows are"),
    ):
        with pytest.raises(InputError, match=message):
            ask(plain, POOL, against=against)
    assert ask(left, POOL, against=plain).tolist() == [599]  # never right


@pytest.mark.parametrize(
    ("worth", "step"),
    [
        (np.eye(4), 1.0),
        (np.tile(np.eye(2) / 7, (7, 1, 1)), 1 / 7),
        (np.array([[0, -2.5], [-5, 0]]), 2.5),
        (np.array([[0, -2], [-5, 0]]), 0.0),
        (np.zeros((2, 2)), 0.0),
    ],
)
def test_values_that_are_multiples_of_one(worth, step):
    assert common_step(worth) == step


def test_bad_rows_labels_and_levels(normalizer, tagger):
    rows = ask(normalizer, POOL, n=3)
    for wrong, message in (
        ({"asked": [[0, 1]]}, r"`asked` must hold row numbers.*shape \(1, 2\)"),
        ({"asked": [0.5]}, "`asked` must hold row numbers.*float64"),
        ({"asked": [-5]}, "rows whose decision changes; 1 of 1 do not, the first is row -5"),
        ({"asked": rows[[0, 0]]}, r"each row once; row .* appears 2 times"),
        ({"y": [0, 1, 2, 3]}, r"each of the 3 asked rows.*shape \(4,\)"),
        ({"y": [0, 9]}, "must be one of the classes; 1 of 2 are not"),
        ({"significance": 5}, "`significance` must be a number between 0 and 1"),
    ):
        with pytest.raises(InputError, match=message):
            judge(normalizer, POOL, **({"asked": rows, "y": []} | wrong))
    with pytest.raises(InputError, match="`n` must be an integer, 1 or greater"):
        ask(normalizer, POOL, n=0)
    rows = ask(tagger, MULTI_POOL, n=3)
    for y, message in (
        ([1, 0, 1], "0/1 matrix with 6 columns"),
        (np.full((3, 6), 2), r"only 0 and 1, and NaN.*first is 2"),
    ):
        with pytest.raises(InputError, match=message):
            judge(tagger, MULTI_POOL, rows, y)

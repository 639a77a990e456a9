"""Which rows to label, and what their labels say."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from scipy.special import logit

import altnorm
from altnorm.asking.asking import find_changes
from altnorm.asking.judgement import Pool, weigh_labels
from altnorm.peers import Identity, LabelThresholds
from tests.problems import MODES, planted, planted_labels

POOL, LABELS = planted(600, seed=1)
MULTI_POOL, MULTI_LABELS = planted_labels(300, seed=1)


@pytest.fixture(scope="module")
def normalizer():
    return altnorm.AlternatingNormalizer().fit(*planted(seed=0))


@pytest.fixture(scope="module")
def tagger():
    return altnorm.AlternatingNormalizer(multilabel="labelwise").fit(*planted_labels(seed=0))


def counts(normalizer, proba, y, rows):
    """Rows fixed and broken, counted one by one."""
    after = normalizer.transform(proba)
    fixed = broken = 0
    for i in rows:
        fixed += proba[i].argmax() != y[i] and after[i].argmax() == y[i]
        broken += proba[i].argmax() == y[i] and after[i].argmax() != y[i]
    return fixed, broken


def test_the_rows_are_those_that_change_each_once(normalizer):
    rows = altnorm.ask(normalizer, POOL)
    changed = np.flatnonzero(normalizer.transform(POOL).argmax(axis=1) != POOL.argmax(axis=1))
    assert sorted(rows) == changed.tolist()
    assert len(changed) > 50


def test_fewer_rows_are_the_first_of_more_and_the_seed_fixes_the_order(normalizer):
    rows = altnorm.ask(normalizer, POOL, random_state=3)
    np.testing.assert_array_equal(altnorm.ask(normalizer, POOL, n=9, random_state=3), rows[:9])
    np.testing.assert_array_equal(altnorm.ask(normalizer, POOL, n=10**6, random_state=3), rows)
    assert (altnorm.ask(normalizer, POOL, random_state=4) != rows).any()


def test_every_changed_row_is_as_likely_to_come_first(normalizer):
    pool = POOL[altnorm.ask(normalizer, POOL)[:5]]
    first = [altnorm.ask(normalizer, pool, n=1, random_state=seed)[0] for seed in range(1000)]
    expected = 200
    assert np.abs(np.bincount(first, minlength=5) - expected).max() < 4 * np.sqrt(expected)


def test_a_row_with_more_changed_labels_comes_sooner(tagger):
    changes = find_changes(tagger, MULTI_POOL)
    assert set(changes.size) >= {1, 2, 3}
    chosen = [int(np.flatnonzero(changes.size == size)[0]) for size in (1, 2, 3)]
    pool = MULTI_POOL[changes.rows[chosen]]
    orders = np.array([altnorm.ask(tagger, pool, random_state=seed) for seed in range(1200)])
    expected = np.array([200, 400, 600])
    first = np.bincount(orders[:, 0], minlength=3)
    assert (np.abs(first - expected) < 4 * np.sqrt(expected)).all()
    second = np.bincount(orders[orders[:, 0] == 2, 1], minlength=3)  # of sizes 1 and 2 left
    assert abs(second[1] / second.sum() - 2 / 3) < 0.08


def test_counts_gain_and_interval(normalizer):
    rows = altnorm.ask(normalizer, POOL)
    for n in (1, 5, 20, 60):
        found = altnorm.judge(normalizer, POOL, rows, LABELS[rows[:n]])
        assert (found.n_fixed, found.n_broken) == counts(normalizer, POOL, LABELS, rows[:n])
        assert (found.n_rows, found.n_changed, found.n_labelled) == (600, len(rows), n)
        assert found.ci_low <= found.gain <= found.ci_high
    fixed, broken = counts(normalizer, POOL, LABELS, rows)
    whole = altnorm.judge(normalizer, POOL, rows, LABELS[rows])
    assert whole.gain == whole.ci_low == whole.ci_high == (fixed - broken) / 600
    right = [
        np.mean(decided == LABELS) for decided in (POOL.argmax(axis=1), normalizer.predict(POOL))
    ]
    assert whole.gain == pytest.approx(right[1] - right[0], abs=1e-15)
    assert whole.adopted
    assert whole.n_decided < 40


def test_harm_is_found_as_gain_is(normalizer):
    rows = altnorm.ask(normalizer, POOL)
    harm = altnorm.judge(normalizer, POOL, rows, POOL.argmax(axis=1)[rows[:12]])
    gain = altnorm.judge(normalizer, POOL, rows, normalizer.predict(POOL)[rows[:12]])
    assert (harm.decision, gain.decision) == ("do not adopt", "adopt")
    assert (harm.n_broken, gain.n_fixed) == (12, 12)
    assert harm.ci_high == -gain.ci_low
    assert harm.p_value == 1.0


def test_after_the_decision_its_place_stays(normalizer):
    rows = altnorm.ask(normalizer, POOL)
    n = altnorm.judge(normalizer, POOL, rows, LABELS[rows]).n_decided
    assert altnorm.judge(normalizer, POOL, rows, LABELS[rows[: n - 1]]).decision == "go on"
    for more in (n, n + 1, n + 20):
        found = altnorm.judge(normalizer, POOL, rows, LABELS[rows[:more]])
        assert (found.decision, found.n_decided, found.n_expected) == ("adopt", n, 0)


def test_labels_after_a_gap_wait(normalizer):
    rows = altnorm.ask(normalizer, POOL, n=10)
    y = LABELS[rows].astype(object)
    y[4] = None
    found = altnorm.judge(normalizer, POOL, rows, y)
    until = altnorm.judge(normalizer, POOL, rows, LABELS[rows[:4]])
    assert (found.n_labelled, found.n_waiting) == (4, 5)
    assert (found.gain, found.ci_low, found.n_expected) == (
        until.gain,
        until.ci_low,
        until.n_expected,
    )
    assert "5 labels do not count until all rows before them have one" in str(found)


@pytest.mark.parametrize("missing", [None, np.nan, "", pd.NA])
def test_ways_to_leave_a_label_out(missing):
    proba, y = planted(seed=0)
    names = np.array(["ant", "bee", "cow", "dog"])
    normalizer = altnorm.AlternatingNormalizer().fit(proba, names[y])
    rows = altnorm.ask(normalizer, POOL, n=4)
    labels = [*names[LABELS[rows[:3]]], missing]
    found = altnorm.judge(normalizer, POOL, rows, labels)
    assert (found.n_labelled, found.n_waiting) == (3, 0)
    assert altnorm.judge(normalizer, POOL, rows, [missing] * 4).n_labelled == 0


def test_whole_numbers_with_gaps_may_be_floats(normalizer):
    rows = altnorm.ask(normalizer, POOL, n=5)
    y = LABELS[rows].astype(float)
    y[3:] = np.nan
    assert altnorm.judge(normalizer, POOL, rows, y) == altnorm.judge(
        normalizer, POOL, rows, LABELS[rows[:3]]
    )


@pytest.mark.parametrize("mode", MODES)
def test_label_decisions_are_counted_in_multilabel_problems(mode):
    tagger = altnorm.AlternatingNormalizer(multilabel=mode).fit(*planted_labels(seed=0))
    rows = altnorm.ask(tagger, MULTI_POOL)
    before, after = MULTI_POOL > 0.5, tagger.predict(MULTI_POOL) > 0
    assert sorted(rows) == np.flatnonzero((before != after).any(axis=1)).tolist()
    wrong = [(decided != MULTI_LABELS).mean() for decided in (before, after)]
    whole = altnorm.judge(tagger, MULTI_POOL, rows, MULTI_LABELS[rows])
    assert whole.gain == pytest.approx(wrong[0] - wrong[1], abs=1e-15)
    assert whole.n_fixed + whole.n_broken == (before != after).sum()
    assert "decisions fixed" in str(whole)


def test_only_changed_labels_are_looked_at(tagger):
    rows = altnorm.ask(tagger, MULTI_POOL, n=12)
    changed = (MULTI_POOL > 0.5) != (tagger.predict(MULTI_POOL) > 0)
    y = np.where(changed[rows], MULTI_LABELS[rows], np.nan)
    found = altnorm.judge(tagger, MULTI_POOL, rows, y)
    assert found == altnorm.judge(tagger, MULTI_POOL, rows, MULTI_LABELS[rows])
    assert found == altnorm.judge(tagger, MULTI_POOL, rows, csr_array(MULTI_LABELS[rows]))
    row = int(np.flatnonzero(changed[rows].sum(axis=1) > 1)[0])
    y[row, np.flatnonzero(changed[rows[row]])[0]] = np.nan  # half a row is no row
    assert altnorm.judge(tagger, MULTI_POOL, rows, y).n_labelled == row


def test_logits_and_other_transformers(normalizer):
    proba, y = planted(seed=0)
    same = altnorm.AlternatingNormalizer(input="logits").fit(np.log(proba), y)
    rows = altnorm.ask(same, np.log(POOL))
    assert sorted(rows) == sorted(altnorm.ask(normalizer, POOL))
    thresholds = LabelThresholds(input="logits").fit(*_logits(planted_labels(seed=0)))
    asked = altnorm.ask(thresholds, logit(MULTI_POOL))
    changed = thresholds.predict(logit(MULTI_POOL)) != (MULTI_POOL > 0.5)
    assert sorted(asked) == np.flatnonzero(changed.any(axis=1)).tolist()


def _logits(problem):
    return logit(problem[0]), problem[1]


def test_the_order_of_the_classes_does_not_matter(normalizer):
    proba, y = planted(seed=0)
    turned = altnorm.AlternatingNormalizer().fit(proba[:, ::-1], 3 - y)
    rows = altnorm.ask(normalizer, POOL, n=30)
    np.testing.assert_array_equal(altnorm.ask(turned, POOL[:, ::-1], n=30), rows)
    found = altnorm.judge(turned, POOL[:, ::-1], rows, 3 - LABELS[rows])
    assert found == altnorm.judge(normalizer, POOL, rows, LABELS[rows])


def test_where_nothing_changes_there_is_nothing_to_ask(normalizer):
    identity = Identity().fit(*planted(seed=0))
    rows = altnorm.ask(identity, POOL)
    found = altnorm.judge(identity, POOL, rows, [])
    assert rows.shape == (0,)
    assert str(found) == "Do not adopt: no decision changes in 600 rows."
    assert found.gain == found.ci_low == found.ci_high == 0


def test_without_labels_there_is_no_answer_yet(normalizer):
    rows = altnorm.ask(normalizer, POOL, n=10)
    found = altnorm.judge(normalizer, POOL, rows, [])
    assert found.decision == "go on"
    assert np.isnan(found.gain)
    assert found.p_value == 1
    assert json.loads(json.dumps(found.to_dict()))["gain"] is None
    share = found.n_changed / 600
    assert (found.ci_low, found.ci_high) == (-share, share)
    assert str(found).startswith(
        f"Go on: no labels yet, {found.n_changed} of 600 rows change; about"
    )


@pytest.mark.parametrize("sign", [1, -1])
def test_a_decision_that_falls_before_the_interval_says_so(sign):
    said = "; the sign is settled, the two-sided interval still holds 0."
    seen = set()
    for n in range(1, 16):  # every label speaks for the same side
        fixed = np.full(n, int(sign > 0))
        found = weigh_labels(Pool(900, 300, 300, 1), fixed, 1 - fixed, np.ones(n, int))
        is_settled = found.ci_low > 0 if sign > 0 else found.ci_high <= 0
        assert str(found).endswith(said) == (found.decision != "go on" and not is_settled)
        seen.add((found.decision, is_settled))
    assert {decision for decision, _ in seen} == {"go on", "adopt" if sign > 0 else "do not adopt"}
    assert len(seen) == 3  # go on; the decision alone; both


@pytest.mark.parametrize(
    ("fixed", "broken", "right"), [(60, 90, "do not adopt"), (110, 50, "adopt")]
)
def test_looking_after_each_label_errs_seldom_and_covers(fixed, broken, right):
    n, runs, rng = 200, 300, np.random.default_rng(5)
    pool = Pool(1000, n, n, 1)
    outcome = np.repeat([1, -1, 0], [fixed, broken, n - fixed - broken])
    wrong = missed = 0
    for _ in range(runs):
        x = rng.permutation(outcome)[:150]
        found = weigh_labels(pool, (x > 0) + 0, (x < 0) + 0, np.ones(150, dtype=int))
        # The interval holds what all looks have left, and the first decision stays.
        missed += not found.ci_low <= (fixed - broken) / 1000 <= found.ci_high
        wrong += found.decision not in (right, "go on")
    assert wrong / runs <= 0.05
    assert missed / runs <= 0.05


BAD = [
    ([[0, 1]], [], r"`asked` must hold row numbers.*shape \(1, 2\)"),
    ([0.5], [], "`asked` must hold row numbers.*float64"),
    ([-5], [], "must hold rows whose decision changes; 1 of 1 do not, the first is row -5"),
]


@pytest.mark.parametrize(("asked", "y", "message"), BAD)
def test_rows_that_were_never_asked_for(normalizer, asked, y, message):
    with pytest.raises(altnorm.InputError, match=message):
        altnorm.judge(normalizer, POOL, asked, y)


def test_bad_labels_and_levels(normalizer, tagger):
    rows = altnorm.ask(normalizer, POOL, n=3)
    with pytest.raises(altnorm.InputError, match=r"each row once; row .* is there 2 times"):
        altnorm.judge(normalizer, POOL, [rows[0], rows[0]], [])
    with pytest.raises(altnorm.InputError, match=r"each of the 3 asked rows.*shape \(4,\)"):
        altnorm.judge(normalizer, POOL, rows, [0, 1, 2, 3])
    with pytest.raises(altnorm.InputError, match="must be one of the classes; 1 of 2 are not"):
        altnorm.judge(normalizer, POOL, rows, [0, 9])
    with pytest.raises(altnorm.InputError, match="`significance` must be a number between 0 and 1"):
        altnorm.judge(normalizer, POOL, rows, [], significance=5)
    with pytest.raises(altnorm.InputError, match="`n` must be an integer, 1 or greater"):
        altnorm.ask(normalizer, POOL, n=0)
    rows = altnorm.ask(tagger, MULTI_POOL, n=3)
    with pytest.raises(altnorm.InputError, match="0/1 matrix with 6 columns"):
        altnorm.judge(tagger, MULTI_POOL, rows, [1, 0, 1])
    with pytest.raises(altnorm.InputError, match=r"only 0 and 1, and NaN.*first is 2"):
        altnorm.judge(tagger, MULTI_POOL, rows, np.full((3, 6), 2))

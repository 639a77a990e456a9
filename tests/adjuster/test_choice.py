"""The rules that decide: each gate at its border, and no row judged by a label of its own fold."""

from copy import copy
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import softmax
from scipy.stats import norm, t
from sklearn.metrics import cohen_kappa_score, log_loss, make_scorer

from altnorm import Adjuster
from altnorm.adjuster import choice
from altnorm.adjuster.alternating_paths import Setting
from altnorm.adjuster.candidates import Candidate, Competitors, CrossFitter, score_rows
from altnorm.adjuster.choice import Evidence, MixtureTrial, simplest_of_best
from altnorm.adjuster.mixture import CrossMixture, draw_back, mixture_weights
from altnorm.evidence.likeness import Copies
from altnorm.evidence.paired import paired_test
from tests.problems import MODES, calibrated, planted, planted_labels
from tests.validation import read

PURPOSES = [{}, {"scoring": "balanced_accuracy"}, {"scoring": "f1_macro"}, {"costs": 1 - np.eye(4)}]
FAMILIES = ("alternating", "bias", "matrix", "curves")
FOLDS = np.arange(300) * 5 // 300


# Folds are never judged by their own labels.


def fit_one(data, family):
    """One candidate at a fixed setting: a setting is one for all folds, and all choose it."""
    fitter = CrossFitter(data, FOLDS, calibrate=family != "alternating")
    if family == "temperature":
        return fitter, fitter.temperature
    if family == "alternating":
        return fitter, fitter.at_setting(Setting(2.0, 2, 0.25, "all", 0.1))
    facets = {"facets": False} if family == "curves" else {}
    return fitter, fitter.of_family(family, strength=4.0, **facets)


@pytest.mark.parametrize(
    ("family", "mode"),
    [
        (family, mode)
        for family in (*FAMILIES, "temperature")
        for mode in (None, *MODES)
        if mode is None or family != "matrix"
    ],
)
def test_no_fit_sees_a_label_of_the_fold_that_it_is_tried_on(family, mode):
    """Labels of a fold are exchanged: its cross-fitted rows stay, bit for bit."""
    proba, y = planted(300) if mode is None else planted_labels(300)
    poisoned = y.copy()
    poisoned[FOLDS == 2] = (y[FOLDS == 2] + 1) % (4 if mode is None else 2)
    data = (read(proba, labels, multilabel=mode) for labels in (y, poisoned))
    before, after = (fit_one(each, family)[1].proba() for each in data)
    np.testing.assert_array_equal(before[FOLDS == 2], after[FOLDS == 2])
    assert not np.array_equal(before[FOLDS != 2], after[FOLDS != 2])


@pytest.mark.parametrize("purpose", PURPOSES, ids=["accuracy", "balanced", "f1", "costs"])
def test_no_weight_or_rule_sees_a_label_of_the_fold_that_it_is_tried_on(purpose):
    """Given what the fits say of each row."""
    proba, y = planted(300)
    inside = FOLDS == 2
    fitter, bias = fit_one(read(proba, y, **purpose), "bias")
    judged = []
    for labels in (y, np.where(inside, (y + 1) % 4, y)):
        data = read(proba, labels, **purpose)
        again = CrossFitter(data, FOLDS)
        scored, again.temperature, again.untouched = (
            replace(part, log_p=score_rows(labels, part.proba()))
            for part in (bias, fitter.temperature, fitter.untouched)
        )
        mixture = CrossMixture(again, scored)
        fixed = judged[0][0] if judged else mixture.proba
        evidence = Evidence(data, FOLDS, 0.01)
        kept = mixture.keeping(evidence.before)  # drawn back towards the baseline
        judged.append((mixture.proba, kept, evidence.rules(fixed)[2].values))
    for mixed, mixed_again in zip(*(each[:2] for each in judged), strict=True):
        np.testing.assert_array_equal(mixed[inside], mixed_again[inside])
        assert not np.array_equal(mixed, mixed_again)
    np.testing.assert_array_equal(judged[0][2], judged[1][2])


# Gates, each from data where it alone decides.


def decided(n_fixed, n_broken, n=1000):
    """Decisions that fix and break so many of n rows, and the evidence to judge them."""
    proba, y, codes = np.tile([0.6, 0.4], (n, 1)), np.zeros(n, int), np.zeros(n, int)
    changed = n_fixed + n_broken
    y[:n_fixed], y[changed:], codes[:changed] = 1, np.arange(n - changed) % 2, 1
    return Evidence(read(proba, y), np.arange(n) % 5, 0.01, clusters=[]), codes


def mixture_of(log_p, proba=None):
    """A mixture, given by how much log-probabilities of labels rise."""
    return SimpleNamespace(log_p=log_p, baseline_log_p=np.zeros(len(log_p)), proba=proba)


def trial_of(evidence, codes, log_p=0.0, on_changed=0.0):
    """The trial, given by how much log-probabilities rise, everywhere and on changed rows."""
    noise = np.random.default_rng(0).normal(size=len(codes))
    rise = log_p + 0.3 * (noise - noise.mean())
    return trial_by(evidence, codes, np.where(codes == 1, on_changed + 0.3 * noise, rise))


def trial_by(evidence, codes, rise, proba=None):
    """The trial, given by how much the log-probability of each row's label rises."""
    trial = evidence.compare(codes, proba)
    return MixtureTrial(**vars(trial), mixture=mixture_of(rise), rules=())


def one_sided(errors, rows):
    """p-value of so many standard errors, by the rows that contribute."""
    return t.sf(errors, np.abs(rows).sum() ** 2 / (rows @ rows) - 1)


def held(trial):
    return {gate.name: gate.held for gate in trial.gates}


@pytest.mark.parametrize(
    ("fixed", "broken", "log_p", "on_changed", "holding"),
    [
        # The score alone: one-sided at 0.01, one more row at its worst taken off.
        (30, 12, 0, 0, {"rise", "score"}),
        (24, 14, 0, 0, {"rise"}),
        (12, 0, 0, 0, {"rise", "score"}),
        (7, 0, 0, 0, {"rise"}),
        # With the log loss any rise is enough,
        (16, 14, 0.2, 0.3, {"rise", "log_loss", "changed_rows"}),
        (14, 14, 0.2, 0.3, {"log_loss", "changed_rows"}),
        (12, 14, 0.2, 0.3, {"log_loss", "changed_rows"}),
        # which must be lower on all rows,
        (24, 14, 0.005, 0.3, {"rise", "changed_rows"}),
        # and on changed ones: elsewhere other confidence alone may lower it.
        (24, 14, 0.2, 0.13, {"rise", "log_loss", "changed_rows"}),
        (24, 14, 0.2, 0.06, {"rise", "log_loss"}),
        (24, 14, 0.2, -0.2, {"rise", "log_loss"}),
    ],
)
def test_the_score_rises_and_its_test_or_the_log_loss_is_evidence(
    fixed, broken, log_p, on_changed, holding
):
    trial = trial_of(*decided(fixed, broken), log_p, on_changed)
    assert {name for name, is_held in held(trial).items() if is_held} == holding
    by_score, by_log_loss = {"rise", "score"}, {"rise", "log_loss", "changed_rows"}
    route = "score" if holding >= by_score else "log_loss" if holding >= by_log_loss else ""
    assert trial.accepted == bool(route)
    assert trial.reason == ("" if route else "not_significant" if "rise" in holding else "no_gain")
    assert not trial.accepted or trial.gates.route == route


@pytest.mark.parametrize(("p", "is_held"), [(0.04, True), (0.06, False)])
def test_on_changed_rows_the_log_loss_is_tested_at_five_percent(p, is_held):
    """One-sided."""
    evidence, codes = decided(24, 14)
    noise = np.random.default_rng(0).normal(size=len(codes))

    def gate(rise):
        gates = trial_by(evidence, codes, np.where(codes == 1, rise, 1) + noise).gates
        return next(gate for gate in gates if gate.name == "changed_rows")

    rise = brentq(lambda rise: gate(rise).value - p, 0, 2)
    assert gate(rise).held == is_held


@pytest.mark.parametrize(("on_rare", "is_held"), [(-0.5, False), (0.5, True)])
def test_the_log_loss_counts_where_the_score_does(on_rare, is_held):
    """Eight rows of a rare class gain more than two hundred others lose: they must be likelier."""
    proba, y = np.tile([0.6, 0.4], (800, 1)), (np.arange(800) % 100 == 0).astype(int)
    codes = np.where(np.arange(800) % 4 < 2, y | (np.arange(800) % 4 == 1), 0)
    data = read(proba, y, scoring="balanced_accuracy")
    evidence = Evidence(data, np.arange(800) % 5, 0.01, clusters=[])
    noise = 0.1 * np.random.default_rng(0).normal(size=800)
    no_weights = [SimpleNamespace(class_weights=np.zeros(2))]  # the baseline is the mixture's
    trial = trial_by(evidence, codes, np.where(y == 1, on_rare, 0.5) + noise)
    gates = held(replace(trial, rules=no_weights))
    assert gates["log_loss"]
    assert gates["changed_rows"] == is_held


def test_weights_of_rows_count_in_the_log_loss():
    """Rows that count nine times as much lose: so does the mean."""
    proba, y = planted(200)
    weight = np.where(np.arange(200) % 4 == 0, 9.0, 1.0)
    evidence = Evidence(read(proba, y, weight), np.arange(200) % 5, 0.01, clusters=[])
    log_p = np.where(weight > 1, -1.0, 1.0)
    test = evidence.log_loss_test(log_p, np.zeros(200))
    assert test.gain == pytest.approx(np.average(log_p, weights=weight))


def test_each_fold_is_decided_by_its_own_rule():
    """The labels of two folds ask for other weights than those of the others."""
    proba, y = planted(300)
    data = read(proba, y, scoring="balanced_accuracy")
    trial = Evidence(data, FOLDS, 0.01).trial(mixture_of(np.zeros(300), proba))
    for k in range(5):
        inside = k == FOLDS
        shares = np.bincount(y[~inside], minlength=4) / 240
        expected = (proba[inside] / shares).argmax(axis=1)
        np.testing.assert_array_equal(trial.codes[inside], expected)


def test_a_score_of_probabilities_looks_at_probabilities():
    proba, y = planted(300)
    evidence = Evidence(read(proba, y, scoring="neg_log_loss"), FOLDS, 0.01)
    sharper = proba**1.02 / (proba**1.02).sum(axis=1, keepdims=True)
    trial = evidence.trial(mixture_of(np.zeros(300), sharper))
    losses = [log_loss(y, each) for each in (proba, sharper)]
    assert trial.test.gain == pytest.approx(losses[0] - losses[1])
    # There is no worst row: what one more could cost has no bound.
    rows = score_rows(y, sharper) - score_rows(y, proba)
    plain = paired_test(rows / 300, np.ones(300), evidence.clusters)
    assert trial.test == pytest.approx(plain)


def test_of_a_score_that_can_only_be_called_the_changed_rows_count_too():
    """Its gain is shared by all rows of a block, most of which are decided as before."""
    kappa = make_scorer(cohen_kappa_score)
    proba, y = planted(400)
    evidence = Evidence(read(proba, y, scoring=kappa), np.arange(400) % 5, 0.01, clusters=[])
    codes = np.where(np.arange(400) % 10 == 0, y, evidence.before)
    noise = np.random.default_rng(0).normal(size=400)
    changed, after = codes != evidence.before, 0.5 * proba + 0.5 * np.eye(4)[codes]
    for on_changed, is_held in ((-0.2, False), (0.4, True)):
        rise = np.where(changed, on_changed, 0.5) + 0.1 * noise
        gates = held(trial_by(evidence, codes, rise, after))
        assert gates["log_loss"]
        assert gates["changed_rows"] == is_held


@pytest.mark.parametrize(
    ("y", "size", "known"),
    [
        (np.tile(np.arange(4), 10), 8, 3 / 80),
        (np.repeat(np.arange(4), 10), 8, 0.0),
        # They differ by a quarter, and by two fifths, of what chance would have them differ.
        (np.concatenate([np.arange(8) < k for k in (3, 4, 4, 4, 5)]) * 1, 8, 0.75 / 80),
        (np.concatenate([np.arange(20) < k for k in (9, 11)]) * 1, 20, 0.6 / 80),
        (np.eye(2, dtype=int)[np.arange(40) % 2], 8, 0.0),
    ],
    ids=["equal", "apart", "quarter", "two folds", "several labels"],
)
def test_what_folds_know_of_each_others_class_counts_is_taken_off(y, size, known):
    """Half a nat for each class but one, in all, where all folds have the same counts."""
    proba = softmax(np.random.default_rng(0).normal(size=(40, y.max() + 1)), axis=1)
    data = read(proba, y, multilabel="labelwise" if y.ndim == 2 else None)
    evidence = Evidence(data, np.arange(40) // size, 0.01, clusters=[])
    rise = np.random.default_rng(0).normal(0.05, 0.1, 40)
    test, plain = evidence.log_loss_test(rise, np.zeros(40)), paired_test(rise / 40, np.ones(40))
    assert plain.ci_low - test.ci_low == pytest.approx(known)
    assert test.one_sided == pytest.approx(one_sided((rise.mean() - known) / test.std_error, rise))


@pytest.mark.parametrize(("broken", "taken"), [(0, 1.0), (1, 0.0), (5, 0.0)])
def test_only_a_loss_that_the_sample_lacks_is_taken_off(broken, taken):
    """A broken decision among the rows is in the standard error already."""
    trial = trial_of(*decided(20, broken))
    test, lead = trial.test, (20 - broken - taken) / 1000
    seen = np.append(trial.rows, -taken / 1000)
    assert test.one_sided == pytest.approx(one_sided(lead / test.std_error, seen))


@pytest.mark.parametrize(("cost", "adopted"), [(1.0, True), (50.0, False)])
def test_many_cheap_gains_are_no_evidence_beside_a_rare_loss(cost, adopted):
    """A hundred rows gain 1 each. Where one in fifty costs 50, 13 % of such samples lack it."""
    costs = np.array([[0.0, 1.0], [cost, 0.0]])
    proba, y = np.tile([0.55, 0.45], (600, 1)), np.zeros(600, int)
    y[500:] = 1
    evidence = Evidence(read(proba, y, costs=costs), np.arange(600) % 5, 0.01, clusters=[])
    evidence.before = (np.arange(600) < 100) * 1
    trial = evidence.compare(np.zeros(600, int), None)
    assert trial.test.gain == pytest.approx(100 / 600)
    assert trial.accepted == adopted


@pytest.mark.parametrize(("seen", "taken"), [(4.0, 6.0), (30.0, 0.0)])
def test_a_dearer_loss_than_any_seen_is_taken_off_as_far_as_it_is_dearer(seen, taken):
    """None is where a row that counts as several costs more than any single one."""
    costs = np.array([[0.0, 1.0], [10.0, 0.0]])
    proba, y = np.tile([0.55, 0.45], (400, 1)), np.zeros(400, int)
    evidence = Evidence(read(proba, y, costs=costs, families=("bias",)), FOLDS, 0.01, clusters=[])
    rows = np.repeat([1.0, -seen, 0.0], [60, 2, 338]) / 400
    assert evidence._worst_row(rows) == pytest.approx(taken / 400)


def test_a_row_that_is_left_to_a_person_is_neither_fixed_nor_broken():
    costs = np.array([[0.0, 1.0, 0.9], [1.0, 0.0, 0.9]])
    proba, y = np.tile([0.6, 0.4], (100, 1)), np.arange(100) % 2
    evidence = Evidence(read(proba, y, costs=costs), np.arange(100) % 5, 0.01, clusters=[])
    verdict = evidence.compare(np.repeat([0, 1, 2], [70, 10, 20]), None).verdict
    assert (verdict.n_changed, verdict.n_fixed, verdict.n_broken, verdict.n_left) == (30, 5, 5, 20)


@pytest.mark.parametrize(
    ("kept", "may_be_copies", "told", "adopted"),
    [
        (0.0, False, True, True),
        (0.0, True, True, False),
        (0.4, False, True, True),
        (0.4, True, True, False),
        (0.8, True, False, True),
    ],
)
def test_a_gain_that_goes_where_like_rows_are_kept_together_is_told(
    monkeypatch, kept, may_be_copies, told, adopted
):
    """Nothing is applied if most of it goes and rows may be copies; else it is told."""

    def keep_some(fitter, trial, clusters):
        is_kept = np.random.default_rng(0).random(1500) < kept
        return trial.evidence.compare(np.where(is_kept, trial.codes, trial.evidence.before), proba)

    proba, y = planted(1500)
    monkeypatch.setattr(choice, "_trial_by_clusters", keep_some)
    monkeypatch.setattr(choice.likeness, "look_for_copies", lambda *_: Copies(1, may_be_copies))
    verdict = Adjuster(("bias",)).fit(proba, y).verdict_
    cautions = [each for each in verdict.cautions if each.code == "likeness"]
    assert [each.serious for each in cautions] == ([not adopted] if told else [])
    assert verdict.adopted == adopted


@pytest.mark.parametrize(("errors", "told"), [(0.9, True), (1.1, False)])
def test_a_gain_within_an_error_where_like_rows_are_kept_together_is_told(
    monkeypatch, errors, told
):
    def blur(fitter, trial, clusters):
        test = trial.test._replace(gain=0.8 * trial.test.gain, p_value=2 * norm.sf(errors))
        return replace(trial, rows=0.8 * trial.rows, test=test)

    monkeypatch.setattr(choice, "_trial_by_clusters", blur)
    verdict = Adjuster(("bias",)).fit(*planted(600)).verdict_
    cautions = [each for each in verdict.cautions if each.code == "likeness"]
    assert verdict.adopted
    assert [each.serious for each in cautions] == [False] * told


@pytest.mark.parametrize(("n", "told"), [(60, True), (59, False)])
def test_copies_are_looked_for_among_twelve_rows_of_a_fold(monkeypatch, n, told):
    monkeypatch.setattr(choice.likeness, "look_for_copies", lambda *_: Copies(6))
    cautions = Adjuster(("bias",), cv=5).fit(*planted(n)).verdict_.cautions
    assert [each.serious for each in cautions if each.code == "likeness"] == [True] * told


def test_like_rows_are_kept_together_on_as_many_folds():
    fitter, bias = fit_one(read(*planted(300)), "bias")
    trial = Evidence(fitter.data, FOLDS, 0.01).trial(CrossMixture(fitter, bias))
    folds = choice._trial_by_clusters(fitter, trial, np.arange(300) // 12).evidence.folds
    assert np.unique(folds).tolist() == [0, 1, 2, 3, 4]
    assert (np.ptp(folds.reshape(25, 12), axis=1) == 0).all()


# The candidate, and the mixture.


def candidate(name, log_p):
    return Candidate(name, {}, log_p, lambda: np.empty(0), lambda: None)


@pytest.mark.parametrize(("ahead", "chosen"), [(0.4, "matrix"), (0.7, "curves")])
def test_a_simpler_candidate_within_half_an_error_is_taken(ahead, chosen):
    noise = np.random.default_rng(0).normal(size=400)
    noise = (noise - noise.mean()) / noise.std()
    matrix = candidate("matrix", np.full(400, -1.0))
    curves = candidate("curves", -1 + 0.1 * noise + 0.1 * ahead / 20)
    assert simplest_of_best([matrix, curves], np.ones(400)).family == chosen


@pytest.mark.parametrize("order", [1, -1])
def test_a_family_is_compared_with_the_temperature_by_its_best_candidate(order):
    evidence = Evidence(read(*planted(300)), FOLDS, 0.01)
    base, noise = np.full(300, -1.0), 0.1 * np.random.default_rng(0).normal(size=300)
    ahead = {"bias": (0.1,), "matrix": (-0.1,), "curves": (0.3, 0.2)}
    candidates = [candidate(name, base + noise + by) for name in ahead for by in ahead[name]]
    mixture = SimpleNamespace(temperature=candidate("temperature", base), candidate=candidates[2])
    competitors = Competitors(candidates[::order], {"alternating": "too_few_labels"})
    trial = SimpleNamespace(evidence=evidence, mixture=mixture)
    verdicts = choice.family_verdicts(trial, competitors)
    assert verdicts["curves"].gain == pytest.approx(0.3 + noise.mean())
    reasons = {name: verdict.reason for name, verdict in verdicts.items()}
    expected = {"bias": "not_chosen", "matrix": "no_gain", "curves": ""}
    assert reasons == expected | competitors.skipped
    assert [name for name, verdict in verdicts.items() if verdict.adopted] == ["curves"]
    assert not any(each.n_changed + each.n_fixed + each.n_broken for each in verdicts.values())


@pytest.mark.parametrize(("ahead", "tried"), [(1.5, True), (2.5, False)])
def test_bends_on_sums_are_tried_unless_bends_are_far_behind(ahead, tried):
    """Two standard errors behind the best family."""
    proba, y = planted(600)
    fitter = CrossFitter(read(proba, y), np.arange(600) * 5 // 600)
    noise = np.tile([1.0, -1.0], 300)
    others = [
        candidate("matrix", noise + ahead / np.sqrt(600)),
        candidate("curves", np.zeros(600)),
    ]
    assert fitter._may_gain_by_facets(others) == tried
    few = CrossFitter(read(proba[:599], y[:599]), np.arange(599) * 5 // 599)
    assert not few._may_gain_by_facets([candidate("curves", np.zeros(599))])


def test_one_row_speaks_for_the_temperature_beforehand():
    """Labels are twice as likely by the family as by all else: 300 rows beside one."""
    proba, y = planted(300)
    fitter = CrossFitter(read(proba, y), FOLDS)
    fitter.temperature = fitter.untouched = candidate("temperature", np.full(300, np.log(0.4)))
    mixture = CrossMixture(fitter, candidate("bias", np.full(300, np.log(0.8))))
    # Where the slopes of 300 log(0.8 - 0.4 w) and log w add up to nothing.
    temperature = 0.8 / (300 * 0.4 + 0.4)
    assert mixture.weights() == pytest.approx([1 - temperature, temperature, 0, 0], abs=1e-5)
    assert mixture.baseline_weights() == pytest.approx([1, 0, 0], abs=1e-3)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rows_are_drawn_back_just_as_far_as_keeps_the_decision(dtype):
    rng = np.random.default_rng(0)
    p, target = rng.dirichlet(np.ones(5), (2, 2000))
    target[:50, 3] = target[:50].max(axis=1)  # ties
    target /= target.sum(axis=1, keepdims=True)
    drawn = draw_back(p, target, target, np.arange(5))
    np.testing.assert_allclose(drawn.sum(axis=1), 1)
    kept = target.argmax(axis=1)
    np.testing.assert_array_equal(drawn.astype(dtype).argmax(axis=1), kept)
    same = p.argmax(axis=1) == kept
    np.testing.assert_allclose(drawn[same], p[same], rtol=3e-6)
    # No farther: the kept class is level with another one.
    top = np.sort(drawn[~same], axis=1)
    np.testing.assert_allclose(top[:, -1], top[:, -2], rtol=1e-5)


def test_without_evidence_rows_are_drawn_towards_the_mixture_without_the_family():
    proba, y = calibrated(3000, 3)
    sharp = proba**3 / (proba**3).sum(axis=1, keepdims=True)
    sharp = 0.97 * sharp + 0.03 * np.roll(sharp, 1, axis=1)
    fitted, fresh = Adjuster().fit(sharp[:400], y[:400]), sharp[400:]
    assert not fitted.verdict_.adopted
    assert fitted.mixture_.keeps
    free, without = copy(fitted), copy(fitted)
    free.mixture_ = replace(fitted.mixture_, keeps=False)
    without.mixture_ = replace(free.mixture_, weights=np.append(0, fitted.mixture_.baseline))
    mixed, target = free.transform(fresh), without.transform(fresh)
    assert (mixed.argmax(axis=1) != fresh.argmax(axis=1)).any()
    expected = draw_back(mixed, target, fresh, np.arange(3))
    np.testing.assert_allclose(fitted.transform(fresh), expected, atol=1e-12)


@pytest.mark.parametrize("seed", range(8))
def test_no_other_weights_of_a_mixture_are_more_likely(seed):
    """Labels that a family is nearly sure of, and parts that hardly differ.

    Of a concave function of weights, no value is above this one by more than the largest
    derivative exceeds their weighted mean.
    """
    rng = np.random.default_rng(seed)
    sure = rng.beta(8, 0.05, 20_000)
    parts = [sure, sure ** rng.uniform(0.9, 2, 20_000), sure**0.3, np.full(20_000, 0.5)]
    label_p, prior = np.stack(parts, axis=1), np.array([0.0, 5.0, 0.0, 0.0])
    weight = rng.uniform(0.5, 2, 20_000)
    weights = mixture_weights(label_p, weight, prior)
    assert weights.sum() == pytest.approx(1)
    slopes = (weight / (label_p @ weights)) @ label_p
    slopes[1] += 5 / weights[1]
    assert (slopes.max() - slopes @ weights) / weight.sum() < 1e-6

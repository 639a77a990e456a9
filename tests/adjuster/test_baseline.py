"""What the log loss is compared with, for goals that weigh classes, against a search."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from altnorm import Adjuster
from altnorm.adjuster.baseline import as_if_right
from altnorm.adjuster.choice import Evidence
from altnorm.families.scores import fit_tempering
from tests.problems import calibrated, planted
from tests.validation import read

FOLDS = np.arange(300) * 5 // 300


def as_if_right_by_search(log_p, y, weight, folds, class_weights, is_known):
    """The same by its definition, from a search without derivatives."""
    out = np.empty(len(y))
    for k, weights in enumerate(class_weights):
        inside, tilt = folds == k, np.log(weights.max() / weights)
        tempering = fit_tempering(log_p[~inside], y[~inside], weight[~inside])
        x = tempering.logs(log_p)

        def of_labels(log_slope, share, x=x, tilt=tilt):
            return log_softmax(np.exp(log_slope) * x + share * tilt, axis=1)[np.arange(len(y)), y]

        def loss(at, inside=inside, of_labels=of_labels):
            log_slope, share = at[0], 1.0 if is_known else at[1]
            return 2 * log_slope**2 - (weight * of_labels(log_slope, share))[~inside].sum()

        most = 30 / max(tilt.max(), 1)
        bounds = [(-6.9, 6.9), (0, most)]
        starts = itertools.product([-1.5, 0, 1.5], [0, 0.2 * most])
        tries = [minimize(loss, at, bounds=bounds, method="Nelder-Mead") for at in starts]
        best = min(tries, key=lambda each: each.fun).x
        out[inside] = of_labels(best[0], 1.0 if is_known else best[1])[inside]
    return out


@pytest.mark.parametrize("is_known", [True, False])
@pytest.mark.parametrize(("n", "m"), [(40, 2), (150, 4)])
@pytest.mark.parametrize("kind", ["usual", "useless", "zeros", "other way", "none"])
def test_the_baseline_is_what_a_search_finds(kind, n, m, is_known):
    rng = np.random.default_rng(n)
    y, weights = rng.integers(m, size=n), np.exp((kind != "none") * rng.normal(size=(5, m)))
    proba = softmax(rng.normal(size=(n, m)) + (kind != "useless") * np.eye(m)[y], axis=1)
    if kind == "zeros":
        proba = np.where(proba < 0.15, 0, proba)
    if kind == "other way":  # labels ask for less than no such weights
        proba = proba / weights[0]
    proba /= proba.sum(axis=1, keepdims=True)
    weight, folds = rng.exponential(size=n), rng.permutation(n) % 5
    with np.errstate(divide="ignore"):
        log_p = np.log(proba)
    baseline = as_if_right(log_p, y, weight, folds, list(weights), is_known=is_known)
    expected = as_if_right_by_search(log_p, y, weight, folds, list(weights), is_known)
    np.testing.assert_allclose(baseline, expected, atol=5e-3)


@pytest.mark.parametrize("is_known", [True, False])
def test_class_weights_may_have_any_scale_and_be_hardly_a_number(is_known):
    """Costs of 1e-320 beside 1e15: their ratio is beyond double precision."""
    proba, y = planted(300)

    def baseline(*class_weights):
        return as_if_right(
            np.log(proba), y, np.ones(300), FOLDS, 5 * [np.array(class_weights)], is_known=is_known
        )

    np.testing.assert_allclose(baseline(1, 3, 9, 1), baseline(1e9, 3e9, 9e9, 1e9), rtol=1e-6)
    assert np.isfinite(baseline(1e-320, 1.0, 1e15, 1.0)).all()


def test_one_row_does_not_outweigh_all_others_where_those_are_right():
    """Outside its fold a slope without bound would suit the labels best."""
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    proba = softmax(4 * np.eye(3)[y] + 0.1 * rng.normal(size=(60, 3)), axis=1)
    y[7] = (y[7] + 1) % 3
    folds = np.arange(60) * 5 // 60
    weights = 5 * [np.array([1.0, 2.0, 4.0])]
    for is_known in (True, False):
        baseline = as_if_right(np.log(proba), y, np.ones(60), folds, weights, is_known=is_known)
        assert baseline.min() == baseline[7] > -12


def baseline_of(proba, y, **purpose):
    """The baseline, -7 where it is that of the mixture."""
    evidence = Evidence(read(proba, y, **purpose), FOLDS, 0.01)
    mixture = SimpleNamespace(proba=proba, baseline_log_p=np.full(300, -7.0))
    trial = evidence.trial(mixture)
    return evidence, trial.rules, trial.baseline_log_p


LEAST = np.array([[0, 1, 1, 1], [9, 0, 9, 9], [9, 9, 0, 9], [1, 1, 1, 0]])


@pytest.mark.parametrize(
    ("purpose", "is_known"),
    [
        ({"scoring": "balanced_accuracy"}, True),
        ({"scoring": "f1_macro"}, False),
        ({"scoring": "matthews_corrcoef"}, False),
        ({"costs": LEAST}, True),
    ],
)
def test_goals_that_weigh_classes_have_a_baseline_of_their_own(purpose, is_known):
    """Of costs and balanced accuracy the weights are known, of F-scores labels say how much."""
    proba, y = planted(300)
    if "costs" in purpose:  # trained for these costs: the most probable class costs least
        proba = calibrated(300, m=4)[0]
        y = (proba.cumsum(axis=1) > np.random.default_rng(0).random((300, 1))).argmax(axis=1)
        proba = proba * [1, 9, 9, 1] / (proba * [1, 9, 9, 1]).sum(axis=1, keepdims=True)
    evidence, rules, baseline = baseline_of(proba, y, **purpose)
    assert evidence.untouched.is_argmax
    weights = [rule.class_weights for rule in rules]
    rows = np.log(proba), y, np.ones(300), FOLDS, weights
    np.testing.assert_array_equal(baseline, as_if_right(*rows, is_known=is_known))
    assert not np.allclose(baseline, as_if_right(*rows, is_known=not is_known))


def test_the_mixture_without_the_family_is_the_baseline_of_other_goals():
    """Accuracy; decisions of least cost as they came; costs that no weights stand for."""
    proba, y = planted(300)
    assert (baseline_of(proba, y)[2] == -7).all()
    right, drawn = calibrated(300, m=4)
    evidence, _, baseline = baseline_of(right, drawn, costs=LEAST)
    assert not evidence.untouched.is_argmax
    assert (baseline == -7).all()
    nobody = 1 - np.eye(4)
    nobody[0] = 0  # to miss this class costs nothing, so that it is never decided for
    never = right * [1e-3, 1, 1, 1] / (right * [1e-3, 1, 1, 1]).sum(axis=1, keepdims=True)
    evidence, rules, baseline = baseline_of(never, drawn, costs=nobody)
    assert evidence.untouched.is_argmax
    assert rules[0].class_weights[0] == 0
    assert (baseline == -7).all()


def test_other_confidence_is_no_evidence_against_decisions_that_were_trained_for():
    """Log loss falls far, and nothing says that other decisions have a better recall."""
    shares = np.array([0.7, 0.2, 0.1])
    rng = np.random.default_rng(0)
    y = rng.choice(3, 1500, p=shares)
    scores = rng.normal(size=(1500, 3)) + 1.5 * np.eye(3)[y]
    proba = np.exp(1.5 * scores) / np.exp(1.5 * scores).sum(axis=1, keepdims=True)
    verdict = Adjuster(scoring="balanced_accuracy").fit(proba, y).verdict_
    assert not verdict.adopted
    gates = {gate.name: gate for gate in verdict.gates}
    assert not gates["log_loss"].held
    plain = Adjuster().fit(proba, y).verdict_
    assert {gate.name: gate.held for gate in plain.gates}["log_loss"]


@pytest.mark.parametrize("calibrate", [True, False])
def test_other_confidence_is_no_evidence_against_decisions_for_accuracy(calibrate):
    """Rows that are far too bold, and right about the most probable class."""
    proba, rng = softmax(0.3 * np.log(calibrated(1000)[0] + 1e-9), axis=1), np.random.default_rng(0)
    y = (proba.cumsum(axis=1) > rng.random((1000, 1))).argmax(axis=1)
    bold = proba**20 / (proba**20).sum(axis=1, keepdims=True)
    verdict = Adjuster(calibrate=calibrate, families=("bias", "curves")).fit(bold, y).verdict_
    gates = {gate.name: gate.held for gate in verdict.gates}
    assert not gates["log_loss"]
    assert not gates["changed_rows"]

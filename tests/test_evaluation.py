"""Before and after on labelled rows."""

import numpy as np
import pytest
from sklearn.metrics import log_loss

from altnorm import AlternatingNormalizer, ambiguity
from altnorm._base.errors import InputError
from altnorm.io.datasets import load_demo
from altnorm.io.predictions import Predictions
from altnorm.peers import BatchCalibration, Identity
from altnorm.report.evaluation import evaluate, tuned_for
from tests.fitted import CALIBRATIONS, assemble

CLASSES = np.array(["a", "b", "c"])


def draw(n, seed=0):
    rng = np.random.default_rng(seed)
    codes = rng.integers(3, size=n)
    scores = rng.normal(size=(n, 3)) + 1.5 * np.eye(3)[codes] + [2, 0, 0]
    proba = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    return Predictions(proba, CLASSES, CLASSES[codes])


def test_single_label():
    val, test = draw(500, seed=1), draw(500, seed=2)
    normalizer = AlternatingNormalizer().fit(val.proba, val.labels)
    result = evaluate(normalizer, test)
    right = [test.proba.argmax(1) == test.codes, normalizer.predict(test.proba) == test.labels]
    assert result.verdict.scoring == "accuracy"
    assert result.verdict.before == pytest.approx(right[0].mean())
    assert result.verdict.after == pytest.approx(right[1].mean())
    assert result.fixed.tolist() == np.flatnonzero(~right[0] & right[1]).tolist()
    assert result.verdict.n_broken == result.broken.size
    assert [row.row for row in result.changed(result.fixed)] == result.fixed.tolist()
    assert "accuracy" not in [score.scoring for score in result.scores]
    assert set(result.to_dict()) == {"verdict", "scores", "fixed", "broken"}


def test_ambiguities_are_those_of_the_normalizer():
    demo = load_demo()
    normalizer = AlternatingNormalizer(k_max=3).fit(demo.validation.proba)
    found = evaluate(normalizer, demo.test).explanation
    expected = ambiguity(demo.test.proba, k_max=3)[found.row]
    np.testing.assert_array_equal(found.ambiguity, expected)
    assert not np.array_equal(expected, ambiguity(demo.test.proba)[found.row])


def test_multilabel():
    rng = np.random.default_rng(0)
    truth = (rng.random((300, 3)) < 0.3).astype(np.uint8)
    proba = 1 / (1 + np.exp(-(rng.normal(size=(300, 3)) + 2 * truth - 2)))
    normalizer = AlternatingNormalizer(multilabel="labelwise").fit(proba, truth)
    result = evaluate(normalizer, Predictions(proba, normalizer.classes_, truth))
    wrong = [((p > 0.5) != truth).sum(axis=1) for p in (proba, normalizer.transform(proba))]
    assert result.verdict.scoring == "f1_micro"
    assert result.fixed.tolist() == np.flatnonzero(wrong[1] < wrong[0]).tolist()
    right = [(p > 0.5) == truth for p in (proba, normalizer.transform(proba))]
    assert result.verdict.n_fixed == (~right[0] & right[1]).sum()
    assert result.verdict.n_broken == (right[0] & ~right[1]).sum()


def test_identity_changes_nothing():
    test = draw(100)
    result = evaluate(Identity().fit(test.proba, test.labels), test, scoring="f1_macro")
    assert not result.verdict.adopted
    assert result.verdict.scoring == "f1_macro"
    assert result.fixed.size == result.broken.size == len(result.explanation) == 0


def test_wrong_kinds_are_refused():
    test = draw(100)
    normalizer = AlternatingNormalizer(input="logits", reference="all").fit(test.proba)
    with pytest.raises(InputError, match="fitted on logits"):
        evaluate(normalizer, test)
    normalizer = AlternatingNormalizer(multilabel="pairs").fit(test.proba)
    with pytest.raises(InputError, match="for multi-label problems, and the labels are one class"):
        evaluate(normalizer, test)
    assert tuned_for(normalizer) == "f1_micro"


def test_a_transformer_of_log_probabilities_is_evaluated_too():
    demo = load_demo()
    peer = BatchCalibration().fit(demo.validation.proba, demo.validation.labels)
    found = evaluate(peer, demo.test)
    np.testing.assert_array_equal(found.before, demo.test.proba)
    assert found.verdict.gain > 0


@pytest.mark.parametrize("input", ["proba", "logits"])
@pytest.mark.parametrize("calibration", CALIBRATIONS)
def test_both_stages_of_an_adjuster(input, calibration):
    val, test = draw(300, seed=1), draw(300, seed=2)
    given = [p.proba if input == "proba" else np.log(p.proba) for p in (val, test)]
    adjuster = assemble("alternating", calibration, given[0], val.labels, input=input)
    result = evaluate(adjuster, Predictions(given[1], CLASSES, test.labels, input=input))
    np.testing.assert_array_equal(result.after, adjuster.transform(given[1]))
    losses = [score for score in result.scores if score.scoring == "neg_log_loss"]
    want = -log_loss(test.codes, result.after)
    assert losses[0].after == pytest.approx(want, rel=1e-9)
    changed = adjuster.predict(given[1]) != CLASSES[test.proba.argmax(axis=1)]
    np.testing.assert_array_equal(result.explanation.row, np.flatnonzero(changed))

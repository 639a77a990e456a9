"""Before and after on labelled rows."""

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score, f1_score, log_loss

from altnorm import AlternatingNormalizer, AlternatingNormalizerCV, InputError, ambiguity, load_demo
from altnorm.io.predictions import Predictions
from altnorm.peers import BatchCalibration, Identity
from altnorm.report.evaluation import evaluate, read_case
from tests.report_pages import NAMES, PERSON, adjusted, decided_codes, labelled, rare

TEST = rare(seed=2)


def plain_score(truth, decided, purpose):
    if purpose == "person":
        return -np.mean([PERSON[t, d] for t, d in zip(truth, decided, strict=True)])
    if purpose == "balanced_accuracy":
        return balanced_accuracy_score(truth, decided)
    if purpose == "f1_macro":
        return f1_score(truth, decided, average="macro")
    return np.mean(truth == decided)


@pytest.mark.parametrize("purpose", ["accuracy", "balanced_accuracy", "f1_macro", "person"])
def test_the_purpose_judges_what_predict_decides(purpose):
    adjuster = adjusted(purpose)
    result = evaluate(adjuster, TEST)
    old, new = TEST.proba.argmax(axis=1), decided_codes(adjuster, TEST)
    truth = TEST.codes
    assert result.verdict.before == pytest.approx(plain_score(truth, old, purpose))
    assert result.verdict.after == pytest.approx(plain_score(truth, new, purpose))
    assert result.verdict.n_changed == (old != new).sum() > 0
    left = new == 5
    counts = result.verdict.n_fixed, result.verdict.n_broken, result.verdict.n_left
    assert counts == (result.fixed.size, result.broken.size, left.sum())
    assert result.applied.left.tolist() == np.flatnonzero(left).tolist()
    assert result.fixed.tolist() == np.flatnonzero((old != truth) & (new == truth)).tolist()
    assert result.broken.tolist() == np.flatnonzero((old == truth) & (new != old) & ~left).tolist()
    loss = next(score for score in result.scores if score.scoring == "neg_log_loss")
    assert loss.before == pytest.approx(-log_loss(truth, TEST.proba))
    assert loss.after == pytest.approx(-log_loss(truth, adjuster.transform(TEST.proba)))
    # What accuracy would make of a row that nobody has decided is not told.
    assert (len(result.scores) == 1) == bool(left.any())


def test_calibration_error_is_the_mean_distance_in_bins_of_equal_size():
    adjuster = adjusted()
    sides = evaluate(adjuster, TEST).reliability
    for proba, side in zip((TEST.proba, adjuster.transform(TEST.proba)), sides, strict=True):
        order, right = np.argsort(proba.max(axis=1)), proba.argmax(axis=1) == TEST.codes
        parts = np.split(order, 12)
        distance = [abs(proba[p].max(axis=1).mean() - right[p].mean()) for p in parts]
        assert side.error == pytest.approx(np.mean(distance))


def test_several_labels():
    adjuster, test = adjusted("labels"), labelled(seed=2)
    result = evaluate(adjuster, test)
    old, new = test.proba > 0.5, adjuster.predict(test.proba) > 0
    wrong = [(side != test.labels).sum(axis=1) for side in (old, new)]
    assert result.verdict.after == pytest.approx(f1_score(test.labels, new, average="macro"))
    assert result.fixed.tolist() == np.flatnonzero(wrong[1] < wrong[0]).tolist()
    assert result.verdict.n_broken == ((old == test.labels) & (new != test.labels)).sum()


def test_other_estimators():
    demo = load_demo()
    normalizer = AlternatingNormalizer(k_max=3).fit(demo.validation.proba)
    explanation = read_case(normalizer, demo.test).explanation
    expected = ambiguity(demo.test.proba, k_max=3)[explanation.row]
    np.testing.assert_array_equal(explanation.ambiguity, expected)
    peer = BatchCalibration().fit(demo.validation.proba, demo.validation.labels)
    assert evaluate(peer, demo.test).verdict.gain > 0
    same = evaluate(Identity().fit(TEST.proba, TEST.labels), TEST, scoring="f1_macro")
    assert (same.verdict.scoring, same.verdict.reason) == ("f1_macro", "identical")
    assert same.fixed.size == same.broken.size == same.verdict.n_changed == 0


def test_a_tuned_normalizer_is_judged_by_its_score_and_logits_are_read():
    val, test = (rare(300, seed=s) for s in (1, 2))
    tuned = AlternatingNormalizerCV((1.0, 2.0), (1,), scoring="f1_macro", input="logits")
    tuned.fit(np.log(val.proba), val.labels)
    result = evaluate(tuned, Predictions(np.log(test.proba), NAMES, test.labels, "logits"))
    assert result.verdict.scoring == "f1_macro"
    np.testing.assert_allclose(result.applied.before, test.proba)


def test_wrong_kinds_are_refused():
    normalizer = AlternatingNormalizer(input="logits", reference="all").fit(TEST.proba)
    with pytest.raises(InputError, match="fitted on logits"):
        evaluate(normalizer, TEST)
    normalizer = AlternatingNormalizer(multilabel="pairs").fit(TEST.proba)
    with pytest.raises(InputError, match="for multi-label problems, and the labels are one class"):
        evaluate(normalizer, TEST)

"""The report's numbers: what charts and sliders are given, against the estimators."""

import numpy as np
import pytest

from altnorm import Adjuster, AlternatingNormalizer
from altnorm.io.predictions import Predictions
from altnorm.peers import BiasCorrectedTemperature, Identity
from tests.fitted import tune
from tests.problems import multilabel, predictions
from tests.report_pages import Page, unpack

pytest.importorskip("jinja2")

from altnorm.report import render_report

SINGLE = 1e-5  # relative rounding of a logarithm to single precision, with room to spare
LIMIT = 3_000_000  # bytes of a page


@pytest.fixture(scope="module")
def tuned():
    return tune(predictions(seed=1), depths=(1,))


@pytest.fixture(scope="module")
def tested():
    return predictions(seed=2)


@pytest.fixture(scope="module")
def page(tuned, tested):
    return Page(render_report(tuned, tested))


def test_live_numbers_equal_the_normalizer(page, tuned, tested):
    """One iteration from what the page carries, in plain NumPy, against the estimator."""
    live = page.data["live"]
    sums = unpack(live["sums"]).reshape(-1, len(live["alphas"]), live["width"]).astype(float)
    index = unpack(live["index"]).reshape(live["n"], live["top"])
    p = unpack(live["p"]).reshape(index.shape).astype(float)
    log_q = unpack(live["prior"]).astype(float)
    inner = tuned.best_normalizer_
    for alpha in (0.5, 3.0):
        a = live["alphas"].index(alpha)
        t = live["thresholds"].index(inner.threshold) if len(sums) > 1 else 0
        log_s = sums[t, a][index]
        log_w = log_q[index] + alpha * np.log(p) - np.logaddexp(log_s, alpha * np.log(p))
        found = np.exp(log_w - log_w.max(axis=1, keepdims=True))
        found /= found.sum(axis=1, keepdims=True)
        direct = AlternatingNormalizer(
            alpha,
            threshold=0.0,
            prior=inner.prior_,
            reference="all",
            smoothing=inner.smoothing,
        ).fit(inner.reference_, sample_weight=inner.reference_weight_)
        expected = direct.transform(tested.proba[unpack(live["row"])])
        np.testing.assert_allclose(
            found, np.take_along_axis(expected, index.astype(int), axis=1), atol=SINGLE
        )


def test_live_counts_are_complete(page, tested):
    live = page.data["live"]
    weight = unpack(live["weight"])
    truth, index = unpack(live["truth"]), unpack(live["index"]).reshape(live["n"], -1)
    right = live["outside"]["right"] + (weight * (index[:, 0] == truth)).sum()
    assert (
        right
        == live["outside"]["right_in_all"]
        == (tested.proba.argmax(axis=1) == tested.codes).sum()
    )
    assert live["n"] == live["of"] <= live["total"] == 600


def test_changed_rows_know_their_classes(page, tuned, tested):
    rows, explained = page.data["rows"], tuned.explain(tested.proba)
    assert rows["n"] == rows["of"] == len(explained)
    index = np.array(rows["index"]).reshape(rows["n"], rows["top"])
    for i, one in enumerate(explained):
        old, new = explained.codes[i]
        at = index[i].tolist().index(old)
        assert rows["row"][i] == one.row
        assert rows["old"][i * rows["top"] + at] == pytest.approx(one.proba_before, rel=1e-4)
        assert new in index[i]


def test_a_peer_that_adjusts_every_row():
    validation, test = predictions(seed=5), predictions(seed=6)
    peer = BiasCorrectedTemperature().fit(validation.proba, validation.labels)
    page = Page(render_report(peer, test))
    assert page.data["kind"] == "other"
    assert "does not look at doubt" in page.text
    assert page.data["threshold"] is None
    old, new = test.proba.argmax(axis=1), peer.transform(test.proba).argmax(axis=1)
    moved, truth = old != new, test.codes
    assert page.data["rows"]["of"] == page.data["flows"]["rows"] == moved.sum() > 0
    assert sum(page.data["changes"]["fixed"]) == (moved & (new == truth)).sum()
    assert sum(page.data["changes"]["broken"]) == (moved & (old == truth)).sum()


def test_a_bias_adjusts_every_row():
    validation, test = predictions(seed=5), predictions(seed=6)
    tuned = Adjuster(("bias",), calibrate=False).fit(validation.proba, validation.codes)
    page = Page(render_report(tuned, test))
    assert page.data["kind"] == "other"
    assert "does not look at doubt" in page.text
    moved = test.proba.argmax(axis=1) != tuned.predict(test.proba)
    assert page.data["rows"]["of"] == moved.sum() > 0


@pytest.mark.parametrize("mode", ["pairs", "labelwise"])
def test_multilabel(mode):
    validation, test = multilabel(seed=1), multilabel(seed=2)
    tuned = tune(validation, multilabel=mode)
    page = Page(render_report(tuned, test))
    assert page.data["multilabel"] == mode
    assert page.data["flows"] is None
    assert tuned.verdict_.adopted
    live = page.data["live"]
    assert unpack(live["index"]).max() < (2 if mode == "pairs" else 10)
    said = live["outside"]["named"] + unpack(live["weight"]) @ (unpack(live["truth"]) % 2)
    assert said >= test.labels.sum()
    bare = Page(render_report(tuned, Predictions(test.proba, test.classes)))
    assert "no labels" in bare.text


def test_a_thousand_classes_stay_small():
    m = 1000
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.full(m, 0.003), size=3000) + 1e-7
    proba /= proba.sum(axis=1, keepdims=True)
    y = np.array([rng.choice(m, p=row) for row in proba[:600]])
    normalizer = AlternatingNormalizer(0.7, threshold=0.5).fit(proba[600:])
    text = render_report(normalizer, Predictions(proba[:600], np.arange(m), y))
    assert len(text.encode()) < LIMIT


def test_all_moves_are_shown_however_many_classes_there_are():
    rng = np.random.default_rng(0)
    m = 40
    before, after = rng.dirichlet(np.full(m, 0.2), size=(2, 800))
    y = rng.integers(m, size=800)

    class Other(Identity):
        def _transform(self, proba):
            return after

    other = Other().fit(before)
    flows = Page(render_report(other, Predictions(before, np.arange(m), y))).data["flows"]
    grouped = flows["grouped"]
    old, new = before.argmax(axis=1), after.argmax(axis=1)
    assert sum(grouped["count"]) == flows["rows"] == (old != new).sum()
    assert sum(grouped["fixed"]) == ((old != y) & (new == y)).sum()
    assert sum(grouped["broken"]) == ((old == y) & (new != y)).sum()
    assert len(set(grouped["source"])) == len(set(grouped["target"])) == 9
    assert max(grouped["source"]) == max(grouped["target"]) == m  # other classes


def test_families_and_calibration_have_their_lines():
    validation, test = predictions(seed=5), predictions(seed=6)
    tuned = Adjuster(("alternating",)).fit(validation.proba, validation.codes)
    tuned.classes_ = tuned.best_normalizer_.classes_ = test.classes
    page = Page(render_report(tuned, test))
    assert "Calibration: log loss" in page.text
    stages = set(page.data["reliability"])
    assert stages == (
        {"before", "decided", "after"} if tuned.calibration_.adopted else {"before", "after"}
    )
    balance = page.data["balance"]
    assert balance["occurs"] == np.bincount(test.codes, minlength=len(test.classes)).tolist()
    assert sum(balance["predicted"]) == len(test.codes)


def outcomes(live):
    """Class of each sampled row at each position of the sliders, from what the page carries."""
    index = unpack(live["index"]).reshape(live["n"], live["top"]).astype(int)
    shape = (len(live["thresholds"]), len(live["alphas"]), *index.shape)
    steps = unpack(live["after"]).reshape(shape).astype(int)
    assert ((steps == steps.max(axis=-1, keepdims=True)).sum(axis=-1) == 1).all()
    places = steps.argmax(axis=-1)
    return np.take_along_axis(index, places.reshape(-1, live["n"]).T, axis=1).T.reshape(
        places.shape
    )


@pytest.mark.parametrize("reference", ["confident", "all"])
def test_deep_sliders_decide_as_the_normalizer(reference):
    validation, test = predictions(seed=1), predictions(seed=2)
    given = {"depth": 3, "reference": reference, "smoothing": 0.1}
    normalizer = AlternatingNormalizer(0.8, threshold=0.4, **given)
    normalizer.fit(validation.proba, validation.labels)
    page = Page(render_report(normalizer, test))
    live = page.data["live"]
    assert live["depth"] == live["model_depth"] == 3
    assert "beforehand at the model’s depth, 3" in page.text
    decided = outcomes(live)
    for alpha, tau in ((0.8, 0.4), (4.0, 0.75)):
        other = AlternatingNormalizer(alpha, threshold=tau, prior=normalizer.prior_, **given)
        # A model at another threshold keeps other rows, but the page has only this model's.
        served = normalizer.reference_
        other.fit(served, sample_weight=normalizer.reference_weight_)
        at = decided[live["thresholds"].index(tau), live["alphas"].index(alpha)]
        expected = other.transform(test.proba[unpack(live["row"])]).argmax(axis=1)
        np.testing.assert_array_equal(at, expected)


def test_deep_sliders_of_labels_decide_as_the_normalizer():
    validation, test = multilabel(seed=1), multilabel(seed=2)
    normalizer = AlternatingNormalizer(0.7, depth=2, threshold=0.5, multilabel="labelwise")
    normalizer.fit(validation.proba, validation.labels)
    live = Page(render_report(normalizer, test)).data["live"]
    at = outcomes(live)[live["thresholds"].index(0.5), live["alphas"].index(0.7)] % 2
    row, label = unpack(live["row"]), unpack(live["label"])
    np.testing.assert_array_equal(at, normalizer.transform(test.proba)[row, label] > 0.5)


def test_too_deep_for_the_sliders_is_said(monkeypatch):
    monkeypatch.setattr("altnorm.report._deep.BUDGET", 1.0)
    normalizer = AlternatingNormalizer(0.8, depth=3).fit(predictions(seed=1).proba)
    page = Page(render_report(normalizer, predictions(seed=2)))
    assert (page.data["live"]["depth"], page.data["live"]["model_depth"]) == (1, 3)
    assert "The model itself uses depth 3" in page.text

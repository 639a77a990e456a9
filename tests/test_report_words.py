"""The report's words: the answer, and what a reader should know beside it."""

import re

import numpy as np
import pytest

from altnorm import Adjuster, AlternatingNormalizer, compare
from altnorm.evidence.verdict import compare_predictions
from altnorm.io.predictions import Predictions
from altnorm.peers import BiasCorrectedTemperature, Identity, LabelThresholds
from tests.fitted import tune
from tests.problems import multilabel, predictions
from tests.report_pages import Page

pytest.importorskip("jinja2")

from altnorm.report import render_report
from altnorm.report._case import read_case
from altnorm.report._words import answer, score_line, value_words


@pytest.fixture(scope="module")
def tuned():
    return tune(predictions(seed=1))


@pytest.fixture(scope="module")
def tested():
    return predictions(seed=2)


def test_without_labels_there_are_changes_but_no_scores(tuned, tested):
    bare = Predictions(tested.proba, tested.classes)
    page = Page(render_report(tuned, bare))
    assert "Yes, as far as validation tells." in page.text
    assert "no labels, so there are no scores" in page.text
    assert page.data["reliability"] is None
    assert page.data["live"]["outside"] is None
    plain = AlternatingNormalizer().fit(tested.proba)
    plain.classes_ = tested.classes
    assert "Open: there are no labels." in Page(render_report(plain, bare)).text


def test_sentences_are_apart(tuned, tested):
    text = Page(render_report(tuned, tested)).text
    assert re.findall(r"[a-z)]\.[A-Z0-9]", text.split("Settings and versions")[0]) == []


def test_rows_of_the_fit_are_not_judged_again(tuned):
    page = Page(render_report(tuned, predictions(seed=1), seen=True))
    assert "Yes, as far as validation tells." in page.text
    assert "A test set would confirm it." in page.text
    assert "These are the rows that the model was tuned on." in page.text
    assert "no labels" not in page.text
    assert page.data["reliability"] is None


def test_a_verdict_that_says_no_is_explained():
    validation, test = predictions(seed=3, tilt=0.0), predictions(seed=4, tilt=0.0)
    tuned = tune(validation, significance=1e-9)
    assert not tuned.verdict_.adopted
    page = Page(render_report(tuned, test))
    assert "No. Leave the predictions alone." in page.text
    assert "the model returns what it is given" in page.text
    assert page.data["kind"] == "identity"
    assert page.data["rows"]["n"] == 0
    assert page.data["live"] is not None
    with_validation = Page(render_report(tuned, test, validation=validation)).data["live"]
    assert "validation" in with_validation["source"]


def test_families_and_peers():
    validation, test = predictions(seed=5), predictions(seed=6)
    tuned = Adjuster(("alternating", "bias")).fit(validation.proba, validation.codes)
    methods = {"do nothing": Identity(), "CAN": tuned.best_normalizer_}
    compared = compare(validation.proba, validation.codes, test.proba, test.codes, methods=methods)
    page = Page(render_report(tuned, test, comparison=compared))
    assert "Families that competed" in page.text
    assert [row["method"] for row in page.data["peers"]["rows"]][-1] == "do nothing"


def test_losses_are_told_as_losses():
    y = np.repeat([0, 1], 20)
    before, after = np.full((40, 2), 0.5), np.where(y[:, None] == [0, 1], 0.8, 0.2)
    line = score_line(compare_predictions(y, before, after, scoring="neg_log_loss"))
    assert (line.name, line.before, line.after) == ("log loss", "0.693", "0.223")
    assert line.change.startswith("−")
    assert line.better == "better"


def test_harm_is_called_harm(tested):
    class Upside(Identity):
        def _transform(self, proba):
            return proba[:, ::-1]

    backwards = Upside().fit(tested.proba)
    backwards.classes_ = tested.classes
    harm = answer(read_case(backwards, tested))
    assert harm.tone == "no"
    assert harm.headline == "No. It does harm here."


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.5, "0.5"),
        ((1, 2), "1, 2"),
        (tuple(range(20)), "0 … 19 (20 values)"),
        (np.ones(50), "array of shape (50,)"),
        (None, "None"),
    ],
)
def test_settings_are_short(value, text):
    assert value_words(value) == text


@pytest.mark.parametrize(
    ("favoured", "words"), [(0, "predictions look like those"), (3, "no longer look like")]
)
def test_the_page_says_whether_the_reference_still_fits(favoured, words):
    rng = np.random.default_rng(0)
    normalizer = AlternatingNormalizer().fit(rng.dirichlet([0.3, 0.3, 0.3], size=2000))
    incoming = rng.dirichlet([0.3 + favoured, 0.3, 0.3], size=1000)
    page = render_report(normalizer, Predictions(incoming, normalizer.classes_))
    assert words in page


def test_a_no_names_the_method_that_helps():
    validation, test = multilabel(200, 6, seed=1), multilabel(200, 6, seed=2)
    tuned = tune(validation, multilabel="labelwise", significance=1e-9)
    compared = compare(
        validation.proba,
        validation.labels,
        test.proba,
        test.labels,
        methods={"do nothing": Identity(multilabel="pairs"), "threshold": LabelThresholds()},
    )
    assert compared[1].ci_low > 0
    text = Page(render_report(tuned, test, comparison=compared)).text
    assert "No. Leave the predictions alone." in text
    assert "Another method helps on these rows: threshold, micro-F1" in text
    assert "Another method" not in Page(render_report(tuned, test)).text


def bcts_on(tested, scoring=None):
    methods = {"BCTS": BiasCorrectedTemperature()}
    data = (tested.proba, tested.codes)
    return compare(*data, *data, methods=methods, scoring=scoring)


def test_a_yes_names_no_other_method(tuned, tested):
    compared = bcts_on(tested)
    assert compared[0].ci_low > 0
    assert "Another method" not in Page(render_report(tuned, tested, comparison=compared)).text


def test_losses_of_peers_are_told_as_losses(tuned, tested):
    compared = bcts_on(tested, "neg_log_loss")
    peers = Page(render_report(tuned, tested, comparison=compared)).data["peers"]
    assert peers["name"] == "log loss"
    [row] = peers["rows"]
    assert row["score"] < 0 < float(row["figures"]["after"])
    assert row["figures"]["change"].startswith("−")

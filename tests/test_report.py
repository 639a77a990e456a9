"""The report page: its words, its numbers, and that nothing from outside can act in it."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from altnorm import Adjuster, AlternatingNormalizer, compare
from altnorm._validation import InputError
from altnorm.metrics import decide
from altnorm.peers import BiasCorrectedTemperature, Identity
from altnorm.predictions import Predictions
from altnorm.verdict import compare_predictions
from tests.fitted import tune
from tests.problems import multilabel, predictions

pytest.importorskip("jinja2")

from altnorm.report import render_report, write_report
from altnorm.report._case import read_case
from altnorm.report._page import _read
from altnorm.report._words import answer, score_line, value_words

SINGLE = 1e-5  # relative rounding of a logarithm to single precision, with room to spare
LIMIT = 3_000_000  # bytes of a page
TYPES = {"f4": "<f4", "u2": "<u2", "u4": "<u4", "i4": "<i4"}
HOSTILE = ["<script>alert(1)</script>", "</script><b>", "\"' onload=alert(1) x=", "{{ 7 * 7 }}"]


def unpack(packed):
    return np.frombuffer(base64.b64decode(packed["base64"]), TYPES[packed["type"]])


class Page(HTMLParser):
    """Elements, headings and the data of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.headings, self.text, self.scripts = [], [], "", []
        self._open = []
        self.feed(text)
        self.data = json.loads(self.scripts[0])

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._open.append(tag)
        if tag in ("script", "style"):
            self.scripts.append("")
        if tag == "h2":
            self.headings.append("")

    def handle_endtag(self, tag):
        while self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data):
        inside = self._open[-1] if self._open else ""
        if inside in ("script", "style"):
            self.scripts[-1] += data
            if inside == "style":
                self.scripts.pop()
        else:
            self.text += data
            if inside == "h2":
                self.headings[-1] += data

    def attributes(self, tag):
        return [attrs for name, attrs in self.tags if name == tag]


@pytest.fixture(scope="module")
def tuned():
    return tune(predictions(seed=1, names=HOSTILE))


@pytest.fixture(scope="module")
def tested():
    return predictions(seed=2, names=HOSTILE)


@pytest.fixture(scope="module")
def html(tuned, tested):
    return render_report(tuned, tested, title="<i>A title</i>")


@pytest.fixture(scope="module")
def page(html):
    return Page(html)


def test_it_answers_the_questions_in_order(page):
    assert page.headings == [
        "What changes?",
        "Why?",
        "How sure is the choice?",
        "How does it compare?",
        "Are the probabilities honest?",
        "Which rows changed?",
        "Settings and versions",
    ]
    assert "Should I use it? Yes. Use it." in " ".join(page.text.split())


def test_it_asks_nothing_of_the_network(html, page):
    for tag, attributes in page.tags:
        for name in ("src", "href", "action", "data", "poster"):
            value = attributes.get(name) or "#"
            assert value.startswith(("#", "data:,")), (tag, name, value)
    assert "@import" not in html
    assert not re.findall(r"url\((?!#)", html)
    assert set(re.findall(r"https?://[^\s\"']+", html)) == {"http://www.w3.org/2000/svg"}
    assert not re.findall(r"\b(fetch|XMLHttpRequest|eval|innerHTML|WebSocket)\b", html)


def test_the_policy_admits_our_script_and_style_and_nothing_else(html, page):
    [policy] = [
        a["content"] for a in page.attributes("meta") if a.get("http-equiv", "").startswith("Cont")
    ]
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    for element in ("script", "style"):
        content = re.search(rf"<{element}>(.*?)</{element}>", html, re.DOTALL)[1]
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{element}-src 'sha256-{digest}'" in policy
    assert not [a for _, a in page.tags if "style" in a or any(k.startswith("on") for k in a)]


def test_class_names_and_title_cannot_act(html, page):
    assert page.data["classes"] == HOSTILE
    assert len(page.attributes("script")) == 2
    assert not page.attributes("b") or all(not a for a in page.attributes("b"))
    assert "<i>A title</i>" in page.text
    assert "alert(1)" not in re.sub(r"\\u003cscript|<script type.*?</script>", "", html, flags=re.S)


def test_the_same_input_gives_the_same_page(tuned, tested, html):
    assert render_report(tuned, tested, title="<i>A title</i>") == html


def test_every_chart_has_its_place(page):
    places = {a["data-chart"] for a in page.attributes("figure")}
    scripts = page.scripts[-1]
    assert places <= set(re.findall(r"mount\('(\w+)'", scripts))
    assert {"flows", "changes", "ambiguity", "use", "tuning", "reliability", "live"} <= places


def test_live_numbers_equal_the_normalizer(page, tested):
    """One iteration from what the page carries, in plain NumPy, against the estimator."""
    live = page.data["live"]
    sums = unpack(live["sums"]).reshape(-1, len(live["alphas"]), live["width"]).astype(float)
    index = unpack(live["index"]).reshape(live["n"], live["top"])
    p = unpack(live["p"]).reshape(index.shape).astype(float)
    log_q = unpack(live["prior"]).astype(float)
    validation = predictions(seed=1)
    inner = tune(validation).best_normalizer_
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
    assert right == (tested.proba.argmax(axis=1) == tested.codes).sum()
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


def test_a_bias_adjusts_every_row():
    validation, test = predictions(seed=5), predictions(seed=6)
    tuned = Adjuster(("bias",), calibrate=False).fit(validation.proba, validation.codes)
    page = Page(render_report(tuned, test))
    assert page.data["kind"] == "other"
    assert "does not look at doubt" in page.text
    moved = test.proba.argmax(axis=1) != tuned.predict(test.proba)
    assert page.data["rows"]["of"] == moved.sum() > 0


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


@pytest.mark.parametrize("mode", ["pairs", "labelwise"])
def test_multilabel(mode):
    validation, test = multilabel(seed=1), multilabel(seed=2)
    tuned = tune(validation, multilabel=mode)
    page = Page(render_report(tuned, test))
    assert page.data["multilabel"] == mode
    assert page.data["flows"] is None
    assert tuned.verdict_.adopted
    live = page.data["live"]
    assert live["width"] == (2 if mode == "pairs" else 10)
    said = live["outside"]["named"] + unpack(live["weight"]) @ (unpack(live["truth"]) % 2)
    assert said >= test.labels.sum()
    bare = Page(render_report(tuned, Predictions(test.proba, test.classes)))
    assert "no labels" in bare.text


def test_a_rule_of_decision_is_honoured():
    """The page charts and lists the changes that `predict` makes, and counts them once."""
    validation, test = multilabel(seed=1), multilabel(seed=2)
    tuned = tune(validation, multilabel="labelwise", decision="argmax_or_threshold")
    assert tuned.verdict_.adopted
    page = Page(render_report(tuned, test))
    old = Identity(multilabel="labelwise").fit(test.proba).transform(test.proba)
    rows, labels = np.nonzero(
        decide(old, decision="argmax_or_threshold") != tuned.predict(test.proba)
    )
    changes, usual = page.data["changes"], (test.proba > 0.5) != (tuned.transform(test.proba) > 0.5)
    assert rows.size != usual.sum()
    assert page.data["rows"]["of"] == rows.size == sum(changes["gained"]) + sum(changes["lost"])
    right = tuned.predict(test.proba)[rows, labels] == test.labels[rows, labels]
    assert sum(changes["fixed"]) == right.sum()
    assert sum(changes["broken"]) == (~right).sum()
    after = tuned.predict(test.proba) == test.labels
    assert sum(page.data["ambiguity"]["right_after"]) == after.sum()
    assert page.data["live"] is None  # its sliders decide entry by entry


def test_a_thousand_classes_stay_small():
    m = 1000
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.full(m, 0.003), size=3000) + 1e-7
    proba /= proba.sum(axis=1, keepdims=True)
    y = np.array([rng.choice(m, p=row) for row in proba[:600]])
    normalizer = AlternatingNormalizer(0.7, threshold=0.5).fit(proba[600:])
    text = render_report(normalizer, Predictions(proba[:600], np.arange(m), y))
    assert len(text.encode()) < LIMIT


def test_files_are_kept_unless_forced(tuned, tested, tmp_path):
    target = tmp_path / "report.html"
    write_report(tuned, tested, target)
    with pytest.raises(InputError, match="exists already"):
        write_report(tuned, tested, target)
    write_report(tuned, tested, target, force=True)
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]


def test_texts_must_match_the_rows(tuned, tested):
    with pytest.raises(InputError, match="`texts` must have one entry per row, 600; it has 1"):
        render_report(tuned, tested, texts=["one"])
    texts = [f"text <{i}>" for i in range(600)]
    rows = Page(render_report(tuned, tested, texts=texts)).data["rows"]
    assert rows["text"] == [texts[i] for i in rows["row"]]


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
    told = answer(read_case(backwards, tested))
    assert told.tone == "no"
    assert told.headline == "No. It does harm here."


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (0.5, "0.5"),
        ((1, 2), "1, 2"),
        (tuple(range(20)), "0 … 19 (20 values)"),
        (np.ones(50), "array of shape (50,)"),
        (None, "None"),
    ],
)
def test_settings_are_short(value, told):
    assert value_words(value) == told


def luminance(colour):
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))


def contrast(one, two):
    high, low = sorted((luminance(one), luminance(two)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_contrast_passes_wcag_aa(theme):
    blocks = re.findall(r"\{([^{}]*--paper: [^{}]*)\}", _read("style.css"))
    light, system, chosen = (dict(re.findall(r"--([\w-]+): (#\w{6})", b)) for b in blocks)
    assert system == chosen
    colours = light if theme == "light" else chosen
    for ground in ("paper", "panel"):
        for text in ("ink", "soft", "after", "fixed-ink", "broken-ink"):
            assert contrast(colours[text], colours[ground]) >= 4.5, (text, ground)
    for mark in ("before", "after", "fixed", "broken", *(f"depth{d}" for d in range(1, 6))):
        assert contrast(colours[mark], colours["paper"]) >= 3, mark


@pytest.mark.parametrize(
    ("favoured", "told"), [(0, "predictions look like those"), (3, "no longer look like")]
)
def test_the_page_says_whether_the_reference_still_fits(favoured, told):
    rng = np.random.default_rng(0)
    normalizer = AlternatingNormalizer().fit(rng.dirichlet([0.3, 0.3, 0.3], size=2000))
    incoming = rng.dirichlet([0.3 + favoured, 0.3, 0.3], size=1000)
    page = render_report(normalizer, Predictions(incoming, normalizer.classes_))
    assert told in page


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

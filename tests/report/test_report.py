"""The report page: what it says, its numbers, and that nothing from outside can act in it."""

import base64
import hashlib
import re
from copy import copy
from dataclasses import replace

import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator

from altnorm import Adjuster, AlternatingNormalizer, InputError, compare, load
from altnorm._base.words import FAMILY_NAMES
from altnorm.adjuster.candidates import FAMILIES
from altnorm.evidence.verdict import Caution
from altnorm.io.predictions import Predictions
from altnorm.peers import BiasCorrectedTemperature, Identity
from tests import report_pages
from tests.report_pages import (
    NAMES,
    PERSON,
    Page,
    adjusted,
    confused,
    decided_codes,
    rare,
    render_report,
)

pytest.importorskip("jinja2")

from altnorm.report import write_report
from altnorm.report._page import _read

VALIDATION, TEST = rare(seed=1), rare(seed=2)
LIMIT = 1_000_000  # bytes of a page


def report_on(model, rows, **options):
    return Page(render_report(model, rows, **options))


def headline(page):
    return page.headings[0].strip()


def fit_bias(**settings):
    return Adjuster(("bias",), **settings).fit(VALIDATION.proba, VALIDATION.labels)


class Prophet(Identity):
    """Decides as told."""

    def __init__(self, codes=None):
        super().__init__()
        self.codes = codes

    def predict(self, proba):
        return self.classes_[self.codes]


@pytest.fixture(scope="module")
def hostile():
    model = BiasCorrectedTemperature(strength=1.0)
    rows = [rare(600, seed=seed, names=np.array([*report_pages.HOSTILE, "eel"])) for seed in (1, 2)]
    return model.fit(rows[0].proba, rows[0].codes), rows[1]


@pytest.fixture(scope="module")
def html(hostile):
    return render_report(*hostile, title="<i>A title</i>", texts=[report_pages.HOSTILE[0]] * 600)


@pytest.fixture(scope="module")
def page():
    return report_on(adjusted(), TEST)


class TestSafety:
    """Nothing from outside acts, nothing goes outside."""

    def test_it_asks_nothing_of_the_network(self, html):
        for tag, attributes in Page(html).tags:
            for name in ("src", "href", "action", "data", "poster"):
                value = attributes.get(name) or "#"
                assert value.startswith(("#", "data:,")), (tag, name, value)
        assert "@import" not in html
        assert "url(" not in html
        assert set(re.findall(r"https?://[^\s\"']+", html)) == {"http://www.w3.org/2000/svg"}
        assert not re.findall(r"\b(fetch|XMLHttpRequest|eval|innerHTML|WebSocket)\b", html)

    def test_the_policy_admits_our_script_and_style_and_nothing_else(self, html):
        page = Page(html)
        [policy] = [a["content"] for a in page.attributes("meta") if "http-equiv" in a]
        assert policy.startswith("default-src 'none'")
        assert "unsafe" not in policy
        for element in ("script", "style"):
            content = re.search(rf"<{element}>(.*?)</{element}>", html, re.DOTALL)[1]
            digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
            assert f"{element}-src 'sha256-{digest}'" in policy
        assert not [a for _, a in page.tags if "style" in a or any(k.startswith("on") for k in a)]

    def test_names_texts_and_title_cannot_act(self, html):
        page = Page(html)
        assert page.data["classes"][:4] == report_pages.HOSTILE
        assert len(page.attributes("script")) == 2
        assert [attrs for attrs in page.attributes("b") if attrs] == []
        assert "<i>A title</i>" in page.text
        assert report_pages.HOSTILE[0] in page.text  # as the name of a bar
        assert "&lt;/<wbr>script&gt;" in html  # where it may break
        assert "<script>alert" not in html

    def test_files_are_kept_unless_forced(self, hostile, tmp_path):
        target = tmp_path / "report.html"
        write_report(*hostile, target)
        with pytest.raises(InputError, match="exists already"):
            write_report(*hostile, target)
        write_report(*hostile, target, force=True)
        assert [p.name for p in tmp_path.iterdir()] == ["report.html"]
        with pytest.raises(InputError, match="The report is an HTML page"):
            write_report(*hostile, tmp_path / "report.pdf")


class TestAnswer:
    """The headline decides honestly."""

    def test_a_gain_with_a_price_is_no_plain_yes(self):
        biased = BiasCorrectedTemperature().fit(VALIDATION.proba, VALIDATION.labels)
        page = report_on(biased, TEST)
        assert headline(page) == "Accuracy +2.8 points, but balanced accuracy falls by 2.0 points."
        assert "scoring='balanced_accuracy' would give a balanced accuracy of 55.6%" in page.text
        assert "Yes" not in page.text
        without = report_pages.WithoutEel().fit(VALIDATION.proba, VALIDATION.labels)
        answer = headline(report_on(without, rare(8000, seed=2)))
        assert "points, but class eel is never predicted any more" in answer

    def test_a_plain_yes(self):
        page = report_on(adjusted("matrix"), confused(seed=2))
        assert headline(page) == "Yes. Use it."
        assert "Cross-validation estimated +" in page.text
        assert page.headings[1:] == [
            "What changes?",
            "Why?",
            "Are the probabilities honest?",
            "Which rows changed?",
            "Settings and versions",
        ]

    def test_probabilities_that_became_less_honest_are_said_to_be(self):
        sharp = AlternatingNormalizer(8.0, reference="all")
        page = report_on(sharp.fit(VALIDATION.proba, VALIDATION.labels), TEST)
        assert "do not read these probabilities as frequencies" in page.text
        page = report_on(adjusted("matrix"), confused(seed=2))
        assert "do not read" not in page.text

    def test_what_balanced_accuracy_costs_is_said(self):
        page = report_on(adjusted("balanced_accuracy"), TEST)
        assert headline(page) == "Yes. Use it."
        assert "Not everything improves: accuracy falls from 60.4% to 5" in page.text

    def test_a_class_that_only_loses_is_told_at_the_top(self):
        model = report_pages.WithoutEel().fit(VALIDATION.proba, VALIDATION.labels)
        page = report_on(model, TEST)
        lost = ((TEST.proba.argmax(axis=1) == 4) & (TEST.codes == 4)).sum()
        answer = page.text.partition("What changes?")[2].partition("What changes?")[0]
        assert f"One class only loses (eel: 0 fixed, {lost} broken)." in answer
        assert "only lose" not in report_on(adjusted("matrix"), confused(seed=2)).text

    def test_methods_that_score_higher_are_told_beside_a_yes(self):
        test = confused(seed=2)
        data = confused(seed=1).proba, confused(seed=1).codes, test.proba, test.codes
        ours, better = adjusted("matrix"), Prophet(test.codes)
        almost = decided_codes(ours, test)
        wrong = np.flatnonzero(almost != test.codes)[:2]
        almost[wrong] = test.codes[wrong]
        methods = {"altnorm": FrozenEstimator(ours), "oracle": better, "twin": Prophet(almost)}
        compared = compare(*data, methods=methods)
        page = report_on(ours, test, comparison=compared)
        assert headline(page) == "Yes. Use it."
        assert "Better on these rows, beyond chance, is oracle." in page.text
        assert "Twin scores higher, but within chance." in page.text
        # Their changes are drawn on one scale.
        gains = np.sort([row.gain for row in compared])[::-1]
        places = [a["cx"] for a in page.attributes("circle") if a["cx"].endswith("%")]
        drawn = np.array([float(place[:-1]) - 50 for place in places[-gains.size :]])
        np.testing.assert_allclose(drawn / drawn[0], gains / gains[0], atol=1e-3)

    def test_insisting_is_said(self):
        page = report_on(fit_bias(insist=True, significance=1e-30), VALIDATION, seen=True)
        assert headline(page) == "Applied because you insisted."
        assert "The evidence is too weak." in page.text

    def test_what_had_to_hold_is_shown(self, page):
        assert "What had to hold for decisions to change" in page.text
        for row in adjusted().verdict_.gates.rows():
            assert all(cell.lower() in page.text.lower() for cell in row)

    def test_rows_of_the_fit_are_no_proof(self):
        again = headline(report_on(adjusted("matrix"), confused(seed=1)))
        assert again.endswith(
            "points, but these are the rows that the model was tuned on, so the result is too good."
        )
        page = report_on(adjusted("balanced_accuracy"), VALIDATION, seen=True)
        assert headline(page) == "Yes, as far as validation tells."
        assert "A test set would confirm it." in page.text
        assert "These are the rows that the model was tuned on." in page.text
        unsure = copy(adjusted("balanced_accuracy"))
        unsure.verdict_ = replace(unsure.verdict_, ci_low=-0.01)
        page = report_on(unsure, VALIDATION, seen=True)
        assert headline(page) == "Probably, as far as validation tells."

    @pytest.mark.parametrize("price", [(), (Caution("other_purpose", "It costs.", 1.0, True),)])
    def test_evidence_of_the_log_loss_comes_with_the_only_p_value(self, price):
        fitted = copy(adjusted("balanced_accuracy"))
        verdict = replace(fitted.verdict_, evidence="log_loss", cautions=price)
        fitted.verdict_ = verdict
        text = report_on(fitted, VALIDATION, seen=True).text
        assert ("but it costs." in text) == bool(price)
        answer = text[: text.index("What had to hold")]
        assert "The evidence is the log loss (one-sided p < 0.001), so the size of" in answer
        assert len(re.findall(r"\bp\s[=<]", answer)) == 1

    def test_without_labels(self):
        bare = Predictions(TEST.proba, TEST.classes)
        page = report_on(adjusted("balanced_accuracy"), bare)
        assert headline(page) == "Yes, as far as validation tells."
        assert "no labels, so there are no scores" in page.text
        assert "These predictions look like those at fit" in page.text
        old, new = TEST.proba.argmax(axis=1), decided_codes(adjusted("balanced_accuracy"), TEST)
        for name, text in zip(*[iter(page.bars["changes"])] * 2, strict=True):
            came, went = ((NAMES[side] == name) & (old != new) for side in (new, old))
            assert text == f"{came.sum()} gained, {went.sum()} lost"
        plain = AlternatingNormalizer().fit(TEST.proba)
        assert headline(report_on(plain, bare)) == "Open: there are no labels."

    def test_a_no_is_explained(self):
        page = report_on(fit_bias(calibrate=False, significance=1e-30), TEST)
        assert headline(page) == "No. Leave the predictions alone."
        assert "No decision changes." in page.text
        assert page.data["rows"]["n"] == 0
        with_temperature = fit_bias(significance=1e-30)
        for ci_low, answer in ((0.01, "For its probabilities"), (-0.01, "No. Leave the pred")):
            calibration = replace(with_temperature.calibration_, ci_low=ci_low, adopted=True)
            with_temperature.calibration_ = calibration
            assert headline(report_on(with_temperature, TEST)).startswith(answer)
        # Costs decide even so, and may leave rows to a person.
        costly = fit_bias(costs=PERSON, significance=1e-30)
        costly.calibration_ = replace(costly.calibration_, ci_low=-0.01, adopted=True)
        page = report_on(costly, TEST)
        assert headline(page) == "No. Decide without the correction."
        assert "So decisions are made without the correction" in page.text
        rows = confused()
        swapped = Adjuster(("bias",)).fit(rows.proba[:, [1, 0, 2, 3, 4]], rows.labels)
        page = report_on(swapped, rows)
        assert headline(page) == "No. The input is probably wrong."
        assert "The columns of ant and bee look exchanged" in page.text

    def test_too_few_labels_lead_to_those_that_decide(self):
        unproved = fit_bias(significance=1e-30)
        verdict, advice = unproved.verdict_, "labels may decide if they are those of rows whose"
        few = Caution("too_few_rows", "So many.", 4.0 * verdict.n_rows)
        unproved.verdict_ = replace(verdict, reason="not_significant", cautions=(few,))
        n_labels = float(f"{4.0 * verdict.n_changed:.1g}")
        assert f"About {n_labels:,.0f} {advice}" in report_on(unproved, TEST).text
        assert advice not in report_on(adjusted(), TEST).text

    def test_harm_is_called_harm(self):
        class Upside(Identity):
            def _transform(self, clean):
                return clean.proba[:, ::-1]

        page = report_on(Upside().fit(TEST.proba, TEST.labels), TEST)
        assert headline(page) == "No. It does harm here."
        methods = {"BCTS": BiasCorrectedTemperature()}
        data = VALIDATION.proba, VALIDATION.codes, TEST.proba, TEST.codes
        compared = compare(*data, methods=methods, scoring="neg_log_loss")
        text = report_on(Upside().fit(TEST.proba), TEST, comparison=compared).text
        assert "Another method helps on these rows: BCTS, log loss" in text
        assert "BCTS is a temperature and a number for each class." in text
        assert "Log loss of each method" in text

    def test_drift_is_told(self):
        shifted = TEST.proba[TEST.codes > 0]
        drift = adjusted().drift(shifted)
        assert drift.drifted
        page = report_on(adjusted(), Predictions(shifted, NAMES))
        assert str(drift) in page.text

    def test_an_adapted_copy_says_so(self):
        kept = np.flatnonzero((TEST.codes < 2) | (np.arange(3000) % 3 == 0))
        rows = Predictions(TEST.proba[kept], NAMES, TEST.labels[kept])
        adapted = adjusted().adapt(rows.proba, assume="label_shift")
        page = report_on(adapted, rows)
        assert str(adapted.shift_) in page.text


class TestWhy:
    """The family that was chosen is explained by names, and no other is mentioned."""

    def families(self, page):
        text = page.text.rpartition("Settings and versions")[0]
        return [FAMILY_NAMES[name] for name in FAMILIES if FAMILY_NAMES[name] in text]

    def test_a_bias_names_the_classes(self, page):
        assert "The probability of each class is multiplied by a factor of its own" in page.text
        bias = adjusted().model_.bias_
        factors = np.exp(bias - bias.mean())
        shown = dict(zip(*[iter(page.bars["factors"])] * 2, strict=True))
        assert set(shown) == set(NAMES)
        for name, factor in zip(NAMES, factors, strict=True):
            assert float(shown[name][2:]) == pytest.approx(factor, rel=0.05)
        assert self.families(page) == []

    def test_a_matrix_names_the_pairs(self):
        test, model = confused(seed=2), adjusted("matrix")
        page = report_on(model, test)
        old, new, truth = test.proba.argmax(axis=1), model.predict(test.proba), test.codes
        before = (truth == 3) & (old == 2)
        after = (truth == 3) & (new == "cat")
        fixed = before & (new == "dog")
        assert page.bars["confusions"][:2] == [
            "dog taken for cat",
            f"{before.sum()} before, {after.sum()} after; {fixed.sum()} fixed",
        ]
        assert "factors" not in page.bars
        assert self.families(page) == []
        weights = model.mixture_.weights
        assert f"labels best: {100 * weights[0]:.0f}% the corrected row, " in page.text

    def test_bent_lines_are_told(self):
        rows = confused(seed=1)
        model = Adjuster(("curves",)).fit(rows.proba, rows.labels)
        page = report_on(model, confused(seed=2))
        assert "along bent lines" in page.text
        assert "confusions" in page.bars

    def test_rows_that_are_drawn_back_are_told(self):
        page = report_on(fit_bias(significance=1e-30), TEST)
        assert "it is drawn back to keep the decision" in page.text
        assert "So your decisions stay as they were." in page.text

    def test_alternating_normalization_says_what_it_did(self):
        model = AlternatingNormalizer(threshold=0.5).fit(VALIDATION.proba, VALIDATION.labels)
        page = report_on(model, TEST)
        assert "of the rows are in doubt" in page.text
        assert self.families(page) == [FAMILY_NAMES["alternating"]]
        assert "factors" not in page.bars  # it depends on the row

    def test_a_person_is_named(self):
        page = report_on(adjusted("person"), TEST)
        n = sum(label is None for label in adjusted("person").predict(TEST.proba))
        assert f"{n:,} rows are left to a person." in page.text
        assert "ant → left to a person" in page.bars["flows"]
        assert "The decision is the one of least expected cost" in page.text
        assert "Cross-validation estimated" not in page.text  # it was a gain over other decisions


class TestNumbers:
    """What the page shows, against naive counts."""

    def test_a_model_from_a_file_has_no_cross_fitted_rows(self, tmp_path):
        adjusted("matrix").save(tmp_path / "m")
        page = report_on(load(tmp_path / "m"), confused(seed=1), seen=True)
        assert "confusions" not in page.bars
        page = report_on(adjusted("matrix"), confused(seed=1), seen=True)
        assert "confusions" in page.bars

    def test_changes_of_several_labels(self):
        model, rows = adjusted("labels"), report_pages.labelled(seed=2)
        old, new = rows.proba > 0.5, model.predict(rows.proba) > 0
        bars = report_on(model, rows).bars["changes"]
        for name, text in zip(bars[::2], bars[1::2], strict=True):
            j = rows.classes.tolist().index(name)
            changed, right = old[:, j] != new[:, j], new[:, j] == rows.labels[:, j]
            assert text == f"{(changed & right).sum()} fixed, {(changed & ~right).sum()} broken"
        assert bars

    def test_flows(self, page):
        old, new = TEST.proba.argmax(axis=1), adjusted().predict(TEST.proba)
        sizes = []
        for name, text in zip(*[iter(page.bars["flows"])] * 2, strict=True):
            source, target = name.split(" → ")
            moved = (NAMES[old] == source) & (new == target)
            fixed, broken = (moved & (TEST.labels == end) for end in (target, source))
            assert text.startswith(f"{fixed.sum()} fixed, {broken.sum()} broken")
            sizes.append(moved.sum())
        assert sizes == sorted(sizes, reverse=True) != []

    @pytest.mark.parametrize("purpose", ["accuracy", "person"])
    def test_changed_rows_know_their_classes(self, purpose):
        texts = [f"text {i}" for i in range(3000)]
        page = report_on(adjusted(purpose), TEST, texts=texts)
        rows, explained = page.data["rows"], adjusted(purpose).explain(TEST.proba)
        assert rows["n"] == len(rows["row"]) == min(1000, rows["of"])
        assert rows["of"] == len(explained)
        by_row = {changed.row: changed for changed in explained}
        for i, changed in enumerate(by_row[row] for row in rows["row"]):
            assert rows["reason"][i] == str(changed)
            assert rows["text"][i] == texts[changed.row]
            assert page.data["classes"][rows["after"][i]] == (changed.after or "left to a person")
            at = rows["index"][i].index(rows["before"][i])
            assert rows["old"][i][at] == pytest.approx(changed.proba_before, abs=1e-4)
        with pytest.raises(InputError, match="`texts` must have one entry per row, 3000; it has 1"):
            render_report(adjusted(purpose), TEST, texts=["one"])

    def test_rows_without_a_label_are_left_out(self):
        labels = TEST.labels.astype(object)
        labels[::2] = None
        texts = [f"text {i}" for i in range(3000)]
        page = report_on(adjusted(), Predictions(TEST.proba, NAMES, labels), texts=texts)
        assert page.text.count("1,500 rows, 5 classes") == 1
        assert all(int(text.split()[1]) % 2 for text in page.data["rows"]["text"])

    def test_many_classes_stay_small(self):
        m = 600
        rng = np.random.default_rng(0)
        proba = rng.dirichlet(np.full(m, 0.003), size=1200) + 1e-7
        proba /= proba.sum(axis=1, keepdims=True)
        y = np.array([rng.choice(m, p=row) for row in proba[:600]])
        normalizer = AlternatingNormalizer(0.7, threshold=0.5).fit(proba[600:])
        text = render_report(normalizer, Predictions(proba[:600], np.arange(m), y))
        assert len(text.encode()) < LIMIT


def luminance(colour):
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))


def contrast(*colours):
    low, high = sorted(map(luminance, colours))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_contrast_passes_wcag_aa(theme):
    style = _read("style.css")
    blocks = re.findall(r"\{([^{}]*--paper: [^{}]*)\}", style)
    colours = dict(re.findall(r"--([\w-]+): (#\w{6})", blocks[theme]))
    for ground in ("paper", "panel"):
        for text in ("ink", "soft", "after", "fixed-ink", "broken-ink"):
            assert contrast(colours[text], colours[ground]) >= 4.5, (text, ground)
        for mark in ("before", "after", "fixed", "broken"):
            assert contrast(colours[mark], colours[ground]) >= 3, mark
    dark = style.index("color-scheme: dark;")
    assert style.rindex("@media screen", 0, dark) > style.rfind("\n}", 0, dark)  # not on paper


def test_target_accuracy_has_a_section_with_the_promise_and_the_curve():
    model = fit_bias(target_accuracy=0.9)
    promise = model.verdict_.promise
    for rows, seen in ((VALIDATION, True), (TEST, False)):
        html = render_report(model, rows, seen=seen)
        section = html.split('<section id="alone">')[1].split("</section>")[0]
        assert str(promise).replace("&", "&amp;") in section
        start = html.split('<section id="changes">')[0]
        assert "It may leave rows to a person" in start, "the numbers there are of all rows"
        assert ("On these rows: It decides" in section) == (not seen)
        target = re.search(r'class="diagonal" x1="0" x2="100" y1="([0-9.]+)"', section)
        assert float(target[1]) == pytest.approx(10)
        point = re.search(r'<circle class="after" cx="([0-9.]+)" cy="([0-9.]+)"', section)
        decided = np.mean([answer is not None for answer in model.predict(rows.proba)])
        share = promise.share if seen else decided
        assert float(point[1]) == pytest.approx(100 * share, abs=0.1)
    assert '<section id="alone">' not in render_report(adjusted("accuracy"), TEST)

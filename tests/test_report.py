"""The report page: its parts, its looks, and that nothing from outside can act in it."""

import base64
import hashlib
import re

import numpy as np
import pytest

from altnorm._base.errors import InputError
from tests.fitted import tune
from tests.problems import predictions
from tests.report_pages import HOSTILE, Page

pytest.importorskip("jinja2")

from altnorm.report import render_report, write_report
from altnorm.report._page import _read


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


def test_paper_is_light_and_bears_the_title(html):
    style = re.search(r"<style>(.*?)</style>", html, re.DOTALL)[1]
    dark = [m.start() for m in re.finditer("color-scheme: dark;", style)]
    assert len(dark) == 2
    for at in dark:  # inside of a rule for screens
        assert style.rindex("@media screen", 0, at) > style.rfind("\n}", 0, at)
    title = re.search(r'@top-left \{ content: "(.*?)"', style)[1]
    decoded = re.sub(r"\\([0-9a-f]{6})", lambda m: chr(int(m[1], 16)), title)
    assert decoded == "<i>A title</i>"

"""The report in a real browser: Debian's chromium, headless, from disk."""

import base64
import re
import shutil

import numpy as np
import pytest

from altnorm import AlternatingNormalizer, load_demo
from altnorm.io.predictions import Predictions
from altnorm.peers import BiasCorrectedTemperature
from tests.report_pages import adjusted, confused, labelled, rare

pytest.importorskip("jinja2")
pytest.importorskip("selenium")

from altnorm.report import write_report

pytestmark = pytest.mark.heavy

FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-background-networking "
    "--disable-component-update --disable-sync --no-first-run --hide-scrollbars"
)
PHONE, DESK = (390, 844), (1440, 1000)
HOSTILE = ["<script>document.title='broken in'</script>", "a & b", "</script>", '"c"']
TEST = rare(seed=2)


def write_pages(folder):
    demo = load_demo()
    alternating = AlternatingNormalizer(0.8, threshold=0.5)
    alternating.fit(demo.validation.proba, demo.validation.labels)
    hostile = [rare(600, seed=seed, names=np.array([*HOSTILE, "e"])) for seed in (1, 2)]
    bias = BiasCorrectedTemperature(strength=1.0).fit(hostile[0].proba, hostile[0].codes)
    bare = Predictions(TEST.proba, TEST.classes)
    for name, (model, rows, options) in {
        "demo": (alternating, demo.test, {"texts": demo.queries}),
        "balanced": (adjusted("balanced_accuracy"), TEST, {}),
        "person": (adjusted("person"), TEST, {}),
        "matrix": (adjusted("matrix"), confused(seed=2), {}),
        "labels": (adjusted("labels"), labelled(seed=2), {}),
        "seen": (adjusted(), rare(seed=1), {"seen": True}),
        "unlabelled": (adjusted("balanced_accuracy"), bare, {}),
        "hostile": (bias, hostile[1], {"title": HOSTILE[0]}),
    }.items():
        write_report(model, rows, folder / f"{name}.html", **options)


PAGES = ("demo", "balanced", "person", "matrix", "labels", "seen", "unlabelled", "hostile")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("pages")
    write_pages(path)
    return path


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    driver = shutil.which("chromedriver")
    if driver is None or shutil.which("chromium") is None:
        pytest.skip("chromium and chromedriver are not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for flag in (*FLAGS.split(), f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    chrome = webdriver.Chrome(options=options, service=Service(driver))
    yield chrome
    chrome.quit()


@pytest.fixture
def show(browser, folder):
    """Open a page at a size; nothing may stand in the console, then or at the end."""

    def check():
        assert browser.get_log("browser") == []

    def opened(name, size=DESK, dark=False):
        width, height = size
        browser.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500},
        )
        media = {
            "prefers-color-scheme": "dark" if dark else "light",
            "prefers-reduced-motion": "reduce",  # nothing moves while a test points at it
        }
        features = [{"name": name, "value": value} for name, value in media.items()]
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        browser.get((folder / f"{name}.html").as_uri())
        check()
        return browser

    yield opened
    check()


def js(browser, script, *arguments):
    return browser.execute_script(script, *arguments)


def find(browser, selector):
    return browser.find_elements("css selector", selector)


def text_of(browser, selector):
    return js(browser, "return document.querySelector(arguments[0]).innerText", selector)


def texts_of(browser, selector):
    script = "return [...document.querySelectorAll(arguments[0])].map(node => node.innerText)"
    return js(browser, script, selector)


def column(browser, name):
    return texts_of(browser, f"#table tbody tr:not(.detail) [data-label='{name}']")


@pytest.mark.parametrize("size", [PHONE, DESK], ids=["phone", "desk"])
@pytest.mark.parametrize("name", PAGES)
def test_it_renders_without_errors_and_fits(show, name, size):
    browser = show(name, size)
    assert js(browser, "return document.documentElement.scrollWidth") <= size[0]
    empty = "return [...document.querySelectorAll('figure')].filter(f => !f.querySelector('svg'))"
    assert js(browser, empty + ".map(f => f.dataset.chart)") == []
    for word in ("NaN", "undefined", "null"):
        assert js(browser, "return document.body.innerText.includes(arguments[0])", word) is False
    assert js(browser, "return [...document.querySelectorAll('th')].every(th => th.textContent)")
    regions = "return [...document.querySelectorAll('[role=region]')].map(n => n.ariaLabel)"
    names = js(browser, regions)
    assert len(names) == len(set(names)) > 0


def test_it_asks_nothing_of_the_network(show):
    browser = show("demo")
    events = [entry["message"] for entry in browser.get_log("performance")]
    sent = [event for event in events if 'requestWillBeSent"' in event]
    assert not [event for event in sent if '"url":"http' in event]


def test_hostile_names_are_text(show):
    browser = show("hostile")
    assert browser.title.startswith(HOSTILE[0])
    assert len(find(browser, "script")) == 2
    assert HOSTILE[1] in text_of(browser, "#table")
    assert HOSTILE[0] in text_of(browser, "#changes")


def test_the_table_searches_filters_and_turns_pages(show):
    from selenium.webdriver.support.wait import WebDriverWait

    browser = show("demo")
    first = column(browser, "Row")
    find(browser, "#next")[0].click()
    assert not set(first) & set(column(browser, "Row"))
    total = text_of(browser, "#found")
    find(browser, "#search")[0].send_keys("weather")
    WebDriverWait(browser, 5).until(lambda _: text_of(browser, "#found") != total)
    rows = texts_of(browser, "#table tbody tr")
    assert rows
    assert all("weather" in row for row in rows)
    next(b for b in find(browser, "#outcome button") if b.text == "broken").click()
    assert set(column(browser, "Outcome")) <= {"broken"}


@pytest.mark.parametrize("outcome", ["left to a person", "fixed"])
def test_the_table_explains_as_the_library_does(show, outcome):
    browser = show("person")
    next(b for b in find(browser, "#outcome button") if b.text == outcome).click()
    row = int(column(browser, "Row")[0].replace(",", ""))
    find(browser, "#table .why button")[0].click()
    expected = next(x for x in adjusted("person").explain(TEST.proba) if x.row == row)
    assert text_of(browser, "#table .detail p") == str(expected)
    assert (column(browser, "After")[0] == "left to a person") == (expected.after is None)


def test_both_themes_and_white_paper(show):
    ground = "return getComputedStyle(document.body).backgroundColor"
    grounds = [js(show("demo", dark=dark), ground) for dark in (False, True)]
    assert grounds == ["rgb(253, 252, 250)", "rgb(21, 23, 27)"]
    browser = show("demo", dark=True)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert js(browser, ground) == "rgb(255, 255, 255)"


@pytest.mark.parametrize("name", PAGES)
def test_two_sheets_of_paper_hold_it(show, name):
    """A third one would be nearly empty."""
    printed = show(name).execute_cdp_cmd("Page.printToPDF", {"printBackground": True})
    sheets = re.findall(rb"/Type\s*/Page\b", base64.b64decode(printed["data"]))
    assert 1 <= len(sheets) <= 2

"""The report in a real browser: Debian's chromium, headless, from disk."""

import base64
import json
import re
import shutil
import time

import pytest

from altnorm import AlternatingNormalizer, compare
from altnorm.io.datasets import load_demo
from altnorm.io.predictions import Predictions
from altnorm.peers import BatchCalibration, Identity
from tests.fitted import tune
from tests.problems import multilabel, predictions

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


def synthetic(m=4, n=500, seed=0, names=None):
    return predictions(n, m, seed, names or [f"class {j}" for j in range(m)])


def write_demo(path):
    demo = load_demo()
    val, test = demo.validation, demo.test
    normalizer = AlternatingNormalizer(0.8, threshold=0.5).fit(val.proba, val.labels)
    methods = {"identity": Identity(), "batch": BatchCalibration(), "CAN": normalizer}
    compared = compare(val.proba, val.codes, test.proba, test.codes, methods=methods)
    write_report(normalizer, test, path, texts=demo.queries, comparison=compared)


def write_two(path):
    tuned = tune(synthetic(2, seed=1))
    write_report(tuned, synthetic(2, seed=2), path)


def write_hostile(path):
    tuned = tune(synthetic(seed=1, names=HOSTILE))
    write_report(tuned, synthetic(seed=2, names=HOSTILE), path, title=HOSTILE[0])


def write_identity(path):
    tuned = tune(synthetic(10, seed=1), significance=1e-9)
    write_report(tuned, synthetic(10, seed=2), path)


def write_unlabelled(path):
    tuned = tune(synthetic(10, seed=1))
    test = synthetic(10, seed=2)
    write_report(tuned, Predictions(test.proba, test.classes), path)


def write_labelwise(path):
    tuned = tune(multilabel(200, 6, seed=1), multilabel="labelwise")
    write_report(tuned, multilabel(200, 6, seed=2), path)


def write_thousand(path):
    test = synthetic(1000, n=300, seed=2)
    normalizer = AlternatingNormalizer(reference="all", threshold=0.5).fit(
        synthetic(1000, n=500, seed=1).proba
    )
    normalizer.classes_ = test.classes
    write_report(normalizer, test, path)


PAGES = {
    "demo": write_demo,
    "two": write_two,
    "hostile": write_hostile,
    "identity": write_identity,
    "unlabelled": write_unlabelled,
    "labelwise": write_labelwise,
    "thousand": write_thousand,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("pages")
    for name, write in PAGES.items():
        write(made / f"{name}.html")
    return made


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
    from selenium.webdriver.common.by import By

    return browser.find_elements(By.CSS_SELECTOR, selector)


def until(condition, seconds=5.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "the page did not react"
        time.sleep(0.02)


@pytest.mark.parametrize("size", [PHONE, DESK], ids=["phone", "desk"])
@pytest.mark.parametrize("name", PAGES)
def test_it_renders_without_errors_and_fits(show, name, size):
    browser = show(name, size)
    assert js(browser, "return document.documentElement.scrollWidth") <= size[0]
    empty = "return [...document.querySelectorAll('[data-chart] .plot')].filter(p => !p.firstChild)"
    assert js(browser, empty + ".map(p => p.parentNode.dataset.chart)") == []
    unnamed = "return [...document.querySelectorAll('.plot svg')].filter(s => !s.ariaLabel).length"
    assert js(browser, unnamed) == 0
    assert js(browser, "return document.body.innerText.includes('NaN')") is False
    assert js(browser, "return document.body.innerText.includes('undefined')") is False
    assert js(browser, "return document.querySelectorAll('svg rect, svg circle').length") < 3000


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


def text_of(browser, selector):
    return js(browser, "return document.querySelector(arguments[0]).innerText", selector)


def texts_of(browser, selector):
    script = "return [...document.querySelectorAll(arguments[0])].map(node => node.innerText)"
    return js(browser, script, selector)


def dot_of(browser):
    dot = "const dot = document.querySelector('#live-dot');"
    return js(browser, dot + "return [dot.getAttribute('cx'), dot.getAttribute('cy')]")


def live_numbers(browser):
    names, values = (texts_of(browser, f"#live-numbers {tag}") for tag in ("dt", "dd"))
    return dict(zip(names, values, strict=True))


def test_the_sliders_move_numbers_and_chart(show):
    from selenium.webdriver.common.keys import Keys

    browser = show("two")
    place, numbers = dot_of(browser), live_numbers(browser)
    find(browser, "#alpha")[0].send_keys(*[Keys.ARROW_RIGHT] * 8)
    until(lambda: dot_of(browser) != place and live_numbers(browser) != numbers)
    moved = live_numbers(browser)
    find(browser, "#tau")[0].send_keys(*[Keys.ARROW_RIGHT] * 4)
    until(lambda: live_numbers(browser) != moved)
    find(browser, "#reset")[0].click()
    until(lambda: live_numbers(browser) == numbers)


def test_the_browser_computes_what_the_library_computes(show):
    browser = show("two")
    validation, test = synthetic(2, seed=1), synthetic(2, seed=2)
    inner = tune(validation).best_normalizer_
    kept = {name: getattr(inner, name) for name in ("depth", "threshold", "reference", "smoothing")}
    again = AlternatingNormalizer(2.0, prior=inner.prior_, **kept)
    again.fit(inner.reference_, sample_weight=inner.reference_weight_)
    old, new = test.proba.argmax(axis=1), again.transform(test.proba).argmax(axis=1)
    data = json.loads(js(browser, "return document.querySelector('#data').textContent"))
    move = "const a = document.querySelector('#alpha'); a.value = arguments[0];"
    at = data["live"]["alphas"].index(2)
    js(browser, move + "a.dispatchEvent(new Event('input'))", at)
    until(lambda: text_of(browser, "#alpha-value") == "2")
    shown = live_numbers(browser)
    fixed, broken = (old != test.codes) & (new == test.codes), (old == test.codes) & (new != old)
    assert int(shown["fixed"].replace(",", "")) == fixed.sum()
    assert int(shown["broken"].replace(",", "")) == broken.sum()


def column(browser, name):
    return texts_of(browser, f"#table tbody tr:not(.detail) [data-label='{name}']")


def test_the_table_sorts(show):
    browser = show("demo")
    for falling in (False, True):
        find(browser, "[data-sort='Ambiguity']")[0].click()
        values = [float(value) for value in column(browser, "Ambiguity")]
        assert values == sorted(values, reverse=falling)
    assert find(browser, "th[aria-sort='descending']")[0].text.startswith("Ambiguity")


def test_the_table_searches_filters_and_turns_pages(show):
    browser = show("demo")
    first = column(browser, "Row")
    find(browser, "#next")[0].click()
    assert not set(first) & set(column(browser, "Row"))
    total = text_of(browser, "#found")
    find(browser, "#search")[0].send_keys("weather")
    until(lambda: text_of(browser, "#found") != total)
    rows = texts_of(browser, "#table tbody tr")
    assert rows
    assert all("weather" in row for row in rows)
    next(b for b in find(browser, "#outcome button") if b.text == "broken").click()
    assert set(column(browser, "Outcome")) <= {"broken"}


def test_the_table_explains_as_the_library_does(show):
    browser = show("demo")
    row = int(column(browser, "Row")[0].replace(",", ""))
    find(browser, "#table .why button")[0].click()
    demo = load_demo()
    val = demo.validation
    normalizer = AlternatingNormalizer(0.8, threshold=0.5).fit(val.proba, val.labels)
    expected = next(one for one in normalizer.explain(demo.test.proba) if one.row == row)
    assert text_of(browser, "#table .detail p") == str(expected)


def test_hovering_and_arrow_keys_name_the_class(show):
    browser = show("demo")
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    cloud = find(browser, "[data-chart='factors'] svg")[0]
    js(browser, "arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", cloud)
    dot = find(browser, "[data-chart='factors'] circle.cloud")[20]
    ActionChains(browser).move_to_element(dot).perform()
    names = set(load_demo().test.classes)
    until(lambda: find(browser, "#tip")[0].is_displayed())
    assert find(browser, "#tip b")[0].text in names
    cloud.send_keys(Keys.ESCAPE)
    assert not find(browser, "#tip")[0].is_displayed()
    cloud.send_keys(Keys.ARROW_RIGHT)
    assert find(browser, "#tip b")[0].text in names
    figure = find(browser, "[data-chart='use'] details")[0]
    js(browser, "arguments[0].open = true", figure)
    until(lambda: len(find(browser, "[data-chart='use'] details tbody tr")) == 150)


def test_both_themes(show):
    browser = show("demo", dark=True)
    ground = "return getComputedStyle(document.body).backgroundColor"
    dark = js(browser, ground)
    find(browser, "#theme")[0].click()
    light = js(browser, ground)
    assert dark != light
    show("demo")
    assert js(browser, ground) == light


def test_landmarks_have_names_of_their_own(show):
    """What axe found once: regions alike, and names on elements that can have none."""
    browser = show("demo")
    names = js(
        browser, "return [...document.querySelectorAll('[role=region]')].map(n => n.ariaLabel)"
    )
    assert len(names) == len(set(names)) > 5
    assert js(browser, "return document.querySelectorAll('span[aria-label]').length") == 0
    assert all(texts_of(browser, "th"))


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_paper_is_white_and_its_pages_are_few(show, dark):
    browser = show("demo", PHONE, dark=dark)
    js(browser, "document.documentElement.dataset.theme = 'dark'")
    media = {"media": "print", "features": []}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    assert (
        js(browser, "return getComputedStyle(document.body).backgroundColor")
        == "rgb(255, 255, 255)"
    )
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    printed = browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})
    pages = len(re.findall(rb"/Type\s*/Page\b", base64.b64decode(printed["data"])))
    assert 3 <= pages <= 7


def test_a_page_without_reason_to_change_says_so(show):
    browser = show("identity", PHONE)
    assert "No. Leave the predictions alone." in find(browser, "h1")[0].text
    assert find(browser, "#rows .nothing")[0].text == "None."

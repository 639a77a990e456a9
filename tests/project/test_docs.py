"""The Python blocks of README and docs run and print what is shown; links lead somewhere."""

import re
import subprocess
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from altnorm import load_demo
from docs import outputs
from experiments._output import read_records

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = outputs.PAGES
NUMBER = re.compile(r"\d[\d,]*\.?\d*(?:e-?\d+)?")
NEEDS_TORCH = re.compile(
    r"^```\{code-block\} python\n:class: needs-torch\n(.*?)^```", re.MULTILINE | re.DOTALL
)


def numbers(text):
    return [float(number.replace(",", "")) for number in NUMBER.findall(text)]


def assert_shows(block):
    """Words are the same; numbers may differ by what another processor makes of them."""
    printed, shown = (" ".join(text.split()) for text in (block.printed, block.shown))
    renew = f"python docs/outputs.py renews the page; it printed {printed!r}"
    assert NUMBER.sub("#", printed) == NUMBER.sub("#", shown), renew
    assert numbers(printed) == pytest.approx(numbers(shown), rel=0.05, abs=0.11), renew


def test_there_are_pages_with_code():
    texts = [page.read_text(encoding="utf-8") for page in PAGES]
    assert sum(bool(outputs.BLOCK.search(text)) for text in texts) >= 5


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_blocks_of_a_page_run_and_print_what_it_shows(page, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for block in outputs.run_blocks(page.read_text(encoding="utf-8"), page.name):
        if block.shown is not None:
            assert_shows(block)


def test_output_that_is_out_of_date_is_noticed():
    code = "```python\nprint('gain', 0.5)\n```\n"
    right, stale, reworded = (
        outputs.run_blocks(f"{code}```text\n{shown}\n```\n", "page.md")[0]
        for shown in ("gain 0.5", "gain 0.7", "loss 0.5")
    )
    assert_shows(right)
    for block in (stale, reworded):
        with pytest.raises(AssertionError, match="renews the page"):
            assert_shows(block)


def test_output_is_renewed_in_place(tmp_path):
    page = tmp_path / "page.md"
    code = "```python\nprint(1 + 1)\n```\n"
    page.write_text(f"Before.\n\n{code}```text\n3\n```\n\n```python\nx = 1\n```\n")
    outputs.renew(page)
    assert page.read_text() == f"Before.\n\n{code}```text\n2\n```\n\n```python\nx = 1\n```\n"


def test_commands_run_in_the_folder_of_the_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write = "```python\nfrom pathlib import Path\nPath('a.txt').write_text('one two')\n```\n"
    read = "```console\n$ cat a.txt | cut -c 5-\n$ altnorm --version\n```\n"
    printed = outputs.run_blocks(write + read, "page.md")[1].printed
    assert printed.startswith("two")
    assert "altnorm" in printed
    with pytest.raises(subprocess.CalledProcessError):
        outputs.run_blocks("```console\n$ cat b.txt\n```\n", "page.md")


@pytest.mark.heavy
@pytest.mark.skipif(find_spec("torch") is None, reason="needs PyTorch")
def test_the_pytorch_block_runs(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    page = (DOCS / "quickstart.md").read_text(encoding="utf-8")
    names = {}
    outputs.run_blocks(page, "quickstart.md", names)
    for block in NEEDS_TORCH.findall(page):
        exec(compile(block, "quickstart.md", "exec"), names)
    assert names["proba"].numpy() == pytest.approx(names["after"], abs=1e-9)


LINKED = [
    *PAGES,
    ROOT / "CONTRIBUTING.md",
    ROOT / "CODE_OF_CONDUCT.md",
    ROOT / "ARCHITECTURE.md",
    *sorted((ROOT / "experiments").glob("*/results/README.md")),
]
MADE_BY_THE_BUILD = "gallery/"


def test_the_story_of_the_lost_card_is_that_of_the_demo():
    """README and "How it works" tell it in numbers that no block prints."""
    val, test, _ = load_demo()
    luggage, card = (list(val.classes).index(n) for n in ("lost_luggage", "report_lost_card"))
    decided = np.bincount(val.proba.argmax(axis=1), minlength=len(val.classes))
    times = decided / np.bincount(val.codes, minlength=len(val.classes))
    shares = np.round(100 * test.proba[:, [luggage, card]])
    ours = (shares == [55, 26]).all(axis=1) & (test.codes == card)
    assert ours.any()
    readme, page = (
        " ".join(path.read_text(encoding="utf-8").split())
        for path in (ROOT / "README.md", DOCS / "how-it-works.md")
    )
    assert f'says "lost luggage" {times[luggage]:.1f} times as often' in readme
    assert f"it says `lost luggage` {times[luggage]:.1f} times as often" in page
    assert f"`report lost card` {times[card]:.1f} times as often" in page
    assert "luggage` 55 %, `report lost card` 26 %" in page


def test_the_gains_on_supernovae_are_those_that_were_measured():
    """The block needs a file that does not come with the project."""
    records = read_records(ROOT / "experiments/reference_choice/results/thresholds.csv")
    shown = "\n".join(f"{record['method']}: {record['gain']:+.2f} points" for record in records)
    assert f"```text\n{shown}\n```" in (DOCS / "alternating.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", LINKED, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_files_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
        if not target.startswith(MADE_BY_THE_BUILD):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_article_cites_what_its_bibliography_lists():
    article, bibliography = (
        (ROOT / "paper" / name).read_text(encoding="utf-8") for name in ("paper.md", "paper.bib")
    )
    listed = re.findall(r"^@\w+\{(\w+),", bibliography, re.MULTILINE)
    assert set(re.findall(r"@(\w+)", article)) == set(listed)


def test_the_article_is_as_long_as_the_journal_wants_it():
    _, _, article = (ROOT / "paper" / "paper.md").read_text(encoding="utf-8").split("---\n", 2)
    body = re.sub(
        r"<!-- numbers .*?<!-- end -->|^Table:.*?\n\n|^#[^\n]*$",
        "",
        article,
        flags=re.DOTALL | re.M,
    )
    assert 250 <= len(body.split()) <= 1000


def test_every_example_has_a_place_in_the_gallery():
    conf = (DOCS / "conf.py").read_text(encoding="utf-8")
    listed = re.search(r"TEACHING_ORDER = \((.*?)\)", conf, re.DOTALL)[1]
    examples = sorted((ROOT / "examples" / "gallery").glob("plot_*.py"))
    names = {path.stem.removeprefix("plot_") for path in examples}
    assert names == set(re.findall(r'"(\w+)"', listed))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_numbers_of_the_suite_are_those_of_its_results(page):
    text = page.read_text(encoding="utf-8")
    assert outputs.fill_numbers(text) == text, "python docs/outputs.py renews the page"

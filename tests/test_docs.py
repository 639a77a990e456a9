"""The Python blocks of README and docs run and print what is shown; links lead somewhere."""

import csv
import importlib.util
import re
import subprocess
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from experiments.suite.names import plain_name

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]
NUMBER = re.compile(r"\d[\d,]*\.?\d*(?:e-?\d+)?")
NEEDS_TORCH = re.compile(
    r"^```\{code-block\} python\n:class: needs-torch\n(.*?)^```", re.MULTILINE | re.DOTALL
)


def load_outputs():
    """docs/outputs.py, which is no part of a package."""
    spec = importlib.util.spec_from_file_location("outputs", DOCS / "outputs.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


OUTPUTS = load_outputs()


def numbers(text):
    return [float(found.replace(",", "")) for found in NUMBER.findall(text)]


def assert_shows(block):
    """Words are the same; numbers may differ by what another processor makes of them."""
    printed, shown = (" ".join(text.split()) for text in (block.printed, block.shown))
    renew = f"python docs/outputs.py renews the page; it printed {printed!r}"
    assert NUMBER.sub("#", printed) == NUMBER.sub("#", shown), renew
    assert numbers(printed) == pytest.approx(numbers(shown), rel=0.05, abs=0.11), renew


def test_there_are_pages_with_code():
    texts = [page.read_text(encoding="utf-8") for page in PAGES]
    assert sum(bool(OUTPUTS.BLOCK.search(text)) for text in texts) >= 5


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_blocks_of_a_page_run_and_print_what_it_shows(page, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for block in OUTPUTS.run_blocks(page.read_text(encoding="utf-8"), page.name):
        if block.shown is not None:
            assert_shows(block)


def test_output_that_is_out_of_date_is_noticed():
    code = "```python\nprint('gain', 0.5)\n```\n"
    right, stale, other = (
        OUTPUTS.run_blocks(f"{code}```text\n{shown}\n```\n", "page.md")[0]
        for shown in ("gain 0.5", "gain 0.7", "loss 0.5")
    )
    assert_shows(right)
    for block in (stale, other):
        with pytest.raises(AssertionError, match="renews the page"):
            assert_shows(block)


def test_output_is_renewed_in_place(tmp_path):
    page = tmp_path / "page.md"
    code = "```python\nprint(1 + 1)\n```\n"
    page.write_text(f"Before.\n\n{code}```text\n3\n```\n\n```python\nx = 1\n```\n")
    OUTPUTS.renew(page)
    assert page.read_text() == f"Before.\n\n{code}```text\n2\n```\n\n```python\nx = 1\n```\n"


def test_commands_run_in_the_folder_of_the_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write = "```python\nfrom pathlib import Path\nPath('a.txt').write_text('one two')\n```\n"
    read = "```console\n$ cat a.txt | cut -c 5-\n$ altnorm --version\n```\n"
    printed = OUTPUTS.run_blocks(write + read, "page.md")[1].printed
    assert printed.startswith("two")
    assert "altnorm" in printed
    with pytest.raises(subprocess.CalledProcessError):
        OUTPUTS.run_blocks("```console\n$ cat b.txt\n```\n", "page.md")


@pytest.mark.heavy
@pytest.mark.skipif(find_spec("torch") is None, reason="needs PyTorch")
def test_the_pytorch_block_runs():
    page = (DOCS / "quickstart.md").read_text(encoding="utf-8")
    names = {}
    OUTPUTS.run_blocks(page, "quickstart.md", names)
    for block in NEEDS_TORCH.findall(page):
        exec(compile(block, "quickstart.md", "exec"), names)
    assert names["proba"].numpy() == pytest.approx(names["after"], abs=1e-9)


LINKED = [
    *PAGES,
    ROOT / "CONTRIBUTING.md",
    ROOT / "ARCHITECTURE.md",
    *sorted((ROOT / "experiments").glob("*/results/README.md")),
]
MADE_BY_THE_BUILD = "gallery/"


@pytest.mark.parametrize("page", LINKED, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_files_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
        if not target.startswith(MADE_BY_THE_BUILD):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_every_page_is_on_the_site():
    """A page that no table of contents lists cannot be found."""
    listed = set()
    for page in DOCS.glob("*.md"):
        for tree in re.findall(r"```\{toctree\}\n(.*?)```", page.read_text(), re.DOTALL):
            listed |= set(re.findall(r"^(?:.*<)?([\w/-]+)>?$", tree, re.MULTILINE))
    pages = {path.stem for path in DOCS.glob("*.md")} | {"cli", "api", "gallery/index"}
    assert pages - {"index"} <= listed
    assert {f"studies/{path.stem}" for path in (DOCS / "studies").glob("*.md")} <= listed


def test_every_example_has_a_place_in_the_gallery():
    conf = (DOCS / "conf.py").read_text(encoding="utf-8")
    listed = re.search(r"TEACHING_ORDER = \((.*?)\)", conf, re.DOTALL)[1]
    examples = sorted((ROOT / "examples" / "gallery").glob("plot_*.py"))
    names = {path.stem.removeprefix("plot_") for path in examples}
    assert names == set(re.findall(r'"(\w+)"', listed))


def test_numbers_about_real_classifiers_are_those_of_the_suite():
    page = (DOCS / "should-i-use-it.md").read_text(encoding="utf-8")
    story = page[page.index("## What it did") : page.index("## How the verdict works")]
    results = (ROOT / "experiments/suite/results/README.md").read_text(encoding="utf-8")
    quoted = re.findall(r"[+-]\d+\.\d\d|\d\.\d{3}", story)
    assert len(quoted) > 10
    assert [number for number in quoted if number not in results] == []


def suite_rows():
    with (ROOT / "experiments/suite/results/suite.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return {(plain_name(row["classifier"]), row["method"]): row for row in rows}


def test_the_table_of_the_readme_is_that_of_the_suite():
    rows = suite_rows()
    methods = ("CAN as published", "BCTS, always", "Adjuster")
    table = re.findall(
        r"^\| (.+ \([\d,]+\)) \| (.+) \|$", PAGES[0].read_text("utf-8"), re.MULTILINE
    )
    assert len(table) == 9
    for name, cells in table:
        base, *gains, losses = (cell.strip("* ") for cell in cells.split("|"))
        assert base == f"{float(rows[name, 'untouched']['accuracy']):.1f} %"
        expected = [f"{float(rows[name, method]['gain']):+.1f}" for method in methods]
        assert gains == [text if float(text) else "0" for text in expected], name
        before, after = (rows[name, m]["log_loss"] for m in ("untouched", "Adjuster"))
        assert losses == f"{float(before):.2f} → {float(after):.2f}"


def test_the_claims_of_the_readme_are_those_of_the_suite():
    ours = [row for (_, method), row in suite_rows().items() if method == "Adjuster"]
    gains = [float(row["gain"]) for row in ours]
    better = sum(float(row["ci_low"]) > 0 for row in ours)
    assert not any(float(row["ci_high"]) < 0 for row in ours)
    page = " ".join(PAGES[0].read_text(encoding="utf-8").split())
    assert (
        f"On {len(ours)} real classifiers it raised test accuracy by {np.mean(gains):.1f} points "
        f"on average and by up to {max(gains):.1f}: clearly better on {better} of them, "
        "clearly worse on none."
    ) in page

"""Every Python block in the README and in the pages of the docs runs."""

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
NEEDS_TORCH = re.compile(
    r"^```\{code-block\} python\n:class: needs-torch\n(.*?)^```", re.MULTILINE | re.DOTALL
)


def test_there_are_pages_with_code():
    assert sum(bool(FENCE.search(page.read_text(encoding="utf-8"))) for page in PAGES) >= 5


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_blocks_of_a_page_run_one_after_the_other(page, monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in FENCE.findall(page.read_text(encoding="utf-8")):
        exec(compile(block, str(page), "exec"), names)


@pytest.mark.heavy
@pytest.mark.skipif(find_spec("torch") is None, reason="needs PyTorch")
def test_the_pytorch_block_runs(capsys):
    page = (ROOT / "docs" / "quickstart.md").read_text(encoding="utf-8")
    names = {}
    for pattern in (FENCE, NEEDS_TORCH):
        for block in pattern.findall(page):
            exec(compile(block, "quickstart.md", "exec"), names)
    assert names["proba"].shape == names["test"].proba.shape


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

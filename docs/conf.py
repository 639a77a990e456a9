"""Sphinx configuration."""

import warnings
from importlib.metadata import version as installed_version
from pathlib import Path

from altnorm._api import page

project = "altnorm"
copyright = "the altnorm developers"
release = installed_version("altnorm")
version = release

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "gallery/README.rst", "sg_execution_times.rst"]
nitpicky = False

myst_enable_extensions = ["amsmath", "colon_fence", "dollarmath"]
myst_heading_anchors = 3
# Pages of the studies and of the project lie outside of docs/ and are included as they are; where
# their links lead is checked by tests/test_docs.py.
suppress_warnings = ["myst.header", "myst.xref_missing", "config.cache"]

Path(__file__).with_name("api.rst").write_text(page(), encoding="utf-8")
autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "abort_on_example_error": True,
    "show_memory": False,
    "within_subsection_order": "FileNameSortKey",
}
warnings.filterwarnings("error", module="altnorm")

html_theme = "pydata_sphinx_theme"
html_title = "altnorm"
# Pages without pages below them have nothing to list at the side.
_PAGES = {path.stem for path in Path(__file__).parent.glob("*.md")} - {"studies"}
html_sidebars: dict[str, list[str]] = {page: [] for page in _PAGES}
html_theme_options = {"show_toc_level": 2, "navigation_with_keys": False}

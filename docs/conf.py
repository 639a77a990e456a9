"""Sphinx configuration."""

import re
import warnings
from importlib.metadata import metadata
from importlib.util import find_spec
from pathlib import Path

from sphinx_gallery.sorting import FileNameSortKey

HERE = Path(__file__).parent

project = "altnorm"
copyright = "the altnorm developers"
release = metadata("altnorm")["Version"]
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
exclude_patterns = ["_build", "benchmarks", "gallery/README.rst", "**sg_execution_times.rst"]
nitpicky = False

myst_enable_extensions = ["amsmath", "colon_fence", "dollarmath"]
myst_heading_anchors = 3
# Pages of the studies and of the project lie outside of docs/ and are included as they are; where
# their links lead is checked by tests/project/test_docs.py.
suppress_warnings = ["myst.header", "myst.xref_missing", "config.cache"]

autosummary_generate = True
autodoc_typehints = "none"
# The site is built without what is large: its pages only import it.
HEAVY = ("torch", "pyspark", "ray")
MISSING = [name for name in HEAVY if find_spec(name) is None]
autodoc_mock_imports = MISSING
numpydoc_show_class_members = False

# MathJax comes with the site: one file, from a package that is installed to build it.
_MATHJAX = Path(str(find_spec("sphinx-mathjax-offline").origin)).parent / "static" / "mathjax"
mathjax_path = "tex-svg.js"

TEACHING_ORDER = (
    "adjuster",
    "purposes",
    "first_steps",
    "biased_classifier",
    "few_labels",
    "topk",
    "language_model",
    "multilabel",
    "prior",
    "label_shift",
    "choosing_alpha",
    "last_layer",
    "onnx",
)


class TeachingOrder(FileNameSortKey):
    """Order of the gallery; an example that is not listed comes last."""

    def __call__(self, filename):
        """Place of a file."""
        name = Path(filename).stem.removeprefix("plot_")
        known = name in TEACHING_ORDER
        return (TEACHING_ORDER.index(name) if known else len(TEACHING_ORDER), name)


def enlarge_text(gallery_conf, name):
    """Let thumbnails be legible; runs before each example."""
    import matplotlib as mpl

    mpl.rcParams["font.size"] = 13


sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    # An example that cannot run is shown without its output.
    "filename_pattern": r"/plot_(?!last_layer)" if "torch" in MISSING else r"/plot_",
    "abort_on_example_error": True,
    "show_memory": False,
    "reset_modules": ("matplotlib", enlarge_text),
    "within_subsection_order": TeachingOrder,
    "thumbnail_size": (640, 400),
    "default_thumb_file": str(HERE / "images" / "thumbnail.png"),
}
warnings.filterwarnings("error", module="altnorm")

html_theme = "pydata_sphinx_theme"
html_title = "altnorm"
html_static_path = ["_static", str(_MATHJAX / "tex-svg.js")]
html_css_files = ["site.css"]
_LOGO = "_static/logo.svg"
html_favicon = _LOGO
# Pages without pages below or beside them have nothing to list at the side.
html_sidebars: dict[str, list[str]] = {
    page: [] for page in ("benchmarks", "changelog", "cli", "contributing", "quickstart")
}
html_theme_options = {
    "header_links_before_dropdown": 7,
    "navbar_end": ["search-button", "theme-switcher", "navbar-icon-links"],
    "navbar_persistent": [],
    "logo": {"image_light": _LOGO, "image_dark": _LOGO, "text": "altnorm"},
    "navigation_with_keys": False,
    "show_toc_level": 2,
}
for link in metadata("altnorm").get_all("Project-URL") or ():
    name, url = link.split(", ", 1)
    if name.lower() in ("source", "repository"):
        html_theme_options["icon_links"] = [{"name": name, "url": url, "icon": "fa-solid fa-code"}]


def mend_links(app, path, parent, content):
    """Lead links of included pages to a page of the site, to a download, or nowhere.

    Pages from outside of docs/ link to files beside them, which MyST finds only with a leading
    "./", and to folders, which a site cannot show.
    """
    folder = (HERE / path).parent

    def mended(found):
        text, target = found.groups()
        page = f"{Path(target).stem.lower()}.md"
        if target.endswith(".md") and (HERE / page).exists():
            return f"[{text}]({page})"
        if (folder / target).is_file():
            return f"[{text}](./{target})"
        return text

    content[0] = re.sub(r"(?<!!)\[([^\]]+)\]\((?!\w+:|#)([^)]+)\)", mended, content[0])


def mend_html(app, pagename, templatename, context, doctree):
    """Drop what people who hear the page stumble over.

    Roles that docutils gives to citations and ARIA has withdrawn, and the header of a table's empty
    corner, which names nothing.
    """
    withdrawn = r' role="doc-(?:biblioentry|backlink)"|(?<=<div) role="list"(?= class="citation)'
    if "body" in context:
        body = re.sub(withdrawn, "", context["body"])
        context["body"] = re.sub(r'<th class="head[^"]*"><p></p></th>', "<td></td>", body)


def setup(app):
    """Connect what is mended while pages are read and written."""
    app.connect("include-read", mend_links)
    app.connect("html-page-context", mend_html)

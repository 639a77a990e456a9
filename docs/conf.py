"""Sphinx configuration."""

from importlib.metadata import version as installed_version

project = "altnorm"
copyright = "the altnorm developers"
release = installed_version("altnorm")
version = release

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "numpydoc",
]
templates_path = ["_templates"]
exclude_patterns = ["_build"]
nitpicky = False

autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False

html_theme = "pydata_sphinx_theme"
html_title = "altnorm"
html_theme_options = {"show_toc_level": 2}

"""The report: one self-contained, interactive HTML page about a fitted transformer.

Bars and curves are drawn by the template, as SVG whose places are in per cent: they follow the
page's colours in both themes, reflow on a phone and on paper, and need no script. A script of our
own searches the table of rows. The page carries a strict content security policy, under which the
browser refuses any request and any script but ours. No class name ever becomes markup.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from altnorm._base.errors import InputError, needing_extra
from altnorm._base.files import check_output, replacing
from altnorm.adjuster.comparison import Comparison
from altnorm.estimator.kinds import FittedModel
from altnorm.io.predictions import Predictions
from altnorm.report.evaluation import read_case

__all__ = ["check_page", "write_report"]


def write_report(
    model: FittedModel,
    predictions: Predictions,
    path: str | os.PathLike[str],
    *,
    comparison: Comparison | None = None,
    texts: Sequence[str] | None = None,
    title: str | None = None,
    about: Mapping[str, str] | None = None,
    scoring: Any = None,
    seen: bool = False,
    force: bool = False,
) -> None:
    """Write a self-contained, interactive HTML page about what a model does to predictions.

    The page says whether to use it, what changes, why, how it compares with peers, and lists the
    changed rows. It opens from disk and makes no request to any network.

    Parameters
    ----------
    model : Adjuster, AlternatingNormalizerCV or another fitted transformer of altnorm
        What to report on.
    predictions : Predictions
        Predictions that the model was not fitted on, columns in the order of
        ``model.classes_``. Without labels the page shows what changes, but no scores.
    path : str or path-like
        Where to.
    comparison : Comparison, optional
        Result of :func:`altnorm.compare`: the peers on the same predictions.
    texts : sequence of str, optional
        A text for each row of the predictions, shown with the changed rows.
    title : str, optional
        Title of the page.
    about : mapping of str to str, optional
        What else the page names at its top, such as files and a date.
    scoring : str, callable or Score, optional
        As for :func:`altnorm.report.evaluation.evaluate`.
    seen : bool, default=False
        Whether the predictions are those that the model was fitted on. Then scores come from
        the verdict of the fit, and the rest from fits that have not seen the row.
    force : bool, default=False
        Whether an existing file may be replaced.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from altnorm import AlternatingNormalizer, load_demo
    >>> from altnorm.report import write_report
    >>> demo = load_demo()
    >>> model = AlternatingNormalizer().fit(demo.validation.proba, demo.validation.labels)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = Path(folder) / "report.html"
    ...     write_report(model, demo.test, page, texts=demo.queries)
    ...     "Should I use it?" in page.read_text(encoding="utf-8")
    True
    """
    check_page(path)
    check_output(path, force=force)
    with needing_extra("report"):
        from altnorm.report._page import render
    n_rows = len(predictions.proba)
    if texts is not None and len(texts) != n_rows:
        rule, offender = f"`texts` must have one entry per row, {n_rows}", f"it has {len(texts)}"
        remedy = "Pass the texts in the order of the predictions."
        raise InputError(rule, offender, remedy, value=len(texts), code="shape")
    if not seen and predictions.labels is not None and not predictions.has_label.all():
        if texts is not None:
            texts = [texts[i] for i in np.flatnonzero(predictions.has_label).tolist()]
        predictions = predictions.labelled()
    case = read_case(model, predictions, scoring=scoring, seen=seen)
    page = render(case, texts, comparison, title, about or {})
    with replacing(path, force=force) as temporary:
        temporary.write_text(page, encoding="utf-8")


def check_page(path: str | os.PathLike[str]) -> None:
    """Raise unless a path is one that an HTML page can have."""
    suffix = Path(path).suffix.lower()
    if suffix not in (".html", ".htm", ""):
        offender = f"'{Path(path).name}' would say that it is something else"
        remedy = "Name a .html file; a browser prints it as PDF."
        raise InputError(
            "The report is an HTML page", offender, remedy, value=suffix, code="option"
        )

"""Advice in the words of the command line, where the library names Python arguments."""

from __future__ import annotations

import re

LOGITS = "If these are logits, pass --logits to `altnorm check` or `tune`; a model remembers it."

REMEDIES = {
    "row_sum": f"{LOGITS} If they were rounded, divide each row by its sum.",
    "negative": LOGITS,
    "outside_unit": LOGITS,
    "exists": "Choose another name, or pass --force to replace it.",
    "one_label_per_row": "For a 0/1 matrix of several labels per row, pass --multilabel labelwise "
    "or --multilabel pairs.",
}
"""What to do about an error, by its code."""

_OPTIONS = "scoring|costs|multilabel|significance|families|cv|prior"

_WORDS = {
    "pass groups that say which rows belong together": "say with --group which belong together",
    "pass groups that say which": "name the column that says which with --group",
    "input='logits'": "--logits",
    ", a scikit-learn scorer, or a name": ", or a name that",
    rf"\b({_OPTIONS})='([^']+)'": r"--\1 \2",
    rf"`({_OPTIONS})`": r"--\1",
}


def in_options(text: str) -> str:
    """Return a sentence of the library with options in place of Python arguments.

    Parameters
    ----------
    text : str
        An error or a caution.

    Returns
    -------
    str
        The same in the words of the command line.

    Examples
    --------
    >>> from altnorm.cli._remedies import in_options
    >>> in_options("scoring='balanced_accuracy' would give 61.0%.")
    '--scoring balanced_accuracy would give 61.0%.'
    """
    for python, option in _WORDS.items():
        text = re.sub(python, option, text)
    return text

"""Sentences that readers stumbled over stay away, and what is said instead is said."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLACES = [
    "README.md",
    "docs/*.md",
    "docs/*.rst",
    "src/altnorm/**/*.py",
    "src/altnorm/report/page/*",
]
REPLACED = {
    "What decisions are for": "Score to improve",
    "ecisions are for accuracy": "Goal: ",
    "Where is it?": "Files written",
    "rows and [^.]* decisions changed": " of {plural(total, kind.words.decision)} changed",
    "at most a temperature": "temperature only",
    "each judged by a fit without it": "Cross-validated on",
    "that the classifier was trained on look so": "Did the classifier see these rows in training?",
    "are of other classes than at fit": "the mix of predicted classes",
    "Where the evidence is missing, it changes no": "If your labels don't show a gain, your",
    "could be chance": "the evidence is too weak",
    "a gain is likely": "so the size of the gain is uncertain",
    "The probabilities are the same for every purpose": "the same for every goal",
    "More labels could settle it": "ask for the labels that decide",
}


@pytest.fixture(scope="module")
def texts():
    """All that users read, with the strings of the code joined as Python joins them."""
    joined = []
    for place in PLACES:
        for path in sorted(ROOT.glob(place)):
            text = path.read_text(encoding="utf-8")
            if path.suffix == ".py":
                text = re.sub(r'"\s*\n\s*f?"', "", text)
                text = "\n".join(re.findall(r'"((?:[^"\\]|\\.)*)"', text))
            joined.append(" ".join(text.split()))
    return "\n".join(joined)


@pytest.mark.parametrize(("stumbled", "instead"), REPLACED.items())
def test_what_readers_stumbled_over_is_said_in_other_words(texts, stumbled, instead):
    assert not re.search(stumbled, texts)
    assert instead.lower() in texts.lower()

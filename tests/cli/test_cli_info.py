"""``altnorm info`` says what a model file holds."""

import json

import numpy as np
import pytest

from altnorm import Adjuster, AlternatingNormalizer, peers
from altnorm._base.persistence import model_metadata, versions
from altnorm.cli._run import run
from tests.commands import CLASSES, out, refused, table


def read(capsys):
    """What was printed, with the lines that were wrapped put together."""
    return " ".join(out(capsys).split())


def test_a_tuned_model(tmp_path, capsys):
    data = table(400, 0)
    Adjuster(("bias",)).fit(data[CLASSES], data["y"]).save(tmp_path / "m")
    assert run(["info", str(tmp_path / "m")]) == 0
    text = read(capsys)
    assert "kind Adjuster takes probabilities, single-label" in text
    assert "classes 3 classes: ant, bee, cow" in text
    assert "purpose accuracy" in text
    assert "does multiplies each class by a factor, calibrates probabilities" in text
    assert "decides the most probable class" in text
    assert f"numpy {versions()['numpy']}" in text
    assert model_metadata(tmp_path / "m")["digest"] in text.replace(" ", "")
    assert "Adopted: accuracy" in text


def test_the_rule_of_a_purpose_is_told_by_class(tmp_path, capsys):
    data = table(400, 0)
    costs = {("ant", "bee"): 5, **{(name, None): 0.4 for name in CLASSES}}
    for purpose, words in (
        ({"costs": costs}, "least expected cost ant as ant 0, bee 5, cow 1, a person 0.4 bee as"),
        ({"scoring": "balanced_accuracy"}, "weighted probability: ant "),
    ):
        model = Adjuster(("bias",), **purpose).fit(data[CLASSES], data["y"])
        model.save(tmp_path / "m", force=True)
        assert run(["info", str(tmp_path / "m")]) == 0
        assert words in read(capsys)


PROBA = np.full((20, 12), 1 / 12)
NAMED = np.array(["[bold]", "a\nb", *"cdefghijkl"])


@pytest.mark.parametrize(
    ("estimator", "words"),
    [
        (AlternatingNormalizer(2.0, reference="all"), "alternating normalization, exponent 2"),
        (peers.Identity(), "change nothing: the base line of every comparison"),
    ],
)
def test_a_model_without_evidence(tmp_path, capsys, estimator, words):
    estimator.fit(PROBA)
    estimator.classes_ = NAMED
    estimator.save(tmp_path / "m")
    assert run(["info", str(tmp_path / "m")]) == 0
    text = read(capsys)
    assert words in text
    assert "12 classes: [bold], a\\nb, c, d, e, f, g, h, i, j, ..." in text
    assert "purpose" not in text


def test_settings_that_json_lacks_are_shown_as_text(tmp_path, capsys):
    estimator = AlternatingNormalizer(reference="all").fit(PROBA)
    estimator.prior = {("spam", "ham"): float("inf")}
    estimator.save(tmp_path / "m")
    assert run(["info", str(tmp_path / "m"), "--json"]) == 0
    printed = json.loads(out(capsys))
    assert printed["settings"]["prior"] == "{('spam', 'ham'): inf}"
    assert printed["settings"]["alpha"] == 1.0


def test_a_file_that_is_no_model(folder, capsys):
    assert "is not a model file" in refused(capsys, "info", "val.parquet")

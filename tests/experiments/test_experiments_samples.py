"""Pages of studies: a sample of their committed lines, measured anew."""

import pytest

pytest.importorskip("matplotlib")

from experiments import samples
from experiments._output import write_records
from experiments.samples import SAMPLES, Folders, Sample
from tests.versions import present_versions

WITHOUT_PAGE = {"demo_data"}  # folders that hold no study
IN_REPOSITORY = [
    pytest.param(one, marks=[pytest.mark.heavy] * one.heavy, id=f"{one.study}/{one.table}")
    for one in SAMPLES
    if one.needs is None and not one.slow
]


@present_versions
@pytest.mark.parametrize("sample", IN_REPOSITORY)
def test_the_code_still_gives_the_committed_lines(sample):
    """If this fails: renew the page, or let it say that it is out of date."""
    if sample.heavy:
        pytest.importorskip("torch")
    if not samples.is_marked(sample):
        assert samples.differences(sample, Folders()) == []


def test_every_study_is_sampled():
    pages = {path.parts[-3] for path in samples.ROOT.glob("*/results/README.md")}
    # `across` measures nothing: it is made from the lines of the others.
    assert {one.study for one in SAMPLES} == pages - WITHOUT_PAGE - {"across"}


@pytest.fixture
def study(tmp_path, monkeypatch):
    """A study with two committed lines, and a sample that measures the second anew."""
    monkeypatch.setattr(samples, "ROOT", tmp_path)
    folder = tmp_path / "tiny" / "results"
    folder.mkdir(parents=True)
    (folder / "README.md").write_text("# Tiny\n")
    lines = [{"name": name, "gain": x, "seconds": 1.0} for name, x in (("a", 1 / 3), ("b", 2.0))]
    write_records(folder / "gains.csv", lines)
    return Sample("tiny", "gains", lambda folders: [lines[1] | {"seconds": 7.0}])


def test_a_line_that_has_changed_is_told(study, monkeypatch, capsys):
    monkeypatch.setattr(samples, "SAMPLES", (study,))
    assert samples.main([]) == 0
    assert capsys.readouterr().out == "tiny/gains: up to date\n"
    changed = study._replace(measure=lambda folders: [{"name": "a", "gain": 0.35}])
    monkeypatch.setattr(samples, "SAMPLES", (changed,))
    assert samples.main([]) == 1
    assert "tiny/gains: OUT OF DATE: 1 of the sampled lines, now: name a, gain 0.35" in (
        capsys.readouterr().out
    )
    page = changed.folder / "README.md"
    page.write_text(f"# Tiny\n\n{samples.OUT_OF_DATE} Renew it.\n")
    assert samples.main([]) == 0
    assert "OUT OF DATE (and the page says so)" in capsys.readouterr().out


def test_data_that_are_not_there_are_asked_for(study, monkeypatch, capsys):
    monkeypatch.setattr(samples, "SAMPLES", (study._replace(needs="predictions"),))
    assert samples.main([]) == 0
    assert "not looked at: give the folder with --predictions" in capsys.readouterr().out

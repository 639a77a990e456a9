"""Running all studies: what is done is left out, and what fails is run again."""

import subprocess
import sys
from pathlib import Path

import pytest

from experiments import reproduce
from experiments.reproduce import Folders, Study


@pytest.fixture
def ran(monkeypatch, tmp_path):
    """Commands that would have been run; what stands in `failing` fails."""
    commands, failing = [], set()

    def run(command, **options):
        commands.append(command[2].removeprefix("experiments."))
        return subprocess.CompletedProcess(command, int(commands[-1] in failing))

    monkeypatch.setattr(reproduce.subprocess, "run", run)
    monkeypatch.setattr(reproduce, "find_spec", lambda name: True)
    for function in (reproduce.is_done, reproduce.run):
        monkeypatch.setattr(function, "__defaults__", (tmp_path / "stamps",))
    return commands, failing


def test_every_study_is_there_and_none_is_forgotten():
    folder = Path(reproduce.__file__).parent
    commands = {path.parent.name for path in folder.glob("*/__main__.py")}
    names = {study.name.partition(".")[0] for study in reproduce.STUDIES}
    assert names == commands - {"data", "demo_data"}
    assert reproduce.STUDIES[-1].reads  # it reads what others wrote


def test_it_goes_on_where_it_stopped(ran, tmp_path):
    commands, failing = ran
    (tmp_path / "predictions").mkdir()
    arguments = ["last_layer", "asking", "evidence", "--predictions", str(tmp_path / "predictions")]
    failing.add("asking")
    assert reproduce.main(arguments) == 1
    failing.clear()
    assert reproduce.main(arguments) == 0
    assert reproduce.main(arguments) == 0
    assert commands == ["last_layer", "asking", "asking", "evidence"]
    assert reproduce.main([*arguments, "--again"]) == 0
    assert len(commands) == 7


def test_other_data_or_another_folder_of_the_same_data(tmp_path):
    study, predictions = Study("asking", 1, "predictions"), tmp_path / "predictions"
    predictions.mkdir()
    (predictions / "one.npz").write_bytes(b"1")
    before = reproduce.fingerprint(study, Folders(predictions))
    moved = predictions.rename(tmp_path / "elsewhere")
    assert reproduce.fingerprint(study, Folders(moved)) == before
    (moved / "one.npz").write_bytes(b"2")
    assert reproduce.fingerprint(study, Folders(moved)) != before


def test_without_folders_it_runs_what_needs_none(ran, capsys, tmp_path):
    commands, _ = ran
    nowhere = str(tmp_path / "nowhere")
    assert reproduce.main(["--predictions", nowhere, "--datasets", nowhere]) == 0
    needing = {s.name for s in reproduce.STUDIES if s.needs and not s.partly}
    assert set(commands) == {s.name for s in reproduce.STUDIES} - needing
    printed = capsys.readouterr().out
    assert f"There is no folder {nowhere} (predictions)." in printed
    assert printed.count("left out: give the folder with --") == len(needing)
    assert "\nexperiments/data/README.md says where the files can be had.\n" in printed


def test_a_study_whose_package_is_missing_is_left_out_and_told(ran, capsys, monkeypatch):
    commands, _ = ran
    monkeypatch.setattr(reproduce, "find_spec", lambda name: None)
    assert reproduce.main(["last_layer", "evidence"]) == 0
    assert commands == ["evidence"]
    assert "torch (left out: torch is not installed)" in capsys.readouterr().out


def test_the_list_runs_nothing(ran, capsys):
    commands, _ = ran
    assert reproduce.main(["--list"]) == 0
    assert commands == []
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 + len(reproduce.STUDIES)  # and where the files can be had


def test_a_folder_becomes_the_options_of_the_study():
    study = next(study for study in reproduce.STUDIES if study.name == "dialogre")
    *_, flag, path = study.command(Folders(Path("folder")))
    assert (flag, path) == ("--second-look", str(Path("folder/dialogre_bert_testonly.npz")))
    assert sys.executable not in study.command(Folders())

"""The first thing anyone runs."""

import json

from altnorm.cli._run import run


def test_demo_tells_the_whole_story(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run(["demo"]) == 0
    text = " ".join(capsys.readouterr().out.split())  # whatever the terminal's width
    assert "Adopted: accuracy 69.6% -> 8" in text
    assert text.count("fixed “") == 3
    assert text.count("broken “") == 1
    assert text.count("was in doubt") == 4
    assert "BCTS" in text
    assert "CC BY 3.0" in text
    assert (tmp_path / "altnorm-demo.html").stat().st_size > 10_000
    assert run(["demo", "--json"]) == 0  # a second time, over the report of the first

    told = json.loads(capsys.readouterr().out)
    assert told["test"]["verdict"]["gain"] > 0.1
    assert len(told["comparison"]) == 7

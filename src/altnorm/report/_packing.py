"""Arrays of numbers as text, for a page."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np


def pack(values: Any, kind: str = "<f4") -> dict[str, str]:
    """Numbers as base64 of little-endian bytes, with their type."""
    array = np.ascontiguousarray(np.asarray(values).astype(kind))
    return {"type": kind[1:], "base64": base64.b64encode(array.tobytes()).decode()}

"""Fitted normalizers <-> safetensors files: numbers as tensors, all else as JSON metadata.

Loading executes nothing that the file says: estimators come out of a closed table, and what they
remember is made of numbers, text, arrays and verdicts only.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import platform
from collections.abc import Callable
from dataclasses import asdict, fields
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from altnorm import peers
from altnorm._files import check_input, replacing
from altnorm._validation import InputError, InputTypeError
from altnorm.normalizer import AlternatingNormalizer
from altnorm.refine import PriorGuidedBias
from altnorm.tuning import AlternatingNormalizerCV
from altnorm.verdict import Verdict

__all__ = ["FORMAT_VERSION", "load_model", "model_metadata", "save_model"]

FORMAT = "altnorm model"
FORMAT_VERSION = 1

KINDS: dict[str, type[BaseEstimator]] = {
    kind.__name__: kind
    for kind in (
        AlternatingNormalizer,
        AlternatingNormalizerCV,
        PriorGuidedBias,
        *(getattr(peers, name) for name in peers.__all__),
    )
}
"""Every estimator that a model file may hold."""

_DTYPES = {
    "BOOL": "?",
    "U8": "u1",
    "I8": "i1",
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


def save_model(normalizer: Any, path: str | os.PathLike[str], *, force: bool = False) -> None:
    """Write a fitted normalizer to a safetensors file.

    The file holds settings, class names, what `fit` found (for `AlternatingNormalizerCV` with the
    verdict and the table of settings tried), versions, and a SHA-256 digest of all of it. Settings
    that only an earlier Python process could have made sense of, such as a scorer function, are
    left out; their defaults come back.

    Parameters
    ----------
    normalizer : AlternatingNormalizer, AlternatingNormalizerCV or one of altnorm.peers
        Fitted.
    path : str or path-like
        Where to.
    force : bool, default=False
        Whether an existing file may be replaced.

    See Also
    --------
    load_model : The way back.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from altnorm import AlternatingNormalizer
    >>> from altnorm.model import load_model, save_model
    >>> normalizer = AlternatingNormalizer(alpha=2.0).fit(np.array([[0.1, 0.9], [0.8, 0.2]]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(normalizer, Path(folder) / "model.safetensors")
    ...     load_model(Path(folder) / "model.safetensors")
    AlternatingNormalizer(alpha=2.0)
    """
    from safetensors.numpy import save_file

    kind = type(normalizer).__name__
    if KINDS.get(kind) is not type(normalizer):
        raise InputTypeError(
            f"A model file holds one of {', '.join(KINDS)}; this is {type(normalizer).__name__}. "
            "Save the fitted normalizer itself."
        )
    check_is_fitted(normalizer)
    tensors: dict[str, np.ndarray] = {}
    record = _encode_estimator(normalizer, "", tensors)
    metadata = {
        "format": FORMAT,
        "format_version": str(FORMAT_VERSION),
        "kind": kind,
        "settings": _to_json(record["settings"]),
        "classes": _to_json(record["state"].pop("classes_")),
        "state": _to_json(record["state"]),
        "versions": _to_json(versions()),
    }
    metadata["digest"] = _digest(metadata, tensors)
    with replacing(path, force=force) as temporary:
        save_file(tensors, temporary, metadata)


def load_model(path: str | os.PathLike[str]) -> Any:
    """Read a normalizer that `save_model` wrote.

    Large arrays are mapped into memory, not copied. A file that was changed or cut off is refused.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    AlternatingNormalizer, AlternatingNormalizerCV or one of altnorm.peers
        It transforms bit for bit as the one that was saved.
    """
    metadata, tensors = _read(path)
    try:
        record = {
            "kind": metadata["kind"],
            "settings": json.loads(metadata["settings"]),
            "state": json.loads(metadata["state"]) | {"classes_": json.loads(metadata["classes"])},
        }
        return _decode_estimator(record, tensors)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"'{path}' is no model this altnorm understands: {error!r}.") from error


def model_metadata(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return what a model file says about itself: kind, settings, classes, versions, digest.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    dict
        "settings" and "versions" as dictionaries, "classes" as a list, the rest as text.
    """
    metadata, tensors = _read(path)
    settings = {
        name: _decode(value, tensors) for name, value in json.loads(metadata["settings"]).items()
    }
    return {
        "kind": metadata["kind"],
        "settings": settings,
        "classes": json.loads(metadata["classes"])["values"],
        "versions": json.loads(metadata["versions"]),
        "format_version": int(metadata["format_version"]),
        "digest": metadata["digest"],
    }


def versions() -> dict[str, str]:
    """Versions of Python, altnorm and what it computes with."""
    found = {"python": platform.python_version()}
    for name in ("altnorm", "numpy", "scipy", "scikit-learn"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "unknown"
    return found


def _read(path: str | os.PathLike[str]) -> tuple[dict[str, str], dict[str, np.ndarray]]:
    """Check the file from the outside in; return its metadata and tensors."""
    from safetensors import SafetensorError, safe_open

    source = check_input(path)
    try:
        with safe_open(source, framework="numpy") as opened:
            metadata = opened.metadata() or {}
    except (SafetensorError, OSError) as error:
        raise InputError(
            f"'{source}' is not a model file, or it was cut off or damaged ({error}). Save it "
            "again, for example with `altnorm tune`."
        ) from error
    if metadata.get("format") != FORMAT:
        raise InputError(
            f"'{source}' is a safetensors file but no altnorm model. Name a file that `altnorm "
            "tune` or save_model wrote."
        )
    _check_version(metadata, source)
    tensors = _map_tensors(source)
    if metadata.get("digest") != _digest(metadata, tensors):
        raise InputError(
            f"'{source}' was changed after it was saved: its digest does not match. Save it again, "
            "for example with `altnorm tune`."
        )
    return metadata, tensors


def _check_version(metadata: dict[str, str], source: Path) -> None:
    told = metadata.get("format_version", "")
    if not told.isdecimal():
        raise InputError(f"'{source}' does not say its format version. Save it again.")
    if int(told) > FORMAT_VERSION:
        raise InputError(
            f"'{source}' has model format {told}, which is newer than format {FORMAT_VERSION} that "
            f"altnorm {versions()['altnorm']} reads. Upgrade altnorm."
        )


def _map_tensors(source: Path) -> dict[str, np.ndarray]:
    """Map the tensors of a file whose structure safetensors has found to be sound."""
    content = np.memmap(source, np.uint8, "r")
    start = 8 + int.from_bytes(content[:8].tobytes(), "little")
    header = json.loads(content[8:start].tobytes())
    tensors = {}
    for name, entry in header.items():
        if name != "__metadata__":
            low, high = (start + offset for offset in entry["data_offsets"])
            flat = np.asarray(content[low:high]).view(_DTYPES[entry["dtype"]])
            tensors[name] = flat.reshape(entry["shape"])
    return tensors


def _digest(metadata: dict[str, str], tensors: dict[str, np.ndarray]) -> str:
    digest = hashlib.sha256()
    digest.update(_to_json({k: v for k, v in metadata.items() if k != "digest"}).encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(_to_json([name, tensor.dtype.str, tensor.shape]).encode())
        digest.update(np.ascontiguousarray(tensor).reshape(-1).view(np.uint8).data)
    return f"sha256:{digest.hexdigest()}"


def _to_json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, allow_nan=False, ensure_ascii=False)


def _encode_estimator(
    estimator: Any, prefix: str, tensors: dict[str, np.ndarray]
) -> dict[str, Any]:
    settings = estimator.get_params(deep=False)
    state = {name: value for name, value in vars(estimator).items() if name not in settings}
    known = {}
    for name, value in settings.items():
        try:
            known[name] = _encode(value, f"{prefix}settings.{name}", tensors)
        except InputTypeError:
            continue
    return {
        "kind": type(estimator).__name__,
        "settings": known,
        "state": {k: _encode(v, prefix + k, tensors) for k, v in state.items()},
    }


def _encode(value: Any, name: str, tensors: dict[str, np.ndarray]) -> Any:
    """Turn a value into JSON; arrays of numbers go to `tensors`, and types JSON lacks get a tag."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": str(value)}
    if isinstance(value, np.ndarray):
        return _encode_array(value, name, tensors)
    if isinstance(value, (list, tuple)):
        return {
            type(value).__name__: [_encode(v, f"{name}.{i}", tensors) for i, v in enumerate(value)]
        }
    if isinstance(value, dict):
        return {"dict": {k: _encode(v, f"{name}.{k}", tensors) for k, v in value.items()}}
    if isinstance(value, Verdict):
        return {"verdict": {k: _encode(v, "", {}) for k, v in asdict(value).items()}}
    if KINDS.get(type(value).__name__) is type(value):
        return {"estimator": _encode_estimator(value, f"{name}.", tensors)}
    raise InputTypeError(
        f"A model file holds numbers, text and arrays; `{name}` is {type(value).__name__}."
    )


def _encode_array(value: np.ndarray, name: str, tensors: dict[str, np.ndarray]) -> Any:
    if value.dtype.kind in "biuf" and not name.endswith("classes_"):
        # Sums depend on the order of their terms, so an array comes back in the same layout.
        fortran = value.flags.f_contiguous and not value.flags.c_contiguous
        stored = np.ascontiguousarray(value.T if fortran else value)
        tensors[name] = stored.astype(stored.dtype.newbyteorder("<"), copy=False)
        return {"tensor": name, "fortran": fortran}
    if value.dtype.kind not in "biufUO" or value.ndim != 1:
        raise InputTypeError(
            f"A model file holds classes that are text, numbers or booleans; `{name}` has dtype "
            f"{value.dtype}. Convert the labels to text."
        )
    dtype = value.dtype.str if value.dtype.kind != "O" else "O"
    return {"values": [_encode(v, name, {}) for v in value.tolist()], "dtype": dtype}


def _decode_estimator(record: dict[str, Any], tensors: dict[str, np.ndarray]) -> Any:
    kind = KINDS.get(record["kind"])
    if kind is None:
        raise InputError(f"A model of kind '{record['kind']}' is unknown. Upgrade altnorm.")
    settings = {name: _decode(value, tensors) for name, value in record["settings"].items()}
    estimator = kind(**settings)
    for name, value in record["state"].items():
        if not name.strip("_").isidentifier() or hasattr(kind, name):
            raise InputError(f"A model cannot remember `{name}`. Save it again.")
        setattr(estimator, name, _decode(value, tensors))
    return estimator


def _decode(value: Any, tensors: dict[str, np.ndarray]) -> Any:
    if not isinstance(value, dict):
        return value
    if "tensor" in value:
        stored = tensors[value["tensor"]]
        return stored.T if value["fortran"] else stored
    if "values" in value:
        return np.array([_decode(v, {}) for v in value["values"]], dtype=value["dtype"])
    if "verdict" in value:
        told = {k: _decode(v, {}) for k, v in value["verdict"].items()}
        return Verdict(**{f.name: told[f.name] for f in fields(Verdict) if f.name in told})
    if "estimator" in value:
        return _decode_estimator(value["estimator"], tensors)
    if "dict" in value:
        return {k: _decode(v, tensors) for k, v in value["dict"].items()}
    if "float" in value:
        return float(value["float"])
    sequence: Callable[[Any], Any] = tuple if "tuple" in value else list
    return sequence(_decode(v, tensors) for v in next(iter(value.values())))

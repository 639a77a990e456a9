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
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, fields
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from altnorm import families as peers
from altnorm._base.errors import InputError, InputTypeError
from altnorm._base.files import check_input, replacing
from altnorm._base.tensor_file import read_tensors, write_tensors
from altnorm.adjuster import Adjuster, AlternatingNormalizerCV
from altnorm.balance.shift import Shift
from altnorm.evidence.verdict import Verdict
from altnorm.io.model_rules import check_model
from altnorm.method.normalizer import AlternatingNormalizer

FORMAT = "altnorm model"
FORMAT_VERSION = 1

KINDS: dict[str, type[BaseEstimator]] = {
    kind.__name__: kind
    for kind in (
        AlternatingNormalizer,
        AlternatingNormalizerCV,
        Adjuster,
        *(getattr(peers, name) for name in peers.__all__),
    )
}
"""Every estimator that a model file may hold."""

_CLASS_DTYPE = re.compile(r"[<|](b1|[iuf][1248]|U([1-9]\d{0,4}|0))|O")
_BROKEN = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)


def save_model(normalizer: Any, path: str | os.PathLike[str], *, force: bool = False) -> None:
    """Write a fitted normalizer to a safetensors file.

    The file holds settings, class names, what `fit` found (for `AlternatingNormalizerCV` with the
    verdict and the table of settings tried), versions, and a SHA-256 digest of all of it. Settings
    that cannot be serialised, such as a scorer function, are
    left out; their defaults come back.

    Parameters
    ----------
    normalizer : Adjuster, AlternatingNormalizerCV, AlternatingNormalizer or one of altnorm.families
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
    >>> from altnorm.io.model import load_model, save_model
    >>> normalizer = AlternatingNormalizer(alpha=2.0).fit(np.array([[0.1, 0.9], [0.8, 0.2]]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(normalizer, Path(folder) / "model.safetensors")
    ...     load_model(Path(folder) / "model.safetensors")
    AlternatingNormalizer(alpha=2.0)
    """
    kind = type(normalizer).__name__
    if KINDS.get(kind) is not type(normalizer):
        raise InputTypeError(
            f"A model file holds one of {', '.join(KINDS)}",
            f"this is {type(normalizer).__name__}",
            "Save the fitted normalizer itself.",
            value=type(normalizer).__name__,
            code="model_file",
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
    # Refused here rather than by the reader, who may sit elsewhere.
    check_model(normalizer, "Fit it again, and save what `fit` leaves.")
    with replacing(path, force=force) as temporary:
        write_tensors(temporary, tensors, metadata)


def load_model(path: str | os.PathLike[str]) -> Any:
    """Read a normalizer that `save_model` wrote.

    A file that was changed or cut off is refused, and so is one whose settings or arrays are not
    such as `fit` leaves them. Arrays are copies, read-only; a file of more than 1 GB is mapped
    into memory instead and must not be changed while the model is in use.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    Adjuster, AlternatingNormalizerCV, AlternatingNormalizer or one of altnorm.families
        It transforms bit for bit as the one that was saved.
    """
    metadata, tensors = _read(path)
    with _understood(path):
        record = {
            "kind": metadata["kind"],
            "settings": _from_json(metadata["settings"]),
            "state": _from_json(metadata["state"]) | {"classes_": _from_json(metadata["classes"])},
        }
        return _decode_estimator(record, tensors)


def model_metadata(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return what a model file says about itself: kind, settings, classes, versions, digest.

    Parameters
    ----------
    path : str or path-like
        As for :func:`load_model`.

    Returns
    -------
    dict
        "settings" and "versions" as dictionaries, "classes" as a list, the rest as text.
    """
    metadata, tensors = _read(path)
    with _understood(path):
        settings = _from_json(metadata["settings"])
        return {
            "kind": metadata["kind"],
            "settings": {name: _decode(value, tensors) for name, value in settings.items()},
            "classes": _from_json(metadata["classes"])["values"],
            "versions": _from_json(metadata["versions"]),
            "format_version": int(metadata["format_version"]),
            "digest": metadata["digest"],
        }


@contextmanager
def _understood(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn what a file of another making can cause into one sentence."""
    try:
        yield
    except InputError as error:
        raise error.replace(rule=f"'{path}' is not a sound model: {error.rule}") from error
    except _BROKEN as error:
        raise InputError(
            f"'{path}' is not a model that this altnorm understands ({error!r})",
            remedy="Save it again, for example with `altnorm tune`.",
            code="model_file",
        ) from error


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
    from safetensors import SafetensorError

    source = check_input(path)
    try:
        metadata, tensors = read_tensors(source)
    except (SafetensorError, OSError, *_BROKEN) as error:
        raise InputError(
            f"'{source}' is not a model file, or it was cut off or damaged ({error})",
            remedy="Save it again, for example with `altnorm tune`.",
            code="model_file",
        ) from error
    if metadata.get("format") != FORMAT:
        raise InputError(
            f"'{source}' is a safetensors file but no altnorm model",
            remedy="Name a file that `altnorm tune` or save_model wrote.",
            code="model_file",
        )
    _check_version(metadata, source)
    # Against accidents, not against attackers: who can change the file can change the digest.
    if metadata.get("digest") != _digest(metadata, tensors):
        raise InputError(
            f"'{source}' was changed after it was saved: its digest does not match",
            remedy="Save it again, for example with `altnorm tune`.",
            code="model_file",
        )
    return metadata, tensors


def _check_version(metadata: dict[str, str], source: Path) -> None:
    version = metadata.get("format_version", "")
    if not re.fullmatch(r"[0-9]{1,9}", version):
        raise InputError(
            f"'{source}' does not say its format version",
            remedy="Save it again.",
            code="model_file",
        )
    if int(version) > FORMAT_VERSION:
        raise InputError(
            f"'{source}' has model format {version}, which is newer than format {FORMAT_VERSION} "
            f"that altnorm {versions()['altnorm']} reads",
            remedy="Upgrade altnorm.",
            code="model_file",
        )


def _digest(metadata: dict[str, str], tensors: dict[str, np.ndarray]) -> str:
    digest = hashlib.sha256()
    digest.update(_to_json({k: v for k, v in metadata.items() if k != "digest"}).encode())
    for name, tensor in sorted(tensors.items()):
        # The same bytes in another shape are another array.
        digest.update(_to_json([name, tensor.dtype.str, tensor.shape]).encode())
        digest.update(np.ascontiguousarray(tensor).reshape(-1).view(np.uint8).data)
    return f"sha256:{digest.hexdigest()}"


def _to_json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, allow_nan=False, ensure_ascii=False)


def _from_json(text: str) -> Any:
    def refuse(constant: str) -> None:
        raise InputError(
            f"JSON knows no {constant}", remedy="Save the model again.", code="model_file"
        )

    return json.loads(text, parse_constant=refuse)


def _encode_estimator(
    estimator: Any, prefix: str, tensors: dict[str, np.ndarray]
) -> dict[str, Any]:
    # What `__init__` took, and all else that `fit` left.
    settings = estimator.get_params(deep=False)
    state = {name: value for name, value in vars(estimator).items() if name not in settings}
    known = {}
    for name, value in settings.items():
        try:
            known[name] = _encode(value, f"{prefix}settings.{name}", tensors)
        # A splitter or scorer is an object: `transform` does not need it, so it is left out.
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
    if isinstance(value, Shift):
        return {"shift": {k: _encode(v, "", {}) for k, v in asdict(value).items()}}
    if KINDS.get(type(value).__name__) is type(value):
        return {"estimator": _encode_estimator(value, f"{name}.", tensors)}
    raise InputTypeError(
        "A model file holds numbers, text and arrays",
        f"`{name}` is {type(value).__name__}",
        code="model_file",
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
            "A model file holds classes that are text, numbers or booleans",
            f"`{name}` has dtype {value.dtype}",
            "Convert the labels to text.",
            code="model_file",
        )
    dtype = value.dtype.str if value.dtype.kind != "O" else "O"
    return {"values": [_encode(v, name, {}) for v in value.tolist()], "dtype": dtype}


def _decode_estimator(record: dict[str, Any], tensors: dict[str, np.ndarray]) -> Any:
    kind = KINDS.get(record["kind"])
    if kind is None:
        raise InputError(
            f"A model of kind '{record['kind']}' is unknown",
            remedy="Upgrade altnorm.",
            code="model_file",
        )
    settings = {name: _decode(value, tensors) for name, value in record["settings"].items()}
    estimator = kind(**settings)
    for name, value in record["state"].items():
        # A file must not be able to replace a method.
        if not name.strip("_").isidentifier() or hasattr(kind, name):
            raise InputError(
                f"A model cannot remember `{name}`", remedy="Save it again.", code="model_file"
            )
        setattr(estimator, name, _decode(value, tensors))
    check_model(estimator)
    return estimator


def _decode_values(values: list[Any], dtype: str) -> np.ndarray:
    if not _CLASS_DTYPE.fullmatch(dtype):  # a longer text would be a bomb: its width is allocated
        raise InputError(
            f"Class labels cannot have dtype {dtype[:20]!r}",
            remedy="Save the model again.",
            code="model_file",
        )
    return np.array([_decode(v, {}) for v in values], dtype=dtype)


def _decode(value: Any, tensors: dict[str, np.ndarray]) -> Any:
    # Plain JSON values stand for themselves; everything else has a tag.
    if not isinstance(value, dict):
        return value
    if "tensor" in value:
        stored = tensors[value["tensor"]]
        return stored.T if value["fortran"] else stored
    if "values" in value:
        return _decode_values(value["values"], value["dtype"])
    if "verdict" in value:
        found = {k: _decode(v, {}) for k, v in value["verdict"].items()}
        return Verdict(**{f.name: found[f.name] for f in fields(Verdict) if f.name in found})
    if "shift" in value:
        return Shift(**{k: _decode(v, {}) for k, v in value["shift"].items()})
    if "estimator" in value:
        return _decode_estimator(value["estimator"], tensors)
    if "dict" in value:
        return {k: _decode(v, tensors) for k, v in value["dict"].items()}
    if "float" in value:
        return float(value["float"])
    sequence: Callable[[Any], Any] = tuple if "tuple" in value else list
    return sequence(_decode(v, tensors) for v in value[sequence.__name__])

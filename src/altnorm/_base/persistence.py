"""Fitted estimators <-> safetensors files: numbers as tensors, all else as JSON metadata.

Loading executes nothing that a file says: it builds only classes that declared themselves with
`storable`, out of numbers, text and arrays, and these check what they were given.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import platform
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save
from sklearn.utils.validation import check_is_fitted

from altnorm._base.errors import InputError, InputTypeError
from altnorm._base.files import check_input, replacing
from altnorm._base.fitted import CHECKS, Fields, check_model, unknown_field

FORMAT_VERSION = 1

KINDS: dict[str, type] = {}
"""Every class that a model file may hold: estimators, and the records inside them."""

_KEY = "altnorm"  # one entry of metadata, as safetensors writes several in any order
_MOST_CHARACTERS = 2**26  # of an array of text, in which every entry is as wide as the longest
_BROKEN = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)
_REMEDY = "Save it again, for example with `altnorm tune`."

Tensors = dict[str, np.ndarray]


class Checked(Protocol):
    """An estimator, or a dataclass inside one, that says what its fields must be."""

    def _check_fitted(self, fields: Fields) -> None: ...


Class = TypeVar("Class", bound=type[Checked])


def storable(cls: Class) -> Class:
    """Let model files hold a class."""
    registered = KINDS.setdefault(cls.__name__, cls)
    if registered.__module__ != cls.__module__:
        raise TypeError(f"Model files hold another {cls.__name__}, that of {registered.__module__}")
    KINDS[cls.__name__] = cls
    CHECKS[cls] = cls._check_fitted
    return cls


class Saved:
    """Base of the estimators that a model file may hold."""

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        force: bool = False,
        about: Mapping[str, str] | None = None,
    ) -> None:
        """Write the fitted estimator to a safetensors file, which :func:`altnorm.load` reads.

        Settings that cannot be serialised, such as a scoring function, are left out; their
        defaults come back.

        Parameters
        ----------
        path : str or path-like
            Where to.
        force : bool, default=False
            Whether an existing file may be replaced.
        about : mapping of str to str, optional
            What else a model card, and ``altnorm info``, should tell.
        """
        check_is_fitted(self)
        tensors: Tensors = {}
        content = _encode(self, "", tensors)["estimator"]
        content |= {"format_version": FORMAT_VERSION, "versions": versions()}
        content["about"] = {str(name): str(text) for name, text in (about or {}).items()}
        # Refused here rather than by the reader, who may sit elsewhere.
        check_model(self, _fitted_state(self).keys())
        with replacing(path, force=force) as temporary:
            write_content(temporary, content, tensors)


def read_model(path: str | os.PathLike[str]) -> Any:
    """Read a fitted estimator, of any class that is registered; :func:`altnorm.load` tells more."""
    content, tensors = read_content(path)
    with _understood(path):
        return _decode_estimator(content, tensors)


def model_metadata(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return what a model file says about itself; "classes" as a list."""
    content, tensors = read_content(path)
    with _understood(path):
        return {
            "kind": str(content["kind"]),
            "settings": {k: _decode(v, tensors) for k, v in content["settings"].items()},
            "classes": _decode(content["state"]["classes_"], tensors).tolist(),
            "versions": dict(content["versions"]),
            "format_version": content["format_version"],
            "about": {name: str(text) for name, text in content.get("about", {}).items()},
            "digest": content["digest"],
        }


def versions() -> dict[str, str]:
    by_package = {"python": platform.python_version()}
    for name in ("altnorm", "numpy", "scipy", "scikit-learn"):
        try:
            by_package[name] = version(name)
        except PackageNotFoundError:
            by_package[name] = "unknown"
    return by_package


def write_content(path: Path, content: dict[str, Any], tensors: Tensors) -> None:
    """Write what a model file holds, with its digest: the same bytes for the same content."""
    content = {**content, "digest": _digest(content, tensors)}
    path.write_bytes(save(tensors, {_KEY: _to_json(content)}))  # its own writer hides OSError


def read_content(path: str | os.PathLike[str]) -> tuple[dict[str, Any], Tensors]:
    source = check_input(path)
    try:
        with safe_open(source, "numpy") as opened:
            text = (opened.metadata() or {}).get(_KEY)
            tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
        content = {} if text is None else json.loads(text)
        version, digest = content.get("format_version"), content.get("digest")
        intact = digest == _digest(content, tensors)
    except (SafetensorError, OSError, *_BROKEN) as error:
        fault = "is not a model file, or it was cut off or damaged"
        raise _file_error(source, fault).replace(code="no_model") from error
    if text is None:
        raise _file_error(source, "is a safetensors file but no altnorm model")
    if type(version) is not int:
        raise _file_error(source, "does not say its format version")
    if version > FORMAT_VERSION:
        newer = f"has model format {str(version)[:9]}, which is newer than format {FORMAT_VERSION}"
        newer += f" that altnorm {versions()['altnorm']} reads"
        raise _file_error(source, newer, "Upgrade altnorm.")
    # Against accidents, not against attackers: who can change the file can change the digest.
    if not intact:
        raise _file_error(source, "was changed after it was saved: its digest does not match")
    for tensor in tensors.values():
        tensor.flags.writeable = False
    return content, tensors


def _file_error(source: str | os.PathLike[str], fault: str, remedy: str = _REMEDY) -> InputError:
    return InputError(f"'{source}' {fault}", remedy=remedy, code="model_file")


@contextmanager
def _understood(path: str | os.PathLike[str]) -> Iterator[None]:
    try:
        yield
    except InputError as error:
        raise error.replace(rule=f"'{path}' is not a sound model: {error.rule}") from error
    except _BROKEN as error:
        fault = f"is not a model that this altnorm understands ({error!r})"
        raise _file_error(path, fault) from error


def _digest(content: dict[str, Any], tensors: Tensors) -> str:
    digest = hashlib.sha256()
    digest.update(_to_json({k: v for k, v in content.items() if k != "digest"}).encode())
    for name, tensor in sorted(tensors.items()):
        # The same bytes in another shape are another array.
        digest.update(_to_json([name, tensor.dtype.str, tensor.shape]).encode())
        digest.update(tensor.reshape(-1).view(np.uint8).data)
    return f"sha256:{digest.hexdigest()}"


def _to_json(value: object) -> str:
    return json.dumps(value, sort_keys=True, allow_nan=False)


def _fitted_state(estimator: Any) -> dict[str, Any]:
    """All that an estimator remembers beside its settings and private notes."""
    settings = estimator.get_params(deep=False)
    state = vars(estimator).items()
    return {name: each for name, each in state if name not in settings and name[0] != "_"}


def _encode_estimator(estimator: Any, prefix: str, tensors: Tensors) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    for name, value in estimator.get_params(deep=False).items():
        arrays: Tensors = {}
        try:
            settings[name] = _encode(value, f"{prefix}settings.{name}", arrays)
        # A splitter or scorer is an object: `transform` does not need it, so it is left out.
        except InputTypeError:
            continue
        tensors.update(arrays)
    state = _fitted_state(estimator).items()
    return {
        "kind": type(estimator).__name__,
        "settings": settings,
        "state": {name: _encode(value, prefix + name, tensors) for name, value in state},
    }


def _encode(value: Any, name: str, tensors: Tensors) -> Any:
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
        items = [_encode(item, f"{name}.{i}", tensors) for i, item in enumerate(value)]
        return {"list" if isinstance(value, list) else "tuple": items}
    if isinstance(value, dict):  # as pairs: a key may be a tuple, and the order is kept
        keys = [_encode(key, name, {}) for key in value]
        items = [_encode(item, f"{name}.{key}", tensors) for key, item in value.items()]
        return {"dict": list(zip(keys, items, strict=True))}
    if KINDS.get(type(value).__name__) is not type(value):
        rule = "A model file holds numbers, text, arrays, and estimators of altnorm"
        offender = f"`{name or 'self'}` is {type(value).__name__}"
        raise InputTypeError(rule, offender, code="model_file")
    if not is_dataclass(value):
        return {"estimator": _encode_estimator(value, f"{name}." if name else "", tensors)}
    parts = {f.name: getattr(value, f.name) for f in fields(value)}
    encoded = {part: _encode(v, f"{name}.{part}", tensors) for part, v in parts.items()}
    return {"record": type(value).__name__, "fields": encoded}


def _encode_array(value: np.ndarray, name: str, tensors: Tensors) -> Any:
    if value.dtype.kind in "biuf" and value.dtype.itemsize <= 8:
        # Sums depend on the order of their terms, so an array comes back in the same layout.
        fortran = value.flags.f_contiguous and not value.flags.c_contiguous
        stored = np.ascontiguousarray(value.T if fortran else value)
        while name in tensors:
            name += "_"
        tensors[name] = stored.astype(stored.dtype.newbyteorder("<").str, copy=False)
        return {"tensor": name, "fortran": fortran}
    if value.dtype.kind not in "UO" or value.ndim != 1:
        rule = "A model file holds classes that are text, numbers or booleans"
        offender, remedy = f"`{name}` has dtype {value.dtype}", "Convert the labels to text."
        raise InputTypeError(rule, offender, remedy, code="model_file")
    texts = [_encode(text, name, {}) for text in value.tolist()]
    if value.dtype.kind == "U":
        _check_width(texts)
    return {"texts": texts, "dtype": value.dtype.kind}


def _check_width(texts: list[str]) -> None:
    """Raise where one long text would make an array of all of them huge."""
    width = max(map(len, texts), default=0)
    if len(texts) * width > _MOST_CHARACTERS:
        rule = f"An array of text may have {_MOST_CHARACTERS:,} characters"
        offender = f"{len(texts):,} of up to {width:,} have more"
        raise InputError(rule, offender, "Choose shorter names.", code="model_file")


def _decode_estimator(content: dict[str, Any], tensors: Tensors) -> Any:
    kind = _known(content["kind"])
    if not issubclass(kind, Saved):
        raise ValueError(f"{kind.__name__} is no estimator")
    estimator: Any = kind(**{k: _decode(v, tensors) for k, v in content["settings"].items()})
    for name, value in content["state"].items():
        # A file must not be able to replace a method.
        if name.startswith("_") or callable(getattr(kind, name, None)):
            raise unknown_field(kind, name)
        setattr(estimator, name, _decode(value, tensors))
    check_model(estimator, content["state"].keys())
    return estimator


def _known(name: str) -> type:
    if name not in KINDS:
        rule = f"A model of kind '{name}' is unknown"
        raise InputError(rule, remedy="Upgrade altnorm.", code="model_file")
    return KINDS[name]


def _decode(value: Any, tensors: Tensors) -> Any:
    """Undo `_encode`: plain JSON values stand for themselves, everything else has a tag."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case {"float": str(text)}:
            return float(text)
        case {"tensor": str(name), "fortran": bool(fortran)}:
            return tensors[name].T if fortran else tensors[name]
        case {"texts": list(texts), "dtype": "O"}:
            return np.array([_decode(text, {}) for text in texts], dtype="O")
        case {"texts": list(texts), "dtype": "U"} if all(isinstance(text, str) for text in texts):
            _check_width(texts)
            return np.array(texts, dtype="U")
        case {"list": list(items)}:
            return [_decode(item, tensors) for item in items]
        case {"tuple": list(items)}:
            return tuple(_decode(item, tensors) for item in items)
        case {"dict": list(pairs)}:
            return {_decode(key, {}): _decode(item, tensors) for key, item in pairs}
        case {"estimator": dict(content)}:
            return _decode_estimator(content, tensors)
        case {"record": str(name), "fields": dict(parts)} if is_dataclass(_known(name)):
            return _known(name)(**{part: _decode(v, tensors) for part, v in parts.items()})
    raise ValueError(f"{str(value)[:80]} is not a valid encoded value")

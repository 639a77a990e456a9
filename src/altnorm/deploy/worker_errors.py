"""Bring an InputError home from an engine that passes on nothing but the text of an exception."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

from altnorm._base.errors import InputError

# Engines put stack traces around a worker's message, but leave its lines whole.
_MARK = "altnorm-input-error: "


def portable(error: InputError, where: str) -> InputError:
    """Return the error with `where` before its rule, and its fields in the last line as JSON."""
    located = error.replace(rule=f"{where}{error.rule}")
    fields = {
        name: getattr(located, name) for name in ("rule", "offender", "remedy", "value", "code")
    }
    fields["place"] = None if located.place is None else str(located.place)
    return InputError(f"{' '.join(str(located).split())}\n{_MARK}{json.dumps(fields, default=str)}")


@contextmanager
def worker_errors(kind: type[Exception]) -> Iterator[None]:
    """Turn an engine's exception, if a worker's InputError caused it, into that InputError."""
    try:
        yield
    except kind as error:
        found = str(error).rpartition(_MARK)
        if not found[1]:
            raise
        fields, _ = json.JSONDecoder().raw_decode(found[2])
        raise InputError(**fields) from None

"""Quotes in CSV files: a stray one makes text of all rows up to the next, and no parser minds."""

from __future__ import annotations

import codecs
import re
from typing import IO

import numpy as np

from altnorm._base.errors import InputWarning, warn
from altnorm._base.files import file_error

_INSIDE = re.compile(rb'[^"]*(?:""[^"]*)*')  # a quoted field up to the quote that closes it
_KEPT = 2**23  # bytes of an open field that are looked at; PyArrow reads none that is longer


class QuoteWatch:
    """A file of text to read from, which keeps an eye on the quotes that pass.

    A quote opens a field only where a field begins, as for PyArrow; elsewhere it is text.

    Parameters
    ----------
    file : binary file
        What is read.
    name : str
        What messages call it.
    delimiter : str
        What separates columns.
    n_columns : int
        How many there are.
    """

    closed = False

    def __init__(self, file: IO[bytes], name: str, delimiter: str, n_columns: int) -> None:
        self._file, self._name = file, name
        self._between, self._n_between = delimiter.encode(), n_columns - 1
        self._starts = b"\n\r" + self._between  # after one of these, a field begins
        self._is_start = np.isin(np.arange(256), list(self._starts))
        self._is_new = True
        self._before = b"\n"  # the last byte that was seen
        self._held = b""  # a quote that the next byte gives its meaning
        self._line = 1  # the line that the next byte belongs to
        self._column = 0  # the column that the next byte belongs to, outside of quotes
        self._opened = 0  # the line in which the open field begins; 0: none is open
        self._inside = bytearray()
        self._n_inside = 0  # bytes of the open field, also of those that were not kept
        self._swallowed: list[tuple[int, int, int]] = []  # first line, last line, how many rows
        self._torn: list[tuple[int, int]] = []  # first and last line of fields that end in text

    def read(self, size: int = -1) -> bytes:
        """Read bytes."""
        data = self._file.read(size)
        new = data.removeprefix(codecs.BOM_UTF8) if self._is_new else data
        self._is_new = False
        # Most lines are sound, which is seen at once; the last one may go on in the next block.
        end = new.rfind(b"\n") + 1
        if self._opened or not self._all_sound(new[:end]):
            self._see(new[:end], final=False)
        self._see(new[end:], final=not data)
        return data

    def close(self) -> None:
        """Nothing: who has opened the file closes it."""

    @property
    def too_long(self) -> bool:
        """Whether a field is open that is longer than PyArrow could read."""
        return self._n_inside >= _KEPT

    def finish(self) -> None:
        """Raise if a quoted field never ends, or not where it should; warn of those with rows."""
        if self._torn:
            first, last = self._torn[0]
            raise file_error(
                "A quote must end its field",
                f"that in line {last} of '{self._name}' has text behind it, and the field begins "
                f"in line {first}, so rows between them would be lost",
                f"A quote may be missing in line {first}; write quotes within quotes twice.",
                value=first,
            )
        if self._opened:
            raise file_error(
                "Every quoted field must end",
                f"the one that begins in line {self._opened} of '{self._name}' does not, so all "
                "that follows would be its text",
                "Remove the quote, or write it twice within quotes; the file may also be cut off.",
                value=self._opened,
            )
        if self._swallowed:
            first, last, _ = self._swallowed[0]
            message = (
                f"{sum(n for *_, n in self._swallowed):,} lines of '{self._name}' that look like "
                f"rows are text within quotes, the first of them in the field from line {first} to "
                f"line {last}. If they are rows, remove the quote in line {first} or write it "
                "twice within quotes."
            )
            warn(InputWarning(message, "quoted_rows"))

    def _all_sound(self, data: bytes) -> bool:
        """Pass lines in which every quoted field begins and ends; False if there are others.

        Every other quote must begin a field, or follow another quote, and those between must end
        one, or be followed by another quote.
        """
        if b'"' in data:
            values = np.frombuffer(data, np.uint8)
            quotes = np.flatnonzero(values == ord('"'))
            if quotes.size % 2:
                return False
            opens, closes = quotes[::2], quotes[1::2]
            around = np.concatenate(([ord(self._before)], values))  # what is before each byte
            begins = self._is_start[around[opens]]
            ends = self._is_start[values[closes + 1]]  # the last byte is a newline
            begins[1:] |= opens[1:] == closes[:-1] + 1
            ends[:-1] |= opens[1:] == closes[:-1] + 1
            lines = np.flatnonzero(values == ord("\n"))
            in_a_line = np.searchsorted(lines, opens) == np.searchsorted(lines, closes)
            if not (begins & ends & in_a_line).all():
                return False
        self._line += data.count(b"\n")
        self._column = 0 if data else self._column
        self._before = data[-1:] or self._before
        return True

    def _see(self, data: bytes, *, final: bool) -> None:
        data, self._held = self._held + data, b""
        at, counted = 0, 0
        while at >= 0:
            if not self._opened:
                start, at = at, self._next_opening(data, at)
                self._pass_plain(data[start:at] if at >= 0 else data[start:])
                if at < 0:
                    break
                self._line += data.count(b"\n", counted, at)
                self._opened, counted, at = self._line, at, at + 1
            at = self._follow(data, at, final)
        self._line += data.count(b"\n", counted)
        self._before = data[-1:] or self._before

    def _pass_plain(self, text: bytes) -> None:
        """Count the columns of text that is outside of quotes."""
        start = max(text.rfind(b"\n"), text.rfind(b"\r")) + 1
        self._column = text.count(self._between, start) + (0 if start else self._column)

    def _next_opening(self, data: bytes, at: int) -> int:
        """Where the next quoted field begins, -1 if none does."""
        while (at := data.find(b'"', at)) >= 0:
            if (data[at - 1 : at] if at else self._before) in self._starts:
                return at
            at += 1
        return -1

    def _follow(self, data: bytes, at: int, final: bool) -> int:
        """Follow the open field; where it is closed, -1 if it goes on."""
        end = _INSIDE.match(data, at).end()  # type: ignore[union-attr]  # it matches no bytes, too
        # A quote at the end may be the first of two, which are one that is text.
        is_held = end == len(data) - 1 and not final
        self._held = data[end:] if is_held else b""
        self._n_inside += end - at
        if len(self._inside) < _KEPT:
            self._inside += memoryview(data)[at:end]
        if is_held or end == len(data):
            return -1
        behind = data[end + 1 : end + 2]
        self._note(bytes(self._inside), is_torn=bool(behind) and behind not in self._starts)
        self._opened, self._n_inside = 0, 0
        self._inside.clear()
        return end + 1

    def _note(self, text: bytes, *, is_torn: bool) -> None:
        """Take note of a field whose lines look like rows, or which is no field at all."""
        first, *more = text.split(b"\n")
        if not more:
            return
        if is_torn:
            self._torn.append((self._opened, self._opened + len(more)))
        rows = sum(line.count(self._between) == self._n_between for line in more)
        # The rest of one row, and the start of another: a quote is missing in both.
        ends = first.count(self._between), more[-1].count(self._between)
        if ends == (self._n_between - self._column, self._column) and ends[1] < self._n_between:
            rows += 1
        if rows and self._n_between:
            self._swallowed.append((self._opened, self._opened + len(more), rows))

"""``altnorm apply``: a model on new predictions; ``altnorm adapt``: fitted to their balance."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import compute as pc

from altnorm._base.errors import InputError
from altnorm._base.files import check_output
from altnorm._base.persistence import model_metadata
from altnorm._base.words import plural
from altnorm.adjuster import load
from altnorm.balance import Shift
from altnorm.cli._commands import Adapt, Apply
from altnorm.cli._options import prefix_words
from altnorm.cli._records import file_words, print_json
from altnorm.cli._screen import advised, by_class, errors, out, progress
from altnorm.decisions.decision import HALF, decision_codes, decision_of
from altnorm.deploy.arrow import apply_batches, class_column, class_values, output_schema
from altnorm.estimator.base import ProbabilityTransformer, unnamed
from altnorm.estimator.kinds import FittedModel, kind_of
from altnorm.io.columns import class_columns, column_matrix, spare_hint
from altnorm.io.formats import (
    ARRAYS,
    STANDARD,
    Layout,
    TableSource,
    find_source,
    find_target,
    format_of,
)
from altnorm.io.labels import names_of
from altnorm.io.predictions import check_adjusted, read_predictions, write_predictions
from altnorm.io.tables import find_predicted, open_table, write_table
from altnorm.report.evaluation import check_kind

_MOST_NUMBERS = 2**22  # that are kept of a stream
_N_SHOWN = 5  # classes whose share changes most
_MOST_ROWS = 4096  # looked at for drift: enough, and a small share of the work


def apply(options: Apply) -> int:
    """Adjust a file, tell what changed, and warn of drift."""
    start = time.perf_counter()
    # In place of its input it may be.
    check_output(options.output, force=options.force, others=[options.model])
    fitted = unnamed(load(options.model))
    layout = replace(options.columns, logits=fitted.input == "logits")
    if options.no_prediction and options.prediction is not None:
        rule = "The column of decisions is named or left out"
        raise InputError(rule, "both are asked for", "Leave out --prediction or --no-prediction.")
    changes = ChangeCount(fitted)
    if find_source(options.source, layout).format not in ARRAYS:
        _adjust_table(changes, layout, options)
    else:
        _adjust_arrays(changes, layout, options)
    drifted = _tell(changes, options.output, time.perf_counter() - start, json=options.json)
    return int(options.strict and drifted)


class RowSample:
    """Keeps every row, then every second, every fourth, ... as more come; `most` numbers."""

    def __init__(self, most: int = _MOST_NUMBERS) -> None:
        self.most = most
        self.step = 1
        self.n_seen = 0
        self._kept: list[np.ndarray] = []

    def add(self, values: np.ndarray) -> None:
        """Take in the next rows."""
        first = -self.n_seen % self.step
        self._kept.append(np.array(values[first :: self.step]))
        self.n_seen += len(values)
        while sum(part.size for part in self._kept) > self.most:
            self._kept = [np.concatenate(self._kept)[::2]]
            self.step *= 2

    @property
    def rows(self) -> np.ndarray | None:
        """The rows kept; None if there were none."""
        return np.concatenate(self._kept) if self.n_seen else None


class ChangeCount:
    """Adds up how many rows, and how many decisions, a model changes."""

    def __init__(self, fitted: ProbabilityTransformer) -> None:
        self.fitted = fitted
        self.seen = RowSample(min(_MOST_NUMBERS, _MOST_ROWS * len(fitted.classes_)))
        self.n_rows = self.n_decisions = self.n_left = 0
        self.n_without = 0  # rows without predictions, which are written all the same

    def add(self, values: np.ndarray, after: np.ndarray) -> None:
        """Count predictions as the file held them, and as they became."""
        self.seen.add(values)
        if not len(values):
            return
        kind, decision = kind_of(self.fitted), decision_of(self.fitted)
        before = kind.from_logits(values) if self.fitted.input == "logits" else values
        # As written: in single precision that may tip a tie, and a count can bear it.
        decided = decision.codes(before if decision.on_input else after)
        self.n_rows += int((before != after).any(axis=1).sum())
        self.n_decisions += int(np.count_nonzero(kind.decide(before) != decided))
        if decision.leaves_rows:
            self.n_left += int(np.count_nonzero(decided == after.shape[1]))

    def __str__(self) -> str:
        if not self.n_rows and not self.n_decisions:
            return "nothing changed"
        kind, n_rows = kind_of(self.fitted), self.seen.n_seen
        total = n_rows * len(self.fitted.classes_) if kind.is_multilabel else n_rows
        text = f"{self.n_decisions:,} of {plural(total, kind.words.decision)} changed"
        return f"{text}, {plural(self.n_left, 'row')} left to a person" if self.n_left else text


@contextmanager
def open_classes(
    source: Path, layout: Layout, fitted: FittedModel
) -> Iterator[tuple[TableSource, list[str]]]:
    """Open a table whose class columns, which come with it, are those that a model expects."""
    columns = [layout.prefix + name for name in names_of(fitted.classes_)]
    with open_table(source, layout, numbers=columns) as table:
        # Neither logits nor labels have a sum that would give away a class too many.
        sums = not (layout.logits or kind_of(fitted).is_multilabel)
        columns, spare = class_columns(table, layout, fitted.classes_, sums=sums)
        with spare_hint(spare):
            yield table, columns


def _adjust_table(changes: ChangeCount, layout: Layout, options: Apply) -> None:
    output, model = options.output, changes.fitted
    if str(output) != STANDARD and format_of(output) in (None, *ARRAYS):
        raise InputError(
            f"A table cannot become '{output.suffix}' without losing columns",
            remedy="Name a .csv, .tsv, .jsonl, .parquet, .arrow or .feather file.",
        )
    prediction = _name_of_decisions(options)
    names: dict[str, Any] = {"prefix": layout.prefix, "prediction": prediction}
    how: dict[str, Any] = {"force": options.force, "spreadsheet_safe": options.spreadsheet_safe}
    with open_classes(options.source, layout, model) as (table, columns):
        # Threads work ahead of the writer, so what was read waits here for its result. Not in a
        # `tee`: that keeps dozens of batches.
        waiting: deque[Any] = deque()
        ahead = _remembered(table.batches, waiting)
        if table.classes:  # answers of a service may have failed: equal ones stand in
            ahead = (_replaced(b, columns, lambda p: p.fill_null(1 / len(columns))) for b in ahead)
        adjusted = apply_batches(model, ahead, n_jobs=options.jobs, **names)
        schema = output_schema(model, table.schema, **names)
        with (
            write_table(output, schema, like=table, **how) as write,
            progress("Adjusting", table.n_rows) as advance,
        ):
            for batch in adjusted:
                before = waiting.popleft()
                is_there = find_predicted(table, before)
                after = column_matrix(batch, columns)
                write(_emptied(batch, ~is_there, {*columns, prediction}))
                # Only now is the batch known to be sound, and may count.
                changes.add(column_matrix(before, columns)[is_there], after[is_there])
                changes.n_without += int((~is_there).sum())
                advance(batch.num_rows)


def _name_of_decisions(options: Apply) -> str | None:
    return None if options.no_prediction else options.prediction or "prediction"


def _remembered(batches: Iterator[Any], waiting: deque[Any]) -> Iterator[Any]:
    """The batches, each put among those that wait."""
    for batch in batches:
        waiting.append(batch)
        yield batch


def _emptied(batch: Any, is_missing: np.ndarray, names: Collection[str | None]) -> Any:
    """The batch with nothing in the rows that are missing, in the columns that are named."""
    if not is_missing.any():
        return batch
    missing = pa.array(is_missing)
    return _replaced(batch, names, lambda p: pc.if_else(missing, pa.scalar(None, p.type), p))


def _replaced(batch: Any, names: Collection[str | None], change: Callable[[Any], Any]) -> Any:
    """The batch with other values in the columns that are named."""
    columns = [
        change(column) if name in names else column
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
    ]
    return type(batch).from_arrays(columns, schema=batch.schema)


def _adjust_arrays(changes: ChangeCount, layout: Layout, options: Apply) -> None:
    model, safe = changes.fitted, options.spreadsheet_safe
    target = find_target(options.output, spreadsheet_safe=safe)
    if target == "npy" and options.prediction is not None:
        rule = "An .npy file holds probabilities alone"
        raise InputError(rule, "--prediction is given, too", "Name an .npz file or a table.")
    predictions = read_predictions(options.source, layout, classes=model.classes_)
    check_kind(predictions, model)
    with by_class(predictions.classes):
        proba = check_adjusted(model.transform(predictions.proba))
    changes.add(predictions.proba, proba)
    name = _name_of_decisions(options)
    added = {}
    if name is not None and target != "npy":
        added[name] = _decided(model, predictions.proba, as_array=target == "npz")
    write_predictions(
        replace(predictions, proba=proba, input="proba"),
        options.output,
        layout,
        added=added,
        force=options.force,
        spreadsheet_safe=safe,
    )
    if name is not None and not added:
        _warn_of_decisions(model)


def _decided(model: FittedModel, proba: np.ndarray, *, as_array: bool) -> Any:
    """What a model decides on each row: a column of a table, or an array without objects.

    In an array a row that is left to a person is NaN among numbers and empty among names, and
    several labels are a 0/1 matrix.
    """
    codes = decision_codes(model, proba)
    if as_array and codes.ndim == 2:
        return codes.astype(np.uint8)
    column = class_column(codes, class_values(model))
    if not as_array:
        return column
    values = column.to_numpy(zero_copy_only=False)
    if values.dtype != object:
        return values
    return np.array(["" if value is None else str(value) for value in values.tolist()])


def _warn_of_decisions(fitted: FittedModel) -> None:
    """Say where probabilities alone do not tell what a model decides."""
    decision = decision_of(fitted)
    if decision.kind == "thresholds":
        plain, what = bool((decision.values == HALF).all()), "every label above a half"
    else:
        plain, what = decision.is_argmax and not decision.leaves_rows, "the most probable class"
    if not plain:
        errors.say(
            "Warning: The output holds no decisions, and what this model decides is not always "
            f"{what}. Write an .npz file or a table, which hold decisions, too, or pass "
            "--no-prediction."
        )


def _tell(changes: ChangeCount, output: Path, seconds: float, *, json: bool) -> bool:
    """Print what was done; warn, and return True, where predictions no longer look as at fit."""
    rows, n_rows = changes.seen.rows, changes.seen.n_seen + changes.n_without
    drift = None if rows is None else changes.fitted.drift(rows)
    drifted = drift is not None and drift.advice != "nothing"
    # The standard output is for the rows where these go there.
    screen = errors if str(output) == STANDARD else out
    if drift is not None and drifted:
        errors.say(f"Warning: {advised(drift.advice, str(drift))}")
    if json:
        record = {
            "output": str(output),
            "n_rows": n_rows,
            "n_rows_changed": changes.n_rows,
            "n_decisions_changed": changes.n_decisions,
            "n_rows_left": changes.n_left,
            "seconds": seconds,
            "drift": None if drift is None else asdict(drift),
        }
        print_json(record, screen)
    else:
        rate = f"{n_rows / seconds:,.0f} rows a second"
        summary = f"{plural(n_rows, 'row')} in {seconds:.1f} s ({rate}), {changes}"
        screen.say(f"{summary}: {'standard output' if screen is errors else output}")
    return drifted


def adapt(options: Adapt) -> int:
    """Estimate the balance of new predictions, and write a model for it if that is assumed."""
    model, new, output = options.model, options.new, options.output
    is_assumed = options.assume is not None
    if is_assumed != (output is not None) or (options.insist and not is_assumed):
        raise InputError(
            "An adapted model needs --assume label-shift and --output",
            f"{'--output' if is_assumed else '--assume'} is not given",
            "Without both, only the class balance is estimated.",
        )
    if output is not None:
        check_output(output, force=options.force, others=[model, new])
    fitted = load(model)
    if not hasattr(fitted, "adapt"):
        raise InputError(
            "Only a model that was tuned on labels can be adapted",
            f"'{model}' was not (it is {type(fitted).__name__})",
            "Tune one with `altnorm tune`, without --no-labels.",
        )
    rows = _read_rows(fitted, new, replace(options.columns, logits=fitted.input == "logits"))
    word = "label_shift" if is_assumed else None
    adapted = unnamed(fitted).adapt(rows, assume=word, insist=options.insist)
    if hasattr(fitted, "feature_names_in_"):
        adapted.feature_names_in_ = fitted.feature_names_in_
    if output is not None:
        about = {**model_metadata(model)["about"], "adapted to": file_words(new)}
        adapted.save(output, force=options.force, about=about)
    if options.json:
        print_json({"model": output and str(output), "shift": _shift_record(adapted.shift_)})
    else:
        _show_shift(adapted.shift_)
        if output is not None:
            out.say(f"Model: {output}")
            prefix = prefix_words(options.columns)
            out.say(f"Next: altnorm ask {output} {new} --against {model}{prefix} -o ask.csv")
        elif not adapted.shift_.shift_rejected:
            out.say(
                f"If you know that only the balance has changed: altnorm adapt {model} {new} "
                "--assume label-shift -o MODEL2"
            )
    return int(options.strict and adapted.shift_.shift_rejected)


def _shift_record(shift: Shift) -> dict[str, Any]:
    """A shift with its shares by class."""
    record = asdict(shift)
    shares = [record.pop(name) for name in ("before", "after", "low", "high")]
    fields = ("before", "now", "low", "high")
    by_class = {
        name: dict(zip(fields, values, strict=True))
        for name, *values in zip(record.pop("names"), *shares, strict=True)
    }
    return {**record, "shares": by_class}


def _read_rows(fitted: FittedModel, source: Path, layout: Layout) -> np.ndarray:
    """Predictions from a file, of a long one rows at equal steps."""
    sample = RowSample()
    if find_source(source, layout).format not in ARRAYS:
        with open_classes(source, layout, fitted) as (table, columns):
            for batch in table.batches:
                sample.add(column_matrix(batch, columns)[find_predicted(table, batch)])
    else:
        predictions = read_predictions(source, layout, classes=fitted.classes_)
        check_kind(predictions, fitted)
        sample.add(predictions.proba)
    if sample.rows is None:
        raise InputError(
            "Adapting needs predictions",
            f"'{source}' has no rows",
            "Name a file with a few hundred rows.",
        )
    return sample.rows


def _show_shift(shift: Shift) -> None:
    """Print the sentences of a shift, and the classes whose share changes most."""
    out.say(str(shift))
    order = sorted(range(len(shift.names)), key=lambda j: -abs(shift.after[j] - shift.before[j]))
    for j in order[:_N_SHOWN]:
        out.say(
            f"  {shift.names[j]}: {shift.before[j]:.1%} before, {shift.after[j]:.1%} now "
            f"({shift.low[j]:.1%} to {shift.high[j]:.1%})"
        )

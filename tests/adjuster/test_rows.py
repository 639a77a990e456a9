"""Adjuster on rows: weights, groups, rows without labels, and what must not matter."""

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import PredefinedSplit

import altnorm
from altnorm import Adjuster, AlternatingNormalizer, AlternatingNormalizerCV, InputError
from tests.problems import SMALL, planted

FAMILIES = ("alternating", "bias", "matrix", "curves")


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("scoring", [None, "f1_macro"])
def test_weight_two_is_a_row_twice(family, scoring):
    """But for penalties and the row itself: copies are more rows, weights are not."""
    proba, y = planted(600)
    weight, folds = 1 + 2 * (y == 3), np.arange(600) % 3
    plain = Adjuster((family,), scoring=scoring, cv=list(PredefinedSplit(folds).split()))
    weighted, copied = clone(plain), clone(plain)
    copied.set_params(cv=list(PredefinedSplit(folds.repeat(weight)).split()))
    rows = np.arange(600)  # copies are one unit of evidence
    plain.fit(proba, y, groups=rows)
    weighted.fit(proba, y, sample_weight=weight, groups=rows)
    copied.fit(proba.repeat(weight, axis=0), y.repeat(weight), groups=rows.repeat(weight))
    assert weighted.verdict_.before == pytest.approx(copied.verdict_.before)
    expected = copied.transform(proba)
    far, near = (np.abs(fit.transform(proba) - expected).mean() for fit in (plain, weighted))
    # Settings of alternating normalization are a close choice; quartiles count rows, not weights.
    assert near < {"alternating": 0.6, "curves": 0.25}.get(family, 0.1) * far


ESTIMATORS = [Adjuster(), Adjuster(("bias",), scoring="f1_macro"), AlternatingNormalizerCV(**SMALL)]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=["all", "f1", "paper"])
@pytest.mark.parametrize("scale", [1e-50, None, 1e50], ids=str)
def test_only_ratios_of_weights_count(estimator, scale):
    proba, y = planted(300)
    weight = np.random.default_rng(0).uniform(0.1, 2, 300)
    scaled = weight / weight.sum() if scale is None else scale * weight
    fit, again = (clone(estimator).fit(proba, y, sample_weight=w) for w in (weight, scaled))
    np.testing.assert_allclose(again.transform(proba), fit.transform(proba), atol=1e-6)
    np.testing.assert_array_equal(again.predict(proba), fit.predict(proba))
    # Class weights are cut next to a row, which rounding may move to the other side.
    assert again.verdict_.p_value == pytest.approx(fit.verdict_.p_value, rel=0.1)
    assert again.verdict_.adopted == fit.verdict_.adopted


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=["all", "f1", "paper"])
@pytest.mark.parametrize("grouped", [False, True])
def test_a_row_of_weight_0_is_no_row(estimator, grouped):
    """Wherever it is, whatever its label says: nothing is different, not even a count."""
    proba, y = planted(300)
    weight = np.random.default_rng(0).uniform(0.1, 2, 300)
    noise = np.random.default_rng(1)
    at, groups = np.sort(noise.integers(0, 301, 200)), np.arange(300) // 2
    alone = clone(estimator).fit(proba, y, weight, groups if grouped else None)
    among = clone(estimator).fit(
        np.insert(proba, at, noise.dirichlet(np.ones(4), 200), axis=0),
        np.insert(y, at, noise.integers(0, 4, 200)),
        np.insert(weight, at, 0.0),
        np.insert(groups, at, 1000) if grouped else None,
    )
    assert joblib.hash(vars(among)) == joblib.hash(vars(alone))


def test_some_weight_must_be_on_a_row_with_a_label():
    proba, y = planted(300)
    weight = np.r_[np.ones(200), np.zeros(100)]
    labels = np.where(weight > 0, np.nan, y)
    with pytest.raises(InputError, match="must be positive for some rows with a label; all are 0"):
        Adjuster().fit(proba, labels, sample_weight=weight)


def test_groups_are_the_units_of_the_evidence():
    """Every row four times: copies are no evidence if they are known to belong together."""
    proba, y = planted(100, seed=3)
    alone = Adjuster(("bias",)).fit(proba, y).verdict_
    copies, labels = np.tile(proba, (4, 1)), np.tile(y, 4)
    groups = np.tile([f"person {i}" for i in range(100)], 4)
    grouped = Adjuster(("bias",)).fit(copies, labels, groups=groups).verdict_
    naive = Adjuster(("bias",)).fit(copies, labels).verdict_
    assert grouped.std_error == pytest.approx(alone.std_error, rel=0.35)
    assert naive.std_error < 0.7 * alone.std_error


def test_groups_that_are_none():
    for groups, message in (
        (np.arange(3), r"`groups` must have one entry per row; its shape is \(3,\)"),
        ([1.0] * 99 + [np.nan], "Every row must have a group; 1 of 100 rows .* first is row 99"),
        ([None] + ["a"] * 99, "Every row must have a group; .* first is row 0"),
        ([7] * 100, "at least 2 groups"),
        (np.array([{}] * 100), "`groups` must hold names or numbers; unhashable type: 'dict'"),
    ):
        with pytest.raises(InputError, match=message):
            Adjuster(("bias",)).fit(*planted(100), groups=groups)


@pytest.mark.parametrize("missing", [None, np.nan, -1], ids=str)
def test_rows_without_labels_serve_as_reference(missing):
    proba, y = planted(600)
    labelled = np.arange(600) % 3 == 0
    labels = y.astype(object) if missing is None else y.astype(float if missing != -1 else int)
    labels[~labelled] = missing
    fitted = Adjuster(("alternating",), calibrate=False).fit(proba, labels)
    assert fitted.verdict_.n_rows == labelled.sum()
    assert fitted.classes_.dtype.kind == "i"  # NaN makes floats of them
    assert len(fitted.model_.reference_) == 600  # the reference is "all"
    fresh, truth = planted(3000, seed=1)
    assert fitted.score(fresh, truth) > (fresh.argmax(axis=1) == truth).mean() + 0.05
    by_bias = Adjuster(("bias",)).fit(proba, labels)
    alone = Adjuster(("bias",)).fit(proba[labelled], y[labelled])
    np.testing.assert_array_equal(by_bias.transform(proba), alone.transform(proba))


def test_a_row_without_a_group_is_counted_among_all_rows():
    proba, y = planted(100)
    labels = y.astype(float)
    labels[:10] = np.nan
    groups = [None] * 11 + ["a", 2] * 44 + [2.5]
    with pytest.raises(InputError, match=r"1 of 90 rows with a label have none, .* row 10"):
        Adjuster(("bias",)).fit(proba, labels, groups=groups)
    groups[10] = "b"  # names and numbers may be mixed
    assert Adjuster(("bias",)).fit(proba, labels, groups=groups).verdict_.n_rows == 90


@pytest.mark.parametrize("kind", ["Int64", "string", "category", "boolean"])
def test_missing_values_of_a_data_frame_are_missing_labels(kind):
    proba, y = planted(300)
    two = np.stack([proba[:, 0], 1 - proba[:, 0]], axis=1)
    labels = pd.Series(y > 0).astype(kind)
    labels[:10] = None
    assert Adjuster(("bias",)).fit(two, labels).verdict_.n_rows == 290
    with pytest.raises(InputError, match="Some rows must have a label; none of 10 has one"):
        Adjuster().fit(two[:10], labels[:10])


def test_minus_one_may_be_a_class_and_is_refused_where_it_could_be_either():
    """A class that happens to be absent must not make -1 a class, and shift all the others."""
    proba, y = planted(300)
    two = np.stack([proba[:, 0], 1 - proba[:, 0]], axis=1)
    assert Adjuster(("bias",)).fit(two, np.where(y == 0, -1, 1)).classes_.tolist() == [-1, 1]
    labels = np.where((np.arange(300) % 2 == 0) & (y < 3), y, -1)
    with pytest.raises(InputError, match="or 0 to 3, of which the labels show all but one"):
        Adjuster().fit(proba, labels)
    as_floats = np.where(labels < 0, np.nan, labels)
    assert Adjuster(("bias",)).fit(proba, as_floats).verdict_.n_rows == (labels >= 0).sum()
    as_text = labels.astype(str)
    assert Adjuster(("bias",)).fit(proba, as_text).classes_.tolist() == ["-1", "0", "1", "2"]


# Invariances.


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("scoring", [None, "balanced_accuracy"])
def test_the_order_of_classes_does_not_matter(family, scoring):
    proba, y = planted(250)
    order = np.array([2, 0, 3, 1])
    plain = Adjuster((family,), scoring=scoring).fit(proba, y)
    moved = Adjuster((family,), scoring=scoring).fit(proba[:, order], np.argsort(order)[y])
    assert moved.verdict_.gain == pytest.approx(plain.verdict_.gain, abs=0.005)
    assert moved.family_ == plain.family_
    expected = plain.transform(proba)[:, order]
    np.testing.assert_allclose(moved.transform(proba[:, order]), expected, atol=2e-3)
    same = np.argsort(order)[plain.predict(proba)] == moved.predict(proba[:, order])
    assert same.mean() > 0.99


LAST_BITS = 1e-13


@pytest.mark.parametrize("m", [2, 3, 12])
def test_other_rows_never_decide_which_rows_are_in_doubt(m):
    """Also where the ambiguity of a row is the threshold itself."""
    rng = np.random.default_rng(m)
    rows, reference = rng.dirichlet(np.ones(m), 40), rng.dirichlet(np.full(m, 0.1), 200)
    for i, threshold in enumerate(altnorm.ambiguity(rows)):
        model = AlternatingNormalizer(threshold=float(threshold), reference="all").fit(reference)
        together = model.transform(rows)[i]
        for part in (rows[i : i + 1], rows[i : i + 3]):
            np.testing.assert_allclose(model.transform(part)[0], together, atol=LAST_BITS, rtol=0)

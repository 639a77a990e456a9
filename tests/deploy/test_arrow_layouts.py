"""Class columns and columns of lists, matched by name, come out as `transform` says."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from altnorm import AlternatingNormalizer, AlternatingNormalizerCV, ambiguity
from altnorm._base.errors import InputError, InputTypeError
from altnorm.peers import Identity, LabelThresholds, TemperatureScaling
from tests.batches import (
    CLASSES,
    LIST_TYPES,
    class_batch,
    draw,
    fit_drawn,
    list_batch,
    list_matrix,
    matrix,
)
from tests.programs import FORMS, LABEL_MODELS, several, single

pa = pytest.importorskip("pyarrow")
arrow = pytest.importorskip("altnorm.arrow")


@pytest.fixture(scope="module")
def normalizer():
    return fit_drawn(CLASSES, 200)


class TestColumns:
    def test_equal_to_transform_and_other_columns_untouched(self, normalizer):
        proba = draw(50, seed=1)
        ids = pa.array(range(50))
        text = pa.array(["x", None] * 25)
        batch = pa.record_batch(
            [ids, *(pa.array(proba[:, j].copy()) for j in range(4)), text],
            names=["id", *CLASSES, "text"],
        )
        (out,) = arrow.apply_batches(normalizer, [batch])
        assert out.schema.names == [*batch.schema.names, "prediction"]
        assert out["prediction"].to_pylist() == normalizer.predict(proba).tolist()
        assert out["id"].equals(ids)
        assert out["text"].equals(text)
        np.testing.assert_array_equal(matrix(out), normalizer.transform(proba))

    @given(order=st.permutations(range(4)), cuts=st.lists(st.integers(0, 30), max_size=3))
    def test_neither_order_of_columns_nor_cuts_matter(self, normalizer, order, cuts):
        proba = draw(30, seed=2)
        batch = class_batch(proba[:, order], CLASSES[order])
        edges = [0, *sorted(cuts), 30]
        parts = [batch.slice(a, b - a) for a, b in pairwise(edges)]
        out = pa.Table.from_batches(arrow.apply_batches(normalizer, parts, prediction=None))
        assert out.column_names == batch.schema.names
        expected = normalizer.transform(proba)
        for j, name in enumerate(CLASSES):
            np.testing.assert_array_equal(out[name].to_numpy(), expected[:, j])

    def test_confident_rows_keep_every_bit(self, normalizer):
        proba = draw(50, seed=3, dtype=np.float32)
        (out,) = arrow.apply_batches(normalizer, [class_batch(proba)])
        kept = ambiguity(proba) <= normalizer.threshold
        assert 0 < kept.sum() < 50
        assert out["ant"].type == pa.float32()
        np.testing.assert_array_equal(matrix(out)[kept], proba[kept])

    def test_types_may_differ_from_column_to_column(self, normalizer):
        batch = class_batch(draw(9, seed=4)).set_column(
            1, "bee", pa.array(draw(9, seed=4)[:, 1].astype(np.float32))
        )
        (out,) = arrow.apply_batches(normalizer, [batch], prediction=None)
        assert out.schema.equals(batch.schema)

    def test_prefix_and_output_prefix(self, normalizer):
        proba = draw(20, seed=5)
        batch = class_batch(proba, [f"p_{name}" for name in CLASSES], ant=np.zeros(20))
        (out,) = arrow.apply_batches(normalizer, [batch], prefix="p_", output="new_")
        added = [*(f"new_{name}" for name in CLASSES), "prediction"]
        assert out.schema.names == [*batch.schema.names, *added]
        assert out.select(batch.schema.names).equals(batch)
        np.testing.assert_array_equal(
            matrix(out, [f"new_{name}" for name in CLASSES]), normalizer.transform(proba)
        )

    def test_columns_may_be_listed_in_any_order(self, normalizer):
        proba = draw(20, seed=6)
        (out,) = arrow.apply_batches(normalizer, [class_batch(proba)], columns=CLASSES[::-1])
        np.testing.assert_array_equal(matrix(out), normalizer.transform(proba))

    def test_integer_classes_are_matched_by_their_digits(self):
        proba = draw(30, seed=7)
        normalizer = AlternatingNormalizer().fit(draw(40))
        batch = class_batch(proba[:, ::-1], [3, 2, 1, 0])
        (out,) = arrow.apply_batches(normalizer, [batch], prediction="class")
        np.testing.assert_array_equal(matrix(out, range(4)), normalizer.transform(proba))
        assert out["class"].type == pa.int64()
        assert out["class"].to_pylist() == normalizer.predict(proba).tolist()

    def test_fitted_on_a_data_frame(self):
        pd = pytest.importorskip("pandas")
        frame = pd.DataFrame(draw(60), columns=CLASSES)
        normalizer = AlternatingNormalizer(threshold=0.6).fit(frame)
        proba = draw(20, seed=8)
        (out,) = arrow.apply_batches(normalizer, [class_batch(proba)], prediction="class")
        expected = normalizer.transform(pd.DataFrame(proba, columns=CLASSES))
        np.testing.assert_array_equal(matrix(out), expected)
        assert hasattr(normalizer, "feature_names_in_")


class TestNames:
    def test_missing_class(self, normalizer):
        batch = class_batch(draw(3)[:, :3], CLASSES[:3])
        with pytest.raises(InputError, match=r"1 of 4 are missing, the first is 'dog'"):
            next(arrow.apply_batches(normalizer, [batch]))

    def test_renamed_class_is_not_taken_by_position(self, normalizer):
        batch = class_batch(draw(3), ["ant", "bee", "cat", "dogs"])
        with pytest.raises(InputError, match=r"unknown column 'dogs': did you mean 'dog'"):
            next(arrow.apply_batches(normalizer, [batch]))

    @pytest.mark.parametrize("how", ["prefix", "columns"])
    def test_extra_class(self, normalizer, how):
        names = ["p_" + name for name in [*CLASSES, "eel"]]
        options = {"prefix": "p_"} | ({"columns": names} if how == "columns" else {})
        with pytest.raises(InputError, match="no known class, the first is 'p_eel'"):
            next(arrow.apply_batches(normalizer, [class_batch(draw(3, 5), names)], **options))

    def test_column_twice(self, normalizer):
        batch = class_batch(draw(3)).append_column("dog", pa.array([0.0] * 3))
        with pytest.raises(InputError, match=r"'dog' must be there once; it is there 2 times"):
            next(arrow.apply_batches(normalizer, [batch]))

    def test_no_such_column_of_lists(self, normalizer):
        with pytest.raises(InputError, match=r"'score' must be there once; it is there 0 times"):
            next(arrow.apply_batches(normalizer, [list_batch(draw(3))], columns="score"))

    @pytest.mark.parametrize("option", ["output", "prediction"])
    def test_appended_column_must_be_new(self, normalizer, option):
        with pytest.raises(InputError, match="there is a column 'scores' already"):
            next(
                arrow.apply_batches(
                    normalizer, [list_batch(draw(3))], columns="scores", **{option: "scores"}
                )
            )


class TestLists:
    @pytest.mark.parametrize("kind", LIST_TYPES)
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_equal_to_transform(self, normalizer, kind, dtype):
        proba = draw(40, seed=9, dtype=dtype)
        batch = list_batch(proba, kind)
        options = {"columns": "scores", "prediction": None}
        out = list(arrow.apply_batches(normalizer, [batch.slice(0, 7), batch.slice(7)], **options))
        assert all(part.schema.equals(batch.schema) for part in out)
        np.testing.assert_array_equal(
            np.concatenate([list_matrix(part) for part in out]), normalizer.transform(proba)
        )

    def test_output_is_a_new_column(self, normalizer):
        batch = list_batch(draw(40, seed=9), "list")
        (out,) = arrow.apply_batches(normalizer, [batch], columns="scores", output="adjusted")
        assert out["scores"].equals(batch["scores"])
        assert out.schema.field("adjusted").type == batch.schema.field("scores").type
        np.testing.assert_array_equal(
            list_matrix(out, "adjusted"), normalizer.transform(draw(40, seed=9))
        )

    @pytest.mark.parametrize("kind", ["fixed", "list"])
    def test_half_precision(self, normalizer, kind):
        proba = draw(200, seed=10, dtype=np.float16)
        (out,) = arrow.apply_batches(normalizer, [list_batch(proba, kind)], columns="scores")
        wide = proba.astype(np.float64)
        wide /= wide.sum(axis=1, keepdims=True)
        found = list_matrix(out)
        assert found.dtype == np.float16
        np.testing.assert_allclose(found, normalizer.transform(wide), atol=1e-3)
        kept = ambiguity(wide) < normalizer.threshold - 1e-3
        np.testing.assert_array_equal(found[kept], proba[kept])

    def test_wrong_length_names_the_row(self, normalizer):
        rows = [*draw(3).tolist(), [0.5, 0.5], *draw(2).tolist()]
        batch = pa.record_batch({"scores": rows})
        stream = arrow.apply_batches(
            normalizer, [list_batch(draw(10), "list"), batch], columns="scores"
        )
        next(stream)
        with pytest.raises(InputError, match=r"1 in this batch do not, .* row 13 \(length 2\)"):
            next(stream)

    def test_wrong_fixed_size(self, normalizer):
        batch = pa.record_batch({"scores": pa.array([[0.5, 0.5]], pa.list_(pa.float64(), 2))})
        with pytest.raises(InputError, match="one entry per class, 4; their type says 2"):
            next(arrow.apply_batches(normalizer, [batch], columns="scores"))

    def test_not_a_list(self, normalizer):
        batch = pa.record_batch({"scores": [1.0]})
        with pytest.raises(InputTypeError, match=r"must hold lists .* its type is double"):
            next(arrow.apply_batches(normalizer, [batch], columns="scores"))

    def test_integers(self, normalizer):
        batch = pa.record_batch({"scores": [[1, 0, 0, 0]]})
        with pytest.raises(InputTypeError, match="floating-point numbers; its type is list"):
            next(arrow.apply_batches(normalizer, [batch], columns="scores"))


class TestPredictions:
    def test_one_label_a_row(self, normalizer):
        proba = draw(40, seed=11)
        (out,) = arrow.apply_batches(normalizer, [class_batch(proba)], prediction="class")
        assert out["class"].to_pylist() == normalizer.predict(proba).tolist()

    @pytest.mark.parametrize("multilabel", ["pairs", "labelwise"])
    def test_several_labels_a_row(self, multilabel):
        rng = np.random.default_rng(12)
        normalizer = AlternatingNormalizer(multilabel=multilabel).fit(rng.uniform(size=(60, 4)))
        normalizer.classes_ = CLASSES
        proba = np.vstack([rng.uniform(size=(30, 4)), np.zeros((1, 4))])
        (out,) = arrow.apply_batches(normalizer, [class_batch(proba)], prediction="labels")
        np.testing.assert_array_equal(matrix(out), normalizer.transform(proba))
        expected = [CLASSES[row == 1].tolist() for row in normalizer.predict(proba)]
        assert out["labels"].to_pylist() == expected
        assert out["labels"][30].as_py() == []

    @pytest.mark.parametrize(("model", "rule"), FORMS)
    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    def test_the_decision_for_a_purpose(self, model, rule, dtype):
        fitted, values = single(model, rule, "proba", m=4, classes=CLASSES)
        rows = values[:100].astype(dtype)
        rows /= rows.sum(axis=1, keepdims=True)
        batches = [class_batch(rows[:70]), class_batch(rows[70:70]), class_batch(rows[70:])]
        out = pa.Table.from_batches(arrow.apply_batches(fitted, batches))
        # Products of other shapes sum in another order.
        tolerance = 1e-12 if dtype == np.float64 else 1e-6
        np.testing.assert_allclose(matrix(out), fitted.transform(rows), atol=tolerance, rtol=0)
        assert out["prediction"].to_pylist() == fitted.predict(rows).tolist()
        assert (out["prediction"].null_count > 0) == (rule == "person")

    @pytest.mark.parametrize("model", LABEL_MODELS)
    def test_thresholds_of_labels(self, model):
        fitted, values = several(model, "proba")
        (out,) = arrow.apply_batches(fitted, [class_batch(values, range(6))])
        np.testing.assert_array_equal(matrix(out, range(6)), fitted.transform(values))
        expected = [np.flatnonzero(row).tolist() for row in fitted.predict(values)]
        assert out["prediction"].to_pylist() == expected

    def test_labels_of_a_peer_with_its_own_rule(self):
        rng = np.random.default_rng(13)
        labels = rng.integers(2, size=(80, 4))
        proba = np.clip(0.5 * labels + rng.uniform(0, 0.5, size=(80, 4)), 0, 1)
        peer = LabelThresholds().fit(proba, labels)
        (out,) = arrow.apply_batches(peer, [class_batch(proba, range(4))], prediction="labels")
        expected = [np.flatnonzero(row).tolist() for row in peer.predict(proba)]
        assert out["labels"].to_pylist() == expected

    @pytest.mark.parametrize("peer", [Identity(), TemperatureScaling()])
    def test_peers(self, peer):
        peer.fit(draw(80), np.tile(CLASSES, 20))
        proba = draw(30, seed=14)
        (out,) = arrow.apply_batches(peer, [class_batch(proba)], prediction="class")
        np.testing.assert_array_equal(matrix(out), peer.transform(proba))
        assert out["class"].to_pylist() == peer.predict(proba).tolist()

    def test_tuned(self):
        rng = np.random.default_rng(15)
        labels = rng.integers(4, size=300)
        scores = rng.normal(size=(300, 4)) + 1.5 * np.eye(4)[labels] + [1.5, 0, 0, 0]
        proba = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
        tuned = AlternatingNormalizerCV(
            alphas=[1.0], depths=[1], thresholds=[0.5], cv=2, random_state=0
        ).fit(proba, CLASSES[labels])
        (out,) = arrow.apply_batches(tuned, [class_batch(proba)], prediction="class")
        np.testing.assert_array_equal(matrix(out), tuned.transform(proba))
        assert out["class"].to_pylist() == tuned.predict(proba).tolist()

    def test_logits(self):
        rng = np.random.default_rng(16)
        normalizer = AlternatingNormalizer(input="logits").fit(rng.normal(size=(80, 4)))
        logits = rng.normal(size=(20, 4)).astype(np.float16)
        (out,) = arrow.apply_batches(normalizer, [class_batch(logits, range(4))])
        expected = normalizer.transform(logits.astype(np.float32))
        np.testing.assert_allclose(matrix(out, range(4)), expected, atol=1e-3)


def test_a_prediction_is_never_less_probable_than_another_class_as_written(normalizer):
    """It is decided before rounding: in half precision the two largest may be written as equal."""
    proba = draw(20_000, seed=3).astype(np.float16)
    (out,) = arrow.apply_batches(normalizer, [class_batch(proba)], prediction="class")
    written, names = matrix(out), CLASSES.tolist()
    codes = [names.index(name) for name in out["class"].to_pylist()]
    np.testing.assert_array_equal(written[np.arange(len(written)), codes], written.max(axis=1))

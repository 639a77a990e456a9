"""What kind of labels a problem has, resolved once."""

import numpy as np
import pytest

from altnorm import InputError, ambiguity
from altnorm.method.kinds import (
    Labelwise,
    Pairs,
    SingleLabel,
    kind_of,
    kind_of_labels,
    resolve_kind,
)
from altnorm.peers import Identity, LabelThresholds

ROWS = np.array([[0.7, 0.2, 0.1], [0.3, 0.4, 0.3]])
ENTRIES = np.array([[0.7, 0.6, 0.1], [0.3, 0.4, 0.2]])


@pytest.mark.parametrize(
    ("multilabel", "kind"), [(None, SingleLabel), ("pairs", Pairs), ("labelwise", Labelwise)]
)
def test_settings_name_a_kind(multilabel, kind):
    found = resolve_kind(multilabel)
    assert type(found) is kind
    assert found.multilabel == multilabel
    assert found.is_multilabel == (multilabel is not None)
    assert kind_of(Identity(multilabel=multilabel)) == found


def test_settings_that_name_none():
    with pytest.raises(InputError, match="`multilabel` must be None or 'pairs' or 'labelwise'"):
        resolve_kind("several")
    assert kind_of(LabelThresholds()) == Labelwise()


def test_decisions():
    assert SingleLabel().decide(ROWS).tolist() == [0, 1]
    assert Pairs().decide(ENTRIES).tolist() == [[1, 1, 0], [0, 0, 0]]
    with pytest.raises(InputError, match=r"must lie in \[0, 1\]; 2 of 6 entries .* \(1.4\)"):
        Labelwise().decide(2 * ENTRIES)


@pytest.mark.parametrize("kind", [Pairs(), Labelwise()])
def test_an_entry_is_as_ambiguous_as_the_row_of_its_yes_and_no(kind):
    both = np.stack([1 - ENTRIES.ravel(), ENTRIES.ravel()], axis=1)
    found = kind.ambiguity(ENTRIES)
    np.testing.assert_allclose(found.ravel(), ambiguity(both), rtol=1e-12)
    assert (kind.in_doubt(ENTRIES, 0.9) == (found > 0.9)).all()


def test_priors():
    y = np.array([[1, 1, 0], [0, 1, 0]], dtype=bool)
    assert Pairs().count_prior(y, 3, None, None).tolist() == [0.5, 0.5]
    weighted = Pairs().count_prior(y, 3, None, np.array([3.0, 1.0]))
    np.testing.assert_allclose(weighted, [7 / 12, 5 / 12])
    assert Labelwise().count_prior(y, 3, None, None).tolist() == [0.5, 1.0, 0.0]
    assert SingleLabel().count_prior(np.array([0, 0, 2, 1]), 3, None, None).tolist() == [
        0.5,
        0.25,
        0.25,
    ]


@pytest.mark.parametrize("kind", [SingleLabel(), Pairs(), Labelwise()])
def test_parts_cover_every_entry_once(kind):
    seen = np.zeros((4, 3), dtype=int)
    for part in kind.parts(3):
        seen[part] += 1
    assert (seen == 1).all()


def test_logits_are_never_guessed():
    with pytest.raises(InputError, match="`input` must be 'proba' or 'logits'"):
        SingleLabel().read(ROWS, "odds")
    np.testing.assert_allclose(SingleLabel().read(np.log(ROWS), "logits"), ROWS)
    np.testing.assert_allclose(Pairs().read(np.log(ENTRIES / (1 - ENTRIES)), "logits"), ENTRIES)
    with pytest.raises(InputError, match="pass input='logits'"):
        SingleLabel().read(np.log(ROWS) + 5, "proba")


def test_integers_in_an_object_array_are_class_labels():
    y = np.array([0, 2, 1, 2], dtype=object)
    found = SingleLabel().check_labels(y, (4, 3))
    assert found.tolist() == [0, 2, 1, 2]
    assert found.dtype.kind == "i"
    with pytest.raises(ValueError, match="Unknown label type"):
        SingleLabel().check_labels(np.array([0.5, 1.5, 2.5]), (3, 3))


@pytest.mark.parametrize("kind", [int, float, str, object])
def test_few_labels_of_many_classes_are_not_taken_for_a_regression(kind):
    labels = (2 * np.arange(60)).astype(str if kind is object else kind).astype(kind)
    found = SingleLabel().check_labels(labels, (60, 120))  # warnings are errors here
    assert found.tolist() == labels.tolist()


@pytest.mark.parametrize(
    "labels", [np.linspace(0, 1, 60), np.array(["a", 1] * 30, dtype=object)], ids=["real", "mixed"]
)
def test_what_is_no_class_label(labels):
    with pytest.raises((ValueError, TypeError), match=r"Unknown label type|not supported between"):
        SingleLabel().check_labels(labels, (60, 60))


KINDS = [SingleLabel(), Pairs(), Labelwise()]


@pytest.mark.parametrize("kind", KINDS)
def test_decoding_is_the_way_back_from_encoding(kind):
    classes = np.array(["b", "a", "c"])
    labels = y = np.array([[1, 1, 0], [0, 1, 0]], dtype=bool)
    if kind == SingleLabel():
        labels = np.array(["a", "c", "b"])
        y = np.array([1, 2, 0])
    codes = kind.encode(labels, classes)
    np.testing.assert_array_equal(codes, y)
    np.testing.assert_array_equal(kind.decode(codes, classes), labels)


@pytest.mark.parametrize(("kind", "n_parts"), list(zip(KINDS, (1, 1, 3), strict=True)))
def test_a_prior_has_an_entry_for_each_of_its_names(kind, n_parts):
    prior = kind.count_prior(None, 3, None, None)
    assert prior.shape == (len(kind.prior_names(["a", "b", "c"])),)
    assert len(kind.parts(3)) == n_parts


def test_only_classes_are_stratified():
    labels = np.array([0, 0, 0, 1])
    strata = SingleLabel().stratify(labels, 2, "uniform", None)
    np.testing.assert_allclose(np.bincount(labels, strata.weight), [2, 2])
    pairs = Pairs().stratify(np.eye(2, dtype=bool), 2, "uniform", np.array([1.0, 3.0]))
    assert pairs.weight.tolist() == [1, 3]
    assert pairs.absent.tolist() == [0, 0]


def test_rounding_is_undone_where_rows_have_a_sum():
    rounded = ROWS.astype(np.float16).astype(np.float32)
    assert (rounded.sum(axis=1) != 1).any()
    np.testing.assert_allclose(SingleLabel().unrounded(rounded, "float16").sum(axis=1), 1)
    assert Pairs().unrounded(rounded, "float16") is rounded
    far = np.array([[0.5, 0.2]], dtype=np.float32)
    assert (SingleLabel().unrounded(far, "float16") == far).all()


@pytest.mark.parametrize("multilabel", [False, True])
def test_labels_alone_tell_whether_they_are_several(multilabel):
    kind = kind_of_labels(multilabel)
    assert kind.is_multilabel == multilabel
    assert kind.named(np.array([1, 0, 1]) if multilabel else "x", np.array(["x", "y", "z"])) == (
        ["x", "z"] if multilabel else ["x"]
    )

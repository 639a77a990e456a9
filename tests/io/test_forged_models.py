"""A model file may come from anywhere: what it says is checked, and what it holds is ours."""

import json
import os
import tracemalloc
from copy import deepcopy
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from safetensors.numpy import save_file
from sklearn.metrics import make_scorer

from altnorm import AlternatingNormalizer, InputError, families, load
from altnorm._base import persistence
from altnorm._base.persistence import KINDS, Saved, model_metadata, read_content, write_content
from altnorm.adjuster.adaptation import KnownBalance
from altnorm.balance import Shift
from altnorm.decisions.decision import Decision
from altnorm.estimator.drift import Usage
from altnorm.evidence.gates import Gate, Gates
from altnorm.evidence.verdict import Caution
from tests.commands import draw
from tests.io.test_model import ROUND_TRIPS

ROWS, CODES = draw(200, 0)
MATRIX = np.eye(3, dtype=int)[CODES]


@cache
def _fitted(kind, settings):
    estimator = KINDS[kind](**dict(settings))
    if kind == "AlternatingNormalizerCV":
        estimator.set_params(alphas=(1.0,), depths=(1,))
    multi = dict(settings).get("multilabel") or KINDS[kind].multilabel
    return estimator.fit(ROWS, MATRIX if multi else CODES)


def fitted(kind, **settings):
    return deepcopy(_fitted(kind, tuple(settings.items())))


def test_every_estimator_on_probabilities_can_be_saved():
    names = {"Adjuster", "AlternatingNormalizer", "AlternatingNormalizerCV", *families.__all__}
    savable = {name for name, kind in KINDS.items() if issubclass(kind, Saved)}
    assert names == savable == {type(estimator).__name__ for estimator in ROUND_TRIPS}


def forge(estimator, path):
    """Save as an attacker would: whatever the values, with a digest that fits."""
    checked = persistence.check_model
    persistence.check_model = lambda *_: None
    try:
        estimator.save(path, force=True)
    finally:
        persistence.check_model = checked
    return path


def variants(record, **fields):
    """The record with each of some odd values in the place of a field."""
    return [replace(record, **{name: odd}) for name, values in fields.items() for odd in values]


NAN, NANS, THIRDS = float("nan"), np.full(3, np.nan), np.full(3, 1 / 3)
LABELWISE, PAIRS = {"multilabel": "labelwise"}, {"multilabel": "pairs"}
VERDICT, MIXTURE = fitted("Adjuster").verdict_, fitted("Adjuster").mixture_
PROMISE = fitted("Adjuster", target_accuracy=0.5).verdict_.promise
GATE = Gate("rise", True, 0.1, 0.0)
SHIFT = Shift(*[(1.0, 0.0, 0.0)] * 4, 0.5, 0.0, 0.5, False, True, 9, 1)
BALANCE = KnownBalance(THIRDS, np.full((2, 3), 1 / 3), np.array([0, 1]))
ODD_GATES = variants(GATE, name=["mood"], held=[1], value=["much"], route=["luck"])
ODD_CURVES = [
    odd
    for name in ("share", "accuracy", "units", "expected")
    for values in [getattr(PROMISE.coverage, name)]
    for odd in variants(PROMISE.coverage, **{name: [-values, values[1:]]})
]
ODD_PROMISES = variants(
    PROMISE, share=[2.0], n_decided=[10**6], n_labels=[-1], coverage=[None, *ODD_CURVES]
)
ODD_VERDICTS = [
    *variants(VERDICT, reason=["odd"], evidence=["odd"], cautions=[(Caution("a", "b", "c"),)]),
    *variants(VERDICT, before=[NAN], gain=[NAN, "0.1"], ci_low=[NAN], std_error=[NAN]),
    *variants(VERDICT, n_rows=[-1, 1.5], n_changed=[-1], n_fixed=[-1], n_left=[-1]),
    *variants(VERDICT, p_value=[NAN, -1], adopted=[1], promise=ODD_PROMISES),
    *variants(VERDICT, gates=[Gates([gate]) for gate in ("rise", *ODD_GATES)]),
]
ODD_MIXTURES = variants(
    MIXTURE,
    weights=[np.ones(4), np.array([2.0, -1.0, 0.0, 0.0]), THIRDS],
    baseline=[np.ones(3)],
    tempering=[NANS, np.array([-1.0, -9.0, 0.0]), np.array([1.0, -9.0, 2.0])],
    following=[np.ones(2), np.array([1.0, 9.0, 0.0])],
    keeps=["everything"],
    log_ratio=[np.zeros(4), NANS],
    is_multilabel=[True],
)
BAD = {
    ("AlternatingNormalizer",): {
        "alpha": [0.0, NAN, "1", 1e300],
        "depth": [0, 10**9, 10_001, 1.0, True],
        "threshold": [NAN, -0.5],
        "k_max": [1],
        "reference": ["none"],
        "smoothing": [np.inf],
        "multilabel": ["pair"],
        "input": ["guess"],
        "prior_": [NANS, np.ones(3), np.full(2, 0.5), np.array([2.0, -0.5, -0.5]), "uniform"],
        "reference_": [np.eye(2), np.empty((0, 3)), np.full((2, 3), np.nan), 5.0 * np.eye(3)],
        "reference_weight_": [np.ones(7), np.array([-1.0])],
        "classes_": [np.array(["a", "a", "b"]), np.array([1, "1", 2], object)],
        "n_features_in_": [7],
        "usage_": [
            Usage(np.array([-1, 0, 0]), 0, 5),
            Usage(np.zeros(2, int), 0, 5),
            Usage(np.zeros(3, int), 6, 5),
            [5],
        ],
        "offsets_": [np.array([0, 3])],
        "surprise_": [1],
    },
    ("AlternatingNormalizer", *LABELWISE.items()): {"offsets_": [np.array([0, 5, 2, 9])]},
    ("AlternatingNormalizer", *PAIRS.items()): {
        "offsets_": [np.array([0, 10**6])],
        "prior_": [np.array([0.5, np.nan])],
    },
    ("TemperatureScaling",): {"temperature_": [0.0, NAN]},
    ("LabelThresholds",): {"global_threshold_": [1.5], "thresholds_": [NANS]},
    ("MatrixScaling",): {
        "matrix_": [np.ones((2, 3))],
        "bias_": [NANS],
        "slope_": [0.0],
        "floor_": [1.0],
        "uniform_": [1.5],
    },
    ("CurveScaling",): {
        "facets": ["some"],
        "axes_": [np.ones((2, 3))],
        "edges_": [NANS],
        "weights_": [np.ones((3, 2))],
    },
    ("Adjuster",): {
        "mixture_": ["even", None, *ODD_MIXTURES],
        "model_": [
            None,
            fitted("MatrixScaling", input="logits"),
            fitted("BatchCalibration"),
            fitted("Identity", **LABELWISE),
        ],
        "decision_": [
            "argmax",
            Decision("dice", np.ones(3), np.eye(3)),
            *(Decision("weights", values) for values in (NANS, np.ones(4), np.ones((3, 3)))),
            Decision("costs", np.ones(3), np.eye(3)),
            *(Decision("weights", np.ones(3), np.ones((3, k))) for k in (1, 3)),
            *(Decision("thresholds", np.ones(3), np.ones((3, 2, k))) for k in (1, 3)),
            *(Decision("thresholds", np.ones(3), np.ones((3, k, 2))) for k in (1, 3)),
            Decision("weights", np.arange(1.0, 4), least=0.5),
            Decision("weights", np.ones(3), least=0.5, on_input=True),
            Decision("costs", np.eye(3), least=0.5),
        ],
        "family_": ["forest"],
        "families_": [[], {"bias": 1}, {1: VERDICT}],
        "verdict_": [None, *ODD_VERDICTS],
        "calibration_": ["yes"],
        "cv_results_": [[], {"a": 1}, {"a": np.eye(2)}, {"a": np.ones(2), "b": np.ones(3)}],
        "seen_rows_": [np.array([1, 2]), np.array([2, 1], dtype=np.uint64)],
        "balance_": [
            "even",
            *variants(BALANCE, shares=[np.eye(3)[0]], codes=[np.array([0, 3]), np.arange(3)]),
        ],
        "shift_": ["adapted", *variants(SHIFT, before=[(1.0,)], p_value=[1.5], n_rows=[-9])],
    },
}
CASES = [
    (kind, name, value)
    for kind, names in BAD.items()
    for name, values in names.items()
    for value in values
]


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    CASES,
    ids=lambda part: part if isinstance(part, str) else type(part).__name__,
)
def test_what_a_file_says_is_checked(tmp_path, kind, name, value):
    estimator = fitted(kind[0], **dict(kind[1:]))
    setattr(estimator, name, value)
    with pytest.raises(InputError, match=f"not a sound model: .*`{name}`"):
        load(forge(estimator, tmp_path / "m"))


FITTED = [name for name in vars(fitted("AlternatingNormalizer")) if name.endswith("_")]


@pytest.mark.parametrize("name", sorted({*FITTED} - {"classes_"}))
def test_missing_arrays_are_told(tmp_path, name):
    estimator = fitted("AlternatingNormalizer")
    delattr(estimator, name)
    with pytest.raises(InputError, match=f"must have `{name}`; it is missing"):
        load(forge(estimator, tmp_path / "m"))


def test_inner_models_are_checked(tmp_path):
    search = fitted("AlternatingNormalizerCV")
    of_four_classes = AlternatingNormalizer(reference="all").fit(np.full((5, 4), 0.25))
    search.best_normalizer_ = of_four_classes
    with pytest.raises(InputError, match=r"`best_normalizer_` .* a model for the same classes"):
        load(forge(search, tmp_path / "m"))
    search.best_normalizer_ = fitted("AlternatingNormalizer").set_params(alpha=-1.0)
    with pytest.raises(InputError, match="AlternatingNormalizer: `alpha` must be"):
        load(forge(search, tmp_path / "m"))
    adjuster = fitted("Adjuster")
    adjuster.model_ = fitted("MatrixScaling")
    adjuster.model_.bias_ = NANS
    with pytest.raises(InputError, match="`bias_` of MatrixScaling must be"):
        load(forge(adjuster, tmp_path / "m"))


def test_saving_checks_too(tmp_path):
    estimator = fitted("AlternatingNormalizer")
    estimator.prior_ = NANS
    with pytest.raises(InputError, match=r"`prior_` .* Fit it again"):
        estimator.save(tmp_path / "m")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": None},
        *({"kind": kind} for kind in ("os.system", "BaseEstimator", "Verdict", ["Adjuster"])),
        *({"settings": odd} for odd in (None, [], [1], "{", {"alpha": 1.0, "surprise": 1})),
        *({"settings": {"alpha": odd}} for odd in ({"float": "x"}, {"float": 1}, {}, [])),
        *({"settings": {"prior": {"dict": odd}}} for odd in ([[1]], [[{"list": []}, 1]])),
        *(
            {"settings": {"prior": {"record": kind, "fields": {}}}}
            for kind in ("Verdict", "AlternatingNormalizer", "Path")
        ),
        {"state": None},
        {"state": {"transform": 1}},
        {"state": {"__class__": "x"}},
        {"state": {"_sklearn_output_config": {"dict": [["transform", "pandas"]]}}},
        {"state": {"x_": {"estimator": {"kind": "eval", "settings": {}, "state": {}}}}},
        {"state": {"prior_": {"tensor": ["prior_"], "fortran": False}}},
        {"state": {"prior_": {"tensor": "prior_"}}},
        {"state": {"reference_": {"tensor": "nowhere", "fortran": False}}},
        {"state": {"classes_": None}},
        *(
            {"state": {"classes_": {"texts": texts, "dtype": dtype}}}
            for texts, dtype in (
                (["a", "b", 3], "U"),
                (["a", "b", "c"], "<i8"),
                ([{"list": [1]}] * 3, "O"),
                (["a"], "nonsense"),
            )
        ),
    ],
    ids=str,
)
def test_forged_metadata_is_one_kind_of_error(tmp_path, changes):
    path = tmp_path / "m"
    fitted("AlternatingNormalizer").save(path)
    assert json.dumps(model_metadata(path))
    content, tensors = read_content(path)
    content = {k: v for k, v in (content | changes).items() if v is not None}
    write_content(path, content, tensors)
    with pytest.raises(InputError):
        load(path)


def test_class_names_take_no_more_memory_than_they_need(tmp_path):
    path = tmp_path / "m"
    fitted("AlternatingNormalizer").save(path)
    content, tensors = read_content(path)
    texts = ["a" * 99_999] + ["a"] * 9999
    content["state"]["classes_"] = {"texts": texts, "dtype": "U"}
    write_content(path, content, tensors)
    tracemalloc.start()
    for read in (load, model_metadata):
        with pytest.raises(InputError, match=r"'.*m' is not"):
            read(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10e6  # the array would take 4 GB


def test_a_score_that_is_no_number_can_be_saved(tmp_path):
    scoring = make_scorer(lambda y, decided: NAN)
    adjuster = fitted("Adjuster").set_params(scoring=scoring).fit(ROWS, CODES)
    assert np.isnan(adjuster.verdict_.gain)
    adjuster.save(tmp_path / "m")
    assert np.isnan(load(tmp_path / "m").verdict_.gain)


@pytest.mark.parametrize(
    "name", ["transform", "_transform", "_check_params", "__dict__", "any_library", "input", "x_"]
)
def test_a_file_sets_what_fit_sets_and_nothing_else(tmp_path, name):
    path = tmp_path / "m"
    fitted("AlternatingNormalizer").save(path)
    content, tensors = read_content(path)
    content["state"][name] = "logits"
    write_content(path, content, tensors)
    with pytest.raises(InputError, match=f"AlternatingNormalizer has no fitted attribute `{name}`"):
        load(path)


@pytest.mark.parametrize(
    "text",
    [
        '{"settings": {"alpha": NaN}}',
        '{"a":' * 5000 + "1" + "}" * 5000,
        '{"format_version": ' + "9" * 5000 + "}",
        "[]",
        "null",
        "{",
        "",
    ],
    ids=lambda text: text[:20],
)
def test_metadata_that_are_no_record_are_refused(tmp_path, text):
    save_file({"reference_": np.zeros(3)}, tmp_path / "m", {"altnorm": text})
    for read in (load, model_metadata):
        with pytest.raises(InputError, match=r"'.*m' "):
            read(tmp_path / "m")


@pytest.mark.parametrize("code", [b'"C64"', b'"F8E"', b'"U64"'])
def test_another_type_is_noticed(tmp_path, code):
    path = tmp_path / "m"
    fitted("AlternatingNormalizer").save(path)
    path.write_bytes(path.read_bytes().replace(b'"F64"', code))
    with pytest.raises(InputError, match=r"damaged|was changed"):
        load(path)


def test_loaded_arrays_do_not_depend_on_the_file(tmp_path):
    path = tmp_path / "m"
    estimator = fitted("AlternatingNormalizer", depth=2)
    estimator.save(path)
    restored = load(path)
    path.write_bytes(bytes(path.stat().st_size))
    os.truncate(path, 10)
    np.testing.assert_array_equal(restored.transform(ROWS), estimator.transform(ROWS))
    assert not restored.reference_.flags.writeable

"""Model files: bit for bit, closed to tampering, and nothing is executed."""

import hashlib
import json
import os
import re
import subprocess
import sys
from copy import copy, deepcopy
from functools import cache

import numpy as np
import pandas as pd
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file
from sklearn.base import clone

from altnorm import (
    Adjuster,
    AlternatingNormalizer,
    AlternatingNormalizerCV,
    InputError,
    families,
    load,
)
from altnorm._base import persistence
from altnorm._base.errors import InputTypeError
from altnorm._base.persistence import (
    KINDS,
    Saved,
    model_metadata,
    read_content,
    storable,
    versions,
    write_content,
)
from altnorm.balance.shift import Shift
from altnorm.decisions import Decision
from altnorm.peers import (
    BiasCorrectedTemperature,
    Identity,
    MatrixScaling,
)
from tests.commands import draw as draw_rows
from tests.problems import planted, planted_labels

RNG = np.random.default_rng(0)


def draw(n, m, dtype=np.float64):
    proba = RNG.dirichlet(np.full(m, 0.4), n).astype(dtype)
    return proba / proba.sum(axis=1, keepdims=True)


def round_trip(normalizer, tmp_path):
    normalizer.save(tmp_path / "m.safetensors")
    return load(tmp_path / "m.safetensors")


def test_an_adjuster_that_adopts_only_a_rule_is_saved(tmp_path):
    rng = np.random.default_rng(0)
    proba = rng.dirichlet([3, 0.6, 0.3], size=600)
    y = (rng.random((600, 1)) > proba.cumsum(axis=1)).sum(axis=1)  # calibrated
    adjuster = Adjuster(scoring="balanced_accuracy").fit(proba, y)
    assert adjuster.verdict_.adopted
    assert isinstance(adjuster.model_, Identity)
    assert round_trip(adjuster, tmp_path).family_ == adjuster.family_ == "temperature"


SETTINGS = [
    {},
    {"alpha": 0.7, "depth": 3, "threshold": 0.5, "k_max": 4},
    {"depth": 2, "reference": "all", "smoothing": 0.5, "prior": "shrunk"},
    {"prior": [0.1, 0.2, 0.3, 0.4, 0.0]},
    {"input": "logits", "threshold": 0.98},
    {"multilabel": "pairs", "depth": 2},
    {"multilabel": "labelwise", "prior": np.array([0.1, 0.2, 0.3, 0.4, 0.5])},
]


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.filterwarnings("ignore:.*prior zero")
def test_restored_transforms_bit_for_bit(tmp_path, settings, dtype):
    m = 5
    validation, new = draw(200, m, dtype), draw(100, m, dtype)
    multilabel = settings.get("multilabel") is not None
    y = (validation > 0.2).astype(int) if multilabel else validation.argmax(axis=1)
    normalizer = AlternatingNormalizer(**settings).fit(validation, y, RNG.random(200))
    restored = round_trip(normalizer, tmp_path)
    np.testing.assert_array_equal(restored.transform(new), normalizer.transform(new))
    np.testing.assert_array_equal(restored.predict(new), normalizer.predict(new))
    assert restored.transform(new).dtype == dtype
    assert str(restored.explain(new)) == str(normalizer.explain(new))
    assert vars(restored).keys() == vars(normalizer).keys()


def test_memory_layout_survives(tmp_path):
    validation = np.asfortranarray(draw(300, 40))
    normalizer = AlternatingNormalizer(depth=3, reference="all").fit(validation)
    normalizer.reference_ = np.asfortranarray(normalizer.reference_)
    restored = round_trip(normalizer, tmp_path)
    assert restored.reference_.flags.f_contiguous
    new = draw(50, 40)
    np.testing.assert_array_equal(restored.transform(new), normalizer.transform(new))


@pytest.mark.parametrize(
    "classes",
    [
        np.array(["a", 'b,\n"c"', "日本"]),
        np.array([3, -1, 7]),
        np.array([0.1, 2.0, -1e300]),
        np.array([1, 2, 3], dtype=np.uint8),
        np.array([False, True]),
        np.array(["a", 1, True], dtype=object),
    ],
)
def test_class_labels_of_any_type(tmp_path, classes):
    normalizer = AlternatingNormalizer().fit(draw(50, len(classes)))
    normalizer.classes_ = classes
    restored = round_trip(normalizer, tmp_path)
    assert restored.classes_.dtype == classes.dtype
    assert [(type(c), c) for c in restored.classes_.tolist()] == [
        (type(c), c) for c in classes.tolist()
    ]


def test_column_names_of_a_data_frame(tmp_path):
    frame = pd.DataFrame(draw(50, 3), columns=["x", "y", "z"])
    normalizer = AlternatingNormalizer().fit(frame, np.array(["x", "y"] * 25))
    restored = round_trip(normalizer, tmp_path)
    assert restored.get_feature_names_out().tolist() == ["x", "y", "z"]
    np.testing.assert_array_equal(restored.transform(frame), normalizer.transform(frame))


@pytest.mark.parametrize("gain", [True, False], ids=["adopted", "identity"])
def test_search_comes_back_with_its_evidence(tmp_path, gain):
    y = RNG.integers(3, size=600)
    scores = RNG.normal(size=(600, 3)) + 1.5 * np.eye(3)[y] + ([1.5, 0, 0] if gain else 0)
    proba = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    search = AlternatingNormalizerCV(alphas=(0.5, 1.0), depths=(1, 2), random_state=0)
    search.fit(proba, y)
    restored = round_trip(search, tmp_path)
    assert search.verdict_.adopted is gain
    assert restored.verdict_ == search.verdict_
    assert restored.best_params_ == search.best_params_
    assert type(restored.best_normalizer_) is type(search.best_normalizer_)
    for name, column in search.cv_results_.items():
        np.testing.assert_array_equal(restored.cv_results_[name], column)
    np.testing.assert_array_equal(restored.transform(proba), search.transform(proba))


def assert_same_adjuster(restored, adjuster, values):
    np.testing.assert_array_equal(restored.transform(values), adjuster.transform(values))
    np.testing.assert_array_equal(restored.predict(values), adjuster.predict(values))
    assert str(restored.explain(values)) == str(adjuster.explain(values))
    assert str(restored.drift(values)) == str(adjuster.drift(values))
    assert restored.verdict_ == adjuster.verdict_
    assert restored.families_ == adjuster.families_
    assert restored.calibration_ == adjuster.calibration_
    assert vars(restored).keys() == vars(adjuster).keys()


MODELS = {
    "identity": Identity(),
    "alternating": AlternatingNormalizer(2.0, 1, 0.5, prior="shrunk"),
    "deep": AlternatingNormalizer(0.7, 3, 0.4),
    "bias": BiasCorrectedTemperature(1.0),
    "matrix": MatrixScaling(1.0),
}
NAMES = np.array(["dog", "ant", "cat", "bee"])


@pytest.fixture(scope="module")
def adjuster():
    proba, y = planted(300)
    return Adjuster(("bias",)).fit(pd.DataFrame(proba, columns=NAMES), NAMES[y])


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("temperature", [1.0, 1.7])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_every_form_of_an_adjuster(tmp_path, adjuster, model, temperature, dtype):
    proba, y = planted(300)
    made = copy(adjuster)
    made.model_, made.temperature_ = clone(MODELS[model]).fit(proba, y), temperature
    new = pd.DataFrame(planted(200, seed=1)[0].astype(dtype), columns=NAMES)
    assert_same_adjuster(round_trip(made, tmp_path), made, new)


@pytest.mark.parametrize("mode", ["pairs", "labelwise"])
@pytest.mark.parametrize("family", ["alternating", "bias"])
@pytest.mark.parametrize("given", ["proba", "logits"])
def test_an_adjuster_for_several_labels(tmp_path, mode, family, given):
    proba, y = planted_labels(200)
    values = proba if given == "proba" else np.log(proba / (1 - proba))
    adjuster = Adjuster((family,), multilabel=mode, input=given).fit(values, y)
    assert_same_adjuster(round_trip(adjuster, tmp_path), adjuster, values)


@pytest.mark.parametrize("families", [("alternating",), ("bias",), ("matrix",)])
def test_a_fitted_adjuster(tmp_path, families):
    proba, y = planted(800)
    fitted = Adjuster(families, input="logits").fit(np.log(proba), y)
    assert fitted.verdict_.adopted
    restored = round_trip(fitted, tmp_path)
    assert_same_adjuster(restored, fitted, np.log(planted(300, seed=1)[0]))
    assert restored.get_params() == fitted.get_params()


@pytest.mark.parametrize(
    "purpose",
    [
        {"scoring": "balanced_accuracy"},
        {"costs": {("dog", "ant"): 9, ("cat", None): 0.2}},
        {"costs": 1 - np.eye(4)},
    ],
    ids=["weights", "mapping", "array"],
)
def test_every_purpose_comes_back(tmp_path, purpose):
    proba, y = planted(300)
    frame = pd.DataFrame(proba, columns=NAMES)
    fitted = Adjuster(("bias",), **purpose).fit(frame, NAMES[y])
    restored = round_trip(fitted, tmp_path)
    assert_same_adjuster(restored, fitted, frame)
    assert restored.decision_.kind == fitted.decision_.kind
    assert restored.score(frame, NAMES[y]) == fitted.score(frame, NAMES[y])


def test_search_on_logits_with_a_scorer_function(tmp_path):
    y = RNG.integers(3, size=300)
    logits = RNG.normal(size=(300, 3)) + np.eye(3)[y] + [2, 0, 0]

    def scorer(estimator, X, y, sample_weight=None):
        return float((estimator.predict(X) == y).mean())

    search = AlternatingNormalizerCV(
        alphas=(1.0,), depths=(1,), input="logits", scoring=scorer, random_state=0
    ).fit(logits, y)
    restored = round_trip(search, tmp_path)
    np.testing.assert_array_equal(restored.transform(logits), search.transform(logits))
    assert restored.scoring is None


def test_metadata_tells_what_it_is(tmp_path):
    AlternatingNormalizer(alpha=3.0).fit(draw(20, 3)).save(tmp_path / "m")
    said = model_metadata(tmp_path / "m")
    assert said["kind"] == "AlternatingNormalizer"
    assert said["settings"]["alpha"] == 3.0
    assert said["classes"] == [0, 1, 2]
    assert said["versions"] == versions()
    assert re.fullmatch("sha256:[0-9a-f]{64}", said["digest"])
    with safe_open(tmp_path / "m", "numpy") as opened:
        assert json.loads(opened.metadata()["altnorm"])["settings"]["depth"] == 1


def test_digest_depends_on_the_content_only(tmp_path):
    normalizer = AlternatingNormalizer(prior=[0.5, 0.3, 0.2]).fit(draw(20, 3))
    for name in ("a", "b", "c"):
        normalizer.save(tmp_path / name)
        normalizer.prior_ = normalizer.prior_[::-1] if name == "b" else normalizer.prior_
    digests = [model_metadata(tmp_path / name)["digest"] for name in ("a", "b", "c")]
    assert digests[0] == digests[1] != digests[2]


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.safetensors"
    AlternatingNormalizer(prior=[0.5, 0.3, 0.2]).fit(draw(50, 3)).save(path)
    return path


def test_every_changed_byte_is_noticed(model):
    whole = model.read_bytes()
    for position in RNG.integers(len(whole), size=150):
        changed = bytearray(whole)
        changed[position] ^= 1 << RNG.integers(8)
        model.write_bytes(changed)
        with pytest.raises(InputError):
            load(model)


def test_every_truncation_is_noticed(model):
    whole = model.read_bytes()
    for size in np.linspace(0, len(whole) - 1, 50).astype(int):
        model.write_bytes(whole[:size])
        with pytest.raises(InputError, match="cut off or damaged"):
            load(model)
    model.write_bytes(whole + b"more")
    with pytest.raises(InputError, match="cut off or damaged"):
        load(model)


def rewrite(model, **changes):
    """Change metadata and keep the file a sound safetensors file."""
    with safe_open(model, "numpy") as opened:
        content = json.loads(opened.metadata()["altnorm"])
    save_file(load_file(model), model, {"altnorm": json.dumps(content | changes)})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"settings": {"alpha": 9.0}}, "was changed after it was saved"),
        *(
            ({"format_version": version}, r"model format \d+, which is newer .* Upgrade altnorm")
            for version in (2, 10**4000)
        ),
        *(
            ({"format_version": version}, "does not say its format version")
            for version in ("x", None, 1.0, True)
        ),
    ],
    ids=lambda value: str(value)[:40],
)
def test_changed_metadata_are_noticed(model, changes, message):
    rewrite(model, **changes)
    with pytest.raises(InputError, match=message):
        load(model)


def test_other_safetensors_files_are_refused(tmp_path):
    save_file({"weights": np.zeros(3)}, tmp_path / "x.safetensors")
    with pytest.raises(InputError, match="no altnorm model"):
        load(tmp_path / "x.safetensors")


def test_only_fitted_normalizers_are_saved(tmp_path):
    class Other(AlternatingNormalizer):
        pass

    with pytest.raises(InputTypeError, match="`self` is Other"):
        Other().fit(draw(20, 2)).save(tmp_path / "m")
    with pytest.raises(ValueError, match="not fitted"):
        AlternatingNormalizer().save(tmp_path / "m")
    normalizer = AlternatingNormalizer().fit(draw(20, 2))
    normalizer.extra_ = object()
    with pytest.raises(InputTypeError, match="`extra_` is object"):
        normalizer.save(tmp_path / "m")
    normalizer.extra_ = None
    with pytest.raises(InputError, match="no fitted attribute `extra_`"):
        normalizer.save(tmp_path / "m")
    del normalizer.extra_
    normalizer.classes_ = np.array(["2020-01-01", "2020-01-02"], dtype="datetime64[D]")
    with pytest.raises(InputTypeError, match="Convert the labels to text"):
        normalizer.save(tmp_path / "m")
    assert not list(tmp_path.iterdir())


def test_scikit_learn_may_keep_notes_on_an_estimator(tmp_path):
    normalizer = AlternatingNormalizer().fit(draw(20, 2)).set_output(transform="pandas")
    restored = round_trip(normalizer, tmp_path)
    assert isinstance(restored.transform(draw(5, 2)), np.ndarray)


def test_existing_file_needs_force(model):
    normalizer = AlternatingNormalizer(alpha=5.0).fit(draw(20, 3))
    with pytest.raises(InputError, match="--force"):
        normalizer.save(model)
    normalizer.save(model, force=True)
    assert load(model).alpha == 5.0


def test_only_our_own_classes_declare_themselves():
    assert all(kind.__module__.startswith("altnorm.") for kind in KINDS.values())
    with pytest.raises(TypeError, match="another Adjuster, that of altnorm"):
        storable(type("Adjuster", (), {}))


@pytest.mark.parametrize(
    "setting",
    [
        np.array([[0.0, 1.0], [2.0, 0.0]]),
        {("spam", "ham"): 5.0, ("ham", None): 0.5},
        {(0, 1): np.float64(5.0), (1, 0): float("inf")},
        {"b": 1, "a": (2, [np.arange(3), None])},
    ],
    ids=["array", "names", "codes", "nested"],
)
def test_settings_that_are_arrays_or_mappings(tmp_path, setting):
    normalizer = AlternatingNormalizer().fit(draw(20, 2))
    normalizer.prior = setting  # any setting that only `fit` reads
    restored = round_trip(normalizer, tmp_path).prior
    np.testing.assert_equal(restored, setting)
    assert type(restored) is type(setting)
    if isinstance(setting, dict):
        assert list(restored) == list(setting)


# A model file may come from anywhere: what it says is checked, and what it holds is ours.


ROWS, CODES = draw_rows(200, 0)
MATRIX = np.eye(3, dtype=int)[CODES]


@cache
def _fitted(kind, settings):
    estimator = KINDS[kind](**dict(settings))
    if kind == "AlternatingNormalizerCV":
        estimator.set_params(alphas=(1.0,), depths=(1,), random_state=0)
    multi = dict(settings).get("multilabel") or KINDS[kind].multilabel
    return estimator.fit(ROWS, MATRIX if multi else CODES)


def fitted(kind, **settings):
    return deepcopy(_fitted(kind, tuple(settings.items())))


ESTIMATORS = [name for name, kind in KINDS.items() if issubclass(kind, Saved)]


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_every_kind_passes_its_own_rules(tmp_path, kind):
    modes = [{}]
    if "multilabel" in KINDS[kind]().get_params():
        modes += [{"multilabel": "pairs"}, {"multilabel": "labelwise"}]
    for i, settings in enumerate(modes):
        estimator = fitted(kind, **settings)
        estimator.save(tmp_path / str(i))
        restored = load(tmp_path / str(i))
        assert vars(restored).keys() == vars(estimator).keys()
        np.testing.assert_array_equal(restored.transform(ROWS), estimator.transform(ROWS))


def test_every_estimator_on_probabilities_can_be_saved():
    names = {"Adjuster", "AlternatingNormalizer", "AlternatingNormalizerCV", *families.__all__}
    assert names == set(ESTIMATORS)


def forge(estimator, path):
    """Save as an attacker would: whatever the values, with a digest that fits."""
    checked = persistence.check_model
    persistence.check_model = lambda *_: None
    try:
        estimator.save(path, force=True)
    finally:
        persistence.check_model = checked
    return path


NAN, NANS = float("nan"), np.full(3, np.nan)
LABELWISE, PAIRS = {"multilabel": "labelwise"}, {"multilabel": "pairs"}
SHIFTS = [
    Shift(*[shares] * 4, 0.5, 0.0, p_value, False, True, n_rows, 1)
    for shares, p_value, n_rows in (
        ((1.0,), 0.5, 9),
        ((1.0, 0.0, 0.0), 1.5, 9),
        ((1.0, 0.0, 0.0), 0.5, -9),
    )
]
BAD = {
    ("AlternatingNormalizer",): {
        "alpha": [-1.0, NAN, "1", 1e300],
        "depth": [0, 10**9, 10_001, 1.0, True],
        "threshold": [NAN, -0.5],
        "k_max": [0],
        "reference": ["none"],
        "smoothing": [np.inf],
        "multilabel": ["pair"],
        "input": ["guess"],
        "prior_": [NANS, np.ones(3), np.full(2, 0.5), np.array([2.0, -0.5, -0.5]), "uniform"],
        "reference_": [np.full((2, 2), 0.5), np.full((2, 3), np.nan), np.full((2, 3), 5.0)],
        "reference_weight_": [np.ones(7), np.array([-1.0])],
        "classes_": [np.array(["a", "a", "b"])],
        "n_features_in_": [7],
        "usage_counts_": [np.array([-1, 0, 0])],
        "usage_doubt_": [[5]],
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
    ("MatrixScaling",): {"matrix_": [np.ones((2, 3))], "bias_": [NANS], "floor_": [1.0]},
    ("Adjuster",): {
        "temperature_": [0.0, NAN, np.ones(1)],
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
        ],
        "family_": ["forest"],
        "families_": [{"bias": 1}],
        "verdict_": [None],
        "calibration_": ["yes"],
        "cv_results_": [{"a": np.ones(2), "b": np.ones(3)}],
        "seen_rows_": [np.array([1, 2]), np.array([2, 1], dtype=np.uint64)],
        "shift_": ["adapted", *SHIFTS],
    },
}
CASES = [
    (kind, name, value)
    for kind, names in BAD.items()
    for name, values in names.items()
    for value in values
]


@pytest.mark.parametrize(("kind", "name", "value"), CASES, ids=lambda part: str(part)[:40])
def test_what_a_file_says_is_checked(tmp_path, kind, name, value):
    estimator = fitted(kind[0], **dict(kind[1:]))
    setattr(estimator, name, value)
    with pytest.raises(InputError, match=f"not a sound model: .*`{name}`"):
        load(forge(estimator, tmp_path / "m"))


@pytest.mark.parametrize("name", [*vars(fitted("AlternatingNormalizer"))][9:])
def test_missing_arrays_are_told(tmp_path, name):
    estimator = fitted("AlternatingNormalizer")
    if name == "classes_":
        return
    delattr(estimator, name)
    with pytest.raises(InputError, match=f"must have `{name}`; it is missing"):
        load(forge(estimator, tmp_path / "m"))


def test_inner_models_are_checked(tmp_path):
    search = fitted("AlternatingNormalizerCV")
    other = AlternatingNormalizer(reference="all").fit(np.full((5, 4), 0.25))
    search.best_normalizer_ = other
    with pytest.raises(InputError, match=r"`best_normalizer_` .* a model for the same classes"):
        load(forge(search, tmp_path / "m"))
    search.best_normalizer_ = fitted("AlternatingNormalizer").set_params(alpha=-1.0)
    with pytest.raises(InputError, match="`alpha` of AlternatingNormalizer must be"):
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
        {"settings": None},
        {"state": None},
        {"settings": []},
        {"settings": [1]},
        {"settings": {"alpha": {"float": "x"}}},
        {"settings": {"alpha": {"float": 1}}},
        {"settings": {"alpha": {}}},
        {"settings": {"alpha": []}},
        {"settings": {"prior": {"dict": [[1]]}}},
        {"settings": {"prior": {"dict": [[{"list": []}, 1]]}}},
        {"state": {"prior_": {"tensor": ["prior_"], "fortran": False}}},
        {"state": {"prior_": {"tensor": "prior_"}}},
        {"state": {"classes_": None}},
        {"state": {"classes_": {"texts": ["a", "b", "c"], "dtype": "<U2000000000"}}},
        {"state": {"classes_": {"texts": ["a", "b", "c"], "dtype": "<i8"}}},
        {"state": {"classes_": {"texts": [{"list": [1]}] * 3, "dtype": "O"}}},
        {"state": {"classes_": {"texts": ["a"], "dtype": "nonsense"}}},
        *({"kind": kind} for kind in ("os.system", "BaseEstimator", "Verdict", ["Adjuster"])),
        {"settings": {"alpha": 1.0, "surprise": 1}},
        {"settings": "{"},
        *(
            {"settings": {"prior": {"record": kind, "fields": {}}}}
            for kind in ("Verdict", "AlternatingNormalizer", "Path")
        ),
        {"state": {"transform": 1}},
        {"state": {"__class__": "x"}},
        {"state": {"_sklearn_output_config": {"dict": [["transform", "pandas"]]}}},
        {"state": {"reference_": {"tensor": "nowhere", "fortran": False}}},
        {"state": {"x_": {"estimator": {"kind": "eval", "settings": {}, "state": {}}}}},
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


@pytest.mark.slow
def test_a_model_of_very_many_classes_is_small(tmp_path):
    """Five rows know nothing about pairs of 20,000 classes, of which there would be gigabytes."""
    proba = np.random.default_rng(0).dirichlet(np.ones(20_000), 5)
    Adjuster().fit(proba, np.arange(5)).save(tmp_path / "m")
    assert (tmp_path / "m").stat().st_size < 10e6


def test_equal_runs_give_equal_bytes(tmp_path):
    code = (
        "import sys; sys.path.insert(0, '.'); from tests.io.test_model import *;"
        "fitted('Adjuster').save(sys.argv[1])"
    )
    digests = set()
    for i in range(2):
        command = [sys.executable, "-c", code, tmp_path / str(i)]
        subprocess.run(command, check=True)
        digests.add(hashlib.sha256((tmp_path / str(i)).read_bytes()).hexdigest())
    assert len(digests) == 1
    assert load_file(tmp_path / "0").keys()  # safetensors reads what we write

"""Model files: bit for bit, closed to tampering, and nothing is executed."""

import json
import os
import re
import subprocess
import sys
from copy import deepcopy
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
    Identity,
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
    restored = round_trip(adjuster, tmp_path)
    assert restored.family_ == adjuster.family_ == "temperature"
    check_same(restored, adjuster, proba)


def check_same(restored, fitted, values):
    """What comes back does, says and knows the same."""
    for method in ("transform", "predict"):
        found, expected = (getattr(one, method)(values) for one in (restored, fitted))
        np.testing.assert_array_equal(found, expected)
        assert found.dtype == expected.dtype
    for method in ("explain", "drift"):
        assert str(getattr(restored, method)(values)) == str(getattr(fitted, method)(values))
    assert vars(restored).keys() == vars(fitted).keys()
    for name in ("verdict_", "families_", "calibration_", "best_params_"):
        assert getattr(restored, name, None) == getattr(fitted, name, None)
    for name, column in getattr(fitted, "cv_results_", {}).items():
        np.testing.assert_array_equal(restored.cv_results_[name], column)


NAMES = np.array(["dog", "ant", "cat", "bee"])
MODES = ("pairs", "labelwise")
SEARCH = AlternatingNormalizerCV(alphas=(0.5, 1.0), depths=(1, 2), random_state=0)
ROUND_TRIPS = [
    AlternatingNormalizer(0.7, 3, 0.5, k_max=4),
    AlternatingNormalizer(1.0, 2, reference="all", smoothing=0.5, prior="shrunk"),
    AlternatingNormalizer(prior=[0.1, 0.3, 0.6, 0.0]),
    AlternatingNormalizer(threshold=0.98, input="logits"),
    AlternatingNormalizer(1.0, 2, multilabel="pairs"),
    AlternatingNormalizer(multilabel="labelwise", prior=np.linspace(0.1, 0.6, 6)),
    SEARCH,
    clone(SEARCH).set_params(significance=1e-300, input="logits"),
    *(Adjuster((family,), input="logits") for family in ("alternating", "bias", "matrix")),
    *(Adjuster(("alternating",), multilabel=mode, input="logits") for mode in MODES),
    *(Adjuster(("bias",), multilabel=mode) for mode in MODES),
    Adjuster(("bias",), scoring="balanced_accuracy"),
    Adjuster(("bias",), costs={("dog", "ant"): 9, ("cat", None): 0.2}),
    Adjuster(("bias",), costs=1 - np.eye(4)),
]


def given_to(estimator, n, seed, dtype=np.float64):
    """Rows as the estimator takes them, with columns by name, and labels."""
    if estimator.multilabel:
        proba, y = planted_labels(n, seed=seed)
        logits, columns = np.log(proba / (1 - proba)), None
    else:
        (proba, codes), columns = planted(n, seed=seed), NAMES
        logits, y = np.log(proba), NAMES[codes]
    values = logits if estimator.input == "logits" else proba
    return pd.DataFrame(values.astype(dtype), columns=columns), y


@pytest.mark.parametrize("estimator", ROUND_TRIPS, ids=lambda one: str(one)[:60])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.filterwarnings("ignore:.*prior zero")
def test_what_is_restored_is_the_same_bit_for_bit(tmp_path, estimator, dtype):
    values, y = given_to(estimator, 300, 0, dtype)
    fitted = clone(estimator).fit(values, y, sample_weight=np.linspace(0.5, 1.5, 300))
    if isinstance(estimator, AlternatingNormalizerCV):
        assert fitted.verdict_.adopted == (estimator is SEARCH)
    restored = round_trip(fitted, tmp_path)
    new, truth = given_to(estimator, 200, 1, dtype)
    check_same(restored, fitted, new[new.columns[::-1]] if not estimator.multilabel else new)
    if isinstance(estimator, Adjuster):
        assert restored.decision_.kind == fitted.decision_.kind
        assert restored.score(new, truth) == fitted.score(new, truth)
    assert str(restored.get_params()) == str(fitted.get_params())


def test_a_scorer_function_is_not_stored(tmp_path):
    proba, y = planted(300)

    def scorer(estimator, X, y, sample_weight=None):
        return float((estimator.predict(X) == y).mean())

    search = clone(SEARCH).set_params(scoring=scorer).fit(proba, y)
    restored = round_trip(search, tmp_path)
    np.testing.assert_array_equal(restored.transform(proba), search.transform(proba))
    assert restored.scoring is None


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


def test_every_changed_byte_and_every_truncation_is_noticed(model):
    whole = model.read_bytes()
    for position in RNG.integers(len(whole), size=150):
        changed = bytearray(whole)
        changed[position] ^= 1 << RNG.integers(8)
        model.write_bytes(changed)
        with pytest.raises(InputError):
            load(model)
    cut = [whole[:size] for size in np.linspace(0, len(whole) - 1, 50).astype(int)]
    for other in (*cut, whole + b"more"):
        model.write_bytes(other)
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
        check_same(restored, estimator, ROWS)


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


FITTED = [name for name in vars(fitted("AlternatingNormalizer")) if name.endswith("_")]


@pytest.mark.parametrize("name", sorted({*FITTED} - {"classes_"}))
def test_missing_arrays_are_told(tmp_path, name):
    estimator = fitted("AlternatingNormalizer")
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
        "import sys; sys.path.insert(0, '.'); from altnorm import Adjuster;"
        "from tests.problems import planted; Adjuster().fit(*planted(150)).save(sys.argv[1])"
    )
    for i in range(2):
        subprocess.run([sys.executable, "-c", code, tmp_path / str(i)], check=True)
    assert (tmp_path / "0").read_bytes() == (tmp_path / "1").read_bytes()
    assert load_file(tmp_path / "0").keys()  # safetensors reads what we write

"""A model file may come from anywhere: what it says is checked, and what it holds is ours."""

import hashlib
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from altnorm import AlternatingNormalizer, AlternatingNormalizerCV, InputError, families, load
from altnorm._base import persistence
from altnorm._base.persistence import KINDS, Saved, model_metadata, read_content, write_content
from altnorm.balance.shift import Shift
from altnorm.decisions import Decision
from altnorm.peers import LabelThresholds, TemperatureScaling
from tests.commands import draw, refused, run

PROBA, CODES = draw(200, 0)
MATRIX = np.eye(3, dtype=int)[CODES]


def fitted(kind, **settings):
    estimator = KINDS[kind](**settings)
    if kind == "AlternatingNormalizerCV":
        estimator.set_params(alphas=(1.0,), depths=(1,), random_state=0)
    multi = settings.get("multilabel") or KINDS[kind].multilabel
    return estimator.fit(PROBA, MATRIX if multi else CODES)


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
        np.testing.assert_array_equal(restored.transform(PROBA), estimator.transform(PROBA))


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


SETTINGS = [
    ("alpha", -1.0),
    ("alpha", float("nan")),
    ("alpha", "1"),
    ("alpha", 1e300),
    ("depth", 0),
    ("depth", 10**9),
    ("depth", 10_001),
    ("depth", 1.0),
    ("depth", True),
    ("threshold", float("nan")),
    ("threshold", -0.5),
    ("k_max", 0),
    ("reference", "none"),
    ("smoothing", float("inf")),
    ("multilabel", "pair"),
    ("input", "guess"),
]


@pytest.mark.parametrize(("name", "value"), SETTINGS)
def test_settings_are_checked(tmp_path, name, value):
    estimator = fitted("AlternatingNormalizer").set_params(**{name: value})
    with pytest.raises(InputError, match=rf"not a sound model: `{name}` of .* must be"):
        load(forge(estimator, tmp_path / "m"))


NAN = np.full(3, np.nan)
STATE = [
    ("prior_", NAN),
    ("prior_", np.ones(3)),
    ("prior_", np.array([0.5, 0.5])),
    ("prior_", np.array([2.0, -0.5, -0.5])),
    ("prior_", "uniform"),
    ("reference_", np.full((2, 2), 0.5)),
    ("reference_", np.full((2, 3), np.nan)),
    ("reference_", np.full((2, 3), 5.0)),
    ("reference_", np.empty((0, 3))),
    ("reference_weight_", np.ones(7)),
    ("reference_weight_", np.array([-1.0])),
    ("_log_s", NAN),
    ("_log_s", np.full(3, np.inf)),
    ("_log_s", np.zeros(4)),
    ("_log_s_of", [1.0]),
    ("_log_s_of", "all"),
    ("classes_", np.array(["a", "a", "b"])),
    ("classes_", np.array(["a", "b"])),
    ("n_features_in_", 7),
    ("usage_counts_", np.array([-1, 0, 0])),
    ("usage_doubt_", [5]),
    ("offsets_", np.array([0, 3])),
    ("surprise_", 1),
]


@pytest.mark.parametrize(("name", "value"), STATE)
def test_arrays_are_checked(tmp_path, name, value):
    estimator = fitted("AlternatingNormalizer")
    setattr(estimator, name, value)
    with pytest.raises(InputError, match="not a sound model: "):
        load(forge(estimator, tmp_path / "m"))


@pytest.mark.parametrize("name", [*vars(fitted("AlternatingNormalizer"))][9:])
def test_missing_arrays_are_told(tmp_path, name):
    estimator = fitted("AlternatingNormalizer")
    if name == "classes_":
        return
    delattr(estimator, name)
    with pytest.raises(InputError, match=f"must have `{name}`; it is missing"):
        load(forge(estimator, tmp_path / "m"))


OTHERS = [
    (TemperatureScaling(), "temperature_", 0.0),
    (TemperatureScaling(), "temperature_", float("nan")),
    (LabelThresholds(), "global_threshold_", 1.5),
    (LabelThresholds(), "thresholds_", NAN),
    (AlternatingNormalizer(multilabel="labelwise"), "offsets_", np.array([0, 5, 2, 9])),
    (AlternatingNormalizer(multilabel="pairs"), "offsets_", np.array([0, 10**6])),
    (AlternatingNormalizer(multilabel="pairs"), "prior_", np.array([0.5, np.nan])),
]


@pytest.mark.parametrize(("estimator", "name", "value"), OTHERS)
def test_other_kinds_are_checked(tmp_path, estimator, name, value):
    estimator = fitted(type(estimator).__name__, **estimator.get_params())
    setattr(estimator, name, value)
    with pytest.raises(InputError, match=rf"`{name}` of \w+ must be"):
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


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temperature_", 0.0),
        ("temperature_", float("nan")),
        ("temperature_", np.ones(1)),
        ("model_", None),
        ("model_", fitted("MatrixScaling", input="logits")),
        ("model_", fitted("BatchCalibration")),
        ("model_", fitted("Identity", multilabel="labelwise")),
        ("decision_", "argmax"),
        ("decision_", Decision("dice", np.ones(3), np.eye(3))),
        ("decision_", Decision("weights", NAN)),
        ("decision_", Decision("weights", np.ones(4))),
        ("decision_", Decision("weights", np.ones((3, 3)))),
        ("decision_", Decision("costs", np.ones(3), np.eye(3))),
        ("family_", "forest"),
        ("families_", {"bias": 1}),
        ("verdict_", None),
        ("calibration_", "yes"),
        ("cv_results_", {"a": np.ones(2), "b": np.ones(3)}),
        ("seen_rows_", np.array([1, 2])),
        ("seen_rows_", np.array([2, 1], dtype=np.uint64)),
        ("shift_", "adapted"),
        ("shift_", Shift(*[(1.0,)] * 4, 0.5, 0.0, 0.5, False, True, 9, 1)),
        ("shift_", Shift(*[(1.0, 0.0, 0.0)] * 4, 0.5, 0.0, 1.5, False, True, 9, 1)),
        ("shift_", Shift(*[(1.0, 0.0, 0.0)] * 4, 0.5, 0.0, 0.5, False, True, -9, 1)),
    ],
    ids=str,
)
def test_both_stages_of_an_adjuster_are_checked(tmp_path, name, value):
    adjuster = fitted("Adjuster")
    setattr(adjuster, name, value)
    with pytest.raises(InputError, match=rf"`{name}` of Adjuster must be"):
        load(forge(adjuster, tmp_path / "m"))


@pytest.mark.parametrize(
    ("name", "value"), [("matrix_", np.ones((2, 3))), ("bias_", NAN), ("floor_", 1.0)]
)
def test_models_inside_an_adjuster_are_checked(tmp_path, name, value):
    adjuster = fitted("Adjuster")
    adjuster.model_ = fitted("MatrixScaling")
    setattr(adjuster.model_, name, value)
    with pytest.raises(InputError, match=rf"`{name}` of MatrixScaling must be"):
        load(forge(adjuster, tmp_path / "m"))


def test_saving_checks_too(tmp_path):
    estimator = fitted("AlternatingNormalizer")
    estimator.prior_ = NAN
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
    ],
    ids=str,
)
def test_forged_metadata_is_one_kind_of_error(tmp_path, changes):
    path = tmp_path / "m"
    fitted("AlternatingNormalizer").save(path)
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
    np.testing.assert_array_equal(restored.transform(PROBA), estimator.transform(PROBA))
    assert not restored.reference_.flags.writeable


def test_equal_runs_give_equal_bytes(tmp_path):
    code = (
        "import sys; sys.path.insert(0, '.'); from tests.io.test_model_rules import *;"
        "fitted('Adjuster').save(sys.argv[1])"
    )
    digests = set()
    for i in range(2):
        command = [sys.executable, "-c", code, tmp_path / str(i)]
        subprocess.run(command, check=True)
        digests.add(hashlib.sha256((tmp_path / str(i)).read_bytes()).hexdigest())
    assert len(digests) == 1
    assert load_file(tmp_path / "0").keys()  # safetensors reads what we write


def test_apply_never_writes_nan(folder, model, capsys, monkeypatch):
    class Broken(AlternatingNormalizerCV):
        def _transform(self, proba):
            return np.full_like(proba, np.nan)

    broken = load(model)
    broken.__class__ = Broken
    monkeypatch.setattr("altnorm.cli.apply.load", lambda _: broken)
    np.savez("in.npz", proba=PROBA, classes=broken.classes_.astype(str))
    for source, output in (("test.parquet", "out.parquet"), ("in.npz", "out.npz")):
        assert "not finite" in refused(capsys, "apply", model, source, "-o", output)
        assert output not in os.listdir()


def test_full_disk_in_tune(folder):
    code = "import resource as r; r.setrlimit(r.RLIMIT_FSIZE, (500, 500));"
    code += "from altnorm.cli import main; main()"
    arguments = ["tune", "val.parquet", "--label", "y", "-o", "m"]
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("Error: File too large")
    assert done.stderr.count("\n") == 1
    assert sorted(os.listdir()) == ["test.parquet", "val.parquet"]
    assert run(["--version"]) == 0


def test_metadata_is_json_or_refused(tmp_path):
    path = tmp_path / "m"
    fitted("AlternatingNormalizer").save(path)
    assert json.dumps(model_metadata(path))
    content, tensors = read_content(path)
    write_content(path, content | {"versions": "["}, tensors)
    with pytest.raises(InputError, match="not a model that this altnorm understands"):
        model_metadata(path)

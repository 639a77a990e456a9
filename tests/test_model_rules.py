"""A model file may come from anywhere: what it says is checked, and what it holds is ours."""

import hashlib
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from safetensors.numpy import load_file

from altnorm import AlternatingNormalizer, AlternatingNormalizerCV
from altnorm._base import tensor_file
from altnorm._base.errors import InputError
from altnorm.balance.shift import Shift
from altnorm.io import model as model_files
from altnorm.io import model_rules as rules
from altnorm.io.model import KINDS, load_model, model_metadata, save_model
from altnorm.peers import LabelThresholds, TemperatureScaling
from tests.commands import draw, refused, run

PROBA, CODES = draw(200, 0)
MATRIX = np.eye(3, dtype=int)[CODES]
THIRDS = np.full(3, 1 / 3)
PROFILE = (np.ones((3, 1, 3)), np.ones((3, 0)), THIRDS, np.eye(3), np.eye(3))


def fitted(kind, **settings):
    estimator = KINDS[kind](**settings)
    if kind == "AlternatingNormalizerCV":
        estimator.set_params(alphas=(1.0,), depths=(1,), random_state=0)
    multi = settings.get("multilabel") or KINDS[kind].multilabel
    return estimator.fit(PROBA, MATRIX if multi else CODES)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_passes_its_own_rules(tmp_path, kind):
    modes = [{}]
    if "multilabel" in KINDS[kind]().get_params():
        modes += [{"multilabel": "pairs"}, {"multilabel": "labelwise"}]
    for i, settings in enumerate(modes):
        estimator = fitted(kind, **settings)
        save_model(estimator, tmp_path / str(i))
        restored = load_model(tmp_path / str(i))
        assert vars(restored).keys() == vars(estimator).keys()
        np.testing.assert_array_equal(restored.transform(PROBA), estimator.transform(PROBA))


def test_every_kind_has_rules():
    assert rules.FITTED.keys() == KINDS.keys()


def forge(estimator, path):
    """Save as an attacker would: whatever the values, with a digest that fits."""
    checked = model_files.check_model
    model_files.check_model = lambda *_: None
    try:
        save_model(estimator, path, force=True)
    finally:
        model_files.check_model = checked
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
        load_model(forge(estimator, tmp_path / "m"))


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
        load_model(forge(estimator, tmp_path / "m"))


@pytest.mark.parametrize("name", [*vars(fitted("AlternatingNormalizer"))][9:])
def test_missing_arrays_are_told(tmp_path, name):
    estimator = fitted("AlternatingNormalizer")
    if name == "classes_":
        return
    delattr(estimator, name)
    with pytest.raises(InputError, match=f"must have `{name}`; it is missing"):
        load_model(forge(estimator, tmp_path / "m"))


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
        load_model(forge(estimator, tmp_path / "m"))


def test_inner_models_are_checked(tmp_path):
    search = fitted("AlternatingNormalizerCV")
    other = AlternatingNormalizer(reference="all").fit(np.full((5, 4), 0.25))
    search.best_normalizer_ = other
    with pytest.raises(InputError, match=r"`best_normalizer_` .* a model for the same classes"):
        load_model(forge(search, tmp_path / "m"))
    search.best_normalizer_ = fitted("AlternatingNormalizer").set_params(alpha=-1.0)
    with pytest.raises(InputError, match="`alpha` of AlternatingNormalizer must be"):
        load_model(forge(search, tmp_path / "m"))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temperatures_", np.array([1.0, np.nan])),
        ("temperatures_", np.array([1.0, 0.0])),
        ("temperatures_", np.ones(3)),
        ("calibrator_", 1.0),
        ("calibrator_", fitted("Identity")),
        ("calibrator_", fitted("ShrunkBias", input="logits")),
        ("best_normalizer_", fitted("ShrunkBias", input="logits")),
        ("best_normalizer_", fitted("TemperatureScaling")),
        ("best_normalizer_", None),
        ("family_", "forest"),
        ("families_", {"bias": 1}),
        ("calibration_", "yes"),
        ("shift_calibrator_", 1.0),
        ("shift_calibrator_", fitted("MatrixScaling")),
        ("shift_matrix_", fitted("ShrunkBias")),
        ("shift_profile_", (np.ones((3, 2, 3)), np.ones((3, 1)), THIRDS)),
        ("shift_profile_", (*PROFILE[:1], np.ones((3, 2)), *PROFILE[2:])),
        ("shift_profile_", (np.full((3, 1, 3), np.nan), *PROFILE[1:])),
        ("shift_profile_", (np.zeros((3, 1, 3)), *PROFILE[1:])),
        ("shift_profile_", (*PROFILE[:2], np.eye(3)[0], *PROFILE[3:])),
        ("shift_profile_", (*PROFILE[:3], 2 * np.eye(3), PROFILE[4])),
        ("shift_profile_", (*PROFILE[:3], np.ones(3), PROFILE[4])),
        ("shift_profile_", PROFILE[:4]),
        ("shift_profile_", (*PROFILE[:4], np.ones((3, 3)))),
        ("shift_profile_", (*PROFILE[:4], np.eye(3)[:0])),
        ("shift_", "adapted"),
        ("shift_", Shift("adapted", 0.5, 0.0, 1.0, *[(1.0,)] * 6, 0.5, 0.5, 0.0, 0.0, 9)),
        ("shift_", Shift("adapted", 0.5, 0.0, 1.5, *[(1.0, 0.0, 0.0)] * 6, 0.5, 0.5, 0.0, 0.0, 9)),
        ("shift_", Shift("because", 0.5, 0.0, 1.0, *[(1.0, 0.0, 0.0)] * 6, 0.5, 0.5, 0.0, 0.0, 9)),
    ],
    ids=str,
)
def test_both_stages_of_an_adjuster_are_checked(tmp_path, name, value):
    adjuster = fitted("Adjuster")
    setattr(adjuster, name, value)
    with pytest.raises(InputError, match=rf"`{name}` of Adjuster must be"):
        load_model(forge(adjuster, tmp_path / "m"))


def test_an_adjuster_calibrates_once(tmp_path):
    adjuster = fitted("Adjuster")
    adjuster.calibrator_, adjuster.temperatures_ = fitted("ShrunkBias"), np.ones(2)
    with pytest.raises(InputError, match="two temperatures where there is no `calibrator_`"):
        load_model(forge(adjuster, tmp_path / "m"))


@pytest.mark.parametrize(
    ("name", "value"), [("matrix_", np.ones((2, 3))), ("bias_", NAN), ("floor_", 1.0)]
)
def test_calibrators_inside_an_adjuster_are_checked(tmp_path, name, value):
    adjuster = fitted("Adjuster")
    adjuster.calibrator_ = fitted("MatrixScaling")
    setattr(adjuster.calibrator_, name, value)
    with pytest.raises(InputError, match=rf"`{name}` of MatrixScaling must be"):
        load_model(forge(adjuster, tmp_path / "m"))


def test_saving_checks_too(tmp_path):
    estimator = fitted("AlternatingNormalizer")
    estimator.prior_ = NAN
    with pytest.raises(InputError, match=r"`prior_` .* Fit it again"):
        save_model(estimator, tmp_path / "m")
    assert not list(tmp_path.iterdir())


NESTED = '{"a":' * 5000 + "1" + "}" * 5000


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": None},
        {"settings": "[]"},
        {"settings": "[1]"},
        {"settings": '{"alpha": NaN}'},
        {"settings": '{"alpha": {"float": "x"}}'},
        {"settings": '{"alpha": {}}'},
        {"settings": NESTED},
        {"state": '{"prior_": {"tensor": ["prior_"], "fortran": false}}'},
        {"state": '{"prior_": {"tensor": "prior_"}}'},
        {"classes": "null"},
        {"classes": '{"values": ["a", "b", "c"], "dtype": "<U2000000000"}'},
        {"classes": '{"values": ["a", "b", "c"], "dtype": "<i8"}'},
        {"format_version": "9" * 5000},
        {"format_version": "²"},
    ],
)
def test_forged_metadata_is_one_kind_of_error(tmp_path, changes):
    path = tmp_path / "m"
    save_model(fitted("AlternatingNormalizer"), path)
    metadata, tensors = tensor_file.read_tensors(path)
    metadata = {k: v for k, v in (metadata | changes).items() if v is not None}
    metadata["digest"] = model_files._digest(metadata, tensors)
    tensor_file.write_tensors(path, tensors, metadata)
    with pytest.raises(InputError):
        load_model(path)


def test_a_type_that_numpy_lacks_is_told(tmp_path):
    path = tmp_path / "m"
    save_model(fitted("AlternatingNormalizer"), path)
    path.write_bytes(path.read_bytes().replace(b'"F64"', b'"I64"').replace(b'"I64"', b'"C64"'))
    with pytest.raises(InputError, match="cut off or damaged"):
        load_model(path)


def test_loaded_arrays_do_not_depend_on_the_file(tmp_path):
    path = tmp_path / "m"
    estimator = fitted("AlternatingNormalizer", depth=2)
    save_model(estimator, path)
    restored = load_model(path)
    path.write_bytes(bytes(path.stat().st_size))
    os.truncate(path, 10)
    np.testing.assert_array_equal(restored.transform(PROBA), estimator.transform(PROBA))
    assert not restored.reference_.flags.writeable


def test_very_large_files_are_mapped(tmp_path, monkeypatch):
    monkeypatch.setattr(tensor_file, "_VERY_LARGE", 100)
    save_model(fitted("AlternatingNormalizer"), tmp_path / "m")
    array = load_model(tmp_path / "m").reference_
    while isinstance(array, np.ndarray) and not isinstance(array, np.memmap):
        array = array.base
    assert isinstance(array, np.memmap)


def test_equal_runs_give_equal_bytes(tmp_path):
    code = (
        "import sys; sys.path.insert(0, '.'); from tests.test_model_rules import *;"
        "save_model(fitted('Adjuster'), sys.argv[1])"
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

    broken = load_model(model)
    broken.__class__ = Broken
    monkeypatch.setattr("altnorm.cli.apply.load_model", lambda _: broken)
    np.savez("in.npz", proba=PROBA, classes=broken.classes_)
    for source, output in (("test.parquet", "out.parquet"), ("in.npz", "out.npz")):
        assert "not finite" in refused(capsys, "apply", model, source, "-o", output)
        assert output not in os.listdir()


def test_full_disk_in_tune(folder):
    code = "import resource as r; r.setrlimit(r.RLIMIT_FSIZE, (500, 500));"
    code += "from altnorm.cli import main; main()"
    arguments = ["tune", "val.parquet", "--label", "y", "-o", "m", "--alphas", "1"]
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
    save_model(fitted("AlternatingNormalizer"), path)
    assert json.dumps(model_metadata(path))
    metadata, tensors = tensor_file.read_tensors(path)
    metadata["versions"] = "["
    metadata["digest"] = model_files._digest(metadata, tensors)
    tensor_file.write_tensors(path, tensors, metadata)
    with pytest.raises(InputError, match="not a model that this altnorm understands"):
        model_metadata(path)

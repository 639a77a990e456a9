"""Model files: bit for bit, closed to tampering, and nothing is executed."""

import json
import re
import subprocess
import sys

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
from altnorm._base.errors import InputTypeError
from altnorm._base.persistence import KINDS, model_metadata, storable, versions
from altnorm.adjuster.candidates import FAMILIES
from altnorm.peers import BiasCorrectedTemperature, Identity
from tests.problems import planted, planted_labels

RNG = np.random.default_rng(0)


def draw(n, m, dtype=np.float64):
    proba = RNG.dirichlet(np.full(m, 0.4), n).astype(dtype)
    return proba / proba.sum(axis=1, keepdims=True)


def round_trip(normalizer, tmp_path):
    normalizer.save(tmp_path / "m.safetensors")
    return load(tmp_path / "m.safetensors")


def test_an_adapted_copy_is_saved(tmp_path):
    proba, y = planted(600)
    adapted = Adjuster(("bias",)).fit(proba, y).adapt(proba, assume="label_shift", insist=True)
    assert adapted.mixture_.log_ratio is not None
    check_same(round_trip(adapted, tmp_path), adapted, proba)


def check_same(restored, fitted, values):
    """What comes back does, says and knows the same."""
    for method in ("transform", "predict"):
        actual, expected = (getattr(model, method)(values) for model in (restored, fitted))
        np.testing.assert_array_equal(actual, expected)
        assert actual.dtype == expected.dtype
    for method in ("explain", "drift"):
        assert str(getattr(restored, method)(values)) == str(getattr(fitted, method)(values))
    in_memory = {"_judged"}
    assert vars(restored).keys() == vars(fitted).keys() - in_memory
    for name in ("verdict_", "families_", "calibration_", "best_params_"):
        assert getattr(restored, name, None) == getattr(fitted, name, None)
    for name, column in getattr(fitted, "cv_results_", {}).items():
        np.testing.assert_array_equal(restored.cv_results_[name], column)


NAMES = np.array(["dog", "ant", "cat", "bee"])
MODES = ("pairs", "labelwise")
SEARCH = AlternatingNormalizerCV(alphas=(0.5, 1.0), depths=(1, 2))
ROUND_TRIPS = [
    AlternatingNormalizer(0.7, 3, 0.5, k_max=4),
    AlternatingNormalizer(1.0, 2, reference="all", smoothing=0.5, prior="shrunk"),
    AlternatingNormalizer(prior=[0.1, 0.3, 0.6, 0.0]),
    AlternatingNormalizer(threshold=0.98, input="logits"),
    AlternatingNormalizer(1.0, 2, multilabel="pairs"),
    AlternatingNormalizer(multilabel="labelwise", prior=np.linspace(0.1, 0.6, 6)),
    SEARCH,
    clone(SEARCH).set_params(significance=1e-300, input="logits"),
    *(Adjuster((family,), input="logits") for family in FAMILIES),
    *(Adjuster(("alternating",), multilabel=mode, input="logits") for mode in MODES),
    *(Adjuster(("bias",), multilabel=mode) for mode in MODES),
    Adjuster(("bias",), scoring="balanced_accuracy"),
    Adjuster(("bias",), significance=1e-300),  # which keeps decisions
    Adjuster(("bias",), scoring="balanced_accuracy", significance=1e-300),
    Adjuster(("bias",), costs={("dog", "ant"): 9, ("cat", None): 0.2}),
    Adjuster(("bias",), costs=1 - np.eye(4)),
    *(KINDS[name]() for name in families.__all__),
    BiasCorrectedTemperature(0.0),  # the least that its file may say
    *(clone(SEARCH).set_params(multilabel=mode) for mode in MODES),
    *(Identity(multilabel=mode) for mode in MODES),
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


@pytest.mark.parametrize("estimator", ROUND_TRIPS, ids=lambda model: str(model)[:60])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.filterwarnings("ignore:.*prior zero")
def test_what_is_restored_is_the_same_bit_for_bit(tmp_path, estimator, dtype):
    values, y = given_to(estimator, 300, 0, dtype)
    fitted = clone(estimator).fit(values, y, sample_weight=np.linspace(0.5, 1.5, 300))
    if isinstance(estimator, AlternatingNormalizerCV):
        assert fitted.verdict_.adopted == (estimator.significance == SEARCH.significance)
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
    metadata = model_metadata(tmp_path / "m")
    assert metadata["kind"] == "AlternatingNormalizer"
    assert metadata["settings"]["alpha"] == 3.0
    assert metadata["classes"] == [0, 1, 2]
    assert metadata["versions"] == versions()
    assert re.fullmatch("sha256:[0-9a-f]{64}", metadata["digest"])
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
    content = model.read_bytes()
    for position in RNG.integers(len(content), size=150):
        changed = bytearray(content)
        changed[position] ^= 1 << RNG.integers(8)
        model.write_bytes(changed)
        with pytest.raises(InputError):
            load(model)
    cut = [content[:size] for size in np.linspace(0, len(content) - 1, 50).astype(int)]
    for damaged in (*cut, content + b"more"):
        model.write_bytes(damaged)
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

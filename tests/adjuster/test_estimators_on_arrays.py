"""Estimators take arrays of any library and give back the same kind on the same device."""

from __future__ import annotations

import pickle
import subprocess
import sys
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from altnorm import Adjuster, AlternatingNormalizer, AlternatingNormalizerCV, InputError
from altnorm._base.arrays import is_foreign, to_numpy
from altnorm.adjuster.validation import is_worth_a_device
from altnorm.peers import BiasCorrectedTemperature
from tests.libraries import LIBRARIES
from tests.problems import planted, planted_labels

ATOL = {"float64": 1e-13, "float32": 1e-6}
N_CLASSES = 6
SETTINGS = [
    {},
    {"alpha": 0.7, "depth": 3},
    {"threshold": 0.5, "smoothing": 0.1, "reference": "all"},
    {"input": "logits"},
    {"multilabel": "labelwise"},
    {"multilabel": "pairs", "threshold": 0.5},
]


@pytest.fixture(params=LIBRARIES[1:])
def library(request):
    return request.param


def draw(n, seed=0, dtype="float64"):
    """Rows as sure as a classifier's, and labels."""
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.full(N_CLASSES, 0.4), n).astype(dtype)
    return proba, rng.integers(N_CLASSES, size=n), rng.random(n)


def problem(settings, dtype):
    """Validation rows, labels and weights, and new rows, as the settings ask for them."""
    (proba, y, weight), (new, *_) = draw(300, dtype=dtype), draw(50, 1, dtype)
    if settings.get("input") == "logits":
        proba, new = np.log(proba), np.log(new)
    if settings.get("multilabel"):
        y = (np.random.default_rng(2).random(proba.shape) < 0.3).astype(int)
    return proba, y, weight, new


def check_memory(there, values, *inner):
    """What it remembers is NumPy's: it can be saved, and used where there is no such device."""
    for owner in (there, *inner):
        assert not [name for name, value in vars(owner).items() if is_foreign(value)]
    again = pickle.loads(pickle.dumps(there))
    assert_array_equal(again.transform(values), there.transform(values))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_a_normalizer_gives_what_numpy_gives(library, settings, dtype):
    """Whatever it was fitted on and whatever it is given, the values are NumPy's."""
    proba, y, weight, new = problem(settings, dtype)
    plain = AlternatingNormalizer(**settings).fit(proba, y, weight)
    there = AlternatingNormalizer(**settings).fit(*map(library.make, (proba, y, weight)))
    like = library.make(new)
    for estimator, values in ((plain, like), (there, like), (there, new)):
        after = estimator.transform(values)
        assert library.same_place(after, like) if values is like else not is_foreign(after)
        assert after.dtype == values.dtype
        assert_allclose(to_numpy(after), plain.transform(new), rtol=0, atol=ATOL[dtype])
        labels = estimator.predict(values)
        assert library.same_place(labels, like) if values is like else not is_foreign(labels)
        assert_array_equal(to_numpy(labels), plain.predict(new))
    check_memory(there, new)


def test_a_peer_gives_back_the_same_kind(library):
    proba, y, weight = draw(300)
    proba[3, y[3]] = proba[5, (y[5] + 1) % N_CLASSES] = 0  # at a label, and elsewhere
    proba /= proba.sum(axis=1, keepdims=True)
    plain = BiasCorrectedTemperature().fit(proba, y, weight)
    there = BiasCorrectedTemperature().fit(*map(library.make, (proba, y, weight)))
    after = there.transform(library.make(proba))
    assert library.same_place(after, library.make(proba))
    # A fit ends where one more step comes to little, and each library takes its own steps.
    assert_allclose(to_numpy(after), plain.transform(proba), rtol=0, atol=1e-8)


SMALL = {"alphas": (0.5, 2.0), "depths": (1, 2), "thresholds": (0.5,), "smoothings": (0.1,)}
TUNED = {
    "cv": AlternatingNormalizerCV(**SMALL),
    "cv by probabilities": AlternatingNormalizerCV(**SMALL, scoring="neg_log_loss"),
    "alternating": Adjuster(("alternating",)),
    "alternating, uncalibrated": Adjuster(("alternating",), calibrate=False),
    "bias": Adjuster(("bias",), input="logits"),
    "matrix": Adjuster(("matrix",), scoring="balanced_accuracy"),
    "temperature": Adjuster(("bias",), significance=1e-300),
    "costs": Adjuster(("bias",), costs=np.c_[1 - np.eye(4), np.full(4, 0.4)]),
}


@cache
def tuned(library, name, *, some=False):
    """Fitted to NumPy and to the library, and the rows; `some` labels, weights and groups."""
    proba, y = planted(400)
    values = np.log(proba) if TUNED[name].input == "logits" else proba
    more = ()
    if some:
        y = np.where(np.arange(y.size) % 7 == 0, -1, y)
        more = (np.random.default_rng(1).random(y.size), np.arange(y.size) // 2)
    plain = clone(TUNED[name]).fit(values, y, *more)
    with pytest.MonkeyPatch.context() as patch:  # so few rows would be tuned in host memory
        patch.setattr("altnorm.adjuster.validation.is_worth_a_device", is_foreign)
        there = clone(TUNED[name]).fit(*map(library.make, (values, y, *more)))
    return plain, there, values


class TestTuned:
    @pytest.mark.parametrize(
        ("name", "some"),
        [(name, False) for name in TUNED] + [("cv", True), ("alternating", True), ("bias", True)],
    )
    def test_same_choice(self, library, name, some):
        plain, there, values = tuned(library, name, some=some)
        assert there.verdict_.adopted == plain.verdict_.adopted
        assert_allclose(there.verdict_.gain, plain.verdict_.gain, rtol=0, atol=0.003)
        like = library.make(values)
        for estimator in (plain, there):
            after = estimator.transform(like)
            assert library.same_place(after, like)
            assert_allclose(to_numpy(after), plain.transform(values), rtol=0, atol=1e-4)
            decided = to_numpy(estimator.predict(like))
            assert (decided == plain.predict(values)).mean() > 0.99
        check_memory(there, values, getattr(there, "model_", None) or there.best_normalizer_)

    def test_scores_drift_and_explanations(self, library):
        plain, there, values = tuned(library, "matrix")
        _, y = planted(400)
        like = library.make(values)
        assert there.score(like, library.make(y)) == pytest.approx(plain.score(values, y), abs=1e-3)
        assert str(there.drift(like)) == str(plain.drift(values))
        assert len(there.explain(like)) == len(plain.explain(values)) > 0


class TestFewRows:
    """They are tuned in host memory: the choice is NumPy's, also between near equals."""

    @pytest.mark.parametrize("dtype", ["float64", "float32"])
    @pytest.mark.parametrize("mode", [None, "labelwise"])
    def test_everything_is_chosen_as_by_numpy(self, library, mode, dtype):
        proba, y = planted(400) if mode is None else planted_labels(150)
        proba = proba.astype(dtype)
        like = library.make(proba)
        plain = Adjuster(multilabel=mode).fit(proba, y)
        there = Adjuster(multilabel=mode).fit(like, library.make(y))
        assert there.verdict_ == plain.verdict_
        assert there.families_ == plain.families_
        assert there.calibration_ == plain.calibration_
        after = there.transform(like)
        assert library.same_place(after, like)
        assert_allclose(to_numpy(after), plain.transform(proba), rtol=0, atol=ATOL[dtype])
        assert_array_equal(to_numpy(there.predict(like)), plain.predict(proba))

    @pytest.mark.parametrize(
        ("n", "device", "is_worth"), [(512, 2, True), (511, 2, False), (512, 1, False)]
    )
    def test_only_many_rows_on_another_device_are_tuned_there(self, n, device, is_worth):
        """As far as can be seen without one; 1 is the host."""
        rows = SimpleNamespace(
            shape=(n, 512),
            __array_namespace__=lambda: np,
            __dlpack_device__=lambda: (device, 0),
        )
        assert is_worth_a_device(rows) == is_worth
        assert not is_worth_a_device(np.ones((512, 512)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda p: p[:, 0], "must be two-dimensional"),
        (lambda p: p[:0], "0 sample"),
        (lambda p: np.where(p == p.max(), np.nan, p), "must be finite"),
        (lambda p: 2 * p, "must sum to 1"),
        (lambda p: p.astype(complex), "floating-point"),
    ],
)
def test_the_rule_that_bad_input_breaks_is_named(library, change, message):
    proba, *_ = draw(20)
    normalizer = AlternatingNormalizer().fit(proba)
    for method in (normalizer.fit, normalizer.transform, normalizer.predict):
        with pytest.raises((InputError, TypeError), match=message):
            method(library.make(change(proba)))


@pytest.mark.heavy
def test_tensors_that_require_gradients():
    torch = pytest.importorskip("torch")
    proba, *_ = draw(50)
    tensor = torch.tensor(proba, requires_grad=True)
    after = AlternatingNormalizer().fit(tensor).transform(tensor)
    assert not after.requires_grad
    expected = AlternatingNormalizer().fit(proba).transform(proba)
    assert_allclose(after.numpy(), expected, rtol=0, atol=1e-13)


DISPATCH = """
import numpy as np, torch, sklearn
sklearn.set_config(array_api_dispatch=True)
from altnorm import AlternatingNormalizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
proba = np.random.default_rng(0).dirichlet(np.full(6, 0.4), 200)
y = np.random.default_rng(1).integers(6, size=200)
there, labels = torch.tensor(proba), torch.tensor(y)
plain = AlternatingNormalizer().fit(proba, y)
steps = make_pipeline(FunctionTransformer(), AlternatingNormalizer())
after = steps.fit(there, labels).transform(there)
assert isinstance(after, torch.Tensor) and isinstance(steps.predict(there), torch.Tensor)
np.testing.assert_allclose(after.numpy(), plain.transform(proba), atol=1e-13)
np.testing.assert_array_equal(steps.predict(there).numpy(), plain.predict(proba))
"""


@pytest.mark.heavy
def test_under_array_api_dispatch(monkeypatch):
    """SciPy wants to be told before it is imported, so this runs on its own."""
    pytest.importorskip("torch")
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    subprocess.run([sys.executable, "-W", "error", "-c", DISPATCH], check=True)

"""The PyTorch modules against `transform`."""

from __future__ import annotations

import importlib
import warnings

import numpy as np
import pytest
from scipy.special import expit, softmax

from altnorm import Adjuster, AlternatingNormalizer, AlternatingNormalizerCV
from altnorm.peers import Identity, TemperatureScaling
from tests.fitted import FORMS, LABEL_FORMS, assemble, fit_case
from tests.oracle import draw_cases
from tests.problems import planted

torch = pytest.importorskip("torch")
modules = importlib.import_module("altnorm.torch")
layers = importlib.import_module("tests.layers")
AlternatingNorm = modules.AlternatingNorm

pytestmark = pytest.mark.heavy

one_thread = layers.one_thread  # a fixture


@pytest.mark.parametrize("m", [2, 10, 60])
@pytest.mark.parametrize("alpha", [0.1, 0.7, 1, 3.0])
@pytest.mark.parametrize("depth", [1, 2, 5])
def test_equals_transform(m, alpha, depth):
    p = layers.draw(0, 400, m, 3.0)
    normalizer = AlternatingNormalizer(alpha, depth, 0.5).fit(p[:200], sample_weight=np.ones(200))
    layer = AlternatingNorm.from_normalizer(normalizer)
    tolerance = layers.TOLERANCE * max(1.0, alpha ** (depth - 1))
    got, want = layer(torch.tensor(p[200:])), normalizer.transform(p[200:])
    layers.assert_close(got, want, tolerance)
    unchanged = (want == p[200:]).all(axis=1)
    assert unchanged.any()
    assert (got.numpy()[unchanged] == p[200:][unchanged]).all()


@pytest.mark.parametrize("smoothing", [False, True])
def test_everything_that_may_go_wrong(smoothing):
    for i, case in enumerate(draw_cases(8, 80, smoothing=smoothing)):
        keywords, normalizer = case.keywords, fit_case(case)
        x = torch.tensor(case.proba, requires_grad=True)
        got = AlternatingNorm.from_normalizer(normalizer)(x)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*prior zero")
            want = normalizer.transform(case.proba)
        amplification = max(1.0, keywords["alpha"] ** keywords["depth"])
        np.testing.assert_allclose(
            got.detach().numpy(), want, atol=1e-13 * amplification, rtol=0, err_msg=str(i)
        )
        got.square().sum().backward()
        assert torch.isfinite(x.grad).all()


@pytest.mark.parametrize("mode", ["pairs", "labelwise"])
@pytest.mark.parametrize("given", ["proba", "logits"])
@pytest.mark.parametrize(("alpha", "depth", "threshold"), [(1, 1, 0.75), (2.0, 3, 0.25), (2, 2, 0)])
def test_multilabel_equals_transform(mode, given, alpha, depth, threshold):
    rng = np.random.default_rng(4)
    z = 2.5 * rng.normal(size=(300, 6)) - 1
    labels = rng.random(z.shape) < expit(z)
    labels[:, 2] = True  # never adjusted
    x = expit(z) if given == "proba" else z
    normalizer = AlternatingNormalizer(
        alpha, depth, threshold, multilabel=mode, input=given, reference="all", smoothing=0.2
    ).fit(x[:200], labels[:200])
    layer = AlternatingNorm.from_normalizer(normalizer)
    layers.assert_close(
        layer(torch.tensor(x)), normalizer.transform(x), layers.TOLERANCE * alpha ** (depth - 1)
    )


def test_constructor_takes_multilabel_predictions_as_a_matrix():
    p = expit(np.random.default_rng(5).normal(size=(50, 4)) * 3)
    for mode, prior in (("labelwise", np.full(4, 0.2)), ("pairs", np.array([0.2, 0.8]))):
        normalizer = AlternatingNormalizer(
            2.0, 2, 0.5, multilabel=mode, prior=prior, reference="all"
        ).fit(p)
        layer = AlternatingNorm(p, prior, alpha=2.0, depth=2, threshold=0.5, multilabel=mode)
        layers.assert_close(layer(torch.tensor(p)), normalizer.transform(p))


def test_identity_and_search():
    p = layers.draw(6, 60, 3, 1.0)
    x = torch.tensor(p)
    assert torch.equal(AlternatingNorm.from_normalizer(Identity().fit(p))(x), x)
    labels = p > 0.4
    labelwise = Identity(multilabel="labelwise").fit(p, labels)
    assert torch.equal(AlternatingNorm.from_normalizer(labelwise)(x), x)
    y = np.random.default_rng(6).integers(3, size=60)
    search = AlternatingNormalizerCV((1.0,), (1, 2), (0.5,), input="logits", random_state=0)
    search.fit(np.log(p), y)
    layers.assert_close(
        AlternatingNorm.from_normalizer(search)(torch.log(x)), search.transform(np.log(p))
    )
    with pytest.raises(ValueError, match=r"nothing else.*Use altnorm.torch.from_normalizer"):
        AlternatingNorm.from_normalizer(TemperatureScaling().fit(p, y))


@pytest.mark.parametrize(("decider", "calibration"), FORMS)
@pytest.mark.parametrize("given", ["proba", "logits"])
def test_both_stages_of_an_adjuster(decider, calibration, given):
    z, y = layers.biased(12, 400, 4)
    z[::50] = -800 * (np.arange(4) != 3)  # one-hot rows: logs of zero
    values = z if given == "logits" else softmax(z, axis=1)
    adjuster = assemble(decider, calibration, values[:300], y[:300], input=given)
    layer, want = modules.from_normalizer(adjuster), adjuster.transform(values)
    x = torch.tensor(values, requires_grad=True)
    layers.assert_close(layer(x), want)
    for dtype in (torch.float64, torch.float32):
        rows = x.detach().to(dtype)
        alone = adjuster.transform(rows.double().numpy()).argmax(axis=1)
        np.testing.assert_array_equal(layer(rows).argmax(dim=1).numpy(), alone)
    layer(x).square().sum().backward()
    assert torch.isfinite(x.grad).all()


@pytest.mark.parametrize(("mode", "decider", "calibration"), LABEL_FORMS)
@pytest.mark.parametrize("given", ["proba", "logits"])
def test_both_stages_for_several_labels(mode, decider, calibration, given):
    z, _ = layers.biased(13, 300, 5)
    labels = np.random.default_rng(13).random(z.shape) < expit(z + 1)
    z[0, :2] = -900, 900
    values = z if given == "logits" else expit(z)
    adjuster = assemble(decider, calibration, values, labels, multilabel=mode, input=given)
    x = torch.tensor(values, requires_grad=True)
    layer = modules.from_normalizer(adjuster)
    layers.assert_close(layer(x), adjuster.transform(values))
    layer(x).square().sum().backward()
    assert torch.isfinite(x.grad).all()


def test_an_adapted_copy():
    p, y = planted(1000)
    rare = y != 3
    rare[::20] = True
    adapted = Adjuster(("alternating",), n_repeats=1).fit(p, y).adapt(p[rare])
    assert adapted.shift_.adapted
    layers.assert_close(modules.from_normalizer(adapted)(torch.tensor(p)), adapted.transform(p))


def test_a_calibration_that_would_change_decisions_does_not():
    z, y = layers.biased(14, 400, 6)
    adjuster = assemble("alternating", "matrix", softmax(z, axis=1), y)
    p = np.random.default_rng(14).dirichlet(np.ones(6), 1000)
    layer, x = modules.from_normalizer(adjuster), torch.tensor(p)
    lost = layer.calibrator(x).argmax(dim=1) != layer.decider(x).argmax(dim=1)
    assert lost.sum() > 50
    for dtype in (torch.float64, torch.float32, torch.bfloat16):
        rows = x.to(dtype)
        got, decided = layer(rows), layer.decider(rows.double()).argmax(dim=1)
        assert torch.equal(got.argmax(dim=1), decided)
        ones = torch.ones(1000, dtype=dtype)
        torch.testing.assert_close(got.sum(dim=1), ones, atol=3e-2, rtol=0)


@pytest.mark.parametrize("calibration", ["temperatures", "bias", "matrix"])
def test_gradient_through_the_calibration(calibration):
    z, y = layers.biased(15, 200, 4)
    adjuster = assemble("alternating", calibration, z, y, input="logits")
    rows = torch.tensor(np.random.default_rng(16).normal(size=(8, 4)), requires_grad=True)
    assert torch.autograd.gradcheck(modules.from_normalizer(adjuster), (rows,), atol=1e-6)


def test_peers_and_soft_thresholds():
    z, y = layers.biased(17, 200, 3)
    z[0] = [0.0, -900.0, -1000.0]
    peer = TemperatureScaling(input="logits").fit(z, y)
    layer = modules.from_normalizer(peer)
    layers.assert_close(layer(torch.tensor(z)), peer.transform(z))
    with pytest.raises(ValueError, match="A soft threshold is for alternating normalization"):
        modules.from_normalizer(peer, soft=0.1)
    plain = AlternatingNormalizer().fit(softmax(z, axis=1))
    assert modules.from_normalizer(plain, soft=0.1).soft == 0.1
    calibrated = assemble("alternating", "temperatures", softmax(z, axis=1), y)
    with pytest.raises(ValueError, match="A soft threshold is for alternating normalization"):
        modules.from_normalizer(calibrated, soft=0.1)
    with pytest.raises(ValueError, match=r"one row and one column .* \(2, 3\) and \(3,\)"):
        modules.ScoreScaling(np.ones((2, 3)), np.zeros(3))


@pytest.mark.parametrize("given", ["proba", "logits"])
@pytest.mark.parametrize("multilabel", [None, "labelwise"])
def test_sequences_with_a_mask(given, multilabel):
    z, y = layers.biased(18, 240, 3)
    values = z if given == "logits" else softmax(z, axis=1)
    labels = y if multilabel is None else z > 1
    settings = {"multilabel": multilabel, "input": given}
    adjuster = assemble("alternating", "temperatures", values, labels, **settings)
    layer = modules.from_normalizer(adjuster)
    x = torch.tensor(values.reshape(8, 30, 3))
    want = adjuster.transform(values).reshape(8, 30, 3)
    layers.assert_close(layer(x), want)
    layers.assert_close(layer(x[0, 0]), want[0, 0])
    lengths = torch.arange(1, 9) * 3
    mask = torch.arange(30) < lengths[:, None]
    x[~mask] = torch.nan
    x.requires_grad_()
    for padding in (mask, mask.to(torch.int64)):
        got = layer(x, padding)
        layers.assert_close(got[mask], want[mask.numpy()])
        assert (got[~mask] == 0).all()
    got.square().sum().backward()
    assert torch.isfinite(x.grad).all()
    assert (x.grad[~mask] == 0).all()

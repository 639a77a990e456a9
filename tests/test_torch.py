"""The PyTorch module against `transform`, and what PyTorch does with modules."""

from __future__ import annotations

import copy
import importlib
import io
import sys
import warnings
from collections.abc import Iterator

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
AlternatingNorm = modules.AlternatingNorm

pytestmark = pytest.mark.heavy

TOLERANCE = 1e-12
DEVICES = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
# (classes, alpha, depth): one iteration, the scaling form, and two classes.
SETTINGS = [(5, 2.0, 1), (5, 0.7, 2), (5, 2.0, 3), (2, 3.0, 1), (2, 1.5, 3)]


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(n_threads)


def draw(seed: int, n: int, m: int, scale: float) -> np.ndarray:
    return softmax(scale * np.random.default_rng(seed).normal(size=(n, m)), axis=1)


def layer_and_rows(m: int, alpha: float, depth: int, **keywords):
    prior = np.random.default_rng(1).dirichlet(np.full(m, 5.0))
    keywords = {"threshold": 0.3, **keywords}
    layer = AlternatingNorm(draw(2, 30, m, 3.0), prior, alpha=alpha, depth=depth, **keywords)
    return layer, torch.tensor(draw(3, 6, m, 0.5))


def assert_close(got, want: np.ndarray, tolerance: float = TOLERANCE) -> None:
    np.testing.assert_allclose(got.detach().numpy(), want, atol=tolerance, rtol=0)


@pytest.mark.parametrize("m", [2, 10, 60])
@pytest.mark.parametrize("alpha", [0.1, 0.7, 1, 3.0])
@pytest.mark.parametrize("depth", [1, 2, 5])
def test_equals_transform(m, alpha, depth):
    p = draw(0, 400, m, 3.0)
    normalizer = AlternatingNormalizer(alpha, depth, 0.5).fit(p[:200], sample_weight=np.ones(200))
    layer = AlternatingNorm.from_normalizer(normalizer)
    tolerance = TOLERANCE * max(1.0, alpha ** (depth - 1))
    got, want = layer(torch.tensor(p[200:])), normalizer.transform(p[200:])
    assert_close(got, want, tolerance)
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
    assert_close(layer(torch.tensor(x)), normalizer.transform(x), TOLERANCE * alpha ** (depth - 1))


def test_constructor_takes_multilabel_predictions_as_a_matrix():
    p = expit(np.random.default_rng(5).normal(size=(50, 4)) * 3)
    for mode, prior in (("labelwise", np.full(4, 0.2)), ("pairs", np.array([0.2, 0.8]))):
        normalizer = AlternatingNormalizer(
            2.0, 2, 0.5, multilabel=mode, prior=prior, reference="all"
        ).fit(p)
        layer = AlternatingNorm(p, prior, alpha=2.0, depth=2, threshold=0.5, multilabel=mode)
        assert_close(layer(torch.tensor(p)), normalizer.transform(p))


def test_identity_and_search():
    p = draw(6, 60, 3, 1.0)
    x = torch.tensor(p)
    assert torch.equal(AlternatingNorm.from_normalizer(Identity().fit(p))(x), x)
    labels = p > 0.4
    yes = Identity(multilabel="labelwise").fit(p, labels)
    assert torch.equal(AlternatingNorm.from_normalizer(yes)(x), x)
    y = np.random.default_rng(6).integers(3, size=60)
    search = AlternatingNormalizerCV((1.0,), (1, 2), (0.5,), input="logits", random_state=0)
    search.fit(np.log(p), y)
    assert_close(AlternatingNorm.from_normalizer(search)(torch.log(x)), search.transform(np.log(p)))
    with pytest.raises(ValueError, match=r"nothing else.*Use altnorm.torch.from_normalizer"):
        AlternatingNorm.from_normalizer(TemperatureScaling().fit(p, y))


def biased(seed: int, n: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    """Logits that favour class 0, with labels."""
    rng = np.random.default_rng(seed)
    y = rng.integers(m, size=n)
    return 1.5 * rng.normal(size=(n, m)) + 2.5 * np.eye(m)[y] + 2 * (np.arange(m) == 0), y


@pytest.mark.parametrize(("decider", "calibration"), FORMS)
@pytest.mark.parametrize("given", ["proba", "logits"])
def test_both_stages_of_an_adjuster(decider, calibration, given):
    z, y = biased(12, 400, 4)
    z[::50] = -800 * (np.arange(4) != 3)  # one-hot rows: logs of zero
    values = z if given == "logits" else softmax(z, axis=1)
    adjuster = assemble(decider, calibration, values[:300], y[:300], input=given)
    layer, want = modules.from_normalizer(adjuster), adjuster.transform(values)
    x = torch.tensor(values, requires_grad=True)
    assert_close(layer(x), want)
    for dtype in (torch.float64, torch.float32):
        rows = x.detach().to(dtype)
        alone = adjuster.transform(rows.double().numpy()).argmax(axis=1)
        np.testing.assert_array_equal(layer(rows).argmax(dim=1).numpy(), alone)
    layer(x).square().sum().backward()
    assert torch.isfinite(x.grad).all()


@pytest.mark.parametrize(("mode", "decider", "calibration"), LABEL_FORMS)
@pytest.mark.parametrize("given", ["proba", "logits"])
def test_both_stages_for_several_labels(mode, decider, calibration, given):
    z, _ = biased(13, 300, 5)
    labels = np.random.default_rng(13).random(z.shape) < expit(z + 1)
    z[0, :2] = -900, 900
    values = z if given == "logits" else expit(z)
    adjuster = assemble(decider, calibration, values, labels, multilabel=mode, input=given)
    x = torch.tensor(values, requires_grad=True)
    layer = modules.from_normalizer(adjuster)
    assert_close(layer(x), adjuster.transform(values))
    layer(x).square().sum().backward()
    assert torch.isfinite(x.grad).all()


def test_an_adapted_copy():
    p, y = planted(1000)
    rare = y != 3
    rare[::20] = True
    adapted = Adjuster(("alternating",), n_repeats=1).fit(p, y).adapt(p[rare])
    assert adapted.shift_.adapted
    assert_close(modules.from_normalizer(adapted)(torch.tensor(p)), adapted.transform(p))


def test_a_calibration_that_would_change_decisions_does_not():
    z, y = biased(14, 400, 6)
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
    z, y = biased(15, 200, 4)
    adjuster = assemble("alternating", calibration, z, y, input="logits")
    rows = torch.tensor(np.random.default_rng(16).normal(size=(8, 4)), requires_grad=True)
    assert torch.autograd.gradcheck(modules.from_normalizer(adjuster), (rows,), atol=1e-6)


def test_peers_and_soft_thresholds():
    z, y = biased(17, 200, 3)
    z[0] = [0.0, -900.0, -1000.0]
    peer = TemperatureScaling(input="logits").fit(z, y)
    layer = modules.from_normalizer(peer)
    assert_close(layer(torch.tensor(z)), peer.transform(z))
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
    z, y = biased(18, 240, 3)
    values = z if given == "logits" else softmax(z, axis=1)
    labels = y if multilabel is None else z > 1
    settings = {"multilabel": multilabel, "input": given}
    adjuster = assemble("alternating", "temperatures", values, labels, **settings)
    layer = modules.from_normalizer(adjuster)
    x = torch.tensor(values.reshape(8, 30, 3))
    want = adjuster.transform(values).reshape(8, 30, 3)
    assert_close(layer(x), want)
    assert_close(layer(x[0, 0]), want[0, 0])
    lengths = torch.arange(1, 9) * 3
    mask = torch.arange(30) < lengths[:, None]
    x[~mask] = torch.nan
    x.requires_grad_()
    for padding in (mask, mask.to(torch.int64)):
        got = layer(x, padding)
        assert_close(got[mask], want[mask.numpy()])
        assert (got[~mask] == 0).all()
    got.square().sum().backward()
    assert torch.isfinite(x.grad).all()
    assert (x.grad[~mask] == 0).all()


@pytest.mark.parametrize(("m", "alpha", "depth"), SETTINGS)
@pytest.mark.parametrize("soft", [0.0, 0.1])
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_gradient(m, alpha, depth, soft, smoothing):
    layer, rows = layer_and_rows(m, alpha, depth, soft=soft, smoothing=smoothing)
    assert torch.autograd.gradcheck(layer, (rows.requires_grad_(),), atol=1e-6)


def test_gradient_where_linear_sums_underflow():
    layer, rows = layer_and_rows(40, 35.0, 3)
    from altnorm.torch import _log_product

    seen = []
    lost = _log_product._lost

    def spy(*arguments):
        for row, column in lost(*arguments):
            seen.append(row.numel())
            yield row, column

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_log_product, "_lost", spy)
        assert torch.autograd.gradcheck(layer, (rows.requires_grad_(),), eps=1e-8, atol=1e-5)
    assert sum(seen) > 0


def test_gradient_through_logits_and_labels():
    z = torch.tensor(np.random.default_rng(7).normal(size=(4, 3)), requires_grad=True)
    p = draw(2, 30, 3, 3.0)
    for mode in (None, "pairs", "labelwise"):
        layer = AlternatingNorm(p, depth=2, threshold=0.3, multilabel=mode, input="logits")
        assert torch.autograd.gradcheck(layer, (z,), atol=1e-6)


def test_zero_probabilities_have_finite_gradients():
    layer, _ = layer_and_rows(5, 0.5, 2)
    rows = torch.tensor([[0.5, 0.5, 0, 0, 0], [1.0, 0, 0, 0, 0]], dtype=torch.float64)
    rows.requires_grad_()
    layer(rows).square().sum().backward()
    assert torch.isfinite(rows.grad).all()
    assert (rows.grad[0, 2:] == 0).all()


def test_soft_threshold_moves_towards_the_hard_one():
    hard, rows = layer_and_rows(5, 2.0, 2, threshold=0.9)
    for soft, tolerance in ((1e-1, 1.0), (1e-5, 1e-6)):
        layer, _ = layer_and_rows(5, 2.0, 2, threshold=0.9, soft=soft)
        torch.testing.assert_close(layer(rows), hard(rows), atol=tolerance, rtol=0)
        torch.testing.assert_close(layer(rows).sum(dim=1), torch.ones(6, dtype=torch.float64))


@pytest.mark.parametrize("m", [2, 5])
def test_state_dict_round_trip(m):
    layer, rows = layer_and_rows(m, 2.0, 2)
    other = AlternatingNorm(draw(9, 30, m, 3.0), alpha=2.0, depth=2, threshold=0.3)
    assert not torch.allclose(layer(rows), other(rows))
    file = io.BytesIO()
    torch.save(torch.nn.Sequential(layer).state_dict(), file)
    file.seek(0)
    torch.nn.Sequential(other).load_state_dict(torch.load(file, weights_only=True))
    assert torch.equal(layer(rows), other(rows))
    assert torch.equal(copy.deepcopy(layer)(rows), layer(rows))


def test_state_dict_of_another_size():
    rows = torch.tensor(draw(3, 6, 5, 0.5))
    for weight in (None, np.arange(1.0, 51.0)):
        big = AlternatingNorm(
            draw(2, 50, 5, 3.0), draw(1, 1, 5, 1.0)[0], depth=2, reference_weight=weight
        )
        for n, m, own in ((30, 5, None), (7, 3, np.ones(7))):
            small = AlternatingNorm(draw(9, n, m, 3.0), depth=2, reference_weight=own)
            small.load_state_dict(big.state_dict())
            assert torch.equal(small(rows), big(rows))
    z, y = biased(19, 300, 5)
    for decider in ("alternating", "matrix"):
        one, other = (
            modules.from_normalizer(assemble(decider, "bias", z[:n, :m], y[:n] % m, input="logits"))
            for n, m in ((300, 5), (200, 3))
        )
        other.load_state_dict(one.state_dict())
        assert torch.equal(other(torch.tensor(z)), one(torch.tensor(z)))


def test_state_dict_of_another_kind_is_refused():
    z, y = biased(20, 100, 3)
    p = softmax(z, axis=1)
    bias, plain = (
        modules.from_normalizer(assemble(decider, "temperatures", p, y))
        for decider in ("bias", "alternating")
    )
    with pytest.raises(RuntimeError, match=r"Missing key.*decider\.reference"):
        plain.load_state_dict(bias.state_dict())


def test_buffers_stay_double_and_output_follows_the_input():
    layer, rows = layer_and_rows(5, 2.0, 2)
    want = layer(rows)
    for dtype in (torch.float16, torch.bfloat16, torch.float32):
        got = layer.to(dtype)(rows.to(dtype))
        assert got.dtype == dtype
        torch.testing.assert_close(got.double(), want, atol=1e-2, rtol=0)
    assert torch.equal(layer(rows), want)


@pytest.mark.parametrize(("m", "alpha", "depth"), [(5, 2.0, 1), (5, 2.0, 2), (2, 1.5, 3)])
def test_compile_in_one_graph(m, alpha, depth):
    layer, rows = layer_and_rows(m, alpha, depth)
    torch._dynamo.reset()
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    x, y = rows.clone().requires_grad_(), rows.clone().requires_grad_()
    compiled(x).square().sum().backward()
    layer(y).square().sum().backward()
    torch.testing.assert_close(compiled(x), layer(y))
    torch.testing.assert_close(x.grad, y.grad)


@pytest.mark.parametrize(("m", "alpha", "depth"), [(5, 2.0, 1), (5, 2.0, 2), (2, 1.5, 3)])
def test_export_with_any_number_of_rows(m, alpha, depth):
    layer, rows = layer_and_rows(m, alpha, depth)
    batch = torch.export.Dim("batch")
    program = torch.export.export(layer, (rows,), dynamic_shapes=({0: batch},))
    more = torch.tensor(draw(10, 11, m, 0.5))
    torch.testing.assert_close(program.module()(more), layer(more))
    own = {str(node.target) for node in program.graph.nodes if "altnorm" in str(node.target)}
    assert own == ({"altnorm.log_product.default"} if (m, depth) == (5, 2) else set())


@pytest.mark.parametrize("calibration", ["temperatures", "matrix"])
def test_both_stages_in_one_graph(calibration):
    z, y = biased(21, 200, 4)
    layer = modules.from_normalizer(assemble("deep", calibration, z, y, input="logits"))
    x = torch.tensor(z.reshape(10, 20, 4))
    mask = torch.rand(10, 20) < 0.7
    torch._dynamo.reset()
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x, mask), layer(x, mask))
    shapes = ({0: torch.export.Dim("batch")}, {0: torch.export.Dim("batch")})
    program = torch.export.export(layer, (x, mask), dynamic_shapes=shapes)
    torch.testing.assert_close(program.module()(x[:3], mask[:3]), layer(x[:3], mask[:3]))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("m", "alpha", "depth"), SETTINGS)
def test_device(device, m, alpha, depth):
    layer, rows = layer_and_rows(m, alpha, depth)
    want = layer(rows)
    got = layer.to(device)(rows.to(device))
    assert got.device.type == device
    torch.testing.assert_close(got.cpu(), want, atol=TOLERANCE, rtol=0)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("calibration", ["temperatures", "matrix"])
def test_both_stages_on_a_device(device, calibration):
    z, y = biased(22, 200, 4)
    layer = modules.from_normalizer(assemble("alternating", calibration, z, y, input="logits"))
    x, mask = torch.tensor(z.reshape(10, 20, 4)), torch.arange(200).reshape(10, 20) % 3 > 0
    want = layer(x, mask)
    got = layer.to(device)(x.to(device), mask.to(device))
    assert got.device.type == device
    torch.testing.assert_close(got.cpu(), want, atol=TOLERANCE, rtol=0)


def test_bad_arguments():
    p = draw(11, 5, 3, 1.0)
    with pytest.raises(ValueError, match="`soft` must be"):
        AlternatingNorm(p, soft=-1.0)
    with pytest.raises(ValueError, match="must sum to 1"):
        AlternatingNorm(2 * p)
    with pytest.raises(ValueError, match="one column per label"):
        AlternatingNorm(p[:, 0], multilabel="labelwise")
    with pytest.raises(ValueError, match="from 0 to 1"):
        AlternatingNorm(3 * p, multilabel="labelwise")
    with pytest.raises(ValueError, match="must hold 3 probabilities of yes"):
        AlternatingNorm(p, np.full(2, 0.5), multilabel="labelwise")


def test_missing_library_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "altnorm.torch")
    with pytest.raises(ImportError, match=r"pip install 'altnorm\[torch\]'"):
        importlib.import_module("altnorm.torch")

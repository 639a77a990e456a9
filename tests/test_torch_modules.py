"""What PyTorch does with modules: gradients, state dicts, compilation, export, devices."""

from __future__ import annotations

import copy
import importlib
import io
import sys

import numpy as np
import pytest
from scipy.special import softmax

from tests.fitted import assemble

torch = pytest.importorskip("torch")
modules = importlib.import_module("altnorm.torch")
AlternatingNorm = modules.AlternatingNorm

layers = importlib.import_module("tests.layers")

pytestmark = pytest.mark.heavy

DEVICES = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]

one_thread = layers.one_thread  # a fixture


@pytest.mark.parametrize(("m", "alpha", "depth"), layers.SETTINGS)
@pytest.mark.parametrize("soft", [0.0, 0.1])
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_gradient(m, alpha, depth, soft, smoothing):
    layer, rows = layers.layer_and_rows(m, alpha, depth, soft=soft, smoothing=smoothing)
    assert torch.autograd.gradcheck(layer, (rows.requires_grad_(),), atol=1e-6)


def test_gradient_where_linear_sums_underflow():
    layer, rows = layers.layer_and_rows(40, 35.0, 3)
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
    p = layers.draw(2, 30, 3, 3.0)
    for mode in (None, "pairs", "labelwise"):
        layer = AlternatingNorm(p, depth=2, threshold=0.3, multilabel=mode, input="logits")
        assert torch.autograd.gradcheck(layer, (z,), atol=1e-6)


def test_zero_probabilities_have_finite_gradients():
    layer, _ = layers.layer_and_rows(5, 0.5, 2)
    rows = torch.tensor([[0.5, 0.5, 0, 0, 0], [1.0, 0, 0, 0, 0]], dtype=torch.float64)
    rows.requires_grad_()
    layer(rows).square().sum().backward()
    assert torch.isfinite(rows.grad).all()
    assert (rows.grad[0, 2:] == 0).all()


def test_soft_threshold_moves_towards_the_hard_one():
    hard, rows = layers.layer_and_rows(5, 2.0, 2, threshold=0.9)
    for soft, tolerance in ((1e-1, 1.0), (1e-5, 1e-6)):
        layer, _ = layers.layer_and_rows(5, 2.0, 2, threshold=0.9, soft=soft)
        torch.testing.assert_close(layer(rows), hard(rows), atol=tolerance, rtol=0)
        torch.testing.assert_close(layer(rows).sum(dim=1), torch.ones(6, dtype=torch.float64))


@pytest.mark.parametrize("m", [2, 5])
def test_state_dict_round_trip(m):
    layer, rows = layers.layer_and_rows(m, 2.0, 2)
    other = AlternatingNorm(layers.draw(9, 30, m, 3.0), alpha=2.0, depth=2, threshold=0.3)
    assert not torch.allclose(layer(rows), other(rows))
    file = io.BytesIO()
    torch.save(torch.nn.Sequential(layer).state_dict(), file)
    file.seek(0)
    torch.nn.Sequential(other).load_state_dict(torch.load(file, weights_only=True))
    assert torch.equal(layer(rows), other(rows))
    assert torch.equal(copy.deepcopy(layer)(rows), layer(rows))


def test_state_dict_of_another_size():
    rows = torch.tensor(layers.draw(3, 6, 5, 0.5))
    for weight in (None, np.arange(1.0, 51.0)):
        big = AlternatingNorm(
            layers.draw(2, 50, 5, 3.0),
            layers.draw(1, 1, 5, 1.0)[0],
            depth=2,
            reference_weight=weight,
        )
        for n, m, own in ((30, 5, None), (7, 3, np.ones(7))):
            small = AlternatingNorm(layers.draw(9, n, m, 3.0), depth=2, reference_weight=own)
            small.load_state_dict(big.state_dict())
            assert torch.equal(small(rows), big(rows))
    z, y = layers.biased(19, 300, 5)
    for decider in ("alternating", "matrix"):
        one, other = (
            modules.from_normalizer(assemble(decider, "bias", z[:n, :m], y[:n] % m, input="logits"))
            for n, m in ((300, 5), (200, 3))
        )
        other.load_state_dict(one.state_dict())
        assert torch.equal(other(torch.tensor(z)), one(torch.tensor(z)))


def test_state_dict_of_another_kind_is_refused():
    z, y = layers.biased(20, 100, 3)
    p = softmax(z, axis=1)
    bias, plain = (
        modules.from_normalizer(assemble(decider, "temperatures", p, y))
        for decider in ("bias", "alternating")
    )
    with pytest.raises(RuntimeError, match=r"Missing key.*decider\.reference"):
        plain.load_state_dict(bias.state_dict())


def test_buffers_stay_double_and_output_follows_the_input():
    layer, rows = layers.layer_and_rows(5, 2.0, 2)
    want = layer(rows)
    for dtype in (torch.float16, torch.bfloat16, torch.float32):
        got = layer.to(dtype)(rows.to(dtype))
        assert got.dtype == dtype
        torch.testing.assert_close(got.double(), want, atol=1e-2, rtol=0)
    assert torch.equal(layer(rows), want)


@pytest.mark.parametrize(("m", "alpha", "depth"), [(5, 2.0, 1), (5, 2.0, 2), (2, 1.5, 3)])
def test_compile_in_one_graph(m, alpha, depth):
    layer, rows = layers.layer_and_rows(m, alpha, depth)
    torch._dynamo.reset()
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    x, y = rows.clone().requires_grad_(), rows.clone().requires_grad_()
    compiled(x).square().sum().backward()
    layer(y).square().sum().backward()
    torch.testing.assert_close(compiled(x), layer(y))
    torch.testing.assert_close(x.grad, y.grad)


@pytest.mark.parametrize(("m", "alpha", "depth"), [(5, 2.0, 1), (5, 2.0, 2), (2, 1.5, 3)])
def test_export_with_any_number_of_rows(m, alpha, depth):
    layer, rows = layers.layer_and_rows(m, alpha, depth)
    batch = torch.export.Dim("batch")
    program = torch.export.export(layer, (rows,), dynamic_shapes=({0: batch},))
    more = torch.tensor(layers.draw(10, 11, m, 0.5))
    torch.testing.assert_close(program.module()(more), layer(more))
    own = {str(node.target) for node in program.graph.nodes if "altnorm" in str(node.target)}
    assert own == ({"altnorm.log_product.default"} if (m, depth) == (5, 2) else set())


@pytest.mark.parametrize("calibration", ["temperatures", "matrix"])
def test_both_stages_in_one_graph(calibration):
    z, y = layers.biased(21, 200, 4)
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
@pytest.mark.parametrize(("m", "alpha", "depth"), layers.SETTINGS)
def test_device(device, m, alpha, depth):
    layer, rows = layers.layer_and_rows(m, alpha, depth)
    want = layer(rows)
    got = layer.to(device)(rows.to(device))
    assert got.device.type == device
    torch.testing.assert_close(got.cpu(), want, atol=layers.TOLERANCE, rtol=0)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("calibration", ["temperatures", "matrix"])
def test_both_stages_on_a_device(device, calibration):
    z, y = layers.biased(22, 200, 4)
    layer = modules.from_normalizer(assemble("alternating", calibration, z, y, input="logits"))
    x, mask = torch.tensor(z.reshape(10, 20, 4)), torch.arange(200).reshape(10, 20) % 3 > 0
    want = layer(x, mask)
    got = layer.to(device)(x.to(device), mask.to(device))
    assert got.device.type == device
    torch.testing.assert_close(got.cpu(), want, atol=layers.TOLERANCE, rtol=0)


def test_bad_arguments():
    p = layers.draw(11, 5, 3, 1.0)
    with pytest.raises(ValueError, match="`soft` must be"):
        AlternatingNorm(p, soft=-1.0)
    with pytest.raises(ValueError, match="must sum to 1"):
        AlternatingNorm(2 * p)
    with pytest.raises(ValueError, match="one column per label"):
        AlternatingNorm(p[:, 0], multilabel="labelwise")
    with pytest.raises(ValueError, match="from 0 to 1"):
        AlternatingNorm(3 * p, multilabel="labelwise")
    with pytest.raises(ValueError, match="one probability of yes per label, 3 numbers"):
        AlternatingNorm(p, np.full(2, 0.5), multilabel="labelwise")


def test_missing_library_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "altnorm.torch")
    with pytest.raises(ImportError, match=r"pip install 'altnorm\[torch\]'"):
        importlib.import_module("altnorm.torch")

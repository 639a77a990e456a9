"""The PyTorch module against `transform` and `predict`, its gradients, graphs and state."""

from __future__ import annotations

import copy
import importlib
import io

import numpy as np
import pytest
from scipy.special import softmax

from altnorm import AlternatingNormalizer
from tests.programs import PROGRAMS, answer, hard_cases, make, several, single

torch = pytest.importorskip("torch")
from_normalizer = importlib.import_module("altnorm.torch").from_normalizer

pytestmark = pytest.mark.heavy

TOLERANCE = 1e-12
DEVICES = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
# (classes, alpha, depth): one iteration, the scaling form, and two classes.
SETTINGS = [(5, 2.0, 1), (5, 0.7, 2), (5, 2.0, 3), (2, 3.0, 1), (2, 1.5, 3)]


@pytest.fixture(autouse=True)
def one_thread():
    """More threads would fight with those of the other tests."""
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(n_threads)


def draw(seed, n, m, scale):
    return softmax(scale * np.random.default_rng(seed).normal(size=(n, m)), axis=1)


def layer_and_rows(m, alpha, depth, **settings):
    prior = np.random.default_rng(1).dirichlet(np.full(m, 5.0))
    normalizer = AlternatingNormalizer(alpha, depth, 0.3, reference="all", prior=prior, **settings)
    layer = from_normalizer(normalizer.fit(draw(2, 30, m, 3.0)))
    return layer, torch.tensor(draw(3, 6, m, 0.5))


def assert_close(got, want, tolerance=TOLERANCE):
    np.testing.assert_allclose(got.detach().numpy(), want, atol=tolerance, rtol=0)


def finite_gradient(layer, values):
    x = torch.tensor(values, requires_grad=True)
    layer(x).square().sum().backward()
    return bool(torch.isfinite(x.grad).all())


@pytest.mark.parametrize("smoothing", [False, True])
def test_everything_that_may_go_wrong(smoothing):
    for i, (normalizer, x, want, atol) in enumerate(hard_cases(8, 80, smoothing=smoothing)):
        layer = from_normalizer(normalizer)
        got = layer(torch.tensor(x)).numpy()
        np.testing.assert_allclose(got, want, atol=atol, rtol=0, err_msg=str(i))
        assert finite_gradient(layer, x)


@pytest.mark.parametrize(("model", "rule"), PROGRAMS)
@pytest.mark.parametrize("input", ["proba", "logits"])
def test_both_stages(model, rule, input):
    fitted, values = make(model, rule, input)
    layer = from_normalizer(fitted)
    for dtype, tolerance in ((np.float64, TOLERANCE), (np.float32, 1e-7)):
        x = torch.tensor(values.astype(dtype))
        want, codes = answer(fitted, x.numpy())
        assert_close(layer(x), want, tolerance)
        np.testing.assert_array_equal(layer.decide(x), codes)
        if rule == "argmax":
            np.testing.assert_array_equal(layer.decide(x), layer(x).argmax(dim=1))
        if (model, rule) == ("kept", "argmax"):
            np.testing.assert_array_equal(layer.decide(x), x.argmax(dim=1))
    assert finite_gradient(layer, values)


@pytest.mark.parametrize(("m", "alpha", "depth"), SETTINGS)
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_gradient(m, alpha, depth, smoothing):
    layer, rows = layer_and_rows(m, alpha, depth, smoothing=smoothing)
    assert torch.autograd.gradcheck(layer, (rows.requires_grad_(),), atol=1e-6)


@pytest.mark.parametrize("model", ["matrix", "curves", "kept", "adapted", "cooled", "deep, cooled"])
def test_gradient_through_both_stages(model):
    fitted, _ = single(model, "argmax", "logits", m=4)
    rows = torch.tensor(np.random.default_rng(16).normal(size=(8, 4)), requires_grad=True)
    assert torch.autograd.gradcheck(from_normalizer(fitted), (rows,), atol=1e-6)


def test_gradient_where_linear_sums_underflow(monkeypatch):
    from altnorm.method import scaling

    layer, rows = layer_and_rows(40, 35.0, 3)
    seen, repair = [], scaling._repair

    def spy(log_product, wrong, *others):
        seen.append(int(wrong.sum()))
        return repair(log_product, wrong, *others)

    monkeypatch.setattr(scaling, "_repair", spy)
    assert torch.autograd.gradcheck(layer, (rows.requires_grad_(),), eps=1e-8, atol=1e-5)
    assert sum(seen) > 0


def test_zero_probabilities_have_no_gradient():
    layer, _ = layer_and_rows(5, 0.5, 2)
    rows = torch.tensor([[0.5, 0.5, 0, 0, 0], [1.0, 0, 0, 0, 0]], dtype=torch.float64)
    layer(rows.requires_grad_()).square().sum().backward()
    assert torch.isfinite(rows.grad).all()
    assert (rows.grad[0, 2:] == 0).all()


@pytest.mark.parametrize("input", ["proba", "logits"])
@pytest.mark.parametrize("labels", [False, True])
def test_sequences_with_a_mask(input, labels):
    fitted, values = several("pairs", input) if labels else single("cooled", "person", input)
    m = values.shape[1]
    values = values[:240]
    layer = from_normalizer(fitted)
    x = torch.tensor(values.reshape(8, 30, m))
    want, codes = answer(fitted, values)
    want = want.reshape(8, 30, m)
    assert_close(layer(x), want)
    assert_close(layer(x[0, 0]), want[0, 0])
    decided = layer.decide(x)
    assert decided.shape == (x.shape if labels else x.shape[:2])
    np.testing.assert_array_equal(decided.reshape(codes.shape), codes)
    mask = torch.arange(30) < 3 * torch.arange(1, 9)[:, None]
    x[~mask] = torch.nan
    for padding in (mask, mask.to(torch.int64)):
        got = layer(x.requires_grad_(), padding)
        assert_close(got[mask], want[mask.numpy()])
        assert (got[~mask] == 0).all()
        assert (layer.decide(x, padding)[~mask] == -1).all()
    got.square().sum().backward()
    assert torch.isfinite(x.grad).all()
    assert (x.grad[~mask] == 0).all()


def test_state_dicts():
    layer, rows = layer_and_rows(5, 2.0, 2)
    twin = layer_and_rows(5, 0.5, 2)[0]
    assert not torch.allclose(layer(rows), twin(rows))
    file = io.BytesIO()
    torch.save(torch.nn.Sequential(layer).state_dict(), file)
    file.seek(0)
    torch.nn.Sequential(twin).load_state_dict(torch.load(file, weights_only=True))
    assert torch.equal(layer(rows), twin(rows))
    assert torch.equal(copy.deepcopy(layer)(rows), layer(rows))
    for wrong in (layer_and_rows(5, 2.0, 3)[0], layer_and_rows(4, 2.0, 2)[0]):
        with pytest.raises(RuntimeError, match=r"Unexpected key|Missing key|size mismatch"):
            wrong.load_state_dict(layer.state_dict())


def test_buffers_stay_double_and_output_follows_the_input():
    layer, rows = layer_and_rows(5, 2.0, 2)
    want = layer(rows)
    for dtype in (torch.float16, torch.bfloat16, torch.float32):
        got = layer.to(dtype)(rows.to(dtype))
        assert got.dtype == dtype
        torch.testing.assert_close(got.double(), want, atol=1e-2, rtol=0)
    assert torch.equal(layer(rows), want)


def one_graph(function):
    torch._dynamo.reset()
    return torch.compile(function, fullgraph=True, backend="aot_eager")


def exported(layer, *arguments):
    shapes = tuple({0: torch.export.Dim("batch")} for _ in arguments)
    return torch.export.export(layer, arguments, dynamic_shapes=shapes)


@pytest.mark.parametrize(("m", "alpha", "depth"), [(5, 2.0, 1), (5, 2.0, 2), (2, 1.5, 3)])
def test_compile_and_export_in_one_graph(m, alpha, depth):
    layer, rows = layer_and_rows(m, alpha, depth)
    forward = one_graph(layer)
    x, y = rows.clone().requires_grad_(), rows.clone().requires_grad_()
    forward(x).square().sum().backward()
    layer(y).square().sum().backward()
    torch.testing.assert_close(forward(x), layer(y))
    torch.testing.assert_close(x.grad, y.grad)
    program = exported(layer, rows)
    more = torch.tensor(draw(10, 11, m, 0.5))
    torch.testing.assert_close(program.module()(more), layer(more))
    operators = {str(node.target) for node in program.graph.nodes if "altnorm" in str(node.target)}
    assert operators == ({"altnorm.log_product.default"} if (m, depth) == (5, 2) else set())


@pytest.mark.parametrize("model", ["matrix", "deep, cooled"])
def test_both_stages_in_one_graph(model):
    fitted, values = single(model, "person", "logits")
    layer = from_normalizer(fitted)
    x = torch.tensor(values[:200].reshape(10, 20, 5))
    mask = torch.arange(200).reshape(10, 20) % 3 > 0
    torch.testing.assert_close(one_graph(layer)(x, mask), layer(x, mask))
    assert torch.equal(one_graph(layer.decide)(x, mask), layer.decide(x, mask))
    module = exported(layer, x, mask).module()
    torch.testing.assert_close(module(x[:3], mask[:3]), layer(x[:3], mask[:3]))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("m", "alpha", "depth"), SETTINGS)
def test_device(device, m, alpha, depth):
    layer, rows = layer_and_rows(m, alpha, depth)
    want, decided = layer(rows), layer.decide(rows)
    got = layer.to(device)(rows.to(device))
    assert got.device.type == device
    torch.testing.assert_close(got.cpu(), want, atol=TOLERANCE, rtol=0)
    assert torch.equal(layer.decide(rows.to(device)).cpu(), decided)

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

from altnorm import AlternatingNormalizer, AlternatingNormalizerCV
from altnorm.peers import Identity, TemperatureScaling
from tests.fitted import fit_case
from tests.oracle import draw_cases

torch = pytest.importorskip("torch")
AlternatingNorm = importlib.import_module("altnorm.torch").AlternatingNorm

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
    with pytest.raises(ValueError, match="chose TemperatureScaling"):
        AlternatingNorm.from_normalizer(TemperatureScaling().fit(p, y))


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


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("m", "alpha", "depth"), SETTINGS)
def test_device(device, m, alpha, depth):
    layer, rows = layer_and_rows(m, alpha, depth)
    want = layer(rows)
    got = layer.to(device)(rows.to(device))
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

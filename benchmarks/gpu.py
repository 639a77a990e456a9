"""A GPU: the kernels beside the device's own products and softmax, and tuning on it.

Run ``PYTHONPATH=src python3 benchmarks/gpu.py`` on a machine with PyTorch and CUDA; CuPy and JAX
are tried where they are installed. ``--device cpu --small`` rehearses the script anywhere, and
``--host`` tunes on the CPU as well, to compare what is chosen.
"""

from __future__ import annotations

import argparse
import importlib
import platform
import sys
from collections.abc import Callable
from time import perf_counter
from typing import Any

MISSING = "This script needs {name}, which cannot be imported here ({error}). Install it and retry."
FULL = (13_484, 36_516, 1_000)  # rows in doubt, reference rows, classes
SMALL = (300, 700, 60)
DEPTH = 5
PRODUCTS = 2 * (DEPTH - 1)
TARGET = 0.85
SLOWER = 3.0  # than softmax, at most, at depth 1
LIMITS = {"Adjuster": 10.0, "AlternatingNormalizerCV": 15.0}  # seconds of a fit, at most


def need(name: str) -> Any:
    """Import a module, or leave with a sentence."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        sys.exit(MISSING.format(name=name.partition(".")[0], error=error))


np, torch = need("numpy"), need("torch")
need("array_api_compat")
sklearn = need("sklearn")
altnorm = need("altnorm")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--small", action="store_true", help="sizes for a rehearsal")
    parser.add_argument("--host", action="store_true", help="tune on the CPU too")
    options = parser.parse_args()
    if options.device.startswith("cuda") and not torch.cuda.is_available():
        sys.exit("PyTorch sees no CUDA device here; pass --device cpu --small to rehearse.")
    print(title(options.device))
    sizes = SMALL if options.small else FULL
    for megabytes in (1024, 16 * 1024):
        for alpha in (1.0, 0.7):
            with sklearn.config_context(working_memory=megabytes):
                measure(options.device, sizes, alpha, megabytes)
    for dtype in (torch.float32, torch.float64):
        for alpha in (1.0, 0.7):
            first_iteration(options.device, 20_000 if options.small else 500_000, dtype, alpha)
    tune(options.device, options.small, options.host)
    for library in (cupy_array, jax_array):
        compare(library)


def title(device: str) -> str:
    """Device and versions."""
    name = torch.cuda.get_device_name() if device.startswith("cuda") else platform.processor()
    return (
        f"{name}, CUDA {torch.version.cuda}; Python {platform.python_version()}, "
        f"torch {torch.__version__}, numpy {np.__version__}; float64, depth {DEPTH}"
    )


def measure(device: str, sizes: tuple[int, int, int], alpha: float, megabytes: int) -> None:
    """Print the rate of bare products, of altnorm, their ratio, memory, and the error."""
    t, n, m = sizes
    torch.manual_seed(0)
    proba, reference = rows(t, m, 4.0, device), rows(n, m, 12.0, device)

    def ours() -> Any:
        return altnorm.alternating_normalization(proba, reference, alpha=alpha, depth=DEPTH)

    forget_peak(device)
    result = ours()
    memory = peak(device)
    fast, bare = alternate(ours, bare_products(proba, reference), device)
    sample = slice(0, 8)
    on_cpu = altnorm.alternating_normalization(
        proba[sample].cpu().numpy(), reference.cpu().numpy(), alpha=alpha, depth=DEPTH
    )
    difference = np.abs(result[sample].cpu().numpy() - on_cpu).max()
    work = PRODUCTS * 2.0 * t * n * m
    met = "met" if bare / fast >= TARGET else "NOT met"
    print(
        f"{t:,} rows, {n:,} references, {m:,} classes, alpha {alpha:g}, working memory "
        f"{megabytes:,} MiB:\n"
        f"  {PRODUCTS} bare products {bare:.3f} s = {work / bare / 1e12:.1f} TFLOP/s\n"
        f"  altnorm         {fast:.3f} s = {work / fast / 1e12:.1f} TFLOP/s\n"
        f"  ratio {bare / fast:.1%} (target {TARGET:.0%}: {met}); peak {memory:.1f} GB on the "
        f"device; largest difference from the CPU {difference:.1e}",
        flush=True,
    )


def first_iteration(device: str, n: int, dtype: Any, alpha: float) -> None:
    """Print how long depth 1 takes, checks of the input included, beside softmax alone."""
    torch.manual_seed(0)
    proba, reference = rows(n, 1_000, 4.0, device, dtype), rows(2_000, 1_000, 12.0, device, dtype)
    normalizer = altnorm.AlternatingNormalizer(alpha=alpha, threshold=0.0, reference="all")
    normalizer.fit(reference)

    def fastest(function: Callable[[], object]) -> float:
        function()
        return min(seconds(function, device) for _ in range(9))

    softmax = fastest(lambda: torch.softmax(proba, 1))
    ours = fastest(lambda: altnorm.alternating_normalization(proba, reference, alpha=alpha))
    estimator = fastest(lambda: normalizer.transform(proba))
    met = "met" if ours <= SLOWER * softmax else "NOT met"
    print(
        f"depth 1, {n:,} rows, 1,000 classes, {dtype}, alpha {alpha:g}:\n"
        f"  softmax {n / softmax / 1e6:.0f} M rows/s, alternating_normalization "
        f"{n / ours / 1e6:.0f} M rows/s = {ours / softmax:.2f}x (target {SLOWER:g}x: {met}), "
        f"AlternatingNormalizer with all rows in doubt {n / estimator / 1e6:.0f} M rows/s",
        flush=True,
    )


def tune(device: str, small: bool, host: bool) -> None:
    """Print how long tuning takes with predictions on the device, and what it chooses."""
    n, m = (3_000, 100) if small else (50_000, 1_000)
    proba, y = biased(n, m)
    there, labels = torch.tensor(proba, device=device), torch.tensor(y, device=device)
    # To have all kernels compiled; few enough entries would be tuned in host memory.
    altnorm.AlternatingNormalizerCV(alphas=(0.7, 1.0)).fit(there[:3_000], y[:3_000])
    for name, limit in LIMITS.items():
        forget_peak(device)
        tuned = getattr(altnorm, name)()
        time = seconds(lambda tuned=tuned: tuned.fit(there, labels), device)
        met = "met" if time <= limit else "NOT met"
        print(
            f"{name}, defaults, {n:,} x {m:,}: {time:.1f} s (target {limit:g} s: {met}), "
            f"peak {peak(device):.1f} GB on the device\n  {tuned.verdict_}",
            flush=True,
        )
        if host:
            plain = getattr(altnorm, name)(n_jobs=-1)
            time = seconds(lambda plain=plain: plain.fit(proba, y), "cpu")
            same = str(plain.verdict_) == str(tuned.verdict_)
            print(
                f"  on the CPU {time:.1f} s, same verdict: {same}\n  {plain.verdict_}", flush=True
            )


def biased(n: int, m: int) -> tuple[Any, Any]:
    """Predictions of a classifier that prefers some classes, as for ``bench_tuning``."""
    rng = np.random.default_rng(0)
    y = rng.integers(m, size=n)
    logits = rng.normal(size=(n, m))
    logits += rng.normal(size=m)
    logits[np.arange(n), y] += 3
    proba = np.exp(logits)
    return proba / proba.sum(axis=1, keepdims=True), y


def bare_products(proba: Any, reference: Any) -> Callable[[], None]:
    """Return the products that the kernel cannot do without, on matrices of the same shapes."""
    wide = torch.rand(
        (proba.shape[0], reference.shape[0]), dtype=torch.float64, device=proba.device
    )

    def products() -> None:
        for _ in range(DEPTH - 1):
            torch.matmul(proba, reference.T)
            torch.matmul(wide, reference)

    return products


def alternate(
    ours: Callable[[], Any], products: Callable[[], None], device: str
) -> tuple[float, float]:
    """Shortest times of both, taking turns, so that the device's clock is the same for both."""
    times = [(seconds(ours, device), seconds(products, device)) for _ in range(5)]
    return min(ours for ours, _ in times), min(products for _, products in times)


def rows(n: int, m: int, margin: float, device: str, dtype: Any = torch.float64) -> Any:
    """Softmax of Gaussian logits with one planted class a row, like a classifier's."""
    logits = torch.randn((n, m), dtype=dtype, device=device)
    planted = torch.randint(0, m, (n, 1), device=device)
    ahead = margin + torch.randn((n, 1), dtype=dtype, device=device)
    return torch.softmax(logits.scatter_add(1, planted, ahead), dim=1)


def seconds(function: Callable[[], object], device: str) -> float:
    """Wall-clock time of one call, the device idle before and after it."""
    synchronize(device)
    start = perf_counter()
    function()
    synchronize(device)
    return perf_counter() - start


def synchronize(device: str) -> None:
    if device.startswith("cuda"):
        torch.cuda.synchronize()


def forget_peak(device: str) -> None:
    if device.startswith("cuda"):
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def peak(device: str) -> float:
    """Largest memory in use since `forget_peak`, in GB, inputs included."""
    return torch.cuda.max_memory_allocated() / 1e9 if device.startswith("cuda") else 0.0


def cupy_array(values: Any) -> Any:
    import cupy

    return cupy.asarray(values)


def jax_array(values: Any) -> Any:
    import jax

    jax.config.update("jax_enable_x64", True)
    return jax.numpy.asarray(values)


def compare(make: Callable[[Any], Any]) -> None:
    """Print that another library gives the CPU's values; many and two classes, small and large."""
    name = make.__name__.removesuffix("_array")
    try:
        make(np.zeros(1))
    except Exception as error:
        print(f"{name}: not tried, it cannot be used here ({type(error).__name__}: {error})")
        return
    for n, m, alpha, depth in ((3000, 100, 1.0, 5), (3000, 100, 0.7, 1), (5000, 2, 2.0, 4)):
        host = [rows(k, m, margin, "cpu").numpy() for k, margin in ((500, 4.0), (n, 12.0))]
        arrays = [make(values) for values in host]
        keywords = {"alpha": alpha, "depth": depth, "smoothing": 0.01}
        result = altnorm.alternating_normalization(*arrays, **keywords)
        doubt = altnorm.ambiguity(arrays[0])
        expected = altnorm.alternating_normalization(*host, **keywords)
        difference = np.abs(on_host(result) - expected).max()
        in_doubt = np.abs(on_host(doubt) - altnorm.ambiguity(host[0])).max()
        same = type(result) is type(arrays[0]) and result.dtype == arrays[0].dtype
        print(
            f"{name}: 500 rows, {n:,} references, {m} classes, alpha {alpha:g}, depth {depth}: "
            f"same kind and dtype {same}, largest difference from the CPU {difference:.1e}, of the "
            f"ambiguity {in_doubt:.1e}",
            flush=True,
        )


def on_host(array: Any) -> Any:
    return array.get() if hasattr(array, "get") else np.asarray(array)


if __name__ == "__main__":
    main()

"""Better decisions and probabilities from a trained classifier, without retraining.

Implements CAN, classification with alternating normalization (Jia et al., "When in Doubt", Findings
of EMNLP 2021): `alternating_normalization`, `AlternatingNormalizer`, `AlternatingNormalizerCV`. In
`Adjuster` it competes with corrections that are fitted to labels, and must pass a test.
"""

from importlib import import_module, metadata
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from altnorm import (
        adjuster as adjuster,
        arrow as arrow,
        asking as asking,
        balance as balance,
        estimator as estimator,
        evidence as evidence,
        io as io,
        onnx as onnx,
        peers as peers,
        ray as ray,
        report as report,
        spark as spark,
        torch as torch,
    )
    from altnorm._base.errors import InputError as InputError
    from altnorm.adjuster import (
        Adjuster as Adjuster,
        AlternatingNormalizerCV as AlternatingNormalizerCV,
        load as load,
    )
    from altnorm.adjuster.classifier import AdjustedClassifier as AdjustedClassifier
    from altnorm.adjuster.comparison import compare as compare
    from altnorm.asking.judgement import judge as judge
    from altnorm.asking.sampling import ask as ask
    from altnorm.estimator.normalizer import AlternatingNormalizer as AlternatingNormalizer
    from altnorm.estimator.topk import from_topk as from_topk
    from altnorm.io.datasets import load_demo as load_demo
    from altnorm.method.ambiguity import ambiguity as ambiguity, topk_entropy as topk_entropy
    from altnorm.method.functional import (
        alternating_normalization as alternating_normalization,
        trajectory as trajectory,
    )

    __version__: str

# Imported when they are first used: the command line must be able to catch an interrupt while
# NumPy, SciPy and scikit-learn are imported, which takes a second.
_HOMES = {
    "AdjustedClassifier": "adjuster.classifier",
    "Adjuster": "adjuster",
    "AlternatingNormalizer": "estimator.normalizer",
    "AlternatingNormalizerCV": "adjuster",
    "InputError": "_base.errors",
    "alternating_normalization": "method.functional",
    "ambiguity": "method.ambiguity",
    "ask": "asking.sampling",
    "compare": "adjuster.comparison",
    "from_topk": "estimator.topk",
    "judge": "asking.judgement",
    "load": "adjuster",
    "load_demo": "io.datasets",
    "topk_entropy": "method.ambiguity",
    "trajectory": "method.functional",
}

# Modules that hold public names: reached as `altnorm.module` without an import of their own.
_FOLDERS = {"adjuster", "asking", "balance", "estimator", "evidence", "io", "report"}
_FACADES = {"arrow", "onnx", "peers", "ray", "spark", "torch"}

__all__ = sorted(_HOMES)


if not TYPE_CHECKING:  # a checker would take any name for one of ours

    def __getattr__(name: str) -> Any:
        """Import a name, or a submodule, when it is first used: some need extra libraries."""
        if name in _HOMES:
            value = getattr(import_module(f"altnorm.{_HOMES[name]}"), name)
            globals()[name] = value
            return value
        if name in _FOLDERS | _FACADES:
            try:
                return import_module(f"altnorm.{name}")
            except ImportError as error:  # so that help(altnorm) passes over what is not installed
                raise AttributeError(str(error)) from error
        if name == "__version__":
            return metadata.version("altnorm")
        raise AttributeError(f"module 'altnorm' has no attribute {name!r}")


def __dir__() -> list[str]:
    # What completion offers is what may be relied on; not the imports above.
    return sorted([*__all__, *_FOLDERS, *_FACADES, "__version__"])

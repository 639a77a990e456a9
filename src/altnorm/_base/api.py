"""The public names, section by section.

This list makes the API page, says whose docstrings are checked, and which modules can be reached as
``altnorm.module`` without an import of their own. A name is here because a user needs it, not
because another module does; what is not here may change without notice.
"""

from __future__ import annotations

from typing import NamedTuple


class Section(NamedTuple):
    """A part of the API page."""

    title: str
    names: tuple[str, ...]  # below `altnorm`
    about: str = ""


API = (
    Section(
        "Estimators",
        (
            "Adjuster",
            "AlternatingNormalizer",
            "AlternatingNormalizerCV",
            "AdjustedClassifier",
            "evidence.verdict.Verdict",
            "evidence.verdict.Caution",
            "method.explanation.Explanation",
            "method.drift.Drift",
            "balance.shift.Shift",
        ),
    ),
    Section(
        "Functions",
        ("topk_entropy", "ambiguity", "alternating_normalization", "trajectory", "from_topk"),
        "Arrays in, arrays out, nothing remembered.",
    ),
    Section("Errors", ("InputError",)),
    Section(
        "Comparison",
        (
            "compare",
            "adjuster.comparison.Comparison",
            "evidence.verdict.compare_predictions",
            "peers.Identity",
            "peers.TemperatureScaling",
            "peers.BiasCorrectedTemperature",
            "peers.MatrixScaling",
            "peers.BatchCalibration",
            "peers.LabelThresholds",
        ),
    ),
    Section(
        "Asking for labels",
        ("ask", "judge", "asking.judgement.Judgement"),
        "Few labels, but those that decide: :doc:`asking` tells the story.",
    ),
    Section(
        "Files and models",
        (
            "io.predictions.Predictions",
            "io.predictions.read_predictions",
            "io.predictions.write_predictions",
            "load",
            "load_demo",
            "io.datasets.Demo",
        ),
    ),
    Section(
        "Figures and the report",
        (
            "report.display.FixedBrokenDisplay",
            "report.display.PurposeDisplay",
            "report.display.ReliabilityDisplay",
            "report.write_report",
        ),
    ),
    Section(
        "Beyond one process",
        (
            "onnx.export",
            "onnx.register_converter",
            "arrow.apply_batches",
            "spark.transform",
            "ray.transform",
            "torch.from_normalizer",
        ),
    ),
)


def public_names() -> list[str]:
    """All public names, below `altnorm`."""
    return [name for section in API for name in section.names]


SUBMODULES = tuple(sorted({name.split(".")[0] for name in public_names() if "." in name}))


def page() -> str:
    """Return the source of the API page."""
    lines = ["API reference", "=============", "", ".. currentmodule:: altnorm"]
    for section in API:
        lines += ["", section.title, "-" * len(section.title)]
        lines += ["", section.about] if section.about else []
        for is_class in (True, False):
            names = [name for name in section.names if _is_class(name) == is_class]
            if names:
                template = ["   :template: class.rst"] if is_class else []
                lines += ["", ".. autosummary::", "   :toctree: generated", *template, ""]
                lines += [f"   {name}" for name in names]
    return "\n".join(lines) + "\n"


def _is_class(name: str) -> bool:
    return name.split(".")[-1][0].isupper()

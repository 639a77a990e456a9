"""The public names, section by section.

This list makes the API page, says whose docstrings are checked, and which modules can be reached as
``altnorm.module`` without an import of their own. What is not on it may change without notice, and
a module with nothing on it has an underscore.
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
        "Functions",
        ("topk_entropy", "ambiguity", "alternating_normalization", "trajectory", "from_topk"),
        "Arrays in, arrays out, nothing remembered.",
    ),
    Section(
        "Estimators",
        (
            "Adjuster",
            "AlternatingNormalizer",
            "AlternatingNormalizerCV",
            "AdjustedClassifier",
            "method.explanation.Explanation",
            "method.drift.Drift",
            "balance.shift.Shift",
            "adjuster.Window",
        ),
    ),
    Section("Errors", ("InputError",)),
    Section(
        "Peers and comparison",
        (
            "peers.Identity",
            "peers.TemperatureScaling",
            "peers.BiasCorrectedTemperature",
            "peers.ShrunkBias",
            "peers.MatrixScaling",
            "peers.BatchCalibration",
            "peers.LabelThresholds",
            "compare",
            "adjuster.comparison.Comparison",
        ),
    ),
    Section(
        "Verdict and scores",
        (
            "evidence.verdict.Verdict",
            "evidence.verdict.Caution",
            "evidence.verdict.compare_predictions",
            "report.evaluation.evaluate",
            "report.evaluation.Evaluation",
            "evidence.metrics.resolve_scoring",
            "evidence.metrics.Score",
        ),
    ),
    Section(
        "Reference and prior",
        (
            "method.reference.class_prior",
            "method.reference.label_prior",
            "method.reference.shrink_frequencies",
            "method.reference.post_stratify",
            "method.reference.merge_rows",
            "method.reference.reference_mask",
        ),
    ),
    Section(
        "Another class balance",
        (
            "balance.shift.judge_shift",
            "balance.label_shift.Profile",
            "balance.label_shift.profile_rows",
            "balance.label_shift.take_in",
            "balance.label_shift.estimate_balance",
            "balance.label_shift.balance_of_counts",
        ),
        "What `adapt` is made of; :doc:`label-shift` tells the story.",
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
            "io.model.save_model",
            "io.model.load_model",
            "io.datasets.load_demo",
            "io.datasets.Demo",
        ),
    ),
    Section(
        "Figures and the report",
        (
            "report.display.AmbiguityDisplay",
            "report.display.ClassUseDisplay",
            "report.display.FixedBrokenDisplay",
            "report.display.ReliabilityDisplay",
            "report.display.TuningDisplay",
            "report.write_report",
            "report.render_report",
        ),
    ),
    Section(
        "Beyond one process",
        (
            "onnx.export",
            "onnx.register_converter",
            "arrow.apply_batches",
            "arrow.output_schema",
            "arrow.take_in_batches",
            "spark.transform",
            "spark.ProbabilityAdjuster",
            "spark.take_in",
            "spark.input_errors",
            "ray.transform",
            "ray.take_in",
            "ray.input_errors",
            "torch.from_normalizer",
            "torch.Adjustment",
            "torch.AlternatingNorm",
            "torch.ScoreScaling",
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

"""Fitted normalizers that several test files ask for."""

from altnorm import AlternatingNormalizer, AlternatingNormalizerCV
from altnorm.predictions import Predictions
from tests.oracle import Case


def fit_case(case: Case) -> AlternatingNormalizer:
    """Fit so that `transform` does what the case asks, to every row."""
    keywords = case.keywords
    return AlternatingNormalizer(
        keywords["alpha"],
        keywords["depth"],
        threshold=0.0,
        prior="uniform" if keywords["prior"] is None else keywords["prior"],
        reference="all",
        smoothing=keywords["smoothing"],
    ).fit(case.reference, sample_weight=keywords["reference_weight"])


def tune(validation: Predictions, **options) -> AlternatingNormalizerCV:
    """Search a small grid; the classes are named as in `validation`."""
    settings = {"alphas": (0.5, 1.0, 2.0), "depths": (1, 2), "smoothings": (0.0,), "n_repeats": 1}
    tuned = AlternatingNormalizerCV(**settings, random_state=0, **options)
    tuned.fit(validation.proba, validation.codes)
    for fitted in (tuned, tuned.best_normalizer_):
        fitted.classes_ = validation.classes
    return tuned

"""AlternatingNormalizerCV gains by the score that it is asked for, with one label or several."""

import numpy as np
import pytest
from sklearn.metrics import f1_score, fbeta_score, log_loss, make_scorer

from altnorm import AlternatingNormalizerCV
from altnorm._base.errors import InputError
from tests.problems import MODES, SMALL, planted, planted_labels

# Scores.


@pytest.mark.parametrize(
    ("scoring", "metric"),
    [
        ("f1_macro", lambda y, p: f1_score(y, p.argmax(axis=1), average="macro")),
        ("neg_log_loss", lambda y, p: -log_loss(y, p)),
        (
            make_scorer(fbeta_score, beta=2, average="macro"),
            lambda y, p: fbeta_score(y, p.argmax(axis=1), beta=2, average="macro"),
        ),
    ],
    ids=["f1_macro", "neg_log_loss", "scorer"],
)
def test_other_scores(scoring, metric):
    grid = {**SMALL, "alphas": (0.5, 1.0), "thresholds": (0.25,), "references": ("all",)}
    proba, y = planted(200)
    normalizer = AlternatingNormalizerCV(**grid, scoring=scoring).fit(proba, y)
    assert normalizer.verdict_.before == pytest.approx(metric(y, proba))
    assert normalizer.verdict_.adopted
    fresh, truth = planted(2000, seed=1)
    assert metric(truth, normalizer.transform(fresh)) > metric(truth, fresh) + 0.01


def test_a_gain_that_changes_no_decision_counts():
    """Log-loss can be won without a single other decision."""
    rng = np.random.default_rng(0)
    p = rng.uniform(0.55, 0.95, 600)
    y = (rng.random(600) < 0.02).astype(int)
    proba = np.stack([p, 1 - p], axis=1)
    normalizer = AlternatingNormalizerCV(
        alphas=(1.0,),
        depths=(1,),
        thresholds=(0.0,),
        references=("all",),
        scoring="neg_log_loss",
        random_state=0,
    ).fit(proba, y)
    assert normalizer.verdict_.n_changed == 0
    assert normalizer.verdict_.gain > 0
    assert normalizer.verdict_.adopted


# Several labels per row.


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("scoring", [None, "accuracy", "f1_samples", "neg_log_loss"])
def test_several_labels(mode, scoring):
    metric = {
        None: lambda y, p: f1_score(y, p > 0.5, average="micro"),
        "accuracy": lambda y, p: ((p > 0.5) == y).all(axis=1).mean(),
        "f1_samples": lambda y, p: f1_score(y, p > 0.5, average="samples", zero_division=0),
        "neg_log_loss": lambda y, p: np.log(np.where(y == 1, p, 1 - p)).mean(),
    }[scoring]
    proba, y = planted_labels()
    normalizer = AlternatingNormalizerCV(**SMALL, multilabel=mode, scoring=scoring).fit(proba, y)
    assert normalizer.verdict_.before == pytest.approx(metric(y, proba))
    assert normalizer.verdict_.adopted
    fresh, truth = planted_labels(2000, seed=1)
    gain = metric(truth, normalizer.transform(fresh)) - metric(truth, fresh)
    assert gain > (0.03 if scoring != "accuracy" else 0)
    assert abs(gain - normalizer.verdict_.gain) < 0.06
    np.testing.assert_array_equal(normalizer.predict(fresh), normalizer.transform(fresh) > 0.5)


@pytest.mark.parametrize("mode", MODES)
def test_confident_entries_in_one_fold_only(mode):
    """Such a threshold leaves that fold without a reference: it is left out, and nothing fails."""
    rng = np.random.default_rng(0)
    proba, y = rng.uniform(0.3, 0.7, (60, 3)), rng.integers(2, size=(60, 3))
    proba[:20] = 0.01
    splits = [(np.setdiff1d(np.arange(60), part), part) for part in np.arange(60).reshape(3, 20)]
    normalizer = AlternatingNormalizerCV(**SMALL, multilabel=mode, cv=splits).fit(proba, y)
    assert set(normalizer.cv_results_["reference"]) == {"all"}
    with pytest.raises(InputError, match="No setting could be tried; no fold leaves a confident"):
        AlternatingNormalizerCV(**SMALL, multilabel=mode, cv=splits, references=("confident",)).fit(
            proba, y
        )

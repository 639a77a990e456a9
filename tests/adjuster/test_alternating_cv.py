"""AlternatingNormalizerCV finds what is there, leaves alone what is not, and is judged fairly."""

import numpy as np
import pytest
from sklearn import metrics as sk
from sklearn.model_selection import PredefinedSplit

from altnorm import AlternatingNormalizer, AlternatingNormalizerCV, InputError
from altnorm.method import paper
from altnorm.peers import Identity
from tests.problems import MODES, SMALL, calibrated, planted, planted_labels

TINY = {**SMALL, "alphas": (0.5, 1.0, 2.0), "depths": (1, 2)}


def tune(**settings):
    return AlternatingNormalizerCV(**{**TINY, **settings})


def unrelated(n=150, m=4, seed=0):
    """Predictions with a taste of their own, and labels that know nothing of them."""
    rng = np.random.default_rng(seed)
    return rng.dirichlet(0.5 * np.linspace(0.5, 2, m), n), rng.integers(m, size=n)


# What is there is found, what is not is left alone.


def test_the_best_normalizer_is_the_best_setting_fitted_on_all_rows():
    proba, y = planted(300)
    tuned = tune(prior=None).fit(proba, y)
    best = tuned.best_normalizer_
    assert {name: getattr(best, name) for name in tuned.best_params_} == tuned.best_params_
    by_hand = AlternatingNormalizer(**tuned.best_params_).fit(proba, y)
    fresh, _ = planted(seed=1)
    np.testing.assert_allclose(tuned.transform(fresh), by_hand.transform(fresh), rtol=1e-12)
    np.testing.assert_array_equal(tuned.predict(fresh), by_hand.predict(fresh))


@pytest.mark.parametrize("make", [calibrated, unrelated])
def test_what_cannot_be_gained_is_hardly_ever_adopted(make):
    fits = [tune(depths=(1,)).fit(*make(150, seed=seed)) for seed in range(10)]
    assert sum(fitted.verdict_.adopted for fitted in fits) <= 1
    # The evidence is nested: it does not have the luck of the best setting.
    looks = [fitted.cv_results_["score"].max() - fitted.verdict_.before for fitted in fits]
    assert np.mean([fitted.verdict_.gain for fitted in fits]) < np.mean(looks) - 0.005


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("mode", [None, *MODES])
def test_without_evidence_predictions_come_back_bit_for_bit(mode, dtype):
    rng = np.random.default_rng(0)
    proba, y = unrelated(100)
    if mode is not None:
        proba, y = rng.random((100, 4)), rng.integers(2, size=(100, 4))
    normalizer = tune(multilabel=mode, significance=1e-12).fit(proba.astype(dtype), y)
    assert not normalizer.verdict_.adopted
    assert isinstance(normalizer.best_normalizer_, Identity)
    fresh = proba[::-1].astype(dtype)
    assert normalizer.transform(fresh).dtype == dtype
    np.testing.assert_array_equal(normalizer.transform(fresh), fresh)


def test_as_published_the_best_setting_is_applied_although_it_loses_and_a_caution_says_so():
    published = AlternatingNormalizerCV.as_published(prior=[0.98, 0.01, 0.01])
    verdict = published.fit(*calibrated(60)).verdict_
    assert verdict.gain < 0
    assert verdict.adopted
    assert isinstance(published.best_normalizer_, AlternatingNormalizer)
    (caution,) = verdict.cautions
    assert caution.code == "in_sample"
    assert str(verdict).startswith("Applied: accuracy")
    assert "but it is applied as published, whatever a test says: its" in str(verdict)
    assert not verdict.gates


def test_as_published_is_the_paper():
    """Every setting of its grid, judged where it was chosen, and applied; by the paper's lines."""
    rng = np.random.default_rng(0)
    proba, prior = rng.dirichlet([0.5, 0.4, 0.3], size=40), np.array([0.2, 0.3, 0.5])
    y, fresh = rng.integers(3, size=40), rng.dirichlet([1, 1, 1], size=20)
    can = AlternatingNormalizerCV.as_published(prior=prior).fit(proba, y)
    table = can.cv_results_
    assert len(table["alpha"]) == 44 * 5 * 3
    assert set(table["reference"]) == {"confident"}
    assert set(table["smoothing"]) == {0.0}

    def run(rows, alpha, depth, tau):
        sure = [p for p in proba if paper.ambiguity(p) <= tau]
        return np.array(
            [
                paper.adjust(p, sure, prior, alpha, depth) if paper.ambiguity(p) > tau else p
                for p in rows
            ]
        )

    firsts = np.flatnonzero((table["depth"] == 1) & (table["alpha"] <= 9))
    for i in firsts:  # deeper ones leave the row out of the reference's own iterations
        new = run(proba, table["alpha"][i], 1, table["threshold"][i])
        assert table["score"][i] == pytest.approx((new.argmax(axis=1) == y).mean())
    assert table["score"].max() == table["score"][list(table["rank"]).index(1)]
    assert table["score"].max() == pytest.approx(can.verdict_.after)  # on the rows it was chosen on
    best = [can.best_params_[name] for name in ("alpha", "depth", "threshold")]
    np.testing.assert_allclose(can.transform(fresh), run(fresh, *best), rtol=0, atol=1e-12)


def test_as_published_weights_count_in_prior_reference_and_score():
    proba, y = unrelated(60)
    weight = np.random.default_rng(0).integers(1, 4, 60) / 2
    published = tune(tuning="as-published", references=("confident",), depths=(1,), prior="counted")
    published.fit(proba, y, sample_weight=weight)
    by_hand = AlternatingNormalizer(**published.best_params_)
    by_hand.fit(proba, y, sample_weight=weight / weight.mean())
    np.testing.assert_allclose(published.transform(proba), by_hand.transform(proba), rtol=1e-9)
    right = np.average(by_hand.predict(proba) == y, weights=weight)
    assert published.cv_results_["score"].max() == pytest.approx(right)


def test_doubt_looks_at_as_many_classes_as_asked():
    """[.5 .26 .24] is more in doubt with three classes than with two, and 0.935 lies between."""
    proba, y = np.tile([[0.5, 0.26, 0.24], [0.98, 0.01, 0.01]], (30, 1)), np.tile([1, 0], 30)
    grid = {"alphas": (1.0,), "depths": (1,), "thresholds": (0.935,), "references": ("confident",)}
    for k_max, right in ((2, 0.5), (3, 1.0)):
        search = AlternatingNormalizerCV(**grid, tuning="as-published", k_max=k_max).fit(proba, y)
        assert search.cv_results_["score"].max() == right  # while settings are compared
        assert search.score(proba, y) == right  # and when the best is applied
        assert search.best_normalizer_.k_max == k_max


# Scores.


OF_CLASSES = {
    None: lambda y, p: sk.accuracy_score(y, p.argmax(axis=1)),
    "f1_macro": lambda y, p: sk.f1_score(y, p.argmax(axis=1), average="macro"),
    "neg_log_loss": lambda y, p: -sk.log_loss(y, p),
    sk.make_scorer(sk.jaccard_score, average="macro"): lambda y, p: sk.jaccard_score(
        y, p.argmax(axis=1), average="macro"
    ),
}
OF_LABELS = {
    None: lambda y, p: sk.f1_score(y, p > 0.5, average="micro"),
    "accuracy": lambda y, p: ((p > 0.5) == y).all(axis=1).mean(),
    "neg_log_loss": lambda y, p: np.log(np.where(y == 1, p, 1 - p)).mean(),
}


@pytest.mark.parametrize(
    ("mode", "scoring", "metric"),
    [(None, *pair) for pair in OF_CLASSES.items()]
    + [(mode, *pair) for mode in MODES for pair in OF_LABELS.items()],
)
def test_a_planted_bias_is_found_and_pays_on_fresh_data(mode, scoring, metric):
    make = planted if mode is None else planted_labels
    proba, y = make(300)
    normalizer = tune(multilabel=mode, scoring=scoring).fit(proba, y)
    assert normalizer.verdict_.before == pytest.approx(metric(y, proba))
    assert normalizer.verdict_.adopted
    fresh, truth = make(2000, seed=1)
    after = normalizer.transform(fresh)
    assert normalizer.score(fresh, truth) == pytest.approx(metric(truth, after))
    gain = metric(truth, after) - metric(truth, fresh)
    assert gain > 0.01
    assert normalizer.verdict_.ci_low - 0.03 < gain < normalizer.verdict_.ci_high + 0.03
    decided = after.argmax(axis=1) if mode is None else after > 0.5
    np.testing.assert_array_equal(normalizer.predict(fresh), decided)


# What it records, and how it behaves.


def test_cv_results():
    normalizer = AlternatingNormalizerCV().fit(*planted(200))
    table = normalizer.cv_results_
    assert set(table["depth"]) == {1, 2, 3, 4, 5}
    assert set(table["alpha"]) <= set(normalizer.alphas)
    settings = ["alpha", "depth", "threshold", "reference", "smoothing"]
    assert list(table) == [*settings, "score", "rank"]
    assert len({column.shape for column in table.values()}) == 1
    assert sorted(table["rank"]) == list(range(1, table["rank"].size + 1))
    tried = list(zip(*(table[name] for name in settings), strict=True))
    assert len(set(tried)) == len(tried)
    best = tried.index(tuple(normalizer.best_params_.values()))
    assert table["score"][best] == table["score"].max()


def test_classes_rarer_than_folds():
    proba, y = planted(200)
    y[y == 3] = 2
    y[:2] = 3
    assert np.isfinite(tune(prior=None).fit(proba, y).transform(proba)).all()


@pytest.mark.parametrize("mode", MODES)
def test_confident_entries_in_one_fold_only(mode):
    """Such a threshold leaves that fold without a reference: it is left out, and nothing fails."""
    rng = np.random.default_rng(0)
    proba, y = rng.uniform(0.3, 0.7, (60, 3)), rng.integers(2, size=(60, 3))
    proba[:20] = 0.01
    thirds = PredefinedSplit(np.arange(60) // 20)
    normalizer = tune(multilabel=mode, cv=thirds).fit(proba, y)
    assert set(normalizer.cv_results_["reference"]) == {"all"}
    with pytest.raises(InputError, match="No setting could be tried; no fold leaves a confident"):
        tune(multilabel=mode, cv=thirds, references=("confident",)).fit(proba, y)
    with pytest.raises(InputError, match=r"No setting could be tried.*add 'all' to `references`"):
        tune(references=("confident",)).fit(np.full((40, 4), 0.25), np.arange(40) % 4)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"alphas": ()}, r"`alphas` must hold at least one value; it is \(\)"),
        ({"depths": 3}, "`depths` must hold at least one value; it is 3. Pass a list"),
        ({"alphas": (0.0,)}, "`alphas` must be a finite number greater than 0; it is 0.0"),
        ({"depths": (0,)}, "`depths` must be an integer, 1 or greater; it is 0"),
        ({"thresholds": (-0.5,)}, "`thresholds` must be a finite number, 0 or greater"),
        ({"references": ("best",)}, "`references` must be .* it is 'best'"),
        ({"smoothings": (-1.0,)}, "`smoothings` must be a finite number, 0 or greater"),
        ({"tuning": "by eye"}, "`tuning` must be .* it is 'by eye'"),
        ({"k_max": 1}, "`k_max` must be an integer, 2 or greater; it is 1"),
        ({"significance": 0.0}, "`significance` must be a number between 0 and 1; it is 0.0"),
    ],
    ids=str,
)
def test_wrong_settings(settings, message):
    with pytest.raises(InputError, match=message):
        tune(**settings).fit(*planted(60))

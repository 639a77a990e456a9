"""AlternatingNormalizerCV finds what is there and leaves alone what is not."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, softmax
from sklearn import config_context
from sklearn.base import clone
from sklearn.metrics import f1_score, fbeta_score, log_loss, make_scorer
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from altnorm import AlternatingNormalizer, AlternatingNormalizerCV
from altnorm._validation import InputError
from altnorm.metrics import decide, loose_macro_f1, resolve_scoring
from altnorm.peers import Identity
from altnorm.search import assign_folds, choose
from altnorm.selection import Dealing, Validation, make_plan

SMALL = {
    "alphas": (0.3, 0.6, 1.0, 2.0, 4.0),
    "depths": (1, 2),
    "thresholds": (0.25, 0.75),
    "smoothings": (0.0, 0.1),
    "random_state": 0,
}
MODES = ("pairs", "labelwise")


def planted(n=800, seed=0):
    """A classifier that favours class 0 far beyond its frequency."""
    rng = np.random.default_rng(seed)
    y = rng.choice(4, size=n, p=[0.1, 0.2, 0.3, 0.4])
    z = rng.normal(size=(n, 4)) + 1.8 * np.eye(4)[y] + [1.5, 0, 0, -0.5]
    return softmax(z, axis=1), y


def calibrated(n=300, m=4, seed=0):
    """Labels drawn from the very probabilities: nothing can be gained."""
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.full(m, 0.5), n)
    return proba, (proba.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)


def unrelated(n=300, m=4, seed=0):
    """Predictions with a taste of their own, and labels that know nothing of them."""
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(0.5 * np.linspace(0.5, 2, m), n)
    return proba, rng.permutation(np.arange(n) % m)


def planted_labels(n=500, m=6, seed=0):
    """A multi-label classifier that says yes too rarely, more so for some labels."""
    rng = np.random.default_rng(seed)
    z = 1.5 * rng.normal(size=(n, m)) - 1
    y = rng.random((n, m)) < expit(2 * z + np.linspace(1.0, 3.0, m))
    return expit(z), y.astype(int)


def accuracy(normalizer, proba, y):
    return (normalizer.predict(proba) == y).mean()


# What is there is found.


def test_a_planted_bias_is_found_and_pays_on_fresh_data():
    normalizer = AlternatingNormalizerCV(**SMALL).fit(*planted())
    proba, y = planted(4000, seed=1)
    gain = accuracy(normalizer, proba, y) - (proba.argmax(axis=1) == y).mean()
    verdict = normalizer.verdict_
    assert verdict.adopted
    assert verdict.gain > 0.05
    assert gain > 0.05
    assert verdict.ci_low - 0.03 < gain < verdict.ci_high + 0.03
    assert verdict.n_fixed > verdict.n_broken
    assert "Adopted: accuracy" in str(verdict)


def test_the_best_normalizer_is_the_best_setting_fitted_on_all_rows():
    proba, y = planted()
    tuned = AlternatingNormalizerCV(**SMALL, prior=None).fit(proba, y)
    best = tuned.best_normalizer_
    assert isinstance(best, AlternatingNormalizer)
    assert {name: getattr(best, name) for name in tuned.best_params_} == tuned.best_params_
    by_hand = AlternatingNormalizer(**tuned.best_params_).fit(proba, y)
    fresh, _ = planted(seed=1)
    np.testing.assert_allclose(tuned.transform(fresh), by_hand.transform(fresh), rtol=1e-12)
    np.testing.assert_array_equal(tuned.predict(fresh), by_hand.predict(fresh))


def test_with_the_paper_grid():
    proba, y = planted(400)
    normalizer = AlternatingNormalizerCV(random_state=0).fit(proba, y)
    fresh, truth = planted(2000, seed=1)
    assert normalizer.verdict_.adopted
    assert accuracy(normalizer, fresh, truth) > (fresh.argmax(axis=1) == truth).mean() + 0.05
    assert set(normalizer.cv_results_["depth"]) == {1, 2, 3, 4, 5}
    assert set(normalizer.cv_results_["alpha"]) <= set(normalizer.alphas)


# What is not there is left alone.


def test_calibrated_predictions_are_left_alone():
    """The probabilities are right, so that every adjustment does harm, if any."""
    adopted = 0
    for seed in range(60):
        proba, y = calibrated(200, seed=seed)
        normalizer = AlternatingNormalizerCV(**SMALL, n_repeats=1).fit(proba, y)
        adopted += normalizer.verdict_.adopted
        if not normalizer.verdict_.adopted:
            assert isinstance(normalizer.best_normalizer_, Identity)
            np.testing.assert_array_equal(normalizer.transform(proba), proba)
            np.testing.assert_array_equal(normalizer.predict(proba), proba.argmax(axis=1))
    assert adopted <= 2


@pytest.mark.parametrize("n_repeats", [1, 3])
def test_labels_unrelated_to_the_predictions_are_no_evidence(n_repeats):
    """Before and after are equally (and hopelessly) good: adopted at most at the level."""
    p_values, gains = [], []
    for seed in range(60):
        normalizer = AlternatingNormalizerCV(**SMALL, n_repeats=n_repeats)
        verdict = normalizer.fit(*unrelated(200, seed=seed)).verdict_
        p_values.append(verdict.p_value if verdict.gain > 0 else 1.0)
        gains.append(verdict.gain)
    level = 0.05
    slack = 2.5 * np.sqrt(level * (1 - level) / 60)
    assert np.mean(np.array(p_values) < level) <= level + slack
    assert abs(np.mean(gains)) < 0.01


def test_significance_is_the_level():
    proba, y = planted(250)
    settings = {**SMALL, "n_repeats": 1}
    verdict = AlternatingNormalizerCV(**settings).fit(proba, y).verdict_
    assert 0 < verdict.p_value < 0.05
    strict = AlternatingNormalizerCV(**settings, significance=verdict.p_value / 2).fit(proba, y)
    assert not strict.verdict_.adopted
    assert strict.verdict_.gain > 0
    np.testing.assert_array_equal(strict.transform(proba), proba)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("mode", [None, *MODES])
def test_without_evidence_predictions_come_back_bit_for_bit(mode, dtype):
    rng = np.random.default_rng(0)
    if mode is None:
        proba, y = unrelated(100)
    else:
        proba, y = rng.random((100, 4)), rng.integers(2, size=(100, 4))
    normalizer = AlternatingNormalizerCV(**SMALL, multilabel=mode, significance=1e-9)
    normalizer.fit(proba.astype(dtype), y)
    assert not normalizer.verdict_.adopted
    fresh = proba[::-1].astype(dtype)
    assert normalizer.transform(fresh).dtype == dtype
    np.testing.assert_array_equal(normalizer.transform(fresh), fresh)


# The choice and its evidence are apart.


def deal(proba, y, folds, prior="uniform", scoring="accuracy"):
    score = resolve_scoring(scoring)
    return Dealing(Validation(proba, y, None, None, 10, prior, score, decide), folds)


def score_all(dealing):
    grid = SMALL["thresholds"], ("confident", "all"), SMALL["smoothings"]
    found = [one for alpha in SMALL["alphas"] for one in dealing.first(alpha, grid)]
    deeper = [one for each in found[::5] for one in dealing.deeper(each.setting, 2)]
    return [*found, *deeper, dealing.identity()]


@pytest.mark.parametrize("scoring", ["accuracy", "f1_macro", "neg_log_loss"])
def test_labels_of_a_fold_have_no_part_in_what_is_chosen_for_it(scoring):
    proba, y = planted(300)
    folds = assign_folds(y, 5, np.random.RandomState(0))
    clean = score_all(deal(proba, y, folds, scoring=scoring))
    for k in range(5):
        spoilt = y.copy()
        spoilt[folds == k] = 0
        found = score_all(deal(proba, spoilt, folds, scoring=scoring))
        assert [one.scores[k] for one in found] == [one.scores[k] for one in clean]
        assert choose(found, k).setting == choose(clean, k).setting
        assert choose(found, k).scores[-1] != choose(clean, k).scores[-1]


def test_with_a_counted_prior_only_the_counts_of_a_fold_matter_elsewhere():
    proba, y = planted(300)
    folds = assign_folds(y, 5, np.random.RandomState(0))
    clean = score_all(deal(proba, y, folds, prior=None))
    shuffled = y.copy()
    shuffled[folds == 3] = np.random.default_rng(0).permutation(y[folds == 3])
    found = score_all(deal(proba, shuffled, folds, prior=None))
    assert [one.scores[3] for one in found] == [one.scores[3] for one in clean]
    assert choose(found, 3).setting == choose(clean, 3).setting


def test_each_fold_gets_exactly_what_was_best_on_the_others():
    proba, y = planted(300)
    folds = assign_folds(y, 4, np.random.RandomState(0))
    dealing = deal(proba, y, folds, prior=None)
    scored = score_all(dealing)
    after = dealing.nested(scored)
    for k in range(4):
        inside = folds == k
        setting = choose(scored, k).setting
        by_hand = AlternatingNormalizer(**setting._asdict()).fit(proba[~inside], y[~inside])
        np.testing.assert_allclose(after[inside], by_hand.transform(proba[inside]), rtol=1e-12)


def test_the_verdict_compares_these_predictions():
    proba, y = planted(300)
    cv = KFold(4, shuffle=True, random_state=0)
    normalizer = AlternatingNormalizerCV(**{**SMALL, "depths": (1,)}, cv=cv).fit(proba, y)
    dealing = deal(proba, y, assign_folds(y, cv, np.random.RandomState(0)), prior="shrunk")
    _, scored = make_plan(
        SMALL["alphas"],
        1,
        lambda alphas: [
            one
            for alpha in alphas
            for one in dealing.first(
                alpha, (SMALL["thresholds"], ("confident", "all"), SMALL["smoothings"])
            )
        ],
    )
    after = dealing.nested([*scored, dealing.identity()]).argmax(axis=1)
    before = proba.argmax(axis=1)
    verdict = normalizer.verdict_
    assert verdict.gain == pytest.approx((after == y).mean() - (before == y).mean())
    assert verdict.n_fixed == ((after == y) & (before != y)).sum()
    assert verdict.n_broken == ((after != y) & (before == y)).sum()
    assert verdict.n_rows == 300


def test_the_gain_is_not_the_maximum_over_the_grid():
    """On labels that are noise the best setting looks better than it is; the verdict does not."""
    looks, verdicts = [], []
    for seed in range(20):
        normalizer = AlternatingNormalizerCV(**SMALL, n_repeats=1).fit(*unrelated(150, seed=seed))
        looks.append(normalizer.cv_results_["gain"].max())
        verdicts.append(normalizer.verdict_.gain)
    assert np.mean(looks) > 0.015
    assert np.mean(verdicts) < np.mean(looks) - 0.01


# Reproducible, in threads or not.


def same(one, other, proba):
    np.testing.assert_array_equal(one.transform(proba), other.transform(proba))
    assert one.best_params_ == other.best_params_
    assert one.verdict_ == other.verdict_
    for name, column in one.cv_results_.items():
        np.testing.assert_array_equal(column, other.cv_results_[name])


def test_a_random_state_reproduces():
    proba, y = planted(300)
    first, second = (AlternatingNormalizerCV(**SMALL).fit(proba, y) for _ in range(2))
    same(first, second, proba)
    state = {**SMALL, "random_state": np.random.RandomState(0)}
    same(AlternatingNormalizerCV(**state).fit(proba, y), first, proba)
    other = AlternatingNormalizerCV(**{**SMALL, "random_state": 1}).fit(proba, y)
    assert set(other.cv_results_["score"]) != set(first.cv_results_["score"])


@pytest.mark.parametrize("mode", [None, *MODES])
def test_threads_change_nothing(mode):
    proba, y = planted(300) if mode is None else planted_labels(200)
    one, two = (
        AlternatingNormalizerCV(**SMALL, multilabel=mode, n_jobs=n).fit(proba, y) for n in (1, 2)
    )
    same(one, two, proba)


def test_pickle_and_clone():
    proba, y = planted(300)
    names = np.array(["a", "b", "c", "d"])
    fitted = AlternatingNormalizerCV(**SMALL).fit(proba, names[y])
    again = pickle.loads(pickle.dumps(fitted))
    same(again, fitted, proba)
    np.testing.assert_array_equal(again.predict(proba), fitted.predict(proba))
    assert set(fitted.predict(proba)) <= set(names)
    assert clone(fitted).get_params() == fitted.get_params()


def test_parameters_are_stored_untouched():
    proba, y = planted(100)
    given = {
        "alphas": [1, 2],
        "depths": np.array([1]),
        "thresholds": [0.5],
        "references": ["all"],
        "smoothings": [0],
        "prior": [1, 1, 1, 1],
        "cv": KFold(3),
    }
    normalizer = AlternatingNormalizerCV(**given).fit(proba, y)
    for name, value in given.items():
        assert getattr(normalizer, name) is value


# What it records.


def test_cv_results():
    proba, y = planted(300)
    normalizer = AlternatingNormalizerCV(**SMALL).fit(proba, y)
    table = normalizer.cv_results_
    assert set(table) == {
        "alpha",
        "depth",
        "threshold",
        "reference",
        "smoothing",
        "score",
        "gain",
        "n_changed",
        "rank",
    }
    assert len({column.shape for column in table.values()}) == 1
    assert sorted(table["rank"]) == list(range(1, table["rank"].size + 1))
    assert table["rank"][np.argmax(table["score"])] == 1
    base = (proba.argmax(axis=1) == y).mean()
    np.testing.assert_allclose(table["score"] - table["gain"], base)
    settings = list(zip(*(table[name] for name in normalizer.best_params_), strict=True))
    assert len(set(settings)) == len(settings)
    best = settings.index(tuple(normalizer.best_params_.values()))
    assert table["score"][best] == pytest.approx(table["score"].max())


def test_given_folds_are_used_once():
    proba, y = planted(300)
    parts = np.arange(300) < 150
    splits = [(np.flatnonzero(~parts), np.flatnonzero(parts))]
    splits.append(splits[0][::-1])
    normalizer = AlternatingNormalizerCV(**SMALL, cv=splits).fit(proba, y)
    again = AlternatingNormalizerCV(**{**SMALL, "random_state": 9}, cv=splits).fit(proba, y)
    same(normalizer, again, proba)


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
    normalizer = AlternatingNormalizerCV(**grid, scoring=scoring, n_repeats=1).fit(proba, y)
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


# Several labels a row.


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("scoring", ["accuracy", "f1_micro", "loose_macro_f1", "neg_log_loss"])
def test_several_labels(mode, scoring):
    metric = {
        "accuracy": lambda y, p: f1_score(y, p > 0.5, average="micro"),
        "f1_micro": lambda y, p: f1_score(y, p > 0.5, average="micro"),
        "loose_macro_f1": lambda y, p: loose_macro_f1(y, p > 0.5),
        "neg_log_loss": lambda y, p: np.log(np.where(y == 1, p, 1 - p)).mean(),
    }[scoring]
    proba, y = planted_labels()
    normalizer = AlternatingNormalizerCV(**SMALL, multilabel=mode, scoring=scoring).fit(proba, y)
    assert normalizer.verdict_.before == pytest.approx(metric(y, proba))
    assert normalizer.verdict_.adopted
    fresh, truth = planted_labels(2000, seed=1)
    gain = metric(truth, normalizer.transform(fresh)) - metric(truth, fresh)
    assert gain > 0.03
    assert abs(gain - normalizer.verdict_.gain) < 0.06
    np.testing.assert_array_equal(normalizer.predict(fresh), normalizer.transform(fresh) > 0.5)


@pytest.mark.parametrize("scoring", ["loose_macro_f1", "scorer"])
def test_the_decision_rule_is_the_one_that_is_scored(scoring):
    proba, y = planted_labels(300)
    rule = "argmax_or_threshold"
    expected = loose_macro_f1(y, decide(proba, rule=rule))
    if scoring == "scorer":
        scoring = make_scorer(loose_macro_f1)
    normalizer = AlternatingNormalizerCV(
        **{**SMALL, "depths": (1,), "alphas": (1.0,)},
        multilabel="labelwise",
        decision=rule,
        scoring=scoring,
        n_repeats=1,
    ).fit(proba, y)
    assert normalizer.verdict_.before == pytest.approx(expected)
    np.testing.assert_array_equal(
        normalizer.predict(proba), decide(normalizer.transform(proba), rule=rule)
    )
    assert normalizer.predict(proba).any(axis=1).all()


@pytest.mark.parametrize("mode", MODES)
def test_confident_entries_in_one_fold_only(mode):
    """Such a threshold leaves that fold without a reference: it is left out, and nothing fails."""
    rng = np.random.default_rng(0)
    proba, y = rng.uniform(0.3, 0.7, (60, 3)), rng.integers(2, size=(60, 3))
    proba[:20] = 0.01
    splits = [(np.setdiff1d(np.arange(60), part), part) for part in np.arange(60).reshape(3, 20)]
    normalizer = AlternatingNormalizerCV(**SMALL, multilabel=mode, cv=splits).fit(proba, y)
    assert set(normalizer.cv_results_["reference"]) == {"all"}
    with pytest.raises(InputError, match="No setting could be tried: no fold leaves a confident"):
        AlternatingNormalizerCV(**SMALL, multilabel=mode, cv=splits, references=("confident",)).fit(
            proba, y
        )


def test_confident_rows_that_one_dealing_leaves_to_one_fold():
    """Few confident rows: other dealings may leave a fold without, and nothing fails."""
    rng = np.random.default_rng(0)
    proba, y = softmax(0.3 * rng.normal(size=(60, 3)), axis=1), rng.integers(3, size=60)
    proba[:2] = [[0.999, 0.001, 0.0], [0.0, 0.999, 0.001]]
    for seed in range(10):
        settings = {**SMALL, "random_state": seed, "significance": 0.99}
        AlternatingNormalizerCV(**settings, n_repeats=5).fit(proba, y)


# Weights.


def test_weights_count():
    proba, y = planted(300)
    weight = np.random.default_rng(0).integers(0, 3, 300).astype(float)
    grid = {**SMALL, "depths": (1,)}
    weighted = AlternatingNormalizerCV(**grid, n_repeats=1, cv=KFold(3)).fit(
        proba, y, sample_weight=weight
    )
    right = proba.argmax(axis=1) == y
    assert weighted.verdict_.before == pytest.approx(np.average(right, weights=weight))
    repeat = weight.astype(int)
    folds = assign_folds(y, KFold(3), np.random.RandomState(0)).repeat(repeat)
    splits = [(np.flatnonzero(folds != k), np.flatnonzero(folds == k)) for k in range(3)]
    repeated = AlternatingNormalizerCV(**grid, cv=splits).fit(
        proba.repeat(repeat, axis=0), y.repeat(repeat)
    )
    np.testing.assert_allclose(
        weighted.cv_results_["score"], repeated.cv_results_["score"], rtol=1e-12
    )
    assert weighted.best_params_ == repeated.best_params_
    assert weighted.verdict_.gain == pytest.approx(repeated.verdict_.gain)
    np.testing.assert_allclose(weighted.transform(proba), repeated.transform(proba), rtol=1e-9)


def test_metadata_routing():
    proba, y = planted(300)
    weight = np.random.default_rng(0).integers(1, 3, 300).astype(float)
    grid = {**SMALL, "depths": (1,), "n_repeats": 1}
    with config_context(enable_metadata_routing=True):
        asked = AlternatingNormalizerCV(**grid).set_fit_request(sample_weight=True)
        routed = make_pipeline(FunctionTransformer(), asked).fit(proba, y, sample_weight=weight)
    direct = AlternatingNormalizerCV(**grid).fit(proba, y, sample_weight=weight)
    same(routed[-1], direct, proba)


# Labels and frames.


def test_frames_and_names():
    proba, y = planted(300)
    names = np.array(["dog", "ant", "cat", "bee"])
    frame = pd.DataFrame(proba, columns=names)
    plain = AlternatingNormalizerCV(**SMALL).fit(proba, y)
    named = AlternatingNormalizerCV(**SMALL).set_output(transform="pandas").fit(frame, names[y])
    np.testing.assert_array_equal(named.classes_, names)
    np.testing.assert_array_equal(named.predict(frame), names[plain.predict(proba)])
    out = named.transform(frame)
    assert list(out.columns) == list(names)
    np.testing.assert_array_equal(out.to_numpy(), plain.transform(proba))


def test_logits():
    proba, y = planted(300)
    plain = AlternatingNormalizerCV(**SMALL).fit(proba, y)
    logits = AlternatingNormalizerCV(**SMALL, input="logits").fit(np.log(proba) + 2, y)
    assert plain.verdict_.adopted
    np.testing.assert_allclose(
        logits.transform(np.log(proba) + 2), plain.transform(proba), rtol=1e-9
    )


def test_classes_rarer_than_folds():
    proba, y = planted(300)
    y[y == 3] = 2
    y[:2] = 3
    for prior in (None, "shrunk"):
        normalizer = AlternatingNormalizerCV(**SMALL, prior=prior).fit(proba, y)
        assert np.isfinite(normalizer.transform(proba)).all()
        assert normalizer.classes_.size == 4


# Errors, by their text.


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"alphas": ()}, "`alphas` must hold at least one value"),
        ({"alphas": (0.0,)}, "`alphas` must be a finite number greater than 0; it is 0.0"),
        ({"depths": (0,)}, "`depths` must be an integer, 1 or greater; it is 0"),
        ({"depths": ()}, "`depths` must hold at least one value"),
        ({"thresholds": ()}, "`thresholds` must hold at least one value"),
        ({"thresholds": (-0.5,)}, "`thresholds` must be a finite number, 0 or greater"),
        ({"references": ("best",)}, "`references` must be .* it is 'best'"),
        ({"smoothings": (-1.0,)}, "`smoothings` must be a finite number, 0 or greater"),
        ({"prior": "flat"}, "`prior` must be .* it is 'flat'"),
        ({"scoring": "f2"}, "`scoring` must be a score for single-label predictions; it is 'f2'"),
        ({"multilabel": "many"}, "`multilabel` must be .* it is 'many'"),
        ({"cv": 1}, "`cv` must be an integer, 2 or greater"),
        ({"significance": 0.0}, "`significance` must lie between 0 and 1; it is 0.0"),
        ({"n_repeats": 0}, "`n_repeats` must be an integer, 1 or greater"),
        ({"input": "scores"}, "`input` must be .* it is 'scores'"),
    ],
    ids=str,
)
def test_wrong_settings(settings, message):
    with pytest.raises(InputError, match=message):
        AlternatingNormalizerCV(**{**SMALL, **settings}).fit(*planted(60))


def test_labels_are_needed():
    with pytest.raises(InputError, match="requires y to be passed, but the target y is None"):
        AlternatingNormalizerCV().fit(planted(60)[0], None)


def test_no_confident_row():
    proba, y = np.full((40, 4), 0.25), np.arange(40) % 4
    with pytest.raises(InputError, match=r"No setting could be tried.*add 'all' to `references`"):
        AlternatingNormalizerCV(**SMALL, references=("confident",)).fit(proba, y)


def test_label_matrices_need_the_option():
    proba, y = planted(60)
    with pytest.raises(InputError, match=r"one class label a row.*multilabel='labelwise'"):
        AlternatingNormalizerCV(**SMALL).fit(proba, np.eye(4, dtype=int)[y])
    with pytest.raises(InputError, match=r"shape \(60,\)"):
        AlternatingNormalizerCV(**SMALL, multilabel="pairs").fit(proba, y)

"""Target accuracy: which rows are decided, and that the promise is exact."""

import numpy as np
import pytest
from scipy.stats import binom, binomtest

from altnorm import Adjuster, ask, compare, load
from altnorm.evidence.promise import LEVEL, N_POINTS, coverage, lower_bound
from tests.problems import planted

TARGET = 0.85


@pytest.fixture(scope="module")
def fitted():
    return Adjuster(target_accuracy=TARGET).fit(*planted())


def test_coverage_is_that_of_a_plain_loop():
    rng = np.random.default_rng(1)
    confidence, right = rng.integers(1, 9, 60) / 10, rng.random(60) < 0.7
    weight, groups = rng.uniform(0.5, 2, 60), rng.integers(12, size=60)
    curve = coverage(confidence, right, weight, groups)
    assert curve.confidence.tolist() == sorted(set(confidence), reverse=True)
    for k, level in enumerate(curve.confidence):
        is_decided = confidence >= level
        total = weight[is_decided].sum()
        sums = np.array([weight[is_decided & (groups == g)].sum() for g in range(12)])
        assert curve.share[k] == pytest.approx(total / weight.sum())
        assert curve.accuracy[k] == pytest.approx((weight * right)[is_decided].sum() / total)
        assert curve.units[k] == pytest.approx(sums.sum() ** 2 / (sums**2).sum())
        assert curve.n_decided[k] == is_decided.sum()


def test_rows_that_count_as_good_as_nothing_are_no_evidence():
    """The square of such a weight is 0 in double precision."""
    confidence, right = np.array([0.9, 0.8, 0.7, 0.6]), np.array([True, True, False, True])
    weight = np.array([1e-180, 1.0, 1.0, 1.0])
    curve = coverage(confidence, right, weight)
    assert curve.confidence.tolist() == [0.8, 0.7, 0.6]
    assert curve.accuracy.tolist() == [1.0, 0.5, pytest.approx(2 / 3)]
    assert curve.units == pytest.approx([1, 2, 3])


@pytest.mark.parametrize(("hits", "n"), [(0, 5), (70, 80), (80, 80), (1, 1)])
def test_bounds_and_tests_are_the_exact_binomial_ones(hits, n):
    exact = binomtest(hits, n).proportion_ci(1 - 2 * LEVEL, method="exact")
    curve = coverage(np.ones(n), np.arange(n) < hits)
    assert lower_bound(np.array([hits / n]), np.array([float(n)])) == pytest.approx(exact.low)
    assert curve.upper() == pytest.approx(exact.high)
    for target in (0.5, 0.8, 0.95):
        assert curve.passes(target) == [binom.sf(hits - 1, n, target) <= LEVEL]


def test_most_confident_rows_are_decided_and_the_promise_counts_them(fitted):
    _, y = planted()
    promise, judged = fitted.verdict_.promise, fitted._judged
    assert promise is not None
    highest = judged.after.max(axis=1)
    decided = highest >= fitted.decision_.least
    right = judged.after.argmax(axis=1) == y
    assert 0.2 < promise.share < 0.9
    assert promise.n_decided == decided.sum()
    assert promise.accuracy == pytest.approx(right[decided].mean())
    assert promise.lower >= TARGET
    assert promise.share > promise.share_before
    # No larger share passes: the oracle looks at them one by one.
    order = np.argsort(-highest)
    for n in range(promise.n_decided + 1, len(y) + 1):
        assert binom.sf(right[order[:n]].sum() - 1, n, TARGET) > LEVEL


def test_predict_leaves_the_rows_below_the_threshold_and_nothing_else_changes(
    fitted,
):
    proba, y = planted(seed=5)
    plain = Adjuster().fit(*planted())
    adjusted = fitted.transform(proba)
    decided = adjusted.max(axis=1) >= fitted.decision_.least
    answers = fitted.predict(proba)
    assert [answer is not None for answer in answers] == decided.tolist()
    assert (answers[decided] == plain.predict(proba)[decided]).all()
    np.testing.assert_array_equal(adjusted, plain.transform(proba))
    assert fitted.score(proba, y) == plain.score(proba, y)
    single = fitted.predict(proba.astype(np.float32))
    near = np.abs(adjusted.max(axis=1) - fitted.decision_.least) < 1e-6
    assert (single[~near] == answers[~near]).all()


def test_kept_decisions_are_handed_over_by_the_probabilities_that_are_returned():
    rng = np.random.default_rng(3)
    y = rng.integers(3, size=400)
    proba = np.exp(rng.normal(size=(400, 3)) + 1.5 * np.eye(3)[y])  # nothing to correct
    proba /= proba.sum(axis=1, keepdims=True)
    model = Adjuster(target_accuracy=0.8).fit(proba, y)
    assert not model.verdict_.adopted
    new = rng.dirichlet([0.5] * 3, size=500)
    decided = model.transform(new).max(axis=1) >= model.decision_.least
    answers = model.predict(new)
    assert 0 < decided.sum() < 500
    assert (answers[decided] == new.argmax(axis=1)[decided]).all()
    assert all(answer is None for answer in answers[~decided])


def test_low_target_decides_everything_and_says_so():
    model = Adjuster(target_accuracy=0.5).fit(*planted())
    assert "It decides every row, as the target of 50% allows" in str(model.verdict_)
    assert model.verdict_.promise.n_decided == 800
    assert model.predict(planted()[0]).dtype.kind == "i"


def test_too_few_labels_decide_nothing_and_more_are_asked_for():
    proba, y = planted(100)
    model = Adjuster(target_accuracy=0.95).fit(proba, y)
    promise = model.verdict_.promise
    assert promise.share == promise.n_decided == 0
    assert promise.n_labels > 100
    assert f"about {promise.n_labels:,} labels might do" in str(model.verdict_)
    assert all(answer is None for answer in model.predict(proba))
    enough = Adjuster(target_accuracy=0.95).fit(*planted(2 * promise.n_labels))
    assert enough.verdict_.promise.share > 0


def test_groups_of_copies_prove_no_more_than_one_row_each():
    (proba, y), settings = planted(300), {"target_accuracy": TARGET, "families": ("bias",)}
    copies, labels, groups = (np.repeat(each, 4, axis=0) for each in (proba, y, np.arange(300)))
    alone = Adjuster(**settings).fit(proba, y, groups=np.arange(300)).verdict_.promise
    copied = Adjuster(**settings).fit(copies, labels, groups=groups).verdict_.promise
    assert copied.share == pytest.approx(alone.share, abs=0.01)


NO_SHARE = "`target_accuracy` must be a number between 0 and 1; it"
FOR_ACCURACY = "is for accuracy with one class per row; "


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        *(({"target_accuracy": bad}, NO_SHARE) for bad in (1.0, 0, float("nan"), "95", True)),
        ({"costs": 1 - np.eye(4)}, FOR_ACCURACY + "`costs` is given"),
        ({"scoring": "balanced_accuracy"}, FOR_ACCURACY + "`scoring` is 'balanced_accuracy'"),
        ({"multilabel": "pairs"}, FOR_ACCURACY + "`multilabel` is 'pairs'"),
    ],
    ids=str,
)
def test_targets_and_goals_that_do_not_go_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        Adjuster(**{"target_accuracy": 0.9, **settings}).fit(*planted(50))


def test_model_file_keeps_the_promise_and_its_figure(fitted, tmp_path):
    figure = pytest.importorskip("matplotlib.figure")
    fitted.save(tmp_path / "model.safetensors")
    again, (proba, _) = load(tmp_path / "model.safetensors"), planted(seed=8)
    assert again.verdict_ == fitted.verdict_
    assert again.predict(proba).tolist() == fitted.predict(proba).tolist()
    promise, judged, axes = fitted.verdict_.promise, fitted._judged, figure.Figure().subplots()
    assert again.verdict_.plot(axes) is axes
    texts = [text.get_text() for text in axes.get_legend().get_texts()]
    assert texts == ["before", "after", "target 85%", "decided"]
    for line, proba in zip(axes.lines, (judged.before, judged.after), strict=False):
        curve = coverage(proba.max(axis=1), proba.argmax(axis=1) == judged.labels)
        drawn = set(zip(*line.get_data(), strict=True))
        assert drawn <= set(zip(curve.share, curve.accuracy, strict=True))
        assert N_POINTS / 2 < len(drawn) <= N_POINTS + 1
    (x,), (y,) = axes.lines[-1].get_data()
    assert (x, y) == (promise.share, promise.accuracy)


def test_asking_comparing_and_adapting_look_at_all_rows(fitted):
    (proba, y), (new, new_y) = planted(), planted(500, seed=9)
    plain = Adjuster().fit(proba, y)
    np.testing.assert_array_equal(ask(fitted, new), ask(plain, new))
    assert ask(fitted, new, against=plain).size == 0
    methods = {"target": Adjuster(target_accuracy=TARGET), "plain": Adjuster()}
    first, second = compare(proba, y, new, new_y, methods=methods)
    assert first.score == second.score
    adapted = fitted.adapt(new, assume="label_shift", insist=True)
    decided = adapted.transform(new).max(axis=1) >= fitted.decision_.least
    assert [answer is not None for answer in adapted.predict(new)] == decided.tolist()

"""The numbers behind the figures, against naive counts; and that every display draws them."""

import numpy as np
import pytest

from altnorm import AlternatingNormalizer, AlternatingNormalizerCV
from altnorm._validation import InputError
from altnorm.display import measures

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

from altnorm.display import (  # noqa: E402
    AmbiguityDisplay,
    ClassUseDisplay,
    FixedBrokenDisplay,
    ReliabilityDisplay,
    TuningDisplay,
)

EXACT = 1e-12  # sums of a few hundred numbers


def predictions(n=400, m=4, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(m, size=n)
    proba = np.exp(rng.normal(size=(n, m)) + 1.5 * np.eye(m)[y] + np.linspace(1, 0, m))
    return proba / proba.sum(axis=1, keepdims=True), y


@pytest.fixture(scope="module")
def adjusted():
    proba, y = predictions()
    normalizer = AlternatingNormalizer(threshold=0.5).fit(proba[:200], y[:200])
    return normalizer, proba[200:], normalizer.transform(proba[200:]), y[200:]


@pytest.fixture
def axes():
    from matplotlib.figure import Figure

    return Figure().subplots()


def test_flows_and_changes_equal_naive_counts(adjusted):
    _, before, after, y = adjusted
    old, new = before.argmax(axis=1), after.argmax(axis=1)
    found = measures.flows(old, new, y)
    for source, target, count, fixed, broken in zip(
        found.source, found.target, found.count, found.fixed, found.broken, strict=True
    ):
        rows = [i for i in range(len(y)) if old[i] == source != new[i] == target]
        assert count == len(rows) > 0
        assert fixed == sum(y[i] == target for i in rows)
        assert broken == sum(y[i] == source for i in rows)
    assert found.count.sum() == (old != new).sum()
    assert (np.diff(found.count) <= 0).all()
    changes = measures.class_changes(before, after, y)
    assert changes.fixed.sum() == ((old != y) & (new == y)).sum() == found.fixed.sum()
    assert changes.broken.sum() == ((old == y) & (new != y)).sum() == found.broken.sum()
    net = np.bincount(new, minlength=4) - np.bincount(old, minlength=4)
    assert (changes.gained - changes.lost == net).all()


def test_label_changes_count_decisions():
    before = np.array([[0.6, 0.2], [0.4, 0.9], [0.4, 0.1]])
    after = np.array([[0.4, 0.2], [0.7, 0.9], [0.4, 0.8]])
    y = np.array([[0, 0], [1, 1], [0, 0]])
    changes = measures.class_changes(before, after, y)
    assert changes.fixed.tolist() == [2, 0]
    assert changes.broken.tolist() == [0, 1]
    assert (
        changes.gained.tolist() == measures.label_changes(before, after).gained.tolist() == [1, 1]
    )
    assert changes.lost.tolist() == [1, 0]


def test_permuting_classes_permutes_changes_use_and_factors(adjusted):
    normalizer, before, after, y = adjusted
    order = np.array([2, 0, 3, 1])
    codes = np.argsort(order)[y]
    changes = measures.class_changes(before, after, y)
    permuted = measures.class_changes(before[:, order], after[:, order], codes)
    assert (permuted.fixed == changes.fixed[order]).all()
    factors = measures.class_factors(before, after, relative=True)
    np.testing.assert_allclose(
        measures.class_factors(before[:, order], after[:, order], relative=True),
        factors[order],
        rtol=EXACT,
    )
    use = measures.class_use(normalizer.reference_, normalizer.prior_, np.arange(4))
    moved = measures.class_use(normalizer.reference_[:, order], normalizer.prior_[order], order)
    np.testing.assert_allclose(moved.ratio, use.ratio[order], rtol=EXACT)


def test_class_use_knows_zero_priors():
    use = measures.class_use(np.array([[0.5, 0.5, 0.0]]), np.array([1.0, 0, 0]), np.arange(3))
    assert use.ratio.tolist() == [0.5, np.inf, 1.0]


def test_factors_of_a_constant_tilt_are_that_tilt():
    before = np.random.default_rng(0).dirichlet(np.ones(3), size=50)
    weighted = before * [0.5, 1.0, 2.0]
    factors = measures.class_factors(before, weighted)
    np.testing.assert_allclose(factors, [0.5, 1.0, 2.0], rtol=EXACT)
    assert np.isnan(measures.class_factors(np.array([[1.0, 0.0]]), np.array([[1.0, 0.0]]))[1])


def test_histogram_counts_every_row_once(adjusted):
    _, before, after, y = adjusted
    ambiguity = measures.doubt(before)
    right = [measures.right_decisions(p, y) for p in (before, after)]
    histogram = measures.ambiguity_histogram(ambiguity, *right, threshold=0.5, bins=7)
    assert histogram.count.sum() == len(y)
    assert histogram.right_before.sum() == right[0].sum()
    assert histogram.right_after.sum() == right[1].sum()
    assert measures.ambiguity_histogram(np.array([0.0, 1.0]), bins=2).count.tolist() == [1, 1]


def test_reliability_of_honest_probabilities_is_good():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(3), size=20_000)
    y = (proba.cumsum(axis=1) > rng.random((20_000, 1))).argmax(axis=1)
    found = measures.reliability(proba, y)
    assert found.error < 0.02
    assert found.count.sum() == found.histogram.sum() == 20_000
    yes = measures.reliability(proba, np.eye(3)[y])
    assert yes.count.sum() == 60_000
    assert yes.error < 0.02


def test_tuning_curves_hold_the_best_score_of_each_exponent():
    proba, y = predictions()
    tuned = AlternatingNormalizerCV((0.5, 1, 2), (1, 2), n_repeats=1, random_state=0).fit(proba, y)
    found = measures.tuning_curves(tuned.cv_results_, tuned.best_params_)
    assert found.n_settings == tuned.cv_results_["score"].size
    assert found.best["score"] == tuned.cv_results_["score"].max()
    assert found.best["alpha"] == tuned.best_params_["alpha"]
    assert found.base == pytest.approx(tuned.verdict_.before, abs=EXACT)
    for curve in found.curves:
        for alpha, score in zip(curve.alpha, curve.score, strict=True):
            here = [
                s
                for a, d, t, s in zip(
                    *(tuned.cv_results_[k] for k in ("alpha", "depth", "threshold", "score")),
                    strict=True,
                )
                if (a, d, t) == (alpha, curve.depth, curve.threshold)
            ]
            assert score == max(here)


def test_displays_draw_on_the_axes_given(adjusted, axes):
    normalizer, before, _, y = adjusted
    drawn = [
        AmbiguityDisplay.from_estimator(normalizer, before),
        AmbiguityDisplay.from_predictions(before, threshold=None),
        ClassUseDisplay.from_estimator(normalizer),
        ClassUseDisplay.from_predictions(before, threshold=0.5, prior=[4, 3, 2, 1]),
        FixedBrokenDisplay.from_estimator(normalizer, before, y),
        ReliabilityDisplay.from_estimator(normalizer, before, y),
        ReliabilityDisplay.from_predictions(y, before),
    ]
    for display in drawn:
        axes.clear()
        assert display.plot(axes) is display
        assert display.ax_ is axes
        assert axes.get_xlabel()


def test_estimator_and_predictions_agree(adjusted):
    normalizer, before, after, y = adjusted
    one = FixedBrokenDisplay.from_estimator(normalizer, before, y)
    two = FixedBrokenDisplay.from_predictions(y, before, after, classes=normalizer.classes_)
    assert (one.changes.fixed == two.changes.fixed).all()
    left = ReliabilityDisplay.from_estimator(normalizer, before, y)
    right = ReliabilityDisplay.from_predictions(y, before, after)
    assert left.after.error == right.after.error


@pytest.mark.parametrize("mode", ["pairs", "labelwise"])
def test_displays_of_multilabel_problems(mode, axes):
    rng = np.random.default_rng(0)
    y = rng.random((200, 3)) < 0.3
    proba = 1 / (1 + np.exp(-rng.normal(size=(200, 3)) - 2 * (y - 0.7)))
    normalizer = AlternatingNormalizer(threshold=0.5, multilabel=mode).fit(proba, y)
    assert AmbiguityDisplay.from_estimator(normalizer, proba).histogram.count.sum() == 600
    use = ClassUseDisplay.from_estimator(normalizer).plot(axes).use
    assert use.used.shape == use.prior.shape
    FixedBrokenDisplay.from_estimator(normalizer, proba, y).plot(axes)


def test_tuning_display_draws_each_threshold(axes):
    proba, y = predictions(m=2)
    tuned = AlternatingNormalizerCV((0.5, 1), (1,), n_repeats=1, random_state=0).fit(proba, y)
    display = TuningDisplay.from_estimator(tuned)
    for threshold in (None, 0.25, 0.75):
        axes.clear()
        assert axes is display.plot(axes, threshold=threshold).ax_
        assert "τ" in axes.get_title(loc="left")


def test_a_display_without_axes_makes_its_own():
    from matplotlib import pyplot as plt

    proba, _ = predictions(m=3)
    display = AmbiguityDisplay.from_predictions(proba).plot()
    plt.close(display.ax_.figure)


def test_class_use_needs_a_reference():
    proba, _ = predictions(n=20, m=2)
    from altnorm.peers import Identity

    with pytest.raises(InputError, match="it applies Identity"):
        ClassUseDisplay.from_estimator(Identity().fit(proba))
    with pytest.raises(InputError, match="No row has an ambiguity of at most `threshold` 0"):
        ClassUseDisplay.from_predictions(proba, threshold=0.0)

"""The numbers behind the figures, against naive counts; and that every display draws them."""

from itertools import pairwise

import numpy as np
import pytest

from altnorm import Adjuster, AlternatingNormalizer, AlternatingNormalizerCV, ambiguity
from altnorm._base.errors import InputError
from altnorm.method.kinds import resolve_kind
from altnorm.report.display import _measures as measures

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

from altnorm.report.display import (  # noqa: E402
    AmbiguityDisplay,
    ClassUseDisplay,
    FixedBrokenDisplay,
    ReliabilityDisplay,
    TuningDisplay,
)
from tests.fitted import FORMS, assemble  # noqa: E402
from tests.problems import planted  # noqa: E402

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


def decided(*probabilities):
    multilabel = None if np.allclose(probabilities[0].sum(axis=1), 1) else "labelwise"
    return [resolve_kind(multilabel).decide(proba) for proba in probabilities]


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
    changes = measures.class_changes(*decided(before, after), before.shape[1], y)
    assert changes.fixed.sum() == ((old != y) & (new == y)).sum() == found.fixed.sum()
    assert changes.broken.sum() == ((old == y) & (new != y)).sum() == found.broken.sum()
    net = np.bincount(new, minlength=4) - np.bincount(old, minlength=4)
    assert (changes.gained - changes.lost == net).all()


def test_label_changes_count_decisions():
    before = np.array([[0.6, 0.2], [0.4, 0.9], [0.4, 0.1]])
    after = np.array([[0.4, 0.2], [0.7, 0.9], [0.4, 0.8]])
    y = np.array([[0, 0], [1, 1], [0, 0]])
    changes = measures.class_changes(*decided(before, after), before.shape[1], y)
    assert changes.fixed.tolist() == [2, 0]
    assert changes.broken.tolist() == [0, 1]
    bare = measures.class_changes(*decided(before, after), 2)
    assert changes.gained.tolist() == bare.gained.tolist() == [1, 1]
    assert changes.lost.tolist() == bare.lost.tolist() == [1, 0]
    assert bare.fixed is bare.broken is None


def test_permuting_classes_permutes_changes_use_and_factors(adjusted):
    normalizer, before, after, y = adjusted
    order = np.array([2, 0, 3, 1])
    codes = np.argsort(order)[y]
    changes = measures.class_changes(*decided(before, after), before.shape[1], y)
    permuted = measures.class_changes(*decided(before[:, order], after[:, order]), 4, codes)
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
    doubt = ambiguity(before)
    right = [p.argmax(axis=1) == y for p in (before, after)]
    histogram = measures.ambiguity_histogram(doubt, *right, threshold=0.5, bins=7)
    for i, (low, high) in enumerate(pairwise(np.linspace(0, 1, 8))):
        inside = [k for k in range(len(y)) if low <= doubt[k] < high or doubt[k] == high == 1]
        assert histogram.count[i] == len(inside)
        assert histogram.right_after[i] == sum(right[1][k] for k in inside)
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
    label_by_label = measures.reliability(proba, np.eye(3)[y])
    assert label_by_label.count.sum() == 60_000
    assert label_by_label.error < 0.02


def test_tuning_curves_hold_the_best_score_of_each_exponent():
    proba, y = predictions()
    tuned = AlternatingNormalizerCV((0.5, 1, 2), (1, 2), random_state=0).fit(proba, y)
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


def drawn_points(axes):
    return {label: np.asarray(found.get_offsets()) for found, label in labelled(axes.collections)}


def labelled(artists):
    return [(found, found.get_label()) for found in artists if found.get_label()[0] != "_"]


class TestWhatIsDrawn:
    """The figures show the numbers, on the axes given."""

    def test_ambiguity(self, adjusted, axes):
        normalizer, before, _, _ = adjusted
        display = AmbiguityDisplay.from_estimator(normalizer, before, bins=10)
        assert display.plot(axes) is display
        assert display.ax_ is axes
        heights = [bar.get_height() for bar in axes.patches]
        assert heights == np.histogram(ambiguity(before), bins=10, range=(0, 1))[0].tolist()
        assert axes.lines[0].get_xdata()[0] == normalizer.threshold
        axes.clear()
        AmbiguityDisplay.from_predictions(before, threshold=None).plot(axes)
        assert not axes.lines

    def test_class_use(self, adjusted, axes):
        normalizer, before, _, _ = adjusted
        ClassUseDisplay.from_estimator(normalizer).plot(axes)
        names = [int(tick.get_text()) for tick in axes.get_yticklabels()]
        points = drawn_points(axes)
        used = points["used by the reference"][:, 0]
        np.testing.assert_allclose(used, normalizer.reference_.mean(axis=0)[names], rtol=EXACT)
        np.testing.assert_allclose(points["prior"][:, 0], normalizer.prior_[names], rtol=EXACT)
        given = ClassUseDisplay.from_predictions(before, threshold=0.5, prior=[4, 3, 2, 1]).use
        sure = before[ambiguity(before) <= 0.5]
        np.testing.assert_allclose(given.used, sure.mean(axis=0), rtol=EXACT)
        assert given.prior.tolist() == [0.4, 0.3, 0.2, 0.1]

    def test_fixed_and_broken(self, adjusted, axes):
        normalizer, before, after, y = adjusted
        FixedBrokenDisplay.from_estimator(normalizer, before, y).plot(axes)
        old, new = before.argmax(axis=1), after.argmax(axis=1)
        names = [int(tick.get_text()) for tick in axes.get_yticklabels()]
        fixed, broken = ([bar.get_width() for bar in part] for part in axes.containers)
        assert fixed == [int(((y == j) & (old != j) & (new == j)).sum()) for j in names]
        assert broken == [-int(((y == j) & (old == j) & (new != j)).sum()) for j in names]

    def test_reliability(self, adjusted, axes):
        normalizer, before, after, y = adjusted
        ReliabilityDisplay.from_estimator(normalizer, before, y, n_bins=1).plot(axes)
        for line, proba in zip(axes.lines[1:], (before, after), strict=True):
            (confidence,), (share,) = line.get_data()
            assert confidence == pytest.approx(proba.max(axis=1).mean())
            assert share == pytest.approx((proba.argmax(axis=1) == y).mean())

    def test_new_axes_where_none_are_given(self):
        from matplotlib import pyplot as plt

        before = plt.get_fignums()
        display = AmbiguityDisplay.from_predictions(predictions(m=3)[0]).plot()
        (number,) = set(plt.get_fignums()) - set(before)
        assert plt.figure(number).axes == [display.ax_]
        plt.close(number)


def test_logits_are_read_as_the_estimator_reads_them():
    proba, y = predictions()
    one, two = (
        AlternatingNormalizer(threshold=0.5, input=kind).fit(values, y)
        for kind, values in (("proba", proba), ("logits", np.log(proba)))
    )
    changes, same = (
        FixedBrokenDisplay.from_estimator(normalizer, values, y).changes
        for normalizer, values in ((one, proba), (two, np.log(proba)))
    )
    assert changes.fixed.sum() > 0
    np.testing.assert_array_equal(changes.fixed, same.fixed)
    np.testing.assert_array_equal(changes.broken, same.broken)
    after, alike = (
        ReliabilityDisplay.from_estimator(normalizer, values, y).after
        for normalizer, values in ((one, proba), (two, np.log(proba)))
    )
    np.testing.assert_array_equal(after.count, alike.count)
    np.testing.assert_allclose(after.confidence, alike.confidence, rtol=1e-9)
    np.testing.assert_allclose(after.right, alike.right, rtol=1e-9)


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
    tuned = AlternatingNormalizerCV((0.5, 1), (1,), random_state=0).fit(proba, y)
    display = TuningDisplay.from_estimator(tuned)
    for threshold in (None, 0.25, 0.75):
        axes.clear()
        assert axes is display.plot(axes, threshold=threshold).ax_
        assert "τ" in axes.get_title(loc="left")


def test_class_use_needs_a_reference():
    proba, _ = predictions(n=20, m=2)
    from altnorm.peers import Identity

    with pytest.raises(InputError, match="it applies Identity"):
        ClassUseDisplay.from_estimator(Identity().fit(proba))
    with pytest.raises(InputError, match="No row has an ambiguity of at most `threshold` 0"):
        ClassUseDisplay.from_predictions(proba, threshold=0.0)


# An Adjuster has two stages, and every figure that shows probabilities shows them after both.


@pytest.mark.parametrize(("decider", "calibration"), FORMS)
def test_displays_show_both_stages(decider, calibration, axes):
    proba, y = planted(300)
    adjuster = assemble(decider, calibration, proba[:200], y[:200])
    before, truth = proba[200:], y[200:]
    after = adjuster.transform(before)
    found = ReliabilityDisplay.from_estimator(adjuster, before, truth)
    want = ReliabilityDisplay.from_predictions(truth, before, after)
    np.testing.assert_array_equal(found.after.confidence, want.after.confidence)
    assert found.after.error == want.after.error
    if calibration not in (None, decider):
        alone = adjuster.best_normalizer_.transform(before)
        assert found.after.error != measures.reliability(alone, truth).error
    changes = FixedBrokenDisplay.from_estimator(adjuster, before, truth).plot(axes).changes
    assert changes.gained.sum() == (before.argmax(axis=1) != after.argmax(axis=1)).sum()
    display = AmbiguityDisplay.from_estimator(adjuster, before)
    assert display.histogram.threshold == getattr(adjuster.best_normalizer_, "threshold", None)
    if adjuster.family_ == "alternating":
        assert ClassUseDisplay.from_estimator(adjuster).use.prior.sum() == pytest.approx(1)
    else:
        with pytest.raises(InputError, match="must keep a reference; it applies"):
            ClassUseDisplay.from_estimator(adjuster)


def test_tuning_of_several_families(axes):
    proba, y = planted(400)
    adjuster = Adjuster(("alternating", "bias")).fit(proba, y)
    adjuster.family_ = "bias"
    display = TuningDisplay.from_estimator(adjuster).plot(axes)
    assert display.ax_.get_title(loc="left").endswith("; adopted instead: bias")
    assert display.curves.n_settings == (adjuster.cv_results_["family"] == "alternating").sum()
    adjuster.family_ = "alternating"
    assert TuningDisplay.from_estimator(adjuster).instead is None
    other = Adjuster(("bias",)).fit(proba, y)
    with pytest.raises(InputError, match=r"must have tried alternating .* it tried bias"):
        TuningDisplay.from_estimator(other)

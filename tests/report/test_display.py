"""The numbers behind the figures, against naive counts; and that every display draws them."""

import numpy as np
import pytest

from altnorm import Adjuster, InputError
from altnorm.peers import Identity
from altnorm.report import measures
from tests.report_pages import NAMES, adjusted, decided_codes, rare

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

from altnorm.report.display import (  # noqa: E402
    CoverageDisplay,
    FixedBrokenDisplay,
    ReliabilityDisplay,
)

TEST = rare(seed=2)


@pytest.fixture
def axes():
    from matplotlib.figure import Figure

    return Figure().subplots()


class TestFavoured:
    """Which classes a model favours."""

    def test_bias_and_weights_are_known(self):
        for purpose in ("accuracy", "balanced_accuracy"):
            model = adjusted(purpose)
            factors = np.exp(model.model_.bias_) * model.decision_.values
            factors /= np.exp(np.log(factors).mean())
            np.testing.assert_allclose(measures.favoured(model), factors)

    def test_labels_have_odds_and_thresholds(self):
        model = adjusted("labels")
        t = model.decision_.values
        expected = np.exp(model.model_.bias_) * (1 - t) / t
        np.testing.assert_allclose(measures.favoured(model), expected)

    def test_none(self):
        assert measures.favoured(adjusted("matrix")) is None
        assert measures.favoured(Identity().fit(TEST.proba)) is None


class TestWhatIsDrawn:
    """The figures show the numbers, on the axes given."""

    @pytest.mark.parametrize("purpose", ["accuracy", "person"])
    def test_fixed_and_broken(self, purpose, axes):
        display = FixedBrokenDisplay.from_estimator(adjusted(purpose), TEST.proba, TEST.labels)
        assert display.plot(axes) is display
        assert display.ax_ is axes
        old, new, y = TEST.proba.argmax(axis=1), decided_codes(adjusted(purpose), TEST), TEST.codes
        names = [NAMES.tolist().index(tick.get_text()) for tick in axes.get_yticklabels()]
        fixed, broken = ([bar.get_width() for bar in part] for part in axes.containers)
        assert fixed == [int(((y == j) & (old != j) & (new == j)).sum()) for j in names]
        assert broken == [
            -int(((y == j) & (old == j) & (new != j) & (new < 5)).sum()) for j in names
        ]
        assert sorted(np.add(fixed, broken)) == np.add(fixed, broken).tolist()  # best at the top
        axes.clear()
        assert len(display.plot(axes, n_classes=2).ax_.get_yticklabels()) == 2

    def test_reliability(self, axes):
        adjuster = adjusted()
        ReliabilityDisplay.from_estimator(adjuster, TEST.proba, TEST.labels, n_bins=1).plot(axes)
        for line, proba in zip(
            axes.lines[1:], (TEST.proba, adjuster.transform(TEST.proba)), strict=True
        ):
            (confidence,), (share,) = line.get_data()
            assert confidence == pytest.approx(proba.max(axis=1).mean())
            assert share == pytest.approx((proba.argmax(axis=1) == TEST.codes).mean())
        axes.clear()
        ReliabilityDisplay.from_predictions(TEST.codes, TEST.proba).plot(axes)
        assert len(axes.lines) == 2


class TestCoverage:
    """How much can be decided alone."""

    def test_target_and_chosen_point_are_drawn(self, axes):
        rows = rare(seed=1)
        model = Adjuster(("bias",), target_accuracy=0.9).fit(rows.proba, rows.labels)
        display = CoverageDisplay.from_estimator(model, TEST.proba, TEST.labels).plot(axes)
        decided = np.mean([answer is not None for answer in model.predict(TEST.proba)])
        assert display.share == pytest.approx(decided)
        texts = [text.get_text() for text in axes.get_legend().get_texts()]
        assert texts == ["before", "after", "target 90%", "decided"]
        (x,), (y,) = axes.lines[-1].get_data()
        assert x == pytest.approx(decided)
        answers = model.predict(TEST.proba)
        right = [a == label for a, label in zip(answers, TEST.labels, strict=True) if a is not None]
        assert y == pytest.approx(np.mean(right))

    def test_several_labels_are_refused(self):
        with pytest.raises(InputError, match="`y_true` must have one class per row; its shape is"):
            CoverageDisplay.from_predictions(np.eye(3), np.eye(3))

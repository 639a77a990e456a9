"""The evidence study: its worlds are what they claim, and what it calls true is true."""

import numpy as np
import pytest
from scipy.special import softmax
from scipy.stats import binomtest
from sklearn.metrics import balanced_accuracy_score, f1_score

from altnorm import Adjuster

pytest.importorskip("matplotlib")

from experiments.evidence import __main__ as evidence, plan, study, summary, truth, worlds
from experiments.evidence.plan import Case
from experiments.evidence.worlds import World
from tests.pages import check_page, read_page

FIVE_ERRORS = 5.0  # standard errors: one chance in two million for each number compared
ROUNDING = 1e-12
N = 20_000

CASES = {(case.world.name, case.n_rows): case.world for case in plan.world_cases()}
WORLDS = {world.name: world for world in CASES.values()}
REPORTED_AS_DRAWN = ["calibrated", "uneven classes", "balanced", "stratified", "sorted by class"]


def draw(name, n=N, **options):
    world = WORLDS.get(name) or World(name, **options.pop("world"))
    return worlds.draw_data(world, n, np.random.default_rng(0), n_fresh=options.get("n_fresh", n))


# The worlds are what they claim.


@pytest.mark.parametrize("name", REPORTED_AS_DRAWN)
def test_calibrated_predictions_agree_with_the_labels(name):
    data = draw(name)
    hit = np.eye(10)[data.y]
    error = np.sqrt((data.proba * (1 - data.proba)).mean(axis=0) / len(hit))
    assert (np.abs((hit - data.proba).mean(axis=0)) < FIVE_ERRORS * error).all()
    for low, high in ((0.1, 0.3), (0.3, 0.5), (0.5, 0.7)):
        inside = (data.proba >= low) & (data.proba < high)
        p = data.proba[inside]
        error = np.sqrt((p * (1 - p)).mean() / p.size)
        assert abs(hit[inside].mean() - p.mean()) < FIVE_ERRORS * error
    np.testing.assert_array_equal(data.fresh.proba, data.fresh.truth)


def test_the_bias_is_the_known_one():
    rows = draw("bias 2", 500).fresh
    against = np.arange(10) < worlds.AGAINST
    undone = softmax(np.log(rows.proba) + 2.0 * against, axis=1)
    np.testing.assert_allclose(undone, rows.truth)


def test_a_matrix_undoes_the_confusion():
    rows, leak = draw("confused pairs", 500).fresh, WORLDS["confused pairs"].leak
    matrix = np.eye(10)
    for j in range(0, 10, 2):
        matrix[j, j], matrix[j, j + 1] = 1 - leak, leak
    undone = softmax(np.log(rows.proba) @ np.linalg.inv(matrix).T, axis=1)
    np.testing.assert_allclose(undone, rows.truth)


@pytest.mark.parametrize("name", ["too sure", "confidence by class"])
def test_wrong_confidence_leaves_decisions_right(name):
    rows = draw(name, 500).fresh
    np.testing.assert_array_equal(rows.proba.argmax(axis=1), rows.truth.argmax(axis=1))
    assert np.abs(rows.proba - rows.truth).max() > 0.1


def test_over_all_speakers_no_class_is_favoured_and_each_has_his_own_ways():
    rows = draw("40 speakers in a row", 4000, n_fresh=40_000).fresh
    excess = (rows.truth - rows.proba).reshape(200, -1, 6).mean(axis=1)
    error = excess.std(axis=0) / np.sqrt(200)
    assert (np.abs(excess.mean(axis=0)) < FIVE_ERRORS * error).all()
    assert excess.std() > 0.05


# What is called true is true.


def test_expected_scores_are_those_of_drawn_labels():
    world = {"imbalance": 9.0, "bias": 1.0}
    data = draw("uneven and biased", world=world)
    decided, fresh = data.proba.argmax(axis=1), data.fresh
    code = fresh.proba.argmax(axis=1)
    drawn = {
        truth.accuracy: (decided == data.y).mean(),
        truth.balanced_accuracy: balanced_accuracy_score(data.y, decided),
        truth.macro_f1: f1_score(data.y, decided, average="macro"),
    }
    for score, value in drawn.items():
        assert score(fresh.truth, code) == pytest.approx(value, abs=0.03), score
    costs = plan.COSTS["missing two classes costs 10, a person 0.5"]
    assert truth.mean_cost(fresh.truth, np.full(N, 10), costs) == pytest.approx(0.5)
    drawn_cost = costs[data.y, decided].mean()
    assert truth.mean_cost(fresh.truth, code, costs) == pytest.approx(drawn_cost, abs=0.1)


def test_no_rule_of_weights_beats_the_best():
    p = draw("uneven and biased", 2000, world={"imbalance": 30.0}).fresh.truth
    rng = np.random.default_rng(0)
    balanced = truth.balanced_accuracy(p, truth.best_balanced(p))
    macro = truth.macro_f1(p, truth.best_macro_f1(p))
    for power in np.linspace(0, 1.2, 13):
        weight = p.mean(axis=0) ** -power * np.exp(0.1 * rng.normal(size=p.shape[1]))
        decided = (p * weight).argmax(axis=1)
        assert truth.balanced_accuracy(p, decided) <= balanced + ROUNDING
        assert truth.macro_f1(p, decided) <= macro


@pytest.mark.parametrize(
    ("name", "family"),
    [("bias 2", "alternating"), ("bias 2", "bias"), ("confused pairs", "matrix")],
)
def test_what_would_have_been_applied_is_what_is_applied(name, family):
    data = draw(name, 600, n_fresh=2000)
    # A score of probabilities: the setting is that of least log loss, whatever it decides.
    adopted = Adjuster((family,), scoring="neg_log_loss").fit(data.proba, data.y)
    applied = adopted.transform(data.fresh.proba).argmax(axis=1)
    refused = Adjuster((family,), significance=1e-300).fit(data.proba, data.y)
    assert adopted.verdict_.adopted
    assert not refused.verdict_.adopted
    again = study.candidate(refused, data)(data.fresh.proba)
    np.testing.assert_array_equal(again, applied)
    assert (again != data.fresh.proba.argmax(axis=1)).any()


# Numbers and tables.


def test_intervals_are_clopper_and_pearson():
    share = summary.count([True] * 3 + [False] * 57)
    exact = binomtest(3, 60).proportion_ci(method="exact")
    assert (share.n, share.of, share.low, share.high) == (3, 60, exact.low, exact.high)


def record(world="bias 1", **values):
    known = {"world": world, "n_rows": 1000, "adopted": False, "true": 0.0, "room": 0.0}
    return known | values


def test_share_gained_is_a_ratio_of_means_and_worlds_count_alike():
    group = [record(adopted=True, true=6, room=8), record(true=5, room=2)]
    assert summary.share_gained(group) == pytest.approx(0.6)
    assert summary.share_gained(group, always=True) == pytest.approx(1.1)
    small = record("bias 0.5", room=1)
    assert summary.share_gained([*group, small, small]) == pytest.approx(3 / 6)


# The runs.


def test_a_run_writes_everything_it_mentions(tmp_path, monkeypatch):
    monkeypatch.setattr(study, "N_FRESH", 400)
    monkeypatch.setattr(
        evidence,
        "CASES",
        {
            "worlds": [Case(WORLDS["bias 2"], 200), Case(WORLDS["calibrated"], 200)],
            "costs": [Case(plan.COST_CASES[0].world, 200)],
            "purposes": [Case(plan.PURPOSE_CASES[0].world, 200)],
        },
    )
    evidence.main(["--quick", "--output", str(tmp_path), "--jobs", "1"])
    n_lines = {"worlds": 4, "costs": 2 * len(plan.COSTS), "purposes": 4}
    assert {part: len(rows) for part, rows in check_page(tmp_path).items()} == n_lines
    assert "| bias 2 | 200 |" in read_page(tmp_path)

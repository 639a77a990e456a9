"""The evidence study: its worlds are what they claim, and what it calls true is true."""

import numpy as np
import pytest
from scipy.special import logit, softmax
from scipy.stats import binom
from sklearn.metrics import balanced_accuracy_score, f1_score, fbeta_score

pytest.importorskip("matplotlib")

from altnorm.evidence.promise import coverage
from experiments._output import read_records
from experiments.evidence import __main__ as evidence, plan, study, summary, truth, worlds
from experiments.evidence.plan import Case
from experiments.evidence.promise import __main__ as promise, classifiers, rules, simulated
from experiments.evidence.purposes import COSTS, PURPOSES
from experiments.evidence.worlds import World
from tests.pages import check_page, draw_logits, draw_tags, read_page, write_classifier

FIVE_ERRORS = 5.0  # standard errors: one chance in two million for each number compared
ROUNDING = 1e-12
N = 20_000

WORLDS = {case.world.name: case.world for case in plan.CASES}
BEST_ALREADY = [
    pytest.param(case, id=f"{case.world.name}, {case.purpose}")
    for case in plan.NOTHING + plan.PURPOSES_NOTHING
    if case.n_rows > 100 and not case.world.speakers
]
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


def test_a_bias_and_a_confusion_can_be_undone_and_wrong_confidence_leaves_decisions_right():
    rows, against = draw("bias 2", 500).fresh, np.arange(10) < worlds.AGAINST
    undone = softmax(np.log(rows.proba) + 2.0 * against, axis=1)
    np.testing.assert_allclose(undone, rows.truth)
    rows, leak = draw("confused pairs", 500).fresh, WORLDS["confused pairs"].leak
    matrix, pairs = np.eye(10), np.arange(0, 10, 2)
    matrix[pairs, pairs], matrix[pairs, pairs + 1] = 1 - leak, leak
    undone = softmax(np.log(rows.proba) @ np.linalg.inv(matrix).T, axis=1)
    np.testing.assert_allclose(undone, rows.truth)
    for name in ("too sure", "confidence by class"):
        rows = draw(name, 500).fresh
        np.testing.assert_array_equal(rows.proba.argmax(axis=1), rows.truth.argmax(axis=1))
        assert np.abs(rows.proba - rows.truth).max() > 0.1
    rows = draw("labels, best already", 500).fresh  # odds of labels are moved alike
    moved = logit(rows.proba) - logit(rows.truth)
    np.testing.assert_allclose(moved, moved[0, 0])


def test_over_all_speakers_no_class_is_favoured_and_each_has_his_own_ways():
    rows = draw("40 speakers in a row", 4000, n_fresh=40_000).fresh
    excess = (rows.truth - rows.proba).reshape(200, -1, 6).mean(axis=1)
    error = excess.std(axis=0) / np.sqrt(200)
    assert (np.abs(excess.mean(axis=0)) < FIVE_ERRORS * error).all()
    assert excess.std() > 0.05


@pytest.mark.parametrize("case", BEST_ALREADY)
def test_nothing_can_be_gained_where_the_page_says_so(case):
    data = worlds.draw_data(case.world, case.n_rows, np.random.default_rng(0), n_fresh=5000)
    purpose, fresh = PURPOSES[case.purpose], data.fresh
    before = purpose.score(fresh.truth, purpose.before(fresh.proba, fresh.truth))
    best = purpose.score(fresh.truth, purpose.best(fresh.fair))
    # The best threshold of an F-score, and class shares, are those of many rows, not of these.
    assert best - before == pytest.approx(0, abs=0.005 * abs(before))


def test_what_is_wrong_with_small_probabilities():
    rows = draw("wrong tails", 500).fresh
    order = np.argsort(-rows.truth, axis=1)
    right, wrong = (np.take_along_axis(p, order, axis=1) for p in (rows.truth, rows.proba))
    np.testing.assert_allclose(wrong[:, :2], right[:, :2])
    np.testing.assert_allclose(wrong[:, 2:], right[:, :1:-1])
    kept = draw("top 3 of 20 classes", 500).fresh.proba
    assert ((kept > 0).sum(axis=1) == 3).all()
    np.testing.assert_allclose(kept.sum(axis=1), 1)


def test_a_repaired_bias_is_gone_from_later_and_fresh_rows():
    data = draw("bias 2, repaired half-way", 4000)
    np.testing.assert_allclose(data.fresh.proba, data.fresh.truth)
    against = np.arange(10) < worlds.AGAINST
    missing = [
        (np.eye(10)[data.y[half]] - data.proba[half])[:, against].sum(axis=1).mean()
        for half in (slice(2000), slice(2000, None))
    ]
    assert missing[0] > 0.1
    assert abs(missing[1]) < 0.05


def test_rows_left_out_labels_of_unsure_rows_groups_and_weights_are_as_told():
    data = draw("leave-one-out", 100)
    of_label = data.proba[np.arange(data.y.size), data.y]  # a row that is left out lowers its class
    assert (of_label < [data.proba[data.y != k, k].mean() for k in data.y]).all()
    data = draw("labels of the 30 % least sure", 1000)
    has_label, top = data.y >= 0, data.proba.max(axis=1)
    assert has_label.mean() == pytest.approx(0.3, abs=0.01)
    assert top[has_label].max() <= top[~has_label].min()
    assert np.bincount(draw("one large group", 660).groups).tolist() == [600, *[6] * 10]
    blocks = draw("100 cases, copies in 5 blocks", 500)
    period = blocks.y.size // 5
    np.testing.assert_array_equal(blocks.y[:-period], blocks.y[period:])
    assert np.log(draw("weights, log sd 3", 2000).weight).std() == pytest.approx(3, abs=0.3)


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
    costs = COSTS["missing two classes costs 10, a person 0.5"]
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


@pytest.mark.parametrize("beta", [1.0, 2.0])
def test_f_scores_are_those_of_drawn_labels_and_no_threshold_beats_the_best(beta):
    rng = np.random.default_rng(0)
    p = rng.beta(0.5, 3, N)
    y, best = rng.random(N) < p, truth.best_f(p, beta)
    drawn = fbeta_score(y, best, beta=beta)
    assert truth.f_score(p, best, beta) == pytest.approx(drawn, abs=0.02)
    for threshold in np.linspace(0.02, 0.9, 45):
        decided = p > threshold
        assert truth.f_score(p, decided, beta) <= truth.f_score(p, best, beta) + ROUNDING
    labels = np.column_stack([p, p[::-1]])
    assert truth.label_macro_f1(labels, labels > 0.5) == pytest.approx(truth.f_score(p, p > 0.5))
    p, q = np.array([[0.2, 0.7]]), np.array([[0.4, 0.6]])  # their log loss is that of two classes
    pairs = [np.array([[x, 1 - x] for x in part.ravel()]) for part in (p, q)]
    assert truth.label_log_loss(p, q) == pytest.approx(truth.log_loss(*pairs))


def test_share_gained_is_a_ratio_of_means_and_worlds_count_alike():
    def record(world, **values):
        return {"world": world, "n_rows": 1000, "purpose": "accuracy", "adopted": True} | values

    large = [record("bias 1", true=6, room=8), record("bias 1", true=0, room=2)]
    small = [record("bias 0.5", true=0, room=1)]
    assert summary.share_gained(large) == pytest.approx(0.6)
    assert summary.share_gained([*large, *small, *small]) == pytest.approx(3 / 6)


# The runs.


def test_a_run_writes_everything_it_mentions(tmp_path, monkeypatch):
    monkeypatch.setattr(study, "N_FRESH", 400)
    cases = {
        "worlds": [Case(WORLDS["bias 2"], 200), Case(WORLDS["calibrated"], 200), plan.TOLD[0]],
        "intervals": [Case(WORLDS["bias 2"], 200)],
        "costs": [Case(plan.COST_CASES[0].world, 200)],
    }
    monkeypatch.setattr(evidence, "CASES", cases)
    evidence.main(["--quick", "--output", str(tmp_path), "--jobs", "1"])
    n_lines = {"worlds": 6, "intervals": 2, "costs": 2 * len(COSTS)}
    assert {part: len(rows) for part, rows in check_page(tmp_path).items()} == n_lines
    assert "| bias 2 | accuracy | 200 |" in read_page(tmp_path)


@pytest.mark.parametrize("case", plan.CASES, ids=lambda case: f"{case.world.name}, {case.purpose}")
def test_every_world_can_be_judged(case, monkeypatch):
    monkeypatch.setattr(study, "N_FRESH", 400)
    (measured,) = study.measure_set("worlds", case._replace(n_rows=min(case.n_rows, 300)), 0, 0)
    assert np.isfinite([v for v in measured.values() if isinstance(v, float)]).all()
    assert measured["adopted"] or measured["true"] == 0


# The promise of a target accuracy.


@pytest.fixture
def without_mapie(monkeypatch):
    """Decide what is above a half, in the place of the controllers."""
    for name in ("mapie_holm", "mapie_hundredths", "mapie_sequence"):
        monkeypatch.setitem(rules.RULES, name, lambda rows, target: 0.5)
    monkeypatch.setattr(classifiers, "mapie_sequence", lambda rows, target: 0.5)


def test_oracle_decides_as_many_rows_as_are_right_often_enough():
    data = worlds.draw_data(World("", n_classes=3), 10, np.random.default_rng(0), n_fresh=500)
    rows, target = data.fresh, 0.8
    right = np.sort(rows.truth.max(axis=1))[::-1]  # without a fault the report is the truth
    shares = [n / 500 for n in range(1, 501) if right[:n].mean() >= target]
    assert simulated.oracle_share(rows, target) == pytest.approx(max(shares))
    assert simulated.oracle_share(rows, 0.9999) < 0.1


def test_rules_are_measured_by_the_truth():
    data = worlds.draw_data(World("", n_classes=3), 400, np.random.default_rng(0), n_fresh=500)
    rows, truth = data.fresh, data.fresh.truth
    share, accuracy = rules.decide(rows.proba, 0.7, truth)
    sure = rows.proba.max(axis=1) >= 0.7
    assert (share, accuracy) == pytest.approx((sure.mean(), truth.max(axis=1)[sure].mean()))
    share, accuracy = rules.decide(rows.proba, rules.NOTHING, truth)
    assert share == 0
    assert np.isnan(accuracy)
    labelled = rules.Labelled(data.proba, data.y)
    least = rules.largest_share(labelled, 0.8)
    highest = data.proba.max(axis=1)
    right = (data.proba.argmax(axis=1) == data.y)[np.argsort(-highest)]
    passing = [n for n in range(1, 401) if binom.sf(right[:n].sum() - 1, n, 0.8) <= 0.025]
    assert (highest >= least).sum() == max(passing)


def test_sequence_of_tests_ends_where_the_first_fails():
    confidence, right = np.linspace(0.99, 0.5, 50), np.arange(50) < 40
    curve = coverage(confidence, right)
    expected = np.cumsum(confidence) / np.arange(1, 51)
    n = int((expected >= 0.8).sum() / 2)  # all larger confidences on average have that much
    while binom.sf(right[: n + 1].sum() - 1, n + 1, 0.8) <= 0.05:
        n += 1
    assert 12 < n < 50
    assert (confidence >= rules.in_sequence(curve, 0.8)).sum() == n
    assert rules.in_sequence(curve, 0.99) == rules.NOTHING


def test_promise_is_told_by_world(tmp_path, monkeypatch, without_mapie):
    task = simulated.Task(World("easy", n_classes=2, spread=4.0), 0.8, 200, ("bias",))
    monkeypatch.setattr(promise, "TASKS", (task,))
    promise.main(["--repetitions", "2", "--output", str(tmp_path)])
    first, second = read_records(tmp_path / "promise.csv")
    assert first != second
    assert "| easy | 80% | 200 | " in read_page(tmp_path)


def test_promise_is_held_to_the_test_rows_of_classifiers(tmp_path, without_mapie):
    bias = [2.0, 0.0, 0.0]
    parts = draw_logits(900, 0, bias, signal=4), draw_logits(900, 1, bias, signal=4)
    write_classifier(tmp_path / "easy.npz", *parts)
    records = classifiers.measure_classifier(tmp_path / "easy.npz")
    assert len(records) == len(classifiers.TARGETS) * len(classifiers.NAMES)
    logits, y = parts[1]
    sure = softmax(logits, axis=1).max(axis=1) >= 0.5
    for record in (r for r in records if r["rule"] == "mapie_holm"):
        assert record["n_decided"] == sure.sum()
        assert record["n_right"] == (logits.argmax(axis=1) == y)[sure].sum()
    assert classifiers.summary_table(records).count("of 1 |") == 2 * len(classifiers.NAMES)
    write_classifier(tmp_path / "several.npz", draw_tags(50, 0), draw_tags(50, 1))
    assert classifiers.measure_classifier(tmp_path / "several.npz") == []

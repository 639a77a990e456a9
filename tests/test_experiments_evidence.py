"""The evidence study: its worlds are what they claim, and what it calls true is true."""

from dataclasses import replace
from itertools import product
from typing import get_type_hints

import numpy as np
import pytest
from scipy.special import softmax
from scipy.stats import binomtest
from sklearn.metrics import accuracy_score, f1_score

from altnorm import Adjuster, AlternatingNormalizerCV

pytest.importorskip("matplotlib")

from experiments.evidence import __main__ as evidence
from experiments.evidence import plan, study, summary, tables, worlds
from experiments.evidence.study import ADJUSTER, ALTERNATING, Case, Record
from experiments.evidence.worlds import Rows, World
from experiments.samples import OUT_OF_DATE
from tests.pages import check_figures, read_page, read_table
from tests.versions import present_versions

FIVE_ERRORS = 5.0  # standard errors: one chance in two million for each number compared
ROUNDING = 1e-12
N = 20_000

REPORTED_AS_DRAWN = [
    plan.CALIBRATED,
    plan.NOTHING[2],
    *plan.SEVERAL,
    *plan.DESIGNS.values(),
    World("100 classes", n_classes=100, uneven=True),
]
MOST_BIASED = plan.BIASED[-1]


def name(world):
    return world.name


def draw(world, n=N, **options):
    return worlds.draw_data(world, n, np.random.default_rng(0), **({"n_fresh": n} | options))


def indicator(world, y):
    return y if world.multilabel else np.eye(world.n_classes, dtype=int)[y]


# The worlds are what they claim.


@pytest.mark.parametrize("world", REPORTED_AS_DRAWN, ids=name)
def test_calibrated_predictions_agree_with_the_labels_class_by_class(world):
    data = draw(world)
    hit = indicator(world, data.y)
    error = np.sqrt((data.proba * (1 - data.proba)).mean(axis=0) / len(hit))
    difference = hit.mean(axis=0) - data.proba.mean(axis=0)
    assert (np.abs(difference) < FIVE_ERRORS * error).all()
    np.testing.assert_array_equal(data.fresh.proba, data.fresh.truth)


@pytest.mark.parametrize("world", REPORTED_AS_DRAWN, ids=name)
def test_calibrated_predictions_agree_with_the_labels_where_they_are_sure(world):
    data = draw(world)
    p, hit = data.proba.ravel(), indicator(world, data.y).ravel()
    for low, high in ((0.1, 0.3), (0.3, 0.5), (0.5, 0.7)):
        inside = (p >= low) & (p < high)
        error = np.sqrt((p * (1 - p))[inside].mean() / inside.sum())
        assert abs(hit[inside].mean() - p[inside].mean()) < FIVE_ERRORS * error


@pytest.mark.parametrize("per_class", [2, 5, 20])
def test_designs_have_the_class_counts_they_promise(per_class):
    n = 100 * per_class
    designs = {k: replace(w, n_classes=100) for k, w in plan.DESIGNS.items()}
    data = {k: draw(world, n, n_fresh=10) for k, world in designs.items()}
    counts = {k: np.bincount(one.y, minlength=100) for k, one in data.items()}
    assert (counts["balanced"] == per_class).all()
    np.testing.assert_array_equal(counts["stratified"], designs["stratified"].counts(n))
    assert counts["stratified"].min() >= 1
    assert counts["stratified"].max() > 3 * counts["stratified"].min()
    assert counts["random"].std() > 0.5 * np.sqrt(per_class)


def test_fresh_rows_of_a_stratified_sample_have_its_shares():
    world = plan.DESIGNS["stratified"]
    data = draw(world, 200, n_fresh=N)
    shares = world.counts(200) / world.counts(200).sum()
    error = np.sqrt(shares / N)
    assert (np.abs(data.fresh.truth.mean(axis=0) - shares) < FIVE_ERRORS * error).all()


def test_unrelated_labels_have_nothing_to_do_with_the_predictions():
    data = draw(plan.UNRELATED)
    right = (data.proba.argmax(axis=1) == data.y).mean()
    assert abs(right - 0.1) < FIVE_ERRORS * np.sqrt(0.1 * 0.9 / N)


@pytest.mark.parametrize("world", plan.BIASED, ids=name)
def test_the_bias_is_the_known_one(world):
    rows = draw(world, 500).fresh
    against = np.arange(world.n_classes) < worlds.AGAINST
    np.testing.assert_allclose(
        softmax(np.log(rows.proba) + world.bias * against, axis=1), rows.truth
    )
    np.testing.assert_array_equal(rows.fair, rows.truth)


def test_a_matrix_undoes_the_confusion():
    rows, leak = draw(plan.CONFUSED, 500).fresh, plan.CONFUSED.leak
    matrix = np.eye(10)
    for j in range(0, 10, 2):
        matrix[j, j], matrix[j, j + 1] = 1 - leak, leak
    undone = softmax(np.log(rows.proba) @ np.linalg.inv(matrix).T, axis=1)
    np.testing.assert_allclose(undone, rows.truth)


def test_too_sure_a_classifier_decides_as_a_calibrated_one():
    rows = draw(plan.SURE, 500).fresh
    np.testing.assert_array_equal(rows.proba.argmax(axis=1), rows.truth.argmax(axis=1))
    np.testing.assert_allclose(
        softmax(np.log(rows.proba) / plan.SURE.sharpness, axis=1), rows.truth
    )


def test_rows_of_a_group_share_the_label_and_nearly_the_prediction():
    data = draw(plan.GROUPED[1], 1000)
    labels = data.y.reshape(-1, 10)
    assert (labels == labels[:, :1]).all()
    np.testing.assert_array_equal(np.unique(data.groups, return_counts=True)[1], 10)
    centred = np.log(data.proba) - np.log(data.proba).mean(axis=1, keepdims=True)
    within = centred.reshape(100, 10, 10).std(axis=1).mean()
    assert within < 0.2 * centred.std()


# What is called true is true.


@pytest.mark.parametrize("world", [plan.CALIBRATED, *plan.SEVERAL, MOST_BIASED, *plan.GROUPED])
def test_expected_scores_are_those_of_drawn_labels(world):
    data = draw(world, group_free(world))
    decided = worlds.decisions(world, data.proba)
    if world.score == "f1_micro":
        drawn = f1_score(data.y, decided, average="micro")
    else:
        drawn = accuracy_score(data.y, decided)
    fresh = worlds.expected_score(
        world, data.fresh.truth, worlds.decisions(world, data.fresh.proba)
    )
    error = np.sqrt(world.group_size / len(data.y))  # twice that of an average of zeros and ones
    assert abs(drawn - fresh) < FIVE_ERRORS * error


def group_free(world):
    """Rows enough for groups, too."""
    return N * world.group_size


@pytest.mark.parametrize("world", plan.SEVERAL, ids=name)
def test_no_decisions_are_better_than_the_best(world):
    truth = np.random.default_rng(0).random((2, 4))
    every = [np.reshape(bits, (2, 4)) for bits in product((0, 1), repeat=8)]
    highest = max(worlds.expected_score(world, truth, decided) for decided in every)
    best = worlds.best_decisions(world, Rows(truth, truth, truth))
    assert worlds.expected_score(world, truth, best) == pytest.approx(highest, rel=ROUNDING)


def test_log_loss_is_lowest_at_the_truth():
    rows = draw(MOST_BIASED, 500).fresh
    least = worlds.expected_log_loss(rows.truth, rows.truth)
    assert least < worlds.expected_log_loss(rows.truth, rows.proba)
    entropy = -(rows.truth * np.log(rows.truth)).sum(axis=1).mean()
    assert least == pytest.approx(entropy, rel=ROUNDING)


class Undo:
    """Adds to the logits what the biased classifier takes off."""

    def __init__(self, strength):
        self.strength = strength

    def transform(self, proba):
        against = np.arange(proba.shape[1]) < worlds.AGAINST
        return softmax(np.log(proba) + self.strength * against, axis=1)


def test_undoing_the_bias_gains_what_there_is_to_gain():
    fresh = draw(MOST_BIASED).fresh
    gain = study.true_gain(MOST_BIASED, Undo(MOST_BIASED.bias), fresh)
    before = fresh.truth[np.arange(N), fresh.proba.argmax(axis=1)].mean()
    assert gain == pytest.approx(fresh.truth.max(axis=1).mean() - before, rel=ROUNDING)


def test_nothing_gains_where_there_is_nothing_to_gain():
    for world in (plan.UNRELATED, plan.CALIBRATED):
        gain = study.true_gain(world, Undo(1.0), draw(world).fresh)
        related = gain < -0.01
        assert related if world.related else gain == pytest.approx(0, abs=ROUNDING)


FAMILIES = [
    (MOST_BIASED, ("alternating",), 300),
    (MOST_BIASED, ("bias",), 0),
    (plan.CONFUSED, ("matrix",), 0),
]


@pytest.mark.parametrize(("world", "families", "more"), FAMILIES, ids=lambda x: str(x)[:12])
def test_what_would_have_been_applied_is_what_is_applied(world, families, more):
    data = draw(world, 600, n_fresh=200, n_unlabelled=more)
    proba = np.concatenate([data.proba, data.unlabelled])
    tuned = Adjuster(families).fit(proba, np.append(data.y, np.full(more, -1)))
    assert tuned.verdict_.adopted
    applied = tuned.best_normalizer_.transform(data.fresh.proba)
    again = study.refit(tuned, data).transform(data.fresh.proba)
    np.testing.assert_allclose(again, applied, atol=1e-6)


def test_a_record_tells_what_the_verdict_says():
    case = Case("something", MOST_BIASED, 600, 1, (ALTERNATING,), short_grid=True, n_fresh=300)
    (record,) = study.measure(case, 0)
    data = draw_again(case)
    tuned = AlternatingNormalizerCV(**study.SHORT_GRID).fit(data.proba, data.y)
    assert record.adopted
    assert record.reported == tuned.verdict_.gain
    assert record.best == study.true_gain(MOST_BIASED, tuned.best_normalizer_, data.fresh)
    assert record.gain == record.best


def draw_again(case):
    code = study.zlib.crc32(repr(case.world).encode())
    rng = np.random.default_rng([0, code, case.n_rows, 0])
    return worlds.draw_data(case.world, case.n_rows, rng, n_fresh=case.n_fresh)


# Numbers and tables.


def test_intervals_are_clopper_and_pearson():
    share = summary.count([True] * 3 + [False] * 57)
    exact = binomtest(3, 60).proportion_ci(method="exact")
    assert (share.n, share.of, share.low, share.high) == (3, 60, exact.low, exact.high)
    # None of n: the upper end u solves (1 - u)^n = 0.025.
    assert summary.count([False] * 150).high == pytest.approx(1 - 0.025 ** (1 / 150), rel=1e-9)


def record(world="bias 1", estimator=ADJUSTER, **values):
    blank = {key: kind() for key, kind in get_type_hints(Record).items()}
    known = {"part": "something", "world": world, "estimator": estimator, "n_rows": 1000}
    return Record(**(blank | known | values))


def test_honesty_counts_what_lies_outside_the_interval():
    ends = {"ci_low": 0.01, "ci_high": 0.03, "reported": 0.02}
    found = summary.honesty([record(best=best, **ends) for best in (0.0, 0.02, 0.05, 0.02)])
    assert (found.covered.n, found.below, found.above) == (2, 1, 1)
    assert found.excess.value == pytest.approx(0.02 - 0.0225)


def test_share_gained_is_a_ratio_of_means_and_worlds_count_alike():
    group = [record(adopted=True, best=0.06, room=0.08), record(best=0.05, room=0.02)]
    assert summary.share_gained(group) == pytest.approx(0.6)
    small = record("bias 0.25", room=0.01)
    assert summary.share_gained([*group, small, small]) == pytest.approx(0.03 / 0.06)


def test_the_best_setting_counts_whatever_the_verdict_if_always_applied():
    group = [record(adopted=True, best=0.06, room=0.08), record(best=0.05, room=0.02)]
    assert summary.share_gained(group, always=True) == pytest.approx(1.1)


def test_the_interval_of_the_share_comes_from_data_sets_drawn_within_cells():
    same = [record(adopted=True, best=0.04, room=0.05)] * 5
    other = [record("bias 0.25", best=0.01, room=0.01)] * 5
    assert summary.share_interval([*same, *other]) == pytest.approx((2 / 3, 2 / 3))
    half = [record(adopted=k % 2 == 0, best=0.05, room=0.05) for k in range(100)]
    low, high = summary.share_interval(half)
    assert (low, high) == pytest.approx((0.4, 0.6), abs=0.02)  # +- 1.96 standard errors of a share


def test_harm_is_that_of_the_adopted_ones():
    group = [record(adopted=True, best=-0.01), record(best=-0.5)]
    assert tables._harm(group) == "-1.00 (worst -1.00)"
    assert tables._harm(group[1:]) == "none adopted"


def test_worlds_with_something_to_gain_are_not_held_to_the_level():
    room = record(tables.ROOM[0], part="nothing", adopted=True)
    without_groups = record("calibrated", part="groups", adopted=True, groups=False)
    with_groups = without_groups._replace(groups=True)
    assert tables._sound([room, without_groups, with_groups]) == [with_groups]


# The runs.

TINY = [
    Case(part, world, n, 1, short_grid=True, n_fresh=100, estimators=(ALTERNATING,))
    for part, names in {
        "nothing": (plan.UNRELATED, plan.CALIBRATED),
        "something": plan.BIASED,
        "designs": (plan.DESIGNS["balanced"],),
        "groups": plan.GROUPED[:1],
        "stability": plan.BIASED[:1],
        "unlabelled": plan.BIASED[:1],
    }.items()
    for world in names
    for n in (40, 60)
]


def test_a_run_writes_everything_it_mentions(tmp_path, monkeypatch):
    monkeypatch.setattr(evidence, "make_plan", lambda quick: TINY)
    evidence.main(["--quick", "--output", str(tmp_path), "--jobs", "1"])
    check_figures(tmp_path, ["evidence"])
    for part in plan.PARTS:
        rows = read_table(tmp_path, part)
        assert len(rows) == sum(case.part == part for case in TINY)
        assert all(value not in ("nan", "inf") for row in rows for value in row.values())
    page = read_page(tmp_path)
    for again in (["--part", "groups", "--jobs", "1"], ["--tables"]):
        evidence.main(["--quick", "--output", str(tmp_path), *again])
        assert read_page(tmp_path) == page


def test_records_come_back_from_their_file(tmp_path):
    records = [record(adopted=True, reported=0.0125, family="bias")]
    evidence.write_records(records, tmp_path / "one.csv")
    assert evidence.read_records(tmp_path / "one.csv") == records


def test_results_depend_on_the_seed_and_not_on_the_order():
    cases = [replace(TINY[-1], n_sets=2)]
    alone = list(study.run(cases, n_jobs=1))
    assert alone == [one for number in (0, 1) for one in study.measure(cases[0], number)]
    other = list(study.run(cases, seed=1, n_jobs=1))
    assert len({r.room for r in (*alone, *other)}) == 4


def test_the_plan_has_every_design_and_part():
    cases = plan.make_plan()
    assert {case.part for case in cases} == set(plan.PARTS)
    drawn = {(c.world.name, c.world.n_classes, c.n_rows) for c in cases if c.part == "designs"}
    sizes = product(plan.CLASSES, plan.PER_CLASS)
    assert drawn == {(w, m, m * k) for m, k in sizes for w in plan.DESIGNS}
    assert all(case.world.n_classes < 100 for case in plan.make_plan(quick=True))


@present_versions
@pytest.mark.parametrize(
    ("part", "world", "n"), [("something", MOST_BIASED, 200), ("groups", plan.GROUPED[1], 1000)]
)
def test_committed_lines_still_come_out(part, world, n):
    if OUT_OF_DATE in evidence.PAGE.read_text(encoding="utf-8"):
        return
    committed = evidence.read_records(evidence.PAGE.parent / f"{part}.csv")
    cases = [case for case in plan.make_plan() if (case.part, case.world) == (part, world)]
    case = next(case for case in cases if case.n_rows == n)
    for again in study.measure(case, 0):
        keys = {k: getattr(again, k) for k in ("world", "n_rows", "number", "estimator", "groups")}
        (line,) = summary.select(committed, **keys)
        assert (line.adopted, line.family) == (again.adopted, again.family)
        for name in ("reported", "best", "p_value", "loss_after"):
            assert getattr(line, name) == pytest.approx(getattr(again, name), rel=1e-3, abs=1e-4)

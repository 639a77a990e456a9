"""The evidence study: its worlds are what they claim, and its words follow from the numbers."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.special import softmax
from scipy.stats import binomtest
from sklearn.metrics import accuracy_score, f1_score

from altnorm import AlternatingNormalizerCV

pytest.importorskip("matplotlib")

from experiments.evidence import __main__ as evidence
from experiments.evidence import findings, study, summary, worlds
from experiments.evidence.study import PLAIN, REFINED, Design, Record
from tests.pages import check_figures, read_page, read_table

FIVE_ERRORS = 5.0  # standard errors: one chance in two million for each number compared
ROUNDING = 1e-12
FEW = {"alphas": (0.5, 1.0), "depths": (1,), "thresholds": (0.75,), "n_repeats": 1}
ONE = {"n_null": 1, "n_many": 1, "n_sharp": 1, "n_biased": 1}
TINY = Design(sizes=(200, 210), **ONE, n_fresh=300, search=FEW)

UNRELATED = next(world for world in worlds.NULL if not world.related)
REPORTED_AS_DRAWN = [world for world in worlds.NULL if world.related]


def name(world):
    return world.name


def sample(world, n=20_000, seed=0):
    rng = np.random.default_rng(seed)
    rows = worlds.draw_rows(world, n, rng)
    return rows, worlds.draw_labels(world, rows.truth, rng)


def indicator(world, y):
    return y if world.multilabel else np.eye(world.n_classes, dtype=int)[y]


# The worlds are what they claim.


@pytest.mark.parametrize("world", REPORTED_AS_DRAWN, ids=name)
def test_calibrated_predictions_agree_with_the_labels_class_by_class(world):
    (proba, truth), y = sample(world)
    np.testing.assert_array_equal(proba, truth)
    error = np.sqrt((proba * (1 - proba)).mean(axis=0) / len(y))
    difference = indicator(world, y).mean(axis=0) - proba.mean(axis=0)
    assert (np.abs(difference) < FIVE_ERRORS * error).all()


@pytest.mark.parametrize("world", REPORTED_AS_DRAWN, ids=name)
def test_calibrated_predictions_agree_with_the_labels_where_they_are_sure(world):
    (proba, _), y = sample(world)
    p, hit = proba.ravel(), indicator(world, y).ravel()
    for low, high in ((0.1, 0.3), (0.3, 0.5), (0.5, 0.7)):
        inside = (p >= low) & (p < high)
        error = np.sqrt((p * (1 - p))[inside].mean() / inside.sum())
        assert abs(hit[inside].mean() - p[inside].mean()) < FIVE_ERRORS * error


def test_uneven_classes_are_uneven_and_the_others_balanced():
    uneven = worlds.NULL[1]
    frequency = np.bincount(sample(uneven)[1], minlength=uneven.n_classes)
    assert frequency[-1] > 5 * frequency[0]
    frequency = np.bincount(sample(worlds.CALIBRATED)[1]) / 20_000
    assert np.abs(frequency - 0.1).max() < FIVE_ERRORS * np.sqrt(0.1 * 0.9 / 20_000)


def test_unrelated_labels_have_nothing_to_do_with_the_predictions():
    (proba, _), y = sample(UNRELATED)
    right = (proba.argmax(axis=1) == y).mean()
    assert abs(right - 0.1) < FIVE_ERRORS * np.sqrt(0.1 * 0.9 / len(y))


@pytest.mark.parametrize("world", worlds.BIASED, ids=name)
def test_the_bias_is_the_known_one(world):
    (proba, truth), _ = sample(world, 500)
    against = np.arange(world.n_classes) < worlds.AGAINST
    np.testing.assert_allclose(softmax(np.log(proba) + world.bias * against, axis=1), truth)
    assert (proba[:, against] < truth[:, against]).all()


# What is called true is true.


@pytest.mark.parametrize("world", [*worlds.NULL[::2], *worlds.NULL[5::2], worlds.BIASED[-1]])
def test_expected_scores_are_those_of_drawn_labels(world):
    (proba, truth), y = sample(world)
    decided = worlds.decisions(world, proba)
    if world.score == "f1_micro":
        drawn = f1_score(y, decided, average="micro")
    else:
        drawn = accuracy_score(indicator(world, y), decided)
    error = 0.5 / np.sqrt(len(y))  # of an average of zeros and ones, at most
    assert abs(drawn - worlds.expected_score(world, truth, decided)) < FIVE_ERRORS * error


@pytest.mark.parametrize("world", worlds.NULL[4:], ids=name)
def test_no_decisions_are_better_than_the_best(world):
    truth = np.random.default_rng(0).random((2, 4))
    every = [np.reshape(bits, (2, 4)) for bits in product((0, 1), repeat=8)]
    highest = max(worlds.expected_score(world, truth, decided) for decided in every)
    best = worlds.expected_score(world, truth, worlds.best_decisions(world, truth))
    assert best == pytest.approx(highest, rel=ROUNDING)


class Undo:
    """Adds to the logits what the biased classifier takes off."""

    def __init__(self, strength):
        self.strength = strength

    def transform(self, proba):
        against = np.arange(proba.shape[1]) < worlds.AGAINST
        return softmax(np.log(proba) + self.strength * against, axis=1)


def test_undoing_the_bias_gains_what_there_is_to_gain():
    world = worlds.BIASED[-1]
    fresh, y = sample(world)
    gain = study.true_gain(world, Undo(world.bias), fresh)
    before = worlds.expected_score(world, fresh.truth, worlds.decisions(world, fresh.proba))
    assert gain == pytest.approx(fresh.truth.max(axis=1).mean() - before, rel=ROUNDING)
    right = [(p.argmax(axis=1) == y).mean() for p in (fresh.proba, fresh.truth)]
    assert abs(right[1] - right[0] - gain) < FIVE_ERRORS * np.sqrt(0.5 / len(y))


def test_nothing_gains_where_there_is_nothing_to_gain():
    for world in (UNRELATED, worlds.CALIBRATED):
        fresh, _ = sample(world)
        gain = study.true_gain(world, Undo(1.0), fresh)
        assert gain == pytest.approx(0, abs=ROUNDING) if world is UNRELATED else gain < -0.01


def test_a_record_tells_what_the_verdict_and_the_best_setting_are():
    world = worlds.BIASED[-1]
    design = replace(TINY, sizes=(600,))
    plain, refined = study.measure(world, 600, 0, design)
    rng = np.random.default_rng([0, study.WORLDS.index(world), 600, 0])
    proba, truth = worlds.draw_rows(world, 600, rng)
    y = worlds.draw_labels(world, truth, rng)
    fresh = worlds.draw_rows(world, design.n_fresh, rng)
    tuned = AlternatingNormalizerCV(**FEW, random_state=int(rng.integers(2**31))).fit(proba, y)
    assert plain.adopted
    assert refined.variant == REFINED
    assert plain.reported == tuned.verdict_.gain
    assert plain.best == plain.gain == study.true_gain(world, tuned.best_normalizer_, fresh)


# Numbers and words.


def test_intervals_are_clopper_and_pearson():
    share = summary.count([True] * 3 + [False] * 57)
    exact = binomtest(3, 60).proportion_ci(method="exact")
    assert (share.n, share.of, share.low, share.high) == (3, 60, exact.low, exact.high)
    # None of n: the upper end u solves (1 - u)^n = 0.025.
    assert summary.count([False] * 150).high == pytest.approx(1 - 0.025 ** (1 / 150), rel=1e-9)


def record(world=worlds.CALIBRATED, variant=PLAIN, **values):
    numbers = dict(adopted=False, reported=0.0, ci_low=-0.01, ci_high=0.01, p_value=1.0)
    numbers |= dict(best=0.0, gain=0.0, room=0.0, setting="alpha=1.0")
    return Record(world.name, 200, variant, 0, **(numbers | values))


@pytest.mark.parametrize(
    ("n_adopted", "word"), [(0, "less often"), (6, "in agreement"), (20, "more often")]
)
def test_the_word_for_the_level_follows_from_the_interval(n_adopted, word):
    group = [record(adopted=i < n_adopted) for i in range(200)]
    assert word in findings._level_line(group, PLAIN, related=True)
    assert findings._level_line(group, PLAIN, related=False) == ""
    told = findings.text_null(group)
    assert ("the level is not kept" in told) == (word == "more often")


def test_worlds_with_something_to_gain_are_not_held_to_the_level():
    group = [record(adopted=True, gain=0.02, room=0.03) for _ in range(50)]
    told = findings.text_null([record(), *(r._replace(world=worlds.NULL[4].name) for r in group)])
    assert "the level is not kept" not in told
    assert "50 of 50 were adopted; 50 of them gain" in told


@pytest.mark.parametrize(
    ("reported", "words"),
    [
        (0.05, ("too high", "less often than promised", "too much in 100, too little in 0")),
        (-0.05, ("too low", "less often than promised", "too much in 0, too little in 100")),
        (0.0, ("no bias", "more often than promised", "too much in 0, too little in 0")),
    ],
)
def test_the_words_for_honesty_follow_from_the_numbers(reported, words):
    noise = np.resize([-0.001, 0.001], 100)
    ends = {"ci_low": reported - 0.02, "ci_high": reported + 0.02}
    group = [record(worlds.BIASED[0], reported=reported + x, **ends) for x in noise]
    told = findings._honest_words("all", summary.honesty(group))
    assert all(word in told for word in words)


def test_harmful_adjustments_are_named():
    harmful = record(worlds.BIASED[0], adopted=True, reported=0.04, best=-0.1, gain=-0.1, room=0.1)
    fine = [record(worlds.BIASED[0], variant, room=0.1) for variant in (PLAIN, REFINED)]
    told = findings.text_biased([harmful, *fine])
    assert "adopted in 1 of 2 data sets, 1 of them with a true loss" in told
    assert "reported +4.00 (-1.00 to +1.00), true -10.00" in told
    assert "adopted in 0 of 1 data sets, none of them with a true loss" in told


# The runs.


def test_quick_run_writes_everything_it_mentions(tmp_path, monkeypatch):
    monkeypatch.setattr(evidence, "QUICK", TINY)
    evidence.main(["--quick", "--output", str(tmp_path), "--jobs", "1"])
    check_figures(tmp_path, ["evidence"])
    rows = read_table(tmp_path, "results")
    # Eight worlds of part 1, half of them also refined, and four of part 2, in two sizes.
    assert len(rows) == 2 * (4 * 2 + 4 + 4 * 2)
    assert all(value not in ("", "nan", "inf") for row in rows for value in row.values())
    assert all(world.name in read_page(tmp_path) for world in worlds.NULL)


def test_results_depend_on_the_seed_and_not_on_the_jobs():
    design = replace(TINY, sizes=(200,), n_null=2, n_sharp=2, worlds=(UNRELATED, worlds.NULL[5]))
    alone, together = (list(study.run(design, n_jobs=jobs)) for jobs in (1, 2))
    assert alone == together
    other = list(study.run(replace(design, seed=1), n_jobs=1))
    rooms = [found[0].room for found in (*alone[2:], *other[2:])]  # on fresh rows, for micro-F1
    assert len(set(rooms)) == 4

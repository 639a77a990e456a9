"""The max-T test keeps its level, the gain is corrected for the choice, dealing stops in time."""

import itertools

import numpy as np
import pytest
from scipy.special import softmax
from scipy.stats import binom, norm

from altnorm.adjuster.attribution import Attribution, Contribution
from altnorm.adjuster.evidence import (
    ExchangeTest,
    Finding,
    Ledger,
    best_setting,
    is_settled,
    max_t,
    settle,
    without_luck,
)
from altnorm.adjuster.families import AlternatingFamily
from altnorm.adjuster.folds import Dealing, Validation
from altnorm.adjuster.settings import (
    PAPER_ALPHAS,
    PAPER_DEPTHS,
    PAPER_THRESHOLDS,
    BiasSetting,
    Grid,
    MatrixSetting,
    Setting,
)
from altnorm.evidence.scores import SINGLE_LABEL
from altnorm.method.kinds import resolve_kind

A, B = BiasSetting("labels", 64.0), MatrixSetting(4.0)
MILD = Setting(1.0, 1, 0.75, "all", 0.1)
SCORE = SINGLE_LABEL["accuracy"]
PAPER_GRID = Grid(PAPER_ALPHAS, PAPER_DEPTHS, PAPER_THRESHOLDS, ("all",), (0.0, 0.1))


def ledger(*rounds):
    """A ledger with given contributions: one dictionary of units for each dealing."""
    kept = Ledger(lambda pred: pred)
    for units in rounds:
        kept.start_round()
        for setting, values in units.items():
            values = np.asarray(values, dtype=np.float32)
            kept.rounds[-1][setting] = Contribution(values, values, int((values != 0).sum()), 0, 0)
    return kept


def test_one_setting_is_the_sign_test():
    """Rows of equal size: the one-sided p-value is a binomial tail."""
    units = np.append(np.ones(14), -np.ones(5))
    found = max_t(ledger({A: units}), [[A]], 0.025).p_value
    assert found == pytest.approx(binom.sf(13, 19, 0.5), abs=0.012)


def test_two_settings_by_enumeration():
    """All 2^8 flips, which both settings share row by row."""
    rng = np.random.default_rng(0)
    first, second = rng.normal(0.5, 1, 8), rng.normal(0.2, 1, 8)
    scaled = np.stack([u / np.sqrt(u @ u) for u in (first, second)], axis=1)
    observed = scaled.sum(axis=0).max()
    flips = np.array(list(itertools.product([-1, 1], repeat=8)))
    exact = ((flips @ scaled).max(axis=1) >= observed - 1e-9).mean()
    found = max_t(ledger({A: first, B: second}), [[A], [B]], 0.025).p_value
    assert found == pytest.approx(exact, abs=0.03)


def test_copies_of_a_setting_cost_nothing():
    """The test knows how alike settings are; a Bonferroni correction would not."""
    units = np.random.default_rng(1).normal(0.25, 1, 80)
    alone = max_t(ledger({A: units}), [[A]], 0.025).p_value
    twice = max_t(ledger({A: units, B: units}), [[A], [B]], 0.025).p_value
    assert twice == pytest.approx(alone, abs=1e-12)


def test_settings_of_an_entry_speak_with_one_voice():
    """The mean of their studentised terms, by enumeration of all 2^8 flips."""
    rng = np.random.default_rng(3)
    first, second = rng.normal(1, 1, 8), rng.normal(1, 3, 8)
    voice = first / np.sqrt(first @ first) + second / np.sqrt(second @ second)
    flips = np.array(list(itertools.product([-1, 1], repeat=8)))
    exact = (flips @ voice >= voice.sum() - 1e-9).mean()
    test = max_t(ledger({A: first, B: second}), [[A, B]], 0.025)
    assert test.p_value == pytest.approx(exact, abs=0.03)
    assert test.statistics == pytest.approx([voice.sum() / np.sqrt(voice @ voice)], rel=1e-5)


def test_an_entry_that_some_dealing_lacks_is_left_out():
    units = np.ones(20)
    alone = max_t(ledger({A: units}, {A: units}), [[A]], 0.025)
    partly = max_t(ledger({A: units, B: -units}, {A: units}), [[A], [A, B]], 0.025)
    assert partly.p_value == alone.p_value


def test_the_level_is_kept():
    rng = np.random.default_rng(2)
    shared = rng.normal(size=(300, 60, 1))
    units = 0.6 * shared + rng.normal(size=(300, 60, 2))
    adopted = [
        max_t(ledger({A: u[:, 0], B: u[:, 1]}), [[A], [B]], 0.05).p_value < 0.05 for u in units
    ]
    assert binom.sf(sum(adopted) - 1, 300, 0.05) > 0.001
    assert sum(adopted) >= 4


def test_settings_that_lose_are_no_evidence():
    units = -np.ones(20)
    assert max_t(ledger({A: units}), [[A]], 0.025).p_value == 1.0
    assert max_t(ledger({A: np.zeros(20)}), [[A]], 0.025).p_value == 1.0
    assert max_t(ledger({A: units}), [], 0.025).p_value == 1.0


def test_dealings_are_averaged_and_agreement_is_told():
    strong, none = np.ones(20), np.resize([1.0, -1.0], 20)
    both = max_t(ledger({A: strong}, {A: none}), [[A]], 0.025)
    assert both.statistics == pytest.approx([np.sqrt(20), 0.0])
    alone = max_t(ledger({A: strong}), [[A]], 0.025)
    assert alone.p_value < both.p_value
    assert (alone.agreement, both.agreement) == (1.0, 0.5)


@pytest.mark.parametrize(
    ("statistics", "settled"),
    [([5.0, 5.1], True), ([0.0, 0.1], True), ([1.5, 2.6], False), ([2.0], False)],
    ids=str,
)
def test_dealing_stops_when_more_of_it_could_change_nothing(statistics, settled):
    assert is_settled(ExchangeTest(0.5, np.array(statistics), 2.0, 1.0)) == settled


def test_the_luck_of_the_best_is_subtracted():
    """Fifty settings without effect: the best looks good, and the estimate does not."""
    rng = np.random.default_rng(3)
    looks, corrected = [], []
    for _ in range(30):
        units = rng.choice([-1, 0, 1], (200, 50), p=[0.1, 0.8, 0.1]) / 200
        settings = [BiasSetting("labels", float(ridge)) for ridge in range(1, 51)]
        kept = ledger(dict(zip(settings, units.T, strict=True)))
        found = settle(kept, settings, confidence=0.95)
        looks.append(units.sum(axis=0).max())
        corrected.append(found.gain)
    assert np.mean(looks) > 0.05
    assert abs(np.mean(corrected)) < 0.03


def luck_of(units, **options):
    """What `settle` finds, given the contributions of the units: (n_units, n_settings)."""
    settings = [BiasSetting("labels", float(ridge)) for ridge in range(1, units.shape[1] + 1)]
    kept = ledger(dict(zip(settings, units.T, strict=True)))
    return settle(kept, settings, confidence=0.95, **options)


def alike(seed, n_units=400, n_settings=40):
    """Settings that change a fifth of the units, mostly the same ones, and gain little."""
    rng = np.random.default_rng(seed)
    shared = rng.choice([-1, 0, 1], (n_units, 1), p=[0.08, 0.8, 0.12])
    return np.where(rng.random((n_units, n_settings)) < 0.7, shared, 0) / n_units


def test_the_luck_by_enumeration():
    """All 2^10 halves, counted twice: what the best of each gains beyond its gain on all units."""
    units = np.random.default_rng(6).normal([0.3, 0.2, 0.1, 0.0], size=(10, 4))
    gains, luck = units.sum(axis=0), []
    for half in itertools.product([False, True], repeat=10):
        drawn = gains + 2 * (units - units.mean(axis=0))[list(half)].sum(axis=0)
        best = drawn.argmax()
        luck.append(drawn[best] - gains[best])
    error = np.std(luck) / np.sqrt(500)
    assert luck_of(units).optimism == pytest.approx(np.mean(luck), abs=2 * error)


@pytest.mark.parametrize("behind", [0.0, 0.5, 1.0, 2.0])
def test_the_luck_of_two_settings_has_a_closed_form(behind):
    """Where the difference of their gains is normal: its error, times the density at its mean."""
    rng = np.random.default_rng(7)
    units = rng.normal(size=(2000, 2)) * [1, 2] + rng.normal(size=(2000, 1))
    units -= units.mean(axis=0)
    error = np.sqrt(((units[:, 0] - units[:, 1]) ** 2).sum())
    units[:, 0] += behind * error / 2000
    found = luck_of(units)
    assert found.optimism == pytest.approx(error * norm.pdf(behind), abs=0.04 * error)
    assert found.gain == pytest.approx(behind * error - found.optimism, rel=1e-3)


def test_the_luck_is_that_of_the_bootstrap():
    """Against many resamples with replacement."""
    rng, errors = np.random.default_rng(5), []
    for seed in range(10):
        units, n = alike(seed), 400
        drawn = rng.multinomial(n, np.full(n, 1 / n), 20_000) @ units
        luck = drawn.max(axis=1) - units.sum(axis=0)[drawn.argmax(axis=1)]
        found = luck_of(units)
        errors.append((found.optimism - luck.mean()) / found.std_error)
    assert abs(np.mean(errors)) < 0.03
    assert np.std(errors) < 0.03  # 1 / sqrt(500) = 0.045 if the chance that all share were left in


def test_what_all_settings_share_is_no_luck():
    rng = np.random.default_rng(8)
    units, shared = rng.normal(size=(400, 5)), rng.normal(scale=3, size=(400, 1))
    assert luck_of(units + shared).optimism == pytest.approx(luck_of(units).optimism, rel=1e-4)
    assert luck_of(np.tile(shared, 5)).optimism == 0


def test_the_luck_hardly_depends_on_the_order_of_the_rows():
    """Another order meets other halves: less than 0.05 points between them, on 400 rows."""
    units, rng = alike(1), np.random.default_rng(9)
    luck = [luck_of(rng.permutation(units)).optimism for _ in range(20)]
    assert 0 < np.std(luck) < 0.0005


def test_one_decision_does_not_change_the_luck_of_all_others():
    """Rounding may take a decision of a hopeless setting, and must not choose the family."""
    units = alike(2)
    hopeless = np.where(units.any(axis=1), -0.01, 0.0)
    first = luck_of(np.column_stack([units, hopeless])).optimism
    hopeless[np.flatnonzero(hopeless == 0)[0]] = -0.01
    assert luck_of(np.column_stack([units, hopeless])).optimism == pytest.approx(first, rel=1e-5)


def test_a_single_setting_needs_no_correction():
    units = np.random.default_rng(4).normal(0.01, 0.1, 100)
    found = settle(ledger({A: units}), [A], confidence=0.95)
    assert found.gain == pytest.approx(units.sum(), rel=1e-5)
    assert found.optimism == 0
    assert found.std_error == pytest.approx(10 * units.std(ddof=1), rel=1e-5)
    assert found.ci_low < found.gain < found.ci_high


def test_a_handicap_decides_between_families():
    kept = ledger({A: np.full(100, 0.0011), B: np.full(100, 0.001)})
    assert settle(kept, [A, B], confidence=0.95).setting == A
    burdened = settle(kept, [A, B], confidence=0.95, handicap={"bias": 0.05})
    assert burdened.setting == B


@pytest.mark.parametrize(
    ("milder", "other"),
    [
        (MILD, A),
        (A, B),
        (MILD, MILD._replace(depth=2)),
        (MILD._replace(alpha=2.0), MILD._replace(alpha=3.0)),
        (MILD._replace(alpha=0.9), MILD._replace(alpha=1.5)),
        (MILD, MILD._replace(threshold=0.25)),
        (MILD._replace(smoothing=1.0), MILD),
        (A, A._replace(ridge=4.0)),
        (B._replace(ridge=64.0), B),
    ],
    ids=str,
)
def test_ties_go_to_the_milder(milder, other):
    assert best_setting(np.array([0.7, 0.7]), [5, 5], [milder, other]) == 0
    assert best_setting(np.array([0.7, 0.7]), [5, 5], [other, milder]) == 1
    assert best_setting(np.array([0.7, 0.7]), [4, 5], [other, milder]) == 0
    assert best_setting(np.array([0.7, 0.71]), [5, 5], [milder, other]) == 1


def test_rounding_errors_do_not_break_ties():
    gains = np.array([0.1 + 0.2, 0.3])
    assert gains[0] > gains[1]
    assert best_setting(gains, [5, 5], [B, MILD]) == 1


def test_the_menu_is_what_the_grid_has_nearest():
    grid = Grid((0.3, 0.9, 4.0), (2, 3), (0.75, 0.5), ("confident",), (1.0,))
    assert grid.menu() == Grid([0.3, 0.9, 4.0], (2,), (0.5,), ("confident",), [1.0])


@pytest.mark.parametrize("depths", [PAPER_DEPTHS, (2, 3)])
@pytest.mark.parametrize("strength", [0.0, 1.0, 2.0])
def test_every_dealing_tries_the_whole_menu(strength, depths):
    """Whatever the search finds promising: else what is tested would depend on the labels."""
    rng = np.random.default_rng(0)
    y = rng.integers(5, size=200)
    z = rng.normal(size=(200, 5)) + np.eye(5)[y] - strength * (np.arange(5) < 2)
    data = Validation(
        softmax(z, axis=1), y, None, None, z[:0], resolve_kind(None), 10, "shrunk", SCORE
    )
    family, kept = AlternatingFamily(PAPER_GRID._replace(depths=depths)), Ledger(Attribution(data))
    for full in (True, True, False):
        kept.start_round(full=full)
        family.explore(Dealing(data, np.arange(200) % 5), kept.record, full=full)
    menu = family.menu()
    assert [len(entry) for entry in menu] == [2, 2, 2]
    for tried in kept.rounds:
        for setting in itertools.chain(*menu):
            assert tried[setting].weighted is not tried[setting].units


def test_a_strict_level_can_be_passed():
    """With 2,000 flips no p-value could be below 0.0005: a stricter level draws more of them."""
    units = np.ones(60)
    assert max_t(ledger({A: units}), [[A]], 0.025).p_value == pytest.approx(1 / 2001)
    assert max_t(ledger({A: units}), [[A]], 0.001).p_value < 0.0001


def seen(z, critical=2.0):
    """A gain that is its own statistic, after the correction."""
    finding = Finding(A, z, 0.0, 1.0, z - 1.96, z + 1.96, 9, 6, 3)
    return without_luck(finding, ExchangeTest(0.01, np.array([z]), critical, 1.0))


@pytest.mark.parametrize("mean", [1.5, 2.0, 2.5, 3.5])
def test_gains_that_passed_the_test_owe_something_to_luck(mean):
    """Drawn around a known mean and seen only above the border: most of the excess goes."""
    z = np.random.default_rng(0).normal(mean, 1, 20_000)
    z = z[z > 2]
    excess = z.mean() - mean
    corrected = np.mean([seen(one).gain for one in z]) - mean
    assert abs(corrected) < 0.6 * excess


def test_strong_evidence_owes_nothing_to_luck_and_signs_stay():
    assert seen(8.0).gain == pytest.approx(8.0, abs=1e-6)
    near = seen(2.001)
    assert 0 < near.gain < 2.001
    assert near.ci_high - near.ci_low == pytest.approx(2 * 1.96)

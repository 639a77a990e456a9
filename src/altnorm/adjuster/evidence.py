r"""Whether there is anything to gain, how much, and by which setting.

*Whether* is decided on a small menu of settings that is fixed beforehand. For each of them the
units (rows, or groups of rows) add up to a gain, changes that are sure by a larger weight; if, unit
by unit, before and after were interchangeable, the signs of these terms would be coin flips.
Settings that differ little are averaged to one entry. The statistic is the largest studentised gain
of an entry, its null distribution comes from flipping all entries' terms of a unit together, so the
test knows how alike the entries are (max-T, [1]_).

Rows are dealt into folds several times. Each dealing gives a statistic that is standard normal, or
smaller, where there is nothing to gain; so their mean is compared with the null distribution of a
single dealing, which is cautious whatever their correlation. More dealings only make the answer
less a matter of chance, and they stop as soon as further ones could no longer change it.

*How much* is the cross-fitted gain of the best setting, less the luck of being the best. A random
half of the units differs from all of them as these differ from the population, with the same
variance [2]_; so what the best setting of a half gains there beyond what it gains on all units is
subtracted, on average over many halves [3]_. A gain that is adopted is also less the luck of having
passed the test: of gains near the border, those are seen that chance has raised [4]_.

References
----------
.. [1] Westfall, Young, "Resampling-based multiple testing", Wiley 1993.
.. [2] McCarthy, "Pseudo-replication: half samples", Review of the International Statistical
       Institute 1969.
.. [3] Efron, Tibshirani, "An introduction to the bootstrap", 1993, section 17.6, with resamples.
.. [4] Zhong, Prentice, "Bias-reduced estimators and confidence intervals for odds ratios in
       genome-wide association studies", Biostatistics 2008.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import norm
from scipy.stats import t as student

from altnorm.adjuster.attribution import Contribution

_N_FLIPS, _MOST_FLIPS = 2_000, 50_000
_FLIPS_BEYOND = 20  # flips expected beyond the critical value: a p-value below any level can occur
_N_HALVES = 500  # each with the other half
_BLOCK = 2**23  # numbers that a block of flips or halves may hold
_SURE = 3.0  # standard errors, over dealings, that settle on which side a statistic lies


@dataclass
class Ledger:
    """What every setting contributed, dealing by dealing."""

    attribute: Callable[[np.ndarray, np.ndarray | None], Contribution]
    rounds: list[dict[Any, Contribution]] = field(default_factory=list)
    n_full: int = 0  # the first dealings, which try every setting; later ones only the menu

    def start_round(self, *, full: bool = True) -> None:
        """Begin the records of another dealing."""
        self.rounds.append({})
        self.n_full += full

    def record(
        self, setting: Any, pred: np.ndarray, sure: np.ndarray | None = None
    ) -> Contribution:
        """Keep what predictions contribute in the present dealing, and return it."""
        contribution = self.attribute(pred, sure)
        self.rounds[-1][setting] = contribution
        return contribution

    def common(self, settings: Iterable[Any] | None = None) -> list[Any]:
        """Settings that every dealing, in which they were tried at all, could try."""
        tried = self.rounds[0] if settings is None else settings
        common = [s for s in tried if all(s in r for r in self.full_rounds())]
        # Threads record in any order; results must not depend on it.
        return sorted(common, key=lambda s: (s.severity(), repr(s)))

    def full_rounds(self) -> list[dict[Any, Contribution]]:
        """Dealings that tried every setting, not only the menu."""
        return self.rounds[: self.n_full]

    def columns(self, settings: Sequence[Any], rounds: Sequence[Any]) -> np.ndarray:
        """Contributions, mean over dealings: (n_units, n_settings)."""
        each = [np.stack([r[s].units for s in settings], axis=1) for r in rounds]
        return np.asarray(sum(each[1:], start=each[0]) / len(rounds))


class ExchangeTest(NamedTuple):
    """A max-T exchange test over a menu."""

    p_value: float  # one-sided
    statistics: np.ndarray  # (n_dealings,) of the best entry of the menu, dealing by dealing
    critical: float  # what the mean statistic must exceed
    agreement: float  # share of the dealings that alone would have decided as all together


def max_t(ledger: Ledger, menu: Collection[Sequence[Any]], level: float) -> ExchangeTest:
    """Test whether anything on the menu gains, one-sided at `level`.

    Each entry of the menu holds settings that differ little. They speak with one voice, the mean of
    their terms: to let the best of them speak would cost more by its luck than it brings.
    """
    rounds = [r for r in ledger.rounds if any(s in r for entry in menu for s in entry)]
    used = [entry for entry in menu if rounds and all(s in r for r in rounds for s in entry)]
    if not used:
        return ExchangeTest(1.0, np.zeros(1), math.inf, 1.0)
    n_flips = int(min(_MOST_FLIPS, max(_N_FLIPS, _FLIPS_BEYOND / level)))
    statistics, nulls = [], []
    for number, contributions in enumerate(rounds):
        terms = np.stack([_voice(contributions, entry) for entry in used], axis=1)
        observed, null = _statistics(terms, n_flips, np.random.default_rng(number))
        statistics.append(observed)
        nulls.append(np.sort(null))
    mean = np.mean(statistics, axis=0)
    best = int(mean.argmax())
    single = [_tail(null, one.max()) for null, one in zip(nulls, statistics, strict=True)]
    p_value = float(np.mean([_tail(null, mean[best]) for null in nulls]))
    agrees = np.mean([(p < level) == (p_value < level) for p in single])
    critical = float(np.mean([np.quantile(null, 1 - level) for null in nulls]))
    return ExchangeTest(p_value, np.array([s[best] for s in statistics]), critical, float(agrees))


def _voice(contributions: dict[Any, Contribution], entry: Sequence[Any]) -> np.ndarray:
    """Terms of the units, mean over the settings of an entry."""
    each = [_studentise(contributions[s].weighted) for s in entry]
    return np.asarray(sum(each[1:], start=each[0]) / len(each))


def _studentise(terms: np.ndarray) -> np.ndarray:
    """Divide each column by the root of its sum of squares; random signs give it variance 1."""
    scale = np.sqrt((terms.astype(np.float64) ** 2).sum(axis=0))
    return np.asarray(terms / np.where(scale > 0, scale, np.inf))


def _statistics(
    terms: np.ndarray, n_flips: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Studentised gain of each entry, and the largest one under random signs."""
    scaled = _studentise(terms[np.abs(terms).any(axis=1)])
    null = [np.zeros(0)]
    step = max(1, _BLOCK // max(1, len(scaled)))
    for start in range(0, n_flips, step):
        size = min(step, n_flips - start)
        signs = 2 * rng.integers(0, 2, (size, len(scaled)), dtype=np.int8) - 1
        null.append((signs.astype(scaled.dtype) @ scaled).max(axis=1))
    return scaled.sum(axis=0, dtype=np.float64), np.concatenate(null)


def _tail(null: np.ndarray, statistic: float) -> float:
    """Share of flips at least as large, the observed signs counted as one of them."""
    if statistic <= 0:
        return 1.0
    rounding = 1e-5 * statistic  # signs that give the same sum in another order
    reached = null.size - np.searchsorted(null, statistic - rounding)
    return float((1 + reached) / (1 + null.size))


def is_settled(test: ExchangeTest) -> bool:
    """Whether further dealings can hardly move the mean statistic across the critical value.

    No peeking: what is estimated is the statistic over all possible dealings, a fixed number for
    given data, and dealing stops when the estimate is far from the border in its own errors.
    """
    n = test.statistics.size
    if n < 2:
        return False
    error = test.statistics.std(ddof=1) / math.sqrt(n)
    return bool(abs(test.statistics.mean() - test.critical) > _SURE * error)


class Finding(NamedTuple):
    """The best setting and an honest estimate of its gain."""

    setting: Any
    gain: float
    optimism: float  # what was subtracted for being the best
    std_error: float
    ci_low: float
    ci_high: float
    n_changed: int
    n_fixed: int
    n_broken: int


def settle(
    ledger: Ledger, settings: Sequence[Any], *, confidence: float, handicap: Any = None
) -> Finding:
    """Choose among settings, and correct the gain for the choice.

    Parameters
    ----------
    ledger : Ledger
        Contributions.
    settings : sequence
        Those to choose from, each tried in all full rounds.
    confidence : float
        Level of the interval.
    handicap : dict, optional
        Optimism of each family, which its settings have to make up for: a family of many
        settings wins by luck more often.
    """
    rounds = ledger.full_rounds()
    units = ledger.columns(settings, rounds)
    gains = units.sum(axis=0, dtype=np.float64)
    burden = np.array([(handicap or {}).get(s.family, 0.0) for s in settings])
    changed = [_mean_count(rounds, s, "n_changed") for s in settings]
    best = best_setting(gains - burden, changed, settings)
    optimism = _optimism(units, gains, burden)
    gain = float(gains[best]) - optimism
    std_error = _std_error([r[settings[best]].units for r in rounds])
    half = float(student.ppf(0.5 + confidence / 2, max(1, len(units) - 1))) * std_error
    low, high = gain - half, gain + half
    counts = [_mean_count(rounds, settings[best], n) for n in ("n_changed", "n_fixed", "n_broken")]
    return Finding(settings[best], gain, optimism, std_error, low, high, *counts)


def without_luck(finding: Finding, test: ExchangeTest) -> Finding:
    """Take off a gain what it owes, on average, to being seen only if it passes the test.

    A normal statistic z that is seen only above c is too large by phi(d) / Phi(d), where d is the
    distance of its mean from c; z - c stands in for d. The gain shrinks in the same proportion, so
    it keeps its sign, and evidence far beyond the border loses nothing.
    """
    z = float(test.statistics.mean())
    distance = z - test.critical
    luck = float(norm.pdf(distance) / norm.cdf(distance)) / z * finding.gain
    gain, low, high = (x - luck for x in (finding.gain, finding.ci_low, finding.ci_high))
    return finding._replace(gain=gain, ci_low=low, ci_high=high)


def best_setting(gains: np.ndarray, changed: Sequence[int], settings: Sequence[Any]) -> int:
    """Index of the largest gain; ties go to what changes fewer rows, then to the milder."""

    def rank(i: int) -> tuple[Any, ...]:
        # Gains are rounded so that a sum taken in another order does not break a tie.
        return -round(float(gains[i]), 9), changed[i], settings[i].severity()

    return min(range(len(settings)), key=rank)


def _mean_count(rounds: Sequence[dict[Any, Contribution]], setting: Any, name: str) -> int:
    return round(float(np.mean([getattr(r[setting], name) for r in rounds])))


def _optimism(units: np.ndarray, gains: np.ndarray, burden: np.ndarray) -> float:
    """What the best setting of a random half gains there beyond its gain on all units, on average.

    The gain of a half counts twice. What one half gains beyond the whole, the other lacks, so taken
    together the chance that all settings share cancels.
    """
    if units.shape[1] < 2:
        return 0.0
    moved, dtype = np.abs(units).any(axis=1), units.dtype
    terms, whole, luck = units[moved], gains.astype(dtype), []
    net = gains - burden  # in double precision: a burden that all share must not break ties
    for halves in _random_halves(len(units)):
        beyond = halves[:, moved].astype(dtype) @ terms
        beyond -= halves.mean(axis=1, dtype=dtype)[:, None] * whole
        beyond *= 2
        draw = np.arange(len(halves))
        one, other = (net + beyond).argmax(axis=1), (net - beyond).argmax(axis=1)
        luck.append((beyond[draw, one] - beyond[draw, other]) / 2)
    return float(np.concatenate(luck).mean(dtype=np.float64))


def _random_halves(n: int) -> Iterator[np.ndarray]:
    """Yield blocks of draws, (n_draws, n): 1 for the units of one half, 0 for those of the other.

    Units that no setting moves are drawn, too. So all families meet the same halves, and one
    decision, which rounding may have turned, changes no draw.
    """
    rng = np.random.default_rng(0)
    step = max(1, 4 * _BLOCK // n)  # a draw is a byte, numbers are four
    for start in range(0, _N_HALVES, step):
        size = min(step, _N_HALVES - start), math.ceil(n / 8)
        yield np.unpackbits(rng.integers(0, 256, size, dtype=np.uint8), axis=1, count=n)


def _std_error(dealings: Sequence[np.ndarray]) -> float:
    """Standard error of a sum over units: that of one dealing, averaged.

    Averaging the units over dealings first would hide that rows share fits, and be too small.
    """
    n = dealings[0].size
    variance = [n / max(1, n - 1) * float(((u - u.mean()) ** 2).sum()) for u in dealings]
    return math.sqrt(float(np.mean(variance)))

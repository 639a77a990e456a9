"""The families that compete: what each tries on a dealing, and how its choice is fitted.

A family *explores* a dealing: it hands the cross-fitted predictions of every setting it tries to
`record`. Its *menu* holds the few settings, fixed beforehand, on which the evidence rests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np
from joblib import Parallel, delayed

from altnorm._base.arrays import (
    Array,
    array_namespace,
    block_slices,
    entries_at,
    log_softmax,
    to_numpy,
)
from altnorm._base.errors import InputError
from altnorm._base.progress import track
from altnorm.adjuster.attribution import Contribution
from altnorm.adjuster.crossfit import BinaryCrossFit, ClassCrossFit
from altnorm.adjuster.device import DeviceCrossFit
from altnorm.adjuster.folds import Dealing, Sample, Validation, sample
from altnorm.adjuster.predicted import Predictions
from altnorm.adjuster.search import SearchPlan, Tried, plan_search
from altnorm.adjuster.settings import BiasSetting, Grid, MatrixSetting, Setting
from altnorm.families import MatrixScaling, ShrunkBias
from altnorm.families.matrix import matrix_path
from altnorm.families.shrunk import MEMBERS, RIDGE_PATH, bias_path
from altnorm.method.normalizer import AlternatingNormalizer

MENU_RIDGES = (64.0, 4.0)
# Where confusions are few, weaker penalties are of no use; a ridge is there for the other cases.
FEW_RIDGES = (256.0, 64.0, 16.0)
LABELS_PER_CLASS = 5  # with fewer, a matrix only learns noise
LARGEST_WORK = 1e9  # rows times classes squared, beyond which a matrix takes too long

Record = Callable[[Any, np.ndarray, np.ndarray | None], Contribution]


class Family(Protocol):
    """What the competition asks of a family."""

    name: str

    def menu(self) -> list[list[Any]]:
        """Settings on which the evidence rests; those of an entry speak with one voice."""

    def explore(self, dealing: Dealing, record: Record, *, full: bool) -> None:
        """Try every setting, or only those on the menu."""

    def crossfit_proba(self, dealing: Dealing, setting: Any) -> np.ndarray:
        """Cross-fitted probabilities of one setting."""

    def fit(self, data: Validation, setting: Any) -> Any:
        """Fit a setting on all rows."""


class AlternatingFamily:
    """Alternating normalization, the paper's method, with all its settings."""

    name = "alternating"

    def __init__(self, grid: Grid, *, n_jobs: int | None = None, verbose: int = 0) -> None:
        self.grid, self.n_jobs, self.verbose = grid, n_jobs, verbose
        self.plan: SearchPlan | None = None

    def menu(self) -> list[list[Setting]]:
        """Settings on which the evidence rests: an entry for each exponent."""
        alphas, depths, thresholds, references, smoothings = self.grid.menu()
        fixed = depths[0], thresholds[0], references[0]
        return [[Setting(alpha, *fixed, smoothing) for smoothing in smoothings] for alpha in alphas]

    def explore(self, dealing: Dealing, record: Record, *, full: bool) -> None:
        """Try the settings that a search visits, or only those on the menu."""
        crossfit = _make_crossfit(dealing)
        menu = self.grid.menu()
        grid, on_menu = self.grid if full else menu, set(menu.alphas)

        def keep(pairs: Iterable[tuple[Setting, Predictions]]) -> Tried:
            return [
                (setting, record(setting, *predicted))
                for setting, predicted in pairs
                if setting.depth == 1 or setting.depth in grid.depths
            ]

        def try_first(alphas: Sequence[float]) -> Tried:
            return self._map(
                lambda alpha: keep(crossfit.first(alpha, grid, sure=alpha in on_menu)), alphas
            )

        if not full:
            try_first(grid.alphas)
        elif self.plan is None:
            self.plan = plan_search(grid, try_first)
        else:
            try_first(self.plan.alphas)
        depth = max(grid.depths)
        self._map(
            lambda setting: keep(crossfit.deeper(setting, depth, sure=setting.alpha in on_menu)),
            self._to_deepen(full=full),
        )

    def _to_deepen(self, *, full: bool) -> list[Setting]:
        """Settings of depth 1 from which to go on: those of the plan, and all of the menu."""
        deeper = list(self.plan.deeper) if full and self.plan is not None else []
        if self.grid.menu().depths[0] == 1:
            return deeper
        # Whatever the best turns out to be, the whole menu is tried.
        whole = [setting._replace(depth=1) for entry in self.menu() for setting in entry]
        return list(dict.fromkeys([*deeper, *whole]))

    def crossfit_proba(self, dealing: Dealing, setting: Setting) -> np.ndarray:
        """Cross-fitted probabilities of one setting."""
        crossfit = _make_crossfit(dealing.scored_by_proba())
        if setting.depth == 1:
            alone = Grid(
                (setting.alpha,),
                (1,),
                (setting.threshold,),
                (setting.reference,),
                (setting.smoothing,),
            )
            found = crossfit.first(setting.alpha, alone)
        else:
            found = crossfit.deeper(setting, setting.depth, start=setting.depth)
        *_, (_, predicted) = found
        return predicted.values

    def fit(self, data: Validation, setting: Setting) -> AlternatingNormalizer:
        """Fit a setting on all rows."""
        known = sample(data, np.ones(len(data.proba), dtype=bool))
        missing = np.flatnonzero(known.absent)
        ones = np.ones(len(data.unlabelled))
        weight = np.concatenate([known.weight, ones, known.absent[missing]])
        rows = data.work
        if len(weight) > rows.shape[0]:
            sure = np.eye(rows.shape[1], dtype=data.proba.dtype)[missing]
            rows = np.concatenate([data.proba, data.unlabelled, sure])
        normalizer = AlternatingNormalizer(
            **setting._asdict(),
            k_max=data.k_max,
            prior=known.prior,
            multilabel=data.kind.multilabel,
        )
        return normalizer.fit(rows, sample_weight=None if (weight == 1).all() else weight)

    def _map(self, function: Callable[[Any], Tried], items: Sequence[Any]) -> Tried:
        """Try the parts of a search, in threads, and string the results together."""
        parallel = Parallel(n_jobs=self.n_jobs, prefer="threads", return_as="generator")
        results = parallel(delayed(function)(item) for item in items)
        shown = track(results, len(items), "Comparing settings", enabled=self.verbose > 0)
        return [one for part in shown for one in part]


class AffineFamily:
    """What families fitted to labels along a path of penalties share."""

    name = ""
    menu_ridges = MENU_RIDGES

    def __init__(self, *, n_jobs: int | None = None) -> None:
        self.n_jobs = n_jobs
        self.fits: dict[int, dict[Any, Sequence[Any]]] = {}
        self.log_likelihood: dict[Any, float] = {}

    def settings(self) -> Iterator[list[Any]]:
        """Yield each path: settings whose fits start from one another, strongest penalty first."""
        raise NotImplementedError

    def path(
        self, path: list[Any], log_p: np.ndarray, codes: np.ndarray, known: Sample
    ) -> Iterator[Any]:
        """Yield the fits along a path; each has `scores`."""
        raise NotImplementedError

    def menu(self) -> list[list[Any]]:
        """Settings on which the evidence rests: one entry."""
        return [[s for s in next(self.settings()) if s.ridge in self.menu_ridges]]

    def explore(self, dealing: Dealing, record: Record, *, full: bool) -> None:
        """Fit the paths fold by fold, and try each penalty on the rows left out."""
        paths = list(self.settings()) if full else [self._menu_path()]
        on_menu = {setting for entry in self.menu() for setting in entry}
        for path, path_fits in zip(paths, self._fold_fits(dealing, paths), strict=True):
            likelihoods: list[float] = []
            for setting, fits in zip(path, path_fits, strict=False):
                likelihood, predicted = _try_fits(dealing, fits, sure=setting in on_menu)
                likelihoods.append(likelihood)
                record(setting, *predicted)
                if full:
                    self.fits.setdefault(id(dealing), {})[setting] = fits
                    so_far = self.log_likelihood.get(setting, 0.0)
                    self.log_likelihood[setting] = so_far + likelihoods[-1]
                if _is_past_best(likelihoods) and setting.ridge <= min(self.menu_ridges):
                    break

    def crossfit_proba(self, dealing: Dealing, setting: Any) -> np.ndarray:
        """Cross-fitted probabilities of one setting."""
        proba = np.empty_like(dealing.data.proba)
        for rows, log_p in _crossfit_log_p(dealing, self.fits[id(dealing)][setting]):
            proba[rows] = to_numpy(array_namespace(log_p).exp(log_p))
        return proba

    def likeliest(self, **wanted: Any) -> Any:
        """Return the setting under which the labels are most probable, cross-fitted.

        If some values are `wanted`, only settings that have them count.
        """
        tried = set.intersection(*(set(fits) for fits in self.fits.values()))
        allowed = [s for s in tried if wanted.items() <= s._asdict().items()]
        return max(sorted(allowed, reverse=True), key=lambda setting: self.log_likelihood[setting])

    def _menu_path(self) -> list[Any]:
        return [s for s in next(self.settings()) if s.ridge >= min(self.menu_ridges)]

    def _fold_fits(
        self, dealing: Dealing, paths: Sequence[list[Any]]
    ) -> Iterator[Iterable[Sequence[Any]]]:
        """Yield, path by path and penalty by penalty, the fit outside each fold.

        The folds take one penalty after the other together, so that weak ones can be left out.
        """
        parallel = Parallel(n_jobs=self.n_jobs, prefer="threads")
        for path in paths:
            steps = [self._fold_path(dealing, path, outside) for outside in dealing.outside]
            yield (parallel(delayed(next)(one) for one in steps) for _ in path)

    def _fold_path(self, dealing: Dealing, path: list[Any], outside: Sample) -> Iterator[Any]:
        rows = outside.rows
        yield from self.path(path, dealing.log_p(rows), dealing.data.labels[rows], outside)


class BiasFamily(AffineFamily):
    """A temperature and class biases: BCTS, and biases shrunk towards the prior's."""

    name = "bias"

    def settings(self) -> Iterator[list[BiasSetting]]:
        """Yield one path for each member."""
        for member in MEMBERS:
            yield [BiasSetting(member, ridge) for ridge in RIDGE_PATH]

    def path(
        self, path: list[BiasSetting], log_p: np.ndarray, codes: np.ndarray, known: Sample
    ) -> Iterator[Any]:
        """Yield the fits along a path."""
        ridges, weight = [s.ridge for s in path], known.weight[known.rows]
        return bias_path(path[0].member, ridges, log_p, codes, weight, known.prior)

    def _fold_fits(
        self, dealing: Dealing, paths: Sequence[list[Any]]
    ) -> Iterator[Iterable[Sequence[Any]]]:
        """Yield, path by path and penalty by penalty, the fit outside each fold.

        One fold after the other goes all the way: its rows are copied for that, and the copies
        of all folds at once would not fit where classes are many.
        """
        parallel = Parallel(n_jobs=self.n_jobs, prefer="threads")
        each = [(path, outside) for path in paths for outside in dealing.outside]
        whole = parallel(delayed(list)(self._fold_path(dealing, *one)) for one in each)
        for start in range(0, len(each), dealing.n_folds):
            yield zip(*whole[start : start + dealing.n_folds], strict=True)

    def fit(self, data: Validation, setting: BiasSetting) -> ShrunkBias:
        """Fit a setting on all rows."""
        known = sample(data, np.ones(len(data.proba), dtype=bool))
        fitted = ShrunkBias(setting.member, setting.ridge, prior=known.prior)
        return fitted.fit(data.work, data.labels, sample_weight=known.weight)


class MatrixFamily(AffineFamily):
    """A penalised matrix on the log-probabilities."""

    name = "matrix"
    menu_ridges = (64.0, 16.0)

    def settings(self) -> Iterator[list[MatrixSetting]]:
        """Yield one path for each penalty: few confusions, on which the evidence rests, and many.

        Where there is something for a ridge to find, the other finds most of it, too. So an entry
        of its own would raise the bar for all and bring little.
        """
        yield [MatrixSetting(ridge, "cauchy") for ridge in FEW_RIDGES]
        yield [MatrixSetting(ridge) for ridge in RIDGE_PATH]

    def path(
        self, path: list[MatrixSetting], log_p: np.ndarray, codes: np.ndarray, known: Sample
    ) -> Iterator[Any]:
        """Yield the fits along the path."""
        ridges, weight = [s.ridge for s in path], known.weight[known.rows]
        return matrix_path(to_numpy(log_p), codes, weight, ridges, path[0].penalty)

    def fit(self, data: Validation, setting: MatrixSetting) -> MatrixScaling:
        """Fit a setting on all rows."""
        known = sample(data, np.ones(len(data.proba), dtype=bool))
        fitted = MatrixScaling(**setting._asdict())
        return fitted.fit(data.proba, data.labels, sample_weight=known.weight)

    @staticmethod
    def obstacle(data: Validation) -> str:
        """Why a matrix is not worth trying on these data; empty if it is."""
        n, m = data.proba.shape
        if n < LABELS_PER_CLASS * m:
            return "too_few_labels"
        return "too_much_work" if float(n) * m * m > LARGEST_WORK else ""


def _make_crossfit(dealing: Dealing) -> ClassCrossFit | BinaryCrossFit:
    if dealing.data.on_device is not None:
        return DeviceCrossFit(dealing)
    return (BinaryCrossFit if dealing.data.kind.is_multilabel else ClassCrossFit)(dealing)


def _crossfit_log_p(dealing: Dealing, fits: Sequence[Any]) -> Iterator[tuple[np.ndarray, Array]]:
    """Yield numbers of rows, and their log-probabilities under the fit without their fold."""
    proba = dealing.data.work
    for k, fit in enumerate(fits):
        inside = np.flatnonzero(dealing.folds == k)
        for block in block_slices(inside.size, 48 * proba.shape[1], proba, cached=True):
            rows = inside[block]
            yield rows, log_softmax(fit.scores(dealing.log_p(rows)))


def _try_fits(dealing: Dealing, fits: Sequence[Any], *, sure: bool) -> tuple[float, Predictions]:
    """Cross-fitted log-likelihood of the labels, and predictions as the score needs them."""
    data = dealing.data
    weight, lowest = data.row_weight, np.log(np.finfo(data.proba.dtype).eps)
    base = data.predicted(data.proba)
    predicted = Predictions.room(len(base), base, sure=sure)
    likelihood = 0.0
    for rows, log_p in _crossfit_log_p(dealing, fits):
        own = entries_at(log_p, data.labels[rows])
        likelihood += float(weight[rows] @ np.maximum(own, lowest))
        predicted.put(rows, Predictions.of_logs(log_p, base[rows], sure=sure))
    return likelihood, predicted


def _is_past_best(likelihoods: list[float]) -> bool:
    """Whether weaker penalties made the labels less probable twice in a row."""
    return len(likelihoods) > 2 and likelihoods[-1] < likelihoods[-2] < likelihoods[-3]


def check_tried(tried: Sequence[Any], families: Sequence[Family]) -> None:
    """Raise if there was nothing to try, which only a grid without reference rows can bring."""
    if not tried:
        grids = [family.grid for family in families if isinstance(family, AlternatingFamily)]
        thresholds = tuple(grids[0].thresholds) if grids else ()
        raise InputError(
            "No setting could be tried",
            f"no fold leaves a confident row at the thresholds {thresholds}",
            "Raise `thresholds`, or add 'all' to `references`.",
            value=thresholds,
            code="no_reference",
        )

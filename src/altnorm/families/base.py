"""What peers share: reading validation data, and the choice of a penalty."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.utils import Tags

from altnorm._base import arrays
from altnorm._base.arrays import Array
from altnorm._base.errors import InputError
from altnorm._base.validation import check_choice, check_integer, check_positive
from altnorm.estimator.base import ProbabilityTransformer, all_or_nothing
from altnorm.estimator.correction import Scored, Stage
from altnorm.estimator.kinds import kind_of
from altnorm.estimator.reading import Input, mean_one, read_training, require_labels
from altnorm.families.crossfit import STRENGTHS, Path, cross_fit
from altnorm.families.likelihood import stratified_folds


class Peer(ProbabilityTransformer):
    """Base of the peers: a subclass writes `_fit`, and `_fitted_scores` or `stage`."""

    needs_labels = True

    @all_or_nothing
    def fit(
        self, proba: Any, y: Any = None, sample_weight: Any = None, *, classes: Any = None
    ) -> Self:
        """Fit to validation data; takes what :meth:`altnorm.AlternatingNormalizer.fit` takes.

        Methods that learn from labels require them; for the others they only name the classes. Of
        weights only the ratios count, and rows of weight 0 are left out.
        """
        self._check_params()
        if self.needs_labels:
            require_labels(self, y)
        read = read_training(self, proba, y, sample_weight, classes)
        rows = self._rows(read.input)
        n = rows.shape[0]
        labels = np.zeros(n, int) if read.labels is None else read.labels  # of no interest there
        with arrays.one_thread():
            self._fit(rows, labels, mean_one(read.weight, n))
        self._keep(read)
        return self

    def _fit(self, rows: Array, labels: np.ndarray, weight: np.ndarray) -> None:
        """Fit to what `_rows` gives, to class codes or label matrix, and to weights."""
        raise NotImplementedError

    def _rows(self, clean: Input) -> Array:
        """What `_fit` works on: log-probabilities, that of 0 is -inf; or log-odds of labels."""
        # Of logits directly: a way through probabilities would round to 0 and 1.
        if clean.kind.is_multilabel:
            return clean.values if clean.is_logits else arrays.log_odds(clean.values)
        if clean.is_logits:
            return arrays.map_blocks(arrays.log_softmax, clean.values)
        log = arrays.array_namespace(clean.values).log
        with arrays.quiet(np):
            return arrays.map_blocks(lambda p: arrays.log_softmax(log(p)), clean.values)

    def _fitted_scores(self) -> Any:
        """The scores of log-probabilities, or of log-odds, that were fitted."""
        raise NotImplementedError

    def stage(self) -> Stage:
        """Return what it does to a row of probabilities."""
        return Scored(self._fitted_scores(), kind_of(self).is_multilabel)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self.needs_labels
        tags.target_tags.two_d_labels = self.multilabel is not None
        return tags


class PenalisedPeer(Peer):
    """Base of the peers that are fitted along a path of penalties."""

    any_library = True
    strengths: Sequence[float] = STRENGTHS
    may_be_zero = False  # the strength

    def __init__(self, strength: float | str = "cv", *, cv: int = 5, input: str = "proba") -> None:
        self.strength = strength
        self.cv = cv
        self.input = input

    def _check_params(self) -> None:
        super()._check_params()
        if isinstance(self.strength, str):
            check_choice(self.strength, "strength", ("cv",))
        else:
            check_positive(self.strength, "strength", zero=self.may_be_zero)
        check_integer(self.cv, "cv", low=2)

    def _choose_strength(
        self, path: Path, rows: Array, labels: np.ndarray, weight: np.ndarray
    ) -> list[float]:
        """Set `strength_`; return the penalties on the way to it, strongest first."""
        if isinstance(self.strength, str):
            folds = self._folds(labels)
            best = cross_fit(path, rows, labels, weight, folds, self.strengths)
            self.strength_ = best.strength
        else:
            self.strength_ = float(self.strength)
        return [each for each in self.strengths if each > self.strength_] + [self.strength_]

    def _folds(self, labels: np.ndarray) -> np.ndarray:
        """Rows of each class in turn; of several labels, contiguous parts of the rows."""
        n = len(labels)
        if n < 2:
            rule = "strength='cv' needs at least 2 rows of positive weight"
            remedy = "Pass a number, for example strength=1.0."
            raise InputError(rule, "there is only n_samples=1", remedy, code="parameter")
        if labels.ndim == 1:
            return stratified_folds(labels, self.cv)
        return np.arange(n) * min(self.cv, n) // n


def positive(prior: np.ndarray) -> np.ndarray:
    """Normalise `prior`; where it is 0, count half of its smallest positive entry instead."""
    # Zero would rule the class out for good, whatever a row says.
    filled = np.where(prior > 0, prior, prior[prior > 0].min() / 2)
    return filled / filled.sum()

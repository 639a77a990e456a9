"""What peers share: reading validation data and, for single labels, log-probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.utils import Tags

from altnorm._base.arrays import (
    Array,
    array_namespace,
    log_softmax,
    map_blocks,
    one_thread,
    quiet,
)
from altnorm.estimator.base import ProbabilityTransformer, all_or_nothing
from altnorm.estimator.correction import Scored, Stage
from altnorm.estimator.kinds import kind_of
from altnorm.estimator.reading import Input, mean_one, read_training, require_labels
from altnorm.families.crossfit import STRENGTHS, Path, check_strength, choose_strength
from altnorm.families.likelihood import stratified_folds


class Peer(ProbabilityTransformer):
    """Base of the peers: a subclass writes `_fit`, and `_fitted_scores` or `stage`."""

    needs_labels = True

    @all_or_nothing
    def fit(
        self, proba: Any, y: Any = None, sample_weight: Any = None, *, classes: Any = None
    ) -> Self:
        """Fit the method to validation data.

        Parameters
        ----------
        proba : array-like of shape (n_samples, n_classes)
            Validation predictions.
        y : array-like of shape (n_samples,) or (n_samples, n_classes), optional
            Validation labels; for several labels per row a 0/1 matrix, dense or sparse. Methods
            that learn from them require them; for the others they only name the classes.
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each row. Only their ratios count, and rows of weight 0 are left out.
        classes : array-like of shape (n_classes,), optional
            The class of each column. By default the column names of a data frame, the labels in
            `y`, or column numbers.

        Returns
        -------
        self : object
            The fitted transformer.
        """
        self._check_params()
        if self.needs_labels:
            require_labels(self, y)
        read = read_training(self, proba, y, sample_weight, classes)
        rows = self._rows(read.input)
        n = rows.shape[0]
        labels = np.zeros(n, int) if read.labels is None else read.labels  # of no interest there
        with one_thread():
            self._fit(rows, labels, mean_one(read.weight, n))
        self._keep(read)
        return self

    def _fit(self, rows: Array, labels: np.ndarray, weight: np.ndarray) -> None:
        """Fit to what `_rows` gives, to class codes or label matrix, and to weights."""
        raise NotImplementedError

    def _rows(self, clean: Input) -> Array:
        """What `_fit` works on: probabilities, unless a subclass wants another form."""
        return clean.proba

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


class SingleLabelPeer(Peer):
    """Base of the single-label peers: `_fit` receives log-probabilities; that of zero is -inf."""

    def __init__(self, *, input: str = "proba") -> None:
        self.input = input

    def _rows(self, clean: Input) -> Array:
        if clean.is_logits:  # directly: a softmax would round small probabilities to zero
            return map_blocks(log_softmax, clean.values)
        log = array_namespace(clean.values).log
        with quiet(np):
            return map_blocks(lambda p: log_softmax(log(p)), clean.values)


class PenalisedPeer(SingleLabelPeer):
    """Base of the single-label peers that are fitted along a path of penalties."""

    any_library = True
    strengths: Sequence[float] = STRENGTHS
    may_be_zero = False  # the strength

    def __init__(self, strength: float | str = "cv", *, cv: int = 5, input: str = "proba") -> None:
        self.strength = strength
        self.cv = cv
        self.input = input

    def _check_params(self) -> None:
        super()._check_params()
        check_strength(self.strength, self.cv, zero=self.may_be_zero)

    def _choose_strength(
        self, path: Path, log_p: Array, codes: np.ndarray, weight: np.ndarray
    ) -> list[float]:
        """Set `strength_`; return the penalties on the way to it, strongest first."""
        folds = stratified_folds(codes, min(self.cv, codes.size))
        data = log_p, codes, weight, folds
        self.strength_ = choose_strength(self.strength, path, *data, self.strengths)
        return [each for each in self.strengths if each > self.strength_] + [self.strength_]


def positive(prior: np.ndarray) -> np.ndarray:
    """Normalise `prior`; where it is 0, count half of its smallest positive entry instead."""
    # Zero would rule the class out for good, whatever a row says.
    filled = np.where(prior > 0, prior, prior[prior > 0].min() / 2)
    return filled / filled.sum()

"""What peers share: row weights and, for single labels, log-probabilities in, one tilt out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, Self, TypeVar

import numpy as np
from sklearn.utils import Tags

from altnorm._base.arrays import (
    Array,
    array_namespace,
    as_array,
    block_slices,
    concat_blocks,
    log_softmax,
    quiet,
    softmax,
    take_rows,
)
from altnorm._base.errors import InputError
from altnorm._base.validation import check_choice, check_scale, check_weight
from altnorm.method.estimator import ProbabilityTransformer

Data = TypeVar("Data")  # what a peer reads of the validation data


class FitData(NamedTuple):
    """Clean validation data: log-probabilities, class codes, row weights."""

    log_p: Array
    codes: np.ndarray | None
    weight: np.ndarray

    @property
    def labels(self) -> np.ndarray:
        """Class codes, where they are needed."""
        if self.codes is None:
            raise InputError(
                "This method requires y to be passed, but the target y is None",
                remedy="Call fit(proba, y).",
                code="no_labels",
            )
        return self.codes

    def known(self) -> tuple[Array, np.ndarray, np.ndarray]:
        """Log-probabilities, labels and weights of the rows that count."""
        used = self.weight > 0
        if used.all():
            return self.log_p, self.labels, self.weight
        return take_rows(self.log_p, used), self.labels[used], self.weight[used]


class Peer(ProbabilityTransformer, Generic[Data]):
    """Base of the peers: a subclass writes `_read_fit`, `_fit` and `_transform`."""

    def fit(self, proba: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the method to validation data.

        Parameters
        ----------
        proba : array-like of shape (n_samples, n_classes)
            Validation predictions.
        y : array-like of shape (n_samples,) or (n_samples, n_classes), optional
            Validation labels, required by methods that learn from them; classes may be missing.
            For the others they only name the classes. Methods for several labels per row take a
            0/1 matrix, dense or sparse.
        sample_weight : array-like of shape (n_samples,), optional
            Weight of each row; rows of weight 0 are as good as absent.

        Returns
        -------
        self : object
            The fitted transformer.
        """
        self._check_params()
        self._fit(self._read_fit(proba, y, sample_weight))
        return self

    def _check_params(self) -> None:
        """Raise on bad settings, before any data are read."""

    def _read_fit(self, proba: Any, y: Any, sample_weight: Any) -> Data:
        raise NotImplementedError

    def _fit(self, data: Data) -> None:
        raise NotImplementedError


class SingleLabelPeer(Peer[FitData]):
    """Base of the single-label peers: `_fit` and `_transform` receive log-probabilities.

    Logits are turned into log-probabilities directly, which keeps what a softmax would round to
    zero. A probability of zero is ``-inf`` and stays zero.
    """

    def __init__(self, *, input: str = "proba") -> None:
        self.input = input

    def _read_fit(self, proba: Any, y: Any, sample_weight: Any) -> FitData:
        log_p, codes = self._check_fit(proba, y)
        return FitData(log_p, codes, row_weight(sample_weight, log_p.shape[0]))

    def _read(self, values: Array) -> Array:
        check_choice(self.input, "input", ("proba", "logits"))
        if self.input == "logits" and values.shape[1] > 1:
            return _by_blocks(log_softmax, values)
        return super()._read(values)

    def _from_proba(self, proba: Array) -> Array:
        log = array_namespace(proba).log
        with quiet(np):
            return _by_blocks(lambda p: log_softmax(log(p)), proba)


class MultilabelPeer(Peer[Data]):
    """Base of the peers for several labels per row."""

    multilabel = "labelwise"

    def _read_rows(
        self, proba: Any, y: Any, sample_weight: Any
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What `_transform` works on, the label matrix and the weights; no row of weight 0."""
        values, labels = self._check_labelled(proba, y)
        weight = row_weight(sample_weight, values.shape[0])
        if sample_weight is None:
            return values, labels, weight
        used = weight > 0
        return values[used], labels[used], weight[used]

    def __sklearn_tags__(self) -> Tags:
        tags = labels_required(super().__sklearn_tags__())
        tags.target_tags.two_d_labels = True
        return tags


def labels_required(tags: Tags) -> Tags:
    """Say in an estimator's tags that it cannot do without labels."""
    tags.target_tags.required = True
    return tags


def tilt(log_p: Array, *, slope: float = 1.0, bias: np.ndarray | None = None) -> Array:
    """Return ``softmax(slope * log_p + bias)``."""
    scores = log_p * slope
    if bias is not None:
        scores += as_array(bias, log_p)
    return _by_blocks(softmax, scores)


def _by_blocks(function: Callable[[Array], Array], rows: Array) -> Array:
    """Apply a function of rows in blocks: what it allocates on the way stays in the cache."""
    blocks = block_slices(rows.shape[0], 48 * rows.shape[1], rows, cached=True)
    return concat_blocks((function(rows[block, :]) for block in blocks), rows)


def row_weight(sample_weight: Any, n_rows: int) -> np.ndarray:
    """Return one weight per row; each counts once where none are given."""
    weight = check_weight(sample_weight, np.empty((n_rows, 0)), "sample_weight", "row")
    if weight is None:
        return np.ones(n_rows)
    check_scale(weight, "sample_weight")
    return weight


def mean_proba(log_p: np.ndarray, weight: np.ndarray | None = None) -> np.ndarray:
    """Return the (weighted) mean probability of each class, without zeros."""
    mean = np.average(np.exp(log_p.astype(np.float64)), axis=0, weights=weight)
    return positive(mean)


def positive(prior: np.ndarray) -> np.ndarray:
    """Normalise `prior`; where it is 0, count half of its smallest positive entry instead.

    A class that was not seen is rarer than the rarest that was, but not impossible.
    """
    # Zero would rule the class out for good, whatever a row says.
    filled = np.where(prior > 0, prior, prior[prior > 0].min() / 2)
    return filled / filled.sum()

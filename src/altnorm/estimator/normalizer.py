"""AlternatingNormalizer: remembers a reference and a prior, adjusts rows in doubt."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logit

from altnorm._base import validation
from altnorm._base.arrays import take_rows, to_numpy
from altnorm._base.errors import InputError
from altnorm._base.fitted import Fields
from altnorm._base.persistence import storable
from altnorm._base.symbols import names_symbols
from altnorm.estimator.alternating import (
    AlternatingOdds,
    AlternatingRows,
    alternating_labels,
    alternating_rows,
)
from altnorm.estimator.base import ProbabilityTransformer, all_or_nothing
from altnorm.estimator.correction import Doubt
from altnorm.estimator.kinds import Part, kind_of
from altnorm.estimator.reading import read_training
from altnorm.method.functional import problem
from altnorm.method.reference import REFERENCES, merge_entries, reference_mask
from altnorm.method.two_classes import BinaryReference

_DEEPEST = 10_000  # iterations: a model file that asks for more would keep its user waiting


@storable
class AlternatingNormalizer(ProbabilityTransformer):
    """Re-adjust doubtful predictions against confident ones and the class prior (CAN).

    `fit` keeps the validation rows that serve as reference; `transform` adjusts each row whose
    :func:`~altnorm.ambiguity` exceeds `threshold` by :func:`~altnorm.alternating_normalization`
    and returns all others bit for bit. :class:`~altnorm.AlternatingNormalizerCV` chooses the
    settings, and tells whether they help.

    Parameters
    ----------
    alpha : float, default=1.0
        Exponent.
    depth : int, default=1
        Number of iterations, the paper's d; at most 10,000.
    threshold : float, default=0.75
        Rows with an ambiguity above it are in doubt; the paper's tau.
    k_max : int, default=10
        Largest number of classes that the ambiguity looks at.
    prior : None, "counted", "uniform", "shrunk" or array of shape (n_classes,), default=None
        Class prior. "counted": the class frequencies of `y`; None the same, uniform without `y`.
        "shrunk": these shrunk towards uniform as far as counting noise explains them. For several
        labels an array holds the probability of yes for each ("labelwise"), or those of yes and
        no ("pairs").
    reference : {"confident", "all"}, default="confident"
        Which of the rows given to `fit` serve as reference.
    smoothing : float, default=0.0
        As for :func:`~altnorm.alternating_normalization`.
    multilabel : None, "pairs" or "labelwise", default=None
        None: rows sum to 1. "pairs": all n * m probabilities are one two-class problem (the
        paper). "labelwise": each label is one, with its own prior and reference.
    input : {"proba", "logits"}, default="proba"
        What `fit` and `transform` are given. Never guessed.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The class each column stands for.
    prior_ : ndarray
        Class prior, as an array for `prior` holds it.
    reference_ : ndarray
        Reference rows, (n_reference, n_classes); probabilities of yes, (n_reference,), for
        multi-label problems, those of label j at ``offsets_[j]:offsets_[j + 1]``.
    reference_weight_ : ndarray of shape (n_reference,) or None
        Weight of each reference row; None counts each once.
    usage_ : Usage
        How predictions used the classes at `fit`, for `drift`: `counts` of confident ones,
        `n_doubtful`, `n_total`.
    n_features_in_ : int
        Number of classes.

    See Also
    --------
    altnorm.alternating_normalization : The formula, and the paper it is from.

    Examples
    --------
    >>> import numpy as np
    >>> from altnorm import AlternatingNormalizer
    >>> validation = np.array([[0.02, 0.98], [0.05, 0.95], [0.1, 0.9], [0.95, 0.05]])
    >>> normalizer = AlternatingNormalizer(threshold=0.5).fit(validation)
    >>> normalizer.transform(np.array([[0.02, 0.98], [0.45, 0.55]])).round(2)
    array([[0.02, 0.98],
           [0.64, 0.36]])
    """

    any_library = True

    @names_symbols(d="depth", tau="threshold", k="k_max", q="prior", A0="reference")
    def __init__(
        self,
        alpha: float = 1.0,
        depth: int = 1,
        threshold: float = 0.75,
        *,
        k_max: int = 10,
        prior: ArrayLike | None = None,
        reference: str = "confident",
        smoothing: float = 0.0,
        multilabel: str | None = None,
        input: str = "proba",
    ) -> None:
        self.alpha = alpha
        self.depth = depth
        self.threshold = threshold
        self.k_max = k_max
        self.prior = prior
        self.reference = reference
        self.smoothing = smoothing
        self.multilabel = multilabel
        self.input = input

    @all_or_nothing
    def fit(
        self, proba: Any, y: Any = None, sample_weight: Any = None, *, classes: Any = None
    ) -> Self:
        """Keep the reference and the prior.

        Parameters
        ----------
        proba : array-like of shape (n_samples, n_classes)
            Predictions on validation data.
        y : array-like of shape (n_samples,) or (n_samples, n_classes), optional
            Labels; only class frequencies are counted. A 0/1 matrix for multi-label problems.
        sample_weight : array-like of shape (n_samples,), optional
            As how many rows each counts, in the reference and in the frequencies.
        classes : array-like of shape (n_classes,), optional
            The class that each column stands for, such as the `classes_` of a classifier. By
            default the column names of a data frame, the labels in `y`, or column numbers.

        Returns
        -------
        self : AlternatingNormalizer
            The fitted normalizer.
        """
        self._check_params()
        read = read_training(self, proba, y, sample_weight, classes)
        kind, rows, weight = read.input.kind, read.input.proba, read.weight
        if weight is not None:
            validation.check_scale(weight, "sample_weight")
        self.prior_ = kind.count_prior(read.labels, rows.shape[1], self.prior, weight)
        ambiguity = kind.ambiguity(rows, k_max=self.k_max)
        serves = reference_mask(ambiguity, self.threshold, self.reference)
        self.__dict__.pop("offsets_", None)  # of an earlier fit to several labels
        if kind.is_multilabel:
            self._keep_entries(kind.parts(rows.shape[1]), rows, serves, weight)
        else:
            self.reference_ = to_numpy(take_rows(rows, serves))
            self.reference_weight_ = None if weight is None else weight[serves]
        self._keep(read)
        return self

    def _check_params(self) -> None:
        super()._check_params()
        validation.check_positive(self.alpha, "alpha")
        validation.check_integer(self.depth, "depth", low=1, high=_DEEPEST)
        validation.check_amplification(self.alpha, self.depth, float(np.finfo(np.float64).max))
        validation.check_unit(self.threshold, "threshold", example=0.75)
        validation.check_integer(self.k_max, "k_max", low=2)
        validation.check_positive(self.smoothing, "smoothing", zero=True)
        if np.ndim(self.reference):  # the paper's A0, as the functions take it
            rule = "`reference` must be 'confident' or 'all'"
            shape = np.shape(self.reference)
            remedy = "Give these rows to `fit`, with reference='all' to take every one."
            raise InputError(rule, f"it is an array of shape {shape}", remedy, value=shape)
        validation.check_choice(self.reference, "reference", REFERENCES)

    def _check_fitted(self, fields: Fields) -> None:
        super()._check_fitted(fields)
        kind, m = kind_of(self), fields.n_classes
        n_prior = len(kind.prior_names(self.classes_.tolist()))
        total = None if self.multilabel == "labelwise" else 1.0
        fields.array("prior_", "f", (n_prior,), 0, 1, total=total)
        if kind.is_multilabel:
            reference = fields.array("reference_", "f", (None,), 0, 1, empty=True)
            ends = fields.array("offsets_", "i", (len(kind.parts(m)) + 1,), 0)
            holds = (ends[0], ends[-1]) == (0, len(reference)) and (np.diff(ends) >= 0).all()
            fields.require("offsets_", holds, "where the labels' references start")
        else:
            reference = fields.array("reference_", "f", (None, m), 0, 1, total=1, tolerance=1e-2)
        if fields.get("reference_weight_") is not None:
            fields.array("reference_weight_", ("f", "i", "u"), (len(reference),), 0, 1e290)

    def stage(self) -> AlternatingRows | AlternatingOdds:
        """Return what it does to a row of probabilities."""
        if kind_of(self).is_multilabel:
            references = list(self._label_references())
            return alternating_labels(Doubt.of(self.threshold, 2), references, self.reference_.size)
        reference = self.reference_.astype(np.float64, copy=False)
        settings = self.prior_, self.alpha, self.depth, self.reference_weight_, self.smoothing
        doubt = Doubt.of(self.threshold, min(self.k_max, len(self.classes_)))
        return alternating_rows(doubt, problem(reference[:0], reference, *settings))

    def _label_references(self) -> Iterator[BinaryReference | None]:
        """Yield the reference of each label, or of all; None where it says nothing."""
        logits, weight = logit(self.reference_.astype(np.float64)), self.reference_weight_
        ends = self.offsets_.tolist()
        for j, span in enumerate(map(slice, ends[:-1], ends[1:])):
            yield BinaryReference.of(
                logits[span],
                None if weight is None else weight[span],
                float(self.prior_[j]),
                alpha=self.alpha,
                depth=self.depth,
                smoothing=self.smoothing,
            )

    def _keep_entries(
        self, parts: Sequence[Part], p: np.ndarray, serves: np.ndarray, weight: np.ndarray | None
    ) -> None:
        """Reference of a multi-label problem: label after label, equal entries merged."""
        if weight is not None:
            weight = np.broadcast_to(weight[:, None], p.shape)
        merged = [
            merge_entries(p[at][serves[at]], None if weight is None else weight[at][serves[at]])
            for at in parts
        ]
        self.offsets_ = np.cumsum([0] + [values.size for values, _ in merged])
        self.reference_ = np.concatenate([values for values, _ in merged])
        self.reference_weight_ = None
        if any(w is not None for _, w in merged):
            weights = [np.ones(values.size) if w is None else w for values, w in merged]
            self.reference_weight_ = np.concatenate(weights)

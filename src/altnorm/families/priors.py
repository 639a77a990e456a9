"""Batch calibration: divide each class by how probable it is on average."""

from __future__ import annotations

import numpy as np

from altnorm._base.persistence import storable
from altnorm._base.specs import TINY, array, declare, number, one_of
from altnorm._base.validation import check_choice, check_positive
from altnorm.families.base import (
    FitData,
    SingleLabelPeer,
    mean_proba,
    tilt,
)


@storable
class BatchCalibration(SingleLabelPeer):
    r"""Divide by the contextual prior, the mean prediction of a batch.

    .. math:: p'_{ij} \propto p_{ij} / \bar p_j^{\,\gamma}, \qquad
              \bar p_j = \frac{1}{n} \sum_i p_{ij}

    Made for language models whose prompt favours some answers [1]_; it takes the classes to be
    equally frequent and needs no labels.

    Parameters
    ----------
    batch : {"fit", "transform"}, default="fit"
        Whose mean: that of the validation set, or of the rows passed to `transform`. In the
        second case, the paper's, **the result depends on the batch**.
    gamma : float, default=1.0
        Strength, 0 or greater: 0 changes nothing, 1 is the paper's default.
    input : {"proba", "logits"}, default="proba"
        What the columns hold.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The class each column stands for.
    contextual_prior_ : ndarray of shape (n_classes,)
        Mean prediction on the validation set; a class never predicted there counts half as much as
        the least predicted.

    References
    ----------
    .. [1] Zhou, Wan, Proleev, Mincu, Chen, Heller, Roy, "Batch calibration: rethinking calibration
       for in-context learning and prompt engineering", ICLR 2024.

    Examples
    --------
    >>> from altnorm.families import BatchCalibration
    >>> method = BatchCalibration().fit([[0.9, 0.1], [0.7, 0.3]])
    >>> method.transform([[0.8, 0.2], [0.7, 0.3]]).round(3)
    array([[0.5  , 0.5  ],
           [0.368, 0.632]])
    """

    _settings = declare(batch=one_of(("fit", "transform")), gamma=number(0))
    _fitted = declare(contextual_prior_=array("f", ("m",), TINY, 1, total=1))

    def __init__(self, batch: str = "fit", *, gamma: float = 1.0, input: str = "proba") -> None:
        self.batch = batch
        self.gamma = gamma
        self.input = input

    def _check_params(self) -> None:
        check_choice(self.batch, "batch", ("fit", "transform"))
        check_positive(self.gamma, "gamma", zero=True)

    def _fit(self, data: FitData) -> None:
        self.contextual_prior_ = mean_proba(data.log_p, data.weight)

    def _transform(self, log_p: np.ndarray) -> np.ndarray:
        prior = self.contextual_prior_ if self.batch == "fit" else mean_proba(log_p)
        return tilt(log_p, bias=-self.gamma * np.log(prior))

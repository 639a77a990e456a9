"""Alternating normalization as a PyTorch module."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from altnorm._array import is_array_api_obj, to_numpy
from altnorm._plan import PlanSettings, RowPlan, make_plan
from altnorm._stages import LinearScores, read_stages
from altnorm._validation import (
    InputError,
    check_integer,
    check_positive,
    check_prior,
    check_proba,
    check_weight,
)
from altnorm.torch._layers import (
    Constants,
    LogitAdjustment,
    ProbabilityModule,
    RowAdjustment,
    binary_ambiguity,
    row_ambiguity,
)

__all__ = ["AlternatingNorm"]


class AlternatingNorm(ProbabilityModule):
    r"""Adjust doubtful rows against reference predictions and a class prior, as a last layer.

    The same as :meth:`altnorm.AlternatingNormalizer.transform`, with gradients. Gradients flow to
    the input only; reference, prior and settings are constants.

    Parameters
    ----------
    reference : array of shape (n, m)
        Reference predictions. For multi-label problems the probabilities of yes: one column per
        label, or one vector with `offsets`.
    prior : array, optional
        Class prior, (m,); for "labelwise" the probability of yes for each label, for "pairs" the
        probabilities of yes and no. None is uniform.
    alpha, depth, threshold, k_max, smoothing, multilabel, input
        As for :class:`altnorm.AlternatingNormalizer`. With ``input="logits"`` the module takes
        the place of the softmax (or sigmoid).
    reference_weight : array of shape (n,), optional
        Weight of each reference row.
    offsets : array of shape (m + 1,), optional
        Where each label's reference begins in a one-dimensional `reference`.
    soft : float, default=0.0
        Width of a soft threshold. 0 adjusts a row if its ambiguity exceeds `threshold` and leaves
        it alone otherwise. Otherwise the output is the average of the adjusted row and the row as
        it was, with weight :math:`\sigma((\text{ambiguity} - \text{threshold}) / \text{soft})` on
        the former, so that gradients see the threshold, too.

    See Also
    --------
    from_normalizer : A module for any fitted normalizer.

    Notes
    -----
    Buffers and computation are float64 and stay so under ``.half()`` or ``.to(dtype)``; the output
    has the dtype of the input. A device without float64 (MPS) cannot be used.

    The gradient with respect to a probability of exactly zero is zero.

    A state dict holds reference, prior and weights, not the settings. It may come from a module
    with another number of reference rows or classes.

    References
    ----------
    .. [1] Jia, Reiter, Lim, Artzi, Cardie. When in Doubt: Improving Classification Performance
           with Alternating Normalization. Findings of EMNLP 2021.

    Examples
    --------
    >>> import torch
    >>> from altnorm.torch import AlternatingNorm
    >>> layer = AlternatingNorm(torch.tensor([[0.0, 1.0]]), threshold=0.5)
    >>> row = torch.tensor([[0.5, 0.5]], requires_grad=True)
    >>> layer(row).detach()
    tensor([[0.7500, 0.2500]])
    """

    optional = ("reference_weight",)

    def __init__(
        self,
        reference: Any,
        prior: Any = None,
        *,
        alpha: float = 1.0,
        depth: int = 1,
        threshold: float = 0.75,
        k_max: int = 10,
        smoothing: float = 0.0,
        reference_weight: Any = None,
        multilabel: str | None = None,
        offsets: Any = None,
        input: str = "proba",
        soft: float = 0.0,
    ) -> None:
        super().__init__(input, multilabel)
        self.soft = check_positive(soft, "soft", zero=True)
        self.k_max = check_integer(k_max, "k_max", low=2)
        self.settings = PlanSettings(
            check_positive(alpha, "alpha"),
            check_integer(depth, "depth", low=1),
            check_positive(threshold, "threshold", zero=True),
            check_positive(smoothing, "smoothing", zero=True),
            multilabel,
        )
        rows, offsets = _check_reference(_host(reference), _host(offsets), multilabel)
        n_labels = rows.shape[1] if multilabel is None else len(offsets) - 1
        buffers = {
            "reference": rows,
            "prior": _check_prior(_host(prior), n_labels, multilabel),
            "reference_weight": check_weight(_host(reference_weight), rows),
            "offsets": offsets,
        }
        for name, array in buffers.items():
            self.register_buffer(name, None if array is None else torch.tensor(array))
        self._prepare()

    @classmethod
    def from_normalizer(cls, normalizer: Any, *, soft: float = 0.0) -> AlternatingNorm:
        """Take reference, prior and settings from a fitted normalizer.

        Parameters
        ----------
        normalizer : AlternatingNormalizer, AlternatingNormalizerCV or Identity
            A fitted normalizer; of a search, what it chose. For an Adjuster see
            :func:`altnorm.torch.from_normalizer`.
        soft : float, default=0.0
            Width of a soft threshold.

        Returns
        -------
        AlternatingNorm
            A module that gives what `normalizer.transform` gives.

        Examples
        --------
        >>> import numpy as np, torch
        >>> from altnorm import AlternatingNormalizer
        >>> from altnorm.torch import AlternatingNorm
        >>> rows = np.array([[0.02, 0.98], [0.05, 0.95], [0.1, 0.9], [0.95, 0.05]])
        >>> layer = AlternatingNorm.from_normalizer(AlternatingNormalizer(threshold=0.5).fit(rows))
        >>> layer(torch.tensor([[0.02, 0.98], [0.45, 0.55]]))
        tensor([[0.0200, 0.9800],
                [0.6413, 0.3587]])
        """
        stages = read_stages(normalizer)
        chosen = stages.decider
        if isinstance(chosen, LinearScores) or stages.calibrates:
            raise InputError(
                "AlternatingNorm does alternating normalization and nothing else",
                f"this {type(normalizer).__name__} does more or other than that",
                "Use altnorm.torch.from_normalizer.",
                value=type(normalizer).__name__,
                code="not_supported",
            )
        settings: dict[str, Any] = {"multilabel": stages.multilabel, "input": stages.input}
        if chosen is None:  # no ambiguity exceeds 1
            share = 1 / stages.n_classes if stages.multilabel is None else 0.5
            return cls(np.full((1, stages.n_classes), share), threshold=1.0, **settings)
        names = ("alpha", "depth", "threshold", "k_max", "smoothing")
        return cls(
            chosen.reference_,
            chosen.prior_,
            reference_weight=chosen.reference_weight_,
            offsets=getattr(chosen, "offsets_", None),
            soft=soft,
            **{name: getattr(chosen, name) for name in names},
            **settings,
        )

    def rows(self, p: Tensor) -> Tensor:
        """Return probabilities with those in doubt adjusted; the others are the same bit for bit.

        Parameters
        ----------
        p : Tensor of shape (t, m)
            Probabilities, float64.

        Returns
        -------
        Tensor of shape (t, m)
            Probabilities, float64.
        """
        single = self.multilabel is None
        doubt = row_ambiguity(p, self.k_max) if single else binary_ambiguity(p)
        active = self.adjustment.active
        if self.soft:
            share = torch.sigmoid((doubt - self.settings.threshold) / self.soft) * active
            return p + share * (self.adjustment(p) - p)
        in_doubt = (doubt > self.settings.threshold) & active
        if single and not torch.compiler.is_compiling():  # leave out what a graph must compute
            (rows,) = torch.nonzero(in_doubt[:, 0], as_tuple=True)
            return p.index_copy(0, rows, self.adjustment(p[rows]))
        return torch.where(in_doubt, self.adjustment(p), p)

    def extra_repr(self) -> str:
        """Settings, for `repr`."""
        settings = {**self.settings._asdict(), "input": self.input}
        if self.soft:
            settings["soft"] = self.soft
        return ", ".join(f"{name}={value!r}" for name, value in settings.items())

    def _prepare(self) -> None:
        """Work out the constants that follow from the buffers."""
        settings = self.settings
        if self.soft:  # every row is adjusted a little
            settings = settings._replace(threshold=0.0)
        plan = make_plan(
            _host(self.reference),
            _host(self.reference_weight),
            _host(self.offsets),
            _host(self.prior),
            settings,
        )
        if isinstance(plan, RowPlan):
            adjustment: Constants = RowAdjustment(plan)
        else:
            adjustment = LogitAdjustment(plan, two_classes=settings.multilabel is None)
        self.adjustment = adjustment.to(self.reference.device)


def _host(values: Any) -> Any:
    """Return an array in host memory, floating-point in double precision."""
    if values is None:
        return None
    array = to_numpy(values) if is_array_api_obj(values) else np.asarray(values)
    return array.astype(np.float64) if array.dtype.kind == "f" else array


def _check_reference(
    reference: np.ndarray, offsets: np.ndarray | None, multilabel: str | None
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return clean reference rows, for multi-label problems label after label with offsets."""
    if multilabel is None:
        return check_proba(reference, "reference"), None
    if reference.ndim == 2 and offsets is None:
        n_rows, n_labels = reference.shape
        reference = reference.T.reshape(-1)
        offsets = np.arange(n_labels + 1) * n_rows
        if multilabel == "pairs":
            offsets = np.array([0, reference.size])
    if reference.ndim != 1 or offsets is None or offsets[-1] != reference.size:
        raise InputError(
            "For multi-label problems `reference` must have one column per label, or be a vector "
            "with `offsets` that end at its length",
            f"it has shape {reference.shape}",
            "Pass predictions of shape (n, m).",
            value=reference.shape,
            code="parameter",
        )
    if not ((reference >= 0) & (reference <= 1)).all():
        raise InputError(
            "For multi-label problems `reference` must hold probabilities from 0 to 1",
            f"it spans {reference.min():g} to {reference.max():g}",
            "Apply a sigmoid to logits first.",
            code="parameter",
        )
    return reference, np.asarray(offsets, dtype=np.int64)


def _check_prior(prior: np.ndarray | None, n_labels: int, multilabel: str | None) -> np.ndarray:
    """Return the prior as `prior_` of a fitted normalizer has it."""
    if multilabel != "labelwise":
        return check_prior(prior, np.empty((0, n_labels if multilabel is None else 2)))
    prior = np.full(n_labels, 0.5) if prior is None else prior
    if prior.shape != (n_labels,) or not ((prior >= 0) & (prior <= 1)).all():
        raise InputError(
            f"For multilabel='labelwise' `prior` must hold {n_labels} probabilities of yes",
            f"it has shape {prior.shape}",
            "Pass the frequency of each label.",
            value=prior.shape,
            code="parameter",
        )
    return prior

"""Alternating normalization as a PyTorch module."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from altnorm._base.arrays import is_array_api_obj, to_numpy
from altnorm._base.errors import InputError
from altnorm._base.validation import check_integer, check_positive, check_weight
from altnorm.deploy.plan import PlanSettings, RowPlan, make_plan
from altnorm.deploy.stages import LinearScores, read_stages
from altnorm.deploy.torch._layers import (
    Constants,
    LogitAdjustment,
    ProbabilityModule,
    RowAdjustment,
)


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
    altnorm.alternating_normalization : The formula, and the paper it is from.

    Notes
    -----
    Buffers and computation are float64 and stay so under ``.half()`` or ``.to(dtype)``; the output
    has the dtype of the input. A device without float64 (MPS) cannot be used.

    The gradient with respect to a probability of exactly zero is zero.

    A state dict holds reference, prior and weights, not the settings. It may come from a module
    with another number of reference rows or classes.

    Examples
    --------
    >>> import torch
    >>> from altnorm.deploy.torch import AlternatingNorm
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
        )
        rows, offsets, n_labels = self.operators.check_reference(
            _host(reference), _host(offsets), self.kind
        )
        buffers = {
            "reference": rows,
            "prior": self.kind.count_prior(None, n_labels, _host(prior), None),
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
            :func:`altnorm.deploy.torch.from_normalizer`.
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
        >>> from altnorm.deploy.torch import AlternatingNorm
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
                "Use altnorm.deploy.torch.from_normalizer.",
                value=type(normalizer).__name__,
                code="not_supported",
            )
        settings: dict[str, Any] = {"multilabel": stages.kind.multilabel, "input": stages.input}
        if chosen is None:  # no ambiguity exceeds 1
            share = stages.kind.even_share(stages.n_classes)
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
        doubt = self.operators.ambiguity(p, self.k_max)
        active = self.adjustment.active
        if self.soft:
            share = torch.sigmoid((doubt - self.settings.threshold) / self.soft) * active
            return p + share * (self.adjustment(p) - p)
        in_doubt = (doubt > self.settings.threshold) & active
        if torch.compiler.is_compiling():  # a graph has one shape, so it computes every row
            return torch.where(in_doubt, self.adjustment(p), p)
        return self.operators.replace(p, in_doubt, self.adjustment)

    def extra_repr(self) -> str:
        """Settings, for `repr`."""
        settings = {
            **self.settings._asdict(),
            "multilabel": self.multilabel,
            "input": self.input,
        }
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
            adjustment = LogitAdjustment(plan, self.operators)
        self.adjustment = adjustment.to(self.reference.device)


def _host(values: Any) -> Any:
    """Return an array in host memory, floating-point in double precision."""
    if values is None:
        return None
    array = to_numpy(values) if is_array_api_obj(values) else np.asarray(values)
    return array.astype(np.float64) if array.dtype.kind == "f" else array

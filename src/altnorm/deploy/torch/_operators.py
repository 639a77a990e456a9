"""What differs between one class and several labels per row, in PyTorch operators."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from altnorm._base.errors import InputError
from altnorm._base.validation import check_proba
from altnorm.method.kinds import LabelKind

# The smallest positive double: it changes no probability but 0.
_SMALLEST = 5e-324


def positive_log(p: Tensor) -> Tensor:
    """Logarithm with a finite value, and a gradient of zero, at zero."""
    return torch.log(p.clamp(min=_SMALLEST))


class RowOperators:
    """Each row is one distribution over classes."""

    @staticmethod
    def from_logits(logits: Tensor) -> Tensor:
        """Softmax."""
        return torch.softmax(logits, dim=1)

    @staticmethod
    def ambiguity(p: Tensor, k_max: int) -> Tensor:
        """Largest top-k entropy of each row, as a column."""
        k_max = min(k_max, p.shape[1])
        top = torch.topk(p, k_max, dim=1).values
        mass = torch.cumsum(top, dim=1)[:, 1:]
        plogp = torch.cumsum(top * positive_log(top), dim=1)[:, 1:]
        base = torch.log(torch.arange(2, k_max + 1, dtype=p.dtype, device=p.device))
        return ((torch.log(mass) - plogp / mass) / base).amax(dim=1, keepdim=True).clamp(0, 1)

    @staticmethod
    def replace(p: Tensor, in_doubt: Tensor, adjust: Callable[[Tensor], Tensor]) -> Tensor:
        """Return the rows with those in doubt adjusted; the others are not even computed."""
        (rows,) = torch.nonzero(in_doubt[:, 0], as_tuple=True)
        return p.index_copy(0, rows, adjust(p[rows]))

    @staticmethod
    def log_odds(p: Tensor) -> Tensor:
        """Log-odds of the first of two classes, as a column."""
        log_p = positive_log(p)
        return log_p[:, :1] - log_p[:, 1:]

    @staticmethod
    def from_log_odds(z: Tensor) -> Tensor:
        """Rows of two classes."""
        return torch.sigmoid(torch.cat([z, -z], dim=1))

    @staticmethod
    def cooled(p: Tensor, touched: Tensor, temperatures: Tensor) -> Tensor:
        """As :func:`altnorm.adjuster.calibration.cool`; `touched` is one boolean per entry."""
        row = touched.any(dim=1, keepdim=True)
        temperature = torch.where(row, temperatures[0], temperatures[1])
        has = p > 0
        # Not log(0): its gradient would be infinite, and NaN after the mask.
        log_p = torch.log(torch.where(has, p, 1.0))
        return torch.softmax(torch.where(has, log_p / temperature, -math.inf), dim=1)

    @staticmethod
    def with_decisions(final: Tensor, adjusted: Tensor) -> Tensor:
        """As :func:`altnorm.adjuster.calibration.keep_decisions`, for the class that leads."""
        decided = adjusted.argmax(dim=1, keepdim=True)
        n_classes = final.shape[1]
        hair = 4 * torch.finfo(final.dtype).eps
        p = final.to(torch.float64)
        own = torch.arange(n_classes, device=p.device) == decided
        others = torch.where(own, -1.0, p)
        kept = p.gather(1, decided)
        ahead = others.sort(dim=1, descending=True).values[:, : n_classes - 1]
        sizes = torch.arange(2, n_classes + 1, device=p.device)
        # The largest mean of the classes ahead and the decided one: the level at which they meet.
        level = ((kept + ahead.cumsum(dim=1)) / sizes).amax(dim=1, keepdim=True)
        lowered = torch.minimum(others, level * (1 - hair))
        raised = kept + (others - lowered).sum(dim=1, keepdim=True)
        lost = final.argmax(dim=1, keepdim=True) != decided
        return torch.where(lost, torch.where(own, raised, lowered).to(final.dtype), final)

    @staticmethod
    def check_reference(
        reference: np.ndarray, offsets: np.ndarray | None, kind: LabelKind
    ) -> tuple[np.ndarray, np.ndarray | None, int]:
        """Return clean reference rows, no offsets, and the number of classes."""
        rows = check_proba(reference, "reference")
        return rows, None, rows.shape[1]


class EntryOperators:
    """Each entry is a yes/no probability of its own."""

    @staticmethod
    def from_logits(logits: Tensor) -> Tensor:
        """Logistic function."""
        return torch.sigmoid(logits)

    @staticmethod
    def ambiguity(p: Tensor, k_max: int) -> Tensor:
        """Entropy of yes/no probabilities, in bits."""
        return (p * positive_log(p) + (1 - p) * positive_log(1 - p)) / -math.log(2)

    @staticmethod
    def replace(p: Tensor, in_doubt: Tensor, adjust: Callable[[Tensor], Tensor]) -> Tensor:
        """Return the entries with those in doubt adjusted."""
        return torch.where(in_doubt, adjust(p), p)

    @staticmethod
    def log_odds(p: Tensor) -> Tensor:
        """Log-odds of yes."""
        return positive_log(p) - positive_log(1 - p)

    @staticmethod
    def from_log_odds(z: Tensor) -> Tensor:
        """Probabilities of yes."""
        return torch.sigmoid(z)

    @staticmethod
    def cooled(p: Tensor, touched: Tensor, temperatures: Tensor) -> Tensor:
        """As :func:`altnorm.adjuster.calibration.cool`."""
        temperature = torch.where(touched, temperatures[0], temperatures[1])
        inside = (p > 0) & (p < 1)
        # At 0 and 1 the log-odds are infinite, and so would be their gradients.
        odds = torch.logit(torch.where(inside, p, 0.5))
        return torch.where(inside, torch.sigmoid(odds / temperature), p)

    @staticmethod
    def with_decisions(final: Tensor, adjusted: Tensor) -> Tensor:
        """Return `final`: a temperature leaves every entry on its side of one half."""
        return final

    @staticmethod
    def check_reference(
        reference: np.ndarray, offsets: np.ndarray | None, kind: LabelKind
    ) -> tuple[np.ndarray, np.ndarray | None, int]:
        """Return clean entries label after label, where each begins, and the number of labels."""
        if reference.ndim == 2 and offsets is None:
            n_parts = len(kind.parts(reference.shape[1]))
            reference = reference.T.reshape(-1)
            offsets = np.arange(n_parts + 1) * (reference.size // n_parts)
        if reference.ndim != 1 or offsets is None or offsets[-1] != reference.size:
            raise InputError(
                "For multi-label problems `reference` must have one column per label, or be a "
                "vector with `offsets` that end at its length",
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
        return reference, np.asarray(offsets, dtype=np.int64), len(offsets) - 1


def operators_for(kind: LabelKind) -> type[RowOperators] | type[EntryOperators]:
    """Return the operators for a kind of labels."""
    return EntryOperators if kind.is_multilabel else RowOperators

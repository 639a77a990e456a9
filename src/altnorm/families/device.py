"""The likelihood of a temperature and class biases where the rows are on a device."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from altnorm._base.arrays import (
    Array,
    array_namespace,
    as_array,
    block_slices,
    device,
    exp_in_place,
    move,
    take_entries,
    take_rows,
    to_numpy,
    widest_float,
)

_LOG_ZERO = -1e6  # as for `Likelihood`


@dataclass(frozen=True)
class DeviceLikelihood:
    """As `Likelihood`: rows stay on their device, and what an optimiser asks for is in NumPy."""

    log_p: Array  # (n, m) shifted so that each row's maximum is 0
    weight: Array  # (n,)
    label: float  # weighted sum of the labels' log-probabilities
    counts: np.ndarray  # (m,) total weight of the rows of each class

    @classmethod
    def build(
        cls, log_p: Array, codes: np.ndarray, weight: np.ndarray, eps: float, *, shift: np.ndarray
    ) -> DeviceLikelihood:
        """Prepare clean data; a label of probability 0 counts as one of probability `eps`."""
        used = np.flatnonzero(weight > 0)
        codes, weight = codes[used], weight[used]
        xp, m = array_namespace(log_p), log_p.shape[1]
        log_p = xp.astype(take_rows(log_p, used), widest_float(log_p), copy=False)
        log_p = log_p + as_array(shift, log_p)
        columns = move(codes, log_p)[:, None]
        is_label = xp.arange(m, device=device(log_p))[None, :] == columns
        impossible = is_label & (log_p == -math.inf)
        log_p = xp.where(impossible, xp.full_like(log_p, math.log(eps)), log_p)
        log_p = xp.clip(log_p - xp.max(log_p, axis=1, keepdims=True), min=_LOG_ZERO)
        own = take_entries(log_p, xp.arange(codes.size, device=device(log_p)), columns)
        label = float(weight @ to_numpy(own)[:, 0])
        return cls(log_p, as_array(weight, log_p), label, np.bincount(codes, weight, minlength=m))

    def value_and_grad(self, slope: float, bias: np.ndarray) -> tuple[float, float, np.ndarray]:
        """Return the loss and its derivatives by slope and by bias."""
        tilt = as_array(np.exp(bias), self.log_p)
        value, by_slope = -slope * self.label - self.counts @ bias, -self.label
        seen = np.zeros(bias.size)
        for log_p, weight, power in self._powers(slope):
            xp, total = array_namespace(power), power @ tilt
            share = weight / total
            value += float(xp.sum(weight * xp.log(total)))
            seen += to_numpy(share @ power)
            power *= log_p
            by_slope += float(xp.sum(share * (power @ tilt)))
        return float(value), float(by_slope), np.exp(bias) * seen - self.counts

    def curvature(self, slope: float, bias: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the second derivatives by slope and by each bias (the Hessian's diagonal)."""
        tilt = as_array(np.exp(bias), self.log_p)
        by_slope, by_bias = 0.0, np.zeros(bias.size)
        for log_p, weight, power in self._powers(slope):
            xp = array_namespace(power)
            p = power * tilt
            p /= xp.sum(p, axis=1, keepdims=True)
            by_bias += to_numpy(weight @ (p * (1 - p)))
            p *= log_p
            mean = xp.sum(p, axis=1)
            by_slope += float(xp.sum(weight * (xp.sum(p * log_p, axis=1) - mean**2)))
        return by_slope, by_bias

    def slope_derivatives(self, slope: float) -> tuple[float, float]:
        """Return the first and second derivative by the slope, without biases."""
        first, second = -self.label, 0.0
        for log_p, weight, power in self._powers(slope):
            xp = array_namespace(power)
            total = xp.sum(power, axis=1)
            power *= log_p
            mean = xp.sum(power, axis=1) / total
            power *= log_p
            first += float(xp.sum(weight * mean))
            second += float(xp.sum(weight * (xp.sum(power, axis=1) / total - mean**2)))
        return first, second

    def _powers(self, slope: float) -> Iterator[tuple[Array, Array, Array]]:
        """Yield blocks of rows, their weights, and ``exp(slope * log_p)``."""
        n, m = self.log_p.shape
        for rows in block_slices(n, 32 * m, self.log_p, cached=True):
            log_p = self.log_p[rows, :]
            yield log_p, self.weight[rows], exp_in_place(slope * log_p)

"""The adjustment in ONNX operators; notation as in :mod:`altnorm.method.scaling`, all in double."""

from __future__ import annotations

import math

import numpy as np

from altnorm.deploy.onnx._graph import Graph, Value
from altnorm.deploy.plan import BinaryPlan, Curve, RowPlan
from altnorm.method.scaling import Anchor

_TINY = float(np.finfo(np.float64).smallest_normal) ** 0.9  # a product below may have lost terms


def ambiguity(g: Graph, p: Value, k_max: int) -> Value:
    """Largest top-k entropy of each row, as a column."""
    top = g.top_k(p, k_max)
    plogp = g("Where", top > 0.0, top * g.log(top), 0.0)
    running = np.triu(np.ones((k_max, k_max)))[:, 1:]  # sums of the first 2, 3, .. entries
    mass = top @ running
    nats = g.log(mass) - (plogp @ running) / mass
    return g("Min", g.reduce_max(nats / np.log(np.arange(2.0, k_max + 1))), 1.0)


def binary_ambiguity(g: Graph, p: Value) -> Value:
    """Entropy of yes/no probabilities, in bits."""
    parts = [g("Where", x > 0.0, x * g.log(x), 0.0) for x in (p, 1.0 - p)]
    return (parts[0] + parts[1]) / -math.log(2)


def adjusted_where(g: Graph, p: Value, doubt: Value, plan: RowPlan) -> Value:
    """Rows in doubt adjusted; the products are too costly to be done for the others, too."""
    rows = g.indices(g("Squeeze", doubt, np.array([1])))
    adjusted = adjusted_rows(g, g("Gather", p, rows), plan)
    return g("ScatterND", p, g("Unsqueeze", rows, np.array([1])), adjusted)


def adjusted_rows(g: Graph, p: Value, plan: RowPlan) -> Value:
    """Every row adjusted; a row with only classes of prior zero as it was."""
    b = p if plan.kept is None else g("Gather", p, plan.kept, axis=1)
    log_b = g.log(b)
    for i in range(plan.repeats):
        log_b = log_b if i == 0 else log_b - logsumexp(g, log_b)
        log_b = plan.log_q - softplus(g, _gap(g, g.constant(plan.log_s), log_b * plan.alpha))
    if plan.anchors:
        log_b = iterated(g, log_b, plan)
    adjusted = g("Softmax", log_b, axis=1)
    if plan.kept is None:
        return adjusted
    spread = np.eye(plan.n_classes)[plan.kept]
    return g("Where", g.reduce_max(b) > 0.0, adjusted @ spread, p)


def iterated(g: Graph, log_b: Value, plan: RowPlan) -> Value:
    """Logs of all rows after the last iteration, by the scaling form."""
    first, *rest = plan.anchors
    before = g.constant(first.log_a)
    log_b, log_c = next_rows(g, log_b, None, g.constant(first.log_p), first, plan)
    for anchor in rest:
        after = g.constant(anchor.log_a)
        supported = anchor.log_p > -math.inf
        masked = g("Where", supported, log_c, -math.inf)
        every = np.ones(anchor.log_r.size, dtype=bool)
        log_sums = log_product(g, masked, before, by_row=True, supported=every)
        weight = anchor.log_r - log_sums * plan.alpha
        log_p = log_product(g, weight, after, by_row=False, supported=supported)
        log_b, log_c = next_rows(g, log_b, log_c, log_p, anchor, plan)
        before = after
    return log_b


def next_rows(
    g: Graph, log_b: Value, log_c: Value | None, log_p: Value, anchor: Anchor, plan: RowPlan
) -> tuple[Value, Value]:
    """One iteration of the rows, given the reference's share of their columns."""
    relative = log_b if log_c is None else log_b - log_c
    own = relative * plan.alpha + anchor.log_c
    others = log_p
    if plan.log_mass is not None:
        smoothing = plan.log_mass + plan.log_q + anchor.log_c
        shifted = g.constant(smoothing) if log_c is None else smoothing - log_c * plan.alpha
        others = g("Max", others, shifted) + bend(g, others - shifted)
    gap = _gap(g, others, own)
    log_b = plan.log_q - softplus(g, gap)
    total = g("Max", others, own) + bend(g, gap)
    log_c = g("Where", anchor.log_p > -math.inf, plan.log_q - total, 0.0)
    return log_b - logsumexp(g, log_b), log_c


def log_product(
    g: Graph, left: Value, log_right: Value, *, by_row: bool, supported: np.ndarray
) -> Value:
    """``log(exp(left) @ exp(log_right))``, or with its transpose where `by_row`.

    The product is taken linearly; entries that underflowed are computed once more from the logs,
    row by row. Where there are none, which is the rule, that costs nothing.
    """
    shift = g.reduce_max(left)
    product = g("Gemm", g("Exp", left - shift), g("Exp", log_right), transB=int(by_row))
    linear = g.log(product) + shift
    lost = g("And", g("Less", product, _TINY), supported)
    some = g.reduce_max(g("Where", lost, 1.0, 0.0)) > 0.0
    rows = g.indices(g("Squeeze", some, np.array([1])))

    def repaired(body: Graph, i: Value) -> Value:
        row = body("Gather", rows, i)
        columns = body.indices(body("Gather", lost, row))
        terms = body("Gather", log_right, columns, axis=0 if by_row else 1)
        terms = terms if by_row else body("Transpose", terms, perm=[1, 0])
        exact = logsumexp(body, body("Gather", left, row) + terms)
        exact = body("Squeeze", exact, np.array([1]))
        at = body("Unsqueeze", columns, np.array([1]))
        return body("ScatterND", body("Gather", linear, row), at, exact)

    exact = g.stack_rows(g("Size", rows), supported.size, repaired)
    return g("ScatterND", linear, g("Unsqueeze", rows, np.array([1])), exact)


def logsumexp(g: Graph, x: Value) -> Value:
    """Log of the sum of exponentials of each row, which has a finite entry, as a column."""
    top = g.reduce_max(x)
    return top + g.log(g.sum(g("Exp", x - top)))


def bend(g: Graph, gap: Value) -> Value:
    """``log(1 + exp(-|gap|))``."""
    return g.log(g("Exp", -g("Abs", gap)) + 1.0)


def softplus(g: Graph, gap: Value) -> Value:
    """``log(1 + exp(gap))``."""
    return g("Max", gap, 0.0) + bend(g, gap)


def _gap(g: Graph, others: Value, own: Value) -> Value:
    """``others - own``, infinite where the row itself has probability zero."""
    return g("Where", own > -math.inf, others - own, math.inf)


def adjusted_logits(g: Graph, z: Value, plan: BinaryPlan) -> Value:
    """Adjusted logits of yes."""
    if plan.curve is not None:
        inside = g("Min", g("Max", z, -plan.reach), plan.reach)
        return on_curve(g, inside, plan.curve)
    kept = []
    for side, log_s in zip((z, -z), plan.log_s, strict=True):
        log_p = g("Min", side, 0.0) - bend(g, z)
        kept.append(softplus(g, _gap(g, g.constant(log_s), log_p * plan.alpha)))
    return (plan.log_q[0] - kept[0]) - (plan.log_q[1] - kept[1])


def on_curve(g: Graph, z: Value, curve: Curve) -> Value:
    """Value of the tabulated functions: a binary search for the piece, then its polynomial."""
    at, last, left = (g.constant(x) for x in (curve.first, curve.last, curve.left))
    step = 1 << int(np.max(curve.last - curve.first)).bit_length()
    while step > 1:
        step //= 2
        ahead = g("Min", at + np.array(step), last)
        at = g("Where", g("Greater", g("Gather", left, ahead), z), at, ahead)
    s = (z - g("Gather", curve.center, at)) * g("Gather", curve.slope, at)
    *lower, result = (g("Gather", c, at) for c in curve.coefficients)
    for coefficient in reversed(lower):
        result = result * s + coefficient
    return result

"""One small network trained with and without the module, several times.

Scikit-learn's handwritten digits, made noisy and imbalanced, and a network with one hidden layer.
The module's reference are the network's own predictions on validation rows, taken anew in every
epoch, so the layer follows the network.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn

from altnorm import AlternatingNormalizer, ambiguity
from altnorm.torch import from_normalizer

N_CLASSES = 10
SOFTMAX = "softmax"
WEIGHTED = "class-weighted loss"
AT_TEST = "module at test only"
TARGET_BOTH = "module in training (target prior) and at test"
TARGET_ONLY = "module in training (target prior) only"
TRAINING_BOTH = "module in training (training prior) and at test"
TRAINING_ONLY = "module in training (training prior) only"


@dataclass(frozen=True)
class Design:
    """Settings of the study."""

    n_seeds: int = 20
    epochs: int = 60
    hidden: int = 64
    noise: float = 4.0  # standard deviation, on pixels from 0 to 16
    imbalance: float = 10.0  # most frequent over rarest class
    alpha: float = 1.0
    depth: int = 2
    threshold: float = 0.5
    soft: float = 0.05


class Digits(NamedTuple):
    """One draw of the data: imbalanced training and validation rows, balanced test rows."""

    train_x: Tensor
    train_y: Tensor
    validation_x: Tensor
    test_x: Tensor
    test_y: Tensor
    frequencies: Tensor  # of the classes in training


class Record(NamedTuple):
    """One arm of one run, on one kind of test."""

    seed: int
    target: str
    arm: str
    accuracy: float
    log_loss: float
    in_doubt: float


def draw_digits(seed: int, design: Design) -> Digits:
    """Noisy digits; which classes are rare depends on the seed."""
    rng = np.random.default_rng(seed)
    x, y = load_digits(return_X_y=True)
    x = (x + design.noise * rng.normal(size=x.shape)) / 16 - 0.5
    order = rng.permutation(len(y))
    test, pool = order[:700], order[700:]
    keep = design.imbalance ** -(rng.permutation(N_CLASSES) / (N_CLASSES - 1))
    parts: tuple[list[int], list[int]] = ([], [])
    for label in range(N_CLASSES):
        rows = pool[y[pool] == label]
        rows = rows[: round(keep[label] * 100)]
        cut = round(2 * len(rows) / 3)
        parts[0].extend(rows[:cut])
        parts[1].extend(rows[cut:])
    train, validation = (np.array(part) for part in parts)
    frequencies = np.bincount(y[train], minlength=N_CLASSES) / len(train)
    as_x, as_y = torch.tensor(x, dtype=torch.float32), torch.tensor(y)
    return Digits(
        as_x[train],
        as_y[train],
        as_x[validation],
        as_x[test],
        as_y[test],
        torch.tensor(frequencies),
    )


class SoftLayer(nn.Module):
    """Alternating normalization of logits with a soft threshold, so that gradients see it, too.

    The output is the mean of the adjusted row and the row as it was; the weight of the former is
    the logistic function of how far the row's ambiguity is above the threshold.
    """

    def __init__(self, reference: Tensor, prior: Tensor, design: Design) -> None:
        super().__init__()
        normalizer = AlternatingNormalizer(
            design.alpha, design.depth, threshold=0.0, prior=prior.numpy(), reference="all"
        )
        self.adjusted = from_normalizer(normalizer.fit(reference.numpy()))
        self.design = design

    def forward(self, logits: Tensor) -> Tensor:
        """Return probabilities."""
        p = torch.softmax(logits.double(), dim=1)
        above = (ambiguity(p) - self.design.threshold) / self.design.soft
        mixed = p + torch.sigmoid(above)[:, None] * (self.adjusted(p) - p)
        return mixed.to(logits.dtype)


def make_layer(network: nn.Module, data: Digits, prior: Tensor, design: Design) -> SoftLayer:
    """Return the module, with the network's present predictions on validation rows as reference."""
    with torch.no_grad():
        reference = torch.softmax(network(data.validation_x).double(), dim=1)
    return SoftLayer(reference, prior, design)


def train(
    data: Digits,
    design: Design,
    seed: int,
    *,
    prior: Tensor | None = None,
    weight: Tensor | None = None,
) -> nn.Module:
    """Train a network; with a `prior`, through the module, after a quarter of the epochs."""
    torch.manual_seed(seed)
    network = nn.Sequential(nn.Linear(64, design.hidden), nn.ReLU(), nn.Linear(design.hidden, 10))
    optimizer = torch.optim.Adam(network.parameters(), lr=3e-3, weight_decay=1e-4)
    loss = nn.NLLLoss(weight=None if weight is None else weight.float())
    for epoch in range(design.epochs):
        last: nn.Module = nn.LogSoftmax(dim=1)
        if prior is not None and epoch >= design.epochs // 4:
            last = nn.Sequential(make_layer(network, data, prior, design), _Log())
        for rows in torch.randperm(len(data.train_y)).split(64):
            optimizer.zero_grad()
            loss(last(network(data.train_x[rows])), data.train_y[rows]).backward()
            optimizer.step()
    return network


class _Log(nn.Module):
    def forward(self, p: Tensor) -> Tensor:
        return torch.log(p.clamp(min=1e-12))


def run(seed: int, design: Design) -> list[Record]:
    """All arms of one draw, tested on balanced rows and on rows weighted as in training."""
    data = draw_digits(seed, design)
    uniform = torch.full((N_CLASSES,), 1 / N_CLASSES, dtype=torch.float64)
    plain = train(data, design, seed)
    inside = train(data, design, seed, prior=data.frequencies)
    targeted = train(data, design, seed, prior=uniform)
    weighted = train(data, design, seed, weight=uniform / data.frequencies)
    arms = [
        (SOFTMAX, plain, False),
        (AT_TEST, plain, True),
        (TRAINING_BOTH, inside, True),
        (TRAINING_ONLY, inside, False),
    ]
    shifted = [
        (WEIGHTED, weighted, False),
        (TARGET_BOTH, targeted, True),
        (TARGET_ONLY, targeted, False),
    ]
    tests = (("balanced", uniform, arms + shifted), ("as trained", data.frequencies, arms))
    records = []
    for target, prior, tried in tests:
        for name, network, with_module in tried:
            layer = make_layer(network, data, prior, design) if with_module else None
            records.append(evaluate(network, layer, data, prior, design, (seed, target, name)))
    return records


def evaluate(
    network: nn.Module,
    layer: SoftLayer | None,
    data: Digits,
    prior: Tensor,
    design: Design,
    name: tuple[int, str, str],
) -> Record:
    """Score on test rows that are weighted to have the class frequencies `prior`."""
    with torch.no_grad():
        logits = network(data.test_x).double()
        before = torch.softmax(logits, dim=1)
        p = before if layer is None else layer(logits)
    counts = torch.bincount(data.test_y, minlength=N_CLASSES)
    weight = (prior / counts)[data.test_y]
    weight = weight / weight.sum()
    right = (p.argmax(dim=1) == data.test_y).double()
    label = p[torch.arange(len(p)), data.test_y].clamp(min=1e-12)
    doubt = (ambiguity(before) > design.threshold).double()
    return Record(
        *name, float(weight @ right), float(-weight @ torch.log(label)), float(weight @ doubt)
    )

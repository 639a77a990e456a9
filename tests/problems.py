"""Predictions with labels that several test files draw, and the settings that they try on them."""

import numpy as np
from scipy.special import expit, softmax

MODES = ("pairs", "labelwise")
# A grid for the search that is done in a moment.
SMALL = {
    "alphas": (0.3, 0.6, 1.0, 2.0, 4.0),
    "depths": (1, 2),
    "thresholds": (0.25, 0.75),
    "smoothings": (0.0, 0.1),
}


def draw(n=60, m=4, seed=0, scale=2.0):
    """Predictions, some sure and some in doubt, and labels."""
    rng = np.random.default_rng(seed)
    y = rng.integers(m, size=n)
    y[:m] = np.arange(m)
    return softmax(scale * (rng.normal(size=(n, m)) + np.eye(m)[y]), axis=1), y


def planted(n=800, seed=0):
    """A classifier that favours class 0 far beyond its frequency."""
    rng = np.random.default_rng(seed)
    y = rng.choice(4, size=n, p=[0.1, 0.2, 0.3, 0.4])
    z = rng.normal(size=(n, 4)) + 1.8 * np.eye(4)[y] + [1.5, 0, 0, -0.5]
    return softmax(z, axis=1), y


def planted_labels(n=500, m=6, seed=0):
    """A multi-label classifier that says yes too rarely, more so for some labels."""
    rng = np.random.default_rng(seed)
    z = 1.5 * rng.normal(size=(n, m)) - 1
    y = rng.random((n, m)) < expit(2 * z + np.linspace(1.0, 3.0, m))
    return expit(z), y.astype(int)


def favouring(n=300, m=4, seed=0):
    """Logits that favour some classes, and labels."""
    rng = np.random.default_rng(seed)
    y = rng.integers(m, size=n)
    return rng.normal(size=(n, m)) + 1.5 * np.eye(m)[y] + np.linspace(0, 1, m), y


def bold_labels(n=300, m=4, seed=0):
    """Log-odds that are too bold by a factor, and too low by an amount, for each label."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(-1, 1.5, (n, m))
    bold, low = rng.uniform(0.7, 2, m), rng.uniform(0, 2, m)
    return truth * bold - low, rng.random((n, m)) < expit(truth)


def problem(seed=0, n=300, m=4, shift=0.5):
    """Labels, biased probabilities, and the same without the bias."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, m, n)
    logit = rng.normal(size=(n, m)) + 1.5 * np.eye(m)[y]
    pair = [np.exp(logit + b) for b in (shift * np.linspace(-1, 1, m), 0)]
    return y, *(p / p.sum(axis=1, keepdims=True) for p in pair)


def calibrated(n=400, seed=0, m=3):
    """Probabilities that are right: labels are drawn from them."""
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.linspace(0.4, 1.2, m), n)
    y = (proba.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    y[:m] = np.arange(m)
    return proba, y


def confused(n=1500, seed=0):
    """Class 2 looks like class 1 with class 0 improbable: a confusion that no factor repairs."""
    rng = np.random.default_rng(seed)
    y = rng.integers(4, size=n)
    z = 2.0 * np.eye(4)[y] + rng.normal(size=(n, 4))
    two = y == 2
    z[two, 1] += 2.5
    z[two, 0] -= 3.0
    return softmax(z, axis=1), y


def values_of(decision, truth, decided):
    """What each row's decision is worth, by the table of what decisions are worth."""
    table = decision.table(person=True)
    if table.ndim == 2:
        return table[truth, decided]
    return table[np.arange(len(table)), truth.astype(int), decided].sum(axis=1)

"""Real predictions that ship with the package."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from altnorm.io.predictions import Predictions

DEMO_FILE = Path(__file__).parent / "data" / "clinc150_naive_bayes.npz"
# Steps in log(1 - log p): 2.5 % of p near 1, 25 % of p near exp(-9); larger steps for the rest.
RESOLUTION = 40.0


class Demo(NamedTuple):
    """Predictions of naive Bayes on CLINC150, and the queries of the test rows."""

    validation: Predictions
    test: Predictions
    queries: list[str]


def load_demo() -> Demo:
    """Load the demonstration: which of 150 intents a query to an assistant has.

    Multinomial naive Bayes on word counts was trained on the imbalanced split of CLINC150
    (Larson et al. 2019, CC BY 3.0), where some intents have four times as many training queries
    as others; validation and test are balanced. Probabilities were rounded to a byte each.

    Returns
    -------
    Demo
        Predictions for 3,000 validation and 4,500 test queries, with labels, and the text of
        the test queries.

    References
    ----------
    .. [1] Larson et al. An Evaluation Dataset for Intent Classification and Out-of-Scope
           Prediction. EMNLP 2019.

    Examples
    --------
    >>> from altnorm import load_demo
    >>> demo = load_demo()
    >>> demo.test.proba.shape
    (4500, 150)
    >>> demo.queries[0], str(demo.test.labels[0])
    ('how would you say fly in italian', 'translate')
    """
    with np.load(DEMO_FILE, allow_pickle=False) as stored:
        classes = stored["classes"]
        validation, test = (
            Predictions(
                decode_log_proba(stored[f"{split}_codes"]),
                classes,
                classes[stored[f"{split}_labels"]],
            )
            for split in ("val", "test")
        )
        queries = stored["test_queries"].tobytes().decode().split("\n")
    return Demo(validation, test, queries)


def decode_log_proba(codes: np.ndarray) -> np.ndarray:
    """Turn the bytes of the shipped file, rounded log-probabilities, into probabilities."""
    proba = np.exp(-np.expm1(codes / RESOLUTION))
    return proba / proba.sum(axis=1, keepdims=True)

"""Gains that rest on what leaving a row out takes from its own class.

Leave out one row at a time, and each is predicted by a fit that takes its class for a little rarer
than it is: of n rows by 1/n of its log-probability, or a few times as much. A classifier of few
features leaves that where bent lines read it, and with it the labels.
"""

from __future__ import annotations

import numpy as np

from altnorm._base.arrays import quiet
from altnorm.adjuster.choice import MixtureTrial
from altnorm.estimator.correction import EAGER
from altnorm.evidence.verdict import Caution

GIVEN_BACK = 2.0  # times 1/n
MOST = 0.5  # share of the rows
KEPT = 1 / 3  # of a gain; of honest ones that predictions of tiny differences bring, more is kept
MOST_ROWS = 4096  # nobody fits so many times


def find_left_out(trial: MixtureTrial) -> Caution | None:
    """Give back to each row's class what leaving the row out took, and see if a gain is lost.

    To raise the true class is to tell the label. A correction that makes it less probable then, in
    most rows, and no longer gains, has learnt the labels from what was taken.
    """
    data, score = trial.evidence.data, trial.evidence.data.purpose.score
    if not trial.accepted or data.kind.is_multilabel or len(data.proba) > MOST_ROWS:
        return None
    model, mixture = trial.mixture.fit()
    stage, decision = mixture.stage(model), trial.decision()
    both_ways = (data.proba, _give_back(data.proba, data.labels))
    with quiet(np):  # a logarithm of 0 is minus infinity
        usual, raised = (np.asarray(stage(rows, EAGER)) for rows in both_ways)
    of_label = np.arange(len(data.labels)), data.labels
    if np.mean(raised[of_label] < usual[of_label]) <= MOST:
        return None
    before = score(data.labels, trial.scored[0], data.weight)
    gain, kept = (
        float(score(data.labels, p if score.needs == "proba" else decision.codes(p), data.weight))
        - before
        for p in (usual, raised)
    )
    if kept >= KEPT * gain:
        return None
    text = (
        "Labels can be told from the predictions, backwards: where the true class is a little more "
        "probable, the gain is gone. Do not leave out single rows, or groups of one class, when "
        "predicting out of fold; take few folds, such as cv=5."
    )
    return Caution("told_backwards", text, kept - gain, serious=True)


def _give_back(proba: np.ndarray, labels: np.ndarray) -> np.ndarray:
    factor = np.exp(GIVEN_BACK / np.bincount(labels)[labels])
    raised = proba.astype(np.float64)
    raised[np.arange(len(labels)), labels] *= factor
    return np.asarray(raised / raised.sum(axis=1, keepdims=True))

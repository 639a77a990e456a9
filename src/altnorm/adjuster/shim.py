from typing import Any, NamedTuple

from altnorm._base.arrays import entries_at, log_softmax, softmax
from altnorm.families.matrix import matrix_path as old_matrix
from altnorm.families.shrunk import bias_path as old_bias


class Scored(NamedTuple):
    fit: Any

    def proba(self, rows):
        return softmax(self.fit.scores(rows))

    def label_log_p(self, rows, labels):
        return entries_at(log_softmax(self.fit.scores(rows)), labels)


def bias_path(rows, labels, weight, strengths):
    for f in old_bias("labels", strengths, rows.copy(), labels, weight, None):
        yield Scored(f)


def matrix_path(rows, labels, weight, strengths, penalty="ridge"):
    for f in old_matrix(rows, labels, weight, strengths, penalty):
        yield Scored(f)

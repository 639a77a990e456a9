"""Rows and labels as an Adjuster reads them."""

from altnorm import Adjuster
from altnorm.adjuster.validation import read_validation


def read(proba, y, sample_weight=None, **settings):
    return read_validation(Adjuster(**settings), proba, y, sample_weight)[0]

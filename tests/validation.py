"""Rows and labels as an Adjuster reads them."""

from altnorm import Adjuster
from altnorm.adjuster.validation import read_validation
from altnorm.estimator.reading import read_training


def read(proba, y, **settings):
    adjuster = Adjuster(**settings)
    training = read_training(adjuster, proba, y, None, None, gaps=True)
    adjuster.classes_ = training.classes
    return read_validation(adjuster, training, None)

"""What a fitted model's verdict says besides, for tests of it."""

import numpy as np

from altnorm import Adjuster

NAMES = np.array(["ant", "bee", "cat", "dog"])


def codes(fitted):
    return {caution.code for caution in fitted.verdict_.cautions}


def one(fitted, code):
    (caution,) = (c for c in fitted.verdict_.cautions if c.code == code)
    return caution


def bias(**settings):
    return Adjuster(("bias",), **settings)

"""InputError: a sentence for people, fields for programs, also across processes."""

import pickle
import warnings

import numpy as np
import pytest

import altnorm
from altnorm._base.errors import InputTypeError, Place

WHOLE = altnorm.InputError(
    "Each row must sum to 1",
    "2 of 9 rows do not",
    "Divide.",
    value=1.3,
    code="row_sum",
    place=Place(4, None, "sum 1.3"),
)
SENTENCE = "Each row must sum to 1; 2 of 9 rows do not, the first is row 4 (sum 1.3). Divide."
FIELDS = ("rule", "offender", "remedy", "value", "code", "place")


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (WHOLE, SENTENCE),
        (altnorm.InputError("`k` must be 1", "it is 2"), "`k` must be 1; it is 2."),
        (altnorm.InputError("No rows", remedy="Pass some."), "No rows. Pass some."),
        (altnorm.InputError("A whole sentence."), "A whole sentence."),
        (WHOLE.replace(place=None, remedy=""), "Each row must sum to 1; 2 of 9 rows do not."),
    ],
)
def test_the_sentence_is_made_of_the_fields(error, sentence):
    assert str(error) == sentence


@pytest.mark.parametrize("kind", [altnorm.InputError, InputTypeError])
def test_pickling_keeps_class_sentence_and_fields(kind):
    error = kind(*(getattr(WHOLE, name) for name in FIELDS[:3]), value=[1], code="x")
    back = pickle.loads(pickle.dumps(error))
    assert type(back) is kind
    assert str(back) == str(error)
    assert [getattr(back, name) for name in FIELDS] == [getattr(error, name) for name in FIELDS]
    assert isinstance(back, ValueError)


def test_warnings_point_at_the_caller():
    """Whatever lies in between: functions, estimators, scikit-learn's wrappers."""
    dead, prior = np.array([[0.0, 0.5, 0.5]]), [1.0, 0.0, 0.0]
    fitted = altnorm.AlternatingNormalizer(prior=prior, reference="all").fit(np.eye(3))
    rounded = np.array([[0.33, 0.33, 0.33], [0.5, 0.25, 0.25], [0.67, 0.17, 0.17]])
    calls = [
        (lambda: altnorm.alternating_normalization(dead, np.eye(3), prior=prior), "prior_zero"),
        (lambda: altnorm.trajectory(dead, np.eye(3), prior=prior), "prior_zero"),
        (lambda: fitted.transform(dead), "prior_zero"),
        (lambda: altnorm.ambiguity(rounded), "rounded_rows"),
        (lambda: altnorm.AlternatingNormalizer(reference="all").fit(rounded), "rounded_rows"),
        (lambda: altnorm.from_topk([[0, 1]], [[1e-4, 1e-5]], 3, input="proba"), "topk_mass"),
    ]
    for call, code in calls:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call()
        assert {warning.filename for warning in caught} == {__file__}
        assert caught[0].message.code == code
        assert pickle.loads(pickle.dumps(caught[0].message)).code == code

"""Tables of costs: every form says the same, and what is wrong with one is told by name."""

import json

import numpy as np
import pytest

from altnorm import InputError
from altnorm.io.class_tables import read_cost_file

CLASSES = np.array(["cat", "dog"])
WITH_PERSON = [[0.0, 1.0, 0.25], [5.0, 0.0, 0.25]]
LINES = [("dog", "cat", 5), ("cat", "person", 0.25), ("dog", "abstain", 0.25)]

FORMS = {
    "wide.csv": "\ufeff,dog,cat,Person\ndog,0,5,0.25\ncat,1,0,0.25\n",
    "wide.tsv": "true\tcat\tdog\tabstain\ncat\t0\t1\t.25\ndog\t5\t0\t.25\n",
    "long.csv": "decision,true,cost\n" + "".join(f"{d},{t},{c}\n" for t, d, c in LINES),
    "nested.json": json.dumps({"cat": {"person": 0.25}, "dog": {"cat": 5, "": 0.25}}),
    "lines.json": json.dumps([{"true": t, "decision": d, "cost": c} for t, d, c in LINES]),
}


@pytest.mark.parametrize("name", FORMS)
def test_every_form_says_the_same(tmp_path, name):
    (tmp_path / name).write_text(FORMS[name], encoding="utf-8")
    assert read_cost_file(tmp_path / name, CLASSES).tolist() == WITH_PERSON


def test_a_class_may_be_called_person(tmp_path):
    (tmp_path / "c.csv").write_text("true,person,dog\nperson,0,2\ndog,3,0\n")
    assert read_cost_file(tmp_path / "c.csv", ["dog", "person"]).tolist() == [[0, 3], [2, 0]]


TWICE = "each cost once; deciding 'dog' where 'cat' is true has two"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("true,cat,dgo\ncat,0,1\ndog,1,0\n", "a column for each class; 'c.csv' has none for 'dog'"),
        ("true,cat,dog\ncat,0,1\n", "a line for each class; 'c.csv' has none for 'dog'"),
        ("true,cat,dog,whom\ncat,0,1,1\ndog,1,0,1\n", "unknown decision 'whom'"),
        ("true,decision,cost\ncat,dogg,1\n", "'dogg'. Did you mean 'dog'"),
        ("true,decision,cost\ncow,dog,1\n", "unknown class 'cow'"),
        ("true,cat,dog\ncat,0,\ndog,1,0\n", "deciding 'dog' where 'cat' is true is ''"),
        ("true,cat,dog\ncat,0,inf\ndog,1,0\n", "must be finite"),
        ("true,cat,dog,cat\ncat,0,1,0\ndog,1,0,1\n", "deciding 'cat' where 'cat' is true has two"),
        ("true,cat,dog\ncat,0\n", "of different lengths"),
        ("true,decision,cost\ncat,dog,1\ncat,dog,9\n", TWICE),
        (json.dumps([{"true": "cat", "decision": "dog", "cost": c} for c in (1, 9)]), TWICE),
        ('{"cat": {"dog": 1, "dog": 9}}', "not such a JSON file"),
        ('{"cat": 3}', "must be a table of costs"),
        ("\udcff\udcfe\x00", "must be a table of costs"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, text, message):
    path = tmp_path / ("c.json" if text.startswith(("[", "{")) else "c.csv")
    path.write_text(text, encoding="utf-8", errors="surrogateescape")
    with pytest.raises(InputError, match=message):
        read_cost_file(path, CLASSES)

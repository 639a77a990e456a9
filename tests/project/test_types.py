"""What a user's type checker knows about public calls: what they return, and never `Any`."""

import subprocess
import sys

import pytest

USER = '''
from typing import Any, assert_type

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

import altnorm
from altnorm.adjuster.comparison import Comparison
from altnorm.adjuster.loading import Model
from altnorm.asking.judgement import Judgement
from altnorm.balance import Shift
from altnorm.estimator.drift import Drift
from altnorm.estimator.explanation import Explanation
from altnorm.evidence.verdict import Verdict
from altnorm.io.datasets import Demo


class Tensor:
    """Stands for an array of PyTorch, CuPy or JAX."""

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0


def use(proba: NDArray[np.float32], tensor: Tensor, rows: list[list[float]]) -> None:
    y = [0, 1]
    adjuster = altnorm.Adjuster().fit(proba, y, classes=["a", "b"])
    assert_type(adjuster, altnorm.Adjuster)
    assert_type(adjuster.transform(proba), NDArray[np.float32])
    assert_type(adjuster.transform(tensor), Tensor)
    assert_type(adjuster.transform(rows), NDArray[Any])
    assert_type(adjuster.predict_proba(proba), NDArray[np.float32])
    assert_type(adjuster.predict_proba(tensor), Tensor)
    assert_type(adjuster.predict(proba), NDArray[Any])
    assert_type(adjuster.predict(tensor), Tensor | NDArray[Any])
    assert_type(adjuster.predict(rows), NDArray[Any])
    assert_type(adjuster.score(proba, y), float)
    assert_type(adjuster.adapt(proba), altnorm.Adjuster)
    assert_type(adjuster.explain(proba), Explanation)
    assert_type(adjuster.drift(proba), Drift)
    assert_type(adjuster.verdict_, Verdict)
    assert_type(adjuster.classes_, NDArray[Any])
    assert_type(adjuster.shift_, Shift)
    assert_type(adjuster.fit_transform(proba, y), NDArray[np.float32])
    assert_type(adjuster.fit_transform(rows, y), NDArray[Any])
    assert_type(adjuster.verdict_.plot(), Axes)

    classifier = altnorm.AdjustedClassifier(object(), adjuster).fit(proba, y)
    assert_type(classifier, altnorm.AdjustedClassifier)
    assert_type(classifier.predict(proba), NDArray[Any])
    assert_type(classifier.predict_proba(proba), NDArray[Any])
    assert_type(classifier.score(proba, y), float)
    assert_type(classifier.classes_, NDArray[Any])
    assert_type(classifier.verdict_, Verdict)

    normalizer = altnorm.AlternatingNormalizer().fit(proba)
    assert_type(normalizer, altnorm.AlternatingNormalizer)
    assert_type(normalizer.transform(tensor), Tensor)
    search = altnorm.AlternatingNormalizerCV().fit(proba, y)
    assert_type(search, altnorm.AlternatingNormalizerCV)
    assert_type(search.predict(proba), NDArray[Any])
    matrix = altnorm.peers.MatrixScaling(1.0).fit(proba, y)
    assert_type(matrix, altnorm.peers.MatrixScaling)
    assert_type(matrix.transform(proba), NDArray[np.float32])
    model = altnorm.load("model.safetensors")
    assert_type(model, Model)
    assert_type(model.transform(proba), NDArray[np.float32])
    assert_type(model.predict(proba), NDArray[Any])

    assert_type(altnorm.ambiguity(proba), NDArray[np.float32])
    assert_type(altnorm.topk_entropy(tensor, 2), Tensor)
    assert_type(altnorm.alternating_normalization(tensor, tensor), Tensor)
    assert_type(altnorm.trajectory(proba, proba), NDArray[np.float32])
    assert_type(altnorm.from_topk([[0]], [[0.5]], 2), NDArray[Any])
    assert_type(altnorm.ask(adjuster, proba), NDArray[Any])
    assert_type(altnorm.judge(adjuster, proba, [0], y), Judgement)
    assert_type(altnorm.compare(proba, y, proba, y), Comparison)
    assert_type(altnorm.load_demo(), Demo)
    assert_type(altnorm.__version__, str)
'''


@pytest.mark.slow
def test_a_users_type_checker_knows_what_public_calls_return(tmp_path):
    pytest.importorskip("mypy")
    pytest.importorskip("matplotlib")
    (tmp_path / "user.py").write_text(USER)
    command = [sys.executable, "-m", "mypy", "--strict", "user.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout == "Success: no issues found in 1 source file\n", done.stdout + done.stderr

"""Seven classifiers of scikit-learn on five data sets: altnorm beside scikit-learn's own tools."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    load_iris,
    load_wine,
    make_classification,
)
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, log_loss
from sklearn.model_selection import TunedThresholdClassifierCV, train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from altnorm import AdjustedClassifier
from experiments._output import parse_arguments, write_records

__all__ = ["CLASSIFIERS", "DATA", "TOOLS", "main", "measure"]

TABLE = "scikit_learn.csv"
N_SPLITS = 20

CLASSIFIERS = {
    "decision tree": DecisionTreeClassifier(random_state=0),
    "random forest": RandomForestClassifier(random_state=0),
    "gradient boosting": GradientBoostingClassifier(random_state=0),
    "naive Bayes": GaussianNB(),
    "k neighbours": make_pipeline(StandardScaler(), KNeighborsClassifier()),
    # As scikit-learn advises: a support vector machine has no probabilities of its own.
    "SVC": make_pipeline(StandardScaler(), CalibratedClassifierCV(SVC(), ensemble=False)),
    "logistic regression": make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
}

DATA = {
    "digits": lambda: load_digits(return_X_y=True),
    "wine": lambda: load_wine(return_X_y=True),
    "breast cancer": lambda: load_breast_cancer(return_X_y=True),
    "iris": lambda: load_iris(return_X_y=True),
    "imbalanced": lambda: make_classification(
        3000, 20, n_informative=6, weights=[0.93], class_sep=0.8, random_state=0
    ),
}
QUICK_DATA = ("iris", "breast cancer")


class Tool(NamedTuple):
    """What is fitted to validation rows around a classifier that stays as it is."""

    name: str
    wrapper: Any
    only_two: bool = False  # whether it is for two classes


TOOLS = (
    Tool("altnorm", AdjustedClassifier(None)),
    Tool("sigmoid", CalibratedClassifierCV(method="sigmoid")),
    Tool("isotonic", CalibratedClassifierCV(method="isotonic")),
    Tool("temperature", CalibratedClassifierCV(method="temperature")),
    Tool("altnorm, balanced", AdjustedClassifier(None, scoring="balanced_accuracy")),
    # Balanced accuracy is its default, too.
    Tool("threshold", TunedThresholdClassifierCV(None, cv="prefit", refit=False), only_two=True),
)


def main(argv: Sequence[str] | None = None) -> None:
    arguments = parse_arguments("benchmark", __doc__, argv)
    splits = range(1 if arguments.quick else N_SPLITS)
    work = (
        delayed(measure)(data, classifier, split)
        for data in (QUICK_DATA if arguments.quick else DATA)
        for classifier in CLASSIFIERS
        for split in splits
    )
    parts = Parallel(n_jobs=arguments.jobs)(work)
    write_records(arguments.output / TABLE, [record for part in parts for record in part])
    print(f"results in {arguments.output / TABLE}")


def measure(data: str, classifier: str, split: int) -> list[dict[str, Any]]:
    """Train on a third of the rows, fit each tool to another third, and measure on the last."""
    X, y = DATA[data]()
    X_train, X_rest, y_train, y_rest = train_test_split(
        X, y, train_size=1 / 3, stratify=y, random_state=split
    )
    X_val, X_test, y_val, y_test = train_test_split(
        X_rest, y_rest, train_size=0.5, stratify=y_rest, random_state=split
    )
    with threadpool_limits(1):
        model = clone(CLASSIFIERS[classifier]).fit(X_train, y_train)
        about = {"data": data, "classifier": classifier, "split": split}
        return [
            {**about, "tool": name, "refused": refused, **scores(fitted, X_test, y_test)}
            for name, fitted, refused in fit_tools(model, X_val, y_val)
        ]


def fit_tools(model: Any, X: np.ndarray, y: np.ndarray) -> Iterator[tuple[str, Any, bool]]:
    """The classifier as it came, and with each tool; whether altnorm took its input for wrong."""
    yield "as it came", model, False
    for tool in TOOLS:
        if tool.only_two and np.unique(y).size > 2:
            continue
        fitted = clone(tool.wrapper).set_params(estimator=FrozenEstimator(model)).fit(X, y)
        verdict = getattr(fitted, "verdict_", None)
        yield tool.name, fitted, verdict is not None and verdict.reason == "suspect_input"


def scores(model: Any, X: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Test scores of a fitted classifier."""
    decided = model.predict(X)
    return {
        "log_loss": float(log_loss(y, model.predict_proba(X))),
        "accuracy": float(np.mean(decided == y)),
        "balanced_accuracy": float(balanced_accuracy_score(y, decided)),
    }


if __name__ == "__main__":
    main()

"""Five kinds of classifiers as many use them, and what they say of two thirds of the rows."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from experiments.benchmark.sources import Source, Thirds, read_thirds

__all__ = ["KINDS", "RECIPE", "Classifier", "load_classifier", "train"]

RECIPE = "1"  # changes whenever sources, thirds or classifiers do: what was kept is of no use then
KINDS = ("logistic", "naive_bayes", "forest", "boosting", "network")


@dataclass(frozen=True)
class Classifier:
    """What a classifier says of validation and test rows, and how frequent classes were before."""

    val_proba: np.ndarray
    val_labels: np.ndarray
    test_proba: np.ndarray
    test_labels: np.ndarray
    train_counts: np.ndarray

    @property
    def n_classes(self) -> int:
        """Number of columns."""
        return self.val_proba.shape[1]


def load_classifier(source: Source, kind: str, wheels: Path, folder: Path) -> Classifier:
    """Read the probabilities of a classifier, or train it and keep them."""
    path = folder / f"{source.key}-{kind}.npz"
    if not path.exists():
        classifier = train(read_thirds(source, wheels), kind)
        unfinished = path.with_suffix(".part.npz")
        np.savez_compressed(unfinished, **vars(classifier))
        unfinished.replace(path)
    with np.load(path) as arrays:
        return Classifier(**arrays)


def train(thirds: Thirds, kind: str) -> Classifier:
    """Fit a kind of classifier on the first third."""
    train_labels, val_labels, test_labels = thirds.labels
    known, validation, test = thirds.features
    pipeline = make_pipeline(_columns(), _kind(kind))
    with warnings.catch_warnings():
        # Networks stop after a number of rounds, which is how many people use them.
        warnings.simplefilter("ignore", ConvergenceWarning)
        pipeline.fit(known, train_labels)
    return Classifier(
        pipeline.predict_proba(validation).astype(np.float64),
        val_labels,
        pipeline.predict_proba(test).astype(np.float64),
        test_labels,
        np.bincount(train_labels),
    )


def _columns() -> Any:
    """Numbers are filled and scaled; texts become columns of zeros and ones."""
    numbers = make_pipeline(SimpleImputer(keep_empty_features=True), StandardScaler())
    unknown = "infrequent_if_exist"
    texts = OneHotEncoder(handle_unknown=unknown, max_categories=30, sparse_output=False)
    return make_column_transformer(
        (numbers, make_column_selector(dtype_include="number")),
        (texts, make_column_selector(dtype_exclude="number")),
    )


def _kind(kind: str) -> Any:
    """A classifier with the settings that people leave alone, and a seed."""
    return {
        "logistic": LogisticRegression(max_iter=1000),
        "naive_bayes": GaussianNB(),
        "forest": RandomForestClassifier(random_state=0),
        "boosting": HistGradientBoostingClassifier(random_state=0),
        "network": MLPClassifier(max_iter=100, random_state=0),
    }[kind]

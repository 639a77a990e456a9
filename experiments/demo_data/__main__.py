"""Train the demonstration's classifier and store its predictions in the package.

Run it from the root of the repository, with the folder that holds ``data_imbalanced.json`` or
``data_imbalanced.json.gz`` (see `DOWNLOAD`)::

    python -m experiments.demo_data --data DIR
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline

from altnorm.io.datasets import DEMO_FILE, RESOLUTION, decode_log_proba
from experiments._output import read_text

DOWNLOAD = "https://raw.githubusercontent.com/clinc/oos-eval/master/data/data_imbalanced.json"
"""Where the data set is published by its authors (CC BY 3.0)."""

Split = tuple[list[str], np.ndarray]


def load_clinc150(folder: Path) -> dict[str, Split]:
    """Read queries and intents of the imbalanced split; out-of-scope queries are left out."""
    content = json.loads(read_text(folder / "data_imbalanced.json", DOWNLOAD))
    return {
        split: ([query for query, _ in content[split]], np.array([i for _, i in content[split]]))
        for split in ("train", "val", "test")
    }


def predict(data: dict[str, Split]) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Train multinomial naive Bayes on word counts; return intents and log-probabilities."""
    classifier = make_pipeline(CountVectorizer(), MultinomialNB()).fit(*data["train"])
    log_proba = {split: classifier.predict_log_proba(data[split][0]) for split in ("val", "test")}
    return classifier.classes_, log_proba


def encode_log_proba(log_proba: np.ndarray) -> np.ndarray:
    """Round log-probabilities to a byte each, without a tie for the largest of a row.

    Parameters
    ----------
    log_proba : ndarray of shape (n, m)
        Log-probabilities.

    Returns
    -------
    ndarray of uint8, shape (n, m)
        Small for large probabilities; those below exp(-585) count as that.
    """
    codes = np.round(RESOLUTION * np.log1p(-np.maximum(log_proba, -585.0))).astype(int)
    best = log_proba.argmax(axis=1)[:, None]
    top = np.take_along_axis(codes, best, axis=1)
    codes = np.maximum(codes, top + 1)
    np.put_along_axis(codes, best, top, axis=1)
    return np.minimum(codes, 255).astype(np.uint8)


def pack(data: dict[str, Split], path: Path) -> None:
    """Write the predictions, labels and test queries; no row's most probable class changes."""
    classes, log_proba = predict(data)
    arrays = {"classes": classes}
    for split, values in log_proba.items():
        codes = encode_log_proba(values)
        kept = decode_log_proba(codes).argmax(axis=1) == values.argmax(axis=1)
        assert kept.all(), f"{(~kept).sum()} rows of {split} would change their class"
        arrays[f"{split}_codes"] = codes
        arrays[f"{split}_labels"] = np.searchsorted(classes, data[split][1]).astype(np.uint8)
    arrays["test_queries"] = np.frombuffer("\n".join(data["test"][0]).encode(), np.uint8)
    np.savez_compressed(path, **arrays)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.demo_data", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of the data set")
    parser.add_argument("--output", type=Path, default=DEMO_FILE, help="file to write")
    options = parser.parse_args()
    data = load_clinc150(options.data)
    pack(data, options.output)
    print(f"{options.output}: {options.output.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()

"""Read the predictions of the suite: ``.npz`` files with logits and labels."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.special import expit, softmax
from sklearn.model_selection import train_test_split


class Classifier(NamedTuple):
    """Predictions of one classifier; validation for tuning, test for the final number."""

    name: str
    val_proba: np.ndarray
    val_y: np.ndarray
    test_proba: np.ndarray
    test_y: np.ndarray

    @property
    def multilabel(self) -> bool:
        """Whether labels are 0/1 matrices."""
        return self.val_y.ndim == 2


def read_classifier(path: Path, *, seed: int = 0) -> Classifier:
    """Read one file.

    It holds ``val_logits``, ``val_labels``, ``test_logits``, ``test_labels``, or ``logits`` and
    ``labels``, which are split in halves, class by class. A matrix of labels means independent
    labels, and logits that are log-odds.
    """
    with np.load(path, allow_pickle=False) as file:
        if "val_logits" in file:
            names = ("val_logits", "val_labels", "test_logits", "test_labels")
            val, val_y, test, test_y = (file[name] for name in names)
        else:
            logits, labels = file["logits"], file["labels"]
            half = train_test_split(
                np.arange(len(labels)), test_size=0.5, stratify=labels, random_state=seed
            )
            (val, test), (val_y, test_y) = ([a[rows] for rows in half] for a in (logits, labels))
    to_proba = expit if val_y.ndim == 2 else (lambda z: softmax(z, axis=1))
    val, test = (to_proba(z.astype(np.float64)) for z in (val, test))
    return Classifier(path.stem, val, val_y.astype(int), test, test_y.astype(int))


UNSOURCED = ("dogscats_net", "sst2_gpt2")  # nobody says where they come from


def suite_paths(folder: Path, *, quick: bool = False) -> list[Path]:
    """The files of the suite; of the blurred ImageNet series the first and a middle one."""
    skipped = ("blur02", "blur08", "blur16", "blur32", *UNSOURCED)
    paths = [p for p in sorted(folder.glob("*.npz")) if not p.stem.endswith(skipped)]
    if not paths:
        raise SystemExit(f"There are no .npz files in {folder}. Pass their folder with --data.")
    return [p for p in paths if "cifar10_" in p.stem or "dialogre" in p.stem] if quick else paths

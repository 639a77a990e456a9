"""A fitted normalizer as a stage of a Spark ML pipeline."""

from __future__ import annotations

from copy import copy
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from pyspark.ml import Transformer
from pyspark.ml.param.shared import HasOutputCol, HasPredictionCol, HasProbabilityCol
from pyspark.ml.util import DefaultParamsReader, DefaultParamsWriter, MLReadable, MLWritable
from sklearn.utils.validation import check_is_fitted

from altnorm._base.persistence import load
from altnorm.deploy.spark._transform import transform


class ProbabilityAdjuster(
    Transformer, HasProbabilityCol, HasOutputCol, HasPredictionCol, MLReadable, MLWritable
):
    """A stage of a Spark ML pipeline that adjusts the probabilities of the classifier before it.

    Fit the normalizer on the driver, to validation predictions; the stage applies it, on the
    executors, by :func:`altnorm.deploy.spark.transform`. It is saved and loaded as Spark ML's own
    stages are, alone or in a ``PipelineModel``, on any file system that Spark writes to; inside is
    the model file that :func:`altnorm.load` reads.

    Parameters
    ----------
    normalizer : Adjuster, AlternatingNormalizerCV, AlternatingNormalizer or a peer
        Fitted to predictions whose columns follow the classifier's vectors. None is for Spark,
        which makes an empty stage before it loads one.
    probabilityCol : str, default="probability"
        Column of probabilities (or logits, as ``normalizer.input`` says): vectors, or arrays of
        float or double. It stays as it is.
    outputCol : str, default="adjusted"
        Column to append: adjusted probabilities, of the same type.
    predictionCol : str, default="adjusted_prediction"
        Column to append: the class after the adjustment, as Spark ML's classifiers write it, its
        index as a double; for multi-label problems the list of indices.

    Examples
    --------
    >>> from pyspark.ml import PipelineModel
    >>> from altnorm.deploy.spark import ProbabilityAdjuster
    >>> stage = ProbabilityAdjuster(adjuster)  # doctest: +SKIP
    >>> whole = PipelineModel([*fitted_pipeline.stages, stage])  # doctest: +SKIP
    >>> whole.write().overwrite().save("hdfs://models/adjusted")  # doctest: +SKIP
    >>> PipelineModel.load("hdfs://models/adjusted").transform(df)  # doctest: +SKIP
    """

    def __init__(
        self,
        normalizer: Any = None,
        *,
        probabilityCol: str = "probability",
        outputCol: str = "adjusted",
        predictionCol: str = "adjusted_prediction",
    ) -> None:
        super().__init__()
        if normalizer is not None:
            check_is_fitted(normalizer)
        self.normalizer = normalizer
        self._set(probabilityCol=probabilityCol, outputCol=outputCol, predictionCol=predictionCol)

    def write(self) -> DefaultParamsWriter:
        """Return what saves the stage: ``stage.write().overwrite().save(path)``.

        Returns
        -------
        MLWriter
            The writer.
        """
        return _Writer(self)

    @classmethod
    def read(cls) -> DefaultParamsReader:
        """Return what loads a stage: ``ProbabilityAdjuster.read().load(path)``.

        Returns
        -------
        MLReader
            The reader.
        """
        return _Reader(cls)

    def _transform(self, dataset: Any) -> Any:
        return transform(
            dataset,
            _with_indices(self.normalizer),
            columns=self.getProbabilityCol(),
            output=self.getOutputCol(),
            prediction=self.getPredictionCol(),
        )


class _Writer(DefaultParamsWriter):
    """Writes parameters as Spark does, and beside them the model file as the cell of a table.

    By way of Spark, as its own models are: the path may be on a distributed file system.
    """

    def saveImpl(self, path: str) -> None:  # noqa: N802 - Spark's name
        super().saveImpl(path)
        with TemporaryDirectory() as folder:
            file = Path(folder, "model.safetensors")
            self.instance.normalizer.save(file)
            cell = bytearray(file.read_bytes())
        frame = self.sparkSession.createDataFrame([(cell,)], "model binary")
        frame.write.parquet(f"{path}/data")


class _Reader(DefaultParamsReader):
    def load(self, path: str) -> ProbabilityAdjuster:
        stage: ProbabilityAdjuster = super().load(path)
        cell = self.sparkSession.read.parquet(f"{path}/data").first()["model"]
        with TemporaryDirectory() as folder:
            file = Path(folder, "model.safetensors")
            file.write_bytes(cell)
            stage.normalizer = load(file)
        return stage


def _with_indices(normalizer: Any) -> Any:
    """Return a copy whose classes are called by their index, as a double."""
    twin = copy(normalizer)
    twin.classes_ = np.arange(len(normalizer.classes_), dtype=np.float64)
    return twin

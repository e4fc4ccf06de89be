"""Evaluation metrics: running averages over batches, computed on the host.

Every metric keeps two tallies: a local one that ``reset_local`` clears (a log interval) and a global one that only
``reset`` clears (an epoch).
"""

from __future__ import annotations

import numpy

from .. import ndarray, registry  # MXNet programs reach these through this module
from .._lazy_names import refusing
from .._public_names import dir_of
from ._accuracy import Accuracy, BinaryAccuracy, TopKAccuracy
from ._confusion import F1, MCC, PCC, Fbeta
from ._confusion_matrix import ConfusionMatrix
from ._custom import CustomMetric, np
from ._likelihood import Caffe, CrossEntropy, Loss, NegativeLogLikelihood, Perplexity, Torch
from ._metric import CompositeEvalMetric, EvalMetric, alias, check_label_shapes, create, register
from ._regression import MAE, MSE, RMSE, PearsonCorrelation

__all__ = [
    "F1",
    "MAE",
    "MCC",
    "MSE",
    "PCC",
    "RMSE",
    "Accuracy",
    "BinaryAccuracy",
    "CompositeEvalMetric",
    "ConfusionMatrix",
    "CrossEntropy",
    "CustomMetric",
    "EvalMetric",
    "Fbeta",
    "Loss",
    "NegativeLogLikelihood",
    "PearsonCorrelation",
    "Perplexity",
    "TopKAccuracy",
    "check_label_shapes",
    "create",
    "np",
]

__getattr__, __dir__ = refusing(__name__), dir_of(__name__)

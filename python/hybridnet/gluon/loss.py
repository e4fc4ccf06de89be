"""Losses: HybridBlocks that return one value per sample, shape (N,).

All take ``sample_weight`` (broadcast against the loss before averaging) unless documented otherwise, and multiply the
loss by ``weight``. They average over all axes but batch_axis.
"""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from .._described import changed_arguments, described
from .._lazy_names import names_from
from .._public_names import dir_of
from ..errors import ParamError, ShapeError, not_overridden
from ..ndarray import NDArray
from ._hybrid_block import HybridBlock

__all__ = [
    "CTCLoss",
    "CosineEmbeddingLoss",
    "HingeLoss",
    "HuberLoss",
    "KLDivLoss",
    "L1Loss",
    "L2Loss",
    "LogisticLoss",
    "Loss",
    "PoissonNLLLoss",
    "SDMLLoss",
    "SigmoidBCELoss",
    "SigmoidBinaryCrossEntropyLoss",
    "SoftmaxCELoss",
    "SoftmaxCrossEntropyLoss",
    "SquaredHingeLoss",
    "TripletLoss",
]


def _apply_weighting(F: Any, loss: Any, weight: float | None = None, sample_weight: Any = None) -> Any:
    """Returns loss times sample_weight (broadcast) times weight. Raises ParamError if weight is not a number."""
    if sample_weight is not None:
        loss = F.broadcast_mul(loss, sample_weight)
    if weight is not None:
        if not isinstance(weight, numbers.Number):
            raise ParamError(
                "weight must be a number",
                given=f"an array of {_shape_text(weight)}" if hasattr(weight, "shape") else repr(weight),
                fix="weights of classes go to the samples: loss_fn(pred, label, weights.take(label).expand_dims(1))",
            )
        if weight != 1:
            loss = loss * weight
    return loss


def _reshape_like(F: Any, x: Any, y: Any) -> Any:
    """Reshapes x, labels or targets, to the shape of y, the predictions. Raises ShapeError for another size."""
    try:
        return F.reshape_like(x, y)
    except ShapeError as error:
        raise _wrong_labels(y, x, f"as many labels as predictions, {_shape_text(y)}", "") from error


def _shape_text(array: Any) -> str:
    return f"shape {tuple(array.shape)}" if getattr(array, "shape", None) is not None else "another shape"


def _wrong_labels(pred: Any, label: Any, expected: str, because: str) -> ShapeError:
    """Returns the error for labels that do not fit the predictions; says so if both seem swapped."""
    rank, rank_of_label = len(getattr(pred, "shape", None) or ()), len(getattr(label, "shape", None) or ())
    if rank < rank_of_label:
        fix = "call loss(pred, label), the predictions first"
    elif rank == rank_of_label and because:
        fix = "pass class indices, label.argmax(axis=-1), or make the loss with sparse_label=False"
    else:
        fix = "pass a label for each prediction of the batch; check both shapes"
    return ShapeError(
        "loss: label", expected=expected, given=_shape_text(label), because=because or None, fix=fix, input="label"
    )


class Loss(HybridBlock):
    """Base of losses.

    Parameters
    ----------
    weight : float or None
        Factor that the loss is multiplied by.
    batch_axis : int, default 0
        Axis that is not averaged.
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        if args and isinstance(args[0], NDArray):
            raise ParamError(
                f"{cls.__name__}: the constructor takes settings",
                given="arrays",
                fix=f"make the loss first: loss_fn = {cls.__name__}(), then loss_fn(pred, label)",
            )
        return super().__new__(cls, *args, **kwargs)

    def __init__(self, weight: float | None, batch_axis: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._weight = weight
        self._batch_axis = batch_axis

    def __repr__(self) -> str:
        others = changed_arguments(self, leave_out=("weight", "batch_axis"))
        return described(self, batch_axis=self._batch_axis, w=self._weight, **others)

    def _mean(self, F: Any, loss: Any, sample_weight: Any, weight: float | None = None) -> Any:
        """Returns the weighted loss per sample."""
        loss = _apply_weighting(F, loss, self._weight if weight is None else weight, sample_weight)
        return F.mean(loss, axis=self._batch_axis, exclude=True)

    def hybrid_forward(self, F: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
        raise not_overridden(self, "hybrid_forward()")


class L2Loss(Loss):
    """Squared error: ``weight / 2 * (label - pred)^2``, averaged. label is reshaped to pred."""

    def __init__(self, weight: float | None = 1.0, batch_axis: int = 0, **kwargs: Any) -> None:
        super().__init__(weight, batch_axis, **kwargs)

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        loss = F.square(_reshape_like(F, label, pred) - pred)
        return self._mean(F, loss, sample_weight, (1.0 if self._weight is None else self._weight) / 2)


class L1Loss(Loss):
    """Absolute error: ``|label - pred|``, averaged. label is reshaped to pred."""

    def __init__(self, weight: float | None = None, batch_axis: int = 0, **kwargs: Any) -> None:
        super().__init__(weight, batch_axis, **kwargs)

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        return self._mean(F, F.abs(_reshape_like(F, label, pred) - pred), sample_weight)


class SigmoidBinaryCrossEntropyLoss(Loss):
    """Cross entropy of independent yes/no labels, averaged.

    From logits: ``max(pred, 0) - pred * label + log(1 + exp(-|pred|))``, which cannot overflow.

    Parameters
    ----------
    from_sigmoid : bool, default False
        Whether pred holds probabilities instead of logits.

    forward(pred, label, sample_weight=None, pos_weight=None): pos_weight multiplies the positive term (broadcast).
    """

    def __init__(
        self, from_sigmoid: bool = False, weight: float | None = None, batch_axis: int = 0, **kwargs: Any
    ) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._from_sigmoid = from_sigmoid

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None, pos_weight: Any = None) -> Any:
        label = _reshape_like(F, label, pred)
        loss = self._of_probabilities if self._from_sigmoid else self._of_logits
        return self._mean(F, loss(F, pred, label, pos_weight), sample_weight)

    @staticmethod
    def _of_logits(F: Any, pred: Any, label: Any, pos_weight: Any) -> Any:
        softplus = F.Activation(-F.abs(pred), act_type="softrelu")
        if pos_weight is None:
            return F.relu(pred) - pred * label + softplus
        log_weight = 1 + F.broadcast_mul(pos_weight - 1, label)
        return pred - pred * label + log_weight * (softplus + F.relu(-pred))

    @staticmethod
    def _of_probabilities(F: Any, pred: Any, label: Any, pos_weight: Any) -> Any:
        eps = 1e-12
        positive = F.log(pred + eps) * label
        if pos_weight is not None:
            positive = F.broadcast_mul(positive, pos_weight)
        return -(positive + F.log(1.0 - pred + eps) * (1.0 - label))


SigmoidBCELoss = SigmoidBinaryCrossEntropyLoss


class SoftmaxCrossEntropyLoss(Loss):
    """Cross entropy of one class per sample: ``-log_softmax(pred)[label]``, averaged.

    Shapes: pred (N, ..., classes, ...) with the classes on axis; label without that axis (class indices), or, with
    sparse_label=False, of pred's shape (probabilities).

    Parameters
    ----------
    axis : int, default -1
    sparse_label : bool, default True
    from_logits : bool, default False
        Whether pred already holds log probabilities.
    ignore_label : int, optional
        A label, of any value, whose positions have no loss and no gradient. They count in the mean, like positions with
        sample_weight 0: for a mean over the others multiply by ``size / number of the others``.

    Raises ParamError for an ignore_label together with sparse_label=False. Labels out of range use the nearest class,
    like in MXNet, with a warning (``HYBRIDNET_STRICT=1``: IndexError).
    """

    def __init__(
        self,
        axis: int = -1,
        sparse_label: bool = True,
        from_logits: bool = False,
        weight: float | None = None,
        batch_axis: int = 0,
        ignore_label: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        if ignore_label is not None and not sparse_label:
            raise ParamError(
                "SoftmaxCrossEntropyLoss: ignore_label",
                expected="class indices as labels",
                given="sparse_label=False",
                fix="give such rows a sample_weight of 0",
            )
        self._axis = axis
        self._sparse_label = sparse_label
        self._from_logits = from_logits
        self._ignore_label = ignore_label

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        if not self._from_logits:
            pred = F.log_softmax(pred, axis=self._axis)
        if self._sparse_label:
            try:
                loss = self._of_classes(F, pred, label)
            except ShapeError as error:
                expected = f"one class index for each prediction of {_shape_text(pred)}"
                raise _wrong_labels(pred, label, expected, "sparse_label=True: labels are no vectors") from error
        else:
            loss = -F.sum(pred * _reshape_like(F, label, pred), axis=self._axis, keepdims=True)
        return self._mean(F, loss, sample_weight)

    def _of_classes(self, F: Any, pred: Any, label: Any) -> Any:
        """Returns the loss for class indices: 0 for those that are ignored."""
        if self._ignore_label is None:
            return -F.pick(pred, label, axis=self._axis, keepdims=True)
        kept = label != self._ignore_label
        loss = -F.pick(pred, F.where(kept, label, F.zeros_like(label)), axis=self._axis, keepdims=True)
        return F.where(F.reshape_like(kept, loss), loss, F.zeros_like(loss))


SoftmaxCELoss = SoftmaxCrossEntropyLoss


class KLDivLoss(Loss):
    """Kullback-Leibler divergence ``label * (log(label) - pred)``, summed over all axes but batch_axis.

    from_logits (default True): whether pred holds log probabilities; else log_softmax along axis is taken.
    """

    def __init__(
        self,
        from_logits: bool = True,
        axis: int = -1,
        weight: float | None = None,
        batch_axis: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._from_logits = from_logits
        self._axis = axis

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        if not self._from_logits:
            pred = F.log_softmax(pred, axis=self._axis)
        loss = label * (F.log(label + 1e-12) - pred)
        return F.sum(_apply_weighting(F, loss, self._weight, sample_weight), axis=self._batch_axis, exclude=True)


class CTCLoss(Loss):
    """Connectionist temporal classification: label sequences without alignment.

    Shapes: pred (N, T, classes) or (T, N, classes); label (N, L) or (L, N); the blank is the last class; out (N,).
    Source: Graves et al., Connectionist Temporal Classification, 2006.

    Parameters
    ----------
    layout : {'NTC', 'TNC'}
    label_layout : {'NT', 'TN'}

    forward(pred, label, pred_lengths=None, label_lengths=None, sample_weight=None): lengths (N,); without
    label_lengths, labels end at the first -1.
    """

    def __init__(
        self, layout: str = "NTC", label_layout: str = "NT", weight: float | None = None, **kwargs: Any
    ) -> None:
        if layout not in ("NTC", "TNC"):
            raise ParamError(f"Only 'NTC' and 'TNC' layouts for pred are supported. Got: {layout}")
        if label_layout not in ("NT", "TN"):
            raise ParamError(f"Only 'NT' and 'TN' layouts for label are supported. Got: {label_layout}")
        super().__init__(weight, label_layout.find("N"), **kwargs)
        self._layout = layout
        self._label_layout = label_layout

    def hybrid_forward(
        self,
        F: Any,
        pred: Any,
        label: Any,
        pred_lengths: Any = None,
        label_lengths: Any = None,
        sample_weight: Any = None,
    ) -> Any:
        if self._layout == "NTC":
            pred = F.swapaxes(pred, 0, 1)
        if self._batch_axis == 1:
            label = F.swapaxes(label, 0, 1)
        lengths = {"data_lengths": pred_lengths, "label_lengths": label_lengths}
        loss = F.CTCLoss(
            pred,
            label,
            **{name: value for name, value in lengths.items() if value is not None},
            use_data_lengths=pred_lengths is not None,
            use_label_lengths=label_lengths is not None,
            blank_label="last",
        )
        return _apply_weighting(F, loss, self._weight, sample_weight)


class HuberLoss(Loss):
    """``(label - pred)^2 / (2 rho)`` up to rho, ``|label - pred| - rho / 2`` beyond, averaged."""

    def __init__(self, rho: float = 1, weight: float | None = None, batch_axis: int = 0, **kwargs: Any) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._rho = rho

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        loss = F.abs(_reshape_like(F, label, pred) - pred)
        loss = F.where(loss > self._rho, loss - 0.5 * self._rho, (0.5 / self._rho) * F.square(loss))
        return self._mean(F, loss, sample_weight)


class HingeLoss(Loss):
    """Hinge loss: ``max(0, margin - pred * label)`` for labels -1 and 1, averaged."""

    def __init__(self, margin: float = 1, weight: float | None = None, batch_axis: int = 0, **kwargs: Any) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._margin = margin

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        loss = F.relu(self._margin - pred * _reshape_like(F, label, pred))
        return self._mean(F, loss, sample_weight)


class SquaredHingeLoss(Loss):
    """Squared hinge loss: ``max(0, margin - pred * label)^2`` for labels -1 and 1, averaged."""

    def __init__(self, margin: float = 1, weight: float | None = None, batch_axis: int = 0, **kwargs: Any) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._margin = margin

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        loss = F.square(F.relu(self._margin - pred * _reshape_like(F, label, pred)))
        return self._mean(F, loss, sample_weight)


class LogisticLoss(Loss):
    """Logistic loss: ``log(1 + exp(-pred * label))``, averaged.

    label_format: 'signed' (labels -1 and 1) or 'binary' (0 and 1). Raises ParamError for others.
    """

    def __init__(
        self, weight: float | None = None, batch_axis: int = 0, label_format: str = "signed", **kwargs: Any
    ) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        if label_format not in ("signed", "binary"):
            raise ParamError(f"label_format can only be signed or binary, recieved {label_format}.")
        self._label_format = label_format

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        label = _reshape_like(F, label, pred)
        if self._label_format == "signed":
            label = (label + 1.0) / 2.0
        loss = F.relu(pred) - pred * label + F.Activation(-F.abs(pred), act_type="softrelu")
        return self._mean(F, loss, sample_weight)


class TripletLoss(Loss):
    """``max(0, |positive - pred|^2 - |negative - pred|^2 + margin)``, norms over all axes but batch_axis.

    forward(pred, positive, negative).
    """

    def __init__(self, margin: float = 1, weight: float | None = None, batch_axis: int = 0, **kwargs: Any) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._margin = margin

    def hybrid_forward(self, F: Any, pred: Any, positive: Any, negative: Any) -> Any:
        positive = F.square(_reshape_like(F, positive, pred) - pred)
        negative = F.square(_reshape_like(F, negative, pred) - pred)
        distance = F.sum(positive - negative, axis=self._batch_axis, exclude=True)
        return _apply_weighting(F, F.relu(distance + self._margin), self._weight, None)


class PoissonNLLLoss(Loss):
    """Negative log likelihood of counts, averaged over everything: a value of shape (1,).

    Parameters
    ----------
    from_logits : bool, default True
        Whether pred is the log of the rate: ``exp(pred) - target * pred``; else ``pred - target * log(pred + eps)``.
    compute_full : bool, default False
        Whether Stirling's approximation of log(target!) is added where target > 1.
    """

    def __init__(
        self,
        weight: float | None = None,
        from_logits: bool = True,
        batch_axis: int = 0,
        compute_full: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._from_logits = from_logits
        self._compute_full = compute_full

    def hybrid_forward(self, F: Any, pred: Any, target: Any, sample_weight: Any = None, epsilon: float = 1e-08) -> Any:
        target = _reshape_like(F, target, pred)
        if self._from_logits:
            loss = F.exp(pred) - target * pred
        else:
            loss = pred - target * F.log(pred + epsilon)
        if self._compute_full:
            # Targets up to 1 are masked out; the maximum keeps their logarithm finite.
            large = F.maximum(target, 1.0)
            stirling = large * F.log(large) - large + 0.5 * F.log((2 * np.pi) * large)
            loss = loss + stirling * (target > 1)
        return F.mean(_apply_weighting(F, loss, self._weight, sample_weight))


class CosineEmbeddingLoss(Loss):
    """``1 - cos(input1, input2)`` for label 1, ``max(0, cos(input1, input2) - margin)`` for label -1.

    Shapes: input1, input2 (N, D); label (N,); out (N, 1).
    """

    def __init__(self, weight: float | None = None, batch_axis: int = 0, margin: float = 0, **kwargs: Any) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._margin = margin

    def hybrid_forward(self, F: Any, input1: Any, input2: Any, label: Any, sample_weight: Any = None) -> Any:
        input1 = _reshape_like(F, input1, input2)
        label = F.reshape(label, shape=(-1, 1))
        similarity = self._cosine_similarity(F, input1, input2)
        loss = (1 - similarity) * (label == 1) + F.relu((label == -1) * (similarity - self._margin))
        return _apply_weighting(F, loss, self._weight, sample_weight)

    @staticmethod
    def _cosine_similarity(F: Any, x: Any, y: Any, axis: int = -1) -> Any:
        def column(value: Any) -> Any:
            return F.reshape(value, shape=(-1, 1))

        norms = column(F.norm(x, axis=axis)) * column(F.norm(y, axis=axis))
        return column(F.sum(x * y, axis=axis)) / F.maximum(norms, 1e-12)


class SDMLLoss(Loss):
    """Smoothed deep metric learning: pulls matching rows of two batches together, pushes all other pairs apart.

    Shapes: x1, x2 (N, D), N > 1; out (N,). Source: Bonadiman et al., arXiv 1905.12786.

    smoothing_parameter: probability mass of the pairs that do not match.
    """

    def __init__(
        self, smoothing_parameter: float = 0.3, weight: float | None = 1.0, batch_axis: int = 0, **kwargs: Any
    ) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self.kl_loss = KLDivLoss(from_logits=True)
        self.smoothing_parameter = smoothing_parameter

    def hybrid_forward(self, F: Any, x1: Any, x2: Any) -> Any:
        if x1.shape != x2.shape:
            raise ParamError(f"SDMLLoss: shapes of the two batches differ: {x1.shape} and {x2.shape}")
        rows = x1.shape[0]
        if rows < 2:
            raise ParamError("SDMLLoss", expected="batches of at least 2 rows", given=f"shape {x1.shape}")
        difference = F.broadcast_sub(F.expand_dims(x1, axis=1), F.expand_dims(x2, axis=0))
        distances = F.sum(F.square(difference), axis=2)
        off = self.smoothing_parameter / (rows - 1)
        labels = F.one_hot(F.arange(0, rows), depth=rows, on_value=1 - self.smoothing_parameter, off_value=off)
        return self.kl_loss(F.log_softmax(-distances, axis=1), labels)


# MXNet programs reach these modules through this one.
__getattr__, __dir__ = names_from(__name__, modules={"ndarray": "..ndarray"})
__dir__ = dir_of(__name__, __dir__)

"""PythonModule: a module with computation in Python; PythonLossModule: a loss defined by its gradient."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from .. import ndarray
from .._public_names import dir_of
from ..errors import ParamError, UnsupportedError, not_overridden
from ..io import DataBatch
from .base_module import BaseModule

__all__ = ["PythonLossModule", "PythonModule"]


class PythonModule(BaseModule):
    """A module without a symbol, for SequentialModule. It has no parameters unless a subclass adds some.

    Subclasses define ``_compute_output_shapes``, ``forward``, ``backward``, ``get_outputs`` and ``get_input_grads``.

    Parameters
    ----------
    data_names, label_names, output_names : list of str
        Names of inputs, labels (None: no labels) and outputs.
    """

    def __init__(
        self,
        data_names: Sequence[str],
        label_names: Sequence[str] | None,
        output_names: Sequence[str],
        logger: Any = logging,
    ) -> None:
        super().__init__(logger=logger)
        self._data_names = list(data_names)
        self._label_names = None if label_names is None else list(label_names)
        self._output_names = list(output_names)
        self._data_shapes: Any = None
        self._label_shapes: Any = None
        self._output_shapes: Any = None

    @property
    def data_names(self) -> list[str]:
        """The names of the inputs."""
        return self._data_names

    @property
    def output_names(self) -> list[str]:
        """The names of the outputs."""
        return self._output_names

    @property
    def data_shapes(self) -> Any:
        """The (name, shape) pairs of the inputs that were passed to bind."""
        return self._data_shapes

    @property
    def label_shapes(self) -> Any:
        """The (name, shape) pairs of the labels that were passed to bind."""
        return self._label_shapes

    @property
    def output_shapes(self) -> Any:
        """The (name, shape) pairs of the outputs."""
        return self._output_shapes

    def get_params(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Returns two empty dicts."""
        return {}, {}

    def init_params(
        self,
        initializer: Any = None,
        arg_params: dict[str, Any] | None = None,
        aux_params: dict[str, Any] | None = None,
        allow_missing: bool = False,
        force_init: bool = False,
        allow_extra: bool = False,
    ) -> None:
        """Does nothing: there are no parameters. Arguments: see Module.init_params."""
        self._need("init_params", params=False)
        self.params_initialized = True

    def init_optimizer(
        self,
        kvstore: Any = "local",
        optimizer: Any = "sgd",
        optimizer_params: Any = (("learning_rate", 0.01),),
        force_init: bool = False,
    ) -> None:
        """Does nothing: there are no parameters. Arguments: see Module.init_optimizer."""
        self.optimizer_initialized = True

    def update(self) -> None:
        """Does nothing: there are no parameters."""

    def update_metric(self, eval_metric: Any, labels: Any, pre_sliced: bool = False) -> None:
        """Adds the last outputs to a metric, if bind was called with labels. Raises ParamError with pre_sliced."""
        if self._label_shapes is None:
            return
        if pre_sliced:
            raise ParamError("PythonModule does not support presliced labels")
        eval_metric.update(labels, self.get_outputs())

    def bind(
        self,
        data_shapes: Any,
        label_shapes: Any = None,
        for_training: bool = True,
        inputs_need_grad: bool = False,
        force_rebind: bool = False,
        shared_module: Any = None,
        grad_req: Any = "write",
    ) -> None:
        """Stores the shapes of inputs and labels, which must have the names of the constructor, in order.

        Raises ParamError for other names, and for a grad_req other than 'write'.
        """
        if self.binded and not force_rebind:
            self.logger.warning("Already bound, ignoring bind()")
            return
        if grad_req != "write":
            raise ParamError(f"{type(self).__name__}.bind: grad_req must be 'write'", given=repr(grad_req))
        self._check_names("data_shapes", data_shapes, self._data_names)
        if label_shapes is not None:
            self._check_names("label_shapes", label_shapes, self._label_names or [])
        self.for_training = for_training
        self.inputs_need_grad = inputs_need_grad
        self._data_shapes = data_shapes
        self._label_shapes = label_shapes
        self._output_shapes = self._compute_output_shapes()
        self.binded = True

    def _check_names(self, what: str, shapes: Any, names: list[str]) -> None:
        given = [item[0] for item in shapes]
        if given != names:
            raise ParamError(f"{type(self).__name__}.bind: {what} must be of {names}", given=str(given))

    def _compute_output_shapes(self) -> list[tuple[str, tuple[int, ...]]]:
        raise not_overridden(self, "_compute_output_shapes()")


class PythonLossModule(PythonModule):
    """A loss: its output is its input, the scores; it computes their gradient.

    Parameters
    ----------
    name : str, default 'pyloss'
        Prefix of the output's name: name + '_output'.
    data_names, label_names : list of one str
    grad_func : callable (scores, labels) -> NDArray or numpy.ndarray, optional
        Returns the gradient of the loss with respect to the scores; without it, a subclass overrides
        ``_backward_impl``, which sets ``self._scores_grad`` from ``self._scores`` and ``self._labels``.

    Raises ParamError for more than one name, or a grad_func that is not callable.
    """

    def __init__(
        self,
        name: str = "pyloss",
        data_names: Sequence[str] = ("data",),
        label_names: Sequence[str] = ("softmax_label",),
        logger: Any = logging,
        grad_func: Callable[[Any, Any], Any] | None = None,
    ) -> None:
        super().__init__(data_names, label_names, [f"{name}_output"], logger=logger)
        if len(data_names) != 1 or len(label_names) != 1:
            raise ParamError("PythonLossModule takes one input and one label", given=f"{data_names} and {label_names}")
        if grad_func is not None and not callable(grad_func):
            raise ParamError("PythonLossModule: grad_func must be a function", given=type(grad_func).__name__)
        self._name = name
        self._grad_func = grad_func
        self._scores: Any = None
        self._labels: Any = None
        self._scores_grad: Any = None

    def _compute_output_shapes(self) -> list[tuple[str, tuple[int, ...]]]:
        return [(f"{self._name}_output", self._data_shapes[0][1])]

    def forward(self, data_batch: DataBatch, is_train: bool | None = None) -> None:
        """Stores scores and, in training, labels."""
        self._scores = (data_batch.data or ())[0]
        if self.for_training if is_train is None else is_train:
            self._labels = (data_batch.label or ())[0]

    def get_outputs(self, merge_multi_context: bool = True) -> list[Any]:
        """Returns the scores."""
        return [self._scores]

    def backward(self, out_grads: Any = None) -> None:
        """Computes the gradient. Raises ParamError with out_grads: a loss is the last module."""
        if out_grads is not None:
            raise ParamError("PythonLossModule.backward: a loss takes no out_grads")
        self._need("backward", params=False)
        self._backward_impl()

    def _backward_impl(self) -> None:
        if self._grad_func is None:
            raise UnsupportedError(
                f"{type(self).__name__}: no gradient", fix="pass grad_func, or override _backward_impl()"
            )
        grad = self._grad_func(self._scores, self._labels)
        self._scores_grad = grad if isinstance(grad, ndarray.NDArray) else ndarray.array(grad)

    def get_input_grads(self, merge_multi_context: bool = True) -> list[Any]:
        """Returns the gradient of the scores."""
        return [self._scores_grad]

    def install_monitor(self, mon: Any) -> None:
        """Does nothing: there are no executors."""


__dir__ = dir_of(__name__)

"""BaseModule: the common part of modules, based on forward, backward and update: fit, score, predict, files."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from .. import metric as _metric
from .. import ndarray
from .._public_names import dir_of
from .._user_line import warn
from ..context import cpu
from ..errors import FormatError, HybridNetError, ParamError, not_overridden
from ..errors import TypeError as HybridNetTypeError
from ..initializer import Uniform
from ..io import DataBatch, DataDesc, DataIter
from ..model import BatchEndParam

__all__ = ["BaseModule", "ModuleStateError", "describe_inputs"]

_PARAMETER_ENDINGS = ("_weight", "_bias", "_gamma", "_beta")


class ModuleStateError(HybridNetError, AssertionError):
    """A method was called before a required one: bind, init_params or init_optimizer."""


def _list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _call(callbacks: Any, *args: Any) -> None:
    if callbacks is not None:
        for callback in _list(callbacks):
            callback(*args)


def check_input_names(symbol: Any, names: Sequence[str], kind: str, throw: bool) -> None:
    """Raises ParamError (or warns), with a list of candidates, unless names are arguments of symbol."""
    known = symbol.list_arguments()
    for name in names:
        if name in known:
            continue
        candidates = "\n\t".join(arg for arg in known if not arg.endswith(_PARAMETER_ENDINGS))
        text = (
            f"You created Module with Module(..., {kind}_names={list(names)}) but input with name '{name}' is not "
            f"found in symbol.list_arguments(). Did you mean one of:\n\t{candidates}"
        )
        if throw:
            raise ParamError(text)
        warn(text)


def describe_inputs(names: Sequence[str], shapes: Any, kind: str, throw: bool) -> list[DataDesc] | None:
    """Returns shapes as DataDescs. Raises ParamError (or warns) unless they match names."""
    listed = [desc if isinstance(desc, DataDesc) else DataDesc(*desc) for desc in shapes or ()]
    for desc in listed:
        if not isinstance(desc.shape, (tuple, list)):
            raise HybridNetTypeError(
                f"{kind}_shapes: '{desc.name}'", expected="a tuple of int", given=type(desc.shape).__name__
            )
    if sorted(names) != sorted(desc.name for desc in listed):
        text = (
            f"Data provided by {kind}_shapes don't match names specified by {kind}_names ({listed} vs. {list(names)})"
        )
        if throw:
            raise ParamError(text)
        warn(text)
    return listed if shapes is not None else None


class BaseModule:
    """Base of modules. Subclasses define bind, init_params, init_optimizer, forward, backward, update, get_outputs, ...

    States: ``binded`` (memory exists), ``params_initialized``, ``optimizer_initialized``.
    """

    def __init__(self, logger: Any = logging) -> None:
        self.logger = logger
        self.binded = False
        self.for_training = False
        self.inputs_need_grad = False
        self.params_initialized = False
        self.optimizer_initialized = False
        self._symbol: Any = None

    def _need(self, what: str, *, params: bool = True, optimizer: bool = False) -> None:
        missing = (
            "bind"
            if not self.binded
            else "init_params"
            if params and not self.params_initialized
            else "init_optimizer"
            if optimizer and not self.optimizer_initialized
            else None
        )
        if missing:
            raise ModuleStateError(f"{type(self).__name__}.{what}: call {missing} first")

    # -- running ----------------------------------------------------------------------------------------------------

    def forward_backward(self, data_batch: DataBatch) -> None:
        """Runs forward in training mode, then backward."""
        self.forward(data_batch, is_train=True)
        self.backward()

    def _batches(
        self, eval_data: Any, num_batch: int | None, reset: bool, sparse_row_id_fn: Any
    ) -> Iterator[tuple[int, DataBatch]]:
        if reset:
            eval_data.reset()
        for number, batch in enumerate(eval_data):
            if number == num_batch:
                return
            self.prepare(batch, sparse_row_id_fn)
            self.forward(batch, is_train=False)
            yield number, batch

    def score(
        self,
        eval_data: Any,
        eval_metric: Any,
        num_batch: int | None = None,
        batch_end_callback: Any = None,
        score_end_callback: Any = None,
        reset: bool = True,
        epoch: int = 0,
        sparse_row_id_fn: Any = None,
    ) -> list[tuple[str, float]]:
        """Evaluates on eval_data (at most num_batch batches). Returns (name, value) pairs of the metric."""
        self._need("score")
        if not isinstance(eval_metric, _metric.EvalMetric):
            eval_metric = _metric.create(eval_metric)
        eval_metric.reset()
        done = 0
        for number, batch in self._batches(eval_data, num_batch, reset, sparse_row_id_fn):
            self.update_metric(eval_metric, batch.label)
            _call(batch_end_callback, BatchEndParam(epoch, number, eval_metric, locals()))
            done += 1
        _call(score_end_callback, BatchEndParam(epoch, done, eval_metric, locals()))
        return eval_metric.get_name_value()

    def _outputs_without_pad(self, batch: DataBatch) -> list[Any]:
        pad = batch.pad or 0
        return [out[0 : out.shape[0] - pad].copy() for out in self.get_outputs()]

    def iter_predict(
        self, eval_data: Any, num_batch: int | None = None, reset: bool = True, sparse_row_id_fn: Any = None
    ) -> Iterator[tuple[list[Any], int, DataBatch]]:
        """Yields (outputs, number, batch) for each batch, without padding samples."""
        self._need("iter_predict")
        for number, batch in self._batches(eval_data, num_batch, reset, sparse_row_id_fn):
            yield self._outputs_without_pad(batch), number, batch

    def predict(
        self,
        eval_data: Any,
        num_batch: int | None = None,
        merge_batches: bool = True,
        reset: bool = True,
        always_output_list: bool = False,
        sparse_row_id_fn: Any = None,
    ) -> Any:
        """Computes the outputs for an array or an iterator.

        Returns an array, or a list of arrays for several outputs (or always_output_list); with merge_batches=False a
        list with one list per batch. Raises ParamError for other data, and if batches have different outputs.
        """
        self._need("predict")
        if isinstance(eval_data, (ndarray.NDArray, np.ndarray)):
            data = ndarray.array(eval_data) if isinstance(eval_data, np.ndarray) else eval_data
            self.forward(DataBatch([data]), is_train=False)
            return self.get_outputs()[0]
        if not isinstance(eval_data, DataIter):
            raise ParamError("predict: eval_data must be of type NDArray or DataIter", given=type(eval_data).__name__)
        batches = [outputs for outputs, _, _ in self.iter_predict(eval_data, num_batch, reset, sparse_row_id_fn)]
        if not batches or not merge_batches:
            return batches
        if len({len(outputs) for outputs in batches}) != 1:
            raise ParamError(
                "Cannot merge batches, as num of outputs is not the same in mini-batches. Maybe bucketing is used?"
            )
        merged = [ndarray.concat(*column, dim=0) for column in zip(*batches, strict=True)]
        return merged[0] if len(merged) == 1 and not always_output_list else merged

    def fit(
        self,
        train_data: Any,
        eval_data: Any = None,
        eval_metric: Any = "acc",
        epoch_end_callback: Any = None,
        batch_end_callback: Any = None,
        kvstore: Any = "local",
        optimizer: Any = "sgd",
        optimizer_params: Any = (("learning_rate", 0.01),),
        eval_end_callback: Any = None,
        eval_batch_end_callback: Any = None,
        initializer: Any = None,
        arg_params: dict[str, Any] | None = None,
        aux_params: dict[str, Any] | None = None,
        allow_missing: bool = False,
        force_rebind: bool = False,
        force_init: bool = False,
        begin_epoch: int = 0,
        num_epoch: int | None = None,
        validation_metric: Any = None,
        monitor: Any = None,
        sparse_row_id_fn: Any = None,
    ) -> None:
        """Trains: binds, initializes, and iterates over train_data from begin_epoch to num_epoch.

        Parameters
        ----------
        train_data, eval_data : DataIter
        eval_metric, validation_metric : str or EvalMetric
        epoch_end_callback : called with (epoch, symbol, arguments, auxiliary states)
        batch_end_callback, eval_batch_end_callback, eval_end_callback : called with a BatchEndParam
        kvstore, optimizer, optimizer_params : see init_optimizer
        initializer : default Uniform(0.01)
        arg_params, aux_params, allow_missing, force_init : see init_params
        force_rebind : whether to bind again if bound
        monitor : Monitor
        sparse_row_id_fn : see prepare

        Raises ParamError without num_epoch.
        """
        if num_epoch is None:
            raise ParamError("please specify number of epochs")
        self.bind(train_data.provide_data, train_data.provide_label, for_training=True, force_rebind=force_rebind)
        if monitor is not None:
            self.install_monitor(monitor)
        self.init_params(initializer or Uniform(0.01), arg_params, aux_params, allow_missing, force_init)
        self.init_optimizer(kvstore=kvstore, optimizer=optimizer, optimizer_params=optimizer_params)
        validation_metric = eval_metric if validation_metric is None else validation_metric
        if not isinstance(eval_metric, _metric.EvalMetric):
            eval_metric = _metric.create(eval_metric)
        for epoch in range(begin_epoch, num_epoch):
            start = time.time()
            self._fit_epoch(epoch, train_data, eval_metric, batch_end_callback, monitor, sparse_row_id_fn)
            for name, value in eval_metric.get_global_name_value():
                self.logger.info("Epoch[%d] Train-%s=%f", epoch, name, value)
            self.logger.info("Epoch[%d] Time cost=%.3f", epoch, time.time() - start)
            arguments, states = self.get_params()
            _call(epoch_end_callback, epoch, self.symbol, arguments, states)
            if eval_data is not None:
                scores = self.score(
                    eval_data,
                    validation_metric,
                    None,
                    eval_batch_end_callback,
                    eval_end_callback,
                    epoch=epoch,
                    sparse_row_id_fn=sparse_row_id_fn,
                )
                for name, value in scores:
                    self.logger.info("Epoch[%d] Validation-%s=%f", epoch, name, value)
            train_data.reset()

    def _fit_epoch(
        self, epoch: int, train_data: Any, eval_metric: Any, callback: Any, monitor: Any, sparse_row_id_fn: Any
    ) -> None:
        eval_metric.reset()
        for number, batch in enumerate(train_data):
            self.prepare(batch, sparse_row_id_fn)
            if monitor is not None:
                monitor.tic()
            self.forward_backward(batch)
            self.update()
            self.update_metric(eval_metric, batch.label)
            if monitor is not None:
                monitor.toc_print()
            _call(callback, BatchEndParam(epoch, number, eval_metric, locals()))

    # -- files ------------------------------------------------------------------------------------------------------

    def save_params(self, fname: str) -> None:
        """Writes parameters, with the name prefixes ``arg:`` and ``aux:``."""
        arguments, states = self.get_params()
        arrays = {f"arg:{name}": array.as_in_context(cpu()) for name, array in arguments.items()}
        arrays.update({f"aux:{name}": array.as_in_context(cpu()) for name, array in states.items()})
        ndarray.save(fname, arrays)

    def load_params(self, fname: str) -> None:
        """Reads parameters that save_params wrote. Raises FileError, FormatError."""
        found: dict[str, dict[str, Any]] = {"arg": {}, "aux": {}}
        loaded = ndarray.load(fname)
        for key, value in loaded.items() if isinstance(loaded, dict) else [("", None)]:
            kind, _, name = key.partition(":")
            if kind not in found:
                raise FormatError(
                    f"Invalid param file {fname}: names must start with 'arg:' or 'aux:'", given=f"'{key}'"
                )
            found[kind][name] = value
        self.set_params(found["arg"], found["aux"])

    # -- defined by subclasses --------------------------------------------------------------------------------------

    @property
    def symbol(self) -> Any:
        """The graph."""
        return self._symbol

    @property
    def data_names(self) -> list[str]:
        """The names of the data inputs."""
        raise not_overridden(self, "data_names")

    @property
    def output_names(self) -> list[str]:
        """The names of the outputs."""
        raise not_overridden(self, "output_names")

    @property
    def data_shapes(self) -> list[DataDesc]:
        """The descriptions of the data inputs."""
        raise not_overridden(self, "data_shapes")

    @property
    def label_shapes(self) -> list[DataDesc] | None:
        """The descriptions of the labels."""
        raise not_overridden(self, "label_shapes")

    @property
    def output_shapes(self) -> list[tuple[str, tuple[int, ...]]]:
        """The (name, shape) pairs of the outputs."""
        raise not_overridden(self, "output_shapes")

    def get_params(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Returns (arguments, auxiliary states) by name."""
        raise not_overridden(self, "get_params")

    def init_params(
        self,
        initializer: Any = None,
        arg_params: dict[str, Any] | None = None,
        aux_params: dict[str, Any] | None = None,
        allow_missing: bool = False,
        force_init: bool = False,
        allow_extra: bool = False,
    ) -> None:
        """Initializes parameters."""
        raise not_overridden(self, "init_params")

    def set_params(
        self,
        arg_params: dict[str, Any],
        aux_params: dict[str, Any],
        allow_missing: bool = False,
        force_init: bool = True,
        allow_extra: bool = False,
    ) -> None:
        """Sets values of parameters."""
        self.init_params(None, arg_params, aux_params, allow_missing, force_init, allow_extra)

    def get_states(self, merge_multi_context: bool = True) -> list[Any]:
        """Returns the states of recurrent modules; none by default."""
        self._need("get_states")
        return []

    def set_states(self, states: Any = None, value: Any = None) -> None:
        """Sets the states of recurrent modules. Raises ParamError: there are none by default."""
        self._need("set_states")
        if states or value:
            raise ParamError(f"{type(self).__name__} has no states")

    def install_monitor(self, mon: Any) -> None:
        """Installs a monitor on the executors."""
        raise not_overridden(self, "install_monitor")

    def prepare(self, data_batch: DataBatch, sparse_row_id_fn: Callable[..., Any] | None = None) -> None:
        """Called with the batch before forward.

        sparse_row_id_fn(data_batch) returns the rows of row_sparse parameters that the batch needs, as a dict of arrays
        by parameter. If a store holds the parameters, executors then hold only these rows.
        """

    def forward(self, data_batch: DataBatch, is_train: bool | None = None) -> None:
        """Runs the graph on a batch."""
        raise not_overridden(self, "forward")

    def backward(self, out_grads: Any = None) -> None:
        """Computes gradients."""
        raise not_overridden(self, "backward")

    def get_outputs(self, merge_multi_context: bool = True) -> list[Any]:
        """Returns the outputs of the last forward."""
        raise not_overridden(self, "get_outputs")

    def get_input_grads(self, merge_multi_context: bool = True) -> list[Any]:
        """Returns the gradients of the data inputs."""
        raise not_overridden(self, "get_input_grads")

    def update(self) -> None:
        """Updates parameters by the gradients."""
        raise not_overridden(self, "update")

    def update_metric(self, eval_metric: Any, labels: Any, pre_sliced: bool = False) -> None:
        """Adds the outputs of the last forward to a metric."""
        raise not_overridden(self, "update_metric")

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
        """Allocates memory for inputs of these shapes."""
        raise not_overridden(self, "bind")

    def init_optimizer(
        self,
        kvstore: Any = "local",
        optimizer: Any = "sgd",
        optimizer_params: Any = (("learning_rate", 0.01),),
        force_init: bool = False,
    ) -> None:
        """Creates the optimizer."""
        raise not_overridden(self, "init_optimizer")


__dir__ = dir_of(__name__)

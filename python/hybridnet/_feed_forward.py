"""FeedForward: MXNet's first interface, a network trained and applied on arrays. It runs a Module."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import numpy as np

from . import io, metric
from .callback import LogValidationMetricsCallback
from .context import Context, cpu
from .errors import ParamError
from .errors import TypeError as HybridNetTypeError
from .errors import ValueError as HybridNetValueError
from .initializer import Uniform
from .model import load_checkpoint, save_checkpoint
from .module import BucketingModule, Module
from .ndarray import NDArray
from .symbol import Symbol

__all__ = ["FeedForward"]


class FeedForward:
    """A network with training and prediction on arrays. New programs use Module or Gluon.

    Parameters
    ----------
    symbol : Symbol, or callable (bucket key) -> Symbol
    ctx : Context or list of Context, default cpu()
        Prediction uses the first context.
    num_epoch, begin_epoch : int
        fit trains from begin_epoch to num_epoch.
    epoch_size : int, optional
        Batches per epoch; default: all batches of the data.
    optimizer : str or Optimizer, default 'sgd'
    initializer : default Uniform(0.01)
    numpy_batch_size : int, default 128
        Samples per batch if data are arrays.
    arg_params, aux_params : dict of str to NDArray, optional
    allow_extra_params : bool, default False
        Whether arg_params and aux_params may contain names that the symbol does not have.
    kwargs : passed to the optimizer.
    """

    def __init__(
        self,
        symbol: Symbol | Callable[[Any], Symbol],
        ctx: Context | list[Context] | None = None,
        num_epoch: int | None = None,
        epoch_size: int | None = None,
        optimizer: Any = "sgd",
        initializer: Any = None,
        numpy_batch_size: int = 128,
        arg_params: dict[str, NDArray] | None = None,
        aux_params: dict[str, NDArray] | None = None,
        allow_extra_params: bool = False,
        begin_epoch: int = 0,
        **kwargs: Any,
    ) -> None:
        if not isinstance(symbol, Symbol) and not callable(symbol):
            raise ParamError("FeedForward: symbol must be a Symbol or a function", given=type(symbol).__name__)
        self.symbol: Any = symbol if isinstance(symbol, Symbol) else None
        self.sym_gen = None if isinstance(symbol, Symbol) else symbol
        self.ctx = [cpu()] if ctx is None else [ctx] if isinstance(ctx, Context) else list(ctx)
        self.num_epoch = num_epoch
        self.begin_epoch = begin_epoch
        self.epoch_size = epoch_size
        self.optimizer = optimizer
        self.initializer = Uniform(0.01) if initializer is None else initializer
        self.numpy_batch_size = numpy_batch_size
        self.arg_params = arg_params
        self.aux_params = aux_params
        self.allow_extra_params = allow_extra_params
        self.kwargs = dict(kwargs)

    # -- data -------------------------------------------------------------------------------------------------------

    def _iterator(self, data: Any, label: Any, training: bool) -> Any:
        if isinstance(data, io.DataIter):
            return data
        if not isinstance(data, (np.ndarray, NDArray)):
            raise HybridNetTypeError(
                "FeedForward: data must be a DataIter, NDArray or numpy.ndarray", given=type(data).__name__
            )
        if label is None:
            if training:
                raise HybridNetValueError("FeedForward.fit: y must be given with an array X")
            label = np.zeros(data.shape[0])
        if not isinstance(label, (np.ndarray, NDArray)):
            raise HybridNetTypeError("FeedForward: y must be an array", given=type(label).__name__)
        if data.shape[0] != label.shape[0]:
            raise HybridNetValueError(f"FeedForward: X has {data.shape[0]} samples, y has {label.shape[0]}")
        if label.ndim == 2 and label.shape[1] == 1:
            label = label.reshape((-1,))
        if label.ndim != 1:
            raise HybridNetValueError("FeedForward: y must have shape (N,) or (N, 1)", given=str(tuple(label.shape)))
        size = min(data.shape[0], self.numpy_batch_size)
        return io.NDArrayIter(data, label, size, training, "roll_over" if training else "pad")

    def _eval_iterator(self, data: Any) -> Any:
        if data is None or isinstance(data, io.DataIter):
            return data
        if not isinstance(data, (tuple, list)) or len(data) != 2 or data[0] is None:
            raise HybridNetTypeError("FeedForward.fit: eval_data must be a DataIter or a pair of arrays")
        values, label = (np.asarray(part) if isinstance(part, list) else part for part in data)
        return self._iterator(values, label, training=label is not None)

    # -- modules ----------------------------------------------------------------------------------------------------

    def _module(self, data: Any, logger: Any) -> Any:
        """Returns a module for training on data."""
        names = [item[0] for item in data.provide_data], [item[0] for item in data.provide_label]
        if self.sym_gen is None:
            return Module(self.symbol, *names, logger=logger, context=self.ctx)
        generate = self.sym_gen
        self.symbol = generate(data.default_bucket_key)
        return BucketingModule(lambda key: (generate(key), *names), data.default_bucket_key, logger, self.ctx)

    def _predictor(self, data: Any) -> Module:
        """Returns a module bound for data, with the parameters. Raises ValueError if there are none."""
        if self.arg_params is None:
            raise HybridNetValueError("FeedForward: there are no parameters", fix="call fit, or give arg_params")
        if self.symbol is None and self.sym_gen is not None:
            self.symbol = self.sym_gen(data.default_bucket_key)
        names = [item[0] for item in data.provide_data]
        labels = [name for name in self.symbol.list_arguments() if name not in self.arg_params and name not in names]
        module = Module(self.symbol, names, labels, context=self.ctx[0])
        shapes = [item for item in data.provide_label or () if item[0] in labels]
        module.bind(data.provide_data, shapes if len(shapes) == len(labels) else None, for_training=False)
        arguments, states = self._known_params()
        module.set_params(arguments, states or {})
        return module

    def _known_params(self) -> tuple[Any, Any]:
        """Returns the parameters; with allow_extra_params, without those that the symbol does not have."""
        if not self.allow_extra_params:
            return self.arg_params, self.aux_params
        names = self.symbol.list_inputs()
        arguments, states = (
            None if params is None else {name: array for name, array in params.items() if name in names}
            for params in (self.arg_params, self.aux_params)
        )
        return arguments, states

    # -- use --------------------------------------------------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: Any = None,
        eval_data: Any = None,
        eval_metric: Any = "acc",
        epoch_end_callback: Any = None,
        batch_end_callback: Any = None,
        kvstore: Any = "local",
        logger: Any = None,
        work_load_list: Any = None,
        monitor: Any = None,
        eval_end_callback: Any = None,
        eval_batch_end_callback: Any = None,
    ) -> None:
        """Trains. X: DataIter, or array with labels y; eval_data: DataIter or (X, y); other arguments: see Module.fit.

        Raises TypeError and ValueError for mismatching data, ParamError without num_epoch.
        """
        data = self._iterator(X, y, training=True)
        module = self._module(data, logging if logger is None else logger)
        if self.epoch_size is not None:
            # An epoch starts with the batch after the last one of the previous epoch.
            data = _Epochs(data, self.epoch_size)
        arguments, states = self._known_params()
        module.fit(
            data,
            self._eval_iterator(eval_data),
            eval_metric,
            epoch_end_callback,
            batch_end_callback,
            kvstore,
            self.optimizer,
            self.kwargs,
            LogValidationMetricsCallback() if eval_end_callback is None else eval_end_callback,
            eval_batch_end_callback,
            self.initializer,
            arguments,
            states,
            allow_missing=True,
            begin_epoch=self.begin_epoch,
            num_epoch=self.num_epoch,
            monitor=monitor,
        )
        self.arg_params, self.aux_params = module.get_params()

    def predict(self, X: Any, num_batch: int | None = None, return_data: bool = False, reset: bool = True) -> Any:
        """Returns the outputs as numpy.ndarray, or as a list if there are several.

        With return_data: (outputs, data, labels). X: DataIter or array, num_batch: maximum number of batches.
        """
        data = self._iterator(X, None, training=False)
        outputs: list[Any] = []
        inputs: list[Any] = []
        labels: list[Any] = []
        for results, _, batch in self._predictor(data).iter_predict(data, num_batch, reset):
            outputs.append([result.asnumpy() for result in results])
            if return_data:
                size = data.batch_size - (batch.pad or 0)
                inputs.append([array[:size].asnumpy() for array in batch.data or ()])
                labels.append([array[:size].asnumpy() for array in batch.label or ()])
        if return_data:
            return _joined(outputs), _joined(inputs), _joined(labels)
        return _joined(outputs)

    def score(
        self,
        X: Any,
        eval_metric: Any = "acc",
        num_batch: int | None = None,
        batch_end_callback: Any = None,
        reset: bool = True,
    ) -> Any:
        """Returns the metric's value on X, a DataIter."""
        data = self._iterator(X, None, training=False)
        evaluated = eval_metric if isinstance(eval_metric, metric.EvalMetric) else metric.create(eval_metric)
        self._predictor(data).score(data, evaluated, num_batch, batch_end_callback, reset=reset)
        return evaluated.get()[1]

    # -- files ------------------------------------------------------------------------------------------------------

    def save(self, prefix: str, epoch: int | None = None, remove_amp_cast: bool = True) -> None:
        """Writes prefix-symbol.json and prefix-0010.params for epoch 10, by default num_epoch."""
        number = self.num_epoch if epoch is None else epoch
        if number is None or self.arg_params is None:
            raise HybridNetValueError("FeedForward.save: needs an epoch, and parameters: call fit first")
        save_checkpoint(prefix, number, self.symbol, self.arg_params, self.aux_params or {}, remove_amp_cast)

    @staticmethod
    def load(prefix: str, epoch: int, ctx: Any = None, **kwargs: Any) -> FeedForward:
        """Loads a network that save wrote; training continues at this epoch. kwargs: see the constructor."""
        symbol, arguments, states = load_checkpoint(prefix, epoch)
        return FeedForward(symbol, ctx, arg_params=arguments, aux_params=states, begin_epoch=epoch, **kwargs)

    @staticmethod
    def create(
        symbol: Any,
        X: Any,
        y: Any = None,
        ctx: Any = None,
        num_epoch: int | None = None,
        epoch_size: int | None = None,
        optimizer: Any = "sgd",
        initializer: Any = None,
        eval_data: Any = None,
        eval_metric: Any = "acc",
        epoch_end_callback: Any = None,
        batch_end_callback: Any = None,
        kvstore: Any = "local",
        logger: Any = None,
        work_load_list: Any = None,
        eval_end_callback: Any = None,
        eval_batch_end_callback: Any = None,
        **kwargs: Any,
    ) -> FeedForward:
        """Creates a network and trains it. Arguments: see the constructor and fit."""
        made = FeedForward(symbol, ctx, num_epoch, epoch_size, optimizer, initializer, **kwargs)
        made.fit(
            X,
            y,
            eval_data,
            eval_metric,
            epoch_end_callback,
            batch_end_callback,
            kvstore,
            logger,
            work_load_list,
            None,
            eval_end_callback,
            eval_batch_end_callback,
        )
        return made


class _Epochs(io.ResizeIter):
    """Yields size batches per epoch; the data are reset only at their end."""

    def __init__(self, data: Any, size: int) -> None:
        super().__init__(data, size, reset_internal=False)
        data.reset()


def _joined(batches: list[list[Any]]) -> Any:
    columns = [np.concatenate(column) for column in zip(*batches, strict=True)]
    return columns[0] if len(columns) == 1 else columns

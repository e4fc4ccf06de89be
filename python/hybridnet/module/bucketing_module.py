"""BucketingModule: one graph per bucket (such as a sequence length), all with the same parameters."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from .._public_names import dir_of
from ..errors import ParamError
from ..io import DataBatch
from ..model import load_params
from ..name import NameManager
from .base_module import BaseModule
from .module import Module

__all__ = ["BucketingModule"]


class BucketingModule(BaseModule):
    """Selects the graph by each batch's bucket_key; parameters and optimizer are shared.

    Parameters
    ----------
    sym_gen : callable (bucket_key) -> (symbol, data_names, label_names)
    default_bucket_key : the largest bucket, whose graph has all parameters
    logger, context, work_load_list, fixed_param_names, state_names, group2ctxs, compression_params, remat : see Module
    """

    def __init__(
        self,
        sym_gen: Callable[[Any], tuple[Any, Any, Any]],
        default_bucket_key: Any = None,
        logger: Any = logging,
        context: Any = None,
        work_load_list: Any = None,
        fixed_param_names: Any = None,
        state_names: Any = None,
        group2ctxs: Any = None,
        compression_params: Any = None,
        remat: str | int = "auto",
    ) -> None:
        super().__init__(logger=logger)
        if default_bucket_key is None:
            raise ParamError("BucketingModule: default_bucket_key is missing")
        self._default_bucket_key = default_bucket_key
        self._sym_gen = sym_gen
        self._settings = {
            "logger": logger,
            "context": context,
            "work_load_list": work_load_list,
            "fixed_param_names": fixed_param_names,
            "state_names": state_names,
            "group2ctxs": group2ctxs,
            "compression_params": compression_params,
            "remat": remat,
        }
        self._buckets: dict[Any, Module] = {}
        self._curr_module: Any = None
        self._curr_bucket_key: Any = None
        self._grad_req: Any = "write"
        self._monitor: Any = None
        self._loaded: tuple[dict[str, Any], dict[str, Any]] | None = None  # parameters for the first bind
        self._make(default_bucket_key)  # reports wrong names immediately

    @staticmethod
    def load(
        prefix: str,
        epoch: int,
        sym_gen: Callable[[Any], tuple[Any, Any, Any]] | None = None,
        default_bucket_key: Any = None,
        **kwargs: Any,
    ) -> BucketingModule:
        """Returns a module with the parameters of a file that save_checkpoint wrote; graphs come from sym_gen.

        kwargs: see the constructor. Bind it before use. Raises ParamError without sym_gen or default_bucket_key,
        FileError and FormatError for the file.
        """
        arguments, states = load_params(prefix, epoch)
        return BucketingModule._with_params("load", sym_gen, default_bucket_key, arguments, states, kwargs)

    @staticmethod
    def load_dict(
        sym_dict: dict[Any, Any] | None = None,
        sym_gen: Callable[[Any], tuple[Any, Any, Any]] | None = None,
        default_bucket_key: Any = None,
        arg_params: dict[str, Any] | None = None,
        aux_params: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> BucketingModule:
        """Returns a module with these graphs (bucket key -> Symbol) and parameters.

        sym_gen provides the names of data and labels, and the graphs of other buckets. kwargs: see the constructor.
        Bind it before use. Raises ParamError for missing arguments.
        """
        for name, value in (("sym_dict", sym_dict), ("arg_params", arg_params), ("aux_params", aux_params)):
            if value is None:
                raise ParamError(f"BucketingModule.load_dict: {name} is missing")

        def graph_of(key: Any) -> tuple[Any, Any, Any]:
            symbol, data_names, label_names = sym_gen(key)  # type: ignore[misc]  # checked by _with_params
            return sym_dict.get(key, symbol), data_names, label_names  # type: ignore[union-attr]

        generator = None if sym_gen is None else graph_of
        return BucketingModule._with_params("load_dict", generator, default_bucket_key, arg_params, aux_params, kwargs)

    @staticmethod
    def _with_params(
        what: str, sym_gen: Any, default_bucket_key: Any, arg_params: Any, aux_params: Any, settings: dict[str, Any]
    ) -> BucketingModule:
        for name, value in (("sym_gen", sym_gen), ("default_bucket_key", default_bucket_key)):
            if value is None:
                raise ParamError(f"BucketingModule.{what}: {name} is missing")
        made = BucketingModule(sym_gen, default_bucket_key, **settings)
        made._loaded = (arg_params, aux_params)
        made.params_initialized = True
        return made

    def _generated(self, bucket_key: Any) -> tuple[Any, Any, Any]:
        """Returns sym_gen's result for a bucket. Names count from 0, so that all buckets have the same parameters."""
        with NameManager():
            return self._sym_gen(bucket_key)

    def _make(self, bucket_key: Any) -> Module:
        symbol, data_names, label_names = self._generated(bucket_key)
        return Module(symbol, data_names, label_names, **self._settings)

    @property
    def symbol(self) -> Any:
        """The graph of the current bucket."""
        self._need("symbol", params=False)
        return self._curr_module.symbol

    @property
    def data_names(self) -> list[str]:
        """The names of the data inputs."""
        if self.binded:
            return self._curr_module.data_names
        return list(self._generated(self._default_bucket_key)[1])

    @property
    def output_names(self) -> list[str]:
        """The names of the outputs."""
        if self.binded:
            return self._curr_module.output_names
        return self._generated(self._default_bucket_key)[0].list_outputs()

    @property
    def data_shapes(self) -> Any:
        """The descriptions of the data inputs of the current bucket."""
        self._need("data_shapes", params=False)
        return self._curr_module.data_shapes

    @property
    def label_shapes(self) -> Any:
        """The descriptions of the labels of the current bucket."""
        self._need("label_shapes", params=False)
        return self._curr_module.label_shapes

    @property
    def output_shapes(self) -> Any:
        """The (name, shape) pairs of the outputs of the current bucket."""
        self._need("output_shapes", params=False)
        return self._curr_module.output_shapes

    def get_params(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Returns (arguments, auxiliary states) of the default bucket, which has all of them."""
        self._need("get_params")
        default = self._buckets[self._default_bucket_key]
        default._params_dirty = True  # another bucket may have updated them
        return default.get_params()

    def init_params(
        self,
        initializer: Any = None,
        arg_params: dict[str, Any] | None = None,
        aux_params: dict[str, Any] | None = None,
        allow_missing: bool = False,
        force_init: bool = False,
        allow_extra: bool = False,
    ) -> None:
        """Initializes parameters. Arguments: see Module.init_params."""
        if self.params_initialized and not force_init:
            return
        self._need("init_params", params=False)
        default = self._buckets[self._default_bucket_key]
        default.init_params(initializer, arg_params, aux_params, allow_missing, force_init, allow_extra)
        for module in self._buckets.values():
            module.params_initialized = True
        self.params_initialized = True

    def set_params(
        self,
        arg_params: dict[str, Any],
        aux_params: dict[str, Any],
        allow_missing: bool = False,
        force_init: bool = True,
        allow_extra: bool = False,
    ) -> None:
        """Sets values. Arguments: see Module.set_params."""
        self._need("set_params", params=False)
        default = self._buckets[self._default_bucket_key]
        default.set_params(arg_params, aux_params, allow_missing, force_init, allow_extra)
        self.params_initialized = True

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
        """Allocates memory for the default bucket with these shapes; other buckets are bound with their first batch."""
        if shared_module is not None:
            raise ParamError("shared_module for BucketingModule is not supported")
        if force_rebind:
            self.binded = False
            self._buckets = {}
        if self.binded:
            self.logger.warning("Already bound, ignoring bind()")
            return
        self.for_training = for_training
        self.inputs_need_grad = inputs_need_grad
        self._grad_req = grad_req
        module = self._make(self._default_bucket_key)
        if self._loaded is not None:
            module._arg_params, module._aux_params = self._loaded
            module.params_initialized = True
            self._loaded = None
        module.bind(data_shapes, label_shapes, for_training, inputs_need_grad, grad_req=grad_req)
        self._buckets[self._default_bucket_key] = module
        self._curr_module, self._curr_bucket_key = module, self._default_bucket_key
        self.binded = True

    def switch_bucket(self, bucket_key: Any, data_shapes: Any, label_shapes: Any = None) -> None:
        """Makes a bucket's graph the current one, and binds it if it is new."""
        self._need("switch_bucket", params=False)
        if bucket_key not in self._buckets:
            module = self._make(bucket_key)
            module.bind(
                data_shapes,
                label_shapes,
                self.for_training,
                self.inputs_need_grad,
                shared_module=self._buckets[self._default_bucket_key],
                grad_req=self._grad_req,
            )
            if self._monitor is not None:
                module.install_monitor(self._monitor)
            self._buckets[bucket_key] = module
        self._curr_module, self._curr_bucket_key = self._buckets[bucket_key], bucket_key

    def init_optimizer(
        self,
        kvstore: Any = "local",
        optimizer: Any = "sgd",
        optimizer_params: Any = (("learning_rate", 0.01),),
        force_init: bool = False,
    ) -> None:
        """Creates the optimizer of all buckets. Arguments: see Module.init_optimizer."""
        self._need("init_optimizer")
        if self.optimizer_initialized and not force_init:
            self.logger.warning("optimizer already initialized, ignoring.")
            return
        default = self._buckets[self._default_bucket_key]
        default.init_optimizer(kvstore, optimizer, optimizer_params, force_init=force_init)
        for module in self._buckets.values():
            if module is not default:
                module.borrow_optimizer(default)
        self.optimizer_initialized = True

    def prepare(self, data_batch: DataBatch, sparse_row_id_fn: Any = None) -> None:
        """Binds the batch's bucket, without changing the current one, and prepares it."""
        self._need("prepare")
        before = self._curr_bucket_key
        self.switch_bucket(data_batch.bucket_key, data_batch.provide_data, data_batch.provide_label)
        self._curr_module.prepare(data_batch, sparse_row_id_fn)
        self._curr_module, self._curr_bucket_key = self._buckets[before], before

    def forward(self, data_batch: DataBatch, is_train: bool | None = None) -> None:
        """Runs the graph of the batch's bucket."""
        self._need("forward")
        self.switch_bucket(data_batch.bucket_key, data_batch.provide_data, data_batch.provide_label)
        self._curr_module.forward(data_batch, is_train=is_train)

    def backward(self, out_grads: Any = None) -> None:
        """Computes gradients."""
        self._need("backward")
        self._curr_module.backward(out_grads=out_grads)

    def update(self) -> None:
        """Updates the shared parameters by the gradients of the current bucket."""
        self._need("update", optimizer=True)
        if not self._curr_module.optimizer_initialized:
            self._curr_module.borrow_optimizer(self._buckets[self._default_bucket_key])
        # Indices of weights must refer to the same parameter in every bucket: the optimizer has the default bucket's
        # indices.
        self._update_by_default_indices()

    def _update_by_default_indices(self) -> None:
        default = self._buckets[self._default_bucket_key]
        current = self._curr_module
        if current is default or current._param_names == default._param_names or current._update_on_kvstore:
            current.update()
            return
        positions = {name: i for i, name in enumerate(default._param_names)}
        group = current._exec_group
        for name, arrays, grads in zip(current._param_names, group.param_arrays, group.grad_arrays, strict=True):
            if grads[0] is None:
                continue
            if current._kvstore is not None:
                current._kvstore.pushpull(name, grads, out=grads)
            for k, (array, grad) in enumerate(zip(arrays, grads, strict=True)):
                current._updater(positions[name] * len(arrays) + k, grad, array)
        current._params_dirty = True

    def get_outputs(self, merge_multi_context: bool = True) -> list[Any]:
        """Returns the outputs of the last forward."""
        self._need("get_outputs")
        return self._curr_module.get_outputs(merge_multi_context)

    def get_input_grads(self, merge_multi_context: bool = True) -> list[Any]:
        """Returns the gradients of the data."""
        self._need("get_input_grads")
        return self._curr_module.get_input_grads(merge_multi_context)

    def get_states(self, merge_multi_context: bool = True) -> list[Any]:
        """Returns the values of the states of the current bucket."""
        self._need("get_states")
        return self._curr_module.get_states(merge_multi_context)

    def set_states(self, states: Any = None, value: Any = None) -> None:
        """Sets the states of the current bucket."""
        self._need("set_states")
        self._curr_module.set_states(states, value)

    def update_metric(self, eval_metric: Any, labels: Any, pre_sliced: bool = False) -> None:
        """Adds the outputs of the last forward to a metric."""
        self._need("update_metric")
        self._curr_module.update_metric(eval_metric, labels, pre_sliced)

    def install_monitor(self, mon: Any) -> None:
        """Installs a monitor on the executors of all buckets."""
        self._need("install_monitor", params=False)
        self._monitor = mon
        for module in self._buckets.values():
            module.install_monitor(mon)

    def save_checkpoint(
        self, prefix: str, epoch: int, save_optimizer_states: bool = False, remove_amp_cast: bool = True
    ) -> None:
        """Writes the default bucket's graph and all parameters. Arguments: see Module.save_checkpoint."""
        self._need("save_checkpoint")
        default = self._buckets[self._default_bucket_key]
        default._params_dirty = True
        default.save_checkpoint(prefix, epoch, save_optimizer_states, remove_amp_cast)


__dir__ = dir_of(__name__)

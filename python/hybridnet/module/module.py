"""Module: a symbol with its parameters and optimizer."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import ndarray
from .. import optimizer as opt
from .._files import read_bytes, replacing
from .._keywords import remat_text
from .._public_names import dir_of
from .._user_line import warn
from ..context import Context, cpu
from ..errors import HybridNetError, ParamError
from ..initializer import InitDesc, Uniform
from ..io import DataBatch, DataDesc
from ..kvstore._async_store import AsyncKVStore
from ..kvstore._dist_store import DistKVStore
from ..model import load_checkpoint
from .base_module import BaseModule, check_input_names, describe_inputs
from .executor_group import DataParallelExecutorGroup

__all__ = ["Module"]


def _groups_by_context(group2ctxs: Any, count: int) -> list[dict[str, Context]]:
    """Returns, for each of count contexts, the context of each group. Raises ParamError for lists of another length."""
    if not group2ctxs:
        return [{} for _ in range(count)]
    if isinstance(group2ctxs, (list, tuple)):
        if len(group2ctxs) != count:
            raise ParamError(
                "Module: group2ctxs", expected=f"{count} dicts, one per context", given=str(len(group2ctxs))
            )
        return [dict(groups) for groups in group2ctxs]
    columns = {}
    for group, given in group2ctxs.items():
        places = [given] if isinstance(given, Context) else list(given)
        if len(places) not in (1, count):
            raise ParamError(
                f"Module: group2ctxs[{group!r}]", expected=f"1 or {count} contexts", given=str(len(places))
            )
        columns[group] = places * count if len(places) == 1 else places
    return [{group: places[i] for group, places in columns.items()} for i in range(count)]


class Module(BaseModule):
    """Trains and runs a symbol::

        mod = mx.mod.Module(symbol, data_names=["data"], label_names=["softmax_label"])
        mod.fit(train_iter, eval_iter, optimizer_params={"learning_rate": 0.1}, num_epoch=10)

    Parameters
    ----------
    symbol : Symbol
    data_names, label_names : list of str
        Names of the inputs; arguments that are neither inputs nor states are parameters.
    logger : default logging
    context : Context or list of Context, default cpu()
        Contexts; each batch is split among them.
    work_load_list : list of float, optional
        Fractions of the batch per context.
    fixed_param_names : list of str, optional
        Parameters that are not trained.
    state_names : list of str, optional
        Inputs that keep their values between batches.
    group2ctxs : dict of str to Context or list of Context, or a list of such dicts, optional
        Contexts of parameters whose nodes have the attribute ctx_group, by its value: for each context of the module.
    compression_params : dict, optional
        {'type': '2bit', 'threshold': 0.5}: passed to the kvstore of init_optimizer, if there is one.
    remat : 'auto', 'none' or int, default 'auto'
        Values that backward recomputes instead of keeping them, see HybridBlock.hybridize.

    Raises ParamError for names that the symbol does not have.
    """

    def __init__(
        self,
        symbol: Any,
        data_names: Sequence[str] | None = ("data",),
        label_names: Sequence[str] | None = ("softmax_label",),
        logger: Any = logging,
        context: Context | Sequence[Context] | None = None,
        work_load_list: Sequence[float] | None = None,
        fixed_param_names: Sequence[str] | None = None,
        state_names: Sequence[str] | None = None,
        group2ctxs: Any = None,
        compression_params: Any = None,
        remat: str | int = "auto",
    ) -> None:
        super().__init__(logger=logger)
        context = cpu() if context is None else context
        self._context = [context] if isinstance(context, Context) else list(context)
        self._group2ctxs = _groups_by_context(group2ctxs, len(self._context))
        self._work_load_list = list(work_load_list or [1] * len(self._context))
        if len(self._work_load_list) != len(self._context):
            raise ParamError("Module: work_load_list needs one number per context")
        self._symbol = symbol
        self._data_names = list(data_names or ())
        self._label_names = list(label_names or ())
        self._state_names = list(state_names or ())
        self._fixed_param_names = list(fixed_param_names or ())
        check_input_names(symbol, self._data_names, "data", True)
        check_input_names(symbol, self._label_names, "label", False)
        check_input_names(symbol, self._state_names, "state", True)
        check_input_names(symbol, self._fixed_param_names, "fixed_param", True)
        inputs = {*self._data_names, *self._label_names, *self._state_names}
        self._param_names = [name for name in symbol.list_arguments() if name not in inputs]
        self._aux_names = symbol.list_auxiliary_states()
        self._output_names = symbol.list_outputs()
        self._compression_params = compression_params
        self._remat = remat_text(remat)
        self._arg_params: dict[str, Any] | None = None
        self._aux_params: dict[str, Any] | None = None
        # Whether the executors' parameters are newer than _arg_params.
        self._params_dirty = False
        self._optimizer: Any = None
        self._kvstore: Any = None
        self._update_on_kvstore = False
        self._held_by_rows: set[str] = set()  # parameters whose executors hold only the rows pulled by prepare()
        self._updater: Any = None
        self._preload_opt_states: str | None = None
        self._grad_req: Any = None
        self._exec_group: Any = None
        self._data_shapes: Any = None
        self._label_shapes: Any = None

    @property
    def _total_exec_bytes(self) -> int:
        """The number of bytes of the bound arrays."""
        arrays = [a for exe in self._exec_group.execs for a in (*exe.arg_arrays, *exe.grad_arrays, *exe.aux_arrays)]
        return sum(a.size * np.dtype(a.dtype).itemsize for a in arrays if a is not None)

    # -- files ------------------------------------------------------------------------------------------------------

    @staticmethod
    def load(prefix: str, epoch: int, load_optimizer_states: bool = False, **kwargs: Any) -> Module:
        """Loads a module that save_checkpoint wrote; kwargs: see the constructor. Bind it before use."""
        symbol, arguments, states = load_checkpoint(prefix, epoch)
        mod = Module(symbol=symbol, **kwargs)
        mod._arg_params = arguments
        mod._aux_params = states
        mod.params_initialized = True
        if load_optimizer_states:
            mod._preload_opt_states = f"{prefix}-{epoch:04d}.states"
        return mod

    def save_checkpoint(
        self, prefix: str, epoch: int, save_optimizer_states: bool = False, remove_amp_cast: bool = True
    ) -> None:
        """Writes prefix-symbol.json, prefix-0001.params for epoch 1, and optionally prefix-0001.states."""
        self._symbol.save(f"{prefix}-symbol.json", remove_amp_cast=remove_amp_cast)
        name = f"{prefix}-{epoch:04d}.params"
        self.save_params(name)
        logging.info('Saved checkpoint to "%s"', name)
        if save_optimizer_states:
            name = f"{prefix}-{epoch:04d}.states"
            self.save_optimizer_states(name)
            logging.info('Saved optimizer state to "%s"', name)

    def save_optimizer_states(self, fname: str) -> None:
        """Writes the optimizer's states."""
        self._need("save_optimizer_states", optimizer=True)
        if self._update_on_kvstore:
            self._kvstore.save_optimizer_states(fname)
        else:
            states = self._updater.get_states()
            with replacing(fname, "Module.save_optimizer_states") as file:
                file.write(states)

    def load_optimizer_states(self, fname: str) -> None:
        """Reads states that save_optimizer_states wrote. Raises FileError, FormatError."""
        self._need("load_optimizer_states", optimizer=True)
        if self._update_on_kvstore:
            self._kvstore.load_optimizer_states(fname)
            return
        self._updater.set_states(read_bytes(fname, "Module.load_optimizer_states"))

    # -- descriptions -----------------------------------------------------------------------------------------------

    @property
    def data_names(self) -> list[str]:
        """The names of the data inputs."""
        return self._data_names

    @property
    def label_names(self) -> list[str]:
        """The names of the labels."""
        return self._label_names

    @property
    def output_names(self) -> list[str]:
        """The names of the outputs."""
        return self._output_names

    @property
    def data_shapes(self) -> list[DataDesc]:
        """The descriptions of the data inputs."""
        self._need("data_shapes", params=False)
        return self._data_shapes

    @property
    def label_shapes(self) -> list[DataDesc] | None:
        """The descriptions of the labels."""
        self._need("label_shapes", params=False)
        return self._label_shapes

    @property
    def output_shapes(self) -> list[tuple[str, tuple[int, ...]]]:
        """The (name, shape) pairs of the outputs."""
        self._need("output_shapes", params=False)
        return self._exec_group.get_output_shapes()

    # -- parameters -------------------------------------------------------------------------------------------------

    def get_params(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Returns (arguments, auxiliary states) by name, on the CPU."""
        self._need("get_params")
        if self._params_dirty:
            self._sync_params_from_devices()
        return self._arg_params, self._aux_params  # type: ignore[return-value]

    def _sync_params_from_devices(self) -> None:
        if self._update_on_kvstore:  # row_sparse_pull may have skipped rows of the executors' arrays
            for name, arrays in zip(self._param_names, self._exec_group.param_arrays, strict=True):
                self._kvstore.pull(name, out=arrays, ignore_sparse=False)
            self._held_by_rows.clear()
        self._exec_group.get_params(self._arg_params, self._aux_params)
        self._params_dirty = False

    def init_params(
        self,
        initializer: Any = None,
        arg_params: dict[str, Any] | None = None,
        aux_params: dict[str, Any] | None = None,
        allow_missing: bool = False,
        force_init: bool = False,
        allow_extra: bool = False,
    ) -> None:
        """Initializes parameters.

        Parameters
        ----------
        initializer : default Uniform(0.01)
            Initializer of parameters that are missing in the dicts.
        arg_params, aux_params : dict of str to NDArray, optional
            Values of the parameters.
        allow_missing : bool, default False
            Whether names may be missing in the dicts.
        force_init : bool, default False
            Whether existing parameters are initialized again.
        allow_extra : bool, default False
            Whether the dicts may have names that the symbol does not have.

        Raises RuntimeError for a missing name, ValueError for an extra one.
        """
        if self.params_initialized and not force_init:
            warn(
                "Parameters already initialized and force_init=False. init_params call ignored.",
            )
            return
        self._need("init_params", params=False)
        if initializer is None and arg_params is None and aux_params is None:
            initializer = Uniform(0.01)
        attributes = self._symbol.attr_dict()
        for own, given in ((self._arg_params, arg_params), (self._aux_params, aux_params)):
            for name, array in sorted(own.items()):  # type: ignore[union-attr]
                self._init_one(InitDesc(name, attributes.get(name)), array, given, initializer, allow_missing)
        if not allow_extra:
            self._refuse_extra(arg_params, self._arg_params)
            self._refuse_extra(aux_params, self._aux_params)
        self.params_initialized = True
        self._params_dirty = False
        self._exec_group.set_params(self._arg_params, self._aux_params)
        self._fill_store()

    @staticmethod
    def _init_one(desc: InitDesc, array: Any, given: Any, initializer: Any, allow_missing: bool) -> None:
        if given is not None and str(desc) in given:
            if given[desc] is not array:
                array[:] = given[desc].as_in_context(array.context)
        elif given is not None and not allow_missing:
            raise HybridNetError(f"{desc} is not presented")
        elif initializer is not None:
            initializer(desc, array)

    @staticmethod
    def _refuse_extra(given: dict[str, Any] | None, own: dict[str, Any] | None) -> None:
        extra = sorted(set(given or ()) - set(own or ()))
        if extra:
            raise ParamError(
                f"Module: the symbol has no parameter '{extra[0]}'", fix="pass allow_extra=True to ignore such names"
            )

    def set_params(
        self,
        arg_params: dict[str, Any],
        aux_params: dict[str, Any],
        allow_missing: bool = False,
        force_init: bool = True,
        allow_extra: bool = False,
    ) -> None:
        """Sets values. Arguments and errors: see init_params; parameters with missing names are unchanged."""
        if not allow_missing:
            self.init_params(None, arg_params, aux_params, allow_missing, force_init, allow_extra)
            return
        if self.params_initialized and not force_init:
            warn("Parameters already initialized and force_init=False. set_params call ignored.")
            return
        self._need("set_params", params=False)
        self._exec_group.set_params(arg_params, aux_params, allow_extra=allow_extra)
        self._fill_store(arg_params)
        self._params_dirty = True
        self.params_initialized = True

    # -- memory -----------------------------------------------------------------------------------------------------

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
        """Allocates memory for inputs of these shapes.

        Parameters
        ----------
        data_shapes, label_shapes : list of DataDesc or (name, shape)
        for_training : bool, default True
            Whether gradients are computed.
        inputs_need_grad : bool, default False
            Whether gradients of the data are also computed.
        force_rebind : bool, default False
            Whether to bind again if bound.
        shared_module : Module, optional
            Module whose parameters are shared.
        grad_req : str, list or dict, default 'write'

        Raises ParamError for wrong names, ShapeError if the parameters' shapes cannot be inferred.
        """
        if force_rebind:
            if self.binded and self._params_dirty:
                self._sync_params_from_devices()
            self.binded = False
            self._exec_group = None
        if self.binded:
            self.logger.warning("Already bound, ignoring bind()")
            return
        if inputs_need_grad and not for_training:
            raise ParamError("Module.bind: inputs_need_grad needs for_training=True")
        self.for_training = for_training
        self.inputs_need_grad = inputs_need_grad
        self._grad_req = grad_req
        self._describe(data_shapes, label_shapes)
        if shared_module is not None:
            shared_module._need("bind (as shared_module)")
        self._exec_group = DataParallelExecutorGroup(
            self._symbol,
            self._context,
            self._work_load_list,
            self._data_shapes,
            self._label_shapes,
            self._param_names,
            for_training,
            inputs_need_grad,
            None if shared_module is None else shared_module._exec_group,
            logger=self.logger,
            fixed_param_names=self._fixed_param_names,
            grad_req=grad_req,
            state_names=self._state_names,
            group2ctxs=self._group2ctxs,
            remat=self._remat,
        )
        self.binded = True
        if shared_module is not None:
            self._take_over(shared_module)
        elif self.params_initialized:
            self._exec_group.set_params(self._arg_params, self._aux_params)
        else:
            self._arg_params = self._like(self._param_names, self._exec_group.param_arrays)
            self._aux_params = self._like(self._aux_names, self._exec_group.aux_arrays)

    @staticmethod
    def _like(names: Sequence[str], columns: Sequence[Sequence[Any]]) -> dict[str, Any]:
        return {
            name: ndarray.zeros(arrays[0].shape, dtype=arrays[0].dtype, stype=arrays[0].stype)
            for name, arrays in zip(names, columns, strict=True)
        }

    def _take_over(self, shared: Module) -> None:
        """Uses the parameters of a module whose executors share memory with this one's."""
        self._arg_params = self._like(self._param_names, self._exec_group.param_arrays)
        self._aux_params = self._like(self._aux_names, self._exec_group.aux_arrays)
        arguments, states = shared.get_params()
        for own, theirs, arrays in (
            (self._arg_params, arguments, self._exec_group.param_arrays),
            (self._aux_params, states, self._exec_group.aux_arrays),
        ):
            for (name, array), column in zip(own.items(), arrays, strict=True):
                if name in theirs:
                    array[:] = theirs[name]
                else:
                    for target in column:
                        target[:] = array
        self.params_initialized = True
        self._params_dirty = True
        if shared.optimizer_initialized:
            self.borrow_optimizer(shared)

    def _describe(self, data_shapes: Any, label_shapes: Any) -> None:
        self._data_shapes = describe_inputs(self._data_names, data_shapes, "data", True)
        self._label_shapes = describe_inputs(self._label_names, label_shapes, "label", False)

    def reshape(self, data_shapes: Any, label_shapes: Any = None) -> None:
        """Binds for inputs of other shapes and keeps the parameters."""
        self._need("reshape", params=False)
        self._describe(data_shapes, label_shapes)
        self._exec_group.reshape(self._data_shapes, self._label_shapes)

    # -- optimizer --------------------------------------------------------------------------------------------------

    def init_optimizer(
        self,
        kvstore: Any = "local",
        optimizer: Any = "sgd",
        optimizer_params: Any = (("learning_rate", 0.01),),
        force_init: bool = False,
    ) -> None:
        """Creates the optimizer.

        Parameters
        ----------
        kvstore : str, KVStore or None
            Sums gradients of several contexts. A store that the caller created and that has an optimizer also holds the
            parameters, by name, and updates them.
        optimizer : str or Optimizer
        optimizer_params : dict or pairs
            Arguments of an optimizer that is given by name; default of rescale_grad: 1 / batch size.
        force_init : bool, default False
            Whether to replace an existing optimizer.
        """
        self._need("init_optimizer")
        if self.optimizer_initialized and not force_init:
            self.logger.warning("optimizer already initialized, ignoring...")
            return
        if self._params_dirty:
            self._sync_params_from_devices()
        self._kvstore = self._make_store(kvstore)
        if self._kvstore is not None and self._compression_params:
            self._kvstore.set_gradient_compression(self._compression_params)
        self._update_on_kvstore = isinstance(self._kvstore, AsyncKVStore) or (
            self._kvstore is kvstore is not None and self._kvstore.is_capable("optimizer")
        )
        count = 1 if self._update_on_kvstore else len(self._context)
        names = {i * count + k: name for i, name in enumerate(self._param_names) for k in range(count)}
        self._optimizer = self._make_optimizer(optimizer, optimizer_params, names)
        if self._update_on_kvstore:
            self._updater = None
            self._kvstore.set_optimizer(self._optimizer)
            self._fill_store()
        else:
            self._updater = opt.get_updater(self._optimizer)
            self._take_values_of_first_process()
        self.optimizer_initialized = True
        if self._preload_opt_states is not None:
            self.load_optimizer_states(self._preload_opt_states)
            self._preload_opt_states = None

    def _take_values_of_first_process(self) -> None:
        """With a store of several processes, all begin with the parameters of process 0."""
        if not hasattr(self._kvstore, "broadcast_all") or self._kvstore.num_workers == 1:
            return
        self._kvstore.broadcast_all(self._param_names, self._exec_group.param_arrays)
        self._params_dirty = True

    def _make_store(self, kvstore: Any) -> Any:
        if kvstore is None or (isinstance(kvstore, str) and len(self._context) == 1 and "dist" not in kvstore):
            return None
        if isinstance(kvstore, str):
            from ..kvstore import create

            return create(kvstore)
        return kvstore

    def _fill_store(self, given: Any = None) -> None:
        """Writes parameters (default: all) into a store that updates them."""
        if not self._update_on_kvstore:
            return
        for name, arrays in zip(self._param_names, self._exec_group.param_arrays, strict=True):
            if given is None or name in given:
                self._kvstore.broadcast(name, arrays[0], out=arrays)

    def _make_optimizer(self, optimizer: Any, params: Any, names: dict[int, str]) -> opt.Optimizer:
        # With 'dist_async' an update has the gradients of one process, as in MXNet.
        processes = self._kvstore.num_workers if isinstance(self._kvstore, DistKVStore) else 1
        rescale = 1.0 / (self._exec_group.batch_size * processes)
        if isinstance(optimizer, str):
            params = dict(params)
            params.setdefault("rescale_grad", rescale)
            return opt.create(optimizer, sym=self._symbol, param_idx2name=names, **params)
        if not isinstance(optimizer, opt.Optimizer):
            raise ParamError("init_optimizer", expected="a name or an Optimizer", given=type(optimizer).__name__)
        if optimizer.rescale_grad != rescale:
            warn(
                "Optimizer created manually outside Module but rescale_grad is not normalized to 1.0/batch_size/"
                f"num_workers ({optimizer.rescale_grad} vs. {rescale}). Is this intended?",
            )
        if not optimizer.idx2name:
            optimizer.idx2name = dict(names)
        return optimizer

    def borrow_optimizer(self, shared_module: Module) -> None:
        """Uses another module's optimizer and its states."""
        shared_module._need("borrow_optimizer", optimizer=True)
        self._optimizer = shared_module._optimizer
        self._kvstore = shared_module._kvstore
        self._update_on_kvstore = shared_module._update_on_kvstore
        self._updater = shared_module._updater
        self.optimizer_initialized = True

    # -- running ----------------------------------------------------------------------------------------------------

    def forward(self, data_batch: DataBatch, is_train: bool | None = None) -> None:
        """Runs the graph; rebinds first if the batch has other shapes. is_train: default for_training."""
        self._need("forward")
        shapes = [tuple(array.shape) for array in data_batch.data or ()]
        if shapes != [tuple(desc.shape) for desc in self._data_shapes]:
            self._reshape_for(data_batch, shapes)
        self._exec_group.forward(data_batch, is_train)

    def prepare(self, data_batch: DataBatch, sparse_row_id_fn: Callable[..., Any] | None = None) -> None:
        """Pulls rows of row_sparse parameters; sparse_row_id_fn(data_batch) returns a dict of row arrays by name.

        Executors then hold only these rows until the next prepare(), so call it before every batch. Without the
        function they hold all rows, as they do if no store updates the parameters.
        """
        self._need("prepare")
        if not self._update_on_kvstore:
            return
        wanted = sparse_row_id_fn(data_batch) if sparse_row_id_fn is not None else {}
        arrays_of = dict(zip(self._param_names, self._exec_group.param_arrays, strict=True))
        for name, rows in wanted.items():
            self._kvstore.row_sparse_pull(name, out=arrays_of[name], row_ids=rows)
        for name in self._held_by_rows - set(wanted):
            self._kvstore.pull(name, out=arrays_of[name], ignore_sparse=False)
        self._held_by_rows = {name for name in wanted if arrays_of[name][0].stype != "default"}

    def _reshape_for(self, batch: DataBatch, shapes: list[tuple[int, ...]]) -> None:
        data = getattr(batch, "provide_data", None) or [
            DataDesc(desc.name, shape, desc.dtype, desc.layout)
            for desc, shape in zip(self._data_shapes, shapes, strict=True)
        ]
        label = getattr(batch, "provide_label", None)
        given = getattr(batch, "label", None)
        if not label and given and self._label_shapes:
            label = [
                DataDesc(desc.name, array.shape, desc.dtype, desc.layout)
                for desc, array in zip(self._label_shapes, given, strict=True)
            ]
        if not label and self._label_shapes:
            # Prediction needs no labels, but the graph has inputs for them, here with the new batch size.
            label = [
                DataDesc(desc.name, (shapes[0][0], *desc.shape[1:]), desc.dtype, desc.layout)
                for desc in self._label_shapes
            ]
        self.reshape(data, label)

    def backward(self, out_grads: Any = None) -> None:
        """Computes gradients; out_grads are the output gradients for graphs without a loss at the end."""
        self._need("backward")
        self._exec_group.backward(out_grads=out_grads)

    def update(self) -> None:
        """Updates parameters by the last gradients."""
        self._need("update", optimizer=True)
        self._params_dirty = True
        group = self._exec_group
        count = len(self._context)
        columns: list[list[tuple[int, Any, Any]]] = [[] for _ in range(count)]
        for i, (arrays, grads) in enumerate(zip(group.param_arrays, group.grad_arrays, strict=True)):
            if grads[0] is None:
                continue
            if self._update_on_kvstore:
                self._update_in_store(self._param_names[i], arrays, grads, -i)
                continue
            if self._kvstore is not None:
                self._kvstore.pushpull(self._param_names[i], grads, out=grads, priority=-i)
            for k, (array, grad) in enumerate(zip(arrays, grads, strict=True)):
                columns[k].append((i * count + k, grad, array))
        for column in columns:
            if column:
                indices, grads, arrays = (list(part) for part in zip(*column, strict=True))
                self._updater(indices, grads, arrays)

    def _update_in_store(self, name: str, arrays: list[Any], grads: list[Any], priority: int) -> None:
        if arrays[0].stype == "default":
            self._kvstore.pushpull(name, grads, out=arrays, priority=priority)
        else:  # pushpull leaves these arrays to row_sparse_pull
            self._kvstore.push(name, grads, priority=priority)
            if name not in self._held_by_rows:
                self._kvstore.pull(name, out=arrays, priority=priority, ignore_sparse=False)

    def get_outputs(self, merge_multi_context: bool = True) -> list[Any]:
        """Returns outputs of the last forward, joined over contexts (or a list per output)."""
        self._need("get_outputs")
        return self._exec_group.get_outputs(merge_multi_context)

    def get_input_grads(self, merge_multi_context: bool = True) -> list[Any]:
        """Returns gradients of the data. Raises ParamError unless bound with inputs_need_grad=True."""
        self._need("get_input_grads")
        if not self.inputs_need_grad:
            raise ParamError("Module.get_input_grads: bind with inputs_need_grad=True")
        return self._exec_group.get_input_grads(merge_multi_context)

    def get_states(self, merge_multi_context: bool = True) -> list[Any]:
        """Returns the values of the states."""
        self._need("get_states")
        return self._exec_group.get_states(merge_multi_context)

    def set_states(self, states: Any = None, value: Any = None) -> None:
        """Sets states from get_states(merge_multi_context=False), or all to a number."""
        self._need("set_states")
        self._exec_group.set_states(states, value)

    def update_metric(self, eval_metric: Any, labels: Any, pre_sliced: bool = False) -> None:
        """Adds the outputs of the last forward to a metric."""
        self._exec_group.update_metric(eval_metric, labels, pre_sliced)

    def install_monitor(self, mon: Any) -> None:
        """Installs a monitor on the executors."""
        self._need("install_monitor", params=False)
        self._exec_group.install_monitor(mon)


__dir__ = dir_of(__name__)

"""DataParallelExecutorGroup: one executor per context, each for a part of the batch."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from .. import ndarray
from .._public_names import dir_of
from ..errors import ParamError, ShapeError
from ..executor import argument_storage, context_of_names
from ..io import DataBatch, DataDesc
from ..ndarray import NDArray

__all__ = ["DataParallelExecutorGroup"]


def _even_parts(size: int, loads: Sequence[float]) -> list[slice]:
    """Splits size into consecutive parts proportional to loads. Raises ParamError if one would be empty."""
    total, begin, parts = sum(loads), 0, []
    reached = 0.0
    for load in loads:
        reached += load
        end = round(size * reached / total)
        if end <= begin:
            raise ParamError(f"Too many slices. Some splits are empty: {size} samples for {len(loads)} contexts")
        parts.append(slice(begin, end))
        begin = end
    return parts


class DataParallelExecutorGroup:
    """Binds a symbol on several contexts and splits each batch among them.

    Parameters
    ----------
    symbol : Symbol
    contexts : list of Context
    workload : list of float
        Fractions of the batch per context.
    data_shapes, label_shapes : list of DataDesc
    param_names : list of str
    for_training, inputs_need_grad : bool
    shared_group : DataParallelExecutorGroup, optional
        Group whose parameters, gradients and states are shared, for names in both groups.
    fixed_param_names : list of str, optional
        Parameters without gradient.
    grad_req : str or dict of str to str
    state_names : list of str, optional
    group2ctxs : list of dict, optional
        For each context: contexts of arrays of nodes with the attribute ctx_group, by its value.
    remat : see Module
    """

    def __init__(
        self,
        symbol: Any,
        contexts: Sequence[Any],
        workload: Sequence[float],
        data_shapes: Sequence[DataDesc],
        label_shapes: Sequence[DataDesc] | None,
        param_names: Sequence[str],
        for_training: bool,
        inputs_need_grad: bool,
        shared_group: DataParallelExecutorGroup | None = None,
        logger: Any = logging,
        fixed_param_names: Sequence[str] | None = None,
        grad_req: Any = "write",
        state_names: Sequence[str] | None = None,
        group2ctxs: Any = None,
        remat: str | int = "auto",
    ) -> None:
        self.symbol = symbol
        self.contexts = list(contexts)
        self.workload = list(workload)
        self.param_names = list(param_names)
        self.for_training = for_training
        self.inputs_need_grad = inputs_need_grad
        self.fixed_param_names = list(fixed_param_names or ())
        self.state_names = list(state_names or ())
        self.arg_names = symbol.list_arguments()
        self.aux_names = symbol.list_auxiliary_states()
        # Batch axis of each output, from the attribute __layout__ of its operator.
        layouts = [symbol[i].attr("__layout__") for i in range(len(symbol.list_outputs()))]
        self.output_axes = [max(DataDesc.get_batch_axis(layout), 0) for layout in layouts]
        self.grad_req = self._requests(grad_req, [desc.name for desc in data_shapes])
        self.remat = remat
        self.group2ctxs = group2ctxs
        self.execs: list[Any] = []
        self._bind(data_shapes, label_shapes, shared_group.execs if shared_group else None)

    def _requests(self, grad_req: Any, data_names: Sequence[str]) -> dict[str, str]:
        requests = {}
        for i, name in enumerate(self.arg_names):
            if isinstance(grad_req, str):
                wanted = grad_req
            else:
                wanted = grad_req.get(name, "write") if isinstance(grad_req, dict) else grad_req[i]
            if name in self.param_names:
                requests[name] = "null" if name in self.fixed_param_names else wanted
            else:
                requests[name] = wanted if name in data_names and self.inputs_need_grad else "null"
        return requests if self.for_training else dict.fromkeys(self.arg_names, "null")

    def _bind(self, data_shapes: Any, label_shapes: Any, before: Sequence[Any] | None) -> None:
        self.data_shapes = list(data_shapes)
        self.label_shapes = list(label_shapes) if label_shapes is not None else []
        first = self.data_shapes[0]
        self.batch_size = first.shape[max(DataDesc.get_batch_axis(first.layout), 0)]
        self.slices = _even_parts(self.batch_size, self.workload)
        self.execs = [self._bind_one(i, before[i] if before else None) for i in range(len(self.contexts))]

    def _part_shape(self, desc: DataDesc, part: slice) -> tuple[int, ...]:
        axis = DataDesc.get_batch_axis(desc.layout)
        if axis < 0 or not desc.shape:
            return tuple(desc.shape)
        return (*desc.shape[:axis], part.stop - part.start, *desc.shape[axis + 1 :])

    def _bind_one(self, i: int, before: Any) -> Any:
        ctx = self.contexts[i]
        descriptions = [*self.data_shapes, *self.label_shapes]
        shapes = {desc.name: self._part_shape(desc, self.slices[i]) for desc in descriptions}
        arg_shapes, aux_shapes, missing = self.symbol._input_shapes(shapes)
        if missing:
            raise ShapeError(
                f"Module.bind: the shapes {shapes} do not determine the shapes of {', '.join(map(repr, missing))}"
            )
        known = set(self.arg_names)
        types = {desc.name: desc.dtype for desc in descriptions if desc.name in known}
        # Casts before operators, as inserted by amp, leave types open: such parameters are float32.
        arg_types, _, aux_types = self.symbol.infer_type_partial(**types)

        stypes, by_rows = argument_storage(self.symbol)
        groups = self.group2ctxs[i] if self.group2ctxs else None
        places = context_of_names(self.symbol, [*self.arg_names, *self.aux_names], ctx, groups)

        def array(name: str, shape: Any, dtype: Any, old: dict[str, Any], keep: bool, stype: Any) -> NDArray:
            found = old.get(name)
            if keep and found is not None:
                if found.shape != tuple(shape):
                    raise ShapeError(f"Module: '{name}' has shape {found.shape}, these inputs need {tuple(shape)}")
                return found
            return ndarray.zeros(shape, places[name], dtype or "float32", stype)

        old_args, old_grads, old_aux = (before.arg_dict, before.grad_dict, before.aux_dict) if before else ({}, {}, {})
        args, grads = {}, {}
        for name, shape, dtype in zip(self.arg_names, arg_shapes, arg_types, strict=True):
            keep = name in self.param_names
            args[name] = array(name, shape, dtype, old_args, keep, stypes.get(name))
            if self.grad_req[name] != "null":
                grads[name] = array(name, shape, dtype, old_grads, keep, "row_sparse" if name in by_rows else None)
        aux = {
            name: array(name, shape, dtype, old_aux, True, stypes.get(name))
            for name, shape, dtype in zip(self.aux_names, aux_shapes, aux_types, strict=True)
        }
        made = self.symbol.bind(ctx, args, grads, self.grad_req, aux, remat=self.remat)
        if before is not None:
            made.take_monitor(before)
        return made

    def reshape(self, data_shapes: Sequence[DataDesc], label_shapes: Sequence[DataDesc] | None) -> None:
        """Binds for other inputs; parameters, gradients and states are kept."""
        self._bind(data_shapes, label_shapes, self.execs)

    # -- arrays -----------------------------------------------------------------------------------------------------

    @property
    def param_arrays(self) -> list[list[NDArray]]:
        """The arrays of each parameter on all contexts."""
        return [[exe.arg_dict[name] for exe in self.execs] for name in self.param_names]

    @property
    def grad_arrays(self) -> list[list[Any]]:
        """The gradients of each parameter on all contexts; None without gradient."""
        return [[exe.grad_dict[name] for exe in self.execs] for name in self.param_names]

    @property
    def aux_arrays(self) -> list[list[NDArray]]:
        """The arrays of each auxiliary state on all contexts."""
        return [[exe.aux_dict[name] for exe in self.execs] for name in self.aux_names]

    def set_params(self, arg_params: dict[str, Any], aux_params: dict[str, Any], allow_extra: bool = False) -> None:
        """Copies values to all contexts. Raises ValueError for unknown names unless allow_extra."""
        for exe in self.execs:
            exe.copy_params_from(arg_params, aux_params, allow_extra_params=allow_extra)

    def get_params(self, arg_params: dict[str, Any], aux_params: dict[str, Any]) -> None:
        """Copies values, averaged over contexts, into the given arrays."""
        for names, columns, targets in (
            (self.param_names, self.param_arrays, arg_params),
            (self.aux_names, self.aux_arrays, aux_params),
        ):
            for name, arrays in zip(names, columns, strict=True):
                target = targets[name]
                moved = [array.as_in_context(target.context) for array in arrays]
                target[:] = moved[0] if len(moved) == 1 else ndarray.add_n(*moved) / len(moved)

    # -- running ----------------------------------------------------------------------------------------------------

    def _load(self, arrays: Sequence[Any], descriptions: Sequence[DataDesc]) -> None:
        for array, desc in zip(arrays, descriptions, strict=False):
            axis = DataDesc.get_batch_axis(desc.layout)
            for exe, part in zip(self.execs, self.slices, strict=True):
                target = exe.arg_dict.get(desc.name)
                if target is None:
                    continue  # labels unused by the graph
                if axis < 0 or len(self.execs) == 1:
                    target[:] = array
                else:
                    piece = ndarray.slice_axis(array, axis=axis, begin=part.start, end=part.stop)
                    target[:] = piece.as_in_context(target.context)

    def forward(self, data_batch: DataBatch, is_train: bool | None = None) -> None:
        """Runs all executors on their parts of the batch."""
        self._load(data_batch.data or (), self.data_shapes)
        label = getattr(data_batch, "label", None)  # a namedtuple without labels is for prediction
        if self.label_shapes and label:
            self._load(label, self.label_shapes)
        for exe in self.execs:
            exe.forward(is_train=self.for_training if is_train is None else is_train)

    def backward(self, out_grads: Any = None) -> None:
        """Computes gradients; out_grads are the gradients of the (merged) outputs."""
        if not self.for_training:
            raise ParamError("re-bind with for_training=True to run backward")
        if out_grads is not None and not isinstance(out_grads, (list, tuple)):
            out_grads = [out_grads]
        for exe, part in zip(self.execs, self.slices, strict=True):
            if out_grads is None:
                exe.backward()
            else:
                pieces = [
                    ndarray.slice_axis(grad, axis=axis, begin=part.start, end=part.stop)
                    if len(self.execs) > 1
                    else grad
                    for grad, axis in zip(out_grads, self.output_axes, strict=False)
                ]
                exe.backward([piece.as_in_context(exe._ctx) for piece in pieces])

    @staticmethod
    def _merge(columns: Any, merge: bool, axes: Sequence[int] | None = None) -> list[Any]:
        columns = [list(column) for column in columns]
        if not merge:
            return columns
        axes = [0] * len(columns) if axes is None else axes
        return [
            column[0]
            if len(column) == 1
            else ndarray.concat(*(array.as_in_context(column[0].context) for array in column), dim=axis)
            for column, axis in zip(columns, axes, strict=True)
        ]

    def get_outputs(self, merge_multi_context: bool = True) -> list[Any]:
        """Returns outputs, joined along the batch (or a list per output)."""
        columns = zip(*(exe.outputs for exe in self.execs), strict=True)
        return self._merge(columns, merge_multi_context, self.output_axes)

    def get_output_shapes(self) -> list[tuple[str, tuple[int, ...]]]:
        """Returns (name, shape) of the merged outputs; unknown shapes and sizes as in infer_shape_partial()."""
        shapes = {desc.name: tuple(desc.shape) for desc in [*self.data_shapes, *self.label_shapes]}
        _, outputs, _ = self.symbol.infer_shape_partial(**shapes)
        return list(zip(self.symbol.list_outputs(), outputs, strict=True))

    def get_input_grads(self, merge_multi_context: bool = True) -> list[Any]:
        """Returns gradients of the data inputs."""
        columns = [[exe.grad_dict[desc.name] for exe in self.execs] for desc in self.data_shapes]
        axes = [max(DataDesc.get_batch_axis(desc.layout), 0) for desc in self.data_shapes]
        return self._merge(columns, merge_multi_context, axes)

    def get_states(self, merge_multi_context: bool = True) -> list[Any]:
        """Returns the values of the states."""
        columns = [[exe.arg_dict[name] for exe in self.execs] for name in self.state_names]
        return self._merge(columns, merge_multi_context)

    def set_states(self, states: Any = None, value: Any = None) -> None:
        """Sets states from get_states(merge_multi_context=False), or all to a number."""
        for i, name in enumerate(self.state_names):
            for k, exe in enumerate(self.execs):
                exe.arg_dict[name][:] = value if states is None else states[i][k]

    def update_metric(self, eval_metric: Any, labels: Any, pre_sliced: bool = False) -> None:
        """Adds each context's labels and outputs to the metric."""
        for i, (exe, part) in enumerate(zip(self.execs, self.slices, strict=True)):
            if pre_sliced:
                own = labels[i]
            elif len(self.execs) == 1:
                own = labels
            else:
                own = [label[part.start : part.stop] for label in labels or ()]
            names = [desc.name for desc in self.label_shapes]
            eval_metric.update_dict(dict(zip(names, own or (), strict=False)), exe.output_dict)

    def install_monitor(self, mon: Any) -> None:
        """Installs a monitor on all executors."""
        for exe in self.execs:
            mon.install(exe)


__dir__ = dir_of(__name__)

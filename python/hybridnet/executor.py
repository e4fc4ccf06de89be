"""Executor: a graph bound to arrays, for forward and backward runs. The result of ``Symbol.bind``."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import _core
from ._keywords import remat_text
from ._monitor_names import names_of_inputs
from ._public_names import dir_of
from .context import Context
from .errors import ParamError, ShapeError, unknown_name
from .errors import TypeError as HybridNetTypeError
from .errors import ValueError as HybridNetValueError
from .ndarray import NDArray, ones_like, zeros
from .symbol.symbol import STORAGE_TYPES, Group

__all__ = ["Executor", "simple_bind"]


class Executor:
    """Runs a Symbol with arrays that stay bound to its variables.

    Change the values of ``arg_dict`` in place and call ``forward``; ``backward`` fills ``grad_dict``.

    Attributes: ``arg_arrays``, ``grad_arrays`` (None if none was bound) and ``aux_arrays``, in the order
    of the Symbol's lists; ``arg_dict``, ``grad_dict``, ``aux_dict`` by name; ``outputs`` and ``output_dict`` after
    forward().
    """

    def __init__(
        self,
        symbol: Any,
        ctx: Context,
        args: Any,
        args_grad: Any = None,
        grad_req: Any = "write",
        aux_states: Any = None,
        remat: str | int = "auto",
    ) -> None:
        names, aux_names = symbol.list_arguments(), symbol.list_auxiliary_states()
        self._symbol = symbol
        self._ctx = ctx
        self.arg_arrays = _by_name(args, names, "args", required=True)
        self.aux_arrays = _by_name(aux_states, aux_names, "aux_states", required=True)
        self._requests = _requests(grad_req, names)
        grads = _by_name(args_grad, names, "args_grad", required=False)
        self._requests = [r if g is not None else "null" for r, g in zip(self._requests, grads, strict=True)]
        self.grad_arrays = grads
        self._remat = remat_text(remat)
        self._core = self._bound(symbol)
        self._names, self._aux_names = names, aux_names
        self._monitor: Callable[[str, NDArray], None] | None = None
        self._monitor_all = False
        self._watched: list[tuple[str, int]] = []  # name and index of each value that the monitor receives
        self._ran = False

    def __repr__(self) -> str:
        arguments = ", ".join(f"{name} {array.shape}" for name, array in zip(self._names, self.arg_arrays, strict=True))
        trained = sum(request != "null" for request in self._requests)
        outputs = ", ".join(self._symbol.list_outputs())
        return f"<Executor of {outputs} on {self._ctx}: {arguments}; {trained} with gradients>"

    def _bound(self, symbol: Any) -> _core.Executor:
        return _core.Executor(
            symbol, self.arg_arrays, self.grad_arrays, self._requests, self.aux_arrays, remat=self._remat
        )

    @property
    def arg_dict(self) -> dict[str, NDArray]:
        """Maps variable names to bound arrays."""
        return dict(zip(self._names, self.arg_arrays, strict=True))

    @property
    def grad_dict(self) -> dict[str, NDArray | None]:
        """Maps variable names to gradient arrays, None if none was bound."""
        return dict(zip(self._names, self.grad_arrays, strict=True))

    @property
    def aux_dict(self) -> dict[str, NDArray]:
        """Maps names of auxiliary states to bound arrays."""
        return dict(zip(self._aux_names, self.aux_arrays, strict=True))

    @property
    def outputs(self) -> list[NDArray]:
        """The results of the last forward()."""
        if not self._ran:
            self.forward()
        return self._core.outputs()[: self._symbol.num_outputs]

    @property
    def output_dict(self) -> dict[str, NDArray]:
        """Maps output names to results of the last forward()."""
        return dict(zip(self._symbol.list_outputs(), self.outputs, strict=True))

    def forward(self, is_train: bool = False, **kwargs: Any) -> list[NDArray]:
        """Runs the graph; keywords replace the values of variables first. Returns the outputs."""
        known = self.arg_dict
        for name, value in kwargs.items():
            if name not in known:
                raise HybridNetTypeError(
                    f"Executor.forward: the graph has no argument {name!r}; it has {', '.join(known)}"
                )
            _check_shape(name, known[name], value)
            known[name][:] = value
        self._core.forward(bool(is_train))
        self._ran = True
        results = self._core.outputs()
        if self._monitor is not None:
            for name, number in self._watched:
                self._monitor(name, results[number])
        return results[: self._symbol.num_outputs]

    def backward(self, out_grads: Any = None, is_train: bool = True) -> None:
        """Computes gradients into ``grad_arrays``. out_grads: gradients of the outputs; ones if None."""
        if out_grads is None:
            grads: list[Any] = []
        elif isinstance(out_grads, NDArray):
            grads = [out_grads]
        elif isinstance(out_grads, dict):
            grads = [out_grads[name] for name in self._symbol.list_outputs()]
        else:
            grads = list(out_grads)
        if not self._ran:
            self.forward(is_train=is_train)
        results = self._core.outputs()
        inner = len(results) - self._symbol.num_outputs
        if inner and not grads:
            grads = [ones_like(output) for output in results[:-inner]]
        given = [_of_type(grad, output) for grad, output in zip(grads, results, strict=False)]
        self._core.backward([*given, *[None] * inner])

    def copy_params_from(
        self,
        arg_params: dict[str, NDArray],
        aux_params: dict[str, NDArray] | None = None,
        allow_extra_params: bool = False,
    ) -> None:
        """Copies values into the bound arrays by name. Raises ValueError for unknown names, unless they are allowed."""
        for what, known, given in (
            ("argument", self.arg_dict, arg_params),
            ("auxiliary state", self.aux_dict, aux_params or {}),
        ):
            for name, value in given.items():
                if name in known:
                    _check_shape(name, known[name], value)
                    value.astype(known[name].dtype, copy=False).copyto(known[name])
                elif not allow_extra_params:
                    raise HybridNetValueError(f"copy_params_from: the graph has no {what} {name!r}")

    def reshape(self, partial_shaping: bool = False, allow_up_sizing: bool = False, **kwargs: Any) -> Executor:
        """Returns an executor for other input shapes, over the same memory if that is large enough.

        partial_shaping: the shapes of unnamed arrays may change. allow_up_sizing: larger arrays may be newly allocated.
        """
        shapes, aux_shapes, missing = self._symbol._input_shapes(kwargs)
        if missing:
            raise HybridNetValueError(f"Executor.reshape: the given shapes do not determine all others: {kwargs}")
        args, grads = [], []
        for name, shape, array, grad in zip(self._names, shapes, self.arg_arrays, self.grad_arrays, strict=True):
            same = tuple(shape) == array.shape
            if not same and not partial_shaping and name not in kwargs:
                raise ShapeError(
                    f"Executor.reshape: {name!r} would change from {array.shape} to {tuple(shape)}",
                    fix="pass partial_shaping=True to allocate it anew",
                )
            args.append(_resized(array, shape, allow_up_sizing, name))
            grads.append(grad if grad is None else _resized(grad, shape, allow_up_sizing, name))
        aux = [
            a if tuple(s) == a.shape else zeros(s, self._ctx, a.dtype)
            for s, a in zip(aux_shapes, self.aux_arrays, strict=True)
        ]
        made = Executor(self._symbol, self._ctx, args, grads, self._requests, aux, self._remat)
        made.take_monitor(self)
        return made

    def take_monitor(self, before: Executor) -> None:
        """Takes the monitor of ``before``, an executor of the same graph."""
        if before._monitor is not None:
            self.set_monitor_callback(before._monitor, before._monitor_all)

    def set_monitor_callback(self, callback: Callable[[str, NDArray], None], monitor_all: bool = False) -> None:
        """Sets callback(name, array), called after forward() for each operator output in execution order.

        monitor_all: also for the operators' inputs, as '<operator>_<input>', and for variables.
        """
        self._monitor, self._monitor_all = callback, monitor_all
        inside = self._symbol.get_internals()
        self._watched = [
            (name, self._symbol.num_outputs + number) for name, number in _watched_values(inside, monitor_all)
        ]
        self._core = self._bound(Group([self._symbol, inside]))
        self._ran = False

    def get_optimized_symbol(self) -> Any:
        """Returns the bound graph; the result of rewrites is not available as a Symbol."""
        return self._symbol

    def plan_text(self) -> str:
        """Returns the plans of the last forward() and its gradient, like HybridBlock.plan_text(); "" before it."""
        return self._core.plan_text()

    def debug_str(self) -> str:
        """Returns the graph as text, and the memory that runs need beside the bound arrays."""
        return f"{self._symbol.debug_str()}\nTotal {self._core.memory_bytes() >> 20} MB allocated\n"


def _watched_values(inside: Any, with_inputs: bool) -> list[tuple[str, int]]:
    """Returns name and index of each value that a monitor receives; inside: the graph's get_internals()."""
    names = inside.list_outputs()
    numbers = {name: number for number, name in enumerate(names)}
    watched: list[tuple[str, int]] = []
    node = None
    for number, name in enumerate(names):
        value = inside[number]
        operator = _core.symbol_op(value)
        if operator is None:
            continue  # a variable, reported at its reader
        if with_inputs and value.name != node:
            children = value.get_children()
            sources = children.list_outputs() if children is not None else []
            for child, label in zip(sources, names_of_inputs(operator, len(sources)), strict=False):
                if _core.symbol_op(inside[numbers[child]]) is None:
                    watched.append((child, numbers[child]))
                watched.append((f"{value.name}_{label}", numbers[child]))
        node = value.name
        watched.append((name, number))
    return watched


def _by_name(arrays: Any, names: Sequence[str], what: str, required: bool) -> list[Any]:
    """Returns arrays in the order of names, from a dict or a list; None for missing ones."""
    if arrays is None:
        arrays = {}
    if isinstance(arrays, dict):  # names that only other graphs have are ignored
        listed = [arrays.get(name) for name in names]
    else:
        listed = list(arrays)
        if len(listed) != len(names):
            raise HybridNetValueError(
                f"bind: {what} must have {len(names)} arrays ({', '.join(names)})", given=str(len(listed))
            )
    if required:
        for name, array in zip(names, listed, strict=True):
            if not isinstance(array, NDArray):
                given = "nothing" if array is None else type(array).__name__
                raise HybridNetValueError(f"bind: {what}", expected=f"an NDArray for {name!r}", given=given)
    return listed


def _of_type(grad: Any, output: NDArray) -> Any:
    return grad.astype(output.dtype) if isinstance(grad, NDArray) and grad.dtype != output.dtype else grad


def _resized(array: NDArray, shape: Sequence[int], allow_up_sizing: bool, name: str) -> NDArray:
    """Returns the first elements of array in another shape; new zeros if it has too few, or is sparse."""
    shape = tuple(shape)
    if shape == array.shape:
        return array
    size = math.prod(shape)
    if array.stype != "default":
        return zeros(shape, array.context, array.dtype, array.stype)
    if size <= array.size:
        return array.reshape((-1,))[:size].reshape(shape)
    if not allow_up_sizing:
        raise ShapeError(
            f"Executor.reshape: {name!r} would grow from {array.shape} to {shape}",
            fix="pass allow_up_sizing=True to allocate it anew",
        )
    return zeros(shape, array.context, array.dtype)


def _requests(grad_req: Any, names: Sequence[str]) -> list[str]:
    if isinstance(grad_req, str):
        return [grad_req] * len(names)
    if isinstance(grad_req, dict):
        return [grad_req.get(name, "null") for name in names]
    if len(grad_req) != len(names):
        raise HybridNetValueError("bind", expected=f"{len(names)} gradient requests", given=str(len(grad_req)))
    return list(grad_req)


def _check_shape(name: str, bound: NDArray, value: Any) -> None:
    shape = np.shape(value) if not isinstance(value, NDArray) else value.shape
    if shape not in ((), bound.shape):
        raise ShapeError(
            f"Executor: {name!r}",
            expected=f"shape {bound.shape}",
            given=str(tuple(shape)),
            fix="make an executor for the new shape with reshape()",
        )


def simple_bind(
    symbol: Any,
    ctx: Context,
    grad_req: Any,
    type_dict: dict[str, Any] | None,
    shapes: dict[str, Any],
    group2ctx: dict[str, Context] | None = None,
    stype_dict: dict[str, str] | None = None,
    remat: str | int = "auto",
) -> Executor:
    """Returns an Executor over newly allocated zeros, with all shapes and types inferred from the given ones.

    group2ctx: maps values of the attribute ctx_group to the contexts of such variables; the others are on ctx.
    stype_dict: storage of arguments and states by name; argument_storage() determines that of gradients.
    """
    names = symbol.list_arguments()
    for name, shape in shapes.items():
        if shape is not None and not isinstance(shape, (tuple, list, int, np.integer)):
            raise unknown_name("simple_bind", "keyword", name, [*names, "remat", "stype_dict", "type_dict"], ParamError)
    arg_shapes, aux_shapes, missing = symbol._input_shapes(shapes)
    if missing:
        raise HybridNetValueError(
            f"simple_bind: the given shapes do not determine the shape of {', '.join(repr(n) for n in missing)}",
            fix="pass more shapes by keyword",
        )
    declared = {name for name, attributes in symbol.attr_dict().items() if "__dtype__" in attributes}
    types = {name: np.float32 for name in names if name in shapes and name not in declared} | (type_dict or {})
    arg_types, _, aux_types = symbol.infer_type_partial(**types)
    places = context_of_names(symbol, [*names, *symbol.list_auxiliary_states()], ctx, group2ctx)
    stypes, by_rows = argument_storage(symbol, stype_dict)

    def allocated(names: Sequence[str], shapes: Sequence[Any], types: Sequence[Any]) -> list[NDArray]:
        return [
            zeros(shape, places[name], dtype or np.float32, stypes.get(name))
            for name, shape, dtype in zip(names, shapes, types, strict=True)
        ]

    args = allocated(names, arg_shapes, arg_types)
    aux = allocated(symbol.list_auxiliary_states(), aux_shapes, aux_types)
    requests = _requests(grad_req, names)
    grads = [
        None if r == "null" else zeros(a.shape, a.context, a.dtype, "row_sparse" if name in by_rows else None)
        for name, r, a in zip(names, requests, args, strict=True)
    ]
    return Executor(symbol, ctx, args, grads, requests, aux, remat)


def argument_storage(symbol: Any, stype_dict: dict[str, str] | None = None) -> tuple[dict[str, str], set[str]]:
    """Returns the storage of arguments and states by name, and the arguments with row_sparse gradients.

    Storage comes from stype_dict or from the variables (``var(stype=...)``); all others are dense. Gradients are
    row_sparse if all uses reach only some rows: tables of Embedding(sparse_grad=True), w in dot(csr, w).
    """
    names = {str(number): stype for stype, number in STORAGE_TYPES.items()}
    declared = {name: attributes.get("__storage_type__") for name, attributes in symbol.attr_dict().items()}
    stypes = {name: names[number] for name, number in declared.items() if number in names} | (stype_dict or {})
    return stypes, set(_core.gradients_by_rows(symbol, stypes))


def context_of_names(
    symbol: Any, names: Sequence[str], ctx: Context, group2ctx: dict[str, Context] | None
) -> dict[str, Context]:
    """Returns the context of each name: that of its node's group in group2ctx, else ctx."""
    if not group2ctx:
        return dict.fromkeys(names, ctx)
    nodes = json.loads(symbol.tojson(remove_amp_cast=False))["nodes"]
    groups: dict[str, str] = {}
    for node in nodes:
        attributes = node.get("attrs", {})
        group = attributes.get("ctx_group", attributes.get("__ctx_group__"))
        if group is None:
            continue
        groups[node["name"]] = group
        for index, *_ in node["inputs"]:  # a variable without a group takes the group of its first reader
            groups.setdefault(nodes[index]["name"], group)
    return {name: group2ctx.get(groups.get(name, ""), ctx) for name in names}


__dir__ = dir_of(__name__)

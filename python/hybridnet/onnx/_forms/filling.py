"""Tensors that are made of their parameters: constants, ranges, diagonals, triangles, one-hot rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ndarray._dtypes import numpy_dtype
from .._arithmetic import calculate, count, cut
from .._axes import axis_of, run_time_shapes
from .._builder import Runtime, is_known
from .._errors import refuse, wrong
from .._iterations import range_of_known_length
from .._node import dtype_of, is_weight
from .._sizes import is_number
from .._table import form
from .._values import Value


@form("Constant")
def constant(g: Any, node: Any) -> Any:
    """A dense or sparse tensor, a number, or a list of numbers."""
    for name, dtype in (
        ("value", None),
        ("sparse_value", None),
        ("value_float", "float32"),
        ("value_floats", "float32"),
        ("value_int", "int64"),
        ("value_ints", "int64"),
    ):
        if node.has(name):
            made = np.asarray(node.attr(name))
            return g.constant(made, node.name, dtype, trainable=is_weight(made))
    raise refuse("constants of strings are not supported", node=node.proto)


@form("ConstantOfShape")
def constant_of_shape(g: Any, node: Any, sizes: Any) -> Any:
    """A tensor of one value, 0 by default."""
    value = np.asarray(node.attr("value", np.zeros(1, "float32"))).reshape(-1)[0]
    shape = g.numbers(sizes)
    if isinstance(shape, Runtime):
        rank = sizes.fixed(0)
        if rank is None:
            raise refuse("the rank of the result is not known while the file is imported", node=node.proto)
        return filled(g, shape, value, node.name, run_time_shapes(g, rank))
    return filled(g, shape, value, node.name)


def filled(g: Any, shape: Any, value: np.generic, name: str, shapes: Any = None) -> Value:
    """A tensor of one value. shape: numbers and Sizes, or a Runtime with trial shapes."""
    if isinstance(shape, Runtime) or not all(is_number(size) for size in shape):
        return _filled_by_node(g, shape if isinstance(shape, Runtime) else tuple(shape), value, name, shapes)
    sizes = tuple(int(size) for size in shape)

    def make() -> Any:
        return _filled_by_node(g, sizes, value, name, None).symbol

    return Value(name, (sizes,) * g.num_trials, str(value.dtype), const=np.broadcast_to(value, sizes), make=make)


def _filled_by_node(g: Any, shape: Any, value: np.generic, name: str, shapes: Any) -> Value:
    op = "_npi_ones" if value == 1 else "_npi_zeros"
    made: Value = g.emit(op, [], name=name, shape=shape, dtype=str(value.dtype), shapes=shapes)
    if value == 1 or value.tobytes() == bytes(value.nbytes):
        return made
    return g.emit("broadcast_add", [made, g.constant(value, name, trainable=False)], name=name)


@form("EyeLike")
def eye_like(g: Any, node: Any, x: Any) -> Any:
    """Ones on a diagonal of a matrix."""
    dtype = dtype_of(node.attr("dtype"), node.proto) if node.has("dtype") else x.dtype
    if x.ndim != 2:
        raise wrong(f"the input has {x.ndim} axes instead of 2", node=node.proto)
    rows, columns = g.dims(x)
    if x.fixed(1) == 0:  # _eye reads 0 as "as many columns as rows"
        return filled(g, [rows, columns], numpy_dtype(dtype).type(0), node.name)
    return g.emit("_eye", [], name=node.name, N=rows, M=columns, k=node.attr("k", 0), dtype=dtype)


@form("Range")
def range_(g: Any, node: Any, start: Any, limit: Any, delta: Any) -> Any:
    """Numbers from `start` to `limit`, exclusive."""
    numbers = range_of_known_length(g, start, limit, delta)
    if numbers is not None:
        return numbers
    first, end, step = (g.item(value) for value in (start, limit, delta))
    if all(is_known(item) for item in (first, end, step)):
        size = max(int(np.ceil((end - first) / step)), 0)
        return g.constant(first + np.arange(size) * step, node.name, start.dtype, trainable=False)
    shapes = None
    if any(isinstance(item, Runtime) for item in (first, end, step)):
        shapes = tuple((size,) for size in g.data_size())
    return g.emit("_arange", [], name=node.name, start=first, stop=end, step=step, dtype=start.dtype, shapes=shapes)


@form("OneHot")
def one_hot(g: Any, node: Any, indices: Any, depth: Any, values: Any) -> Any:
    """A new axis with one value at an index and another elsewhere; indices out of range give the other value alone."""
    axis = axis_of(node.attr("axis", -1), indices.ndim + 1, node)
    places = g.cast(indices, "int64")
    size, line = _depth(g, node, depth)
    is_negative = g.emit("_lesser_scalar", [places], scalar=0)
    places = calculate(g, "+", places, calculate(g, "*", is_negative, size))
    places = g.emit("expand_dims", [places], axis=axis)
    line = g.reshape(line, [-1, *[1] * (indices.ndim - axis)])
    is_on = g.emit("_npi_equal", [places, line])
    return g.emit("_npi_where", [is_on, _scalar(g, values, 1), _scalar(g, values, 0)], name=node.name)


def _scalar(g: Any, values: Value, index: int) -> Value:
    """One element of a tensor of settings, which are no weights."""
    if values.is_const:
        return g.constant(values.const[index], values.name, trainable=False)  # type: ignore[index]
    return g.reshape(cut(g, values, 0, index, index + 1), ())


def _depth(g: Any, node: Any, depth: Value) -> tuple[Any, Value]:
    """The depth as a term of arithmetic, and the numbers below it."""
    size = g.item(depth)
    if not isinstance(size, Runtime):
        return (int(size) if is_number(size) else size), count(g, size, "int64")
    shapes = tuple((trial,) for trial in g.data_size(depth))
    line = g.emit("_arange", [], start=0, stop=size, step=1, dtype="int64", shapes=shapes)
    return g.reshape(g.cast(depth, "int64"), ()), line


@form("Trilu")
def trilu(g: Any, node: Any, x: Any, k: Any = None) -> Any:
    """The upper or the lower triangle of matrices; other elements are 0."""
    upper = bool(node.attr("upper", 1))
    diagonal = 0 if k is None else g.item(k)
    if is_known(diagonal):
        return g.emit("_npi_triu" if upper else "_npi_tril", [x], name=node.name, k=int(diagonal))
    rows, columns = count(g, g.dim(x, -2), "int64", (-1, 1)), count(g, g.dim(x, -1), "int64")
    shift = g.reshape(g.cast(k, "int64"), ())
    distance = calculate(g, "-", calculate(g, "-", columns, rows), shift)
    is_inside = g.emit("_npi_greater_equal_scalar" if upper else "_npi_less_equal_scalar", [distance], scalar=0)
    return g.emit("_npi_where", [is_inside, x, g.constant(0, "zero", x.dtype, trainable=False)], name=node.name)


__all__ = ["constant", "constant_of_shape", "eye_like", "filled", "one_hot", "range_", "trilu"]

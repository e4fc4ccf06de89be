"""Positions of extremes, and cumulative sums and products."""

from __future__ import annotations

from typing import Any

from ...symbol import contrib
from .._arithmetic import calculate, cut, join
from .._builder import Runtime
from .._element_types import wrapped
from .._table import form
from .._values import Value


@form("ArgMax", "ArgMin")
def arg_extreme(g: Any, node: Any, x: Any) -> Any:
    """The first position of the extreme along an axis, or the last one."""
    op = "_npi_argmax" if node.op_type == "ArgMax" else "_npi_argmin"
    axis, keepdims = node.attr("axis", 0) % max(x.ndim, 1), bool(node.attr("keepdims", 1))
    if x.dtype == "bool":
        x = g.cast(x, "uint8")
    if not node.attr("select_last_index", 0):
        return g.emit(op, [x], name=node.name, axis=axis, keepdims=keepdims)
    from_end = g.emit(op, [g.emit("reverse", [x], axis=axis)], axis=axis, keepdims=keepdims)
    last = calculate(g, "-", g.dim(x, axis), 1)
    return calculate(g, "-", last, from_end, node.name)


@form("CumSum", "CumProd")
def cumulative(g: Any, node: Any, x: Any, axis: Any) -> Any:
    """Sums or products of all elements up to each one, or before it (exclusive), from either end."""
    along = _sum_along if node.op_type == "CumSum" else _product_along
    where = 0 if x.ndim == 1 else g.item(axis)
    if isinstance(where, Runtime):
        return _along_any(g, node, x, axis, along)
    return along(g, node, x, where % x.ndim, node.name)


def _along_any(g: Any, node: Any, x: Any, axis: Any, along: Any) -> Any:
    """The axis is known when the graph runs: the result along it is selected from those along all axes."""
    axis = g.emit("_npi_mod_scalar", [g.reshape(axis, ())], scalar=x.ndim)
    result = along(g, node, x, 0, node.name)
    for number in range(1, x.ndim):
        is_named = g.emit("_npi_equal_scalar", [axis], scalar=number)
        result = g.emit("_npi_where", [is_named, along(g, node, x, number, node.name), result], name=node.name)
    return result


def _ordered(g: Any, node: Any, x: Any, axis: int, name: str, compute: Any, first: str) -> Any:
    """Computes from either end; exclusive results are shifted by one, and start with `first`."""
    reverse = bool(node.attr("reverse", 0))
    result = compute(g.emit("reverse", [x], axis=axis) if reverse else x)
    if node.attr("exclusive", 0) and x.fixed(axis) != 0:
        start = g.emit(first, [cut(g, x, axis, 0, 1)])
        result = join(g, [start, cut(g, result, axis, 0, -1)], axis) if x.fixed(axis) != 1 else start
    return wrapped(g, g.emit("reverse", [result], axis=axis, name=name) if reverse else result, x.element)


def _sum_along(g: Any, node: Any, x: Any, axis: int, name: str) -> Any:
    return _ordered(
        g, node, x, axis, name, lambda data: g.emit("_np_cumsum", [data], name=name, axis=axis), "zeros_like"
    )


def _product_along(g: Any, node: Any, x: Any, axis: int, name: str) -> Any:
    return _ordered(g, node, x, axis, name, lambda data: _cumulative_product(g, data, axis), "ones_like")


def _cumulative_product(g: Any, x: Any, axis: int) -> Any:
    """A loop over the elements along the axis."""
    rows = g.emit("SwapAxis", [x], dim1=0, dim2=axis) if axis else x
    if x.ndim == 1:
        rows = g.reshape(rows, [-1, 1])  # a row of a vector would be a number
    start = g.reshape(g.emit("ones_like", [cut(g, rows, 0, 0, 1)]), g.dims(rows)[1:])
    products, _ = contrib.foreach(lambda row, product: (row * product, row * product), rows.symbol, start.symbol)
    made = Value(f"{x.name}_products", rows.shapes, x.dtype, symbol=products)
    if x.ndim == 1:
        return g.reshape(made, [-1])
    return g.emit("SwapAxis", [made], dim1=0, dim2=axis) if axis else made

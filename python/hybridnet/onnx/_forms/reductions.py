"""Sums, means, extremes and norms over axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._arithmetic import calculate, total
from .._builder import Runtime
from .._element_types import wrapped
from .._errors import refuse
from .._table import form

# () reduces nothing; Runtime: the axes are known when the graph runs.
Axes = tuple[int, ...] | Runtime

# The operators that the optimizer knows as parts of norms and softmax, and those for scalars and zero sizes.
_OPS = {
    "sum": ("sum", "_np_sum"),
    "mean": ("mean", "_npi_mean"),
    "prod": ("prod", "_np_prod"),
    "max": ("max", "_np_max"),
    "min": ("min", "_np_min"),
}


def _count(axes: Runtime) -> int | None:
    count: int | None = axes.value.fixed(0) if axes.value.ndim else 1
    return count


class Reduction:
    """The axes of a Reduce operator, and reductions over them."""

    def __init__(self, g: Any, node: Any, x: Any, axes: Any) -> None:
        self.g, self.node = g, node
        self.keepdims = bool(node.attr("keepdims", 1))
        self.axes = self._axes(x, axes)
        self._shapes: dict[bool, tuple[tuple[int, ...], ...]] = {}  # for axes that are known at run time

    def _axes(self, x: Any, given: Any) -> Axes:
        everything = tuple(range(x.ndim))
        since = 13 if self.node.op_type == "ReduceSum" else 18
        axes = self.node.attr("axes") if self.node.version < since else given and self.g.numbers(given)
        if isinstance(axes, Runtime):
            number = _count(axes)
            if number is None:
                raise refuse("the number of axes is not known while the file is imported", node=self.node.proto)
            if 0 < number < x.ndim:
                return axes
            axes = everything if number else []
        if not axes:
            return () if self.node.attr("noop_with_empty_axes", 0) else everything
        return tuple(sorted(int(axis) % max(x.ndim, 1) for axis in axes)) if x.ndim else ()

    def __call__(self, kind: str, x: Any, keepdims: bool | None = None, name: str = "") -> Any:
        """x, reduced. keepdims: as the node says unless given."""
        keepdims = self.keepdims if keepdims is None else keepdims
        if self.axes == ():
            return x
        if isinstance(self.axes, Runtime):
            shapes = self._shapes_at_run_time(self.axes, x.ndim, keepdims)
            return self.g.emit(
                _OPS[kind][0], [x], name=name, axis=self.axes, keepdims=keepdims, shapes=shapes, dtype=x.dtype
            )
        needs_numpy = 0 in x.shape or (len(self.axes) == x.ndim and not keepdims)
        return self.g.emit(_OPS[kind][needs_numpy], [x], name=name, axis=self.axes, keepdims=keepdims)

    def _shapes_at_run_time(self, axes: Runtime, rank: int, keepdims: bool) -> tuple[tuple[int, ...], ...]:
        if keepdims not in self._shapes:
            sizes = [self.g.data_size() for _ in range(rank if keepdims else rank - (_count(axes) or 0))]
            self._shapes[keepdims] = tuple(zip(*sizes, strict=True))
        return self._shapes[keepdims]

    def for_broadcast(self, kind: str, x: Any) -> Any:
        """x, reduced, with axes of size 1 where it was."""
        reduced = self(kind, x, keepdims=True)
        if isinstance(self.axes, Runtime):
            reduced.shapes = ((1,) * x.ndim,) * len(x.shapes)  # they broadcast with those of x, as the true ones do
        return reduced


def _reduction(onnx_name: str) -> Any:
    """Registers a function of (reduction, x, node's name) that says what a Reduce operator computes."""

    def register(compute: Any) -> Any:
        @form(onnx_name)
        def make(g: Any, node: Any, x: Any, axes: Any = None) -> Any:
            return compute(Reduction(g, node, x, axes), x, node.name)

        return make

    return register


def _is_float(x: Any) -> bool:
    return bool(x.dtype.startswith(("float", "bfloat")))


@_reduction("ReduceSum")
def reduce_sum(reduce: Reduction, x: Any, name: str) -> Any:
    return wrapped(reduce.g, reduce("sum", x, name=name), x.element)


@_reduction("ReduceProd")
def reduce_prod(reduce: Reduction, x: Any, name: str) -> Any:
    return wrapped(reduce.g, reduce("prod", x, name=name), x.element)


@_reduction("ReduceMean")
def reduce_mean(reduce: Reduction, x: Any, name: str) -> Any:
    """A mean; that of integers is rounded toward zero."""
    if _is_float(x):
        return reduce("mean", x, name=name)
    if isinstance(reduce.axes, Runtime):
        ones = reduce.g.emit("ones_like", [x])
        return calculate(reduce.g, "/", reduce("sum", x), reduce("sum", ones), name)
    size = total("*", [1, *(reduce.g.dim(x, axis) for axis in reduce.axes)])
    return calculate(reduce.g, "/", reduce("sum", x), size, name)


@_reduction("ReduceSumSquare")
def reduce_sum_square(reduce: Reduction, x: Any, name: str) -> Any:
    return wrapped(reduce.g, reduce("sum", reduce.g.emit("square", [x]), name=name), x.element)


@_reduction("ReduceL1")
def reduce_l1(reduce: Reduction, x: Any, name: str) -> Any:
    return reduce("sum", reduce.g.emit("abs", [x]), name=name)


@_reduction("ReduceL2")
def reduce_l2(reduce: Reduction, x: Any, name: str) -> Any:
    """The root of the sum of squares, with a gradient of 0 for the zero vector."""
    g = reduce.g
    if reduce.axes == ():
        return g.emit("abs", [x], name=name)
    if not _is_float(x):
        wide = g.cast(x, "float64")
        return g.cast(g.emit("sqrt", [reduce("sum", g.emit("square", [wide]))]), x.dtype, name)
    if isinstance(reduce.axes, Runtime):
        return g.emit("sqrt", [reduce("sum", g.emit("square", [x]))], name=name)
    length = g.emit("norm", [x], name=name, axis=reduce.axes, keepdims=True)
    if reduce.keepdims:
        return length
    return g.reshape(length, [g.dim(x, axis) for axis in range(x.ndim) if axis not in reduce.axes], name)


@_reduction("ReduceMax")
def reduce_max(reduce: Reduction, x: Any, name: str) -> Any:
    return _extreme(reduce, "max", x, name)


@_reduction("ReduceMin")
def reduce_min(reduce: Reduction, x: Any, name: str) -> Any:
    return _extreme(reduce, "min", x, name)


def _extreme(reduce: Reduction, kind: str, x: Any, name: str) -> Any:
    """The largest or smallest element; of no elements, the limit of the element type."""
    g = reduce.g
    if x.dtype == "bool":
        return g.cast(_extreme(reduce, kind, g.cast(x, "uint8"), ""), "bool", name)
    if 0 not in x.shape or reduce.axes == ():
        return reduce(kind, x, name=name)
    return g.emit("_plus_scalar", [reduce("sum", x)], name=name, scalar=_limit(x, kind == "min"))


def _limit(x: Any, is_high: bool) -> float:
    if _is_float(x):
        return float("inf") if is_high else float("-inf")
    limits = np.iinfo(x.element or x.dtype)
    return limits.max if is_high else limits.min


@_reduction("ReduceLogSum")
def reduce_log_sum(reduce: Reduction, x: Any, name: str) -> Any:
    return _in_floats(reduce, x, lambda data: reduce.g.emit("log", [reduce("sum", data)], name=name))


@_reduction("ReduceLogSumExp")
def reduce_log_sum_exp(reduce: Reduction, x: Any, name: str) -> Any:
    """log(sum(exp(x))) of differences from the largest element, which do not overflow."""
    g = reduce.g
    if reduce.axes == ():
        return x

    def compute(data: Any) -> Any:
        if 0 in x.shape:
            return g.emit("log", [reduce("sum", g.emit("exp", [data]))], name=name)
        largest = g.emit("BlockGrad", [reduce.for_broadcast("max", data)])
        finite = g.emit("_npi_isfinite", [largest])
        offset = g.emit("_npi_where_rscalar", [finite, largest], scalar=0.0)
        summed = g.emit("log", [reduce("sum", g.emit("exp", [calculate(g, "-", data, offset)]))])
        return calculate(g, "+", summed, reduce("sum", offset), name)  # the axes of offset have size 1

    return _in_floats(reduce, x, compute)


def _in_floats(reduce: Reduction, x: Any, compute: Any) -> Any:
    if _is_float(x):
        return compute(x)
    return reduce.g.cast(compute(reduce.g.cast(x, "float64")), x.dtype)

"""Reductions over axes, running sums, extremes and order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .._export_table import export_form
from .._export_values import Number, Open, Tensor, product


def reduced_axes(x: Tensor, p: Any) -> list[int]:
    """The axes that a reduction reads, sorted."""
    given = p.get("axis")
    if given is None:
        axes = set(range(x.ndim))
    else:
        axes = {axis % x.ndim for axis in ((given,) if isinstance(given, int) else given)}
        if not axes and not p.get("exclude"):
            axes = set(range(x.ndim))
    return sorted(set(range(x.ndim)) - axes if p.get("exclude") and given is not None else axes)


def reduce_to(g: Any, kind: str, x: Tensor, axes: Sequence[int], sizes: Sequence[Number]) -> Tensor:
    """A reduction whose result has these sizes: without the axes, with 1 there, or (1,) for all."""
    keepdims = len(sizes) == x.ndim
    made = g.reduce(kind, x, axes, keepdims)
    return g.reshape(made, sizes)


_WITH_FLOATS = ("float32", "float64", "float16", "bfloat16")


def _reduction(name: str, kind: str, before: Any = None) -> None:
    def form(g: Any, node: Any) -> Tensor:
        x, p = node.inputs[0], node.params
        axes = reduced_axes(x, p)
        target = node.outputs[0].dtype
        if kind in ("Sum", "Prod") and x.dtype not in _WITH_FLOATS:
            x = g.cast(x, "int64" if target not in _WITH_FLOATS else target)
        elif kind == "Mean" and x.dtype not in _WITH_FLOATS:
            x = g.cast(x, "float64")
        elif x.dtype != target and target in _WITH_FLOATS:
            x = g.cast(x, target)
        if before is not None:
            x = before(g, x)
        initial = p.get("initial")
        made = reduce_to(g, kind, x, axes, node.dims())
        if kind == "Mean" and target == "bool":  # the mean is rounded down before it becomes bool
            made = g.emit("Floor", made)
        return made if initial is None else g.emit(_MERGES[kind], made, initial)

    export_form(name)(form)


_MERGES = {"Sum": "Add", "Prod": "Mul", "Max": "Max", "Min": "Min", "Mean": "Add"}


def _without_nan(value: float) -> Any:
    return lambda g, x: g.where(g.emit("IsNaN", x), value, x) if x.dtype in _WITH_FLOATS else x


for _name, _kind, _before in (
    ("sum", "Sum", None), ("mean", "Mean", None), ("max", "Max", None), ("min", "Min", None), ("prod", "Prod", None),
    ("nansum", "Sum", _without_nan(0)), ("nanprod", "Prod", _without_nan(1)),
):  # fmt: skip
    _reduction(_name, _kind, _before)
    _reduction(f"_{_name}_to_scalar", _kind, _before)


@export_form("_square_sum")
def _square_sum(g: Any, node: Any) -> Tensor:
    x = node.inputs[0]
    return reduce_to(g, "SumSquare", x, reduced_axes(x, node.params), node.dims())


@export_form("norm")
def _norm(g: Any, node: Any) -> Tensor:
    x, p = node.inputs[0], node.params
    target = node.outputs[0].dtype
    x = g.cast(x, target if target in _WITH_FLOATS else "float64")
    return reduce_to(g, "L1" if p["ord"] == 1 else "L2", x, reduced_axes(x, p), node.dims())


@export_form("moments")
def _moments(g: Any, node: Any) -> tuple[Tensor, Tensor]:
    x = node.inputs[0]
    axes = reduced_axes(x, {"axis": node.params["axes"]})
    mean = g.reduce("Mean", x, axes, True)
    distance = g.emit("Sub", x, mean)
    variance = g.reduce("Mean", g.emit("Mul", distance, distance), axes, True)
    return g.reshape(mean, node.dims(0)), g.reshape(variance, node.dims(1))


@export_form("_npi_var", "_npi_std")
def _variance(g: Any, node: Any) -> Tensor:
    """The mean of squared distances from the mean, times n / (n - ddof)."""
    x, p = node.inputs[0], node.params
    target = node.outputs[0].dtype
    x = g.cast(x, target if target in _WITH_FLOATS else "float64")
    axes = [] if p["axis"] == () else reduced_axes(x, {"axis": p["axis"]})
    distance = g.emit("Sub", x, g.reduce("Mean", x, axes, True))
    made = reduce_to(g, "Mean", g.emit("Mul", distance, distance), axes, node.dims())
    if p["ddof"]:
        count = count_of(x, axes)
        if isinstance(count, Open):
            numbers = [g.number(number, x.dtype) for number in (count, count - p["ddof"])]
            made = g.emit("Mul", made, g.emit("Div", *numbers))
        else:
            made = g.emit("Mul", made, count / (count - p["ddof"]) if count != p["ddof"] else math.inf)
    return g.emit("Sqrt", made) if node.op == "_npi_std" else made


@export_form("_np_cumsum")
def _cumsum(g: Any, node: Any) -> Tensor:
    x, axis = node.inputs[0], node.params["axis"]
    target = node.outputs[0].dtype
    x = g.cast(x, target if target in (*_WITH_FLOATS, "int64") else "int64")
    if axis is None:
        x, axis = g.flat(x), 0
    return g.emit("CumSum", x, g.const(axis % x.ndim, "int64"))


# ------------------------------------------------------------------------------------------------------------ extremes
def arg_extreme(g: Any, kind: str, x: Tensor, axis: int | None, sizes: Sequence[Number]) -> Tensor:
    """Positions, int64; the first NaN counts as the largest and as the smallest element."""
    if axis is None:
        x, axis = g.flat(x), 0
    if x.dtype in _WITH_FLOATS:
        x = g.where(g.emit("IsNaN", x), math.inf if kind == "ArgMax" else -math.inf, x)
    return g.reshape(g.emit(kind, x, axis=axis % x.ndim, keepdims=0), sizes)


@export_form("argmax", "_npi_argmax")
def _argmax(g: Any, node: Any) -> Tensor:
    return arg_extreme(g, "ArgMax", node.inputs[0], node.params["axis"], node.dims())


@export_form("argmin", "_npi_argmin")
def _argmin(g: Any, node: Any) -> Tensor:
    return arg_extreme(g, "ArgMin", node.inputs[0], node.params["axis"], node.dims())


@export_form("argmax_channel")
def _argmax_channel(g: Any, node: Any) -> Tensor:
    return arg_extreme(g, "ArgMax", node.inputs[0], 1, node.dims())


# --------------------------------------------------------------------------------------------------------------- order
def sorted_along(g: Any, x: Tensor, axis: int, count: Number, largest: bool) -> tuple[Tensor, Tensor]:
    """The first values in order, and their positions. Equal elements keep their order."""
    axis = axis % x.ndim
    k = g.size(count)
    values, places = g.emit("TopK", x, k, axis=axis, largest=int(largest), sorted=1, outputs=2)
    places.dtype = "int64"
    return values, places


def _order(g: Any, node: Any) -> tuple[Tensor, int, Number]:
    x, axis = node.inputs[0], node.params["axis"]
    if axis is None:
        x, axis = g.flat(x), 0
    axis = axis % x.ndim
    return x, axis, x.dim(axis)


@export_form("sort")
def _sort(g: Any, node: Any) -> tuple[Tensor, Tensor]:
    x, axis, size = _order(g, node)
    return sorted_along(g, x, axis, size, not node.params["is_ascend"])


@export_form("argsort")
def _argsort(g: Any, node: Any) -> Tensor:
    x, axis, size = _order(g, node)
    return sorted_along(g, x, axis, size, not node.params["is_ascend"])[1]


@export_form("topk")
def _topk(g: Any, node: Any) -> Sequence[Tensor | None]:
    p = node.params
    x, axis, size = _order(g, node)
    k = p["k"] if not isinstance(p["k"], int) or p["k"] >= 1 else size
    if not isinstance(k, Open) and not isinstance(size, Open):
        k = min(k, size)
    values, places = sorted_along(g, x, axis, k, not p["is_ascend"])
    kind = p["ret_typ"]
    if kind == "mask":
        ones = g.full([*x.dims[:axis], k, *x.dims[axis + 1 :]], 1, node.outputs[0].dtype)
        zeros = g.full(x.dims, 0, node.outputs[0].dtype)
        return [g.reshape(g.emit("ScatterElements", zeros, places, ones, axis=axis, spec=x.spec), node.dims()), places]
    if kind == "both":
        return [values, places, places]
    return [values if kind == "value" else places, places]


@export_form("_contrib_allclose")
def _allclose(g: Any, node: Any) -> Tensor:
    a, b = (x if x.dtype in _WITH_FLOATS else g.cast(x, "float64") for x in node.inputs)
    p = node.params
    distance = g.emit("Abs", g.emit("Sub", a, b))
    limit = g.emit("Add", g.emit("Mul", g.emit("Abs", b), p["rtol"]), p["atol"])
    near = g.emit("Or", g.emit("LessOrEqual", distance, limit), g.emit("Equal", a, b))
    if p["equal_nan"]:
        near = g.emit("Or", near, g.emit("And", g.emit("IsNaN", a), g.emit("IsNaN", b)))
    return g.reduce("Min", g.cast(near, "int32"), range(near.ndim), keepdims=False)


def count_of(x: Tensor, axes: Sequence[int]) -> Number:
    """The number of elements along axes."""
    return product([x.dim(axis) for axis in axes])

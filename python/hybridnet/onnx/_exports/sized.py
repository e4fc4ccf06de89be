"""Operators whose parameters follow from sizes of inputs (_with_sizes) or from values in them (_with_values)."""

from __future__ import annotations

from typing import Any

from .._export_errors import refuse_use
from .._export_table import export_form, find_form
from .._export_values import Tensor
from .._size_templates import filled


@export_form("_with_sizes", "_view_with_sizes")
def _with_sizes(g: Any, node: Any) -> Any:
    p = node.params
    params = filled(p["op"], p["attrs"], node.inputs, g.num_trials)
    return g.alias(node, p["op"], node.inputs[: p["num_data"]], params)


# -------------------------------------------------------------------------------------------------------------- values
_RESHAPES = {"Reshape": "shape", "_np_reshape": "newshape", "_npx_reshape": "newshape"}
_FILLS = {"_zeros": 0, "_npi_zeros": 0, "_ones": 1, "_npi_ones": 1, "_full": None}


@export_form("_with_values")
def _with_values(g: Any, node: Any) -> Any:
    """The sizes of the result are not known: operators that need them take them from the values."""
    p = node.params
    op, data = p["op"], node.inputs[: p["num_data"]]
    params = filled(op, p["attrs"], node.inputs, g.num_trials)
    if op in _RESHAPES:
        zero = 1 if op == "_np_reshape" and g.opset >= 14 and -1 not in params[_RESHAPES[op]] else None
        return g.emit("Reshape", data[0], g.vector(params[_RESHAPES[op]]), allowzero=zero)
    if op in ("broadcast_to", "_npi_broadcast_to"):
        return g.emit("Expand", data[0], g.vector(params["shape"]))
    if op in _FILLS:
        value = params["value"] if _FILLS[op] is None else _FILLS[op]
        return g.full_of(g.vector(params["shape"]), value, node.outputs[0].dtype)
    if op == "_arange":
        return _range(g, params, node.outputs[0].dtype)
    if op == "one_hot":
        hot = g.emit("Equal", g.unsqueeze(g.cast(data[0], "int64"), [data[0].ndim]), _places(g, params["depth"]))
        dtype = node.outputs[0].dtype
        return g.where(hot, g.const(params["on_value"], dtype), g.const(params["off_value"], dtype))
    if find_form(op) is None:
        raise refuse_use(node, f"'{op}' with parameters from arrays has no form in ONNX")
    return g.alias(node, op, data, params)


def _places(g: Any, count: Any) -> Tensor:
    return g.emit("Range", g.const(0, "int64"), g.number(count, "int64"), g.const(1, "int64"))


def _range(g: Any, params: Any, dtype: str) -> Tensor:
    start, stop = params["start"], params["stop"]
    if stop is None:
        start, stop = 0, start
    compute = dtype if dtype in ("float32", "float64", "int32", "int64") else "float32"
    numbers = [g.number(value, compute) for value in (start, stop, params["step"])]
    return g.cast(g.emit("Range", *numbers), dtype)

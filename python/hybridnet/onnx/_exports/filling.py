"""Tensors that no input determines: these forms are for open sizes and large ones, small ones are constants."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._export_table import export_form
from .._export_values import Open, Tensor
from .shapes import on_diagonal


@export_form("_zeros", "_npi_zeros", "_zeros_without_dtype")
def _zeros(g: Any, node: Any) -> Tensor:
    return g.full(node.dims(), 0, node.outputs[0].dtype)


@export_form("_ones", "_npi_ones")
def _ones(g: Any, node: Any) -> Tensor:
    return g.full(node.dims(), 1, node.outputs[0].dtype)


@export_form("_full")
def _full(g: Any, node: Any) -> Tensor:
    return g.full(node.dims(), node.params["value"], node.outputs[0].dtype)


@export_form("_eye")
def _eye(g: Any, node: Any) -> Tensor:
    rows, columns = node.dims()
    return g.cast(on_diagonal(g, rows, columns, int(node.params["k"])), node.outputs[0].dtype)


def _stepped(g: Any, places: Tensor, start: Any, step: Any, dtype: str) -> Tensor:
    """start + places * step in the widest type."""
    wide = (
        "int64"
        if all(not isinstance(x, float) or x == int(x) for x in (start, step)) and dtype.startswith("int")
        else "float64"
    )
    made = g.cast(places, wide)
    if isinstance(step, Open) or step != 1:
        made = g.emit("Mul", made, g.number(step, wide))
    if isinstance(start, Open) or start != 0:
        made = g.emit("Add", made, g.number(start, wide))
    return g.cast(made, dtype)


@export_form("_arange")
def _arange(g: Any, node: Any) -> Tensor:
    p = node.params
    start = 0 if p["stop"] is None and not p.get("infer_range") else p["start"]
    places = g.iota(node.dims()[0])
    if p["repeat"] != 1:
        places = g.emit("Div", places, p["repeat"])
    return _stepped(g, places, start, p["step"], node.outputs[0].dtype)


@export_form("_linspace", "_npi_logspace")
def _linspace(g: Any, node: Any) -> Tensor:
    p = node.params
    count = node.dims()[0]
    gaps = count - 1 if p["endpoint"] else count
    places = g.cast(g.iota(count), "float64")
    length = g.number(p["stop"] - p["start"], "float64")
    step = g.emit("Div", length, g.emit("Max", g.number(gaps, "float64"), 1.0))
    made = g.emit("Add", g.emit("Mul", places, step), g.number(p["start"], "float64"))
    return made if node.op == "_linspace" else g.emit("Pow", g.const(p["base"], "float64"), made)


def _window(name: str, *factors: float) -> None:
    def form(g: Any, node: Any) -> Tensor:
        count = node.dims()[0]
        angle = g.emit("Mul", g.cast(g.iota(count), "float64"), 2 * math.pi)
        angle = g.emit("Div", angle, g.emit("Max", g.number(count - 1, "float64"), 1.0))
        total = None
        for k, factor in enumerate(factors):
            part = g.emit("Mul", g.emit("Cos", g.emit("Mul", angle, float(k))), factor)
            total = part if total is None else g.emit("Add", total, part)
        if not isinstance(count, Open) and count == 1:
            return g.const(np.ones(1), node.outputs[0].dtype)
        return total  # type: ignore[return-value]

    export_form(name)(form)


_window("_npi_hanning", 0.5, -0.5)
_window("_npi_hamming", 0.54, -0.46)
_window("_npi_blackman", 0.42, -0.5, 0.08)

"""Axes of ONNX nodes: negative ones count from the end; they are an attribute in old versions, an input in new ones."""

from __future__ import annotations

from typing import Any

from ._builder import Runtime
from ._errors import refuse, wrong
from ._sizes import is_number
from ._values import Value

__all__ = ["axes_of", "axis_of", "run_time_shapes"]


def axis_of(axis: int, ndim: int, node: Any) -> int:
    """The axis, counted from the first one."""
    if not -ndim <= axis < ndim:
        raise wrong(f"axis {axis} of a tensor with {ndim} axes", node=node.proto)
    return axis % ndim


def axes_of(g: Any, node: Any, ndim: int, given: Value | None) -> list[int] | Runtime | None:
    """The axes of an input, or of the attribute `axes`; None: absent; a Runtime: known when the graph runs."""
    axes = node.attr("axes") if given is None else g.numbers(given)
    if axes is None or isinstance(axes, Runtime):
        return axes
    if not all(is_number(axis) for axis in axes):
        raise refuse("axes that depend on the sizes of inputs are not supported", node=node.proto)
    found = [axis_of(int(axis), ndim, node) for axis in axes]
    if len(set(found)) != len(found):
        raise wrong(f"axes {list(axes)} name an axis twice", node=node.proto)
    return found


def run_time_shapes(g: Any, ndim: int) -> tuple[tuple[int, ...], ...]:
    """Trial shapes of a tensor whose sizes all follow from data."""
    return tuple(zip(*(g.data_size() for _ in range(ndim)), strict=True)) or ((),) * g.num_trials

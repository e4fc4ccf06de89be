"""Graphs of loops and branches: their nodes are made while a body of HybridNet's control flow is traced."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from ..util import np_shape
from ._errors import refuse
from ._values import Value

__all__ = ["answers", "inside", "make_outside", "merged_shapes", "prepare", "slot", "unpack", "with_axes_of"]


def prepare(g: Any, *graphs: Any) -> None:
    """Makes the Symbols that are made when they are first asked for, if these graphs read them from around.

    Made inside of a body, they would belong to it, and could not be read outside.
    """
    for name in sorted(set().union(*(_names_from_around(graph) for graph in graphs))):
        if g.knows(name):
            make_outside(unpack(g.lookup(name)))


def make_outside(values: Sequence[Value]) -> None:
    """Makes the Symbols of values that a body will read."""
    for value in values:
        if value.const is None or value.const.size == 0 or value.const.ndim == 0:
            _ = value.symbol


def unpack(value: Any) -> list[Value]:
    """The tensors of a value: itself, the items of a sequence, or none."""
    if value is None:
        return []
    return [part for item in value for part in unpack(item)] if isinstance(value, list) else [value]


def _names_from_around(graph: Any) -> set[str]:
    own = {given.name for given in graph.input} | {tensor.name for tensor in graph.initializer}
    read: set[str] = {given.name for given in graph.output}
    for node in graph.node:
        read.update(node.input)
        own.update(node.output)
        for attribute in node.attribute:
            for inner in [*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs]:
                read |= _names_from_around(inner)
    return read - own - {""}


@contextlib.contextmanager
def inside(g: Any) -> Iterator[None]:
    """A body."""
    with np_shape(True):
        yield


def slot(name: str, like: Value, symbol: Any, shapes: Sequence[tuple[int, ...]] | None = None) -> Value:
    """The value that a Symbol inside of a body stands for."""
    value = Value(name, tuple(like.shapes if shapes is None else shapes), like.dtype, symbol=symbol)
    value.element = like.element
    return value


def with_axes_of(g: Any, value: Any, like: Any) -> Any:
    """The value; if both have one element, with the axes of the other, which another branch or iteration made."""
    if not isinstance(value, Value) or not isinstance(like, Value) or value.ndim == like.ndim:
        return value
    if any(size != 1 for part in (value, like) for shape in part.shapes for size in shape):
        return value
    return g.emit("_np_reshape", [value], newshape=(1,) * like.ndim)


def merged_shapes(g: Any, one: Value, other: Value, node: Any, place: str) -> tuple[tuple[int, ...], ...]:
    """Shapes of a value that is one or the other: axes whose sizes differ get sizes that depend on data."""
    if one.dtype != other.dtype or one.ndim != other.ndim:
        raise refuse(
            f"{place} is {one.dtype} with {one.ndim} axes in one case and {other.dtype} with {other.ndim} in the other",
            because="a tensor of a graph has one dtype and one number of axes",
            fix="give the sizes that the choice depends on: input_shapes={'name': (...)}",
            node=node.proto,
        )
    columns = []
    for axis in range(one.ndim):
        sizes = tuple(shape[axis] for shape in one.shapes)
        columns.append(sizes if sizes == tuple(shape[axis] for shape in other.shapes) else g.data_size())
    return tuple(zip(*columns, strict=True)) if columns else ((),) * g.num_trials


def answers(value: Value | None) -> bool | None:
    """A condition that is known while the file is imported; None: it is not known."""
    if value is None:
        return True
    if value.const is not None:
        return bool(value.const.reshape(-1)[0])
    return None

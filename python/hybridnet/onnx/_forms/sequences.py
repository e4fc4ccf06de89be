"""Sequences and optional values: lists of Values, and None, while the file is imported.

The length of a sequence, and whether an optional value is there, must be known while the file is imported: graphs hold
tensors only.
"""

from __future__ import annotations

from typing import Any

from .._builder import Runtime
from .._errors import refuse, wrong
from .._sizes import Number, apply, is_number
from .._table import form
from .._values import Value


@form("SequenceConstruct")
def construct(g: Any, node: Any, *items: Any) -> Any:
    return (list(items),)


@form("SequenceEmpty")
def empty(g: Any, node: Any) -> Any:
    return ([],)


def _sequence(node: Any, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise wrong("its first input is not a sequence", node=node.proto)
    return value


def _position(g: Any, node: Any, value: Any, most: int) -> int:
    number = g.item(value)
    if not isinstance(number, (int, float)):
        raise refuse(
            "the position in a sequence is computed",
            because="graphs hold tensors only: sequences are resolved while the file is imported",
            fix="export the model with constant positions, or with tensors in place of sequences",
            node=node.proto,
        )
    place = int(number)
    if not -most <= place <= most:
        raise wrong(f"position {place} is outside of a sequence of {most}", node=node.proto)
    return place


@form("SequenceAt")
def at(g: Any, node: Any, sequence: Any, position: Any) -> Any:
    """The item at a position, from the end if it is negative."""
    items = _sequence(node, sequence)
    place = _position(g, node, position, len(items))
    if place == len(items):
        raise wrong(f"position {place} is outside of a sequence of {len(items)}", node=node.proto)
    return items[place]


@form("SequenceInsert")
def insert(g: Any, node: Any, sequence: Any, item: Any, position: Any = None) -> Any:
    """The sequence with one item more: before a position, or at the end."""
    items = list(_sequence(node, sequence))
    place = len(items) if position is None else _position(g, node, position, len(items))
    items.insert(place, item)
    return (items,)


@form("SequenceErase")
def erase(g: Any, node: Any, sequence: Any, position: Any = None) -> Any:
    """The sequence without one item: at a position, or the last one."""
    items = list(_sequence(node, sequence))
    place = -1 if position is None else _position(g, node, position, len(items))
    if not -len(items) <= place < len(items):
        raise wrong(f"a sequence of {len(items)} has no item {place}", node=node.proto)
    del items[place]
    return (items,)


@form("SequenceLength")
def length(g: Any, node: Any, sequence: Any) -> Any:
    return g.constant(len(_sequence(node, sequence)), node.name, "int64")


@form("ConcatFromSequence")
def concat(g: Any, node: Any, sequence: Any) -> Any:
    """The items as one tensor, along one of their axes or along a new one."""
    items = _sequence(node, sequence)
    if not items:
        raise wrong("the sequence is empty", node=node.proto)
    op = "_npi_stack" if node.attr("new_axis", 0) else "_npi_concatenate"
    return g.emit(op, items, num_args=len(items), axis=node.attr("axis"), name=node.name)


@form("SplitToSequence")
def split(g: Any, node: Any, x: Any, sizes: Any = None) -> Any:
    """Parts of one size, the last one smaller if need be; of given sizes; or slices of size 1."""
    axis = node.attr("axis", 0) % x.ndim
    if sizes is not None and sizes.ndim > 0:
        return (_parts(g, node, x, axis, g.numbers(sizes)),)
    whole = x.fixed(axis)
    if whole is None:
        raise refuse(
            f"axis {axis} of '{x.name}' has an open size",
            because="the number of parts must be known while the file is imported",
            fix="give the size: input_shapes={'name': (...)}",
            node=node.proto,
        )
    step = 1 if sizes is None else _step(g, node, sizes)
    parts = _parts(g, node, x, axis, [min(step, whole - begin) for begin in range(0, whole, step)])
    if sizes is None and not node.attr("keepdims", 1):
        parts = [g.emit("_np_squeeze", [part], axis=axis) for part in parts]
    return (parts,)


def _step(g: Any, node: Any, sizes: Value) -> int:
    step = g.item(sizes)
    if not isinstance(step, (int, float)):
        raise refuse("the size of the parts is computed", node=node.proto)
    if step < 1:
        raise wrong(f"parts of size {step}", node=node.proto)
    return int(step)


def _parts(g: Any, node: Any, x: Value, axis: int, sizes: list[Number] | Runtime) -> list[Value]:
    if isinstance(sizes, Runtime):
        raise refuse("the sizes of the parts are computed from data", node=node.proto)
    ends: list[Number] = []
    for size in sizes:
        ends.append(apply("+", ends[-1], size) if ends else size)
    begins = [0, *ends[:-1]]
    if len(sizes) > 1 and all(is_number(end) for end in ends) and x.fixed(axis) == ends[-1]:
        made = g.emit("_split_v2", [x], name=node.name, indices=tuple(begins), axis=axis)
        return list(made)
    return [
        g.emit("slice_axis", [x], name=node.name, axis=axis, begin=begin, end=end)
        for begin, end in zip(begins, ends, strict=True)
    ]


@form("SequenceMap")
def sequence_map(g: Any, node: Any, *inputs: Any) -> Any:
    """Sequences of the results of a graph for each item; inputs that are tensors are the same for all items."""
    graph = node.graph("body")
    results = [
        g.subgraph(graph, [value[index] if isinstance(value, list) else value for value in inputs])
        for index in range(len(_sequence(node, inputs[0])))
    ]
    return tuple([made[index] for made in results] for index in range(len(graph.output)))


@form("Optional")
def optional(g: Any, node: Any, value: Any = None) -> Any:
    return (value,)


@form("OptionalGetElement")
def element(g: Any, node: Any, value: Any = None) -> Any:
    """The value itself, which must be there."""
    if value is None:
        raise wrong("the optional value is absent", node=node.proto)
    return (value,)


@form("OptionalHasElement")
def has_element(g: Any, node: Any, value: Any = None) -> Any:
    return g.constant(value is not None, node.name)


__all__ = [
    "at",
    "concat",
    "construct",
    "element",
    "empty",
    "erase",
    "has_element",
    "insert",
    "length",
    "optional",
    "sequence_map",
    "split",
]

"""Tensors joined along an axis, and split into parts."""

from __future__ import annotations

from typing import Any

from .._arithmetic import cut, join, total
from .._axes import axis_of
from .._builder import Runtime
from .._errors import refuse, wrong
from .._sizes import Number, apply, is_number
from .._table import form
from .._values import Value


@form("Concat")
def concat(g: Any, node: Any, *values: Any) -> Any:
    """Tensors one after another along an axis."""
    axis = axis_of(node.attr("axis", 1), values[0].ndim, node)
    return (join(g, values, axis, node.name),)


@form("Split")
def split(g: Any, node: Any, x: Any, sizes: Any = None) -> Any:
    """Parts of given sizes; of one size; or of one size and a smaller last part (num_outputs)."""
    axis = axis_of(node.attr("axis", 0), x.ndim, node)
    given = node.attr("split") if sizes is None else g.numbers(sizes)
    count = node.attr("num_outputs", len(node.proto.output))
    if count != len(node.proto.output):
        raise wrong(f"num_outputs is {count}, and the node has {len(node.proto.output)} outputs", node=node.proto)
    if isinstance(given, Runtime):
        return _parts_by_values(g, node, x, axis, sizes, count)
    if given is None:
        given = _equal_sizes(g, node, x, axis, count)
    if given is not None and len(given) != len(node.proto.output):
        raise wrong(f"{len(given)} sizes for {len(node.proto.output)} outputs", node=node.proto)
    if count == 1 and given is None:
        return (x,)
    if given is None or (len(given) > 1 and _are_equal(given, x.fixed(axis))):
        return g.emit("SliceChannel", [x], name=node.name, num_outputs=count, axis=axis)
    ends = [total("+", given[: number + 1]) for number in range(len(given))]
    if is_number(ends[-1]) and x.fixed(axis) not in (None, ends[-1]):
        raise wrong(f"parts of {list(given)} do not make up axis {axis} of {x.shape}", node=node.proto)
    return _parts(g, node, x, axis, ends)


def _equal_sizes(g: Any, node: Any, x: Value, axis: int, count: int) -> list[Number] | None:
    """The sizes of parts for num_outputs; None: they are equal."""
    whole = g.dim(x, axis)
    if (is_number(whole) and whole % count == 0) or not node.has("num_outputs"):
        return None
    chunk = apply("//", apply("+", whole, count - 1), count)
    begins = [apply("min", apply("*", chunk, number), whole) for number in range(count)]
    return [apply("-", end, begin) for begin, end in zip(begins, [*begins[1:], whole], strict=True)]


def _are_equal(sizes: list[Number], whole: int | None) -> bool:
    return all(is_number(size) and size == sizes[0] for size in sizes) and whole == sum(sizes)  # type: ignore[arg-type]


def _parts(g: Any, node: Any, x: Value, axis: int, ends: list[Number]) -> tuple[Value, ...]:
    begins: list[Number] = [0, *ends[:-1]]
    if len(ends) == 1:
        return (x,)
    if all(is_number(begin) for begin in begins) and x.fixed(axis) is not None:
        made: tuple[Value, ...] = g.emit("_split_v2", [x], name=node.name, indices=tuple(begins), axis=axis)
        return made
    last = [*ends[:-1], None]
    return tuple(cut(g, x, axis, begin, end, node.name) for begin, end in zip(begins, last, strict=True))


def _parts_by_values(g: Any, node: Any, x: Value, axis: int, sizes: Value, count: int) -> tuple[Value, ...]:
    """The sizes are known when the graph runs."""
    if sizes.fixed(0) != count:
        raise refuse("the number of parts is not known while the file is imported", node=node.proto)
    ends = g.emit("_np_cumsum", [sizes], axis=0)
    parts = []
    for number in range(count):
        size = g.data_size()
        shapes = [(*s[:axis], part, *s[axis + 1 :]) for s, part in zip(x.shapes, size, strict=True)]
        begin = Runtime(ends, number - 1) if number else 0
        parts.append(
            g.emit("slice_axis", [x], name=node.name, axis=axis, begin=begin, end=Runtime(ends, number), shapes=shapes)
        )
    return tuple(parts)


__all__ = ["concat", "split"]

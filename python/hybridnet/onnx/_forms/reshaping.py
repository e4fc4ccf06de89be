"""Shapes: reading them, and tensors with the same elements in another shape."""

from __future__ import annotations

from typing import Any

from .._arithmetic import cut, permute, total
from .._axes import axes_of, axis_of, run_time_shapes
from .._builder import Runtime
from .._errors import described, refuse, wrong
from .._guards import guarded, has_sizes
from .._sizes import apply, is_number
from .._table import form


@form("Identity")
def identity(g: Any, node: Any, x: Any) -> Any:
    return (x,)


@form("Shape")
def shape(g: Any, node: Any, x: Any) -> Any:
    """The sizes of axes `start` to `end`."""
    axes = range(x.ndim)[slice(node.attr("start", 0), node.attr("end"))]
    if not len(axes):
        return g.constant([], node.name, "int64")

    def make() -> Any:
        return cut(g, g.shape_of(x), 0, axes.start, axes.stop, node.name).symbol

    return (
        g.shape_of(x) if len(axes) == x.ndim else g.sized(node.name, g.dims(x)[axes.start : axes.stop], "int64", make)
    )


@form("Size")
def size(g: Any, node: Any, x: Any) -> Any:
    """The number of elements, a scalar."""

    def make() -> Any:
        return g.emit("_np_reshape", [g.emit("size_array", [x])], name=node.name, newshape=()).symbol

    return g.sized(node.name, total("*", [1, *g.dims(x)]), "int64", make)


@form("Reshape")
def reshape(g: Any, node: Any, x: Any, sizes: Any = None) -> Any:
    """Another shape; 0 copies a size unless allowzero is set, -1 is inferred."""
    target = node.attr("shape") if node.version < 5 else g.numbers(sizes)
    copies = not node.attr("allowzero", 0)
    if isinstance(target, Runtime):
        return _reshape_by_values(g, node, x, target, copies)
    if copies:
        target = [_copied(g, node, x, axis) if _is_zero(item) else item for axis, item in enumerate(target)]
    return g.reshape(x, target, node.name)


def _is_zero(item: Any) -> bool:
    return is_number(item) and item == 0


def _copied(g: Any, node: Any, x: Any, axis: int) -> Any:
    if axis >= x.ndim:
        raise wrong(f"size {axis} of the new shape is 0, but the input has {x.ndim} axes", node=node.proto)
    return g.dim(x, axis)


def _reshape_by_values(g: Any, node: Any, x: Any, target: Runtime, copies: bool) -> Any:
    count = target.value.fixed(0)
    if count is None:
        raise refuse("the rank of the result is not known while the file is imported", node=node.proto)
    if count < 2:
        return g.reshape(x, [-1] * count, node.name)
    shapes = run_time_shapes(g, count)
    if copies:  # the code 0 of this operator
        return g.emit("Reshape", [x], name=node.name, shape=target, shapes=shapes)
    return g.emit("_np_reshape", [x], name=node.name, newshape=target, shapes=shapes)


@form("Flatten")
def flatten(g: Any, node: Any, x: Any) -> Any:
    """A matrix: the axes before `axis` and those from it on are merged."""
    axis = node.attr("axis", 1)
    axis = axis + x.ndim if axis < 0 else axis
    if axis == 1 and x.ndim > 1:
        return g.emit("Flatten", [x], name=node.name)
    return g.reshape(x, [total("*", [1, *g.dims(x)[:axis]]), total("*", [1, *g.dims(x)[axis:]])], node.name)


@form("Squeeze")
def squeeze(g: Any, node: Any, x: Any, axes: Any = None) -> Any:
    """Fewer axes: without those of size 1, or without some of them."""
    ones = [axis for axis in range(x.ndim) if x.fixed(axis) == 1]
    given = axes_of(g, node, x.ndim, axes)
    if isinstance(given, Runtime):
        count = given.value.fixed(0)
        if count is None:
            raise refuse("the number of axes is not known while the file is imported", node=node.proto)
        if count != len(ones):
            shapes = run_time_shapes(g, x.ndim - count)
            return g.emit("squeeze", [x], name=node.name, axis=given, shapes=shapes)
        given = ones
    dropped = ones if given is None else given
    made = g.emit("_np_squeeze", [x], name=node.name, axis=tuple(dropped)) if dropped else x
    left = [axis for axis in range(x.ndim) if x.fixed(axis) is None] if given is None else []
    return (_without_more_ones(g, node, x, made, left),) if left else (made,)


def _without_more_ones(g: Any, node: Any, x: Any, made: Any, axes: list[int]) -> Any:
    """The squeezed tensor; sizes of 1 on other axes, which ONNX would drop too, are an error when the graph runs."""
    g.ranks_vary = True
    message = (
        f"{described(node.proto)} drops all axes of size 1. One of the axes {axes} of its input has size 1 here, but "
        "had not where the file was imported. Import it for such inputs: input_shapes={'name': (...)}"
    )
    is_one = has_sizes(g, x, axes, [1] * len(axes))
    return guarded(g, made, g.emit("_npi_logical_not", [is_one]), message)


@form("Unsqueeze")
def unsqueeze(g: Any, node: Any, x: Any, axes: Any = None) -> Any:
    """More axes of size 1, at these places of the result."""
    count = len(node.attr("axes")) if axes is None else axes.fixed(0) if axes.ndim else 1
    if count is None:
        raise refuse("the number of axes is not known while the file is imported", node=node.proto)
    places = axes_of(g, node, x.ndim + count, axes)
    if isinstance(places, Runtime):
        return _unsqueeze_by_values(g, node, x, g.reshape(axes, [-1]), count)
    for axis in sorted(places or []):
        x = g.emit("expand_dims", [x], name=node.name, axis=axis)
    return (x,)


def _unsqueeze_by_values(g: Any, node: Any, x: Any, axes: Any, count: int) -> Any:
    places = g.emit("sort", [g.emit("_mod_scalar", [axes], scalar=x.ndim + count)], axis=0)
    for index in range(count):
        shapes = run_time_shapes(g, x.ndim + 1)
        x = g.emit("expand_dims", [x], name=node.name, axis=Runtime(places, index), shapes=shapes)
    return (x,)


@form("Transpose")
def transpose(g: Any, node: Any, x: Any) -> Any:
    """Permuted axes; in reverse order by default."""
    axes = node.attr("perm", list(range(x.ndim))[::-1])
    if sorted(axes) != list(range(x.ndim)):
        axes = [axis_of(axis, x.ndim, node) for axis in axes]
    return (permute(g, x, axes, node.name),)


@form("Expand")
def expand(g: Any, node: Any, x: Any, target: Any) -> Any:
    """Repeats axes of size 1; the input and the given shape broadcast together."""
    sizes = g.numbers(target)
    if isinstance(sizes, Runtime):
        return _expand_by_values(g, node, x, target)
    ndim = max(len(sizes), x.ndim)
    own = [1] * (ndim - x.ndim) + g.dims(x)
    sizes = [1] * (ndim - len(sizes)) + list(sizes)
    return (g.broadcast_to(x, [_common(a, b) for a, b in zip(own, sizes, strict=True)], node.name),)


def _common(a: Any, b: Any) -> Any:
    """The size of two that broadcast together. A number other than 1 is the result; the other size is it or 1."""
    for one, other in ((a, b), (b, a)):
        if is_number(one):
            return other if one == 1 else one
    return a if a.trials == b.trials else apply("max", a, b)


def _expand_by_values(g: Any, node: Any, x: Any, target: Any) -> Any:
    count = target.fixed(0)
    if count is None:
        raise refuse("the rank of the result is not known while the file is imported", node=node.proto)
    if count > x.ndim:
        x = g.reshape(x, [1] * (count - x.ndim) + g.dims(x))
    elif count < x.ndim:
        target = g.emit("Pad", [target], mode="constant", pad_width=(x.ndim - count, 0), constant_value=1)
    own = g.shape_of(x)
    keeps = g.emit("_npi_equal_scalar", [target], scalar=1)
    sizes = g.emit("_npi_where", [keeps, own, g.cast(target, "int64")])
    known = [g.data_size() if x.fixed(axis) == 1 else [trial[axis] for trial in x.shapes] for axis in range(x.ndim)]
    shapes = tuple(zip(*known, strict=True))
    return g.emit("_npi_broadcast_to", [x], name=node.name, shape=Runtime(sizes), shapes=shapes)  # takes sizes of 0


@form("Tile")
def tile(g: Any, node: Any, x: Any, repeats: Any, axis: Any = None) -> Any:
    """Repeats of the whole tensor, a number of times along each axis."""
    counts = g.numbers(repeats)
    if node.version < 6:
        counts = [g.item(repeats) if number == g.item(axis) else 1 for number in range(x.ndim)]
    if isinstance(counts, Runtime):
        return g.emit("tile", [x], name=node.name, reps=counts, shapes=run_time_shapes(g, x.ndim))
    for number, count in enumerate(counts):
        if _is_zero(count):  # refused by tile unless NumPy's shapes are switched on
            x = g.emit("slice_axis", [x], axis=number, begin=0, end=0)
            counts[number] = 1
    if all(is_number(count) and count == 1 for count in counts):
        return (x,)
    return g.emit("tile", [x], name=node.name, reps=tuple(counts))


__all__ = [
    "expand",
    "flatten",
    "identity",
    "reshape",
    "shape",
    "size",
    "squeeze",
    "tile",
    "transpose",
    "unsqueeze",
]

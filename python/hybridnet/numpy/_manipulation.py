"""Functions that move, split, repeat and join elements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as onp

from .. import _core
from ..errors import ParamError, ShapeError
from ..errors import TypeError as HybridNetTypeError
from ..errors import ValueError as HybridNetValueError
from ._calls import as_array, as_parts, flat, is_number
from ._creation import array, zeros
from ._operators import direct, np_operator
from ._rearranging import broadcast_to, concatenate, reshape

__all__ = [
    "append", "array_split", "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_arrays", "column_stack", "delete",
    "diff", "dsplit", "dstack", "ediff1d", "flip", "fliplr", "flipud", "hsplit", "hstack", "insert", "moveaxis", "ndim",
    "pad", "ravel", "repeat", "resize", "roll", "rollaxis", "rot90", "row_stack", "shape", "size", "split", "tile",
    "vsplit", "vstack",
]  # fmt: skip


def shape(a: Any) -> tuple[int, ...]:
    """Returns the shape of an array, a list or a number."""
    return tuple(a.shape) if hasattr(a, "shape") else onp.shape(a)


def ndim(a: Any) -> int:
    """Returns the number of axes of an array, a list or a number."""
    return int(a.ndim) if hasattr(a, "ndim") else len(shape(a))


def size(a: Any, axis: int | None = None) -> int:
    """Returns the number of elements, or the size of one axis."""
    return math.prod(shape(a)) if axis is None else shape(a)[axis]


def _axes(axis: Any) -> tuple[int, ...]:
    return tuple(int(i) for i in axis) if isinstance(axis, (Sequence, onp.ndarray)) else (int(axis),)


def ravel(x: Any, order: str = "C") -> Any:
    """Returns all elements as a vector in row-major order."""
    if order not in ("C", "K", "A"):
        raise HybridNetValueError("np.ravel: order", expected="'C', row-major", given=repr(order))
    return flat(x)


# --------------------------------------------------------------------------------------------------------------- moves
def roll(a: Any, shift: int | Sequence[int], axis: int | Sequence[int] | None = None) -> Any:
    """Shifts elements along axes, or in row-major order; elements shifted past the end reenter at the start."""
    return np_operator("_np_roll")(a, shift=_axes(shift), axis=None if axis is None else _axes(axis))


def moveaxis(a: Any, source: int | Sequence[int], destination: int | Sequence[int]) -> Any:
    """Moves axes to other positions; the others keep their order."""
    return np_operator("_np_moveaxis")(a, source=_axes(source), destination=_axes(destination))


def rollaxis(a: Any, axis: int, start: int = 0) -> Any:
    """Moves an axis in front of position start. Raises ValueError if there is none."""
    rank = ndim(a)
    if not -rank <= axis < rank or not -rank <= start <= rank:
        raise HybridNetValueError(
            "np.rollaxis", expected=f"an axis of {rank} and a start up to it", given=f"axis={axis}, start={start}"
        )
    axis, start = axis % rank, start + rank if start < 0 else start
    return moveaxis(a, axis, start - 1 if axis < start else start)


@direct("_npi_flip", "axis out")
def flip(m: Any, axis: int | Sequence[int] | None = None, out: Any = None) -> Any:
    """Reverses the order of elements along axes, along all if axis is None."""
    return np_operator("_npi_flip")(m, axis=None if axis is None else _axes(axis), out=out)


def flipud(m: Any) -> Any:
    """Reverses the order of rows."""
    return flip(m, 0)


def fliplr(m: Any) -> Any:
    """Reverses the order of columns."""
    return flip(m, 1)


def rot90(m: Any, k: int = 1, axes: Sequence[int] = (0, 1)) -> Any:
    """Rotates by k times 90 degrees, from the first of the axes to the second."""
    return np_operator("_npi_rot90")(m, k=k, axes=tuple(axes))


def pad(x: Any, pad_width: Any = None, mode: str = "constant", **kwargs: Any) -> Any:
    """Pads `x` with values around its edges.

    pad_width: ((before, after), ...) for each axis, one pair for all, or a number. mode: 'constant' (constant_values),
    'edge', 'reflect', 'symmetric', 'wrap', 'maximum' or 'minimum'. Raises ParamError for other modes and
    widths, TypeError for keywords that the mode does not have.
    """
    value = kwargs.pop("constant_values", 0) if mode == "constant" else 0
    reflect_type = kwargs.pop("reflect_type", "even") if mode in ("reflect", "symmetric") else "even"
    if kwargs:
        raise HybridNetTypeError(
            f"np.pad(mode={mode!r})", expected="keywords of this mode", given=", ".join(sorted(kwargs))
        )
    if not is_number(value):
        values = onp.unique(onp.asarray(value))
        if values.size != 1:
            raise ParamError("np.pad: constant_values", expected="one value for all sides", given=repr(value))
        value = values[0].item()
    if pad_width is None:
        raise HybridNetTypeError("np.pad: pad_width", expected="widths per axis", given="None")
    width = onp.asarray(pad_width)
    if width.dtype.kind not in "iu":
        raise HybridNetTypeError("np.pad: pad_width", expected="integers", given=repr(pad_width))
    return np_operator("_npi_pad")(
        x, pad_width=str(width.tolist()), mode=mode, constant_value=value, reflect_type=reflect_type
    )


# -------------------------------------------------------------------------------------------------------------- stacks
def atleast_1d(*arys: Any) -> Any:
    """Converts scalars to vectors; returns other arrays as they are. Returns a list for several arrays."""
    return np_operator("_np_atleast_1d")(*as_parts(arys))


def atleast_2d(*arys: Any) -> Any:
    """Returns arrays with at least two axes; new axes come first. Returns a list for several arrays."""
    return np_operator("_np_atleast_2d")(*as_parts(arys))


def atleast_3d(*arys: Any) -> Any:
    """Returns arrays with three or more axes: (N,) becomes (1, N, 1), (M, N) becomes (M, N, 1). A list for several."""
    return np_operator("_np_atleast_3d")(*as_parts(arys))


def vstack(arrays: Any, out: Any = None) -> Any:
    """Stacks arrays as rows."""
    return np_operator("_npi_vstack")(*as_parts(arrays), out=out)


row_stack = vstack


def hstack(arrays: Any) -> Any:
    """Joins arrays along the second axis, vectors along the first."""
    return np_operator("_npi_hstack")(*as_parts(arrays))


def dstack(arrays: Any) -> Any:
    """Stacks arrays along the third axis."""
    return np_operator("_npi_dstack")(*as_parts(arrays))


def column_stack(tup: Any) -> Any:
    """Stacks vectors, as columns, and matrices along the second axis."""
    return np_operator("_npi_column_stack")(*as_parts(tup))


def append(arr: Any, values: Any, axis: int | None = None) -> Any:
    """Appends values to arr along an axis; both are flattened if axis is None."""
    return concatenate([arr, as_array(values)], axis=axis)


def broadcast_arrays(*args: Any) -> tuple[Any, ...]:
    """Broadcasts arrays to one shape. Raises ShapeError if their shapes do not broadcast."""
    arrays = as_parts(args)
    try:
        together = onp.broadcast_shapes(*(tuple(a.shape) for a in arrays))
    except ValueError as problem:
        raise ShapeError(
            "np.broadcast_arrays",
            expected="shapes that broadcast",
            given=", ".join(str(tuple(a.shape)) for a in arrays),
        ) from problem
    return tuple(broadcast_to(a, together) for a in arrays)


# -------------------------------------------------------------------------------------------------------------- splits
def _as_list(parts: Any) -> list[Any]:
    several = len(parts.list_outputs()) > 1 if isinstance(parts, _core.SymbolBase) else isinstance(parts, (list, tuple))
    return list(parts) if several else [parts]


def _cut(operator: str, ary: Any, cuts: Any, axis: int, uneven: bool = False) -> list[Any]:
    """Splits by an operator along `axis`, into a number of parts or at the given positions."""
    length = tuple(ary.shape)[axis] if hasattr(ary, "shape") else None
    attributes = {"axis": axis} if operator == "_npi_split" else {}  # the other operators imply their axis
    if isinstance(cuts, (int, onp.integer)):
        if cuts < 1:
            raise HybridNetValueError("number of sections", expected="at least 1", given=str(cuts))
        if length is not None and length % cuts and not uneven:
            raise HybridNetValueError(
                "array split does not result in an equal division",
                given=f"size {length}, {cuts} sections",
                fix="use array_split",
            )
        return _as_list(np_operator(operator)(ary, indices=(), sections=int(cuts), **attributes))
    begins = [int(cut) for cut in (cuts.asnumpy() if isinstance(cuts, _core.NDArrayBase) else cuts)]
    if length is not None:
        clipped = [min(max(cut + length if cut < 0 else cut, 0), length) for cut in begins]
        if clipped != sorted(clipped):  # a part begins before the previous one
            ends = [*clipped, length]
            whole = (slice(None),) * (axis % len(ary.shape))
            keys = [(*whole, slice(a, b)) for a, b in zip([0, *clipped], ends, strict=True)]
            return [ary[key] for key in keys]
        begins = clipped
    return _as_list(np_operator(operator)(ary, indices=(0, *begins), **attributes))


def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """Returns a list of parts along an axis: equal ones by their number, or beginning at indices.

    Raises ValueError if the number does not divide the size.
    """
    return _cut("_npi_split", as_array(ary), indices_or_sections, axis)


def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """Like :func:`split`; if the number does not divide the size, the first parts are one larger."""
    return _cut("_npi_split", as_array(ary), indices_or_sections, axis, uneven=True)


def _at_least(function: str, ary: Any, least: int) -> Any:
    ary = as_array(ary)
    if hasattr(ary, "shape") and len(ary.shape) < least:
        raise HybridNetValueError(
            f"{function} only works on arrays of {least} or more dimensions", given=str(tuple(ary.shape))
        )
    return ary


def vsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """Splits an array of two or more axes along the first one."""
    return split(_at_least("vsplit", ary, 2), indices_or_sections, 0)


def hsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """Splits along the second axis; a vector along the first."""
    ary = _at_least("hsplit", ary, 1)
    return _cut("_npi_hsplit", ary, indices_or_sections, 0 if ndim(ary) == 1 else 1)


def dsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """Splits along the third axis."""
    return _cut("_npi_dsplit", _at_least("dsplit", ary, 3), indices_or_sections, 2)


# ------------------------------------------------------------------------------------------------------------- repeats
@direct("_npi_tile", "reps")
def tile(A: Any, reps: int | Sequence[int]) -> Any:
    """Repeats the whole array along its axes; reps align with the last axes."""
    times = _axes(reps)
    made = np_operator("_npi_tile")(A, reps=tuple(r or 1 for r in times))
    if 0 not in times:
        return made
    key = (Ellipsis, *(slice(0, 0) if r == 0 else slice(None) for r in times))
    return made[key]


@direct("_np_repeat", "repeats axis")
def repeat(a: Any, repeats: int | Sequence[int], axis: int | None = None) -> Any:
    """Repeats every element, or slice along an axis: each equally often, or by one count per element in repeats."""
    given = onp.asarray(repeats.asnumpy() if isinstance(repeats, _core.NDArrayBase) else repeats)
    counts = onp.atleast_1d(given).astype("int64")
    if (counts != given).any():
        raise HybridNetValueError("np.repeat: repeats", expected="integers", given=repr(repeats))
    if counts.size == 1:
        return np_operator("_np_repeat")(a, repeats=int(counts[0]), axis=axis)
    a = as_array(a) if axis is not None else flat(as_array(a))
    axis = axis or 0
    if counts.size != a.shape[axis] or counts.min(initial=0) < 0:
        raise HybridNetValueError(
            "np.repeat: repeats",
            expected=f"one number, or {a.shape[axis]} that are not negative",
            given=repr(repeats),
        )
    return np_operator("take")(a, array(onp.repeat(onp.arange(counts.size), counts), "int64"), axis=axis)


def resize(a: Any, new_shape: int | Sequence[int]) -> Any:
    """Returns the elements in row-major order, repeated to fill the new shape; zeros if there are none."""
    a, wanted = as_array(a), _axes(new_shape)
    count = math.prod(wanted)
    if any(n < 0 for n in wanted):
        raise HybridNetValueError("np.resize: new_shape", expected="sizes of at least 0", given=str(wanted))
    if count == 0:
        return reshape(np_operator("slice_axis")(flat(a), axis=0, begin=0, end=0), wanted)
    if size(a) == 0:
        return zeros(wanted, a.dtype)
    return reshape(tile(flat(a), -(-count // size(a)))[:count], wanted)


# --------------------------------------------------------------------------------------------------------- differences
def _edge(value: Any, a: Any, axis: int) -> Any:
    """Converts prepend or append values to an array like a: a number counts as one slice."""
    value = array(value, a.dtype) if is_number(value) else as_array(value)
    if ndim(value) > 0:
        return value
    one = [1 if i == axis % ndim(a) else n for i, n in enumerate(a.shape)]
    return broadcast_to(value, tuple(one))


def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Any:
    """Differences of neighbors along an axis, taken n times; for bools whether they differ."""
    if prepend is not None or append is not None:
        a = as_array(a)
        parts = [p if p is a else _edge(p, a, axis) for p in (prepend, a, append) if p is not None]
        a = concatenate(parts, axis)
    return np_operator("_npi_diff")(a, n=n, axis=axis)


def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    """Differences of neighbors in row-major order, with optional values in front and behind."""
    ary = as_array(ary)
    inputs, attributes = [ary], {}
    for name, value in (("to_begin", to_begin), ("to_end", to_end)):
        if value is None:
            continue
        if is_number(value):
            attributes[f"{name}_scalar"] = value
        else:
            inputs.append(as_array(value))
            attributes[f"{name}_arr_given"] = True
    return np_operator("_npi_ediff1d")(*inputs, **attributes)


# --------------------------------------------------------------------------------------------------- delete and insert
def _slice_attributes(obj: slice) -> dict[str, Any]:
    return {"start": obj.start, "stop": obj.stop, "step": obj.step}


def _index_values(obj: Any) -> onp.ndarray:
    return obj.asnumpy() if isinstance(obj, _core.NDArrayBase) else onp.asarray(obj)


def delete(arr: Any, obj: Any, axis: int | None = None) -> Any:
    """Returns arr without the slices of an axis that an index, a slice, indices or a mask of bools selects.

    The array is flattened if axis is None. Raises IndexError for indices outside the axis.
    """
    arr = as_array(arr)
    if isinstance(obj, (int, onp.integer)) and not isinstance(obj, bool):
        return np_operator("_npi_delete")(arr, int_ind=int(obj), axis=axis)
    if isinstance(obj, slice):
        return np_operator("_npi_delete")(arr, **_slice_attributes(obj), axis=axis)
    arr = arr if axis is not None else flat(arr)
    axis = axis or 0
    index = _index_values(obj)
    kept = onp.delete(onp.arange(arr.shape[axis]), index if index.size else index.astype("int64"))
    return np_operator("take")(arr, array(kept, "int64"), axis=axis)


def insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Any:
    """Returns arr with values inserted before the slices that an index, a slice or indices select.

    values are cast to arr's dtype and broadcast. The array is flattened if axis is None.
    """
    arr = as_array(arr)
    inputs: list[Any] = [arr]
    attributes: dict[str, Any] = {"axis": axis}
    if is_number(values) and not isinstance(values, (bool, onp.bool_)):
        attributes["val"] = values
    else:
        inputs.append(as_array(values))
    if isinstance(obj, (int, onp.integer)):
        return np_operator("_npi_insert_scalar")(*inputs, int_ind=int(obj), **attributes)
    if isinstance(obj, slice):
        return np_operator("_npi_insert_slice")(*inputs, **_slice_attributes(obj), **attributes)
    if isinstance(obj, _core.SymbolBase):
        return np_operator("_npi_insert_tensor")(**_named(inputs), obj=obj, **attributes)
    index = _index_values(obj)
    index = onp.flatnonzero(index) if index.dtype == bool else index.astype("int64")
    length = size(arr) if axis is None else arr.shape[axis]
    if index.size and (index.max() > length or index.min() < -length):
        raise HybridNetValueError("np.insert: obj", expected=f"indices within {length}", given=str(index.tolist()))
    if index.ndim == 0:
        return np_operator("_npi_insert_scalar")(*inputs, int_ind=int(index), **attributes)
    return np_operator("_npi_insert_tensor")(**_named(inputs), obj=array(index, "int64"), **attributes)


def _named(inputs: list[Any]) -> dict[str, Any]:
    return dict(zip(("arr", "values"), inputs, strict=False))

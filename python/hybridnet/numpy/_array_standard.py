"""Functions of the Array API standard that MXNet 1.9.1 does not have or names differently.

Behavior follows the standard's edition 2025.12 for the dtypes that arrays have (no complex, no wide unsigned ones).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as onp

from .. import _core
from ..context import Context, cpu, current_context
from ..errors import ParamError, ShapeError
from ..ndarray._dtypes import numpy_dtype
from ..ndarray.ndarray import from_dlpack as _shared
from ._calls import as_array, cast, choose, is_float, name_of
from ._creation import Device, _context, array, ones_like, zeros_like
from ._elementwise import (
    abs,
    add,
    arccos,
    arccosh,
    arcsin,
    arcsinh,
    arctan,
    arctan2,
    arctanh,
    equal,
    exp,
    invert,
    log1p,
    maximum,
    multiply,
    power,
    subtract,
)  # fmt: skip
from ._fallback import left_shift as bitwise_left_shift
from ._fallback import right_shift as bitwise_right_shift
from ._manipulation import moveaxis
from ._operators import np_operator, public_operator
from ._rearranging import concatenate, swapaxes, transpose
from ._reductions import sum
from ._searching import unique
from ._statistics import cumprod, cumsum
from .multiarray import ndarray

__all__ = [
    "__array_namespace_info__", "acos", "acosh", "asarray", "asin", "asinh", "astype", "atan", "atan2", "atanh",
    "bitwise_invert", "bitwise_left_shift", "bitwise_right_shift", "broadcast_shapes", "can_cast", "concat", "conj",
    "cumulative_prod", "cumulative_sum", "from_dlpack", "imag", "isdtype", "logaddexp", "matrix_transpose",
    "permute_dims", "pow", "real", "unique_all", "unique_counts", "unique_inverse", "unique_values", "unstack",
    "vecdot",
]  # fmt: skip

acos, acosh, asin, asinh, atan, atan2, atanh = arccos, arccosh, arcsin, arcsinh, arctan, arctan2, arctanh
bitwise_invert, pow, broadcast_shapes = invert, power, onp.broadcast_shapes


# ------------------------------------------------------------------------------------------------------ arrays, dtypes
def asarray(
    obj: Any, dtype: Any = None, ctx: Context | None = None, copy: bool | None = None, *, device: Device = None
) -> Any:
    """Converts obj to an array: returns obj itself if it is an array of the dtype, else a new one.

    dtype None: that of arrays; int64 for Python integers, float32 for floats, bool for bools. copy: True always makes a
    new array, False raises ValueError if a new array is needed.
    """
    if isinstance(obj, _core.SymbolBase):
        return obj if dtype is None else cast(obj, dtype)
    ctx = ctx if device is None else _context(ctx, device)
    same = type(obj) is ndarray and (dtype is None or onp.dtype(obj.dtype) == numpy_dtype(dtype))
    same = same and (ctx is None or obj.ctx == ctx)
    if same and not copy:
        return obj
    if copy is False:
        raise ParamError("np.asarray: copy", expected="an array of this dtype and context", given=type(obj).__name__)
    if dtype is None and not isinstance(obj, _core.NDArrayBase):
        dtype = _dtype_of_values(obj)
    return array(obj, dtype, ctx)


def _dtype_of_values(obj: Any) -> Any:
    """Returns the dtype of numbers by the standard; None for floats without a dtype."""
    if isinstance(obj, (onp.ndarray, onp.generic)):
        return obj.dtype
    if isinstance(obj, (list, tuple)) and any(isinstance(part, _core.NDArrayBase) for part in obj):
        return onp.result_type(
            *(onp.dtype(part.dtype) if isinstance(part, _core.NDArrayBase) else part for part in obj)
        )
    kind = onp.asarray(obj).dtype.kind
    return {"i": "int64", "b": "bool"}.get(kind)


def from_dlpack(x: Any, device: Context | None = None, copy: bool | None = None) -> Any:
    """Returns an array from an object with ``__dlpack__``, sharing its memory; with copy=True in memory of its own."""
    made = _core.retyped(_shared(x), ndarray)
    made = made if device is None else made.as_in_ctx(device)
    return made.copy() if copy else made


def astype(x: Any, dtype: Any, copy: bool = True, device: Context | None = None) -> Any:
    """Converts x to another dtype; with copy=False returns x itself if it has it."""
    made = x.astype(dtype, copy=copy)
    return made if device is None else made.as_in_ctx(device)


def can_cast(from_: Any, to: Any, casting: Any = "safe") -> bool:
    """Whether a dtype, or that of an array, can be cast to another one under NumPy's rules."""
    given = from_.dtype if isinstance(from_, _core.NDArrayBase) else from_
    return bool(onp.can_cast(onp.dtype(given), onp.dtype(to), casting))


_KINDS = {
    "bool": "b", "signed integer": "i", "unsigned integer": "u", "integral": "iu", "real floating": "f",
    "complex floating": "c", "numeric": "iufc",
}  # fmt: skip


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether a dtype equals kind, is of that kind ('bool', 'integral', 'real floating', ...), or of one in a tuple."""
    if isinstance(kind, tuple):
        return any(isdtype(dtype, one) for one in kind)
    if not isinstance(kind, str):
        return bool(onp.dtype(dtype) == onp.dtype(kind))
    if kind not in _KINDS:
        raise ParamError("np.isdtype: kind", expected=", ".join(map(repr, _KINDS)), given=repr(kind))
    name = onp.dtype(dtype).name
    return ("f" if name == "bfloat16" else onp.dtype(dtype).kind) in _KINDS[kind]


# -------------------------------------------------------------------------------------------------- element by element
def conj(x: Any) -> Any:
    """Returns x: arrays are real."""
    return np_operator("_np_copy")(as_array(x))


def real(val: Any) -> Any:
    """Returns val: arrays are real."""
    return as_array(val)


def imag(val: Any) -> Any:
    """Returns zeros: arrays are real."""
    return zeros_like(as_array(val))


def logaddexp(x1: Any, x2: Any) -> Any:
    """log(exp(x1) + exp(x2)) without overflow."""
    x1, x2 = as_array(x1), as_array(x2)
    larger = maximum(x1, x2)
    larger = larger if is_float(larger) else cast(larger, "float32")
    # Equal infinities have no difference; it counts as 0, so log(2) is added as for all equal numbers.
    apart = choose(equal(x1, x2), 0.0, cast(abs(subtract(x1, x2)), larger.dtype))
    return add(larger, log1p(exp(-apart)))


# --------------------------------------------------------------------------------------------------------- arrangement
concat = public_operator("concat", "_npi_concatenate", "axis")


def permute_dims(x: Any, axes: Any) -> Any:
    """Permutes the axes."""
    return transpose(x, axes)


def matrix_transpose(x: Any) -> Any:
    """Exchanges the last two axes. Raises ShapeError for fewer axes."""
    if len(x.shape) < 2:
        raise ShapeError("np.matrix_transpose: x", expected="two axes or more", given=f"shape {tuple(x.shape)}")
    return swapaxes(x, -1, -2)


def unstack(x: Any, axis: int = 0) -> tuple[Any, ...]:
    """Returns the slices along an axis."""
    moved = moveaxis(x, axis, 0)
    return tuple(moved[i] for i in range(moved.shape[0]))


# --------------------------------------------------------------------------------------------------------------- sums
def vecdot(x1: Any, x2: Any, axis: int = -1) -> Any:
    """Sums of products along one axis of both; the other axes broadcast; in the promoted dtype."""
    x1, x2 = as_array(x1), as_array(x2)
    for x in (x1, x2):
        if not -len(x.shape) <= axis < 0:
            raise ShapeError("np.vecdot: axis", expected=f"from {-len(x.shape)} to -1", given=str(axis))
    if x1.shape[axis] != x2.shape[axis]:
        raise ShapeError("np.vecdot", expected="axes of one size", given=f"{tuple(x1.shape)}, {tuple(x2.shape)}")
    products = multiply(x1, x2)
    return cast(sum(products, axis=axis), products.dtype)


def _cumulative(
    function: Any, start: Any, x: Any, axis: int | None, dtype: Any, include_initial: bool, name: str
) -> Any:
    rank = len(x.shape)
    if axis is None and rank != 1:
        raise ParamError(f"np.{name}: axis", expected="an axis, unless x is a vector", given=f"{rank} axes")
    axis = 0 if axis is None else axis
    if dtype is None and not is_float(x):
        dtype = "int64"
    found = function(x, axis=axis, dtype=name_of(dtype))
    if not include_initial:
        return found
    first = start(np_operator("slice_axis")(found, axis=axis, begin=0, end=1)) if x.shape[axis] else None
    if first is None:
        shape = list(found.shape)
        shape[axis] = 1
        first = start(np_operator("_npi_zeros")(shape=tuple(shape), dtype=name_of(found.dtype)))
    return concatenate([first, found], axis=axis)


def cumulative_sum(x: Any, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Any:
    """Cumulative sum along an axis; include_initial prepends a 0. Integers give int64."""
    return _cumulative(cumsum, zeros_like, as_array(x), axis, dtype, include_initial, "cumulative_sum")


def cumulative_prod(x: Any, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Any:
    """Cumulative product along an axis; include_initial prepends a 1. Integers give int64."""
    return _cumulative(cumprod, ones_like, as_array(x), axis, dtype, include_initial, "cumulative_prod")


# ---------------------------------------------------------------------------------------------------------------- sets
class UniqueAll(NamedTuple):
    """The unique elements, the first position of each, the index of each element's value, and the counts."""

    values: Any
    indices: Any
    inverse_indices: Any
    counts: Any


class UniqueCounts(NamedTuple):
    """The unique elements and their counts."""

    values: Any
    counts: Any


class UniqueInverse(NamedTuple):
    """The unique elements and the index of each element's value among them."""

    values: Any
    inverse_indices: Any


def _distinct_nans(x: Any) -> tuple[Any, Any, Any, Any]:
    """Like unique with all results, but every NaN counts as a distinct value, as the standard demands."""
    values = onp.unique(_core.asnumpy(x), return_index=True, return_inverse=True, return_counts=True, equal_nan=False)
    found, index, inverse, counts = values
    return (
        array(found, x.dtype), array(index, "int64"), array(inverse.reshape(x.shape), "int64"), array(counts, "int64")
    )  # fmt: skip


def _unique(x: Any) -> tuple[Any, Any, Any, Any]:
    x = as_array(x)
    if is_float(x) and not isinstance(x, _core.SymbolBase):
        return _distinct_nans(x)
    values, index, inverse, counts = unique(x, return_index=True, return_inverse=True, return_counts=True)
    return values, index, inverse.reshape(x.shape), counts


def unique_all(x: Any) -> UniqueAll:
    """The unique elements in ascending order, with positions, inverse and counts; every NaN is distinct."""
    return UniqueAll(*_unique(x))


def unique_counts(x: Any) -> UniqueCounts:
    """The unique elements in ascending order, and their counts; every NaN is distinct."""
    values, _, _, counts = _unique(x)
    return UniqueCounts(values, counts)


def unique_inverse(x: Any) -> UniqueInverse:
    """The unique elements in ascending order, and the index of each element's value; every NaN is distinct."""
    values, _, inverse, _ = _unique(x)
    return UniqueInverse(values, inverse)


def unique_values(x: Any) -> Any:
    """The unique elements in ascending order; every NaN is distinct."""
    return _unique(x)[0]


# ------------------------------------------------------------------------------------------------------- namespace info
_DTYPES = {
    "bool": "bool", "int8": "signed integer", "int32": "signed integer", "int64": "signed integer",
    "uint8": "unsigned integer", "float16": "real floating", "float32": "real floating", "float64": "real floating",
}  # fmt: skip
_GROUPS = {"integral": ("signed integer", "unsigned integer"), "complex floating": ()}
_GROUPS["numeric"] = (*_GROUPS["integral"], "real floating")


class NamespaceInfo:
    """The result of the standard's ``__array_namespace_info__()`` for this package."""

    def capabilities(self) -> dict[str, Any]:
        """The optional features of the standard, and whether they are supported."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 32}

    def default_device(self) -> Context:
        """The device of new arrays."""
        return current_context()

    def devices(self) -> tuple[Context, ...]:
        """The devices that arrays can be on."""
        return (cpu(),)

    def default_dtypes(self, *, device: Context | None = None) -> dict[str, Any]:
        """The dtypes of arrays that are created without a dtype."""
        return {"real floating": onp.float32, "integral": onp.int64, "indexing": onp.int64}

    def dtypes(self, *, device: Context | None = None, kind: str | tuple[str, ...] | None = None) -> dict[str, Any]:
        """The dtypes of the standard that arrays may have, by name; of one kind or several."""
        kinds = (kind,) if isinstance(kind, str) else kind
        wanted = {part for one in kinds or () for part in _GROUPS.get(one, (one,))}
        return {name: getattr(onp, name, onp.bool_) for name, of in _DTYPES.items() if kinds is None or of in wanted}


def __array_namespace_info__() -> NamespaceInfo:
    """Returns devices, dtypes and capabilities, as the Array API standard defines."""
    return NamespaceInfo()

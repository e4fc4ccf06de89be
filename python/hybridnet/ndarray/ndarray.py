"""NDArray: a dense tensor on a device, computed asynchronously.

MXNet also has the functions that create and combine arrays in this module; here they have files of their own.
"""

from __future__ import annotations

import html
import math
import struct
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .. import _core
from .._habits import add_habits
from .._lazy_names import names_from
from .._public_names import dir_of
from ..context import Context
from ..errors import TypeError as HybridNetTypeError
from ..errors import ValueError as HybridNetValueError
from . import _indexing, _internal
from ._dtypes import dtype_name, numpy_dtype
from ._flattening import takes_no_axes
from ._fluent import add_fluent_methods
from ._operators import UFUNC_OPERATORS, main_operator

__all__ = ["NDArray"]

# MXNet programs import these names from this module.
py_slice = slice
_STORAGE_TYPE_STR_TO_ID = {"undefined": -1, "default": 0, "row_sparse": 1, "csr": 2}  # the numbers in parameter files


def _written(value: NDArray, out: NDArray) -> NDArray:
    out[:] = value
    return out


# NumPy functions that are served by methods of MXNet's arrays, with the number of positional arguments of each.
_METHODS_FOR_NUMPY = {
    "amax": ("max", 2), "amin": ("min", 2), "argmax": ("argmax", 2), "argmin": ("argmin", 2), "around": ("round", 1),
    "clip": ("clip", 3), "max": ("max", 2), "min": ("min", 2), "prod": ("prod", 2), "repeat": ("repeat", 3),
    "round": ("round", 1), "squeeze": ("squeeze", 2), "sum": ("sum", 2), "swapaxes": ("swapaxes", 3),
}  # fmt: skip
_METHOD_KEYWORDS = {"axis", "keepdims", "repeats", "a_min", "a_max"}


class NDArray(_core.NDArrayBase):
    """Dense tensor: shape, dtype, device. Created by :func:`array`, :func:`zeros` and others, and by every operator.

    Arithmetic broadcasts; both arrays must have the same dtype, a number is converted to the array's. Operations are
    pushed to the engine and return at once; reading values (``asnumpy``, ``asscalar``, printing) waits. Slices of
    leading axes and reshapes share memory, and writing to them writes to this array.
    """

    __slots__ = ()
    __array_priority__ = 1000.0
    _has_numpy_interface = False

    # ----------------------------------------------------------------------------------------------------- conversion
    @staticmethod
    def _basic_indexing_slice_is_contiguous(slc_key: Sequence[slice], shape: Sequence[int]) -> bool:
        """Whether x[slc_key], with a slice per axis of an array of this shape, is contiguous in memory."""
        sizes = [len(range(*key.indices(size))) for key, size in zip(slc_key, shape, strict=True)]
        if math.prod(sizes) <= 1:
            return True
        whole = True  # True while all axes behind are taken whole
        for key, size, taken in reversed([*zip(slc_key, shape, sizes, strict=True)]):
            if taken > 1 and (not whole or key.indices(size)[2] != 1):
                return False
            whole = whole and taken == size
        return True

    def asnumpy(self) -> np.ndarray:
        """Waits and returns a NumPy copy. Raises the error of a failed operation that the array depends on."""
        return _core.asnumpy(self)

    def asscalar(self) -> Any:
        """Waits and returns the only element as a NumPy scalar. Raises ValueError for any other size."""
        if self.size != 1:
            raise HybridNetValueError(
                "asscalar", expected="an array of one element", given=f"shape {self.shape}", fix="use asnumpy()"
            )
        return _core.asnumpy(self).reshape(-1)[0]

    def item(self, *args: int) -> Any:
        """Waits and returns one element as a Python number."""
        return _core.asnumpy(self).item(*args)

    def tolist(self) -> Any:
        """Waits and returns nested lists of Python numbers."""
        return _core.asnumpy(self).tolist()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise HybridNetValueError("numpy.asarray(copy=False): NDArray values are always copied to NumPy")
        values = _core.asnumpy(self)
        return values if dtype is None else values.astype(dtype, copy=False)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        operator = UFUNC_OPERATORS.get(ufunc.__name__)
        if method == "__call__" and operator is not None and not kwargs:
            result = _core.binary(operator, *inputs)  # a NumPy array on the left: the result is an NDArray
            if result is not NotImplemented:
                return result
        if method == "__call__" and ufunc is np.floor_divide and not kwargs:
            dtype = next(i.dtype for i in inputs if isinstance(i, NDArray))
            from ._creation import array

            left, right = (array(i, dtype=dtype) if isinstance(i, (np.ndarray, np.generic)) else i for i in inputs)
            return left // right
        converted = [_core.asnumpy(i) if isinstance(i, NDArray) else i for i in inputs]
        targets = kwargs.get("out", ())
        if any(isinstance(target, NDArray) for target in targets):
            return NotImplemented
        return getattr(ufunc, method)(*converted, **kwargs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Calls methods of x for np.sum(x) and others (recorded); the rest run on values and return NumPy arrays."""
        method, most = _METHODS_FOR_NUMPY.get(func.__name__, ("", 0))
        given = {name: value for name, value in kwargs.items() if value is not None}
        if 1 <= len(args) <= most and isinstance(args[0], NDArray) and _METHOD_KEYWORDS.issuperset(given):
            return getattr(args[0], method)(*args[1:], **given)
        return func(*_as_numpy(args), **_as_numpy(kwargs))

    def __dlpack__(self, *, stream: int | None = None, **asked: Any) -> Any:
        if self.context.device_type == "gpu":
            from ..cuda import _sharing

            return _sharing.capsule_of(self, stream, asked.get("dl_device"), asked.get("copy"))
        return _core.to_dlpack(self, False)

    def __dlpack_device__(self) -> tuple[int, int]:
        ctx = self.context
        return (2, ctx.device_id) if ctx.device_type == "gpu" else (1, 0)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        from ..cuda import _sharing

        return _sharing.interface_of(self)

    def as_cupy(self) -> Any:
        """Returns a CuPy array over this array's memory, on a GPU. Raises ValueError on the CPU."""
        from ..cuda import _sharing

        return _sharing.as_cupy(self)

    def to_dlpack_for_read(self) -> Any:
        """Returns a DLPack capsule that shares this memory; the consumer must only read.

        On a GPU the legacy default stream follows the array's work.
        """
        return _core.to_dlpack(self, False, 1)

    def to_dlpack_for_write(self) -> Any:
        """Returns a DLPack capsule that shares this memory; the consumer may write."""
        _core.note_given_out(self)
        return _core.to_dlpack(self, True, 1)

    def __bool__(self) -> bool:
        size = self.size
        if size == 1:
            return bool(self.asscalar())
        if size == 0:
            return False
        raise HybridNetValueError(
            f"The truth value of an NDArray with multiple elements is ambiguous: its shape is {self.shape}",
            fix="reduce it first, for example (x > 0).sum() > 0",
        )

    def __int__(self) -> int:
        return int(self.asscalar())

    def __float__(self) -> float:
        return float(self.asscalar())

    def __index__(self) -> int:
        if not np.issubdtype(self.dtype, np.integer):
            raise HybridNetTypeError(
                f"an array used as an index must be of an integer dtype, not {np.dtype(self.dtype)}",
                fix="convert it: x.astype('int64'); the other operand of * must be a number or an array, not text",
            )
        return int(self.asscalar())

    def __len__(self) -> int:
        if not self.shape:
            raise HybridNetTypeError("len() of a scalar array")
        return self.shape[0]

    def __contains__(self, value: Any) -> bool:
        return bool((_core.asnumpy(self) == value).any())

    def __iter__(self) -> Iterator[NDArray]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        shape = "x".join(str(size) for size in self.shape)
        return f"\n{_core.asnumpy(self)}\n<{type(self).__name__} {shape} @{self.context}{_other_dtype(self)}>"

    def __str__(self) -> str:
        return self.__repr__()

    def _repr_html_(self) -> str:
        """The HTML that notebooks show."""
        return f"<pre>{html.escape(repr(self).strip())}</pre>"

    def __round__(self, ndigits: int | None = None) -> NDArray:
        """round(x) rounds halves away from zero, like nd.round, to ndigits decimal places."""
        return self.round() if ndigits is None else (self * 10.0**ndigits).round() / 10.0**ndigits

    def var(
        self, axis: Any = None, dtype: Any = None, out: Any = None, ddof: int = 0, keepdims: bool = False
    ) -> NDArray:
        """Variance along axis (a number, a tuple, or None: all): sum of squared deviations / (count - ddof).

        dtype: the dtype of the computation; default: that of the array, float32 for integers. out: array to fill.
        """
        own = np.dtype(self.dtype)
        values = self.astype(dtype or (own if own.kind in "fV" else "float32"), copy=False)
        over = () if axis is None else axis
        means = values.mean(axis=over, keepdims=True)
        squares = (values - means).square()
        result = squares.sum(axis=over, keepdims=keepdims) / (self.size / max(means.size, 1) - ddof)
        return result if out is None else _written(result, out)

    def std(
        self, axis: Any = None, dtype: Any = None, out: Any = None, ddof: int = 0, keepdims: bool = False
    ) -> NDArray:
        """Standard deviation: the square root of var. Takes the same arguments as var."""
        result = self.var(axis, dtype, None, ddof, keepdims).sqrt()
        return result if out is None else _written(result, out)

    def __format__(self, spec: str) -> str:
        return format(self.asscalar(), spec) if spec and self.size == 1 else str(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (_core.save_to_buffer([self], [], True), str(self.context), type(self))

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restores the array from a pickle that MXNet wrote, which holds one record of the ``.params`` format."""
        record = bytes(state["handle"] or b"")
        file = struct.pack("<QQQ", 0x112, 0, 1) + record + struct.pack("<Q", 0)
        _core.take_over(self, _core.load_from_buffer(file, "pickled NDArray of MXNet")[2][0])

    # __reduce__ would also serve copy.copy and copy.deepcopy, but is slower than copying.
    def __copy__(self) -> NDArray:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> NDArray:
        return self.copy()

    # ----------------------------------------------------------------------------------------------------- properties
    @property
    def T(self) -> NDArray:
        """The array with its axes in reverse order; a vector stays as it is."""
        return self if self.ndim < 2 else self.transpose()

    @property
    def handle(self) -> NDArray:
        """The array itself: MXNet programs pass it on as a handle."""
        return self

    # ------------------------------------------------------------------------------------------------------- indexing
    def __getitem__(self, key: Any) -> NDArray:
        return _indexing.get_item(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        _indexing.set_item(self, key, value)

    def __matmul__(self, other: Any) -> NDArray:
        return _matmul(self, other)

    # -------------------------------------------------------------------------------------------------- copy and move
    def copy(self) -> NDArray:
        """Returns a new array with the same values on the same device."""
        return _internal._copy(self)

    def copyto(self, other: NDArray | Context) -> NDArray:
        """Copies into another array (any dtype, same shape), or to a device. Returns the target."""
        if isinstance(other, Context):
            target = _core.empty(self.shape, self.dtype, other.device_typeid, other.device_id)
            return _internal._copyto(self, out=target)
        if not isinstance(other, NDArray):
            given, fix = type(other).__name__, "name the device by mx.cpu() or mx.gpu(0)"
            raise HybridNetTypeError("copyto", expected="an NDArray or a Context", given=given, fix=fix)
        if other is self:
            return other
        source = self if other.dtype is self.dtype else self.astype(other.dtype)
        return _internal._copyto(source, out=other)

    def as_in_context(self, context: Context) -> NDArray:
        """Returns this array if it is on the device already, else a copy there."""
        return self if self.context == context else self.copyto(context)

    as_in_ctx = as_in_context

    def as_nd_ndarray(self) -> NDArray:
        """Returns this array itself."""
        return self

    def as_np_ndarray(self) -> Any:
        """Returns this array as an ``mx.np.ndarray`` with the same memory and history."""
        from ..numpy import ndarray

        return _core.retyped(self, ndarray)

    def astype(self, dtype: Any, copy: bool = True) -> NDArray:
        """Returns a copy in another dtype; with copy=False this array itself if it has that dtype."""
        target = numpy_dtype(dtype)
        if not copy and target == np.dtype(self.dtype):
            return self
        return _internal_cast(self, target)

    def tostype(self, stype: str) -> NDArray:
        """Returns a new array with the same values in storage 'default', 'row_sparse' or 'csr'."""
        from .sparse import cast_storage

        return cast_storage(self, stype)

    # ----------------------------------------------------------------------------------------------------------- shape
    def reshape(self, *shape: Any, **kwargs: Any) -> NDArray:
        """Returns a view of another shape over the same memory.

        Sizes may be 0 (copy this size), -1 (infer), -2 (copy all the rest), -3 (merge two), -4 (split into the two
        that follow). ``reverse=True`` matches from the last axis. Raises ShapeError if the number of elements differs.
        """
        if len(shape) == 1 and isinstance(shape[0], (list, tuple)):
            shape = tuple(shape[0])
        elif not shape:
            if "shape" not in kwargs:
                raise HybridNetTypeError("reshape", expected="a shape", given="none")
            shape = kwargs["shape"]
            shape = tuple(shape) if isinstance(shape, (list, tuple)) else (shape,)
        unknown = set(kwargs) - {"shape", "reverse"}
        if unknown:
            raise HybridNetTypeError(
                "reshape", expected="keywords 'shape' and 'reverse'", given=str(", ".join(sorted(unknown)))
            )
        if any(isinstance(size, (str, float)) for size in shape):
            raise HybridNetTypeError(
                "reshape",
                expected="integers",
                given=", ".join(map(repr, shape)),
                fix="write the sizes as integers, such as x.reshape((2, -1)); // divides integers",
            )
        reverse = bool(kwargs.get("reverse", False))
        if all(size > 0 for size in shape) and math.prod(shape) == self.size:
            return _core.reshaped(self, shape)
        return _core.reshaped(self, _core.resolve_reshape(self, shape, reverse))

    def expand_dims(self, axis: int, inplace: bool = False) -> NDArray:
        """Inserts an axis of size 1 at position axis; inplace: as a view of this array."""
        if not inplace:
            return main_operator("expand_dims")(self, axis=axis)
        rank = self.ndim + 1
        if not -rank <= axis < rank:
            raise HybridNetValueError(
                "expand_dims",
                expected=f"an axis in [{-rank}, {rank})",
                given=str(axis),
                because=f"the result of shape {self.shape} has {rank} axes",
            )
        at = axis % rank
        return self.reshape((*self.shape[:at], 1, *self.shape[at:]))

    def flatten(self, *axes: Any, inplace: bool = False, **unknown: Any) -> NDArray:
        """Returns a matrix: the first axis stays, the others merge; inplace: as a view of this array."""
        if axes or unknown:
            inplace = takes_no_axes(self, axes, unknown)
        return self.reshape((0, -1)) if inplace and self.size else main_operator("Flatten")(self)

    def squeeze(self, axis: int | tuple[int, ...] | None = None, inplace: bool = False) -> NDArray:
        """Removes the axes of size 1 (all, or the given ones); inplace: as a view of this array."""
        squeezed = main_operator("squeeze")(self, axis=axis)
        return self.reshape(squeezed.shape) if inplace else squeezed

    def transpose(self, *axes: Any, **kwargs: Any) -> NDArray:
        """Permutes the axes; reverses them if none is given."""
        if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], (list, tuple))):
            axes = tuple(axes[0] or ())
        return main_operator("transpose")(self, axes=kwargs.pop("axes", None) or axes, **kwargs)

    def broadcast_to(self, shape: Sequence[int]) -> NDArray:
        """Repeats along axes of size 1 up to shape; 0 keeps a size, leading axes may be added."""
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        source = self
        if len(shape) > self.ndim:
            source = self.reshape((1,) * (len(shape) - self.ndim) + self.shape)
        return main_operator("broadcast_to")(source, shape=shape)

    def broadcast_like(self, other: NDArray, lhs_axes: Any = None, rhs_axes: Any = None) -> NDArray:
        """Repeats along axes of size 1 up to the shape of other, leading axes may be added; with lhs_axes and rhs_axes:
        only along lhs_axes, up to the sizes of other's rhs_axes."""
        lacking = other.ndim - self.ndim if lhs_axes is None and rhs_axes is None else 0
        source = self.reshape((1,) * lacking + self.shape) if lacking > 0 else self
        return main_operator("broadcast_like")(source, other, lhs_axes=lhs_axes, rhs_axes=rhs_axes)

    def split_v2(self, *args: Any, **kwargs: Any) -> NDArray | list[NDArray]:
        """See :func:`split_v2`."""
        from ._rearranging import split_v2

        return split_v2(self, *args, **kwargs)

    def slice_assign(self, rhs: NDArray, begin: Sequence[int], end: Sequence[int], step: Sequence[int] = ()) -> NDArray:
        """Writes rhs into the slice [begin, end) with step, in place."""
        return _internal._slice_assign(self, rhs, begin=begin, end=end, step=step, out=self)

    def slice_assign_scalar(
        self, value: float, begin: Sequence[int], end: Sequence[int], step: Sequence[int] = ()
    ) -> NDArray:
        """Writes value into every element of the slice [begin, end) with step, in place."""
        return _internal._slice_assign_scalar(self, scalar=value, begin=begin, end=end, step=step, out=self)

    def _full(self, value: float) -> NDArray:
        """Writes value into every element."""
        return _indexing.fill(self, value)

    def _slice(self, start: int | None, stop: int | None) -> NDArray:
        return self[start:stop]

    def _at(self, idx: int) -> NDArray:
        return self[idx]

    def _sync_copyfrom(self, source: Any) -> None:
        """Copies NumPy values of the same shape, waiting for operations that still use this array."""
        values = np.ascontiguousarray(source, dtype=self.dtype)
        if values.shape != self.shape:
            raise HybridNetValueError("copy", expected=f"values of shape {self.shape}", given=str(np.shape(source)))
        _core.copy_from_numpy(self, values)

    # -------------------------------------------------------------------------------------------------------- autograd
    def attach_grad(self, grad_req: str = "write", stype: str | None = None) -> None:
        """Makes this array a leaf whose gradient backward() computes, in a zeroed buffer ``grad``.

        grad_req: 'write' replaces the buffer's values, 'add' adds to them, 'null' computes none.
        stype: storage of the buffer; 'row_sparse' limits memory and time to the rows that a gradient reaches.
        """
        grad = None
        if grad_req != "null" and stype in (None, "default"):
            grad = _internal_zeros_like(self)
        elif grad_req != "null":
            grad = _core.sparse_zeros(stype, self.shape, self.dtype)
        _core.mark_variable(self, grad, grad_req)

    def detach(self) -> NDArray:
        """Returns an array over the same memory that gradients do not pass through."""
        return _core.detached(self)

    def backward(self, out_grad: NDArray | None = None, retain_graph: bool = False, train_mode: bool = True) -> None:
        """Computes the gradients of this array with respect to the leaves it was computed from, into their ``grad``.

        out_grad: the gradient of this array, ones if None. retain_graph: keep the graph for a second call.
        """
        _core.backward([self], [out_grad], retain_graph, train_mode)

    def zero_grad(self) -> None:
        """Fills the gradient buffer with zeros."""
        grad = self.grad
        if grad is not None and grad.stype == "default":
            _indexing.fill(grad, 0)
        elif grad is not None:
            grad[:] = 0


def _other_dtype(array: NDArray) -> str:
    """The dtype for ``repr`` if it is not the default one: " int32"."""
    return "" if array.dtype == np.float32 else f" {dtype_name(array.dtype)}"


def _rebuild(buffer: bytes, context: str, cls: type) -> NDArray:
    """Rebuilds an array from its pickle."""
    loaded = _core.load_from_buffer(buffer, "pickled NDArray")[2][0]
    ctx = Context.from_str(context)
    if ctx.device_type == "gpu":
        loaded = loaded.as_in_context(ctx)
    return loaded if cls is NDArray else _core.retyped(loaded, cls)


def _internal_cast(data: NDArray, dtype: np.dtype) -> NDArray:
    return main_operator("Cast")(data, dtype=dtype_name(dtype))


def _internal_zeros_like(data: NDArray) -> NDArray:
    if data.context.device_type == "gpu":
        made = _indexing.fill(_core.empty(data.shape, data.dtype, *_device(data)), 0)
    else:
        made = _core.deferred_zeros(data)
    return _core.retyped(made, type(data)) if data.stype == "default" else made


def _device(data: NDArray) -> tuple[int, int]:
    ctx = data.context
    return ctx.device_typeid, ctx.device_id


def _matmul(left: Any, right: Any) -> Any:
    """Computes a @ b: vectors and matrices with dot, stacks of matrices with batch_dot."""
    if not isinstance(right, _core.NDArrayBase):
        return NotImplemented
    if left.ndim <= 2 and right.ndim <= 2:
        return main_operator("dot")(left, right)
    if left.ndim == 3 and right.ndim == 3:
        return main_operator("batch_dot")(left, right)
    if left.ndim == 3 and right.ndim == 2:
        return main_operator("dot")(left, right)
    raise HybridNetValueError(
        "@",
        expected="vectors, matrices or stacks of matrices",
        given=f"shapes {left.shape} and {right.shape}",
        fix="use nd.linalg.gemm2 or reshape",
    )


def _as_numpy(value: Any) -> Any:
    """Replaces arrays in value by NumPy arrays, also within lists, tuples and dicts."""
    if isinstance(value, NDArray):
        return _core.asnumpy(value)
    if isinstance(value, (list, tuple)):
        return type(value)(_as_numpy(item) for item in value)
    if isinstance(value, dict):
        return {key: _as_numpy(item) for key, item in value.items()}
    return value


add_fluent_methods(NDArray, "hybridnet.ndarray", symbolic=False)
add_habits(NDArray, "array", refused=("requires_grad", "device"))
_core.register_array_class(NDArray)

# MXNet also has these functions in this module.
__getattr__, __dir__ = names_from(
    __name__,
    {
        "_broadcasting": (
            "add divide equal greater greater_equal hypot lesser lesser_equal logical_and logical_or logical_xor "
            "maximum minimum modulo multiply not_equal pow power subtract true_divide"
        ),
        "_creation": (
            "arange array empty eye from_cupy from_dlpack from_numpy full linspace ones to_dlpack_for_read "
            "to_dlpack_for_write waitall zeros"
        ),
        "_rearranging": "concatenate histogram imdecode moveaxis onehot_encode split_v2",
    },
)
__dir__ = dir_of(__name__, __dir__)

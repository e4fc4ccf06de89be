"""ndarray: the array class of ``mx.np``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as onp

from .. import _core
from .._public_names import dir_of
from ..context import Context
from ..errors import TypeError as HybridNetTypeError
from ..errors import ValueError as HybridNetValueError
from ..ndarray import _indexing
from ..ndarray._dtypes import dtype_name, numpy_dtype
from ..ndarray.ndarray import NDArray
from ._operators import np_operator, public_operator, row_major

__all__ = ["ndarray"]


class _NumpyShapes:
    """Context manager that switches NumPy shape semantics on, for code that also serves arrays of ``mx.nd``."""

    def __enter__(self) -> None:
        self.before = _core.set_np_shape(True)

    def __exit__(self, *_: Any) -> None:
        _core.set_np_shape(self.before)


class ndarray(NDArray):
    """Dense tensor with NumPy's interface. Created by :func:`array`, :func:`zeros` and other functions of mx.np.

    Operands of different dtypes are converted to a common one, scalars have shape (), comparisons return bool. Slices
    of leading axes and reshapes share memory, and writing to them writes to this array. Operations return at once;
    reading values waits.
    """

    __slots__ = ()
    _has_numpy_interface = True

    # ---------------------------------------------------------------------------------- names of the Array API standard
    def __array_namespace__(self, api_version: str | None = None) -> Any:
        """Returns the module with the functions for arrays of this class."""
        import hybridnet.numpy

        return hybridnet.numpy

    @property
    def device(self) -> Context:
        """The device of the array: its context."""
        return self.context

    def to_device(self, device: Context | str, stream: Any = None) -> ndarray:
        """Returns the array on a device; itself if it is there already. There are no streams."""
        target = device if isinstance(device, Context) else Context.from_str(device)
        return self.as_in_ctx(target)  # type: ignore[return-value]  # has the class of self

    # ----------------------------------------------------------------------------------------------------- conversion
    def __repr__(self) -> str:
        values = _core.asnumpy(self)
        text = repr(values)
        if values.dtype == onp.float32:  # the default dtype is not printed
            text = text.replace(", dtype=float32", "")
        elif values.dtype == onp.float64:
            text = f"{text[:-1]}, dtype=float64)"
        context = self.context
        return text if context.device_type == "cpu" and context.device_id == 0 else f"{text[:-1]}, ctx={context})"

    def __str__(self) -> str:
        return str(_core.asnumpy(self))

    def __format__(self, spec: str) -> str:
        if self.ndim == 0:
            return format(self.item(), spec)
        if spec:
            raise HybridNetTypeError("format", expected="no format, for an array of several axes", given=repr(spec))
        return str(self)

    def item(self, *args: int) -> Any:
        """Waits and returns one element as a Python number."""
        return _core.asnumpy(self).item(*args)

    def asscalar(self) -> Any:
        """Not supported by arrays of mx.np: raises AttributeError naming item()."""
        from ..errors import AttributeError as HybridNetAttributeError

        raise HybridNetAttributeError("mx.np.ndarray has no asscalar()", fix="use item()")

    def __bool__(self) -> bool:
        if self.size == 1:
            return bool(self.item())
        if self.size == 0:
            return False
        raise HybridNetValueError(
            f"The truth value of an ndarray with multiple elements is ambiguous: its shape is {self.shape}",
            fix="use a.any() or a.all()",
        )

    def __int__(self) -> int:
        return int(self._only("int"))

    def __float__(self) -> float:
        return float(self._only("float"))

    def __complex__(self) -> complex:
        return complex(self._only("complex"))

    def __index__(self) -> int:
        if self.ndim or not onp.issubdtype(self.dtype, onp.integer):
            raise HybridNetTypeError(
                "only integer scalar arrays can be used as an index",
                given=f"shape {self.shape}, dtype {onp.dtype(self.dtype)}",
            )
        return int(self.item())

    def _only(self, kind: str) -> Any:
        if self.size != 1:
            raise HybridNetTypeError(
                f"{kind}()", expected="an array of one element", given=f"shape {self.shape}", fix="use tolist()"
            )
        return self.item()

    def __iter__(self) -> Any:
        if self.ndim == 0:
            raise HybridNetTypeError("iteration over a 0-d array")
        return (self[i] for i in range(self.shape[0]))

    # ------------------------------------------------------------------------------------------------------- indexing
    def __getitem__(self, key: Any) -> Any:
        if type(key) is int:
            shape = self.shape
            if shape and -shape[0] <= key < shape[0]:
                return _core.at(self, key + shape[0] if key < 0 else key)
        if type(key) is slice and (rows := _indexing.rows_of(self, key)) is not None:
            return rows
        if _core.is_np_shape():
            return _indexing.get_item(self, key)
        with _NumpyShapes():
            return _indexing.get_item(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        if type(key) is slice and _indexing.set_rows(self, key, value):
            return
        with _NumpyShapes():
            _indexing.set_item(self, key, value)

    def __matmul__(self, other: Any) -> Any:
        return np_operator("_npi_matmul")(self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return np_operator("_npi_matmul")(other, self)

    # ----------------------------------------------------------------------- operators in addition to C++'s arithmetic
    def __floordiv__(self, other: Any) -> Any:
        return _elementwise("floor_divide", self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return _elementwise("floor_divide", other, self)

    def __ifloordiv__(self, other: Any) -> Any:
        return _elementwise("floor_divide", self, other, out=self)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __and__(self, other: Any) -> Any:
        return _elementwise("bitwise_and", self, other)

    def __or__(self, other: Any) -> Any:
        return _elementwise("bitwise_or", self, other)

    def __xor__(self, other: Any) -> Any:
        return _elementwise("bitwise_xor", self, other)

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __iand__(self, other: Any) -> Any:
        return _elementwise("bitwise_and", self, other, out=self)

    def __ior__(self, other: Any) -> Any:
        return _elementwise("bitwise_or", self, other, out=self)

    def __ixor__(self, other: Any) -> Any:
        return _elementwise("bitwise_xor", self, other, out=self)

    def __lshift__(self, other: Any) -> Any:
        return _elementwise("left_shift", self, other)

    def __rlshift__(self, other: Any) -> Any:
        return _elementwise("left_shift", other, self)

    def __rshift__(self, other: Any) -> Any:
        return _elementwise("right_shift", self, other)

    def __rrshift__(self, other: Any) -> Any:
        return _elementwise("right_shift", other, self)

    def __invert__(self) -> Any:
        return np_operator("_npi_bitwise_not")(self)

    def __imatmul__(self, other: Any) -> Any:
        return np_operator("_npi_matmul")(self, other, out=self)

    def __round__(self, ndigits: int | None = None) -> Any:
        return self.round(ndigits or 0)

    def __floor__(self) -> Any:
        return np_operator("_npi_floor")(self)

    def __ceil__(self) -> Any:
        return np_operator("_npi_ceil")(self)

    def __trunc__(self) -> Any:
        return np_operator("_npi_trunc")(self)

    # ------------------------------------------------------------------------------------------------ NumPy's protocols
    def __array_ufunc__(self, ufunc: onp.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """onp.add(x, y) calls np.add(x, y); NumPy computes functions missing in mx.np, and returns mx.np arrays."""
        from .. import numpy as functions
        from ._fallback import as_numpy, from_numpy

        out = kwargs.pop("out", None)
        target = out[0] if isinstance(out, tuple) else out
        if target is not None and not isinstance(target, ndarray):
            return NotImplemented
        name = {"divide": "true_divide", "conjugate": "positive"}.get(ufunc.__name__, ufunc.__name__)
        function = getattr(functions, name, None) if method == "__call__" and not kwargs else None
        if function is not None and name not in _fallbacks():
            return function(*inputs) if target is None else function(*inputs, out=target)
        result = from_numpy(getattr(ufunc, method)(*as_numpy(inputs), **as_numpy(kwargs)))
        if target is None:
            return result
        target[...] = result
        return target

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """onp.concatenate([x, y]) calls np.concatenate([x, y]); NumPy computes functions that mx.np does not have."""
        from .. import numpy as functions
        from ._fallback import as_numpy, from_numpy

        function = getattr(functions, func.__name__, None) if func.__module__ == "numpy" else None
        if function is not None and func.__name__ not in _fallbacks():
            return function(*args, **kwargs)
        return from_numpy(func(*as_numpy(args), **as_numpy(kwargs)))

    # -------------------------------------------------------------------------------------------------- copy and move
    def as_nd_ndarray(self) -> NDArray:
        """Returns this array as an ``mx.nd.NDArray`` with the same memory and history."""
        return _core.retyped(self, NDArray)

    def as_np_ndarray(self) -> ndarray:
        """Returns this array itself."""
        return self

    def copy(self, order: str = "C") -> ndarray:
        """Returns a new array with the same values and device. Raises NotImplementedError unless order is "C"."""
        row_major("ndarray.copy", order)
        return np_operator("_np_copy")(self)

    def copyto(self, other: NDArray | Context) -> Any:
        """Copies into another array (any dtype, same shape), or to a device. Returns the target."""
        if isinstance(other, NDArray) and not isinstance(other, ndarray):
            raise HybridNetTypeError("copyto", expected="an mx.np.ndarray or a Context", given=type(other).__name__)
        return super().copyto(other)

    def astype(  # type: ignore[override]  # NumPy's arguments
        self, dtype: Any, order: str = "K", casting: str = "unsafe", subok: bool = True, copy: bool = True
    ) -> ndarray:
        """Returns a copy in another dtype; with copy=False this array itself if it has that dtype."""
        if order not in ("K", "C", "A") or casting != "unsafe" or not subok:
            raise HybridNetValueError(
                "astype",
                expected="order 'K', casting 'unsafe', subok True",
                given=f"{order!r}, {casting!r}, {subok}",
            )
        if not copy and numpy_dtype(dtype) == onp.dtype(self.dtype):
            return self
        return np_operator("_npi_cast")(self, dtype=dtype_name(dtype))

    # ----------------------------------------------------------------------------------------------------------- shape
    @property
    def T(self) -> ndarray:
        """The array with its axes in reverse order."""
        return self if self.ndim < 2 else self.transpose()

    @property
    def mT(self) -> ndarray:
        """The array with the last two axes exchanged. Raises ShapeError for fewer axes."""
        from ._array_standard import matrix_transpose

        return matrix_transpose(self)

    def reshape(self, *shape: Any, **kwargs: Any) -> ndarray:
        """Returns a view of another shape over the same memory; one size may be -1, which is inferred."""
        if kwargs:
            shape = _shape_given(shape, kwargs)
        if len(shape) == 1 and isinstance(shape[0], (tuple, list, NDArray)):
            shape = tuple(shape[0])
        return _core.reshaped(self, _completed(shape, self))

    def reshape_view(self, *shape: Any, **kwargs: Any) -> ndarray:
        """See :meth:`reshape`."""
        return self.reshape(*shape, **kwargs)

    def flatten(self, order: str = "C") -> ndarray:  # type: ignore[override]  # NumPy's arguments
        """Returns a copy as a vector."""
        return self.reshape(-1).copy()

    def expand_dims(self, axis: int, inplace: bool = False) -> ndarray:
        """Inserts an axis of size 1 at position axis."""
        return np_operator("_npi_expand_dims")(self, axis=axis)

    def squeeze(self, axis: int | Sequence[int] | None = None, inplace: bool = False) -> ndarray:
        """Removes the axes of size 1: all, or the given ones."""
        return np_operator("_np_squeeze")(self, axis=axis)

    def transpose(self, *axes: Any) -> ndarray:
        """Permutes the axes; reverses them if none is given."""
        if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], Sequence)):
            axes = axes[0]
        return np_operator("_np_transpose")(self, axes=axes or None)

    def swapaxes(self, axis1: int, axis2: int) -> ndarray:
        """Exchanges two axes."""
        return np_operator("_npi_swapaxes")(self, dim1=axis1, dim2=axis2)

    def broadcast_to(self, shape: Any) -> ndarray:
        """Repeats along axes of size 1 and new leading axes up to shape."""
        from ._rearranging import broadcast_to

        return broadcast_to(self, shape)

    # ------------------------------------------------------------------------------------- functions of the same name
    dot = public_operator("dot", "_np_dot", "out")
    sum = public_operator("sum", "_np_sum", "axis dtype out keepdims")
    prod = public_operator("prod", "_np_prod", "axis dtype out keepdims")
    mean = public_operator("mean", "_npi_mean", "axis dtype out keepdims")
    std = public_operator("std", "_npi_std", "axis dtype out ddof keepdims")
    var = public_operator("var", "_npi_var", "axis dtype out ddof keepdims")
    max = public_operator("max", "_np_max", "axis out keepdims")
    min = public_operator("min", "_np_min", "axis out keepdims")
    argmax = public_operator("argmax", "_npi_argmax", "axis out")
    argmin = public_operator("argmin", "_npi_argmin", "axis out")
    round = public_operator("round", "_npi_around", "decimals out")

    def clip(self, min: Any = None, max: Any = None, out: Any = None) -> ndarray:
        """See :func:`clip`."""
        from ._elementwise import clip

        return clip(self, min, max, out=out)

    # -------------------------------------------------------------------------------------------------------- autograd
    def attach_grad(self, grad_req: str = "write", stype: str | None = None) -> None:
        """Makes this array a leaf whose gradient backward() computes, in a zeroed buffer ``grad``."""
        super().attach_grad(grad_req)


def _elementwise(name: str, left: Any, right: Any, **out: Any) -> Any:
    from .. import numpy as functions

    if not isinstance(left, _OPERANDS) or not isinstance(right, _OPERANDS):
        return NotImplemented
    return getattr(functions, name)(left, right, **out)


_OPERANDS = (_core.NDArrayBase, _core.SymbolBase, int, float, onp.generic, onp.ndarray)


def _fallbacks() -> list[str]:
    from ._fallback import FALLBACKS

    return FALLBACKS


def _shape_given(shape: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    order = kwargs.pop("order", "C")
    for name in ("newshape", "shape"):
        if name in kwargs and not shape:
            shape = (kwargs.pop(name),)
    if kwargs or order != "C":
        given = ", ".join([*kwargs, f"order={order!r}"])
        raise HybridNetTypeError("reshape", expected="a shape and order='C'", given=given)
    return shape


def _completed(shape: tuple[Any, ...], data: ndarray) -> tuple[int, ...]:
    """Replaces a size of -1 in shape; the operator reports sizes that do not match."""
    known, size = 1, data.size
    for given in shape:
        if given < 0:
            break
        known *= given
    else:
        if known == size:
            return shape
    sizes = tuple(int(given) for given in shape)
    known = math.prod(given for given in sizes if given != -1)
    if sizes.count(-1) != 1 or known <= 0 or size % known or min(sizes) < -1:
        return np_operator("_np_reshape")(data, newshape=sizes).shape
    return tuple(size // known if given == -1 else given for given in sizes)


# --------------------------------------------------------------------------------------- functions that are methods too
def _method(name: str) -> Any:
    """Returns the mx.np function of this name as a method."""

    def method(self: ndarray, *args: Any, **kwargs: Any) -> Any:
        from .. import numpy

        return getattr(numpy, name)(self, *args, **kwargs)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"See :func:`{name}`."
    return method


def _sort(self: ndarray, axis: int = -1, kind: str | None = None, order: Any = None) -> None:
    """Sorts in place along an axis."""
    from ._searching import sort

    self[...] = sort(self, axis, kind, order)


for _name in (
    "all", "any", "argsort", "compress", "cumprod", "cumsum", "diagonal", "nonzero", "ptp", "ravel", "repeat",
    "searchsorted", "take", "tile",
):  # fmt: skip
    setattr(ndarray, _name, _method(_name))
setattr(ndarray, "sort", _sort)  # noqa: B010  # in addition to the table
del _name

_core.register_array_class(ndarray, numpy=True)

__dir__ = dir_of(__name__)

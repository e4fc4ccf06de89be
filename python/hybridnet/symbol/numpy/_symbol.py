"""The class of Symbols with NumPy's interface."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as onp

from ... import _core
from ...numpy._operators import np_operator
from ..symbol import Symbol

__all__ = ["_Symbol"]


class _Symbol(Symbol):
    """Outputs of graph nodes whose arithmetic and methods follow NumPy's rules."""

    __slots__ = ()
    _has_numpy_interface = True

    @staticmethod
    def _array_class() -> type:
        from ...numpy.multiarray import ndarray

        return ndarray

    def as_np_ndarray(self) -> _Symbol:
        """Returns this Symbol itself."""
        return self

    @property
    def dtype(self) -> Any:
        """The numpy.dtype of a traced array."""
        return onp.dtype(super().dtype)

    def as_nd_ndarray(self) -> Symbol:
        """Returns the same outputs as a Symbol of ``mx.sym``."""
        return _core.symbol_of_class(self, False)

    def __getitem__(self, key: Any) -> Any:
        before = _core.set_np_shape(True)
        try:
            made = super().__getitem__(key)
            return made if isinstance(made, _Symbol) else made.as_np_ndarray()  # take uses mx.nd for its indices
        finally:
            _core.set_np_shape(before)

    def __setitem__(self, key: Any, value: Any) -> None:
        before = _core.set_np_shape(True)
        try:
            super().__setitem__(key, value)
        finally:
            _core.set_np_shape(before)

    def __matmul__(self, other: Any) -> Any:
        return np_operator("_npi_matmul")(self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return np_operator("_npi_matmul")(other, self)

    def astype(  # type: ignore[override]  # NumPy's arguments
        self, dtype: Any, order: str = "K", casting: str = "unsafe", subok: bool = True, copy: bool = True
    ) -> Any:
        """Converts the values to another dtype; with copy=False returns a traced array of that dtype itself."""
        from ...ndarray._dtypes import dtype_name, numpy_dtype

        if not copy and self._is_traced_array and onp.dtype(self.dtype) == numpy_dtype(dtype):
            return self

        return np_operator("_npi_cast")(self, dtype=dtype_name(dtype))

    def reshape(self, *shape: Any, **kwargs: Any) -> Any:
        """Reshapes; one size may be -1, which is inferred. For a traced array: a view that shares writes."""
        if "newshape" in kwargs or "shape" in kwargs:
            shape = (kwargs.get("newshape") or kwargs.get("shape"),)
        if len(shape) == 1 and isinstance(shape[0], Sequence):
            shape = tuple(shape[0])
        return _core.traced_view(np_operator("_np_reshape")(self, newshape=shape), self)

    def transpose(self, *axes: Any) -> Any:
        """Permutes the axes; reverses them if none is given."""
        if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], Sequence)):
            axes = axes[0]
        return np_operator("_np_transpose")(self, axes=axes or None)

    def flatten(self, order: str = "C") -> Any:  # NumPy's arguments
        """Returns the elements as a vector, copied."""
        return np_operator("_np_reshape")(self, newshape=(-1,))

    def clip(self, min: Any = None, max: Any = None, out: Any = None) -> Any:
        """See :func:`mx.np.clip`."""
        from ... import numpy

        return numpy.clip(self, min, max, out=out)

    def sort(self, axis: int = -1, kind: str | None = None, order: Any = None) -> Any:
        """Sorts a traced array in place along an axis; for a Symbol outside of traces, returns the sorted values."""
        from ... import numpy

        made = numpy.sort(self, axis, kind, order)
        if not self._is_traced_array:
            return made
        _core.traced_write(self, made)
        return None

    @property
    def T(self) -> Any:
        """The Symbol with its axes in reverse order; a traced vector stays as it is."""
        return self if self._is_traced_array and self.ndim < 2 else self.transpose()


def _method(name: str) -> Any:
    """Returns the mx.np function of this name as a method."""

    def method(self: _Symbol, *args: Any, **kwargs: Any) -> Any:
        from ... import numpy

        return getattr(numpy, name)(self, *args, **kwargs)

    method.__name__ = name
    method.__doc__ = f"See :func:`mx.np.{name}`."
    return method


for _name in (
    "all", "any", "argmax", "argmin", "argsort", "broadcast_to", "copy", "cumsum", "diagonal", "dot", "expand_dims",
    "max", "mean", "min", "prod", "ravel", "repeat", "round", "squeeze", "std", "sum", "swapaxes", "take",
    "tile", "var",
):  # fmt: skip
    setattr(_Symbol, _name, _method(_name))
del _name


def _operator_method(name: str, *, reverse: bool = False) -> Any:
    """Returns the mx.np function of this name as a Python operator."""

    def method(self: _Symbol, *other: Any) -> Any:
        from ... import numpy

        return getattr(numpy, name)(*other, self) if reverse else getattr(numpy, name)(self, *other)

    return method


def _in_place_method(name: str) -> Any:
    def method(self: _Symbol, other: Any) -> Any:
        from ... import numpy

        return _core.traced_write(self, getattr(numpy, name)(self, other), True)

    return method


def _matmul_in_place(self: _Symbol, other: Any) -> Any:
    return _core.traced_write(self, np_operator("_npi_matmul")(self, other), True)


for _dunder, _name in (
    ("and", "bitwise_and"),
    ("or", "bitwise_or"),
    ("xor", "bitwise_xor"),
    ("floordiv", "floor_divide"),
):
    setattr(_Symbol, f"__{_dunder}__", _operator_method(_name))
    setattr(_Symbol, f"__r{_dunder}__", _operator_method(_name, reverse=True))
    setattr(_Symbol, f"__i{_dunder}__", _in_place_method(_name))
setattr(_Symbol, "__imatmul__", _matmul_in_place)  # noqa: B010
setattr(_Symbol, "__invert__", _operator_method("bitwise_not"))  # noqa: B010
del _dunder, _name

_core.register_symbol_class(_Symbol, numpy=True)

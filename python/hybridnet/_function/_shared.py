"""Variables of graphs that hold a value: what functions read and update without being given it."""

from __future__ import annotations

from typing import Any

from .. import _core, errors, ndarray
from ..name import name_for
from ..ndarray import NDArray
from ..symbol import Symbol
from ..util import is_np_shape

__all__ = ["SharedVariable", "shared"]


class SharedVariable(Symbol):
    """A variable of graphs with a value, which all functions see that read it. Made by mx.shared().

    Operators and arithmetic take it as any Symbol. Its value keeps its shape and dtype.
    """

    __slots__ = ("_value",)
    _value: NDArray

    @property
    def value(self) -> NDArray:
        """The array itself: what is written into it is seen by all functions. attach_grad() makes gradients arrive."""
        return self._value

    def get_value(self) -> NDArray:
        """A copy of the value, which later updates do not change."""
        return self._value.copy()

    def set_value(self, value: Any) -> None:
        """Writes a value: an array, a number, or nested lists. Raises ShapeError and DTypeError if it does not fit."""
        given = _as_array(value, self._value)
        if given.shape != self._value.shape:
            raise errors.ShapeError(
                f"shared variable {self.name!r}",
                expected=f"a value of shape {self._value.shape}",
                given=f"one of shape {given.shape}",
                fix="make another shared variable, and a function that reads it (f.copy(swap={old: new}) if only the "
                "value differs)",
                input=self.name,
            )
        if given.dtype != self._value.dtype:
            raise errors.DTypeError(
                f"shared variable {self.name!r}",
                expected=f"elements of type {_name(self._value.dtype)}",
                given=_name(given.dtype),
                fix=f"convert the value: value.astype({_name(self._value.dtype)!r})",
                input=self.name,
            )
        given.copyto(self._value)

    def __repr__(self) -> str:
        return f"<SharedVariable {self.name} {self._value.shape} {_name(self._value.dtype)}>"


def _name(dtype: Any) -> str:
    return str(getattr(dtype, "__name__", dtype))


def _as_array(value: Any, like: NDArray) -> NDArray:
    if isinstance(value, NDArray):
        return value
    return ndarray.array(value, ctx=like.context, dtype=like.dtype)


def shared(value: Any, name: str | None = None, dtype: Any = None, ctx: Any = None) -> SharedVariable:
    """A variable of graphs that holds a value: functions that read it need not be given it, and can update it.

    Parameters
    ----------
    value : NDArray, NumPy array, number or nested lists
        Copied. Shape and dtype stay those of this value; a number has shape (1,), or () under mx.np_shape().
    name : str, optional
        For messages; made up if left out.
    dtype, ctx
        As for mx.nd.array, which makes the array.

    Returns a SharedVariable::

        count = mx.shared(0.0, name="count")
        tick = mx.function([], count, updates={count: count + 1})
    """
    if isinstance(value, Symbol):
        raise errors.TypeError(
            "mx.shared: value",
            expected="an array",
            given=f"the Symbol {value.name!r}, which has no value",
            fix="pass an array",
            input="value",
        )
    if isinstance(value, NDArray):
        array = value.copy().detach() if ctx is None else value.copyto(ctx).detach()
        if dtype is not None:
            array = array.astype(dtype)
    else:
        array = ndarray.array(value, ctx=ctx, dtype=dtype)
    if array.shape == () and not is_np_shape():
        array = array.reshape((1,))  # graphs take () for an unknown shape there
    variable: SharedVariable = _core.shared_variable(SharedVariable, array, name_for(name, "shared"))
    variable._value = array
    return variable

"""TracedNumber: a Python number that the graph computes, such as a counter that a loop carries."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _core, symbol
from .._tracing import is_own_file
from ..base import no_values
from ..symbol import Symbol
from ..util import is_np_array, is_np_shape

__all__ = [
    "as_truth",
    "classic",
    "TracedNumber",
    "as_number",
    "dtype_of_kind",
    "fits_dtype",
    "is_number",
    "kind_of",
    "literal",
    "number_shape",
    "wider_kind",
]

_DTYPES: dict[Any, str] = {bool: "bool", int: "int64", float: "float64"}


def is_number(value: Any) -> bool:
    """Whether value is a number of Python or NumPy."""
    return isinstance(value, (bool, int, float, np.number, np.bool_)) and type(value) is not TracedNumber


def kind_of(value: Any) -> Any:
    """Returns bool, int or float, or the dtype of a NumPy number."""
    if type(value) is TracedNumber:
        return value._kind
    if isinstance(value, np.bool_):
        return bool
    if isinstance(value, np.generic) and not isinstance(value, float):
        return value.dtype
    return next(kind for kind in (bool, int, float) if isinstance(value, kind))


def dtype_of_kind(kind: Any) -> str:
    """Returns the name of the dtype in which a graph computes numbers of this kind."""
    return _DTYPES[kind] if isinstance(kind, type) else np.dtype(kind).name


def _sample(kind: Any) -> Any:
    """Returns the number 1 of this kind."""
    return kind(1) if isinstance(kind, type) else np.dtype(kind).type(1)


def wider_kind(one: Any, other: Any) -> Any:
    """Returns the kind that holds numbers of both kinds: a number that is either 1 or 0.5 is a float."""
    return (
        one
        if one == other
        else kind_of(_sample(one) + _sample(other))
        if bool not in (one, other)
        else (other if one is bool else one)
    )


def fits_dtype(number: Any, dtype: Any) -> bool:
    """Whether arrays of a dtype hold numbers of this kind without loss: floats need a floating dtype."""
    kind, dtype = kind_of(number), np.dtype(dtype)
    if kind is bool or dtype.kind not in "biu":
        return True
    return dtype.kind in "iu" and np.dtype(dtype_of_kind(kind)).kind in "iu"


def classic(value: Any) -> Any:
    """Returns an array with MXNet's classic interface."""
    return value.as_nd_ndarray() if getattr(value, "_has_numpy_interface", False) else value


def as_truth(value: Any) -> TracedNumber:
    """Returns the truth of a traced number, or of an array of one element."""
    if type(value) is TracedNumber:
        return TracedNumber(value.cast(bool), bool)
    return TracedNumber(symbol.reshape(classic(value) != 0, shape=number_shape()), bool)


def number_shape() -> tuple[int, ...]:
    """Returns the shape of the array of one number: (1,), or () with NumPy's shapes."""
    return () if is_np_shape() else (1,)


def literal(value: Any, dtype: str, shape: tuple[int, ...] | None = None) -> Symbol:
    """Returns a number as an array of the graph."""
    made = symbol.full(number_shape() if shape is None else shape, value, dtype=dtype)
    return made.as_np_ndarray() if is_np_array() else made


def _method(name: str, swapped: bool = False) -> Callable[[Any, Any], Any]:
    """Returns a method for a binary operator."""

    def method(self: TracedNumber, other: Any) -> Any:
        return self._binary(name, other, swapped)

    return method


class TracedNumber:
    """A number of Python or NumPy whose value is known when the graph runs.

    Arithmetic follows Python: int / int is a float, and a number takes the dtype of the array that it is combined with.
    Integers have 64 bits. Division by zero gives an infinity or, for integers, 0, instead of ZeroDivisionError.
    """

    __slots__ = ("_kind", "_value")
    __array_priority__ = 2000.0
    __array_ufunc__ = None

    def __init__(self, value: Symbol, kind: Any) -> None:
        dtype = dtype_of_kind(kind)
        specs = _core.symbol_specs(value)
        if kind is bool:
            value = symbol.cast(classic(value), dtype="bool")
        elif specs is None or specs[0][1] is None or np.dtype(specs[0][1]).name != dtype:
            value = symbol.cast(classic(value), dtype=dtype)
        self._value, self._kind = classic(value), kind

    @property
    def array(self) -> Symbol:
        """The number as an array of shape (1,), or () with NumPy's shapes."""
        return self._value.as_np_ndarray() if is_np_array() else self._value

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """The class for ``isinstance``: that of the number."""
        cls = type(self)
        if is_own_file(sys._getframe(1).f_code.co_filename):
            return cls
        return self._kind if isinstance(self._kind, type) else np.dtype(self._kind).type

    def __repr__(self) -> str:
        return f"<TracedNumber {dtype_of_kind(self._kind)}>"

    def cast(self, kind: Any) -> Symbol:
        """Returns the value as an array of the dtype of another kind."""
        return symbol.cast(self._value, dtype=dtype_of_kind(kind))

    # -- arithmetic -------------------------------------------------------------------------------------------------

    def _binary(self, name: str, other: Any, swapped: bool) -> Any:
        function = getattr(operator, name)
        if isinstance(other, Symbol):
            return _with_array(function, self, other, swapped)
        if not (type(other) is TracedNumber or is_number(other)):
            return NotImplemented
        exponent = self if swapped else other
        if name == "pow" and type(exponent) is TracedNumber and self._kind is int and kind_of(other) is int:
            return self._refuse("A power with an integer exponent", "write 2.0 ** n, which is a float for any exponent")
        one, two = _sample(self._kind), _sample(kind_of(other))
        kind = kind_of(function(two, one) if swapped else function(one, two))
        inner = wider_kind(self._kind, kind_of(other)) if kind is bool else kind
        if inner is bool and name not in ("and_", "or_", "xor"):
            inner = int
        left, right = (
            self.cast(inner),
            other.cast(inner) if type(other) is TracedNumber else literal(other, dtype_of_kind(inner)),
        )
        left, right = classic(left), classic(right)
        if name in ("and_", "or_", "xor"):
            bitwise = getattr(symbol.np, {"and_": "bitwise_and", "or_": "bitwise_or", "xor": "bitwise_xor"}[name])
            made = classic(bitwise(left.as_np_ndarray(), right.as_np_ndarray()))
        else:
            made = function(right, left) if swapped else function(left, right)
        return TracedNumber(made, kind)

    def _unary(self, function: Callable[[Any], Any]) -> TracedNumber:
        kind = kind_of(function(_sample(self._kind)))
        return TracedNumber(function(self.cast(kind)), kind)

    __add__, __radd__ = _method("add"), _method("add", True)
    __sub__, __rsub__ = _method("sub"), _method("sub", True)
    __mul__, __rmul__ = _method("mul"), _method("mul", True)
    __truediv__, __rtruediv__ = _method("truediv"), _method("truediv", True)
    __floordiv__, __rfloordiv__ = _method("floordiv"), _method("floordiv", True)
    __mod__, __rmod__ = _method("mod"), _method("mod", True)
    __pow__, __rpow__ = _method("pow"), _method("pow", True)
    __and__, __rand__ = _method("and_"), _method("and_", True)
    __or__, __ror__ = _method("or_"), _method("or_", True)
    __xor__, __rxor__ = _method("xor"), _method("xor", True)
    __eq__ = _method("eq")
    __ne__ = _method("ne")
    __lt__ = _method("lt")
    __le__ = _method("le")
    __gt__ = _method("gt")
    __ge__ = _method("ge")

    def __neg__(self) -> Any:
        return self._unary(operator.neg)

    def __pos__(self) -> Any:
        return self._unary(operator.pos) if self._kind is not bool else TracedNumber(self.cast(int), int)

    def __abs__(self) -> Any:
        return self._unary(abs)

    __hash__ = None  # type: ignore[assignment]

    # -- refused ----------------------------------------------------------------------------------------------------

    def _refuse(self, asked: str, fix: str) -> Any:
        raise no_values(self._value, asked, fix)

    def __bool__(self) -> bool:
        return bool(self._refuse("The truth value", "branch in a function whose source is available"))

    def __int__(self) -> int:
        return int(self._refuse("int()", "compute with the number itself"))

    def __float__(self) -> float:
        return float(self._refuse("float()", "compute with the number itself"))

    def __index__(self) -> int:
        return int(self._refuse("Using the value as a position or size", "index an array with it, or use take"))

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __round__(self, digits: Any = None) -> Any:
        return self._refuse("round()", "round the array before, with mx.nd.round")

    def __floor__(self) -> Any:
        return self._refuse("floor()", "compute with self // 1")

    def __ceil__(self) -> Any:
        return self._refuse("ceil()", "compute with -(-self // 1)")

    def __lshift__(self, other: Any) -> Any:
        return self._refuse("<<", "multiply by a power of 2")

    def __rshift__(self, other: Any) -> Any:
        return self._refuse(">>", "divide by a power of 2 with //")

    def __invert__(self) -> Any:
        return self._refuse("~", "compute with -self - 1")

    def __trunc__(self) -> int:
        return int(self._refuse("int()", "compute with the number itself"))

    def __format__(self, spec: str) -> str:
        return str(self._refuse(f"Formatting as {spec!r}", "print it after the call")) if spec else repr(self)

    def item(self) -> TracedNumber:
        """Returns the number, as numbers of NumPy do."""
        return self


def _with_array(function: Callable[[Any, Any], Any], number: TracedNumber, array: Symbol, swapped: bool) -> Symbol:
    """Combines a number with an array. The dtype is that of the same operation with a number of Python."""
    example = _sample(number._kind)
    example = example.item() if isinstance(example, np.generic) else example
    probe = function(array, example) if swapped else function(example, array)
    # The dtype in which the operator computes: comparisons return a dtype of their own.
    inner = array + example
    specs = _core.symbol_specs(inner)
    dtype = np.dtype(specs[0][1]).name
    value = symbol.cast(number._value, dtype=dtype)
    value = rule_of(array, value)
    array = array if np.dtype(array.dtype).name == dtype else array.astype(dtype)
    made = function(array, value) if swapped else function(value, array)
    wanted = np.dtype(_core.symbol_specs(probe)[0][1]).name
    return made if np.dtype(made.dtype).name == wanted else made.astype(wanted)


def rule_of(like: Any, value: Any) -> Any:
    """Returns value with the interface of like."""
    if getattr(like, "_has_numpy_interface", False):
        return value.as_np_ndarray()
    return classic(value)


def as_number(value: Any) -> Any:
    """Returns a traced array of one element as a number of its dtype; floats of 64 bits become Python's."""
    dtype = np.dtype(value.dtype)
    kind = {"bool": bool, "int64": int, "float64": float}.get(dtype.name, dtype)
    # A number of Python has no gradient.
    flat = symbol.BlockGrad(symbol.reshape(classic(value), shape=number_shape()))
    return TracedNumber(flat, kind)

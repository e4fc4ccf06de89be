"""Operators as functions of ``mx.np``, and their calls with numbers, lists and NumPy arrays."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, update_wrapper
from typing import Any, TypeVar

import numpy as onp

from .. import _core
from ..errors import TypeError as HybridNetTypeError
from ..errors import UnsupportedError
from ..ndarray._dtypes import numpy_dtype

__all__ = ["binary", "direct", "is_number", "np_operator", "public_operator", "row_major", "unary"]

_Function = TypeVar("_Function", bound=Callable[..., Any])

# Keywords of NumPy's universal functions, with the values that have no effect.
_NEUTRAL_KEYWORDS = {"where": True, "casting": "same_kind", "order": "K", "dtype": None, "subok": True}
_CASTINGS = ("no", "equiv", "safe", "same_kind", "unsafe")


@cache
def np_operator(name: str) -> Any:
    """Returns the operator's function object, whose results are arrays of ``mx.np``, for use inside this package."""
    hint = name.split("_", 2)[2] if name.startswith(("_np_", "_npi_", "_npx_")) else name
    return _core.op_function(name, hint, "hybridnet.numpy", numpy=True)


def public_operator(name: str, operator: str, order: str = "", module: str = "hybridnet.numpy") -> Any:
    """Returns an operator as the public function `name` of a module.

    order: names of the parameters after the inputs, and "out", in the order of positional arguments; empty: the order
    that the operator declares. If given, an operator with any number of inputs takes them as one sequence.
    """
    return _core.op_function(operator, name, module, numpy=True, order=order.split())


def unary(name: str, operator: str) -> Any:
    """Returns the public function of a unary operator: ``name(x, out=None)``."""
    return public_operator(name, operator, "out")


def binary(name: str, operator: str, reverse: str | None = None) -> Any:
    """Returns the public function of a binary operator that has forms for a number on either side."""
    scalar = f"{operator}_scalar"
    return _core.binary_function(name, "hybridnet.numpy", operator, scalar, reverse or scalar)


def direct(
    operator: str,
    names: str = "",
    inputs: int = 1,
    needed: int = 0,
    renamed: dict[str, str] | None = None,
    as_tuple: bool = False,
    **defaults: Any,
) -> Callable[[_Function], _Function]:
    """Makes calls of a function with `inputs` positional arrays go to the operator directly.

    names: of the parameters after the arrays, in the function's order; calls with other parameters, or that the
    operator refuses, run the function. needed: how many of them must be given, because the operator has another
    default. renamed: the operator's names of parameters with another name in the function. as_tuple: outputs are
    returned in a tuple. defaults: the function's defaults that differ from the operator's.
    """

    def decorate(function: _Function) -> _Function:
        keys = names.split()
        op = _core.op_function(
            operator,
            function.__name__,
            "hybridnet.numpy",
            numpy=True,
            order=keys,
            fixed=defaults,
            renamed=renamed or {},
        )
        made: Any = _core.direct_function(function, op, inputs, tuple(keys), needed, as_tuple)
        update_wrapper(made, function)
        return made

    return decorate


def row_major(function: str, order: str) -> None:
    """Raises NotImplementedError for memory orders other than row-major."""
    if order not in ("C", "K", "A"):
        raise UnsupportedError(f"{function}(order={order!r})", because="arrays are row-major", fix="use order='C'")


def is_number(value: Any) -> bool:
    """True for Python and NumPy numbers."""
    return isinstance(value, (int, float, onp.generic))


def _converted(value: Any) -> Any:
    from ._creation import array

    if isinstance(value, onp.ndarray):
        return array(value, dtype=value.dtype)
    if isinstance(value, (list, tuple)):
        return array(value)
    return value


def _answer(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Passes calls with numbers alone to NumPy; converts NumPy arrays and lists to arrays. Drops neutral keywords."""
    if isinstance(function, _core.OpFunction) and _core.describe_op(function.op_name)["variadic"]:
        return _answer_sequence(function, args, kwargs)
    given = len(kwargs)
    kwargs = {k: v for k, v in kwargs.items() if k not in _NEUTRAL_KEYWORDS or not _is_neutral(k, v, function)}
    operands = [*args, *kwargs.values()]
    if args and all(is_number(value) for value in args) and not kwargs:
        return getattr(onp, function.__name__)(*args)
    converted = [_converted(value) for value in args]
    named = {key: _converted(value) for key, value in kwargs.items()}
    if isinstance(function, _core.OpFunction):  # its inputs cannot be numbers
        inputs = len(_core.describe_op(function.op_name)["inputs"])
        converted[:inputs] = [_scalar_array(value) for value in converted[:inputs]]
    changed = len(kwargs) < given or any(
        new is not old for new, old in zip([*converted, *named.values()], operands, strict=True)
    )
    if not changed or not any(isinstance(v, (_core.NDArrayBase, _core.SymbolBase)) for v in converted):
        raise _wrong_call(function, args, kwargs)
    return function(*converted, **named)


def _answer_sequence(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Converts a sequence of arrays in another form: an array's rows, a generator, or lists and NumPy arrays in it."""
    if not args:
        raise _wrong_call(function, args, kwargs)
    parts = [_scalar_array(_converted(part)) for part in args[0]]
    if not parts or not all(isinstance(part, (_core.NDArrayBase, _core.SymbolBase)) for part in parts):
        raise _wrong_call(function, args, kwargs)
    return function(parts, *args[1:], **kwargs)


def _scalar_array(value: Any) -> Any:
    from ._creation import array

    return (
        array(value, dtype=None if isinstance(value, float) else onp.asarray(value).dtype)
        if is_number(value)
        else value
    )


def _is_neutral(key: str, value: Any, function: Any) -> bool:
    if value is _NEUTRAL_KEYWORDS[key] or (isinstance(value, str) and value == _NEUTRAL_KEYWORDS[key]):
        return True
    if key == "dtype":
        numpy_dtype(value)  # raises TypeError if it is not a dtype
    if key == "casting" and value not in _CASTINGS:
        raise HybridNetTypeError(
            f"{function.__name__}: casting", expected=f"one of {', '.join(_CASTINGS)}", given=repr(value)
        )
    raise UnsupportedError(
        f"{function.__name__}({key}={value!r:.40})",
        because="the functions of mx.np compute all elements, in the dtype that promotion gives",
        fix="use np.where(...) or astype(...)",
    )


def _wrong_call(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> HybridNetTypeError:
    given = ", ".join([type(v).__name__ for v in args] + [f"{k}={type(v).__name__}" for k, v in kwargs.items()])
    return HybridNetTypeError(
        f"{function.__name__}()",
        expected="arrays of mx.np, numbers, lists or NumPy arrays, and out=array",
        given=f"({given})",
    )


_core.set_numpy_fallback(_answer)

"""Operators as functions of ``mx.np``, and what calls with numbers, lists and NumPy arrays mean."""

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

# Keywords of NumPy's universal functions and the values that change nothing.
_NEUTRAL_KEYWORDS = {"where": True, "casting": "same_kind", "order": "K", "dtype": None, "subok": True}
_CASTINGS = ("no", "equiv", "safe", "same_kind", "unsafe")


@cache
def np_operator(name: str) -> Any:
    """The operator's function object, whose results are arrays of ``mx.np``: for use inside this package."""
    hint = name.split("_", 2)[2] if name.startswith(("_np_", "_npi_", "_npx_")) else name
    return _core.op_function(name, hint, "hybridnet.numpy", numpy=True)


def public_operator(name: str, operator: str, order: str = "", module: str = "hybridnet.numpy") -> Any:
    """An operator as the public function `name` of a module.

    order: names of the parameters behind the inputs, and "out", in the order of calls by position; as the operator
    declares them if empty. With it, an operator of any number of inputs takes them as one sequence.
    """
    return _core.op_function(operator, name, module, numpy=True, order=order.split())


def unary(name: str, operator: str) -> Any:
    """The public function of an operator of one array: ``name(x, out=None)``."""
    return public_operator(name, operator, "out")


def binary(name: str, operator: str, reverse: str | None = None) -> Any:
    """The public function of an operator of two arrays that has forms for a number on either side."""
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
    """Makes a function the operator itself where it is called with `inputs` arrays by position.

    names: of the parameters behind them, in the function's order; calls that give others, or that the operator
    refuses, run the function. needed: how many of them have to be given, because the operator has another default.
    renamed: the operator's names of parameters that the function calls otherwise. as_tuple: outputs come in a tuple.
    defaults: of the function, where the operator has others.
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
    """Raises NotImplementedError for memory orders that are not the one that arrays have."""
    if order not in ("C", "K", "A"):
        raise UnsupportedError(f"{function}(order={order!r})", because="arrays are row-major", fix="use order='C'")


def is_number(value: Any) -> bool:
    """True for Python's and NumPy's numbers."""
    return isinstance(value, (int, float, onp.generic))


def _converted(value: Any) -> Any:
    from ._creation import array

    if isinstance(value, onp.ndarray):
        return array(value, dtype=value.dtype)
    if isinstance(value, (list, tuple)):
        return array(value)
    return value


def _answer(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Calls of numbers alone are NumPy's; NumPy arrays and lists become arrays. Neutral keywords are dropped."""
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
    """A sequence of arrays in another form: an array's rows, a generator, or with lists and NumPy arrays in it."""
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
        numpy_dtype(value)  # raises TypeError for what is none
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

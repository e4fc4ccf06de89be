"""Checks and prints that run with the graph, in the order of the program.

The trace has one small array, the last effect. Each effect writes to it, so branches and loops carry it like any other
array from outside that they write to.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core, _tracing
from ..errors import ValueError as HybridNetValueError
from ..ndarray import NDArray
from ..symbol import Symbol
from ._numbers import TracedNumber, literal
from ._structure import is_traced

__all__ = ["check", "debug_print"]


def _last_effect(asked: str, value: Any) -> Symbol:
    """Returns the array of the running trace to which effects are written."""
    scope = _tracing.current()
    effect = None if scope is None else scope.effects
    if effect is None:
        from ..base import no_values

        raise no_values(value, asked, "call it in forward of a block that is hybridized with autograph=True")
    return effect


def _array(value: Any) -> Any:
    if type(value) is TracedNumber:
        return value.cast(value._kind)
    return _core.traced_constant(value) if isinstance(value, NDArray) else value


def check(test: Any, message: Any = None) -> None:
    """Checks a condition, in imperative mode at once and in a graph when it runs.

    Parameters
    ----------
    test : array, number or bool
        Fails if it is false, or if an element is zero.
    message : str, optional
        Text of the error.

    Raises ValueError. In a graph it is raised, with the line of this call, at the first read of a result.
    """
    if not is_traced(test):
        array = test.asnumpy() if isinstance(test, NDArray) else np.asarray(test)
        if not array.all():
            raise HybridNetValueError(str(message or "a check of the program failed"))
        return
    array = _array(test)
    effect = _last_effect("mx.check", array)
    text = "" if message is None else str(message)
    made = _core.make_effect("_check", [_core.traced_value(effect), _core.traced_value(array)], message=text)
    _core.traced_write(effect, made, False, True)


def debug_print(*values: Any, sep: str = " ") -> None:
    """Prints values, in imperative mode at once and in a graph each time it runs, in the order of the program.

    Parameters
    ----------
    values : arrays and other objects
        Arrays are printed as nested brackets with 8 digits, at most 1,000 elements; other objects by str() when the
        graph is made.
    sep : str, default ' '

    Graphs, also exported ones in C++ and Java programs, print to the standard output of the process.
    """
    arrays = [value for value in values if isinstance(value, (NDArray, Symbol)) or type(value) is TracedNumber]
    scope = _tracing.current()
    if scope is None or scope.effects is None:
        if any(is_traced(value) for value in arrays):
            _last_effect("mx.debug.print", _array(next(value for value in arrays if is_traced(value))))
        print(*[_text(value) for value in values], sep=sep)
        return
    text = sep.join(_placeholder(value) if any(value is a for a in arrays) else _plain(value) for value in values)
    effect = scope.effects
    inputs = [_core.traced_value(effect), *[_core.traced_value(_array(value)) for value in arrays]]
    made = _core.make_effect("_print", inputs, text=text, num_args=len(inputs))
    _core.traced_write(effect, made, False, True)


def _placeholder(value: Any) -> str:
    return "{0}" if type(value) is TracedNumber else "{}"


def _plain(value: Any) -> str:
    return str(value).replace("{}", "{ }").replace("{0}", "{ 0 }")


def _text(value: Any) -> str:
    if not isinstance(value, NDArray):
        return str(value)
    if value.size > 1000:
        return str(value.asnumpy())
    return _brackets(value.asnumpy())


def _brackets(array: Any) -> str:
    if array.ndim == 0:
        return str(int(array)) if array.dtype.kind in "iub" else f"{float(array):.8g}"
    return "[" + " ".join(_brackets(part) for part in array) + "]"


def begin_effects() -> Symbol:
    """Returns a new array for the effects of a trace."""
    return literal(0, "float32").as_nd_ndarray()


def with_effects(output: Any, effect: Symbol) -> Any:
    """Returns an output of the graph that depends on all effects of the trace."""
    last = _core.traced_value(effect)
    if _core.memory_root(last)[1] == _core.memory_root(effect)[1]:
        return output
    made = _core.make_effect("_after_effects", [output, last])
    return made.as_np_ndarray() if getattr(output, "_has_numpy_interface", False) else made

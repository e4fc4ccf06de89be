"""Declarations of a function's inputs and outputs: In and Out."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core, errors, ndarray
from ..ndarray import NDArray
from ..symbol import Symbol
from ._shared import SharedVariable

__all__ = ["In", "Out"]


class In:
    """An input of mx.function.

    Parameters
    ----------
    variable : Symbol
        Created by mx.sym.var(). Its declared shape (with 0 for sizes that may vary) and dtype are checked in every
        call.
    default : optional
        The value if a call omits the input: an array, or anything that mx.nd.array() takes.
    donate : bool, default False
        Calls may write results into the memory of the given array. It must not be read afterwards: that raises an
        error. Arrays with views are never overwritten.
    name : str, optional
        For calls by keyword and for messages; default: the variable's name.
    """

    def __init__(self, variable: Symbol, default: Any = None, donate: bool = False, name: str | None = None) -> None:
        if not isinstance(variable, Symbol) or variable.num_outputs != 1 or variable.list_inputs() != [variable.name]:
            given = f"the result of an operator, {variable.name!r}" if isinstance(variable, Symbol) else repr(variable)
            raise errors.TypeError(
                "mx.function: inputs", expected="variables, as mx.sym.var() makes them", given=given, input="inputs"
            )
        if isinstance(variable, SharedVariable):
            raise errors.TypeError(
                f"mx.function: input {variable.name!r} is a shared variable",
                because="functions read shared variables by themselves",
                fix="leave it out of inputs",
                input=variable.name,
            )
        self.variable = variable
        self.name = str(variable.name) if name is None else name
        self.donate = bool(donate)
        self._dtype = _core.declared_spec(variable)[1]
        self.default = None if default is None else self.as_array(default, "mx.In")

    def as_array(self, value: Any, owner: str) -> NDArray:
        """Returns the array that a call uses for value. Raises TypeError and DTypeError that name the input."""
        if isinstance(value, NDArray):
            return value
        if value is None or isinstance(value, (Symbol, str, bytes, dict)):
            raise errors.TypeError(
                f"{owner}: input {self.name!r}",
                expected="an array, a number or nested lists of numbers",
                given="None" if value is None else f"a {type(value).__name__}",
                fix="pass mx.nd.array(...)",
                input=self.name,
            )
        try:
            found = np.asarray(value)
        except (TypeError, ValueError) as error:
            raise self._no_array(owner, value, str(error)) from error
        if found.dtype == object or found.dtype.kind in "USMm":
            raise self._no_array(owner, value, f"its elements are of type {found.dtype}")
        wanted = (
            self._dtype if self._dtype is not None else found.dtype if isinstance(value, np.ndarray) else np.float32
        )
        if not np.can_cast(found.dtype, wanted, "same_kind"):
            raise errors.DTypeError(
                f"{owner}: input {self.name!r}",
                expected=f"elements of type {np.dtype(wanted)}",
                given=str(found.dtype),
                because="the conversion would lose the fraction or the sign",
                fix=f"convert it: x.astype({str(np.dtype(wanted))!r})",
                input=self.name,
            )
        return ndarray.array(found, dtype=wanted)

    def _no_array(self, owner: str, value: Any, because: str) -> errors.TypeError:
        return errors.TypeError(
            f"{owner}: input {self.name!r}",
            expected="an array, a number or nested lists of numbers",
            given=f"a {type(value).__name__}",
            because=because,
            fix="pass mx.nd.array(...)",
            input=self.name,
        )

    def __repr__(self) -> str:
        return f"<In {self.name}{' donated' if self.donate else ''}{'' if self.default is None else ' with default'}>"


class Out:
    """An output of mx.function.

    Parameters
    ----------
    value : Symbol
        A Symbol with one output.
    borrow : bool, default False
        The array may be memory of the function, which its next call for inputs of these sizes overwrites: read or copy
        it before. Saves allocating and filling memory for large results.
    """

    def __init__(self, value: Symbol, borrow: bool = False) -> None:
        if not isinstance(value, Symbol):
            raise errors.TypeError(
                "mx.function: outputs",
                expected="Symbols",
                given=f"a {type(value).__name__}",
                fix="mx.function works on graphs: start with x = mx.sym.var('x')",
                input="outputs",
            )
        if value.num_outputs != 1:
            raise errors.TypeError(
                f"mx.function: output {value.name!r}",
                expected="a Symbol with one output",
                given=f"{value.num_outputs}",
                fix="pick one by index, as in y[0], or give a list: outputs=list(y)",
                input="outputs",
            )
        self.value = value
        self.borrow = bool(borrow)

    def __repr__(self) -> str:
        return f"<Out {self.value.name}{' borrowed' if self.borrow else ''}>"

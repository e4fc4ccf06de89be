"""mx.function: graphs as callable functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from .. import _core, errors
from .._keywords import as_bool, precision_text, remat_text
from .._query_words import joined_query
from .._tracing import parameter_of
from .._user_line import warn
from ..ndarray import NDArray
from ..symbol import Symbol
from ._shared import SharedVariable
from ._specs import In, Out

__all__ = ["Function", "function"]


def function(
    inputs: Iterable[Any] = (),
    outputs: Any = (),
    updates: Mapping[Any, Symbol] | Iterable[tuple[Any, Symbol]] | None = None,
    passes: Any = None,
    name: str | None = None,
    atomic: bool = True,
    static_alloc: bool = False,
    remat: str | int = "auto",
    precision: str = "float32",
) -> Function:
    """Makes a graph callable on arrays, with default values, shared variables and updates of these (docs/functions.md).

    Parameters
    ----------
    inputs : list of Symbol or In
        Variables with a value in each call. Shared variables (mx.shared) and parameters of Gluon blocks that the graph
        reads are found automatically.
    outputs : Symbol, Out, or list of these
        The results of a call: one array, or a list.
    updates : dict, optional
        New values of shared variables and parameters, as Symbols of their shape and dtype. All of them, and the
        outputs, are computed from the values before the call.
    passes : optional
        Rewrites of the graph, see HybridBlock.hybridize: "fast_run" (default), "fast_compile", "none", "debug".
    name : str, optional
        Name for messages and profiles.
    atomic : bool, default True
        A call that fails leaves every shared variable unchanged, even if the failure is noticed later. False saves
        memory: a new value overwrites the old one as soon as no reader is left.
    static_alloc : bool, default False
        Keeps the memory of intermediate values between calls.
    remat : 'auto', 'none' or int, default 'auto'
        Values that a recorded call recomputes for gradients instead of keeping them, see HybridBlock.hybridize.
    precision : {'float32', 'bfloat16', 'float16'}, default 'float32'
        Type in which products of float32 arrays compute, see HybridBlock.hybridize.

    Returns a Function. Raises TypeError, ValueError, ShapeError and DTypeError that name the variable, ParamError for
    passes, remat and precision::

        x = mx.sym.var("x", shape=(0, 3))
        total = mx.shared(mx.nd.zeros(3), name="total")
        add = mx.function([x], x * 2, updates={total: total + mx.sym.sum(x, axis=0)})
        doubled = add(mx.nd.ones((5, 3)))     # total.get_value() is [5. 5. 5.] now
    """
    ins = [given if isinstance(given, In) else In(given) for given in _items(inputs, "inputs")]
    is_list = not isinstance(outputs, (Out, Symbol)) or (isinstance(outputs, Symbol) and outputs.num_outputs != 1)
    listed: Any = outputs if is_list else [outputs]
    outs = [given if isinstance(given, Out) else Out(given) for given in (() if listed is None else listed)]
    pairs = [] if updates is None else list(updates.items() if isinstance(updates, Mapping) else updates)
    return Function(
        _Definition(ins, outs, is_list, outputs is None, [(_holder_of(key), key, value) for key, value in pairs]),
        {
            "atomic": as_bool("atomic", atomic),
            "static_alloc": static_alloc,
            "passes": "" if passes is None else joined_query(passes, (), (), ()),
            "name": "function" if name is None else str(name),
            "remat": remat_text(remat),
            "precision": precision_text(precision),
        },
    )


def _items(given: Any, what: str) -> list[Any]:
    if isinstance(given, (Symbol, In)):
        return [given]
    if isinstance(given, Iterable) and not isinstance(given, (str, bytes)):
        return list(given)
    raise errors.TypeError(f"mx.function: {what}", expected="a list", given=f"a {type(given).__name__}", input=what)


def _holder_of(key: Any) -> Any:
    """Returns the object that holds the value of a shared variable or parameter: its array, or the Parameter."""
    if isinstance(key, SharedVariable):
        return key.value
    if hasattr(key, "_used_data"):
        return key
    if isinstance(key, Symbol) and key.num_outputs == 1:
        for identity, _, array in _core.variables_of([key]):
            holder = array if array is not None else parameter_of(identity)
            if holder is not None and _core.symbol_op(key) is None:
                return holder
    given = f"the variable {key.name!r}, which has no value" if isinstance(key, Symbol) else f"a {type(key).__name__}"
    raise errors.TypeError(
        "mx.function: a key of updates or swap",
        expected="a shared variable (mx.shared) or a Gluon parameter",
        given=given,
        fix="make it with mx.shared(value)",
        input="updates",
    )


def _identity(holder: Any) -> int:
    """Returns an equal number for objects that hold the same value."""
    return _core.array_id(holder) if isinstance(holder, NDArray) else id(holder)


def _value_of(holder: Any) -> NDArray:
    return holder if isinstance(holder, NDArray) else holder._used_data(None)


def _name_of(holder: Any, key: Any) -> str:
    return str(getattr(holder, "name", None) or getattr(key, "name", "shared"))


class _Definition:
    """The arguments of mx.function: inputs, outputs, and updates as (holder, key, new value)."""

    def __init__(
        self, ins: list[In], outs: list[Out], is_list: bool, is_none: bool, updates: list[tuple[Any, Any, Symbol]]
    ) -> None:
        self.ins, self.outs, self.updates = ins, outs, updates
        self.is_list, self.is_none = is_list, is_none
        seen: set[int] = set()
        for holder, key, value in updates:
            name = _name_of(holder, key)
            if not isinstance(value, Symbol) or value.num_outputs != 1:
                raise errors.TypeError(
                    f"mx.function: update of {name!r}",
                    expected="a Symbol with one output",
                    given=f"a {type(value).__name__}"
                    + (f" with {value.num_outputs}" if isinstance(value, Symbol) else ""),
                    input=name,
                )
            if _identity(holder) in seen:
                raise errors.ValueError(f"mx.function: {name!r} has two updates", input=name)
            seen.add(_identity(holder))


class Function:
    """A graph that can be called on arrays; created by mx.function().

    Calls are thread-safe. Inside mx.autograd.record() a call is one operation on the tape: gradients reach inputs,
    parameters, and shared variables whose value has an attached gradient.
    """

    def __init__(self, definition: _Definition, options: dict[str, Any]) -> None:
        self._definition = definition
        self._options = options
        self._names = [given.name for given in definition.ins]
        self._defaults = {given.name: given.default for given in definition.ins if given.default is not None}
        self._count = len(self._names)
        if len(set(self._names)) != self._count:
            twice = next(name for name in self._names if self._names.count(name) > 1)
            raise errors.ValueError(
                f"mx.function: two inputs are named {twice!r}", fix="name them: mx.In(x, name=...)", input=twice
            )
        variables = self._find_variables()
        self._take_holders([holder for holder, _ in variables])
        self._op = self._make_op([variable for _, variable in variables])

    # -- making -----------------------------------------------------------------------------------------------------

    def _find_variables(self) -> list[tuple[Any, Symbol]]:
        """Returns holders of values that the graph reads or writes besides the inputs, and their variables."""
        own = {_core.variable_id(given.variable): given for given in self._definition.ins}
        if len(own) != self._count:
            raise errors.ValueError("mx.function: a variable is an input twice", input="inputs")
        symbols = [out.value for out in self._definition.outs] + [value for _, _, value in self._definition.updates]
        used: set[int] = set()
        found: dict[int, tuple[Any, Symbol]] = {}
        for identity, variable, array in _core.variables_of(symbols):
            used.add(identity)
            if identity in own:
                continue
            holder = array if array is not None else parameter_of(identity)
            if holder is None:
                raise errors.ValueError(
                    f"mx.function: the graph reads the variable {variable.name!r}, which has no value",
                    fix="give it as an input, or make it with mx.shared(value); a parameter lives as long as its block",
                    input=variable.name,
                )
            found[identity] = (holder, variable)
        for identity, given in own.items():
            if identity not in used:
                warn(f"mx.function: no output and no update reads the input {given.name!r}")
        for holder, key, _ in self._definition.updates:
            variable = key if isinstance(key, Symbol) else key.var()
            found.setdefault(_core.variable_id(variable), (holder, variable))
        return list(found.values())

    def _make_op(self, variables: list[Symbol]) -> Any:
        number = {_identity(holder): self._count + i for i, holder in enumerate(self._holders)}
        outs = [out.value for out in self._definition.outs]
        return _core.function(
            [given.variable for given in self._definition.ins] + variables,
            outs,
            [(number[_identity(holder)], value) for holder, _, value in self._definition.updates],
            numpy=[out._has_numpy_interface for out in outs],
            donated=self._flags([given.donate for given in self._definition.ins], len(self._holders)),
            borrowed=self._flags([out.borrow for out in self._definition.outs], 0),
            **self._options,
        )

    @staticmethod
    def _flags(flags: list[bool], others: int) -> list[bool]:
        return [*flags, *[False] * others] if any(flags) else []

    def _take_holders(self, holders: list[Any]) -> None:
        self._holders = holders
        self._params = [holder for holder in holders if not isinstance(holder, NDArray)]
        self._computes_data = any(param._computes_data for param in self._params)

    # -- calling ----------------------------------------------------------------------------------------------------

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the graph on values of the inputs, by position or by name; omitted inputs use their defaults.

        Arrays are checked against the variables' declarations: dtype, number of dimensions, sizes, and the device.
        Numbers, lists and NumPy arrays become arrays of the declared dtype. Returns an array, or a list of arrays if
        outputs were given as a list. Raises TypeError, DTypeError, ShapeError or ValueError that name the input.
        """
        if kwargs or len(args) != self._count:
            args = self._completed(args, kwargs)
        for arg in args:
            if not isinstance(arg, NDArray):
                args = self._converted(args)
                break
        out = self._op(*args, *(self._param_values() if self._params else self._holders))
        if not self._definition.is_list or not isinstance(out, NDArray):
            return out if out != [] or not self._definition.is_none else None
        return [out]

    def _param_values(self) -> Sequence[NDArray]:
        try:
            if not self._computes_data and len(self._params[0]._data) == 1:
                return [holder if isinstance(holder, NDArray) else holder._data[0] for holder in self._holders]
        except TypeError:  # one has no value yet
            pass
        for holder, key, _ in self._definition.updates:
            if not isinstance(holder, NDArray) and len(holder.list_ctx()) > 1:
                name = _name_of(holder, key)
                raise errors.ValueError(
                    f"function {self.name!r}: update of {name!r}",
                    expected="a parameter on one context",
                    given=f"one on {len(holder.list_ctx())}",
                    because="the values on the contexts would differ afterwards",
                    fix="initialize the block on one context",
                    input=name,
                )
        return [_value_of(holder) for holder in self._holders]

    def _completed(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """Returns the values of all inputs, in order."""
        if len(args) > self._count:
            raise errors.TypeError(
                f"function {self.name!r}",
                expected=f"at most {self._count} inputs ({', '.join(self._names) or 'it takes none'})",
                given=str(len(args)),
            )
        values = dict(zip(self._names, args, strict=False))
        for name, value in kwargs.items():
            if name not in self._names:
                raise errors.unknown_name(f"function {self.name!r}", "input", name, self._names, errors.TypeError)
            if name in values:
                raise errors.TypeError(
                    f"function {self.name!r}: input {name!r} is given by position and by name", input=name
                )
            values[name] = value
        return tuple(values[name] if name in values else self._default(name) for name in self._names)

    def _default(self, name: str) -> NDArray:
        value = self[name]
        return value.copy() if self._input(name).donate else value  # the next call needs the default again

    def _converted(self, args: Sequence[Any]) -> tuple[NDArray, ...]:
        owner = f"function {self.name!r}"
        return tuple(given.as_array(arg, owner) for given, arg in zip(self._definition.ins, args, strict=True))

    # -- defaults ---------------------------------------------------------------------------------------------------

    def _input(self, key: Any) -> In:
        for given in self._definition.ins:
            if key is given.variable or (isinstance(key, str) and key == given.name):
                return given
        raise errors.unknown_name(f"function {self.name!r}", "input", key, self._names, errors.KeyError)

    def __getitem__(self, key: Any) -> NDArray:
        """Returns the default of an input, by name or variable; or the array of a shared variable or parameter."""
        if isinstance(key, SharedVariable) or hasattr(key, "_used_data"):
            holder = _holder_of(key)
            if _identity(holder) in map(_identity, self._holders):
                return holder if isinstance(holder, NDArray) else holder._used_data(None)
            raise errors.KeyError(f"function {self.name!r} does not read {_name_of(holder, key)!r}")
        name = self._input(key).name
        if name not in self._defaults:
            raise errors.TypeError(
                f"function {self.name!r}: input {name!r} is missing",
                because="it has no default",
                fix=f"pass {name}=..., or set a default: f[{name!r}] = ...",
                input=name,
            )
        return self._defaults[name]

    def __setitem__(self, key: Any, value: Any) -> None:
        """Sets the default of an input of this function; None removes it."""
        given = self._input(key)
        if value is None:
            self._defaults.pop(given.name, None)
        else:
            self._defaults[given.name] = given.as_array(value, f"function {self.name!r}")

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    # -- copies -----------------------------------------------------------------------------------------------------

    def copy(
        self,
        share_memory: bool = True,
        swap: Mapping[Any, Any] | None = None,
        delete_updates: bool = False,
        name: str | None = None,
    ) -> Function:
        """Returns another function of the same graph, with the same defaults.

        Parameters
        ----------
        share_memory : bool, default True
            Whether both functions share the memory of intermediate values. Calls of the two then run one at a time, in
            any threads. Inputs, results and defaults are never shared.
        swap : dict, optional
            Replacements of shared variables and parameters of this function. Each must have the shape, dtype and
            context of the original.
        delete_updates : bool, default False
            Whether the copy leaves all shared variables unchanged, including running statistics of layers: nodes needed
            only for updates are not computed.
        name : str, optional
            Default: the name of this function.

        Common parts of both are compiled once. Raises ValueError for a swap of an object that this function does not
        read, ShapeError, DTypeError or ValueError (contexts) if values do not match::

            evaluate = train.copy(delete_updates=True)
        """
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        definition = self._definition
        updates = [] if delete_updates else definition.updates
        other._options = {**self._options, "name": self.name if name is None else str(name)}
        other._defaults = dict(self._defaults)
        known = [_identity(holder) for holder in self._holders]
        swapped: dict[int, Any] = {}
        for old, new in (swap or {}).items():
            old_holder, new_holder = _holder_of(old), _holder_of(new)
            if _identity(old_holder) not in known:
                raise errors.ValueError(
                    f"function {self.name!r}: swap of {_name_of(old_holder, old)!r}, which it does not read",
                    fix="its shared variables are in f.shared",
                    input="swap",
                )
            self._check_swap(old, _value_of(old_holder), new, _value_of(new_holder))
            swapped[_identity(old_holder)] = new_holder
        updates = [(swapped.get(_identity(held), held), key, value) for held, key, value in updates]
        holders = [swapped.get(identity, held) for identity, held in zip(known, self._holders, strict=True)]
        other._definition = _Definition(
            definition.ins, definition.outs, definition.is_list, definition.is_none, updates
        )
        other._take_holders(holders)
        other._op = self._op.copy(share_memory=bool(share_memory), delete_updates=bool(delete_updates), name=other.name)
        return other

    def _check_swap(self, old: Any, old_value: NDArray, new: Any, new_value: NDArray) -> None:
        subject = f"function {self.name!r}: swap of {_name_of(old, old)!r} for {_name_of(new, new)!r}"
        if new_value.shape != old_value.shape:
            raise errors.ShapeError(
                subject, expected=f"shape {old_value.shape}", given=str(new_value.shape), input="swap"
            )
        if new_value.dtype != old_value.dtype:
            wanted, given = np.dtype(old_value.dtype), np.dtype(new_value.dtype)
            raise errors.DTypeError(subject, expected=f"elements of type {wanted}", given=str(given), input="swap")
        if new_value.context != old_value.context:
            raise errors.ValueError(
                subject, expected=f"an array on {old_value.context}", given=f"one on {new_value.context}", input="swap"
            )

    # -- queries ----------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The name for messages and profiles."""
        return str(self._options["name"])

    @property
    def shared(self) -> list[Any]:
        """The state besides the inputs that the function reads or updates: arrays of shared variables, parameters."""
        return list(self._holders)

    def __repr__(self) -> str:
        shared = f", reads {len(self._holders)} shared" if self._holders else ""
        updates = f", {len(self._definition.updates)} updates" if self._definition.updates else ""
        return (
            f"<Function {self.name}({', '.join(self._names)}): {len(self._definition.outs)} outputs{shared}{updates}>"
        )

    def pass_report(self) -> str:
        """Returns the plans: memory, estimated time, and count and time of each rewrite."""
        return str(self._op.summary())

    def plan_text(self) -> str:
        """Returns the plan of the last sizes, instruction by instruction (docs/debugging.md); empty before a call."""
        return str(self._op.plan_text())

    def graph_text(self) -> str:
        """Returns the rewritten graph of the most recent sizes; empty before a call."""
        return str(self._op.graph_text())

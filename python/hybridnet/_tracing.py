"""Tracing: a block's forward runs once on abstract arrays (shape and dtype, no values) and produces a graph.

A Trace is active during that run. Inside, ``Parameter.data()`` and ``Parameter.var()`` return the variable that
represents the parameter in the graph, blocks called by the traced block run inline, and each new node records the path
of its block.

A second kind of scope, Composition, is for blocks called with plain Symbols (``net(mx.sym.var("data"))``): parameters
are represented by their ordinary, named variables.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import numpy as np

from . import _core
from ._user_line import is_own_file as is_own_file
from .errors import TraceError, not_overridden
from .util import is_np_array

if TYPE_CHECKING:
    from .gluon.block import Block
    from .gluon.parameter import Parameter
    from .symbol import Symbol


class _Local(threading.local):
    """The innermost scope and other state per thread."""

    scope: Scope | None = None
    refusals: Refusals | None = None


_local = _Local()


def current() -> Scope | None:
    """The innermost scope of this thread."""
    return _local.scope


class Refusals:
    """Records the first TraceError while functions run on abstract arrays, and raises it at the end.

    A program that catches the error (``try: ... except Exception``) would continue with a branch that it took only
    because there are no values, and the graph would contain that branch permanently. Another error that the program
    raises instead is replaced by the recorded one, too.

    tells_outer: whether the error also counts for the enclosing functions. False if the library itself tries an
    operation and raises its own error if that is refused.
    """

    def __init__(self, tells_outer: bool = True) -> None:
        self._first: TraceError | None = None
        self._tells_outer = tells_outer

    def note(self, error: TraceError) -> None:
        """Records error if it is the first."""
        if self._first is None:
            self._first = error

    def __enter__(self) -> Refusals:
        self._outer = _local.refusals
        _local.refusals = self
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        _local.refusals = outer = self._outer
        first, self._first = self._first, None
        if first is None:
            return
        if outer is not None and self._tells_outer:
            outer.note(first)
        if error is None:
            raise first
        if error is not first and isinstance(error, Exception):
            raise first from error


def note_refusal(error: TraceError) -> None:
    if _local.refusals is not None:
        _local.refusals.note(error)


TraceError._listener = note_refusal


def eager_loops() -> set[Any]:
    """The loops over range() that the running trace makes loops of the graph from their first iteration."""
    scope = current()
    return scope.eager_loops if isinstance(scope, Trace) else set()


def ask_for_conversion(asked: str) -> None:
    """Raises TraceError in a trace of a program that is not converted, but may be."""
    scope = current()
    if isinstance(scope, Trace) and scope.may_convert and not scope.converts:
        raise TraceError(f"{asked}: the graph needs a loop, for which forward must be converted")


# Lines in these files read an array on behalf of the user's line, which is reported instead.
_PACKAGE = Path(__file__).resolve().parent
_ARRAY_FILES = tuple(str(_PACKAGE / name) for name in ("ndarray/ndarray.py", "numpy/multiarray.py"))
_READING_FILES = (*_ARRAY_FILES, str(_PACKAGE / "numpy/_fallback.py"), str(Path(np.__file__).parent))


def _note_value_read() -> None:
    """Called when values of an array are read while a block is traced: the innermost trace records the user's line."""
    scope = current()
    while scope is not None and not isinstance(scope, Trace):
        scope = scope._outer
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_READING_FILES):
        if frame.f_code.co_name in ("__repr__", "__str__"):
            return  # printing does not influence the graph
        frame = frame.f_back
    if scope is not None and frame is not None and not is_own_file(frame.f_code.co_filename):
        scope.value_reads[f"{frame.f_code.co_filename}:{frame.f_lineno}"] = None


_core.set_value_read_hook(_note_value_read)


# Keys: the identity of the variable that represents the parameter in graphs of plain Symbols.
_parameters: WeakValueDictionary[int, Parameter] = WeakValueDictionary()


def note_parameter(variable: Symbol, parameter: Parameter) -> None:
    """Records that variable represents parameter, in graphs of plain Symbols."""
    _parameters[_core.variable_id(variable)] = parameter


def parameter_of(identity: int) -> Parameter | None:
    """Returns the parameter that the variable of this identity represents; None if there is no live one."""
    parameter = _parameters.get(identity)
    if parameter is None or parameter._var is None or _core.variable_id(parameter._var) != identity:
        return None
    return parameter


class Scope:
    """Maps parameters to Symbols while a block is called with Symbols."""

    converts = False  # whether functions of the program are converted
    effects: Symbol | None = None  # the array to which checks and prints of the program are written

    def variable(self, parameter: Parameter) -> Symbol:
        """Returns the variable of parameter in the current graph."""
        raise not_overridden(self, "variable(parameter)")

    def write(self, target: Any, value: Symbol) -> bool:
        """Records that a run of the graph writes value into a parameter, given directly or as the Symbol that
        represents it. Returns False if the scope does not know that parameter.
        """
        return False

    def enter_block(self, block: Block) -> Any:
        """Called before block's forward; the result is passed to leave_block."""

    def leave_block(self, token: Any) -> None:
        """Called after block's forward."""

    def __enter__(self) -> Scope:
        self._outer = current()
        _local.scope = self
        return self

    def __exit__(self, *_: Any) -> None:
        _local.scope = self._outer
        del self._outer


class Composition(Scope):
    """Blocks called with plain Symbols: parameters are ordinary variables that carry their attributes."""

    def variable(self, parameter: Parameter) -> Symbol:
        return parameter._make_var()


class Trace(Scope):
    """One run of a block's forward on abstract arrays.

    `variables` maps each parameter used to its variable, in order of first use. `paths` maps id(block) to its path
    below the traced block ("net0.body.0"), for error messages.
    """

    def __init__(self, root: Block, recording: bool = False, converts: bool = False) -> None:
        self._recording = recording  # whether the caller records; forward runs without recording
        self.eager_loops: set[Any] = set()
        self.may_convert = bool(getattr(root, "_converts", False))
        self.converts = converts  # whether forward is converted: its branches and loops become part of the graph
        self._refusals = Refusals()
        self.value_reads: dict[str, None] = {}  # file:line of the user's code that reads values of arrays
        self.variables: dict[Parameter, Symbol] = {}
        self.parameters: dict[str, Parameter] = {}  # by the names of their variables
        self._inputs: set[str] = set()
        self.writes: dict[str, str] = {}  # variable that forward writes to in place -> line of the last write
        self._updated: set[str] = set()  # parameters that write() was called for, for example by scans
        self._names: set[str] = set()
        self._path = root.name
        self._paths: dict[int, str] = {id(root): self._path}
        self._collect_paths(root, self._path)

    def _collect_paths(self, block: Block, path: str) -> None:
        paths = self._paths
        for name, child in block._children.items():
            if id(child) not in paths:
                paths[id(child)] = below = f"{path}.{name}"
                if child._children:
                    self._collect_paths(child, below)

    def unique_name(self, name: str) -> str:
        """Returns name, with a number appended if another variable of this graph has it."""
        candidate, number = name, 0
        while candidate in self._names:
            number += 1
            candidate = f"{name}_{number}"
        self._names.add(candidate)
        return candidate

    def make_input(self, name: str, shape: tuple[int, ...], dtype: Any) -> Symbol:
        """Creates a variable for an input of the traced block."""
        unique = self.unique_name(name)
        self._inputs.add(unique)
        return _core.traced_variable(unique, shape, dtype, numpy=is_np_array())

    def variable(self, parameter: Parameter) -> Symbol:
        variable = self.variables.get(parameter)
        if variable is not None:
            return variable
        name = self.unique_name(parameter.name)
        variable = self.variables[parameter] = parameter._make_traced(name)
        self.parameters[name] = parameter
        return variable

    def write(self, target: Any, value: Symbol) -> bool:
        for parameter, variable in self.variables.items():
            if target is parameter or target is variable:
                _core.traced_write(variable, value)
                self._updated.add(str(variable.name))
                return True
        return False

    def written(self, output: Symbol) -> Symbol:
        """Returns an output of the graph that depends on all writes."""
        for variable, value, line in _core.traced_written_variables():
            name = str(variable.name)
            if name not in self.parameters and name not in self._inputs:
                raise TraceError(
                    f"the variable {name!r} is written to in place at {line}",
                    because="it is neither an input nor a parameter of the block that is traced",
                    fix="make a new array instead, as in x = x + 1",
                )
            if name not in self._updated:
                self.writes[name] = line
            output = _core.write_state(output, value, variable)
        return output

    def foreign_arrays(self) -> list[Any]:
        """Returns arrays other than parameters whose values operators or Python have read and that are also referenced
        outside. Results computed from them are constants of the graph.
        """
        found = _core.traced_array_reads()
        if not found:
            return []
        own = {_core.memory_id(array) for parameter in self.variables for array in parameter._data or ()}
        return [array for array in found if _core.memory_id(array) not in own]

    def enter_block(self, block: Block) -> str:
        previous = self._path
        self._path = path = self._paths.get(id(block)) or block.name
        _core.set_trace_block(path)
        return previous

    def leave_block(self, token: str) -> None:
        self._path = token
        _core.set_trace_block(token)

    def __enter__(self) -> Trace:
        self._before = _core.set_trace_state(True, self._path, self._recording)
        super().__enter__()
        self._refusals.__enter__()
        return self

    def __exit__(self, *details: Any) -> None:
        super().__exit__(*details)
        _core.set_trace_state(*self._before)
        self._refusals.__exit__(*details)

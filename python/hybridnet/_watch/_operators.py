"""Calls of operators on arrays, observed one by one while a watch is active (anomaly detection, profile by line).

Nothing is in the way of a call outside of a watch. A watch puts observers in three places and removes them at its end:
the modules of ``mx.nd`` and ``mx.np`` return their functions wrapped, the classes of arrays have wrapped methods, and
blocks note their path. Not observed: functions that a program took out of a module before the watch began
(``from mxnet.nd import exp``), and operators that run in C++ alone, such as updates by an optimizer.

Hybridized blocks run their Python code operator by operator inside of a watch that demands it.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import sys
import threading
from collections.abc import Callable, Iterator
from types import FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

from .. import _core, _tracing

__all__ = ["OpWatch", "RunningBlock", "begin", "end", "is_watching", "operator_name", "running_blocks", "watching"]

_ROOT = __name__.partition(".")[0]
_MODULES = (
    "ndarray", "ndarray.op", "ndarray._internal", "ndarray.contrib", "ndarray.image", "ndarray.linalg",
    "ndarray.random", "ndarray.sparse", "numpy", "numpy._internal", "numpy.linalg", "numpy.random", "numpy_extension",
    "numpy_extension.image", "numpy_extension.random",
)  # fmt: skip

# Python's operators on arrays: the stem of the operators' names in mx.nd and in mx.np.
_ARITHMETIC = {
    "add": ("add", "plus", "add"), "sub": ("sub", "minus", "subtract"), "mul": ("mul", "mul", "multiply"),
    "truediv": ("div", "div", "true_divide"), "mod": ("mod", "mod", "mod"), "pow": ("power", "power", "power"),
    "floordiv": ("floor_divide", "floor_divide", "floor_divide"),
}  # fmt: skip
_BINARY = {f"__{prefix}{name}__": (prefix, stems) for name, stems in _ARITHMETIC.items() for prefix in ("", "r", "i")}
_OTHER_METHODS = {"__neg__": "negative", "__abs__": "abs", "__matmul__": "dot", "astype": "Cast", "var": "var"}
_OTHER_METHODS["std"] = "std"
_METHODS = (*_BINARY, *_OTHER_METHODS)


class RunningBlock(NamedTuple):
    """A block whose forward runs: the block, its path, its arguments, and whether it is hybridized."""

    block: Any
    path: str
    args: tuple[Any, ...]
    hybridized: bool


class OpWatch:
    """Base of observers. Subclasses override call() and decide whether hybridized blocks run as Python code."""

    runs_python = True

    def call(self, function: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Runs function(*args, **kwargs) and returns its result; name is that of the operator."""
        return function(*args, **kwargs)

    def call_block(self, block: Any, args: tuple[Any, ...], run: Callable[[], Any]) -> Any:
        """Runs a block: run() returns its results."""
        return run()

    def call_step(self, run: Callable[[], Any]) -> Any:
        """Runs a call that runs operators without calls of Python: backward, an update of parameters."""
        return run()

    def call_graph(self, block: Any, args: tuple[Any, ...], run: Callable[[], Any]) -> Any:
        """Runs a block that is executed as a compiled graph: run() returns its results."""
        return run()

    def call_executor(self, executor: Any, is_train: bool, run: Callable[[], Any]) -> Any:
        """Runs the forward pass of an Executor."""
        return run()

    def call_executor_backward(self, executor: Any, out_grads: Any, run: Callable[[], Any]) -> Any:
        """Runs the backward pass of an Executor."""
        return run()


class _Local(threading.local):
    """The innermost watch of the thread, and its running blocks."""

    watch: OpWatch | None = None
    blocks: tuple[RunningBlock, ...] = ()


_local = _Local()
os.register_at_fork(after_in_child=lambda: setattr(_local, "watch", None))  # workers of a DataLoader are not observed


def is_watching() -> bool:
    """Whether calls of operators are observed in this thread."""
    return _local.watch is not None


def running_blocks() -> tuple[RunningBlock, ...]:
    """The blocks whose forward runs in this thread, outermost first."""
    return _local.blocks


def operator_name(function: Any, name: str, args: tuple[Any, ...]) -> str:
    """The operator's registered name, or the name of the function or method that calls it."""
    if name not in _BINARY:
        return str(getattr(function, "op_name", _OTHER_METHODS.get(name, name)))
    prefix, (pair, number, numpy) = _BINARY[name]
    ends = "" if len(args) < 2 or isinstance(args[1], _core.NDArrayBase) else "_scalar"
    reverse = "r" if prefix == "r" and ends and pair not in ("add", "mul") else ""
    if args[0]._has_numpy_interface:
        return f"_npi_{reverse}{numpy}{ends}"
    return f"_{reverse}{number}_scalar" if ends else f"broadcast_{pair}"


def writes_in_place(name: str) -> bool:
    """Whether a method writes its result into the array that it is called on."""
    return name in _BINARY and _BINARY[name][0] == "i"


def is_one_operator(function: Any, name: str) -> bool:
    """Whether a call runs one operator; False for functions of Python, which may run several."""
    home = getattr(function, "__module__", None) or ""
    return not isinstance(function, FunctionType) or name in _METHODS or home.endswith(".ndarray._broadcasting")


class _Watched:
    """A function or method whose calls on arrays go through the watch of the thread."""

    __slots__ = ("_name", "function")

    def __init__(self, function: Any, name: str) -> None:
        self.function, self._name = function, name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        watch = _local.watch
        if watch is None or _tracing.current() is not None:
            return self.function(*args, **kwargs)
        return watch.call(self.function, self._name, args, kwargs)

    def __get__(self, instance: Any, owner: Any) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.function, name)

    def __repr__(self) -> str:
        return repr(self.function)


_wrapped: dict[tuple[int, str], _Watched] = {}  # by the identity of the function, which the value keeps alive


def _watched(function: Any, name: str) -> _Watched:
    found = _wrapped.get((id(function), name))
    if found is None:
        found = _wrapped[id(function), name] = _Watched(function, name)
    return found


def _is_array_function(value: Any) -> bool:
    if isinstance(value, (_core.RegistryFunction, _core.DirectFunction)):
        return True
    home = getattr(value, "__module__", None) or ""
    places = (f"{_ROOT}.numpy", f"{_ROOT}.ndarray._broadcasting")
    return isinstance(value, FunctionType) and home.startswith(places)


class _WatchedModule(ModuleType):
    """The class of the modules of array functions during a watch."""

    def __getattribute__(self, name: str) -> Any:
        value = super().__getattribute__(name)
        if name.startswith("__") or _local.watch is None or not _is_array_function(value):
            return value
        return _watched(value, name)


class _Places:
    """The observers in modules and classes, shared by all watches; there while at least one is active."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._undo: list[Callable[[], None]] = []

    def enter(self) -> None:
        with self._lock:
            self._users += 1
            if self._users == 1:
                self._watch_modules()
                self._watch_arrays()
                self._watch_blocks()

    def leave(self) -> None:
        with self._lock:
            self._users -= 1
            while self._users == 0 and self._undo:
                self._undo.pop()()

    def _watch_modules(self) -> None:
        for name in _MODULES:
            module = importlib.import_module(f"{_ROOT}.{name}")
            before = type(module)
            if before is ModuleType:
                module.__class__ = _WatchedModule
                self._undo.append(lambda module=module: setattr(module, "__class__", ModuleType))  # type: ignore[misc]

    def _set(self, cls: Any, name: str, value: Any) -> None:
        own, before = name in cls.__dict__, cls.__dict__.get(name)
        setattr(cls, name, value)
        self._undo.append(lambda: setattr(cls, name, before) if own else delattr(cls, name))

    def _watch_arrays(self) -> None:
        from ..ndarray._fluent import FLUENT

        classic = sys.modules[f"{_ROOT}.ndarray.ndarray"].NDArray
        numpy = sys.modules[f"{_ROOT}.numpy.multiarray"].ndarray
        for name in FLUENT:
            getattr(classic, name)  # replaces placeholders by the operators
        for name in _METHODS:
            if (method := getattr(classic, name, None)) is not None:
                self._set(classic, name, _watched(method, name))
        for cls in (classic, numpy):
            for name, value in list(vars(cls).items()):
                if isinstance(value, _core.RegistryFunction) or (cls is numpy and name in _METHODS):
                    self._set(cls, name, _watched(value, name))

    def _watch_blocks(self) -> None:
        from ..gluon._hybrid_block import HybridBlock
        from ..gluon._symbol_block import SymbolBlock
        from ..gluon.block import Block

        for cls in (Block, HybridBlock):
            self._set(cls, "__call__", _noting_block(cls.__call__))
        for cls in (HybridBlock, SymbolBlock):
            self._set(cls, "_call_cached_op", _noting_graph(cls._call_cached_op))
        from .. import autograd
        from .._function._function import Function
        from ..executor import Executor
        from ..gluon.trainer import Trainer

        classic = sys.modules[f"{_ROOT}.ndarray.ndarray"].NDArray
        for owner, name in ((classic, "backward"), (autograd, "backward"), (autograd, "grad"), (Trainer, "step")):
            self._set(owner, name, _noting_step(getattr(owner, name)))
        self._set(Function, "__call__", _watched(Function.__call__, "mx.function"))
        self._set(Executor, "forward", _noting_forward(Executor.forward))
        self._set(Executor, "backward", _noting_backward(Executor.backward))


def _path(block: Any) -> str:
    from ..gluon._block_errors import _child_name

    if not _local.blocks:
        return str(block.name)
    outer = _local.blocks[-1]
    return f"{outer.path}.{_child_name(outer.block, block)}"


def _noting_block(call: Callable[..., Any]) -> Callable[..., Any]:
    """Returns Block.__call__ that notes the block, and runs a hybridized one as Python code if the watch demands it."""

    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
        watch = _local.watch
        if watch is None or _tracing.current() is not None:
            return call(self, *args, **kwargs)
        before, state = _local.blocks, self.__dict__
        hybridized = bool(state.get("_active"))
        _local.blocks = (*before, RunningBlock(self, _path(self), args, hybridized))
        changed = _stored_functions(self)
        if hybridized and watch.runs_python:
            changed["_active"] = False
        kept = {name: state[name] for name in changed}
        state.update(changed)  # without __setattr__, which would drop the graphs
        try:
            return watch.call_block(self, args, functools.partial(call, self, *args, **kwargs))
        finally:
            _local.blocks = before
            state.update({name: kept[name] for name in kept if state.get(name) is changed[name]})

    return __call__


def _stored_functions(block: Any) -> dict[str, Any]:
    """Returns observed forms of the operators among a block's attributes: ``self.act = mx.nd.relu``, HybridLambda."""
    from ..gluon.nn.basic_layers import HybridLambda

    found: dict[str, Any] = {k: _watched(v, k) for k, v in vars(block).items() if isinstance(v, _core.RegistryFunction)}
    if isinstance(block, HybridLambda) and block._func.__module__ == HybridLambda.__module__:
        name = block._func_name  # given by name, and looked up when the block was made
        found["_func"] = lambda F, *args: getattr(F, name)(*args)
    return found


def _noting_graph(call: Callable[..., Any]) -> Callable[..., Any]:
    def _call_cached_op(self: Any, *args: Any) -> Any:
        watch = _local.watch
        if watch is None or _tracing.current() is not None:
            return call(self, *args)
        return watch.call_graph(self, args, lambda: call(self, *args))

    return _call_cached_op


def _noting_step(call: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(call)
    def step(*args: Any, **kwargs: Any) -> Any:
        watch = _local.watch
        run = functools.partial(call, *args, **kwargs)
        return run() if watch is None else watch.call_step(run)

    return step


def _noting_forward(call: Callable[..., Any]) -> Callable[..., Any]:
    def forward(self: Any, is_train: bool = False, **kwargs: Any) -> Any:
        watch = _local.watch
        run = functools.partial(call, self, is_train, **kwargs)
        return run() if watch is None else watch.call_executor(self, bool(is_train), run)

    return forward


def _noting_backward(call: Callable[..., Any]) -> Callable[..., Any]:
    def backward(self: Any, out_grads: Any = None, is_train: bool = True) -> Any:
        watch = _local.watch
        run = functools.partial(call, self, out_grads, is_train)
        return run() if watch is None else watch.call_executor_backward(self, out_grads, run)

    return backward


_places = _Places()


def begin(watch: OpWatch | None) -> OpWatch | None:
    """Makes watch that of this thread; None: nothing is observed. Returns the one before, for end()."""
    _places.enter()
    before, _local.watch = _local.watch, watch
    return before


def end(before: OpWatch | None) -> None:
    """Ends the watch of this thread; before: the result of begin()."""
    _local.watch = before
    _places.leave()


@contextlib.contextmanager
def watching(watch: OpWatch | None) -> Iterator[None]:
    """Observes the calls of this thread inside of the ``with`` block by watch; None: observes none of them."""
    before, _local.watch = _local.watch, watch
    if watch is not None:
        _places.enter()
    try:
        yield
    finally:
        _local.watch = before
        if watch is not None:
            _places.leave()

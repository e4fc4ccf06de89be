"""Switches for NumPy semantics, and functions that query the machine."""

from __future__ import annotations

import functools
import importlib
import inspect
import os
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from . import _core
from ._public_names import dir_of
from .context import Context, gpu_memory_info, num_gpus
from .errors import ValueError as HybridNetValueError

__all__ = [
    "get_cuda_compute_capability",
    "get_gpu_count",
    "get_gpu_memory",
    "getenv",
    "is_np_array",
    "is_np_shape",
    "np_array",
    "np_shape",
    "reset_np",
    "set_module",
    "set_np",
    "set_np_shape",
    "setenv",
    "use_np",
    "use_np_array",
    "use_np_shape",
]

_T = TypeVar("_T")


def is_np_shape() -> bool:
    """Whether scalars have shape () and sizes of 0 are valid (NumPy), or a full reduction gives (1,) (MXNet)."""
    return _core.is_np_shape()


def set_np_shape(active: bool) -> bool:
    """Switches NumPy shape semantics for this thread; returns the previous value."""
    return _core.set_np_shape(bool(active))


class _NumpyShapeScope:
    """Context manager that sets NumPy shape semantics."""

    def __init__(self, active: bool) -> None:
        self._active = active
        self._before: list[bool] = []

    def __enter__(self) -> _NumpyShapeScope:
        self._before.append(set_np_shape(self._active))
        return self

    def __exit__(self, *exception: Any) -> None:
        set_np_shape(self._before.pop())


def np_shape(active: bool = True) -> _NumpyShapeScope:
    """Returns a scope with (or without) NumPy shape semantics."""
    return _NumpyShapeScope(active)


class _Flags(threading.local):
    """The switches of each thread."""

    numpy_arrays = False


_flags = _Flags()


def is_np_array() -> bool:
    """Whether Gluon creates ``mx.np.ndarray`` objects in this thread; mx.nd.NDArray otherwise."""
    return _flags.numpy_arrays


def _set_np_array(active: bool) -> bool:
    before, _flags.numpy_arrays = _flags.numpy_arrays, bool(active)
    if active:
        importlib.import_module("hybridnet.symbol.numpy")  # traces create its Symbols
    return before


class _ScopeOfThread(type):
    """Metaclass for class attributes with a separate value per thread."""

    @property
    def _current(cls) -> _NumpyArrayScope:
        return _NumpyArrayScope(is_np_array())

    @_current.setter
    def _current(cls, scope: _NumpyArrayScope) -> None:
        _set_np_array(scope._is_np_array)


class _NumpyArrayScope(metaclass=_ScopeOfThread):
    """Context manager that selects the array class of Gluon."""

    def __init__(self, is_np_array: bool) -> None:
        self._is_np_array = is_np_array
        self._before: list[bool] = []

    def __enter__(self) -> _NumpyArrayScope:
        self._before.append(_set_np_array(self._is_np_array))
        return self

    def __exit__(self, *exception: Any) -> None:
        _set_np_array(self._before.pop())


def np_array(active: bool = True) -> _NumpyArrayScope:
    """Returns a scope in which Gluon creates ``mx.np.ndarray`` objects (or not)."""
    return _NumpyArrayScope(active)


class _NumpyScope:
    """Context manager that combines np_shape and np_array."""

    def __init__(self) -> None:
        self._before: list[tuple[bool, bool]] = []

    def __enter__(self) -> _NumpyScope:
        self._before.append((set_np_shape(True), _set_np_array(True)))
        return self

    def __exit__(self, *exception: Any) -> None:
        shape, array = self._before.pop()
        _set_np_array(array)
        set_np_shape(shape)


def _callable_members(cls: type) -> dict[str, Any]:
    """Returns the members of a class, and inherited public members, __init__ and __call__."""
    found: dict[str, Any] = {}
    for base in cls.__mro__[:-1]:
        for name, member in vars(base).items():
            if base is cls or not name.startswith("_") or name in ("__init__", "__call__"):
                found.setdefault(name, member)
    return found


def _within_class(scope: Callable[[], Any], cls: type) -> None:
    for name, member in _callable_members(cls).items():
        if isinstance(member, (staticmethod, classmethod)) and name not in ("__new__", "__init_subclass__"):
            setattr(cls, name, type(member)(_within(scope, member.__func__)))
        elif inspect.isfunction(member) and not name.startswith("__repr"):
            setattr(cls, name, _within(scope, member))
        elif isinstance(member, property) and member.fget is not None:
            setattr(cls, name, property(_within(scope, member.fget), member.fset, member.fdel, member.__doc__))


def _within(scope: Callable[[], Any], target: Any) -> Any:
    """Wraps a function or class so that its calls (methods and property getters) run within a scope."""
    if inspect.isclass(target):
        _within_class(scope, target)
        return target
    if not callable(target):
        raise HybridNetValueError("expected a function or a class to decorate", given=type(target).__name__)
    if getattr(target, "_numpy_scope", None) is scope:  # a base class that is decorated too
        return target

    @functools.wraps(target)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        with scope():
            return target(*args, **kwargs)

    wrapped._numpy_scope = scope  # type: ignore[attr-defined]
    return wrapped


def use_np_shape(func: _T) -> _T:
    """Decorator for functions and classes: calls run with NumPy shape semantics."""
    return _within(np_shape, func)


def use_np_array(func: _T) -> _T:
    """Decorator for functions and classes: Gluon creates ``mx.np.ndarray`` objects in their calls."""
    return _within(np_array, func)


def use_np(func: _T) -> _T:
    """Decorator for functions and classes: calls run with NumPy's shapes and ``mx.np.ndarray`` objects."""
    return _within(_NumpyScope, func)


def set_np(shape: bool = True, array: bool = True) -> None:
    """Switches NumPy semantics of this thread: for shapes, and for the arrays that Gluon creates and accepts.

    Raises ValueError for array=True without shape=True.
    """
    if array and not shape:
        raise HybridNetValueError("set_np: expected shape=True together with array=True")
    set_np_shape(shape)
    _set_np_array(array)


def reset_np() -> None:
    """Restores classic MXNet semantics."""
    set_np(shape=False, array=False)


def set_module(module: str) -> Callable[[_T], _T]:
    """Decorator that sets the object's ``__module__`` to module."""

    def decorate(target: _T) -> _T:
        target.__module__ = module
        return target

    return decorate


def get_cuda_compute_capability(ctx: Context) -> int:
    """Returns the compute capability of a CUDA device, such as 90 for 9.0.

    Raises ValueError for a context of a CPU, UnsupportedError for a device that does not exist.
    """
    if not isinstance(ctx, Context) or ctx.device_type != "gpu":
        raise HybridNetValueError(
            "get_cuda_compute_capability: ctx", expected="a GPU", given=str(ctx), fix="pass mx.gpu(0)"
        )
    _, architecture, _ = _core.gpu_description(ctx.device_id)
    return int(architecture.removeprefix("sm_"))


def get_gpu_count() -> int:
    """Returns the number of CUDA devices."""
    return num_gpus()


def get_gpu_memory(gpu_dev_id: int) -> tuple[int, int]:
    """Returns (free, total) bytes of a CUDA device."""
    return gpu_memory_info(gpu_dev_id)


def getenv(name: str) -> str | None:
    """Returns an environment variable of this process, or None."""
    return os.environ.get(name)


def setenv(name: str, value: str | None) -> None:
    """Sets an environment variable of this process for code that reads it later; None removes it."""
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


__dir__ = dir_of(__name__)

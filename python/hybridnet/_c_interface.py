"""Names in ``mx.base`` for MXNet's C functions: types of handles, and errors that name the replacement.

The handles are ctypes types, like MXNet's. There is no library with MXNet's functions.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .errors import AttributeError as HybridNetAttributeError
from .errors import HybridNetError

__all__ = [
    "CachedOpHandle",
    "CudaKernelHandle",
    "CudaModuleHandle",
    "DLPackHandle",
    "DataIterCreatorHandle",
    "DataIterHandle",
    "ExecutorHandle",
    "FunctionHandle",
    "KVStoreHandle",
    "NDArrayHandle",
    "NotSupportedForSparseNDArray",
    "OpHandle",
    "ProfileHandle",
    "RecordIOHandle",
    "RtcHandle",
    "SymbolHandle",
    "basestring",
    "c_array",
    "c_array_buf",
    "c_handle_array",
    "c_str",
    "c_str_array",
    "check_call",
    "classproperty",
    "long",
    "mx_float",
    "mx_int",
    "mx_int64",
    "with_metaclass",
]

CachedOpHandle = CudaKernelHandle = CudaModuleHandle = DLPackHandle = DataIterCreatorHandle = ctypes.c_void_p
DataIterHandle = ExecutorHandle = FunctionHandle = KVStoreHandle = NDArrayHandle = OpHandle = ctypes.c_void_p
ProfileHandle = RecordIOHandle = RtcHandle = SymbolHandle = ctypes.c_void_p

mx_int, mx_int64, mx_float = ctypes.c_int, ctypes.c_int64, ctypes.c_float
long = int
basestring = str


class NotSupportedForSparseNDArray(HybridNetError):
    """Raised when an operation for dense arrays is called on a sparse one."""

    def __init__(self, function: Callable[..., Any], alias: str | None, *args: Any) -> None:
        types = ", ".join(str(type(arg)) for arg in args)
        also = f" (namely operator '{alias}')" if alias else ""
        super().__init__(f"function {function.__name__}{also} with arguments of types {types} needs dense arrays")


class _NoLibrary:
    """Placeholder for MXNet's loaded library."""

    def __getattr__(self, name: str) -> Any:
        raise HybridNetAttributeError(
            f"mx.base._LIB.{name}: there is no library with MXNet's C functions",
            fix="use the function of Python, or the C functions of hybridnet/c_api.h",
        )


_LIB = _NoLibrary()


def check_call(status: int) -> None:
    """Raises an error unless a C function returned 0."""
    if status != 0:
        raise HybridNetError(f"a C function failed with status {status}")


def c_str(text: str) -> ctypes.c_char_p:
    """Converts text to a C string."""
    return ctypes.c_char_p(text.encode("utf-8"))


def c_str_array(texts: Sequence[str]) -> Any:
    """Converts texts to an array of C strings."""
    return (ctypes.c_char_p * len(texts))(*(text.encode("utf-8") for text in texts))


def c_array(ctype: Any, values: Sequence[Any]) -> Any:
    """Converts values to a C array of ctype."""
    return (ctype * len(values))(*values)


def c_array_buf(ctype: Any, buffer: Any) -> Any:
    """Returns a C array over the memory of a buffer."""
    return (ctype * len(buffer)).from_buffer(buffer)


def c_handle_array(objects: Iterable[Any]) -> Any:
    """Returns the handles of objects as a C array."""
    handles = [each.handle for each in objects]
    return (ctypes.c_void_p * len(handles))(*handles)


class classproperty:
    """Decorator for a property of the class itself."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function

    def __get__(self, instance: Any, owner: type) -> Any:
        return self._function(owner)


def with_metaclass(meta: type, *bases: type) -> type:
    """Returns a base class for classes with another metaclass."""
    return meta("_Base", bases, {})

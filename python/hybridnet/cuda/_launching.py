"""Arguments and sizes of a launch of a user's kernel, checked: for ``mx.cuda.RawKernel`` and ``mx.rtc``."""

from __future__ import annotations

import numbers
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import _core
from ..errors import DTypeError, HybridNetError, ParamError, TraceError
from ..errors import TypeError as HybridNetTypeError
from ..errors import ValueError as HybridNetValueError
from ..ndarray import NDArray
from ._kernel_text import Parameter, kernels_in

__all__ = ["check_count", "launch", "missing_kernel", "prepared", "texts"]

_MAX_THREADS = 1024
_MAX_BLOCK = (1024, 1024, 64)
_MAX_GRID = (2**31 - 1, 65535, 65535)
_MAX_SHARED_BYTES = 2**31 - 1


def texts(subject: str, values: Sequence[str]) -> list[str]:
    """Returns a sequence of strings as a list; raises TypeError for a single string and for other elements."""
    if isinstance(values, str) or not all(isinstance(value, str) for value in values):
        raise HybridNetTypeError(subject, expected="a tuple or list of strings", given=repr(values))
    return list(values)


def launch(
    program: _core.UserProgram,
    name: str,
    device: int,
    grid: Sequence[int],
    block: Sequence[int],
    arguments: Sequence[tuple[NDArray | bytes, bool]],
    shared_mem: int,
    declared: bool = True,
) -> None:
    """Pushes a launch. arguments: an array or the bytes of a number, and whether the kernel may write it.

    declared: whether the arguments were compared with the declaration of the kernel.
    """
    blocks = _sizes(f"kernel '{name}': grid", grid, _MAX_GRID)
    threads = _sizes(f"kernel '{name}': block", block, _MAX_BLOCK)
    if not 0 < threads[0] * threads[1] * threads[2] <= _MAX_THREADS:
        raise ParamError(
            f"kernel '{name}': block", expected=f"1 to {_MAX_THREADS} threads in a block", given=repr(tuple(block))
        )
    shared = _integer(f"kernel '{name}': shared_mem", shared_mem, _MAX_SHARED_BYTES)
    values, written = [value for value, _ in arguments], [writes for _, writes in arguments]
    program.launch(name, device, blocks, threads, shared, values, written, declared)


def _sizes(subject: str, sizes: Sequence[int], maximum: Sequence[int]) -> list[int]:
    if not isinstance(sizes, (tuple, list)) or not 1 <= len(sizes) <= 3:
        raise ParamError(subject, expected="a tuple of 1 to 3 integers", given=repr(sizes), fix="pass (n,)")
    padded = [*sizes, 1, 1][:3]
    return [_integer(subject, size, limit) for size, limit in zip(padded, maximum, strict=True)]


def _integer(subject: str, value: Any, maximum: int) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise ParamError(subject, expected=f"an integer from 0 to {maximum}", given=repr(value)) from None
    if not 0 <= number <= maximum:
        raise ParamError(subject, expected=f"an integer from 0 to {maximum}", given=repr(value))
    return number


def check_count(name: str, parameters: Sequence[Parameter], arguments: Sequence[Any]) -> None:
    """Raises ValueError if a kernel gets another number of arguments than it has parameters."""
    if len(parameters) != len(arguments):
        raise HybridNetValueError(
            f"kernel '{name}'",
            expected=f"{len(parameters)} arguments",
            given=str(len(arguments)),
            because=f"its parameters are ({', '.join(parameter.text for parameter in parameters)})",
        )


def prepared(subject: str, value: Any, parameter: Parameter | None, exact: bool) -> tuple[NDArray | bytes, bool]:
    """Returns an argument as launch() takes it. parameter: None if the text does not show the declaration.

    exact: whether an array must have the declared dtype; else one of the same size and kind is enough.
    """
    if isinstance(value, _core.SymbolBase):
        raise TraceError(
            subject,
            expected="an array with values",
            given="an array of a traced block",
            because="a graph has no kernels of users",
            fix="launch it in an mx.operator.CustomOp, which a graph calls, or do not hybridize the block",
            where=_core.current_location(),
        )
    if isinstance(value, NDArray):
        if parameter is None:
            return value, True
        _check_array(subject, value, parameter, exact)
        return value, not parameter.is_const
    if isinstance(value, (numbers.Number, np.generic)):
        if parameter is not None and parameter.is_array:
            raise _wrong_kind(subject, parameter, "an NDArray on a GPU", value)
        return _bytes_of(subject, value, parameter), False
    raise _wrong_kind(subject, parameter, "an NDArray on a GPU, or a number", value)


def _wrong_kind(subject: str, parameter: Parameter | None, expected: str, value: Any) -> HybridNetError:
    fix = None
    if isinstance(value, np.ndarray):
        fix = "copy it to the GPU: mx.nd.array(x, dtype=x.dtype, ctx=mx.gpu(0))"
    elif hasattr(value, "__cuda_array_interface__"):
        fix = "pass mx.nd.from_cupy(x), which shares the memory"
    declared = f" for '{parameter.text}'" if parameter else ""
    return HybridNetTypeError(subject, expected=expected + declared, given=type(value).__name__, fix=fix)


def _check_array(subject: str, array: NDArray, parameter: Parameter, exact: bool) -> None:
    if not parameter.is_array:
        raise HybridNetTypeError(
            subject,
            expected=f"a number for '{parameter.text}'",
            given="an NDArray",
            fix="pass x.asscalar(), which waits for the value, or declare a pointer",
        )
    given = np.dtype(array.dtype)
    if parameter.dtype is None or given.name == parameter.dtype:
        return
    declared = np.dtype(parameter.dtype)
    if (
        exact
        or given.itemsize != declared.itemsize
        or (given.itemsize > 2 and given.kind == "f") != (declared.itemsize > 2 and declared.kind == "f")
    ):
        raise DTypeError(
            subject,
            expected=f"an array of dtype {parameter.dtype} for '{parameter.text}'",
            given=given.name,
            fix=f"pass x.astype('{parameter.dtype}'), or declare the parameter with the type of the array",
        )


def _bytes_of(subject: str, value: Any, parameter: Parameter | None) -> bytes:
    """Returns a number as a kernel reads it.

    A NumPy scalar keeps its dtype. A number of Python takes the declared type; if that is unknown, an int is an int64,
    a float a float64, and a bool a bool.
    """
    declared = parameter.dtype if parameter is not None else None
    if isinstance(value, np.generic):
        if declared is not None and value.dtype.name != declared:
            assert parameter is not None
            raise DTypeError(
                subject,
                expected=f"a number of dtype {declared} for '{parameter.text}'",
                given=f"a NumPy scalar of dtype {value.dtype.name}",
                fix=f"pass numpy.{declared}(x), or a number of Python",
            )
        return value.tobytes()
    if declared is None:
        declared = "bool" if isinstance(value, bool) else "int64" if isinstance(value, numbers.Integral) else "float64"
    return _converted(subject, value, np.dtype(declared)).tobytes()


def _converted(subject: str, value: Any, dtype: np.dtype) -> np.generic:
    expected = f"a number that {dtype.name} can hold"
    if isinstance(value, complex) or not isinstance(value, numbers.Real):
        raise DTypeError(subject, expected=expected, given=repr(value))
    if dtype.kind in "iu":
        if not isinstance(value, numbers.Integral):
            raise DTypeError(subject, expected=expected, given=repr(value), fix="pass an integer")
        limits = np.iinfo(dtype)
        if not limits.min <= int(value) <= limits.max:
            raise HybridNetValueError(subject, expected=expected, given=repr(value))
        return dtype.type(int(value))
    return dtype.type(bool(value) if dtype.kind == "b" else float(value))


def missing_kernel(code: str, name: str, exports: Sequence[str] = ()) -> HybridNetError:
    """Returns the error for a name that the compiled text does not have."""
    declared = [*exports, *(kernel for kernel in kernels_in(code) if kernel not in exports)]
    if name in declared:
        reason = f"the text declares {name}, but not with the name that C gives it"
        fix = f'declare it as: extern "C" __global__ void {name}(...)'
    else:
        reason = f"it declares {', '.join(declared)}" if declared else "it declares no kernel (__global__)"
        fix = "pass the name of one of these kernels" if declared else 'declare one: extern "C" __global__ void f(...)'
    return HybridNetValueError(f"the CUDA text has no kernel '{name}'", because=reason, fix=fix)

"""Memory of GPUs that arrays of several libraries share: DLPack, ``__cuda_array_interface__``, CuPy.

The library that takes an array orders its work after the work of the library that gives it, by streams: numbers are
handles of the driver, 1 is the legacy default stream, 2 the default stream of the thread.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _core
from ..errors import AttributeError as HybridNetAttributeError
from ..errors import HybridNetError
from ..errors import ImportError as HybridNetImportError
from ..errors import TypeError as HybridNetTypeError
from ..errors import ValueError as HybridNetValueError

__all__ = ["as_cupy", "capsule_for_us", "capsule_of", "from_cupy", "interface_of"]

_LEGACY_STREAM = 1
_INTERFACE_VERSION = 3
_CPU, _CUDA = 1, 2  # device types of DLPack


def capsule_of(
    array: Any, stream: int | None, dl_device: tuple[int, int] | None = None, copy: bool | None = None
) -> Any:
    """Returns the DLPack capsule of an array on a GPU (``__dlpack__``).

    stream: the consumer's, which will follow the array's work; None: the legacy default stream; -1: none follows it.
    """
    if dl_device is not None and tuple(dl_device) != array.__dlpack_device__():
        return _on_another_device(array, dl_device, copy)
    if copy:
        array = array.copy()
    return _core.to_dlpack(array, False, _consumer(stream))


def _on_another_device(array: Any, dl_device: tuple[int, int], copy: bool | None) -> Any:
    if dl_device[0] != _CPU:
        raise BufferError(f"the array is on {array.context}, and DLPack device {dl_device} was asked for")
    if copy is False:
        raise BufferError(f"the array is on {array.context}: on the CPU only a copy of it can be")
    return _core.to_dlpack(array.as_in_context(type(array.context)("cpu")), False)


def _consumer(stream: Any) -> int | None:
    if stream is None:
        return _LEGACY_STREAM
    if isinstance(stream, (int, np.integer)) and not isinstance(stream, bool):
        if stream == -1:
            return None
        if stream > 0:
            return int(stream)
    raise HybridNetValueError(
        "__dlpack__: stream",
        expected="None, -1, 1 (the legacy default stream), 2 (the thread's), or the handle of a stream",
        given=repr(stream),
        because="0 could mean either default stream" if stream == 0 else None,
    )


def capsule_for_us(tensor: Any) -> Any:
    """Returns the capsule of an object with ``__dlpack__``; the compute stream follows the work on it."""
    described = getattr(tensor, "__dlpack_device__", None)
    kind, number = described() if described is not None else (_CPU, 0)
    if kind != _CUDA:
        return tensor.__dlpack__()
    return tensor.__dlpack__(stream=_core.gpu_stream(int(number)))


def interface_of(array: Any) -> dict[str, Any]:
    """Returns ``__cuda_array_interface__`` of an array on a GPU. Its memory counts as shared from then on."""
    if array.context.device_type != "gpu":
        raise HybridNetAttributeError(
            "an array of the CPU has no '__cuda_array_interface__'", fix="move it first: x.as_in_context(mx.gpu(0))"
        )
    dtype = np.dtype(array.dtype)
    if dtype.kind not in "fiub":
        raise HybridNetAttributeError(
            f"an array of dtype {dtype.name} has no '__cuda_array_interface__'",
            because="the interface has no name for the dtype",
            fix="share it by DLPack",
        )
    address, stream = _core.gpu_memory(array)
    return {
        "shape": tuple(array.shape),
        "typestr": dtype.str,
        "data": (address, False),
        "strides": None,
        "version": _INTERFACE_VERSION,
        "stream": stream,
    }


def from_cupy(source: Any) -> Any:
    """Returns an array over the memory of a CuPy array, or of any object with ``__cuda_array_interface__``."""
    described = getattr(source, "__cuda_array_interface__", None)
    if not isinstance(described, dict):
        raise HybridNetTypeError(
            "from_cupy",
            expected="a CuPy array, or another object with __cuda_array_interface__",
            given=type(source).__name__,
            fix="mx.nd.from_numpy and mx.nd.from_dlpack take arrays of the CPU",
        )
    shape = tuple(int(size) for size in described["shape"])
    dtype = np.dtype(described["typestr"])
    _refuse_others(described, shape, dtype)
    address, read_only = described["data"]
    if read_only:
        raise HybridNetValueError(
            "from_cupy", expected="memory that may be written", given="a read-only array", fix="pass a copy: a.copy()"
        )
    producer = described.get("stream")
    if producer == 0:
        raise HybridNetValueError("from_cupy: stream", expected="None, 1, 2 or the handle of a stream", given="0")
    return _core.from_gpu_memory(int(address or 0), shape, dtype, _number_of_device(source), source, producer)


def _refuse_others(described: dict[str, Any], shape: tuple[int, ...], dtype: np.dtype) -> None:
    """Raises for arrays whose memory is no array of ours: masked, in other byte orders, with gaps."""
    if described.get("mask") is not None:
        raise HybridNetValueError("from_cupy", expected="an array without a mask", given="a masked array")
    if not dtype.isnative:
        raise HybridNetValueError("from_cupy", expected="the byte order of the machine", given=dtype.str)
    strides = described.get("strides")
    if strides is None or 0 in shape:
        return
    step = dtype.itemsize
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size > 1 and stride != step:
            raise HybridNetValueError(
                "from_cupy",
                expected="a contiguous row-major array",
                given=f"strides {tuple(strides)} of shape {shape}",
                fix="pass cupy.ascontiguousarray(a)",
            )
        step *= size


def _number_of_device(source: Any) -> int:
    """Returns the number of the device of an array: of CuPy (``device.id``), or of PyTorch (``device.index``)."""
    device = getattr(source, "device", None)
    number = getattr(device, "id", getattr(device, "index", None))
    if number is None:
        context = getattr(source, "context", None)
        number = getattr(context, "device_id", 0)
    return int(number)


def as_cupy(array: Any) -> Any:
    """Returns a CuPy array over the memory of an array on a GPU; CuPy's current stream follows the array's work."""
    if array.context.device_type != "gpu":
        raise HybridNetValueError(
            "as_cupy",
            expected="an array on a GPU",
            given=f"an array on {array.context}",
            fix="move it first: x.as_in_context(mx.gpu(0))",
        )
    try:
        import cupy
    except ImportError as error:
        raise _no_cupy(error) from error
    return cupy.from_dlpack(array)


def _no_cupy(error: ImportError) -> HybridNetError:
    return HybridNetImportError(
        "as_cupy: CuPy cannot be imported", because=str(error), fix="pip install cupy-cuda13x (or cupy-cuda12x)"
    )

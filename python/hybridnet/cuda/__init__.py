"""``mx.cuda``: the GPUs beside other libraries of the process, such as CuPy and PyTorch.

Arrays are shared without a copy: ``mx.nd.from_cupy(a)``, ``x.as_cupy()``, ``mx.nd.from_dlpack(tensor)``,
``torch.from_dlpack(x)``. Each side orders its work after the other's when an array changes hands; work on shared memory
after that is ordered by the program: with :func:`synchronize`, or by using one stream (:func:`stream`).
"""

from __future__ import annotations

from .. import _core
from .._public_names import dir_of
from ..context import Context, current_context
from ..errors import TypeError as HybridNetTypeError
from ..errors import ValueError as HybridNetValueError
from ._raw_kernel import RawKernel

__all__ = ["RawKernel", "StreamHandle", "allow_tf32", "is_available", "memory_statistics", "stream", "synchronize"]


class StreamHandle(int):
    """A stream of the driver as a number, for ``cupy.cuda.Stream.from_external`` and ``torch.cuda.ExternalStream``."""

    def __cuda_stream__(self) -> tuple[int, int]:
        """The protocol by which libraries exchange streams: its version, and the handle."""
        return 0, int(self)


def is_available() -> bool:
    """Whether this process can use a GPU; ``mx.runtime.why_no_gpu()`` tells the reason if not."""
    return _core.num_gpus() > 0


def _device(ctx: Context | str | None, function: str) -> int:
    """Returns the number of a GPU; None: that of the current context, gpu(0) if it is no GPU."""
    if ctx is None:
        current = current_context()
        return current.device_id if current.device_type == "gpu" else 0
    ctx = Context.of(ctx)
    if ctx.device_type != "gpu":
        raise HybridNetValueError(f"cuda.{function}: ctx", expected="a GPU", given=str(ctx), fix="pass mx.gpu(0)")
    return ctx.device_id


def stream(ctx: Context | str | None = None) -> StreamHandle:
    """Returns the handle of the stream on which operators of a GPU run.

    ``with cupy.cuda.Stream.from_external(mx.cuda.stream())``: CuPy's work on shared arrays follows ours, and ours
    follows CuPy's, on the device. Copies from and to the CPU have streams of their own. Raises UnsupportedError for
    a missing GPU.
    """
    return StreamHandle(_core.gpu_stream(_device(ctx, "stream")))


def allow_tf32(allow: bool = True) -> bool:
    """Sets whether products and convolutions of float32 may round their factors to TF32; returns the setting before.

    TF32 keeps 10 of the 23 bits after the leading one, so that the tensor cores of GPUs since sm_80 multiply. A
    setting of the process, False at first: operators that were called before keep theirs, so this waits for them, and
    raises the error of one that failed. It concerns what a library computes (``mx.runtime.gpu_libraries()``), not the
    kernels of HybridNet. Raises TypeError if allow is not a bool.
    """
    if not isinstance(allow, bool):
        raise HybridNetTypeError("cuda.allow_tf32: allow", expected="True or False", given=repr(allow))
    _core.wait_all()
    return _core.allow_reduced_float32(allow)


def synchronize(ctx: Context | str | None = None) -> None:
    """Waits until all pushed work is done, on a GPU too. Raises the error of work that failed."""
    _core.gpu_synchronize(_device(ctx, "synchronize"))


def memory_statistics(ctx: Context | str | None = None) -> dict[str, int]:
    """Returns bytes of a GPU: of arrays and temporary memory, in the pool, at most so far, free and in total.

    Keys: in_use, peak_in_use, pooled (kept for reuse: ``ctx.empty_cache()`` returns it), free and total (as the driver
    reports them); allocations and system_allocations are counts.
    """
    device = _device(ctx, "memory_statistics")
    free, total = _core.gpu_memory_info(device)
    counted = _core.memory_statistics(Context.devstr2type["gpu"], device)
    names = ("in_use", "peak_in_use", "pooled", "allocations", "system_allocations")
    return {**{name: counted[name] for name in names}, "free": free, "total": total}


__dir__ = dir_of(__name__)

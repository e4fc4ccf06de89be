"""``mx.cuda.RawKernel``: a kernel in CUDA C that a user wrote, called as CuPy's class of this name is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _core
from ..context import Context
from ..errors import TypeError as HybridNetTypeError
from ..ndarray import NDArray
from ._kernel_text import parameters_of
from ._launching import check_count, launch, missing_kernel, prepared, texts

__all__ = ["RawKernel"]


class RawKernel:
    """A kernel in CUDA C: ``kernel(grid, block, args, shared_mem=0)`` launches it.

    Parameters
    ----------
    code : str
        The text. The kernel is declared ``extern "C" __global__ void name(...)``; ``<cstdint>`` and ``<cmath>`` may be
        included.
    name : str
        The name of the kernel.
    options : tuple of str
        Options of NVRTC, such as ``("-DSIZE=4", "--use_fast_math")``. Without ``--std`` the standard is C++17.

    The text is compiled at the first launch on each device, or by :meth:`compile`. The process keeps the kernel; the
    compiled form is also kept in ``HYBRIDNET_CACHE``, if the text includes no file of the user's.
    """

    def __init__(self, code: str, name: str, options: Sequence[str] = ()) -> None:
        for subject, value in (("code", code), ("name", name)):
            if not isinstance(value, str):
                raise HybridNetTypeError(f"RawKernel: {subject}", expected="a string", given=type(value).__name__)
        self.code, self.name = code, name
        self.options = tuple(texts("RawKernel: options", options))
        self._parameters = parameters_of(code, name)
        self._program = _core.UserProgram(code, list(self.options), [])

    def __repr__(self) -> str:
        declared = ", ".join(parameter.text for parameter in self._parameters or ())
        return f"RawKernel {self.name}({declared})"

    def compile(self, ctx: Context | str | None = None) -> None:
        """Compiles the text for a GPU; None: the current context, gpu(0) if that is no GPU.

        Raises ValueError, with the log of the compiler and the line, for text that does not compile and for a missing
        kernel; UnsupportedError for a missing GPU.
        """
        self._require(_device_of(ctx))

    def __call__(self, grid: Sequence[int], block: Sequence[int], args: Sequence[Any], shared_mem: int = 0) -> None:
        """Launches the kernel and returns at once.

        The launch follows the earlier work on its arrays, and later work on them follows it. The kernel reads the
        arrays whose parameters are declared ``const T*``, and may write all others.

        Parameters
        ----------
        grid, block : tuple of 1 to 3 int
            The numbers of blocks, and of threads in a block (at most 1024 together). A grid without blocks runs
            nothing.
        args : tuple or list
            One argument for each parameter. Arrays, of any shape, are on one GPU; the kernel gets the address of their
            elements in row-major order. A NumPy scalar keeps its dtype. A number of Python takes the declared type;
            where that is not one of C's, an int is an int64, a float a float64.
        shared_mem : int
            Bytes of dynamic shared memory (``extern __shared__``) for each block.

        Raises ValueError for a wrong number of arguments, an array on another device and text that does not compile;
        DTypeError for an array or a number of another type than the parameter's; TypeError for other objects;
        ParamError for sizes that no GPU has; GradientError for an array whose gradient the call would lose;
        UnsupportedError for a missing GPU. An error on the device comes with the next wait for a written array.
        """
        if not isinstance(args, (tuple, list)):
            raise HybridNetTypeError(
                f"kernel '{self.name}': args", expected="a tuple or list", given=type(args).__name__, fix="pass (x,)"
            )
        declared = self._parameters
        if declared is not None:
            check_count(self.name, declared, args)
        arguments = [
            prepared(f"kernel '{self.name}': argument {i + 1}", value, declared[i] if declared else None, exact=False)
            for i, value in enumerate(args)
        ]
        device = _device_of_arrays(args)
        self._require(device)
        launch(self._program, self.name, device, grid, block, arguments, shared_mem, declared is not None)

    def _require(self, device: int) -> None:
        if not self._program.has_kernel(self.name, device):
            raise missing_kernel(self.code, self.name)


def _device_of(ctx: Context | str | None) -> int:
    from . import _device

    return _device(ctx, "RawKernel.compile")


def _device_of_arrays(args: Sequence[Any]) -> int:
    """Returns the number of the GPU of the first array that is on one; the current GPU if there is none."""
    for value in args:
        if isinstance(value, NDArray) and value.context.device_type == "gpu":
            return int(value.context.device_id)
    return _device_of(None)

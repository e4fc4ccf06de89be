"""``mx.rtc``: kernels in CUDA C that are compiled while the program runs, with MXNet's interface.

:class:`hybridnet.cuda.RawKernel` does the same with CuPy's interface, and reads the declaration of the kernel itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import _core
from ._public_names import dir_of
from .context import Context
from .cuda._kernel_text import Parameter, parameter_from
from .cuda._launching import check_count, launch, missing_kernel, prepared, texts
from .errors import TypeError as HybridNetTypeError
from .errors import ValueError as HybridNetValueError

__all__ = ["CudaKernel", "CudaModule"]

_TYPES = "float double __half half bool char int8_t uint8_t int int32_t int64_t"


class CudaModule:
    """A text in CUDA C with one or more kernels, compiled when it is made.

    Parameters
    ----------
    source : str
        The text. A kernel is declared ``extern "C" __global__ void name(...)``, or its C++ name is in exports.
    options : str or tuple of str
        Options of NVRTC, such as ``("-DSIZE=4",)``. Without ``--std`` the standard is C++17.
    exports : str or tuple of str
        C++ names of kernels that are not declared ``extern "C"``, such as ``"scale<float>"``: each template that is
        used has to be listed.

    Raises ValueError, with the log of the compiler and the line, for text that does not compile; UnsupportedError
    without a GPU.
    """

    def __init__(self, source: str, options: str | Sequence[str] = (), exports: str | Sequence[str] = ()) -> None:
        if not isinstance(source, str):
            raise HybridNetTypeError("CudaModule: source", expected="a string", given=type(source).__name__)
        options, exports = ((value,) if isinstance(value, str) else value for value in (options, exports))
        self._source = source
        self._exports = texts("CudaModule: exports", exports)
        self._program = _core.UserProgram(source, texts("CudaModule: options", options), self._exports)
        self._program.load(0)

    def get_kernel(self, name: str, signature: str) -> CudaKernel:
        """Returns a kernel of the module.

        Parameters
        ----------
        name : str
            The name of the kernel, or its entry in exports.
        signature : str
            The types of its parameters: ``"const float *x, float *y, float alpha, int n"``. Names may be left out. A
            pointer is an array, and const says that the kernel only reads it. The types are float, double, half,
            bool, char, int8_t, uint8_t, int, int32_t and int64_t.

        Raises ValueError for a name that the text does not have and for a signature of another form.
        """
        parameters = [_declared(part) for part in signature.split(",")] if signature.strip() else []
        if not self._program.has_kernel(name, 0):
            raise missing_kernel(self._source, name, self._exports)
        return CudaKernel(self._program, name, parameters)


def _declared(text: str) -> Parameter:
    parameter = parameter_from(text)
    if parameter.dtype is None or "[" in text:
        raise HybridNetValueError(
            "CudaModule.get_kernel: signature",
            expected="'[const] type [*] [name]' for each parameter",
            given=repr(text.strip()),
            fix=f"use one of these types: {', '.join(_TYPES.split())}",
        )
    return parameter


class CudaKernel:
    """A kernel of a :class:`CudaModule`; :meth:`CudaModule.get_kernel` makes it."""

    def __init__(self, program: _core.UserProgram, name: str, parameters: Sequence[Parameter]) -> None:
        self._program = program
        self._name = name
        self._parameters = list(parameters)

    def launch(
        self,
        args: Sequence[Any],
        ctx: Context | str,
        grid_dims: Sequence[int],
        block_dims: Sequence[int],
        shared_mem: int = 0,
    ) -> None:
        """Launches the kernel on a GPU and returns at once.

        The launch follows the earlier work on its arrays, and later work on them follows it.

        Parameters
        ----------
        args : tuple or list
            For each parameter of the signature an NDArray on ctx with exactly this dtype, of any shape, or a number.
        ctx : Context
            The GPU.
        grid_dims, block_dims : tuple of 1 to 3 int
            The numbers of blocks, and of threads in a block (at most 1024 together). A grid without blocks runs
            nothing.
        shared_mem : int
            Bytes of dynamic shared memory (``extern __shared__``) for each block.

        Raises ValueError for a context of a CPU, an array on another device and a wrong number of arguments; DTypeError
        for an array or a number of another type; TypeError for other objects; ParamError for sizes that no GPU has;
        GradientError for an array whose gradient the call would lose.
        """
        ctx = Context.of(ctx)
        if ctx.device_type != "gpu":
            raise HybridNetValueError("CudaKernel.launch: ctx", expected="a GPU", given=str(ctx), fix="pass mx.gpu(0)")
        check_count(self._name, self._parameters, args)
        arguments = [
            prepared(f"kernel '{self._name}': argument {i + 1}", value, parameter, exact=True)
            for i, (value, parameter) in enumerate(zip(args, self._parameters, strict=True))
        ]
        launch(self._program, self._name, ctx.device_id, grid_dims, block_dims, arguments, shared_mem)


__dir__ = dir_of(__name__)

"""PTX on the CPU: what NVRTC makes of a kernel text, translated to C++, so that its results can be compared bit by bit.

The texts of kernels, compiled by g++ for the stand-in driver, are not the instructions that a GPU runs. PTX nearly is.
A kernel is right on both sides if both give the same bits.
    compiled = nvrtc.compile(text, headers)
    PtxProgram(compiled.ptx).launch("map", arguments, blocks=(4,), threads=(256,))
Shown: the operations that NVRTC chose, their order, addresses, alignment, barriers and warps. Not shown: ptxas, memory
order between blocks, speed. An opcode, a modifier or a type that the tables do not hold raises PtxError.
"""

from . import nvrtc
from .errors import CompileError, KernelFault, PtxError
from .host_program import HostProgram
from .program import PtxProgram, unavailable
from .writer import write_cpp

__all__ = ["CompileError", "HostProgram", "KernelFault", "PtxError", "PtxProgram", "nvrtc", "unavailable", "write_cpp"]

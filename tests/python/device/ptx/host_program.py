"""A kernel text as g++ compiles it for the stand-in driver, run without the driver."""

from __future__ import annotations

import ctypes
import tempfile
from collections.abc import Sequence
from pathlib import Path

from .errors import KernelFault
from .headers import SOURCE, write_for_gxx
from .program import build, geometry_array

_WORDS = SOURCE.parent / "tests" / "cuda"  # host_kernels.h
# The flags of the stand-in driver (tests/cuda/nvrtc.cc).
_FLAGS = (
    *("-std=c++17", "-O2", "-w", "-fPIC", "-shared", "-Wl,-Bsymbolic", "-mfma", "-mavx2", "-ffp-contract=off"),
    *("-fno-strict-aliasing", "-fvisibility=hidden"),
)


class HostProgram:
    """Kernels of a text, by g++."""

    def __init__(self, text: str) -> None:
        whole = f'#include "host_kernels.h"\n{text}\n#include "host_launch.h"\n'
        with tempfile.TemporaryDirectory(prefix="host_text") as folder:
            includes = Path(folder) / "headers"
            write_for_gxx(includes)
            self._library = build(whole, Path(folder), "text", _FLAGS, (includes, _WORDS))

    def launch(
        self, entry: str, arguments: ctypes.Structure, blocks: Sequence[int] = (1,), threads: Sequence[int] = (1,)
    ) -> None:
        """Runs a kernel; threads of a block go in order of their index. Raises KernelFault."""
        kernel = ctypes.byref(ctypes.c_char.in_dll(self._library, f"hn_kernel_{entry}"))
        run = self._library.host_launch
        run.restype = ctypes.c_char_p
        fault = run(kernel, ctypes.byref(arguments), geometry_array(blocks, threads))
        if fault is not None:
            raise KernelFault(f"'{entry}', {fault.decode()}")

"""C++ texts as functions of this process: built by g++, loaded by ctypes."""

from __future__ import annotations

import ctypes
import functools
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from .errors import CompileError, KernelFault
from .writer import write_cpp

_FOLDER = Path(__file__).parent
# No contraction, so that a product and a sum stay two operations; fma instructions for fma; nothing that relaxes IEEE.
_FLAGS = ("-std=c++17", "-O1", "-ffp-contract=off", "-mfma", "-mavx2", "-fno-strict-aliasing", "-fPIC", "-shared", "-w")


@functools.cache
def unavailable() -> str:
    """An empty string if programs can be built and run here, else the reason why not: for pytest.skip."""
    if shutil.which("g++") is None:
        return "g++ is missing"
    flags = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    return "" if " fma " in flags and " avx2 " in flags else "the processor has no FMA or AVX2"


def build(
    text: str, folder: Path, name: str, flags: Sequence[str] = _FLAGS, includes: Sequence[Path] = ()
) -> ctypes.CDLL:
    """Compiles a text into a shared library below folder. Raises CompileError with the compiler's log."""
    source, library = folder / f"{name}.cc", folder / f"{name}.so"
    source.write_text(text)
    paths = [f"-I{path}" for path in (*includes, _FOLDER)]
    done = subprocess.run(
        ["g++", *flags, *paths, str(source), "-o", str(library)], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise CompileError("g++", done.stderr[:8000])
    return ctypes.CDLL(str(library))


def geometry_array(blocks: Sequence[int], threads: Sequence[int]) -> ctypes.Array:
    """Blocks and threads along three axes; missing ones are 1."""
    return (ctypes.c_uint32 * 6)(*blocks, *[1] * (3 - len(blocks)), *threads, *[1] * (3 - len(threads)))


@functools.cache
def _words() -> tempfile.TemporaryDirectory:
    """A folder with ptx_words.h in the form that g++ reads fast. It is removed when the process ends."""
    folder = tempfile.TemporaryDirectory(prefix="ptx_words")
    command = ["g++", *_FLAGS, "-x", "c++-header", str(_FOLDER / "ptx_words.h"), "-o", f"{folder.name}/ptx_words.h.gch"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise CompileError("g++", done.stderr[:8000])
    return folder


class PtxProgram:
    """A PTX module that runs on the CPU."""

    def __init__(self, ptx: str, allow_approximate: bool = False) -> None:
        self.cpp, self._module = write_cpp(ptx, allow_approximate)
        with tempfile.TemporaryDirectory(prefix="ptx") as folder:
            words = Path(_words().name)
            self._library = build(self.cpp, Path(folder), "ptx", includes=(words,))  # stays loaded without its file

    @property
    def entries(self) -> list[str]:
        return [function.name for function in self._module.entries()]

    def parameter_bytes(self, entry: str) -> int:
        return max((each.offset + each.size for each in self._module.functions[entry].parameters), default=0)

    def launch(
        self, entry: str, arguments: ctypes.Structure, blocks: Sequence[int] = (1,), threads: Sequence[int] = (1,)
    ) -> None:
        """Runs an entry; threads of a block go in order of their index. Raises KernelFault."""
        if ctypes.sizeof(arguments) != self.parameter_bytes(entry):
            raise ValueError(
                f"'{entry}' takes a struct of {self.parameter_bytes(entry)} bytes, got {ctypes.sizeof(arguments)}"
            )
        run = self._library[f"run_{entry}"]
        run.restype = ctypes.c_char_p
        fault = run(ctypes.byref(arguments), geometry_array(blocks, threads))
        if fault is not None:
            raise KernelFault(f"'{entry}', {fault.decode()}")

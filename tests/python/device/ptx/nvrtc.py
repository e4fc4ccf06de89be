"""NVRTC by ctypes: CUDA text to PTX and cubins, without a GPU and without a toolkit."""

from __future__ import annotations

import ctypes
import functools
import importlib.util
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from .errors import CompileError

# The options that the library uses (DEVICES.md 6): IEEE operations only, so that CPU and GPU give the same bits.
EXACT_OPTIONS = (
    *("--std=c++17", "--fmad=false", "--ftz=false", "--prec-div=true", "--prec-sqrt=true"),
    "--device-as-default-execution-space",
)


class Compiled(NamedTuple):
    """Results of compile(). cubin is empty if the architecture is a virtual one ("compute_80")."""

    ptx: str
    cubin: bytes
    log: str


def compile(
    text: str,
    headers: Mapping[str, str],
    architecture: str = "sm_80",
    options: Sequence[str] = EXACT_OPTIONS,
) -> Compiled:
    """Compiles a translation unit; `headers` maps names as in ``#include`` to texts.

    Raises: CompileError with NVRTC's log; OSError if NVRTC is not installed (available() tells).
    """
    library = _library()
    program = ctypes.c_void_p()
    _check(library, library.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"kernel.cu", *_arrays(headers)))
    try:
        flags = [option.encode() for option in (*options, f"--gpu-architecture={architecture}")]
        status = library.nvrtcCompileProgram(program, len(flags), (ctypes.c_char_p * len(flags))(*flags))
        log = _read(library, program, "ProgramLog").rstrip(b"\0").decode()
        if status != 0:
            raise CompileError(f"NVRTC, {architecture}", log)
        ptx = _read(library, program, "PTX").rstrip(b"\0").decode()
        cubin = b"" if architecture.startswith("compute") else _read(library, program, "CUBIN")
        return Compiled(ptx, cubin, log)
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


@functools.cache
def available() -> str:
    """An empty string if NVRTC loads, else the reason why not: for pytest.skip."""
    try:
        _library()
    except OSError as error:
        return f"NVRTC is missing: pip install nvidia-cuda-nvrtc ({error})"
    return ""


@functools.cache
def version() -> tuple[int, int]:
    major, minor = ctypes.c_int(), ctypes.c_int()
    _check(_library(), _library().nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)))
    return major.value, minor.value


@functools.cache
def _library() -> ctypes.CDLL:
    path = next(iter(_installed()), "libnvrtc.so.13")  # the package of PyPI, or a library of the system
    library = ctypes.CDLL(str(path))
    library.nvrtcGetErrorString.restype = ctypes.c_char_p
    return library


def _installed() -> list[Path]:
    """Libraries of the packages nvidia-cuda-nvrtc and nvidia-cuda-nvrtc-cu12."""
    spec = importlib.util.find_spec("nvidia")
    folders = [] if spec is None else [Path(folder) for folder in spec.submodule_search_locations or ()]
    found = [path for folder in folders for path in folder.glob("*/lib/libnvrtc.so.*") if "builtins" not in path.name]
    return sorted(found, key=lambda path: path.name, reverse=True)


def _arrays(headers: Mapping[str, str]) -> tuple[int, ctypes.Array, ctypes.Array]:
    strings = ctypes.c_char_p * len(headers)
    texts = strings(*[text.encode() for text in headers.values()])
    return len(headers), texts, strings(*[name.encode() for name in headers])


def _read(library: ctypes.CDLL, program: ctypes.c_void_p, subject: str) -> bytes:
    size = ctypes.c_size_t()
    _check(library, getattr(library, f"nvrtcGet{subject}Size")(program, ctypes.byref(size)))
    buffer = ctypes.create_string_buffer(max(size.value, 1))
    _check(library, getattr(library, f"nvrtcGet{subject}")(program, buffer))
    return buffer.raw[: size.value]


def _check(library: ctypes.CDLL, status: int) -> None:
    if status != 0:
        raise CompileError("NVRTC", library.nvrtcGetErrorString(status).decode())

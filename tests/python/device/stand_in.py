"""The tests' driver in place of CUDA's (tests/cuda): where it is, and its reports."""

from __future__ import annotations

import ctypes
import os
import pathlib
import subprocess
import sys

import hybridnet

LIBRARY = pathlib.Path(hybridnet.__file__).parent / "libhnstandin.so"
# Bits are compared with those of AVX2 (docs/numerics.md), on machines with wider vectors, too.
ENVIRONMENT = {"HYBRIDNET_CUDA_DRIVER": "stand-in", "HYBRIDNET_GPU_FALLBACK": "ignore", "HYBRIDNET_MAX_ISA": "avx2"}
# Failures of the driver that the caller does not check are reported.
ENVIRONMENT["HNSTANDIN_CHECK_RESULTS"] = "1"
MISSING = "libhnstandin.so is built with the C++ tests: tools/dev build"


def library() -> ctypes.CDLL:
    return ctypes.CDLL(str(LIBRARY))


def is_in_use() -> bool:
    return os.environ.get("HYBRIDNET_CUDA_DRIVER") == "stand-in"


def reports() -> list[str]:
    """The faults that the driver has found since the last reset: races, early frees, host accesses, ..."""
    text = ctypes.create_string_buffer(1 << 16)
    count = library().hnstandin_reports(text, len(text))
    return text.value.decode().splitlines()[:count] if count else []


def reset() -> None:
    library().hnstandin_reset()


def counters() -> dict[str, int]:
    names = (
        *("launches", "bytes_in", "bytes_out", "allocations", "faults", "live_allocations", "live_bytes"),
        *("graph_launches", "nodes_set", "live_graphs"),
        *("products", "tf32_products", "product_choices", "live_library_objects", "rounds"),
        *("convolutions", "tf32_convolutions", "convolution_choices"),
    )
    values = (ctypes.c_longlong * len(names))()
    library().hnstandin_counters(values, len(names))
    return dict(zip(names, values, strict=True))


def fail(what: str) -> None:
    """The N-th call of a driver function fails from now on: "cuLaunchKernel:3", "any:7"."""
    library().hnstandin_fail(what.encode())


def calls() -> dict[str, int]:
    """The functions of the driver that were called since the last call of this one, and how often."""
    text = ctypes.create_string_buffer(1 << 14)
    library().hnstandin_calls(text, len(text))
    return {name: int(count) for name, count in (line.split() for line in text.value.decode().splitlines())}


def corrupt(what: str) -> None:
    """One element that the N-th launch of a kernel changes from now on gets a wrong value: "any:3"; "": none does."""
    library().hnstandin_corrupt(what.encode())


def corrupted() -> str:
    """The kernel whose result was made wrong since corrupt(); "nothing of" it if it changed nothing; "": none."""
    name = ctypes.create_string_buffer(256)
    library().hnstandin_corrupted(name, len(name))
    return name.value.decode()


def seed(number: int) -> None:
    """The order in which streams run work: 0 as late as possible, else drawn."""
    library().hnstandin_seed(ctypes.c_ulonglong(number))


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs a program on the stand-in in a process of its own, with other settings."""
    path = os.pathsep.join(path for path in sys.path if path)
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        check=False,
    )

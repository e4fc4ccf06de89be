"""The tests' driver in place of CUDA's (tests/cuda): where it is, and its reports."""

from __future__ import annotations

import ctypes
import os
import pathlib

import hybridnet

LIBRARY = pathlib.Path(hybridnet.__file__).parent / "libhnstandin.so"
# Bits are compared with those of AVX2 (docs/numerics.md), on machines with wider vectors, too.
ENVIRONMENT = {"HYBRIDNET_CUDA_DRIVER": "stand-in", "HYBRIDNET_GPU_FALLBACK": "ignore", "HYBRIDNET_MAX_ISA": "avx2"}
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
        *("products", "tf32_products", "product_choices", "live_blas_objects", "rounds"),
    )
    values = (ctypes.c_longlong * len(names))()
    library().hnstandin_counters(values, len(names))
    return dict(zip(names, values, strict=True))


def fail(what: str) -> None:
    """The N-th call of a driver function fails from now on: "cuLaunchKernel:3", "any:7"."""
    library().hnstandin_fail(what.encode())


def seed(number: int) -> None:
    """The order in which streams run work: 0 as late as possible, else drawn."""
    library().hnstandin_seed(ctypes.c_ulonglong(number))

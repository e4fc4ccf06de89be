"""Memory shared with other libraries: DLPack and ``__cuda_array_interface__``; CuPy and PyTorch where they are."""

from __future__ import annotations

import gc
import importlib
from types import ModuleType
from typing import Any

import hybridnet as mx
import numpy as np

from .outcome import Options, Outcome

__all__ = ["check_sharing"]

GPU = mx.gpu(0)
ROUNDS = 50


def check_sharing(options: Options) -> Outcome:
    """Arrays are shared without a copy in both directions, and each side's work follows the other's."""
    outcome = Outcome()
    size = options.size(1 << 22, 1 << 8)
    _check_own(outcome, size)
    found = ["DLPack", "the CUDA array interface"]
    for name, check in (("cupy", _check_cupy), ("torch", _check_torch)):
        library = None if options.stand_in else _imported(name)
        if library is not None and check(library, outcome, size):
            found.append(name)
    outcome.line = ", ".join(found)
    outcome.rows = {"with": found, "elements": size}
    return outcome


def _imported(name: str) -> ModuleType | None:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def _check_own(outcome: Outcome, size: int) -> None:
    """Between two arrays of ours: a write through one is seen by the other."""
    for what, share in (("DLPack", mx.nd.from_dlpack), ("the interface", mx.nd.from_cupy)):
        x = mx.nd.arange(size, ctx=GPU)
        shared: Any = share(x)
        outcome.expect(shared.context == GPU, f"{what}: the array is on {shared.context}")
        shared += 1
        mx.cuda.synchronize(GPU)
        outcome.expect(np.array_equal(x.asnumpy(), np.arange(size) + 1), f"{what}: a write is not seen")
        del x
        gc.collect()
        outcome.expect(float(shared[-1].asscalar()) == size, f"{what}: the memory did not outlive its first array")


def _check_cupy(cupy: ModuleType, outcome: Outcome, size: int) -> bool:
    for _ in range(ROUNDS):
        x = mx.nd.arange(size, ctx=GPU) * 2
        theirs = x.as_cupy() + 1
        del x
        back = mx.nd.from_cupy(theirs) * 3
        outcome.expect(np.array_equal(back[-5:].asnumpy(), (np.arange(size)[-5:] * 2 + 1) * 3), "CuPy: wrong values")
    streams = cupy.cuda
    make = getattr(streams.Stream, "from_external", streams.ExternalStream)  # CuPy 14, and before
    with make(mx.cuda.stream(GPU)):
        x = mx.nd.ones((size,), ctx=GPU)
        shared = x.as_cupy()
        for _ in range(ROUNDS):  # one stream: each side's work follows the other's, without waiting
            shared *= 2
            x[:] = x - 1
        outcome.expect(float(x.sum().asscalar()) == size, "CuPy on our stream: wrong values")
    return not outcome.wrong


def _check_torch(torch: ModuleType, outcome: Outcome, size: int) -> bool:
    if not torch.cuda.is_available():
        return False
    for _ in range(ROUNDS):
        x = mx.nd.arange(size, ctx=GPU) * 2
        theirs = torch.from_dlpack(x) + 1
        del x
        back = mx.nd.from_dlpack(theirs) * 3
        outcome.expect(np.array_equal(back[-5:].asnumpy(), (np.arange(size)[-5:] * 2 + 1) * 3), "PyTorch: wrong values")
    return not outcome.wrong

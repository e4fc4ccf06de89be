"""The card, the driver, and the versions of all that takes part."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import subprocess
from typing import Any

import hybridnet as mx

from .outcome import Options, Outcome

__all__ = ["describe"]

_PACKAGES = (
    "numpy",
    "torch",
    "cupy-cuda13x",
    "cupy-cuda12x",
    "nvidia-cuda-nvrtc",
    "nvidia-cuda-nvrtc-cu12",
    "nvidia-cublas",
    "nvidia-cublas-cu12",
    "nvidia-cudnn-cu13",
    "nvidia-cudnn-cu12",
)
_QUERY = "name,driver_version,compute_cap,clocks.max.sm,memory.total,memory.used,ecc.mode.current,mig.mode.current"


def describe(options: Options) -> Outcome:
    """Describes the machine; wrong if there is no GPU that a process can use."""
    count = mx.num_gpus()
    if count == 0:
        return Outcome(wrong=[f"there is no usable GPU: {mx.runtime.why_no_gpu()}"])
    card, _, rest = mx.runtime.gpus()[0].rpartition(" (")
    free, total = mx.context.gpu_memory_info(0)
    rows: dict[str, Any] = {
        "card": card,
        "architecture": rest.rstrip(")"),
        "gpus": count,
        "memory_total": total,
        "memory_free": free,
        "cores": len(os.sched_getaffinity(0)),
        "cpu": mx.runtime.isa(),
        "python": platform.python_version(),
        "packages": {"hybridnet": mx.__version__, **_versions()},
        "nvidia_smi": _nvidia_smi() if not options.stand_in else "",
    }
    x = mx.nd.arange(5, ctx=mx.gpu(0)) * 2  # compiles a kernel: NVRTC is there and fits the card
    outcome = Outcome(rows=rows)
    outcome.expect(x.asnumpy().tolist() == [0, 2, 4, 6, 8], f"arange(5) * 2 is {x.asnumpy().tolist()}")
    driver = rows["nvidia_smi"].split(", ")[1] if rows["nvidia_smi"].count(", ") > 1 else "driver unknown"
    outcome.line = (
        f"{card}, {rows['architecture']}, {total / 2**30:.0f} GiB, {driver}, {count} GPU(s), CPU {rows['cpu']}"
    )
    return outcome


def _versions() -> dict[str, str]:
    found = {}
    for name in _PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def _nvidia_smi() -> str:
    """Returns what nvidia-smi says of the first card; empty without it."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return ""
    command = [program, f"--query-gpu={_QUERY}", "--format=csv,noheader", "--id=0"]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=20, check=False).stdout.strip()
    except subprocess.TimeoutExpired:
        return ""

"""Shows the capabilities of this installation: versions, instruction sets, threads, GPUs, features."""

from __future__ import annotations

import argparse
import os
import platform
from importlib import metadata

from .. import libinfo, runtime
from ._output import answer, table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds no arguments."""


def _version_of(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def _cupy() -> str:
    wheels = ("cupy-cuda13x", "cupy-cuda12x", "cupy")
    return next((version for wheel in wheels if (version := _version_of(wheel)) != "not installed"), "not installed")


def run(options: argparse.Namespace) -> int:
    """Prints the information."""
    features = runtime.Features()
    enabled = sorted(name for name in features if features.is_enabled(name))
    facts = {
        "version": libinfo.__version__,
        "library": libinfo.find_lib_path()[0],
        "python": platform.python_version(),
        "numpy": _version_of("numpy"),
        "machine": f"{platform.system()} {platform.machine()}",
        "instruction sets": runtime.isa(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "threads (OMP_NUM_THREADS)": os.environ.get("OMP_NUM_THREADS", "as many as cores"),
        "GPUs": runtime.gpus() or [f"none: {runtime.why_no_gpu()}"],
        "GPU libraries": runtime.gpu_libraries() | ({"CuPy": _cupy()} if runtime.gpus() else {}) or "none",
        "features": enabled,
        "environment": {name: value for name, value in sorted(os.environ.items()) if name.startswith("HYBRIDNET_")},
        "optional packages": {
            name: _version_of(name) for name in ("graphviz", "onnxruntime", "opencv-python-headless", "pillow", "tqdm")
        },
    }
    rows = []
    for name, value in facts.items():
        if isinstance(value, dict):
            value = ", ".join(f"{key}={item}" for key, item in value.items()) or "(none)"
        rows.append((name, ", ".join(value) if isinstance(value, list) else value))
    answer(options, facts, "hybridnet\n" + table(rows))
    return 0

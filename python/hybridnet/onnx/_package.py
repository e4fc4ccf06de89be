"""The package ``onnx``: imported on first use, so that HybridNet itself does not need it."""

from __future__ import annotations

import functools
import importlib
from typing import Any

from ..errors import ImportError as HybridNetImportError

__all__ = ["onnx", "onnxruntime"]


def _needed(package: str, purpose: str) -> Any:
    try:
        return importlib.import_module(package)
    except ImportError:
        raise HybridNetImportError(
            f"{purpose} needs the package '{package}'", fix="pip install hybridnet[onnx]"
        ) from None


@functools.lru_cache(maxsize=1)
def onnx() -> Any:
    """Returns the package onnx; raises ImportError with the command that installs it."""
    package = _needed("onnx", "reading and writing ONNX files")
    for part in ("backend.base", "checker", "defs", "helper", "numpy_helper", "shape_inference", "version_converter"):
        importlib.import_module(f"onnx.{part}")
    return package


@functools.lru_cache(maxsize=1)
def onnxruntime() -> Any:
    """Returns the package onnxruntime; raises ImportError with the command that installs it."""
    return _needed("onnxruntime", "running ONNX files elsewhere")

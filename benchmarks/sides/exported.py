"""PyTorch's networks as ONNX files, for the sides that read such files."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent


@contextmanager
def exported(network: str, quantized: str = "float32") -> Iterator[str]:
    """The path of the network's file, which export_onnx.py writes in a separate process, so that the caller never
    loads PyTorch. quantized: "float32", or "static" or "dynamic" for ONNX Runtime's two ways to round to bytes."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/{network}.onnx"
        command = [sys.executable, str(HERE / "export_onnx.py"), network, path, quantized]
        subprocess.run(command, check=True, stdout=sys.stderr)
        yield path

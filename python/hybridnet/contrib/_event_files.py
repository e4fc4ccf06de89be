"""Event files of TensorBoard, written by one of the packages that can."""

from __future__ import annotations

import importlib
import time
from typing import Any

from ..errors import ImportError as HybridNetImportError

__all__ = ["event_writer"]

# Packages with a SummaryWriter; MXNet's choice comes first.
_WRITERS = ("mxboard", "tensorboardX", "torch.utils.tensorboard")


class _ScalarWriter:
    """Writes scalars with the package tensorboard itself, which has no SummaryWriter."""

    def __init__(self, folder: str) -> None:
        self._event = importlib.import_module("tensorboard.compat.proto.event_pb2").Event
        self._summary = importlib.import_module("tensorboard.compat.proto.summary_pb2").Summary
        writers = importlib.import_module("tensorboard.summary.writer.event_file_writer")
        self._file = writers.EventFileWriter(folder)

    def add_scalar(self, tag: str, scalar_value: float, global_step: int) -> None:
        """Writes one value."""
        value = self._summary.Value(tag=tag, simple_value=float(scalar_value))
        summary = self._summary(value=[value])
        self._file.add_event(self._event(wall_time=time.time(), step=global_step, summary=summary))

    def flush(self) -> None:
        """Writes the values to the file."""
        self._file.flush()

    def close(self) -> None:
        """Flushes and closes the file."""
        self._file.close()


def event_writer(folder: str, owner: str) -> Any:
    """Returns an object with add_scalar(tag, value, step), flush() and close().

    Raises ImportError, which names owner, if no package that writes event files is installed.
    """
    for package in _WRITERS:
        try:
            return importlib.import_module(package).SummaryWriter(folder)
        except ImportError:
            continue
    try:
        return _ScalarWriter(folder)
    except ImportError:
        raise HybridNetImportError(
            f"{owner} needs a package that writes TensorBoard's files",
            because=f"none of {', '.join(_WRITERS)} and tensorboard can be imported",
            fix="pip install tensorboardX",
        ) from None

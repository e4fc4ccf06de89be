"""Copies the output of a process line by line, with its rank before each."""

from __future__ import annotations

import contextlib
import threading
from typing import IO

__all__ = ["Reader"]

_POLL_SECONDS = 0.02
_IDLE_SECONDS = 1.0


class Reader(threading.Thread):
    """Copies lines, with the rank before each."""

    def __init__(self, source: IO[bytes], target: IO[bytes], prefix: bytes) -> None:
        super().__init__(daemon=True)
        self._source, self._target, self._prefix = source, target, prefix
        self._writes = False
        self.start()

    def run(self) -> None:
        # If the output is closed, the processes get the same error as this one at their next line.
        with self._source, contextlib.suppress(BrokenPipeError):
            for line in iter(self._source.readline, b""):
                self._writes = True
                self._target.write(self._prefix + line if line.endswith(b"\n") else self._prefix + line + b"\n")
                self._target.flush()
                self._writes = False

    def finish(self) -> None:
        """Waits for the rest, however slow its reader is; not for a process that the program left behind."""
        idle = 0.0
        while self.is_alive() and idle < _IDLE_SECONDS:
            self.join(_POLL_SECONDS)
            idle = 0.0 if self._writes else idle + _POLL_SECONDS

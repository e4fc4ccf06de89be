"""The access log of a server: one line per request."""

from __future__ import annotations

import logging
import sys
import time
from typing import IO, Any
from urllib.parse import quote

from ..errors import FileError

__all__ = ["AccessLog"]

_MOST_OF_A_PATH = 200


class AccessLog:
    """Writes ``TIME CLIENT METHOD PATH STATUS BYTES MILLISECONDS`` for each request, separated by spaces.

    Times are UTC: ``2026-11-29T14:45:24.123Z``. Paths are percent-encoded, so that no client can write lines of its
    own. A line that cannot be written is lost, and the first loss is reported by logging; requests never fail by it.

    Parameters
    ----------
    target : str
        A file, which is extended; ``-``: standard output.

    Raises FileError if the file cannot be opened.
    """

    def __init__(self, target: str) -> None:
        self._target = target
        self._file: IO[str] = self._opened()
        self._second, self._second_text = 0, ""
        self._has_failed = False
        self._must_reopen = False  # set by a signal handler, which must not close a file that is being written

    def _opened(self) -> IO[str]:
        if self._target == "-":
            return sys.stdout
        try:
            return open(self._target, "a", encoding="utf-8", buffering=1)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise FileError(
                f"access log: cannot write '{self._target}': {reason}", fix="give --log a file, or -"
            ) from error

    def reopen(self) -> None:
        """Opens the file by its name again at the next line: programs that rotate logs rename it first."""
        self._must_reopen = self._file is not sys.stdout

    def close(self) -> None:
        """Closes the file."""
        if self._file is not sys.stdout:
            self._file.close()

    def write(self, scope: dict[str, Any], status: int, size: int, seconds: float) -> None:
        """Writes the line of a request. Never raises.

        scope: that of ASGI; size: bytes of the answer's body.
        """
        client = scope.get("client")
        path = scope.get("raw_path") or scope["path"]
        line = (
            f"{self._now()} {client[0] if client else '-'} {quote(scope['method'][:20])} "
            f"{quote(path[:_MOST_OF_A_PATH], safe='/%~')} {status} {size} {seconds * 1e3:.3f}\n"
        )
        try:
            if self._must_reopen:
                self._must_reopen = False
                old, self._file = self._file, self._opened()
                old.close()
            self._file.write(line)
            if self._file is sys.stdout:
                self._file.flush()
        except (OSError, ValueError) as error:  # ValueError: the file is closed
            self._report(error)

    def _now(self) -> str:
        now = time.time()
        second = int(now)
        if second != self._second:
            self._second, self._second_text = second, time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
        return f"{self._second_text}.{int((now - second) * 1000):03d}Z"

    def _report(self, error: Exception) -> None:
        """Reports only the first failure, so that a full disk does not flood the log of errors."""
        if not self._has_failed:
            self._has_failed = True
            logging.getLogger("hybridnet.serving").warning("lines of the access log are lost: %s", error)

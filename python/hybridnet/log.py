"""Loggers with MXNet's log format."""

from __future__ import annotations

import logging

from ._public_names import dir_of
from ._user_line import warn

__all__ = ["CRITICAL", "DEBUG", "ERROR", "INFO", "NOTSET", "WARNING", "getLogger", "get_logger"]

CRITICAL = logging.CRITICAL
ERROR = logging.ERROR
WARNING = logging.WARNING
INFO = logging.INFO
DEBUG = logging.DEBUG
NOTSET = logging.NOTSET

_LETTERS = {CRITICAL: "C", ERROR: "E", WARNING: "W", INFO: "I", DEBUG: "D"}
_PLACE = "%(asctime)s %(process)d %(pathname)s:%(funcName)s:%(lineno)d]"


class _Colored(logging.Formatter):
    """Formats the level (a letter), time, process and place in color, followed by the message."""

    def __init__(self) -> None:
        super().__init__(datefmt="%m%d %H:%M:%S")

    def format(self, record: logging.LogRecord) -> str:
        color = 31 if record.levelno >= WARNING else 32 if record.levelno >= INFO else 34
        letter = _LETTERS.get(record.levelno, "U")
        self._style._fmt = f"\x1b[{color}m{letter}{_PLACE}\x1b[0m %(message)s"
        return super().format(record)


def get_logger(
    name: str | None = None, filename: str | None = None, filemode: str | None = None, level: int = WARNING
) -> logging.Logger:
    """Returns the logger with that name, which writes to a file (by default appending) or, in color, to stderr.

    Settings apply on the first call for a name only. Without a name: the unchanged root logger.
    """
    logger = logging.getLogger(name)
    if name is None or getattr(logger, "_hybridnet_ready", False):
        return logger
    logger._hybridnet_ready = True  # type: ignore[attr-defined]  # marked on the logger itself, which lives until exit
    handler: logging.Handler
    if filename:
        handler = logging.FileHandler(filename, filemode or "a")
    else:
        handler = logging.StreamHandler()
        handler.setFormatter(_Colored())
    logger.addHandler(handler)
    logger.setLevel(level)
    return logger


def getLogger(
    name: str | None = None, filename: str | None = None, filemode: str | None = None, level: int = WARNING
) -> logging.Logger:
    """Deprecated: use get_logger."""
    warn("getLogger is deprecated, use get_logger instead", DeprecationWarning)
    return get_logger(name, filename, filemode, level)


__dir__ = dir_of(__name__)

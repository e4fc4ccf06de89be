"""The user's line: the innermost frame outside of the package. Warnings are attributed to it."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path
from types import FrameType

__all__ = ["is_own_file", "user_line", "warn"]

_OWN_FILES = str(Path(__file__).resolve().parent) + os.sep


def is_own_file(name: str) -> bool:
    """Whether a file of this name belongs to the package."""
    return name.startswith(_OWN_FILES)


def user_line() -> str:
    """Returns the user's line as FILE:LINE, without folders; "" if there is none."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_own_file(frame.f_code.co_filename):
        frame = frame.f_back
    return "" if frame is None else f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"


def warn(text: str, category: type[Warning] = UserWarning) -> None:
    """Issues a warning for the user's line, whatever the number of the package's frames in between."""
    frame: FrameType | None = sys._getframe(1)
    level = 2  # the caller
    while frame is not None and is_own_file(frame.f_code.co_filename):
        frame = frame.f_back
        level += 1
    warnings.warn(text, category, stacklevel=level)

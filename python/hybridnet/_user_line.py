"""The user's line: the innermost frame outside of the package. Warnings are attributed to it; errors in one line."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path
from types import FrameType

__all__ = ["in_one_line", "is_own_file", "user_line", "warn"]

_OWN_FILES = str(Path(__file__).resolve().parent) + os.sep


def is_own_file(name: str) -> bool:
    """Whether a file of this name belongs to the package."""
    return name.startswith(_OWN_FILES)


def _user_frame() -> tuple[FrameType | None, int]:
    """Returns the user's frame, and its level above the caller of this function's caller, which has level 1."""
    frame: FrameType | None = sys._getframe(2)
    level = 1
    while frame is not None and is_own_file(frame.f_code.co_filename):
        frame = frame.f_back
        level += 1
    return frame, level


def user_line() -> str:
    """Returns the user's line as FILE:LINE, without folders; "" if there is none."""
    frame, _ = _user_frame()
    return "" if frame is None else f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"


def warn(text: str, category: type[Warning] = UserWarning) -> None:
    """Issues a warning for the user's line, whatever the number of the package's frames in between."""
    _, level = _user_frame()
    warnings.warn(text, category, stacklevel=level + 1)


def in_one_line(error: BaseException) -> str:
    """Returns the class of an error and the first line of its text."""
    text = str(error).partition("\n")[0]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__

"""mx.debug.print: prints in imperative mode and in graphs."""

from __future__ import annotations

from ._public_names import dir_of
from .autograph._effects import debug_print as print

__all__ = ["print"]

__dir__ = dir_of(__name__)

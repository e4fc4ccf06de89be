"""mx.debug.print: prints in imperative mode and in graphs."""

from __future__ import annotations

from .autograph._effects import debug_print as print

__all__ = ["print"]

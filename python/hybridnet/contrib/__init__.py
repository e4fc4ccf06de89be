"""Contributed parts: control flow of arrays and graphs (foreach, while_loop, cond)."""

from __future__ import annotations

from . import control_flow
from .control_flow import cond, foreach, while_loop

__all__ = ["cond", "control_flow", "foreach", "while_loop"]

"""Errors of imports and exports, which name the ONNX node."""

from __future__ import annotations

from typing import Any

from ..errors import UnsupportedError
from ..errors import ValueError as HybridNetValueError

__all__ = ["described", "refuse", "wrong"]


def described(node: Any) -> str:
    """The words for an ONNX node in messages: its operator, name and first output."""
    domain = f"{node.domain}." if node.domain else ""
    made = next((name for name in node.output if name), "")
    name = f" '{node.name}'" if node.name else ""
    return f"ONNX operator {domain}{node.op_type}{name}" + (f", which makes '{made}'" if made else "")


def refuse(message: str, *, because: str | None = None, fix: str | None = None, node: Any = None) -> Exception:
    """An UnsupportedError for something that the file holds and HybridNet does not do."""
    where = f"{described(node)}: " if node is not None else ""
    return UnsupportedError(where + message, because=because, fix=fix)


def wrong(message: str, *, because: str | None = None, fix: str | None = None, node: Any = None) -> Exception:
    """A ValueError for a file that breaks ONNX's own rules, or for a wrong argument."""
    where = f"{described(node)}: " if node is not None else ""
    return HybridNetValueError(where + message, because=because, fix=fix)

"""Errors of exports, which name the operator, the node, the block and the line that made it."""

from __future__ import annotations

from typing import Any

from ..errors import UnsupportedError

__all__ = ["NotForOpenSizes", "does_not_follow", "refuse_use"]


class NotForOpenSizes(UnsupportedError):
    """The graph cannot be exported for open sizes: an expression of a size, or a decision, is not known."""


def does_not_follow(name: str, value: Any) -> NotForOpenSizes:
    """The error for a size that differs between trials where the file needs one number or one decision."""
    return NotForOpenSizes(
        f"{name} depends on the sizes of inputs",
        because=f"it is {value!r} for the sizes that were tried",
        fix="fix the size: dynamic_input_shapes with a number for that axis, or dynamic=False",
    )


def refuse_use(node: Any, message: str, *, because: str | None = None, fix: str | None = None) -> UnsupportedError:
    """The error for a use of an operator that ONNX cannot express."""
    block = f", block '{node.block}'" if node.block else ""
    return UnsupportedError(
        f"operator '{node.op}' (node '{node.name}'{block}): {message}",
        because=because,
        fix=fix,
        op=node.op,
        node=node.name,
        block=node.block or None,
        where=node.where or None,
    )

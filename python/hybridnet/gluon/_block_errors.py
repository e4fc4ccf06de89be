"""Adds the path of the running block to an error that passes through it: "block 'net0.body.0'"."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ..errors import DeferredInitializationError, _with_fix

if TYPE_CHECKING:
    from .block import Block

_OPERATOR = re.compile(r"^(operator '[^']*')( \((?P<inside>[^)]*)\))?")


def _child_name(parent: Block, child: Block) -> str:
    for name, block in parent._children.items():
        if block is child:
            return name
    return child.name


def _with_path(text: str, path: str) -> str:
    """Inserts the path after the operator's name, or else on a line of its own."""
    found = _OPERATOR.match(text)
    if not found:
        return f"{text}\n  Block: {path}"
    inside = f"{found['inside']}, " if found["inside"] else ""
    return f"{found[1]} ({inside}block '{path}'){text[found.end() :]}"


def _name_container(error: Exception, parent: Block, child: Block) -> None:
    """Completes the error of a layer without values, if the parent only has it in a list: no method sees it there."""
    text = error._text_without_block  # type: ignore[attr-defined]
    if "has not been initialized" not in text or child in parent._children.values():
        return
    from ._wrong_uses import unregistered_fix

    if fix := unregistered_fix(parent, child):
        error.fix = fix  # type: ignore[attr-defined]
        error._text_without_block = _with_fix(text, fix)  # type: ignore[attr-defined]


def add_block_path(error: Exception, block: Block) -> None:
    """Called for each block that the error passes through, innermost first.

    An error that already has a path from a traced graph keeps it.
    """
    if isinstance(error.__context__, DeferredInitializationError):
        error.__suppress_context__ = True  # handled: the layer tried to learn its sizes from this batch
    inner = getattr(error, "_inner_block", None)
    if inner is None:
        if getattr(error, "block", None) or not error.args or not isinstance(error.args[0], str):
            return
        error._text_without_block = error.args[0]  # type: ignore[attr-defined]
        error._path_below = ""  # type: ignore[attr-defined]
    elif inner is not block:
        _name_container(error, block, inner)
        error._path_below = f".{_child_name(block, inner)}{error._path_below}"  # type: ignore[attr-defined]
    error._inner_block = block  # type: ignore[attr-defined]
    path = block.name + error._path_below  # type: ignore[attr-defined]
    error.block = path  # type: ignore[attr-defined]
    error.args = (_with_path(error._text_without_block, path), *error.args[1:])  # type: ignore[attr-defined]

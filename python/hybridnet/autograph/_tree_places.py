"""Lines of new parts of a syntax tree."""

from __future__ import annotations

import ast
from typing import Any

__all__ = ["at_place", "without_places"]

_PLACE = ("lineno", "end_lineno", "col_offset", "end_col_offset")


def at_place(node: Any, like: Any, end: bool = False) -> Any:
    """Gives node, and its parts that have no line, the place of another node; end: its last line. Returns node."""
    line = (like.end_lineno or like.lineno) if end else like.lineno
    # A call has the line at which its function's name ends: that of a statement must not be the end of its body.
    is_block = hasattr(like, "body") and isinstance(like, ast.stmt)
    last = line if end or is_block else like.end_lineno
    last_column = like.col_offset if end or is_block else like.end_col_offset
    pending = [node]
    while pending:
        part = pending.pop()
        if "lineno" in part._attributes:
            if hasattr(part, "lineno"):
                continue
            part.lineno, part.end_lineno = line, last
            part.col_offset, part.end_col_offset = like.col_offset, last_column
        pending.extend(ast.iter_child_nodes(part))
    return node


def without_places(node: Any) -> Any:
    """Removes the lines of node and its parts, which come from a template. Returns node."""
    for part in ast.walk(node):
        for name in _PLACE:
            if hasattr(part, name):
                delattr(part, name)
    return node

"""Converts attributes of samples, texts of the graph format, to Python values."""

from __future__ import annotations

import ast
from typing import Any


def value(attrs: dict[str, str], name: str, default: Any = None) -> Any:
    """Returns the attribute as a number, bool, None or tuple if its text is one, else as text; `default` if missing."""
    if name not in attrs:
        return default
    try:
        return ast.literal_eval(attrs[name])
    except (ValueError, SyntaxError):
        return attrs[name]


def tuple_value(attrs: dict[str, str], name: str, default: Any = ()) -> tuple:
    """Returns the attribute as a tuple; a single number becomes a tuple of one element."""
    found = value(attrs, name, default)
    return tuple(found) if isinstance(found, (tuple, list)) else (found,)

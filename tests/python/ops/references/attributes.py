"""Attributes of a sample, as text in the graph format, read as Python values."""

from __future__ import annotations

import ast
from typing import Any


def value(attrs: dict[str, str], name: str, default: Any = None) -> Any:
    """The attribute as a number, bool, None or tuple where its text is one, else the text; `default` if not given."""
    if name not in attrs:
        return default
    try:
        return ast.literal_eval(attrs[name])
    except (ValueError, SyntaxError):
        return attrs[name]


def tuple_value(attrs: dict[str, str], name: str, default: Any = ()) -> tuple:
    """The attribute as a tuple; a single number becomes a tuple of one."""
    found = value(attrs, name, default)
    return tuple(found) if isinstance(found, (tuple, list)) else (found,)

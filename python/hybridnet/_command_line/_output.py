"""Output of commands: a table for humans, one JSON object for programs."""

from __future__ import annotations

import itertools
import json
import math
import sys
from collections.abc import Collection, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np

__all__ = ["answer", "bytes_text", "count_text", "error_text", "progress", "table"]

_T = TypeVar("_T")


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # JSON has no NaN and no infinity
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)


def answer(options: Any, values: dict[str, Any], text: str) -> None:
    """Prints values as JSON with --json, else text."""
    print(json.dumps(_plain(values), indent=2) if options.json else text)


def error_text(error: Exception) -> str:
    """Returns the text of an error without the place of the call, which is the start of the command."""
    lines = str(error).split("\n")
    return "\n".join(line for line in lines if not line.startswith("  At: "))


def progress(options: Any, items: Collection[_T], what: str) -> Iterable[_T]:
    """Yields the items with a progress bar, if tqdm is installed and stderr is a terminal, not with --json."""
    if options.json or not sys.stderr.isatty():
        return items
    try:
        from tqdm import tqdm
    except ImportError:
        return items
    bar: Iterable[_T] = tqdm(items, desc=what, leave=False, file=sys.stderr)
    return bar


def table(rows: Iterable[Sequence[Any]], indent: str = "  ") -> str:
    """Formats rows as columns, with numbers right-aligned."""
    cells = [[str(cell) for cell in row] for row in rows]
    if not cells:
        return indent + "(none)"
    columns = list(itertools.zip_longest(*cells, fillvalue=""))
    widths = [max(map(len, column)) for column in columns]
    numbers = [all(cell[:1].isdigit() or not cell for cell in column) for column in columns]
    lines = []
    for row in cells:
        fields = [c.rjust(w) if right else c.ljust(w) for c, w, right in zip(row, widths, numbers, strict=False)]
        lines.append((indent + "  ".join(fields)).rstrip())
    return "\n".join(lines)


def _scaled(value: float, step: int, units: Sequence[str]) -> str:
    unit = 0
    while abs(value) >= step and unit + 1 < len(units):
        value /= step
        unit += 1
    return f"{value:.4g} {units[unit]}".rstrip()


def bytes_text(count: float) -> str:
    """Formats a size, such as 97.8 MiB."""
    return _scaled(count, 1024, ("B", "KiB", "MiB", "GiB", "TiB"))


def count_text(count: float) -> str:
    """Formats a count, such as 25.56 M."""
    return _scaled(count, 1000, ("", "k", "M", "G", "T"))

"""Block.save and Block.load: parameters, with the block names at the time of saving.

``prefix-model.json`` holds, per block: its name, the names of its children, whether it is hybridized, and the same for
each child under "<class><number>".
"""

from __future__ import annotations

import itertools
import json
from collections import OrderedDict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .._files import read_text, replacing
from ..errors import FormatError
from .parameter import ParameterLoadError

if TYPE_CHECKING:
    from .block import Block

__all__ = ["read_model", "write_model"]


def _describe(block: Block, numbers: Iterator[int]) -> dict[str, Any]:
    """Returns {"<class><number>": description of block and its descendants}."""
    # "hybridized" promises a graph in MXNet's files; here the graph is traced again.
    entry: dict[str, Any] = {
        "orig_name": block.name,
        "hybridized": False,
        "active": bool(getattr(block, "_active", False)),
        "children": {child.name: name for name, child in block._children.items()},
    }
    key = f"{type(block).__name__.lower()}{next(numbers)}"
    for child in block._children.values():
        entry.update(_describe(child, numbers))
    return {key: entry}


def write_model(block: Block, prefix: str) -> None:
    """Writes prefix-model.json and prefix-model.params. Raises FileError."""
    description = json.dumps(_describe(block, itertools.count()))
    with replacing(f"{prefix}-model.json", "Block.save") as file:
        file.write(description.encode())
    block.save_parameters(f"{prefix}-model.params")


def _restore(block: Block, numbers: Iterator[int], entries: dict[str, Any], path: str) -> None:
    key = f"{type(block).__name__.lower()}{next(numbers)}"
    entry = entries.get(key)
    names = list(entry["children"].values()) if entry else []
    if entry is None or len(names) != len(block._children):
        raise ParameterLoadError(
            f"Block.load: '{path}' was written by another structure",
            because=(
                f"block {block.name} ({key}) has {len(block._children)} children, the file "
                f"{f'has {len(names)}' if entry else 'lacks it'}"
            ),
            fix="create the blocks as before save()",
        )
    for child in block._children.values():
        _restore(child, numbers, entry, path)
    block._children = OrderedDict(zip(names, block._children.values(), strict=True))
    if (entry["hybridized"] or entry.get("active")) and hasattr(block, "_active"):
        block.hybridize()


def read_model(block: Block, prefix: str) -> None:
    """Restores a model that write_model wrote. Raises FileError, FormatError, ParameterLoadError."""
    path = f"{prefix}-model.json"
    try:
        model = json.loads(read_text(path, "Block.load"))
        _restore(block, itertools.count(), model, path)
    except (json.JSONDecodeError, RecursionError, KeyError, TypeError, AttributeError) as error:
        raise FormatError(f"Block.load: '{path}' describes no model: {error}") from error
    block.load_parameters(f"{prefix}-model.params")

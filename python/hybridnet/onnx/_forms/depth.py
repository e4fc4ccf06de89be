"""Blocks of pixels as channels, and back."""

from __future__ import annotations

from typing import Any

from .._arithmetic import permute
from .._sizes import apply
from .._table import form
from .._values import Value


@form("DepthToSpace")
def depth_to_space(g: Any, node: Any, x: Value) -> Value:
    """Channels to blocks of pixels. Mode DCR is that of the operator; in CRD the channels of the result come first."""
    block = node.attr("blocksize")
    if node.attr("mode", "DCR") == "DCR":
        return g.emit("depth_to_space", [x], name=node.name, block_size=block)
    batch, channels, height, width = g.dims(x)
    channels = apply("//", channels, block * block)
    parts = g.reshape(x, [batch, channels, block, block, height, width])
    parts = permute(g, parts, (0, 1, 4, 2, 5, 3))
    return g.reshape(parts, [batch, channels, apply("*", height, block), apply("*", width, block)], node.name)


@form("SpaceToDepth")
def space_to_depth(g: Any, node: Any, x: Value) -> Value:
    """Blocks of pixels to channels: the inverse."""
    block = node.attr("blocksize")
    if node.attr("mode", "DCR") == "DCR":
        return g.emit("space_to_depth", [x], name=node.name, block_size=block)
    batch, channels, height, width = g.dims(x)
    height, width = apply("//", height, block), apply("//", width, block)
    parts = g.reshape(x, [batch, channels, height, block, width, block])
    parts = permute(g, parts, (0, 1, 3, 5, 2, 4))
    return g.reshape(parts, [batch, apply("*", channels, block * block), height, width], node.name)

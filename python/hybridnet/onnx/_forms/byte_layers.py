"""Layers whose inputs are dequantized bytes: they multiply the bytes.

Files with pairs of QuantizeLinear and DequantizeLinear around float operators (QDQ) describe networks of bytes. A layer
whose data and weights both come from DequantizeLinear sums the products of the bytes in 32 bits, which is exact, and
scales the sums. Operators that only move elements move the bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._arithmetic import calculate
from .._byte_products import convolve_bytes, multiply_bytes
from .._table import on_bytes
from .._values import Value
from .._windows import windows_of
from .quantization import dequantized, is_zero
from .quantized_layers import of_channels, scalar


@dataclass
class _Bytes:
    """The inputs of a DequantizeLinear: value = (bytes - zero) * scale. axis: of the scales; None: there is one."""

    bytes: Value
    scale: Value
    zero: Value | None
    axis: int | None
    node: Any

    @property
    def is_whole(self) -> bool:
        """Whether all elements have one scale."""
        return self.axis is None


def _bytes_of(g: Any, value: Value | None) -> _Bytes | None:
    """The bytes that a value was dequantized from; None: there are none, or their scales are those of blocks."""
    origin = None if value is None else g.origin(value)
    if value is None or origin is None or origin[0].op_type != "DequantizeLinear":
        return None
    node, inputs = origin
    data, scale, zero = [*inputs, None][:3]
    if node.attr("block_size", 0) or scale.ndim > 1 or value.dtype != "float32":
        return None
    one = scale.ndim == 0 or scale.fixed(0) == 1
    return _Bytes(data, scale, zero, None if one else node.attr("axis", 1) % data.ndim, node)


def _pair(g: Any, data: Value, weight: Value, axis: int) -> tuple[_Bytes, _Bytes] | None:
    """Bytes of the data and the weights of a layer, whose scales may differ along `axis`, that of its outputs."""
    x, w = _bytes_of(g, data), _bytes_of(g, weight)
    if x is None or w is None or not x.is_whole or w.axis not in (None, axis):
        return None
    if x.bytes.dtype not in ("int8", "uint8") or w.bytes.dtype not in ("int8", "uint8") or not w.bytes.is_const:
        return None
    return x, w


def _steps(g: Any, x: _Bytes, w: _Bytes) -> Value:
    """The scale of the sums."""
    return calculate(g, "*", scalar(g, x.scale), scalar(g, w.scale))


def _whole_bias(g: Any, bias: Value | None, scale: Value) -> Value | None:
    """The 32-bit integers that a bias was dequantized from, if their scale is that of the sums."""
    found = _bytes_of(g, bias)
    if found is None or found.bytes.dtype != "int32" or found.bytes.element or not is_zero(found.zero):
        return None
    if scale.const is None or found.scale.const is None:
        return None
    same = np.allclose(found.scale.const.reshape(-1), scale.const.reshape(-1), rtol=1e-5, atol=0)
    return found.bytes if same else None


@on_bytes("Conv")
def conv(g: Any, node: Any, x: Value, weight: Value, bias: Value | None = None) -> Value | None:
    """A convolution of bytes; the scales may differ per output channel."""
    pair = _pair(g, x, weight, 0)
    if pair is None:
        return None
    data, kernel = pair
    sums = convolve_bytes(g, node, data.bytes, data.zero, kernel.bytes, kernel.zero)
    scale = _steps(g, data, kernel)
    whole = _whole_bias(g, bias, scale)
    if whole is not None:
        sums = calculate(g, "+", sums, of_channels(g, whole, x.ndim))
    made = calculate(g, "*", g.cast(sums, "float32"), of_channels(g, scale, x.ndim), node.name)
    if bias is None or whole is not None:
        return made
    return calculate(g, "+", made, of_channels(g, bias, x.ndim), node.name)


@on_bytes("MatMul")
def matmul(g: Any, node: Any, a: Value, b: Value) -> Value | None:
    """A product with a constant matrix of bytes, whose scales may differ per column."""
    pair = _pair(g, a, b, 1)
    if pair is None or b.ndim != 2 or a.ndim < 2:
        return None
    left, right = pair
    sums = multiply_bytes(g, node, left.bytes, left.zero, right.bytes, right.zero)
    return calculate(g, "*", g.cast(sums, "float32"), _steps(g, left, right), node.name)


@on_bytes("Gemm")
def gemm(g: Any, node: Any, a: Value, b: Value, c: Value | None = None) -> Value | None:
    """alpha * a b + beta * c; b may be transposed."""
    flipped = bool(node.attr("transB", 0))
    pair = _pair(g, a, b, 0 if flipped else 1)
    if pair is None or node.attr("transA", 0):
        return None
    left, right = pair
    weight = right.bytes
    if flipped:
        weight = g.derived(weight, "transposed", lambda array: np.ascontiguousarray(array.T))
    alpha, beta = node.attr("alpha", 1.0), node.attr("beta", 1.0)
    scale = _steps(g, left, right)
    if alpha != 1:
        scale = calculate(g, "*", scale, alpha)
    sums = multiply_bytes(g, node, left.bytes, left.zero, weight, right.zero)
    whole = _whole_bias(g, c, scale) if beta == 1 else None
    if whole is not None:
        sums = calculate(g, "+", sums, whole)
    made = calculate(g, "*", g.cast(sums, "float32"), scale, node.name)
    if c is None or whole is not None:
        return made
    return calculate(g, "+", made, c if beta == 1 else calculate(g, "*", c, beta), node.name)


# ------------------------------------------------------------------------------------------------- moving the elements
def _moved(g: Any, x: _Bytes, made: Value, name: str) -> Value:
    """The floats of moved bytes; layers that read them find the bytes."""
    zero = None if x.zero is None else scalar(g, x.zero)
    value = dequantized(g, made, scalar(g, x.scale), zero, name)
    g.set_origin(value, x.node, [made, x.scale, x.zero])
    return value


@on_bytes("Reshape", "Flatten", "Transpose", "Squeeze", "Unsqueeze", "Slice", "Expand", "Tile", "Gather")
def move(g: Any, node: Any, x: Value, *others: Any) -> Value | None:
    """The same operator on the bytes."""
    found = _bytes_of(g, x)
    if found is None or not found.is_whole or found.bytes.is_const or found.bytes.element:
        return None
    made = g.apply(node, [found.bytes, *others])
    return _moved(g, found, made[0] if isinstance(made, tuple) else made, node.name)


@on_bytes("MaxPool")
def max_pool(g: Any, node: Any, x: Value) -> Value | None:
    """The largest bytes, by HybridNet's pooling of bytes: without dilation, and with equal padding on both sides."""
    found = _bytes_of(g, x)
    if found is None or not found.is_whole or found.bytes.element or node.num_outputs > 1 or node.attr("ceil_mode", 0):
        return None
    if found.scale.const is None or np.any(found.scale.const <= 0):
        return None
    windows = windows_of(g, node, x)
    equal = windows.before == windows.after and all(isinstance(width, int) for width in windows.before)
    if windows.is_dilated or not equal or found.bytes.dtype not in ("int8", "uint8"):
        return None
    low, high = g.shared("bytes_low", np.array([-1], np.float32)), g.shared("bytes_high", np.array([1], np.float32))
    made = g.emit(
        "_contrib_quantized_pooling",
        [found.bytes, low, high],
        name=node.name,
        kernel=tuple(windows.kernel),
        stride=tuple(windows.stride),
        pad=tuple(windows.before),
        pool_type="max",
    )
    return _moved(g, found, made[0], node.name)


__all__ = ["conv", "gemm", "matmul", "max_pool", "move"]

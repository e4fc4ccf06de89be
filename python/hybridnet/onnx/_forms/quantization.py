"""Floats to integers in steps of a scale, and back."""

from __future__ import annotations

from typing import Any

from .._arithmetic import calculate
from .._errors import refuse, wrong
from .._node import dtype_of, held_element
from .._sizes import apply
from .._table import form
from .._values import Value

# The first and the last number of each element type.
RANGES = {f"int{bits}": (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (2, 4, 8, 16)}
RANGES |= {f"uint{bits}": (0, 2**bits - 1) for bits in (2, 4, 8, 16)}


def spread(g: Any, node: Any, parameter: Value, x: Value, axis: int, block: int) -> Value:
    """A scale or zero point that broadcasts with x: of the tensor, of each slice along the axis, or of each block."""
    if parameter.ndim <= 1 and all(shape in ((), (1,)) for shape in parameter.shapes):
        return parameter if parameter.ndim == 0 else g.emit("_np_reshape", [parameter], newshape=())
    axis %= x.ndim
    if parameter.ndim == 1 and not block:
        return g.reshape(parameter, [1] * axis + [-1] + [1] * (x.ndim - axis - 1))
    if parameter.ndim != x.ndim:
        raise wrong(f"the scale has {parameter.ndim} axes, the tensor {x.ndim}", node=node.proto)
    size, blocks = g.dim(x, axis), g.dim(parameter, axis)
    if not block:  # com.microsoft and early models leave it out
        if not isinstance(size, int) or not isinstance(blocks, int):
            raise refuse("the size of the blocks is not in the file", node=node.proto)
        block = -(-size // blocks)
    repeated = g.emit("repeat", [parameter], repeats=block, axis=axis)
    if apply("*", blocks, block) == size:
        return repeated
    return g.emit("slice_axis", [repeated], axis=axis, begin=0, end=size)


def is_zero(value: Value | None) -> bool:
    """Whether a zero point is absent, or zero."""
    return value is None or (value.const is not None and not value.const.any())


def quantized(g: Any, steps: Value, zero: Value | None, element: str, name: str = "") -> Value:
    """Floats, in steps, as integers: rounded, halves to even, and saturated."""
    low, high = RANGES[element]
    steps = g.emit("_npi_around", [steps])
    if not is_zero(zero):
        assert zero is not None
        steps = calculate(g, "+", steps, g.cast(zero, steps.dtype))
    steps = g.emit("clip", [steps], a_min=low, a_max=high)
    dtype = "int32" if element.endswith("16") else "uint8" if element.startswith("u") else "int8"
    return g.cast(steps, dtype, name)


def dequantized(g: Any, x: Value, scale: Value, zero: Value | None, name: str = "") -> Value:
    """The floats that integers stand for. scale and zero broadcast with x."""
    steps = g.cast(x, "float32")
    if not is_zero(zero):
        steps = calculate(g, "-", steps, g.cast(zero, "float32"))
    return calculate(g, "*", steps, g.cast(scale, "float32"), name)


def element_of(node: Any, zero: Value | None) -> str:
    """The element type that a node quantizes to."""
    if zero is not None:
        element = zero.element or zero.dtype
    elif node.attr("output_dtype", 0):
        code = node.attr("output_dtype")
        element = held_element(code) or dtype_of(code, node.proto)
    else:
        element = "uint8"
    if element not in RANGES:
        raise refuse(f"quantization to {element} is not supported", node=node.proto)
    return str(element)


@form("QuantizeLinear")
def quantize(g: Any, node: Any, x: Value, scale: Value, zero: Value | None = None) -> Value:
    """saturate(round(x / scale) + zero); bytes that were dequantized with the same steps are these bytes."""
    element = element_of(node, zero)
    same = _undone(g, x, scale, zero, element)
    if same is not None:
        return same
    axis, block = node.attr("axis", 1), node.attr("block_size", 0)
    precision = dtype_of(node.attr("precision"), node.proto) if node.attr("precision", 0) else scale.dtype
    scale = g.cast(spread(g, node, scale, x, axis, block), precision)
    steps = calculate(g, "/", g.cast(x, precision), scale)
    if element in ("int16", "uint16"):
        steps = g.cast(steps, "float32")
    if zero is not None:
        zero = spread(g, node, zero, x, axis, block)
    return quantized(g, steps, zero, element, node.name)


@form("DequantizeLinear")
def dequantize(g: Any, node: Any, x: Value, scale: Value, zero: Value | None = None) -> Value:
    """(x - zero) * scale, in the dtype of the scale."""
    dtype = dtype_of(node.attr("output_dtype"), node.proto) if node.attr("output_dtype", 0) else scale.dtype
    axis, block = node.attr("axis", 1), node.attr("block_size", 0)
    scale = spread(g, node, scale, x, axis, block)
    if zero is not None:
        zero = spread(g, node, zero, x, axis, block)
    return g.cast(dequantized(g, x, scale, zero), dtype, node.name)


def _undone(g: Any, x: Value, scale: Value, zero: Value | None, element: str) -> Value | None:
    """The integers that x was made of, if they have these steps; None: others."""
    origin = g.origin(x)
    if origin is None or origin[0].op_type != "DequantizeLinear":
        return None
    before = [*origin[1], None][:3]
    if (before[0].element or before[0].dtype) != element:
        return None
    same_scale = (before[1] is scale and scale.ndim == 0) or _equal(before[1], scale)
    same_zero = before[2] is zero or (is_zero(before[2]) and is_zero(zero)) or _equal(before[2], zero)
    return before[0] if same_scale and same_zero else None


def _equal(one: Value | None, other: Value | None) -> bool:
    if one is None or other is None or one.const is None or other.const is None:
        return False
    return one.const.size == other.const.size == 1 and one.const.reshape(-1)[0] == other.const.reshape(-1)[0]


@form("DynamicQuantizeLinear")
def dynamic(g: Any, node: Any, x: Value) -> Any:
    """Bytes, scale and zero point for the range of x and zero; the scale of zeros is 1."""
    low = g.emit("_np_min", [x], initial=0.0)
    high = g.emit("_np_max", [x], initial=0.0)
    reach = calculate(g, "/", calculate(g, "-", high, low), 255.0)
    flat = g.emit("_npi_equal_scalar", [reach], scalar=0.0)
    scale = g.emit("_npi_where_lscalar", [flat, reach], scalar=1.0)
    zero = g.emit("clip", [calculate(g, "/", g.emit("negative", [low]), scale)], a_min=0, a_max=255)
    zero = g.emit("_npi_around", [zero])
    made = quantized(g, calculate(g, "/", x, scale), zero, "uint8", node.name)
    return made, scale, g.cast(zero, "uint8")


__all__ = ["RANGES", "dequantize", "dequantized", "dynamic", "element_of", "is_zero", "quantize", "quantized", "spread"]

"""Products of bytes with zero points, as exact 32-bit sums.

HybridNet's kernels multiply int8 or uint8 data with int8 weights that have no zero points. The other cases are written
with them: sum (x - zx)(w - zw) = sum x v + (sum x) d - zx sum (w - zw), where the weights w - zw are v + d, and v fits
into int8.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ._arithmetic import calculate
from ._values import Value
from ._windows import Windows, pad, pad_unequal, windows_of

__all__ = ["convolve_bytes", "multiply_bytes", "signed_weights"]

_BYTES = ("int8", "uint8")


def signed_weights(weight: np.ndarray, zero: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """v as int8, and d as int32 in the shape of zero (or one number), so that v + d = weight - zero."""
    zero = np.zeros((), np.int32) if zero is None else zero.astype(np.int32)
    whole = weight.astype(np.int32) - zero
    if whole.size == 0 or (whole.min() >= -128 and whole.max() <= 127):
        return whole.astype(np.int8), np.zeros((), np.int32)
    shift = 128 if weight.dtype == np.uint8 else 0
    return (weight.astype(np.int32) - shift).astype(np.int8), shift - zero


def _ranges(g: Any) -> list[Value]:
    """The ranges that the operators ask for. They do not change the sums."""
    low, high = g.shared("bytes_low", np.array([-1], np.float32)), g.shared("bytes_high", np.array([1], np.float32))
    return [low, high, low, high]


def _spread(zero: np.ndarray | None, axis: int, ndim: int) -> np.ndarray | None:
    """One number, or one per slice of the axis."""
    if zero is None or zero.size == 1:
        return None if zero is None else zero.reshape(())
    shape = [1] * ndim
    shape[axis] = -1
    return zero.reshape(shape)


def _number(value: Value | None) -> int | None:
    """A zero point that is one known number; None: it is not."""
    if value is None:
        return 0
    return int(value.const.reshape(-1)[0]) if value.const is not None and value.const.size == 1 else None


def _scalar(g: Any, value: Value) -> Value:
    made = g.cast(value, "int32")
    return made if made.ndim == 0 else g.emit("_np_reshape", [made], newshape=())


def _kept(g: Any, value: Value, kind: str, make: Callable[[np.ndarray], np.ndarray], zero: Value | None) -> Value:
    """A constant from a weight and its zero points, which are constants."""
    zeros = b"" if zero is None else _elements(zero).tobytes()
    return g.derived(value, f"{kind}_{zlib.crc32(zeros):x}" if any(zeros) else kind, make)


def _elements(value: Value) -> np.ndarray:
    """The elements of a constant."""
    assert value.const is not None
    return value.const


# ------------------------------------------------------------------------------------------------------- convolutions
def convolve_bytes(g: Any, node: Any, x: Value, zero: Value | None, weight: Value, weight_zero: Value | None) -> Value:
    """The sums of a convolution, int32; around the image lies its zero point."""
    windows = windows_of(g, node, x, g.dims(weight)[2:])
    if x.dtype not in _BYTES or weight.const is None or (weight_zero is not None and weight_zero.const is None):
        return _convolve_floats(g, node, x, zero, weight, weight_zero, windows)
    layer = _ByteConvolution(g, node, windows, weight, weight_zero)
    known = _number(zero)
    if known is not None and x.dtype == "int8" and any(size != 1 for size in windows.kernel):
        x, known = _as_unsigned(g, x), known + 128
    if known:
        image, layer.width = pad(g, x, windows.before, windows.after, float(known)), (0,) * len(windows.before)
    else:
        image, layer.width = pad_unequal(g, x, windows)
    sums = layer.sums(image)
    if known == 0:
        return sums
    if (
        zero is not None and known is None and (any(layer.width) or image is not x)
    ):  # fewer weights meet the image at its borders
        ones = g.emit("ones_like", [g.emit("slice_axis", [x], axis=0, begin=0, end=1)])
        ones, _ = pad_unequal(g, ones, windows)
        return calculate(g, "-", sums, calculate(g, "*", layer.sums(ones), _scalar(g, zero)))
    return calculate(g, "-", sums, layer.sums_of_weights(known, zero))


def _as_unsigned(g: Any, x: Value) -> Value:
    """int8 data plus 128, as uint8: windows of several pixels have a fast kernel for unsigned data only."""
    made: Value = g.emit("_npi_bitwise_xor_scalar", [g.cast(x, "uint8")], scalar=128)
    return made


class _ByteConvolution:
    """A convolution with known weights. `width` is the padding with zeros that it adds."""

    width: tuple[int, ...] = ()

    def __init__(self, g: Any, node: Any, windows: Windows, weight: Value, weight_zero: Value | None) -> None:
        self._g, self._node, self._windows, self._groups = g, node, windows, node.attr("group", 1)
        self._weight, self._weight_zero = weight, weight_zero
        zero = _spread(None if weight_zero is None else weight_zero.const, 0, weight.ndim)
        array = _elements(weight)
        signed, self._rest = signed_weights(array, zero)
        self._signed = _kept(g, weight, "signed", lambda _: signed, weight_zero)
        self._whole = array.astype(np.int32) - (0 if zero is None else zero.astype(np.int32))

    def sums(self, x: Value) -> Value:
        """sum x (w - zw)."""
        g, array = self._g, _elements(self._weight)
        made = self._emit(x, self._signed)
        if not self._rest.any():
            return made
        ones = np.ones((self._groups, *array.shape[1:]), np.int8)
        boxes = self._emit(x, g.constant(ones, f"{self._weight.name}_ones"))
        boxes = g.emit("repeat", [boxes], repeats=array.shape[0] // self._groups, axis=1)
        factor = self._rest.reshape(-1, *[1] * (x.ndim - 2)) if self._rest.ndim else self._rest
        return calculate(g, "+", made, calculate(g, "*", boxes, g.constant(factor, f"{self._weight.name}_rest")))

    def sums_of_weights(self, known: int | None, zero: Value | None) -> Value:
        """zx sum (w - zw), per output channel."""
        g, weight = self._g, self._weight
        sums = self._whole.sum(axis=tuple(range(1, weight.ndim)), dtype=np.int32)
        sums = sums.reshape(1, -1, *[1] * (weight.ndim - 2))
        if known is not None:
            return _kept(g, weight, f"sums{known}", lambda _: sums * np.int32(known), self._weight_zero)
        assert zero is not None
        return calculate(g, "*", _kept(g, weight, "sums", lambda _: sums, self._weight_zero), _scalar(g, zero))

    def _emit(self, x: Value, weight: Value) -> Value:
        g, windows = self._g, self._windows
        made = g.emit(
            "_contrib_quantized_conv",
            [x, weight, *_ranges(g)],
            name=self._node.name,
            kernel=tuple(windows.kernel),
            stride=tuple(windows.stride),
            dilate=tuple(windows.dilate),
            pad=self.width,
            num_filter=weight.shape[0],
            num_group=self._groups,
            no_bias=True,
        )
        return made[0]


def _convolve_floats(
    g: Any,
    node: Any,
    x: Value,
    zero: Value | None,
    weight: Value,
    weight_zero: Value | None,
    windows: Windows,
) -> Value:
    dtype = _exact_dtype([weight.fixed(axis) for axis in range(1, weight.ndim)])
    x = _without(g, x, zero, dtype)
    if weight_zero is not None and weight_zero.ndim == 1:
        weight_zero = g.reshape(weight_zero, [-1, *[1] * (weight.ndim - 1)])
    weight = _without(g, weight, weight_zero, dtype)
    x, width = pad_unequal(g, x, windows)
    made = g.emit(
        "Convolution",
        [x, weight],
        name=node.name,
        kernel=tuple(windows.kernel),
        stride=tuple(windows.stride),
        dilate=tuple(windows.dilate),
        pad=width,
        num_filter=g.dim(weight, 0),
        num_group=node.attr("group", 1),
        no_bias=True,
    )
    return g.cast(made, "int32")


def _exact_dtype(sizes: Sequence[int | None]) -> str:
    """A dtype that holds sums of so many products of bytes exactly."""
    known = [size for size in sizes if size is not None]
    return "float32" if len(known) == len(sizes) and math.prod(known) * 255 * 255 < 2**24 else "float64"


def _without(g: Any, x: Value, zero: Value | None, dtype: str) -> Value:
    x = g.cast(x, dtype)
    if zero is None or (zero.const is not None and not zero.const.any()):
        return x
    if zero.ndim == 1 and zero.fixed(0) == 1:
        zero = g.emit("_np_reshape", [zero], newshape=())
    return calculate(g, "-", x, g.cast(zero, dtype))


# ------------------------------------------------------------------------------------------------- products of matrices
def multiply_bytes(g: Any, node: Any, a: Value, zero: Value | None, b: Value, b_zero: Value | None) -> Value:
    """The sums of a product of matrices, int32. Zero points: one, one per row of a, one per column of b."""
    zero = _per_row(g, a, zero)
    const = b.const is not None and b.ndim == 2 and (b_zero is None or b_zero.const is not None)
    if a.dtype not in _BYTES or not const or a.ndim < 2 or 0 in b.shape:
        return _multiply_floats(g, node, a, zero, b, b_zero)
    bz = _spread(None if b_zero is None else b_zero.const, 0, 1)
    array = _elements(b)
    signed, rest = signed_weights(array, bz)
    weight = _kept(g, b, "signed", lambda _: np.ascontiguousarray(signed.T), b_zero)
    sums = g.emit(
        "_contrib_quantized_fully_connected",
        [a, weight, *_ranges(g)],
        name=node.name,
        num_hidden=weight.shape[0],
        no_bias=True,
        flatten=False,
    )[0]
    if rest.any():
        rows = g.emit("_np_sum", [g.cast(a, "int32")], axis=-1, keepdims=True, dtype="int32")
        factor = g.constant(rest, f"{b.name}_rest")
        sums = calculate(g, "+", sums, calculate(g, "*", rows, factor))
    if zero is None or (zero.const is not None and not zero.const.any()):
        return sums
    columns = (array.astype(np.int32) - (0 if bz is None else bz.astype(np.int32))).sum(axis=0, dtype=np.int32)
    column = _kept(g, b, "sums", lambda _: columns, b_zero)
    return calculate(g, "-", sums, calculate(g, "*", column, g.cast(zero, "int32")))


def _per_row(g: Any, a: Value, zero: Value | None) -> Value | None:
    """A zero point, or one per row as a column."""
    if zero is None or zero.ndim != 1:
        return zero
    return g.emit("_np_reshape", [zero], newshape=() if zero.fixed(0) == 1 else (-1, 1))


def _multiply_floats(g: Any, node: Any, a: Value, zero: Value | None, b: Value, b_zero: Value | None) -> Value:
    of_bytes = a.dtype in _BYTES and b.dtype in _BYTES
    dtype = _exact_dtype([a.fixed(-1)] if a.ndim else []) if of_bytes else "float64"
    made = g.emit("_npi_matmul", [_without(g, a, zero, dtype), _without(g, b, b_zero, dtype)], name=node.name)
    return g.cast(made, "int32")

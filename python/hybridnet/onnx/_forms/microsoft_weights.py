"""Layers of ONNX Runtime's domain whose weights are packed into bytes: the floats are unpacked by the importer."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._errors import refuse
from .._standard import renamed, standard
from .._table import form
from .._values import Value
from .microsoft_norms import embed_layer_norm
from .quantization import dequantized
from .quantized_layers import scalar

_DOMAIN = "com.microsoft"


def _constant(node: Any, value: Value, name: str) -> np.ndarray:
    if value.const is None:
        raise refuse(f"{name} must be a constant", because="it is unpacked while the file is imported", node=node.proto)
    array: np.ndarray = value.const
    return array


def unpacked(array: np.ndarray, bits: int) -> np.ndarray:
    """Numbers of some bits each from the bytes of the last axis, the lowest bits first."""
    if bits == 8:
        return array
    flags = np.unpackbits(array.view(np.uint8), axis=-1, bitorder="little")
    count = flags.shape[-1] // bits
    groups = flags[..., : count * bits].reshape(*array.shape[:-1], count, bits)
    return (groups << np.arange(bits, dtype=np.uint8)).sum(axis=-1, dtype=np.uint8)


@form("MatMulNBits", domain=_DOMAIN)
def matmul_nbits(
    g: Any,
    node: Any,
    a: Value,
    b: Value,
    scales: Value,
    zeros: Value | None = None,
    order: Value | None = None,
    bias: Value | None = None,
) -> Value:
    """A product with a matrix whose blocks of rows have a scale and a zero point each."""
    if node.attr("weight_prepacked", 0):
        raise refuse("prepacked weights are not supported", because="their layout is that of a device", node=node.proto)
    weight = _matrix(node, b, scales, zeros, order)
    dense = g.constant(weight.astype(_constant(node, scales, "scales").dtype), f"{b.name}_floats")
    dense = g.cast(dense, a.dtype)
    inputs = [a, dense, *([] if bias is None else [bias])]
    return g.emit(
        "FullyConnected",
        inputs,
        name=node.name,
        num_hidden=node.attr("N"),
        no_bias=bias is None,
        flatten=False,
    )


def _matrix(node: Any, b: Value, scales: Value, zeros: Value | None, order: Value | None) -> np.ndarray:
    """The floats (N, K)."""
    rows, columns, bits, block = (node.attr(name) for name in ("N", "K", "bits", "block_size"))
    bits = 4 if bits is None else bits
    blocks = -(-columns // block)
    packed = _constant(node, b, "B").reshape(rows, blocks, -1)
    steps = unpacked(packed, bits)[..., :block].astype(np.float32)
    factors = _constant(node, scales, "scales").astype(np.float32).reshape(rows, blocks, 1)
    zero = np.float32(2 ** (bits - 1)) if zeros is None else _zeros(node, zeros, rows, blocks, bits)
    made = ((steps - zero) * factors).reshape(rows, -1)[:, :columns]
    if order is None:
        return made
    # Row k of the weights has the scale of block order[k], in place of that of k // block.
    group = _constant(node, order, "g_idx").reshape(-1)[:columns]
    plain = steps.reshape(rows, -1)[:, :columns]
    offsets = np.broadcast_to(zero, (rows, blocks, 1))[:, group, 0]
    return (plain - offsets) * factors[:, group, 0]


def _zeros(node: Any, zeros: Value, rows: int, blocks: int, bits: int) -> np.ndarray:
    array = _constant(node, zeros, "zero_points")
    if array.dtype == np.uint8:
        array = unpacked(array.reshape(rows, -1), bits)[:, :blocks]
    return array.astype(np.float32).reshape(rows, blocks, 1)


@form("GatherBlockQuantized", domain=_DOMAIN)
def gather_block_quantized(
    g: Any, node: Any, data: Value, indices: Value, scales: Value, zeros: Value | None = None
) -> Value:
    """Slices of a tensor whose blocks have a scale and a zero point each."""
    array = _constant(node, data, "data")
    bits = int(data.element[-1]) if data.element else node.attr("bits", 4)
    packed = array.dtype == np.uint8 and not data.element
    steps = unpacked(array, bits) if packed else array
    axis = node.attr("quantize_axis", 1) % steps.ndim
    size = steps.shape[axis]
    factors = _spread(_constant(node, scales, "scales"), axis, node.attr("block_size", 128), size)
    zero: Any = 2 ** (bits - 1) if packed else 0
    if zeros is not None:
        zero = _constant(node, zeros, "zero_points")
        zero = unpacked(zero, bits) if packed else zero
        zero = _spread(zero, axis, node.attr("block_size", 128), size).astype(np.float32)
    table = ((steps.astype(np.float32) - zero) * factors.astype(np.float32)).astype(factors.dtype)
    return standard(
        g, "Gather", [g.constant(table, f"{data.name}_floats"), indices], node.name, axis=node.attr("gather_axis", 0)
    )


def _spread(array: np.ndarray, axis: int, block: int, size: int) -> np.ndarray:
    return np.take(np.repeat(array, block, axis=axis), range(size), axis=axis)


@form("DynamicQuantizeLSTM", domain=_DOMAIN)
def dynamic_quantize_lstm(
    g: Any,
    node: Any,
    x: Value,
    weights: Value,
    recurrent: Value,
    bias: Value | None,
    lengths: Value | None,
    first_h: Value | None,
    first_c: Value | None,
    peepholes: Value | None,
    *steps: Value,
) -> Any:
    """An LSTM with the floats that the weights stand for. ONNX Runtime rounds its input to bytes, this one does not."""
    w_scale, w_zero, r_scale, r_zero = steps
    w = _transposed_floats(g, weights, w_scale, w_zero)
    r = _transposed_floats(g, recurrent, r_scale, r_zero)
    inputs = [x, w, r, bias, lengths, first_h, first_c, peepholes]
    return g.apply(renamed(g, node, "LSTM", version=14), inputs)


def _transposed_floats(g: Any, x: Value, scale: Value, zero: Value) -> Value:
    """(directions, inputs, gates) as floats (directions, gates, inputs); one scale per direction, or per gate."""

    def spread(value: Value) -> Value:
        return g.reshape(value, [*g.dims(value), *[1] * (3 - value.ndim)] if value.ndim == 1 else _middle(g, value))

    made = dequantized(g, x, spread(scale), spread(zero))
    return g.emit("transpose", [made], axes=(0, 2, 1))


def _middle(g: Any, value: Value) -> list[Any]:
    return [g.dim(value, 0), 1, g.dim(value, 1)]


def _whole(g: Any, table: Value, scale: Value, zero: Value) -> Value:
    return dequantized(g, table, scalar(g, scale), scalar(g, zero))


@form("QEmbedLayerNormalization", domain=_DOMAIN)
def qembed_layer_norm(g: Any, node: Any, words: Value, segments: Value | None, *inputs: Value | None) -> Any:
    """EmbedLayerNormalization of the floats that its tables stand for."""
    tables, mask, scales, zeros = inputs[:5], inputs[5], inputs[6:11], inputs[11:16]
    floats = [
        None if table is None or scale is None or zero is None else _whole(g, table, scale, zero)
        for table, scale, zero in zip(tables, scales, zeros, strict=True)
    ]
    return embed_layer_norm(g, node, words, segments, *floats, mask)


__all__ = [
    "dynamic_quantize_lstm",
    "gather_block_quantized",
    "matmul_nbits",
    "qembed_layer_norm",
    "unpacked",
]

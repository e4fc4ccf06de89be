"""Quantized operators: bytes with a range of floats. Zero is byte 0, so all zero points are 0.

A float is byte * reach / steps, with reach = max(|min|, |max|): QuantizeLinear and DequantizeLinear with that scale.
Products have 127 and 255 steps, other operators half a step more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._export_table import export_form, no_form
from .._export_values import Spec, Tensor
from .convolutions import channels_first, channels_last, over_axes, pooled
from .indices import gather, in_range

_HALF_MORE = {"int8": 127.5, "uint8": 255.5}
_WHOLE = {"int8": 127.0, "uint8": 255.0}
_OF_INT32 = 2.0**31


def known_number(g: Any, x: Tensor) -> Tensor:
    """The end of a range, as a constant if it is a parameter: ranges are not trained."""
    return g.const(x.parameter) if x.parameter is not None else x


def reach_of(g: Any, low: Any, high: Any) -> Any:
    """max(|low|, |high|), shape (1,)."""
    if not isinstance(low, Tensor):
        return g.const([max(abs(low), abs(high))], "float32")
    low, high = known_number(g, low), known_number(g, high)
    return g.emit("Max", g.emit("Abs", low), g.emit("Abs", high))


def step_of(g: Any, reach: Tensor, steps: float) -> Tensor:
    """The float of one step, shape ()."""
    return g.reshape(g.emit("Mul", reach, 1 / steps), [])


def _zero(g: Any, dtype: str) -> Tensor:
    return g.const(0, dtype)


def quantize(g: Any, x: Tensor, step: Tensor, dtype: str) -> Tensor:
    """Floats as bytes: the nearest step, halves to even."""
    return g.emit("QuantizeLinear", x, step, _zero(g, dtype), dtype=dtype, spec=x.spec)


def dequantize(g: Any, x: Tensor, step: Tensor) -> Tensor:
    """Bytes, or 32-bit sums, as floats."""
    zero = [] if x.dtype == "int32" else [_zero(g, x.dtype)]
    return g.emit("DequantizeLinear", x, step, *zero, dtype="float32", spec=x.spec)


def _number(g: Any, value: float) -> Tensor:
    return g.const([value], "float32")


def _around_zero(g: Any, reach: Tensor) -> list[Tensor]:
    return [g.emit("Neg", reach), reach]


# ---------------------------------------------------------------------------------------------------------- conversion
def _data_range(g: Any, x: Tensor) -> list[Tensor]:
    flat = g.flat(x)
    return [g.reduce("Min", flat, [0], keepdims=True), g.reduce("Max", flat, [0], keepdims=True)]


@export_form("_contrib_quantize_v2")
def _quantize_v2(g: Any, node: Any) -> list[Tensor]:
    x, p = node.inputs[0], node.params
    dtype = node.outputs[0].dtype
    low, high = p["min_calib_range"], p["max_calib_range"]
    calibrated = low is not None and high is not None
    if x.dtype != "float32":
        if not calibrated:
            low, high = (0.0 if dtype == "uint8" else -_HALF_MORE[dtype]), _HALF_MORE[dtype]
        return [x, _number(g, low), _number(g, high)]
    ends = [_number(g, low), _number(g, high)] if calibrated else _data_range(g, x)
    reach = reach_of(g, *ends)
    made = quantize(g, x, step_of(g, reach, _HALF_MORE[dtype]), dtype)
    return [made, *(ends if dtype == "uint8" else _around_zero(g, reach))]


@export_form("_contrib_quantize")
def _quantize(g: Any, node: Any) -> list[Tensor]:
    x, low, high = node.inputs
    dtype = node.outputs[0].dtype
    reach = reach_of(g, low, high)
    made = quantize(g, x, step_of(g, reach, _WHOLE[dtype]), dtype)
    return [made, *([low, high] if dtype == "uint8" else _around_zero(g, reach))]


@export_form("_contrib_quantize_asym")
def _quantize_asym(g: Any, node: Any) -> list[Tensor]:
    """The step of zero is not an integer, which QuantizeLinear needs."""
    x, p = node.inputs[0], node.params
    low, high = p["min_calib_range"], p["max_calib_range"]
    ends = _data_range(g, x) if low is None or high is None else [_number(g, low), _number(g, high)]
    scale = g.emit("Div", g.const([255.0], "float32"), g.emit("Sub", ends[1], ends[0]))
    shift = g.emit("Sub", 255.0, g.emit("Mul", ends[1], scale))
    steps = g.emit("Round", g.emit("Add", g.emit("Mul", x, scale), shift))
    return [g.cast(g.emit("Clip", steps, 0.0, 255.0), "uint8"), scale, shift]


@export_form("_contrib_dequantize")
def _dequantize(g: Any, node: Any) -> Tensor:
    x, low, high = node.inputs
    return dequantize(g, x, step_of(g, reach_of(g, low, high), _HALF_MORE[x.dtype]))


@export_form("_contrib_requantize")
def _requantize(g: Any, node: Any) -> list[Tensor]:
    x, low, high = node.inputs
    p = node.params
    dtype = node.outputs[0].dtype
    step = step_of(g, reach_of(g, low, high), _OF_INT32)
    if p["min_calib_range"] is not None and p["max_calib_range"] is not None:
        reach = reach_of(g, p["min_calib_range"], p["max_calib_range"])
    else:
        largest = g.reduce("Max", g.emit("Abs", g.cast(g.flat(x), "float32")), [0], keepdims=True)
        reach = g.emit("Mul", largest, step)
    to = step_of(g, reach, _WHOLE[dtype])
    made = None
    if isinstance(x.source, _Convolution):
        made = x.source.rounded(g, to, dtype)
    if made is None:
        made = quantize(g, dequantize(g, x, step), to, dtype)
    return [made, *([g.emit("Mul", reach, 0.0), reach] if dtype == "uint8" else _around_zero(g, reach))]


# ------------------------------------------------------------------------------------------------------------ products
@dataclass
class _Convolution:
    """The inputs of a convolution whose 32-bit sums a requantization may read."""

    x: Tensor
    weight: Tensor
    bias: Tensor | None
    x_step: Tensor
    weight_step: Tensor
    attributes: dict[str, Any]
    spec: Spec
    last: bool

    def rounded(self, g: Any, step: Tensor, dtype: str) -> Tensor:
        """The convolution with rounded sums, in one operator."""
        made = g.emit(
            "QLinearConv", self.x, self.x_step, _zero(g, self.x.dtype), self.weight, self.weight_step,
            _zero(g, self.weight.dtype), step, _zero(g, dtype), self.bias, dtype=dtype, spec=self.spec,
            **self.attributes,
        )  # fmt: skip
        return channels_last(g, made) if self.last else made


def _operands(g: Any, node: Any) -> tuple[list[Tensor], list[Tensor]]:
    """Data, weight and bias; and their reaches."""
    count = 2 if node.params["no_bias"] else 3
    ends = node.inputs[count:]
    return node.inputs[:count], [reach_of(g, *ends[2 * i : 2 * i + 2]) for i in range(count)]


def _bias_in_steps(g: Any, bias: Tensor, factor: Tensor) -> Tensor:
    """The bias in steps of the products, rounded toward zero."""
    bias = g.const(bias.known) if bias.known is not None else bias
    scaled = g.emit("Mul", g.cast(bias, "float32"), factor)
    if bias.const is not None and factor.const is not None:
        steps = np.trunc(bias.const.astype("float32") * factor.const).clip(-(2.0**31), 2.0**31 - 1)
        return g.const(steps.astype("int32"))
    return g.cast(scaled, "int32")


def _product_ends(g: Any, x: Tensor, x_reach: Tensor, weight_reach: Tensor, x_steps: float) -> list[Tensor]:
    steps = g.emit("Mul", g.emit("Mul", x_reach, 1 / x_steps), g.emit("Mul", weight_reach, 1 / 127.0))
    return _around_zero(g, g.emit("Mul", steps, _OF_INT32))


@export_form("_contrib_quantized_conv")
def _quantized_conv(g: Any, node: Any) -> list[Tensor]:
    """All ranges have 127 steps, for uint8 data, too."""
    (x, weight, *bias), reaches = _operands(g, node)
    p = node.params
    rank = len(p["kernel"])
    last = bool(p.get("layout")) and str(p["layout"]).endswith("C")
    if last:
        x, weight = channels_first(g, x), channels_first(g, weight)
    attributes = {
        "kernel_shape": [int(size) for size in p["kernel"]], "group": int(p["num_group"]),
        "strides": over_axes(p["stride"], rank, 1), "dilations": over_axes(p["dilate"], rank, 1),
        "pads": over_axes(p["pad"], rank, 0) * 2,
    }  # fmt: skip
    spec = node.outputs[0]
    if last:
        spec = Spec([(s[0], s[-1], *s[1:-1]) for s in spec.shapes], "int32")
    made = g.emit("ConvInteger", x, weight, dtype="int32", spec=spec, **attributes)
    steps = None
    if bias:
        factor = g.emit("Div", g.emit("Mul", reaches[2], 127.0), g.emit("Mul", reaches[0], reaches[1]))
        steps = _bias_in_steps(g, bias[0], factor)
        made = g.emit("Add", made, g.unsqueeze(steps, range(1, rank + 1)))
    x_step, weight_step = step_of(g, reaches[0], 127.0), step_of(g, reaches[1], 127.0)
    source = _Convolution(x, weight, steps, x_step, weight_step, attributes, Spec(spec.shapes, "int8"), last)
    if last:
        made = channels_last(g, made)
    made.source = source
    return [made, *_product_ends(g, x, reaches[0], reaches[1], 127.0)]


@export_form("_contrib_quantized_fully_connected")
def _quantized_dense(g: Any, node: Any) -> list[Tensor]:
    (_, weight, *bias), reaches = _operands(g, node)
    x = _rows(g, node)
    made = g.emit("MatMulInteger", x, g.transpose(weight, [1, 0]), dtype="int32", spec=node.outputs[0])
    if bias:
        factor = g.emit("Div", g.emit("Mul", reaches[2], _HALF_MORE[x.dtype]), g.emit("Mul", reaches[0], reaches[1]))
        made = g.emit("Add", made, _bias_in_steps(g, bias[0], factor))
    return [made, *_product_ends(g, x, reaches[0], reaches[1], _WHOLE[x.dtype])]


# ------------------------------------------------------------------------------------------------- sums and activations
def _as_float(g: Any, x: Tensor, low: Tensor, high: Tensor) -> Tensor:
    return dequantize(g, x, step_of(g, reach_of(g, low, high), _HALF_MORE[x.dtype]))


@export_form("_contrib_quantized_elemwise_add")
def _quantized_add(g: Any, node: Any) -> list[Tensor]:
    a, b, *ends = node.inputs
    p = node.params
    dtype = node.outputs[0].dtype
    if p["min_calib_range"] is not None and p["max_calib_range"] is not None:
        total = g.emit("Add", _as_float(g, a, *ends[:2]), _as_float(g, b, *ends[2:]))
        reach = reach_of(g, p["min_calib_range"], p["max_calib_range"])
        made = quantize(g, total, step_of(g, reach, _HALF_MORE[dtype]), dtype)
        return [made, _number(g, p["min_calib_range"]), _number(g, p["max_calib_range"])]
    reaches = [reach_of(g, *ends[:2]), reach_of(g, *ends[2:])]
    reach = g.emit("Add", *reaches)
    parts = []
    for x, own in zip((a, b), reaches, strict=True):
        factor = g.emit("Div", g.emit("Mul", own, _OF_INT32), g.emit("Mul", reach, _HALF_MORE[x.dtype]))
        parts.append(g.emit("Mul", g.cast(x, "float32"), factor))
    wide = g.cast(g.emit("Round", g.emit("Add", *parts)), "float64")
    return [g.cast(g.emit("Clip", wide, -_OF_INT32, _OF_INT32 - 1), "int32"), *_around_zero(g, reach)]


@export_form("_contrib_quantized_elemwise_mul")
def _quantized_mul(g: Any, node: Any) -> list[Tensor]:
    """With a calibrated range products are rounded toward zero."""
    a, b, *ends = node.inputs
    p = node.params
    reaches = [reach_of(g, *ends[:2]), reach_of(g, *ends[2:])]
    product = g.emit("Mul", g.cast(a, "int32"), g.cast(b, "int32"))
    unit = g.emit("Mul", g.emit("Mul", reaches[0], 1 / 127.5), g.emit("Mul", reaches[1], 1 / 127.5))
    if p["enable_float_output"]:
        return [g.emit("Mul", g.cast(product, "float32"), unit)]
    low, high = p["min_calib_range"], p["max_calib_range"]
    if low is None or high is None:
        return [product, *_product_ends(g, a, reaches[0], reaches[1], 127.0)]
    factor = g.emit("Mul", unit, 127.5 / max(abs(low), abs(high)))
    steps = g.cast(g.emit("Mul", g.cast(product, "float32"), factor), "int32")
    return [g.cast(g.emit("Clip", steps, -128, 127), "int8"), _number(g, low), _number(g, high)]


@export_form("_contrib_quantized_act")
def _quantized_act(g: Any, node: Any) -> list[Tensor]:
    x, low, high = node.inputs
    return [x if x.dtype == "uint8" else g.emit("Max", x, 0), low, high]


@export_form("_contrib_quantized_flatten")
def _quantized_flatten(g: Any, node: Any) -> list[Tensor]:
    x, low, high = node.inputs
    return [g.reshape(x, node.dims()), low, high]


@export_form("_contrib_quantized_concat")
def _quantized_concat(g: Any, node: Any) -> list[Tensor]:
    """Parts with another range are quantized again."""
    count = int(node.params["num_args"])
    dtype = node.outputs[0].dtype
    ends = [known_number(g, x) for x in node.inputs[count:]]
    low, high = _number(g, 0.0), _number(g, 0.0)
    for i in range(count):
        low, high = g.emit("Min", low, ends[2 * i]), g.emit("Max", high, ends[2 * i + 1])
    step = step_of(g, reach_of(g, low, high), _HALF_MORE[dtype])
    parts = []
    for i, x in enumerate(node.inputs[:count]):
        own = step_of(g, reach_of(g, *ends[2 * i : 2 * i + 2]), _HALF_MORE[x.dtype])
        equal = x.dtype == dtype and own.const is not None and step.const is not None and own.const == step.const
        parts.append(x if equal else quantize(g, dequantize(g, x, own), step, dtype))
    return [g.concat(parts, node.params["dim"]), low, high]


@export_form("_contrib_quantized_pooling")
def _quantized_pooling(g: Any, node: Any) -> list[Tensor]:
    x, low, high = node.inputs
    p = dict(node.params)
    last = bool(p.get("layout")) and str(p["layout"]).endswith("C")
    out = node.outputs[0]
    if last:
        x, p["layout"] = channels_first(g, x), None
        out = Spec([(s[0], s[-1], *s[1:-1]) for s in out.shapes], out.dtype)
    dtype = x.dtype
    if p["pool_type"] == "max" and p["global_pool"]:
        made = g.reduce("Max", x, range(2, x.ndim), keepdims=True)
    elif p["pool_type"] == "max":
        made = pooled(g, x, out, p)
    elif p["global_pool"] or p.get("count_include_pad") is False:
        made = g.cast(g.emit("Round", pooled(g, g.cast(x, "float32"), out, p)), dtype)
    else:  # all elements of the kernel count, those behind the padding, too
        total = pooled(g, g.cast(x, "float32"), out, {**p, "pool_type": "sum"})
        made = g.cast(g.emit("Round", g.emit("Mul", total, 1 / float(np.prod(p["kernel"])))), dtype)
    made.spec = Spec(out.shapes, dtype)
    return [channels_last(g, made) if last else made, low, high]


@export_form("_contrib_quantized_batch_norm")
def _quantized_batch_norm(g: Any, node: Any) -> list[Tensor]:
    """Data of uint8 is rounded to steps of int8 first."""
    x, gamma, beta, mean, variance, low, high = node.inputs
    p = node.params
    axis = p["axis"] % x.ndim
    reach = reach_of(g, low, high)
    out = max(abs(p["min_calib_range"]), abs(p["max_calib_range"]))
    steps = g.cast(x, "float32")
    if x.dtype == "uint8":
        steps = g.emit("Clip", g.emit("Round", g.emit("Mul", steps, 127.5 / 255.5)), -128.0, 127.0)
    factor = g.emit("Reciprocal", g.emit("Sqrt", g.emit("Add", variance, float(p["eps"]))))
    if not p["fix_gamma"]:
        factor = g.emit("Mul", gamma, factor)
    scale = g.emit("Mul", factor, g.emit("Mul", reach, 1 / out))
    shift = g.emit("Mul", g.emit("Sub", beta, g.emit("Mul", mean, factor)), 127.5 / out)
    scale, shift = (g.unsqueeze(v, range(1, x.ndim - axis)) for v in (scale, shift))
    made = g.emit("Round", g.emit("Add", g.emit("Mul", steps, scale), shift))
    made = g.cast(g.emit("Clip", made, -128.0, 127.0), "int8")
    return [made, _number(g, p["min_calib_range"]), _number(g, p["max_calib_range"])]


@export_form("_contrib_quantized_embedding")
def _quantized_embedding(g: Any, node: Any) -> list[Tensor]:
    x, weight, low, high = node.inputs
    return [gather(g, weight, in_range(g, x, weight.dim(0), "clip"), 0), low, high]


@export_form("_contrib_quantized_hard_swish")
def _quantized_hard_swish(g: Any, node: Any) -> list[Tensor]:
    """x * clip(x + 3, 0, 6) / 6, in a range that contains its values."""
    x, low, high = node.inputs
    reach = reach_of(g, low, high)

    def function(value: Tensor) -> Tensor:
        gate = g.emit("Clip", g.emit("Add", value, 3.0), 0.0, 6.0)
        return g.emit("Mul", g.emit("Mul", value, gate), 1 / 6)

    least = g.emit("Max", g.emit("Neg", reach), -1.5)
    ends = [_number(g, 0.0) if x.dtype == "uint8" else function(least), function(reach)]
    step = step_of(g, reach_of(g, *ends), _HALF_MORE[x.dtype])
    return [quantize(g, function(_as_float(g, x, low, high)), step, x.dtype), *ends]


no_form("a tool of calibration, not part of networks", "_contrib_calibrate_entropy")


# ----------------------------------------------------------------------------------------------------- weights of bytes
def _rows(g: Any, node: Any) -> Tensor:
    """The data of a dense layer: (rows, features), or (..., features) with flatten=False."""
    x = node.inputs[0]
    if not node.params["flatten"] or x.ndim == 2:
        return x
    from .._export_values import product

    return g.reshape(x, [x.dim(0), product(x.dims[1:])])


def _dense_of_bytes(g: Any, node: Any, x: Tensor) -> Tensor:
    """A product of floats with dequantized weights."""
    _, weight, scale, *bias = node.inputs
    floats = g.emit(
        "DequantizeLinear", weight, scale, axis=0, dtype="float32", spec=Spec(weight.spec.shapes, "float32")
    )
    made = g.matmul(x, g.transpose(floats, [1, 0]))
    return g.emit("Add", made, bias[0]) if bias else made


@export_form("_contrib_weight_only_fully_connected")
def _weight_only_dense(g: Any, node: Any) -> Tensor:
    return _dense_of_bytes(g, node, _rows(g, node))


@export_form("_contrib_dynamic_quantized_fully_connected")
def _dynamic_dense(g: Any, node: Any) -> Tensor:
    """Rounds each row in floats: runtimes have zero points for tensors only, not for rows."""
    x = _rows(g, node)
    low = g.emit("Min", g.reduce("Min", x, [-1], keepdims=True), 0.0)
    high = g.emit("Max", g.reduce("Max", x, [-1], keepdims=True), 0.0)
    reach = g.emit("Sub", g.emit("Div", high, 255.0), g.emit("Div", low, 255.0))
    step = g.emit("Max", reach, float(np.finfo("float32").tiny))
    inverse = g.emit("Div", 1.0, step)
    zero = g.emit("Round", g.emit("Mul", g.emit("Neg", low), inverse))
    byte = g.emit("Add", g.emit("Round", g.emit("Mul", x, inverse)), zero)
    rounded = g.emit("Mul", g.emit("Sub", g.emit("Clip", byte, 0.0, 255.0), zero), step)
    unbounded = g.reduce("Sum", g.emit("Sub", x, x), [-1], keepdims=True)  # NaN unless the row is finite
    return _dense_of_bytes(g, node, g.emit("Add", rounded, unbounded))


@export_form("_contrib_weight_only_embedding")
def _weight_only_embedding(g: Any, node: Any) -> Tensor:
    indices, weight, scale = node.inputs
    rows = in_range(g, indices, weight.dim(0), "clip")
    steps = gather(g, scale, rows, 0)
    return g.emit("Mul", g.cast(gather(g, weight, rows, 0), "float32"), g.unsqueeze(steps, [rows.ndim]))

"""NumPy references of quantization, and of queries of sparse matrices."""

from __future__ import annotations

import itertools

import numpy as np

from .attributes import tuple_value, value
from .nn import activated


def _reach(*ends):
    return np.max(np.abs(np.array(ends, "float32").ravel()))


def _ends(*ends):
    return [np.array([end], "float32") for end in ends]


def _steps(kind, half=0.5):
    return np.float32((255 if kind == "uint8" else 127) + half)


def _saturated(steps, kind):
    info = np.iinfo(kind)
    return np.rint(np.nan_to_num(np.asarray(steps, "float64"), nan=0.0)).clip(info.min, info.max).astype(kind)


def _to_bytes(x, low, high, kind, half=0.5):
    reach = _reach(low, high)
    with np.errstate(all="ignore"):
        scale = _steps(kind, half) / reach
        steps = np.asarray(x, "float32") * scale
    return [_saturated(steps, kind), *(_ends(low, high) if kind == "uint8" else _ends(-reach, reach))]


def _quantize(inputs, attrs):
    return _to_bytes(inputs[0], inputs[1][0], inputs[2][0], attrs.get("out_type", "uint8"), 0)


def _kind(attrs):
    low, high, kind = value(attrs, "min_calib_range"), value(attrs, "max_calib_range"), attrs.get("out_type", "int8")
    if kind == "auto":
        kind = "uint8" if low is not None and high is not None and low >= 0 else "int8"
    return low, high, kind


def _quantize_v2(inputs, attrs):
    low, high, kind = _kind(attrs)
    if inputs[0].dtype.kind != "f":  # int8 and uint8 data stay unchanged
        ends = (0, 255.5) if inputs[0].dtype == np.uint8 else (-127.5, 127.5)
        return [inputs[0], *_ends(ends[0] if low is None else low, ends[1] if high is None else high)]
    if low is None or high is None:
        low, high = (inputs[0].min(), inputs[0].max()) if inputs[0].size else (0.0, 0.0)
    return _to_bytes(inputs[0], low, high, kind)


def _requantize(inputs, attrs):
    low, high, kind = _kind(attrs)
    step = _reach(inputs[1], inputs[2]) / np.float32(2**31)
    data = np.asarray(inputs[0], "float32")
    if low is None or high is None:
        low = high = np.max(np.abs(data), initial=np.float32(0)) * step
    reach = _reach(low, high)
    with np.errstate(all="ignore"):
        steps = data * (step * (_steps(kind, 0) / reach))
    return [_saturated(steps, kind), *_ends(0 if kind == "uint8" else -reach, reach)]


def _dequantize(inputs, attrs):
    data, low, high = inputs
    return [np.asarray(data, "float32") * (_reach(low, high) / _steps(str(data.dtype)))]


def _product_ends(a, a_kind, b, b_kind):
    reach = a / _steps(a_kind, 0) * (b / _steps(b_kind, 0)) * np.float32(2**31)
    return _ends(-reach, reach)


def _truncated(x):
    return np.trunc(np.asarray(x, "float64")).clip(-(2**31), 2**31 - 1).astype("int64")


def _operands(inputs, attrs):
    count = 2 if value(attrs, "no_bias", False) else 3
    reaches = [_reach(*inputs[count + 2 * i : count + 2 * i + 2]) for i in range(count)]
    return *inputs[:count], *([None] * (3 - count)), *reaches, *([None] * (3 - count))


def _quantized_conv(inputs, attrs):
    """Convolution of bytes: sums in int64, tap by tap."""
    x, w, bias, x_reach, w_reach, bias_reach = _operands(inputs, attrs)
    n = x.ndim - 2
    stride, dilate = (tuple_value(attrs, name, (1,) * n) or (1,) * n for name in ("stride", "dilate"))
    pad, groups = tuple_value(attrs, "pad", (0,) * n) or (0,) * n, value(attrs, "num_group", 1)
    wide = np.pad(x.astype("int64"), [(0, 0), (0, 0), *((p, p) for p in pad)])
    sizes = [(wide.shape[2 + i] - dilate[i] * (w.shape[2 + i] - 1) - 1) // stride[i] + 1 for i in range(n)]
    per_group, outputs = w.shape[1], w.shape[0] // groups
    out = np.zeros((x.shape[0], w.shape[0], *sizes), "int64")
    for tap in np.ndindex(*w.shape[2:]):
        window = tuple(
            slice(tap[i] * dilate[i], tap[i] * dilate[i] + stride[i] * (sizes[i] - 1) + 1, stride[i]) for i in range(n)
        )
        for g in range(groups):
            data = wide[(slice(None), slice(g * per_group, (g + 1) * per_group), *window)]
            weight = w[(slice(g * outputs, (g + 1) * outputs), slice(None), *tap)].astype("int64")
            out[:, g * outputs : (g + 1) * outputs] += np.einsum("nc...,oc->no...", data, weight)
    if bias is not None:
        steps = np.float32(127)
        factor = bias_reach / steps / (x_reach / steps * (w_reach / steps))
        out += _truncated(bias.astype("float32") * factor).reshape(-1, *([1] * n))
    return [out.astype("int32"), *_product_ends(x_reach, "int8", w_reach, "int8")]


def _fused_quantized(sums_of, inputs, attrs):
    """Converts the sums to floats, adds the addend, applies relu, and quantizes."""
    adds = value(attrs, "with_addend", False)
    operands = inputs[:-3] if adds else inputs
    sums, _, reach = sums_of(operands, attrs)
    out = sums.astype("float32") * (reach / np.float32(2**31))
    if adds:
        addend, low, high = inputs[-3:]
        out = out + addend.astype("float32") * (_reach(low, high) / _steps(str(addend.dtype)))
    if value(attrs, "relu", False):
        out = np.maximum(out, 0)
    kind = "uint8" if value(attrs, "is_unsigned", False) else "int8"
    reach = _reach(np.float32(attrs["min_calib_range"]), np.float32(attrs["max_calib_range"]))
    return [_saturated(out * (_steps(kind, 0) / reach), kind), *_ends(0 if kind == "uint8" else -reach, reach)]


def _quantized_dense(inputs, attrs):
    x, w, bias, x_reach, w_reach, bias_reach = _operands(inputs, attrs)
    rows = x.reshape(len(x), -1) if value(attrs, "flatten", True) else x
    out = rows.astype("int64") @ w.astype("int64").T
    if bias is not None:
        steps = _steps("int8")
        factor = _steps(str(x.dtype)) / x_reach * (steps / w_reach) * bias_reach / steps
        out += _truncated(bias.astype("float32") * factor)
    return [out.astype("int32"), *_product_ends(x_reach, str(x.dtype), w_reach, "int8")]


def _quantized_pooling(inputs, attrs):
    x, largest = inputs[0], attrs.get("pool_type", "max") == "max"
    if (attrs.get("layout") or "").endswith("C"):
        rest = {**attrs, "layout": None}
        out, *ends = _quantized_pooling([np.moveaxis(x, -1, 1), *inputs[1:]], rest)
        return [np.moveaxis(out, 1, -1), *ends]
    n = x.ndim - 2
    kernel = x.shape[2:] if value(attrs, "global_pool", False) else tuple_value(attrs, "kernel")
    stride = tuple_value(attrs, "stride", (1,) * n) or (1,) * n
    pad = tuple_value(attrs, "pad", (0,) * n) or (0,) * n
    full = attrs.get("pooling_convention", "valid") == "full"
    room = [x.shape[2 + i] + 2 * pad[i] - kernel[i] for i in range(n)]
    sizes = [(-(-room[i] // stride[i]) if full else room[i] // stride[i]) + 1 for i in range(n)]
    out = np.zeros((*x.shape[:2], *sizes), x.dtype)
    for p in np.ndindex(*sizes):
        begins = [p[i] * stride[i] - pad[i] for i in range(n)]
        window = tuple(slice(max(b, 0), b + kernel[i]) for i, b in enumerate(begins))
        seen = x[(slice(None), slice(None), *window)].astype("int64").reshape(*x.shape[:2], -1)
        counted = np.prod(kernel) if value(attrs, "count_include_pad", True) else seen.shape[-1]
        out[(slice(None), slice(None), *p)] = seen.max(-1) if largest else np.rint(seen.sum(-1) / counted)
    return [out, *inputs[1:]]


def _quantized_sum(inputs, attrs):
    a, b = inputs[:2]
    reaches = [_reach(*inputs[2:4]), _reach(*inputs[4:6])]
    low, high = value(attrs, "min_calib_range"), value(attrs, "max_calib_range")
    kind = "int32" if low is None else str(a.dtype) if a.dtype == b.dtype else "int8"
    if low is None:
        low, high = -sum(reaches), sum(reaches)
    steps = np.float32(2**31) if kind == "int32" else _steps(kind)
    factors = [r * steps / (_reach(low, high) * _steps(str(x.dtype))) for r, x in zip(reaches, (a, b), strict=True)]
    total = a.astype("float32") * factors[0] + b.astype("float32") * factors[1]
    return [_saturated(total, kind), *_ends(low, high)]


def _quantized_product(inputs, attrs):
    a, b = inputs[:2]
    reaches = [_reach(*inputs[2:4]), _reach(*inputs[4:6])]
    low, high = value(attrs, "min_calib_range"), value(attrs, "max_calib_range")
    product = a.astype("int64") * b.astype("int64")
    unit = reaches[0] / _steps("int8") * (reaches[1] / _steps("int8"))
    if value(attrs, "enable_float_output", False):
        return [product.astype("float32") * unit]
    if low is None:
        return [product.astype("int32"), *_product_ends(reaches[0], "int8", reaches[1], "int8")]
    steps = _truncated(product.astype("float32") * (unit * (_steps("int8") / _reach(low, high))))
    return [steps.clip(-128, 127).astype("int8"), *_ends(low, high)]


def _quantized_concat(inputs, attrs):
    count = value(attrs, "num_args")
    low = min(0, *(float(inputs[count + 2 * i][0]) for i in range(count)))
    high = max(0, *(float(inputs[count + 2 * i + 1][0]) for i in range(count)))
    kind = "int8" if any(x.dtype == np.int8 for x in inputs[:count]) else "uint8"
    parts = []
    for i, x in enumerate(inputs[:count]):
        reach = _reach(*inputs[count + 2 * i : count + 2 * i + 2])
        scale = _steps(kind) / _reach(low, high) / (_steps(str(x.dtype)) / reach)
        parts.append(_saturated(x.astype("float32") * scale, kind))
    return [np.concatenate(parts, value(attrs, "dim", 1)), *_ends(low, high)]


def _quantized_act(inputs, attrs):
    return [np.maximum(inputs[0], 0), *inputs[1:]]


def _quantized_hard_swish(inputs, attrs):
    data, reach, kind = inputs[0], _reach(*inputs[1:]), str(inputs[0].dtype)
    three, six = np.float32(3), np.float32(6)
    function = lambda x: np.where(x <= -three, 0, np.where(x >= three, x, x * (x + three) / six))  # noqa: E731
    low = np.float32(0) if kind == "uint8" else function(max(-reach, np.float32(-1.5)))
    ends = _ends(low, function(reach))
    x = np.asarray(data, "float32") * (reach / _steps(kind))
    return [_saturated(function(x) * (_steps(kind) / _reach(*ends)), kind), *ends]


def _quantized_flatten(inputs, attrs):
    return [inputs[0].reshape(len(inputs[0]), -1), *inputs[1:]]


def _layer_end(sums, w_steps, bias, data, addend, attrs, by_channel):
    """Computes relu(act(sums) + addend) in real units, then quantizes it to steps of the output."""
    x_steps, last_axes = _per_unit(data[0], data[1:]), (1,) * (sums.ndim - 2)
    low, high = value(attrs, "min_calib_range"), value(attrs, "max_calib_range")
    relu, relu_of_sum = attrs.get("act_type") == "relu", value(attrs, "relu_of_sum", False)
    per_step = (x_steps * w_steps).reshape(-1, *last_axes) if by_channel else x_steps * w_steps[0]
    whole = sums + (0 if bias is None else np.rint(bias.reshape(-1, *last_axes) * per_step))
    if low is None and not value(attrs, "float_output", False):
        out = np.maximum(whole, 0) if relu else whole
        reach = _steps("int8") / w_steps[0]
        return [out.astype("int32"), *_product_ends(_reach(*data[1:]), str(data[0].dtype), reach, "int8")]
    units = whole / per_step
    units = np.maximum(units, 0) if relu else units
    if addend is not None:
        units = units + addend[0] / _per_unit(addend[0], addend[1:])
    units = np.maximum(units, 0) if relu_of_sum else units
    if value(attrs, "float_output", False):
        return [units.astype("float32")]
    kind = "uint8" if (relu_of_sum if addend is not None else relu) else "int8"
    return [_saturated(units * (_steps(kind) / _reach(low, high)), kind), *_ends(low, high)]


def _per_unit(x, ends):
    reach = _reach(*ends)
    return np.float64(_steps(str(x.dtype)) / reach if reach else 2**31 - 1)


def _layer_weights(weight, rest, attrs, by_channel):
    """Returns the weights as bytes, their steps per unit, and the bias in real units."""
    bias = None if value(attrs, "no_bias", False) else rest[0]
    weight = np.asarray(weight, "float64")
    if value(attrs, "with_bn", False):
        gamma, beta, mean, variance = rest[-4:]
        gamma = np.ones_like(gamma) if value(attrs, "fix_gamma", True) else gamma
        factor = gamma / np.sqrt(variance.astype("float64") + value(attrs, "eps", 1e-3))
        weight = weight * factor.reshape(-1, *(1,) * (weight.ndim - 1))
        bias = beta + factor * ((0 if bias is None else bias) - mean)
    reach = np.abs(weight).reshape(len(weight), -1).max(1)
    if not by_channel:
        reach = np.full_like(reach, reach.max())
    steps = 127.5 / reach
    return _saturated(weight * steps.reshape(-1, *(1,) * (weight.ndim - 1)), "int8"), steps, bias


def _layer_conv(inputs, attrs):
    x, weight, low, high, *rest = inputs
    addend = None
    if value(attrs, "with_sum", False):
        addend, rest = rest[:3], rest[3:]
    by_channel = value(attrs, "min_calib_range") is not None
    weight, steps, bias = _layer_weights(weight, rest, attrs, by_channel)
    one = np.ones(1, "float32")
    sums = _quantized_conv([x, weight, one, one, one, one], {**attrs, "no_bias": "True"})[0].astype("float64")
    return _layer_end(sums, steps, bias, (x, low, high), addend, attrs, by_channel)


def _layer_dense(inputs, attrs):
    x, weight, low, high, *rest = inputs
    by_channel = value(attrs, "min_calib_range") is not None or value(attrs, "float_output", False)
    if value(attrs, "byte_weights", True):
        no_bias = value(attrs, "no_bias", False)
        bias, ends = (None, rest) if no_bias else (rest[0], rest[1:])
        steps = np.full(len(weight), _per_unit(weight, ends[:2]))
        if bias is not None:
            bias = bias / _per_unit(bias, ends[2:])
    else:
        weight, steps, bias = _layer_weights(weight, rest, attrs, by_channel)
    rows = x.reshape(len(x), -1) if value(attrs, "flatten", True) else x
    sums = (rows.astype("int64") @ weight.astype("int64").T).astype("float64")
    return _layer_end(sums, steps, bias, (x, low, high), None, attrs, True)


def _quantize_asym(inputs, attrs):
    x = inputs[0]
    low, high = value(attrs, "min_calib_range"), value(attrs, "max_calib_range")
    if low is None or high is None:
        low, high = (x.min(), x.max()) if x.size else (0.0, 0.0)
    with np.errstate(all="ignore"):
        scale = np.float32(255) / (np.float32(high) - np.float32(low))
        shift = np.float32(255) - np.float32(high) * scale
    return [_saturated(x * scale + shift, "uint8"), *_ends(scale, shift)]


def _quantized_batch_norm(inputs, attrs):
    x, gamma, beta, mean, variance, low, high = inputs
    ends = value(attrs, "min_calib_range"), value(attrs, "max_calib_range")
    axis = value(attrs, "axis", 1)
    if value(attrs, "fix_gamma", True):
        gamma = np.ones_like(gamma)
    steps = x.astype("float32")
    if x.dtype == np.uint8:
        steps = _saturated(steps * (_steps("int8") / _steps("uint8")), "int8").astype("float32")
    factor = gamma / np.sqrt(variance + value(attrs, "eps", 1e-3))
    shape = [-1 if i == axis % x.ndim else 1 for i in range(x.ndim)]
    scale = (factor * _reach(low, high) / _reach(*ends)).reshape(shape)
    shift = ((beta - mean * factor) * _steps("int8") / _reach(*ends)).reshape(shape)
    return [_saturated(steps * scale + shift, "int8"), *_ends(*ends)]


def _quantized_embedding(inputs, attrs):
    rows = inputs[0].astype("int64").clip(0, value(attrs, "input_dim") - 1)
    return [inputs[1][rows], *inputs[2:]]


def _weight_only_dense(inputs, attrs):
    x, weight, scale, *bias = inputs
    rows = x.reshape(len(x), -1) if value(attrs, "flatten", True) else x
    out = rows.astype("float64") @ (weight * scale.astype("float64")[:, None]).T
    return [(out + bias[0] if bias else out).astype("float32")]


def _rounded_rows(rows):
    """Each row with the nearest of 256 values from min(row, 0) to max(row, 0)."""
    rows = rows.astype("float32")  # the kernel's own arithmetic decides between two bytes
    low, high = np.minimum(rows.min(-1, keepdims=True), 0), np.maximum(rows.max(-1, keepdims=True), 0)
    step = np.maximum(high / np.float32(255) - low / np.float32(255), np.finfo("float32").tiny)
    inverse = np.float32(1) / step
    zero = np.rint(-low * inverse)
    return (np.clip(np.rint(rows * inverse) + zero, 0, 255) - zero).astype("float64") * step


def _dynamic_dense(inputs, attrs):
    x, *others = inputs
    rows = x.reshape(len(x), -1) if value(attrs, "flatten", True) else x
    return _weight_only_dense([_rounded_rows(rows), *others], attrs)


def _fused_dynamic_dense(inputs, attrs):
    addend = value(attrs, "with_addend", False)
    (made,) = _dynamic_dense(inputs[:-1] if addend else inputs, attrs)
    return [activated(made + inputs[-1] if addend else made, attrs)]


def _weight_only_embedding(inputs, attrs):
    rows = inputs[0].astype("int64").clip(0, value(attrs, "input_dim") - 1)
    return [(inputs[1][rows] * inputs[2][rows][..., None]).astype("float32")]


def _smoothed(p):
    zeros = np.count_nonzero(p == 0)
    if zeros == len(p) or 1e-4 * zeros / (len(p) - zeros) >= 1:
        return None
    return p + np.where(p == 0, 1e-4, -1e-4 * zeros / (len(p) - zeros))


def _calibrate_entropy(inputs, attrs):
    hist, edges = (np.asarray(x, "float64") for x in inputs)
    steps, middle, losses = value(attrs, "num_quantized_bins", 255), len(hist) // 2, []
    for reach in range(steps // 2, middle + 1):
        first, last = middle - reach, min(middle + reach + 1, len(hist))
        p = hist[first:last].copy()
        p[0], p[-1] = hist[: first + 1].sum(), hist[last - 1 :].sum()
        inside = hist[first:last].copy()
        inside[0] = 0
        bounds = [*(s * (len(p) // steps) for s in range(steps)), len(p)]
        q = np.zeros_like(p)
        for begin, end in itertools.pairwise(bounds):
            if filled := np.count_nonzero(inside[begin:end]):
                q[begin:end] = np.where(p[begin:end] != 0, inside[begin:end].sum() / filled, 0)
        p, q = _smoothed(p), _smoothed(q)
        if p is None or q is None or min(p.min(), q.min()) <= 0:
            losses.append(np.inf)
        else:
            losses.append(np.sum(p / p.sum() * np.log(p / p.sum() / (q / q.sum()))))
    best = int(np.argmin(losses))
    return _ends(edges[min(middle + steps // 2 + best + 1, len(hist))], losses[best])


def _getnnz(inputs, attrs):
    return [np.atleast_1d(np.count_nonzero(inputs[0], axis=value(attrs, "axis"))).astype("int64")]


def _edge_id(inputs, attrs):
    data, u, v = inputs
    found = data[u.astype(int), v.astype(int)]
    return [np.where(found == 0, np.array(-1).astype(data.dtype), found)]


def _fill_element(inputs, attrs):
    out = inputs[0].copy()
    out[np.arange(len(out)), inputs[2].astype(int)] = inputs[1]
    return [out]


def _retain(inputs, attrs):
    out, rows = np.zeros_like(inputs[0]), inputs[1].astype(int)
    out[rows] = inputs[0][rows]
    return [out]


REFERENCES = {
    "_sparse_retain": _retain,
    "_contrib_quantize": _quantize,
    "_contrib_quantize_v2": _quantize_v2,
    "_contrib_requantize": _requantize,
    "_contrib_dequantize": _dequantize,
    "_contrib_quantized_conv": _quantized_conv,
    "_fused_quantized_conv": lambda inputs, attrs: _fused_quantized(_quantized_conv, inputs, attrs),
    "_fused_quantized_fully_connected": lambda inputs, attrs: _fused_quantized(_quantized_dense, inputs, attrs),
    "_contrib_quantized_fully_connected": _quantized_dense,
    "_contrib_quantized_pooling": _quantized_pooling,
    "_contrib_quantized_act": _quantized_act,
    "_contrib_quantized_hard_swish": _quantized_hard_swish,
    "_contrib_quantized_flatten": _quantized_flatten,
    "_contrib_quantized_concat": _quantized_concat,
    "_contrib_quantized_elemwise_add": _quantized_sum,
    "_contrib_quantized_elemwise_mul": _quantized_product,
    "_contrib_quantize_asym": _quantize_asym,
    "_contrib_quantized_batch_norm": _quantized_batch_norm,
    "_contrib_quantized_embedding": _quantized_embedding,
    "_contrib_weight_only_fully_connected": _weight_only_dense,
    "_contrib_weight_only_embedding": _weight_only_embedding,
    "_contrib_dynamic_quantized_fully_connected": _dynamic_dense,
    "_fused_dynamic_quantized_fully_connected": _fused_dynamic_dense,
    "_contrib_calibrate_entropy": _calibrate_entropy,
    "_quantized_layer_conv": _layer_conv,
    "_quantized_layer_conv_add": _layer_conv,
    "_quantized_layer_dense": _layer_dense,
    "_contrib_getnnz": _getnnz,
    "_contrib_edge_id": _edge_id,
    "fill_element_0index": _fill_element,
}

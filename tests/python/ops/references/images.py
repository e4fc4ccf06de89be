"""NumPy references of convolutions and pooling: one kernel position at a time."""

from __future__ import annotations

import itertools

import numpy as np

from .attributes import tuple_value, value


def _channels_first(data, attrs):
    """Returns data with channels after the batch axis, and whether they were last."""
    last = attrs.get("layout", "None") in ("NWC", "NHWC", "NDHWC")
    return (np.moveaxis(data, -1, 1) if last else data), last


def _restored(out, last):
    return np.moveaxis(out, 1, -1) if last else out


def _geometry(attrs, dims):
    ones, zeros = (1,) * dims, (0,) * dims
    read = lambda name, default: tuple_value(attrs, name) or default  # noqa: E731
    return read("stride", ones), read("pad", zeros), read("dilate", ones)


def _window(padded, offset, stride, dilate, out):
    """The elements that kernel position `offset` reads for each output position."""
    place = [slice(o * d, o * d + s * (n - 1) + 1, s) for o, d, s, n in zip(offset, dilate, stride, out)]
    return padded[(slice(None), slice(None), *place)]


def _convolution(inputs, attrs):
    data, last = _channels_first(inputs[0], attrs)
    weight, _ = _channels_first(inputs[1], attrs)
    kernel, groups = tuple_value(attrs, "kernel"), value(attrs, "num_group", 1)
    stride, pad, dilate = _geometry(attrs, len(kernel))
    padded = np.pad(data, [(0, 0), (0, 0), *((p, p) for p in pad)])
    out = [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, p, d, k, s in zip(data.shape[2:], pad, dilate, kernel, stride)]
    filters, width = weight.shape[0] // groups, data.shape[1] // groups
    result = np.zeros((data.shape[0], weight.shape[0], *out), data.dtype)
    for offset in itertools.product(*map(range, kernel)):
        seen = _window(padded, offset, stride, dilate, out)
        for g in range(groups):
            part = weight[(slice(g * filters, (g + 1) * filters), slice(None), *offset)]
            result[:, g * filters : (g + 1) * filters] += np.einsum(
                "nc...,fc->nf...", seen[:, g * width : (g + 1) * width], part
            )
    if len(inputs) > 2:
        result += inputs[2].reshape(1, -1, *(1,) * len(kernel))
    return [_restored(result, last)]


def _deconvolution_places(data, kernel, attrs):
    stride, pad, dilate = _geometry(attrs, len(kernel))
    target = tuple_value(attrs, "target_shape")
    spans = [s * (n - 1) + d * (k - 1) + 1 for n, s, d, k in zip(data.shape[2:], stride, dilate, kernel)]
    if any(target):
        surplus = [span - size for span, size in zip(spans, target)]
        return stride, [(extra + 1) // 2 for extra in surplus], dilate, list(target), spans
    adjust = tuple_value(attrs, "adj") or (0,) * len(kernel)
    return stride, pad, dilate, [span - 2 * p + a for span, p, a in zip(spans, pad, adjust)], spans


def _deconvolution(inputs, attrs):
    data, last = _channels_first(inputs[0], attrs)
    weight, _ = _channels_first(inputs[1], attrs)  # (channels, filters per group, kernel)
    kernel, groups = tuple_value(attrs, "kernel"), value(attrs, "num_group", 1)
    stride, pad, dilate, out, spans = _deconvolution_places(data, kernel, attrs)
    filters, width = weight.shape[1], data.shape[1] // groups
    room = [max(span, n + p) for span, n, p in zip(spans, out, pad)]
    whole = np.zeros((data.shape[0], filters * groups, *room), data.dtype)
    for offset in itertools.product(*map(range, kernel)):
        seen = _window(whole, offset, stride, dilate, data.shape[2:])
        for g in range(groups):
            part = weight[(slice(g * width, (g + 1) * width), slice(None), *offset)]
            seen[:, g * filters : (g + 1) * filters] += np.einsum(
                "nc...,cf->nf...", data[:, g * width : (g + 1) * width], part
            )
    result = whole[(slice(None), slice(None), *(slice(p, p + n) for p, n in zip(pad, out)))].copy()
    if len(inputs) > 2:
        result += inputs[2].reshape(1, -1, *(1,) * len(kernel))
    return [_restored(result, last)]


def _pooled_sizes(sizes, kernel, stride, pad, convention):
    if convention == "full":
        return [-((k - n - 2 * p) // s) + 1 for n, k, s, p in zip(sizes, kernel, stride, pad)]
    if convention == "same":
        return [-(-n // s) for n, s in zip(sizes, stride)]
    return [(n + 2 * p - k) // s + 1 for n, k, s, p in zip(sizes, kernel, stride, pad)]


_ROOTS = {1: lambda x: x, 2: np.sqrt, 3: np.cbrt}  # lp pooling sums signed powers


def _pooling(inputs, attrs):
    data, last = _channels_first(inputs[0], attrs)
    sizes, kind = data.shape[2:], attrs.get("pool_type", "max")
    kernel, convention = tuple_value(attrs, "kernel"), attrs.get("pooling_convention", "valid")
    if value(attrs, "global_pool", False):
        kernel, stride, pad, convention = sizes, (1,) * len(sizes), (0,) * len(sizes), "valid"
    else:
        stride, pad, _ = _geometry(attrs, len(kernel))
    out = _pooled_sizes(sizes, kernel, stride, pad, convention)
    include, power = value(attrs, "count_include_pad", True), value(attrs, "p_value", 2)
    result = np.zeros((*data.shape[:2], *out), data.dtype)
    for place in itertools.product(*map(range, out)):
        starts = [i * s - p for i, s, p in zip(place, stride, pad)]
        within = [slice(max(a, 0), min(a + k, n)) for a, k, n in zip(starts, kernel, sizes)]
        seen = data[(slice(None), slice(None), *within)].reshape(*data.shape[:2], -1)
        padded = np.prod([min(a + k, n + p) - a for a, k, n, p in zip(starts, kernel, sizes, pad)])
        reduced = {
            "max": lambda: seen.max(-1),  # noqa: B023
            "sum": lambda: seen.sum(-1),  # noqa: B023
            "avg": lambda: seen.sum(-1) / max(padded if include else seen.shape[-1], 1),  # noqa: B023
            "lp": lambda: _ROOTS[power]((seen**power).sum(-1)),  # noqa: B023
        }[kind]()
        result[(slice(None), slice(None), *place)] = reduced
    return [_restored(result, last)]


REFERENCES = {"Convolution": _convolution, "Deconvolution": _deconvolution, "Pooling": _pooling}

"""NumPy references of operators that resample images or read them at points and regions."""

from __future__ import annotations

import math

import numpy as np

from .attributes import tuple_value, value


def _upsampling(inputs, attrs):
    scale = value(attrs, "scale")
    n, c, h, w = inputs[0].shape
    if attrs["sample_type"] == "bilinear":
        weight, pad = inputs[1], scale // 2
        k = weight.shape[2]
        full = np.zeros((n, c, scale * (h - 1) + k, scale * (w - 1) + k))
        for y in range(h):
            for x in range(w):
                part = inputs[0][:, :, y, x, None, None] * weight[None, :, 0]
                full[:, :, y * scale : y * scale + k, x * scale : x * scale + k] += part
        return [full[:, :, pad : pad + scale * h, pad : pad + scale * w]]
    large = [np.repeat(np.repeat(i, h * scale // i.shape[2], 2), w * scale // i.shape[3], 3) for i in inputs]
    return [sum(large) if attrs.get("multi_input_mode") == "sum" else np.concatenate(large, 1)]


def _interpolate(data, size, axis, align_corners):
    old = data.shape[axis]
    if size == 1:
        at = np.zeros(1)
    elif align_corners:
        at = np.arange(size) * (old - 1) / (size - 1)
    else:
        at = np.maximum((np.arange(size) + 0.5) * old / size - 0.5, 0)
    if size == old:
        at = np.arange(size)
    low = np.minimum(at.astype(int), old - 1)
    high = np.minimum(low + 1, old - 1)
    part = np.expand_dims(at - low, tuple(range(1, data.ndim - axis)))
    return data.take(low, axis) * (1 - part) + data.take(high, axis) * part


def _new_size(mode, size, given, scale):
    if mode == "size":
        return given if scale is None else int(scale * size)
    if mode == "odd_scale":
        return int((size - 1) * scale) + 1 if size % 2 else int(size * scale)
    parity = 0 if "even" in mode else 1
    return size if size % 2 == parity else size + (1 if mode.endswith("up") else -1)


def _bilinear_resize(inputs, attrs):
    data, mode = inputs[0], attrs.get("mode", "size")
    align = value(attrs, "align_corners", True)
    if mode == "like":
        sizes = inputs[1].shape[2:]
    else:
        sizes = [
            _new_size(mode, data.shape[2], value(attrs, "height", 1), value(attrs, "scale_height")),
            _new_size(mode, data.shape[3], value(attrs, "width", 1), value(attrs, "scale_width")),
        ]
    return [_interpolate(_interpolate(data, sizes[0], 2, align), sizes[1], 3, align)]


def _adaptive_avg_pooling(inputs, attrs):
    data = inputs[0]
    size = tuple_value(attrs, "output_size") or (1,)
    rows, columns = size if len(size) == 2 else size * 2
    h, w = data.shape[2:]
    out = np.zeros((*data.shape[:2], rows, columns))
    for i in range(rows):
        for j in range(columns):
            window = data[
                :, :, i * h // rows : math.ceil((i + 1) * h / rows), j * w // columns : math.ceil((j + 1) * w / columns)
            ]
            out[:, :, i, j] = window.mean((2, 3))
    return [out]


def _pixel(plane, y, x):
    inside = 0 <= y < plane.shape[0] and 0 <= x < plane.shape[1]
    return plane[y, x] if inside else 0.0


def _read(plane, y, x):
    low_y, low_x = math.floor(y), math.floor(x)
    total = 0.0
    for dy in (0, 1):
        for dx in (0, 1):
            weight = (1 - abs(y - low_y - dy)) * (1 - abs(x - low_x - dx))
            total += weight * _pixel(plane, low_y + dy, low_x + dx)
    return total


def _bilinear_sampler(inputs, attrs):
    data, grid = inputs
    n, c, h, w = data.shape
    out = np.zeros((n, c, *grid.shape[2:]))
    for index in np.ndindex(*out.shape):
        b, ch, i, j = index
        out[index] = _read(data[b, ch], (grid[b, 1, i, j] + 1) * (h - 1) / 2, (grid[b, 0, i, j] + 1) * (w - 1) / 2)
    return [out]


def _line(count):
    return np.linspace(-1, 1, count) if count > 1 else np.zeros(1)


def _grid_generator(inputs, attrs):
    data = inputs[0]
    if attrs["transform_type"] == "affine":
        h, w = tuple_value(attrs, "target_shape")
        y, x = np.meshgrid(_line(h), _line(w), indexing="ij")
        points = np.stack([x, y, np.ones_like(x)])
        return [np.einsum("nij,jhw->nihw", data.reshape(-1, 2, 3), points)]
    h, w = data.shape[2:]
    y, x = np.meshgrid(np.arange(h), np.arange(w), indexing="ij")
    half = np.array([(w - 1) / 2, (h - 1) / 2]).reshape(1, 2, 1, 1)
    return [(data + np.stack([x, y])) / half - 1]


def _spatial_transformer(inputs, attrs):
    grid = _grid_generator([inputs[1]], {"transform_type": "affine", "target_shape": attrs["target_shape"]})
    return _bilinear_sampler([inputs[0], grid[0]], {})


def _round(x):
    return math.floor(abs(x) + 0.5) * (1 if x >= 0 else -1)


def _roi_pooling(inputs, attrs):
    data, rois = inputs
    rows, columns = tuple_value(attrs, "pooled_size")
    scale = value(attrs, "spatial_scale")
    out = np.zeros((rois.shape[0], data.shape[1], rows, columns))
    for r, roi in enumerate(rois):
        if not 0 <= int(roi[0]) < data.shape[0]:
            continue
        left, top, right, bottom = (_round(v * scale) for v in roi[1:])
        bin_h, bin_w = max(bottom - top + 1, 1) / rows, max(right - left + 1, 1) / columns
        for i in range(rows):
            for j in range(columns):
                ys = np.clip([top + math.floor(i * bin_h), top + math.ceil((i + 1) * bin_h)], 0, data.shape[2])
                xs = np.clip([left + math.floor(j * bin_w), left + math.ceil((j + 1) * bin_w)], 0, data.shape[3])
                window = data[int(roi[0]), :, ys[0] : ys[1], xs[0] : xs[1]]
                out[r, :, i, j] = window.max((1, 2)) if window.size else 0
    return [out]


def _align_point(plane, y, x):
    h, w = plane.shape
    if y < -1 or y > h or x < -1 or x > w:
        return 0.0
    return _read(plane, min(max(y, 0), h - 1), min(max(x, 0), w - 1))


def _roi_align(inputs, attrs):
    data, rois = inputs
    rows, columns = tuple_value(attrs, "pooled_size")
    scale, ratio = value(attrs, "spatial_scale"), value(attrs, "sample_ratio", -1)
    aligned, sensitive = value(attrs, "aligned", False), value(attrs, "position_sensitive", False)
    channels = data.shape[1] // (rows * columns if sensitive else 1)
    out = np.zeros((rois.shape[0], channels, rows, columns))
    for r, c, i, j in np.ndindex(*out.shape):
        roi = rois[r]
        left, top, right, bottom = roi[1:] * scale - (0.5 if aligned else 0)
        width, height = (right - left, bottom - top) if aligned else (max(right - left, 1), max(bottom - top, 1))
        if not 0 <= int(roi[0]) < data.shape[0] or width <= 0 or height <= 0:
            continue
        bin_h, bin_w = height / rows, width / columns
        count_y, count_x = (ratio, ratio) if ratio > 0 else (math.ceil(bin_h), math.ceil(bin_w))
        plane = data[int(roi[0]), c * rows * columns + i * columns + j if sensitive else c]
        points = [
            _align_point(plane, top + (i + (a + 0.5) / count_y) * bin_h, left + (j + (b + 0.5) / count_x) * bin_w)
            for a in range(count_y)
            for b in range(count_x)
        ]
        out[r, c, i, j] = np.mean(points)
    return [out]


REFERENCES = {
    "UpSampling": _upsampling,
    "_contrib_BilinearResize2D": _bilinear_resize,
    "_contrib_AdaptiveAvgPooling2D": _adaptive_avg_pooling,
    "BilinearSampler": _bilinear_sampler,
    "GridGenerator": _grid_generator,
    "SpatialTransformer": _spatial_transformer,
    "ROIPooling": _roi_pooling,
    "_contrib_ROIAlign": _roi_align,
}

"""NumPy references of region proposals and region pooling: one region at a time."""

from __future__ import annotations

import numpy as np

from .attributes import tuple_value, value


def _pixel_iou(a, b):
    area = lambda r: (r[2] - r[0] + 1) * (r[3] - r[1] + 1)  # noqa: E731
    width = max(min(a[2], b[2]) - max(a[0], b[0]) + 1, 0)
    height = max(min(a[3], b[3]) - max(a[1], b[1]) + 1, 0)
    return width * height / (area(a) + area(b) - width * height)


def _anchors(attrs):
    stride = value(attrs, "feature_stride", 16)
    out = []
    for ratio in tuple_value(attrs, "ratios", (0.5, 1, 2)):
        for scale in tuple_value(attrs, "scales", (4, 8, 16, 32)):
            width = np.floor(np.sqrt(np.floor(stride**2 / ratio)) + 0.5)
            size = np.array([width, np.floor(width * ratio + 0.5)]) * scale
            center = np.full(2, (stride - 1) / 2)
            out.append(np.concatenate([center - (size - 1) / 2, center + (size - 1) / 2]))
    return out


def _moved(anchor, delta, corners):
    if corners:
        return anchor + delta
    size = anchor[2:] - anchor[:2] + 1
    center = delta[:2] * size + anchor[:2] + (size - 1) / 2
    half = (np.exp(delta[2:]) * size - 1) / 2
    return np.concatenate([center - half, center + half])


def _regions(scores, deltas, info, attrs):
    anchors, stride = _anchors(attrs), value(attrs, "feature_stride", 16)
    limits = np.array([info[1], info[0], info[1], info[0]]) - 1
    least = value(attrs, "rpn_min_size", 16) * info[2]
    found = []
    for y, x, k in np.ndindex(*scores.shape[1:], len(anchors)):
        shifted = anchors[k] + stride * np.array([x, y, x, y])
        box = _moved(shifted, deltas[4 * k : 4 * k + 4, y, x], value(attrs, "iou_loss", False))
        box = np.maximum(np.minimum(box, limits), 0)
        score = scores[len(anchors) + k, y, x]
        if y >= int(info[0] / stride) or x >= int(info[1] / stride):
            score = -1.0
        if min(box[2:] - box[:2]) + 1 < least:
            box, score = box + np.array([-1, -1, 1, 1]) * least / 2, -1.0
        found.append((score, box))
    found.sort(key=lambda f: -f[0])
    top = value(attrs, "rpn_pre_nms_top_n", 6000)
    kept: list[tuple] = []
    for score, box in found[: top if top > 0 else None]:
        if all(_pixel_iou(k[1], box) <= value(attrs, "threshold", 0.7) for k in kept):
            kept.append((score, box))
    return kept[: value(attrs, "rpn_post_nms_top_n", 300)]


def _proposal(inputs, attrs):
    scores, deltas, info = (np.asarray(x, "float64") for x in inputs)
    rows, points = [], []
    for n in range(len(scores)):
        kept = _regions(scores[n], deltas[n], info[n], attrs)
        for i in range(value(attrs, "rpn_post_nms_top_n", 300)):
            score, box = kept[i % len(kept)]
            rows.append([n, *box])
            points.append([score])
    outputs = [np.reshape(rows, (-1, 5)).astype(inputs[0].dtype), np.reshape(points, (-1, 1)).astype(inputs[0].dtype)]
    return outputs if value(attrs, "output_score", False) else outputs[:1]


def _round(x):
    return np.floor(np.abs(x) + 0.5) * np.sign(x)


def _psroi_matrix(attrs, rois, shape):
    """The weights of the data elements in every output: (regions, output channels, bins, bins) + data shape."""
    _batch, _channels, height, width = shape
    scale, dim, bins = (value(attrs, k) for k in ("spatial_scale", "output_dim", "pooled_size"))
    groups = value(attrs, "group_size", 0) or bins
    out = np.zeros((len(rois), dim, bins, bins, *shape))
    for r, c, i, j in np.ndindex(len(rois), dim, bins, bins):
        left, top = _round(rois[r, 1:3]) * scale
        right, bottom = (_round(rois[r, 3:5]) + 1) * scale
        step_x, step_y = max(right - left, 0.1) / bins, max(bottom - top, 0.1) / bins
        rows = slice(*np.clip([np.floor(i * step_y + top), np.ceil((i + 1) * step_y + top)], 0, height).astype(int))
        columns = slice(*np.clip([np.floor(j * step_x + left), np.ceil((j + 1) * step_x + left)], 0, width).astype(int))
        area = max(rows.stop - rows.start, 0) * max(columns.stop - columns.start, 0)
        plane = (c * groups + i * groups // bins) * groups + j * groups // bins
        if area:
            out[r, c, i, j, int(rois[r, 0]), plane, rows, columns] = 1 / area
    return out


def _rotated_matrix(attrs, rois, shape):
    """The weights of the pixels of one channel: (regions, bins, bins, batch, height, width)."""
    batch, _, height, width = shape
    bins, ratio = tuple_value(attrs, "pooled_size"), value(attrs, "sampling_ratio", -1)
    out = np.zeros((len(rois), *bins, batch, height, width))
    for r, i, j in np.ndindex(len(rois), *bins):
        x, y, w, h = rois[r, 1:5] * value(attrs, "spatial_scale")
        size = np.array([max(h, 1.0), max(w, 1.0)]) / bins
        points = [ratio, ratio] if ratio > 0 else np.ceil(size).astype(int)
        angle = np.deg2rad(rois[r, 5])
        for a, b in np.ndindex(*points):
            dy = size[0] * (i + (a + 0.5) / points[0] - bins[0] / 2)
            dx = size[1] * (j + (b + 0.5) / points[1] - bins[1] / 2)
            py, px = dy * np.cos(angle) - dx * np.sin(angle) + y, dx * np.cos(angle) + dy * np.sin(angle) + x
            if not (-1 <= py <= height and -1 <= px <= width):
                continue
            py, px = np.clip(py, 0, height - 1), np.clip(px, 0, width - 1)
            weights = np.outer(
                np.maximum(1 - np.abs(np.arange(height) - py), 0), np.maximum(1 - np.abs(np.arange(width) - px), 0)
            )
            out[r, i, j, int(rois[r, 0])] += weights / (points[0] * points[1])
    return out


def _psroi(inputs, attrs):
    data, rois = (np.asarray(x, "float64") for x in inputs)
    return [np.einsum("rcijnkhw,nkhw->rcij", _psroi_matrix(attrs, rois, data.shape), data).astype(inputs[0].dtype)]


def _psroi_back(inputs, attrs):
    grad, rois = (np.asarray(x, "float64") for x in inputs)
    matrix = _psroi_matrix(attrs, rois, tuple_value(attrs, "data_shape"))
    return [np.einsum("rcijnkhw,rcij->nkhw", matrix, grad).astype(inputs[0].dtype)]


def _rotated(inputs, attrs):
    data, rois = (np.asarray(x, "float64") for x in inputs)
    return [np.einsum("rijnhw,nchw->rcij", _rotated_matrix(attrs, rois, data.shape), data).astype(inputs[0].dtype)]


def _rotated_back(inputs, attrs):
    grad, rois = (np.asarray(x, "float64") for x in inputs)
    matrix = _rotated_matrix(attrs, rois, tuple_value(attrs, "data_shape"))
    return [np.einsum("rijnhw,rcij->nchw", matrix, grad).astype(inputs[0].dtype)]


def _neighbors(position, size):
    """The weights of `size` places at a clamped position, and their derivatives by the position."""
    inside, position = 0 <= position <= size - 1, np.clip(position, 0, size - 1)
    first = min(int(position), size - 1)
    weights, change = np.zeros((2, size))
    second, part = min(first + 1, size - 1), position - first
    weights[first] += 1 - part
    weights[second] += part
    change[first] -= inside
    change[second] += inside
    return weights, change


def _moved_bins(data_shape, rois, trans, attrs):
    """Yields for each output the weights of the data, their derivatives by x and y, and the places of x, y in trans."""
    scale, dim, bins, groups = (value(attrs, k) for k in ("spatial_scale", "output_dim", "pooled_size", "group_size"))
    parts, samples = value(attrs, "part_size", 0) or bins, value(attrs, "sample_per_part", 1)
    std, (_, _, height, width) = value(attrs, "trans_std", 0.0), data_shape
    for r, c, i, j in np.ndindex(len(rois), dim, bins, bins):
        start = _round(rois[r, 1:3]) * scale - 0.5
        size = np.maximum((_round(rois[r, 3:5]) + 1) * scale - 0.5 - start, 0.1)
        at, move = None, np.zeros(2)
        if trans is not None:
            kind = c // (dim // (trans.shape[1] // 2))
            at = [(r, 2 * kind + k, i * parts // bins, j * parts // bins) for k in (0, 1)]
            move = np.array([trans[p] for p in at]) * std
        weights, along = np.zeros(data_shape), np.zeros((2, *data_shape))
        plane, points = (c * groups + i * groups // bins) * groups + j * groups // bins, 0
        for b, a in np.ndindex(samples, samples):
            x, y = start + move * size + size / bins * (np.array([j, i]) + np.array([a, b]) / samples)
            if not (-0.5 <= x <= width - 0.5 and -0.5 <= y <= height - 0.5):
                continue
            points += 1
            rows, rows_change = _neighbors(y, height)
            columns, columns_change = _neighbors(x, width)
            target = (int(rois[r, 0]), plane)
            weights[target] += np.outer(rows, columns)
            along[0][target] += np.outer(rows, columns_change) * std * size[0]
            along[1][target] += np.outer(rows_change, columns) * std * size[1]
        yield (r, c, i, j), weights / max(points, 1), along / max(points, 1), at, points


def _deformable_psroi(inputs, attrs):
    data, rois, *trans = (np.asarray(x, "float64") for x in inputs)
    shape = (len(rois), value(attrs, "output_dim")) + (value(attrs, "pooled_size"),) * 2
    out, count = np.zeros((2, *shape))
    for place, weights, _, _, points in _moved_bins(data.shape, rois, trans[0] if trans else None, attrs):
        out[place], count[place] = (weights * data).sum(), points
    return [out.astype(inputs[0].dtype), count.astype(inputs[0].dtype)]


def _deformable_psroi_back(inputs, attrs):
    grad, data, rois, trans = (np.asarray(x, "float64") for x in inputs)
    data_grad, trans_grad = np.zeros(data.shape), np.zeros(trans.shape)
    for place, weights, along, at, _ in _moved_bins(data.shape, rois, trans, attrs):
        data_grad += grad[place] * weights
        for k in (0, 1):
            trans_grad[at[k]] += grad[place] * (along[k] * data).sum()
    return [data_grad.astype(inputs[0].dtype), trans_grad.astype(inputs[0].dtype)]


REFERENCES = {
    "_contrib_DeformablePSROIPooling": _deformable_psroi,
    "_backward_DeformablePSROIPooling": _deformable_psroi_back,
    "_contrib_Proposal": _proposal,
    "_contrib_MultiProposal": _proposal,
    "_contrib_PSROIPooling": _psroi,
    "_backward_PSROIPooling": _psroi_back,
    "_contrib_RROIAlign": _rotated,
    "_backward_RROIAlign": _rotated_back,
}

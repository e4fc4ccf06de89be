"""NumPy references of the box operators of src/ops/contrib: one box at a time, as the papers define them."""

from __future__ import annotations

import numpy as np

from .attributes import tuple_value, value


def _corners(box, form):
    if form == "corner":
        return tuple(box)
    x, y, w, h = box
    return x - w / 2, y - h / 2, x + w / 2, y + h / 2


def _area(box):
    left, top, right, bottom = box
    return max(right - left, 0.0) * max(bottom - top, 0.0)


def _iou(a, b):
    w = min(a[2], b[2]) - max(a[0], b[0])
    h = min(a[3], b[3]) - max(a[1], b[1])
    common = w * h if w > 0 and h > 0 else 0.0
    return common / (_area(a) + _area(b) - common) if common > 0 else 0.0


def _box_iou(inputs, attrs):
    lhs, rhs = (np.asarray(x, "float64") for x in inputs)
    form = attrs.get("format", "corner")
    left, right = ([_corners(b, form) for b in x.reshape(-1, 4)] for x in (lhs, rhs))
    out = np.array([[_iou(a, b) for b in right] for a in left])
    return [out.reshape(lhs.shape[:-1] + rhs.shape[:-1]).astype(inputs[0].dtype)]


def _changed(box, source, target):
    left, top, right, bottom = _corners(box, source)
    if target == "corner":
        return left, top, right, bottom
    return (left + right) / 2, (top + bottom) / 2, right - left, bottom - top


def _nms_rows(rows, attrs):
    start, score_index = value(attrs, "coord_start", 2), value(attrs, "score_index", 1)
    id_index, background = value(attrs, "id_index", -1), value(attrs, "background_id", -1)
    topk, form = value(attrs, "topk", -1), attrs.get("in_format", "corner")
    keep = [i for i, r in enumerate(rows) if r[score_index] > value(attrs, "valid_thresh", 0.0)]
    if id_index >= 0:
        keep = [i for i in keep if rows[i][id_index] != background]
    keep.sort(key=lambda i: -rows[i][score_index])
    if topk >= 0:
        keep = keep[:topk]
    chosen: list[int] = []
    for i in keep:
        rivals = chosen
        if id_index >= 0 and not value(attrs, "force_suppress", False):
            rivals = [j for j in chosen if int(rows[j][id_index]) == int(rows[i][id_index])]
        here = _corners(rows[i][start : start + 4], form)
        if all(
            _iou(_corners(rows[j][start : start + 4], form), here) <= value(attrs, "overlap_thresh", 0.5)
            for j in rivals
        ):
            chosen.append(i)
    return chosen


def _box_nms(inputs, attrs):
    data = np.asarray(inputs[0], "float64")
    if value(attrs, "topk", -1) == 0:
        count = data.shape[-2]
        return [inputs[0], np.broadcast_to(np.arange(count)[:, None], (*data.shape[:-1], 1))]
    out, record = np.full_like(data, -1.0), np.full((*data.shape[:-1], 1), -1, "int64")
    start = value(attrs, "coord_start", 2)
    source, target = attrs.get("in_format", "corner"), attrs.get("out_format", "corner")
    for batch in np.ndindex(data.shape[:-2]):
        for place, row in enumerate(_nms_rows(data[batch], attrs)):
            out[(*batch, place)] = data[(*batch, row)]
            if source != target:
                box = _changed(data[(*batch, row)][start : start + 4], source, target)
                out[(*batch, place)][start : start + 4] = box
            record[(*batch, place)] = row
    return [out.astype(inputs[0].dtype), record]


def _format_matrix(source, target):
    """The matrix of the linear map from one box format to the other."""
    return np.array([_changed(unit, source, target) for unit in np.eye(4)]).T


def _moved(inputs, attrs, forward):
    data, record = inputs
    matrix = np.eye(data.shape[-1])
    start = value(attrs, "coord_start", 2)
    matrix[start : start + 4, start : start + 4] = _format_matrix(
        attrs.get("in_format", "corner"), attrs.get("out_format", "corner")
    )
    out = np.zeros(data.shape)
    for index in np.ndindex(data.shape[:-1]):
        named = (*index[:-1], int(record[index][0]))
        if named[-1] < 0:
            continue
        if forward:
            out[index] = matrix @ data[named]
        else:
            out[named] = matrix.T @ data[index]
    return [out.astype(data.dtype)]


def _box_encode(inputs, attrs):
    samples, matches, anchors, refs, means, stds = (np.asarray(x, "float64") for x in inputs)
    positive = samples > 0.5
    picked = np.take_along_axis(refs, np.where(positive, matches, 0).astype(int)[..., None], axis=1)
    center = lambda b: (b[..., :2] + b[..., 2:]) / 2  # noqa: E731
    size = lambda b: b[..., 2:] - b[..., :2]  # noqa: E731
    with np.errstate(all="ignore"):
        codes = np.concatenate(
            [(center(picked) - center(anchors)) / size(anchors), np.log(size(picked) / size(anchors))], -1
        )
        targets = np.where(positive[..., None], (codes - means) / stds, 0.0)
    masks = np.broadcast_to(positive[..., None], targets.shape)
    return [targets.astype(inputs[0].dtype), masks.astype(inputs[0].dtype)]


def _box_decode(inputs, attrs):
    data, anchors = (np.asarray(x, "float64") for x in inputs)
    if attrs.get("format", "center") == "corner":
        anchors = np.concatenate([(anchors[..., :2] + anchors[..., 2:]) / 2, anchors[..., 2:] - anchors[..., :2]], -1)
    codes = data * [value(attrs, f"std{k}", 1.0) for k in range(4)]
    center = codes[..., :2] * anchors[..., 2:] + anchors[..., :2]
    logs = codes[..., 2:]
    if value(attrs, "clip", -1.0) > 0:
        logs = np.minimum(logs, value(attrs, "clip"))
    half = np.exp(logs) * anchors[..., 2:] / 2
    return [np.concatenate([center - half, center + half], -1).astype(inputs[0].dtype)]


def _bipartite_matching(inputs, attrs):
    scores = np.asarray(inputs[0], "float64")
    *batch, rows, columns = scores.shape
    sign = 1.0 if value(attrs, "is_ascend", False) else -1.0
    topk, threshold = value(attrs, "topk", -1), value(attrs, "threshold")
    row_mates, column_mates = -np.ones((*batch, rows)), -np.ones((*batch, columns))
    for b in np.ndindex(*batch):
        left = sorted((sign * scores[b][r, c], r, c) for r in range(rows) for c in range(columns))
        pairs = 0
        for score, r, c in left:
            if score >= sign * threshold or (topk > 0 and pairs == topk):
                break
            if row_mates[b][r] < 0 and column_mates[b][c] < 0:
                row_mates[b][r], column_mates[b][c] = c, r
                pairs += 1
    return [row_mates.astype(inputs[0].dtype), column_mates.astype(inputs[0].dtype)]


def _multibox_prior(inputs, attrs):
    height, width = inputs[0].shape[2:4]
    sizes, ratios = tuple_value(attrs, "sizes", (1.0,)), tuple_value(attrs, "ratios", (1.0,))
    steps, offsets = tuple_value(attrs, "steps", (-1, -1)), tuple_value(attrs, "offsets", (0.5, 0.5))
    step_y, step_x = (1 / height, 1 / width) if min(steps) <= 0 else steps
    kinds = [(s, ratios[0]) for s in sizes] + [(sizes[0], r) for r in ratios[1:]]
    boxes = []
    for row in range(height):
        for column in range(width):
            y, x = (row + offsets[0]) * step_y, (column + offsets[1]) * step_x
            for size, ratio in kinds:
                w, h = size * np.sqrt(ratio) * height / width / 2, size / np.sqrt(ratio) / 2
                boxes.append([x - w, y - h, x + w, y + h])
    out = np.array(boxes)[None]
    return [(np.clip(out, 0, 1) if value(attrs, "clip", False) else out).astype(inputs[0].dtype)]


def _target_of_one(anchors, labels, scores, attrs):
    count = len(anchors)
    loc, mask = np.zeros((count, 4)), np.zeros((count, 4))
    classes = np.full(count, float(value(attrs, "ignore_label", -1.0)))
    ends = np.flatnonzero(labels[:, 0] == -1.0)
    objects = labels[: ends[0]] if len(ends) else labels
    if not len(objects):
        return loc, mask, classes
    overlaps = np.array([[_iou(a, o[1:5]) for o in objects] for a in anchors])
    owner: dict[int, int] = {}
    free = overlaps.copy()
    while free.size and free.max() > 1e-6:
        anchor, item = np.unravel_index(free.argmax(), free.shape)
        owner[int(anchor)] = int(item)
        free[anchor, :] = free[:, item] = 0
    threshold, ratio = value(attrs, "overlap_threshold", 0.5), value(attrs, "negative_mining_ratio", -1.0)
    for j in range(count):
        if threshold > 0 and j not in owner and overlaps[j].max() > threshold:
            owner[j] = int(overlaps[j].argmax())
    negatives = [j for j in range(count) if j not in owner]
    if ratio > 0:
        negatives = [j for j in negatives if overlaps[j].max() < value(attrs, "negative_mining_thresh", 0.5)]
        weights = np.exp(scores - scores.max(0))
        negatives.sort(key=lambda j: (weights[0] / weights.sum(0))[j])
        negatives = negatives[: int(len(owner) * ratio)]
    classes[negatives] = 0.0
    variances = tuple_value(attrs, "variances", (0.1, 0.1, 0.2, 0.2))
    for j, k in owner.items():
        classes[j], mask[j] = objects[k][0] + 1, 1.0
        samples, matches = np.ones((1, 1)), np.zeros((1, 1))
        coded = _box_encode(
            [
                samples,
                matches,
                anchors[None, j : j + 1],
                objects[None, k : k + 1, 1:5],
                np.zeros(4),
                np.array(variances),
            ],
            {},
        )
        loc[j] = coded[0][0, 0]
    return loc, mask, classes


def _multibox_target(inputs, attrs):
    anchor, label, scores = (np.asarray(x, "float64") for x in inputs)
    parts = [_target_of_one(anchor[0], label[b], scores[b], attrs) for b in range(len(label))]
    stacked = [np.stack(p) for p in zip(*parts)]
    return [s.reshape(len(label), -1).astype(inputs[0].dtype) for s in stacked]


def _multibox_detection(inputs, attrs):
    probabilities, offsets, anchors = (np.asarray(x, "float64") for x in inputs)
    batch, _, count = probabilities.shape
    codes = {f"std{k}": repr(v) for k, v in enumerate(tuple_value(attrs, "variances", (0.1, 0.1, 0.2, 0.2)))}
    boxes = _box_decode([offsets.reshape(batch, count, 4), anchors], {**codes, "format": "corner"})[0]
    if value(attrs, "clip", True):
        boxes = np.clip(boxes, 0, 1)
    limit, topk = value(attrs, "nms_threshold", 0.5), value(attrs, "nms_topk", -1)
    out = np.full((batch, count, 6), -1.0)
    for b in range(batch):
        best = probabilities[b, 1:].argmax(0)
        found = [[float(best[i]), probabilities[b, 1 + best[i], i], *boxes[b, i]] for i in range(count)]
        found = [f for f in found if f[1] >= value(attrs, "threshold", 0.01)]
        if 0 < limit <= 1:
            ordered = sorted(found, key=lambda f: -f[1])
            keep = topk if 0 < topk < len(found) else len(found)
            found = ordered[:keep] + [[-1.0, *f[1:]] for f in found[keep:]]
            for i, f in enumerate(found[:keep]):
                for g in found[:i]:
                    same = value(attrs, "force_suppress", False) or g[0] == f[0]
                    if f[0] >= 0 and g[0] >= 0 and same and _iou(g[2:], f[2:]) >= limit:
                        f[0] = -1.0
        if found:
            out[b, : len(found)] = found
    return [out.astype(inputs[0].dtype)]


REFERENCES = {
    "_contrib_box_nms": _box_nms,
    "_box_nms_select": lambda inputs, attrs: _moved(inputs, attrs, True),
    "_backward_contrib_box_nms": lambda inputs, attrs: _moved(inputs, attrs, False),
    "_contrib_box_iou": _box_iou,
    "_contrib_box_encode": _box_encode,
    "_contrib_box_decode": _box_decode,
    "_contrib_bipartite_matching": _bipartite_matching,
    "_contrib_MultiBoxPrior": _multibox_prior,
    "_contrib_MultiBoxTarget": _multibox_target,
    "_contrib_MultiBoxDetection": _multibox_detection,
}

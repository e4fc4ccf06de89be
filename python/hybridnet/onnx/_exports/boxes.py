"""Boxes of detectors: overlaps, codes, suppression and anchors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._export_errors import does_not_follow
from .._export_table import export_form, no_form
from .._export_values import Number, Open, Spec, Tensor, product
from .indices import in_range


def corners(g: Any, boxes: Tensor, form: str) -> list[Tensor]:
    """Left, top, right and bottom of boxes in the last axis, each with size 1 there."""
    a, b, c, d = g.split(boxes, boxes.ndim - 1, [1, 1, 1, 1])
    if form == "corner":
        return [a, b, c, d]
    w, h = g.emit("Mul", c, 0.5), g.emit("Mul", d, 0.5)
    return [g.emit("Sub", a, w), g.emit("Sub", b, h), g.emit("Add", a, w), g.emit("Add", b, h)]


def _centers(g: Any, boxes: Tensor, form: str = "corner") -> list[Tensor]:
    """Center and size of boxes, each with size 1 in the last axis."""
    if form == "center":
        return list(g.split(boxes, boxes.ndim - 1, [1, 1, 1, 1]))
    left, top, right, bottom = corners(g, boxes, "corner")
    w, h = g.emit("Sub", right, left), g.emit("Sub", bottom, top)
    return [g.emit("Add", left, g.emit("Mul", w, 0.5)), g.emit("Add", top, g.emit("Mul", h, 0.5)), w, h]


def overlaps(g: Any, first: list[Tensor], second: list[Tensor]) -> Tensor:
    """Intersection over union of boxes that broadcast; 0 for disjoint ones."""
    w = g.emit("Sub", g.emit("Min", first[2], second[2]), g.emit("Max", first[0], second[0]))
    h = g.emit("Sub", g.emit("Min", first[3], second[3]), g.emit("Max", first[1], second[1]))
    common = g.emit("Mul", g.emit("Max", w, 0), g.emit("Max", h, 0))

    def area(box: list[Tensor]) -> Tensor:
        width, height = g.emit("Sub", box[2], box[0]), g.emit("Sub", box[3], box[1])
        return g.emit("Mul", g.emit("Max", width, 0), g.emit("Max", height, 0))

    union = g.emit("Sub", g.emit("Add", area(first), area(second)), common)
    meet = g.emit("Greater", common, 0)
    return g.where(meet, g.emit("Div", common, g.where(meet, union, 1)), 0)


@export_form("_contrib_box_iou")
def _box_iou(g: Any, node: Any) -> Tensor:
    left, right = node.inputs
    form = node.params["format"]
    first = [g.reshape(x, [product(left.dims[:-1]), 1]) for x in corners(g, left, form)]
    second = [g.reshape(x, [1, product(right.dims[:-1])]) for x in corners(g, right, form)]
    return g.reshape(overlaps(g, first, second), node.dims())


# --------------------------------------------------------------------------------------------------------------- codes
@export_form("_contrib_box_encode")
def _box_encode(g: Any, node: Any) -> list[Tensor]:
    samples, matches, anchors, references, means, deviations = node.inputs
    positive = g.unsqueeze(g.emit("Greater", samples, 0.5), [2])
    places = g.where(g.squeeze(positive, [2]), g.cast(matches, "int64"), 0)
    places = in_range(g, places, references.dim(1), "clip")
    spec = Spec(anchors.shapes, references.dtype)
    chosen = g.emit("GatherND", references, g.unsqueeze(places, [2]), batch_dims=1, spec=spec)
    x, y, w, h = _centers(g, anchors)
    rx, ry, rw, rh = _centers(g, chosen)
    codes = [g.emit("Div", g.emit("Sub", rx, x), w), g.emit("Div", g.emit("Sub", ry, y), h)]
    codes += [g.emit("Log", g.emit("Div", rw, w)), g.emit("Log", g.emit("Div", rh, h))]
    scaled = g.emit("Div", g.emit("Sub", g.concat(codes, 2), means), deviations)
    masks = g.expand(g.cast(positive, anchors.dtype), anchors.dims)
    return [g.where(positive, scaled, 0), masks]


def decoded(g: Any, codes: Tensor, anchors: Tensor, factors: list[float], clip: float, form: str) -> Tensor:
    """Corners of boxes from their codes."""
    x, y, w, h = _centers(g, anchors, form)
    dx, dy, dw, dh = (
        part if factor == 1 else g.emit("Mul", part, factor)
        for part, factor in zip(g.split(codes, codes.ndim - 1, [1, 1, 1, 1]), factors, strict=True)
    )
    if clip > 0:
        dw, dh = g.emit("Min", dw, clip), g.emit("Min", dh, clip)
    x, y = g.emit("Add", g.emit("Mul", dx, w), x), g.emit("Add", g.emit("Mul", dy, h), y)
    w = g.emit("Mul", g.emit("Mul", g.emit("Exp", dw), w), 0.5)
    h = g.emit("Mul", g.emit("Mul", g.emit("Exp", dh), h), 0.5)
    parts = [g.emit("Sub", x, w), g.emit("Sub", y, h), g.emit("Add", x, w), g.emit("Add", y, h)]
    return g.concat(parts, codes.ndim - 1)


@export_form("_contrib_box_decode")
def _box_decode(g: Any, node: Any) -> Tensor:
    codes, anchors = node.inputs
    p = node.params
    return decoded(g, codes, anchors, [p[f"std{k}"] for k in range(4)], p["clip"], p["format"])


# --------------------------------------------------------------------------------------------------------- suppression
def _kept(g: Any, boxes: list[Tensor], scores: Tensor, classes: Tensor | None, limit: float) -> Tensor:
    """A mask (batch, count) of the boxes that no better box of their class overlaps by more than the limit.

    Boxes with a score of -infinity take no part. Boxes of different classes are moved apart.
    """
    left, top, right, bottom = boxes
    right, bottom = g.emit("Max", left, right), g.emit("Max", top, bottom)
    whole = g.cast(g.concat([left, top, right, bottom], 2), "float32")
    if classes is not None:
        axes = range(3)
        width = g.emit("Sub", g.reduce("Max", whole, axes, True), g.reduce("Min", whole, axes, True))
        step = g.emit("Add", width, 1.0)
        whole = g.emit("Add", whole, g.emit("Mul", g.unsqueeze(g.cast(classes, "float32"), [2]), step))
    least = g.const(np.float32(-3e38))
    many = g.size(scores.dim(1))
    chosen = g.emit(
        "NonMaxSuppression", whole, g.unsqueeze(g.cast(scores, "float32"), [1]), many, g.const([limit], "float32"),
        g.reshape(least, [1]), dtype="int64",
    )  # fmt: skip
    places = g.emit("Gather", chosen, g.ints([0, 2]), axis=1)
    ones = g.emit("Expand", g.const([True]), g.axis_size(chosen, 0))
    none = g.cast(g.full(scores.dims, 0, "float32"), "bool")
    return g.emit("ScatterND", none, places, ones, spec=scores.spec)


def _best(g: Any, scores: Tensor, most: int) -> Tensor:
    """A mask of the scores (batch, n) that are among the `most` best of a row."""
    size = scores.dim(1)
    count = size.minimum(most) if isinstance(size, Open) else min(size, most)
    _, places = g.emit("TopK", scores, g.size(count), axis=1, outputs=2)
    places.dtype = "int64"
    ones = g.full([scores.dim(0), count], 1, "int32")
    none = g.full(scores.dims, 0, "int32")
    return g.truth(g.emit("ScatterElements", none, places, ones, axis=1, spec=scores.spec))


def _in_order(g: Any, scores: Tensor) -> tuple[Tensor, Tensor]:
    """Scores in falling order, and their places."""
    ordered, places = g.emit("TopK", scores, g.size(scores.dim(1)), axis=1, outputs=2, spec=scores.spec)
    places.dtype, places.spec = "int64", Spec(scores.shapes, "int64")
    return ordered, places


def _rows(g: Any, x: Tensor, places: Tensor) -> Tensor:
    """Rows of each example in another order."""
    return g.emit("GatherND", x, g.unsqueeze(places, [2]), batch_dims=1, spec=x.spec)


def _in_format(g: Any, rows: Tensor, start: int, source: str, target: str) -> Tensor:
    if source == target:
        return rows
    boxes = g.slice(rows, 2, start, start + 4)
    parts = corners(g, boxes, source) if target == "corner" else _centers(g, boxes, source)
    before = [g.slice(rows, 2, 0, start)] if start else []
    after = [g.slice(rows, 2, start + 4, None)] if rows.dim(2) != start + 4 else []
    return g.concat([*before, *parts, *after], 2)


@export_form("_contrib_box_nms")
def _box_nms(g: Any, node: Any) -> list[Tensor]:
    """Rows of boxes that are kept, by falling score; then rows of -1."""
    data, p = node.inputs[0], node.params
    count, width = data.dims[-2:]
    if p["topk"] == 0:
        return [data, g.expand(g.unsqueeze(g.iota(count), [1]), node.dims(1))]
    x = g.reshape(data, [product(data.dims[:-2]), count, width])
    column = p["score_index"] % int(width)
    scores = g.squeeze(g.slice(x, 2, column, column + 1), [2])
    good = g.emit("Greater", scores, p["valid_thresh"])
    classes = None
    if p["id_index"] >= 0:
        classes = g.squeeze(g.slice(x, 2, p["id_index"], p["id_index"] + 1), [2])
        good = g.emit("And", good, g.emit("Not", g.emit("Equal", classes, p["background_id"])))
    ranked = g.where(good, scores, -math.inf)
    if p["topk"] > 0 and (isinstance(count, Open) or p["topk"] < count):
        ranked = g.where(_best(g, ranked, int(p["topk"])), ranked, -math.inf)
    start = p["coord_start"]
    boxes = corners(g, g.slice(x, 2, start, start + 4), p["in_format"])
    whole = None if classes is None or p["force_suppress"] else g.cast(g.cast(classes, "int64"), "float32")
    keep = g.emit("And", _kept(g, boxes, ranked, whole, p["overlap_thresh"]), g.emit("Greater", ranked, -math.inf))
    ordered, places = _in_order(g, g.where(keep, ranked, -math.inf))
    is_kept = g.unsqueeze(g.emit("Greater", ordered, -math.inf), [2])
    rows = _in_format(g, _rows(g, x, places), start, p["in_format"], p["out_format"])
    record = g.where(is_kept, g.unsqueeze(places, [2]), -1)
    return [g.reshape(g.where(is_kept, rows, -1), node.dims()), g.reshape(record, node.dims(1))]


def _rows_in_order(g: Any, rows: Tensor, keys: Tensor) -> Tensor:
    """Rows by falling keys; rows of -1 for keys of -infinity."""
    ordered, places = _in_order(g, keys)
    return g.where(g.unsqueeze(g.emit("Greater", ordered, -math.inf), [2]), _rows(g, rows, places), -1)


@export_form("_contrib_MultiBoxDetection")
def _multibox_detection(g: Any, node: Any) -> Tensor:
    """Rows (class, score, box) by falling score: class -1 where a better box overlaps; then rows of -1.

    Behind the first nms_topk rows are those of the detections in the order of the anchors, with class -1, as in MXNet.
    """
    probabilities, offsets, anchors = node.inputs
    p = node.params
    batch, _, count = probabilities.dims
    boxes = decoded(g, g.reshape(offsets, [batch, count, 4]), anchors, list(p["variances"]), -1, "corner")
    if p["clip"]:
        boxes = g.emit("Clip", boxes, 0, 1)
    classes = g.slice(probabilities, 1, 1, None)
    scores = g.reduce("Max", classes, [1], keepdims=False)
    best = g.emit("ArgMax", classes, axis=1, keepdims=0, spec=scores.spec)
    good = g.emit("GreaterOrEqual", scores, p["threshold"])
    shown = g.cast(best, scores.dtype)
    in_place = g.where(good, g.cast(g.emit("Neg", g.iota(count)), scores.dtype), -math.inf)

    def rows(kinds: Tensor) -> Tensor:
        return g.concat([g.unsqueeze(kinds, [2]), g.unsqueeze(scores, [2]), boxes], 2)

    limit, topk = p["nms_threshold"], int(p["nms_topk"])
    if not 0 < limit <= 1:
        return _rows_in_order(g, rows(shown), in_place)
    ranked = rivals = g.where(good, scores, -math.inf)
    cut = topk > 0 and (isinstance(count, Open) or topk < count)
    if cut:
        rivals = g.where(_best(g, ranked, topk), ranked, -math.inf)
    below = float(np.nextafter(np.float32(limit), np.float32(0)))  # overlaps of the limit itself are too many
    keep = _kept(g, corners(g, boxes, "corner"), rivals, None if p["force_suppress"] else best, below)
    made = _rows_in_order(g, rows(g.where(keep, shown, -1)), ranked)
    if not cut:
        return made
    rest = _rows_in_order(g, rows(g.full(scores.dims, -1, scores.dtype)), in_place)
    return g.concat([g.slice(made, 1, 0, topk), g.slice(rest, 1, topk, None)], 1)


@export_form("_contrib_bipartite_matching")
def _bipartite_matching(g: Any, node: Any) -> list[Tensor]:
    """Takes the best remaining pair, one per iteration, while it is better than the threshold."""
    x, p = node.inputs[0], node.params
    rows, columns = x.dims[-2:]
    sign = -1.0 if p["is_ascend"] else 1.0
    scores = g.reshape(x, [product(x.dims[:-2]), rows * columns])
    if sign < 0:
        scores = g.emit("Neg", scores)
    batch = scores.dim(0)
    pairs = (
        rows.minimum(columns)
        if isinstance(rows, Open)
        else columns.minimum(rows)
        if isinstance(columns, Open)
        else min(rows, columns)
    )
    if p["topk"] > 0 and not isinstance(pairs, Open):
        pairs = min(pairs, int(p["topk"]))

    def is_at(place: Tensor, size: Number) -> Tensor:
        return g.emit("Equal", g.iota(size), place)

    def body(number: Tensor, carried: list[Tensor]) -> tuple[None, list[Tensor], list[Tensor]]:
        left, row_mates, column_mates = carried
        place = g.emit("ArgMax", left, axis=1, keepdims=1)
        place.spec = g.reduce_spec(left, [1], keepdims=True, dtype="int64")
        score = g.emit("GatherElements", left, place, axis=1, spec=place.spec)
        good = g.emit("Greater", score, sign * p["threshold"])
        row, column = g.emit("Div", place, g.number(columns, "int64")), g.emit("Mod", place, g.number(columns, "int64"))
        here, there = g.emit("And", is_at(row, rows), good), g.emit("And", is_at(column, columns), good)
        row_mates = g.where(here, g.cast(column, x.dtype), row_mates)
        column_mates = g.where(there, g.cast(row, x.dtype), column_mates)
        used = g.emit("Or", g.unsqueeze(here, [2]), g.unsqueeze(there, [1]))
        left = g.where(g.reshape(used, [batch, rows * columns]), -math.inf, left)
        return None, [left, row_mates, column_mates], []

    start = [scores, g.full([batch, rows], -1, x.dtype), g.full([batch, columns], -1, x.dtype)]
    carried, _ = g.loop(g.number(pairs, "int64"), None, start, body)
    return [g.reshape(carried[1], node.dims(0)), g.reshape(carried[2], node.dims(1))]


# ------------------------------------------------------------------------------------------------------------- anchors
@export_form("_contrib_MultiBoxPrior")
def _multibox_prior(g: Any, node: Any) -> Tensor:
    """Boxes around the pixels, which follow from the size of the image alone."""
    x, p = node.inputs[0], node.params
    height, width = x.dims[2:4]
    if isinstance(height, Open) or isinstance(width, Open):
        raise does_not_follow("the number of anchors", x.shapes)
    sizes, ratios = list(p["sizes"]), list(p["ratios"])
    steps, offsets = p["steps"], p["offsets"]
    step_y, step_x = (1 / height, 1 / width) if min(steps) <= 0 else steps
    kinds = [(size, ratios[0]) for size in sizes] + [(sizes[0], ratio) for ratio in ratios[1:]]
    y, x = np.meshgrid(
        (np.arange(height) + offsets[0]) * step_y, (np.arange(width) + offsets[1]) * step_x, indexing="ij"
    )
    boxes = []
    for size, ratio in kinds:
        w, h = size * math.sqrt(ratio) * height / width / 2, size / math.sqrt(ratio) / 2
        boxes.append(np.stack([x - w, y - h, x + w, y + h], -1))
    made = np.stack(boxes, 2).reshape(1, -1, 4)
    made = made.clip(0, 1) if p["clip"] else made
    return g.constant_input(node.name, made.astype(node.outputs[0].dtype))


no_form("targets for the training of detectors", "_contrib_MultiBoxTarget")
no_form(
    "an algorithm of several steps; use the operators box_decode and box_nms",
    "_contrib_Proposal _contrib_MultiProposal",
)

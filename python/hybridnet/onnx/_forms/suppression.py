"""Detection boxes without those that overlap a better one."""

from __future__ import annotations

from typing import Any

from .._arithmetic import calculate, count, cut, join
from .._builder import Param, Runtime, is_known
from .._table import form
from .._values import Value
from .gathering import tuples_first


@form("NonMaxSuppression")
def non_max_suppression(
    g: Any, node: Any, boxes: Any, scores: Any, most: Any = None, overlap: Any = None, least_score: Any = None
) -> Any:
    """Triples (batch, class, box) of the boxes that are kept, from the best to the worst of each batch and class."""
    limit = 0 if most is None else g.item(g.reshape(most, [1]))
    if is_known(limit) and limit <= 0:
        return g.reshape(g.constant([], node.name, "int64"), [0, 3])
    kept = _kept(g, node, boxes, scores, overlap, least_score)
    best = _first_rows(g, kept, int(limit) if is_known(limit) else limit, most)
    numbers = g.emit("_np_squeeze", [cut(g, best, 3, 5, 6)], axis=3)
    is_box = g.emit("_npi_greater_equal_scalar", [numbers], scalar=0)
    shapes = [(size, 3) for size in g.data_size()]
    places = g.emit("_npx_nonzero", [is_box], shapes=shapes, dtype="int64")
    box = g.emit("gather_nd", [numbers, tuples_first(g, places)])
    column = g.emit("expand_dims", [g.cast(box, "int64")], axis=1)
    return join(g, [cut(g, places, 1, 0, 2), column], 1, node.name)


def _kept(g: Any, node: Any, boxes: Value, scores: Value, overlap: Value | None, least_score: Value | None) -> Value:
    """(batch, class, box, 6): score, coordinates and number of the kept boxes, in order; the other rows are -1."""
    limit: Param = 0.0 if overlap is None else g.item(g.reshape(overlap, [1]))
    least: Param = float("-inf") if least_score is None else g.item(g.reshape(least_score, [1]))
    is_center = bool(node.attr("center_point_box", 0))
    if not is_center:
        boxes = _ordered_corners(g, boxes)
    dims = g.dims(scores)
    rows = [*dims, 1]
    numbers = count(g, g.dim(boxes, 1), boxes.dtype, (1, 1, -1, 1))
    data = join(
        g,
        [
            g.reshape(scores, rows),
            g.broadcast_to(g.emit("expand_dims", [boxes], axis=1), [*dims, 4]),
            g.broadcast_to(numbers, rows),
        ],
        3,
    )
    settings = {
        "overlap_thresh": limit,
        "valid_thresh": least,
        "coord_start": 1,
        "score_index": 0,
        "id_index": -1,
        "force_suppress": True,
        "in_format": "center" if is_center else "corner",
        "out_format": "center" if is_center else "corner",
    }
    if not any(isinstance(item, Runtime) for item in (limit, least)):
        made: Value = g.emit("_contrib_box_nms", [data], **settings)
        return made
    record = [(*shape[:-1], 1) for shape in data.shapes]
    both = {"outputs": 2, "shapes": [data.shapes, record], "dtype": [data.dtype, "int64"]}
    kept: Value = g.emit("_contrib_box_nms", [data], **both, **settings)[0]
    return kept


def _ordered_corners(g: Any, boxes: Value) -> Value:
    """The lower corner in front: files may have any two opposite corners."""
    one, other = cut(g, boxes, 2, 0, 2), cut(g, boxes, 2, 2, 4)
    return join(g, [calculate(g, "min", one, other), calculate(g, "max", one, other)], 2)


def _first_rows(g: Any, kept: Value, limit: Param, most: Value | None) -> Value:
    if not isinstance(limit, Runtime):
        return cut(g, kept, 2, 0, limit)
    shapes = [(*s[:2], size, s[3]) for s, size in zip(kept.shapes, g.data_size(most), strict=True)]
    bound = g.emit("_maximum_scalar", [g.reshape(most, [1])], scalar=0)
    made: Value = g.emit("slice_axis", [kept], axis=2, begin=0, end=Runtime(bound, 0), shapes=shapes)
    return made


__all__ = ["non_max_suppression"]

"""Resampling of one axis: the places that are read, the weights of the elements around them, and their sum.

All formulas are arithmetic of tensors, so that sizes and scales may be open, or be computed from data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ._arithmetic import Term, calculate, count, permute
from ._errors import wrong
from ._sizes import Number, Size, apply
from ._values import Value

__all__ = ["AxisPlan", "Rules", "at_places", "far_weight", "inside", "near_weight", "places", "rounded", "weighted"]


@dataclass
class Rules:
    """The attributes of Resize."""

    mode: str = "nearest"
    coordinates: str = "asymmetric"
    rounding: str = "simple"
    cubic: float = -0.75
    exclude_outside: bool = False
    extrapolation: float = 0.0
    antialias: bool = False


@dataclass
class AxisPlan:
    """One axis: its size before and after, the scale, and the region that is read (tf_crop_and_resize).

    `by_size`: the scale is the quotient of the sizes. `line`: 0, 1 ... up to the new size, float64.
    """

    axis: int
    size: Number
    target: Term
    scale: Term
    line: Value
    by_size: bool
    start: Term = 0.0
    end: Term = 1.0


def places(g: Any, plan: AxisPlan, rules: Rules) -> Value:
    """The place along the axis that each element of the result is read from."""

    def scaled(line: Value) -> Value:
        if plan.by_size:  # exact where the place is an integer
            return calculate(g, "/", calculate(g, "*", line, plan.size), plan.target)
        return calculate(g, "/", line, plan.scale)

    width = plan.target if plan.by_size else calculate(g, "*", plan.scale, plan.size)
    last = apply("-", plan.size, 1)
    kind = rules.coordinates
    if kind == "asymmetric":
        return scaled(plan.line)
    if kind in ("half_pixel", "pytorch_half_pixel", "half_pixel_symmetric", "tf_half_pixel_for_nn"):
        found = scaled(calculate(g, "+", plan.line, 0.5))
        if kind != "tf_half_pixel_for_nn":
            found = calculate(g, "-", found, 0.5)
        if kind == "pytorch_half_pixel":  # one element is read from the start
            return calculate(g, "*", found, calculate(g, "min", calculate(g, "-", plan.target, 1), 1))
        if kind == "half_pixel_symmetric":
            if plan.by_size:
                return found
            rest = calculate(g, "-", plan.size, calculate(g, "/", plan.target, plan.scale))
            return calculate(g, "+", found, calculate(g, "/", rest, 2))
        return found
    steps = calculate(g, "max", calculate(g, "-", width, 1), 1e-9)  # if there is one element, it is number 0
    if kind == "align_corners":
        return calculate(g, "/", calculate(g, "*", plan.line, last), steps)
    if kind == "tf_crop_and_resize":
        length = calculate(g, "-", plan.end, plan.start)
        found = calculate(g, "/", calculate(g, "*", calculate(g, "*", plan.line, length), last), steps)
        alone = calculate(g, "*", calculate(g, "==", width, 1), calculate(g, "/", length, 2))
        return calculate(g, "+", found, calculate(g, "*", calculate(g, "+", plan.start, alone), last))
    raise wrong(f"coordinate_transformation_mode is '{kind}'")


def inside(g: Any, plan: AxisPlan, at: Value) -> Value:
    """1 where a place is within the axis, else 0; rounding errors do not move the ends."""
    upper = calculate(g, "<=", at, apply("+", plan.size, -1 + 1e-5))
    return calculate(g, "*", calculate(g, "<=", -1e-5, at), upper)


def rounded(g: Any, plan: AxisPlan, at: Value, rules: Rules) -> Value:
    """The nearest whole places. Halves that a scale in float32 moves by its rounding error are halves."""
    at = g.cast(at, "float32")
    kind = rules.rounding
    if kind == "floor":
        return g.emit("floor", [at])
    if kind == "ceil":
        return g.emit("ceil", [at])
    if kind == "round_prefer_floor":
        return g.emit("ceil", [calculate(g, "-", at, 0.5)])
    if kind == "round_prefer_ceil":
        return g.emit("floor", [calculate(g, "+", at, 0.5)])
    if kind == "simple":  # versions before 11: down, but up where the axis gets shorter
        low = g.emit("floor", [at])
        shrinks = calculate(g, "<", plan.scale, 1)
        if not isinstance(shrinks, (Size, Value)):
            return g.emit("ceil", [at]) if shrinks else low
        if isinstance(shrinks, Value):
            shrinks = g.cast(shrinks, at.dtype)
        return calculate(g, "+", low, calculate(g, "*", calculate(g, "<", low, at), shrinks))
    raise wrong(f"nearest_mode is '{kind}'")


def at_places(g: Any, x: Value, plan: AxisPlan, whole: Value, name: str = "") -> Value:
    """The elements at whole places; outside of the axis the nearest one."""
    nearest = calculate(g, "min", calculate(g, "max", whole, 0), apply("-", plan.size, 1))
    return g.emit("take", [x, g.cast(nearest, "int64")], name=name, axis=plan.axis)


def weighted(g: Any, x: Value, plan: AxisPlan, rules: Rules) -> Value:
    """The sum of the elements around each place by the weights of the mode."""
    if rules.antialias and (isinstance(plan.scale, (Size, Value)) or plan.scale < 1):
        return _smoothed(g, x, plan, rules)
    at = places(g, plan, rules)
    low = g.emit("floor", [at])
    part = calculate(g, "-", at, low)
    if rules.mode == "linear":
        first, weights = 0, [calculate(g, "-", 1, part), part]
    else:
        distances = [calculate(g, "+", part, 1), part, calculate(g, "-", 1, part), calculate(g, "-", 2, part)]
        first = -1
        kinds = (far_weight, near_weight, near_weight, far_weight)
        weights = [kind(g, distance, rules.cubic) for kind, distance in zip(kinds, distances, strict=True)]
    spots = [calculate(g, "+", low, first + k) for k in range(len(weights))]
    if rules.exclude_outside:
        weights = [
            calculate(g, "*", weight, inside(g, plan, spot)) for weight, spot in zip(weights, spots, strict=True)
        ]
        weights = [calculate(g, "/", weight, _sum(g, weights)) for weight in weights]
    terms = []
    for weight, spot in zip(weights, spots, strict=True):
        factor = g.reshape(g.cast(weight, x.dtype), [-1 if i == plan.axis else 1 for i in range(x.ndim)])
        terms.append(calculate(g, "*", at_places(g, x, plan, spot), factor))
    return _sum(g, terms)


def _sum(g: Any, terms: list[Value]) -> Value:
    result = terms[0]
    for term in terms[1:]:
        result = calculate(g, "+", result, term)
    return result


def near_weight(g: Any, d: Value, a: float) -> Value:
    """The cubic weight at a distance of at most 1, for coefficient a."""
    inner = calculate(g, "-", calculate(g, "*", d, a + 2), a + 3)
    return calculate(g, "+", calculate(g, "*", inner, calculate(g, "*", d, d)), 1)


def far_weight(g: Any, d: Value, a: float) -> Value:
    """The cubic weight at a distance of 1 to 2."""
    inner = calculate(g, "-", calculate(g, "*", d, a), 5 * a)
    inner = calculate(g, "+", calculate(g, "*", inner, d), 8 * a)
    return calculate(g, "-", calculate(g, "*", inner, d), 4 * a)


def _smoothed(g: Any, x: Value, plan: AxisPlan, rules: Rules) -> Value:
    """Antialiasing: the weights reach as far as the axis shrinks; a product with the matrix of all weights.

    The axis continues with its last elements on both sides, or ends if exclude_outside is set.
    """
    radius = 1 if rules.mode == "linear" else 2
    scale = calculate(g, "min", plan.scale, 1.0)
    margin: Term = 0
    if not rules.exclude_outside:
        margin = calculate(g, "/", radius, scale)
        margin = g.emit("ceil", [margin]) if isinstance(margin, Value) else apply("ceil", margin)
        margin = calculate(g, "+", margin, 1)
    length = calculate(g, "+", calculate(g, "*", margin, 2), plan.size)
    columns = count(g, length, "float64", [1, -1])
    columns = calculate(g, "-", columns, margin)
    rows = g.reshape(places(g, plan, rules), [-1, 1])
    distance = g.emit("abs", [calculate(g, "*", calculate(g, "-", columns, rows), scale)])
    if rules.mode == "linear":
        matrix = calculate(g, "max", calculate(g, "-", 1, distance), 0)
    else:
        near = calculate(g, "*", near_weight(g, distance, rules.cubic), calculate(g, "<=", distance, 1))
        middle = calculate(g, "*", calculate(g, "<", 1, distance), calculate(g, "<", distance, 2))
        matrix = calculate(g, "+", near, calculate(g, "*", far_weight(g, distance, rules.cubic), middle))
    matrix = calculate(g, "/", matrix, g.emit("sum", [matrix], axis=(1,), keepdims=True))
    data = x if rules.exclude_outside else at_places(g, x, plan, g.reshape(columns, [-1]))
    order = [*(i for i in range(x.ndim) if i != plan.axis), plan.axis]
    data = permute(g, data, order)
    y = g.emit("dot", [data, g.cast(matrix, x.dtype)], transpose_b=True)
    return permute(g, y, [order.index(i) for i in range(x.ndim)])

"""Resize and Upsample: other sizes of images, by operators of their own where these say the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._arithmetic import Term, calculate, count, terms, total
from .._errors import wrong
from .._resampling import AxisPlan, Rules, at_places, inside, places, rounded, weighted
from .._sizes import Number, Size, apply
from .._table import form
from .._values import Value

_FLOATING = ("float32", "float64", "float16", "bfloat16")
_RANGES = {"int8": (-128, 127), "uint8": (0, 255), "int32": (-(2**31), 2**31 - 1)}


@form("Upsample")
def upsample(g: Any, node: Any, x: Value, scales: Value | None = None) -> Value:
    """Resize of versions before 10. Versions before 9 have scales as attributes."""
    if scales is None:
        factors = node.attr("scales") or [1.0, 1.0, node.attr("height_scale"), node.attr("width_scale")]
        scales = g.constant(factors, "scales", "float32")
    rules = Rules({"bilinear": "linear"}.get(node.attr("mode", "nearest"), node.attr("mode", "nearest")))
    return _resize(g, node, x, _plans(g, node, x, range(x.ndim), scales, None, None), rules)


@form("Resize")
def resize(g: Any, node: Any, x: Value, *inputs: Any) -> Value:
    """Inputs are scales in version 10, then roi, scales and sizes, of which scales may be absent or empty."""
    if node.version < 11:
        rules = Rules(node.attr("mode", "nearest"))
        return _resize(g, node, x, _plans(g, node, x, range(x.ndim), inputs[0], None, None), rules)
    roi, scales, sizes = (*inputs, None, None, None)[:3]
    roi, scales = (None if value is None or value.shapes[0] == (0,) else value for value in (roi, scales))
    rules = Rules(
        node.attr("mode", "nearest"),
        node.attr("coordinate_transformation_mode", "half_pixel"),
        node.attr("nearest_mode", "round_prefer_floor"),
        node.attr("cubic_coeff_a", -0.75),
        bool(node.attr("exclude_outside", 0)),
        node.attr("extrapolation_value", 0.0),
        bool(node.attr("antialias", 0)),
    )
    axes = [axis % x.ndim for axis in node.attr("axes") or range(x.ndim)]
    plans = _plans(g, node, x, axes, scales, sizes, roi if rules.coordinates == "tf_crop_and_resize" else None)
    return _resize(g, node, x, plans, rules)


# --------------------------------------------------------------------------------------------------------------- sizes
def _plans(
    g: Any, node: Any, x: Value, axes: Sequence[int], scales: Value | None, sizes: Value | None, roi: Value | None
) -> list[AxisPlan]:
    """The change of each axis."""
    own = [g.dim(x, axis) for axis in axes]
    by_size = scales is None
    if scales is not None:
        quotients = terms(g, scales)
        targets = [_scaled(g, size, scale) for size, scale in zip(own, quotients, strict=True)]
    elif sizes is not None:
        targets = terms(g, sizes)
        quotients = [calculate(g, "/", target, size) for target, size in zip(targets, own, strict=True)]
        policy = node.attr("keep_aspect_ratio_policy", "stretch")
        if policy != "stretch":
            common = quotients[0]
            for quotient in quotients[1:]:
                common = calculate(g, "min" if policy == "not_larger" else "max", common, quotient)
            quotients, by_size = [common] * len(axes), False
            targets = [_rounded_down(g, calculate(g, "+", calculate(g, "*", common, size), 0.5)) for size in own]
    else:
        raise wrong("it has neither scales nor sizes", node=node.proto)
    region = terms(g, roi) if roi is not None else [0.0] * len(axes) + [1.0] * len(axes)
    return [
        AxisPlan(
            *sizes_of_axis, count(g, sizes_of_axis[2], "float64"), by_size, region[index], region[index + len(axes)]
        )
        for index, sizes_of_axis in enumerate(zip(axes, own, targets, map(_simple, quotients), strict=True))
    ]


def _simple(scale: Term) -> Term:
    """A scale that does not depend on the sizes, though it is computed from them, is a number."""
    if isinstance(scale, Size) and len(set(scale.trials)) == 1:
        return scale.trials[0]
    return scale


def _rounded_down(g: Any, term: Term) -> Term:
    return g.emit("floor", [term]) if isinstance(term, Value) else apply("floor", term)


def _scaled(g: Any, size: Number, scale: Term) -> Term:
    """The new size: as if computed in float32, as onnx and others do."""
    if isinstance(size, (Size, Value)) or isinstance(scale, (Size, Value)):
        return _rounded_down(g, calculate(g, "*", calculate(g, "*", scale, size), 1 + 2**-25))
    return int(np.floor(np.float32(size) * np.float32(scale)))


# ------------------------------------------------------------------------------------------------------------- choices
def _resize(g: Any, node: Any, x: Value, plans: Sequence[AxisPlan], rules: Rules) -> Value:
    if rules.mode not in ("nearest", "linear", "cubic"):
        raise wrong(f"mode is '{rules.mode}'", node=node.proto)
    crops = rules.coordinates == "tf_crop_and_resize"
    plans = [plan for plan in plans if crops or not _is_same(plan)]
    if not plans:
        return g.emit("_copy", [x], name=node.name)
    if rules.mode == "nearest":
        return _nearest(g, node, x, plans, rules)
    dtype = x.dtype
    if dtype == "float64" or dtype == "int32":
        data = g.cast(x, "float64")
    else:
        data = g.cast(x, "float32")
    if all(_is_bilinear(plan, rules) for plan in plans):
        y = _bilinear(g, node, data, plans, rules)
    else:
        y = data
        for plan in plans:
            y = _extrapolated(g, weighted(g, y, plan, rules), plan, rules)
    if dtype not in _FLOATING:
        low, high = _RANGES.get(dtype, (-(2.0**63), 2.0**63))
        y = g.emit("clip", [g.emit("_npi_around", [y])], a_min=low, a_max=high)
    return g.cast(y, dtype)


def _is_same(plan: AxisPlan) -> bool:
    """Whether the axis keeps its elements."""
    if isinstance(plan.scale, (Value, Size)) or plan.scale != 1:
        return False
    if isinstance(plan.target, Size):
        return isinstance(plan.size, Size) and plan.target.trials == plan.size.trials
    return not isinstance(plan.target, Value) and plan.target == plan.size


def _extrapolated(g: Any, y: Value, plan: AxisPlan, rules: Rules) -> Value:
    """Elements that are read from outside of the image get a value of their own, in tf_crop_and_resize."""
    if rules.coordinates != "tf_crop_and_resize":
        return y
    mask = inside(g, plan, places(g, plan, rules))
    mask = g.reshape(mask, [-1 if i == plan.axis else 1 for i in range(y.ndim)])
    return g.emit("_npi_where_rscalar", [mask, y], scalar=rules.extrapolation)


def _factor(plan: AxisPlan, rules: Rules) -> int:
    """The number of repetitions of each element, an integer; 0 if the axis changes in another way."""
    scale = plan.scale
    if isinstance(scale, (Value, Size)) or scale != int(scale) or scale < 1:
        return 0
    centered = rules.coordinates in ("half_pixel", "pytorch_half_pixel", "half_pixel_symmetric")
    is_repeated = rules.rounding.startswith("round") if centered else rules.rounding in ("floor", "simple")
    return int(scale) if is_repeated and (centered or rules.coordinates == "asymmetric") else 0


def _nearest(g: Any, node: Any, x: Value, plans: Sequence[AxisPlan], rules: Rules) -> Value:
    factors = [_factor(plan, rules) for plan in plans]
    is_image = x.ndim == 4 and x.dtype in _FLOATING and sorted(plan.axis for plan in plans) == [2, 3]
    if is_image and factors[0] == factors[1] > 0:
        attributes = {"scale": factors[0], "sample_type": "nearest", "num_args": 1}
        return g.emit("UpSampling", [x], name=node.name, **attributes)
    y = x
    for plan, factor in zip(plans, factors, strict=True):
        if factor:
            y = g.emit("repeat", [y], name=node.name, repeats=factor, axis=plan.axis)
        else:
            at = places(g, plan, rules)
            y = at_places(g, y, plan, rounded(g, plan, at, rules), node.name)
            y = _extrapolated(g, y, plan, rules)
    return y


def _is_bilinear(plan: AxisPlan, rules: Rules) -> bool:
    """Whether BilinearResize2D resizes the axis in this way. It takes a single element from the start of the axis."""
    if rules.mode != "linear" or isinstance(plan.target, Value):
        return False
    if rules.antialias and (isinstance(plan.scale, (Size, Value)) or plan.scale < 1):
        return False
    is_exact = plan.by_size or _is_product(plan)
    if rules.coordinates in ("align_corners", "pytorch_half_pixel"):
        return is_exact
    more = not isinstance(plan.scale, (Size, Value)) and plan.scale >= 2
    more = more or (not isinstance(plan.target, Size) and plan.target > 1)
    return is_exact and more and rules.coordinates in ("half_pixel", "half_pixel_symmetric")


def _is_product(plan: AxisPlan) -> bool:
    """Whether the new size is the old one times the scale, which was not rounded."""
    scale = plan.scale
    if isinstance(scale, (Size, Value)):
        return False
    if isinstance(plan.size, Size):
        return scale == int(scale)
    return plan.size * scale == plan.target


def _bilinear(g: Any, node: Any, x: Value, plans: Sequence[AxisPlan], rules: Rules) -> Value:
    """BilinearResize2D, of the last two axes at once, or of one after another, as images that have only this axis."""
    attributes = {"mode": "size", "align_corners": rules.coordinates == "align_corners"}
    last = [x.ndim - 2, x.ndim - 1]
    plans = sorted(plans, key=lambda plan: plan.axis)
    if [plan.axis for plan in plans] == last:
        height, width = (plan.target for plan in plans)
        image = x if x.ndim == 4 else g.reshape(x, [1, -1, g.dim(x, -2), g.dim(x, -1)])
        y = g.emit("_contrib_BilinearResize2D", [image], name=node.name, height=height, width=width, **attributes)
        return y if x.ndim == 4 else g.reshape(y, [*g.dims(x)[:-2], height, width], node.name)
    y = x
    for plan in plans:
        sizes = g.dims(y)
        before, after = total("*", [1, *sizes[: plan.axis]]), total("*", [1, *sizes[plan.axis + 1 :]])
        image = g.reshape(y, [1, before, plan.size, after])
        image = g.emit(
            "_contrib_BilinearResize2D", [image], name=node.name, height=plan.target, width=after, **attributes
        )
        y = g.reshape(image, [*sizes[: plan.axis], plan.target, *sizes[plan.axis + 1 :]], node.name)
    return y

"""Draws random nodes: an operator with inputs from a pool of values, and attributes and constants that mostly fit."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper


@dataclass
class Node:
    """A node and the constants that only it reads."""

    proto: Any
    constants: dict[str, np.ndarray] = field(default_factory=dict)

    def reads(self) -> list[str]:
        """Names that the node and its graphs read."""
        names = list(self.proto.input)
        for attribute in self.proto.attribute:
            for inner in attribute.g.node:
                names.extend(inner.input)
        return list(dict.fromkeys(names))


class Pool:
    """The values that a new node may read."""

    def __init__(
        self, draw: random.Random, rng: np.random.Generator, values: dict[str, np.ndarray], opset: int, number: int
    ) -> None:
        self.draw, self.rng, self.values, self.opset, self.number = draw, rng, values, opset, number
        self.constants: dict[str, np.ndarray] = {}

    def pick(self, kinds: str = "f", ranks: tuple[int, int] = (0, 9), least: int = 0) -> str:
        """The name of a value of these kinds of dtypes, a rank, and with at least so many elements."""
        names = [
            name
            for name, value in self.values.items()
            if value.dtype.kind in kinds and ranks[0] <= value.ndim <= ranks[1] and value.size >= least
        ]
        return self.draw.choice(names[-4:] + names)

    def constant(self, array: Any, dtype: Any = None) -> str:
        name = f"c{self.number}_{len(self.constants)}"
        self.constants[name] = np.asarray(array, dtype)
        return name

    def weights(self, *shape: int) -> str:
        return self.constant(self.rng.normal(size=shape).astype(np.float32))

    def node(self, op: str, inputs: list[str], outputs: int = 1, **attributes: Any) -> Node:
        names = [f"n{self.number}_{index}" for index in range(outputs)]
        given = {key: value for key, value in attributes.items() if value is not None}
        return Node(helper.make_node(op, inputs, names, **given), self.constants)

    def shape(self, name: str) -> tuple[int, ...]:
        return self.values[name].shape

    def axis(self, name: str) -> int:
        rank = self.values[name].ndim
        return self.draw.randrange(-rank if self.opset >= 11 else 0, rank)

    def some(self, *choices: Any) -> Any:
        return self.draw.choice(choices)


Draw = Callable[[Pool], Node | None]
DRAWS: list[Draw] = []


def _draw(function: Draw) -> Draw:
    DRAWS.append(function)
    return function


_UNARY = (
    *("Relu", "Sigmoid", "Tanh", "Exp", "Neg", "Abs", "Sqrt", "Floor", "Ceil", "Round", "Erf", "Softplus", "Softsign"),
    *("Selu", "Sign", "Reciprocal", "Sin", "Cos", "Atan", "Log", "Mish", "HardSwish", "Identity", "IsNaN", "IsInf"),
    *("Asinh", "Sinh", "Tan"),
)


@_draw
def _unary(p: Pool) -> Node:
    return p.node(p.draw.choice(_UNARY), [p.pick()])


@_draw
def _with_alpha(p: Pool) -> Node:
    op = p.some("LeakyRelu", "Elu", "ThresholdedRelu", "HardSigmoid", "Celu")
    return p.node(op, [p.pick()], alpha=p.some(None, 0.3, 1.5), beta=p.some(None, 0.4) if op == "HardSigmoid" else None)


@_draw
def _shrink_or_gelu(p: Pool) -> Node:
    if p.opset >= 20 and p.some(True, False):
        return p.node("Gelu", [p.pick()], approximate=p.some("none", "tanh"))
    return p.node("Shrink", [p.pick()], lambd=p.some(0.2, 1.0), bias=p.some(0.0, 0.3))


def _partner(p: Pool, name: str) -> str:
    """A value or constant that broadcasts with another one."""
    shape, kind = p.shape(name), p.values[name].dtype
    others = [other for other, value in p.values.items() if value.dtype == kind and _broadcasts(value.shape, shape)]
    if p.some(True, False):
        return p.draw.choice(others)
    sizes = [p.some(size, size, 1) for size in shape][p.draw.randrange(len(shape) + 1) :]
    if kind.kind == "b":
        return p.constant(p.rng.integers(0, 2, sizes), kind)
    return p.constant(p.rng.normal(size=sizes) if kind.kind == "f" else p.rng.integers(1, 5, sizes), kind)


def _broadcasts(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    return all(x == y or 1 in (x, y) for x, y in zip(a[::-1], b[::-1], strict=False))


@_draw
@_draw
def _binary(p: Pool) -> Node:
    op = p.some(
        "Add", "Sub", "Mul", "Div", "Max", "Min", "Pow", "Less", "Greater", "Equal", "Mod", "PRelu", "Mean", "Sum"
    )
    a = p.pick("f" if op in ("Pow", "PRelu", "Mean", "Sum", "Div") else "fi")
    pair = [a, _partner(p, a)]
    if p.some(True, False) and op not in ("PRelu",):
        pair.reverse()
    is_float = p.values[a].dtype.kind == "f"
    return p.node(op, pair, fmod=(1 if is_float else p.some(0, 1)) if op == "Mod" else None)


@_draw
def _logic(p: Pool) -> Node:
    a = p.pick("b")
    op = p.some("And", "Or", "Xor", "Not")
    return p.node(op, [a] if op == "Not" else [a, _partner(p, a)])


@_draw
def _where(p: Pool) -> Node:
    a = p.pick("fi")
    condition = p.constant(p.rng.integers(0, 2, p.shape(a)), bool)
    fitting = [name for name, value in p.values.items() if value.dtype == bool and _broadcasts(value.shape, p.shape(a))]
    return p.node("Where", [p.draw.choice([condition, *fitting]), a, _partner(p, a)])


@_draw
def _cast(p: Pool) -> Node:
    to = p.some(TensorProto.FLOAT, TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL, TensorProto.DOUBLE)
    return p.node("Cast", [p.pick("fib")], to=to)


@_draw
def _clip(p: Pool) -> Node:
    a = p.pick()
    if p.opset < 11:
        return p.node("Clip", [a], min=p.some(None, -0.5), max=p.some(None, 0.5))
    kind = p.values[a].dtype
    return p.node("Clip", [a, p.some("", p.constant(-0.5, kind)), p.constant(0.7, kind)])


@_draw
@_draw
def _reduction(p: Pool) -> Node:
    op = p.some("Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "LogSumExp", "SumSquare", "LogSum")
    a = p.pick("f", (1, 9), 1)
    rank = p.values[a].ndim
    axes = sorted(p.draw.sample(range(rank), p.draw.randint(1, rank)))
    if p.opset >= 11 and p.some(True, False):
        axes = [axis - rank for axis in axes]
    keep = p.some(None, 0, 1)
    if p.some(0, 0, 1):
        return p.node(f"Reduce{op}", [a], keepdims=keep)
    if p.opset >= 18 or (op == "Sum" and p.opset >= 13):
        return p.node(f"Reduce{op}", [a, p.constant(axes, np.int64)], keepdims=keep)
    return p.node(f"Reduce{op}", [a], axes=axes, keepdims=keep)


@_draw
def _arg(p: Pool) -> Node:
    a = p.pick("f", (1, 9), 1)
    last = p.some(None, 0, 1) if p.opset >= 12 else None
    return p.node(p.some("ArgMax", "ArgMin"), [a], axis=p.axis(a), keepdims=p.some(None, 0), select_last_index=last)


@_draw
def _softmax(p: Pool) -> Node:
    a = p.pick("f", (1, 9), 1)
    return p.node(p.some("Softmax", "LogSoftmax", "Hardmax"), [a], axis=p.some(None, p.axis(a)))


@_draw
def _cumsum(p: Pool) -> Node:
    a = p.pick("f", (1, 9))
    flags = {"exclusive": p.some(None, 1), "reverse": p.some(None, 1)}
    return p.node("CumSum", [a, p.constant(p.axis(a), np.int64)], **flags)


@_draw
def _topk(p: Pool) -> Node:
    a = p.pick("f", (1, 9), 1)
    axis = p.axis(a)
    k = p.draw.randint(1, p.shape(a)[axis])
    if p.opset < 10:
        return p.node("TopK", [a], 2, axis=axis, k=k)
    return p.node(
        "TopK", [a, p.constant([k], np.int64)], 2, axis=axis, largest=p.some(None, 0) if p.opset > 10 else None
    )


@_draw
@_draw
def _reshape(p: Pool) -> Node:
    a = p.pick("fib", (1, 9), 1)
    sizes = list(p.shape(a))
    p.draw.shuffle(sizes)
    place = p.draw.randrange(len(sizes))
    kind = p.draw.randrange(4)
    if kind == 0:
        sizes = [0] * place + [-1]
    elif kind == 1:
        sizes[place] = -1
    elif kind == 2:
        sizes = [*sizes[:place], int(np.prod(sizes[place:]))]
    return p.node("Reshape", [a, p.constant(sizes, np.int64)])


@_draw
def _transpose(p: Pool) -> Node:
    a = p.pick("fib", (1, 9))
    order = list(range(p.values[a].ndim))
    p.draw.shuffle(order)
    return p.node("Transpose", [a], perm=p.some(None, order))


@_draw
def _flatten(p: Pool) -> Node:
    a = p.pick("f", (1, 9))
    return p.node("Flatten", [a], axis=p.some(None, p.axis(a)))


@_draw
def _squeeze(p: Pool) -> Node:
    a = p.pick("fi", (1, 9))
    axes = [axis for axis, size in enumerate(p.shape(a)) if size == 1]
    if not axes or p.some(True, False):
        axes = [p.draw.randrange(p.values[a].ndim + 1)]
        op = "Unsqueeze"
    else:
        op, axes = "Squeeze", p.draw.sample(axes, p.draw.randint(1, len(axes)))
    return p.node(op, [a, p.constant(axes, np.int64)]) if p.opset >= 13 else p.node(op, [a], axes=axes)


@_draw
def _concat(p: Pool) -> Node:
    a = p.pick("fi", (1, 9))
    axis = p.axis(a)
    shape = list(p.shape(a))
    shape[axis] = p.some(1, 2)
    other = p.constant(p.rng.normal(size=shape), p.values[a].dtype)
    return p.node("Concat", p.draw.sample([a, a, other], p.some(1, 2, 3)), axis=axis)


@_draw
def _split(p: Pool) -> Node:
    a = p.pick("fi", (1, 9), 2)
    axis = p.axis(a)
    size = p.shape(a)[axis]
    first = p.draw.randint(0, size)
    parts = [first, size - first]
    if p.opset >= 18 and p.some(True, False):
        return p.node("Split", [a], 2, axis=axis, num_outputs=2)
    if p.opset >= 13:
        return p.node("Split", [a, p.constant(parts, np.int64)], 2, axis=axis)
    return p.node("Split", [a], 2, axis=axis, split=parts)


@_draw
@_draw
def _slice(p: Pool) -> Node:
    a = p.pick("fib", (1, 9))
    axes = sorted(p.draw.sample(range(p.values[a].ndim), p.draw.randint(1, p.values[a].ndim)))
    begins = [p.draw.randint(-7, 7) for _ in axes]
    ends = [p.some(p.draw.randint(-7, 7), 2**31 - 1, 2**63 - 1) for _ in axes]
    if p.opset < 10:
        return p.node("Slice", [a], axes=axes, starts=begins, ends=ends)
    steps = [p.some(1, 1, 2, -1, -2) for _ in axes]
    # onnxruntime takes the largest number as "to the first element" if the step is negative; the standard does not.
    ends = [-end if step < 0 and end > 7 else end for end, step in zip(ends, steps, strict=True)]
    return p.node("Slice", [a, *(p.constant(numbers, np.int64) for numbers in (begins, ends, axes, steps))])


@_draw
@_draw
def _gather(p: Pool) -> Node:
    a = p.pick("fi", (1, 9), 1)
    axis = p.axis(a)
    size = p.shape(a)[axis]
    shape = [p.draw.randint(1, 3) for _ in range(p.draw.randrange(3))]
    low = -size if p.opset >= 11 else 0
    if p.opset >= 11 and p.some(True, False):
        own = [p.draw.randint(1, extent) for extent in p.shape(a)]
        return p.node("GatherElements", [a, p.constant(p.rng.integers(low, size, own), np.int64)], axis=axis)
    return p.node("Gather", [a, p.constant(p.rng.integers(low, size, shape), p.some(np.int64, np.int32))], axis=axis)


@_draw
def _gather_nd(p: Pool) -> Node:
    a = p.pick("fi", (1, 9), 1)
    depth = p.draw.randint(1, p.values[a].ndim)
    places = np.stack([p.rng.integers(0, size, (2, 3)) for size in p.shape(a)[:depth]], axis=-1)
    return p.node("GatherND", [a, p.constant(places, np.int64)])


@_draw
def _scatter(p: Pool) -> Node:
    a = p.pick("f", (1, 9), 1)
    kind, shape = p.values[a].dtype, p.shape(a)
    sums = p.some(None, "add", "mul") if p.opset >= 16 else None
    if p.some(True, False):
        axis = p.axis(a)
        places = p.rng.permutation(shape[axis])[:1]
        own = [1 if index == axis % len(shape) else size for index, size in enumerate(shape)]
        indices = p.constant(np.full(own, places[0]), np.int64)
        updates = p.constant(p.rng.normal(size=own), kind)
        return p.node(
            "ScatterElements" if p.opset >= 11 else "Scatter", [a, indices, updates], axis=axis, reduction=sums
        )
    rows = p.rng.permutation(shape[0])[:2][:, None]
    updates = p.constant(p.rng.normal(size=(len(rows), *shape[1:])), kind)
    return p.node("ScatterND", [a, p.constant(rows, np.int64), updates], reduction=sums)


@_draw
def _expand(p: Pool) -> Node:
    a = p.pick("fib")
    sizes = [p.some(1, size) if size != 1 else p.some(1, 2, 3) for size in p.shape(a)]
    return p.node("Expand", [a, p.constant([p.some(1, 2), *sizes] if p.some(0, 1) else sizes, np.int64)])


@_draw
def _tile(p: Pool) -> Node:
    a = p.pick("fi", (1, 9))
    return p.node("Tile", [a, p.constant([p.some(1, 1, 2, 3) for _ in p.shape(a)], np.int64)])


@_draw
def _pad(p: Pool) -> Node:
    a = p.pick("f", (1, 9), 1)
    mode = p.some("constant", "reflect", "edge")
    low = -1 if mode == "constant" else 0
    pads = [p.draw.randint(low, 1) for _ in range(2 * p.values[a].ndim)]
    if p.opset < 11:
        return p.node("Pad", [a], pads=pads, mode=mode, value=0.5)
    return p.node("Pad", [a, p.constant(pads, np.int64), p.constant(0.5, p.values[a].dtype)], mode=mode)


@_draw
def _blocks(p: Pool) -> Node:
    a = p.pick("f", (4, 4), 1)
    mode = p.some(None, "CRD") if p.opset >= 11 else None
    return (
        p.node("SpaceToDepth", [a], blocksize=2)
        if p.some(0, 1)
        else p.node("DepthToSpace", [a], blocksize=2, mode=mode)
    )


@_draw
def _sizes(p: Pool) -> Node:
    op = p.some("Shape", "Shape", "Size", "NonZero")
    begin = p.some(None, 1, -1) if op == "Shape" and p.opset >= 15 else None
    return p.node(op, [p.pick("fib")], start=begin)


@_draw
def _one_hot(p: Pool) -> Node:
    return p.node(
        "OneHot", [p.pick("i"), p.constant([4], np.int64), p.constant([0, 2], np.float32)], axis=p.some(-1, 0)
    )


@_draw
def _filling(p: Pool) -> Node:
    if p.some(True, False):
        value = onnx.numpy_helper.from_array(np.array([p.some(0.5, 2.0)], np.float32))
        return p.node("ConstantOfShape", [p.constant([p.some(1, 2), 3], np.int64)], value=value)
    kind = p.some(np.int64, np.float32)
    return p.node("Range", [p.constant(value, kind) for value in p.some((0, 5, 1), (5, -1, -2), (0, 0, 1))])


@_draw
def _trilu(p: Pool) -> Node:
    a = p.pick("fi", (2, 9))
    k = [p.constant(p.draw.randint(-2, 2), np.int64)] if p.some(0, 1) else []
    return p.node("Trilu", [a, *k], upper=p.some(None, 0))


@_draw
def _compress(p: Pool) -> Node:
    a = p.pick("f", (1, 9), 1)
    axis = p.axis(a)
    return p.node("Compress", [a, p.constant(p.rng.integers(0, 2, p.shape(a)[axis]), bool)], axis=axis)


@_draw
def _reversed(p: Pool) -> Node:
    a = p.pick("f", (2, 9), 1)
    lengths = p.constant(p.rng.integers(1, p.shape(a)[0] + 1, p.shape(a)[1]), np.int64)
    return p.node("ReverseSequence", [a, lengths], batch_axis=1, time_axis=0)


@_draw
@_draw
def _product(p: Pool) -> Node:
    a = p.pick("f", (1, 9), 1)
    inner = p.shape(a)[-1]
    rank = p.draw.randrange(3)
    shape = [(inner,), (inner, 3), (*p.shape(a)[:-2], inner, 2)][rank]
    return p.node("MatMul", [a, p.constant(p.rng.normal(size=shape), p.values[a].dtype)])


@_draw
def _gemm(p: Pool) -> Node:
    a = p.pick("f", (2, 2), 1)
    transpose_a, other = p.some(None, 1), p.some(None, 1)
    inner, rows = p.shape(a)[::-1] if not transpose_a else p.shape(a)
    kind = p.values[a].dtype
    b = p.constant(p.rng.normal(size=(3, inner) if other else (inner, 3)), kind)
    bias = (
        [p.constant(p.rng.normal(size=p.some((), (3,), (rows, 1), (1, 3))), kind)]
        if p.opset >= 11
        else [p.constant(np.ones(3), kind)]
    )
    return p.node(
        "Gemm", [a, b, *bias], transA=transpose_a, transB=other, alpha=p.some(None, 0.5), beta=p.some(None, 2.0)
    )


@_draw
@_draw
def _convolution(p: Pool) -> Node:
    a = p.pick("f", (3, 5), 1)
    _, channels, *image = p.shape(a)
    group = p.some(1, channels)
    kernel = [p.draw.randint(1, min(3, size)) for size in image]
    weight = p.constant(p.rng.normal(size=(2 * group, channels // group, *kernel)), p.values[a].dtype)
    more = _window(p, len(image))
    bias = [p.constant(p.rng.normal(size=2 * group), p.values[a].dtype)] if p.some(0, 1) else []
    return p.node("Conv", [a, weight, *bias], group=group, kernel_shape=p.some(None, kernel), **more)


def _window(p: Pool, rank: int) -> dict[str, Any]:
    more: dict[str, Any] = {"strides": p.some(None, [p.some(1, 2) for _ in range(rank)])}
    more["dilations"] = p.some(None, None, [p.some(1, 2) for _ in range(rank)])
    kind = p.draw.randrange(4)
    if kind == 0:
        more["auto_pad"] = p.some("SAME_UPPER", "SAME_LOWER", "VALID")
    elif kind < 3:
        more["pads"] = [p.draw.randint(0, 1) for _ in range(2 * rank)]
    return more


@_draw
def _transposed(p: Pool) -> Node:
    a = p.pick("f", (3, 4), 1)
    _, channels, *image = p.shape(a)
    group = p.some(1, channels)
    kernel = [p.draw.randint(1, 3) for _ in image]
    weight = p.constant(p.rng.normal(size=(channels, 2, *kernel)), p.values[a].dtype)
    more = _window(p, len(image))
    extra = [p.some(0, 1) for _ in image] if more["strides"] == [2] * len(image) else None
    return p.node("ConvTranspose", [a, weight], group=group, output_padding=extra, **more)


@_draw
@_draw
def _pooling(p: Pool) -> Node:
    a = p.pick("f", (3, 5), 1)
    image = p.shape(a)[2:]
    op = p.some("MaxPool", "AveragePool", "LpPool", "GlobalAveragePool", "GlobalMaxPool")
    if op.startswith("Global"):
        return p.node(op, [a])
    more = _window(p, len(image))
    if not (op == "MaxPool" and p.opset >= 10) and p.opset < 19:
        more["dilations"] = None
    if "SAME" in more.get("auto_pad", ""):
        more["dilations"] = None  # onnxruntime leaves them out of the size of the result
    may_round_up = more.get("auto_pad") != "VALID" and ((op == "MaxPool" and p.opset >= 10) or p.opset >= 19)
    more["ceil_mode"] = p.some(None, 1) if may_round_up else None
    more["count_include_pad"] = p.some(None, 1) if op == "AveragePool" else None
    if op == "LpPool":
        more.update(p=p.some(1, 2), dilations=None, ceil_mode=None)
    return p.node(op, [a], kernel_shape=[p.draw.randint(1, min(3, size)) for size in image], **more)


@_draw
def _norms(p: Pool) -> Node | None:
    a = p.pick("f", (3, 5), 2)
    channels = p.shape(a)[1]
    scale, bias, mean = (p.weights(channels) for _ in range(3))
    kind = p.some("batch", "instance", "layer", "lrn", "lp", "mvn")
    if kind == "batch":
        variance = p.constant(p.rng.uniform(0.5, 2, channels), np.float32)
        return p.node("BatchNormalization", [a, scale, bias, mean, variance], epsilon=p.some(None, 0.01))
    if kind == "instance":
        if np.prod(p.shape(a)[2:]) < 4:
            return None  # numbers minus their mean are rounding errors
        return p.node("InstanceNormalization", [a, scale, bias], epsilon=p.some(None, 0.01))
    if kind == "layer":
        if p.opset < 17:
            return None
        axis = p.draw.randrange(1, p.values[a].ndim)
        shape = p.shape(a)[axis:]
        return p.node("LayerNormalization", [a, p.weights(*shape), p.weights(*shape)], axis=axis)
    if kind == "lrn":
        return p.node("LRN", [a], size=p.some(1, 3), alpha=0.1, beta=0.75, bias=1.0)
    if kind == "lp":
        return p.node("LpNormalization", [a], axis=p.axis(a), p=p.some(1, 2))
    return p.node("MeanVarianceNormalization", [a], axes=[1, 2] if p.values[a].ndim != 4 else None)


@_draw
@_draw
def _resize(p: Pool) -> Node | None:
    a = p.pick("f", (4, 4), 1)
    if p.opset < 11:
        scales = p.constant([1, 1, 2, 2], np.float32)
        return p.node("Resize" if p.opset >= 10 else "Upsample", [a, scales], mode=p.some("nearest", "linear"))
    mode = p.some("nearest", "linear", "cubic")
    more = {
        "mode": mode,
        "coordinate_transformation_mode": p.some("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"),
        "nearest_mode": p.some("round_prefer_floor", "round_prefer_ceil") if mode == "nearest" else None,
    }
    none = p.constant([], np.float32)
    # For products of sizes and scales that are not integers, onnxruntime aligns corners of the rounded size.
    if p.some(True, False) and more["coordinate_transformation_mode"] != "align_corners":
        return p.node(
            "Resize", [a, none, p.constant([1, 1, p.some(0.5, 2, 1.5), p.some(1, 2, 0.7)], np.float32)], **more
        )
    sizes = [*p.shape(a)[:2], p.draw.randint(1, 8), p.draw.randint(1, 8)]
    return p.node("Resize", [a, none, none, p.constant(sizes, np.int64)], **more)


@_draw
def _recurrent(p: Pool) -> Node:
    a = p.pick("f", (3, 3), 1)
    size = p.shape(a)[2]
    op = p.some("LSTM", "GRU", "RNN")
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[op]
    direction = p.some("forward", "reverse", "bidirectional")
    count = 2 if direction == "bidirectional" else 1
    weights = [p.weights(count, 2 * gates, size), p.weights(count, 2 * gates, 2)]
    bias = [p.weights(count, 4 * gates)] if p.some(0, 1) else []
    more = {"linear_before_reset": p.some(None, 1)} if op == "GRU" else {}
    outputs = 3 if op == "LSTM" else 2
    return p.node(op, [a, *weights, *bias], outputs, hidden_size=2, direction=direction, **more)


@_draw
def _einsum(p: Pool) -> Node:
    a = p.pick("f", (2, 4), 1)
    letters = "abcd"[: p.values[a].ndim]
    kept = "".join(p.draw.sample(letters, p.draw.randint(0, len(letters))))
    return p.node("Einsum", [a, a], equation=f"{letters},{letters}->{kept}")


@_draw
def _quantized(p: Pool) -> Node:
    a = p.pick("f", (1, 9), 1)
    if p.some(True, False):
        return p.node("DynamicQuantizeLinear", [a], 3)
    zero = p.some(np.uint8(100), np.int8(3))
    return p.node("QuantizeLinear", [a, p.constant(0.05, np.float32), p.constant(zero)])


@_draw
def _dequantized(p: Pool) -> Node:
    names = [name for name, value in p.values.items() if value.dtype in (np.uint8, np.int8) and value.ndim > 0]
    a = p.draw.choice(names)
    if p.some(True, False) and p.values[a].ndim >= 2:
        other = p.constant(p.rng.integers(-9, 9, (p.shape(a)[-1], 2)), np.int8)
        return p.node("MatMulInteger", [a, other])
    return p.node("DequantizeLinear", [a, p.constant(0.1, np.float32), p.constant(p.values[a].dtype.type(5))])


def _value(name: str, kind: int, shape: Any) -> Any:
    return helper.make_tensor_value_info(name, kind, shape)


@_draw
def _branch(p: Pool) -> Node:
    a = p.pick("f")
    then = helper.make_graph([helper.make_node("Exp", [a], ["t"])], "then", [], [_value("t", 1, None)])
    other = helper.make_graph([helper.make_node("Neg", [a], ["e"])], "else", [], [_value("e", 1, None)])
    conditions = [name for name, value in p.values.items() if value.dtype == bool and value.size == 1]
    condition = p.draw.choice([*conditions, p.constant(p.some(True, False), bool)])
    return p.node("If", [condition], then_branch=then, else_branch=other)


@_draw
def _loop(p: Pool) -> Node:
    a = p.pick("f")
    make = helper.make_node
    body = helper.make_graph(
        [
            make("Cast", ["i"], ["f"], to=TensorProto.FLOAT),
            make("Add", ["v", "f"], ["w"]),
            make("Tanh", ["w"], ["o"]),
            make("Identity", ["c"], ["d"]),
        ],
        "body",
        [_value("i", 7, []), _value("c", 9, []), _value("v", 1, None)],
        [_value("d", 9, []), _value("w", 1, None), _value("o", 1, None)],
    )
    inputs = [p.constant(p.some(1, 2, 4), np.int64), p.constant(True, bool), a]
    return p.node("Loop", inputs, 2, body=body)


@_draw
def _scan(p: Pool) -> Node:
    a = p.pick("f", (2, 4), 1)
    shape = list(p.shape(a)[1:])
    make = helper.make_node
    body = helper.make_graph(
        [make("Add", ["s", "r"], ["t"]), make("Sigmoid", ["t"], ["o"])],
        "body",
        [_value("s", 1, shape), _value("r", 1, shape)],
        [_value("t", 1, shape), _value("o", 1, shape)],
    )
    first = p.constant(np.zeros(shape, np.float32))
    return p.node("Scan", [first, a], 2, body=body, num_scan_inputs=1, scan_input_directions=[p.some(0, 1)])


@_draw
def _dropout(p: Pool) -> Node:
    return p.node("Dropout", [p.pick()])


@_draw
def _grid(p: Pool) -> Node:
    a = p.pick("f", (4, 4), 1)
    grid = p.constant(p.rng.uniform(-1.2, 1.2, (p.shape(a)[0], 3, 2, 2)), np.float32)
    mode = p.some("bilinear", "nearest") if p.opset < 20 else p.some("linear", "nearest")
    return p.node(
        "GridSample", [a, grid], mode=mode, padding_mode=p.some("zeros", "border"), align_corners=p.some(0, 1)
    )

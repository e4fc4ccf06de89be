"""ONNX operators on shapes and positions: one import serves all sizes of the inputs."""

from __future__ import annotations

from typing import Any

import hybridnet as mx
import numpy as np
import pytest
from onnx_models import assert_as_onnxruntime, helper, model, node

I64 = np.int64


def numbers(*shape: int) -> np.ndarray:
    return np.random.randn(*shape).astype("float32")


def dim(source: str, axis: int, result: str) -> list[Any]:
    """Nodes that read one size of a tensor, as a scalar."""
    return [
        node("Shape", source, f"{result}_shape"),
        node("Constant", "", f"{result}_axis", value_int=axis),
        node("Gather", f"{result}_shape {result}_axis", result, axis=0),
    ]


def vector(source: str, result: str) -> list[Any]:
    """A node that makes a vector of one element of a scalar."""
    return [
        node("Constant", "", f"{result}_zero", value_ints=[0]),
        node("Unsqueeze", f"{source} {result}_zero", result),
    ]


X = {"x": ("float32", ("N", "C", 6))}
SIZES = [(2, 3, 6), (5, 4, 6), (7, 1, 6)]
OPEN: dict[str, tuple[Any, ...]] = {}


def case(
    name: str, nodes: list[Any], constants: Any = None, inputs: Any = None, sizes: Any = None, **more: Any
) -> None:
    OPEN[name] = (nodes, constants or {}, inputs or X, sizes or SIZES, more)


case(
    "reshape to sizes that are computed",
    [
        *dim("x", 0, "n"),
        *dim("x", 1, "c"),
        node("Mul", "n c", "nc"),
        *vector("nc", "nc1"),
        node("Concat", "nc1 two minus", "target", axis=0),
        node("Reshape", "x target"),
    ],
    {"two": np.array([2], I64), "minus": np.array([-1], I64)},
)
case("reshape that copies and infers", [node("Reshape", "x s")], {"s": np.array([0, -1, 2, 3], I64)})
case("reshape with merged open axes", [node("Reshape", "x s")], {"s": np.array([-1, 6], I64)})
case("flatten at the last axis", [node("Flatten", "x", axis=2)])
case("flatten at axis 0", [node("Flatten", "x", axis=0)])
case("flatten at a negative axis", [node("Flatten", "x", axis=-1)])
case("transpose and unsqueeze", [node("Transpose", "x", "t"), node("Unsqueeze", "t a")], {"a": np.array([0, -1], I64)})
case("size", [node("Size", "x", "s"), node("Cast", "s", to=1)])
case("shape with start and end", [node("Shape", "x", start=-2, end=3)])
case(
    "expand to the shape of another tensor",
    [node("Shape", "x", "s"), node("Expand", "v s")],
    {"v": np.arange(6, dtype="float32")},
)
case(
    "expand where sizes may be -1",
    [
        node("Shape", "x", "s"),
        node("Concat", "s minus", "t", axis=0),
        node("Equal", "t minus", "open"),
        node("Where", "open one t", "u"),
        node("Unsqueeze", "x axis", "w"),
        node("Expand", "w u"),
    ],
    {"minus": np.array([-1], I64), "one": np.array([1], I64), "axis": np.array([3], I64)},
)
case(
    "tile by a size",
    [*dim("x", 1, "c"), *vector("c", "c1"), node("Concat", "c1 rest", "r", axis=0), node("Tile", "x r")],
    {"rest": np.array([2, 1], I64)},
)
case(
    "slice to half of a size",
    [
        *dim("x", 0, "n"),
        node("Div", "n two", "half"),
        *vector("half", "end"),
        node("Slice", "x zero end zero"),
    ],
    {"two": np.array(2, I64), "zero": np.array([0], I64)},
)
case(
    "slice backwards",
    [node("Slice", "x start end axes steps")],
    {
        "start": np.array([-1, 4], I64),
        "end": np.array([np.iinfo(I64).min, -7], I64),
        "axes": np.array([0, 2], I64),
        "steps": np.array([-2, -1], I64),
    },
)
case(
    "slice with ends beyond every size",
    [node("Slice", "x start end axes")],
    {"start": np.array([1, -2], I64), "end": np.array([2**31 - 1, 2**63 - 1], I64), "axes": np.array([0, -1], I64)},
)
case(
    "split with a smaller last part",
    [node("Split", "x", "a b c", axis=0, num_outputs=3)],
    outputs="a b c",
    sizes=[(5, 2, 6), (8, 3, 6), (6, 2, 6)],
)
case("split into equal parts", [node("Split", "x", "a b", axis=2, num_outputs=2)], outputs="a b")
case(
    "split by a size",
    [
        *dim("x", 0, "n"),
        node("Sub", "n one", "rest"),
        *vector("rest", "rest1"),
        node("Concat", "one1 rest1", "parts", axis=0),
        node("Split", "x parts", "a b", axis=0),
    ],
    {"one": np.array(1, I64), "one1": np.array([1], I64)},
    outputs="a b",
)
case(
    "pad to a multiple of four",
    [
        *dim("x", 0, "n"),
        node("Neg", "n", "m"),
        node("Mod", "m four", "room"),
        *vector("room", "room1"),
        node("Concat", "zeros room1 zeros2", "pads", axis=0),
        node("Pad", "x pads value"),
    ],
    {
        "four": np.array(4, I64),
        "zeros": np.zeros(3, I64),
        "zeros2": np.zeros(2, I64),
        "value": np.array(-np.inf, "float32"),
    },
)
for _mode in ("reflect", "edge", "wrap"):
    case(f"pad in mode {_mode}", [node("Pad", "x pads", mode=_mode)], {"pads": np.array([1, 0, 2, 1, 0, 3], I64)})
case(
    "wrap by a size",
    [
        *dim("x", 0, "n"),
        *vector("n", "n1"),
        node("Concat", "n1 zeros", "pads", axis=0),
        node("Pad", "x pads", mode="wrap"),
    ],
    {"zeros": np.zeros(5, I64)},
)
case(
    "pad with negative widths",
    [node("Pad", "x pads value")],
    {"pads": np.array([-1, 2, -2, 1, 0, -1], I64), "value": np.array(3.5, "float32")},
)
case(
    "pad with a number that is computed",
    [node("ReduceMax", "x", "m", keepdims=0), node("Pad", "x pads m")],
    {"pads": np.array([1, 0, 0, 0, 2, 0], I64)},
)
case("crop and pad around the center", [node("CenterCropPad", "x s", axes=[0, 2])], {"s": np.array([4, 9], I64)})
case(
    "gather by negative and repeated indices", [node("Gather", "x i", axis=2)], {"i": np.array([[-1, 0], [3, 3]], I64)}
)
case("gather one slice", [node("Gather", "x i", axis=0)], {"i": np.array(-1, I64)})
case("gather every second slice", [node("Gather", "x i", axis=2)], {"i": np.array([1, 3, 5], I64)})
case("gather slices backwards", [node("Gather", "x i", axis=2)], {"i": np.array([4, 2, 0], I64)})
XI = {"x": ("float32", ("N", "C")), "i": ("int64", ("N", "K"))}
case("gather elements", [node("GatherElements", "x i", axis=1)], None, XI, [(2, 3, 4), (5, 4, 1), (1, 1, 2)])
case(
    "scatter elements",
    [node("Shape", "i", "s"), node("ConstantOfShape", "s", "zeros"), node("ScatterElements", "x i zeros", axis=1)],
    None,
    XI,
    [(2, 3, 4), (5, 4, 1), (1, 1, 2)],
)
for _reduction in ("add", "max", "min"):
    case(
        f"scatter with {_reduction}",
        [
            node("Shape", "i", "s"),
            node("ConstantOfShape", "s", "ones", value=helper.make_tensor("v", 1, [1], [0.25])),
            node("ScatterElements", "x i ones", axis=1, reduction=_reduction),
        ],
        None,
        XI,
        [(2, 3, 4), (5, 4, 1), (1, 1, 2)],
    )
case(
    "one-hot rows as long as an axis",
    [*dim("x", 1, "c"), node("OneHot", "i c v", axis=0)],
    {"v": np.array([2, 7], "float32")},
    XI,
    [(2, 3, 4), (5, 4, 1), (1, 1, 2)],
)
case(
    "range up to a size",
    [*dim("x", 0, "n"), node("Range", "one n step")],
    {"one": np.array(1, I64), "step": np.array(2, I64)},
)
case(
    "range down from a size",
    [*dim("x", 0, "n"), node("Cast", "n", "f", to=1), node("Range", "f low step")],
    {"low": np.array(-0.5, "float32"), "step": np.array(-0.7, "float32")},
)
case(
    "mask of the future",
    [
        *dim("x", 0, "n"),
        *dim("x", 1, "c"),
        *vector("n", "n1"),
        *vector("c", "c1"),
        node("Concat", "n1 c1", "s", axis=0),
        node("ConstantOfShape", "s", "ones", value=helper.make_tensor("v", 1, [1], [1])),
        node("Sub", "c n", "k"),
        node("Trilu", "ones k", upper=1),
    ],
)
case("identity matrix", [node("Flatten", "x", "m", axis=1), node("EyeLike", "m", k=1, dtype=7)])
case(
    "the best of at most four",
    [
        *dim("x", 0, "n"),
        *vector("n", "n1"),
        node("Min", "n1 four", "k"),
        node("TopK", "x k", "v i", axis=0),
    ],
    {"four": np.array([4], I64)},
    outputs="v i",
)
case("the smallest", [node("TopK", "x k", "v i", axis=-1, largest=0)], {"k": np.array([3], I64)}, outputs="v i")
case(
    "a length that is scaled in float32",
    [
        *dim("x", 0, "n"),
        node("Cast", "n", "f", to=1),
        node("Mul", "f scale", "s"),
        node("Floor", "s", "t"),
        node("Cast", "t", "end", to=7),
        *vector("end", "end1"),
        node("Slice", "x zero end1"),
    ],
    {"scale": np.array(0.7, "float32"), "zero": np.array([0], I64)},
    sizes=[(10, 1, 6), (20, 2, 6), (30, 1, 6), (40, 1, 6), (13, 1, 6)],
)
case(
    "shape arithmetic of all kinds",
    [
        node("Shape", "x", "s"),
        node("ReduceProd", "s axis0", "p", keepdims=1),
        node("Mod", "s three", "m"),
        node("Max", "s three m", "a"),
        node("Pow", "m two", "b"),
        node("Less", "m two", "less"),
        node("Where", "less a b", "w"),
        node("Concat", "p w s", "all", axis=0),
        node("Slice", "all one far", "part"),
        node("Reshape", "part grid", "g"),
        node("Transpose", "g", "t"),
        node("ReduceSum", "t axis0", "r", keepdims=0),
        node("Cast", "r", to=1),
    ],
    {
        "axis0": np.array([0], I64),
        "three": np.array([3], I64),
        "two": np.array([2], I64),
        "one": np.array([1], I64),
        "far": np.array([100], I64),
        "grid": np.array([2, 3], I64),
    },
)


def feeds(inputs: Any, sizes: Any) -> list[list[np.ndarray]]:
    if len(inputs) == 1:
        return [[numbers(*shape)] for shape in sizes]
    return [[numbers(n, c), np.random.randint(-c, c, (n, k))] for n, c, k in sizes]


@pytest.mark.parametrize("hybridize", [False, True])
@pytest.mark.parametrize("name", OPEN)
def test_one_import_serves_all_sizes(name: str, hybridize: bool, rng: np.random.Generator) -> None:
    nodes, constants, inputs, sizes, more = OPEN[name]
    proto = model(nodes, inputs, more.get("outputs", "y"), constants)
    assert_as_onnxruntime(proto, *feeds(inputs, sizes), hybridize=hybridize)


# ------------------------------------------------------------------------------------------ sizes that follow from data
DATA: dict[str, Any] = {
    "indices of nonzero elements": ([node("NonZero", "x")], {}, "y"),
    "elements at these indices": (
        [node("NonZero", "x", "i"), node("Transpose", "i", "t"), node("GatherND", "x t")],
        {},
        "y",
    ),
    "shapes that follow from their number": (
        [
            node("NonZero", "x", "i"),
            *dim("i", 1, "count"),
            *vector("count", "count1"),
            node("Concat", "one count1 two", "s", axis=0),
            node("Expand", "half s"),
            node("Range", "zero count step", "r"),
            node("Reshape", "i flat", "f"),
        ],
        {
            "one": np.array([1], I64),
            "two": np.array([2], I64),
            "half": np.array(0.5, "float32"),
            "zero": np.array(0, I64),
            "step": np.array(1, I64),
            "flat": np.array([-1], I64),
        },
        "y r f",
    ),
    "two selections by one mask": (
        [
            node("Greater", "x low", "m"),
            node("Reshape", "m flat", "mask"),
            node("Reshape", "x flat", "v"),
            node("Mul", "v low", "w"),
            node("Compress", "v mask", "a", axis=0),
            node("Compress", "w mask", "b", axis=0),
            node("Sub", "a b"),
        ],
        {"low": np.array(0.5, "float32"), "flat": np.array([-1], I64)},
        "y",
    ),
    "a mask shorter than the axis": ([node("Compress", "x m", axis=1)], {"m": np.array([True, False, True])}, "y"),
    "unique elements in order": (
        [node("Cast", "x", "c", to=7), node("Unique", "c", "a i v n", sorted=1)],
        {},
        "a i v n",
    ),
    "unique elements in the order of their appearance": (
        [node("Cast", "x", "c", to=7), node("Unique", "c", "a i v n", sorted=0)],
        {},
        "a i v n",
    ),
    "unique rows": ([node("Cast", "x", "c", to=7), node("Unique", "c", "a i v n", axis=0)], {}, "a i v n"),
    "a length that is an element": (
        [
            node("ReduceMax", "x", "m", keepdims=0),
            node("Cast", "m", "k", to=7),
            node("Reshape", "k one", "k1"),
            node("Slice", "x zero k1", "a"),
            node("Reshape", "x minus", "f"),
            node("TopK", "f k1", "b i"),
            node("ConstantOfShape", "k1", "c"),
        ],
        {"one": np.array([1], I64), "zero": np.array([0], I64), "minus": np.array([-1], I64)},
        "a b i c",
    ),
}


@pytest.mark.parametrize("hybridize", [False, True])
@pytest.mark.parametrize("name", DATA)
def test_sizes_may_follow_from_data(name: str, hybridize: bool, rng: np.random.Generator) -> None:
    nodes, constants, outputs = DATA[name]
    proto = model(nodes, {"x": ("float32", ("N", 3))}, outputs, constants)
    arrays = [rng.integers(-2, 4, (rows, 3)).astype("float32") for rows in (4, 1, 7)]
    for array in arrays:
        array[0, 0] = 3
    assert_as_onnxruntime(proto, *[[array] for array in arrays], hybridize=hybridize)


@pytest.mark.parametrize("hybridize", [False, True])
@pytest.mark.parametrize("center", [0, 1])
@pytest.mark.parametrize("where", ["constants", "inputs"])
def test_boxes_that_overlap_are_suppressed(where: str, center: int, hybridize: bool, rng: np.random.Generator) -> None:
    limits = {
        "most": np.array([2], I64),
        "overlap": np.array([0.3], "float32"),
        "least": np.array([0.1], "float32"),
    }
    inputs: dict[str, Any] = {"b": ("float32", ("B", "N", 4)), "s": ("float32", ("B", "C", "N"))}
    if where == "inputs":
        inputs.update({name: (str(array.dtype), (1,)) for name, array in limits.items()})
    nms = node("NonMaxSuppression", "b s most overlap least", center_point_box=center)
    proto = model([nms], inputs, "y", limits if where == "constants" else {})
    feeds = []
    for batch, classes, count in ((2, 3, 20), (1, 1, 5), (1, 2, 1)):
        boxes, scores = rng.uniform(0, 1, (batch, count, 4)), rng.uniform(0, 1, (batch, classes, count))
        feed = [boxes.astype("float32"), scores.astype("float32")]
        feeds.append([*feed, *(limits.values() if where == "inputs" else [])])
    assert_as_onnxruntime(proto, *feeds, hybridize=hybridize)


# ----------------------------------------------------------------------------------------------------------- gradients
GRADIENTS = [
    "slice to half of a size",
    "tile by a size",
    "pad to a multiple of four",
    "pad with a number that is computed",
    "split with a smaller last part",
    "gather one slice",
    "gather elements",
    "scatter with add",
    "scatter with max",
    "the best of at most four",
]


def weighted_sum(net: Any, arrays: list[Any], weights: list[Any]) -> Any:
    outputs = net(*arrays)
    outputs = outputs if isinstance(outputs, (list, tuple)) else [outputs]
    terms = [(out * weight).sum() for out, weight in zip(outputs, weights, strict=False) if out.dtype == np.float32]
    return sum(terms[1:], terms[0])


def spaced(values: np.ndarray) -> np.ndarray:
    """Numbers in the same order that are far enough apart for differences: none overtakes another one."""
    order = np.argsort(np.argsort(values.reshape(-1))).reshape(values.shape)
    return (0.1 * (order - values.size / 2)).astype("float32")


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_pass_through_parameters_that_are_sizes(name: str, rng: np.random.Generator) -> None:
    nodes, constants, inputs, sizes, more = OPEN[name]
    constants = {key: np.float32(0.25) if key == "value" else value for key, value in constants.items()}
    net = mx.onnx.import_to_gluon(model(nodes, inputs, more.get("outputs", "y"), constants))
    values = [array.astype("float32") for array in feeds(inputs, sizes)[1]]
    values[0] = spaced(values[0])
    arrays = [mx.nd.array(value) for value in values[:1]] + [mx.nd.array(v, dtype="int64") for v in values[1:]]
    outputs = net(*arrays)
    weights = [
        mx.nd.array(rng.normal(size=out.shape))
        for out in (outputs if isinstance(outputs, (list, tuple)) else [outputs])
    ]
    arrays[0].attach_grad()
    with mx.autograd.record():
        loss = weighted_sum(net, arrays, weights)
    loss.backward()
    direction = rng.normal(size=arrays[0].shape).astype("float32")
    step = 1e-2
    ends = [
        weighted_sum(net, [mx.nd.array(values[0] + sign * step * direction), *arrays[1:]], weights).asscalar()
        for sign in (1, -1)
    ]
    slope = (arrays[0].grad.asnumpy() * direction).sum()
    np.testing.assert_allclose((ends[0] - ends[1]) / (2 * step), slope, rtol=2e-2, atol=2e-2)


# -------------------------------------------------------------------------------------------------------------- errors
def imported(nodes: list[Any], inputs: Any, constants: Any = None) -> Any:
    return mx.onnx.import_to_gluon(model(nodes, inputs, "y", constants))


MATRIX = {"x": ("float32", ("N", 3))}


@pytest.mark.parametrize(
    ("nodes", "constants", "text"),
    [
        ([node("Gather", "x i", axis=1, name="g")], {"i": np.array(3, I64)}, "Gather 'g'.*index 3.*size 3"),
        ([node("Transpose", "x", perm=[0, 2])], {}, "Transpose.*axis 2 of a tensor with 2 axes"),
        ([node("Unsqueeze", "x a")], {"a": np.array([1, 1], I64)}, "Unsqueeze.*name an axis twice"),
        ([node("Split", "x s", axis=1)], {"s": np.array([1, 2], I64)}, "Split.*2 sizes for 1 outputs"),
        ([node("Reshape", "x s")], {"s": np.array([0, 0, 0], I64)}, "Reshape.*size 2 of the new shape is 0"),
        ([node("Range", "a a b")], {"a": np.array(0, I64), "b": np.array(0, I64)}, "Range.*ZeroDivisionError"),
    ],
)
def test_files_that_break_the_rules_are_refused_with_their_node(nodes: Any, constants: Any, text: str) -> None:
    with pytest.raises(mx.errors.ValueError, match=f"ONNX operator {text}"):
        imported(nodes, MATRIX, constants)


@pytest.mark.parametrize(
    ("nodes", "inputs", "text"),
    [
        ([node("Reshape", "x s")], {"s": ("int64", ("K",))}, "Reshape.*rank of the result is not known"),
        ([node("Expand", "x s")], {"s": ("int64", ("K",))}, "Expand.*rank of the result is not known"),
        ([node("Unsqueeze", "x s")], {"s": ("int64", ("K",))}, "Unsqueeze.*number of axes is not known"),
        (
            [node("ScatterElements", "x i x", axis=0, reduction="mul")],
            {"i": ("int64", ("N", 3))},
            "ScatterElements.*open number of updates",
        ),
        ([node("Constant", "", "y", value_string="text")], {}, "Constant.*strings are not supported"),
    ],
)
def test_unsupported_uses_are_refused_with_a_reason(nodes: Any, inputs: Any, text: str) -> None:
    with pytest.raises(mx.errors.UnsupportedError, match=f"ONNX operator {text}"):
        imported(nodes, {**MATRIX, **inputs})


def test_an_index_out_of_range_raises_when_the_graph_runs() -> None:
    net = imported([node("Gather", "x i", axis=1)], {**MATRIX, "i": ("int64", ("K",))})
    x = mx.nd.ones((2, 3))
    assert net(x, mx.nd.array([-3, 2], dtype="int64")).shape == (2, 2)
    with pytest.raises(mx.errors.IndexError, match="got 3"):
        net(x, mx.nd.array([3], dtype="int64")).asnumpy()


def test_views_are_kept_for_constant_indices() -> None:
    made, _, _ = mx.onnx.import_model(model([node("Gather", "x i", axis=1)], MATRIX, "y", {"i": np.array(1, I64)}))
    text = made.tojson()
    assert '"slice_axis"' in text
    assert '"take"' not in text

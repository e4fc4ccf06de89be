"""Small valid ONNX models of every kind, which are damaged later."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

MODELS: dict[str, Callable[[], Any]] = {}
F, WHOLE = TensorProto.FLOAT, TensorProto.INT64


def _model(make: Callable[[], Any]) -> Callable[[], Any]:
    MODELS[make.__name__.strip("_")] = make
    return make


def _value(name: str, kind: int, shape: Sequence[Any] | None) -> Any:
    return helper.make_tensor_value_info(name, kind, shape)


def _made(
    nodes: Sequence[Any],
    inputs: Sequence[Any],
    outputs: Sequence[str],
    constants: dict[str, Any] | None = None,
    opset: int = 18,
    functions: Sequence[Any] = (),
) -> Any:
    arrays = [numpy_helper.from_array(np.asarray(array), name) for name, array in (constants or {}).items()]
    results = [helper.make_empty_tensor_value_info(name) for name in outputs]
    graph = helper.make_graph(list(nodes), "graph", list(inputs), results, arrays)
    opsets = [helper.make_opsetid("", opset), *([helper.make_opsetid("own", 1)] if functions else [])]
    return helper.make_model(graph, opset_imports=opsets, functions=list(functions), ir_version=10)


def _weights(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


@_model
def _convolutions() -> Any:
    node = helper.make_node
    nodes = [
        node("Conv", ["x", "w", "b"], ["c"], kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2], name="conv"),
        node("BatchNormalization", ["c", "s", "z", "z", "s"], ["n"], epsilon=1e-3),
        node("Relu", ["n"], ["r"]),
        node("MaxPool", ["r"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        node("GlobalAveragePool", ["p"], ["q"]),
        node("Flatten", ["q"], ["f"], axis=1),
        node("Gemm", ["f", "v", "u"], ["g"], transB=1, alpha=0.5),
        node("Softmax", ["g"], ["y"], axis=-1),
    ]
    ones, zeros = np.ones(4, np.float32), np.zeros(4, np.float32)
    constants = {"w": _weights(4, 3, 3, 3), "b": zeros, "s": ones, "z": zeros, "v": _weights(5, 4), "u": _weights(5)}
    return _made(nodes, [_value("x", F, ["N", 3, 12, 12])], ["y"], constants)


@_model
def _sizes() -> Any:
    node = helper.make_node
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Gather", ["s", "i"], ["n"], axis=0),
        node("Unsqueeze", ["n", "axes"], ["m"]),
        node("Concat", ["m", "rest"], ["t"], axis=0),
        node("Reshape", ["x", "t"], ["r"]),
        node("Transpose", ["r"], ["a"], perm=[0, 2, 1]),
        node("Slice", ["a", "begin", "end", "axis", "step"], ["b"]),
        node("Pad", ["b", "pads"], ["c"], mode="reflect"),
        node("Expand", ["c", "shape"], ["e"]),
        node("Tile", ["e", "reps"], ["o"]),
        node("ReduceMean", ["o", "axis"], ["y"], keepdims=0),
    ]
    constants = {
        "i": np.int64(0), "axes": np.int64([0]), "rest": np.int64([2, 6]), "begin": np.int64([0]),
        "end": np.int64([5]), "axis": np.int64([1]), "step": np.int64([1]), "pads": np.int64([0, 1, 0, 0, 1, 0]),
        "shape": np.int64([1, 1, 1]), "reps": np.int64([1, 2, 1]),
    }  # fmt: skip
    return _made(nodes, [_value("x", F, ["N", 3, 4])], ["y"], constants)


@_model
def _branches() -> Any:
    node = helper.make_node
    then = helper.make_graph([node("Add", ["x", "k"], ["t"])], "then", [], [_value("t", F, None)])
    other = helper.make_graph([node("Mul", ["x", "k"], ["e"])], "else", [], [_value("e", F, None)])
    nodes = [
        node("ReduceSum", ["x"], ["s"], keepdims=0),
        node("Greater", ["s", "z"], ["c"]),
        node("If", ["c"], ["y"], then_branch=then, else_branch=other),
    ]
    return _made(nodes, [_value("x", F, [2, 3])], ["y"], {"k": np.float32(2), "z": np.float32(0)})


@_model
def _loops() -> Any:
    node = helper.make_node
    body = helper.make_graph(
        [
            node("Add", ["v", "x"], ["w"]),
            node("Cast", ["i"], ["f"], to=F),
            node("Mul", ["w", "f"], ["o"]),
            node("Identity", ["c"], ["d"]),
        ],
        "body",
        [_value("i", WHOLE, []), _value("c", TensorProto.BOOL, []), _value("v", F, [2, 3])],
        [_value("d", TensorProto.BOOL, []), _value("w", F, [2, 3]), _value("o", F, [2, 3])],
    )
    nodes = [node("Loop", ["m", "t", "x"], ["y", "z"], body=body)]
    return _made(nodes, [_value("x", F, [2, 3])], ["y", "z"], {"m": np.int64(3), "t": np.array(True)})


@_model
def _scans() -> Any:
    node = helper.make_node
    body = helper.make_graph(
        [node("Add", ["s", "r"], ["t"]), node("Tanh", ["t"], ["o"])],
        "body",
        [_value("s", F, [3]), _value("r", F, [3])],
        [_value("t", F, [3]), _value("o", F, [3])],
    )
    nodes = [node("Scan", ["z", "x"], ["y", "q"], body=body, num_scan_inputs=1, scan_input_directions=[1])]
    return _made(nodes, [_value("x", F, ["T", 3])], ["y", "q"], {"z": np.zeros(3, np.float32)})


@_model
def _recurrent() -> Any:
    node = helper.make_node
    nodes = [
        node("LSTM", ["x", "w", "r", "b"], ["a", "h", "c"], hidden_size=4, direction="bidirectional"),
        node("Transpose", ["a"], ["t"], perm=[0, 2, 1, 3]),
        node("Reshape", ["t", "s"], ["u"]),
        node("GRU", ["u", "gw", "gr"], ["y", ""], hidden_size=2, linear_before_reset=1),
    ]
    constants = {
        "w": _weights(2, 16, 3), "r": _weights(2, 16, 4), "b": _weights(2, 32), "s": np.int64([0, 0, -1]),
        "gw": _weights(1, 6, 8), "gr": _weights(1, 6, 2),
    }  # fmt: skip
    return _made(nodes, [_value("x", F, ["T", "N", 3])], ["y", "h"], constants)


@_model
def _quantized() -> Any:
    node = helper.make_node
    nodes = [
        node("QuantizeLinear", ["x", "xs", "xz"], ["q"]),
        node("QLinearConv", ["q", "xs", "xz", "w", "ws", "wz", "ys", "xz"], ["c"], kernel_shape=[1, 1]),
        node("DequantizeLinear", ["c", "ys", "xz"], ["d"]),
        node("DynamicQuantizeLinear", ["d"], ["e", "es", "ez"]),
        node("MatMulInteger", ["e", "m", "ez"], ["i"]),
        node("Cast", ["i"], ["f"], to=F),
        node("Mul", ["f", "es"], ["y"]),
    ]
    constants = {
        "xs": np.float32(0.1), "xz": np.uint8(128), "w": np.ones((2, 3, 1, 1), np.int8), "ws": np.float32(0.02),
        "wz": np.int8(0), "ys": np.float32(0.05), "m": np.ones((4, 2), np.int8),
    }  # fmt: skip
    return _made(nodes, [_value("x", F, ["N", 3, 4, 4])], ["y"], constants)


@_model
def _functions() -> Any:
    node = helper.make_node
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]
    inner = helper.make_function("own", "Inner", ["a"], ["b"], [node("Relu", ["a"], ["b"])], opsets)
    scale = node("LeakyRelu", ["b"], ["c"])
    scale.attribute.append(onnx.AttributeProto(name="alpha", ref_attr_name="slope", type=onnx.AttributeProto.FLOAT))
    outer = helper.make_function(
        "own", "Outer", ["a"], ["c"], [node("Inner", ["a"], ["b"], domain="own"), scale], opsets, ["slope"]
    )
    nodes = [node("Outer", ["x"], ["o"], domain="own", slope=0.5), node("Gelu", ["o"], ["y"])]
    return _made(nodes, [_value("x", F, ["N", 3])], ["y"], opset=20, functions=[inner, outer])


@_model
def _selections() -> Any:
    node = helper.make_node
    nodes = [
        node("TopK", ["x", "k"], ["v", "i"], axis=-1, largest=1),
        node("OneHot", ["i", "depth", "pair"], ["h"], axis=-1),
        node("NonZero", ["x"], ["n"]),
        node("GatherElements", ["x", "g"], ["e"], axis=1),
        node("ScatterND", ["x", "places", "new"], ["d"]),
        node("Split", ["d", "parts"], ["p", "q"], axis=1),
        node("CumSum", ["p", "axis"], ["y"]),
    ]
    constants = {
        "k": np.int64([2]), "depth": np.int64(6), "pair": np.float32([0, 1]), "g": np.int64([[0, 1]] * 4),
        "places": np.int64([[0], [2]]), "new": np.ones((2, 6), np.float32), "parts": np.int64([2, 4]),
        "axis": np.int64(0),
    }  # fmt: skip
    return _made(nodes, [_value("x", F, [4, 6])], ["y", "q", "h", "n", "e"], constants)


@_model
def _fillings() -> Any:
    node = helper.make_node
    nodes = [
        node("Constant", [], ["s"], value=numpy_helper.from_array(np.int64([2, 3]))),
        node("ConstantOfShape", ["s"], ["z"], value=numpy_helper.from_array(np.float32([1.5]))),
        node("Range", ["a", "l", "d"], ["r"]),
        node("Expand", ["r", "s"], ["e"]),
        node("Tile", ["e", "s"], ["t"]),
        node("EyeLike", ["z"], ["i"], k=1),
        node("Pad", ["t", "pads", "one"], ["p"]),
        node("Resize", ["x", "", "scales"], ["u"], mode="linear"),
        node("Add", ["z", "i"], ["y"]),
        node("Einsum", ["x", "x"], ["w"], equation="ncij,ncjk->ik"),
    ]
    constants = {
        "a": np.float32(0), "l": np.float32(3), "d": np.float32(1), "pads": np.int64([0, 1, 1, 0]),
        "one": np.float32(1), "scales": np.float32([1, 1, 2, 2]),
    }  # fmt: skip
    return _made(nodes, [_value("x", F, [1, 2, 3, 3])], ["y", "p", "u", "w"], constants)


@_model
def _attention() -> Any:
    node = helper.make_node
    nodes = [
        node("LayerNormalization", ["x", "s", "b"], ["n"], axis=-1),
        node("MatMul", ["n", "w"], ["q"]),
        node("Transpose", ["q"], ["k"], perm=[0, 2, 1]),
        node("MatMul", ["q", "k"], ["a"]),
        node("Div", ["a", "d"], ["e"]),
        node("Softmax", ["e"], ["p"], axis=-1),
        node("MatMul", ["p", "q"], ["o"]),
        node("Erf", ["o"], ["t"]),
        node("Add", ["t", "x"], ["y"]),
    ]
    constants = {"s": np.ones(4, np.float32), "b": np.zeros(4, np.float32), "w": _weights(4, 4), "d": np.float32(2)}
    return _made(nodes, [_value("x", F, ["N", "L", 4])], ["y"], constants)


@_model
def _sequences() -> Any:
    node = helper.make_node
    nodes = [
        node("SequenceConstruct", ["x", "x"], ["s"]),
        node("SequenceInsert", ["s", "x", "one"], ["t"]),
        node("SequenceAt", ["t", "one"], ["a"]),
        node("ConcatFromSequence", ["t"], ["y"], axis=0),
        node("SequenceLength", ["t"], ["n"]),
    ]
    return _made(nodes, [_value("x", F, [2, 3])], ["y", "a", "n"], {"one": np.int64(1)})


@_model
def _sparse() -> Any:
    made = _made([helper.make_node("MatMul", ["x", "w"], ["y"])], [_value("x", F, [2, 4])], ["y"])
    values = helper.make_tensor("w", F, [3], [1.0, 2.0, 3.0])
    places = helper.make_tensor("w_places", WHOLE, [3], [0, 5, 11])
    made.graph.sparse_initializer.append(helper.make_sparse_tensor(values, places, [4, 3]))
    return made


@_model
def _external() -> Any:
    """Its weights are in ``weights.bin``; see :func:`write`."""
    made = _made([helper.make_node("Gemm", ["x", "w", "b"], ["y"])], [_value("x", F, ["N", 4])], ["y"])
    for name, shape, offset in (("w", (4, 3), 0), ("b", (3,), 48)):
        tensor = made.graph.initializer.add(name=name, data_type=F, dims=shape)
        tensor.data_location = TensorProto.EXTERNAL
        length = 4 * int(np.prod(shape))
        for key, value in (("location", "weights.bin"), ("offset", str(offset)), ("length", str(length))):
            tensor.external_data.add(key=key, value=value)
    return made


def write(folder: pathlib.Path) -> None:
    """Writes the file that the model with external data reads."""
    (folder / "weights.bin").write_bytes(np.arange(15, dtype=np.float32).tobytes())

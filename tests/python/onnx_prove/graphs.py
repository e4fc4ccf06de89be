"""Random valid ONNX graphs: each node is drawn, run in onnxruntime, and kept if that takes it."""

from __future__ import annotations

import random
import traceback
import warnings
from collections.abc import Sequence
from typing import Any

import hybridnet as mx
import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

from onnx_prove.nodes import DRAWS, Node, Pool

OPSETS = (9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22)
_MOST_ELEMENTS = 20_000
_TOLERANCE = {"float16": 5e-3, "float32": 3e-4, "float64": 1e-6}
_OPTIONS = onnxruntime.SessionOptions()
_OPTIONS.log_severity_level = 4
_OPTIONS.intra_op_num_threads = 1


def _info(name: str, array: np.ndarray, shape: Sequence[Any] | None = None) -> Any:
    return helper.make_tensor_value_info(
        name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape if shape is None else shape
    )


def _model(nodes: Sequence[Any], inputs: Sequence[Any], outputs: Sequence[str], constants: Any, opset: int) -> Any:
    arrays = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    results = [helper.make_empty_tensor_value_info(name) for name in outputs]
    graph = helper.make_graph(list(nodes), "random", list(inputs), results, arrays)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def _run(model: Any, feed: dict[str, np.ndarray]) -> list[np.ndarray] | None:
    """The results of onnxruntime; None where it refuses the model."""
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), _OPTIONS)
        names = {given.name for given in session.get_inputs()}
        return session.run(None, {name: array for name, array in feed.items() if name in names})
    except Exception:
        return None


def _run_node(node: Node, values: dict[str, np.ndarray], opset: int) -> list[np.ndarray] | None:
    feed = {name: values[name] for name in node.reads() if name in values}
    inputs = [_info(name, array) for name, array in feed.items()]
    return _run(_model([node.proto], inputs, node.proto.output, node.constants, opset), feed)


class Graph:
    """A random graph with its inputs, and the values of all names in onnxruntime."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        self.opset = draw.choice(OPSETS)
        self.nodes: list[Node] = []
        self.values: dict[str, np.ndarray] = {}
        self.rng = np.random.default_rng(draw.randrange(1 << 30))
        for number in range(draw.choice([1, 2, 3])):
            self.values[f"x{number}"] = self._input()
        self.inputs = list(self.values)
        wanted = draw.choice([1, 2, 4, 8])
        for _ in range(6 * wanted):
            if len(self.nodes) < wanted:
                self._add()

    def _input(self) -> np.ndarray:
        shape = [self.draw.choice([1, 2, 3, 4, 5, 6]) for _ in range(self.draw.choice([1, 2, 3, 3, 4, 4, 5]))]
        kind = self.draw.choice(["float32"] * 7 + ["int64", "int32", "bool"])
        if kind == "float32":
            return self.rng.normal(size=shape).astype(kind)
        return self.rng.integers(0 if kind == "bool" else -5, 2 if kind == "bool" else 6, shape).astype(kind)

    def _add(self) -> None:
        pool = Pool(self.draw, self.rng, self.values, self.opset, len(self.nodes))
        try:
            node = self.draw.choice(DRAWS)(pool)
        except (IndexError, ValueError):  # the pool has no fitting value
            return
        if node is None or (node.proto.op_type == "Concat" and not all(self._size(name) for name in node.proto.input)):
            return  # onnxruntime takes tensors without elements of any shape
        made = _run_node(node, self.values, self.opset)
        is_pool = "Pool" in node.proto.op_type
        if made is not None and all(_is_plain(value) and (value.size or not is_pool) for value in made):
            self.nodes.append(node)
            self.values.update(zip(node.proto.output, made, strict=True))

    def _size(self, name: str) -> int:
        return self.values[name].size if name in self.values else 1

    def model(self, open_axis: tuple[str, int] | None) -> Any:
        """The graph, all of whose values are outputs; open_axis: input and axis whose size may vary."""
        inputs = []
        for name in self.inputs:
            shape: list[Any] = list(self.values[name].shape)
            if open_axis is not None and name == open_axis[0]:
                shape[open_axis[1]] = "N"
            inputs.append(_info(name, self.values[name], shape))
        outputs = [name for node in self.nodes for name in node.proto.output]
        constants = {name: array for node in self.nodes for name, array in node.constants.items()}
        return _model([node.proto for node in self.nodes], inputs, outputs, constants, self.opset)

    def feeds(self, open_axis: tuple[str, int]) -> list[dict[str, np.ndarray]]:
        """The values of all names for other sizes of an axis; none where onnxruntime refuses one of the sizes."""
        name, axis = open_axis
        model, made = self.model(open_axis), []
        for count in (2, 3):
            longer = np.concatenate([self.values[name]] * count, axis=axis)
            feed = {one: longer if one == name else self.values[one] for one in self.inputs}
            results = _run(model, feed)
            if results is None or not all(_is_plain(value) for value in results):
                return []
            outputs = [output for node in self.nodes for output in node.proto.output]
            made.append({**feed, **dict(zip(outputs, results, strict=True))})
        return made


def _is_plain(value: Any) -> bool:
    """Whether it is a tensor of a few finite numbers: results for NaN differ between libraries."""
    return (
        isinstance(value, np.ndarray)
        and value.size <= _MOST_ELEMENTS
        and value.dtype.kind in "fiub"
        and bool(np.isfinite(value).all())
    )


def _difference(got: np.ndarray, wanted: np.ndarray) -> str:
    if got.shape != wanted.shape:
        return f"shape {got.shape} instead of {wanted.shape}"
    kind = wanted.dtype.name
    if kind not in _TOLERANCE:
        same = np.array_equal(got.astype(np.int64), wanted.astype(np.int64))
        return "" if same else f"{got.reshape(-1)[:8]} instead of {wanted.reshape(-1)[:8]}"
    finite = np.abs(wanted[np.isfinite(wanted)])
    scale = float(finite.max(initial=0.0))
    with np.errstate(all="ignore"):
        near = np.isclose(got, wanted, rtol=_TOLERANCE[kind], atol=_TOLERANCE[kind] * min(scale, 1.0), equal_nan=True)
    if near.all():
        return ""
    place = tuple(np.argwhere(~near)[0])
    return (
        f"{(~near).sum()} of {near.size} elements: {got[place]} instead of {wanted[place]} at {tuple(map(int, place))}"
    )


def case(number: int, seed: int) -> tuple[str, str]:
    """The outcome of a random graph, and the text of a finding: empty if it is right."""
    warnings.simplefilter("ignore")
    graph = Graph(random.Random(f"{seed} {number}"))
    if not graph.nodes:
        return "empty", ""
    name = graph.draw.choice(graph.inputs)
    open_axis = (name, graph.draw.randrange(graph.values[name].ndim)) if graph.draw.random() < 0.5 else None
    feeds = graph.feeds(open_axis) if open_axis is not None else []
    open_axis = open_axis if feeds else None
    model = graph.model(open_axis)
    text = f"opset {graph.opset}, open {open_axis}\n{onnx.printer.to_text(model.graph)[:1500]}\n"
    try:
        net = mx.onnx.import_to_gluon(model)
        for values in (graph.values, *feeds):
            made = net(*[mx.nd.array(values[name], dtype=values[name].dtype) for name in graph.inputs])
            results = [result.asnumpy() for result in (made if isinstance(made, (list, tuple)) else [made])]
            found = _compared(graph, values, results)
            if found:
                return "wrong", text + found
    except mx.errors.HybridNetError as error:
        if any(node.proto.op_type == "NonZero" for node in graph.nodes) and "fits none" in str(error):
            return "limited", ""  # constants fit the number of elements that this run has: data, not sizes
        if "Import it for such inputs" in str(error):
            return "limited", ""  # slices of axes that are shorter here than in the trials of the import
        return ("error of open sizes" if feeds else "error"), f"{text}{error}"
    except Exception:
        return "foreign", text + traceback.format_exc()[-1500:]
    return ("right for open sizes" if feeds else "right"), ""


def _compared(graph: Graph, values: dict[str, np.ndarray], results: Sequence[np.ndarray]) -> str:
    """The first node whose results differ from those of onnxruntime for the same inputs, and how."""
    own = {name: values[name] for name in graph.inputs}
    rest = iter(results)
    for node in graph.nodes:
        made = [next(rest) for _ in node.proto.output]
        wanted: Any = [values[name] for name in node.proto.output]
        differences = [_difference(a, b) for a, b in zip(made, wanted, strict=True)]
        if any(differences):  # rounding of earlier nodes may grow: the node alone, for the same inputs
            inputs = {name: own[name].astype(values[name].dtype) for name in node.reads() if name in own}
            wanted = _run_node(node, inputs, graph.opset)
            if wanted is not None:
                differences = [_difference(a, b) for a, b in zip(made, wanted, strict=True)]
        if any(differences):
            return f"{node.proto.op_type}: {differences}\n{helper.printable_node(node.proto)}"
        own.update(zip(node.proto.output, made, strict=True))
    return ""

"""Small ONNX models for tests, and their results in HybridNet and in onnxruntime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import hybridnet as mx
import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
helper = onnx.helper

OPSET = 21


def node(op: str, inputs: str, outputs: str = "y", **attributes: Any) -> Any:
    """A node; names of inputs and outputs are words, `_` for an absent one."""
    names = ["" if name == "_" else name for name in inputs.split()]
    return helper.make_node(op, names, outputs.split(), **attributes)


def model(
    nodes: Sequence[Any],
    inputs: Mapping[str, tuple[str, Sequence[Any]]],
    outputs: str = "y",
    constants: Mapping[str, Any] | None = None,
    opset: int = OPSET,
    domains: Mapping[str, int] | None = None,
) -> Any:
    """A model. inputs: dtype and shape by name, with words for open sizes; constants: initializers; domains: versions
    of other operator sets."""
    graph = helper.make_graph(
        list(nodes),
        "graph",
        [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape)
            for name, (dtype, shape) in inputs.items()
        ],
        [helper.make_empty_tensor_value_info(name) for name in outputs.split()],
        [onnx.numpy_helper.from_array(np.asarray(array), name) for name, array in (constants or {}).items()],
    )
    opsets = [helper.make_opsetid(*version) for version in {"": opset, **(domains or {})}.items()]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def expected(proto: Any, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The outputs of onnxruntime."""
    runtime = pytest.importorskip("onnxruntime")
    options = runtime.SessionOptions()
    options.log_severity_level = 4
    session = runtime.InferenceSession(proto.SerializeToString(), options)
    results: list[np.ndarray] = session.run(
        None, {given.name: array for given, array in zip(session.get_inputs(), arrays, strict=True)}
    )
    return results


@cache
def runtime_saturates() -> bool:
    """Whether onnxruntime adds pairs of products of bytes in 16 bits: it does so on processors without VNNI."""
    values = {"a": np.full((1, 32), 255, "uint8"), "b": np.full((32, 1), 127, "int8")}
    proto = model([node("MatMulInteger", "a b")], {"a": ("uint8", [1, 32])}, constants={"b": values["b"]})
    return int(expected(proto, [values["a"]])[0].item()) != 255 * 127 * 32


def exact(proto: Any, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The outputs of onnxruntime; where it saturates, those of onnx's reference in NumPy for its standard operators."""
    if not runtime_saturates() or any(opset.domain not in ("", "ai.onnx") for opset in proto.opset_import):
        return expected(proto, arrays)
    from onnx.reference import ReferenceEvaluator

    names = [value.name for value in proto.graph.input]
    return list(ReferenceEvaluator(proto).run(None, dict(zip(names, arrays, strict=True))))


def run(net: Any, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The outputs of an imported block."""
    made = net(*[mx.nd.array(array, dtype=array.dtype) for array in arrays])
    return [output.asnumpy() for output in (made if isinstance(made, (list, tuple)) else [made])]


def assert_as_onnxruntime(proto: Any, *feeds: Sequence[np.ndarray], hybridize: bool = False) -> None:
    """One import gives the results of onnxruntime for all these inputs: shapes, dtypes and elements."""
    net = mx.onnx.import_to_gluon(proto)
    if hybridize:
        net.hybridize()
    for arrays in feeds:
        for made, wanted in zip(run(net, arrays), expected(proto, arrays), strict=True):
            assert made.dtype == wanted.dtype
            np.testing.assert_allclose(made, wanted, rtol=1e-5, atol=1e-6, strict=True)

"""ONNX Runtime as a backend for parts of graphs. Needs the packages ``onnx`` and ``onnxruntime``.

::

    from hybridnet.contrib.backends import onnxruntime

    onnxruntime.register()
    net.hybridize(backend="onnxruntime")  # or net.optimize_for(x, backend="onnxruntime")

The operators are those that ``mx.onnx.export_model`` writes.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import Any

import numpy as np

from ... import rewrite
from ..._public_names import dir_of
from ...errors import HybridNetError
from ...errors import ImportError as HybridNetImportError

__all__ = ["make", "model_of", "register", "supports"]

_OPSET = 18
# These operators raise errors, which a session cannot.
_CHECKS = ("_checked_parameter", "_npx_constraint_check")
_decided: dict[Any, bool] = {}  # by operator, parameters and shapes: whether ONNX can express a use


def _needed(package: str) -> Any:
    try:
        return importlib.import_module(package)
    except ImportError:
        raise HybridNetImportError(
            f"the backend 'onnxruntime' needs the package '{package}'", fix="pip install onnx onnxruntime"
        ) from None


def supports(node: Any) -> bool:
    """Whether ONNX Runtime supports this Node: non-empty float32 values, an operator with a form in ONNX, no loop."""
    from ...onnx._export_table import find_form

    if node.op in _CHECKS or node.bodies or find_form(node.op) is None:
        return False
    read = [bool(node.graph.clients(entry)) for entry in node.outputs]
    values = [*node.inputs, *(entry for entry, is_read in zip(node.outputs, read, strict=True) if is_read)]
    if any(value.dtype != np.float32 or 0 in value.shape for value in values):
        return False
    shapes = [value.shape for value in (*node.inputs, *node.outputs)]
    key = node.op, repr(node.params), str(shapes), str(read), node.graph.train
    if key not in _decided:
        _decided[key] = _has_form(node)
    return _decided[key]


def _has_form(node: Any) -> bool:
    """Whether the node can be exported without a loop of ONNX: the library's own kernels are faster than loops."""
    from ...onnx._export_values import Spec, Tensor
    from ...onnx._exporter import Exporter, NodeUse
    from ...onnx._writer import Graph, Writer

    exporter = Exporter(Writer(_OPSET), 1)
    tensors = {
        entry: Tensor(f"input{i}", "float32", Spec([entry.shape], "float32")) for i, entry in enumerate(node.inputs)
    }
    use = NodeUse((node,), [tensors[entry] for entry in node.inputs])
    try:
        results = exporter.export(use)
    except HybridNetError:
        return False
    made = [result is not None for result in results]
    if any(use.reads(i) and not (i < len(made) and made[i]) for i in range(len(use.outputs))):
        return False
    records = exporter.writer.graph.nodes
    return not any(isinstance(value, Graph) for record in records for value in record.attributes.values())


def model_of(graph: Any) -> Any:
    """Converts a Graph of supported nodes to an ``onnx.ModelProto``; inputs and outputs keep the graph's order."""
    onnx = _needed("onnx")
    from ...onnx._export_source import Graphs
    from ...onnx._export_values import Spec, Tensor
    from ...onnx._exporter import Exporter, dtype_name
    from ...onnx._writer import Writer

    writer = Writer(_OPSET)
    exporter = Exporter(writer, 1)
    outputs = [writer.unique(f"output{number}") for number in range(len(graph.outputs))]
    values = {}
    for number, entry in enumerate(graph.inputs):
        dtype = dtype_name(entry)
        values[entry] = Tensor(writer.unique(f"input{number}"), dtype, Spec([entry.shape], dtype))
        writer.graph.inputs.append(values[entry])
    exporter.finish(exporter.walk(Graphs([graph]), values), outputs)
    model = writer.model("part", "", {})
    onnx.checker.check_model(model)
    return model


def make(graph: Any, threads: int = 0) -> rewrite.Compiled:
    """Compiles a Graph of supported nodes to an ONNX Runtime session; threads: of the session, 0: all cores."""
    runtime = _needed("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    session = runtime.InferenceSession(model_of(graph).SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_inputs()]

    def forward(*arrays: np.ndarray) -> list[np.ndarray]:
        outputs: list[np.ndarray] = session.run(None, dict(zip(names, arrays, strict=True)))
        return outputs

    return rewrite.Compiled(forward, views=True)


def register(
    min_nodes: int = 3, *, name: str = "onnxruntime", tags: Iterable[str] = (), threads: int = 0
) -> rewrite.Partition:
    """Registers the backend in the pipeline (mx.rewrite.partition).

    Parameters
    ----------
    min_nodes : int, default 3
        Smaller sets of nodes are not given to the backend.
    name : str, default 'onnxruntime'
        The name for hybridize(backend=...) and queries.
    tags : iterable of str, default ()
        With ("fast_run",) it is active for all graphs, else for blocks that select it.
    threads : int, default 0
        Threads of each session; 0: the number of cores.

    Weights are inputs of the sessions, so that training may change them; ONNX Runtime packs them in each call. Raises
    ImportError if a package is missing.
    """
    _needed("onnx")
    _needed("onnxruntime")

    def backend(graph: Any) -> rewrite.Compiled:
        """parts of graphs that ONNX Runtime computes"""
        return make(graph, threads)

    return rewrite.partition(supports, min_nodes, backend, name=name, tags=tags)


__dir__ = dir_of(__name__)

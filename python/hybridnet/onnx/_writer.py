"""Collects the nodes and tensors of an ONNX file, and writes it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from .._files import replacing
from ..libinfo import __version__
from ._export_values import Dim, Number, Open, Spec, Tensor
from ._node import NO_WEIGHT, PRODUCER
from ._package import onnx

__all__ = ["Graph", "NodeRecord", "Writer"]

# A file of protocol buffers holds less than 2 GiB; the rest of the bytes is for nodes and names.
MOST_BYTES_INSIDE = 2**31 - 2**26
_ALIGNMENT = 4096  # tensors in a file of external data begin at multiples, so that readers may map them
_TYPES = {
    "float32": "FLOAT", "float64": "DOUBLE", "float16": "FLOAT16", "bfloat16": "BFLOAT16", "int8": "INT8",
    "uint8": "UINT8", "int32": "INT32", "int64": "INT64", "bool": "BOOL",
}  # fmt: skip


def type_code(dtype: str) -> int:
    """ONNX's number of an element type."""
    return int(getattr(onnx().TensorProto, _TYPES[dtype]))


@dataclass
class NodeRecord:
    """A node: tensors are named when the graph is written."""

    op: str
    inputs: list[Tensor | None]
    outputs: list[Tensor | None]
    attributes: dict[str, Any]
    name: str
    domain: str = ""
    doc: str = ""
    block: str = ""


@dataclass
class Graph:
    """A graph under construction: the model's, or the body of a loop or branch."""

    depth: int
    nodes: list[NodeRecord] = field(default_factory=list)
    inputs: list[Tensor] = field(default_factory=list)
    outputs: list[Tensor] = field(default_factory=list)
    made: dict[Any, tuple[Tensor, ...]] = field(default_factory=dict)  # equal nodes are written once
    sizes: dict[tuple[int, ...], Dim] = field(default_factory=dict)  # sizes that differ between trials
    names_of_sizes: dict[tuple[int, ...], str] = field(default_factory=dict)


class Writer:
    """The graphs of one model, its constants and parameters, and its names."""

    def __init__(self, opset: int) -> None:
        self.opset = opset
        self.graphs: list[Graph] = [Graph(0)]
        self.constants: list[tuple[Tensor, np.ndarray]] = []
        self._trained: set[int] = set()  # by id: constants that training may change
        self.domains: set[str] = set()
        self.functions: list[Any] = []
        self.stored: list[tuple[Tensor, np.ndarray]] = []  # tensors whose elements are in another file
        self._known_constants: dict[Any, Tensor] = {}
        self._used_names: set[str] = set()
        self._makers: dict[int, NodeRecord] = {}  # by id of an output
        self._node_names: set[str] = set()

    # ----------------------------------------------------------------------------------------------------- collecting
    @property
    def graph(self) -> Graph:
        """The innermost graph."""
        return self.graphs[-1]

    @contextlib.contextmanager
    def inner_graph(self) -> Iterator[Graph]:
        """A graph inside the current one."""
        graph = Graph(len(self.graphs))
        self.graphs.append(graph)
        try:
            yield graph
        finally:
            self.graphs.pop()

    def unique(self, name: str) -> str:
        """A name that nothing else in the file has."""
        made, number = name, 1
        while made in self._used_names:
            number += 1
            made = f"{name}_{number}"
        self._used_names.add(made)
        return made

    def constant(self, array: np.ndarray, name: str) -> Tensor:
        """A tensor of known elements; equal ones are stored once."""
        key = (str(array.dtype), array.shape, array.tobytes())
        found = self._known_constants.get(key)
        if found is None:
            found = Tensor(self.unique(name), str(array.dtype), Spec([array.shape], str(array.dtype)), const=array)
            self._known_constants[key] = found
            self.constants.append((found, array))
        return found

    def parameter(self, tensor: Tensor, array: np.ndarray, trained: bool = True) -> None:
        """Stores the elements of a parameter, or of another large array that training leaves alone."""
        tensor.parameter = array
        if trained:
            self._trained.add(id(tensor))
        self.constants.append((tensor, array))

    def name_node(self, tensor: Tensor, name: str) -> None:
        """Gives the node that makes a tensor a name, if no other node has it."""
        record = self._makers.get(id(tensor))
        if record is not None and name not in self._node_names:
            self._node_names.add(name)
            record.name = name

    def add(self, record: NodeRecord, depth: int | None = None) -> None:
        """Appends a node to the innermost graph, or to the one of that depth."""
        self._makers.update((id(tensor), record) for tensor in record.outputs)
        if record.domain:
            self.domains.add(record.domain)
        self.graphs[self.graph.depth if depth is None else depth].nodes.append(record)

    # -------------------------------------------------------------------------------------------------------- writing
    def graph_proto(self, graph: Graph, name: str, initializers: Sequence[Any] = (), doc: str = "") -> Any:
        """The GraphProto of a complete graph."""
        return onnx().helper.make_graph(
            [self.node_proto(record) for record in graph.nodes],
            name,
            [self._value_info(graph, tensor) for tensor in graph.inputs],
            [self._value_info(graph, tensor) for tensor in graph.outputs],
            list(initializers),
            doc_string=doc or None,
        )

    def node_proto(self, record: NodeRecord) -> Any:
        """The NodeProto of a node, with the present names of its tensors."""
        attributes = {
            key: self.graph_proto(value, f"{record.name}_{key}") if isinstance(value, Graph) else value
            for key, value in record.attributes.items()
        }
        proto = onnx().helper.make_node(
            record.op,
            [tensor.name if tensor is not None else "" for tensor in record.inputs],
            [tensor.name if tensor is not None else "" for tensor in record.outputs],
            name=record.name,
            domain=record.domain or None,
            **attributes,
        )
        if record.doc:
            proto.doc_string = record.doc
        if record.block:
            proto.metadata_props.add(key="hybridnet.block", value=record.block)
        return proto

    def _value_info(self, graph: Graph, tensor: Tensor) -> Any:
        code = type_code(tensor.dtype)
        if tensor.spec is None:
            return onnx().helper.make_tensor_value_info(tensor.name, code, None)
        sizes = [self._size_in_file(graph, number) for number in tensor.spec.numbers]
        return onnx().helper.make_tensor_value_info(tensor.name, code, sizes)

    def _size_in_file(self, graph: Graph, number: Number) -> int | str | None:
        if not isinstance(number, Open):
            return number
        return self.graphs[0].names_of_sizes.get(number.trials)

    def model(self, name: str, doc: str, properties: Mapping[str, str], inline: bool = True) -> Any:
        """The ModelProto; with inline=False the elements of parameters are left out, see external()."""
        graph = self.graphs[0]
        drop_unread(graph)
        used = self._read_tensors()
        kept = [(tensor, array) for tensor, array in self.constants if id(tensor) in used]
        self.stored = [] if inline else [(tensor, array) for tensor, array in kept if array.nbytes >= 1024]
        outside = {id(tensor) for tensor, _ in self.stored}
        initializers = [
            _external_proto(tensor, array) if id(tensor) in outside else _tensor_proto(tensor, array)
            for tensor, array in kept
        ]
        for (tensor, array), proto in zip(kept, initializers, strict=True):
            if id(tensor) not in self._trained and array.dtype.kind in "fV":
                proto.doc_string = NO_WEIGHT
        opsets = [onnx().helper.make_opsetid("", self.opset)]
        opsets += [onnx().helper.make_opsetid(domain, 1) for domain in sorted(self.domains)]
        model = onnx().helper.make_model(
            self.graph_proto(graph, name, initializers),
            opset_imports=opsets,
            functions=self.functions,
            producer_name=PRODUCER,
            producer_version=__version__,
            ir_version=_ir_version(self.opset),
            doc_string=doc,
        )
        onnx().helper.set_model_props(model, dict(properties))
        return model

    @property
    def bytes_of_constants(self) -> int:
        """The size of all constants and parameters."""
        return sum(array.nbytes for _, array in self.constants)

    def _read_tensors(self) -> set[int]:
        used = {id(tensor) for tensor in self.graphs[0].outputs}
        pending = [self.graphs[0]]
        while pending:
            for record in pending.pop().nodes:
                used.update(id(tensor) for tensor in record.inputs)
                inner = [value for value in record.attributes.values() if isinstance(value, Graph)]
                used.update(id(tensor) for graph in inner for tensor in graph.outputs)
                pending += inner
        return used

    def write(self, path: str | os.PathLike[str], external: bool, **texts: Any) -> None:
        """Writes the file, and beside it `<name>.data` with the large tensors if `external` is true."""
        if not external:
            with replacing(path, "onnx.export_model") as file:
                file.write(self.model(**texts).SerializeToString())
            return
        model = self.model(**texts, inline=False)
        path = Path(path)
        data = path.with_name(f"{path.name}.data")
        places = {}
        with replacing(data, "onnx.export_model") as file:
            position = 0
            for tensor, array in self.stored:
                padding = -position % _ALIGNMENT
                file.write(b"\0" * padding)
                file.write(
                    np.ascontiguousarray(array).data.cast("B") if array.dtype.kind in "fiub" else array.tobytes()
                )
                places[tensor.name] = (position + padding, array.nbytes)
                position += padding + array.nbytes
        for proto in model.graph.initializer:
            if proto.name in places:
                offset, length = places[proto.name]
                for key, value in (("location", data.name), ("offset", offset), ("length", length)):
                    proto.external_data.add(key=key, value=str(value))
        with replacing(path, "onnx.export_model") as file:
            file.write(model.SerializeToString())


def drop_unread(graph: Graph) -> set[int]:
    """Removes nodes whose outputs nothing reads; returns the tensors of graphs around this one that it reads."""
    read = {id(tensor) for tensor in graph.outputs}
    kept = []
    for record in reversed(graph.nodes):
        if not any(tensor is not None and id(tensor) in read for tensor in record.outputs):
            continue
        kept.append(record)
        read.update(id(tensor) for tensor in record.inputs)
        for value in record.attributes.values():
            if isinstance(value, Graph):
                read |= drop_unread(value)
    graph.nodes = kept[::-1]
    return read


def _ir_version(opset: int) -> int:
    """The version of the file format that goes with an opset; 8 is the oldest that has everything used here."""
    opsets = [onnx().helper.make_opsetid("", opset)]
    return max(8, int(onnx().helper.find_min_ir_version_for(opsets, ignore_unknown=True)))


def _tensor_proto(tensor: Tensor, array: np.ndarray) -> Any:
    proto = _external_proto(tensor, array, outside=False)
    proto.raw_data = np.ascontiguousarray(array).tobytes()
    return proto


def _external_proto(tensor: Tensor, array: np.ndarray, outside: bool = True) -> Any:
    proto = onnx().TensorProto(name=tensor.name, data_type=type_code(tensor.dtype), dims=array.shape)
    if outside:
        proto.data_location = onnx().TensorProto.EXTERNAL
    return proto

"""Functions of an exported file: blocks of equal structure are written once, and called."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ._export_values import Tensor
from ._package import onnx
from ._writer import Graph, NodeRecord, Writer, drop_unread

__all__ = ["FUNCTION_DOMAIN", "write_functions"]

FUNCTION_DOMAIN = "hybridnet.blocks"
# A call is a node, too: smaller blocks gain nothing.
_LEAST_NODES = 3


@dataclass
class _Block:
    """The nodes of a block, the tensors that they read from outside, and those of theirs that others read."""

    path: str
    records: list[NodeRecord]
    inputs: list[Tensor]
    outputs: list[Tensor]
    structure: Any


def write_functions(writer: Writer) -> None:
    """Replaces blocks of equal structure by calls of one function: large blocks first, then those inside the others."""
    graph = writer.graphs[0]
    drop_unread(graph)
    paths = {record.block[: match.start()] for record in graph.nodes for match in re.finditer(r"\.|$", record.block)}
    for depth in sorted({path.count(".") for path in paths if path}):
        found: dict[Any, list[_Block]] = {}
        for path in sorted(path for path in paths if path and path.count(".") == depth):
            block = _block_at(graph, path)
            if block is not None:
                found.setdefault(block.structure, []).append(block)
        for blocks in found.values():
            if len(blocks) > 1:
                _replace(writer, graph, blocks)


def _block_at(graph: Graph, path: str) -> _Block | None:
    """The block of a path; None: it is too small, or its nodes cannot run as one."""
    places = [i for i, record in enumerate(graph.nodes) if f"{record.block}.".startswith(f"{path}.")]
    records = [graph.nodes[i] for i in places]
    if len(records) < _LEAST_NODES or any(record.domain == FUNCTION_DOMAIN for record in records):
        return None
    if any(isinstance(value, Graph) for record in records for value in record.attributes.values()):
        return None
    made = {id(tensor) for record in records for tensor in record.outputs}
    others = [record for i, record in enumerate(graph.nodes) if i not in set(places)]
    between = [graph.nodes[i] for i in range(places[0], places[-1]) if i not in set(places)]
    if any(made & _reads(record) for record in between):  # it would run before the call
        return None
    read = {id(tensor) for tensor in graph.outputs}.union(*map(_reads, others))
    inputs = _distinct(tensor for record in records for tensor in record.inputs if tensor and id(tensor) not in made)
    outputs = [tensor for record in records for tensor in record.outputs if tensor and id(tensor) in read]
    return _Block(path, records, inputs, outputs, _structure(records, inputs, outputs))


def _distinct(tensors: Iterable[Tensor]) -> list[Tensor]:
    return list({id(tensor): tensor for tensor in tensors}.values())


def _reads(record: NodeRecord) -> set[int]:
    """The tensors that a node reads, also inside its graphs."""
    found = {id(tensor) for tensor in record.inputs}
    for value in record.attributes.values():
        if isinstance(value, Graph):
            found.update(id(tensor) for tensor in value.outputs)
            found.update(*map(_reads, value.nodes))
    return found


def _structure(records: Sequence[NodeRecord], inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> Any:
    """A key that blocks with equal operators, attributes and connections share."""
    numbers: dict[int, int] = {id(tensor): number for number, tensor in enumerate(inputs)}
    rows = []
    for record in records:
        read = tuple(numbers[id(tensor)] if tensor is not None else -1 for tensor in record.inputs)
        rows.append((record.op, record.domain, read, len(record.outputs), repr(sorted(record.attributes.items()))))
        for tensor in record.outputs:
            numbers[id(tensor)] = len(numbers)
    return tuple(rows), len(inputs), tuple(numbers[id(tensor)] for tensor in outputs)


def _replace(writer: Writer, graph: Graph, blocks: Sequence[_Block]) -> None:
    name = writer.unique(re.sub(r"\W", "_", blocks[0].path))
    writer.functions.append(_function(writer, name, blocks[0]))
    for block in blocks:
        call = NodeRecord(
            name, list(block.inputs), list(block.outputs), {}, block.path, FUNCTION_DOMAIN, "", block.path
        )
        own = {id(record) for record in block.records}
        last = max(i for i, record in enumerate(graph.nodes) if id(record) in own)
        graph.nodes[last] = call
        graph.nodes = [record for record in graph.nodes if id(record) not in own]
        writer.domains.add(FUNCTION_DOMAIN)


def _function(writer: Writer, name: str, block: _Block) -> Any:
    """The FunctionProto of a block, with names of its own."""
    local: dict[int, Tensor] = {}
    for number, tensor in enumerate(block.inputs):
        local[id(tensor)] = Tensor(f"input{number}", tensor.dtype)
    for number, tensor in enumerate(block.outputs):
        local[id(tensor)] = Tensor(f"output{number}", tensor.dtype)
    protos = []
    for number, record in enumerate(block.records):
        for tensor in record.outputs:
            if tensor is not None:
                local.setdefault(id(tensor), Tensor(f"value{len(local)}", tensor.dtype))
        inputs, outputs = (
            [None if tensor is None else local[id(tensor)] for tensor in tensors]
            for tensors in (record.inputs, record.outputs)
        )
        inner = NodeRecord(record.op, inputs, outputs, record.attributes, f"{record.op}{number}", record.domain)
        protos.append(writer.node_proto(inner))
    domains = sorted({record.domain for record in block.records} - {""})
    return onnx().helper.make_function(
        FUNCTION_DOMAIN,
        name,
        [local[id(tensor)].name for tensor in block.inputs],
        [local[id(tensor)].name for tensor in block.outputs],
        protos,
        [onnx().helper.make_opsetid("", writer.opset), *(onnx().helper.make_opsetid(domain, 1) for domain in domains)],
    )

"""Walks the trial graphs of a Symbol and makes an ONNX graph of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .. import _core
from ..errors import HybridNetError, UnsupportedError
from ..ndarray import NDArray
from ..ndarray import array as nd_array
from ..ndarray._dtypes import numpy_dtype
from ..rewrite import apply as apply_rewrites
from ..rewrite import graph as trial_graph
from ..symbol import var
from . import _export_table
from ._export_errors import NotForOpenSizes, refuse_use
from ._export_source import Graphs
from ._export_values import Dim, Number, Open, Spec, Tensor, merged
from ._subgraphs import Subgraphs
from ._writer import Writer

__all__ = ["Exporter", "NodeUse"]

# Constants are computed during the export if the result has at most this many elements.
MOST_FOLDED = 1 << 16
# Operators that put parameters together; value_of computes them if a form needs the elements.
_REARRANGING = frozenset(
    [
        "Reshape",
        "_np_reshape",
        "_npx_reshape",
        "Flatten",
        "Concat",
        "_rnn_param_concat",
        "expand_dims",
        "transpose",
        "Cast",
    ]
)


def dtype_name(entry: Any) -> str:
    """The dtype of an entry of a trial graph, as text."""
    return np.dtype(entry.dtype).name


def _spec_of(entries: Sequence[Any]) -> Spec:
    return Spec([entry.shape for entry in entries], dtype_name(entries[0]))


class NodeUse:
    """A node of the graph that is exported.

    Attributes
    ----------
    op, name, block, where : str
        Operator, name of the node, path of the block and Python line that made it.
    params : dict
        Parameters; numbers that differ between trials are Opens.
    inputs : list of Tensor
    outputs : list of Spec
        Shapes and dtypes of all outputs, hidden ones included.
    train : bool
        Whether operators are in training mode.
    nodes : tuple or None
        The node in each trial graph; None for a late node.
    source : Source
        The graphs of the node.
    late : LateNode or None
    """

    def __init__(self, nodes: tuple[Any, ...], inputs: list[Tensor], source: Any = None) -> None:
        first = nodes[0]
        self.nodes: Any = nodes
        self.source = source
        self.late: Any = None
        self.op: str = first.op
        self.name: str = first.name.replace("'", "_")
        self.block: str = first.block or ""
        self.where: str = first.where or ""
        self.train: bool = first.graph.train
        self.inputs = inputs
        self._read: list[bool] = []
        self.outputs = [_spec_of(entries) for entries in zip(*(node.outputs for node in nodes), strict=True)]
        self.params: dict[str, Any] = {}
        given = [node.params for node in nodes]
        for key in given[0]:
            self.params[key] = merged([params[key] for params in given])

    @classmethod
    def of_late(cls, late: Any, inputs: list[Tensor], specs: Mapping[str, Spec], source: Any) -> NodeUse:
        """The use of a late node (_export_source.py); specs: of its outputs that are read, by variable."""
        node = object.__new__(cls)
        node.nodes, node.source, node.late = None, source, late
        node.op, node.name, node.block, node.where = late.op, late.name, "", ""
        node.train, node.inputs, node.params = source.graphs[0].train, inputs, dict(late.params)
        empty = Spec([()], "float32")
        node.outputs = [specs.get(name, empty) for name in late.variables]
        node._read = [name in specs for name in late.variables]
        return node

    def reads(self, index: int) -> bool:
        """Whether something reads output `index`."""
        if self.nodes is None:
            return index < len(self._read) and self._read[index]
        return bool(self.nodes[0].graph.clients(self.nodes[0].outputs[index]))

    def dims(self, index: int = 0) -> list[Number]:
        """The sizes of an output; those that are open are read from inputs that have them."""
        return self.explained(self.outputs[index].numbers)

    def explained(self, numbers: Sequence[Number]) -> list[Number]:
        """Sizes; those that are open are read from inputs that have them, if possible from the axis of that number."""
        return [self._explained(axis, number) for axis, number in enumerate(numbers)]

    def _explained(self, axis: int, number: Number) -> Number:
        if not isinstance(number, Open):
            return number
        for tensor in self.inputs:
            axes = sorted(range(tensor.ndim), key=lambda other: other != axis)
            found = next((own for own in map(tensor.dim, axes) if own == number), None)
            if found is not None:
                return found
        return number

    def input(self, index: int) -> Tensor | None:
        """An input, None if it is not given."""
        return self.inputs[index] if index < len(self.inputs) else None


class Exporter(Subgraphs):
    """Makes the nodes of graphs. Forms receive it as ``g``."""

    def __init__(self, writer: Writer, num_trials: int) -> None:
        super().__init__(writer, num_trials)
        self._named: set[int] = set()

    # ------------------------------------------------------------------------------------------------------- walking
    def walk(self, source: Any, values: dict[Any, Tensor]) -> list[Tensor]:
        """Makes the nodes of a Source; `values` has the tensors of its inputs, by entry of the first of its graphs.
        Returns the outputs."""
        graphs = source.graphs
        lists = [_in_order(graph, source) for graph in graphs]
        if len({len(nodes) for nodes in lists}) != 1:
            raise _other_nodes(lists)
        for nodes in zip(*lists, strict=True):
            if len({node.op for node in nodes}) != 1:
                raise _other_nodes(lists)
            if nodes[0].is_constant:
                self._make_constant(nodes, values)
            elif nodes[0].op is not None:
                self._make(NodeUse(nodes, [values[entry] for entry in nodes[0].inputs], source), values)
            elif nodes[0].name in source.late and nodes[0].outputs[0] not in values:
                self._make_late(source, nodes[0].name, values)
        return [values[entry] for entry in graphs[0].outputs[: source.num_outputs]]

    def _make_constant(self, nodes: tuple[Any, ...], values: dict[Any, Tensor]) -> None:
        self.label = nodes[0].name
        array = nodes[0].value.asnumpy()
        if any(node.value.asnumpy().tobytes() != array.tobytes() for node in nodes[1:]):
            raise NotForOpenSizes(f"the constant '{nodes[0].name}' depends on the sizes of inputs")
        values[nodes[0].outputs[0]] = self.constant_input(nodes[0].name, array)

    def constant_input(self, name: str, array: np.ndarray) -> Tensor:
        """An array that the graph holds: large ones keep their names, like parameters."""
        return self.const(array) if array.size <= 64 else self.weight(array, name, trained=False)

    def _make(self, node: NodeUse, values: dict[Any, Tensor]) -> None:
        results = self._results_of(node)
        for index, (entry, result) in enumerate(zip(node.nodes[0].outputs, results, strict=False)):
            if result is not None:
                values[entry] = self._finished(node, index, result)

    def _make_late(self, source: Any, variable: str, values: dict[Any, Tensor]) -> None:
        """Makes a node whose output sizes depend on data: the values of all variables that stand for its outputs."""
        late, _ = source.late[variable]
        outputs = [source.graphs[0].outputs[number] for number in late.inputs]
        variables = {entry.node.name: position for position, entry in enumerate(source.graphs[0].inputs)}
        read = [name for name in late.variables if name in variables]
        specs = {name: _spec_of([graph.inputs[variables[name]] for graph in source.graphs]) for name in read}
        node = NodeUse.of_late(late, [values[entry] for entry in outputs], specs, source)
        for index, (name, result) in enumerate(zip(late.variables, self._results_of(node), strict=False)):
            if name in variables and result is not None:
                values[source.graphs[0].inputs[variables[name]]] = self._finished(node, index, result)

    def _results_of(self, node: NodeUse) -> Sequence[Tensor | None]:
        saved = self.label, self.doc, self.block
        self.label, self.block = node.name, node.block or self.block
        try:
            return self.export(node)
        finally:
            self.label, self.doc, self.block = saved

    def _finished(self, node: NodeUse, index: int, result: Tensor) -> Tensor:
        spec = node.outputs[index]
        saved, self.label = self.label, node.name
        result = self.cast(result, spec.dtype)
        self.label = saved
        if node.late is not None and result.known is None:
            result.spec = spec  # its trial sizes are invented
        if result.spec is not None and result.spec.shapes != spec.shapes:
            raise refuse_use(
                node,
                f"its form in ONNX makes the shape {result.spec.shapes[0]} instead of {spec.shapes[0]}",
                fix="report it with the model",
            )
        if result.spec is None:
            result.spec = spec
        self._name(node, index, result)
        if len(node.outputs) == 1:
            self._note_value(node, result)
        self.note_sizes(result)
        return result

    def value_of(self, tensor: Tensor) -> np.ndarray | None:
        """The elements of a tensor that follows from parameters and constants alone; None: it does not."""
        if tensor.known is not None:
            return tensor.known
        made: np.ndarray | None = tensor.source() if callable(tensor.source) else None
        return made

    def _note_value(self, node: NodeUse, result: Tensor) -> None:
        """Lets value_of compute a result that follows from parameters alone."""
        if node.op not in _REARRANGING or result.source is not None or result.known is not None:
            return
        if any(tensor.known is None and not callable(tensor.source) for tensor in node.inputs):
            return
        result.source = lambda: self._evaluated(node)

    def _evaluated(self, node: NodeUse) -> np.ndarray | None:
        found = [self.value_of(tensor) for tensor in node.inputs]
        arrays = [array for array in found if array is not None]
        if len(arrays) < len(found):
            return None
        function = _core.op_function(node.op, node.op, "hybridnet.onnx", symbolic=False)
        result: NDArray = function(*[nd_array(array, dtype=array.dtype) for array in arrays], **self._given(node))
        return result.asnumpy()

    def note_sizes(self, tensor: Tensor) -> None:
        """Remembers the sizes of a tensor that differ between trials."""
        for axis, number in enumerate(tensor.dims):
            if isinstance(number, Open):
                self.writer.graph.sizes.setdefault(number.trials, Dim(tensor, axis))

    def _name(self, node: NodeUse, index: int, result: Tensor) -> None:
        """Gives the tensor that is an output of a node the node's name."""
        if id(result) in self._named or result.const is not None or not result.name.startswith(f"{node.name}/"):
            return
        self._named.add(id(result))
        visible = [i for i in range(len(node.outputs)) if node.reads(i)]
        result.name = self.writer.unique(node.name if visible in ([index], []) else f"{node.name}_output{index}")
        self.writer.name_node(result, node.name)

    def finish(self, results: Sequence[Tensor], names: Sequence[str]) -> None:
        """Makes tensors the outputs of the model, under these names. Inputs, constants and tensors that are two outputs
        are copied."""
        self.label = ""
        outputs = self.writer.graph.outputs
        for tensor, name in zip(results, names, strict=True):
            spec = tensor.spec
            copied = tensor.known is not None or any(tensor is x for x in (*self.writer.graph.inputs, *outputs))
            if copied:
                tensor = self.emit("Identity", tensor)
                tensor.spec = spec
            tensor.name = name
            outputs.append(tensor)

    # ---------------------------------------------------------------------------------------------------------- nodes
    def export(self, node: NodeUse) -> Sequence[Tensor | None]:
        """The results of a node: a constant, those of its form, or those of the operators that it is composed of."""
        folded = self._folded(node)
        if folded is not None:
            return folded
        form = _export_table.find_form(node.op)
        try:
            if node.op in _export_table.REASONS:
                form = None
            elif form is None and _export_table.is_composed(node.op):
                return self._expanded(node)
            if form is None:
                raise refuse_use(
                    node,
                    "the operator has no form in ONNX",
                    because=_export_table.reason_of(node.op),
                    fix="replace it by operators that docs/onnx.md lists",
                )
            results = form(self, node)
        except NotForOpenSizes as error:
            if "operator '" in str(error):
                raise
            raise NotForOpenSizes(
                f"operator '{node.op}' (node '{node.name}'): {error}", op=node.op, node=node.name
            ) from error
        return results if isinstance(results, (tuple, list)) else (results,)

    def _folded(self, node: NodeUse) -> Sequence[Tensor] | None:
        """The results as constants, if they have no elements, or if the inputs are constants and the results small."""
        if node.late is None and all(spec.is_fixed and not spec.has_elements for spec in node.outputs):
            return [self.const(np.zeros(spec.shapes[0]), spec.dtype) for spec in node.outputs]
        described = _core.describe_op(node.op)
        if (
            described["random"]
            or described["data_dependent_shape"]
            or described["subgraphs"]
            or described["writebacks"]
        ):
            return None
        constants = [tensor.const for tensor in node.inputs if tensor.const is not None]
        if len(constants) < len(node.inputs):
            return None
        if any(not spec.is_fixed or int(np.prod(spec.shapes[0])) > MOST_FOLDED for spec in node.outputs):
            return None
        if _holds_open(node.params.values()) or node.op.startswith("_with"):
            return None
        arrays = [nd_array(array, dtype=array.dtype) for array in constants]
        function = _core.op_function(node.op, node.op, "hybridnet.onnx", symbolic=False)
        results = function(*arrays, **self._given(node))
        results = results if isinstance(results, (list, tuple)) else [results]
        made = [result.asnumpy() for result in results]
        # A size of 0 in a parameter may stand for one that the whole graph determines.
        if any(array.shape != spec.shapes[0] for array, spec in zip(made, node.outputs, strict=False)):
            return None
        return [self.const(array) for array in made]

    @staticmethod
    def _given(node: NodeUse) -> dict[str, Any]:
        """The parameters for a call of the operator."""
        described = _core.describe_op(node.op)
        defaults = {field["name"]: field["default"] for field in described["fields"] if not field["required"]}
        return {
            key: value
            for key, value in node.params.items()
            if value is not None or defaults.get(key, "required") is not None
        }

    def _expanded(self, node: NodeUse) -> Sequence[Tensor]:
        """Makes the operators that a composed one consists of."""
        graphs = []
        function = _core.op_function(node.op, node.op, "hybridnet.onnx", symbolic=True)
        names = [f"input{i}" for i in range(len(node.inputs))]
        for trial in range(self.num_trials):
            given = self._given(NodeUse((node.nodes[trial],), node.inputs))
            symbol = function(*[var(name) for name in names], name=node.name, **given)
            shapes = {name: tensor.shapes[trial] for name, tensor in zip(names, node.inputs, strict=True)}
            dtypes = {name: numpy_dtype(tensor.dtype) for name, tensor in zip(names, node.inputs, strict=True)}
            graph = trial_graph(symbol, shapes, dtypes, train=node.train)
            apply_rewrites(graph, "expand_composed")
            graphs.append(graph)
        values = {
            entry: node.inputs[names.index(entry.node.name)] for entry in graphs[0].inputs if entry.node.name in names
        }
        try:
            return self.walk(Graphs(graphs), values)
        except NotForOpenSizes:
            raise
        except UnsupportedError as error:
            if error.op == node.op:
                raise
            raise refuse_use(
                node, f"it is composed of '{error.op}', which has no form in ONNX", because=error.because, fix=error.fix
            ) from error

    def alias(self, node: NodeUse, op: str, inputs: Sequence[Tensor], params: Mapping[str, Any]) -> Any:
        """The results of another operator on these inputs, whose outputs have the specs of the node's."""
        other = object.__new__(NodeUse)
        other.__dict__.update(node.__dict__, op=op, inputs=list(inputs), params=dict(params))
        form = _export_table.find_form(op)
        assert form is not None, op
        return form(self, other)


def _in_order(graph: Any, source: Any) -> list[Any]:
    """Nodes behind those that they need; a variable of a late node needs the inputs of that node."""
    if not source.late:
        return list(graph.nodes)
    order: list[Any] = []
    done: set[Any] = set()
    pending = [(entry.node, False) for entry in reversed(graph.outputs[: source.num_outputs])]
    while pending:
        node, expanded = pending.pop()
        if node in done:
            continue
        if expanded:
            done.add(node)
            order.append(node)
            continue
        pending.append((node, True))
        needed = list(node.inputs)
        if node.op is None and node.name in source.late:
            needed = [graph.outputs[number] for number in source.late[node.name][0].inputs]
        pending += [(entry.node, False) for entry in reversed(needed) if entry.node not in done]
    return order


def _holds_open(values: Any) -> bool:
    return any(isinstance(value, Open) or (isinstance(value, (tuple, list)) and _holds_open(value)) for value in values)


def _other_nodes(lists: Sequence[Any]) -> HybridNetError:
    return NotForOpenSizes(
        "the operators of the graph depend on the sizes of inputs",
        because="it has " + " and ".join(f"{len(nodes)} nodes" for nodes in lists),
        fix="fix the sizes: dynamic=False",
    )

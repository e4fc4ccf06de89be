"""Walks an ONNX graph and makes a Symbol of it."""

from __future__ import annotations

import contextlib
import functools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import HybridNetError
from ..ndarray._dtypes import numpy_dtype
from ..symbol import Group, Symbol, var
from . import _table
from ._builder import Builder, TrialsDoNotFit
from ._element_types import marked
from ._errors import described, refuse, wrong
from ._guards import guarded, has_sizes
from ._nesting import check_nesting
from ._node import NO_WEIGHT, PRODUCER, NodeView, dense_of, dtype_of, held_element, is_weight, tensor_of
from ._package import onnx
from ._trials import Pairs, attempts, trial_sizes
from ._values import Fixed, Value, sizes_of

__all__ = ["Imported", "Importer", "import_graph"]


_TRIES_FOR_RANKS = 8


class Imported:
    """The result of an import: the Symbol, the inputs, the parameters, and the outputs.

    outputs: the name and the Symbol of each; a list of Symbols for a sequence, None for an optional value that is
    absent. The Symbol of all has the items of sequences as outputs of their own.
    """

    def __init__(self, importer: Importer, outputs: Sequence[tuple[str, Any]]) -> None:
        leaves = list(_leaves([value for _, value in outputs]))
        if not leaves:
            names = ", ".join(f"'{name}'" for name, _ in outputs)
            raise refuse(f"the graph makes no tensor: its outputs {names} are empty sequences or absent")
        self.symbol: Symbol = leaves[0] if len(leaves) == 1 else Group(leaves)
        self.outputs = list(outputs)
        self.inputs = importer.inputs
        builder = importer.builder
        used = set(self.symbol.list_inputs())
        self.params = {name: array for name, array in builder.params.items() if name in used}
        self.frozen = builder.frozen & set(self.params)
        self.states = builder.states & set(self.params)


class Importer:
    """One attempt to build a graph for given trial sizes. Forms receive it as ``g``; nodes are made by its builder."""

    def __init__(self, model: Any, folder: str, pairs: Pairs, shapes: Mapping[str, Any], num_trials: int = 2) -> None:
        self.model, self.folder = model, folder
        self.builder = Builder(num_trials)
        self.versions = {
            opset.domain if opset.domain != "ai.onnx" else "": opset.version for opset in model.opset_import
        }
        self.functions = {(f.domain, f.name, getattr(f, "overload", "")): f for f in model.functions}
        self.inputs: list[tuple[str, tuple[Any, ...], str]] = []  # name, shape (numbers and names of sizes), dtype
        self._pairs, self._shapes = pairs, shapes
        self._trials_of: dict[str, tuple[int, ...]] = {}
        self._scopes: list[dict[str, Any]] = []
        self._origins: dict[Value, tuple[NodeView, list[Any]]] = {}
        self._readers: Counter[str] | None = None
        # Branches of an If on data may be for other sizes. Where no sizes fit both, only the one that fits is built.
        self.one_branch = self.branch_failed = False
        # Slices that are shorter where an open axis is short have open sizes. Where that does not fit, they are fixed.
        self.shortens, self.has_shortened = True, False
        # Whether the number of axes of some tensor is another one for other sizes; and that of an output as declared.
        self.ranks_vary = self.ranks_differ = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.builder, name)  # forms write g.emit(...), g.reshape(...)

    # ------------------------------------------------------------------------------------------------------ the graph
    def run(self) -> Imported:
        graph = self.model.graph
        with self.scope({}):
            initializers = {tensor.name for tensor in graph.initializer}
            for given in graph.input:
                if given.name not in initializers:
                    self.define(given.name, self._input(given))
            self.define_initializers(graph)
            self.walk(graph.node)
            outputs = [(given.name, self._output(given.name, self.lookup(given.name))) for given in graph.output]
            self.ranks_differ = self.ranks_vary and any(map(self._has_other_rank, graph.output))
        return Imported(self, outputs)

    def _input(self, given: Any) -> Any:
        shape = self._shapes.get(given.name)
        if isinstance(shape, Fixed):
            value = self.builder.constant(shape.array, given.name, trainable=False)
            value.element = held_element(given.type.tensor_type.elem_type)
            return value
        if given.type.WhichOneof("value") == "tensor_type":
            return self._tensor(given.name, given.type.tensor_type, shape)
        if given.name not in self._shapes:
            raise refuse(
                f"input '{given.name}' is a sequence or an optional value",
                because="graphs hold tensors only: sequences are resolved while the file is imported",
                fix=f"give the shapes of its items: input_shapes={{'{given.name}': [(2, 3), ...]}}; None: it is absent",
            )
        return self._items(given.name, given.type, shape)

    def _items(self, name: str, kind: Any, shapes: Any) -> Any:
        """An input that is a sequence or an optional value: the tensors in it, for given shapes of these."""
        which = kind.WhichOneof("value")
        if which == "tensor_type":
            return self._tensor(name, kind.tensor_type, shapes)
        if which == "optional_type":
            return None if shapes is None else self._items(name, kind.optional_type.elem_type, shapes)
        if which != "sequence_type" or not isinstance(shapes, list):
            raise wrong(f"the shapes of input '{name}' are {shapes!r}", fix="give a list with one shape for each item")
        item = kind.sequence_type.elem_type
        return [self._items(f"{name}_{index}", item, shape) for index, shape in enumerate(shapes)]

    def _tensor(self, name: str, tensor: Any, shape: Any) -> Value:
        dtype = dtype_of(tensor.elem_type)
        if shape is None:
            if not tensor.HasField("shape"):
                raise wrong(
                    f"the rank of input '{name}' is not in the file",
                    fix=f"give it: input_shapes={{'{name}': (...)}}, with None for open sizes",
                )
            shape = _declared_shape(tensor)
        declared = shape = tuple(shape)
        trials = [
            self._open_size(_name_of_size(size, name, axis)) if _is_open(size) else (size,) * self.num_trials
            for axis, size in enumerate(shape)
        ]
        shape = tuple(
            trial[0] if _is_open(size) and len(set(trial)) == 1 else size
            for size, trial in zip(shape, trials, strict=True)
        )
        shapes = tuple(zip(*trials, strict=True)) if trials else ((),) * self.num_trials
        self.inputs.append((name, shape, dtype))
        self.builder.unique(name)
        value = Value(name, shapes, dtype, symbol=var(name))
        value.element = held_element(tensor.elem_type)
        return self._with_fixed_sizes(value, [axis for axis, size in enumerate(declared) if _is_open(size)])

    def _with_fixed_sizes(self, value: Value, axes: list[int]) -> Value:
        """The input; a run in which these axes, if the trials fixed their sizes, have other sizes fails."""
        fixed = [axis for axis in axes if value.fixed(axis) is not None]
        if not fixed:
            return value
        sizes = [value.shapes[0][axis] for axis in fixed]
        message = (
            f"the graph was imported for inputs '{value.name}' with the sizes {sizes} on the axes {fixed}, which the "
            f"file leaves open, as it did not fit others. Import it for yours: input_shapes={{'{value.name}': (...)}}"
        )
        made: Value = guarded(self, value, has_sizes(self, value, fixed, sizes), message)
        made.element = value.element
        return made

    def _open_size(self, name: str) -> tuple[int, ...]:
        sums = [0] * self.num_trials
        for term in _terms(name):
            if _is_number(term):
                sizes = (int(term),) * self.num_trials
            else:
                pair = self._pairs[len(self._trials_of) % len(self._pairs)]
                sizes = self._trials_of.setdefault(term, trial_sizes(pair, self.num_trials))
            sums = [total + size for total, size in zip(sums, sizes, strict=True)]
        return tuple(sums)

    def _output(self, name: str, value: Any) -> Any:
        """The Symbol of an output, a list of Symbols for a sequence, or None for an optional value that is absent."""
        if value is None:
            return None
        if isinstance(value, list):
            return [self._output(name, item) for item in value]
        return self.builder.emit("_copy", [value]).symbol if value._symbol is not None else value.symbol

    def _has_other_rank(self, given: Any) -> bool:
        tensor = given.type.tensor_type
        value = self.lookup(given.name)
        return isinstance(value, Value) and tensor.HasField("shape") and len(tensor.shape.dim) != value.ndim

    # --------------------------------------------------------------------------------------------------------- names
    @contextlib.contextmanager
    def scope(self, names: dict[str, Any]) -> Iterator[None]:
        """A graph inside another one: names that it does not define are those around it."""
        self._scopes.append(names)
        try:
            yield
        finally:
            self._scopes.pop()

    def define(self, name: str, value: Any) -> None:
        """Gives a value a name in the innermost graph."""
        self._scopes[-1][name] = value

    def lookup(self, name: str) -> Any:
        """The value of a name, in the innermost graph that defines it."""
        for names in reversed(self._scopes):
            if name in names:
                return names[name]
        raise wrong(f"the graph reads '{name}', which no node and no input defines before")

    def knows(self, name: str) -> bool:
        """Whether a name is defined already."""
        return any(name in names for names in self._scopes)

    def view(self, proto: Any) -> NodeView:
        """The view of a node that forms receive."""
        domain = "" if proto.domain == "ai.onnx" else proto.domain
        return NodeView(proto, self.versions.get(domain, 1), self.folder)

    def tensor(self, proto: Any) -> np.ndarray:
        """The elements of a TensorProto."""
        return tensor_of(proto, self.folder)

    def readers(self, name: str) -> int:
        """How many nodes and outputs read a name, in all graphs of the file."""
        if self._readers is None:
            graphs = [self.model.graph, *self.model.functions]
            self._readers = Counter(name for graph in graphs for name in _names_read(graph))
        return self._readers[name]

    def define_initializers(self, graph: Any) -> None:
        """Defines the constants of a graph."""
        own = self.model.producer_name == PRODUCER
        for tensor in graph.initializer:
            array = tensor_of(tensor, self.folder)
            is_trained = is_weight(array, tensor.name) and not (own and tensor.doc_string == NO_WEIGHT)
            value = self.builder.constant(array, tensor.name, trainable=is_trained)
            if is_trained and array.size > 1 and array.dtype.kind in "fV" and self.readers(tensor.name) > 1:
                self.builder.shared_weights.add(value)
            value.element = held_element(tensor.data_type)
            self.define(tensor.name, value)
        for tensor in graph.sparse_initializer:
            dense = dense_of(tensor, self.folder)
            self.define(tensor.values.name, self.builder.constant(dense, tensor.values.name))

    # --------------------------------------------------------------------------------------------------------- nodes
    def walk(self, nodes: Any) -> None:
        """Makes all nodes of a graph, in order."""
        for proto in nodes:
            self._make(proto)

    def _make(self, proto: Any) -> None:
        node = self.view(proto)
        inputs = [self.lookup(name) if name else None for name in proto.input]
        try:
            results = self.apply(node, inputs)
        except TrialsDoNotFit as error:
            if "ONNX operator" not in str(error):
                raise TrialsDoNotFit(f"{described(proto)}: {error}", error.trial) from error
            raise
        except HybridNetError as error:
            if "ONNX operator" in str(error):
                raise
            raise wrong(str(error), node=proto) from error
        except RecursionError:
            raise
        except Exception as error:  # errors of NumPy and onnx: attributes and inputs that break the rules
            raise wrong(f"it could not be imported: {type(error).__name__}: {error}", node=proto) from error
        results = marked(node, inputs, results if isinstance(results, tuple) else (results,))
        for name, value in zip(proto.output, results, strict=False):
            if name:
                self.define(name, value)
            if isinstance(value, Value):
                self._origins.setdefault(value, (node, inputs))

    def origin(self, value: Value) -> tuple[NodeView, list[Any]] | None:
        """The node that made a value, and its inputs; None: the graph's inputs, constants, and values between nodes."""
        return self._origins.get(value)

    def set_origin(self, value: Value, node: NodeView, inputs: list[Any]) -> None:
        """Says that a value is what a node would make of these inputs."""
        self._origins[value] = (node, inputs)

    def apply(self, node: NodeView, inputs: list[Any]) -> Any:
        """The results of an operator: by its form, by arithmetic with sizes, or by the function that defines it."""
        while inputs and inputs[-1] is None:
            inputs = inputs[:-1]
        on_sizes = _table.find_on_sizes(node.domain, node.op_type)
        if on_sizes is not None and _are_sizes(inputs):
            made = on_sizes(self, node, *inputs)
            if made is not None:
                return self._sized(node, inputs, made)
        return self._by_form(node, inputs)

    def _sized(self, node: NodeView, inputs: list[Any], made: Sequence[tuple[Any, str]]) -> tuple[Value, ...]:
        """Outputs that are arrays of sizes; their nodes are made when something reads one of them as a tensor."""

        @functools.cache
        def outputs() -> tuple[Any, ...]:
            results = self._by_form(node, inputs)
            return results if isinstance(results, tuple) else (results,)

        return tuple(
            self.builder.sized(node.name, sizes, dtype, functools.partial(lambda k: outputs()[k].symbol, index))
            for index, (sizes, dtype) in enumerate(made)
        )

    def _is_dequantized(self, value: Any) -> bool:
        origin = self._origins.get(value) if isinstance(value, Value) else None
        return origin is not None and origin[0].op_type == "DequantizeLinear"

    def _by_form(self, node: NodeView, inputs: list[Any]) -> Any:
        form = _table.find(node.domain, node.op_type)
        on_bytes = _table.find_on_bytes(node.domain, node.op_type)
        if on_bytes is not None and any(self._is_dequantized(value) for value in inputs):
            made = on_bytes(self, node, *inputs)
            if made is not None:
                return made
        if form is not None:
            return form(self, node, *inputs)
        function = self.functions.get((node.proto.domain, node.op_type, getattr(node.proto, "overload", "")))
        if function is not None:
            return self.call_function(function, node, inputs)
        schema_function = self._standard_function(node, inputs)
        if schema_function is not None:
            return self.call_function(schema_function, node, inputs)
        raise refuse(
            f"opset {node.version} is known, but this operator has no form",
            because="docs/onnx.md lists the operators that are supported",
            fix="rewrite the model without it, or register a form with hybridnet.onnx.form",
            node=node.proto,
        )

    def _standard_function(self, node: NodeView, inputs: Sequence[Any]) -> Any:
        """The definition that the ONNX standard gives for a composed operator, if it does."""
        try:
            schema = onnx().defs.get_schema(node.op_type, node.version, node.domain)
        except onnx().defs.SchemaError:
            return None
        if schema.has_function:
            return schema.function_body
        if schema.has_context_dependent_function:
            types = [_type_of(value).SerializeToString() for value in inputs]
            made = onnx().FunctionProto()
            made.ParseFromString(schema.get_context_dependent_function(node.proto.SerializeToString(), types))
            return made
        return None

    def call_function(self, function: Any, node: NodeView, inputs: list[Any]) -> Any:
        """Makes the nodes of a function, with the node's attributes in place of its own."""
        names: dict[str, Any] = dict(zip(function.input, [*inputs, *[None] * len(function.input)], strict=False))
        given = {attribute.name: attribute for attribute in node.proto.attribute}
        defaults = {attribute.name: attribute for attribute in getattr(function, "attribute_proto", [])}
        versions, self.versions = (
            self.versions,
            {
                **self.versions,
                **{opset.domain if opset.domain != "ai.onnx" else "": opset.version for opset in function.opset_import},
            },
        )
        scopes, self._scopes = self._scopes, []
        try:
            with self.scope(names):
                for inner in function.node:
                    self._make(_with_attributes(inner, {**defaults, **given}))
                results = tuple(self.lookup(name) for name in function.output)
        finally:
            self.versions, self._scopes = versions, scopes
        return results

    def subgraph(self, graph: Any, arguments: Sequence[Any]) -> list[Any]:
        """Makes the nodes of a graph attribute for these arguments; returns its outputs."""
        names = dict(zip([given.name for given in graph.input], arguments, strict=True))
        with self.scope(names):
            self.define_initializers(graph)
            self.walk(graph.node)
            return [self.lookup(given.name) for given in graph.output]


def _leaves(values: Sequence[Any]) -> Iterator[Any]:
    """The Symbols in outputs."""
    for value in values:
        if isinstance(value, list):
            yield from _leaves(value)
        elif value is not None:
            yield value


def _are_sizes(inputs: Sequence[Any]) -> bool:
    """Whether all inputs are arrays of numbers and sizes, and not only constants."""
    values = [value for value in inputs if value is not None]
    return all(isinstance(value, Value) and sizes_of(value) is not None for value in values) and any(
        not value.is_const for value in values
    )


def _type_of(value: Any) -> Any:
    """The ONNX type of an input; empty if it is absent."""
    if not isinstance(value, Value):
        return onnx().TypeProto()
    code = onnx().helper.np_dtype_to_tensor_dtype(np.dtype(numpy_dtype(value.dtype)))
    return onnx().helper.make_tensor_type_proto(code, value.shape)


def _with_attributes(proto: Any, given: Mapping[str, Any]) -> Any:
    """A node of a function with the attributes of the call in place of references to them, in its graphs too."""
    if not any(_refers(attribute) for attribute in proto.attribute):
        return proto
    made = onnx().NodeProto()
    made.CopyFrom(proto)
    _replace_references(made, given)
    return made


def _names_read(graph: Any) -> Iterator[str]:
    yield from (output if isinstance(output, str) else output.name for output in graph.output)
    for node in graph.node:
        yield from node.input
        for attribute in node.attribute:
            for inner in [*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs]:
                yield from _names_read(inner)


def _refers(attribute: Any) -> bool:
    return bool(attribute.ref_attr_name) or any(
        _refers(inner)
        for graph in [*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs]
        for node in graph.node
        for inner in node.attribute
    )


def _replace_references(node: Any, given: Mapping[str, Any]) -> None:
    kept = []
    for attribute in node.attribute:
        if attribute.ref_attr_name:
            if attribute.ref_attr_name not in given:
                continue
            value = onnx().AttributeProto()
            value.CopyFrom(given[attribute.ref_attr_name])
            value.name = attribute.name
            kept.append(value)
            continue
        for graph in [*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs]:
            for inner in graph.node:
                _replace_references(inner, given)
        kept.append(attribute)
    copies = []
    for attribute in kept:
        copy = onnx().AttributeProto()
        copy.CopyFrom(attribute)
        copies.append(copy)
    del node.attribute[:]
    node.attribute.extend(copies)


def import_graph(model: Any, folder: str | Path = "", shapes: Mapping[str, Any] | None = None) -> Imported:
    """Builds the graph of a ModelProto. Raises errors of the library only, for damaged files, too."""
    check_nesting(model)
    _check_names(model, shapes or {})
    try:
        return _first_that_fits(model, folder, shapes)
    except HybridNetError:
        raise
    except RecursionError:
        raise refuse("the graphs and functions of the file are nested too deeply", fix="split the model") from None
    except Exception as error:
        raise wrong(
            f"the graph could not be imported: {type(error).__name__}: {error}",
            fix="onnx.checker.check_model(path) names the rule that the file breaks",
        ) from error


def _check_names(model: Any, shapes: Mapping[str, Any]) -> None:
    """Raises if shapes are given for names that no input has."""
    names = [given.name for given in model.graph.input]
    unknown = [name for name in shapes if name not in names]
    if unknown:
        raise wrong(f"input_shapes names {unknown}, and the inputs of the model are {names}", fix="correct the names")


def _first_that_fits(model: Any, folder: str | Path, shapes: Mapping[str, Any] | None) -> Imported:
    """Tries several sizes for open axes. Raises the error of the first attempt.

    A graph whose outputs have other numbers of axes than the file says is taken if the next few sizes give none that
    has them.
    """
    first: Exception | None = None
    other_ranks: Imported | None = None
    tries = 0
    open_axes = len(_open_axes(model, shapes or {}))
    for one_branch in (False, True):
        branch_failed = False
        for pairs in attempts(open_axes):
            num_trials, shortens = 3 if open_axes else 2, True
            while num_trials > 1:
                importer = Importer(model, str(folder), pairs, shapes or {}, num_trials)
                importer.one_branch, importer.shortens = one_branch, shortens
                try:
                    made = importer.run()
                    if not importer.ranks_differ:
                        return made
                    other_ranks = other_ranks or made
                    num_trials = 0
                except (TrialsDoNotFit, HybridNetError) as error:
                    if importer.has_shortened:
                        shortens = False
                        continue
                    if isinstance(error, TrialsDoNotFit):
                        first = first or error
                        num_trials = error.trial if error.trial == 2 else 0  # the first two may fit
                    elif first is None:
                        raise
                    else:
                        num_trials = 0  # sizes that are equal in all trials do not fit, either
                branch_failed |= importer.branch_failed
            tries += other_ranks is not None
            if other_ranks is not None and tries > _TRIES_FOR_RANKS:
                return other_ranks
        if not branch_failed:
            break
    if other_ranks is not None:
        return other_ranks
    raise wrong(
        f"the graph fits none of the sizes that were tried for its open axes: {first}",
        fix="give the sizes: input_shapes={'name': (1, 3, 224, 224)}, with None for axes that may vary",
    )


def _open_axes(model: Any, shapes: Mapping[str, Any]) -> set[str]:
    """The names of the sizes that inputs leave open."""
    initializers = {tensor.name for tensor in model.graph.initializer}
    found: set[str] = set()
    for given in model.graph.input:
        if given.name in initializers:
            continue
        for input_name, shape in _shapes_of(given.name, shapes.get(given.name), given.type):
            names = [_name_of_size(size, input_name, axis) for axis, size in enumerate(shape) if _is_open(size)]
            found.update(term for name in names for term in _terms(name) if not _is_number(term))
    return found


def _shapes_of(name: str, shape: Any, kind: Any) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """The names and shapes of the tensors in an input."""
    which = kind.WhichOneof("value")
    if which == "tensor_type":
        if not isinstance(shape, Fixed):
            yield name, _declared_shape(kind.tensor_type) if shape is None else tuple(shape)
    elif which == "optional_type":
        yield from _shapes_of(name, shape, kind.optional_type.elem_type)
    elif which == "sequence_type" and isinstance(shape, list):
        for index, item in enumerate(shape):
            yield from _shapes_of(f"{name}_{index}", item, kind.sequence_type.elem_type)


def _declared_shape(tensor: Any) -> tuple[Any, ...]:
    """Numbers, names of sizes, and None."""
    return tuple(
        axis.dim_value if axis.HasField("dim_value") and axis.dim_value >= 0 else axis.dim_param or None
        for axis in tensor.shape.dim
    )


def _is_open(size: Any) -> bool:
    return size is None or isinstance(size, str)


def _name_of_size(size: Any, input_name: str, axis: int) -> str:
    return size if isinstance(size, str) else f"{input_name}.{axis}"


def _is_number(term: str) -> bool:
    return term.isascii() and term.isdigit() and len(term) < 19


def _terms(name: str) -> list[str]:
    """The sizes and numbers that a size is the sum of: exports name them "past_sequence_length + 1"."""
    terms = [term.strip() for term in name.split("+")]
    return terms if all(terms) else [name]

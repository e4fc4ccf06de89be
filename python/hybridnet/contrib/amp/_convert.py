"""Conversion of graphs, parameters, blocks and modules to mixed precision, for inference."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from ... import symbol as sym
from ...errors import ParamError
from ...symbol import Symbol
from ...symbol._bodies import input_names, places_in, sources_of, with_moved_inputs
from . import lists
from .amp import target_name

__all__ = ["convert_bucketing_module", "convert_hybrid_block", "convert_model", "convert_symbol"]


class _Casts:
    """Copies nodes of a graph one by one, with casts of their inputs; one cast per value and type.

    Types are not known here. An entry counts as changed if its type may differ from that of the given graph.
    """

    def __init__(
        self, graph: dict[str, Any], target: str, kinds: dict[str, str], changed_inputs: Collection[str] = ()
    ) -> None:
        self._graph = graph
        self._target = target
        self._kinds = kinds
        self._changed_inputs = changed_inputs
        self.nodes: list[dict[str, Any]] = []
        self._changed: list[bool] = []  # for each node
        self._new_place: dict[int, int] = {}
        self._made: dict[tuple[int, int, str], list[int]] = {}
        self._heads: list[list[int]] = []

    def run(self) -> dict[str, Any]:
        self._copy()
        return self._result()

    def _result(self) -> dict[str, Any]:
        arguments = [i for i, node in enumerate(self.nodes) if node["op"] == "null"]
        kept = {key: value for key, value in self._graph.items() if key != "node_row_ptr"}
        return {**kept, "nodes": self.nodes, "arg_nodes": arguments, "heads": self._heads}

    def _copy(self) -> None:
        for place, node in enumerate(self._graph["nodes"]):
            inputs = [self._moved(entry) for entry in node.get("inputs", [])]
            inputs = self._cast_inputs(node, inputs)
            changed = self._changes_type(node, inputs)
            if "subgraphs" in node:
                node, has_casts = self._with_converted_bodies(node, inputs)
                changed = changed or has_casts
            self._new_place[place] = self._add({**node, "inputs": inputs}, changed)
        self._heads = [self._moved(entry) for entry in self._graph["heads"]]

    def _moved(self, entry: list[int]) -> list[int]:
        return [self._new_place[entry[0]], *entry[1:]]

    def _add(self, node: dict[str, Any], changed: bool = True) -> int:
        self.nodes.append(node)
        self._changed.append(changed)
        return len(self.nodes) - 1

    def _changes_type(self, node: dict[str, Any], inputs: list[list[int]]) -> bool:
        if node["op"] == "null":
            return node["name"] in self._changed_inputs
        if node["op"] in _WITH_OWN_TYPE:
            return False
        deciding = inputs[:1] if node["op"] in lists.written_inputs() else inputs
        return any(self._changed[entry[0]] for entry in deciding)

    def _cast_inputs(self, node: dict[str, Any], inputs: list[list[int]]) -> list[list[int]]:
        kind = self._kinds.get(node["name"]) or self._kinds.get(node["op"])
        written = lists.written_inputs().get(node["op"])
        if kind is None and written is not None and any(self._changed[inputs[i][0]] for i in (0, written)):
            like = self._cast_like(inputs[written], inputs[0])
            return [like if i == written else entry for i, entry in enumerate(inputs)]
        if kind is None or (kind == "widest" and len(inputs) < 2):
            return inputs
        if kind == "widest":
            name = f"{node['name']}_amp_multicast"
            attrs = {"num_outputs": str(len(inputs))}
            place = self._add({"op": "amp_multicast", "name": name, "attrs": attrs, "inputs": inputs})
            return [[place, i, 0] for i in range(len(inputs))]
        return [self._cast(entry, kind) for entry in inputs]

    def _cast(self, entry: list[int], dtype: str) -> list[int]:
        key = (entry[0], entry[1], dtype)
        if key not in self._made:
            name = f"{self.nodes[entry[0]]['name']}_amp_cast_{entry[1]}_{dtype}"
            place = self._add({"op": "amp_cast", "name": name, "attrs": {"dtype": dtype}, "inputs": [entry]})
            self._made[key] = [place, 0, 0]
        return self._made[key]

    def _cast_like(self, entry: list[int], like: list[int]) -> list[int]:
        name = f"{self.nodes[entry[0]]['name']}_amp_cast_like_{len(self.nodes)}"
        return [self._add({"op": "_amp_cast_like", "name": name, "inputs": [entry, like]}), 0, 0]

    # ---- bodies of loops and branches
    def _with_converted_bodies(self, node: dict[str, Any], inputs: list[list[int]]) -> tuple[dict[str, Any], bool]:
        """Returns the node with converted bodies, and whether their outputs are cast."""
        if node["op"] not in _WITH_BODIES:
            return node, False
        bodies = []
        for body, sources in zip(node["subgraphs"], sources_of(node), strict=True):
            changed = {name for name, source in sources.items() if self._changed[inputs[source][0]]}
            bodies.append(_Casts(body, self._target, self._kinds, changed))
            bodies[-1]._copy()
        if node["op"] == "_cond":
            has_casts = _agree_on_heads(bodies[1:])
        else:
            names = input_names(node["subgraphs"][-1])
            states = [names[place] for place in places_in(node, _WITH_BODIES[node["op"]])]
            has_casts = bodies[-1]._keep_types_of_heads(int(node["attrs"]["num_out_data"]), states)
        return with_moved_inputs(node, [body._result() for body in bodies]), has_casts

    def _keep_types_of_heads(self, num_outputs: int, states: list[str]) -> bool:
        """The states after an iteration have the types of those before it, the outputs of the loop float32."""
        variables = {node["name"]: i for i, node in enumerate(self.nodes) if node["op"] == "null"}
        is_changed = [self._changed[head[0]] for head in self._heads]
        for i, head in enumerate(self._heads):
            state = variables[states[i - num_outputs]] if i >= num_outputs else None
            if state is None and is_changed[i]:
                self._heads[i] = self._cast(head, "float32")
            elif state is not None and head[0] != state and (is_changed[i] or self._changed[state]):
                self._heads[i] = self._cast_like(head, [state, 0, 0])
        return any(is_changed[:num_outputs])


def _agree_on_heads(branches: Sequence[_Casts]) -> bool:
    """Outputs of branches whose types may differ now have float32. Returns whether there are any."""
    has_casts = False
    for i in range(len(branches[0]._heads)):
        if any(branch._changed[branch._heads[i][0]] for branch in branches):
            has_casts = True
            for branch in branches:
                branch._heads[i] = branch._cast(branch._heads[i], "float32")
    return has_casts


_WITH_OWN_TYPE = ("Cast", "cast")  # their type does not depend on inputs
# Loops and branches; for loops, the attribute that says which inputs of the body are states.
_WITH_BODIES = {"_foreach": "in_state_locs", "_while_loop": "func_var_locs", "_cond": ""}


def _all_nodes(graph: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The nodes of a graph and of the bodies of its loops and branches."""
    for node in graph["nodes"]:
        yield node
        for body in node.get("subgraphs", ()):
            yield from _all_nodes(body)


def convert_symbol(
    symbol: Symbol,
    target_dtype: Any = "float16",
    target_dtype_ops: Sequence[str] | None = None,
    fp32_ops: Sequence[str] | None = None,
    conditional_fp32_ops: Sequence[tuple[str, str, Sequence[str]]] | None = None,
    excluded_sym_names: Sequence[str] | None = None,
    data_names: Sequence[str] | None = None,
    cast_optional_params: bool = False,
) -> Symbol:
    """Inserts casts before operators: products run in target_dtype, operators that need accuracy in float32.

    Parameters
    ----------
    symbol : Symbol
    target_dtype : {'float16', 'bfloat16'}
    target_dtype_ops, fp32_ops, conditional_fp32_ops
        See amp.init.
    excluded_sym_names : list of str, optional
        Nodes that stay in float32.
    data_names : list of str, optional
        Inputs that keep their type; default: arguments named data, and labels.
    cast_optional_params : bool, default False
        Whether parameters that are only read in target_dtype are converted; else they stay float32 and are cast inside
        of the graph.

    Bodies of loops and branches are converted, too. The states of a loop keep their types, and an array that an
    operator writes to (index_copy, assignment to slices) decides the type of what is written.

    Raises ParamError for unknown types and for names that are not nodes.
    """
    target = target_name(target_dtype)
    graph = json.loads(symbol.tojson(remove_amp_cast=False))
    kinds: dict[str, str] = dict.fromkeys(lists.WIDEST, "widest")
    kinds.update(dict.fromkeys(lists.FLOAT32 if fp32_ops is None else fp32_ops, "float32"))
    kinds.update(dict.fromkeys(lists.TARGET if target_dtype_ops is None else target_dtype_ops, target))
    names = {node["name"] for node in _all_nodes(graph)}
    for name in excluded_sym_names or ():
        if name not in names:
            raise ParamError(f"amp.convert_symbol: excluded_sym_names: the graph has no node '{name}'")
        kinds[name] = "float32"
    for op, parameter, values in lists.CONDITIONAL if conditional_fp32_ops is None else conditional_fp32_ops:
        for node in _all_nodes(graph):
            if node["op"] == op and node.get("attrs", {}).get(parameter) in values:
                kinds[node["name"]] = "float32"
    converted = _Casts(graph, target, kinds).run()
    if cast_optional_params:
        auxiliary = set(symbol.list_auxiliary_states())
        for name in _read_only_as(converted, target) - auxiliary - _inputs(symbol, data_names):
            node = next(node for node in converted["nodes"] if node["op"] == "null" and node["name"] == name)
            node["attrs"] = {**node.get("attrs", {}), "__dtype__": str(_DTYPE_CODES[target])}
    return sym.load_json(json.dumps(converted))


# Codes of element types in graph files.
_DTYPE_CODES = {"float16": 2, "bfloat16": 12}


def _inputs(symbol: Symbol, data_names: Sequence[str] | None) -> set[str]:
    if data_names is not None:
        return set(data_names)
    return {name for name in symbol.list_arguments() if name.startswith("data") or name.endswith("label")}


def _read_only_as(graph: dict[str, Any], dtype: str) -> set[str]:
    """Returns variables that are read only by casts to dtype."""
    nodes = graph["nodes"]
    read: dict[int, set[bool]] = {}
    for node in nodes:
        is_cast = node["op"] == "amp_cast" and node["attrs"]["dtype"] == dtype
        for entry in node.get("inputs", []):
            read.setdefault(entry[0], set()).add(is_cast)
    for entry in graph["heads"]:
        read.setdefault(entry[0], set()).add(False)
    return {nodes[place]["name"] for place, casts in read.items() if nodes[place]["op"] == "null" and casts == {True}}


def convert_model(
    sym: Symbol, arg_params: dict[str, Any], aux_params: dict[str, Any], target_dtype: Any = "float16", **options: Any
) -> tuple[Symbol, dict[str, Any], dict[str, Any]]:
    """Returns (converted graph, arg_params, aux_params). Options: see convert_symbol.

    Parameters stay in float32, except those that cast_optional_params=True converts.
    """
    converted, target = convert_symbol(sym, target_dtype, **options), target_name(target_dtype)
    code = str(_DTYPE_CODES[target])
    cast = {name for name, attrs in converted.attr_dict().items() if attrs.get("__dtype__") == code}
    arguments = {name: array.astype(target) if name in cast else array for name, array in arg_params.items()}
    return converted, arguments, dict(aux_params)


def convert_hybrid_block(block: Any, target_dtype: Any = "float16", ctx: Any = None, **options: Any) -> Any:
    """Returns a SymbolBlock in mixed precision with the parameters of a hybridized block that has run once.

    Options: see convert_symbol. Raises ParamError if the block has no graph yet.
    """
    import os
    import tempfile

    from ...gluon import SymbolBlock

    with tempfile.TemporaryDirectory() as folder:
        graph_file, params_file = block.export(os.path.join(folder, "model"))
        graph = sym.load(graph_file)
        inputs = [sym.var(str(variable.name)) for variable in block._graph_to_export().inputs]  # in the order of a call
        converted = SymbolBlock(convert_symbol(graph, target_dtype, **options), inputs)
        converted.load_parameters(params_file, ctx=ctx, cast_dtype=True)
    return converted


def convert_bucketing_module(bucketing_mod: Any, target_dtype: Any = "float16", **options: Any) -> Any:
    """Returns a BucketingModule in mixed precision with the parameters of a bound one; bind it before use.

    Graphs of all buckets are converted when they are created. Options: see convert_symbol; names in excluded_sym_names
    must be nodes of the default bucket's graph. Raises ParamError unless bucketing_mod is a BucketingModule with
    parameters.
    """
    from ...module import BucketingModule

    if not isinstance(bucketing_mod, BucketingModule):
        raise ParamError(
            "amp.convert_bucketing_module",
            expected="a BucketingModule",
            given=type(bucketing_mod).__name__,
            fix="convert_model converts graphs and parameters of other modules",
        )
    arg_params, aux_params = bucketing_mod.get_params()
    excluded = options.pop("excluded_sym_names", None) or ()
    default_key = bucketing_mod._default_bucket_key

    def converted(key: Any) -> tuple[Any, Any, Any]:
        symbol, data_names, label_names = bucketing_mod._sym_gen(key)
        nodes = set(symbol.get_internals().list_outputs())
        names = [n for n in excluded if key == default_key or f"{n}_output" in nodes or n in nodes]
        return convert_symbol(symbol, target_dtype, excluded_sym_names=names, **options), data_names, label_names

    return BucketingModule.load_dict({}, converted, default_key, arg_params, aux_params, **bucketing_mod._settings)

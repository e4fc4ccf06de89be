"""Conversion of graphs, parameters, blocks and modules to mixed precision, for inference."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ... import symbol as sym
from ...errors import ParamError
from ...symbol import Symbol
from . import lists
from .amp import target_name

__all__ = ["convert_bucketing_module", "convert_hybrid_block", "convert_model", "convert_symbol"]


class _Casts:
    """Copies nodes of a graph one by one, with casts of their inputs; one cast per value and type."""

    def __init__(self, graph: dict[str, Any], target: str, kinds: dict[str, str]) -> None:
        self._graph = graph
        self._target = target
        self._kinds = kinds
        self.nodes: list[dict[str, Any]] = []
        self._new_place: dict[int, int] = {}
        self._made: dict[tuple[int, int, str], list[int]] = {}

    def run(self) -> dict[str, Any]:
        for place, node in enumerate(self._graph["nodes"]):
            inputs = [[self._new_place[entry[0]], *entry[1:]] for entry in node.get("inputs", [])]
            inputs = self._cast_inputs(node, inputs)
            self._new_place[place] = self._add({**node, "inputs": inputs})
        heads = [[self._new_place[entry[0]], *entry[1:]] for entry in self._graph["heads"]]
        arguments = [i for i, node in enumerate(self.nodes) if node["op"] == "null"]
        kept = {key: value for key, value in self._graph.items() if key != "node_row_ptr"}
        return {**kept, "nodes": self.nodes, "arg_nodes": arguments, "heads": heads}

    def _add(self, node: dict[str, Any]) -> int:
        self.nodes.append(node)
        return len(self.nodes) - 1

    def _cast_inputs(self, node: dict[str, Any], inputs: list[list[int]]) -> list[list[int]]:
        kind = self._kinds.get(node["name"]) or self._kinds.get(node["op"])
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

    Raises ParamError for unknown types and for names that are not nodes.
    """
    target = target_name(target_dtype)
    graph = json.loads(symbol.tojson(remove_amp_cast=False))
    kinds: dict[str, str] = dict.fromkeys(lists.WIDEST, "widest")
    kinds.update(dict.fromkeys(lists.FLOAT32 if fp32_ops is None else fp32_ops, "float32"))
    kinds.update(dict.fromkeys(lists.TARGET if target_dtype_ops is None else target_dtype_ops, target))
    names = {node["name"] for node in graph["nodes"]}
    for name in excluded_sym_names or ():
        if name not in names:
            raise ParamError(f"amp.convert_symbol: excluded_sym_names: the graph has no node '{name}'")
        kinds[name] = "float32"
    for op, parameter, values in lists.CONDITIONAL if conditional_fp32_ops is None else conditional_fp32_ops:
        for node in graph["nodes"]:
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
        parameters = set(block.collect_params())
        inputs = [name for name in graph.list_inputs() if name not in parameters]
        converted = SymbolBlock(convert_symbol(graph, target_dtype, **options), [sym.var(name) for name in inputs])
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

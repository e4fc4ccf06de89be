"""The graphs that are exported: copies of a Symbol's graph for several sizes of its open axes.

Nodes whose output sizes depend on data, such as boolean_mask, have no sizes in such a copy. They are cut out: a
variable with an invented size stands for each of their outputs, a *late* node makes its value, and the inputs of the
late node are further outputs of the graph.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .. import _core
from ..errors import ShapeError, UnsupportedError
from ..ndarray._dtypes import numpy_dtype
from ..rewrite import graph as trial_graph
from ..symbol import Symbol, load_json
from ._export_values import Open, Spec, Tensor
from ._size_templates import filled, typed_params

__all__ = ["Body", "Graphs", "LateNode", "Source", "bodies_of"]

Shape = tuple[int, ...]

_MAY_DEPEND_ON_DATA = ("_with_values", "_while_loop", "_cond", "_foreach", "_subgraph")
# Sizes of axes that depend on data, per trial; all differ, and from the trial sizes of open axes.
_DATA_SIZES = ((11, 13, 17, 19, 23, 29), (41, 43, 47, 53, 59, 61), (101, 103, 107, 109, 113, 127))


@dataclass
class LateNode:
    """A node that is cut out: its description in the file format, and the outputs of the graph that it reads."""

    op: str
    name: str
    attrs: dict[str, str]
    subgraphs: list[Any]
    inputs: list[int]
    variables: list[str]
    params: dict[str, Any] = field(default_factory=dict)


class Source:
    """A Symbol's graph, once per trial.

    Attributes
    ----------
    graphs : list of rewrite.Graph
    late : dict of str to (LateNode, int)
        For each variable that stands for an output of a late node: the node and the number of the output.
    num_outputs : int
        The outputs of the Symbol; further ones are read by late nodes.
    """

    def __init__(
        self,
        symbol: Symbol,
        shapes: Sequence[Mapping[str, Shape]],
        dtypes: Mapping[str, Any],
        train: bool = False,
    ) -> None:
        self.late: dict[str, tuple[LateNode, int]] = {}
        self.num_outputs = len(symbol.list_outputs())
        self._json: Any = None
        self._text = symbol
        names = symbol.list_inputs()
        shapes = [{name: shape for name, shape in trial.items() if name in names} for trial in shapes]
        dtypes = {name: numpy_dtype(dtype) for name, dtype in dtypes.items() if name in names}
        try:
            self.graphs = [trial_graph(symbol, trial, dtypes, train) for trial in shapes]
        except ShapeError as error:
            if "determine" not in str(error):
                raise
            self.graphs = self._cut(symbol, shapes, dtypes, train, error)

    def described(self, name: str) -> Any:
        """A node in the file format, by name."""
        if self._json is None:
            self._json = json.loads(self._text.tojson())
        return next((node for node in self._json["nodes"] if node["name"] == name and node["op"] != "null"), None)

    # ---------------------------------------------------------------------------------------------------------- cutting
    def _cut(self, symbol: Symbol, shapes: Any, dtypes: Any, train: bool, error: ShapeError) -> list[Any]:
        whole = json.loads(symbol.tojson())
        cutter = _Cutter(whole, [dict(trial) for trial in shapes], dict(dtypes))
        late = cutter.run()
        if not late:
            raise error
        heads = [cutter.target(head) for head in whole["heads"]]
        for node in late:
            node.inputs = [len(heads) + i for i in range(len(node.inputs))]
            heads += cutter.inputs_of[node.name]
            for index, name in enumerate(node.variables):
                self.late[name] = (node, index)
        made = cutter.symbol(heads)
        names = made.list_inputs()
        return [
            trial_graph(
                made,
                {name: shape for name, shape in trial.items() if name in names},
                {name: dtype for name, dtype in cutter.dtypes.items() if name in names},
                train,
            )
            for trial in cutter.shapes
        ]


class _Cutter:
    """Replaces outputs whose sizes depend on data by variables, in the file format of a graph."""

    def __init__(self, whole: Any, shapes: list[dict[str, Shape]], dtypes: dict[str, Any]) -> None:
        self.nodes: list[Any] = []
        self.shapes, self.dtypes = shapes, dtypes
        self.inputs_of: dict[str, list[Any]] = {}
        self._whole = whole
        self._moved: dict[tuple[int, int], list[int]] = {}  # output of the whole graph -> output of the cut one
        self._invented: dict[Any, tuple[int, ...]] = {}
        self._count = 0

    def target(self, entry: Sequence[int]) -> list[int]:
        """An output of the whole graph in the cut one."""
        return self._moved[entry[0], entry[1]]

    def run(self) -> list[LateNode]:
        """Copies all nodes, and cuts those that must be; returns these."""
        late = []
        for number, node in enumerate(self._whole["nodes"]):
            copied = {**node, "inputs": [self.target(entry) for entry in node["inputs"]]}
            own = len(self.nodes)
            self.nodes.append(copied)
            outputs = self._outputs_of(number)
            for index in range(outputs):
                self._moved[number, index] = [own, index, 0]
            if node["op"] == "null" or not self._may_be_late(node):
                continue
            specs = self._specs(own, outputs)
            if any(-1 in shape for trial in specs for shape, _ in trial):
                late.append(self._replace(number, own, copied, specs))
        return late

    @staticmethod
    def _may_be_late(node: Any) -> bool:
        return node["op"] in _MAY_DEPEND_ON_DATA or bool(_core.describe_op(node["op"])["data_dependent_shape"])

    def _outputs_of(self, number: int) -> int:
        """The outputs that something reads."""
        read = [entry for node in self._whole["nodes"] for entry in node["inputs"]]
        used = [entry[1] for entry in (*read, *self._whole["heads"]) if entry[0] == number]
        return max(used, default=0) + 1

    def symbol(self, heads: Sequence[Sequence[int]]) -> Symbol:
        """The cut graph with these outputs, without nodes that they do not need."""
        needed: set[int] = set()
        pending = [entry[0] for entry in heads]
        while pending:
            number = pending.pop()
            if number not in needed:
                needed.add(number)
                pending += [entry[0] for entry in self.nodes[number]["inputs"]]
        order = sorted(needed)
        moved = {number: place for place, number in enumerate(order)}

        def entries(given: Sequence[Sequence[int]]) -> list[list[int]]:
            return [[moved[entry[0]], *entry[1:]] for entry in given]

        nodes = [{**self.nodes[number], "inputs": entries(self.nodes[number]["inputs"])} for number in order]
        variables = [place for place, node in enumerate(nodes) if node["op"] == "null"]
        attrs = self._whole.get("attrs", {})
        return load_json(json.dumps({"nodes": nodes, "arg_nodes": variables, "heads": entries(heads), "attrs": attrs}))

    def _specs(self, number: int, outputs: int) -> list[list[tuple[Shape, Any]]]:
        """Shape and dtype of the outputs of a node, per trial; -1: unknown."""
        node = self.nodes[number]
        of_inputs = not node.get("subgraphs") and node["inputs"]
        symbol = self.symbol(node["inputs"] if of_inputs else [[number, index, 0] for index in range(outputs)])
        names = set(symbol.list_inputs())
        specs = []
        for trial in self.shapes:
            known = {
                name: (trial.get(name), self.dtypes.get(name)) for name in names if name in trial or name in self.dtypes
            }
            _, _, found, _ = _core.symbol_infer(symbol, known, True)
            if of_inputs:
                inputs = [(tuple(shape), np.dtype(dtype or np.float32).name) for shape, dtype in found]
                found = _inferred(node["op"], node.get("attrs", {}), inputs)
            specs.append([(tuple(shape) if shape is not None else (-1,), dtype) for shape, dtype in found[:outputs]])
        return specs

    def _replace(self, number: int, own: int, node: Any, specs: list[list[tuple[Shape, Any]]]) -> LateNode:
        late = LateNode(node["op"], node["name"], node.get("attrs", {}), node.get("subgraphs", []), node["inputs"], [])
        late.params = typed_params(late.op, late.attrs)
        self.inputs_of[late.name] = node["inputs"]
        self.nodes[own] = {"op": "null", "name": f"{late.name}/input{own}", "inputs": []}  # keeps the numbers
        key = (late.op, json.dumps(sorted(late.attrs.items())), json.dumps(node["inputs"][1:] or node["inputs"]))
        for index in range(len(specs[0])):
            name = f"{late.name}/late{index}"
            late.variables.append(name)
            self._moved[number, index] = [len(self.nodes), 0, 0]
            self.nodes.append({"op": "null", "name": name, "inputs": []})
            for trial, shapes in enumerate(self.shapes):
                shape, dtype = specs[trial][index]
                shapes[name] = tuple(
                    self._invent((key, axis), trial) if size < 0 else size for axis, size in enumerate(shape)
                )
                self.dtypes[name] = numpy_dtype(np.float32 if dtype is None else dtype)
        return late

    def _invent(self, key: Any, trial: int) -> int:
        """A size that depends on data; the same for equal operators on the same mask."""
        if key not in self._invented:
            sizes = [row[self._count % len(row)] for row in _DATA_SIZES]
            self._count += 1
            self._invented[key] = tuple(sizes)
        return self._invented[key][trial % len(_DATA_SIZES)]


def _inferred(op: str, attrs: Mapping[str, str], inputs: list[tuple[Shape, str]]) -> list[tuple[Shape, Any]]:
    """Shape and dtype of the outputs of a node; -1: the size depends on data."""
    if op != "_with_values":
        found = _core.infer_use(op, attrs, inputs)
        return [(tuple(shape), numpy_dtype(dtype or "float32")) for shape, dtype in found]
    params = typed_params(op, attrs)
    tensors = [Tensor("", dtype, Spec([shape, shape], dtype)) for shape, dtype in inputs]
    inner = filled(params["op"], params["attrs"], tensors, 2)
    sizes = inner.get("newshape", inner.get("shape"))
    if sizes is not None:  # the numbers of elements need not fit
        return [((-1,) * len(sizes), numpy_dtype(inner.get("dtype") or inputs[0][1]))]
    required = {field["name"] for field in _core.describe_op(params["op"])["fields"] if field["required"]}
    trials = []
    for trial in range(2):
        chosen = {key: _of_trial(value, trial) for key, value in inner.items() if value is not None or key in required}
        trials.append(_core.infer_use(params["op"], chosen, inputs[: params["num_data"]])[0])
    shape = tuple(a if a == b else -1 for a, b in zip(trials[0][0], trials[1][0], strict=True))
    return [(shape, numpy_dtype(trials[0][1]))]


def _of_trial(value: Any, trial: int) -> Any:
    """A parameter for one trial."""
    if isinstance(value, Open):
        return value.trials[trial]
    return tuple(_of_trial(item, trial) for item in value) if isinstance(value, tuple) else value


# -------------------------------------------------------------------------------------------------------------- bodies
@dataclass
class Body:
    """The graph inside a loop or branch: its inputs are inputs of the node, by number."""

    source: Any  # a Source, or something with graphs and late
    inputs: list[int]


@dataclass
class Graphs:
    graphs: list[Any]
    late: dict[str, Any] = field(default_factory=dict)
    keep: Any = None  # the owner of the graphs

    @property
    def num_outputs(self) -> int:
        return len(self.graphs[0].outputs)

    def described(self, name: str) -> Any:
        return None


def bodies_of(node: Any) -> tuple[list[Body], dict[str, Any]]:
    """The bodies of a NodeUse that is a loop or branch, and its parameters: num_seq, num_carry, num_out, limit (the
    number of the input that holds the greatest count of iterations, or None)."""
    if node.nodes is not None:
        try:
            return _of_views(node)
        except UnsupportedError:
            described = node.source.described(node.nodes[0].name)
            if described is None:
                raise
            return _of_file(node, described.get("attrs", {}), described["subgraphs"])
    return _of_file(node, node.late.attrs, node.late.subgraphs)


def _of_views(node: Any) -> tuple[list[Body], dict[str, Any]]:
    views = [one.view() for one in node.nodes]
    bodies, read = [], set()
    for number, name in enumerate(views[0].bodies):
        rows = [row for row in views[0].index_rows(number) if row[2] >= 0]
        inputs = [outer for _, outer, _, _, _ in sorted(rows, key=lambda row: row[2])]
        read.update(inputs)
        bodies.append(Body(Graphs([view.bodies[name] for view in views], keep=views), inputs))
    params = dict(node.params)
    params["limit"] = None
    if params.get("counted"):
        first = params["num_seq"] + params["num_carry"]
        params["limit"] = first if node.op == "_while_loop" else None
    return bodies, params


def _places(attrs: Mapping[str, str], name: str) -> list[int]:
    value = ast.literal_eval(attrs.get(name, "()"))
    return list(value) if isinstance(value, tuple) else [value]


def _of_file(node: Any, attrs: Mapping[str, str], subgraphs: Sequence[Any]) -> tuple[list[Body], dict[str, Any]]:
    count = len(node.inputs)
    params: dict[str, Any] = {
        **node.params,
        "limit": None,
        "num_out": int(attrs.get("num_out_data", attrs["num_outputs"])),
    }
    if node.op == "_foreach":
        locations = [_places(attrs, name) for name in ("in_data_locs", "in_state_locs", "remain_locs")]
        order = [place for part in locations for place in part]
        inputs = [[order.index(place) for place in range(len(order))]]
        params.update(num_seq=len(locations[0]), num_carry=len(locations[1]))
        params["reverse"] = attrs.get("reverse", "False") in ("True", "1")
    elif node.op == "_while_loop":
        inputs = [_places(attrs, "cond_input_locs"), _places(attrs, "func_input_locs")]
        params["num_seq"], params["num_carry"] = 0, len(_places(attrs, "func_var_locs"))
        if attrs.get("limited") in ("True", "1"):
            params["limit"] = count - 1
        unbounded = attrs.get("unbounded") in ("True", "1")
        params["max_iterations"] = None if unbounded else int(attrs["max_iterations"])
        params["exact"] = attrs.get("exact") in ("True", "1") or unbounded
    else:
        inputs = [_places(attrs, name) for name in ("cond_input_locs", "then_input_locs", "else_input_locs")]
    bodies = []
    for subgraph, places in zip(subgraphs, inputs, strict=True):
        source = _body_source(node, subgraph, places, params)
        names = [subgraph["nodes"][number]["name"] for number in subgraph["arg_nodes"]]
        by_name = dict(zip(names, places, strict=True))
        found = [entry.node.name for entry in source.graphs[0].inputs if entry.node.name not in source.late]
        bodies.append(Body(source, [by_name[name] for name in found]))
    return bodies, params


def _body_source(node: Any, subgraph: Any, places: Sequence[int], params: Mapping[str, Any]) -> Source:
    symbol = load_json(json.dumps(subgraph))
    names = [subgraph["nodes"][number]["name"] for number in subgraph["arg_nodes"]]
    free = list(_free_axes(node.params.get("free_axes") or ()))
    shapes: list[dict[str, Shape]] = []
    for trial in range(len(node.inputs[0].shapes)):
        given = {}
        for name, place in zip(names, places, strict=True):
            shape = node.inputs[place].shapes[trial]
            if node.op == "_foreach" and place < params["num_seq"]:
                shape = shape[1:] or (() if params.get("scalar_slices") else (1,))
            for number, (variable, axis) in enumerate(free):
                if place == variable:
                    sizes = list(shape)
                    sizes[axis] = _DATA_SIZES[trial % 3][-1 - number]
                    shape = tuple(sizes)
            given[name] = shape
        shapes.append(given)
    dtypes = {name: node.inputs[place].dtype for name, place in zip(names, places, strict=True)}
    return Source(symbol, shapes, dtypes)


def _free_axes(values: Any) -> Iterator[tuple[int, int]]:
    """Pairs of variable and axis whose size changes from iteration to iteration."""
    values = ast.literal_eval(values) if isinstance(values, str) else values
    numbers = list(values)
    yield from zip(numbers[::2], numbers[1::2], strict=True)

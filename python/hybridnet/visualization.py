"""Graphs for humans: a table of layers (:func:`print_summary`) and a drawing (:func:`plot_network`).

Plots of a training: :func:`plot_history` and :func:`plot_confusion_matrix`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ._lazy_names import names_from
from ._public_names import dir_of
from ._user_line import warn
from .errors import ImportError as HybridNetImportError
from .errors import ParamError
from .errors import TypeError as HybridNetTypeError
from .errors import ValueError as HybridNetValueError
from .symbol import Symbol

__all__ = ["plot_memory", "plot_network", "print_summary"]

Entry = tuple[int, int]  # node index, output index

_WEIGHT_ENDINGS = re.compile(
    r"_(weight|bias|gamma|beta|alpha|moving_mean|moving_var|running_mean|running_var|parameters)$"
)
# Fill colors per group of operators.
_COLORS = {
    "input": "#8dd3c7",
    "weighted": "#fb8072",
    "activation": "#ffffb3",
    "normalization": "#bebada",
    "pooling": "#80b1d3",
    "joining": "#fdb462",
    "output": "#b3de69",
    "other": "#fccde5",
}
_KINDS = {
    "Convolution": "weighted",
    "Deconvolution": "weighted",
    "FullyConnected": "weighted",
    "Embedding": "weighted",
    "RNN": "weighted",
    "Activation": "activation",
    "LeakyReLU": "activation",
    "BatchNorm": "normalization",
    "LayerNorm": "normalization",
    "GroupNorm": "normalization",
    "InstanceNorm": "normalization",
    "Pooling": "pooling",
    "Concat": "joining",
    "Flatten": "joining",
    "Reshape": "joining",
    "SoftmaxOutput": "output",
    "softmax": "output",
}


class _Graph:
    """The parsed symbol for both functions: its nodes and the known specs of their outputs."""

    def __init__(self, symbol: Any, shape: Mapping[str, Sequence[int]] | None, dtype: Mapping[str, Any] | None) -> None:
        if not isinstance(symbol, Symbol):
            raise HybridNetTypeError("expected a Symbol", given=type(symbol).__name__)
        inside = symbol.get_internals()
        graph = json.loads(inside.tojson(remove_amp_cast=False))
        self.states = set(symbol.list_auxiliary_states())
        self.nodes: list[dict[str, Any]] = graph["nodes"]
        self.entries: list[Entry] = [(head[0], head[1]) for head in graph["heads"]]
        self.shapes: dict[Entry, tuple[int, ...]] = {}
        self.dtypes: dict[Entry, str] = {}
        if shape is not None:
            self.shapes = self._known(inside.infer_shape(**shape)[1], f"the shapes {dict(shape)}", tuple)
        if dtype is not None:
            self.dtypes = self._known(
                inside.infer_type(**dtype)[1], f"the dtypes {dict(dtype)}", lambda t: np.dtype(t).name
            )

    def _known(self, found: Any, given: str, form: Any) -> dict[Entry, Any]:
        if found is None:
            raise HybridNetValueError(
                f"{given} do not determine all others", fix="give those of all inputs, labels included"
            )
        return {entry: form(value) for entry, value in zip(self.entries, found, strict=True)}

    def is_variable(self, number: int) -> bool:
        return self.nodes[number]["op"] == "null"

    def inputs(self, number: int) -> list[Entry]:
        return [(entry[0], entry[1]) for entry in self.nodes[number]["inputs"]]


def print_summary(
    symbol: Symbol,
    shape: Mapping[str, Sequence[int]] | None = None,
    line_length: int = 120,
    positions: Sequence[float] = (0.44, 0.64, 0.74, 1.0),
) -> None:
    """Prints a table of the graph's operators: output shape without the batch, parameters, and inputs of each one.

    Parameters
    ----------
    symbol : Symbol
    shape : dict, optional
        Shapes of the inputs by name. Without them shapes are left out, and parameters are not counted.
    line_length : int
        Characters per line.
    positions : sequence of 4 floats
        Ends of the columns, as fractions of the line (or as characters).

    Parameters are counted as the elements of the variables that ``shape`` does not name, without labels and auxiliary
    states, at the first operator that reads them. Raises ValueError if the given shapes do not determine all others.
    """
    graph = _Graph(symbol, shape, None)
    ends = [round(line_length * p) if positions[-1] <= 1 else int(p) for p in positions]
    if len(ends) != 4:
        raise ParamError("print_summary: positions must be 4 numbers", given=str(list(positions)))

    def row(*fields: str) -> None:
        line = ""
        for field, end in zip(fields, ends, strict=True):
            line = (line + field)[: end - 1].ljust(end)
        print(line.rstrip())

    print("_" * line_length)
    row("Layer (type)", "Output Shape", "Param #", "Previous Layer")
    print("=" * line_length)
    counted: set[int] = set()
    total = 0
    for number, node in enumerate(graph.nodes):
        parameters = [n for n, _ in graph.inputs(number) if _is_parameter(graph, n, shape)]
        if _is_parameter(graph, number, shape):
            continue
        learned = {n for n in parameters if graph.nodes[n]["name"] not in graph.states}
        count = sum(math.prod(graph.shapes[n, 0]) for n in learned - counted) if shape is not None else 0
        counted |= learned
        total += count
        read = [graph.nodes[n]["name"] for n, _ in graph.inputs(number) if n not in parameters]
        known = graph.shapes.get((number, 0))
        row(
            f"{node['name']}({node['op']})",
            "x".join(map(str, known[1:])) if known is not None else "",
            str(count) if shape is not None else "",
            read[0] if read else "",
        )
        for name in read[1:]:
            row("", "", "", name)
        print("_" * line_length)
    print(f"Total params: {total if shape is not None else 'unknown, as no shape is given'}")
    print("_" * line_length)


def _is_parameter(graph: _Graph, number: int, shape: Mapping[str, Any] | None) -> bool:
    name = graph.nodes[number]["name"]
    if not graph.is_variable(number) or name.endswith("label") or (shape is not None and name in shape):
        return False
    return shape is not None or _WEIGHT_ENDINGS.search(name) is not None


def plot_network(
    symbol: Symbol,
    title: str = "plot",
    save_format: str = "pdf",
    shape: Mapping[str, Sequence[int]] | None = None,
    dtype: Mapping[str, Any] | None = None,
    node_attrs: Mapping[str, str] | None = None,
    hide_weights: bool = True,
) -> Any:
    """Returns a ``graphviz.Digraph`` of the graph; its ``render()`` writes the file, its ``source`` is the text.

    Parameters
    ----------
    symbol : Symbol
    title, save_format : str
        Name and format of the file that ``render()`` writes.
    shape, dtype : dict, optional
        Shapes and dtypes of the inputs by name; edges then show shape (without the batch) and dtype.
    node_attrs : dict, optional
        Attributes of Graphviz for all nodes, such as ``{"fixedsize": "false"}``.
    hide_weights : bool, default True
        Whether variables that end in _weight, _bias, _gamma and the like are left out.

    Raises ImportError without the package graphviz; ValueError if the given specs do not determine the rest. Warns if
    two nodes have the same name, which would merge them.
    """
    try:
        from graphviz import Digraph
    except ImportError as problem:
        raise HybridNetImportError("plot_network needs the package graphviz", fix="pip install graphviz") from problem
    graph = _Graph(symbol, shape, dtype)
    _warn_of_repeated_names(graph)
    attributes = {"shape": "box", "fixedsize": "true", "width": "1.3", "height": "0.8034", "style": "filled"}
    attributes.update(node_attrs or {})
    dot = Digraph(name=title, format=save_format)
    hidden = set()
    keys = _keys(graph)
    for number, node in enumerate(graph.nodes):
        if graph.is_variable(number):
            if hide_weights and _WEIGHT_ENDINGS.search(node["name"]):
                hidden.add(number)
                continue
            kind, look = "input", {**attributes, "shape": "oval"}
        else:
            kind, look = _KINDS.get(node["op"], "other"), attributes
        dot.node(name=keys[number], label=_label(node), **{**look, "fillcolor": _COLORS[kind]})
    for number in range(len(graph.nodes)):
        for entry in graph.inputs(number):
            if entry[0] in hidden:
                continue
            dot.edge(
                keys[entry[0]],
                keys[number],
                label=_edge_label(graph, entry),
                arrowtail="open",
                dir="back",
            )
    return dot


def plot_memory(source: Any, filename: str | None = None) -> Any:
    """Returns a picture of the memory of a plan over time; filename (``.svg``): also writes it.

    A panel per plan (forward, backward, bodies of loops and branches) shows each value of the arena as a box: across
    the instructions during which it lives, at its place in memory. The curve below adds up the bytes that live at each
    instruction, and names the instruction with the largest sum. Browsers show what made the box under the pointer.

    source : HybridBlock after a hybridized call, function, Executor, or the text that their plan_text() returns.

    Raises TypeError for other objects, ValueError if there is no plan yet, FileError if the file cannot be written.
    """
    from ._drawing._plan_memory import draw, plans_in

    if not isinstance(source, str) and not hasattr(source, "plan_text"):
        expected = "a block, a function, an Executor or a plan text"
        raise HybridNetTypeError("plot_memory: source", expected=expected, given=type(source).__name__)
    plans = plans_in(source if isinstance(source, str) else source.plan_text())
    if not plans:
        raise HybridNetValueError("plot_memory: there is no plan yet", fix="call the block, function or executor first")
    picture = draw(plans)
    if filename is not None:
        picture.save(filename)
    return picture


def _keys(graph: _Graph) -> list[str]:
    """Returns a key for each node: its name, with a number for nodes with equal names (a layer that is used twice)."""
    taken = {node["name"] for node in graph.nodes}
    seen: set[str] = set()
    keys = []
    for node in graph.nodes:
        key, count = node["name"], 0
        while key in seen or (count > 0 and key in taken):
            count += 1
            key = f"{node['name']}_{count}"
        seen.add(key)
        keys.append(key)
    return keys


def _warn_of_repeated_names(graph: _Graph) -> None:
    names = [node["name"] for node in graph.nodes]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        warn(
            "There are multiple variables with the same name in your graph, this may result in cyclic graph. "
            f"Repeated names: {', '.join(repeated)}",
        )


def _label(node: dict[str, Any]) -> str:
    """Returns the operator and the parameters that distinguish it from others of its kind."""
    op, attributes = node["op"], node.get("attrs", {})
    if op == "null":
        return node["name"]
    if op in ("Convolution", "Deconvolution"):
        return f"{op}\n{_by(attributes['kernel'])}/{_by(attributes.get('stride', '1'))}, {attributes['num_filter']}"
    if op == "FullyConnected":
        return f"{op}\n{attributes['num_hidden']}"
    if op in ("Activation", "LeakyReLU"):
        return f"{op}\n{attributes.get('act_type', 'leaky')}"
    if op == "Pooling":
        if attributes.get("global_pool") in ("True", "1"):
            return f"{op}\n{attributes.get('pool_type', 'max')}, global"
        size = f"{_by(attributes.get('kernel', '1'))}/{_by(attributes.get('stride', '1'))}"
        return f"{op}\n{attributes.get('pool_type', 'max')}, {size}"
    return node["name"] if op in ("_copy", "Custom") else op


def _by(sizes: str) -> str:
    """Formats '(3, 3)' as 3x3."""
    return "x".join(re.findall(r"\d+", sizes))


def _edge_label(graph: _Graph, entry: Entry) -> str:
    shape, dtype = graph.shapes.get(entry), graph.dtypes.get(entry)
    text = "x".join(map(str, shape[1:])) if shape is not None else ""
    return text if dtype is None else f"{text} ({dtype})" if text else dtype


__getattr__, __dir__ = names_from(__name__, {"_drawing._plots": "plot_confusion_matrix plot_history"})
__dir__ = dir_of(__name__, __dir__)

"""Shows the contents of a model: inputs, outputs, parameters, operators, work.

Work is the number of floating-point operations of a prediction, with two per multiply-add: those of products,
convolutions and recurrent layers, one per element of elementwise results, one per element that is reduced or pooled.
Loops count once per iteration, while_loops max_iterations times; of branches, the more expensive one counts. Without
--shape for inputs whose shapes are not in the file, sizes of values and work are left out.
"""

from __future__ import annotations

import argparse
import json
import math
from collections import Counter
from typing import Any

import numpy as np

from .._files import replacing
from ..errors import ShapeError, UnsupportedError
from ._models import Model, add_model_arguments, read_model
from ._output import answer, bytes_text, count_text, table
from ._shapes import add_shape_argument, described, form, shapes_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments for the model, its shapes and the form of output."""
    add_model_arguments(parser)
    add_shape_argument(parser)
    parser.add_argument("--nodes", action="store_true", help="every node, loops and branches as indented regions")
    parser.add_argument("--all-parameters", action="store_true", help="name every parameter")
    parser.add_argument("--svg", metavar="FILE", help="a drawing (needs graphviz)")


def _operators(graph: dict[str, Any], counts: Counter[str]) -> Counter[str]:
    """Counts the uses of each operator in a graph and in its bodies."""
    for node in graph["nodes"]:
        if node["op"] != "null":
            counts[node["op"]] += 1
        for body in node.get("subgraphs", ()):
            _operators(body, counts)
    return counts


def _work(graph: Any, times: float, flops: Counter[str], unsaid: set[str]) -> None:
    """Adds the work of a graph's nodes, by operator; unsaid: operators without this information."""
    for node in graph.nodes:
        if not node.bodies:
            own = node.flops
            if own is None:
                unsaid.add(node.op)
            elif own:
                flops[node.op] += times * own
            continue
        try:
            view = node.view()
        except UnsupportedError:
            unsaid.add(node.op)
            continue
        counted = {name: Counter[str]() for name in view.bodies}
        trips = _trips(view) if view.is_loop else 1
        for name, body in view.bodies.items():
            _work(body, times * trips, counted[name], unsaid)
        branches = [counted.pop(name) for name in ("then", "else") if name in counted]
        for count in [*counted.values(), *sorted(branches, key=Counter.total)[-1:]]:
            flops.update(count)


def _trips(view: Any) -> float:
    """Returns the maximum number of iterations of a loop."""
    sizes = [slot.outer.shape[0] for slot in view.seqs if slot.outer is not None]
    return float(sizes[0] if sizes else view.node.params.get("max_iterations") or 1)


def _parameter_rows(model: Model) -> list[tuple[str, str, str, int]]:
    states = set(model.symbol.list_auxiliary_states())
    return [
        (name, "state" if name in states else "parameter", f"{np.dtype(array.dtype)}{tuple(array.shape)}", array.size)
        for name, array in model.parameters.items()
    ]


def _text(facts: dict[str, Any], rows: list[tuple[str, str, str, int]], all_parameters: bool) -> str:
    shown = rows if all_parameters else sorted(rows, key=lambda row: -row[3])[:8]
    parts = [
        f"{facts['file']} with {facts['parameter file'] or 'no parameter file'}",
        "inputs\n" + table((name, form or "(shape unknown)") for name, form in facts["inputs"].items()),
        _head_of_outputs(facts) + table((name, form or "(shape unknown)") for name, form in facts["outputs"].items()),
        f"parameters: {count_text(facts['parameters'])} in {len(rows)} arrays, {bytes_text(facts['bytes'])}"
        + ("" if all_parameters or len(rows) <= 8 else "; the largest:"),
    ]
    if rows:
        parts.append(table((name, kind, form, count_text(size)) for name, kind, form, size in shown))
    total = sum(facts["operators"].values())
    parts.append(f"operators: {total}\n" + table(sorted(facts["operators"].items(), key=lambda item: -item[1])))
    if facts["flops"] is not None:
        work = facts["flops"]
        rows_of_work = sorted(work["by operator"].items(), key=lambda item: -item[1])
        parts.append(
            f"work: {count_text(work['total'])} floating-point operations (a multiply-add is two)\n"
            + table((name, count_text(count)) for name, count in rows_of_work)
        )
        if work["not counted"]:
            parts.append(f"not counted: {', '.join(work['not counted'])}")
    return "\n".join(parts)


def _head_of_outputs(facts: dict[str, Any]) -> str:
    """Returns the heading, with the shapes of inputs to which sizes of outputs and work belong, if sizes are free."""
    chosen = [f"{name} {text}" for name, text in facts["shapes"].items() if text != facts["inputs"][name]]
    return f"outputs, for {', '.join(chosen)}\n" if chosen else "outputs\n"


def _distinct(names: list[str]) -> list[str]:
    """Makes the names of outputs unique if one is listed twice: ``fc_output``, ``fc_output (output 2)``."""
    times: Counter[str] = Counter()
    result: list[str] = []
    for name in names:
        times[name] += 1
        result.append(name if times[name] == 1 else f"{name} (output {len(result)})")
    return result


def run(options: argparse.Namespace) -> int:
    """Prints the contents."""
    from ..rewrite import graph as graph_of

    model = read_model(options.file, options.params, options.epoch)
    rows = _parameter_rows(model)
    inputs: dict[str, str] = dict.fromkeys(model.inputs, "")
    outputs = dict.fromkeys(_distinct(model.symbol.list_outputs()), "")
    graph = None
    try:
        specs = shapes_of(model, options.shape)
    except ShapeError:
        if options.nodes or options.svg:
            raise
        specs = {}
    if specs or not model.inputs:
        inputs = described(model, specs) if not options.shape else {n: form(*specs[n]) for n in model.inputs}
        shapes = {name: array.shape for name, array in model.parameters.items()} | {n: s for n, (s, _) in specs.items()}
        types = {n: a.dtype for n, a in model.parameters.items()} | {n: d for n, (_, d) in specs.items()}
        graph = graph_of(model.symbol, shapes, types)
        for name, entry in zip(outputs, graph.outputs, strict=True):
            outputs[name] = f"{np.dtype(entry.dtype)}{tuple(entry.shape)}"
    flops, unsaid = Counter[str](), set[str]()
    if graph is not None:
        _work(graph, 1, flops, unsaid)
    facts = {
        "file": model.path,
        "parameter file": model.parameter_path,
        "inputs": inputs,
        "shapes": {name: form(*specs[name]) for name in model.inputs if name in specs},
        "outputs": outputs,
        "parameters": sum(row[3] for row in rows),
        "bytes": sum(math.prod(a.shape) * np.dtype(a.dtype).itemsize for a in model.parameters.values()),
        "operators": dict(_operators(json.loads(model.symbol.tojson()), Counter())),
        "flops": None
        if graph is None
        else {
            "total": int(flops.total()),
            "by operator": {name: int(count) for name, count in flops.items()},
            "not counted": sorted(unsaid),
        },
        "arrays": {name: {"kind": kind, "form": form} for name, kind, form, _ in rows},
    }
    text = _text(facts, rows, options.all_parameters)
    if graph is not None and options.nodes:
        text += "\n" + graph.text()
    if graph is not None and options.svg:
        with replacing(options.svg, "inspect --svg") as file:
            file.write(graph.svg().encode())
    answer(options, facts, text)
    return 0

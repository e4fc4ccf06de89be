"""Loops and branches: foreach as Scan, while_loop as Loop, cond as If. Bodies read outer values where they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._export_errors import does_not_follow
from .._export_source import Body, bodies_of
from .._export_table import export_form
from .._export_values import Number, Spec, Tensor


def _inner(g: Any, body: Body, outer: Sequence[Tensor | None]) -> list[Tensor]:
    """The outputs of a body; outer: a tensor for each input of the node (None: nothing reads it)."""
    entries = body.source.graphs[0].inputs
    named = [entry for entry in entries if entry.node.name not in body.source.late]
    values = {entry: outer[place] for entry, place in zip(named, body.inputs, strict=True)}
    for entry, tensor in values.items():
        assert tensor is not None, entry
        values[entry] = (
            g.reshape(tensor, [int(size) for size in entry.shape]) if tensor.ndim != len(entry.shape) else tensor
        )
        g.note_sizes(values[entry])
    return g.walk(body.source, values)


def _condition(g: Any, tensor: Tensor) -> Tensor:
    """A bool of shape ()."""
    return g.reshape(g.truth(tensor), [])


def _inner_spec(body: Body, place: int, tensor: Tensor) -> Spec:
    """The spec of an input in the body, where its sizes may change from iteration to iteration."""
    graphs = body.source.graphs
    named = [i for i, entry in enumerate(graphs[0].inputs) if entry.node.name not in body.source.late]
    if place not in body.inputs:
        return tensor.spec  # type: ignore[return-value]
    index = named[body.inputs.index(place)]
    return Spec([graph.inputs[index].shape for graph in graphs], tensor.dtype)


# ------------------------------------------------------------------------------------------------------------- foreach
@export_form("_foreach")
def _foreach(g: Any, node: Any) -> list[Tensor]:
    (body,), params = bodies_of(node)
    num_seq, num_carry, num_out = (params[name] for name in ("num_seq", "num_carry", "num_out"))
    rows, carried = node.inputs[:num_seq], node.inputs[num_seq : num_seq + num_carry]
    reverse = bool(params.get("reverse"))

    def run(inner: Sequence[Tensor], slices: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        made = _inner(g, body, [*slices, *inner, *node.inputs[num_seq + num_carry :]])
        return made[num_out:], made[:num_out]

    if rows:
        following, stacked = g.scan(carried, rows, lambda inner, slices: run(inner, slices), reverse)
    else:
        count = params["length"]
        following, stacked = g.loop(
            g.number(count, "int64"), None, carried, lambda number, inner: (None, *run(inner, []))
        )
        if reverse:
            stacked = [g.slice(_with(node, i, tensor), 0, None, None, -1) for i, tensor in enumerate(stacked)]
    return [*stacked, *following]


def _with(node: Any, index: int, tensor: Tensor) -> Tensor:
    tensor.spec = Spec(node.outputs[index].shapes, tensor.dtype)
    return tensor


# ---------------------------------------------------------------------------------------------------------- while_loop
@export_form("_while_loop")
def _while_loop(g: Any, node: Any) -> list[Tensor]:
    """The condition is computed before the loop, and at the end of each iteration. Outputs are filled up with zeros."""
    (test, body), params = bodies_of(node)
    num_carry, num_out = params["num_carry"], params["num_out"]
    carried, others = node.inputs[:num_carry], node.inputs[num_carry:]
    limit = params["max_iterations"]
    count = None if limit is None else g.number(limit, "int64")
    if params["limit"] is not None:
        if any(size != 1 for size in node.inputs[params["limit"]].shape):
            raise does_not_follow("the number of elements of max_iterations", node.inputs[params["limit"]].shapes)
        count = g.reshape(g.cast(node.inputs[params["limit"]], "int64"), [])
    specs = [_inner_spec(body, place, tensor) for place, tensor in enumerate(carried)]
    free = [spec.shapes != tensor.spec.shapes for spec, tensor in zip(specs, carried, strict=True)]
    counts = node.reads(num_out + num_carry)
    if counts:
        carried = [*carried, g.const([0], "int64")]
        specs.append(carried[-1].spec)

    def run(number: Tensor, inner: list[Tensor]) -> tuple[Tensor, list[Tensor], list[Tensor]]:
        for tensor, spec in zip(inner, specs, strict=True):
            tensor.spec = spec
            g.note_sizes(tensor)
        variables = inner[:num_carry]
        made = _inner(g, body, [*variables, *others])
        following = made[num_out:]
        for tensor, spec, changes in zip(following, specs, free, strict=False):
            if changes:
                tensor.spec = spec  # for the condition, whose graph has the sizes of the start of an iteration
        more = _condition(g, _inner(g, test, [*following, *others])[0])
        counted = [g.emit("Add", inner[-1], 1)] if counts else []
        return more, [*following, *counted], made[:num_out]

    begins = _condition(g, _inner(g, test, [*carried[:num_carry], *others])[0]) if not any(free) else None
    if begins is None:
        begins = _first_condition(g, test, carried[:num_carry], others, specs)
    following, stacked = g.loop(count, begins, carried, run)
    for tensor, changes in zip(following, free, strict=False):
        if changes:
            tensor.spec = None
    if not params["exact"]:
        stacked = [_filled_up(g, node, i, tensor, limit, count) for i, tensor in enumerate(stacked)]
    return [*stacked, *following]


def _first_condition(
    g: Any, test: Body, carried: Sequence[Tensor], others: Sequence[Tensor], specs: list[Spec]
) -> Tensor:
    """The condition before the first iteration, for variables whose sizes change: its graph has other trial sizes."""
    seen = []
    for tensor, spec in zip(carried, specs, strict=True):
        if spec.shapes != tensor.shapes:
            copy = g.emit("Identity", tensor)
            copy.spec = Spec(spec.shapes, tensor.dtype)
            tensor = copy
        seen.append(tensor)
    return _condition(g, _inner(g, test, [*seen, *others])[0])


def _filled_up(g: Any, node: Any, index: int, tensor: Tensor, limit: Number | None, count: Tensor | None) -> Tensor:
    """Zeros behind the rows of the iterations that ran."""
    if limit is not None:
        # Zeros for all rows that may be missing, cut behind: their number is known before the loop runs.
        zeros = g.full(node.dims(index), 0, tensor.dtype)
        made = g.emit("Concat", tensor, zeros, axis=0)
        return g.slice(made, 0, None, limit, spec=node.outputs[index])
    tensor.spec = Spec([(0, *shape[1:]) for shape in node.outputs[index].shapes], tensor.dtype)
    whole = g.reshape(count, [1])
    missing = g.emit("Sub", whole, g.axis_size(tensor, 0))
    sizes = g.concat([missing, g.vector(tensor.dims[1:])], 0) if tensor.ndim > 1 else missing
    zeros = g.full_of(sizes, 0, tensor.dtype)
    made = g.emit("Concat", tensor, zeros, axis=0)
    tensor.spec = None  # the number of rows is known when the loop has run
    return made


# ---------------------------------------------------------------------------------------------------------------- cond
@export_form("_cond")
def _cond(g: Any, node: Any) -> list[Tensor]:
    (test, then, other), _ = bodies_of(node)
    inputs = node.inputs
    chosen = _condition(g, _inner(g, test, inputs)[0])
    return g.branch(chosen, lambda: _inner(g, then, inputs), lambda: _inner(g, other, inputs))

"""If: one of two graphs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...errors import HybridNetError, UnsupportedError
from ...symbol import contrib
from ...util import np_shape
from .._bodies import answers, inside, merged_shapes, prepare, slot, with_axes_of
from .._builder import TrialsDoNotFit
from .._errors import refuse
from .._guards import guarded
from .._sizes import Size, is_number
from .._table import form
from .._values import Value

_BRANCHES = ("then_branch", "else_branch")


@form("If")
def branch(g: Any, node: Any, condition: Any) -> Any:
    """A known condition chooses while the file is imported; else a cond, of which one branch runs.

    Branches with different numbers of axes cannot be one cond. If sizes decide between them (as PyTorch writes for
    ``squeeze``), the branch for the sizes that were tried is chosen, and others are an error when the graph runs.
    """
    known = answers(condition)
    if known is None and condition.sizes is not None:
        size = condition.sizes.reshape(-1)[0]
        if is_number(size):
            known = bool(size)
        elif not size.reads_data:
            return _by_size(g, node, condition, size)
    if known is not None:
        return tuple(g.subgraph(node.graph(_BRANCHES[0 if known else 1]), []))
    return _cond(g, node, condition)


def _by_size(g: Any, node: Any, condition: Value, size: Size) -> Any:
    try:
        return _cond(g, node, condition)
    except (HybridNetError, TrialsDoNotFit) as error:
        if len(set(map(bool, size.trials))) > 1:
            raise
        failed = error
    taken = bool(size.trials[0])
    results = g.subgraph(node.graph(_BRANCHES[0 if taken else 1]), [])
    return _guarded(g, node, results, condition, taken, failed)


def _is_computed(value: Any) -> bool:
    return isinstance(value, Value) and value.sizes is None and not value.is_const


def _guarded(
    g: Any, node: Any, values: Sequence[Any], condition: Value, taken: bool, failed: Exception
) -> tuple[Any, ...]:
    """The results of a branch; a run in which the condition chooses the other one fails.

    failed: the error of the other branch. It is raised if nothing would notice such a run.
    """
    if not any(_is_computed(value) for value in values):
        raise failed
    chosen = condition if taken else g.emit("_npi_logical_not", [condition])
    other = _BRANCHES[1 if taken else 0]
    message = f"{other} of ONNX node '{node.name}' does not fit the sizes for which the file was imported"
    return tuple(guarded(g, value, chosen, message) if _is_computed(value) else value for value in values)


def _cond(g: Any, node: Any, condition: Value) -> Any:
    graphs = [node.graph(name) for name in _BRANCHES]
    prepare(g, *graphs)
    test = condition if condition.ndim == 0 else g.emit("_np_reshape", [condition], newshape=())
    made: list[Any] = [None, None]

    def run(index: int) -> Any:
        def function() -> list[Any]:
            with inside(g):
                made[index] = g.subgraph(graphs[index], [])
                if index == 1:
                    made[1] = [with_axes_of(g, value, like) for value, like in zip(made[1], made[0], strict=True)]
                return [value.symbol for value in _leaves(made[index], node)]

        return function

    try:
        with np_shape(True):
            outs = contrib.cond(test.symbol, run(0), run(1), name=g.unique(node.name))
    except UnsupportedError:
        raise
    except (HybridNetError, TrialsDoNotFit) as error:
        g.branch_failed = True
        if not g.one_branch:
            raise TrialsDoNotFit(str(error), getattr(error, "trial", 0)) from error
        return _fitting(g, node, test, graphs)
    return _joined(g, node, made, outs)


def _fitting(g: Any, node: Any, test: Value, graphs: list[Any]) -> Any:
    """The only branch that fits the sizes; a run in which the condition chooses the other one fails."""
    results, failed = [], None
    for index, graph in enumerate(graphs):
        try:
            results.append((index, g.subgraph(graph, [])))
        except UnsupportedError:
            raise
        except (HybridNetError, TrialsDoNotFit) as error:
            failed = error
    if failed is None or not results:
        raise failed or TrialsDoNotFit("the branches do not agree")
    index, values = results[0]
    return _guarded(g, node, values, test, index == 0, failed)


def _joined(g: Any, node: Any, made: list[Any], outs: Any) -> Any:
    one, other = (_leaves(values, node) for values in made)
    if len(one) != len(other) or [_length(item) for item in made[0]] != [_length(item) for item in made[1]]:
        raise refuse("the branches make sequences of different lengths", node=node.proto)
    parts = iter(
        slot(first.name, first, symbol, merged_shapes(g, first, second, node, f"output {index}"))
        for index, (first, second, symbol) in enumerate(zip(one, other, outs, strict=True))
    )
    return tuple([next(parts) for _ in item] if isinstance(item, list) else next(parts) for item in made[0])


def _length(item: Any) -> int:
    return len(item) if isinstance(item, list) else -1


def _leaves(values: Any, node: Any) -> list[Value]:
    leaves = [part for item in values for part in (item if isinstance(item, list) else [item])]
    if not all(isinstance(leaf, Value) for leaf in leaves):
        raise refuse(
            "a branch makes an optional value that is absent", because="the choice is made by data", node=node.proto
        )
    return leaves


__all__ = ["branch"]

"""Checks the functions and graphs of a file before they are built: calls must end, and their number is limited."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ._errors import refuse, wrong

__all__ = ["check_nesting"]

# A file of a few kilobytes can call functions that call functions ... whose nodes have no end.
_MOST_NODES = 300_000
_MOST_LEVELS = 60

Key = tuple[str, str, str]


def check_nesting(model: Any) -> None:
    """Raises if functions call themselves, if graphs are nested too deeply, or if all calls make too many nodes."""
    functions = {(f.domain, f.name, getattr(f, "overload", "")): f for f in model.functions}
    if not functions:
        return
    calls = {key: list(_calls(function.node, functions)) for key, function in functions.items()}
    own = {key: sum(1 for _ in _all_nodes(function.node)) for key, function in functions.items()}
    nodes: dict[Key, int] = {}
    levels: dict[Key, int] = {}
    for key in _callees_first(calls):
        nodes[key] = own[key] + sum(nodes[callee] for callee in calls[key])
        levels[key] = 1 + max((levels[callee] for callee in calls[key]), default=0)
        if levels[key] > _MOST_LEVELS:
            raise refuse(
                f"function '{key[1]}' of the file calls functions over more than {_MOST_LEVELS} levels",
                fix="inline the functions: onnx.inliner.inline_local_functions(model)",
            )
    total = sum(1 for _ in _all_nodes(model.graph.node))
    inlined = sum(nodes[callee] for callee in _calls(model.graph.node, functions))
    if inlined > _MOST_NODES:
        raise refuse(
            f"the functions of the file make {total + inlined} nodes",
            because=f"at most {_MOST_NODES} nodes may come from functions",
            fix="split the model",
        )


def _all_nodes(nodes: Any) -> Iterator[Any]:
    for node in nodes:
        yield node
        for attribute in node.attribute:
            for graph in [*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs]:
                yield from _all_nodes(graph.node)


def _calls(nodes: Any, functions: dict[Key, Any]) -> Iterator[Key]:
    for node in _all_nodes(nodes):
        key = (node.domain, node.op_type, getattr(node, "overload", ""))
        if key in functions:
            yield key


def _callees_first(calls: dict[Key, list[Key]]) -> Iterator[Key]:
    """All functions, each behind those that it calls."""
    done: set[Key] = set()
    for start in calls:
        path: list[tuple[Key, Iterator[Key]]] = []
        open_keys: set[Key] = set()
        if start not in done:
            path.append((start, iter(calls[start])))
            open_keys.add(start)
        while path:
            key, rest = path[-1]
            callee = next(rest, None)
            if callee is None:
                path.pop()
                open_keys.discard(key)
                done.add(key)
                yield key
            elif callee in open_keys:
                raise wrong(
                    f"function '{callee[1]}' of the file calls itself",
                    because="functions of ONNX are inlined, so calls must end",
                    fix="write the recursion as a Loop",
                )
            elif callee not in done:
                path.append((callee, iter(calls[callee])))
                open_keys.add(callee)

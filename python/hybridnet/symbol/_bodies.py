"""The inputs of the bodies of loops and branches in JSON, which attributes of these operators name by their places."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

__all__ = ["input_names", "places_in", "sources_of", "with_moved_inputs"]

# Places among the inputs of the body; in a loop over slices, in the order of the inputs of the node.
_PLACES = {"_foreach": ("in_data_locs", "in_state_locs", "remain_locs"), "_while_loop": ("func_var_locs",)}
# For each body, the input of the node that each input of the body receives.
_SOURCES = {
    "_while_loop": ("cond_input_locs", "func_input_locs"),
    "_cond": ("cond_input_locs", "then_input_locs", "else_input_locs"),
}


def places_in(node: dict[str, Any], attribute: str) -> list[Any]:
    value = ast.literal_eval(node["attrs"].get(attribute, "()"))
    return list(value) if isinstance(value, tuple) else [value]


def input_names(body: dict[str, Any]) -> list[str]:
    """The inputs of a body in the order in which its outputs reach them, then those that none reaches."""
    nodes, found, seen = body["nodes"], [], set()
    places = [head[0] for head in reversed(body["heads"])]
    while places:
        place = places.pop()
        if place in seen:
            continue
        seen.add(place)
        if nodes[place]["op"] == "null":
            found.append(nodes[place]["name"])
        places.extend(reversed(nodes[place].get("control_deps", ())))
        places.extend(entry[0] for entry in reversed(nodes[place].get("inputs", ())))
    found.extend(node["name"] for node in nodes if node["op"] == "null")
    return list(dict.fromkeys(found))


def sources_of(node: dict[str, Any]) -> list[dict[str, int]]:
    """For each body, the input of the node that an input of the body receives, by the name of the latter."""
    names = [input_names(body) for body in node["subgraphs"]]
    if node["op"] == "_foreach":
        places = [place for attribute in _PLACES["_foreach"] for place in places_in(node, attribute)]
        return [{names[0][place]: source for source, place in enumerate(places)}]
    given = [places_in(node, attribute) for attribute in _SOURCES[node["op"]]]
    return [dict(zip(inputs, sources, strict=True)) for inputs, sources in zip(names, given, strict=True)]


def with_moved_inputs(node: dict[str, Any], bodies: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The node with other bodies that have the same inputs, by their names, but may reach them in another order."""
    before = [input_names(body) for body in node["subgraphs"]]
    after = [input_names(body) for body in bodies]
    moved = {**node, "subgraphs": list(bodies)}
    if before == after or (node["op"] not in _PLACES and node["op"] not in _SOURCES):
        return moved
    attrs = dict(node["attrs"])
    for attribute in _PLACES.get(node["op"], ()):
        attrs[attribute] = _text([after[-1].index(before[-1][place]) for place in places_in(node, attribute)])
    for attribute, old, new in zip(_SOURCES.get(node["op"], ()), before, after, strict=False):
        source = dict(zip(old, places_in(node, attribute), strict=True))
        attrs[attribute] = _text([source[name] for name in new])
    return {**moved, "attrs": attrs}


def _text(places: Sequence[int]) -> str:
    return str(tuple(places))

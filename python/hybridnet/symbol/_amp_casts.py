"""Graphs without the casts of mixed precision, the default form in files."""

from __future__ import annotations

from typing import Any

from ._bodies import with_moved_inputs

__all__ = ["CASTS", "without_casts"]

CASTS = ("amp_cast", "amp_multicast", "_amp_cast_like")


def without_casts(graph: dict[str, Any]) -> dict[str, Any]:
    """Bypasses the casts of a graph in JSON: readers of a cast read the cast's input; loop and branch bodies too."""
    nodes: list[dict[str, Any]] = []
    entries: dict[tuple[int, int], list[int]] = {}  # output of an old node -> entry of the new graph

    def moved(old: list[list[int]]) -> list[list[int]]:
        return [entries.get((node, output)) or [places[node], output, *rest] for node, output, *rest in old]

    places: dict[int, int] = {}
    for number, node in enumerate(graph["nodes"]):
        inputs = moved(node["inputs"])
        if node["op"] in CASTS:
            entries.update({(number, output): entry for output, entry in enumerate(inputs)})
            continue
        places[number] = len(nodes)
        if "subgraphs" in node:
            node = with_moved_inputs(node, [without_casts(body) for body in node["subgraphs"]])
        nodes.append({**node, "inputs": inputs})
    arguments = [i for i, node in enumerate(nodes) if node["op"] == "null"]
    kept = {key: value for key, value in graph.items() if key != "node_row_ptr"}  # dropped: optional, for the old graph
    return {**kept, "nodes": nodes, "arg_nodes": arguments, "heads": moved(graph["heads"])}

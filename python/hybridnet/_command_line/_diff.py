"""Compares two models, or two files of arrays: missing and additional parts, and differences of values.

Exit code 0 if they are the same within --rtol and --atol, else 1.
"""

from __future__ import annotations

import argparse
import difflib
import json
from typing import Any

import numpy as np

from .. import ndarray, symbol
from ..ndarray import NDArray
from ..ndarray._foreign_files import FOREIGN_ENDINGS
from ._model_paths import split_models
from ._models import read_model
from ._output import answer, table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments for two files and tolerances."""
    parser.add_argument(
        "models",
        metavar="MODEL",
        nargs="+",
        help="two models, each as PREFIX, as one of its files or as both; or two files of arrays",
    )
    parser.add_argument("--rtol", type=float, default=0.0)
    parser.add_argument("--atol", type=float, default=0.0)


def _lines(graph: symbol.Symbol) -> list[str]:
    """Returns one line per node, with the names of its inputs: numbers would change after each insertion."""
    nodes = json.loads(graph.tojson())["nodes"]
    lines = []
    for node in nodes:
        read = ", ".join(nodes[entry[0]]["name"] + (f"[{entry[1]}]" if entry[1] else "") for entry in node["inputs"])
        attributes = node.get("attrs") or {}
        parts = " ".join(f"{key}={attributes[key]}" for key in sorted(attributes))
        bodies = " ".join(json.dumps(body, sort_keys=True) for body in node.get("subgraphs", []))
        lines.append(f"{node['op']} {node['name']}({read}) {parts} {bodies}".rstrip())
    return lines


def _array_facts(a: NDArray, b: NDArray, rtol: float, atol: float) -> str | None:
    """Describes the difference of two arrays; None if there is none."""
    if a.shape != b.shape or np.dtype(a.dtype) != np.dtype(b.dtype):
        return f"{np.dtype(a.dtype)}{a.shape} and {np.dtype(b.dtype)}{b.shape}"
    x, y = (np.asarray(array.asnumpy()) for array in (a, b))
    wide = np.float64 if x.dtype.kind in "fV" else x.dtype
    x, y = x.astype(wide), y.astype(wide)
    apart = ~np.isclose(x, y, rtol=rtol, atol=atol, equal_nan=True) if wide is np.float64 else x != y
    count = int(np.count_nonzero(apart))
    if count == 0:
        return None
    distance = np.abs(x[apart].astype(np.float64) - y[apart].astype(np.float64))
    return f"{count} of {x.size} elements differ, by {np.nanmax(distance):.3g} at most"


def _arrays(loaded: Any) -> dict[str, NDArray]:
    return loaded if isinstance(loaded, dict) else {str(i): array for i, array in enumerate(loaded)}


def run(options: argparse.Namespace) -> int:
    """Prints the differences."""
    structure: list[str] = []
    words = options.models
    if len(words) == 2 and all(word.endswith((".params", *FOREIGN_ENDINGS)) for word in words):
        labels = words
        a, b = (_arrays(ndarray.load(word)) for word in words)
    else:
        parts = split_models(words)
        labels = [" ".join(part) for part in parts]
        one, other = (read_model(part) for part in parts)
        lines = _lines(one.symbol), _lines(other.symbol)
        structure = list(difflib.unified_diff(lines[0], lines[1], labels[0], labels[1], lineterm="", n=1))
        a, b = one.parameters, other.parameters
    only = {labels[0]: sorted(a.keys() - b.keys()), labels[1]: sorted(b.keys() - a.keys())}
    values = {}
    for name in a:
        if name in b and (fact := _array_facts(a[name], b[name], options.rtol, options.atol)):
            values[name] = fact
    same = not (structure or values or any(only.values()))
    parts = ["\n".join(structure)] if structure else []
    parts += [f"only in {path}: {', '.join(names)}" for path, names in only.items() if names]
    parts += [table(values.items())] if values else []
    facts = {"same": same, "structure": structure, "only": only, "values": values}
    answer(options, facts, "\n".join(parts) if parts else f"the same: {len(a)} arrays")
    return 0 if same else 1

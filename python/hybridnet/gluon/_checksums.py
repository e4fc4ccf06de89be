"""Checksums of exported models, which verify that two files are bit for bit those that export() wrote.

They are stored in the graph's file, among the attributes of the graph, where MXNet ignores unknown entries:
``"attrs": {"hybridnet_sha256_graph": ["str", HEX], "hybridnet_sha256_parameters": ["str", HEX]}``. The graph's checksum
covers its JSON without these two, with sorted keys and no spaces, in UTF-8. Checksums find damage and mistakes. They
are not a signature: anyone who can change the files can change the checksums.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from .._files import read_text, replacing
from ..errors import FileError, FormatError

__all__ = ["add_checksums", "has_checksums", "verify_checksums"]

_GRAPH, _PARAMETERS = "hybridnet_sha256_graph", "hybridnet_sha256_parameters"


def _parsed(symbol_file: str) -> dict[str, Any]:
    try:
        graph = json.loads(read_text(symbol_file, "checksum"))
    except (ValueError, RecursionError) as error:
        raise FormatError(f"checksum: '{symbol_file}' is no JSON: {error}") from error
    if not isinstance(graph, dict) or not isinstance(graph.get("attrs", {}), dict):
        raise FormatError(f"checksum: '{symbol_file}' describes no graph")
    return graph


def _graph_sum(graph: dict[str, Any]) -> str:
    attributes = {name: value for name, value in graph.get("attrs", {}).items() if name not in (_GRAPH, _PARAMETERS)}
    text = json.dumps({**graph, "attrs": attributes}, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _file_sum(path: str) -> str:
    total = hashlib.sha256()
    try:
        with open(path, "rb") as file:
            while part := file.read(1 << 20):
                total.update(part)
    except OSError as error:
        raise FileError(f"checksum: cannot read '{path}': {error.strerror}") from error
    return total.hexdigest()


def add_checksums(symbol_file: str, params_file: str) -> None:
    """Writes the checksums of both files into the first. Raises FileError."""
    graph = _parsed(symbol_file)
    sums = {_GRAPH: ["str", _graph_sum(graph)], _PARAMETERS: ["str", _file_sum(params_file)]}
    text = json.dumps({**graph, "attrs": {**graph.get("attrs", {}), **sums}}, indent=2, ensure_ascii=False)
    with replacing(symbol_file, "checksum") as file:
        file.write(text.encode("utf-8", "surrogatepass"))


def has_checksums(symbol_file: str) -> bool:
    """Whether the graph's file holds checksums. Raises FileError, FormatError."""
    return _GRAPH in _parsed(symbol_file).get("attrs", {})


def verify_checksums(symbol_file: str, params_file: str | None) -> None:
    """Raises FormatError if a file differs from the one that was written, or if there are no checksums; FileError.

    params_file: None if the graph alone is loaded.
    """
    graph = _parsed(symbol_file)
    attributes = graph.get("attrs", {})
    if _GRAPH not in attributes or _PARAMETERS not in attributes:
        raise FormatError(
            f"'{symbol_file}' holds no checksums", fix="export it with checksum=True, or load it without verify=True"
        )
    found = {_GRAPH: (symbol_file, _graph_sum(graph))}
    if params_file is not None:
        found[_PARAMETERS] = (params_file, _file_sum(params_file))
    for name, (path, total) in found.items():
        if attributes[name] != ["str", total]:
            raise FormatError(
                f"'{path}' is not the file that was exported",
                because=f"its SHA-256 is {total}, '{symbol_file}' says {attributes[name]!r}",
                fix="copy both files again from where the model was exported",
            )

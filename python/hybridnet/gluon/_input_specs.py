"""Names, dtypes and shapes of a model's inputs in the graph's file, with the sizes that may vary.

They are stored as text of JSON among the attributes of the graph, where MXNet and older versions ignore them, under
``hybridnet_inputs``: ``{"data": {"dtype": "float32", "shape": ["free0", 3, 224, 224], "example": [8, 3, 224, 224]}}``.
The attributes ``__shape__`` and ``__dtype__`` of variables are not used, because MXNet's executors fix sizes by them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .._files import read_text, replacing
from ..errors import FormatError
from ..errors import ValueError as HybridNetValueError
from ._free_sizes import free_sizes

if TYPE_CHECKING:
    from ._traced_graph import TracedGraph

__all__ = ["InputSpec", "read_inputs", "record_inputs", "write_inputs"]

_IN_FILE = "hybridnet_inputs"


@dataclass(frozen=True)
class InputSpec:
    """The dtype and shape of an input."""

    dtype: str
    shape: tuple[int | str, ...]  # a name is a free size; equal names are equal sizes, among all inputs
    example: tuple[int, ...]  # the shape of the call that was exported

    @property
    def has_free(self) -> bool:
        """Whether a size may vary."""
        return any(isinstance(size, str) for size in self.shape)

    def __str__(self) -> str:
        return f"{self.dtype}({', '.join(map(str, self.shape))}{',' if len(self.shape) == 1 else ''})"


def record_inputs(symbol_file: str, graph: TracedGraph, call: tuple[Any, Sequence[tuple[Any, Any]]] | None) -> None:
    """Writes the inputs of a traced graph into its file. Raises FileError.

    call: structure, shapes and dtypes of the arrays with which the block was called; None: unknown, nothing is written.
    If forward read a shape in Python, no size is free: the graph may have decisions for this shape only.
    """
    if call is None:
        return
    shapes: dict[str, tuple[int, ...]] = {}
    dtypes: dict[str, str] = {}
    parameters: dict[str, tuple[int, ...]] = {}
    for name, (is_input, source) in zip(graph.outputs.list_inputs(), graph.sources, strict=False):
        if is_input:
            shape, dtype = call[1][source]
            shapes[name], dtypes[name] = tuple(shape), np.dtype(dtype).name
        else:
            parameters[name] = tuple(source.shape)
    named: Mapping[str, tuple[int | str, ...]] = shapes
    if not graph.decisions.of_shapes():
        named = free_sizes(graph.outputs, parameters, shapes)
    write_inputs(symbol_file, {name: InputSpec(dtypes[name], named[name], shapes[name]) for name in shapes})


def write_inputs(symbol_file: str, specs: Mapping[str, InputSpec]) -> None:
    """Writes inputs into a graph's file. Raises FileError."""
    graph: dict[str, Any] = json.loads(read_text(symbol_file, "export"))
    facts = {
        name: {"dtype": spec.dtype, "shape": list(spec.shape), "example": list(spec.example)}
        for name, spec in specs.items()
    }
    text = json.dumps(facts, ensure_ascii=False)
    graph["attrs"] = {**graph.get("attrs", {}), _IN_FILE: ["str", text]}
    with replacing(symbol_file, "export") as file:
        file.write(json.dumps(graph, indent=2, ensure_ascii=False).encode("utf-8", "surrogatepass"))


def read_inputs(symbol_file: str) -> dict[str, InputSpec]:
    """Returns the inputs that a graph's file describes; {} if it describes none. Raises FileError, FormatError."""
    try:
        graph = json.loads(read_text(symbol_file, "inputs"))
        attributes = graph.get("attrs", {})
        if _IN_FILE not in attributes:
            return {}
        kind, text = attributes[_IN_FILE]
        if kind != "str":
            raise _damaged(symbol_file, f"its type is {kind!r}")
        return {str(name): _spec(fact) for name, fact in json.loads(text).items()}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise error if isinstance(error, FormatError) else _damaged(symbol_file, str(error)) from error


def _damaged(symbol_file: str, reason: str) -> FormatError:
    return FormatError(
        f"'{symbol_file}': attribute {_IN_FILE!r} of the graph",
        expected='{"NAME": {"dtype": TEXT, "shape": [size or name, ...], "example": [size, ...]}}',
        because=reason,
        fix="export the model again, or remove the attribute and give --shape",
    )


def _spec(fact: Any) -> InputSpec:
    dtype = str(fact["dtype"])
    shape, example = tuple(fact["shape"]), tuple(fact["example"])
    fixed = [(size, own) for size, own in zip(shape, example, strict=True) if not isinstance(size, str)]
    if not all(type(size) is int and 0 <= size < 1 << 62 for size in example) or any(a != b for a, b in fixed):
        raise HybridNetValueError(f"the sizes {list(shape)} and {list(example)} disagree")
    return InputSpec(dtype, shape, example)

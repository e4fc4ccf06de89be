"""The inputs that an ONNX file declares, written into the file of the converted graph (docs/formats.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..gluon._input_specs import InputSpec, write_inputs
from ._package import onnx

__all__ = ["record_inputs"]


def record_inputs(graph_file: str, proto: Any, names: list[str], input_shapes: Mapping[str, Any] | None) -> None:
    """Writes dtypes and shapes of inputs into a graph's file, if the ONNX file declares those of all. Raises FileError.

    names: the inputs of the graph. Sizes that the file leaves open are free, under its own names; their example is 1.
    """
    declared = {value.name: value.type.tensor_type for value in proto.graph.input if value.type.HasField("tensor_type")}
    specs = {name: _spec(name, declared[name], input_shapes or {}) for name in names if name in declared}
    found = {name: spec for name, spec in specs.items() if spec is not None}
    if found and len(found) == len(names):
        write_inputs(graph_file, found)


def _spec(name: str, tensor: Any, input_shapes: Mapping[str, Any]) -> InputSpec | None:
    """Returns the spec of an input; None if its number of axes is not known."""
    if not tensor.HasField("shape") and input_shapes.get(name) is None:
        return None
    axes = tensor.shape.dim if tensor.HasField("shape") else []
    sizes = [axis.dim_value if axis.HasField("dim_value") else axis.dim_param or None for axis in axes]
    if input_shapes.get(name) is not None:
        sizes = list(input_shapes[name])
    if not all(size is None or isinstance(size, (int, str)) for size in sizes):
        return None
    shape = tuple(f"{name}_{i}" if size is None else size for i, size in enumerate(sizes))
    dtype = np.dtype(onnx().helper.tensor_dtype_to_np_dtype(tensor.elem_type))
    return InputSpec(dtype.name, shape, tuple(1 if isinstance(size, str) else int(size) for size in shape))

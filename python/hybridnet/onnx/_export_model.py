"""The model that is exported: a Symbol with its parameters, from a Symbol, from files or from a block."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .. import _core, autograd, ndarray
from ..errors import TypeError as HybridNetTypeError
from ..errors import ValueError as HybridNetValueError
from ..gluon import HybridBlock
from ..gluon._hybrid_block import flatten_arguments
from ..gluon._program_trace import trace_once
from ..gluon.parameter import Parameter
from ..ndarray import NDArray
from ..ndarray._dtypes import numpy_dtype
from ..symbol import Symbol
from ..symbol import load as load_symbol

__all__ = ["Input", "Model", "checked_shapes", "model_of"]

_LABELS = {"SoftmaxOutput", "LinearRegressionOutput", "LogisticRegressionOutput", "MAERegressionOutput", "SVMOutput"}


@dataclass
class Input:
    """An input of the model: its sizes (None: not known), the names of its open sizes by axis, and its dtype."""

    name: str
    shape: tuple[int | None, ...] | None
    dtype: str
    open_axes: dict[int, str] = field(default_factory=dict)


@dataclass
class Model:
    """A Symbol in prediction mode, its inputs, and its parameters as arrays."""

    symbol: Symbol
    inputs: list[Input]
    labels: list[str]
    params: dict[str, np.ndarray]
    name: str


def model_of(sym: Any, params: Any, in_shapes: Any, in_types: Any) -> Model:
    """Reads the arguments of export_model."""
    if isinstance(sym, HybridBlock):
        return _of_block(sym, in_shapes, in_types)
    name = "hybridnet"
    if isinstance(sym, (str, os.PathLike)):
        name = os.path.basename(os.fspath(sym)).removesuffix(".json").removesuffix("-symbol")
        sym = load_symbol(os.fspath(sym))
    if not isinstance(sym, Symbol):
        raise HybridNetTypeError(
            f"onnx.export_model: sym is of type {type(sym).__name__}", expected="a Symbol, a path or a HybridBlock"
        )
    if params is None:
        params = {}
    if isinstance(params, (str, os.PathLike)):
        params = _named_arrays(os.fspath(params))
    if not isinstance(params, Mapping):
        raise HybridNetTypeError(
            f"onnx.export_model: params is of type {type(params).__name__}", expected="a dict of arrays, or a path"
        )
    arrays = {key.split(":", 1)[-1] if key[:4] in ("arg:", "aux:") else key: value for key, value in params.items()}
    arrays.update(_core.symbol_constants(sym))
    names = sym.list_inputs()
    known = {key: _as_numpy(value) for key, value in arrays.items() if key in names}
    labels = _labels_of(sym)
    data = [key for key in names if key not in known]
    shapes, labels = _shapes_by_name(data, labels, in_shapes)
    dtypes = _dtypes_by_name(data, in_types)
    inferred = _inferred_shapes(sym, known, [key for key in data if key not in shapes])
    inputs = [Input(key, shapes.get(key, inferred.get(key)), dtypes[key]) for key in data if key not in labels]
    return Model(sym, inputs, [key for key in data if key in labels], known, name)


def _named_arrays(path: str) -> dict[str, NDArray]:
    arrays = ndarray.load(path)
    if not isinstance(arrays, dict):
        if not arrays:  # the file of a graph without parameters
            return {}
        raise HybridNetValueError(
            f"onnx.export_model: the arrays of '{path}' have no names", fix="give a file of parameters, or a dict"
        )
    return arrays


def _inferred_shapes(symbol: Symbol, params: Mapping[str, np.ndarray], names: Sequence[str]) -> dict[str, Any]:
    """Shapes of inputs that follow from declarations and from those of parameters."""
    if not names:
        return {}
    found, _, _ = symbol.infer_shape_partial(**{name: array.shape for name, array in params.items()})
    by_name = dict(zip(symbol.list_arguments(), found, strict=True))
    return {name: by_name[name] for name in names if by_name.get(name) and 0 not in by_name[name]}


def _as_numpy(array: Any) -> np.ndarray:
    if isinstance(array, NDArray):
        return (array.tostype("default") if array.stype != "default" else array).asnumpy()
    return np.asarray(array)


# -------------------------------------------------------------------------------------------------------------- blocks
def _of_block(block: HybridBlock, in_shapes: Any, in_types: Any) -> Model:
    graph, specs = _traced(block, in_shapes, in_types)
    graph.check_export()
    params = {}
    for name, (is_input, param) in zip(graph.outputs.list_inputs(), graph.sources, strict=False):
        if not is_input:
            params[name] = _as_numpy(param._reduce() if isinstance(param, Parameter) else param)
    params.update({name: _as_numpy(array) for name, array in _core.symbol_constants(graph.outputs).items()})
    names = [str(variable.name) for variable in graph.inputs]
    shapes = _listed(names, in_shapes, "in_shapes") if in_shapes is not None else {}
    dtypes = _dtypes_by_name(names, in_types)
    inputs = []
    for position, name in enumerate(names):
        shape, dtype = specs[position] if specs is not None else (None, dtypes[name])
        inputs.append(Input(name, shapes.get(name) or shape, np.dtype(dtype).name))
    return Model(graph.outputs, inputs, [], params, block.name)


def _traced(block: HybridBlock, in_shapes: Any, in_types: Any) -> tuple[Any, Any]:
    """The graph of a block's last call, and the shapes and dtypes of its inputs; or the graph for the given shapes."""
    if block._last_graph is not None:
        graph = block._graph_to_export()
        return graph, None if block._last_inputs is None else block._last_inputs[1]
    if in_shapes is None:
        raise HybridNetValueError(
            f"onnx.export_model: block '{block.name}' has no graph",
            because="it was not hybridized, or not called since",
            fix="call block.hybridize() and then block(x), or give in_shapes",
        )
    shapes = [in_shapes] if _is_shape(in_shapes) else list(in_shapes)
    dtypes = _dtypes_by_name([str(i) for i in range(len(shapes))], in_types)
    arrays: list[Any] = []
    arguments = tuple(
        ndarray.zeros(tuple(2 if not isinstance(size, int) else size for size in shape), dtype=dtypes[str(i)])
        for i, shape in enumerate(shapes)
    )
    key = flatten_arguments(arguments, arrays)
    with autograd.pause(train_mode=False):
        graph, scope, _ = trace_once(block, key, arrays)
    block._learn_shapes(scope)
    return graph, [(array.shape, array.dtype) for array in arrays]


# -------------------------------------------------------------------------------------------------------------- inputs
def _labels_of(symbol: Symbol) -> set[str]:
    """Variables that only losses read, as their label: prediction does not need them."""
    graph = json.loads(symbol.tojson())
    readers: dict[int, list[bool]] = {}
    for node in graph["nodes"]:
        for place, entry in enumerate(node["inputs"]):
            readers.setdefault(entry[0], []).append(node["op"] in _LABELS and place == 1)
    nodes = graph["nodes"]
    return {nodes[i]["name"] for i, reads in readers.items() if nodes[i]["op"] == "null" and all(reads)}


def checked_shapes(values: Any, argument: str) -> Any:
    """Shapes by name, one shape, or a list of shapes, with sizes as ints, None or names."""
    if values is None:
        return None
    if isinstance(values, Mapping):
        return {name: None if shape is None else _checked_shape(shape, argument) for name, shape in values.items()}
    if not isinstance(values, (tuple, list)):
        raise _no_shape(values, argument)
    if values and all(shape is None or isinstance(shape, (tuple, list)) for shape in values):
        return [None if shape is None else _checked_shape(shape, argument) for shape in values]
    return _checked_shape(values, argument) if values else values


def _checked_shape(shape: Any, argument: str) -> tuple[Any, ...]:
    if not isinstance(shape, (tuple, list)):
        raise _no_shape(shape, argument)
    sizes: list[Any] = []
    for size in shape:
        if isinstance(size, bool) or not (size is None or isinstance(size, (int, np.integer, str))):
            raise _no_shape(shape, argument)
        if not isinstance(size, str) and size is not None and size < 0:
            raise HybridNetValueError(
                f"onnx.export_model: {argument} holds {shape}",
                expected="sizes from 0 on",
                fix="None leaves a size open",
            )
        sizes.append(int(size) if isinstance(size, np.integer) else size)
    return tuple(sizes)


def _no_shape(value: Any, argument: str) -> HybridNetTypeError:
    return HybridNetTypeError(
        f"onnx.export_model: {argument} holds {value!r}",
        expected="shapes, tuples of integers, None and names",
        fix=f"{argument}=[(1, 3, 224, 224)], one for each input, or a dict by name",
    )


def _is_shape(value: Any) -> bool:
    return isinstance(value, (tuple, list)) and all(size is None or isinstance(size, (int, str)) for size in value)


def _listed(names: Sequence[str], values: Any, argument: str) -> dict[str, Any]:
    """Values by name, from a dict, one value, or one for each name."""
    if isinstance(values, Mapping):
        unknown = [name for name in values if name not in names]
        if unknown:
            raise HybridNetValueError(
                f"onnx.export_model: {argument} names '{unknown[0]}'", expected=", ".join(names) or "no input"
            )
        return dict(values)
    values = [values] if _is_shape(values) and not (values == [] and names == []) else list(values)
    if len(values) != len(names):
        raise HybridNetValueError(
            f"onnx.export_model: {argument} has {len(values)} items", expected=f"{len(names)}: {', '.join(names)}"
        )
    return dict(zip(names, values, strict=True))


def _shapes_by_name(names: Sequence[str], labels: set[str], in_shapes: Any) -> tuple[dict[str, Any], set[str]]:
    """The shapes that were given, and the labels that are left out of the file."""
    if in_shapes is None:
        return {}, labels
    if isinstance(in_shapes, Mapping):
        return _listed(names, in_shapes, "in_shapes"), labels - set(in_shapes)
    without = [name for name in names if name not in labels]
    count = 1 if _is_shape(in_shapes) else len(in_shapes)
    chosen = names if count == len(names) else without
    return _listed(chosen, in_shapes, "in_shapes"), labels if chosen is without else set()


def _dtypes_by_name(names: Sequence[str], in_types: Any) -> dict[str, str]:
    if isinstance(in_types, Mapping):
        return {name: np.dtype(numpy_dtype(in_types.get(name, "float32"))).name for name in names}
    if isinstance(in_types, (list, tuple)):
        if len(in_types) not in (1, len(names)):
            raise HybridNetValueError(
                f"onnx.export_model: in_types has {len(in_types)} items", expected=f"{len(names)}: {', '.join(names)}"
            )
        given = list(in_types) * (len(names) if len(in_types) == 1 else 1)
        return {name: np.dtype(numpy_dtype(dtype)).name for name, dtype in zip(names, given, strict=True)}
    return dict.fromkeys(names, np.dtype(numpy_dtype(in_types)).name)

"""Importing ONNX files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..context import Context, cpu
from ..errors import FileError, HybridNetError
from ..gluon import SymbolBlock
from ..ndarray import NDArray, array, save
from ..symbol import load_json, var
from ._errors import refuse
from ._importer import Imported, import_graph
from ._package import onnx
from ._recorded_inputs import record_inputs

__all__ = ["block_of", "convert", "get_model_metadata", "import_model", "import_to_gluon", "load_model"]


def load_model(model: Any) -> tuple[Any, str]:
    """The ModelProto of a file, of bytes, or of a ModelProto; and the folder of its external data."""
    if isinstance(model, onnx().ModelProto):
        return model, ""
    if isinstance(model, bytes):
        return _parsed(lambda: onnx().load_model_from_string(model), "the bytes"), ""
    path = Path(os.fspath(model))
    if not path.is_file():
        raise FileError(f"no file '{path}'", fix="check the path")
    return _parsed(lambda: onnx().load(path, load_external_data=False), f"the file '{path}'"), str(path.parent)


def _parsed(read: Any, name: str) -> Any:
    try:
        model = read()
    except Exception as error:
        raise FileError(f"{name} is not an ONNX model", because=str(error)[:200]) from error
    if not model.HasField("graph"):
        raise FileError(f"{name} holds no graph", fix="save the model again")
    return model


def _imported(model: Any, input_shapes: Mapping[str, Any] | None) -> Imported:
    proto, folder = load_model(model)
    return import_graph(proto, folder, input_shapes)


def block_of(made: Imported, ctx: Context) -> SymbolBlock:
    """The block of an imported graph, with its parameters."""
    block = SymbolBlock(made.symbol, [var(name, dtype=dtype) for name, _, dtype in made.inputs])
    for name, parameter in block.collect_params().items():
        value = made.params[name]
        parameter.dtype = value.dtype
        parameter.shape = value.shape
        if name in made.frozen:
            parameter.grad_req = "null"
        parameter.initialize(ctx=ctx)
        parameter.set_data(array(value, dtype=value.dtype))
    return block


def import_model(
    model_file: Any, input_shapes: Mapping[str, Any] | None = None
) -> tuple[Any, dict[str, NDArray], dict[str, NDArray]]:
    """Imports an ONNX model.

    Parameters
    ----------
    model_file : path, bytes or onnx.ModelProto
        The model. Tensors that it keeps in other files are read from its folder.
    input_shapes : dict of str to tuple, optional
        Shapes of inputs by name, with None for axes whose size may vary: for files that do not say them, and to fix
        sizes that the file leaves open. For an input that is a sequence, a list with the shapes of its items, which are
        inputs of their own: `x_0`, `x_1`. For an optional value that is absent, None.

    Returns
    -------
    sym : Symbol
        The graph; its inputs have the names of the file's inputs, and sizes that the file leaves open may vary. An
        output that is a sequence gives one output for each item.
    arg_params, aux_params : dict of str to NDArray
        Parameters, and auxiliary states such as the running means of BatchNorm.

    Raises UnsupportedError for an operator without a form and ValueError for a file that breaks the rules of ONNX;
    both name the node. Raises FileError if the file cannot be read.
    """
    made = _imported(model_file, input_shapes)
    args = {name: array(value, dtype=value.dtype) for name, value in made.params.items() if name not in made.states}
    aux = {name: array(value, dtype=value.dtype) for name, value in made.params.items() if name in made.states}
    return made.symbol, args, aux


def import_to_gluon(
    model_file: Any, ctx: Context | None = None, input_shapes: Mapping[str, Any] | None = None
) -> SymbolBlock:
    """Imports an ONNX model as a block, with its parameters, which can be trained.

    Parameters
    ----------
    model_file, input_shapes
        As in import_model.
    ctx : Context, optional
        The device of the parameters; the CPU by default.
    """
    return block_of(_imported(model_file, input_shapes), ctx or cpu())


def convert(model_file: Any, prefix: str, input_shapes: Mapping[str, Any] | None = None) -> tuple[str, str]:
    """Converts an ONNX model to the two files that Python, C++ and Java load.

    Writes `prefix`-symbol.json and `prefix`-0000.params and returns their paths. Parameters: as in import_model.
    """
    symbol, args, aux = import_model(model_file, input_shapes)
    try:
        load_json(symbol.tojson())
    except HybridNetError as error:
        raise refuse(
            "the imported graph cannot be loaded from a file", because=str(error), fix="use import_to_gluon"
        ) from error
    graph_file, parameter_file = f"{prefix}-symbol.json", f"{prefix}-0000.params"
    symbol.save(graph_file)
    arrays = {f"arg:{name}": value for name, value in args.items()}
    arrays.update({f"aux:{name}": value for name, value in aux.items()})
    save(parameter_file, arrays)
    inputs = [name for name in symbol.list_inputs() if name not in args and name not in aux]
    record_inputs(graph_file, load_model(model_file)[0], inputs, input_shapes)
    return graph_file, parameter_file


def get_model_metadata(model_file: Any) -> dict[str, list[tuple[str, tuple[Any, ...]]]]:
    """Names and shapes of a model's inputs and outputs.

    Returns {"input_tensor_data": [(name, shape), ...], "output_tensor_data": [...]}; a size that may vary is 0, as in
    MXNet.
    """
    proto, _ = load_model(model_file)
    known = {tensor.name for tensor in proto.graph.initializer}

    def described(values: Any) -> list[tuple[str, tuple[Any, ...]]]:
        return [
            (value.name, tuple(axis.dim_value for axis in value.type.tensor_type.shape.dim))
            for value in values
            if value.name not in known
        ]

    return {"input_tensor_data": described(proto.graph.input), "output_tensor_data": described(proto.graph.output)}

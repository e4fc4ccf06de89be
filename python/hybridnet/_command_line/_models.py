"""Models as command arguments: two files, shapes of inputs, values of inputs."""

from __future__ import annotations

import argparse
import glob
import os
import re
import tempfile
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import ndarray, symbol
from .._files import read_bytes
from ..errors import FileError, ParamError, ShapeError
from ..ndarray._dtypes import numpy_dtype

__all__ = ["Model", "add_model_arguments", "add_shape_argument", "open_model", "random_value", "shapes_of"]

_GRAPH = "-symbol.json"


@dataclass
class Model:
    """A graph and the arrays of its parameter file (if any)."""

    path: str
    parameter_path: str | None
    symbol: symbol.Symbol
    parameters: dict[str, ndarray.NDArray]  # arguments and auxiliary states by name
    folder: Any = None  # temporary, of a converted file

    @property
    def inputs(self) -> list[str]:
        """The variables that are not in the parameter file, in the graph's order."""
        return [name for name in self.symbol.list_inputs() if name not in self.parameters]

    def block(self, train: bool = False) -> Any:
        """Returns a SymbolBlock of both files, not hybridized. Raises ParameterLoadError if they do not match."""
        from ..gluon import SymbolBlock

        return SymbolBlock.imports(self.path, self.inputs, self.parameter_path)


def add_model_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds FILE and --params."""
    parser.add_argument("file", metavar="FILE", help="PREFIX-symbol.json, PREFIX, or a file of ONNX")
    parser.add_argument("--params", metavar="FILE", help="default: the last PREFIX-NNNN.params beside it")


def add_shape_argument(parser: argparse.ArgumentParser) -> None:
    """Adds --shape, repeatable for several inputs."""
    parser.add_argument(
        "--shape",
        action="append",
        default=[],
        metavar="[NAME=]SIZES[:DTYPE]",
        help="shape of an input: data=1,3,224,224 or ids=1,128:int32; the only input needs no name",
    )


def open_model(options: argparse.Namespace) -> Model:
    """Reads both files of the options. Raises FileError, FormatError."""
    return read_model(options.file, getattr(options, "params", None))


def read_model(file: str, parameter_file: str | None = None) -> Model:
    """Same as open_model, with file names."""
    if file.endswith(".onnx"):
        return _converted(file)
    path = file if os.path.exists(file) or file.endswith(".json") else file + _GRAPH
    graph = symbol.load(path)
    if parameter_file is None and path.endswith(_GRAPH):
        found = sorted(glob.glob(glob.escape(path[: -len(_GRAPH)]) + "-[0-9][0-9][0-9][0-9].params"))
        parameter_file = found[-1] if found else None
    parameters = {} if parameter_file is None else _parameters(parameter_file)
    return Model(path, parameter_file, graph, parameters)


def _converted(file: str) -> Model:
    """Reads a file of ONNX by way of the two files that it converts to, which live as long as the model."""
    from ..onnx import convert

    folder = tempfile.TemporaryDirectory(prefix="hybridnet-onnx-")
    model = read_model(*convert(file, os.path.join(folder.name, "model")))
    model.folder = folder
    return model


def _parameters(path: str) -> dict[str, ndarray.NDArray]:
    if not os.path.exists(path):
        raise FileError(f"there is no parameter file '{path}'")
    arrays = ndarray.load(path)
    if not isinstance(arrays, dict):
        if not arrays:  # a model without parameters
            return {}
        raise ParamError(f"'{path}' holds arrays without names", fix="give the file that export() wrote")
    return {re.sub("^(arg|aux):", "", name): array for name, array in arrays.items()}


def _named(text: str, model: Model, what: str) -> tuple[str, str]:
    """Splits [NAME=]REST into (input, rest)."""
    name, equals, rest = text.partition("=")
    if not equals:
        name, rest = "", text
        if len(model.inputs) == 1:
            name = model.inputs[0]
    if name not in model.inputs:
        raise ParamError(
            f"{what} {text!r}", expected=f"NAME= in front, with one of {', '.join(model.inputs) or '(no inputs)'}"
        )
    return name, rest


def shapes_of(model: Model, texts: list[str]) -> dict[str, tuple[tuple[int, ...], np.dtype]]:
    """Returns shape and dtype of every input: from --shape, else from the graph. Raises ShapeError if unknown."""
    found: dict[str, tuple[tuple[int, ...], np.dtype]] = {}
    for text in texts:
        name, rest = _named(text, model, "--shape")
        sizes, _, dtype = rest.partition(":")
        if not re.fullmatch(r"\(?\s*(\d+\s*(,\s*\d+\s*)*,?)?\s*\)?", sizes):
            raise ParamError(f"--shape {text!r}", expected="sizes with commas between them, such as 1,3,224,224")
        found[name] = tuple(int(size) for size in re.findall(r"\d+", sizes)), numpy_dtype(dtype or "float32")
    missing = [name for name in model.inputs if name not in found]
    if missing:
        found.update(_inferred(model, missing, found))
    return found


def _inferred(
    model: Model, missing: list[str], given: dict[str, tuple[tuple[int, ...], np.dtype]]
) -> dict[str, tuple[tuple[int, ...], np.dtype]]:
    known = {name: array.shape for name, array in model.parameters.items()}
    known.update({name: shape for name, (shape, _) in given.items()})
    arguments, _, _ = model.symbol.infer_shape_partial(**known)
    shapes = dict(zip(model.symbol.list_arguments(), arguments, strict=True))
    types = dict(zip(model.symbol.list_arguments(), model.symbol.infer_type_partial()[0], strict=True))
    found = {}
    for name in missing:
        shape = shapes.get(name)
        if shape is None or len(shape) == 0 or any(size <= 0 for size in shape):
            form = f" (known of it: {shape})" if shape else ""
            raise ShapeError(
                f"'{model.path}' does not contain the shape of its input {name!r}{form}",
                fix=f"give --shape {name}=SIZES, such as --shape {name}=1,3,224,224",
            )
        found[name] = tuple(shape), np.dtype(types.get(name) or np.float32)
    return found


def random_value(shape: tuple[int, ...], dtype: np.dtype, seed: int) -> ndarray.NDArray:
    """Returns normal numbers; for integer types 0 and 1, which are valid rows of every table."""
    draw = np.random.default_rng(seed)
    values = draw.standard_normal(shape) if dtype.kind in "fV" else draw.integers(0, 2, shape)
    return ndarray.array(np.asarray(values).astype(dtype), dtype=dtype)


def values_of(model: Model, texts: list[str]) -> dict[str, ndarray.NDArray]:
    """Reads inputs from NumPy files: [NAME=]FILE each, .npy, or .npz with the inputs' names in it."""
    found: dict[str, ndarray.NDArray] = {}
    for text in texts:
        if text.endswith(".npz") and "=" not in text:
            arrays = ndarray.load(text) if read_bytes(text, "--input") else {}
            assert isinstance(arrays, dict)
            found.update({name: array for name, array in arrays.items() if name in model.inputs})
            continue
        name, path = _named(text, model, "--input")
        if not os.path.exists(path):
            raise FileError(f"--input {name}: there is no file '{path}'")
        arrays = ndarray.load(path)
        found[name] = next(iter(arrays.values() if isinstance(arrays, dict) else arrays))
    missing = [name for name in model.inputs if name not in found]
    if missing:
        raise ParamError(
            f"'{model.path}' needs a value of {', '.join(missing)}", fix=f"give --input {missing[0]}=FILE.npy"
        )
    return found

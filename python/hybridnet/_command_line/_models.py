"""Models as command arguments: graph, parameters, recorded inputs, values of inputs."""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .. import ndarray, symbol
from .._files import read_bytes
from ..context import Context, cpu
from ..errors import DTypeError, FileError, HybridNetError, ParamError, ShapeError
from ..gluon._input_specs import InputSpec, read_inputs
from ..ndarray._dtypes import numpy_dtype
from ..ndarray._lost_values import lost_value
from ._devices import add_context_argument, context_of
from ._model_paths import GRAPH_ENDING, find_files, is_model_of_onnx, parameter_files

__all__ = ["Model", "add_model_arguments", "named_input", "open_model", "random_value", "read_model", "values_of"]


@dataclass
class Model:
    """A graph and the arrays of its parameter file (if any)."""

    path: str
    parameter_path: str | None
    symbol: symbol.Symbol
    parameters: dict[str, ndarray.NDArray]  # arguments and auxiliary states by name
    specs: dict[str, InputSpec] = field(default_factory=dict)  # inputs as the graph's file describes them, if it does
    folder: Any = None  # temporary, of a converted file
    ctx: Context = field(default_factory=cpu)  # the device of block()

    @property
    def inputs(self) -> list[str]:
        """The inputs that the file names, else the variables without parameters, in the graph's order."""
        return [name for name in self.symbol.list_inputs() if self._is_input(name)]

    def _is_input(self, name: str) -> bool:
        return name in self.specs if self.specs else name not in self.parameters

    def check_complete(self) -> Model:
        """Returns itself. Raises FileError if the parameters are missing."""
        missing = [name for name in self.symbol.list_inputs() if not self._is_input(name)]
        if self.parameter_path is None and missing:
            raise FileError(
                f"the parameters of '{self.path}' are missing ({_first(missing)})",
                because=f"there is no {self.path.removesuffix(GRAPH_ENDING)}-NNNN.params",
                fix="give the parameter file, too",
            )
        return self

    def block(self, train: bool = False) -> Any:
        """Returns a SymbolBlock of both files, not hybridized. Raises ParameterLoadError if they do not match."""
        from ..gluon import SymbolBlock

        return SymbolBlock.imports(self.path, self.inputs, self.parameter_path, ctx=self.ctx)


def add_model_arguments(parser: argparse.ArgumentParser, has_device: bool = False) -> None:
    """Adds FILE, --params and --epoch; has_device: and --ctx."""
    parser.add_argument(
        "file",
        metavar="FILE",
        nargs="+",
        help="PREFIX, PREFIX-symbol.json, PREFIX-0000.params, both files in any order, or a file of ONNX",
    )
    parser.add_argument("--params", metavar="FILE", help="default: the last PREFIX-NNNN.params beside the graph")
    parser.add_argument("--epoch", type=int, metavar="N", help="the parameters PREFIX-NNNN.params of this number")
    if has_device:
        add_context_argument(parser)


def open_model(options: argparse.Namespace) -> Model:
    """Reads both files of the options. Raises FileError, also for missing parameters, FormatError, ParamError.

    Raises UnsupportedError if --ctx names a GPU that does not exist.
    """
    ctx = context_of(options)
    model = read_model(options.file, options.params, options.epoch).check_complete()
    model.ctx = ctx
    return model


def read_model(words: Sequence[str], parameter_file: str | None = None, epoch: int | None = None) -> Model:
    """Same as open_model, with the words of a command line; a graph alone is a model, too."""
    if is_model_of_onnx(words):
        return _converted(words[0])
    path, parameter_file = find_files(words, parameter_file, epoch)
    graph = symbol.load(path)
    parameters = {} if parameter_file is None else _parameters(parameter_file)
    model = Model(path, parameter_file, graph, parameters, read_inputs(path))
    _check_parameters(model)
    return model


def _check_parameters(model: Model) -> None:
    """Raises ParamError for parameters of another model."""
    if model.parameter_path is None:
        return
    variables = model.symbol.list_inputs()
    wanted = [name for name in variables if name not in model.specs]
    missing = [name for name in wanted if name not in model.parameters] if model.specs else []
    unknown = [name for name in model.parameters if name not in variables]
    if missing or (unknown and len(unknown) == len(model.parameters)):
        given = [name for name in model.parameters if name not in wanted] or list(model.parameters)
        raise _of_another(model, expected=_first(missing or wanted), given=_first(given) or "no arrays")
    try:
        model.symbol.infer_shape_partial(**{n: a.shape for n, a in model.parameters.items() if n in variables})
    except HybridNetError as error:
        raise _of_another(model, because=str(error).partition("\n")[0]) from error


def _of_another(model: Model, **parts: str) -> ParamError:
    prefix = model.path.removesuffix(GRAPH_ENDING)
    others = [path for path in parameter_files(prefix) if path != model.parameter_path]
    return ParamError(
        f"'{model.parameter_path}' holds parameters of another model than '{model.path}'",
        fix=f"give the file that was written with it; there is {_first(others)}"
        if others
        else "give the two files of one export",
        **parts,
    )


def _first(names: Sequence[str], most: int = 4) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _converted(file: str) -> Model:
    """Reads a file of ONNX by way of the two files that it converts to, which live as long as the model."""
    from ..onnx import convert

    folder = tempfile.TemporaryDirectory(prefix="hybridnet-onnx-")
    model = read_model(convert(file, os.path.join(folder.name, "model")))
    model.folder = folder
    return model


def _parameters(path: str) -> dict[str, ndarray.NDArray]:
    arrays = ndarray.load(path)
    if not isinstance(arrays, dict):
        if not arrays:  # a model without parameters
            return {}
        raise ParamError(f"'{path}' holds arrays without names", fix="give the file that export() wrote")
    return {re.sub("^(arg|aux):", "", name): array for name, array in arrays.items()}


def named_input(text: str, model: Model, option: str) -> tuple[str, str]:
    """Splits [NAME=]REST into (input, rest). Raises ParamError for an unknown name."""
    name, equals, rest = text.partition("=")
    if not equals:
        name, rest = "", text
        if len(model.inputs) == 1:
            name = model.inputs[0]
    if name not in model.inputs:
        raise ParamError(
            f"{option} {text!r}", expected=f"NAME= in front, with one of {', '.join(model.inputs) or '(no inputs)'}"
        )
    return name, rest


def random_value(shape: tuple[int, ...], dtype: np.dtype, seed: int) -> ndarray.NDArray:
    """Returns normal numbers; for integer types 0 and 1, which are valid rows of every table."""
    draw = np.random.default_rng(seed)
    values = draw.standard_normal(shape) if dtype.kind in "fV" else draw.integers(0, 2, shape)
    return ndarray.array(np.asarray(values).astype(dtype), dtype=dtype)


def _arrays_of(text: str, model: Model) -> dict[str, ndarray.NDArray]:
    """Returns the values of the inputs that one --input names."""
    if text.endswith(".npz") and "=" not in text:
        arrays = ndarray.load(text) if read_bytes(text, "--input") else {}
        assert isinstance(arrays, dict)
        return {name: array for name, array in arrays.items() if name in model.inputs}
    name, path = named_input(text, model, "--input")
    if not os.path.exists(path):
        raise FileError(f"--input {name}: there is no file '{path}'")
    arrays = ndarray.load(path)
    return {name: next(iter(arrays.values() if isinstance(arrays, dict) else arrays))}


def values_of(model: Model, texts: list[str]) -> dict[str, ndarray.NDArray]:
    """Reads inputs from NumPy files: [NAME=]FILE each, .npy, or .npz with the inputs' names in it."""
    found: dict[str, ndarray.NDArray] = {}
    for text in texts:
        for name, array in _arrays_of(text, model).items():
            if name in found:
                raise ParamError(f"--input {text!r}: input {name!r} is given twice", fix="give one file for each input")
            found[name] = array
    missing = [name for name in model.inputs if name not in found]
    if missing:
        raise ParamError(
            f"'{model.path}' needs a value of {', '.join(missing)}", fix=f"give --input {missing[0]}=FILE.npy"
        )
    return {name: _as_recorded(name, value, model.specs.get(name)) for name, value in found.items()}


def _as_recorded(name: str, value: ndarray.NDArray, spec: InputSpec | None) -> ndarray.NDArray:
    """Returns a value in the dtype of the file. Numbers of another width are converted, and a note says so.

    Raises DTypeError for another kind of numbers, ParamError for numbers that the dtype cannot hold, ShapeError for a
    shape that the model does not take.
    """
    if spec is None:
        return value
    shape, dtype, wanted = tuple(value.shape), np.dtype(value.dtype), numpy_dtype(spec.dtype)
    fits = len(shape) == len(spec.shape) and all(
        isinstance(size, str) or size == own for size, own in zip(spec.shape, shape, strict=True)
    )
    if not fits and spec.has_free:  # without free sizes the file describes one call, and others may work
        raise ShapeError(f"--input {name}", expected=f"shape {spec}", given=str(shape))
    if dtype == wanted:
        return value
    is_close = dtype.kind == wanted.kind or (wanted.kind in "fV" and dtype.kind in "fViu")  # V: bfloat16
    if not is_close:
        raise DTypeError(
            f"--input {name}", expected=wanted.name, given=dtype.name, fix=f"save the array as {wanted.name}"
        )
    return _converted_value(name, value, wanted)


def _converted_value(name: str, value: ndarray.NDArray, wanted: np.dtype) -> ndarray.NDArray:
    """Converts a value to another width. A note on the error stream says so. ParamError for numbers that do not fit."""
    array = value.asnumpy()
    lost = lost_value(array, wanted)
    if lost is not None:
        raise ParamError(
            f"--input {name}",
            expected=f"values that {wanted.name}, the dtype of the model's input, holds",
            given=f"{array.dtype.name} with the value {lost}",
            fix=f"change such values, or export the model with an example of {array.dtype.name}",
        )
    rounded = lost_value(array, wanted, exact=True)
    remark = "" if rounded is None else f", which rounds integers such as {rounded}"
    print(f"note: input {name} is converted from {array.dtype.name} to {wanted.name}{remark}", file=sys.stderr)
    return value.astype(wanted)

"""Converts models of ONNX, and files of arrays or parameters: .params, .npz, .npy, .safetensors.

`convert model.onnx PREFIX` writes PREFIX-symbol.json and PREFIX-0000.params, which Python, C++ and Java load; `convert
PREFIX model.onnx` writes the model as ONNX. Only .params keeps the prefixes "arg:" and "aux:" of names; --like restores
them from a graph.
"""

from __future__ import annotations

import argparse
import os
from typing import Any

import numpy as np

from .. import ndarray, symbol
from .._files import read_bytes
from ..errors import FileError, ParamError
from ..ndarray._foreign_files import FOREIGN_ENDINGS
from ._model_paths import find_files, is_model_of_onnx
from ._models import read_model
from ._output import answer, bytes_text
from ._shapes import add_shape_argument, shapes_of

_KINDS = (".params", *FOREIGN_ENDINGS)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments for the two files."""
    parser.add_argument(
        "source",
        metavar="IN",
        nargs="+",
        help="a file of arrays or of ONNX, or a model: PREFIX, one of its files, or both",
    )
    parser.add_argument(
        "target", metavar="OUT", help=f"its ending decides: {', '.join(_KINDS)}, .onnx; PREFIX for a model"
    )
    parser.add_argument("--like", metavar="PREFIX-symbol.json", help="graph that tells arguments from auxiliary states")
    add_shape_argument(parser)
    parser.add_argument("--force", action="store_true", help="replace OUT if it exists")


def _with_kinds(arrays: dict[str, Any], graph: symbol.Symbol) -> dict[str, Any]:
    states, variables = set(graph.list_auxiliary_states()), set(graph.list_inputs())
    unknown = [name for name in arrays if name not in variables]
    if unknown:
        raise ParamError(f"--like: the graph has no variable {unknown[0]!r}")
    return {f"{'aux' if name in states else 'arg'}:{name}": array for name, array in arrays.items()}


def _refuse_existing(options: argparse.Namespace, *paths: str) -> None:
    existing = [path for path in paths if os.path.exists(path)]
    if existing and not options.force:
        raise ParamError(f"convert: '{existing[0]}' exists", fix="give --force to replace it")


def _export_model(options: argparse.Namespace) -> int:
    from ..onnx import export_model

    _refuse_existing(options, options.target)
    model = read_model(options.source).check_complete()
    shapes = shapes_of(model, options.shape)
    export_model(
        model.symbol,
        model.parameters,
        {name: shape for name, (shape, _) in shapes.items()},
        {name: dtype.name for name, (_, dtype) in shapes.items()},
        options.target,
    )
    facts = {"file": options.target, "bytes": os.path.getsize(options.target)}
    answer(options, facts, f"{options.target}: {bytes_text(facts['bytes'])}")
    return 0


def _import_model(options: argparse.Namespace) -> int:
    from ..onnx import convert

    prefix = options.target.removesuffix("-symbol.json")
    _refuse_existing(options, f"{prefix}-symbol.json", f"{prefix}-0000.params")
    graph_file, parameter_file = convert(options.source[0], prefix)
    size = os.path.getsize(graph_file) + os.path.getsize(parameter_file)
    facts = {"graph": graph_file, "parameters": parameter_file, "bytes": size}
    answer(options, facts, f"{graph_file}, {parameter_file}: {bytes_text(size)}")
    return 0


def _file_of_arrays(words: list[str]) -> str:
    """Returns the file of arrays that the words name: itself, or the parameters of a model."""
    if len(words) == 1 and os.path.isfile(words[0]) and not words[0].endswith(".json"):
        return words[0]
    graph_file, parameter_file = find_files(words)
    if parameter_file is None:
        raise FileError(f"convert: there is no parameter file beside '{graph_file}'", fix="give the file of parameters")
    return parameter_file


def run(options: argparse.Namespace) -> int:
    """Reads IN, writes OUT."""
    if is_model_of_onnx(options.source):
        return _import_model(options)
    if options.target.endswith(".onnx"):
        return _export_model(options)
    kind = os.path.splitext(options.target)[1]
    if kind not in _KINDS:
        raise ParamError(f"convert: the ending of '{options.target}'", expected=f"one of {', '.join(_KINDS)}")
    _refuse_existing(options, options.target)
    source = _file_of_arrays(options.source)
    read_bytes(source, "convert")  # reports a missing file before guessing its format
    loaded = ndarray.load(source)
    arrays = loaded if isinstance(loaded, dict) else {f"arr_{i}": array for i, array in enumerate(loaded)}
    bare = {name.partition(":")[2] if name[:4] in ("arg:", "aux:") else name: array for name, array in arrays.items()}
    if len(bare) != len(arrays):
        raise ParamError(f"convert: '{source}' has a parameter and an auxiliary state of one name")
    if kind == ".params":
        bare = _with_kinds(bare, symbol.load(options.like)) if options.like else arrays
    ndarray.save(options.target, bare)
    size = os.path.getsize(options.target)
    facts = {"arrays": len(arrays), "elements": sum(int(np.prod(a.shape)) for a in arrays.values()), "bytes": size}
    answer(options, facts, f"{options.target}: {len(arrays)} arrays, {bytes_text(size)}")
    return 0

"""Exporting ONNX files."""

from __future__ import annotations

import importlib.util
import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import ParamError, ShapeError
from ..errors import TypeError as HybridNetTypeError
from ..errors import ValueError as HybridNetValueError
from ..rewrite import apply as apply_rewrites
from ._check import check_model
from ._export_errors import NotForOpenSizes
from ._export_functions import write_functions
from ._export_model import Input, Model, _listed, checked_shapes, model_of
from ._export_source import Source
from ._export_values import Spec, Tensor
from ._exporter import Exporter
from ._package import onnx
from ._writer import MOST_BYTES_INSIDE, Writer

__all__ = ["DEFAULT_OPSET", "OLDEST_OPSET", "export_model"]

# PyTorch's exporter writes opset 18, too. It is the first one with bitwise operators, Col2Im, and axes as inputs of all
# reductions; runtimes have it since February 2023.
DEFAULT_OPSET = 18
OLDEST_OPSET = 13

_LOG = logging.getLogger(__name__)
# Trial sizes of open axes, for each trial: small ones, odd and even, and some that images of several scales fit.
_SMALL = ((5, 7, 11, 13, 17, 19, 23, 29), (32, 38, 44, 46, 52, 58, 62, 64), (67, 71, 73, 79, 83, 89, 97, 101))
_IMAGES = (
    (64, 96, 160, 224, 288, 352, 416, 480),
    (128, 192, 256, 320, 384, 448, 512, 544),
    (576, 608, 640, 672, 704, 736, 768, 800),
)


def export_model(
    sym: Any,
    params: Any = None,
    in_shapes: Any = None,
    in_types: Any = np.float32,
    onnx_file_path: str | os.PathLike[str] = "model.onnx",
    verbose: bool = False,
    dynamic: bool = True,
    dynamic_input_shapes: Any = None,
    run_shape_inference: bool = False,
    input_type: Any = None,
    input_shape: Any = None,
    *,
    opset_version: int | None = None,
    check: bool | None = None,
    doc_string: str = "",
    functions: bool = False,
    external_data: bool | None = None,
) -> str:
    """Writes a model in prediction mode as an ONNX file.

    Parameters
    ----------
    sym : Symbol, path or HybridBlock
        The graph: a Symbol, a file ``...-symbol.json``, or a block, whose last hybridized call gives graph, shapes and
        dtypes of the inputs; a block without a call is traced with in_shapes.
    params : dict or path, optional
        Parameters by name, also with "arg:" and "aux:" before the names, or a file of them. Not for blocks.
    in_shapes : list of tuple, or dict of str to tuple, optional
        Shapes of the inputs, in the order of ``sym.list_inputs()`` without parameters. None or a name in place of a
        size leaves it open. Labels of losses may be left out: prediction does not read them.
    in_types : dtype, or list or dict of dtypes
        Element types of the inputs.
    onnx_file_path : path
        The file.
    verbose : bool
        Whether to log the open sizes, and the operators of the file.
    dynamic : bool
        Whether axis 0 of each input stays open, under the name "batch", where the graph allows it.
    dynamic_input_shapes : list of tuple, or dict of str to tuple, optional
        Shapes with None or a name for each open size, instead of axis 0. A name means one size at all places.
    run_shape_inference : bool
        Whether the file has the shapes of all values.
    input_type, input_shape
        Other names of in_types and in_shapes.
    opset_version : int, optional
        Opset of the file, from 13 on; default 18.
    check : bool, optional
        Whether ONNX's checker and ONNX Runtime run the file, at two sizes of the open axes, and its results are
        compared with the library's. Default: if onnxruntime is installed.
    doc_string : str
        Documentation of the graph in the file.
    functions : bool
        Whether blocks of equal structure are written once, as functions of the file.
    external_data : bool, optional
        Whether weights are in a second file, ``<onnx_file_path>.data``. Default: if they need more than 2 GB.

    Returns the path. Raises UnsupportedError, which names operator, node and block, for an operator that ONNX cannot
    express, ValueError for wrong arguments and for a check that fails.
    """
    in_shapes = checked_shapes(input_shape if input_shape is not None else in_shapes, "in_shapes")
    dynamic_input_shapes = checked_shapes(dynamic_input_shapes, "dynamic_input_shapes")
    in_types = input_type if input_type is not None else in_types
    opset = _checked_opset(opset_version)
    model = model_of(sym, params, in_shapes, in_types)
    made = _first_that_fits(model, dynamic, dynamic_input_shapes, opset)
    if functions:
        write_functions(made.exporter.writer)
    path = os.fspath(onnx_file_path)
    size = made.exporter.writer.bytes_of_constants
    external = size > MOST_BYTES_INSIDE if external_data is None else external_data
    made.exporter.writer.write(path, external, name=model.name, doc=doc_string, properties={})
    if run_shape_inference:
        onnx().shape_inference.infer_shapes_path(path, path, strict_mode=True)
    if verbose:
        _report(made, path)
    if check or (check is None and importlib.util.find_spec("onnxruntime") is not None):
        check_model(path, model, made.open_sizes, required=bool(check))
    return path


def _checked_opset(version: int | None) -> int:
    newest = int(onnx().defs.onnx_opset_version())
    if version is None:
        return min(DEFAULT_OPSET, newest)
    if isinstance(version, bool) or not isinstance(version, (int, np.integer)):
        raise HybridNetTypeError(f"onnx.export_model: opset_version is {version!r}", expected="an int")
    if not OLDEST_OPSET <= version <= newest:
        raise HybridNetValueError(
            f"onnx.export_model: opset_version is {version}",
            expected=f"{OLDEST_OPSET} to {newest}",
            fix="pip install -U onnx, for newer opsets",
        )
    return int(version)


# ------------------------------------------------------------------------------------------------------- open sizes
# Errors of graphs that do not fit the sizes that are tried.
_TOO_OPEN = (ShapeError, ParamError, NotForOpenSizes)


@dataclass
class _Made:
    exporter: Exporter
    shapes: list[dict[str, tuple[int, ...]]]  # the shapes of inputs and parameters, for each trial
    open_sizes: dict[str, tuple[int, ...]]  # trial sizes of each open size


def _first_that_fits(model: Model, dynamic: bool, shapes: Any, opset: int) -> _Made:
    """The export with as many open sizes as the graph allows; those that were asked for must be allowed."""
    explicit = shapes is not None or _has_open(model.inputs)
    _note_open_axes(model, shapes)
    choices = [None] if explicit or not dynamic else list(_batch_choices(model.inputs))
    first: Exception | None = None
    for chosen in choices:
        if chosen is not None:
            for given in model.inputs:
                given.open_axes = {0: "batch"} if given.name in chosen else {}
        try:
            made = _with_trials(model, opset)
            _check_given_sizes(model, made)
        except _TOO_OPEN as error:
            if chosen is None or not any(chosen):
                raise
            first = first or error
            continue
        if chosen is not None and first is not None and len(chosen) < len(choices[0] or ()):
            _LOG.warning("onnx.export_model: axis 0 is open for %s only: %s", ", ".join(chosen) or "no input", first)
        return made
    raise first or HybridNetValueError("onnx.export_model: no sizes fit")


def _has_open(inputs: Sequence[Input]) -> bool:
    return any(not isinstance(size, int) for given in inputs for size in given.shape or ())


def _note_open_axes(model: Model, shapes: Any) -> None:
    names = [given.name for given in model.inputs]
    wanted: Mapping[str, Any] = {} if shapes is None else _listed(names, shapes, "dynamic_input_shapes")
    for given in model.inputs:
        shape = wanted.get(given.name)
        shape = given.shape if shape is None else tuple(shape)
        if shape is None:
            continue
        given.open_axes = {
            axis: size if isinstance(size, str) else f"{given.name}_{axis}"
            for axis, size in enumerate(shape)
            if not isinstance(size, (int, np.integer))
        }
        if given.shape is not None and len(given.shape) != len(shape):
            raise HybridNetValueError(
                f"onnx.export_model: dynamic_input_shapes: the shape of '{given.name}' has {len(shape)} axes",
                expected=f"{len(given.shape)}, as in {given.shape}",
            )
        hints = given.shape if given.shape is not None else shape
        given.shape = tuple(int(size) if isinstance(size, (int, np.integer)) else None for size in hints)


def _batch_choices(inputs: Sequence[Input]) -> Iterator[tuple[str, ...]]:
    """Sets of inputs whose axis 0 may be open, larger ones first. Inputs without elements keep their sizes: runtimes
    compute few operators on them, and the graph differs from that of other sizes."""
    names = [given.name for given in inputs if given.shape is None or (given.shape and 0 not in given.shape)]
    sizes = {given.name: given.shape[0] for given in inputs if given.shape and given.name in names}
    groups = [[name for name in names if sizes.get(name, size) == size] for size in dict.fromkeys(sizes.values())]
    for group in sorted(groups or [names], key=len, reverse=True):
        if group:
            yield from _parts_of(group)
    yield ()


def _parts_of(names: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """All names, all but one, and single ones."""
    yield tuple(names)
    if 1 < len(names) <= 6:
        yield from (tuple(name for name in names if name != left) for left in names)
    if 2 < len(names) <= 6:
        yield from ((name,) for name in names)


def _check_given_sizes(model: Model, made: _Made) -> None:
    """Raises NotForOpenSizes if the graph that is exported is another one than that for the sizes that were given."""
    sizes = [size for given in model.inputs for size in given.shape or (None,)]
    if not any(given.open_axes for given in model.inputs) or None in sizes:
        return
    shapes, dtypes = _known_of(model, {}, 1)
    graphs = Source(model.symbol, [*shapes, *made.shapes[:2]], dtypes).graphs
    for graph in graphs:
        apply_rewrites(graph, "expand_composed")
    nodes = [list(graph.nodes) for graph in graphs]
    if len({tuple(node.op for node in one) for one in nodes}) > 1:
        raise NotForOpenSizes(
            "only the given sizes have the operators of the graph", fix="fix the sizes: dynamic=False"
        )
    for own, *trials in zip(*([entry for node in one for entry in node.outputs] for one in nodes), strict=True):
        known = Spec([entry.shape for entry in trials], "").shape if len({len(e.shape) for e in trials}) == 1 else ()
        if len(known) != len(own.shape) or any(a not in (None, b) for a, b in zip(known, own.shape, strict=True)):
            raise NotForOpenSizes(
                f"operator '{own.node.op}' (node '{own.node.name}'): only the given sizes have its shape",
                because=f"it is {own.shape} there, and {trials[0].shape} for others",
                fix="fix the sizes: dynamic=False",
            )


def _with_trials(model: Model, opset: int) -> _Made:
    """The export for the first trial sizes that the graph accepts."""
    hints: dict[str, int | None] = {}
    for given in model.inputs:
        for axis, name in given.open_axes.items():
            hints.setdefault(name, given.shape[axis] if given.shape is not None else None)
    first: Exception | None = None
    for sizes in _trial_sizes(hints):
        try:
            made = _export(model, sizes, opset)
            if first is not None and all(size % 32 == 0 for trials in sizes.values() for size in trials):
                _LOG.warning("onnx.export_model: the graph was read for sizes that are multiples of 32: %s", first)
            return made
        except _TOO_OPEN as error:
            first = first or error
            if not hints:
                break
    assert first is not None
    raise first


def _trial_sizes(hints: Mapping[str, int | None]) -> Iterator[dict[str, tuple[int, ...]]]:
    names = list(hints)
    if not names:
        yield {}
        return
    by_hint: dict[str, tuple[int, ...]] = {}
    for number, name in enumerate(names):
        hint = hints[name]
        if hint is not None and hint >= 8 and name != "batch":
            by_hint[name] = (hint, hint + 32 * (number + 1), 2 * hint + 64 * (number + 2))
        else:
            by_hint[name] = tuple(row[number % 8] for row in _SMALL)
    yield by_hint
    for rows in (_SMALL, _IMAGES):
        yield {name: tuple(row[number % 8] for row in rows) for number, name in enumerate(names)}


def _export(model: Model, sizes: Mapping[str, tuple[int, ...]], opset: int) -> _Made:
    trials = 3 if sizes else 1
    shapes, dtypes = _known_of(model, sizes, trials)
    source = Source(model.symbol, shapes, dtypes)
    if source.late and trials == 1:
        source = Source(model.symbol, shapes * 3, dtypes)
    return _Made(_walk(model, source, sizes, opset), shapes, dict(sizes))


def _known_of(
    model: Model, sizes: Mapping[str, tuple[int, ...]], trials: int
) -> tuple[list[dict[str, tuple[int, ...]]], dict[str, Any]]:
    """Shapes of inputs and parameters for each trial, and their dtypes. sizes: trial sizes by name; without them, open
    axes have the sizes that were given."""
    shapes: list[dict[str, tuple[int, ...]]] = [{} for _ in range(trials)]
    for given in model.inputs:
        if given.shape is None:
            continue
        open_axes = given.open_axes if sizes else {}
        for trial, known in enumerate(shapes):
            known[given.name] = tuple(
                sizes[open_axes[axis]][trial] if axis in open_axes else size  # type: ignore[misc]
                for axis, size in enumerate(given.shape)
            )
    dtypes: dict[str, Any] = {given.name: given.dtype for given in model.inputs}
    for name, array in model.params.items():
        dtypes[name] = array.dtype
        for known in shapes:
            known[name] = array.shape
    return shapes, dtypes


def _walk(model: Model, source: Source, sizes: Mapping[str, Any], opset: int) -> Exporter:
    writer = Writer(opset)
    exporter = Exporter(writer, len(source.graphs))
    names = model.symbol.list_outputs()
    for name in (*(given.name for given in model.inputs), *model.params):
        writer.unique(name)
    outputs = [writer.unique(name) for name in names]
    for name, trials in sizes.items():
        writer.graph.names_of_sizes.setdefault(tuple(trials), name)
    values = _input_tensors(model, source, exporter)
    results = exporter.walk(source, values)
    exporter.finish(results, outputs)
    return exporter


def _input_tensors(model: Model, source: Source, exporter: Exporter) -> dict[Any, Tensor]:
    graph = exporter.writer.graph
    entries = {entry.node.name: index for index, entry in enumerate(source.graphs[0].inputs)}
    values = {}
    tensors = {}
    for given in model.inputs:
        index = entries.get(given.name)
        if index is None:  # nothing reads it; the file has it all the same
            shape = tuple(size if isinstance(size, int) else 1 for size in given.shape or ())
            tensors[given.name] = Tensor(given.name, given.dtype, Spec([shape] * exporter.num_trials, given.dtype))
        else:
            found = [one.inputs[index] for one in source.graphs]
            dtype = np.dtype(found[0].dtype).name
            tensors[given.name] = Tensor(given.name, dtype, Spec([entry.shape for entry in found], dtype))
            values[found[0]] = tensors[given.name]
        exporter.note_sizes(tensors[given.name])
    graph.inputs = [tensors[given.name] for given in model.inputs]
    for name, array in model.params.items():
        if name in entries:
            tensor = Tensor(name, str(array.dtype), Spec([array.shape] * exporter.num_trials, str(array.dtype)))
            exporter.writer.parameter(tensor, array)
            values[source.graphs[0].inputs[entries[name]]] = tensor
    for name in model.labels:
        if name in entries:
            entry = source.graphs[0].inputs[entries[name]]
            values[entry] = Tensor(
                name, np.dtype(entry.dtype).name, Spec([entry.shape] * exporter.num_trials, "float32")
            )
    return values


def _report(made: _Made, path: str) -> None:
    graph = made.exporter.writer.graphs[0]
    counts: dict[str, int] = {}
    for record in graph.nodes:
        counts[record.op] = counts.get(record.op, 0) + 1
    listed = ", ".join(f"{count} {op}" for op, count in sorted(counts.items()))
    _LOG.info("%s: open sizes: %s; nodes: %s", path, ", ".join(made.open_sizes) or "none", listed)

"""Compiled graphs of the backend: one for all inputs where that is possible, else one for each structure of inputs.

Graphs hold tensors only. A model whose inputs are sequences or optional values is compiled for each number of items
that a run brings. If the lengths of sequences or the numbers of axes follow from small integers among the inputs,
it is compiled for each of these, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from .. import autograd
from ..context import Context
from ..errors import DTypeError, ShapeError, UnsupportedError
from ..errors import ValueError as HybridNetValueError
from ..ndarray import NDArray, array
from . import _table
from ._api import block_of
from ._errors import wrong
from ._importer import import_graph
from ._package import onnx
from ._values import MOST_SIZES, Fixed

__all__ = ["Program", "Programs", "numpy_type"]

_MOST_PROGRAMS = 32
_KINDS = (("bool",), ("int", "uint"), ("float", "bfloat"))


def _kind(dtype: np.dtype) -> int | None:
    """0: bool, 1: integers, 2: floats; None: others."""
    return next((kind for kind, names in enumerate(_KINDS) if dtype.name.startswith(names)), None)


def _elem_type(kind: Any) -> int:
    """The ONNX element type of tensors, of those in a sequence, and of an optional one; 0: the file does not say it."""
    which = kind.WhichOneof("value")
    if which in ("sequence_type", "optional_type"):
        return _elem_type(getattr(kind, which).elem_type)
    return int(kind.tensor_type.elem_type)


def numpy_type(kind: Any) -> np.dtype | None:
    """The NumPy dtype of the elements; None: the file does not say it."""
    code = _elem_type(kind)
    return np.dtype(onnx().helper.tensor_dtype_to_np_dtype(code)) if code else None


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        for item in value:
            yield from _leaves(item)
    elif value is not None:
        yield value


def _rebuilt(structure: Any, values: Iterator[Any]) -> Any:
    """The values in place of the leaves of a structure of lists and None."""
    if isinstance(structure, list):
        return [_rebuilt(item, values) for item in structure]
    return None if structure is None else next(values)


class Program:
    """A graph that is compiled for inputs of some shapes."""

    def __init__(self, proto: Any, folder: str, shapes: Mapping[str, Any], context: Context) -> None:
        made = import_graph(proto, folder, shapes)
        self.inputs = made.inputs
        self.block = block_of(made, context)
        self.block.hybridize(static_alloc=True)
        self._outputs = [value for _, value in made.outputs]
        self._context = context

    def run(self, values: Sequence[np.ndarray], dtypes: Sequence[np.dtype | None]) -> list[Any]:
        """The outputs for the tensors of the inputs: arrays, lists of them, and None. dtypes: of the file's inputs."""
        arrays = [
            self._checked(value, dtype, *known) for value, dtype, known in zip(values, dtypes, self.inputs, strict=True)
        ]
        with autograd.predict_mode():
            results = self.block(*arrays)
            results = results if isinstance(results, (list, tuple)) else [results]
            numbers = iter([result.asnumpy() for result in results])
        return [_rebuilt(output, numbers) for output in self._outputs]

    def _checked(
        self, value: np.ndarray, declared: np.dtype | None, name: str, shape: tuple[Any, ...], dtype: str
    ) -> NDArray:
        fits = value.ndim == len(shape) and all(
            not isinstance(size, int) or size == given for size, given in zip(shape, value.shape, strict=False)
        )
        if not fits:
            raise ShapeError(
                f"run: input '{name}'",
                expected=f"shape {shape}",
                given=str(value.shape),
                fix=f"prepare the model for such inputs: input_shapes={{'{name}': {value.shape}}}, with None for open "
                "sizes",
            )
        if declared is not None and value.dtype != declared:
            _check_numbers(name, value, declared)
        return array(value, dtype=dtype, ctx=self._context)


def _check_numbers(name: str, value: np.ndarray, declared: np.dtype) -> None:
    """Raises if numbers of another dtype do not fit that of the file: fractions are not cut, integers do not wrap."""
    given, wanted = _kind(value.dtype), _kind(declared)
    if given is None or wanted is None or given > wanted:
        raise DTypeError(
            f"run: input '{name}'", expected=declared.name, given=value.dtype.name, fix="convert the array before"
        )
    if given == wanted == 1 and not np.array_equal(value.astype(declared).astype(value.dtype), value):
        raise wrong(f"run: input '{name}' holds numbers outside of {declared.name}")


class Programs:
    """The compiled graphs of a model. Not for several threads at once."""

    def __init__(self, proto: Any, folder: str, shapes: Mapping[str, Any], context: Context) -> None:
        self._made_of = proto, folder
        self._shapes, self._context = dict(shapes), context
        known = {tensor.name for tensor in proto.graph.initializer}
        self.given = [given for given in proto.graph.input if given.name not in known]
        self.general: Program | None = None
        self._special: dict[Any, Program | Exception] = {}
        if all(given.type.WhichOneof("value") == "tensor_type" or given.name in shapes for given in self.given):
            self._build_general()

    def _build(self, shapes: Mapping[str, Any]) -> Program:
        return Program(*self._made_of, {**self._shapes, **shapes}, self._context)

    def _build_general(self) -> None:
        """Builds the graph for all inputs; a model that only its numbers resolve is built when these are known."""
        try:
            self.general = self._build({})
        except (UnsupportedError, HybridNetValueError):
            if not any(_may_be_numbers(given) for given in self.given) or not _has_forms(self._made_of[0]):
                raise

    def find(self, values: Sequence[Any]) -> tuple[Program, list[np.ndarray], list[np.dtype | None]]:
        """The program for these values of the inputs, its tensors, and their dtypes in the file."""
        if self.general is not None:
            return self.general, *self._tensors(values, {})
        shapes = {
            given.name: _shapes_in(value)
            for given, value in zip(self.given, values, strict=True)
            if given.type.WhichOneof("value") != "tensor_type" and given.name not in self._shapes
        }
        made = self._cached(repr(shapes), shapes)
        if isinstance(made, Program):
            return made, *self._tensors(values, {})
        numbers = {
            given.name: self._fixed(given, value)
            for given, value in zip(self.given, values, strict=True)
            if _may_be_numbers(given) and isinstance(value, np.ndarray) and value.size <= MOST_SIZES
        }
        if not numbers:
            raise made
        key = (repr(shapes), *((fixed.array.shape, fixed.array.tobytes()) for fixed in numbers.values()))
        special = self._cached(key, {**shapes, **numbers})
        if not isinstance(special, Program):
            raise special
        return special, *self._tensors(values, numbers)

    def _cached(self, key: Any, shapes: Mapping[str, Any]) -> Program | Exception:
        """The program for these shapes, or the error that shows why there is none."""
        if key not in self._special:
            while len(self._special) >= _MOST_PROGRAMS:
                self._special.pop(next(iter(self._special)))
            try:
                self._special[key] = self._build(shapes)
            except (UnsupportedError, HybridNetValueError) as error:
                self._special[key] = error
        return self._special[key]

    @staticmethod
    def _fixed(given: Any, value: np.ndarray) -> Fixed:
        declared = numpy_type(given.type)
        assert declared is not None
        if value.dtype != declared:
            _check_numbers(given.name, value, declared)
        return Fixed(value.astype(declared))

    def _tensors(
        self, values: Sequence[Any], fixed: Mapping[str, Fixed]
    ) -> tuple[list[np.ndarray], list[np.dtype | None]]:
        tensors: list[np.ndarray] = []
        dtypes: list[np.dtype | None] = []
        for given, value in zip(self.given, values, strict=True):
            if given.name not in fixed:
                found = list(_leaves(value))
                tensors += found
                dtypes += [numpy_type(given.type)] * len(found)
        return tensors, dtypes


def _shapes_in(value: Any) -> Any:
    if isinstance(value, list):
        return [_shapes_in(item) for item in value]
    return None if value is None else value.shape


def _may_be_numbers(given: Any) -> bool:
    """Whether an input holds a few integers: a count, a position, a condition, or sizes."""
    dtype = numpy_type(given.type) if given.type.WhichOneof("value") == "tensor_type" else None
    if dtype is None or dtype not in (np.dtype(bool), np.dtype("int32"), np.dtype("int64")):
        return False
    sizes = [axis.dim_value for axis in given.type.tensor_type.shape.dim if axis.HasField("dim_value")]
    return len(sizes) <= 1 and int(np.prod(sizes)) <= MOST_SIZES


def _has_forms(proto: Any) -> bool:
    """Whether all operators of a model are known, so that an error is about the values of its inputs."""
    defined = {(function.domain, function.name) for function in proto.functions}
    graphs = [proto.graph, *proto.functions]
    return all(
        (node.domain, node.op_type) in defined or _table.find(node.domain, node.op_type) is not None
        for graph in graphs
        for node in _nodes(graph)
    )


def _nodes(graph: Any) -> Iterator[Any]:
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for inner in [*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs]:
                yield from _nodes(inner)

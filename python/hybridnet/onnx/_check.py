"""Checks an exported file: ONNX's checker, and ONNX Runtime's results beside the library's."""

from __future__ import annotations

import ctypes
import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..context import cpu
from ..errors import UnsupportedError
from ..errors import ValueError as HybridNetValueError
from ..ndarray import NDArray
from ..ndarray import array as nd_array
from ..ndarray._dtypes import numpy_dtype
from ._package import onnx, onnxruntime

__all__ = ["check_model", "run_file", "run_model"]

_LOG = logging.getLogger(__name__)
_TOLERANCE = {"float16": 2e-2, "bfloat16": 1e-1, "float32": 1e-4, "float64": 1e-4}
_RANDOM = ("RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Multinomial", "Bernoulli")


class _NotRun(UnsupportedError):
    """ONNX Runtime lacks an operator of the file, in the version of its opset."""


def check_model(path: str, model: Any, open_sizes: Mapping[str, Sequence[int]], required: bool = True) -> None:
    """Raises ValueError if the file breaks ONNX's rules, or if an output differs from the library's. If ONNX Runtime
    does not load the file: raises UnsupportedError if the check is required, else logs it."""
    try:
        onnx().checker.check_model(path, full_check=os.path.getsize(path) < 2**31 - 2**26)
    except Exception as error:
        raise HybridNetValueError(
            f"the exported file '{path}' breaks ONNX's rules", because=str(error)[:600]
        ) from error
    try:
        session = _session(path)
    except _NotRun as error:
        if required:
            raise
        _LOG.warning("onnx.export_model: the results were not compared: %s", error)
        return
    draws = _draws(path)
    for shapes in _shapes_to_try(model, open_sizes):
        inputs = {given.name: _values(given, shapes[given.name]) for given in model.inputs}
        wanted = run_model(model, inputs)
        got = run_file(session, inputs)
        _compare(path, [output.name for output in session.get_outputs()], got, wanted, draws, shapes)


def _session(path: str) -> Any:
    options = onnxruntime().SessionOptions()
    options.log_severity_level = 4
    try:
        return onnxruntime().InferenceSession(path, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # ONNX Runtime has classes of its own
        raise _NotRun(
            f"ONNX Runtime does not load the exported file '{path}'",
            because=str(error)[:600],
            fix="export with an older opset_version, or with check=False",
        ) from error


def _draws(path: str) -> bool:
    """Whether the file draws random numbers."""

    def of(graph: Any) -> bool:
        return any(
            node.op_type in _RANDOM or any(of(attribute.g) for attribute in node.attribute if attribute.HasField("g"))
            for node in graph.node
        )

    model = onnx().load(path, load_external_data=False)
    return of(model.graph) or any(map(of, model.functions))


def _shapes_to_try(model: Any, open_sizes: Mapping[str, Sequence[int]]) -> Iterator[dict[str, tuple[int, ...]]]:
    """The shapes that were given, and others for open sizes."""
    for attempt in range(2 if open_sizes else 1):
        shapes = {}
        for given in model.inputs:
            sizes = list(given.shape or ())
            for axis, name in given.open_axes.items():
                if attempt == 1 or not isinstance(sizes[axis], int):
                    sizes[axis] = open_sizes[name][0]
            shapes[given.name] = tuple(size if isinstance(size, int) else 2 for size in sizes)
        yield shapes


def _values(given: Any, shape: tuple[int, ...]) -> np.ndarray:
    rng = np.random.default_rng(len(shape) + sum(shape))
    dtype = numpy_dtype(given.dtype)
    if given.dtype.startswith(("float", "bfloat")):
        return rng.normal(size=shape).astype(dtype)
    return rng.integers(0, 2, shape).astype(dtype)


def run_model(model: Any, inputs: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """The outputs of the library for these inputs, in prediction mode."""
    symbol = model.symbol
    arrays = {name: nd_array(array, dtype=array.dtype) for name, array in (*inputs.items(), *model.params.items())}
    names = set(symbol.list_inputs())
    shapes = {name: array.shape for name, array in arrays.items() if name in names}
    arguments, _, states = symbol.infer_shape_partial(**shapes)
    for name, shape in (
        *zip(symbol.list_arguments(), arguments, strict=True),
        *zip(symbol.list_auxiliary_states(), states, strict=True),
    ):
        if name not in arrays:
            arrays[name] = nd_array(np.zeros(shape, dtype="float32"))
    args = {name: arrays[name] for name in symbol.list_arguments()}
    aux = {name: arrays[name] for name in symbol.list_auxiliary_states()}
    executor = symbol.bind(cpu(), args, grad_req="null", aux_states=aux)
    outputs: list[NDArray] = executor.forward(is_train=False)
    return [output.asnumpy() for output in outputs]


def run_file(session: Any, inputs: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """The outputs of a session of ONNX Runtime."""
    names = {value.name for value in session.get_inputs()}
    inputs = {name: np.asarray(array) for name, array in inputs.items() if name in names}
    if not any(value.type == "tensor(bfloat16)" for value in (*session.get_inputs(), *session.get_outputs())):
        return [np.asarray(output) for output in session.run(None, inputs)]
    runtime = onnxruntime()
    binding = session.io_binding()
    code = onnx().TensorProto.BFLOAT16
    for name, array in inputs.items():
        if array.dtype.name == "bfloat16":
            value = runtime.OrtValue.ortvalue_from_numpy_with_onnx_type(array.view(np.uint16), code)
        else:
            value = runtime.OrtValue.ortvalue_from_numpy(array)
        binding.bind_ortvalue_input(name, value)
    for output in session.get_outputs():
        binding.bind_output(output.name)
    session.run_with_iobinding(binding)
    return [_elements(value) for value in binding.get_outputs()]


def _elements(value: Any) -> np.ndarray:
    """The elements of an OrtValue; its method numpy() does not know bfloat16."""
    if value.data_type() != "tensor(bfloat16)":
        return np.asarray(value.numpy())
    shape = tuple(value.shape())
    size = 2 * int(np.prod(shape))
    elements = ctypes.string_at(value.data_ptr(), size) if size else b""
    return np.frombuffer(elements, dtype=numpy_dtype("bfloat16")).reshape(shape)


def _compare(
    path: str, names: Sequence[str], got: Sequence[Any], wanted: Sequence[np.ndarray], draws: bool, shapes: Any
) -> None:
    for name, one, other in zip(names, got, wanted, strict=True):
        problem = _difference(one, other, draws)
        if problem:
            raise HybridNetValueError(
                f"output '{name}' of the exported file '{path}' differs from the library's",
                because=f"{problem}, for inputs of the shapes {shapes}",
                fix="report it with the model; check=False writes the file all the same",
            )


def _difference(got: np.ndarray, wanted: np.ndarray, draws: bool) -> str:
    """How two outputs differ; empty: they do not."""
    if tuple(got.shape) != tuple(wanted.shape):
        return f"shape {tuple(got.shape)} instead of {tuple(wanted.shape)}"
    if draws or wanted.size == 0:
        return ""
    tolerance = _TOLERANCE.get(wanted.dtype.name)
    one, other = (np.asarray(x, dtype="float64") for x in (got, wanted))
    if tolerance is None:
        return "" if np.array_equal(one, other) else f"{np.sum(one != other)} of {one.size} elements differ"
    scale = float(np.max(np.abs(other[np.isfinite(other)]), initial=0.0))
    near = np.isclose(one, other, rtol=tolerance, atol=tolerance * max(scale, 1e-3), equal_nan=True)
    if near.all():
        return ""
    place = tuple(int(i) for i in np.argwhere(~near)[0])
    return f"{(~near).sum()} of {near.size} elements; at {place} {one[place]} instead of {other[place]}"

"""HybridNet as a backend of the ``onnx`` package: for ONNX's own tests, and for programs that are written for backends.

::

    import hybridnet.onnx.backend as backend

    prepared = backend.prepare(onnx.load("model.onnx"))
    outputs = prepared.run([image])  # NumPy arrays, of any batch size that the file leaves open
"""

from __future__ import annotations

import builtins
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .._public_names import dir_of
from ..context import Context, cpu, gpu, num_gpus
from ..errors import HybridNetError
from ..ndarray import NDArray
from ._api import load_model
from ._errors import refuse, wrong
from ._package import onnx
from ._programs import Programs, numpy_type

__all__ = ["Backend", "BackendRep", "is_compatible", "prepare", "run_model", "run_node", "supports_device"]


def _device(name: str) -> Context:
    kind, _, number = name.partition(":")
    if kind not in ("CPU", "CUDA") or not (number or "0").isdecimal():
        raise wrong(f"device '{name}' is none of the backend", fix="give 'CPU', or 'CUDA:0' and so on")
    if kind == "CPU":
        return cpu(int(number or 0))
    if int(number or 0) >= num_gpus():
        raise refuse(f"device '{name}': there are {num_gpus()} GPUs that HybridNet can use", fix="give 'CPU'")
    return gpu(int(number or 0))


class BackendRep(onnx().backend.base.BackendRep):  # type: ignore[misc]
    """A prepared model: ``run(inputs)`` may be called with other shapes, and from several threads."""

    def __init__(self, model: Any, device: str = "CPU", input_shapes: Mapping[str, Any] | None = None) -> None:
        proto, folder = load_model(model)
        self._programs = Programs(proto, folder, input_shapes or {}, _device(device))
        self._outputs = [(given.name, numpy_type(given.type)) for given in proto.graph.output]
        self._names = onnx().backend.base.namedtupledict("Outputs", [name for name, _ in self._outputs])
        self._lock = threading.Lock()

    @property
    def block(self) -> Any:
        """The model as a SymbolBlock. Raises UnsupportedError if its graph depends on the inputs of a run."""
        if self._programs.general is None:
            raise refuse(
                "the model has no block for all inputs",
                because="sequences, or numbers among its inputs, decide which graph it is",
                fix="call run(inputs)",
            )
        return self._programs.general.block

    def run(self, inputs: Any, **kwargs: Any) -> Any:
        """Runs the model.

        inputs: one array, a sequence of arrays in the order of the model's inputs, or a dict by name. An input that is
        a sequence is a list of arrays; None stands for an optional value that is absent. Returns a tuple of NumPy
        arrays with the names of the outputs as attributes, in the dtypes that the file declares.
        """
        values = self._in_order(inputs)
        with self._lock:
            program, tensors, dtypes = self._programs.find(values)
            results = program.run(tensors, dtypes)
        return self._names(*(_in_dtype(value, dtype) for value, (_, dtype) in zip(results, self._outputs, strict=True)))

    def _in_order(self, inputs: Any) -> list[Any]:
        given = self._programs.given
        names = [one.name for one in given]
        if isinstance(inputs, Mapping):
            unknown = [name for name in inputs if name not in names]
            missing = [name for name in names if name not in inputs]
            if unknown or missing:
                raise wrong(
                    f"run: the inputs are {list(inputs)}, and the model's are {names}",
                    fix="give one array for each input's name",
                )
            inputs = [inputs[name] for name in names]
        if isinstance(inputs, (np.ndarray, NDArray)) or not isinstance(inputs, Sequence):
            inputs = [inputs]
        if len(inputs) != len(names):
            raise wrong(
                f"run: {len(inputs)} inputs for a model with {len(names)}: {', '.join(names)}",
                fix="give one array for each of these inputs, in this order",
            )
        return [_as_given(one.name, value, one.type) for one, value in zip(given, inputs, strict=True)]


def _of_names(node: Any, names: list[str], inputs: Any) -> list[Any]:
    """The inputs of one node in the order of their names."""
    if isinstance(inputs, Mapping):
        inputs = [inputs[name] for name in names if name in inputs]
    elif isinstance(inputs, (np.ndarray, NDArray)):
        inputs = [inputs]
    if len(inputs) != len(names):
        raise wrong(f"{len(inputs)} inputs are given for {', '.join(names)}", fix="give one for each name", node=node)
    return [value.asnumpy() if isinstance(value, NDArray) else np.asarray(value) for value in inputs]


def _as_given(name: str, value: Any, kind: Any) -> Any:
    """The value of an input as an array, a list of arrays, or None, by its type in the file."""
    which = kind.WhichOneof("value")
    if which == "optional_type":
        return None if value is None else _as_given(name, value, kind.optional_type.elem_type)
    if which == "sequence_type":
        if not isinstance(value, (list, tuple)):
            raise wrong(f"run: input '{name}' is {type(value).__name__}, not a sequence", fix="give a list of arrays")
        return [_as_given(name, item, kind.sequence_type.elem_type) for item in value]
    try:
        found = value.asnumpy() if isinstance(value, NDArray) else np.asarray(value)
    except (builtins.ValueError, builtins.TypeError):
        found = np.empty(0, dtype=object)
    if found.dtype.kind in "OSU":
        raise wrong(f"run: input '{name}' is {type(value).__name__}, not an array of numbers", fix="give an array")
    return found


def _in_dtype(value: Any, dtype: np.dtype | None) -> Any:
    if isinstance(value, list):
        return [_in_dtype(item, dtype) for item in value]
    return value if value is None or dtype is None or value.dtype == dtype else value.astype(dtype)


class Backend(onnx().backend.base.Backend):  # type: ignore[misc]
    """``onnx.backend.base.Backend`` on HybridNet."""

    @classmethod
    def is_compatible(cls, model: Any, device: str = "CPU", **kwargs: Any) -> bool:
        """Whether the model can be imported; it is built for this, so prepare() at once where it is needed anyway."""
        if not cls.supports_device(device):
            return False
        try:
            cls.prepare(model, device)
        except HybridNetError:
            return False
        return True

    @classmethod
    def prepare(cls, model: Any, device: str = "CPU", **kwargs: Any) -> BackendRep:
        """Imports a model.

        Parameters
        ----------
        model : onnx.ModelProto, path or bytes
        device : str
            "CPU", or "CUDA:0" and so on.
        input_shapes : dict of str to tuple, optional
            As in mx.onnx.import_model.
        """
        return BackendRep(model, device, kwargs.get("input_shapes"))

    @classmethod
    def run_model(cls, model: Any, inputs: Any, device: str = "CPU", **kwargs: Any) -> Any:
        """Imports a model and runs it once."""
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(cls, node: Any, inputs: Any, device: str = "CPU", outputs_info: Any = None, **kwargs: Any) -> Any:
        """Runs one node; absent optional inputs have empty names. opset_version: by default the newest."""
        try:
            super().run_node(node, inputs, device, outputs_info, **kwargs)
        except Exception as error:
            raise wrong("the node breaks ONNX's rules", because=str(error)[:200], node=node) from error
        helper = onnx().helper
        names = [name for name in dict.fromkeys(node.input) if name]
        arrays = _of_names(node, names, inputs)
        given = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
            for name, value in zip(names, arrays, strict=True)
        ]
        made = [helper.make_empty_tensor_value_info(name) for name in node.output if name]
        graph = helper.make_graph([node], "node", given, made)
        version = kwargs.get("opset_version", onnx().defs.onnx_opset_version())
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid(node.domain, version)])
        return cls.run_model(onnx().shape_inference.infer_shapes(model), arrays, device)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """ "CPU" always, "CUDA" where there is a GPU that HybridNet can use."""
        kind, _, number = device.partition(":")
        if kind not in ("CPU", "CUDA") or not (number or "0").isdecimal():
            return False
        return kind == "CPU" or int(number or 0) < num_gpus()


is_compatible = Backend.is_compatible
prepare = Backend.prepare
run_model = Backend.run_model
run_node = Backend.run_node
supports_device = Backend.supports_device

__dir__ = dir_of(__name__)

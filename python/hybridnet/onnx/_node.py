"""The view of an ONNX node that forms receive: attributes as Python values, versions, counts."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from ._package import onnx
from ._stored import dense_elements, elements

__all__ = ["NO_WEIGHT", "PRODUCER", "NodeView", "dense_of", "dtype_of", "held_element", "is_weight", "tensor_of"]

# Integers that HybridNet does not have are held in wider ones.
_HELD = {
    "int2": "int8",
    "uint2": "uint8",
    "int4": "int8",
    "uint4": "uint8",
    "int16": "int32",
    "uint16": "int32",
    "uint32": "int64",
    "uint64": "int64",
}
_COMPUTED = re.compile(r"val_\d+")
PRODUCER = "hybridnet"
NO_WEIGHT = "constant"  # the doc_string of initializers that an export by HybridNet does not let training change
_SPECIAL = {"bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"}


def dtype_of(code: int, node: Any = None) -> str:
    """The HybridNet dtype that holds an ONNX element type; UnsupportedError for strings, complex numbers and others."""
    from ._errors import refuse

    name = _name_of_type(code)
    name = {"float": "float32", "double": "float64"}.get(name, name)
    name = _HELD.get(name, name)
    if name not in ("float32", "float64", "float16", "bfloat16", "int8", "uint8", "int32", "int64", "bool"):
        raise refuse(f"tensors of {name} are not supported", node=node)
    return name


def held_element(code: int) -> str | None:
    """The name of an ONNX element type that HybridNet holds in a wider one; None for others."""
    name = _name_of_type(code)
    return name if name in _HELD else None


def _name_of_type(code: Any) -> str:
    from ._errors import wrong

    try:
        return str(onnx().TensorProto.DataType.Name(code)).lower()
    except (ValueError, TypeError):
        raise wrong(f"the element type {code!r} is not one of ONNX", fix="save the model again") from None


def tensor_of(proto: Any, folder: str = "") -> np.ndarray:
    """The elements of a TensorProto, in a dtype that HybridNet has."""
    dtype = dtype_of(proto.data_type)
    array = elements(proto, folder)
    return array if str(array.dtype) == dtype else array.astype(np.dtype(dtype))


def dense_of(proto: Any, folder: str = "") -> np.ndarray:
    """The elements of a SparseTensorProto."""
    values, places = tensor_of(proto.values, folder), tensor_of(proto.indices, folder)
    return dense_elements(values, places, proto.dims, proto.values.name)


def is_weight(array: np.ndarray, name: str | None = None) -> bool:
    """Whether training may change a constant. name: of an initializer; None: it is a Constant node.

    Some files keep weights in Constant nodes. Exporters write numbers, and the ones and zeros of norms without weights,
    so, too; that of PyTorch makes initializers of them, "val_7" for example. Those have one number in all places.
    """
    if name is not None and not _COMPUTED.fullmatch(name):
        return True
    return bool(array.ndim > 0 and array.size > 0 and (array != array.reshape(-1)[0]).any())


class NodeView:
    """A node of the file.

    Attributes: ``proto`` (the NodeProto), ``op_type``, ``domain``, ``version`` (of the operator set that the file
    imports for the domain), ``name`` (of the node, or of its first output), ``num_outputs`` (up to the last one that
    has a name).
    """

    def __init__(self, proto: Any, version: int, folder: str) -> None:
        self.proto, self.version, self._folder = proto, version, folder
        self.op_type: str = proto.op_type
        self.domain: str = "" if proto.domain == "ai.onnx" else proto.domain
        self.name: str = proto.name or next((name for name in proto.output if name), proto.op_type)
        self.num_outputs = max((index + 1 for index, name in enumerate(proto.output) if name), default=0)
        self._attributes = {attribute.name: attribute for attribute in proto.attribute}

    def has(self, name: str) -> bool:
        """Whether the attribute is given."""
        return name in self._attributes

    def wants(self, index: int) -> bool:
        """Whether output `index` has a name, so that something may read it."""
        return index < len(self.proto.output) and bool(self.proto.output[index])

    def attr(self, name: str, default: Any = None) -> Any:
        """An attribute as a Python value: int, float, str, list, GraphProto, or numpy array for a tensor."""
        if name not in self._attributes:
            return default
        value = onnx().helper.get_attribute_value(self._attributes[name])
        if isinstance(value, bytes):
            return value.decode()
        if isinstance(value, onnx().TensorProto):
            return tensor_of(value, self._folder)
        if isinstance(value, onnx().SparseTensorProto):
            return dense_of(value, self._folder)
        if isinstance(value, (list, tuple)) or type(value).__name__.startswith("Repeated"):
            return [item.decode() if isinstance(item, bytes) else item for item in value]
        return value

    def tensor_type(self, name: str) -> int:
        """The ONNX element type of an attribute that is a tensor."""
        return int(self._attributes[name].t.data_type)

    def graph(self, name: str) -> Any:
        """An attribute that is a graph."""
        return self._attributes[name].g

    @property
    def attributes(self) -> dict[str, Any]:
        """All attributes."""
        return {name: self.attr(name) for name in self._attributes}

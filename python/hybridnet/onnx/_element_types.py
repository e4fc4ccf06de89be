"""ONNX element types that HybridNet holds in wider ones: int16 and uint16 in int32, uint32 and uint64 in int64, and
those of 2 and 4 bits in bytes.

``Value.element`` names such a type. The importer passes it on from inputs to outputs by the type rules of the standard;
forms of arithmetic that may leave its range call :func:`wrapped`. Numbers of uint64 above the largest int64 are held as
negative ones: their bits are right, comparisons and divisions of them are not.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Sequence
from typing import Any

from ._node import NodeView, held_element
from ._package import onnx
from ._values import Value

__all__ = ["bits_of", "is_signed", "marked", "wrapped"]

_TYPE_ATTRIBUTES = ("to", "dtype", "output_dtype")
_BITS = {f"{sign}int{bits}": bits for sign in ("", "u") for bits in (2, 4, 8, 16, 32, 64)}


def bits_of(value: Value) -> int:
    """The number of bits of an integer tensor's ONNX element type."""
    return _BITS[value.element or value.dtype]


def is_signed(value: Value) -> bool:
    """Whether an integer tensor's ONNX element type has negative numbers."""
    return not (value.element or value.dtype).startswith("u")


def wrapped(g: Any, value: Value, element: str | None) -> Value:
    """The numbers modulo the range of an ONNX element type, as integer arithmetic in that type gives them."""
    if element is None or element == "uint64":
        return value
    bits = _BITS[element]
    shift = 0 if element.startswith("u") else 2 ** (bits - 1)
    if shift:
        value = g.emit("_plus_scalar", [value], scalar=shift)
    value = g.emit("_npi_bitwise_and_scalar", [value], scalar=2**bits - 1)
    return g.emit("_minus_scalar", [value], scalar=shift) if shift else value


def marked(node: NodeView, inputs: Sequence[Any], results: tuple[Any, ...]) -> tuple[Any, ...]:
    """The results of a node with their ONNX element types."""
    has_type = any(node.has(name) for name in _TYPE_ATTRIBUTES) or node.op_type == "Constant"
    if not has_type and not any(_element(value) for value in inputs):
        return results
    schema = _schema(node.op_type, node.version, node.domain)
    if schema is None:
        return results
    return tuple(_with_element(value, node, inputs, schema, index) for index, value in enumerate(results))


def _element(value: Any) -> str | None:
    return value.element if isinstance(value, Value) else None


def _with_element(value: Any, node: NodeView, inputs: Sequence[Any], schema: Any, index: int) -> Any:
    if not isinstance(value, Value):
        return value
    element = _element_of_output(node, inputs, schema, index)
    if element == value.element or element == "unknown":
        return value
    if any(value is given for given in inputs):
        value = copy.copy(value)
    value.element = element
    return value


def _element_of_output(node: NodeView, inputs: Sequence[Any], schema: Any, index: int) -> str | None:
    if node.op_type == "Constant":
        return held_element(node.tensor_type("value")) if node.has("value") else None
    output = schema.outputs[min(index, len(schema.outputs) - 1)]
    for number, value in enumerate(inputs):
        given = schema.inputs[min(number, len(schema.inputs) - 1)]
        if given.type_str == output.type_str:
            return _element(value) if given.is_homogeneous else "unknown"
    for name in _TYPE_ATTRIBUTES:
        if node.has(name):
            return held_element(node.attr(name))
    return None


@functools.cache
def _schema(op_type: str, version: int, domain: str) -> Any:
    try:
        return onnx().defs.get_schema(op_type, version, domain)
    except onnx().defs.SchemaError:
        return None

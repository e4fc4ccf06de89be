"""Conversions between element types."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._element_types import wrapped
from .._errors import refuse
from .._node import dtype_of, held_element
from .._package import onnx
from .._table import form

_SMALL = ("int2", "uint2", "int4", "uint4")  # floats wrap around, too, when they are cast to these


@form("Cast")
def cast(g: Any, node: Any, x: Any) -> Any:
    to = node.attr("to")
    if isinstance(to, str):  # before opset 6
        to = getattr(onnx().TensorProto, to)
    return _converted(g, node, x, dtype_of(to, node.proto), held_element(to))


@form("CastLike")
def cast_like(g: Any, node: Any, x: Any, like: Any) -> Any:
    return _converted(g, node, x, like.dtype, like.element)


def _converted(g: Any, node: Any, x: Any, dtype: str, element: str | None) -> Any:
    """Integers wrap around; floats out of range give any number, as ONNX allows."""
    is_integer = x.dtype.startswith(("int", "uint"))
    if element in _SMALL and not is_integer:
        x, is_integer = g.cast(x, "int32"), True
    made = g.cast(x, dtype, node.name)
    return wrapped(g, made, element) if is_integer and x.element != element else made


@form("BitCast")
def bit_cast(g: Any, node: Any, x: Any) -> Any:
    """The same bits as another type: integers of the same width wrap around; constants are read as the other type."""
    to = node.attr("to")
    dtype, element = dtype_of(to, node.proto), held_element(to)
    if x.dtype == dtype and x.element == element:
        return x
    if x.is_const and x.element is None and element is None:
        return g.constant(x.const.view(np.dtype(dtype)), node.name)
    integers = [name.startswith(("int", "uint", "bool")) for name in (x.dtype, dtype)]
    if not all(integers):
        raise refuse(
            f"the bits of {x.dtype} as {dtype}",
            because="no operator reads the bits of floats as integers",
            fix="cast the numbers, or compute the bits outside of the model",
            node=node.proto,
        )
    made = g.cast(x, dtype, node.name)
    return wrapped(g, made, element)

"""Functions that change shapes, put arrays together, and multiply them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ._calls import as_array
from ._operators import direct, np_operator, public_operator

__all__ = [
    "broadcast_to", "concatenate", "dot", "expand_dims", "matmul", "reshape", "squeeze", "stack", "swapaxes",
    "transpose",
]  # fmt: skip

dot = public_operator("dot", "_np_dot", "out")
matmul = public_operator("matmul", "_npi_matmul", "out")
reshape = public_operator("reshape", "_np_reshape", "newshape order out")
transpose = public_operator("transpose", "_np_transpose", "axes")
expand_dims = public_operator("expand_dims", "_npi_expand_dims", "axis")
squeeze = public_operator("squeeze", "_np_squeeze", "axis out")
concatenate = public_operator("concatenate", "_npi_concatenate", "axis out")
stack = public_operator("stack", "_npi_stack", "axis out")


@direct("_npi_swapaxes", "axis1 axis2", needed=2, renamed={"dim1": "axis1", "dim2": "axis2"})
def swapaxes(a: Any, axis1: int, axis2: int) -> Any:
    """Two axes exchanged."""
    return np_operator("_npi_swapaxes")(a, dim1=axis1, dim2=axis2)


@direct("_npi_broadcast_to", "shape")
def broadcast_to(array: Any, shape: Any) -> Any:
    """The elements repeated to a shape that array's broadcasts to. array: may be a number or a list."""
    shape = tuple(shape) if isinstance(shape, Sequence) else (shape,)
    return np_operator("_npi_broadcast_to")(as_array(array), shape=shape)

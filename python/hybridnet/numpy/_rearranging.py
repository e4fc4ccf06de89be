"""Functions that change shapes, join arrays, and multiply them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import IndexError as HybridNetIndexError
from ..errors import ParamError
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
squeeze = public_operator("squeeze", "_np_squeeze", "axis out")
concatenate = public_operator("concatenate", "_npi_concatenate", "axis out")
stack = public_operator("stack", "_npi_stack", "axis out")


@direct("_npi_expand_dims", "axis", needed=1)
def expand_dims(a: Any, axis: int | Sequence[int]) -> Any:
    """Inserts new axes of size 1 at these positions of the result.

    Raises IndexError for positions out of range, ParamError for duplicates.
    """
    a = as_array(a)
    places = [axis] if isinstance(axis, int) else list(axis)
    rank = len(a.shape) + len(places)
    found = sorted(place + rank if place < 0 else place for place in places)
    if not all(0 <= place < rank for place in found):
        raise HybridNetIndexError("np.expand_dims: axis", expected=f"places in [-{rank}, {rank})", given=str(axis))
    if len(set(found)) < len(found):
        raise ParamError("np.expand_dims: axis", expected="different places", given=str(axis))
    for place in found:
        a = np_operator("_npi_expand_dims")(a, axis=place)
    return a if found else np_operator("_np_copy")(a)


@direct("_npi_swapaxes", "axis1 axis2", needed=2, renamed={"dim1": "axis1", "dim2": "axis2"})
def swapaxes(a: Any, axis1: int, axis2: int) -> Any:
    """Exchanges two axes."""
    return np_operator("_npi_swapaxes")(a, dim1=axis1, dim2=axis2)


@direct("_npi_broadcast_to", "shape")
def broadcast_to(array: Any, shape: Any) -> Any:
    """Broadcasts an array, a number or a list to a shape."""
    shape = tuple(shape) if isinstance(shape, Sequence) else (shape,)
    return np_operator("_npi_broadcast_to")(as_array(array), shape=shape)

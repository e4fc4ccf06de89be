"""Sums of products: einsum, tensordot and the functions that NumPy defines by them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import TypeError as HybridNetTypeError
from ._operators import _converted, np_operator
from ._rearranging import reshape

__all__ = ["cross", "einsum", "inner", "kron", "outer", "tensordot", "trace", "vdot"]


def einsum(*operands: Any, **kwargs: Any) -> Any:
    """Sums of products in Einstein notation: ``einsum("ij,jk->ik", a, b)``.

    Letters that are missing in the result are summed over; '...' stands for further axes; axes of size 1 broadcast.
    optimize: True or the name of a strategy contracts the pair with the smallest product first, else from left to
    right.
    Raises ParamError for subscripts that do not fit the arrays, ShapeError for sizes that differ.
    """
    out, optimize = kwargs.pop("out", None), kwargs.pop("optimize", False)
    if kwargs or not operands or not isinstance(operands[0], str):
        raise HybridNetTypeError(
            "np.einsum",
            expected="subscripts, arrays, and the keywords out and optimize",
            given=", ".join([type(operand).__name__ for operand in operands[:1]] + [*kwargs]),
            fix="einsum('ij,jk->ik', a, b)",
        )
    arrays = [_converted(array) for array in operands[1:]]
    return np_operator("_npi_einsum")(*arrays, subscripts=operands[0], optimize=int(bool(optimize)), out=out)


def _axes(axes: Any) -> tuple[int, ...]:
    return tuple(axes) if isinstance(axes, Sequence) else (axes,)


def tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    """Sums of products over axes: a number n (the last n axes of a, the first n of b), or a pair of lists of axes."""
    if not isinstance(axes, Sequence):
        return np_operator("_npi_tensordot_int_axes")(a, b, axes=axes)
    if len(axes) != 2:
        raise HybridNetTypeError(
            "np.tensordot: axes", expected="a number, or the axes of a and those of b", given=str(axes)
        )
    return np_operator("_npi_tensordot")(a, b, a_axes_summed=_axes(axes[0]), b_axes_summed=_axes(axes[1]))


def inner(a: Any, b: Any) -> Any:
    """Sums of products over the last axes; a scalar operand multiplies."""
    a, b = _converted(a), _converted(b)
    if getattr(a, "ndim", 1) == 0 or getattr(b, "ndim", 1) == 0:
        return a * b
    return tensordot(a, b, [-1, -1])


def outer(a: Any, b: Any) -> Any:
    """Products of all elements of a (as rows) with all elements of b (as columns)."""
    return tensordot(reshape(_converted(a), -1), reshape(_converted(b), -1), 0)


def vdot(a: Any, b: Any) -> Any:
    """The sum of products of all elements."""
    return tensordot(reshape(_converted(a), -1), reshape(_converted(b), -1), 1)


def kron(a: Any, b: Any) -> Any:
    """Kronecker product: every element of a times b."""
    return np_operator("_npi_kron")(a, b)


def cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Any:
    """Cross products of vectors with 2 or 3 elements; two vectors with 2 elements give a number."""
    return np_operator("_npi_cross")(a, b, axisa=axisa, axisb=axisb, axisc=axisc, axis=axis)


def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, out: Any = None) -> Any:
    """Sums along the diagonals of the matrices over axis1 and axis2. For bools, counts the true elements."""
    return np_operator("_np_trace")(a, offset=offset, axis1=axis1, axis2=axis2, out=out)

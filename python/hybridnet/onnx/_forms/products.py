"""Matrix products, sums of products, determinants."""

from __future__ import annotations

import string
from typing import Any

from .._arithmetic import calculate
from .._element_types import wrapped
from .._errors import wrong
from .._table import form


def _is_float(x: Any) -> bool:
    return bool(x.dtype.startswith(("float", "bfloat")))


@form("MatMul")
def matmul(g: Any, node: Any, a: Any, b: Any) -> Any:
    """A product by NumPy's rule; that with a constant matrix is a dense layer."""
    if b.is_const and b.ndim == 2 and a.ndim >= 2 and not a.is_const and _is_float(a):
        weight = g.transposed(b)
        made = g.emit("FullyConnected", [a, weight], name=node.name, num_hidden=b.fixed(1), no_bias=True, flatten=False)
        if g.readers(node.proto.output[0]) == 1:
            g.products[made] = (a, weight)
        return made
    equal_stacks = a.ndim == b.ndim > 2 and all(
        left[:-2] == right[:-2] for left, right in zip(a.shapes, b.shapes, strict=True)
    )
    op = "batch_dot" if equal_stacks else "dot" if a.ndim == b.ndim == 2 else "_npi_matmul"
    return wrapped(g, g.emit(op, [a, b], name=node.name), a.element)


@form("Gemm")
def gemm(g: Any, node: Any, a: Any, b: Any, c: Any = None) -> Any:
    """alpha * A B + beta * C, with A and B transposed or not; a dense layer if B is constant."""
    alpha, beta = node.attr("alpha", 1.0), node.attr("beta", 1.0)
    transposes = [bool(node.attr(name, 0)) for name in ("transA", "transB")]
    if beta == 0:
        c = None
    if b.is_const and b.ndim == 2 and not a.is_const and _is_float(a):
        return _dense(g, node, a, b, c, alpha, beta)
    product = g.emit("dot", [a, b], name=node.name, transpose_a=transposes[0], transpose_b=transposes[1])
    result = _plus_scaled(g, _times(g, product, alpha), c, beta, node.name)
    return wrapped(g, result, a.element)


def _times(g: Any, x: Any, number: float) -> Any:
    if number == 1:
        return x
    if not _is_float(x):  # the number may be a fraction
        return g.cast(g.emit("_mul_scalar", [g.cast(x, "float64")], scalar=number), x.dtype)
    return g.emit("_mul_scalar", [x], scalar=number)


def _plus_scaled(g: Any, x: Any, c: Any, beta: float, name: str) -> Any:
    return x if c is None else calculate(g, "+", x, _times(g, c, beta), name)


def _dense(g: Any, node: Any, a: Any, b: Any, c: Any, alpha: float, beta: float) -> Any:
    weight = b if node.attr("transB", 0) else g.transposed(b)
    if alpha != 1:
        weight = g.derived(weight, f"times_{alpha}", lambda array: (array * alpha).astype(array.dtype))
    if node.attr("transA", 0):
        a = g.emit("transpose", [a], axes=(1, 0))
    units = weight.fixed(0)
    bias = _row(g, c, units, beta)
    inputs = [a, weight] if bias is None else [a, weight, bias]
    made = g.emit("FullyConnected", inputs, name=node.name, num_hidden=units, no_bias=bias is None)
    return made if bias is not None else _plus_scaled(g, made, c, beta, node.name)


def _row(g: Any, c: Any, units: int, beta: float) -> Any:
    """C as the bias of a dense layer; None if it is not one row."""
    if c is None or c.ndim not in (1, 2) or c.fixed(-1) != units or (c.ndim == 2 and c.fixed(0) != 1):
        return None
    if not c.is_const:
        return _times(g, g.reshape(c, [units]), beta)
    if c.ndim == 2:
        c = g.derived(c, "row", lambda array: array.reshape(-1))
    return c if beta == 1 else g.derived(c, f"times_{beta}", lambda array: (array * beta).astype(array.dtype))


@form("Einsum")
def einsum(g: Any, node: Any, *values: Any) -> Any:
    equation = node.attr("equation").replace(" ", "")
    if "->" not in equation:
        equation = f"{equation}->{_result_letters(equation)}"
    return g.emit("_npi_einsum", values, name=node.name, num_args=len(values), subscripts=equation)


def _result_letters(terms: str) -> str:
    """The axes of a result that the equation does not name: the letters that stand in it once, sorted."""
    once = sorted(letter for letter in string.ascii_letters if terms.count(letter) == 1)
    return ("..." if "..." in terms else "") + "".join(once)


@form("Det")
def det(g: Any, node: Any, x: Any) -> Any:
    if x.ndim < 2 or {*(left == right for left, right in (shape[-2:] for shape in x.shapes))} != {True}:
        raise wrong(f"the input is not a stack of square matrices: {x.shapes[0]}", node=node.proto)
    if x.dtype in ("float16", "bfloat16"):
        return g.cast(g.emit("_npi_det", [g.cast(x, "float32")]), x.dtype, node.name)
    return g.emit("_npi_det", [x], name=node.name)

"""Functions of one element, and arithmetic, comparisons and logic of several tensors."""

from __future__ import annotations

from typing import Any

from .._element_types import wrapped
from .._table import form

# ONNX operators that one operator of HybridNet is, with the same inputs and no parameters. Exports read it backwards.
DIRECT = {
    "Abs": "abs",
    "Acos": "arccos",
    "Acosh": "arccosh",
    "Asin": "arcsin",
    "Asinh": "arcsinh",
    "Atan": "arctan",
    "Atanh": "arctanh",
    "Ceil": "ceil",
    "Cos": "cos",
    "Cosh": "cosh",
    "Erf": "erf",
    "Exp": "exp",
    "Floor": "floor",
    "Log": "log",
    "Neg": "negative",
    "Reciprocal": "reciprocal",
    "Relu": "relu",
    "Round": "_npi_around",
    "Sigmoid": "sigmoid",
    "Sign": "sign",
    "Sin": "sin",
    "Sinh": "sinh",
    "Softsign": "softsign",
    "Sqrt": "sqrt",
    "Tan": "tan",
    "Tanh": "tanh",
}


def _direct(onnx_name: str, op: str) -> None:
    @form(onnx_name)
    def make(g: Any, node: Any, x: Any) -> Any:
        return wrapped(g, g.emit(op, [x], name=node.name), x.element)


for _name, _op in DIRECT.items():
    _direct(_name, _op)


@form("IsNaN")
def is_nan(g: Any, node: Any, x: Any) -> Any:
    return g.emit("_npi_isnan", [x], name=node.name)


@form("IsInf")
def is_inf(g: Any, node: Any, x: Any) -> Any:
    """Whether elements are infinite: with both signs, or one."""
    kinds = (bool(node.attr("detect_positive", 1)), bool(node.attr("detect_negative", 1)))
    ops = {(True, True): "_npi_isinf", (True, False): "_npi_isposinf", (False, True): "_npi_isneginf"}
    if kinds in ops:
        return g.emit(ops[kinds], [x], name=node.name)
    return g.emit("_npi_less", [x, x], name=node.name)  # false for all


@form("Not")
def logical_not(g: Any, node: Any, x: Any) -> Any:
    return g.emit("_npi_bitwise_not", [x], name=node.name)


# Arithmetic by NumPy's broadcasting: the operator of two tensors, of a tensor and a number, of a number and a tensor.
BINARY = {
    "Add": ("broadcast_add", "_plus_scalar", "_plus_scalar"),
    "Sub": ("broadcast_sub", "_minus_scalar", "_rminus_scalar"),
    "Mul": ("broadcast_mul", "_mul_scalar", "_mul_scalar"),
    "Div": ("broadcast_div", "_div_scalar", "_rdiv_scalar"),
}

# Comparisons, which give bool.
COMPARISONS = {
    "Equal": ("_npi_equal", "_npi_equal_scalar", "_npi_equal_scalar"),
    "Less": ("_npi_less", "_npi_less_scalar", "_npi_greater_scalar"),
    "LessOrEqual": ("_npi_less_equal", "_npi_less_equal_scalar", "_npi_greater_equal_scalar"),
    "Greater": ("_npi_greater", "_npi_greater_scalar", "_npi_less_scalar"),
    "GreaterOrEqual": ("_npi_greater_equal", "_npi_greater_equal_scalar", "_npi_less_equal_scalar"),
}


def _binary(onnx_name: str, ops: tuple[str, str, str]) -> None:
    @form(onnx_name)
    def make(g: Any, node: Any, a: Any, b: Any) -> Any:
        b = _aligned(g, node, a, b)
        if onnx_name == "Add":
            dense = _with_bias(g, node, a, b) or _with_bias(g, node, b, a)
            if dense is not None:
                return dense
        return wrapped(g, g.arithmetic(node.name, ops, a, b), a.element)


def _comparison(onnx_name: str, ops: tuple[str, str, str]) -> None:
    @form(onnx_name)
    def make(g: Any, node: Any, a: Any, b: Any) -> Any:
        return g.arithmetic(node.name, ops, a, _aligned(g, node, a, b))


for _name, _ops in BINARY.items():
    _binary(_name, _ops)
for _name, _ops in COMPARISONS.items():
    _comparison(_name, _ops)


def _aligned(g: Any, node: Any, a: Any, b: Any) -> Any:
    """The second operand; before opset 7, `axis` says where its axes stand in the first one's."""
    if node.version >= 7 or not node.attr("broadcast", 0) or not node.has("axis"):
        return b
    behind = a.ndim - node.attr("axis") % a.ndim - b.ndim
    return g.reshape(b, [*g.dims(b), *[1] * behind])


def _with_bias(g: Any, node: Any, product: Any, bias: Any) -> Any:
    """One layer for the product with a constant matrix and a constant row that is added; None for other sums."""
    factors = g.products.get(product)
    if factors is None or not bias.is_const or bias.const.size != product.fixed(-1) or bias.ndim > product.ndim:
        return None
    if bias.ndim != 1 and bias.fixed(-1) != bias.const.size:
        return None
    row = bias if bias.ndim == 1 else g.derived(bias, "row", lambda array: array.reshape(-1))
    return g.emit(
        "FullyConnected", [*factors, row], name=node.name, num_hidden=product.fixed(-1), no_bias=False, flatten=False
    )


@form("And")
def logical_and(g: Any, node: Any, a: Any, b: Any) -> Any:
    return g.emit("_npi_bitwise_and", [a, _aligned(g, node, a, b)], name=node.name)


@form("Or")
def logical_or(g: Any, node: Any, a: Any, b: Any) -> Any:
    return g.emit("_npi_bitwise_or", [a, _aligned(g, node, a, b)], name=node.name)


@form("Xor")
def logical_xor(g: Any, node: Any, a: Any, b: Any) -> Any:
    return g.emit("_npi_bitwise_xor", [a, _aligned(g, node, a, b)], name=node.name)


@form("Max")
def maximum(g: Any, node: Any, *values: Any) -> Any:
    return _joined(g, node, ("broadcast_maximum", "_maximum_scalar", "_maximum_scalar"), values)


@form("Min")
def minimum(g: Any, node: Any, *values: Any) -> Any:
    return _joined(g, node, ("broadcast_minimum", "_minimum_scalar", "_minimum_scalar"), values)


@form("Sum")
def add_all(g: Any, node: Any, *values: Any) -> Any:
    """A sum of several tensors; one pass over memory if their shapes are equal."""
    if len(values) > 2 and len({value.shapes for value in values}) == 1:
        return g.emit("add_n", values, name=node.name, num_args=len(values))
    return _joined(g, node, BINARY["Add"], values)


@form("Mean")
def mean_of_all(g: Any, node: Any, *values: Any) -> Any:
    if len(values) == 1:
        return values[0]
    return g.emit("_div_scalar", [add_all(g, node, *values)], name=node.name, scalar=len(values))


def _joined(g: Any, node: Any, ops: tuple[str, str, str], values: tuple[Any, ...]) -> Any:
    result = values[0]
    for value in values[1:]:
        result = g.arithmetic(node.name, ops, result, value)
    return result


@form("Where")
def where(g: Any, node: Any, condition: Any, x: Any, y: Any) -> Any:
    """Elements of x or y. A constant of one element stays a number, by which masks of attention are recognized."""
    if _is_number(x) and not y.is_const and x.ndim <= max(condition.ndim, y.ndim):
        number = float(x.const.reshape(-1)[0])
        if number != float("-inf"):
            return g.emit("_npi_where_lscalar", [condition, y], name=node.name, scalar=number)
        kept = g.emit("_npi_bitwise_not", [condition])
        return g.emit("_npi_where_rscalar", [kept, y], name=node.name, scalar=number)
    if _is_number(y) and not x.is_const and y.ndim <= max(condition.ndim, x.ndim):
        number = float(y.const.reshape(-1)[0])
        return g.emit("_npi_where_rscalar", [condition, x], name=node.name, scalar=number)
    return g.emit("_npi_where", [condition, x, y], name=node.name)


def _is_number(x: Any) -> bool:
    return x.is_const and x.const.size == 1 and x.dtype.startswith(("float", "bfloat"))

"""Special functions and densities, which ONNX lacks: composed of logarithms, powers and sines."""

from __future__ import annotations

import math
from typing import Any

from .._export_errors import refuse_use
from .._export_table import export_form
from .._export_values import Spec, Tensor, product

# Lanczos' approximation with g = 7 and 9 terms (Godfrey's coefficients): 15 digits in float64.
_LANCZOS = (
    0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059,
    12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7,
)  # fmt: skip


def _log_gamma_from_half(g: Any, x: Tensor) -> Tensor:
    """The logarithm of the gamma function for x >= 0.5, float64."""
    z = g.emit("Sub", x, 1)
    total = g.emit("Add", g.emit("Div", _LANCZOS[1], g.emit("Add", z, 1)), _LANCZOS[0])
    for k, coefficient in enumerate(_LANCZOS[2:], 2):
        total = g.emit("Add", total, g.emit("Div", coefficient, g.emit("Add", z, k)))
    t = g.emit("Add", z, 7.5)
    power = g.emit("Sub", g.emit("Mul", g.emit("Add", z, 0.5), g.emit("Log", t)), t)
    made = g.emit("Add", g.emit("Add", power, g.emit("Log", total)), 0.5 * math.log(2 * math.pi))
    return g.where(g.emit("IsInf", x), x, made)


def _sine_of_pi(g: Any, x: Tensor) -> Tensor:
    """sin(pi x), exactly zero for integers."""
    rest = g.emit("Mod", x, 2.0, fmod=1)
    whole = g.emit("Equal", g.emit("Floor", x), x)
    return g.where(whole, 0, g.emit("Sin", g.emit("Mul", rest, math.pi)))


def log_gamma(g: Any, x: Tensor) -> Tensor:
    """log |gamma(x)|, by reflection below 0.5. x is float64."""
    is_small = g.emit("Less", x, 0.5)
    direct = _log_gamma_from_half(g, g.where(is_small, g.emit("Sub", 1, x), x))
    sine = g.emit("Abs", _sine_of_pi(g, x))
    reflected = g.emit("Sub", math.log(math.pi), g.emit("Add", g.emit("Log", sine), direct))
    return g.where(is_small, reflected, direct)


@export_form("gammaln")
def _gammaln(g: Any, node: Any) -> Tensor:
    return log_gamma(g, g.cast(node.inputs[0], "float64"))


@export_form("gamma")
def _gamma(g: Any, node: Any) -> Tensor:
    x = g.cast(node.inputs[0], "float64")
    size = g.emit("Exp", log_gamma(g, x))
    sign = g.where(g.emit("Less", x, 0.5), g.emit("Sign", _sine_of_pi(g, x)), 1)
    made = g.emit("Mul", size, g.where(g.emit("Equal", sign, 0), 1, sign))
    is_integer = not node.inputs[0].dtype.startswith(("float", "bfloat"))
    return g.emit("Round", made) if is_integer else made


# Giles: Approximating the erfinv function, GPU Computing Gems 2 (2011), the polynomials in single precision.
_NEAR = (2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503, -0.00417768164,
         0.246640727, 1.50140941)  # fmt: skip
_FAR = (-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613, 0.00943887047,
        1.00167406, 2.83297682)  # fmt: skip


def _polynomial(g: Any, x: Tensor, coefficients: tuple[float, ...]) -> Tensor:
    total = g.emit("Add", g.emit("Mul", x, coefficients[0]), coefficients[1])
    for coefficient in coefficients[2:]:
        total = g.emit("Add", g.emit("Mul", total, x), coefficient)
    return total


@export_form("erfinv")
def _erfinv(g: Any, node: Any) -> Tensor:
    x = g.cast(node.inputs[0], "float64")
    w = g.emit("Neg", g.emit("Log", g.emit("Mul", g.emit("Sub", 1, x), g.emit("Add", 1, x))))
    near = _polynomial(g, g.emit("Sub", w, 2.5), _NEAR)
    # The roots and infinities that are not chosen have gradients, too: 0 times these must be 0.
    far = _polynomial(g, g.emit("Sub", g.emit("Sqrt", g.emit("Max", w, 1)), 3), _FAR)
    made = g.emit("Mul", g.where(g.emit("Less", w, 5), near, far), x)
    at_end = g.emit("Equal", g.emit("Abs", x), 1)
    end = g.where(g.emit("Greater", x, 0), *(g.const(sign * math.inf, "float64") for sign in (1, -1)))
    return g.where(at_end, end, made)


# ------------------------------------------------------------------------------------------------------------- Fourier
def _transformed(g: Any, x: Tensor, inverse: bool) -> Tensor:
    """Discrete Fourier transforms of (rows, n, 1 or 2), not normalized, as (rows, n, 2)."""
    count = x.dim(1)
    spec = Spec([(*s[:2], 2) for s in x.shapes], x.dtype)
    if g.opset >= 20:
        made = g.emit("DFT", x, None, g.const(1, "int64"), inverse=int(inverse), spec=spec)
    else:
        made = g.emit("DFT", x, axis=1, inverse=int(inverse), spec=spec)
    return g.emit("Mul", made, g.number(count, x.dtype)) if inverse else made


@export_form("_contrib_fft", "_contrib_ifft")
def _fourier(g: Any, node: Any) -> Tensor:
    x, inverse = node.inputs[0], node.op == "_contrib_ifft"
    if g.opset < 17:
        raise refuse_use(node, f"opset {g.opset} has no DFT", fix="export with opset_version=17 or more")
    rows = product(x.dims[:-1])
    if not inverse:
        return g.reshape(_transformed(g, g.reshape(x, [rows, x.dim(-1), 1]), inverse), node.dims())
    made = _transformed(g, g.reshape(x, [rows, x.dim(-1) // 2, 2]), inverse)
    return g.reshape(g.slice(made, 2, 0, 1), node.dims())


# ----------------------------------------------------------------------------------------------------------- densities
def _log(g: Any, x: Tensor) -> Tensor:
    return g.emit("Log", x)


def _uniform(g: Any, x: Tensor, low: Tensor, high: Tensor) -> Tensor:
    return g.emit("Sub", g.emit("Mul", x, 0), _log(g, g.emit("Sub", high, low)))


def _normal(g: Any, x: Tensor, mean: Tensor, deviation: Tensor) -> Tensor:
    z = g.emit("Div", g.emit("Sub", x, mean), deviation)
    square = g.emit("Mul", g.emit("Mul", z, z), -0.5)
    return g.emit("Sub", square, _log(g, g.emit("Mul", deviation, math.sqrt(2 * math.pi))))


def _gamma_density(g: Any, x: Tensor, alpha: Tensor, beta: Tensor) -> Tensor:
    total = g.emit("Add", g.emit("Mul", alpha, _log(g, beta)), g.emit("Mul", g.emit("Sub", alpha, 1), _log(g, x)))
    return g.emit("Sub", g.emit("Sub", total, g.emit("Mul", beta, x)), log_gamma(g, alpha))


def _exponential(g: Any, x: Tensor, rate: Tensor) -> Tensor:
    return g.emit("Sub", _log(g, rate), g.emit("Mul", rate, x))


def _poisson(g: Any, x: Tensor, rate: Tensor) -> Tensor:
    total = g.emit("Sub", g.emit("Mul", x, _log(g, rate)), rate)
    return g.emit("Sub", total, log_gamma(g, g.emit("Add", x, 1)))


def _negative_binomial(g: Any, x: Tensor, k: Tensor, p: Tensor) -> Tensor:
    ways = g.emit("Sub", log_gamma(g, g.emit("Add", x, k)), log_gamma(g, g.emit("Add", x, 1)))
    ways = g.emit("Sub", ways, log_gamma(g, k))
    hits = g.emit("Add", g.emit("Mul", k, _log(g, p)), g.emit("Mul", x, _log(g, g.emit("Sub", 1, p))))
    return g.emit("Add", ways, hits)


def _generalized(g: Any, x: Tensor, mean: Tensor, dispersion: Tensor) -> Tensor:
    p = g.emit("Reciprocal", g.emit("Add", g.emit("Mul", mean, dispersion), 1))
    return _negative_binomial(g, x, g.emit("Reciprocal", dispersion), p)


def _density(name: str, logarithm: Any) -> None:
    def form(g: Any, node: Any) -> Tensor:
        sample, *parameters = (g.cast(x, "float64") for x in node.inputs)
        parameters = [g.unsqueeze(p, range(p.ndim, sample.ndim)) for p in parameters]
        made = logarithm(g, sample, *parameters)
        return made if node.params["is_log"] else g.emit("Exp", made)

    export_form(f"_random_pdf_{name}")(form)


for _name, _logarithm in (
    ("uniform", _uniform), ("normal", _normal), ("gamma", _gamma_density), ("exponential", _exponential),
    ("poisson", _poisson), ("negative_binomial", _negative_binomial), ("generalized_negative_binomial", _generalized),
):  # fmt: skip
    _density(_name, _logarithm)


@export_form("_random_pdf_dirichlet")
def _dirichlet(g: Any, node: Any) -> Tensor:
    sample, alpha = (g.cast(x, "float64") for x in node.inputs)
    alpha = g.unsqueeze(alpha, range(alpha.ndim - 1, sample.ndim - 1))
    each = g.emit("Sub", g.emit("Mul", g.emit("Sub", alpha, 1), _log(g, sample)), log_gamma(g, alpha))
    whole = log_gamma(g, g.reduce("Sum", alpha, [-1], keepdims=False))
    made = g.emit("Add", g.reduce("Sum", each, [-1], keepdims=False), whole)
    made = g.reshape(made, node.dims())
    return made if node.params["is_log"] else g.emit("Exp", made)

"""What the operators that work element by element compute, in NumPy; broadcasting ones too."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from .attributes import tuple_value, value


def _numbers(array):
    return array.astype("int64") if array.dtype == bool else array


def _each(function):
    """function(*inputs) of numbers: bools count as 0 and 1."""
    return lambda inputs, attrs: [function(*(_numbers(x) for x in inputs))]


def _with_scalar(function, exact=False):
    """The number is a whole one beside whole numbers (1.5 is 1); exact: only beside bools."""

    def reference(inputs, attrs):
        (data,) = inputs
        scalar = value(attrs, "scalar")
        if data.dtype == bool or (data.dtype.kind != "f" and not exact):
            scalar = int(scalar)
            if scalar < 0 and data.dtype.kind == "u":
                return [None]  # no such number
        return [function(data.astype("int64") if data.dtype.kind != "f" else data, scalar)]

    return reference


def _by_float(function):
    vectorized = np.vectorize(function, otypes=["float64"])
    return lambda x: vectorized(x) if x.size else x.astype("float64")


_erf = _by_float(math.erf)
_gamma = _by_float(lambda x: math.gamma(x) if x > 0 or x != int(x) else math.nan)
_lgamma = _by_float(lambda x: math.lgamma(x) if x > 0 or x != int(x) else math.inf)


def _inverse_erf(x):
    if abs(x) >= 1:
        return math.copysign(math.inf, x) if abs(x) == 1 else math.nan
    return NormalDist().inv_cdf((x + 1) / 2) / math.sqrt(2)


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))


def _softrelu(x):
    return np.logaddexp(0, x)


def _quotient(a, b):
    quotient = np.divide(a, b)
    return np.trunc(quotient) if np.issubdtype(np.result_type(a, b), np.integer) else quotient


def _power(a, b):
    return np.power(np.asarray(a, "float64"), np.asarray(b, "float64"))


def _modulo(a, b):
    with np.errstate(all="ignore"):
        return np.where(np.asarray(b) == 0, 0, np.mod(a, np.where(np.asarray(b) == 0, 1, b)))


def _smooth_l1(x, scalar):
    squared = scalar * scalar
    return np.where(np.abs(x) < 1 / squared, 0.5 * squared * x * x, np.abs(x) - 0.5 / squared)


_ACTIVATIONS = {
    "relu": lambda x: np.maximum(x, 0),
    "sigmoid": _sigmoid,
    "log_sigmoid": lambda x: -_softrelu(-x),
    "mish": lambda x: x * np.tanh(_softrelu(x)),
    "tanh": np.tanh,
    "softrelu": _softrelu,
    "softsign": lambda x: x / (1 + np.abs(x)),
}
_SELU_ALPHA, _SELU_SCALE = 1.6732632423543772, 1.0507009873554805


def _leaky_relu(inputs, attrs, train=False):
    x, slope, kind = inputs[0], value(attrs, "slope", 0.25), attrs.get("act_type", "leaky")
    if kind == "rrelu" and train:
        return [None]  # slopes are drawn
    if kind == "gelu":
        return [0.5 * x * (1 + _erf(x / math.sqrt(2)))]
    if kind == "elu":
        return [np.where(x > 0, x, slope * np.expm1(x))]
    if kind == "selu":
        return [_SELU_SCALE * np.where(x > 0, x, _SELU_ALPHA * np.expm1(x))]
    if kind == "rrelu":
        slope = (value(attrs, "lower_bound", 0.125) + value(attrs, "upper_bound", 0.334)) / 2
    if kind == "prelu":
        gamma = inputs[1]
        slope = gamma.reshape(gamma.shape + (1,) * (x.ndim - 2)) if x.ndim > 1 and gamma.ndim == 1 else gamma
    return [np.where(x > 0, x, slope * x)]


def _cast(inputs, attrs):
    return [inputs[0].astype("float64" if attrs["dtype"] == "bfloat16" else attrs["dtype"])]


def _clip(inputs, attrs):
    return [np.clip(_numbers(inputs[0]), value(attrs, "a_min"), value(attrs, "a_max"))]


def _broadcast_to(inputs, attrs):
    (data,) = inputs
    shape = [have if want == 0 else want for want, have in zip(tuple_value(attrs, "shape"), data.shape)]
    return [np.broadcast_to(data, shape)]


def _broadcast_axis(inputs, attrs):
    (data,) = inputs
    shape = list(data.shape)
    for axis, size in zip(tuple_value(attrs, "axis"), tuple_value(attrs, "size")):
        shape[axis] = size
    return [np.broadcast_to(data, shape)]


def _broadcast_like(inputs, attrs):
    lhs, rhs = inputs
    shape = list(lhs.shape)
    if "lhs_axes" not in attrs:
        return [np.broadcast_to(lhs, rhs.shape)]
    for a, b in zip(tuple_value(attrs, "lhs_axes"), tuple_value(attrs, "rhs_axes")):
        shape[a] = rhs.shape[b]
    return [np.broadcast_to(lhs, shape)]


_UNARY = {
    "_copy": lambda x: x,
    "BlockGrad": lambda x: x,
    "MakeLoss": lambda x: x,
    "make_loss": lambda x: x,
    "zeros_like": np.zeros_like,
    "ones_like": np.ones_like,
    "exp": np.exp,
    "expm1": np.expm1,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "square": np.square,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "cbrt": np.cbrt,
    "rcbrt": lambda x: 1 / np.cbrt(x),
    "reciprocal": lambda x: _quotient(1, x),
    "negative": np.negative,
    "abs": np.abs,
    "sign": np.sign,
    "_contrib_sign_ste": np.sign,
    "relu": _ACTIVATIONS["relu"],
    "sigmoid": _sigmoid,
    "softsign": _ACTIVATIONS["softsign"],
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "arcsin": np.arcsin,
    "arccos": np.arccos,
    "arctan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "arcsinh": np.arcsinh,
    "arccosh": np.arccosh,
    "arctanh": np.arctanh,
    "degrees": np.degrees,
    "radians": np.radians,
    "round": lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x),  # halves away from zero
    "_contrib_round_ste": lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x),
    "rint": np.rint,
    "ceil": np.ceil,
    "floor": np.floor,
    "trunc": np.trunc,
    "fix": np.trunc,
    "logical_not": np.logical_not,
    "erf": _erf,
    "erfinv": _by_float(_inverse_erf),
    "gamma": _gamma,
    "gammaln": _lgamma,
}
_BINARY = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": _quotient,
    "equal": np.equal,
    "not_equal": np.not_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
    "lesser": np.less,
    "lesser_equal": np.less_equal,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "logical_xor": np.logical_xor,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "power": _power,
    "mod": _modulo,
    "hypot": np.hypot,
}
_COMPARISONS = (
    "equal",
    "not_equal",
    "greater",
    "greater_equal",
    "lesser",
    "lesser_equal",
    "logical_and",
    "logical_or",
    "logical_xor",
)
_PLAIN_NAMES = {"add": "elemwise_add", "sub": "elemwise_sub", "mul": "elemwise_mul", "div": "elemwise_div"}
_SCALAR_NAMES = {"add": "_plus_scalar", "sub": "_minus_scalar"}

REFERENCES = {
    **{name: _each(function) for name, function in _UNARY.items()},
    **{f"broadcast_{name}": _each(function) for name, function in _BINARY.items()},
    **{_PLAIN_NAMES.get(name, f"_{name}"): _each(function) for name, function in _BINARY.items()},
    **{
        _SCALAR_NAMES.get(name, f"_{name}_scalar"): _with_scalar(function, name in _COMPARISONS)
        for name, function in _BINARY.items()
    },
    "_rminus_scalar": _with_scalar(lambda x, s: s - x),
    "_rdiv_scalar": _with_scalar(lambda x, s: _quotient(s, x)),
    "_rmod_scalar": _with_scalar(lambda x, s: _modulo(s, x)),
    "_rpower_scalar": _with_scalar(lambda x, s: _power(s, x)),
    "_grad_add": _each(np.add),
    "add_n": lambda inputs, attrs: [sum(_numbers(x) for x in inputs)],
    "where": lambda inputs, attrs: [np.where(_rows(inputs[0], inputs[1]) != 0, inputs[1], inputs[2])],
    "clip": _clip,
    "hard_sigmoid": lambda inputs, attrs: [
        np.clip(value(attrs, "alpha", 0.2) * inputs[0] + value(attrs, "beta", 0.5), 0, 1)
    ],
    "smooth_l1": lambda inputs, attrs: [_smooth_l1(inputs[0], value(attrs, "scalar", 1.0))],
    "Activation": lambda inputs, attrs: [_ACTIVATIONS[attrs["act_type"]](inputs[0])],
    "LeakyReLU": _leaky_relu,
    "Cast": _cast,
    "amp_cast": _cast,
    "amp_multicast": lambda inputs, attrs: list(inputs),
    "all_finite": lambda inputs, attrs: [np.array([float(np.isfinite(inputs[0]).all())])],
    "multi_all_finite": lambda inputs, attrs: [np.array([float(all(np.isfinite(x).all() for x in inputs))])],
    "reset_arrays": lambda inputs, attrs: [np.zeros_like(x) for x in inputs],
    "broadcast_to": _broadcast_to,
    "broadcast_axis": _broadcast_axis,
    "broadcast_like": _broadcast_like,
}


def _rows(condition, like):
    """A condition with one value per row of the others."""
    return (
        condition.reshape(condition.shape + (1,) * (like.ndim - condition.ndim))
        if condition.ndim < like.ndim
        else condition
    )

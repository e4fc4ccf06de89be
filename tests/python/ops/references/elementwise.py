"""NumPy references of the operators of src/ops/elementwise: functions of one array, and of an array and a number."""

from __future__ import annotations

import math
import statistics

import numpy as np

from .attributes import value


def _each(function, *, outside=math.nan):
    """Applies a function of one Python float to arrays; the result is `outside` where the function is undefined."""

    def at(x):
        try:
            return function(float(x))
        except (ValueError, OverflowError):
            return outside

    return np.vectorize(at, otypes=["float64"])


def _digamma(x):
    """Computes digamma by its recurrence up to 12, then by the asymptotic series."""
    total = 0.0
    while x < 12:
        total -= 1 / x
        x += 1
    y = 1 / (x * x)
    series = y * (1 / 12 - y * (1 / 120 - y * (1 / 252 - y * (1 / 240 - y / 132))))
    return total + math.log(x) - 1 / (2 * x) - series


def _trigamma(x):
    total = 0.0
    while x < 12:
        total += 1 / (x * x)
        x += 1
    y = 1 / (x * x)
    return total + 1 / x + y / 2 + (1 / x) * y * (1 / 6 - y * (1 / 30 - y * (1 / 42 - y * (1 / 30 - y * 5 / 66))))


def _erfinv(x):
    if abs(x) == 1:
        return math.copysign(math.inf, x)
    tail = (1 - abs(x)) / 2  # the tail of the normal distribution, which has the digits that 1 - tail would lose
    return math.copysign(-statistics.NormalDist().inv_cdf(tail) / math.sqrt(2), x)


def _unary(function):
    def reference(inputs, attrs):
        x = inputs[0]
        return [function(x.astype("float64") if x.dtype == bool else x)]

    return reference


def _wide(function):
    """A reference that computes in float64, also for integers."""
    return _unary(lambda x: function(np.asarray(x, "float64")))


def _integer_reciprocal(x):
    if x.dtype.kind == "f":
        return 1 / x
    return np.where(np.abs(x.astype("int64")) == 1, x, 0)


def _rint(x):
    """Rounds to the nearest integer, halves down."""
    low, high = np.floor(x), np.ceil(x)
    return np.where(x - low <= high - x, low, high)


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))


def _softrelu(x):
    return np.logaddexp(0, x)


def _softsign(x):
    return x / (1 + np.abs(x))


def _phi(x):
    return 0.5 * (1 + _each(math.erf)(x / math.sqrt(2)))


def _gelu(x):
    return x * _phi(x)


_SELU_ALPHA, _SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946

UNARY = {
    "abs": _unary(np.abs),
    "negative": _unary(np.negative),
    "sign": _unary(np.sign),
    "square": _unary(np.square),
    "reciprocal": _unary(_integer_reciprocal),
    "sqrt": _wide(np.sqrt),
    "rsqrt": _wide(lambda x: 1 / np.sqrt(x)),
    "cbrt": _wide(np.cbrt),
    "rcbrt": _wide(lambda x: 1 / np.cbrt(x)),
    "exp": _wide(np.exp),
    "expm1": _wide(np.expm1),
    "log": _wide(np.log),
    "log2": _wide(np.log2),
    "log10": _wide(np.log10),
    "log1p": _wide(np.log1p),
    "sin": _wide(np.sin),
    "cos": _wide(np.cos),
    "tan": _wide(np.tan),
    "arcsin": _wide(np.arcsin),
    "arccos": _wide(np.arccos),
    "arctan": _wide(np.arctan),
    "sinh": _wide(np.sinh),
    "cosh": _wide(np.cosh),
    "tanh": _wide(np.tanh),
    "arcsinh": _wide(np.arcsinh),
    "arccosh": _wide(np.arccosh),
    "arctanh": _wide(np.arctanh),
    "degrees": _wide(np.degrees),
    "radians": _wide(np.radians),
    "erf": _wide(_each(math.erf)),
    "erfinv": _wide(_each(_erfinv)),
    "gamma": _wide(_each(math.gamma)),
    "gammaln": _wide(_each(math.lgamma, outside=math.inf)),
    "relu": _unary(lambda x: np.maximum(x, 0)),
    "sigmoid": _wide(_sigmoid),
    "softsign": _wide(_softsign),
    "logical_not": _unary(lambda x: x == 0),
    "floor": _unary(np.floor),
    "ceil": _unary(np.ceil),
    "trunc": _unary(np.trunc),
    "fix": _unary(np.trunc),
    "rint": _unary(_rint),
    "round": _unary(lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x)),
    "_contrib_round_ste": _unary(lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x)),
    "_contrib_sign_ste": _unary(np.sign),
}


def _scalar_result(x, attrs):
    """The result dtype of operators of an array and a number."""
    is_int = value(attrs, "is_int", True)
    is_int = is_int in (True, 1, "True", "true")
    if x.dtype == bool:
        return np.dtype("int64" if is_int else "float64")
    return x.dtype if x.dtype.kind == "f" or is_int else np.dtype("float64")


def _with_scalar(function, *, reverse=False, compares=False):
    def reference(inputs, attrs):
        x, s = inputs[0], float(value(attrs, "scalar", 1.0))
        dtype = _scalar_result(x, attrs)
        if compares:
            return [function(x.astype("float64"), s).astype(dtype)]
        inner = dtype if dtype.kind == "f" else np.dtype("int64")  # computes in int64, then results wrap around
        x = x.astype(inner)
        s = np.asarray(s).astype(inner)
        return [(function(s, x) if reverse else function(x, s)).astype(dtype)]

    return reference


def divide(a, b):
    """Divides; integers round toward zero, and are 0 where b is 0."""
    if np.result_type(a, b).kind == "f":
        return a / b
    safe = np.where(b == 0, 1, b)
    quotient = (
        np.abs(a.astype("int64"))
        // np.abs(safe.astype("int64"))
        * np.sign(a.astype("int64"))
        * np.sign(safe.astype("int64"))
    )
    return np.where(b == 0, 0, quotient)


def remainder(a, b):
    """The remainder with the sign of b; 0 where b is 0."""
    return np.where(b == 0, 0, np.mod(a, np.where(b == 0, 1, b)))


def power(a, b):
    """The power a^b; integers wrap around, and negative exponents give 1 / a^-b rounded toward zero."""
    if np.result_type(a, b).kind == "f":
        return np.power(a, b)
    dtype = np.result_type(a, b)

    def one(x, y):
        x, y = int(x), int(y)
        if y < 0:
            return 0 if abs(x) != 1 else x ** (-y)
        bits = 8 * dtype.itemsize
        wrapped = pow(x, y, 1 << bits)
        return wrapped - (1 << bits) if dtype.kind == "i" and wrapped >> (bits - 1) else wrapped

    return np.vectorize(one, otypes=[dtype])(a, b)


def hypotenuse(a, b):
    return np.hypot(np.asarray(a, "float64"), np.asarray(b, "float64"))


ARITHMETIC = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": divide,
    "mod": remainder,
    "power": power,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "hypot": hypotenuse,
}
COMPARISONS = {
    "equal": np.equal,
    "not_equal": np.not_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
    "lesser": np.less,
    "lesser_equal": np.less_equal,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "logical_xor": np.logical_xor,
}


def binary(function):
    """A reference for two arrays of one dtype; bools are computed as 0 and 1, and nonzero results are true."""

    def reference(inputs, attrs):
        a, b = inputs
        if a.dtype == bool:
            return [np.asarray(function(a.astype("int64"), b.astype("int64"))) != 0]
        return [np.asarray(function(a, b)).astype(a.dtype)]

    return reference


BINARY = {
    f"_{name}": binary(f)
    for name, f in {**ARITHMETIC, **COMPARISONS}.items()
    if name not in ("add", "sub", "mul", "div")
}
BINARY |= {f"elemwise_{name}": binary(ARITHMETIC[name]) for name in ("add", "sub", "mul", "div")}
BINARY["_grad_add"] = binary(np.add)

_SCALAR_NAMES = {"add": "plus", "sub": "minus"}
SCALAR = {f"_{_SCALAR_NAMES.get(name, name)}_scalar": _with_scalar(f) for name, f in ARITHMETIC.items()}
SCALAR |= {f"_r{n}_scalar": _with_scalar(ARITHMETIC[f], reverse=True) for n, f in
           {"minus": "sub", "div": "div", "mod": "mod", "power": "power"}.items()}  # fmt: skip
SCALAR |= {f"_{name}_scalar": _with_scalar(f, compares=True) for name, f in COMPARISONS.items()}


def _clip(inputs, attrs):
    x = inputs[0]
    low, high = float(value(attrs, "a_min")), float(value(attrs, "a_max"))
    if x.dtype.kind != "f":
        limits = np.iinfo(x.dtype)
        low, high = int(max(low, limits.min)), int(min(high, limits.max))
    return [np.clip(x, low, high)]


def _hard_sigmoid(inputs, attrs):
    return [np.clip(value(attrs, "alpha", 0.2) * inputs[0] + value(attrs, "beta", 0.5), 0, 1)]


def _smooth_l1(inputs, attrs):
    x, sigma2 = inputs[0], float(value(attrs, "scalar", 1.0)) ** 2
    return [np.where(np.abs(x) < 1 / sigma2, 0.5 * sigma2 * x * x, np.abs(x) - 0.5 / sigma2)]


def _activation(inputs, attrs):
    x = inputs[0]
    functions = {
        "relu": lambda v: np.maximum(v, 0),
        "sigmoid": _sigmoid,
        "tanh": np.tanh,
        "softrelu": _softrelu,
        "softsign": _softsign,
    }
    return [functions[attrs["act_type"]](x if attrs["act_type"] == "relu" else x.astype("float64"))]


def _leaky_relu(inputs, attrs, train=False):
    """LeakyReLU; random slopes are their mean, except in training."""
    x, kind = inputs[0], attrs.get("act_type", "leaky")
    slope = float(value(attrs, "slope", 0.25))
    if kind == "gelu":
        return [_gelu(x)]
    if kind == "selu":
        return [_SELU_SCALE * np.where(x > 0, x, _SELU_ALPHA * np.expm1(x))]
    if kind == "elu":
        return [np.where(x > 0, x, slope * np.expm1(x))]
    if kind == "prelu":
        gamma = inputs[1]
        shape = [1] * x.ndim
        if gamma.size > 1:
            shape[2 - gamma.ndim : 2] = gamma.shape
        slope = gamma.reshape(shape) if gamma.size > 1 else gamma.reshape(())
    if kind == "rrelu" and train:
        return [None]
    if kind == "rrelu":
        slope = (float(value(attrs, "lower_bound", 0.125)) + float(value(attrs, "upper_bound", 0.334))) / 2
    return [np.where(x > 0, x, slope * x)]


def _hard_swish(inputs, attrs):
    x = inputs[0].astype("float64")
    return [np.where(x <= -3, 0, np.where(x >= 3, x, x * (x + 3) / 6)).astype(inputs[0].dtype)]


def _quadratic(inputs, attrs):
    x = inputs[0].astype("float64")
    a, b, c = (value(attrs, name, 0.0) for name in "abc")
    return [(a * x**2 + b * x + c).astype(inputs[0].dtype)]


def _convert(x, name):
    if name == "bool":
        return x.astype(bool)
    dtype = np.dtype("float32" if name == "bfloat16" else name)
    if x.dtype.kind == "f" and dtype.kind in "iu":
        return np.nan_to_num(x).astype("int64").astype(dtype)
    return x.astype(dtype)


def _cast(inputs, attrs):
    return [_convert(inputs[0], attrs["dtype"])]


def _where(inputs, attrs):
    condition, x, y = inputs
    chosen = condition != 0
    if condition.ndim == 1 and x.ndim > 1:
        chosen = chosen.reshape((-1,) + (1,) * (x.ndim - 1))
    return [np.where(chosen, x, y)]


def _same(inputs, attrs):
    return [inputs[0]]


def _sum_of_all(inputs, attrs):
    return [sum(inputs[1:], inputs[0])] if inputs[0].dtype != bool else [np.any(inputs, axis=0)]


def _finite(inputs, attrs):
    return [np.array([float(all(np.isfinite(x).all() for x in inputs))], "float32")]


def _multicast(inputs, attrs):
    return list(inputs)


def _polygamma(inputs, attrs):
    return [_each({0: _digamma, 1: _trigamma}[value(attrs, "order", 0)])(inputs[0])]


def _gradient(slope):
    """A reference that computes out_grad times the slope at the saved value."""

    def reference(inputs, attrs):
        dy, saved = (np.asarray(x, "float64") for x in inputs)
        dx = dy * slope(saved, attrs)
        return [dx.astype("int64") if inputs[0].dtype.kind == "u" else dx]

    return reference


def _gelu_slope(x, attrs):
    return _phi(x) + x * np.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def _logistic(x):
    return 1 / (1 + np.exp(-x))


def _silu_slope(x, attrs):
    return _logistic(x) * (1 + x * (1 - _logistic(x)))


def _gelu_tanh(x):
    return x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def _gelu_tanh_slope(x, attrs):
    bent = np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))
    inner = math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * x**2)
    return (1 + bent) / 2 + x / 2 * (1 - bent**2) * inner


def _elu_slope(x, attrs):
    return np.where(x > 0, 1, value(attrs, "slope", 0.25) * np.exp(x)) * value(attrs, "scale", 1.0)


def _clip_slope(x, attrs):
    return (x >= value(attrs, "a_min")) & (x <= value(attrs, "a_max"))


def _smooth_l1_slope(x, attrs):
    return np.clip(float(value(attrs, "scalar", 1.0)) ** 2 * x, -1, 1)


GRADIENTS = {
    "_backward_relu": _gradient(lambda y, attrs: y > 0),
    "_backward_sigmoid": _gradient(lambda y, attrs: y * (1 - y)),
    "_backward_tanh": _gradient(lambda y, attrs: 1 - y * y),
    "_backward_softrelu": _gradient(lambda y, attrs: -np.expm1(-y.astype("float64"))),
    "_backward_gelu": _gradient(_gelu_slope),
    "_backward_gelu_tanh": _gradient(_gelu_tanh_slope),
    "_backward_silu": _gradient(_silu_slope),
    "_backward_elu": _gradient(_elu_slope),
    "_backward_leaky": _gradient(lambda x, attrs: np.where(x > 0, 1, value(attrs, "slope", 0.25))),
    "_backward_clip": _gradient(_clip_slope),
    "_backward_smooth_l1": _gradient(_smooth_l1_slope),
    "_backward_square": _gradient(lambda x, attrs: 2 * x),
}

_STEPS = {
    "abs": np.abs,
    "square": np.square,
    "elemwise_add": np.add,
    "elemwise_mul": np.multiply,
    "broadcast_add": np.add,
    "broadcast_mul": np.multiply,
}


def _fused(inputs, attrs):
    """Runs a program of steps without parameters, such as 'square(0); elemwise_add(1, 0) -> 2@0'."""
    steps, outputs = attrs["program"].split("->")
    slots = list(inputs)
    for step in steps.split(";"):
        name, operands = step.strip().rstrip(")").split("(")
        slots.append(_STEPS[name](*(slots[int(slot)] for slot in operands.split(","))))
    return [slots[int(output.split("@")[0])] for output in outputs.split(",")]


REFERENCES = {
    "_fused_elementwise": _fused,
    "_identity_with_attr_like_rhs": lambda inputs, attrs: [inputs[0]],
    "_write_state": lambda inputs, attrs: [inputs[0]],
    **UNARY,
    **BINARY,
    **SCALAR,
    **GRADIENTS,
    "Activation": _activation,
    "LeakyReLU": _leaky_relu,
    "_plain_leaky_relu": _leaky_relu,
    "_silu": lambda inputs, attrs: [inputs[0] * _logistic(inputs[0].astype("float64"))],
    "_gelu_tanh": lambda inputs, attrs: [_gelu_tanh(inputs[0].astype("float64"))],
    "_to_channels_last": _same,
    "_to_plain": _same,
    "_polygamma": _polygamma,
    "_contrib_div_sqrt_dim": lambda inputs, attrs: [inputs[0] / math.sqrt(inputs[0].shape[-1])],
    "_contrib_gradientmultiplier": _same,
    "IdentityAttachKLSparseReg": _same,
    "clip": _clip,
    "hard_sigmoid": _hard_sigmoid,
    "smooth_l1": _smooth_l1,
    "_contrib_hard_swish": _hard_swish,
    "_contrib_quadratic": _quadratic,
    "Cast": _cast,
    "amp_cast": lambda inputs, attrs: [inputs[0]],
    "amp_multicast": _multicast,
    "all_finite": _finite,
    "multi_all_finite": _finite,
    "reset_arrays": lambda inputs, attrs: [np.zeros_like(x) for x in inputs],
    "where": _where,
    "add_n": _sum_of_all,
    "_copy": _same,
    "cast_storage": _same,
    "BlockGrad": _same,
    "MakeLoss": _same,
    "make_loss": _same,
    "ones_like": lambda inputs, attrs: [np.ones_like(inputs[0])],
    "zeros_like": lambda inputs, attrs: [np.zeros_like(inputs[0])],
}

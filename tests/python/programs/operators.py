"""The operators of random programs: their source in mx.nd and mx.np, and their results."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import erf  # type: ignore[import-untyped]

from . import arithmetic as ar
from .memory import Unclear, Value, cast, checked, constant

Params = dict[str, Any]
Run = Callable[..., Value]
Draw = Callable[[random.Random, Sequence[Any], bool], Params | None]


@dataclass
class Operator:
    """nd, np: the source of a call; {a}: operands, {0}, {1}: each of them, {k}: parameters, and out= if there is one.

    run(operands, is_np, **params) computes the result; draw(random, operands, is_np) draws the parameters, or None if
    none fit. numbers: how many operands, from the end, may be numbers.
    """

    name: str
    arity: int
    nd: str | None
    np: str | None
    run: Run
    draw: Draw
    numbers: int = 0
    takes_out: bool = True
    weight: float = 1.0
    special: bool = True  # operands may be NaN and infinities


def _none(_: random.Random, operands: Sequence[Any], is_np: bool) -> Params:
    return {}


OPERATORS: dict[str, Operator] = {}


def _add(name: str, arity: int, nd: str | None, np_: str | None, run: Run, draw: Draw = _none, **more: Any) -> None:
    OPERATORS[name] = Operator(name, arity, nd, np_, run, draw, **more)


# ---------------------------------------------------------------------------------------------- operators on one array
def _unary(
    name: str, function: Any, derivative: Any, *, nd: str | None = "", np_: str | None = "", ulps: float = 0,
    jump: Any = None, loose: Any = None, whole: bool = False, flat: float = 0, weight: float = 1.0,
) -> None:  # fmt: skip
    def run(operands: Sequence[Value], is_np: bool) -> Value:
        (x,) = operands
        if x.dtype.kind != "f" and (not whole or x.dtype == np.bool_):
            raise Unclear("integers")
        return ar.pointwise(
            operands, x.dtype, function, lambda x: [derivative(x)], ulps=ulps, jump=jump, loose=loose, flat=flat
        )

    nd_text = f"F.{name}({{a}}{{k}})" if nd == "" else nd
    np_text = f"np.{name}({{a}}{{k}})" if np_ == "" else np_
    _add(name, 1, nd_text, np_text, run, weight=weight)


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def _half_away(x: Any) -> Any:
    return np.copysign(np.floor(np.abs(x) + 0.5), x)


def _half_down(x: Any) -> Any:
    return np.where(np.isfinite(x), np.ceil(np.where(np.isfinite(x), x, 0) - 0.5), x)


def _to_whole(x: Any) -> Any:
    return np.where(np.isfinite(x), np.abs(x - np.round(np.where(np.isfinite(x), x, 0))), 1)


def _to_half(x: Any) -> Any:
    return np.where(np.isfinite(x), np.abs(_to_whole(np.where(np.isfinite(x), x, 0)) - 0.5), 1)


def _always(x: Any, *_: Any) -> Any:
    return np.ones_like(x, dtype=bool)


_unary("square", np.square, lambda x: 2 * x, whole=True, weight=3)
_unary("abs", np.abs, np.sign, jump=np.abs, whole=True, weight=2)
_unary("negative", np.negative, lambda x: -np.ones_like(x), whole=True, weight=3)
_unary("exp", np.exp, np.exp, ulps=8)
_unary("log", np.log, lambda x: 1 / x, ulps=8, jump=np.abs)
_unary("sqrt", np.sqrt, lambda x: 0.5 / np.sqrt(x), ulps=2, jump=np.abs, weight=1.5)
_unary("tanh", np.tanh, lambda x: 1 - np.tanh(x) ** 2, ulps=8, flat=0.05, weight=2)
_unary("sin", np.sin, np.cos, ulps=8)
_unary("cos", np.cos, lambda x: -np.sin(x), ulps=8)
_unary("arctan", np.arctan, lambda x: 1 / (1 + x * x), ulps=8)
_unary("expm1", np.expm1, np.exp, ulps=8)
_unary("log1p", np.log1p, lambda x: 1 / (1 + x), ulps=8, jump=lambda x: np.abs(x + 1))
_unary("reciprocal", lambda x: 1 / x, lambda x: -1 / (x * x), ulps=2, jump=np.abs)
_unary("cbrt", np.cbrt, lambda x: 1 / (3 * np.cbrt(x) ** 2), ulps=8, jump=np.abs)
_unary("rsqrt", lambda x: 1 / np.sqrt(x), lambda x: -0.5 / (x * np.sqrt(x)), np_=None, ulps=8, jump=np.abs)
_unary("erf", erf, lambda x: 2 / math.sqrt(math.pi) * np.exp(-x * x), np_="npx.erf({a}{k})", ulps=16)
_unary(
    "sigmoid",
    _sigmoid,
    lambda x: _sigmoid(x) * (1 - _sigmoid(x)),
    np_="npx.sigmoid({a}{k})",
    ulps=8,
    flat=0.05,
    weight=2,
)
_unary("softsign", lambda x: np.where(np.isinf(x), np.nan, x / (1 + np.abs(x))), lambda x: 1 / (1 + np.abs(x)) ** 2,
       np_=None, ulps=4)  # fmt: skip
_unary("relu", lambda x: np.where(x > 0, x, np.where(np.isnan(x), x, 0)) if x.dtype.kind == "f" else np.maximum(x, 0),
       lambda x: np.where(np.isnan(x), np.nan, x > 0), np_="npx.relu({a}{k})", jump=np.abs, loose=_always,
       weight=3)  # fmt: skip
_unary(
    "sign",
    lambda x: np.where(x > 0, 1, np.where(x < 0, -1, 0)),
    lambda x: 0 * x,
    jump=np.abs,
    loose=_always,
    whole=True,
)
_unary("floor", np.floor, lambda x: 0 * x, jump=_to_whole)
_unary("ceil", np.ceil, lambda x: 0 * x, jump=_to_whole, loose=_always)
_unary("trunc", np.trunc, lambda x: 0 * x, jump=_to_whole, loose=_always)
_unary("round", _half_away, lambda x: 0 * x, np_=None, jump=_to_half, loose=_always)
_unary("rint", _half_down, lambda x: 0 * x, jump=_to_half, loose=_always)


def _copy_like(make: Callable[[Value], np.ndarray]) -> Run:
    return lambda operands, is_np: constant(make(operands[0]), operands[0].dtype)


_add("zeros_like", 1, "F.zeros_like({a}{k})", "np.zeros_like({a})", _copy_like(lambda x: np.zeros(x.shape)),
     takes_out=False, weight=0.7)  # fmt: skip
_add("ones_like", 1, "F.ones_like({a}{k})", "np.ones_like({a})", _copy_like(lambda x: np.ones(x.shape)),
     takes_out=False, weight=0.7)  # fmt: skip
_add("copy", 1, "{0}.copy()", "{0}.copy()", lambda operands, is_np: operands[0], takes_out=False, weight=1.5)
_add("identity", 1, "F.identity({a}{k})", None, lambda operands, is_np: operands[0], weight=1.5)
_add("BlockGrad", 1, "F.BlockGrad({a}{k})", None,
     lambda operands, is_np: Value(operands[0].data, operands[0].error), weight=0.7)  # fmt: skip


def _draw_dtype(rng: random.Random, operands: Sequence[Any], is_np: bool) -> Params:
    names = ["float32", "float32", "float64", "float16", "int32", "int64", "uint8"] + ["bool"] * is_np
    return {"dtype": rng.choice(names)}


_add("astype", 1, "{0}.astype({k})", "{0}.astype({k})", lambda operands, is_np, dtype: cast(operands[0], dtype),
     _draw_dtype, takes_out=False, weight=3, special=False)  # fmt: skip


def _isnan(operands: Sequence[Value], is_np: bool) -> Value:
    if operands[0].dtype.kind != "f":
        raise Unclear("integers")
    return constant(np.isnan(operands[0].data), np.bool_)


_add("isnan", 1, None, "np.isnan({a}{k})", _isnan, weight=0.5)


# --------------------------------------------------------------------------------------------- operators on two arrays
def meeting(operands: Sequence[Any], is_np: bool) -> np.dtype:
    """The dtype of arithmetic on the operands; numbers take the dtype of the array."""
    arrays = [operand for operand in operands if isinstance(operand, Value)]
    numbers = [operand for operand in operands if not isinstance(operand, Value)]
    dtype = ar.common_dtype(arrays)
    if not is_np and any(array.dtype != dtype for array in arrays):
        raise Unclear("dtypes that mx.nd does not bring together")
    if dtype == np.bool_ and (not is_np or numbers):
        raise Unclear("arithmetic of truth")
    if dtype.kind != "f" and any(isinstance(number, float) for number in numbers):
        raise Unclear("a fraction beside integers")
    if dtype.kind == "f":
        for array in arrays:
            if array.dtype.kind in "iu" and np.any(np.abs(array.data.astype(np.float64)) > 1024):
                raise Unclear("large integers beside fractions")
    return dtype


def _binary(
    name: str, function: Any, partials: Any, *, ulps: float = 0, jump: Any = None, loose: Any = None,
    truth: bool = False, floating: bool = False,
) -> Run:  # fmt: skip
    def run(operands: Sequence[Any], is_np: bool) -> Value:
        dtype = meeting(operands, is_np)
        if (dtype == np.bool_ and not truth) or (floating and dtype.kind != "f"):
            raise Unclear("arithmetic of truth")
        own = ulps
        if name == "div":
            divisor = operands[1].data.astype(np.float64) if isinstance(operands[1], Value) else operands[1]
            parts = np.abs(np.frexp(np.where(np.isfinite(divisor), divisor, 1))[0])
            own = 0 if np.all((parts == 0.5) | (parts == 0)) else 1
        if name == "power" and not is_np and isinstance(operands[1], Value):
            own = 16
        return ar.pointwise(operands, dtype, function, partials, ulps=own, jump=jump, loose=loose)

    return run


def _power_partials(a: Any, b: Any) -> Any:
    by_exponent = np.where(a > 0, np.power(a, b) * np.log(np.where(a > 0, a, 1)), np.nan)
    return [b * np.power(a, b - 1), by_exponent]


def _power(operands: Sequence[Any], is_np: bool) -> Value:
    base, exponent = operands
    dtype = meeting(operands, is_np)
    if dtype.kind != "f" or not isinstance(base, Value):
        raise Unclear("powers of integers")
    if isinstance(exponent, Value):
        if np.any(~(base.data > 0.05)) or not np.all(np.isfinite(base.data) & np.isfinite(exponent.data)):
            raise Unclear("a power of a negative number")
        if np.any(np.abs(exponent.data.astype(np.float64)) > 6) or np.any(base.data.astype(np.float64) > 50):
            raise Unclear("a large power")
        return ar.pointwise(operands, dtype, np.power, _power_partials, ulps=32)
    return ar.pointwise(
        operands, dtype, np.power, lambda a, b: [b * np.power(a, b - 1), np.zeros_like(a)], ulps=4, loose=_always
    )


def _equal(a: Any, b: Any) -> Any:
    return a == b


_plain_add = _binary("add", np.add, lambda a, b: [np.ones_like(a), np.ones_like(b)])
_add_of_either_sign = _binary(
    "add", np.add, lambda a, b: [np.ones_like(a), np.ones_like(b)], loose=lambda a, b: (a == 0) & (b == 0)
)


def _add_or_nothing(operands: Sequence[Any], is_np: bool) -> Value:
    """Adds; graphs replace x + 0 by x, which keeps the sign of -0.0 (docs/numerics.md)."""
    nothing = any(not isinstance(operand, Value) and operand == 0 for operand in operands)
    return (_add_of_either_sign if nothing else _plain_add)(operands, is_np)


ARITHMETIC: dict[str, tuple[str, str, str, Run]] = {  # infix sign, function of mx.nd, function of mx.np, result
    "add": ("+", "broadcast_add", "add", _add_or_nothing),
    "sub": ("-", "broadcast_sub", "subtract",
            _binary("sub", np.subtract, lambda a, b: [np.ones_like(a), -np.ones_like(b)])),
    "mul": ("*", "broadcast_mul", "multiply", _binary("mul", np.multiply, lambda a, b: [b, a])),
    "div": ("/", "broadcast_div", "true_divide",
            _binary("div", np.divide, lambda a, b: [1 / b, -a / (b * b)], floating=True,
                    jump=lambda a, b: np.abs(b) + 0 * a)),
    "power": ("**", "broadcast_power", "power", _power),
}  # fmt: skip


def _draw_broadcast(rng: random.Random, operands: Sequence[Any], is_np: bool) -> Params:
    return {}


for _name, (_sign, _nd, _np, _run) in ARITHMETIC.items():
    _often = {"add": 4.0, "sub": 2.0, "mul": 5.0, "div": 1.0, "power": 0.7}[_name]
    _add(f"infix_{_name}", 2, f"{{0}} {_sign} {{1}}", f"{{0}} {_sign} {{1}}", _run, numbers=2, takes_out=False,
         weight=_often)  # fmt: skip
    _add(_nd, 2, f"F.{_nd}({{a}}{{k}})", None, _run, weight=_often / 3)
    _add(f"np_{_np}", 2, None, f"np.{_np}({{a}}{{k}})", _run, weight=_often / 3, numbers=1)

for _name, _function in {"maximum": np.maximum, "minimum": np.minimum}.items():
    _larger = np.greater if _name == "maximum" else np.less
    _run = _binary(
        _name, _function, lambda a, b, more=_larger: [more(a, b) * 1.0, more(b, a) * 1.0],
        jump=lambda a, b: np.where(np.isfinite(a - b), np.abs(a - b), 1), loose=_equal,
    )  # fmt: skip
    _add(f"broadcast_{_name}", 2, f"F.broadcast_{_name}({{a}}{{k}})", None, _run)
    _add(_name, 2, f"F.{_name}({{a}})", f"np.{_name}({{a}}{{k}})", _run, numbers=1, takes_out=False, weight=1.5)
_add("hypot", 2, "F.broadcast_hypot({a}{k})", "np.hypot({a}{k})",
     _binary("hypot", np.hypot, lambda a, b: [a / np.hypot(a, b), b / np.hypot(a, b)], ulps=8, floating=True,
             jump=lambda a, b: np.where(np.isfinite(a + b), np.hypot(a, b), 1)), weight=0.7)  # fmt: skip


def _comparison(function: Any) -> Run:
    def run(operands: Sequence[Any], is_np: bool) -> Value:
        arrays = [operand for operand in operands if isinstance(operand, Value)]
        dtype = meeting(operands, is_np)
        return ar.compare(
            operands, np.dtype(np.bool_) if is_np else arrays[0].dtype if len(arrays) < 2 else dtype, function
        )

    return run


for _sign, _function in {
    ">": np.greater, ">=": np.greater_equal, "<": np.less, "<=": np.less_equal, "==": np.equal, "!=": np.not_equal,
}.items():  # fmt: skip
    _add(f"compare {_sign}", 2, f"{{0}} {_sign} {{1}}", f"{{0}} {_sign} {{1}}", _comparison(_function), numbers=1,
         takes_out=False, weight=0.5)  # fmt: skip


def _bits(name: str) -> Run:
    def run(operands: Sequence[Any], is_np: bool) -> Value:
        arrays = [operand for operand in operands if isinstance(operand, Value)]
        if any(array.dtype.kind == "f" for array in arrays) or len({array.dtype for array in arrays}) > 1:
            raise Unclear("bits of fractions")
        if len(arrays) < len(operands):
            raise Unclear("a number")
        return constant(getattr(np, name)(*(array.data for array in arrays)), arrays[0].dtype)

    return run


for _sign, _name in {"&": "bitwise_and", "|": "bitwise_or", "^": "bitwise_xor"}.items():
    _add(_name, 2, None, f"{{0}} {_sign} {{1}}", _bits(_name), takes_out=False, weight=0.5)


def _where(operands: Sequence[Any], is_np: bool) -> Value:
    condition, yes, no = operands
    if not isinstance(condition, Value) or (condition.dtype.kind == "f" and not np.all(np.isfinite(condition.data))):
        raise Unclear("NaN as a condition")
    arrays = [operand for operand in (yes, no) if isinstance(operand, Value)]
    if not arrays:
        raise Unclear("numbers only")
    dtype = meeting((yes, no), is_np) if any(a.dtype != np.bool_ for a in arrays) else np.dtype(np.bool_)
    if not is_np and (len(arrays) < 2 or len({operand.shape for operand in operands}) > 1 or dtype == np.bool_):
        raise Unclear("other shapes")
    return ar.select(condition, yes, no, dtype)


_add("where", 3, "F.where({a}{k})", "np.where({a})", _where, numbers=0, takes_out=False, weight=2)


def _draw_clip(rng: random.Random, operands: Sequence[Any], is_np: bool) -> Params:
    return {"low": rng.choice((-2, -1, 0)), "high": rng.choice((1, 3, 6))}


def _clip(operands: Sequence[Value], is_np: bool, low: int, high: int) -> Value:
    (x,) = operands
    if x.dtype in (np.uint8, np.bool_):
        raise Unclear("bytes below zero")

    def distance(x: Any) -> Any:
        return np.where(np.isfinite(x), np.minimum(np.abs(x - low), np.abs(x - high)), 1)

    return ar.pointwise(
        [x], x.dtype, lambda x: np.clip(x, low, high),
        lambda x: [np.where(np.isnan(x), np.nan, (x > low) & (x < high))],
        jump=distance, loose=lambda x: (x == low) | (x == high),
    )  # fmt: skip


_add("clip", 1, "F.clip({0}, {low}, {high}{k})", "np.clip({0}, {low}, {high}{k})", _clip, _draw_clip, weight=2)


# ---------------------------------------------------------------------------------------------------------- reductions
def _draw_axis(rng: random.Random, operands: Sequence[Any], is_np: bool) -> Params | None:
    rank = operands[0].data.ndim
    axis = rng.choice([None, *range(-1, rank)]) if rank else None
    if axis is None:
        return {"axis": None, "keepdims": False}
    return {"axis": axis, "keepdims": rng.random() < 0.3}


def _visible(value: Value, is_np: bool) -> Value:
    """Adds an axis to a scalar in mx.nd, whose arrays have at least one axis."""
    if is_np or value.data.ndim:
        return value
    slope = None if value.slope is None else value.slope.reshape(*value.slope.shape[:2], 1)
    return Value(value.data.reshape(1), value.error.reshape(1), slope)


def _reduction(kind: str) -> Run:
    def run(operands: Sequence[Value], is_np: bool, axis: Any, keepdims: bool) -> Value:
        (x,) = operands
        if kind in ("max", "min"):
            if x.dtype == np.bool_:
                raise Unclear("truth")
            return _visible(ar.extreme(x, axis, keepdims, kind == "max"), is_np)
        if (x.dtype == np.bool_ and not is_np) or (kind == "mean" and x.dtype.kind != "f"):
            raise Unclear("integers")
        dtype = np.dtype(np.int64) if x.dtype == np.bool_ else x.dtype
        return _visible(ar.summed(x, axis, keepdims, dtype, kind == "mean"), is_np)

    return run


for _name, _often in {"sum": 4.0, "mean": 2.0, "max": 1.5, "min": 0.7}.items():
    _add(_name, 1, f"F.{_name}({{a}}{{k}})", f"np.{_name}({{a}}{{k}})", _reduction(_name), _draw_axis, weight=_often)


def _draw_one_axis(rng: random.Random, operands: Sequence[Any], is_np: bool) -> Params | None:
    rank = operands[0].data.ndim
    return {"axis": rng.randrange(rank)} if rank else None


def _argmax(operands: Sequence[Value], is_np: bool, axis: int) -> Value:
    if operands[0].dtype.kind != "f":
        raise Unclear("integers")
    given = operands[0].dtype
    dtype = np.dtype(np.int64) if is_np else given if given.itemsize >= 4 else np.dtype(np.float32)
    return _visible(ar.position(operands[0], axis, True, dtype), is_np)


_add("argmax", 1, "F.argmax({a}{k})", "np.argmax({a}{k})", _argmax, _draw_one_axis, weight=0.4, takes_out=False)


def _softmax(log: bool) -> Run:
    def run(operands: Sequence[Value], is_np: bool, axis: int) -> Value:
        if operands[0].dtype.kind != "f":
            raise Unclear("integers")
        return ar.softmax(operands[0], axis, log)

    return run


_add("softmax", 1, "F.softmax({a}{k})", "npx.softmax({a}{k})", _softmax(False), _draw_one_axis, special=False)
_add("log_softmax", 1, "F.log_softmax({a}{k})", "npx.log_softmax({a}{k})", _softmax(True), _draw_one_axis,
     special=False)  # fmt: skip


# ------------------------------------------------------------------------------------------------------------ products
def _matrix(operands: Sequence[Value], is_np: bool) -> Value:
    a, b = operands
    if a.data.ndim != 2 or b.data.ndim != 2 or a.shape[1] != b.shape[0] or 0 in a.shape + b.shape:
        raise Unclear("no matrices that fit")
    dtype = meeting(operands, is_np)
    if dtype.kind != "f":
        raise Unclear("integers")
    return ar.bilinear(a, b, dtype, np.matmul, a.shape[1])


_add("dot", 2, "F.dot({a}{k})", "np.dot({a}{k})", _matrix, weight=2)


def _connected(operands: Sequence[Value], is_np: bool, num_hidden: int, flatten: bool, no_bias: bool) -> Value:
    x, w = operands
    if x.data.ndim != 2 or w.data.ndim != 2 or x.shape[1] != w.shape[1] or 0 in x.shape + w.shape:
        raise Unclear("no matrices that fit")
    if x.dtype != w.dtype or x.dtype.kind != "f":
        raise Unclear("integers")
    return ar.bilinear(x, w, x.dtype, lambda a, b: np.matmul(a, np.swapaxes(b, -1, -2)), x.shape[1])


def _draw_hidden(rng: random.Random, operands: Sequence[Any], is_np: bool) -> Params | None:
    if not isinstance(operands[1], Value) or operands[1].data.ndim != 2:
        return None
    return {"num_hidden": operands[1].shape[0], "flatten": True, "no_bias": True}


_add("FullyConnected", 2, "F.FullyConnected({a}{k})", "npx.fully_connected({a}{k})", _connected, _draw_hidden, weight=3)


def _convolution(
    operands: Sequence[Value], is_np: bool, kernel: Any, num_filter: int, pad: Any, no_bias: bool
) -> Value:
    x, w = operands
    if x.data.ndim != 4 or w.data.ndim != 4 or x.shape[1] != w.shape[1] or 0 in x.shape + w.shape:
        raise Unclear("no images that fit")
    if x.dtype != w.dtype or x.dtype not in (np.float32, np.float64):
        raise Unclear("integers")
    return ar.convolution(x, w, pad[0])


def _draw_kernel(rng: random.Random, operands: Sequence[Any], is_np: bool) -> Params | None:
    if not isinstance(operands[1], Value) or operands[1].data.ndim != 4:
        return None
    pad = rng.choice((0, 1))
    shape = operands[1].shape
    return {"kernel": shape[2:], "num_filter": shape[0], "pad": (pad, pad), "no_bias": True}


_add("Convolution", 2, "F.Convolution({a}{k})", "npx.convolution({a}{k})", _convolution, _draw_kernel, weight=6,
     takes_out=False)  # fmt: skip


def _pooling(operands: Sequence[Value], is_np: bool, kernel: Any, stride: Any, pool_type: str) -> Value:
    (x,) = operands
    if x.data.ndim != 4 or x.dtype not in (np.float32, np.float64):
        raise Unclear("no images")
    return ar.pooled(x, pool_type)


def _draw_pooling(rng: random.Random, operands: Sequence[Any], is_np: bool) -> Params:
    return {"kernel": (2, 2), "stride": (2, 2), "pool_type": rng.choice(("max", "avg"))}


_add("Pooling", 1, "F.Pooling({a}{k})", "npx.pooling({a}{k})", _pooling, _draw_pooling, weight=3, takes_out=False)


def _activation(operands: Sequence[Value], is_np: bool, act_type: str) -> Value:
    return OPERATORS[act_type].run(operands, is_np)


def _draw_activation(rng: random.Random, operands: Sequence[Any], is_np: bool) -> Params:
    return {"act_type": rng.choice(("relu", "relu", "sigmoid", "tanh"))}


_add("Activation", 1, "F.Activation({a}{k})", "npx.activation({a}{k})", _activation, _draw_activation, weight=2,
     takes_out=False)  # fmt: skip


# ------------------------------------------------------------------------------------------------------ moved elements
def _moved(function: Any) -> Run:
    def run(operands: Sequence[Value], is_np: bool, **params: Any) -> Value:
        if len({operand.dtype for operand in operands}) > 1:
            raise Unclear("different dtypes")
        return ar.moved(operands, lambda *arrays: function(*arrays, **params))

    return run


def _draw_axes(rng: random.Random, operands: Sequence[Any], is_np: bool) -> Params | None:
    rank = operands[0].data.ndim
    if rank < 2:
        return None
    axes = list(range(rank))
    rng.shuffle(axes)
    return {"axes": tuple(axes)}


_add("transpose", 1, "F.transpose({a}{k})", "np.transpose({a}{k})", _moved(lambda x, axes: np.transpose(x, axes)),
     _draw_axes, weight=2, takes_out=False)  # fmt: skip


def _draw_join(rng: random.Random, operands: Sequence[Any], is_np: bool) -> Params | None:
    if not all(isinstance(operand, Value) for operand in operands) or operands[0].data.ndim == 0:
        return None
    rank = operands[0].data.ndim
    return {"dim" if not is_np else "axis": rng.randrange(rank)}


def _concat(*arrays: Any, **axis: int) -> Any:
    try:
        return np.concatenate(arrays, *axis.values())
    except ValueError as problem:
        raise Unclear("shapes that do not fit") from problem


def _stack(*arrays: Any, axis: int) -> Any:
    if len({array.shape for array in arrays}) > 1:
        raise Unclear("shapes that do not fit")
    return np.stack(arrays, axis)


_add("concat", 2, "F.concat({a}{k})", "np.concatenate(({a}){k})", _moved(_concat), _draw_join, weight=1.5,
     takes_out=False)  # fmt: skip
_add("stack", 2, "F.stack({a}{k})", "np.stack(({a}){k})", _moved(_stack),
     lambda rng, operands, is_np: {"axis": rng.choice((0, 0, 1))} if operands[0].data.ndim else None, weight=0.7,
     takes_out=False)  # fmt: skip


def _draw_times(rng: random.Random, operands: Sequence[Any], is_np: bool) -> Params | None:
    rank = operands[0].data.ndim
    return {"repeats": rng.choice((1, 2)), "axis": rng.randrange(rank)} if rank else None


_add("repeat", 1, "F.repeat({a}{k})", "np.repeat({a}{k})", _moved(lambda x, repeats, axis: np.repeat(x, repeats, axis)),
     _draw_times, weight=0.5, takes_out=False)  # fmt: skip
_add("flip", 1, "F.flip({a}{k})", "np.flip({a}{k})", _moved(lambda x, axis: np.flip(x, axis)), _draw_one_axis,
     weight=0.7, takes_out=False)  # fmt: skip


def _draw_slice_axis(rng: random.Random, operands: Sequence[Any], is_np: bool) -> Params | None:
    shape = operands[0].shape
    if not shape:
        return None
    axis = rng.randrange(len(shape))
    if shape[axis] < 1:
        return None
    begin = rng.randrange(shape[axis])
    return {"axis": axis, "begin": begin, "end": rng.randint(begin + 1, shape[axis])}


def _slice_axis(x: Any, axis: int, begin: int, end: int) -> Any:
    return x[(slice(None),) * axis + (slice(begin, end),)]


_add("slice_axis", 1, "F.slice_axis({a}{k})", None, _moved(_slice_axis), _draw_slice_axis, takes_out=False)


def other_shapes(rng: random.Random, shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """Draws another shape with the same number of elements."""
    size = math.prod(shape)
    if size == 0:
        return None
    choices = {(size,), (1, size), (size, 1), (*shape, 1), (1, *shape)}
    choices |= {(a, size // a) for a in range(2, 5) if size % a == 0}
    if size % 4 == 0:
        choices |= {(2, 2, size // 4), (1, 1, 2, size // 2)}
    if size == 16:
        choices |= {(1, 1, 4, 4)}
    choices.discard(shape)
    return rng.choice(sorted(choices))


def _draw_shape(rng: random.Random, operands: Sequence[Any], is_np: bool) -> Params | None:
    shape = other_shapes(rng, operands[0].shape)
    return None if shape is None else {"shape": shape}


def _reshape(x: Any, shape: Any) -> Any:
    if math.prod(shape) != x.size:
        raise Unclear("another size")
    return x.reshape(shape)


_add("reshape", 1, "F.reshape({a}{k})", "np.reshape({0}, {shape})", _moved(_reshape), _draw_shape, weight=2,
     takes_out=False)  # fmt: skip
_add("expand_dims", 1, "F.expand_dims({a}{k})", "np.expand_dims({a}{k})",
     _moved(lambda x, axis: np.expand_dims(x, axis)), lambda rng, operands, is_np: {"axis": 0},
     takes_out=False)  # fmt: skip
_add("Flatten", 1, "F.Flatten({a})", None,
     _moved(lambda x: x.reshape(x.shape[0], -1)),
     lambda rng, operands, is_np: {} if operands[0].data.ndim >= 1 and operands[0].data.size else None, weight=0.7,
     takes_out=False)  # fmt: skip


def _squeeze(x: Any) -> Any:
    return np.squeeze(x) if any(size != 1 for size in x.shape) else x


_add("squeeze", 1, "F.squeeze({a})", None, _moved(_squeeze),
     lambda rng, operands, is_np: {} if 1 in operands[0].shape and operands[0].data.size > 1 else None, weight=0.5,
     takes_out=False)  # fmt: skip


def _draw_wider(rng: random.Random, operands: Sequence[Any], is_np: bool) -> Params | None:
    shape = operands[0].shape
    if 1 not in shape or 0 in shape:
        return None
    wider = tuple(rng.choice((2, 3)) if size == 1 and rng.random() < 0.7 else size for size in shape)
    return {"shape": wider} if math.prod(wider) <= 48 else None


def _broadcast(x: Any, shape: Any) -> Any:
    if len(x.shape) != len(shape) or any(a not in (1, b) for a, b in zip(x.shape, shape, strict=True)):
        raise Unclear("a shape that does not fit")
    return np.broadcast_to(x, shape)


_add("broadcast_to", 1, "F.broadcast_to({a}{k})", "np.broadcast_to({0}, {shape})", _moved(_broadcast), _draw_wider,
     weight=1.5, takes_out=False)  # fmt: skip


def result(operator: Operator, operands: Sequence[Any], is_np: bool, params: Params) -> Value:
    """Computes the result of a call; raises Unclear if it cannot run or be compared."""
    if not all(isinstance(operand, Value) for operand in operands[: operator.arity - operator.numbers]):
        raise Unclear("a number where an array is needed")
    if not any(isinstance(operand, Value) for operand in operands):
        raise Unclear("numbers only")
    try:
        value = operator.run(operands, is_np, **params)
    except (ValueError, np.exceptions.AxisError) as problem:
        raise Unclear(f"shapes that do not fit: {problem}") from problem
    if value.data.size > 200:
        raise Unclear("a large array")
    return checked(value)


def source(operator: Operator, operands: Sequence[str], is_np: bool, params: Params, out: str | None = None) -> str:
    """Returns the Python source of the call."""
    template = operator.np if is_np else operator.nd
    assert template is not None
    in_text = {name for name in params if "{" + name + "}" in template}
    keywords = [f"{name}={value!r}" for name, value in params.items() if name not in in_text]
    keywords += [f"out={out}"] if out else []
    text = "".join(f", {keyword}" for keyword in keywords)
    if "({k})" in template:  # without operands all arguments are keywords
        text = ", ".join(keywords)
    return template.format(*operands, a=", ".join(operands), k=text, **{name: params[name] for name in in_text})

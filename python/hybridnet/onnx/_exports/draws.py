"""Random numbers: of the same distributions, not the same numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._export_table import export_form, no_form
from .._export_values import Number, Open, Spec, Tensor, product
from .indices import along, as_int64


def draw(g: Any, sizes: Sequence[Number], kind: str, dtype: str = "float32") -> Tensor:
    """Numbers uniform in [0, 1), or normal with mean 0 and deviation 1. dtype: float32 or float64."""
    spec = Spec(
        [tuple(s.trials[t] if isinstance(s, Open) else int(s) for s in sizes) for t in range(g.num_trials)], dtype
    )
    bounds = {"low": 0.0, "high": 1.0} if kind == "Uniform" else {"mean": 0.0, "scale": 1.0}
    from .._writer import type_code

    code = type_code(dtype)
    if spec.is_fixed and sizes:
        shape = list(spec.shapes[0])
        return g.emit(f"Random{kind}", shape=shape, dtype=dtype, spec=spec, element_type=code, **bounds)
    like = g.full(sizes, 0, "float32")
    return g.emit(f"Random{kind}Like", like, dtype=dtype, spec=spec, element_type=code, **bounds)


def uniform(g: Any, sizes: Sequence[Number], dtype: str = "float32") -> Tensor:
    """Numbers in [0, 1)."""
    return draw(g, sizes, "Uniform", dtype)


def uniform_positive(g: Any, sizes: Sequence[Number]) -> Tensor:
    """Numbers in (0, 1]."""
    return g.emit("Sub", 1, uniform(g, sizes))


def normal(g: Any, sizes: Sequence[Number], dtype: str = "float32") -> Tensor:
    """Standard normal numbers."""
    return draw(g, sizes, "Normal", dtype)


# A sampler gets the exporter, the sizes of the result, and parameters as tensors that broadcast, or numbers.
Sampler = Callable[..., Tensor]


def _uniform(g: Any, sizes: Any, low: Any, high: Any) -> Tensor:
    u = uniform(g, sizes)
    if not isinstance(low, Tensor) and (low, high) == (0, 1):
        return u
    width = g.emit("Sub", high, low) if isinstance(low, Tensor) else high - low
    return g.emit("Add", g.emit("Mul", u, width), low)


def _normal(g: Any, sizes: Any, mean: Any, deviation: Any) -> Tensor:
    return g.emit("Add", g.emit("Mul", normal(g, sizes), deviation), mean)


def _exponential(g: Any, sizes: Any, rate: Any) -> Tensor:
    return g.emit("Div", g.emit("Neg", g.emit("Log", uniform_positive(g, sizes))), rate)


def _any(g: Any, flags: Tensor) -> Tensor:
    """Whether one of the flags is true, shape ()."""
    return g.truth(g.reduce("Max", g.cast(flags, "int32"), range(flags.ndim), keepdims=False))


def _spread(g: Any, sizes: Any, value: Any) -> Tensor:
    tensor = value if isinstance(value, Tensor) else g.const(value, "float32")
    return g.expand(tensor, sizes)


def _gamma(g: Any, sizes: Any, alpha: Any, beta: Any) -> Tensor:
    """Marsaglia and Tsang (2000): draws until each element is accepted; beta is a factor."""
    alpha = _spread(g, sizes, alpha)
    is_small = g.emit("Less", alpha, 1)
    d = g.emit("Sub", g.where(is_small, g.emit("Add", alpha, 1), alpha), 1 / 3)
    c = g.emit("Reciprocal", g.emit("Sqrt", g.emit("Mul", d, 9)))

    def body(number: Tensor, carried: list[Tensor]) -> tuple[Tensor, list[Tensor], list[Tensor]]:
        value, missing = carried
        z = normal(g, sizes)
        root = g.emit("Add", g.emit("Mul", c, z), 1)
        v = g.emit("Mul", g.emit("Mul", root, root), root)
        positive = g.emit("Greater", v, 0)
        safe = g.where(positive, v, 1)
        limit = g.emit("Add", g.emit("Sub", 1, safe), g.emit("Log", safe))
        limit = g.emit("Add", g.emit("Mul", g.emit("Mul", z, z), 0.5), g.emit("Mul", d, limit))
        good = g.emit("And", positive, g.emit("Less", g.emit("Log", uniform_positive(g, sizes)), limit))
        taken = g.emit("And", good, missing)
        value = g.where(taken, g.emit("Mul", d, safe), value)
        missing = g.emit("And", missing, g.emit("Not", good))
        return _any(g, missing), [value, missing], []

    start = [g.full(sizes, 0, "float32"), g.full(sizes, 1, "bool")]
    carried, _ = g.loop(None, g.const(True), start, body)
    boost = g.emit("Pow", uniform_positive(g, sizes), g.emit("Reciprocal", alpha))
    value = g.emit("Mul", carried[0], g.where(is_small, boost, 1))
    return g.emit("Mul", value, beta)


def _poisson(g: Any, sizes: Any, rate: Any) -> Tensor:
    """Counts exponential times until they exceed the rate."""
    rate = _spread(g, sizes, rate)

    def body(number: Tensor, carried: list[Tensor]) -> tuple[Tensor, list[Tensor], list[Tensor]]:
        count, time = carried
        time = g.emit("Sub", time, g.emit("Log", uniform_positive(g, sizes)))
        inside = g.emit("LessOrEqual", time, rate)
        count = g.emit("Add", count, g.cast(inside, "float32"))
        return _any(g, inside), [count, time], []

    start = [g.full(sizes, 0, "float32"), g.full(sizes, 0, "float32")]
    carried, _ = g.loop(None, g.const(True), start, body)
    return carried[0]


def _times(g: Any, a: Any, b: Any, op: str = "Mul") -> Any:
    if isinstance(a, Tensor) or isinstance(b, Tensor):
        return g.emit(op, a, b)
    return a * b if op == "Mul" else a / b


def _negative_binomial(g: Any, sizes: Any, k: Any, p: Any) -> Tensor:
    """A Poisson number whose rate has a gamma distribution."""
    failure = g.emit("Sub", 1, p) if isinstance(p, Tensor) else 1 - p
    return _poisson(g, sizes, _gamma(g, sizes, k, _times(g, failure, p, "Div")))


def _generalized(g: Any, sizes: Any, mean: Any, dispersion: Any) -> Tensor:
    inverse = g.emit("Reciprocal", dispersion) if isinstance(dispersion, Tensor) else 1 / dispersion
    return _poisson(g, sizes, _gamma(g, sizes, inverse, _times(g, mean, dispersion)))


_SAMPLERS: dict[str, tuple[Sampler, tuple[str, ...]]] = {
    "uniform": (_uniform, ("low", "high")),
    "normal": (_normal, ("loc", "scale")),
    "gamma": (_gamma, ("alpha", "beta")),
    "exponential": (_exponential, ("lam",)),
    "poisson": (_poisson, ("lam",)),
    "negative_binomial": (_negative_binomial, ("k", "p")),
    "generalized_negative_binomial": (_generalized, ("mu", "alpha")),
}


def _register(name: str) -> None:
    sampler, names = _SAMPLERS[name]

    @export_form(f"_random_{name}", f"_random_{name}_like")
    def by_numbers(g: Any, node: Any) -> Tensor:
        return sampler(g, node.dims(), *(float(node.params[key]) for key in names))

    @export_form(f"_sample_{name}")
    def by_tensors(g: Any, node: Any) -> Tensor:
        sizes = node.dims()
        parameters = [g.cast(x, "float32") for x in node.inputs]
        return sampler(g, sizes, *(g.unsqueeze(p, range(p.ndim, len(sizes))) for p in parameters))


for _name in _SAMPLERS:
    _register(_name)


@export_form("_keyed_normal_like")
def _keyed_normal(g: Any, node: Any) -> Tensor:
    return normal(g, node.dims())


# ----------------------------------------------------------------------------------------------------------- integers
@export_form("_random_randint")
def _randint(g: Any, node: Any) -> Tensor:
    p = node.params
    u = uniform(g, node.dims(), "float64")
    made = g.cast(g.emit("Floor", g.emit("Mul", u, float(p["high"] - p["low"]))), "int64")
    return g.emit("Add", made, p["low"]) if p["low"] != 0 else made


def _outcomes(g: Any, weights: Tensor, count: Number) -> Tensor:
    """Drawn outcomes (rows, count) of distributions (rows, outcomes)."""
    sums = g.emit("CumSum", g.emit("Max", g.cast(weights, "float64"), 0), g.const(1, "int64"))
    total = g.slice(sums, 1, -1, None)
    target = g.emit("Mul", uniform(g, [weights.dim(0), count], "float64"), total)
    passed = g.cast(g.emit("LessOrEqual", g.unsqueeze(sums, [1]), g.unsqueeze(target, [2])), "int64")
    made = g.reduce("Sum", passed, [2], keepdims=False)
    return g.emit("Min", made, g.number(weights.dim(1) - 1, "int64"))


@export_form("_sample_multinomial")
def _sample_multinomial(g: Any, node: Any) -> list[Tensor]:
    x = node.inputs[0]
    rows = g.reshape(x, [product(x.dims[:-1]), x.dim(-1)])
    drawn = _outcomes(g, rows, product(node.params["shape"]))
    made = [g.reshape(drawn, node.dims())]
    if node.params["get_prob"]:
        made.append(g.reshape(g.emit("Log", along(g, rows, drawn, 1)), node.dims()))
    return made


@export_form("_npi_choice")
def _choice(g: Any, node: Any) -> Tensor:
    p = node.params
    sizes = node.dims()
    count = product(sizes)
    inputs = list(node.inputs)
    places = p["a"] if p["a"] is not None else inputs.pop(0).dim(0)
    weights = inputs[0] if p["weighted"] else None
    if not p["replace"]:
        times = _exponential(g, [places], 1.0)
        if weights is not None:
            times = g.emit("Div", times, g.cast(weights, "float32"))
        _, drawn = g.emit("TopK", times, g.size(count), axis=0, largest=0, outputs=2)
        drawn.dtype = "int64"
    elif weights is not None:
        drawn = _outcomes(g, g.unsqueeze(weights, [0]), count)
    else:
        u = g.emit("Mul", uniform(g, [count], "float64"), g.number(places, "float64"))
        drawn = g.cast(g.emit("Floor", u), "int64")
    return g.reshape(drawn, sizes)


@export_form("_npi_multinomial")
def _multinomial(g: Any, node: Any) -> Tensor:
    p = node.params
    weights = g.cast(node.inputs[0], "float64") if node.inputs else g.const(p["pvals"], "float64")
    sizes = node.dims()
    count = product(sizes[:-1])
    drawn = _outcomes(g, g.unsqueeze(weights, [0]), count * p["n"])
    drawn = g.reshape(drawn, [count, p["n"], 1])
    hits = g.cast(g.emit("Equal", drawn, g.iota(sizes[-1])), "int64")
    return g.reshape(g.reduce("Sum", hits, [1], keepdims=False), sizes)


@export_form("_shuffle")
def _shuffle(g: Any, node: Any) -> Tensor:
    x = node.inputs[0]
    _, order = g.emit("TopK", uniform(g, [x.dim(0)]), g.size(x.dim(0)), axis=0, outputs=2)
    order.dtype = "int64"
    return g.emit("Gather", x, as_int64(g, order), axis=0, spec=x.spec)


@export_form("_checked_parameter", "_npx_constraint_check")
def _checked(g: Any, node: Any) -> Tensor:
    """ONNX has no errors: the check is left out, its result is kept."""
    x = node.inputs[0]
    if node.op == "_checked_parameter":
        return x
    return g.truth(g.reduce("Min", g.cast(g.truth(x), "int32"), range(x.ndim), keepdims=False))


no_form("draws until a row is full, with a count of the draws", "_sample_unique_zipfian")

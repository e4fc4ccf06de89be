"""``mx.np.random``: random arrays with NumPy's interface.

Parameters are numbers, arrays or Symbols, and broadcast with each other; ``size`` is the shape of the result, None: the
shape of the parameters. Results are float32 by default. Gradients reach parameters that are arrays, except the shapes
of gamma distributions (including beta, chisquare and f).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as onp

from .._public_names import dir_of
from ..context import Context
from ..errors import TypeError as HybridNetTypeError
from ..ndarray._dtypes import dtype_name
from ..random import seed
from ._creation import _context, arange, array, zeros_like
from ._elementwise import exp, sqrt
from ._operators import _converted, is_number, np_operator
from ._rearranging import expand_dims, matmul, squeeze, swapaxes

__all__ = [
    "beta", "chisquare", "choice", "exponential", "f", "gamma", "gumbel", "laplace", "logistic", "lognormal",
    "multinomial", "multivariate_normal", "normal", "pareto", "permutation", "power", "rand", "randint", "randn",
    "rayleigh", "seed", "shuffle", "uniform", "weibull",
]  # fmt: skip

Size = int | Sequence[int] | None


def _shape(size: Size) -> tuple[int, ...] | None:
    """Converts size to a shape; None and () mean the shape of the parameters."""
    if size is None or type(size) is tuple:
        return size or None
    shape = tuple(int(n) for n in size) if isinstance(size, (Sequence, onp.ndarray)) else (int(size),)
    return shape or None


def _place(ctx: Context | str | None) -> str:
    return str(_context(ctx))


def _drawn(operator: str, parameters: dict[str, Any], **rest: Any) -> Any:
    """Calls the operator: parameters that are numbers become attributes, the others inputs."""
    numbers = {name: float(value) if is_number(value) else None for name, value in parameters.items()}
    inputs = [_converted(value) for value in parameters.values() if not is_number(value)]
    return np_operator(operator)(*inputs, **numbers, **rest)


def _written(result: Any, out: Any) -> Any:
    if out is None:
        return result
    out[...] = result
    return out


def _alike(first: Any, second: Any) -> tuple[Any, Any]:
    """Broadcasts two parameters to their common shape, so that both are drawn for each of its elements."""
    first, second = _converted(first), _converted(second)
    if is_number(first) and is_number(second):
        return first, second
    like = zeros_like(first) if not is_number(first) else 0
    like = like + zeros_like(second) if not is_number(second) else like
    return first + like, second + like


def uniform(
    low: Any = 0.0, high: Any = 1.0, size: Size = None, dtype: Any = None, ctx: Any = None, out: Any = None
) -> Any:
    """Draws uniformly distributed numbers in [low, high)."""
    parameters = {"low": low, "high": high}
    return _drawn("_npi_uniform", parameters, size=_shape(size), ctx=_place(ctx), dtype=dtype_name(dtype), out=out)


def normal(
    loc: Any = 0.0, scale: Any = 1.0, size: Size = None, dtype: Any = None, ctx: Any = None, out: Any = None
) -> Any:
    """Draws normally distributed numbers with mean loc and standard deviation scale."""
    parameters = {"loc": loc, "scale": scale}
    return _drawn("_npi_normal", parameters, size=_shape(size), ctx=_place(ctx), dtype=dtype_name(dtype), out=out)


def lognormal(
    mean: Any = 0.0, sigma: Any = 1.0, size: Size = None, dtype: Any = None, ctx: Any = None, out: Any = None
) -> Any:
    """Draws numbers whose logarithms are normally distributed with this mean and standard deviation."""
    return _written(exp(normal(mean, sigma, size, dtype, ctx)), out)


def gumbel(loc: Any = 0.0, scale: Any = 1.0, size: Size = None, ctx: Any = None, out: Any = None) -> Any:
    """Draws numbers from the Gumbel distribution with mode loc."""
    return _drawn("_npi_gumbel", {"loc": loc, "scale": scale}, size=_shape(size), ctx=_place(ctx), out=out)


def logistic(loc: Any = 0.0, scale: Any = 1.0, size: Size = None, ctx: Any = None, out: Any = None) -> Any:
    """Draws numbers from the logistic distribution with mean loc."""
    return _drawn("_npi_logistic", {"loc": loc, "scale": scale}, size=_shape(size), ctx=_place(ctx), out=out)


def laplace(
    loc: Any = 0.0, scale: Any = 1.0, size: Size = None, dtype: Any = None, ctx: Any = None, out: Any = None
) -> Any:
    """Draws numbers from the double exponential distribution with mean loc."""
    loc, scale = _alike(loc, scale)
    result = loc + exponential(scale, size, ctx) - exponential(scale, size, ctx)
    return _written(result if dtype is None else result.astype(dtype), out)


def gamma(shape: Any, scale: Any = 1.0, size: Size = None, dtype: Any = None, ctx: Any = None, out: Any = None) -> Any:
    """Draws gamma distributed numbers; the mean is shape * scale."""
    parameters = {"shape": shape, "scale": scale}
    return _drawn("_npi_gamma", parameters, size=_shape(size), ctx=_place(ctx), dtype=dtype_name(dtype), out=out)


def beta(a: Any, b: Any, size: Size = None, dtype: Any = None, ctx: Any = None) -> Any:
    """Draws numbers in [0, 1] from the beta distribution."""
    a, b = _alike(a, b)
    x, y = gamma(a, 1.0, size, "float64", ctx), gamma(b, 1.0, size, "float64", ctx)
    return (x / (x + y)).astype(dtype_name(dtype))


def chisquare(df: Any, size: Size = None, dtype: Any = None, ctx: Any = None) -> Any:
    """Draws from the chi-square distribution: sums of df squares of standard normal numbers."""
    return gamma(_converted(df) / 2, 2.0, size, dtype, ctx)


def f(dfnum: Any, dfden: Any, size: Size = None, ctx: Any = None) -> Any:
    """Draws from the F distribution: the ratio of two chi-square numbers, each divided by its degrees of freedom."""
    dfnum, dfden = _alike(dfnum, dfden)
    return (chisquare(dfnum, size, None, ctx) / dfnum) / (chisquare(dfden, size, None, ctx) / dfden)


def exponential(scale: Any = 1.0, size: Size = None, ctx: Any = None, out: Any = None) -> Any:
    """Draws exponentially distributed numbers with mean scale."""
    return _drawn("_npi_exponential", {"scale": scale}, size=_shape(size), ctx=_place(ctx), out=out)


def rayleigh(scale: Any = 1.0, size: Size = None, ctx: Any = None, out: Any = None) -> Any:
    """Draws numbers from the Rayleigh distribution with mode scale."""
    return _drawn("_npi_rayleigh", {"scale": scale}, size=_shape(size), ctx=_place(ctx), out=out)


def weibull(a: Any, size: Size = None, ctx: Any = None, out: Any = None) -> Any:
    """Draws numbers from the Weibull distribution with shape a and scale 1."""
    return _drawn("_npi_weibull", {"a": a}, size=_shape(size), ctx=_place(ctx), out=out)


def pareto(a: Any, size: Size = None, ctx: Any = None, out: Any = None) -> Any:
    """Draws numbers from the Pareto II (Lomax) distribution with shape a and scale 1."""
    return _drawn("_npi_pareto", {"a": a}, size=_shape(size), ctx=_place(ctx), out=out)


def power(a: Any, size: Size = None) -> Any:
    """Draws numbers in [0, 1] with density a * x**(a - 1)."""
    return _drawn("_npi_powerd", {"a": a}, size=_shape(size))


def rand(*size: int, **kwargs: Any) -> Any:
    """Draws uniform numbers in [0, 1); the arguments are the shape; keywords: dtype, ctx."""
    return uniform(0.0, 1.0, size, **kwargs)


def randn(*size: int, **kwargs: Any) -> Any:
    """Draws standard normal numbers; the arguments are the shape; keywords: dtype, ctx."""
    return normal(0.0, 1.0, size, **kwargs)


def randint(
    low: int, high: int | None = None, size: Size = None, dtype: Any = None, ctx: Any = None, out: Any = None
) -> Any:
    """Draws integers in [low, high), or in [0, low) without high; int64, or the given integer dtype."""
    if high is None:
        low, high = 0, low
    name = "int64" if dtype is None or dtype in ("int", int) else dtype_name(dtype)
    return np_operator("_npi_random_randint")(
        low=int(low), high=int(high), shape=_shape(size) or (), ctx=_place(ctx), dtype=name, out=out
    )


def choice(a: Any, size: Size = None, replace: bool = True, p: Any = None, ctx: Any = None, out: Any = None) -> Any:
    """Draws elements of the one-dimensional array a, or integers below a, with probabilities p if given.

    Raises ParamError if size exceeds the number of elements and replace is false.
    """
    weights = [] if p is None else [array(p, dtype="float64") if isinstance(p, (list, tuple)) else _converted(p)]
    settings = {"size": _shape(size), "replace": replace, "weighted": p is not None, "ctx": _place(ctx)}
    if is_number(a):
        return np_operator("_npi_choice")(*weights, a=int(a), out=out, **settings)
    a = _converted(a)
    places = np_operator("_npi_choice")(a, *weights, a=None, **settings)
    return np_operator("_npi_take")(a, places, axis=0, out=out)


def multinomial(n: int, pvals: Any, size: Size = None, **kwargs: Any) -> Any:
    """Counts each outcome in n experiments; int64 of shape size, then the number of outcomes.

    pvals: probabilities; the last outcome has the remaining probability. Raises ValueError if their sum exceeds 1.
    """
    if kwargs:
        raise HybridNetTypeError("np.random.multinomial", expected="n, pvals, size", given=", ".join(kwargs))
    if isinstance(pvals, (list, tuple, onp.ndarray)):
        weights = tuple(float(value) for value in pvals)
        if weights:
            return np_operator("_npi_multinomial")(n=n, pvals=weights, size=_shape(size))
        pvals = array([])
    return np_operator("_npi_multinomial")(pvals, n=n, size=_shape(size))


def multivariate_normal(
    mean: Any, cov: Any, size: Size = None, check_valid: str | None = None, tol: float | None = None
) -> Any:
    """Draws normally distributed vectors: shape size, then the axes of mean and cov before their last ones, then (d,).

    mean: (..., d). cov: (..., d, d), of which the lower triangle is read; eigenvalues below 0 count as 0. check_valid
    and tol are accepted and have no effect.
    """
    mean, cov = _converted(mean), _converted(cov)
    each = mean + zeros_like(cov.sum(axis=-1))
    standard = np_operator("_npi_normal_n")(zeros_like(each), loc=None, scale=1.0, size=_shape(size))
    values, columns = np_operator("_npi_eigh")(cov)
    scaled = standard * sqrt(np_operator("_npx_relu")(values))
    vectors = swapaxes(columns, -1, -2)
    if getattr(cov, "ndim", 3) == 2:
        return each + matmul(scaled, vectors)
    return each + squeeze(matmul(expand_dims(scaled, -2), vectors), -2)


def shuffle(x: Any) -> None:
    """Shuffles the slices of x along its first axis, in place."""
    np_operator("_npi_shuffle")(x, out=x)


def permutation(x: Any) -> Any:
    """Returns the slices of an array along its first axis, or the integers below x (int64), in random order."""
    return np_operator("_npi_shuffle")(arange(x, dtype="int64") if is_number(x) else _converted(x))


__dir__ = dir_of(__name__)

"""Random arrays. Parameters are numbers (then shape says how many) or arrays (then each element has its own draw)."""

from __future__ import annotations

from typing import Any

from .. import _core
from ..base import _Null
from ..context import current_context
from ..errors import ValueError as HybridNetValueError
from ..ops.namespace import lazy_functions
from . import _internal

__all__ = [
    "exponential",
    "gamma",
    "generalized_negative_binomial",
    "multinomial",
    "negative_binomial",
    "normal",
    "poisson",
    "randint",
    "randn",
    "shuffle",
    "uniform",
]

_lazy, __dir__ = lazy_functions(globals(), "random", symbolic=False)


def __getattr__(name: str) -> Any:
    return _lazy(name)


def _draw(
    random: str,
    sampler: str,
    params: dict[str, Any],
    shape: Any,
    dtype: Any,
    ctx: Any,
    out: Any,
    kwargs: dict[str, Any],
) -> Any:
    arrays = [isinstance(value, (_core.NDArrayBase, _core.SymbolBase)) for value in params.values()]
    if dtype is not _Null and dtype is not None:
        kwargs["dtype"] = dtype
    if shape is not _Null and shape is not None:
        kwargs["shape"] = shape
    if out is not None:
        kwargs["out"] = out
    if all(arrays):
        return getattr(_internal, sampler)(*params.values(), **kwargs)
    if any(arrays):
        raise HybridNetValueError(f"{random[1:]}: distribution parameters must be all numbers or all arrays")
    if "shape" not in kwargs and out is None:
        kwargs["shape"] = (1,)
    elif "shape" not in kwargs:
        kwargs["shape"] = out.shape
    if out is not None and "dtype" not in kwargs:
        kwargs["dtype"] = out.dtype
    return getattr(_internal, random)(**params, ctx=str(ctx or current_context()), **kwargs)


def uniform(
    low: Any = 0, high: Any = 1, shape: Any = _Null, dtype: Any = _Null, ctx: Any = None, out: Any = None, **kwargs: Any
) -> Any:
    """Uniform in [low, high)."""
    return _draw("_random_uniform", "_sample_uniform", {"low": low, "high": high}, shape, dtype, ctx, out, kwargs)


def normal(
    loc: Any = 0,
    scale: Any = 1,
    shape: Any = _Null,
    dtype: Any = _Null,
    ctx: Any = None,
    out: Any = None,
    **kwargs: Any,
) -> Any:
    """Normal with mean loc and standard deviation scale."""
    if isinstance(loc, (_core.NDArrayBase, _core.SymbolBase)):
        return _draw("_random_normal", "_sample_normal", {"mu": loc, "sigma": scale}, shape, dtype, ctx, out, kwargs)
    return _draw("_random_normal", "_sample_normal", {"loc": loc, "scale": scale}, shape, dtype, ctx, out, kwargs)


def randn(*shape: int, **kwargs: Any) -> Any:
    """Normal with mean loc=0 and standard deviation scale=1, of the given sizes."""
    loc, scale = kwargs.pop("loc", 0), kwargs.pop("scale", 1)
    dtype, ctx, out = kwargs.pop("dtype", _Null), kwargs.pop("ctx", None), kwargs.pop("out", None)
    return normal(loc, scale, shape or (1,), dtype, ctx, out, **kwargs)


def poisson(
    lam: Any = 1, shape: Any = _Null, dtype: Any = _Null, ctx: Any = None, out: Any = None, **kwargs: Any
) -> Any:
    """Poisson with rate lam."""
    return _draw("_random_poisson", "_sample_poisson", {"lam": lam}, shape, dtype, ctx, out, kwargs)


def exponential(
    scale: Any = 1, shape: Any = _Null, dtype: Any = _Null, ctx: Any = None, out: Any = None, **kwargs: Any
) -> Any:
    """Exponential with mean scale."""
    return _draw("_random_exponential", "_sample_exponential", {"lam": 1.0 / scale}, shape, dtype, ctx, out, kwargs)


def gamma(
    alpha: Any = 1,
    beta: Any = 1,
    shape: Any = _Null,
    dtype: Any = _Null,
    ctx: Any = None,
    out: Any = None,
    **kwargs: Any,
) -> Any:
    """Gamma with shape alpha and scale beta."""
    return _draw("_random_gamma", "_sample_gamma", {"alpha": alpha, "beta": beta}, shape, dtype, ctx, out, kwargs)


def negative_binomial(
    k: Any = 1, p: Any = 1, shape: Any = _Null, dtype: Any = _Null, ctx: Any = None, out: Any = None, **kwargs: Any
) -> Any:
    """Failures before k successes of probability p."""
    return _draw(
        "_random_negative_binomial", "_sample_negative_binomial", {"k": k, "p": p}, shape, dtype, ctx, out, kwargs
    )


def generalized_negative_binomial(
    mu: Any = 1, alpha: Any = 1, shape: Any = _Null, dtype: Any = _Null, ctx: Any = None, out: Any = None, **kwargs: Any
) -> Any:
    """Poisson whose rate is Gamma distributed, with mean mu and dispersion alpha."""
    return _draw(
        "_random_generalized_negative_binomial", "_sample_generalized_negative_binomial", {"mu": mu, "alpha": alpha},
        shape, dtype, ctx, out, kwargs,
    )  # fmt: skip


def multinomial(
    data: Any, shape: Any = _Null, get_prob: bool = False, out: Any = None, dtype: Any = "int32", **kwargs: Any
) -> Any:
    """Class indices drawn with the probabilities in the last axis of data."""
    return _internal._sample_multinomial(data, shape=shape, get_prob=get_prob, out=out, dtype=dtype, **kwargs)


def randint(
    low: int, high: int, shape: Any = _Null, dtype: Any = _Null, ctx: Any = None, out: Any = None, **kwargs: Any
) -> Any:
    """Integers in [low, high), int32 if dtype is not given."""
    return _draw("_random_randint", "_random_randint", {"low": low, "high": high}, shape, dtype, ctx, out, kwargs)


def shuffle(data: Any, **kwargs: Any) -> Any:
    """The rows of data in random order."""
    return _internal._shuffle(data, **kwargs)
